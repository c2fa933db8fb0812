#include "archive/survey/lengths.h"

#include <inttypes.h>
#include <string.h>

#include "base/number.h"
#include "base/path.h"

static bool is_beside(const cm_variable *a, const cm_variable *b)
{
    const size_t n = (size_t)(cm_path_last(a->name) - a->name);
    return n == (size_t)(cm_path_last(b->name) - b->name) && memcmp(a->name, b->name, n) == 0;
}

/* The first variable that has a dimension is the one that all others are held against. */
static int check_dim(const cm_dataset *ds, const cm_variable *v, unsigned j, cm_error *err)
{
    for (const cm_variable *w = ds->var; w <= v; w++)
        for (unsigned k = 0; k < w->rank && is_beside(v, w); k++) {
            if (w->dim_name[k] == NULL || strcmp(w->dim_name[k], v->dim_name[j]) != 0)
                continue;
            if (w->shape[k] == v->shape[j])
                return CM_OK;
            return cm_fail(err, CM_EFORMAT,
                           "variable %s has %" PRIu64 " %s along %s, and %s has %" PRIu64
                           ": they must be resized to one length first",
                           v->name, v->shape[j], cm_of_count(v->shape[j], "element", "elements"),
                           v->dim_name[j], w->name, w->shape[k]);
        }
    return CM_OK;
}

int cm_lengths_check(const cm_dataset *ds, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < ds->nvars; i++)
        for (unsigned j = 0; rc == CM_OK && j < ds->var[i].rank; j++)
            if (ds->var[i].dim_name[j] != NULL)
                rc = check_dim(ds, &ds->var[i], j, err);
    return rc;
}
