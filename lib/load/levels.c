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

static const cm_load_normal *find_normal(const cm_load_options *o, const char *name)
{
    for (size_t i = 0; i < o->nnormals; i++)
        if (strcmp(o->normal[i].variable, name) == 0)
            return &o->normal[i];
    return NULL;
}

const cm_load_normal *cm_load_normal_of(const cm_load_options *o, const cm_load_data *d,
                                        const cm_array *a)
{
    const cm_load_normal *found = find_normal(o, a->name);
    const size_t n = strlen(d->node); /* of all arrays of D the name begins so */
    return found == NULL && n > 0 && a->name[n] == '/' ? find_normal(o, a->name + n + 1) : found;
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
    double *value;     /* NULL: they are not numbers that can be read */
    const char *units; /* the dataset's; or NULL */
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
        out->units = cm_json_text(cm_json_member(v->attrs, "units"), NULL);
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

/*
 * Whether level I of HERE is that of N.  Either may be kept as float32: so far apart they may be,
 * as long as no level beside it is as near.
 */
static bool is_same(const levels *here, const cm_load_normal *n, uint64_t i)
{
    const double a = here->value[i], b = n->coordinate[i], off = fabs(a - b);
    if (!isfinite(a) || !isfinite(b))
        return !isfinite(a) && !isfinite(b);
    return off == 0 || (off <= ldexp(fmax(fabs(a), fabs(b)), -23) &&
                        (i == 0 || fabs(a - n->coordinate[i - 1]) > 2 * off) &&
                        (i + 1 == n->nlevels || fabs(a - n->coordinate[i + 1]) > 2 * off));
}

/* Units of time count from some moment; two names of another unit may mean the same. */
static bool is_same_origin(const char *a, const char *b)
{
    return a == NULL || b == NULL || strcmp(a, b) == 0 ||
           (strstr(a, " since ") == NULL && strstr(b, " since ") == NULL);
}

static int compare(const cm_load_options *o, const levels *l, const cm_array *a,
                   const cm_load_normal *n, cm_error *err)
{
    const cm_load_range used = cm_load_used(o, n->dim, l->n);
    if (!is_same_origin(l->units, n->units))
        return cm_fail(err, CM_EINVAL,
                       "variable %s: normalize: %s is in \"%s\" here, and in \"%s\" where the "
                       "statistics were counted",
                       cm_load_array_name(a), n->dim, l->units, n->units);
    for (uint64_t i = used.first; i < used.first + used.count; i++)
        if (!is_same(l, n, i))
            return cm_fail(
                err, CM_EINVAL,
                "variable %s: normalize: %s %llu (from 0) is %.12g here, and %.12g where "
                "the statistics were counted",
                cm_load_array_name(a), n->dim, (unsigned long long)i, l->value[i],
                n->coordinate[i]);
    return CM_OK;
}

int cm_load_levels_check(const cm_load_options *o, cm_load_data *d, cm_error *err)
{
    levels l = {0};
    int rc = CM_OK;
    for (size_t i = 0; i < d->narrays && rc == CM_OK; i++) {
        const cm_array *a = d->array[i];
        const cm_load_normal *n = cm_load_normal_of(o, d, a);
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
