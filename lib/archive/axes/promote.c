/* Variables that get a joined dimension which they lack. */
#include <stdlib.h>

#include "archive/axes/coordinate.h"
#include "archive/axes/made.h"
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
