#include "archive/fields/fields.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "archive/axes/coordinate.h"
#include "archive/axes/merge.h"
#include "archive/axes/propose.h"
#include "archive/fields/statics.h"
#include "archive/fields/strangers.h"
#include "archive/tables/described.h"
#include "archive/tables/reading.h"
#include "base/number.h"

/* ---- which joined dimensions a variable has ---- */

static unsigned axes_of(const cm_join_tables *tables, const cm_join_var *v, unsigned *axis)
{
    unsigned n = 0;
    for (unsigned i = 0; i < v->rank; i++)
        if (tables->dim[v->dim[i]].joined >= 0 && n < CM_MULTI_MAX_AXES)
            axis[n++] = (unsigned)tables->dim[v->dim[i]].joined;
    return n;
}

static void find_auxiliary(const cm_join_tables *tables, cm_field_sources *f)
{
    for (size_t i = 0; i < tables->nvars; i++)
        f->of[i].auxiliary = cm_join_is_auxiliary(tables, (uint32_t)i);
    for (size_t i = 0; i < tables->ndims; i++)
        if (tables->dim[i].var != CM_JOIN_NONE)
            f->of[tables->dim[i].var].auxiliary = true;
}

/* ---- places ---- */

static bool is_given(const cm_join_tables *tables, const cm_join_axes *axes, uint32_t at)
{
    for (unsigned i = 0; i < axes->naxes; i++)
        if (tables->dim[axes->axis[i]].var == at && !tables->dim[axes->axis[i]].substitute)
            return true;
    return false;
}

static int place_variable(const cm_join_input *in, const cm_join_tables *tables,
                          const cm_join_axes *axes, uint32_t at, cm_field_sources *f, cm_error *err)
{
    const cm_join_var *v = &tables->var[at];
    cm_placement want = {0};
    want.naxes = axes_of(tables, v, want.axis);
    want.given = axes->naxes > 1 && is_given(tables, axes, at);
    if (want.naxes == 0) {
        f->of[at].file = v->first;
        return CM_OK;
    }
    want.files = cm_wire_digest(v->file, v->nfiles * sizeof(v->file[0]));
    cm_digest_element(&want.files, want.given ? 2 : 1, want.axis,
                      want.naxes * sizeof(want.axis[0]));
    for (size_t i = 0; i < f->nplaces; i++) {
        if (cm_wire_same(f->place[i]->files, want.files)) {
            f->of[at].place = f->place[i];
            return CM_OK;
        }
    }
    if (CM_GROW(f->place, f->nplaces, err) != CM_OK ||
        (f->place[f->nplaces] = cm_calloc(1, sizeof(want), err)) == NULL)
        return CM_ENOMEM;
    cm_placement *place = f->place[f->nplaces++];
    *place = want;
    f->of[at].place = place;
    return cm_place(in, tables, axes, v, place, err);
}

/* ---- what is missing ---- */

static bool has(const cm_join_var *v, uint32_t file)
{
    size_t low = 0, high = v->nfiles;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (v->file[middle] < file)
            low = middle + 1;
        else
            high = middle;
    }
    return low < v->nfiles && v->file[low] == file;
}

static int find_missing(const cm_join_input *in, const cm_join_tables *tables,
                        const cm_join_axes *axes, cm_join_findings *findings, uint32_t at,
                        const cm_field_source *field, const bool *strangers, cm_error *err)
{
    const cm_join_var *v = &tables->var[at];
    cm_finding *f = NULL;
    size_t number = 0;
    bool decided = in->options->fill_missing;
    if (field->place->nholes == 0)
        return CM_OK;
    for (size_t i = 0; i < in->nfiles; i++) {
        if (strangers[i] || has(v, (uint32_t)i) ||
            !cm_place_is_open(in, tables, axes, field->place, (uint32_t)i))
            continue;
        if (number > 0) {
            int rc = cm_join_found_in(findings, &findings->report->finding[number - 1], (uint32_t)i,
                                      err);
            if (rc != CM_OK)
                return rc;
            continue;
        }
        f = cm_join_find(findings, CM_FINDING_MISSING, CM_WEIGHT_DECISION, decided, v->name,
                         (uint32_t)i, err, "the variable is missing%s",
                         decided ? "; it is filled" : "");
        if (f == NULL)
            return CM_ENOMEM;
        number = findings->report->nfindings;
    }
    return CM_OK;
}

static bool same_text(const cm_described *a, const cm_described *b, const char *name)
{
    const char *x = cm_join_text(a, name), *y = cm_join_text(b, name);
    return x == NULL || y == NULL ? x == y : strcmp(x, y) == 0;
}

/* Another variable that by its standard_name is V, in files that V is missing from. */
static uint32_t other_name(const cm_join_tables *tables, const cm_field_sources *f, uint32_t at)
{
    const cm_join_var *v = &tables->var[at];
    if (cm_join_text(v->like, "standard_name") == NULL)
        return CM_JOIN_NONE;
    for (uint32_t i = 0; i < tables->nvars; i++) {
        const cm_join_var *w = &tables->var[i];
        if (i == at || !w->wanted || w->made != NULL || f->of[i].place == NULL ||
            f->of[i].place->nholes == 0 || w->rank != v->rank ||
            !same_text(v->like, w->like, "standard_name") ||
            !same_text(v->like, w->like, "cell_methods"))
            continue;
        bool apart = true;
        for (size_t k = 0; apart && k < w->nfiles; k++)
            apart = !has(v, w->file[k]);
        if (apart)
            return i;
    }
    return CM_JOIN_NONE;
}

/* Places of two joined dimensions that no file at all has. */
static int find_holes(const cm_join_input *in, const cm_join_tables *tables,
                      const cm_join_axes *axes, cm_join_findings *findings,
                      const cm_field_sources *f, cm_error *err)
{
    const cm_placement *p = NULL;
    const char *name = NULL;
    for (size_t i = 0; i < tables->nvars && p == NULL; i++) {
        if (!tables->var[i].wanted || f->of[i].place == NULL || f->of[i].place->naxes != 2)
            continue;
        p = f->of[i].place->nholes > 0 ? f->of[i].place : NULL;
        name = tables->var[i].name;
    }
    if (p == NULL)
        return CM_OK;
    char a[48], b[48];
    const bool decided = in->options->fill_missing;
    const cm_join_dim *d = &tables->dim[axes->axis[p->axis[0]]],
                      *e = &tables->dim[axes->axis[p->axis[1]]];
    return cm_join_find(
               findings, CM_FINDING_HOLES, CM_WEIGHT_DECISION, decided, name, CM_JOIN_NONE, err,
               "%s and %s make a rectangle of which %" PRIu64 " %s in no file, "
               "the first %s %s, %s %s%s",
               d->name, e->name, p->nholes, cm_of_count(p->nholes, "place is", "places are"),
               d->name, cm_key_text(in, d, d->key[p->hole[0]], a, sizeof(a)), e->name,
               cm_key_text(in, e, e->key[p->hole[1]], b, sizeof(b)),
               decided ? "; they are filled" : "") == NULL
               ? CM_ENOMEM
               : CM_OK;
}

/* ---- files that hold the same fields ---- */

/* A digest of the fields of FILE that have a joined dimension and are no coordinates. */
static cm_digest fields_of(const cm_join_input *in, const cm_join_tables *tables,
                           const cm_field_sources *f, uint32_t file)
{
    cm_digest sum = {0};
    const cm_skeleton *k = cm_join_skeleton(in, file);
    for (size_t i = 0; i < k->nvars; i++) {
        uint32_t at = tables->to_var[k->index][i];
        if (tables->var[at].wanted && f->of[at].place != NULL && !f->of[at].auxiliary)
            cm_digest_element(&sum, at, &at, sizeof(at));
    }
    return sum;
}

/*
 * V has no joined dimension: of files that hold the same fields all have it, or none.  Files that
 * hold none, as grids and masks of a file each, lack nothing.
 */
static int find_missing_static(const cm_join_input *in, const cm_join_tables *tables,
                               const cm_join_axes *axes, cm_join_findings *findings,
                               const cm_join_var *v, const cm_digest *group, cm_error *err)
{
    cm_known with = {0};
    size_t number = 0;
    uint64_t any;
    int rc = CM_OK;
    bool decided = in->options->fill_missing;
    if (v->nfiles == in->nfiles || axes->naxes == 0)
        return CM_OK;
    for (size_t i = 0; rc == CM_OK && i < v->nfiles; i++)
        if (!cm_known_find(&with, group[v->file[i]], &any))
            rc = cm_known_add(&with, group[v->file[i]], 0, err);
    for (size_t i = 0; rc == CM_OK && i < in->nfiles; i++) {
        if (has(v, (uint32_t)i) || cm_wire_same(group[i], (cm_digest){0}) ||
            !cm_known_find(&with, group[i], &any))
            continue;
        /* A file without the dimension needs no coordinate of it. */
        if (v->like->is_coordinate && !cm_join_has_dims(tables, v, (uint32_t)i))
            continue;
        if (number > 0) {
            rc = cm_join_found_in(findings, &findings->report->finding[number - 1], (uint32_t)i,
                                  err);
            continue;
        }
        if (cm_join_find(findings, CM_FINDING_MISSING, CM_WEIGHT_DECISION, decided, v->name,
                         (uint32_t)i, err, "the variable is missing%s",
                         decided ? "; it is taken from a file that has it" : "") == NULL)
            rc = CM_ENOMEM;
        number = findings->report->nfindings;
    }
    cm_known_release(&with);
    return rc;
}

/* The coordinate of a dimension that is taken out goes with it. */
static bool goes(const cm_join_input *in, const cm_join_tables *tables, const cm_join_var *v)
{
    return v->rank == 1 && v->like->is_coordinate && cm_join_is_merged(in, &tables->dim[v->dim[0]]);
}

/* Nothing adds a variable to a store that grows; its elements before the end are nowhere. */
static int find_new(cm_join_findings *findings, const cm_join_var *v, const bool *strangers,
                    cm_error *err)
{
    cm_finding *f = NULL;
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < v->nfiles; i++) {
        if (strangers[v->file[i]])
            continue;
        if (f != NULL)
            rc = cm_join_found_in(findings, f, v->file[i], err);
        else if ((f = cm_join_find(findings, CM_FINDING_NEW_VARIABLE, CM_WEIGHT_DECISION, false,
                                   v->name, v->file[i], err, "the store has no such variable")) ==
                 NULL)
            rc = CM_ENOMEM;
    }
    return rc;
}

/* A coordinate that an option gives, of a store that grows. */
static bool is_said(const cm_join_tables *tables, uint32_t at)
{
    const cm_join_var *v = &tables->var[at];
    const cm_join_dim *d = v->rank == 1 ? &tables->dim[v->dim[0]] : NULL;
    return d != NULL && d->said_by != NULL && d->var == at;
}

/* Of each file a digest of its fields, and whether they are strange to a store that grows. */
typedef struct kinds {
    cm_digest *group;
    bool *stranger;
    uint32_t *other; /* of each variable the one that it is by another name; or CM_JOIN_NONE */
} kinds;

static void release_kinds(kinds *k)
{
    free(k->group);
    free(k->stranger);
    free(k->other);
}

static int find_kinds(const cm_join_input *in, const cm_join_tables *tables,
                      const cm_join_axes *axes, cm_join_findings *findings,
                      const cm_field_sources *f, kinds *k, cm_error *err)
{
    *k = (kinds){cm_calloc(in->nfiles + 1, sizeof(k->group[0]), err),
                 cm_calloc(in->nfiles + 1, sizeof(k->stranger[0]), err),
                 cm_calloc(tables->nvars + 1, sizeof(k->other[0]), err)};
    if (k->group == NULL || k->stranger == NULL || k->other == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < in->nfiles; i++)
        k->group[i] = fields_of(in, tables, f, (uint32_t)i);
    for (uint32_t i = 0; i < tables->nvars; i++) {
        const cm_join_var *v = &tables->var[i];
        const bool holes = v->wanted && v->made == NULL && !is_said(tables, i) &&
                           f->of[i].place != NULL && f->of[i].place->nholes > 0;
        k->other[i] = holes ? other_name(tables, f, i) : CM_JOIN_NONE;
    }
    return cm_join_find_strangers(in, tables, axes, findings, f, k->other, k->stranger, err);
}

static int find_missing_of(const cm_join_input *in, const cm_join_tables *tables,
                           const cm_join_axes *axes, cm_join_findings *findings,
                           const cm_field_sources *f, const kinds *k, uint32_t at, cm_error *err)
{
    const cm_join_var *v = &tables->var[at];
    const uint32_t other = k->other[at];
    if (!v->wanted || v->made != NULL || is_said(tables, at))
        return CM_OK;
    if (other != CM_JOIN_NONE)
        return v->first < tables->var[other].first
                   ? cm_join_tell_renamed(in, findings, v, &tables->var[other], err)
                   : CM_OK;
    if (in->has_base && !has(v, 0))
        return goes(in, tables, v) ? CM_OK : find_new(findings, v, k->stranger, err);
    return f->of[at].place != NULL
               ? find_missing(in, tables, axes, findings, at, &f->of[at], k->stranger, err)
               : find_missing_static(in, tables, axes, findings, v, k->group, err);
}

static int find_all_missing(const cm_join_input *in, const cm_join_tables *tables,
                            const cm_join_axes *axes, cm_join_findings *findings,
                            const cm_field_sources *f, cm_error *err)
{
    const size_t before = findings->report->nfindings;
    kinds k;
    int rc = find_kinds(in, tables, axes, findings, f, &k, err);
    for (uint32_t i = 0; rc == CM_OK && i < tables->nvars; i++)
        rc = find_missing_of(in, tables, axes, findings, f, &k, i, err);
    release_kinds(&k);
    return rc == CM_OK && findings->report->nfindings == before
               ? find_holes(in, tables, axes, findings, f, err)
               : rc;
}

/* ---- what must be the same ---- */

int cm_field_sources_check(cm_field_sources *f, const cm_multi_check *check, cm_error *err)
{
    int rc = CM_GROW(f->check, f->nchecks, err);
    if (rc == CM_OK)
        f->check[f->nchecks++] = *check;
    return rc;
}

#define TAKE_ONE "`overlap` first or last takes those of one file"

/* How a message about steps that differ ends; it lives as long as the join. */
static const char *decide_twice(const cm_join_input *in, const cm_join_tables *tables,
                                const cm_join_axes *axes, cm_field_sources *f)
{
    if (f->twice != NULL)
        return f->twice;
    f->apart = cm_join_propose_apart(in, tables, axes, &f->apart_by);
    if (f->apart == NULL)
        f->twice = cm_strdup(TAKE_ONE, NULL);
    else if (f->apart_by == CM_DECIDER_ALONG)
        f->twice = cm_asprintf(NULL, TAKE_ONE ", `along` %s keeps all", f->apart);
    else if (f->apart_by == CM_DECIDER_ORDER)
        f->twice = cm_asprintf(NULL, TAKE_ONE ", `order` %s keeps all", f->apart);
    else
        f->twice = cm_asprintf(NULL, TAKE_ONE ", `new_dim` '%s' keeps all", f->apart);
    return f->twice != NULL ? f->twice : TAKE_ONE;
}

/* Whether A and B hold other variables: what both hold goes with each of these. */
static bool hold_others(const cm_join_input *in, const cm_join_tables *tables, uint32_t a,
                        uint32_t b)
{
    return !cm_wire_same(tables->names[cm_join_skeleton(in, a)->index],
                         tables->names[cm_join_skeleton(in, b)->index]);
}

/*
 * Whether two files lie apart along a joined dimension that the placement has not: tiles that are
 * neighbours say the same latitudes, and neither is the other's overlap.
 */
static bool lies_apart(const cm_join_input *in, const cm_join_tables *tables,
                       const cm_join_axes *axes, const cm_placement *p, uint32_t a, uint32_t b)
{
    bool apart = false;
    for (unsigned i = 0; i < axes->naxes; i++) {
        bool has = false;
        for (unsigned k = 0; k < p->naxes; k++)
            has |= p->axis[k] == i;
        const cm_join_vec *x = cm_axis_vec(in, &tables->dim[axes->axis[i]], a);
        const cm_join_vec *y = cm_axis_vec(in, &tables->dim[axes->axis[i]], b);
        apart |= !has && x != NULL && y != NULL && x != y;
    }
    return apart;
}

/* Elements that two files have. */
static int check_twice(const cm_join_input *in, cm_join_tables *tables, const cm_join_axes *axes,
                       uint32_t at, cm_field_sources *f, cm_error *err)
{
    const cm_placement *p = f->of[at].place;
    const char *decide = p->ntwice > 0 ? decide_twice(in, tables, axes, f) : NULL;
    cm_multi_check settled = {.var = at}; /* as of a static field, once a pair needs it */
    cm_surveyed_var a, b;
    int rc = CM_OK;
    if (is_given(tables, axes, at))
        return CM_OK;
    for (size_t i = 0; rc == CM_OK && i < p->ntwice; i++) {
        const cm_placed_twice *t = &p->twice[i];
        if (f->of[at].auxiliary && cm_join_record(in, tables, at, t->part[0].file, &a) &&
            cm_join_record(in, tables, at, t->part[1].file, &b) &&
            cm_join_is_told(in, tables, &a, &b) && t->part[0].first[0] == t->part[1].first[0] &&
            t->part[0].first[1] == t->part[1].first[1] &&
            cm_join_same_values(in, tables, at, t->part[0].file, &a, t->part[1].file, &b, NULL))
            continue;
        cm_multi_check check = {.var = at,
                                .part = {t->part[0], t->part[1]},
                                .may_differ = in->options->overlap != CM_OVERLAP_ERROR,
                                .what = "overlapping steps",
                                .decide = decide};
        if (f->apart == NULL && !in->has_base &&
            hold_others(in, tables, t->part[0].file, t->part[1].file))
            check.decide = TAKE_ONE ", `exclude` of the variable keeps all others";
        if (lies_apart(in, tables, axes, p, t->part[0].file, t->part[1].file)) {
            if (settled.what == NULL)
                cm_join_settle_static(in, tables, axes, at, &settled);
            check = settled;
            memcpy(check.part, t->part, sizeof(check.part));
        }
        rc = cm_field_sources_check(f, &check, err);
    }
    return rc;
}

static int check_all(const cm_join_input *in, cm_join_tables *tables, const cm_join_axes *axes,
                     cm_join_findings *findings, cm_field_sources *f, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < tables->nvars; i++)
        if (tables->var[i].wanted && tables->var[i].made == NULL)
            rc = f->of[i].place == NULL
                     ? cm_join_check_static(in, tables, axes, findings, (uint32_t)i, f, err)
                     : check_twice(in, tables, axes, (uint32_t)i, f, err);
    return rc;
}

/* Said once, of the field that has most of them. */
static int say_twice(const cm_join_input *in, const cm_join_tables *tables,
                     const cm_join_axes *axes, cm_join_findings *findings,
                     const cm_field_sources *f, cm_error *err)
{
    const cm_placement *p = NULL;
    for (size_t i = 0; i < tables->nvars; i++)
        if (tables->var[i].wanted && f->of[i].place != NULL && !f->of[i].auxiliary &&
            f->of[i].place->naxes == axes->naxes &&
            f->of[i].place->nrepeated > (p == NULL ? 0 : p->nrepeated))
            p = f->of[i].place;
    if (p == NULL)
        return CM_OK;
    const cm_placed_twice *t = &p->twice[0];
    bool decided = in->options->overlap != CM_OVERLAP_ERROR;
    for (unsigned i = 0; i < p->naxes; i++)
        findings->report->axis[p->axis[i]].nrepeated = p->nrepeated;
    cm_finding *found = cm_join_find(
        findings, CM_FINDING_OVERLAP, decided ? CM_WEIGHT_WARNING : CM_WEIGHT_NOTE, decided,
        tables->dim[axes->axis[p->axis[p->naxes - 1]]].name, t->part[1].file, err,
        "%" PRIu64 " step%s in more than one file (%s has them too); %s", p->nrepeated,
        cm_of_count(p->nrepeated, " is", "s are"), in->file[t->part[0].file]->path,
        decided ? "those of one are dropped"
                : "identical data are taken once, anything else stops the run");
    if (found == NULL)
        return CM_ENOMEM;
    if (!decided && cm_place_propose_apart(f, found, err) != CM_OK)
        return CM_ENOMEM;
    return decided ? cm_join_irreversible(findings, err, "overlapping steps were dropped") : CM_OK;
}

int cm_join_fields(const cm_join_input *in, cm_join_tables *tables, const cm_join_axes *axes,
                   cm_join_findings *findings, cm_field_sources *out, cm_error *err)
{
    int rc = CM_OK;
    out->n = tables->nvars;
    if ((out->of = cm_calloc(tables->nvars + 1, sizeof(out->of[0]), err)) == NULL)
        return CM_ENOMEM;
    find_auxiliary(tables, out);
    for (size_t i = 0; rc == CM_OK && i < tables->nvars; i++)
        if (tables->var[i].wanted && tables->var[i].made == NULL)
            rc = place_variable(in, tables, axes, (uint32_t)i, out, err);
    if (rc == CM_OK)
        rc = find_all_missing(in, tables, axes, findings, out, err);
    if (rc == CM_OK)
        rc = check_all(in, tables, axes, findings, out, err);
    return rc == CM_OK ? say_twice(in, tables, axes, findings, out, err) : rc;
}

void cm_field_sources_release(cm_field_sources *f)
{
    for (size_t i = 0; i < f->nplaces; i++) {
        cm_placement_release(f->place[i]);
        free(f->place[i]);
    }
    free(f->place);
    free(f->of);
    free(f->check);
    free(f->apart);
    free(f->twice);
    *f = (cm_field_sources){0};
}
