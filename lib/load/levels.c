/* Whether the levels of a store are those that statistics were counted of. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/packing.h"
#include "load/run.h"

cm_load_range cm_load_used(const cm_load_options *o, const char *dim, uint64_t length)
{
    for (size_t i = 0; i < o->nranges; i++)
        if (strcmp(o->range[i].dim, dim) == 0)
            return o->range[i];
    return (cm_load_range){dim, 0, length};
}

/* Coordinates of A's dimension J into *OUT; NULL: it has none of numbers. */
static int read_coordinates(cm_load_data *d, const cm_array *a, unsigned j, double **out,
                            cm_error *err)
{
    const char *slash = strrchr(a->name, '/');
    const size_t n = slash != NULL ? (size_t)(slash - a->name) + 1 : 0;
    char *name = cm_asprintf(err, "%.*s%s", (int)n, a->name, a->dim_name[j]);
    cm_variable *v = NULL;
    *out = NULL;
    if (name == NULL)
        return CM_ENOMEM;
    int rc = cm_load_data_find(d, name, &v, err);
    free(name);
    if (rc == CM_OK && v != NULL && v->rank == 1 && v->shape[0] == a->shape[j] &&
        cm_dtype_is_number(&v->dtype)) {
        *out = cm_calloc((size_t)a->shape[j] + 1, sizeof(double), err);
        rc = *out != NULL ? cm_packing_read(v, a->shape[j], *out, err) : CM_ENOMEM;
    }
    cm_load_data_leave(d, v);
    return rc;
}

/* One of them may be kept with fewer digits. */
static bool are_same(double a, double b)
{
    return a == b || isnan(a) || isnan(b) || fabs(a - b) <= 1e-6 * fmax(fabs(a), fabs(b));
}

static int check_levels(const cm_load_options *o, cm_load_data *d, const cm_array *a, unsigned j,
                        const cm_load_normal *n, cm_error *err)
{
    const cm_load_range used = cm_load_used(o, n->dim, a->shape[j]);
    double *here;
    int rc = read_coordinates(d, a, j, &here, err);
    for (uint64_t i = used.first; rc == CM_OK && here != NULL && i < used.first + used.count; i++)
        if (!are_same(here[i], n->coordinate[i]))
            rc = cm_fail(err, CM_EINVAL,
                         "variable %s: normalize: %s %llu (from 0) is %.10g here, and %.10g where "
                         "the statistics were counted",
                         cm_load_array_name(a), n->dim, (unsigned long long)i, here[i],
                         n->coordinate[i]);
    free(here);
    return rc;
}

int cm_load_levels_check(const cm_load_options *o, cm_load_data *d, cm_error *err)
{
    int rc = CM_OK;
    for (size_t k = 0; k < d->narrays * o->nnormals && rc == CM_OK; k++) {
        const cm_array *a = d->array[k / o->nnormals];
        const cm_load_normal *n = &o->normal[k % o->nnormals];
        /* Another number of levels was refused already. */
        if (n->coordinate == NULL || strcmp(n->variable, a->name) != 0)
            continue;
        for (unsigned j = 0; j < a->rank && rc == CM_OK; j++)
            if (a->dim_name[j] != NULL && strcmp(a->dim_name[j], n->dim) == 0 &&
                a->shape[j] == n->nlevels)
                rc = check_levels(o, d, a, j, n, err);
    }
    return rc;
}
