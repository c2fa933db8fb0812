/* Which dimensions are joined. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/axes/coordinate.h"
#include "archive/axes/merge.h"
#include "archive/axes/propose.h"
#include "archive/planted.h"
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
    if (d->var != at || !s->has_values || !cm_file_has(d->length[file]) ||
        s->var->rank + v->nlacking != v->rank)
        return false;
    return d->one_each ||
           (s->shape[0] == cm_file_count(d->length[file]) &&
            strcmp(cm_join_name(in, tables, s->var->dim[0], buf, sizeof(buf)), d->name) == 0);
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
        const cm_join_vec vec = {
            .like = s.var, .values = s.values, .n = d->one_each ? 1 : s.shape[0], .file = file};
        int rc = add_vec(in, d, &known[v->dim[0]], digest_of(&vec), &vec, &d->at[file], err);
        if (rc != CM_OK)
            return rc;
    }
    for (size_t i = 0; i < tables->ndims; i++) {
        cm_join_dim *d = &tables->dim[i];
        if (d->at[file] != CM_JOIN_NONE || !cm_file_has(d->length[file]))
            continue;
        const cm_join_vec vec = {.n = cm_file_count(d->length[file]), .file = file};
        int rc = add_vec(in, d, &known[i], digest_of(&vec), &vec, &d->at[file], err);
        if (rc != CM_OK)
            return rc;
    }
    return CM_OK;
}

/* Text of two dimensions, or a time of one, along a dimension without a coordinate. */
static void find_substitute(const cm_join_input *in, const cm_join_tables *tables, cm_join_dim *d)
{
    for (size_t i = 0; i < tables->nvars; i++) {
        const cm_join_var *v = &tables->var[i];
        if (v->rank == 0 || &tables->dim[v->dim[0]] != d || v->nfiles < in->nfiles)
            continue;
        bool text = v->like->is_char && v->rank == 2;
        bool time = v->rank == 1 && cm_join_counts_time(v->like);
        if (!text && !(time && d->var == CM_JOIN_NONE))
            continue;
        d->var = (uint32_t)i;
        d->substitute = true;
        if (text)
            return;
    }
}

static void find_coordinate(const cm_join_input *in, const cm_join_tables *tables, cm_join_dim *d)
{
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

static void set_direction(const cm_join_vec *v, int *direction)
{
    int own = 0;
    for (uint64_t i = 1; i < v->n; i++) {
        int step = (v->key[i] > v->key[i - 1]) - (v->key[i] < v->key[i - 1]);
        if (step == 0 || (own != 0 && step != own)) {
            *direction = 2;
            return;
        }
        own = step;
    }
    *direction = own;
}

/* The direction that the first coordinate with more than one element has. */
static bool is_descending(const cm_join_input *in, const cm_join_dim *d)
{
    for (size_t i = 0; i < d->nvecs; i++) {
        const cm_join_vec *v = cm_axis_vec_at(in, d, i);
        int direction = 0;
        if (v->key != NULL)
            set_direction(v, &direction);
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

static int find_coordinates(const cm_join_input *in, cm_join_tables *tables, cm_error *err)
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
    return rc;
}

/* ---- the choice ---- */

/* The largest difference between coordinates of one length; infinite where they are others. */
static double largest_difference(const cm_join_dim *d, uint32_t *file)
{
    const cm_join_vec *first = &d->vec[0];
    double most = 0;
    for (size_t i = 1; i < d->nvecs; i++) {
        const cm_join_vec *v = &d->vec[i];
        if (v->key == NULL || first->key == NULL || v->n != first->n)
            return INFINITY;
        for (uint64_t k = 0; k < v->n; k++) {
            int64_t a = d->descending ? ~first->key[k] : first->key[k];
            int64_t b = d->descending ? ~v->key[k] : v->key[k];
            double apart = fabs(cm_key_real(a) - cm_key_real(b));
            if (apart > most) {
                most = apart;
                *file = v->file;
            }
        }
    }
    return most;
}

static double least_step(const cm_join_dim *d)
{
    const cm_join_vec *v = &d->vec[0];
    double least = INFINITY;
    for (uint64_t k = 1; v->key != NULL && k < v->n; k++) {
        double a = cm_key_real(d->descending ? ~v->key[k - 1] : v->key[k - 1]);
        double b = cm_key_real(d->descending ? ~v->key[k] : v->key[k]);
        least = fabs(b - a) < least ? fabs(b - a) : least;
    }
    return least;
}

/* True if the coordinates differ only by rounding. */
static bool is_blurred(const cm_join_input *in, const cm_join_dim *d, double *most, uint32_t *file)
{
    if (d->kind != CM_KEY_REAL || d->vec[0].n == 0)
        return false;
    *most = largest_difference(d, file);
    /* A single point has no step, so the tolerance decides. */
    return d->vec[0].n == 1 ? *most <= in->options->tolerance : *most < least_step(d) / 2;
}

bool cm_join_is_blurred(const cm_join_tables *tables, uint32_t at, double most)
{
    const cm_join_var *v = &tables->var[at];
    const cm_join_dim *d = v->rank > 0 ? &tables->dim[v->dim[0]] : NULL;
    return d != NULL && d->kind == CM_KEY_REAL && d->vec[0].n >= 2 && most < least_step(d) / 2;
}

/* Spatial grids either follow each other without overlap, or are meant to be the same. */
static bool overlaps(const cm_join_dim *d)
{
    for (size_t i = 0; i < d->nvecs; i++)
        for (size_t k = 0; k < i && k < 64; k++) {
            const cm_join_vec *a = &d->vec[i], *b = &d->vec[k];
            if (a->same != i || b->same != k || a->key == NULL || b->key == NULL || a->n == 0 ||
                b->n == 0)
                continue;
            int64_t la = a->key[0], ha = a->key[a->n - 1], lb = b->key[0], hb = b->key[b->n - 1];
            int64_t low_a = la < ha ? la : ha, high_a = la < ha ? ha : la;
            int64_t low_b = lb < hb ? lb : hb, high_b = lb < hb ? hb : lb;
            if (low_a <= high_b && low_b <= high_a)
                return true;
        }
    return false;
}

static uint32_t first_other(const cm_join_dim *d)
{
    for (size_t i = 1; i < d->nvecs; i++)
        if (d->vec[i].same != d->vec[0].same && d->vec[i].n > 0)
            return d->vec[i].file;
    return d->vec[0].file;
}

static int count_others(const cm_join_input *in, cm_join_findings *findings, const cm_join_dim *d,
                        cm_finding *f, cm_error *err);

static int find_blurred(const cm_join_input *in, cm_join_findings *findings, cm_join_dim *d,
                        double most, uint32_t file, cm_error *err)
{
    char text[40];
    bool within = most <= in->options->tolerance;
    d->differs = false;
    cm_finding *f =
        cm_join_find(findings, CM_FINDING_COORDINATE, CM_WEIGHT_DECISION, within, d->name, file,
                     err, "its values differ from those of %s by up to %s%s",
                     in->file[d->vec[0].file]->path, cm_format_double(most, text, sizeof(text)),
                     within ? "; those of the first file are taken" : "");
    if (f == NULL)
        return CM_ENOMEM;
    f->apart = most;
    int rc = count_others(in, findings, d, f, err);
    for (size_t i = 0; within && i < d->nvecs; i++)
        d->vec[i].same = 0;
    if (rc != CM_OK)
        return rc;
    return within ? cm_join_irreversible(findings, err, "the coordinate %s differs between files",
                                         d->name)
                  : CM_OK;
}

static int find_length(const cm_join_input *in, cm_join_findings *findings, cm_join_dim *d,
                       cm_error *err)
{
    uint32_t file = first_other(d);
    d->differs = false;
    d->apart = true;
    cm_finding *f =
        cm_join_find(findings, CM_FINDING_LENGTH, CM_WEIGHT_DECISION, false, d->name, file, err,
                     "the dimension has %" PRIu64 " elements, %" PRIu64 " in %s, and no coordinate "
                     "that says which",
                     d->vec[d->at[file]].n, d->vec[0].n, in->file[d->vec[0].file]->path);
    return f == NULL ? CM_ENOMEM : count_others(in, findings, d, f, err);
}

/* All files whose coordinate is not that of the first. */
static int count_others(const cm_join_input *in, cm_join_findings *findings, const cm_join_dim *d,
                        cm_finding *f, cm_error *err)
{
    uint32_t first = CM_JOIN_NONE;
    size_t n = 0;
    for (size_t i = 0; i < in->nfiles; i++) {
        uint32_t at = d->at[i] == CM_JOIN_NONE ? CM_JOIN_NONE : d->vec[d->at[i]].same;
        if (first == CM_JOIN_NONE)
            first = at;
        if (at == CM_JOIN_NONE || at == first)
            continue;
        if (n++ > 0) {
            int rc = cm_join_found_in(findings, f, (uint32_t)i, err);
            if (rc != CM_OK)
                return rc;
        }
    }
    return CM_OK;
}

static int find_other(const cm_join_input *in, cm_join_findings *findings, cm_join_dim *d,
                      cm_error *err)
{
    uint32_t file = first_other(d);
    const cm_join_vec *a = &d->vec[0], *b = &d->vec[d->at[file]];
    int x = 0, y = 0;
    if (a->key != NULL && b->key != NULL) {
        set_direction(a, &x);
        set_direction(b, &y);
    }
    bool turned = x * y == -1;
    const char *first = in->file[a->file]->path;
    d->differs = false;
    d->apart = true;
    cm_finding *f =
        turned || a->n == b->n
            ? cm_join_find(findings, turned ? CM_FINDING_DIRECTION : CM_FINDING_COORDINATE,
                           CM_WEIGHT_DECISION, false, d->name, file, err,
                           "its values %s those of %s",
                           turned ? "run the other way than" : "are not", first)
            : cm_join_find(findings, CM_FINDING_LENGTH, CM_WEIGHT_DECISION, false, d->name, file,
                           err, "it has %" PRIu64 " values, and %" PRIu64 " in %s", b->n, a->n,
                           first);
    return f == NULL ? CM_ENOMEM : count_others(in, findings, d, f, err);
}

static int join_dim(cm_join_tables *tables, cm_join_axes *axes, size_t i)
{
    tables->dim[i].joined = (int)axes->naxes;
    axes->axis[axes->naxes++] = (uint32_t)i;
    return CM_OK;
}

static bool is_used(const cm_join_tables *tables, const cm_join_dim *d)
{
    for (size_t i = 0; i < tables->nvars; i++)
        for (unsigned k = 0; tables->var[i].wanted && k < tables->var[i].rank; k++)
            if (&tables->dim[tables->var[i].dim[k]] == d)
                return true;
    return false;
}

/* Dimensions whose coordinates differ: joined, or a finding where a chosen variable has them. */
static int classify(const cm_join_input *in, cm_join_tables *tables, cm_join_axes *axes,
                    cm_join_findings *findings, cm_error *err)
{
    int rc = CM_OK;
    const char *along = in->options->along;
    for (size_t i = 0; rc == CM_OK && i < tables->ndims; i++) {
        cm_join_dim *d = &tables->dim[i];
        double most = 0;
        uint32_t file = 0;
        bool named = d->one_each || (along != NULL && strcmp(along, d->name) == 0);
        bool used = is_used(tables, d);
        if ((!d->differs && !d->one_each) || d->joined >= 0 || d->same_as != CM_JOIN_NONE ||
            d->is_text)
            continue;
        if (!named && is_blurred(in, d, &most, &file))
            rc = used ? find_blurred(in, findings, d, most, file, err) : CM_OK;
        else if (d->kind == CM_KEY_NONE && !named && !d->unlimited)
            rc = used ? find_length(in, findings, d, err) : CM_OK;
        else if ((along != NULL && !named) || axes->naxes == CM_MULTI_MAX_AXES ||
                 (!named && d->kind == CM_KEY_REAL && overlaps(d)))
            rc = used ? find_other(in, findings, d, err) : CM_OK;
        else
            rc = join_dim(tables, axes, i);
    }
    return rc;
}

/* Whether each file has a variable that no other has: then there is nothing to join. */
static bool is_merge(const cm_join_input *in, const cm_join_tables *tables)
{
    for (size_t f = 0; f < in->nfiles; f++) {
        const cm_skeleton *k = cm_join_skeleton(in, (uint32_t)f);
        bool own = false;
        for (size_t i = 0; i < k->nvars && !own; i++) {
            const cm_join_var *v = &tables->var[tables->to_var[k->index][i]];
            own = v->wanted && v->nfiles == 1;
        }
        if (!own)
            return false;
    }
    return true;
}

/* A dimension that all files have alike and that counts time, or may grow. */
static uint32_t guess(const cm_join_tables *tables)
{
    for (int turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < tables->ndims; i++) {
            const cm_join_dim *d = &tables->dim[i];
            bool fits = turn == 0 ? d->kind == CM_KEY_TIME : d->unlimited && d->var != CM_JOIN_NONE;
            if (fits && is_used(tables, d))
                return (uint32_t)i;
        }
    return CM_JOIN_NONE;
}

/* No coordinate differs: files are copies of the same steps, or nothing tells their order. */
static int find_along(const cm_join_input *in, cm_join_tables *tables, cm_join_axes *axes,
                      cm_join_findings *findings, cm_error *err)
{
    uint32_t at =
        in->options->along != NULL ? cm_join_dim_named(tables, in->options->along) : guess(tables);
    if (in->options->along != NULL && at == CM_JOIN_NONE)
        return cm_fail(err, CM_EINVAL, "%s %s: no file has such a dimension",
                       in->options->base == NULL  ? "`along`"
                       : in->options->base_yields ? "`replace`"
                                                  : "`append`",
                       in->options->along);
    if (axes->naxes > 0 || in->nfiles < 2 || (at == CM_JOIN_NONE && is_merge(in, tables)))
        return CM_OK;
    if (at != CM_JOIN_NONE && (in->options->along != NULL || !is_merge(in, tables)))
        return join_dim(tables, axes, at);
    if (at != CM_JOIN_NONE)
        return CM_OK;
    cm_finding *f =
        cm_join_find(findings, CM_FINDING_ALONG, CM_WEIGHT_DECISION, false, NULL, 1, err,
                     "it holds the same variables as %s, and no coordinate says how they follow "
                     "each other",
                     in->file[0]->path);
    axes->refused = true; /* before that is known, nothing can be compared */
    return f == NULL ? CM_ENOMEM : cm_join_propose(in, tables, findings, f, err);
}

/* ---- lengths of the others ---- */

/* Whether FILE has a chosen variable along D. */
static bool is_used_in(const cm_join_input *in, const cm_join_tables *tables, const cm_join_dim *d,
                       uint32_t file)
{
    char buf[512];
    const cm_skeleton *k = cm_join_skeleton(in, file);
    for (size_t i = 0; cm_file_has(d->length[file]) && i < k->nvars; i++)
        for (unsigned r = 0; tables->var[tables->to_var[k->index][i]].wanted && r < k->var[i]->rank;
             r++)
            if (strcmp(cm_join_name(in, tables, k->var[i]->dim[r], buf, sizeof(buf)), d->name) == 0)
                return true;
    return false;
}

/*
 * Files without elements along a dimension that is not joined: a length that differs like any
 * other.
 */
static int find_empty(const cm_join_input *in, const cm_join_tables *tables,
                      cm_join_findings *findings, cm_join_dim *d, cm_error *err)
{
    uint32_t first = CM_JOIN_NONE;
    cm_finding *f = NULL;
    int rc = CM_OK;
    for (uint32_t i = 0; rc == CM_OK && i < in->nfiles; i++) {
        const uint64_t n = cm_file_count(d->length[i]);
        if (!is_used_in(in, tables, d, i))
            continue;
        if (first == CM_JOIN_NONE)
            first = i;
        const uint64_t before = cm_file_count(d->length[first]);
        if ((n == 0) == (before == 0))
            continue;
        if (f != NULL) {
            rc = cm_join_found_in(findings, f, i, err);
            continue;
        }
        d->apart = true;
        f = cm_join_find(findings, CM_FINDING_LENGTH, CM_WEIGHT_DECISION, false, d->name, i, err,
                         "the dimension has %" PRIu64 " elements, %" PRIu64 " in %s", n, before,
                         in->file[first]->path);
        rc = f == NULL ? CM_ENOMEM : CM_OK;
    }
    return rc;
}

static int check_lengths(const cm_join_input *in, cm_join_tables *tables,
                         cm_join_findings *findings, cm_error *err)
{
    int rc = CM_OK;
    const bool planted = (cm_join_planted & CM_PLANTED_LENGTH) != 0;
    for (size_t i = 0; rc == CM_OK && i < tables->ndims && !planted; i++) {
        cm_join_dim *d = &tables->dim[i];
        bool empty = false, filled = false;
        for (size_t k = 0; k < in->nfiles; k++) {
            empty |= cm_file_has(d->length[k]) && cm_file_count(d->length[k]) == 0;
            filled |= cm_file_count(d->length[k]) > 0;
        }
        if (empty && filled && d->joined < 0 && !d->is_text && !d->apart)
            rc = find_empty(in, tables, findings, d, err);
    }
    return rc;
}

int cm_join_find_axes(const cm_join_input *in, cm_join_tables *tables, cm_join_axes *axes,
                      cm_join_findings *findings, cm_error *err)
{
    int rc = find_coordinates(in, tables, err);
    if (rc == CM_OK)
        rc = classify(in, tables, axes, findings, err);
    if (rc == CM_OK)
        rc = find_along(in, tables, axes, findings, err);
    if (rc == CM_OK)
        rc = check_lengths(in, tables, findings, err);
    for (unsigned i = 0; rc == CM_OK && i < axes->naxes; i++)
        rc = cm_axis_join(in, axes, findings, &tables->dim[axes->axis[i]], err);
    for (unsigned i = 0; rc == CM_OK && i < axes->naxes; i++)
        rc = cm_axis_find_gaps(in, tables, axes, findings, &tables->dim[axes->axis[i]],
                               &findings->report->axis[i], err);
    return rc;
}
