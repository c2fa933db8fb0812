/* A dimension of a store that grows, along which options say where files lie that lack it. */
#include <inttypes.h>
#include <stdlib.h>

#include "archive/axes/coordinate.h"
#include "archive/axes/made.h"
#include "archive/axes/values.h"
#include "archive/tables/described.h"
#include "archive/tables/reading.h"
#include "base/number.h"

/* The store has DIM, and a coordinate of numbers, which says what it has. */
static int check_store(const cm_join_input *in, const cm_join_tables *tables, const char *option,
                       const char *name, uint32_t *dim, uint32_t *at, cm_error *err)
{
    *dim = cm_join_dim_named(tables, name);
    *at = cm_join_var_named(tables, name);
    if (*dim == CM_JOIN_NONE || !cm_file_has(tables->dim[*dim].length[0]))
        return cm_fail(err, CM_EINVAL, "`new_dim` %s: the store has no dimension %s", option, name);
    const cm_described *d = *at == CM_JOIN_NONE ? NULL : cm_join_described(in, tables, *at, 0);
    if (d == NULL || d->rank != 1 || d->is_char || !cm_dtype_is_number(&d->dtype) ||
        tables->var[*at].dim[0] != *dim)
        return cm_fail(err, CM_EINVAL,
                       "`new_dim` %s: the store has no coordinate %s of numbers, and nothing else "
                       "tells which steps it has",
                       option, name);
    return CM_OK;
}

int cm_join_said_dim(const cm_join_input *in, cm_join_tables *tables, const char *option,
                     const char *name, bool of_scalar, cm_error *err)
{
    uint32_t dim, at;
    int rc = check_store(in, tables, option, name, &dim, &at, err);
    if (rc != CM_OK)
        return rc;
    cm_join_dim *d = &tables->dim[dim];
    for (uint32_t i = 1; i < in->nfiles; i++) {
        if (!of_scalar && cm_join_described(in, tables, at, i) != NULL)
            return cm_fail(err, CM_EINVAL, "`new_dim` %s: %s has a variable %s already", option,
                           in->file[i]->path, name);
        if (cm_file_has(d->length[i]) && cm_file_count(d->length[i]) != 1)
            return cm_fail(err, CM_EINVAL,
                           "`new_dim` %s: %s has such a dimension already, with %" PRIu64
                           " elements",
                           option, in->file[i]->path, cm_file_count(d->length[i]));
        d->length[i] = cm_file_length_make(1);
    }
    d->one_each = true;
    d->said_by = of_scalar ? NULL : option;
    return CM_OK;
}

/* ---- the keys of what names and attributes say ---- */

static int key_of_text(const cm_join_dim *d, const char *path, const char *text, int64_t *key,
                       cm_error *err)
{
    double x;
    if (d->kind == CM_KEY_INTEGER && cm_parse_i64(text, key, NULL) == CM_OK)
        return CM_OK;
    if (d->kind == CM_KEY_REAL && cm_parse_double(text, &x, NULL) == CM_OK) {
        *key = cm_key_of_real(x);
        return CM_OK;
    }
    return cm_fail(err, CM_EINVAL, "`new_dim` %s: %s says '%s', and the store's %s %s", d->said_by,
                   path, text, d->name,
                   d->kind == CM_KEY_TIME      ? "counts time"
                   : d->kind == CM_KEY_INTEGER ? "holds integers"
                                               : "holds numbers");
}

static int key_of_file(const cm_join_input *in, const cm_join_dim *d, const cm_name_pattern *p,
                       uint32_t file, int64_t *key, cm_error *err)
{
    const char *path = in->file[file]->path;
    char *text = NULL;
    int rc;
    if (p->kind == CM_PATTERN_TIME && d->kind != CM_KEY_TIME)
        return cm_fail(err, CM_EINVAL, "`new_dim` %s: the store's %s counts no time", d->said_by,
                       d->name);
    if (p->kind == CM_PATTERN_TIME)
        return cm_join_read_name_time(p, d->axis.calendar, path, key, err);
    rc = p->kind == CM_PATTERN_TEXT ? cm_join_read_name(p, path, &text, err)
                                    : cm_join_read_attribute(in, file, p->text, &text, err);
    if (rc == CM_OK)
        rc = key_of_text(d, path, text, key, err);
    free(text);
    return rc;
}

/* Whether the store has a number that means KEY, and nothing else. */
static int check_exact(const cm_join_input *in, const cm_join_tables *tables, const cm_join_dim *d,
                       uint32_t file, int64_t key, cm_error *err)
{
    uint8_t element[16];
    char text[48];
    cm_reading r;
    cm_meaning m;
    int rc = cm_join_put_key(in, tables, d, key, element, NULL);
    bool same = rc == CM_OK && cm_join_reading(in, tables, d->var, 0, &r);
    if (same)
        cm_reading_means(&r, element, &m);
    if (same && d->kind == CM_KEY_TIME)
        same = m.kind == CM_MEANS_INSTANT && m.us == key && m.ns == 0;
    else if (same && d->kind == CM_KEY_INTEGER)
        same = m.kind == CM_MEANS_INTEGER && m.integer == key && !m.above;
    else if (same)
        same = m.kind != CM_MEANS_NOTHING && cm_key_of_real(cm_meaning_number(&m)) == key;
    return same ? CM_OK
                : cm_fail(err, CM_EINVAL,
                          "`new_dim` %s: %s is %s, which the store's %s has no exact value for",
                          d->said_by, in->file[file]->path,
                          cm_key_text(in, d, key, text, sizeof(text)), d->name);
}

int cm_join_said_keys(const cm_join_input *in, const cm_join_tables *tables, cm_join_dim *d,
                      cm_error *err)
{
    cm_name_pattern p;
    int rc = cm_name_pattern_parse(d->said_by, &p, err);
    for (size_t i = 0; rc == CM_OK && i < d->nvecs; i++) {
        cm_join_vec *v = cm_axis_vec_at(in, d, i);
        if (v->like != NULL)
            continue;
        if ((v->key = cm_join_alloc(in, 1, sizeof(v->key[0]), err)) == NULL)
            return CM_ENOMEM;
        rc = key_of_file(in, d, &p, v->file, &v->key[0], err);
        if (rc == CM_OK)
            rc = check_exact(in, tables, d, v->file, v->key[0], err);
    }
    return rc;
}
