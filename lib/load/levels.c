/* Normals by levels: which an array has, and whether they were counted of its levels. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "format/packing.h"
#include "load/run.h"

cm_load_range cm_load_used(const cm_load_options *o, const char *dim, uint64_t length)
{
    for (size_t i = 0; i < o->nranges; i++)
        if (strcmp(o->range[i].dim, dim) == 0)
            return o->range[i];
    return (cm_load_range){dim, 0, length};
}

const cm_load_normal *cm_load_normal_of(const cm_load_options *o, const cm_array *a)
{
    for (size_t i = 0; i < o->nnormals; i++)
        if (strcmp(o->normal[i].variable, a->name) == 0)
            return &o->normal[i];
    return NULL;
}

int cm_load_level_dim(const cm_load_normal *n, const cm_array *a)
{
    for (unsigned j = 0; n->dim != NULL && j < a->rank; j++)
        if (a->dim_name[j] != NULL && strcmp(a->dim_name[j], n->dim) == 0)
            return (int)j;
    return -1;
}

/* ---- coordinates ---- */

/* The coordinates of a dimension, which many arrays have. */
typedef struct levels {
    const cm_array *of; /* NULL: none were read */
    unsigned dim;
    uint64_t n;
    double *value; /* NULL: they are not numbers that can be read */
} levels;

static int read_levels(cm_load_data *d, const cm_array *a, unsigned j, levels *out, cm_error *err)
{
    cm_variable *v;
    int rc = cm_load_data_find_coordinate(d, a, a->dim_name[j], &v, err);
    free(out->value);
    *out = (levels){.of = a, .dim = j, .n = a->shape[j]};
    if (rc == CM_OK && v != NULL && v->rank == 1 && v->shape[0] == out->n &&
        cm_dtype_is_number(&v->dtype)) {
        out->value = cm_calloc((size_t)out->n + 1, sizeof(double), err);
        rc = out->value != NULL ? cm_packing_read(v, out->n, out->value, err) : CM_ENOMEM;
    }
    cm_load_data_leave(d, v);
    if (rc != CM_EUNSUPPORTED) /* a codec that is not known here */
        return rc;
    free(out->value);
    out->value = NULL;
    return CM_OK;
}

/* Whether L are the coordinates of dimension J of A: by its name, in the same group. */
static bool has_levels(const levels *l, const cm_array *a, unsigned j)
{
    const size_t group = (size_t)(cm_path_last(a->name) - a->name);
    return l->of != NULL && l->n == a->shape[j] &&
           strcmp(l->of->dim_name[l->dim], a->dim_name[j]) == 0 &&
           (size_t)(cm_path_last(l->of->name) - l->of->name) == group &&
           memcmp(l->of->name, a->name, group) == 0;
}

/* One of them may be kept with fewer digits. */
static bool are_same(double a, double b)
{
    return a == b || isnan(a) || isnan(b) || fabs(a - b) <= 1e-6 * fmax(fabs(a), fabs(b));
}

static int compare(const cm_load_options *o, const levels *l, const cm_array *a,
                   const cm_load_normal *n, cm_error *err)
{
    const cm_load_range used = cm_load_used(o, n->dim, l->n);
    int rc = CM_OK;
    for (uint64_t i = used.first; rc == CM_OK && i < used.first + used.count; i++)
        if (!are_same(l->value[i], n->coordinate[i]))
            rc = cm_fail(err, CM_EINVAL,
                         "variable %s: normalize: %s %llu (from 0) is %.10g here, and %.10g where "
                         "the statistics were counted",
                         cm_load_array_name(a), n->dim, (unsigned long long)i, l->value[i],
                         n->coordinate[i]);
    return rc;
}

int cm_load_levels_check(const cm_load_options *o, cm_load_data *d, cm_error *err)
{
    levels l = {0};
    int rc = CM_OK;
    for (size_t i = 0; i < d->narrays && rc == CM_OK; i++) {
        const cm_array *a = d->array[i];
        const cm_load_normal *n = cm_load_normal_of(o, a);
        const int j = n != NULL && n->coordinate != NULL ? cm_load_level_dim(n, a) : -1;
        if (j < 0) /* another number of levels was refused already */
            continue;
        if (!has_levels(&l, a, (unsigned)j))
            rc = read_levels(d, a, (unsigned)j, &l, err);
        if (rc == CM_OK && l.value != NULL)
            rc = compare(o, &l, a, n, err);
    }
    free(l.value);
    return rc;
}
