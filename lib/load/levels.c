/* Normals by levels: which an array has, and whether they were counted of its levels. */
#include <math.h>
#include <stdio.h>
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

enum {
    MOST_TEXT = 1 << 16 /* bytes of texts, as many as statistics keep */
};

/* The coordinates of a dimension, which many arrays have. */
typedef struct levels {
    const cm_array *of; /* NULL: none were read */
    unsigned dim;
    uint64_t n;
    double *value; /* NULL: they are not numbers that can be read */
    bool has_text;
    cm_strings text;
    const char *units; /* the dataset's; or NULL */
} levels;

static void release(levels *l)
{
    free(l->value);
    cm_strings_release(&l->text);
}

static int read_numbers(cm_variable *v, levels *out, cm_error *err)
{
    out->value = cm_calloc((size_t)out->n + 1, sizeof(double), err);
    out->units = cm_json_text(cm_json_member(v->attrs, "units"), NULL);
    return out->value != NULL ? cm_packing_read(v, out->n, out->value, err) : CM_ENOMEM;
}

static int read_texts(cm_variable *v, levels *out, cm_error *err)
{
    const cm_box all = {.rank = 1, .shape = {out->n}};
    int rc = cm_strings_reset(&out->text, (size_t)out->n, err);
    if (rc == CM_OK)
        rc = cm_array_read_strings(v->array, &all, &out->text, err);
    out->has_text = rc == CM_OK;
    return rc;
}

static int read_levels(cm_load_data *d, const cm_array *a, unsigned j, levels *out, cm_error *err)
{
    cm_variable *v;
    int rc = cm_load_data_find_coordinate(d, a, a->dim_name[j], &v, err);
    release(out);
    *out = (levels){.of = a, .dim = j, .n = a->shape[j]};
    cm_strings_init(&out->text, MOST_TEXT);
    const bool fits = rc == CM_OK && v != NULL && v->rank == 1 && v->shape[0] == out->n;
    if (fits && cm_dtype_is_number(&v->dtype))
        rc = read_numbers(v, out, err);
    else if (fits && v->dtype.kind == CM_KIND_STRING)
        rc = read_texts(v, out, err);
    cm_load_data_leave(d, v);
    if (rc != CM_EUNSUPPORTED && rc != CM_EBUDGET) /* codecs that are not known here; long texts */
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

/* Why level I of L is not that of N, in OUT; "": it is. */
static void differ(const levels *l, const cm_load_normal *n, uint64_t i, char out[200])
{
    size_t nbytes;
    out[0] = '\0';
    if (l->has_text) {
        const char *text = cm_strings_get(&l->text, (size_t)i, &nbytes), *of = n->label[i];
        if (of != NULL && (strlen(of) != nbytes || memcmp(text, of, nbytes) != 0))
            snprintf(out, 200, "\"%.*s\" here, and \"%.60s\"", nbytes < 60 ? (int)nbytes : 60, text,
                     of);
    } else if (!is_same(l, n, i)) {
        snprintf(out, 200, "%.12g here, and %.12g", l->value[i], n->coordinate[i]);
    }
}

static int compare(const cm_load_options *o, const levels *l, const cm_array *a,
                   const cm_load_normal *n, cm_error *err)
{
    char words[200];
    const cm_load_range used = cm_load_used(o, n->dim, l->n);
    if (!is_same_origin(l->units, n->units))
        return cm_fail(err, CM_EINVAL,
                       "variable %s: normalize: %s is in \"%s\" here, and in \"%s\" where the "
                       "statistics were counted",
                       cm_load_array_name(a), n->dim, l->units, n->units);
    for (uint64_t i = used.first; i < used.first + used.count; i++) {
        differ(l, n, i, words);
        if (words[0] != '\0')
            return cm_fail(
                err, CM_EINVAL,
                "variable %s: normalize: %s %llu (from 0) is %s where the statistics were counted",
                cm_load_array_name(a), n->dim, (unsigned long long)i, words);
    }
    return CM_OK;
}

/* Numbers are held against numbers, and texts against texts. */
static bool are_comparable(const levels *l, const cm_load_normal *n)
{
    return (l->value != NULL && n->coordinate != NULL) || (l->has_text && n->label != NULL);
}

int cm_load_levels_check(const cm_load_options *o, cm_load_data *d, cm_error *err)
{
    levels l = {0};
    int rc = CM_OK;
    for (size_t i = 0; i < d->narrays && rc == CM_OK; i++) {
        const cm_array *a = d->array[i];
        const cm_load_normal *n = cm_load_normal_of(o, d, a);
        const bool known = n != NULL && (n->coordinate != NULL || n->label != NULL);
        const int j = known ? cm_load_level_dim(n, a) : -1;
        if (j < 0) /* another number of levels was refused already */
            continue;
        if (!has_levels(&l, a, (unsigned)j))
            rc = read_levels(d, a, (unsigned)j, &l, err);
        if (rc == CM_OK && are_comparable(&l, n))
            rc = compare(o, &l, a, n, err);
    }
    release(&l);
    return rc;
}
