/* The coordinate of each dimension, or what stands for one, and which files have the same. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/axes/coordinate.h"
#include "archive/axes/merge.h"
#include "archive/tables/described.h"

/* ---- the distinct coordinates of each dimension ---- */

static int add_vec(const cm_join_input *in, cm_join_dim *d, cm_known *known, cm_digest digest,
                   const cm_join_vec *v, uint32_t *out, cm_error *err)
{
    uint64_t found;
    if (cm_known_find(known, digest, &found)) {
        *out = (uint32_t)found;
        return CM_OK;
    }
    if ((d->nvecs & (d->nvecs - 1)) == 0) {
        size_t capacity = d->nvecs > 0 ? d->nvecs * 2 : 1;
        cm_join_vec *more = cm_join_alloc(in, capacity, sizeof(*more), err);
        if (more == NULL)
            return CM_ENOMEM;
        if (d->nvecs > 0)
            cm_paged_copy(in->survey->paged, more, d->vec, d->nvecs * sizeof(*more));
        d->vec = more;
    }
    *out = (uint32_t)d->nvecs;
    cm_join_vec *own = cm_axis_vec_at(in, d, d->nvecs++);
    *own = *v;
    own->same = *out;
    return cm_known_add(known, digest, *out, err);
}

static cm_digest digest_of(const cm_join_vec *v)
{
    const struct {
        const void *like;
        uint64_t lo, hi, n;
    } id = {v->like, v->values.lo, v->values.hi, v->n};
    return cm_wire_digest(&id, sizeof(id));
}

/*
 * Whether S, which is variable AT of FILE, says where elements along D lie: there it may have
 * another dimension.
 */
static bool locates(const cm_join_input *in, const cm_join_tables *tables, const cm_join_dim *d,
                    uint32_t at, uint32_t file, const cm_surveyed_var *s)
{
    char buf[512];
    const cm_join_var *v = &tables->var[at];
    if (d->var != at || !s->has_values || !cm_file_has(d->length[file]))
        return false;
    if (s->var->rank == 0)
        return d->one_each;
    return s->var->rank + v->nlacking == v->rank && s->shape[0] == cm_file_count(d->length[file]) &&
           strcmp(cm_join_name(in, tables, s->var->dim[0], buf, sizeof(buf)), d->name) == 0;
}

static int collect_file(const cm_join_input *in, cm_join_tables *tables, cm_known *known,
                        uint32_t file, cm_error *err)
{
    cm_surveyed_var s;
    cm_surveyed_iter it = cm_surveyed_begin(in->file[file]);
    const uint32_t *to = tables->to_var[cm_join_skeleton(in, file)->index];
    for (size_t i = 0; cm_surveyed_next(&it, &s); i++) {
        const cm_join_var *v = &tables->var[to[i]];
        cm_join_dim *d = v->rank > 0 ? &tables->dim[v->dim[0]] : NULL;
        if (d == NULL || !locates(in, tables, d, to[i], file, &s))
            continue;
        const cm_join_vec vec = {.like = s.var,
                                 .values = s.values,
                                 .n = s.var->rank == 0 ? 1 : s.shape[0],
                                 .file = file};
        int rc = add_vec(in, d, &known[v->dim[0]], digest_of(&vec), &vec, &d->at[file], err);
        if (rc != CM_OK)
            return rc;
    }
    for (size_t i = 0; i < tables->ndims; i++) {
        cm_join_dim *d = &tables->dim[i];
        if (d->at[file] != CM_JOIN_NONE || !cm_file_has(d->length[file]))
            continue;
        const cm_join_vec vec = {.n = cm_file_count(d->length[file]), .file = file};
        /* Names differ, though lengths do not. */
        const cm_digest digest =
            d->said_by != NULL ? cm_wire_digest(&file, sizeof(file)) : digest_of(&vec);
        int rc = add_vec(in, d, &known[i], digest, &vec, &d->at[file], err);
        if (rc != CM_OK)
            return rc;
    }
    return CM_OK;
}

int cm_axis_direction(const cm_join_vec *v)
{
    int all = 0;
    for (uint64_t i = 1; i < v->n; i++) {
        int step = (v->key[i] > v->key[i - 1]) - (v->key[i] < v->key[i - 1]);
        if (step == 0 || (all != 0 && step != all))
            return 2;
        all = step;
    }
    return all;
}

/* Whether all texts of V begin as ISO 8601 writes a date. */
static bool are_dates(const cm_join_input *in, const cm_join_tables *tables, const cm_join_var *v)
{
    static const char FORM[] = "dddd-dd-dd";
    const uint32_t at = (uint32_t)(v - tables->var);
    cm_surveyed_var s;
    for (size_t f = 0; f < v->nfiles; f++) {
        size_t nbytes = 0;
        const char *text = cm_join_record(in, tables, at, v->file[f], &s) && s.has_values
                               ? cm_survey_values(in->survey, s.values, &nbytes)
                               : NULL;
        /* Files may disagree on what V is. */
        const bool texts = text != NULL && s.var->is_char && s.var->rank == 2;
        const size_t width = texts ? (size_t)s.shape[1] : 0;
        if (width < strlen(FORM))
            return false;
        for (size_t i = 0; i < nbytes; i++) {
            const char form = i % width < strlen(FORM) ? FORM[i % width] : '\0';
            const bool digit = text[i] >= '0' && text[i] <= '9';
            if (form == 'd' ? !digit : form == '-' && text[i] != '-')
                return false;
        }
    }
    return true;
}

/*
 * Along a dimension without a coordinate: dates as text, or else a time, or else other texts, as
 * the names of stations are, which tell one record from another where nothing dates them.
 */
static void find_substitute(const cm_join_input *in, const cm_join_tables *tables, cm_join_dim *d)
{
    enum {
        NONE,
        LABEL,
        TIME,
        DATE
    } best = NONE, own;
    for (size_t i = 0; i < tables->nvars; i++) {
        const cm_join_var *v = &tables->var[i];
        if (v->rank == 0 || &tables->dim[v->dim[0]] != d || v->nfiles < in->nfiles)
            continue;
        if (v->like->is_char && v->rank == 2)
            own = are_dates(in, tables, v) ? DATE : LABEL;
        else
            own = v->rank == 1 && cm_join_counts_time(v->like) ? TIME : NONE;
        if (own <= best)
            continue;
        best = own;
        d->var = (uint32_t)i;
        d->substitute = true;
    }
}

/* The first whose elements are out of order, or lack a place; NULL: there is none. */
static const cm_join_vec *find_unordered(const cm_join_input *in, const cm_join_dim *d)
{
    int all = 0;
    for (size_t i = 0; i < d->nvecs; i++) {
        const cm_join_vec *v = cm_axis_vec_at(in, d, i);
        const int own = v->key != NULL ? cm_axis_direction(v) : 0;
        if (d->kind == CM_KEY_NONE || v->bad > 0 || own == 2 || own * all == -1)
            return v;
        all = own != 0 ? own : all;
    }
    return NULL;
}

typedef struct text_range {
    int64_t low, high;
    const cm_join_vec *of;
} text_range;

static int by_low(const void *a, const void *b)
{
    const text_range *x = a, *y = b;
    return (x->low > y->low) - (x->low < y->low);
}

/* The ranges of texts of files, by their first; returns how many there are. */
static size_t list_ranges(const cm_join_input *in, const cm_join_dim *d, text_range *out)
{
    size_t n = 0;
    for (size_t i = 0; i < in->nfiles; i++) {
        const cm_join_vec *v = d->at[i] == CM_JOIN_NONE ? NULL : cm_axis_vec_at(in, d, d->at[i]);
        if (v == NULL || v->n == 0 || v->key == NULL)
            continue;
        const int64_t a = v->key[0], b = v->key[v->n - 1];
        out[n++] = (text_range){a < b ? a : b, a < b ? b : a, v};
    }
    qsort(out, n, sizeof(*out), by_low);
    return n;
}

/*
 * Of texts that are no dates, the first of a file that do not lie behind those of all others: then
 * they tell no record from another, as flags of quality.  Not so where files differ along another
 * dimension, too, as stations do that have several years.
 */
static int find_shared(const cm_join_input *in, const cm_join_tables *tables, const cm_join_dim *d,
                       const cm_join_vec **out, cm_error *err)
{
    bool alone =
        d->kind == CM_KEY_TEXT && d->nvecs > 1 && !are_dates(in, tables, &tables->var[d->var]);
    for (size_t i = 0; alone && i < tables->ndims; i++)
        alone =
            &tables->dim[i] == d || !tables->dim[i].differs || tables->dim[i].kind == CM_KEY_NONE;
    if (!alone)
        return CM_OK;
    text_range *range = cm_calloc(in->nfiles + 1, sizeof(*range), err);
    if (range == NULL)
        return CM_ENOMEM;
    const size_t n = list_ranges(in, d, range);
    for (size_t i = 1; i < n && *out == NULL; i++)
        if (range[i].low <= range[i - 1].high)
            *out = range[i].of;
    free(range);
    return CM_OK;
}

static int tell_unordered(const cm_join_tables *tables, cm_join_findings *findings,
                          const cm_join_dim *d, const cm_join_vec *v, bool shared, cm_error *err)
{
    char why[80];
    if (v->bad > 0)
        snprintf(why, sizeof(why), "element %" PRIu64 " %s", v->bad - 1, v->why);
    else
        snprintf(why, sizeof(why),
                 shared ? "its texts are not those of one file each"
                        : "it neither rises nor falls throughout all files");
    return cm_join_find(findings, CM_FINDING_COORDINATE, CM_WEIGHT_WARNING, false,
                        tables->var[d->var].name, v->file, err,
                        "%s, so that it does not say how files follow each other along %s", why,
                        d->name) == NULL
               ? CM_ENOMEM
               : CM_OK;
}

static void find_coordinate(const cm_join_input *in, const cm_join_tables *tables, cm_join_dim *d)
{
    if (d->ragged)
        return;
    uint32_t at = cm_join_var_named(tables, d->name);
    if (at != CM_JOIN_NONE && tables->var[at].rank == 1 &&
        &tables->dim[tables->var[at].dim[0]] == d &&
        !cm_dtype_is_vlen(&tables->var[at].like->dtype))
        d->var = at;
    else if (d->unlimited ||
             (in->options->along != NULL && strcmp(in->options->along, d->name) == 0))
        find_substitute(in, tables, d);
}

/* ---- equal ones ---- */

/* The direction that the first coordinate with more than one element has. */
static bool is_descending(const cm_join_input *in, const cm_join_dim *d)
{
    for (size_t i = 0; i < d->nvecs; i++) {
        const cm_join_vec *v = cm_axis_vec_at(in, d, i);
        const int direction = v->key != NULL ? cm_axis_direction(v) : 0;
        if (direction != 0)
            return direction < 0;
    }
    return false;
}

/*
 * A file that lacks the coordinate variable, which is reported with that variable, has the places
 * of the only coordinate of its length.  False: there is none, or more than one.
 */
static bool take_for_other(cm_join_dim *d, cm_join_vec *v)
{
    uint32_t same = CM_JOIN_NONE;
    for (size_t i = 0; d->kind != CM_KEY_NONE && v->key == NULL && i < d->nvecs; i++) {
        if (d->vec[i].key == NULL || d->vec[i].n != v->n)
            continue;
        if (same != CM_JOIN_NONE && same != d->vec[i].same)
            return false;
        same = d->vec[i].same;
    }
    if (same == CM_JOIN_NONE)
        return false;
    v->same = same;
    return true;
}

static int find_equal(const cm_join_input *in, cm_join_dim *d, cm_error *err)
{
    cm_known known = {0};
    int rc = CM_OK;
    d->descending = is_descending(in, d);
    bool any_left = false;
    uint32_t first = CM_JOIN_NONE;
    for (size_t i = 0; rc == CM_OK && i < d->nvecs; i++) {
        cm_join_vec *v = cm_axis_vec_at(in, d, i);
        if (d->kind != CM_KEY_NONE && v->key == NULL) {
            any_left = true;
            continue;
        }
        for (uint64_t k = 0; d->descending && v->key != NULL && k < v->n; k++)
            v->key[k] = ~v->key[k];
        uint64_t before;
        cm_digest digest = v->key != NULL ? cm_wire_digest(v->key, v->n * sizeof(v->key[0]))
                                          : (cm_digest){.lo = v->n, .hi = UINT64_MAX};
        if (cm_known_find(&known, digest, &before))
            v->same = (uint32_t)before;
        else
            rc = cm_known_add(&known, digest, i, err);
        if (v->n == 0)
            continue;
        if (first == CM_JOIN_NONE)
            first = v->same;
        d->differs |= v->same != first;
    }
    for (size_t i = 0; any_left && i < d->nvecs; i++)
        if (d->vec[i].key == NULL && !take_for_other(d, &d->vec[i]) && d->vec[i].n > 0)
            d->differs = true;
    cm_known_release(&known);
    return rc;
}

/* D gets no coordinate: that which it had is one of the values along it. */
static int drop_coordinate(const cm_join_input *in, cm_join_dim *d, cm_error *err)
{
    d->var = CM_JOIN_NONE;
    d->substitute = false;
    d->kind = CM_KEY_NONE;
    d->differs = false;
    for (size_t i = 0; i < d->nvecs; i++)
        cm_axis_vec_at(in, d, i)->key = NULL;
    return find_equal(in, d, err);
}

/*
 * A variable that neither rises nor falls throughout all files, or that a record lacks, or a text
 * that records share, is one of the records' values and no coordinate.
 */
static int drop_unordered(const cm_join_input *in, const cm_join_tables *tables,
                          cm_join_findings *findings, cm_join_dim *d, cm_error *err)
{
    const cm_join_vec *v = find_unordered(in, d);
    const bool shared = v == NULL;
    int rc = shared ? find_shared(in, tables, d, &v, err) : CM_OK;
    if (rc != CM_OK || v == NULL)
        return rc;
    rc = d->nvecs > 1 ? tell_unordered(tables, findings, d, v, shared, err) : CM_OK;
    return rc == CM_OK ? drop_coordinate(in, d, err) : rc;
}

static bool counts_from(const cm_join_dim *d, const cm_join_vec *v, int64_t first)
{
    for (uint64_t k = 0; k < v->n; k++) {
        const int64_t wanted = first + (int64_t)k;
        if (v->key[k] != (d->kind == CM_KEY_REAL ? cm_key_of_real((double)wanted) : wanted))
            return false;
    }
    return true;
}

/* Whether files are to follow each other along D, as far as coordinates tell. */
static bool leads(const cm_join_input *in, const cm_join_tables *tables, const cm_join_dim *d)
{
    if (in->options->along != NULL)
        return strcmp(in->options->along, d->name) == 0;
    bool alone = d->differs || d->unlimited;
    for (size_t i = 0; alone && i < tables->ndims; i++)
        alone = &tables->dim[i] == d || !tables->dim[i].differs;
    return alone;
}

bool cm_axis_is_index(const cm_join_input *in, const cm_join_tables *tables, const cm_join_dim *d)
{
    bool fine = !in->has_base && in->nfiles > 1 && !d->made && !d->substitute && !d->descending &&
                leads(in, tables, d) && (d->kind == CM_KEY_INTEGER || d->kind == CM_KEY_REAL);
    bool from[2] = {fine, fine};
    for (uint32_t i = 1; fine && i < in->nfiles; i++)
        fine = cm_wire_same(tables->names[cm_join_skeleton(in, i)->index],
                            tables->names[cm_join_skeleton(in, 0)->index]);
    for (size_t i = 0; fine && i < d->nvecs && (from[0] || from[1]); i++) {
        const cm_join_vec *v = cm_axis_vec_at(in, d, i);
        fine = v->key != NULL || v->n == 0;
        for (int first = 0; fine && first < 2; first++)
            from[first] = from[first] && counts_from(d, v, first);
    }
    return fine && (from[0] || from[1]);
}

/* Where files follow each other by their names, an index is one of the values along it. */
static int drop_index(const cm_join_input *in, const cm_join_tables *tables, cm_join_dim *d,
                      cm_error *err)
{
    if (in->options->order == CM_ORDER_COORDINATE || !cm_axis_is_index(in, tables, d))
        return CM_OK;
    d->in_order = true;
    return drop_coordinate(in, d, err);
}

int cm_axis_find_coordinates(const cm_join_input *in, cm_join_tables *tables,
                             cm_join_findings *findings, cm_error *err)
{
    int rc = CM_OK;
    cm_known *known = cm_calloc(tables->ndims + 1, sizeof(*known), err);
    if (known == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < tables->ndims; i++)
        if (!tables->dim[i].made)
            find_coordinate(in, tables, &tables->dim[i]);
    for (size_t i = 0; rc == CM_OK && i < in->nfiles; i++)
        rc = collect_file(in, tables, known, (uint32_t)i, err);
    for (size_t i = 0; i < tables->ndims; i++)
        cm_known_release(&known[i]);
    free(known);
    for (size_t i = 0; rc == CM_OK && i < tables->ndims; i++) {
        if (tables->dim[i].made)
            continue;
        rc = cm_join_keys(in, tables, &tables->dim[i], err);
        if (rc == CM_OK)
            rc = find_equal(in, &tables->dim[i], err);
    }
    for (size_t i = 0; rc == CM_OK && i < tables->ndims; i++)
        rc = drop_index(in, tables, &tables->dim[i], err);
    for (size_t i = 0; rc == CM_OK && i < tables->ndims; i++)
        if (tables->dim[i].substitute)
            rc = drop_unordered(in, tables, findings, &tables->dim[i], err);
    return rc;
}
