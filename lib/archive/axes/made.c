/* Makes dimensions and coordinates of the names and attributes of files, as options ask. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/axes/coordinate.h"
#include "archive/axes/made.h"
#include "archive/axes/merge.h"
#include "archive/axes/values.h"
#include "archive/tables/described.h"
#include "archive/tables/fills.h"
#include "archive/tables/reading.h"
#include "archive/tables/scalars.h"
#include "base/number.h"
#include "options/varopt.h"

#define DAY_US INT64_C(86400000000)

/* The values that files give, one each: all integers, all numbers, or texts. */
typedef struct said {
    char **text; /* one for each file */
    size_t n;
    cm_key_kind kind; /* INTEGER, REAL or TEXT */
} said;

static void release(said *s)
{
    for (size_t i = 0; s->text != NULL && i < s->n; i++)
        free(s->text[i]);
    free(s->text);
}

static void set_kind(said *s)
{
    int64_t i;
    double x;
    s->kind = CM_KEY_INTEGER;
    for (size_t k = 0; k < s->n; k++) {
        if (s->kind == CM_KEY_INTEGER && cm_parse_i64(s->text[k], &i, NULL) != CM_OK)
            s->kind = CM_KEY_REAL;
        if (s->kind == CM_KEY_REAL && cm_parse_double(s->text[k], &x, NULL) != CM_OK)
            s->kind = CM_KEY_TEXT;
    }
}

/* ---- an attribute of files ---- */

static char *text_of(const cm_json *value, cm_error *err)
{
    cm_buf text = {0};
    const char *string = cm_json_text(value, NULL);
    if (string != NULL)
        return cm_strdup(string, err);
    char *out = NULL;
    if (cm_json_write(value, false, &text, err) == CM_OK)
        out = cm_asprintf(err, "%.*s", (int)text.nbytes, (const char *)text.data);
    cm_buf_release(&text);
    return out;
}

int cm_join_read_attribute(const cm_join_input *in, uint32_t file, const char *name, char **out,
                           cm_error *err)
{
    const char *path;
    cm_digest digest;
    cm_json *attrs = NULL;
    int rc = cm_surveyed_group(in->survey, in->file[file], 0, &path, &digest, err);
    if (rc == CM_OK)
        rc = cm_survey_json(in->survey, digest, &attrs, err);
    if (rc == CM_OK && !cm_json_has(attrs, name))
        rc = cm_fail(err, CM_EINVAL, "%s: has no global attribute %s", in->file[file]->path, name);
    if (rc == CM_OK && (*out = text_of(cm_json_member(attrs, name), err)) == NULL)
        rc = CM_ENOMEM;
    cm_json_free(attrs);
    return rc;
}

int cm_join_read_name(const cm_name_pattern *p, const char *path, char **out, cm_error *err)
{
    const char *value;
    size_t n;
    int rc = cm_name_pattern_value(p, path, &value, &n, err);
    if (rc != CM_OK) {
        cm_error_prefix(err, "%s", path);
        return rc == CM_ENOTFOUND
                   ? cm_fail(err, CM_EINVAL, "%s: its name does not match %s", path, p->text)
                   : rc;
    }
    *out = cm_asprintf(err, "%.*s", (int)n, value);
    return *out == NULL ? CM_ENOMEM : CM_OK;
}

/* PATTERN NULL: the attribute NAME. */
static int read_said(const cm_join_input *in, const cm_name_pattern *pattern, const char *name,
                     said *out, cm_error *err)
{
    int rc = CM_OK;
    *out = (said){.n = in->nfiles};
    if ((out->text = cm_calloc(in->nfiles + 1, sizeof(out->text[0]), err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < in->nfiles; i++)
        rc = pattern != NULL ? cm_join_read_name(pattern, in->file[i]->path, &out->text[i], err)
                             : cm_join_read_attribute(in, (uint32_t)i, name, &out->text[i], err);
    if (rc == CM_OK)
        set_kind(out);
    return rc;
}

/* ---- a new dimension ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A key for each file: texts by their place among all. */
static int keys_of(const said *s, int64_t *key, cm_error *err)
{
    double x = 0;
    char **sorted = cm_calloc(s->n + 1, sizeof(*sorted), err);
    if (sorted == NULL)
        return CM_ENOMEM;
    memcpy(sorted, s->text, s->n * sizeof(*sorted));
    qsort(sorted, s->n, sizeof(*sorted), by_text);
    for (size_t i = 0; i < s->n; i++) {
        if (s->kind == CM_KEY_INTEGER) {
            (void)cm_parse_i64(s->text[i], &key[i], NULL); /* it is one, by its kind */
        } else if (s->kind == CM_KEY_REAL) {
            (void)cm_parse_double(s->text[i], &x, NULL);
            key[i] = cm_key_of_real(x);
        } else {
            char **at = bsearch(&s->text[i], sorted, s->n, sizeof(*sorted), by_text);
            while (at > sorted && strcmp(at[-1], *at) == 0)
                at--;
            key[i] = at - sorted;
        }
    }
    free(sorted);
    return CM_OK;
}

/* Every file is one step of D, at KEY. */
static int set_steps(const cm_join_input *in, cm_join_dim *d, const int64_t *key, cm_error *err)
{
    cm_known known = {0};
    int rc = CM_OK;
    if ((d->vec = cm_join_alloc(in, in->nfiles, sizeof(d->vec[0]), err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < in->nfiles; i++) {
        cm_digest digest = cm_wire_digest(&key[i], sizeof(key[i]));
        uint64_t at;
        if (!cm_known_find(&known, digest, &at)) {
            at = d->nvecs++;
            cm_join_vec *v = &d->vec[at];
            *v = (cm_join_vec){.n = 1, .file = (uint32_t)i, .same = (uint32_t)at};
            if ((v->key = cm_join_alloc(in, 1, sizeof(*v->key), err)) == NULL)
                rc = CM_ENOMEM;
            else
                v->key[0] = key[i];
            if (rc == CM_OK)
                rc = cm_known_add(&known, digest, at, err);
        }
        d->at[i] = (uint32_t)at;
        d->length[i] = cm_file_length_make(1);
    }
    cm_known_release(&known);
    return rc;
}

/* Whole units since the first day: the coarsest that makes integers of all N. */
static void choose_units(const int64_t *key, size_t n, char *out, size_t size)
{
    static const struct {
        const char *name;
        int64_t us;
    } UNIT[] = {{"days", DAY_US},     {"hours", INT64_C(3600000000)}, {"minutes", 60000000},
                {"seconds", 1000000}, {"milliseconds", 1000},         {"microseconds", 1}};
    int64_t first = key[0];
    size_t unit = 0;
    char date[48];
    for (size_t i = 1; i < n; i++)
        first = key[i] < first ? key[i] : first;
    int64_t day = first - (first % DAY_US + DAY_US) % DAY_US;
    for (size_t i = 0; i < n; i++)
        while ((key[i] - day) % UNIT[unit].us != 0)
            unit++;
    cm_time_axis axis = {.calendar = CM_CALENDAR_PROLEPTIC_GREGORIAN, .unit_us = 1, .per_us = 1};
    snprintf(out, size, "%s since %.10s 00:00:00", UNIT[unit].name,
             cm_time_axis_text(&axis, day, date, sizeof(date)));
}

/* Units that are asked for count all times of names by integers. */
static int check_asked(const cm_join_input *in, const cm_time_axis *axis, const int64_t *key,
                       cm_error *err)
{
    for (size_t i = 0; i < in->nfiles; i++)
        if ((key[i] - axis->origin_us) % axis->unit_us != 0 && axis->per_us == 1)
            return cm_fail(err, CM_EINVAL,
                           "`time_units` %s: the time in the name of %s is not a whole number of "
                           "these units",
                           in->options->time_units, in->file[i]->path);
    return CM_OK;
}

static int code_times(const cm_join_input *in, cm_join_tables *tables, uint32_t var,
                      const int64_t *key, cm_error *err)
{
    static const char CALENDAR[] = "proleptic_gregorian";
    cm_join_var *v = &tables->var[var];
    char found[96];
    const char *units = in->options->time_units;
    if (units == NULL) {
        choose_units(key, in->nfiles, found, sizeof(found));
        units = found;
    }
    int rc = cm_json_set(v->attrs, "units", cm_json_string(units), err);
    if (rc == CM_OK)
        rc = cm_json_set(v->attrs, "calendar", cm_json_string(CALENDAR), err);
    if (rc == CM_OK)
        rc = cm_json_set(v->attrs, "standard_name", cm_json_string("time"), err);
    v->coding = (cm_time_coding){.dtype = v->dtype};
    if (rc == CM_OK)
        rc = cm_time_axis_parse(units, CALENDAR, &v->coding.axis, err);
    return rc == CM_OK && units != found ? check_asked(in, &v->coding.axis, key, err) : rc;
}

int cm_join_read_name_time(const cm_name_pattern *p, cm_calendar calendar, const char *path,
                           int64_t *us, cm_error *err)
{
    int rc = cm_name_pattern_time(p, calendar, path, us, err);
    if (rc == CM_ENOTFOUND)
        return cm_fail(err, CM_EINVAL, "%s: its name does not match %s", path, p->text);
    if (rc != CM_OK)
        cm_error_prefix(err, "%s", path);
    return rc;
}

static int read_times(const cm_join_input *in, const cm_name_pattern *p, int64_t *key,
                      cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < in->nfiles; i++)
        rc = cm_join_read_name_time(p, CM_CALENDAR_PROLEPTIC_GREGORIAN, in->file[i]->path, &key[i],
                                    err);
    return rc;
}

bool cm_join_gets_dim(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                      uint32_t dim, bool there)
{
    const cm_join_var *v = &tables->var[at];
    cm_surveyed_var first, other;
    if (!v->wanted || v->made != NULL || v->like->is_coordinate || v->rank >= CM_MAX_RANK ||
        cm_join_is_step(in, tables, v->name))
        return false;
    for (unsigned i = 0; i < v->rank; i++)
        if (v->dim[i] == dim)
            return false;
    if (v->rank > 0 && !there && !cm_join_is_auxiliary(tables, at))
        return true;
    if (v->bounds_of != CM_JOIN_NONE) /* they go with their coordinate */
        return cm_join_is_step(in, tables, tables->var[v->bounds_of].name) ||
               cm_join_gets_dim(in, tables, v->bounds_of, dim, there);
    if (!cm_join_record(in, tables, at, v->first, &first) || !first.has_values)
        return false;
    for (size_t i = 1; i < v->nfiles; i++)
        if (cm_join_record(in, tables, at, v->file[i], &other) && other.has_values &&
            !cm_join_same_values(in, tables, at, v->first, &first, v->file[i], &other, NULL))
            return true;
    return false;
}

void cm_join_give_dim(cm_join_var *v, uint32_t dim)
{
    memmove(&v->dim[1], &v->dim[0], v->rank * sizeof(v->dim[0]));
    v->dim[0] = dim;
    v->rank++;
    v->nlacking++;
}

int cm_join_new_dim_named(const cm_join_input *in, cm_join_tables *tables, const char *name,
                          bool *there, uint32_t *out, cm_error *err)
{
    *out = cm_join_dim_named(tables, name);
    *there = *out != CM_JOIN_NONE;
    if (!*there)
        return cm_join_add_dim(in, tables, name, out, err);
    for (size_t i = 0; i < in->nfiles; i++)
        if (cm_file_has(tables->dim[*out].length[i]) &&
            cm_file_count(tables->dim[*out].length[i]) != 1)
            return cm_fail(err, CM_EINVAL,
                           "%s: files have such a dimension already, and %s has %" PRIu64
                           " elements of it",
                           name, in->file[i]->path, cm_file_count(tables->dim[*out].length[i]));
    return CM_OK;
}

static int parse_dimension(const cm_join_tables *tables, const cm_join_axes *axes,
                           const char *option, cm_name_pattern *out, cm_error *err)
{
    int rc = cm_name_pattern_parse(option, out, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "`new_dim` %s", option);
    else if (cm_join_var_named(tables, out->dim) != CM_JOIN_NONE)
        rc = cm_fail(err, CM_EINVAL,
                     "`new_dim` %s: files have a variable %s already; %s=@%s takes its values, "
                     "or choose another name",
                     option, out->dim, out->dim, out->dim);
    else if (axes->naxes == CM_MULTI_MAX_AXES)
        rc = cm_fail(err, CM_EINVAL, "`new_dim` %s: files are joined along two dimensions at most",
                     option);
    return rc;
}

int cm_join_made_dim(const cm_join_input *in, cm_join_tables *tables, cm_join_axes *axes,
                     const char *option, cm_error *err)
{
    cm_name_pattern pattern;
    said s = {0};
    uint32_t dim, var;
    bool there = false;
    int rc = parse_dimension(tables, axes, option, &pattern, err);
    if (rc != CM_OK)
        return rc;
    int64_t *key = cm_calloc(in->nfiles + 1, sizeof(*key), err);
    rc =
        key == NULL ? CM_ENOMEM : cm_join_new_dim_named(in, tables, pattern.dim, &there, &dim, err);
    if (rc == CM_OK && pattern.kind == CM_PATTERN_TIME)
        rc = read_times(in, &pattern, key, err);
    else if (rc == CM_OK)
        rc = read_said(in, pattern.kind == CM_PATTERN_ATTRIBUTE ? NULL : &pattern, pattern.text, &s,
                       err);
    if (rc == CM_OK && pattern.kind != CM_PATTERN_TIME)
        rc = keys_of(&s, key, err);
    cm_join_dim *d = rc == CM_OK ? &tables->dim[dim] : NULL;
    if (rc == CM_OK) {
        d->made = d->one_each = true;
        d->kind = pattern.kind == CM_PATTERN_TIME ? CM_KEY_TIME : s.kind;
        d->axis.calendar = CM_CALENDAR_PROLEPTIC_GREGORIAN;
        d->said = s.kind == CM_KEY_TEXT ? s.text : NULL;
        rc = set_steps(in, d, key, err);
    }
    if (rc == CM_OK) {
        for (uint32_t i = 0; i < tables->nvars; i++)
            if (cm_join_gets_dim(in, tables, i, dim, there))
                cm_join_give_dim(&tables->var[i], dim);
        const cm_dtype type = d->kind == CM_KEY_TEXT   ? cm_dtype_make(CM_KIND_STRING, 0)
                              : d->kind == CM_KEY_REAL ? cm_dtype_make(CM_KIND_FLOAT, 8)
                                                       : cm_dtype_make(CM_KIND_INT, 8);
        rc = cm_join_make_var(tables, pattern.dim, dim, type, &var, err);
        d->var = var;
    }
    if (rc == CM_OK && d->kind == CM_KEY_TIME)
        rc = code_times(in, tables, var, key, err);
    if (rc == CM_OK) {
        d->joined = (int)axes->naxes;
        axes->axis[axes->naxes++] = dim;
    }
    if (d != NULL && d->said != NULL)
        s.text = NULL; /* the dimension's now */
    release(&s);
    free(key);
    return rc;
}

/* ---- coordinates made of attributes ---- */

static bool holds(const cm_join_var *v, uint32_t file)
{
    for (size_t low = 0, high = v->nfiles; low < high;) {
        size_t mid = (low + high) / 2;
        if (v->file[mid] == file)
            return true;
        if (v->file[mid] < file)
            low = mid + 1;
        else
            high = mid;
    }
    return false;
}

/* Where HAS and FILE have the same step, nothing of it is taken from FILE. */
static bool gives_all(const cm_join_tables *tables, const cm_join_axes *axes, uint32_t dim,
                      uint32_t has, uint32_t file)
{
    for (uint32_t i = 0; i < tables->nvars; i++) {
        const cm_join_var *v = &tables->var[i];
        bool along = false;
        for (unsigned k = 0; v->wanted && k < v->rank; k++)
            along |= v->dim[k] == dim;
        if (along && holds(v, file) && !holds(v, has))
            return false;
    }
    return axes->naxes == 1;
}

/* The file whose data are taken for a step that is in several. */
static int give_steps(const cm_join_input *in, const cm_join_tables *tables,
                      const cm_join_axes *axes, uint32_t dim, const char *name, const said *s,
                      uint32_t file, uint32_t *giver, cm_error *err)
{
    const cm_join_vec *vec = cm_axis_vec(in, &tables->dim[dim], file);
    uint32_t known = CM_JOIN_NONE; /* that file alone gives all elements */
    for (size_t k = 0; vec != NULL && k < vec->nruns; k++)
        for (uint64_t e = vec->run[k].origin; e < vec->run[k].origin + vec->run[k].count; e++) {
            uint32_t has = giver[e];
            if (has == CM_JOIN_NONE) {
                giver[e] = file;
                continue;
            }
            if (has == known || strcmp(s->text[has], s->text[file]) == 0)
                continue;
            if (!gives_all(tables, axes, dim, has, file))
                return cm_fail(err, CM_EINVAL,
                               "%s: %s and %s have the same %s, and say '%s' and '%s': it cannot "
                               "be one coordinate",
                               name, in->file[has]->path, in->file[file]->path,
                               tables->dim[dim].name, s->text[has], s->text[file]);
            known = has;
        }
    return CM_OK;
}

/* The file from which each element along DIM takes NAME; CM_JOIN_NONE: from none. */
static int givers(const cm_join_input *in, const cm_join_tables *tables, const cm_join_axes *axes,
                  uint32_t dim, const char *name, const said *s, uint32_t **out, cm_error *err)
{
    const uint64_t n = tables->dim[dim].n;
    uint32_t *order = cm_calloc(in->nfiles + 1, sizeof(*order), err);
    uint32_t *giver = *out = cm_calloc((size_t)n + 1, sizeof(*giver), err);
    int rc = order == NULL || giver == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK) {
        memset(giver, 0xff, ((size_t)n + 1) * sizeof(*giver));
        for (size_t i = 0; i < in->nfiles; i++)
            order[i] = (uint32_t)i;
        qsort_r(order, in->nfiles, sizeof(*order), cm_join_by_rank, in->rank);
    }
    bool last = in->options->overlap == CM_OVERLAP_LAST;
    bool yields = in->has_base && in->options->base_yields;
    for (size_t i = 0; rc == CM_OK && i < in->nfiles; i++) {
        uint32_t file = order[last ? in->nfiles - 1 - i : i];
        if (!yields || file != 0)
            rc = give_steps(in, tables, axes, dim, name, s, file, giver, err);
    }
    if (rc == CM_OK && yields)
        rc = give_steps(in, tables, axes, dim, name, s, 0, giver, err);
    free(order);
    return rc;
}

/* The last joined dimension along which no step has two values. */
static int choose_dim(const cm_join_input *in, const cm_join_tables *tables,
                      const cm_join_axes *axes, const char *name, const said *s, uint32_t *dim,
                      uint32_t **giver, cm_error *err)
{
    int rc = CM_EINVAL;
    for (unsigned k = axes->naxes; rc == CM_EINVAL && k-- > 0;) {
        free(*giver);
        *giver = NULL;
        *dim = axes->axis[k];
        rc = givers(in, tables, axes, *dim, name, s, giver, err);
    }
    return rc;
}

static int give_texts(cm_join_var *v, uint64_t n, const uint32_t *giver, const said *s,
                      cm_error *err)
{
    int rc = cm_strings_reset(&v->texts, (size_t)n, err);
    for (size_t i = 0; rc == CM_OK && i < n; i++)
        if (giver[i] != CM_JOIN_NONE)
            rc = cm_strings_set(&v->texts, i, s->text[giver[i]], strlen(s->text[giver[i]]), err);
    return rc;
}

static int give_numbers(const cm_join_input *in, cm_join_var *v, uint64_t n, const uint32_t *giver,
                        const said *s, cm_error *err)
{
    v->values_nbytes = (size_t)n * 8;
    uint8_t *to = v->values = cm_join_alloc(in, (size_t)n, 8, err);
    if (to == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        int64_t number;
        double x;
        if (giver[i] == CM_JOIN_NONE) {
            v->has_fill_value = cm_join_default_fill(&v->dtype, v->fill_value);
            memcpy(to + i * 8, v->fill_value, 8);
        } else if (s->kind == CM_KEY_INTEGER) {
            (void)cm_parse_i64(s->text[giver[i]], &number, NULL); /* it is one, by its kind */
            memcpy(to + i * 8, &number, 8);
        } else {
            (void)cm_parse_double(s->text[giver[i]], &x, NULL);
            memcpy(to + i * 8, &x, 8);
        }
    }
    return CM_OK;
}

static int add_file_attr(const cm_join_input *in, cm_join_tables *tables, const cm_join_axes *axes,
                         const char *name, cm_error *err)
{
    said s = {0};
    uint32_t at;
    if (axes->naxes == 0)
        return cm_fail(err, CM_EINVAL,
                       "`file_attr` %s: no dimension is joined, so it cannot lie along one", name);
    if (cm_join_var_named(tables, name) != CM_JOIN_NONE)
        return cm_fail(err, CM_EINVAL, "`file_attr` %s: files have a variable of this name", name);
    int rc = read_said(in, NULL, name, &s, err);
    const cm_dtype type = s.kind == CM_KEY_TEXT   ? cm_dtype_make(CM_KIND_STRING, 0)
                          : s.kind == CM_KEY_REAL ? cm_dtype_make(CM_KIND_FLOAT, 8)
                                                  : cm_dtype_make(CM_KIND_INT, 8);
    uint32_t *giver = NULL, dim = CM_JOIN_NONE;
    if (rc == CM_OK)
        rc = choose_dim(in, tables, axes, name, &s, &dim, &giver, err);
    if (rc == CM_OK)
        rc = cm_join_make_var(tables, name, dim, type, &at, err);
    if (rc == CM_OK)
        rc = s.kind == CM_KEY_TEXT
                 ? give_texts(&tables->var[at], tables->dim[dim].n, giver, &s, err)
                 : give_numbers(in, &tables->var[at], tables->dim[dim].n, giver, &s, err);
    free(giver);
    release(&s);
    return rc;
}

int cm_join_file_attrs(const cm_join_input *in, cm_join_tables *tables, const cm_join_axes *axes,
                       cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && !axes->refused && i < in->options->file_attr.n; i++)
        rc = add_file_attr(in, tables, axes, in->options->file_attr.text[i], err);
    return rc;
}
