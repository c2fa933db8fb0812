/* Checks that a store that grows comes first along the axis, whole, and stays unchanged. */
#include <inttypes.h>
#include <string.h>

#include "archive/axes/coordinate.h"
#include "archive/axes/merge.h"

/* The file that has element AT of D. */
static uint32_t file_of(const cm_join_dim *d, uint64_t at)
{
    uint32_t file = 1;
    for (size_t i = 0; i < d->nvecs; i++)
        for (size_t r = 0; r < d->vec[i].nruns; r++)
            if (at >= d->vec[i].run[r].origin &&
                at - d->vec[i].run[r].origin < d->vec[i].run[r].count)
                file = d->vec[i].file;
    return file;
}

static int find_before(const cm_join_input *in, cm_join_findings *findings, const cm_join_dim *d,
                       const cm_join_vec *base, cm_error *err)
{
    char step[48], end[48];
    /* Refuses the element at a place where the store would have to change. */
    uint64_t at = base->nruns == 0 || base->run[0].origin > 0 ? 0 : base->run[0].count;
    const uint32_t file = file_of(d, at);
    return cm_join_find(findings, CM_FINDING_INTERLEAVED, CM_WEIGHT_DECISION, false, d->name, file,
                        err, "%s lies before the end of the store, %s, which has no such step",
                        cm_key_text(in, d, d->key[at], step, sizeof(step)),
                        cm_key_text(in, d, d->key[d->n - 1], end, sizeof(end))) == NULL
               ? CM_ENOMEM
               : CM_OK;
}

/* Nothing tells which elements of D the store has: all of the files' come after its own. */
static int tell_unordered(const cm_join_input *in, cm_join_axes *axes, cm_join_findings *findings,
                          const cm_join_dim *d, cm_error *err)
{
    const bool compares = in->options->base_yields || in->options->base_rechecks;
    if (d->kind != CM_KEY_NONE || in->nfiles < 2)
        return CM_OK;
    axes->refused = axes->refused || compares;
    return cm_join_find(findings, CM_FINDING_ALONG,
                        compares ? CM_WEIGHT_DECISION : CM_WEIGHT_WARNING, false, d->name, 1, err,
                        "no coordinate of numbers tells which elements along it the store has: %s",
                        !compares ? "all of the files' are added"
                        : in->options->base_yields
                            ? "none can be found there to be replaced"
                            : "none can be found there to be compared") == NULL
               ? CM_ENOMEM
               : CM_OK;
}

static bool stays(const cm_join_vec *base)
{
    if (base->n == 0)
        return true;
    return base->nruns == 1 && base->run[0].origin == 0 && base->run[0].first == 0 &&
           base->run[0].count == base->n;
}

/* Files have elements of D behind those of the store, which grows along another dimension. */
static int find_beyond(const cm_join_input *in, cm_join_axes *axes, cm_join_findings *findings,
                       const cm_join_dim *d, uint64_t at, cm_error *err)
{
    char step[48];
    axes->refused = true;
    return cm_join_find(findings, CM_FINDING_COORDINATE, CM_WEIGHT_DECISION, false, d->name,
                        file_of(d, at), err, "%s is not in the store, which grows along %s alone",
                        cm_key_text(in, d, d->key[at], step, sizeof(step)),
                        in->options->along) == NULL
               ? CM_ENOMEM
               : CM_OK;
}

int cm_join_check_base(const cm_join_input *in, const cm_join_tables *tables, cm_join_axes *axes,
                       cm_join_findings *findings, cm_error *err)
{
    int rc = CM_OK;
    for (unsigned i = 0; rc == CM_OK && i < axes->naxes && !axes->refused; i++) {
        const cm_join_dim *d = &tables->dim[axes->axis[i]];
        const cm_join_vec *base = cm_axis_vec(in, d, 0);
        if (base == NULL)
            return cm_fail(err, CM_EINVAL, "%s: the store has no dimension %s", in->file[0]->path,
                           d->name);
        rc = tell_unordered(in, axes, findings, d, err);
        if (rc == CM_OK && !stays(base)) {
            rc = find_before(in, findings, d, base, err);
            axes->refused = true;
        } else if (rc == CM_OK && d->kind != CM_KEY_NONE && d->n > base->n &&
                   in->options->along != NULL && strcmp(in->options->along, d->name) != 0) {
            rc = find_beyond(in, axes, findings, d, base->n, err);
        }
    }
    return rc;
}
