/* Variables that get a joined dimension which they lack. */
#include <stdlib.h>

#include "archive/axes/coordinate.h"
#include "archive/axes/made.h"
#include "archive/tables/described.h"
#include "archive/tables/reading.h"
#include "base/mem.h"

uint32_t cm_join_promotion_dim(const cm_join_input *in, const cm_join_tables *tables,
                               const cm_join_axes *axes, const cm_join_var *v)
{
    if (axes->naxes == 1)
        return axes->axis[0];
    for (unsigned i = axes->naxes; i-- > 0;)
        if (!axes->refused &&
            !cm_axis_shares_steps(in, &tables->dim[axes->axis[i]], v->file, v->nfiles, NULL))
            return axes->axis[i];
    return CM_JOIN_NONE;
}

/* A digest of the value of AT in FILE, and of the steps that it is for. */
static cm_digest said_by(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                         uint32_t file, const cm_join_vec *steps)
{
    cm_surveyed_var s;
    const bool known = cm_join_record(in, tables, at, file, &s) && s.has_values;
    const struct {
        cm_digest value;
        uint64_t steps, own;
    } id = {known ? cm_join_meaning(in, tables, at, file, &s) : (cm_digest){0}, steps->same,
            known ? 0 : (uint64_t)file + 1};
    return cm_wire_digest(&id, sizeof(id));
}

bool cm_join_keeps_each_step(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                             uint32_t dim)
{
    const cm_join_var *v = &tables->var[at];
    const cm_join_dim *d = &tables->dim[dim];
    uint32_t *file = cm_calloc(v->nfiles + 1, sizeof(*file), NULL);
    cm_known known = {0};
    size_t n = 0;
    bool keeps = file != NULL;
    for (size_t i = 0; keeps && i < v->nfiles; i++) {
        uint64_t before;
        const cm_join_vec *steps = cm_axis_vec(in, d, v->file[i]);
        if (steps == NULL)
            continue;
        /* Files that say the same of the same steps are one. */
        const cm_digest said = said_by(in, tables, at, v->file[i], steps);
        if (cm_known_find(&known, said, &before))
            continue;
        keeps = cm_known_add(&known, said, 0, NULL) == CM_OK;
        file[n++] = v->file[i];
    }
    keeps = keeps && !cm_axis_shares_steps(in, d, file, n, NULL);
    cm_known_release(&known);
    free(file);
    return keeps;
}

typedef struct promotion {
    const cm_join_input *in;
    cm_join_tables *tables;
    const cm_join_axes *axes;
    bool store; /* grows, whose variables keep their dimensions */
} promotion;

static int promote(void *context, char *pattern, cm_error *err)
{
    promotion *p = context;
    bool any = false;
    for (uint32_t i = 0; i < p->tables->nvars; i++) {
        cm_join_var *v = &p->tables->var[i];
        bool has = false;
        if (!cm_name_matches(pattern, v->name) || v->made != NULL)
            continue;
        any = true;
        if (v->nlacking > 0 && p->tables->dim[v->dim[0]].one_each)
            continue; /* it has got the dimension that an option made */
        if (v->widest != NULL)
            continue; /* it is repeated along what files lack */
        for (unsigned k = 0; k < v->rank; k++)
            has |= p->tables->dim[v->dim[k]].joined >= 0;
        if (has)
            continue; /* as in a part of an archive of which other files lack it */
        if (p->store)
            return cm_fail(err, CM_EINVAL, "`promote` %s: the store has no such variable along %s",
                           v->name, p->tables->dim[p->axes->axis[p->axes->naxes - 1]].name);
        if (v->like->is_coordinate)
            return cm_fail(err, CM_EINVAL, "%s: a coordinate cannot be promoted", v->name);
        v->wanted = true;
        const uint32_t dim = cm_join_promotion_dim(p->in, p->tables, p->axes, v);
        cm_join_give_dim(v, dim != CM_JOIN_NONE ? dim : p->axes->axis[p->axes->naxes - 1]);
    }
    return any ? CM_OK
               : cm_fail(err, CM_EINVAL, "`promote` %s: no file has such a variable", pattern);
}

int cm_join_promote(const cm_join_input *in, cm_join_tables *tables, const cm_join_axes *axes,
                    cm_join_findings *findings, cm_error *err)
{
    const cm_texts *texts = &in->options->promote;
    promotion p = {.in = in, .tables = tables, .axes = axes, .store = in->has_base};
    int rc = CM_OK;
    if (in->has_base && in->nfiles < 2)
        return CM_OK; /* it has all of the files */
    if (texts->n > 0 && axes->naxes == 0)
        return cm_fail(err, CM_EINVAL, "no dimension is joined, so a variable cannot be given one");
    for (size_t i = 0; rc == CM_OK && i < texts->n; i++)
        rc = cm_split(texts->text[i], ',', promote, &p, err);
    return rc == CM_OK && texts->n > 0
               ? cm_join_irreversible(findings, err, "variables were promoted")
               : rc;
}
