/*
 * Elements that a repository refers to, and files that give them once more: where both are the same
 * bytes of the same file, nobody needs to read them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "convert/layout/refer.h"
#include "convert/sink/icechunk/grow_refer.h"
#include "format/icechunk/kept.h"

/* Whether OURS is the reference THEIRS that the repository has. */
static bool is_same(const cm_ice_place *ours, const cm_ice_location *at, const cm_ice_place *theirs,
                    const cm_ice_location *there)
{
    return theirs->where == CM_ICE_OUTSIDE && !theirs->tagged && ours->offset == theirs->offset &&
           ours->nbytes == theirs->nbytes && strcmp(at->url, there->url) == 0 &&
           (there->modified_s == 0 || (at->modified_s > 0 && at->modified_s <= there->modified_s));
}

/* Whether THERE refers to the file AT as it was before: no reader takes chunks of it any more. */
static bool is_stale(const cm_ice_location *at, const cm_ice_location *there)
{
    return strcmp(at->url, there->url) == 0 && there->modified_s > 0 &&
           at->modified_s > there->modified_s;
}

/*
 * Chunk NUMBER, which lies at AT in the file: THEIRS is the repository's.  *STALE: it cannot be
 * read.
 */
static int compare_place(const cm_ice_places *of, const cm_ice_kept *kept, uint64_t number,
                         const cm_ice_place *theirs, bool *same, bool *stale, cm_error *err)
{
    cm_ice_place ours;
    cm_ice_location at;
    int rc = of->find(of->context, number, 1, &ours, err);
    *same = rc == CM_OK && ours.where == CM_ICE_OUTSIDE && theirs->where == CM_ICE_OUTSIDE;
    if (*same)
        rc = of->locate(of->context, ours.location, &at, err);
    if (*same && rc == CM_OK) {
        const cm_ice_location *there = cm_ice_kept_locate(kept, theirs->location);
        *same = is_same(&ours, &at, theirs, there);
        *stale = is_stale(&at, there);
    }
    return rc;
}

/* Chunks of EXTENT, N of them: whether NODE has the places that P has. */
static int compare_extent(cm_refer_places *p, cm_ice_kept *kept, const cm_fb_table *node,
                          const cm_ice_extent *extent, size_t n, bool *same, bool *stale,
                          cm_error *err)
{
    cm_ice_places of;
    uint32_t index[CM_MAX_RANK];
    cm_ice_place *theirs = cm_calloc(n, sizeof(theirs[0]), err);
    cm_refer_places_get(p, &of);
    for (size_t i = 0; theirs != NULL && i < n; i++)
        theirs[i].where = CM_ICE_KEPT;
    cm_ice_kept_forget(kept);
    int rc =
        theirs == NULL ? CM_ENOMEM : cm_ice_kept_find(kept, node, of.rank, extent, theirs, err);
    memcpy(index, extent->first, sizeof(index));
    for (size_t i = 0; rc == CM_OK && *same && i < n; i++) {
        uint64_t number = 0;
        for (unsigned j = 0; j < of.rank; j++)
            number = number * of.shape[j] + index[j];
        rc = compare_place(&of, kept, number, &theirs[i], same, stale, err);
        for (unsigned j = of.rank; j-- > 0 && ++index[j] == extent->end[j];)
            index[j] = extent->first[j];
    }
    free(theirs);
    return rc;
}

/* Row by row of the one box of P. */
static int compare_box(cm_refer_places *p, cm_ice_kept *kept, const cm_fb_table *node, bool *same,
                       bool *stale, cm_error *err)
{
    const unsigned rank = p->v->view.rank;
    const cm_refer_box *b = p->box;
    cm_ice_extent extent = {{0}, {0}};
    uint64_t n = 1;
    int rc = CM_OK;
    for (unsigned j = 0; j < rank; j++) {
        extent.first[j] = (uint32_t)b->first[j];
        extent.end[j] = (uint32_t)(b->first[j] + b->count[j]);
        n *= j > 0 ? b->count[j] : 1;
    }
    for (uint64_t i = 0; rc == CM_OK && *same && i < (rank > 0 ? b->count[0] : 1); i++) {
        extent.first[0] = (uint32_t)(b->first[0] + i);
        extent.end[0] = extent.first[0] + 1;
        rc = compare_extent(p, kept, node, &extent, (size_t)n, same, stale, err);
    }
    return rc;
}

/* The elements of FROM, a file's, are chunks of WHOLE, array T of the repository. */
static bool fits(const cm_multi_spec *spec, const cm_multi_var *m, const cm_multi_part *from,
                 const cm_variable *t, cm_job_var *whole)
{
    const cm_located *l = from->located;
    bool fits = l != NULL && from->how == NULL &&
                (l->form->kind == CM_LOCATED_CHUNKS || l->form->kind == CM_LOCATED_SLAB);
    for (uint64_t k = 0; fits && l->place != NULL && k < l->nplaces; k++)
        fits = l->place[k].nbytes > 0;
    if (!fits)
        return false;
    cm_refer_add(whole->layout.refer, spec, m, from, l);
    return cm_refer_match(whole, t->words, NULL) == CM_OK;
}

/* The file of C, about M, is not the one any more that the repository refers to. */
static int refuse_stale(const cm_append *a, const cm_multi_spec *spec, const cm_multi_var *m,
                        const cm_multi_check *c, cm_error *err)
{
    const cm_multi_part *part = &c->part[1];
    const unsigned k = cm_rewrite_axis(m, a->dimension);
    cm_fail(err, CM_EFORMAT, "it has changed since the references of %s to it were made; ",
            m->name);
    if (k < m->naxes)
        cm_error_suffix(err,
                        "`replace` %s=%" PRIu64 ":%" PRIu64 " (with `allow`) converts its "
                        "steps anew",
                        a->dimension, part->origin[k], part->origin[k] + part->count[k]);
    else
        cm_error_suffix(err, "make the repository anew");
    cm_error_place(err, spec->file[part->file].path);
    return CM_EFORMAT;
}

/* Check C of SPEC, whose first part is that of the repository, *SAME: both are the same bytes. */
static int agree(cm_grow_refer *r, const cm_append *a, const cm_multi_spec *spec,
                 const cm_multi_check *c, cm_ice_kept *kept, bool *same, cm_error *err)
{
    const cm_multi_var *m = &spec->var[c->var];
    const cm_variable *t = cm_dataset_find(spec->file[c->part[0].file].open, m->name);
    const bool is_known =
        t != NULL && t->unsupported == NULL && t->words != NULL && !t->words->verbatim;
    const cm_fb_table *node = is_known ? cm_grow_refer_node(a, m->name) : NULL;
    cm_refer_places places = {0};
    cm_job_var whole;
    bool stale = false;
    *same = false;
    if (node == NULL)
        return CM_OK;
    int rc = cm_grow_refer_whole(t, t->rank, 0, 1, &whole, err);
    if (rc == CM_OK && fits(spec, m, &c->part[1], t, &whole)) {
        rc = cm_refer_places_create(&whole, &r->urls, &places, err);
        *same = rc == CM_OK && places.nboxes == 1;
        if (*same)
            rc = compare_box(&places, kept, node, same, &stale, err);
    }
    if (rc == CM_OK && stale)
        rc = refuse_stale(a, spec, m, c, err);
    *same = *same && rc == CM_OK;
    cm_refer_places_release(&places);
    cm_refer_free(whole.layout.refer);
    return rc;
}

int cm_grow_refer_agree(cm_grow_refer *r, cm_job *job, cm_error *err)
{
    const cm_multi_spec *spec = cm_multi_spec_of(job->source);
    cm_ice_kept kept = {.root = job->options->append->store};
    int rc = CM_OK;
    if (spec == NULL || spec->nchecks == 0)
        return CM_OK;
    if ((job->evidence.agreed = cm_calloc(spec->nchecks, sizeof(job->evidence.agreed[0]), err)) ==
        NULL)
        return CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < spec->nchecks; i++)
        if (spec->file[spec->check[i].part[0].file].open != NULL)
            rc = agree(r, job->options->append, spec, &spec->check[i], &kept,
                       &job->evidence.agreed[i], err);
    cm_ice_kept_release(&kept);
    return rc;
}
