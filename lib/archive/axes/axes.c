/* Which dimensions are joined. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/axes/coordinate.h"
#include "archive/axes/merge.h"
#include "archive/axes/propose.h"
#include "archive/axes/ragged.h"
#include "archive/planted.h"
#include "archive/tables/described.h"
#include "base/number.h"

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
    f->shifts = most > least_step(d) / 20;
    int rc = count_others(in, findings, d, f, err);
    for (size_t i = 0; within && i < d->nvecs; i++)
        d->vec[i].same = 0;
    if (rc != CM_OK)
        return rc;
    return within ? cm_join_irreversible(findings, err, "the coordinate %s differs between files",
                                         d->name)
                  : CM_OK;
}

/* The end of a sentence about a dimension that differs from that of a store. */
static const char *grows_alone(const cm_join_input *in, char *buf, size_t size)
{
    buf[0] = '\0';
    if (in->has_base && in->options->along != NULL)
        snprintf(buf, size, ", which grows along %s alone", in->options->along);
    return buf;
}

/* Without a variable along it, places along a dimension would be those of other files, too. */
static cm_finding_kind kind_of_length(const cm_join_dim *d)
{
    return d->indexed_by != NULL ? CM_FINDING_INDEX : CM_FINDING_LENGTH;
}

static int find_length(const cm_join_input *in, cm_join_findings *findings, cm_join_dim *d,
                       cm_error *err)
{
    char alone[300];
    uint32_t file = first_other(d);
    d->differs = false;
    d->apart = true;
    cm_finding *f = cm_join_find(
        findings, kind_of_length(d), CM_WEIGHT_DECISION, false, d->name, file, err,
        "the dimension has %" PRIu64 " %s, %s%" PRIu64 " in %s%s", d->vec[d->at[file]].n,
        cm_of_count(d->vec[d->at[file]].n, "element", "elements"), in->has_base ? "and " : "",
        d->vec[0].n, in->file[d->vec[0].file]->path,
        in->has_base ? grows_alone(in, alone, sizeof(alone))
                     : ", and no coordinate that says which");
    return f == NULL ? CM_ENOMEM : count_others(in, findings, d, f, err);
}

/* All files whose coordinate is not that of the first. */
static int count_others(const cm_join_input *in, cm_join_findings *findings, const cm_join_dim *d,
                        cm_finding *f, cm_error *err)
{
    uint32_t first = CM_JOIN_NONE;
    size_t n = 0;
    for (size_t i = 0; i < in->nfiles; i++) {
        f->nelements += cm_file_count(d->length[i]);
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

static int find_other(const cm_join_input *in, const cm_join_tables *tables,
                      cm_join_findings *findings, cm_join_dim *d, cm_error *err)
{
    char alone[300];
    const bool index = cm_axis_is_index(in, tables, d);
    uint32_t file = first_other(d);
    const cm_join_vec *a = &d->vec[0], *b = &d->vec[d->at[file]];
    bool turned =
        a->key != NULL && b->key != NULL && cm_axis_direction(a) * cm_axis_direction(b) == -1;
    const char *first = in->file[a->file]->path;
    d->differs = false;
    d->apart = true;
    cm_finding *f =
        turned || a->n == b->n
            ? cm_join_find(findings, turned ? CM_FINDING_DIRECTION : CM_FINDING_COORDINATE,
                           CM_WEIGHT_DECISION, false, d->name, file, err,
                           "its values %s those of %s",
                           turned ? "run the other way than" : "are not", first)
            : cm_join_find(findings, kind_of_length(d), CM_WEIGHT_DECISION, false, d->name, file,
                           err, "it has %" PRIu64 " %s, and %" PRIu64 " in %s%s", b->n,
                           cm_of_count(b->n, "value", "values"), a->n, first,
                           grows_alone(in, alone, sizeof(alone)));
    if (f != NULL && index) {
        f->by = CM_DECIDER_ORDER;
        f->value = cm_strdup("name", err);
    }
    return f == NULL || (index && f->value == NULL) ? CM_ENOMEM
                                                    : count_others(in, findings, d, f, err);
}

static int join_dim(cm_join_tables *tables, cm_join_axes *axes, size_t i)
{
    tables->dim[i].joined = (int)axes->naxes;
    axes->axis[axes->naxes++] = (uint32_t)i;
    return CM_OK;
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
        bool named = d->one_each || d->ragged || d->in_order ||
                     (along != NULL && strcmp(along, d->name) == 0);
        bool used = cm_join_is_used(tables, d);
        if ((!d->differs && !d->one_each && !d->ragged && !d->in_order) || d->joined >= 0 ||
            d->same_as != CM_JOIN_NONE || d->is_text)
            continue;
        if (!named && is_blurred(in, d, &most, &file))
            rc = used ? find_blurred(in, findings, d, most, file, err) : CM_OK;
        else if (d->kind == CM_KEY_NONE && !named && !d->unlimited)
            rc = used ? find_length(in, findings, d, err) : CM_OK;
        else if ((along != NULL && !named) || axes->naxes == CM_MULTI_MAX_AXES ||
                 (!named && d->kind == CM_KEY_REAL && overlaps(d)))
            rc = used ? find_other(in, tables, findings, d, err) : CM_OK;
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
            if (fits && cm_join_is_used(tables, d))
                return (uint32_t)i;
        }
    return CM_JOIN_NONE;
}

/* Two files with the same variables, the first of them; false: there are none. */
static bool find_alike(const cm_join_input *in, const cm_join_tables *tables, uint32_t *one,
                       uint32_t *other)
{
    cm_known known = {0};
    bool found = false;
    for (uint32_t i = 0; !found && i < in->nfiles; i++) {
        const cm_digest names = tables->names[cm_join_skeleton(in, i)->index];
        uint64_t before;
        found = cm_known_find(&known, names, &before);
        if (found) {
            *one = (uint32_t)before;
            *other = i;
        } else if (cm_known_add(&known, names, i, NULL) != CM_OK) {
            break;
        }
    }
    cm_known_release(&known);
    return found;
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
    uint32_t one = 0, other = 1;
    const bool same = find_alike(in, tables, &one, &other);
    cm_finding *f =
        cm_join_find(findings, CM_FINDING_ALONG, CM_WEIGHT_DECISION, false, NULL, other, err,
                     "it holds %s variables as %s, and no coordinate says how they "
                     "follow each other",
                     same ? "the same" : "some of the same", in->file[one]->path);
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
    uint64_t all = 0;
    for (uint32_t i = 0; rc == CM_OK && i < in->nfiles; i++) {
        const uint64_t n = cm_file_count(d->length[i]);
        all += n;
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
                         "the dimension has %" PRIu64 " %s, %" PRIu64 " in %s", n,
                         cm_of_count(n, "element", "elements"), before, in->file[first]->path);
        rc = f == NULL ? CM_ENOMEM : CM_OK;
    }
    if (f != NULL)
        f->nelements = all;
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
    int rc = cm_axis_find_ragged(in, tables, err);
    if (rc == CM_OK)
        rc = cm_axis_find_coordinates(in, tables, findings, err);
    if (rc == CM_OK)
        rc = classify(in, tables, axes, findings, err);
    if (rc == CM_OK)
        rc = find_along(in, tables, axes, findings, err);
    if (rc == CM_OK)
        rc = check_lengths(in, tables, findings, err);
    for (unsigned i = 0; rc == CM_OK && i < axes->naxes; i++)
        rc = cm_axis_join(in, tables, axes, findings, &tables->dim[axes->axis[i]], err);
    if (rc == CM_OK)
        rc = cm_axis_check_indices(in, tables, findings, err);
    for (unsigned i = 0; rc == CM_OK && i < axes->naxes; i++)
        rc = cm_axis_find_gaps(in, tables, axes, findings, &tables->dim[axes->axis[i]],
                               &findings->report->axis[i], err);
    return rc;
}
