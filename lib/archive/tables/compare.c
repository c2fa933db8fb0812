/* Compares each file's description of a variable with that of the first file that has it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/join.h"
#include "archive/tables/attributes.h"
#include "archive/tables/described.h"
#include "archive/tables/reading.h"
#include "model/convert.h"

#define BIT(kind) (UINT32_C(1) << (kind))

/* ---- a description against the first ---- */

/* The kinds of findings about attributes. */
static const cm_finding_kind OF_USE[CM_ATTRIBUTE_USES] = {
    [CM_ATTRIBUTE_PACKING] = CM_FINDING_PACKING,
    [CM_ATTRIBUTE_MEANING] = CM_FINDING_MEANING,
    [CM_ATTRIBUTE_OTHER] = CM_FINDING_ATTRIBUTE};

static uint32_t meant(const cm_join_tables *tables, uint32_t dim)
{
    return tables->dim[dim].same_as != CM_JOIN_NONE ? tables->dim[dim].same_as : dim;
}

/* Maps the dimensions of D, by their joined names, to the order of V; false: D has others. */
static bool same_dimensions(const cm_join_input *in, const cm_join_tables *tables,
                            const cm_join_var *v, const cm_described *d, bool *in_order)
{
    char buf[512];
    bool used[CM_MAX_RANK] = {false};
    *in_order = true;
    if (d->rank != v->rank)
        return false;
    for (unsigned i = 0; i < d->rank; i++) {
        const char *name = cm_join_name(in, tables, d->dim[i], buf, sizeof(buf));
        uint32_t dim = meant(tables, cm_join_dim_named(tables, name));
        unsigned k = 0;
        while (k < v->rank && (used[k] || meant(tables, v->dim[k]) != dim))
            k++;
        /* The length of texts may have another name. */
        if (k == v->rank && v->is_text && i + 1 == d->rank && !used[i])
            k = i;
        if (k == v->rank)
            return false;
        used[k] = true;
        *in_order &= k == i;
    }
    return true;
}

static uint32_t compare_time(const cm_described *a, const cm_described *b)
{
    cm_calendar x, y;
    const char *ca = cm_join_text(a, "calendar"), *cb = cm_join_text(b, "calendar");
    bool same_text = strcmp(ca == NULL ? "" : ca, cb == NULL ? "" : cb) == 0;
    if (!same_text && (cm_calendar_parse(ca, &x, NULL) != CM_OK ||
                       cm_calendar_parse(cb, &y, NULL) != CM_OK || !cm_calendars_join(x, y)))
        return BIT(CM_FINDING_CALENDAR);
    const char *ua = cm_join_text(a, "units"), *ub = cm_join_text(b, "units");
    bool rebased = ua == NULL || ub == NULL || strcmp(ua, ub) != 0 || (!same_text && x != y);
    return rebased ? BIT(CM_FINDING_TIME_UNITS) : 0;
}

static uint32_t compare_units(const cm_described *a, const cm_described *b)
{
    if (cm_join_counts_time(a) && cm_join_counts_time(b))
        return compare_time(a, b);
    const cm_json *x = cm_described_attrs(a), *y = cm_described_attrs(b);
    uint32_t kinds = cm_join_same_member(x, y, "units") ? 0 : BIT(CM_FINDING_UNITS);
    if (!cm_join_same_member(x, y, "calendar"))
        kinds |= BIT(CM_FINDING_CALENDAR);
    return kinds;
}

/* Bounds have no bounds themselves, which excludes cycles. */
static bool has_bounds(const cm_described *d)
{
    return cm_join_text(d, "bounds") != NULL || cm_join_text(d, "climatology") != NULL;
}

void cm_join_find_bounds(cm_join_tables *tables)
{
    static const char *const REFERRING[] = {"climatology", "bounds"};
    for (size_t i = 0; i < tables->nvars; i++)
        for (size_t k = 0; k < 2; k++) {
            const char *name = cm_join_text(tables->var[i].like, REFERRING[k]);
            const uint32_t at = name == NULL ? CM_JOIN_NONE : cm_join_var_named(tables, name);
            if (at != CM_JOIN_NONE && !has_bounds(tables->var[at].like) &&
                tables->var[at].bounds_of == CM_JOIN_NONE)
                tables->var[at].bounds_of = (uint32_t)i;
        }
}

cm_join_var *cm_join_bounded_by(const cm_join_tables *tables, const cm_join_var *v)
{
    cm_join_var *of = v->bounds_of == CM_JOIN_NONE ? NULL : &tables->var[v->bounds_of];
    return of != NULL && cm_join_counts_time(of->like) ? of : NULL;
}

/*
 * Bounds may repeat the units of their variable or leave them out: some writers do, others do
 * not.  Where it is not plain that they are the same, all of the family is counted anew.
 */
static uint32_t compare_bounds(cm_join_var *parent, const cm_described *a, const cm_described *b)
{
    const char *of = cm_join_text(parent->like, "units");
    const char *x = cm_join_text(a, "units"), *y = cm_join_text(b, "units");
    if (strcmp(x == NULL ? of : x, y == NULL ? of : y) != 0)
        parent->kinds |= BIT(CM_FINDING_TIME_UNITS);
    return 0;
}

static bool same_fill(const cm_described *a, const cm_described *b)
{
    if (a->has_fill_value != b->has_fill_value)
        return false;
    return !a->has_fill_value || !cm_dtype_equal(&a->dtype, &b->dtype) ||
           memcmp(a->fill_value, b->fill_value, a->dtype.nbytes) == 0;
}

static bool says(const cm_json *values, double x)
{
    double y;
    bool found = cm_json_get_double(values, &y) && x == y;
    for (size_t i = 0; i < cm_json_length(values) && !found; i++)
        found = cm_json_get_double(cm_json_at(values, i), &y) && x == y;
    return found;
}

static bool is_fill_value(const cm_described *d, double x)
{
    return d->has_fill_value && cm_element_to_double(&d->dtype, d->fill_value) == x;
}

/*
 * Whether all that missing_value calls missing in A, but for its fill value, is missing in B.
 * FILLS: B's fill value, which becomes A's, is so, too.
 */
static bool misses_all(const cm_described *a, const cm_described *b, bool fills)
{
    const cm_json *value = cm_json_member(cm_described_attrs(a), "missing_value");
    const cm_json *other = cm_json_member(cm_described_attrs(b), "missing_value");
    const size_t n = cm_json_length(value);
    bool all = true;
    for (size_t i = 0; i < (n > 0 ? n : 1) && all; i++) {
        double x;
        const bool number = cm_json_get_double(n > 0 ? cm_json_at(value, i) : value, &x);
        all = !number || isnan(x) || says(other, x) || is_fill_value(a, x) ||
              (fills && is_fill_value(b, x));
    }
    return all;
}

/* Times are counted anew, each with what is missing in its own file.  OF_STORE: A is a store's. */
static bool same_missing(const cm_described *a, const cm_described *b, bool of_store)
{
    if (cm_dtype_is_vlen(&a->dtype) && cm_dtype_is_vlen(&b->dtype))
        return (of_store && !cm_json_has(cm_described_attrs(a), "missing_value")) ||
               cm_join_same_member(cm_described_attrs(a), cm_described_attrs(b), "missing_value");
    return !cm_dtype_is_number(&a->dtype) || !cm_dtype_is_number(&b->dtype) ||
           cm_join_same_member(cm_described_attrs(a), cm_described_attrs(b), "missing_value") ||
           (misses_all(a, b, of_store) && misses_all(b, a, false));
}

/* Of two descriptions, all but their attributes: bits of the kinds in which they differ. */
static uint32_t compare(const cm_join_input *in, const cm_join_tables *tables, cm_join_var *v,
                        const cm_described *d)
{
    const cm_described *first = v->like;
    bool in_order;
    uint32_t kinds = in->has_base && cm_join_bounded_by(tables, v) != NULL
                         ? compare_bounds(cm_join_bounded_by(tables, v), first, d)
                         : compare_units(first, d);
    if (v->widest != NULL)
        in_order = true; /* missing variables are reported once the joined dimensions are known */
    else if (!same_dimensions(in, tables, v, d, &in_order))
        kinds |= BIT(CM_FINDING_DIMENSIONS);
    if (!in_order && (kinds & BIT(CM_FINDING_DIMENSIONS)) == 0)
        kinds |= BIT(CM_FINDING_ORDER);
    if (!cm_dtype_equal(&first->dtype, &d->dtype) || first->is_char != d->is_char)
        kinds |= BIT(CM_FINDING_TYPE);
    const bool missing = same_missing(first, d, in->has_base);
    const bool times = cm_join_counts_time(first) && cm_join_counts_time(d);
    if (!same_fill(first, d) || (!missing && times))
        kinds |= BIT(CM_FINDING_FILL);
    if (!missing && !times)
        kinds |= BIT(CM_FINDING_MISSING_VALUE);
    if (!in->has_base && (first->has_chunk != d->has_chunk ||
                          (d->has_chunk && first->rank == d->rank &&
                           memcmp(first->chunk, d->chunk, d->rank * sizeof(d->chunk[0])) != 0)))
        kinds |= BIT(CM_FINDING_LAYOUT);
    return kinds;
}

/* Adds to *KINDS, in which D differs already, those of attributes. */
static int compare_attributes(const cm_join_input *in, const cm_join_tables *tables,
                              const cm_join_var *v, const cm_described *d, cm_differing *differing,
                              uint32_t *kinds, cm_error *err)
{
    const uint32_t counting =
        BIT(CM_FINDING_TIME_UNITS) | BIT(CM_FINDING_TYPE) | BIT(CM_FINDING_FILL);
    const bool recounted = (*kinds & counting) != 0 && cm_join_counts_time(v->like);
    int rc = cm_attributes_compare(in, tables, v->like, d, recounted, differing, err);
    for (unsigned i = 0; i < CM_ATTRIBUTE_USES; i++)
        if (differing->first[i] != NULL)
            *kinds |= BIT(OF_USE[i]);
    /* The first file's stay, or a decision is needed before. */
    if (!in->has_base &&
        (in->options->first_attrs || differing->first[CM_ATTRIBUTE_MEANING] != NULL))
        *kinds &= ~BIT(CM_FINDING_ATTRIBUTE);
    return rc;
}

/* ---- findings ---- */

static void describe_json(const cm_json *value, bool there, char *buf, size_t size)
{
    cm_buf text = {0};
    if (!there)
        snprintf(buf, size, "absent");
    else if (cm_json_write(value, false, &text, NULL) == CM_OK)
        snprintf(buf, size, "%.*s", (int)(text.nbytes < 80 ? text.nbytes : 80),
                 (const char *)text.data);
    else
        snprintf(buf, size, "?");
    cm_buf_release(&text);
}

static cm_finding *differs(const cm_join_input *in, cm_join_findings *findings,
                           cm_finding_kind kind, cm_finding_weight weight, bool decided,
                           const cm_join_var *v, const cm_described *d, uint32_t file,
                           const char *attribute, cm_error *err)
{
    char here[96], there[96];
    const cm_json *x = cm_described_attrs(d), *y = cm_described_attrs(v->like);
    describe_json(cm_json_member(x, attribute), cm_json_has(x, attribute), here, sizeof(here));
    describe_json(cm_json_member(y, attribute), cm_json_has(y, attribute), there, sizeof(there));
    return cm_join_find(findings, kind, weight, decided, v->name, file, err,
                        "%s is %s, and %s in %s", attribute, here, there, in->file[v->first]->path);
}

static cm_finding *find_fill(const cm_join_input *in, cm_join_findings *findings,
                             const cm_join_var *v, const cm_described *d, uint32_t file,
                             cm_error *err)
{
    if (in->has_base && !v->like->has_fill_value)
        return cm_join_find(findings, CM_FINDING_FILL, CM_WEIGHT_NOTE, false, v->name, file, err,
                            "it has a fill value, and the store has none; an element that is "
                            "missing stops the run");
    if (d->has_fill_value && !v->like->has_fill_value)
        return cm_join_find(findings, CM_FINDING_FILL, CM_WEIGHT_NOTE, false, v->name, file, err,
                            "it has a fill value, and none in %s; the store has one, and a value "
                            "of the data that equals it stops the run",
                            in->file[v->first]->path);
    return cm_join_find(findings, CM_FINDING_FILL, CM_WEIGHT_NOTE, false, v->name, file, err,
                        "its fill value is not that of %s, which the store has; a value of the "
                        "data that equals it stops the run",
                        in->file[v->first]->path);
}

/*
 * A store keeps its type, attributes and fill value; if it holds unpacked numbers, they are those
 * of unpacking.
 */
static bool may_unpack(const cm_join_input *in, const cm_join_var *v, const cm_described *packed)
{
    const cm_described *d = v->like;
    if (!in->has_base)
        return true;
    return !cm_attributes_pack(cm_described_attrs(d)) && d->dtype.kind == CM_KIND_FLOAT &&
           d->dtype.nbytes <= 8 && d->dtype.nbytes >= cm_join_unpacked(packed).nbytes &&
           d->has_fill_value && isnan(cm_element_to_double(&d->dtype, d->fill_value));
}

static cm_finding *find_packing(const cm_join_input *in, cm_join_findings *findings,
                                const cm_join_var *v, const cm_described *d, uint32_t file,
                                const char *attribute, cm_error *err)
{
    bool may = may_unpack(in, v, d);
    cm_finding *f = differs(in, findings, CM_FINDING_PACKING, CM_WEIGHT_DECISION,
                            may && in->options->unpack, v, d, file, attribute, err);
    if (f != NULL && may)
        f->of_store = false;
    return f;
}

static cm_finding *find_one(const cm_join_input *in, const cm_join_tables *tables,
                            cm_join_findings *findings, cm_finding_kind kind, cm_join_var *v,
                            const cm_described *d, uint32_t file, const cm_differing *differing,
                            cm_error *err)
{
    const cm_archive_options *o = in->options;
    const char *first = in->file[v->first]->path;
    switch (kind) {
    case CM_FINDING_UNITS:
        return differs(in, findings, kind, CM_WEIGHT_DECISION, false, v, d, file, "units", err);
    case CM_FINDING_CALENDAR:
        return differs(in, findings, kind, CM_WEIGHT_DECISION, false, v, d, file, "calendar", err);
    case CM_FINDING_TIME_UNITS:
        return differs(in, findings, kind, CM_WEIGHT_NOTE, false, v, d, file, "units", err);
    case CM_FINDING_PACKING:
        return find_packing(in, findings, v, d, file, differing->first[CM_ATTRIBUTE_PACKING], err);
    case CM_FINDING_MEANING:
        return differs(in, findings, kind, CM_WEIGHT_DECISION, o->first_attrs, v, d, file,
                       differing->first[CM_ATTRIBUTE_MEANING], err);
    case CM_FINDING_MISSING_VALUE:
        return differs(in, findings, kind, CM_WEIGHT_DECISION, false, v, d, file, "missing_value",
                       err);
    case CM_FINDING_ATTRIBUTE:
        return cm_join_find(findings, kind, CM_WEIGHT_NOTE, false, v->name, file, err,
                            "the attribute %s is not that of %s",
                            differing->first[CM_ATTRIBUTE_OTHER], first);
    case CM_FINDING_TYPE:
        return cm_join_find_type(in, tables, findings, v, d, file, err);
    case CM_FINDING_FILL:
        return find_fill(in, findings, v, d, file, err);
    case CM_FINDING_ORDER:
        return cm_join_find(findings, kind, CM_WEIGHT_NOTE, false, v->name, file, err,
                            "its dimensions are in another order than in %s; they are transposed",
                            first);
    case CM_FINDING_LAYOUT:
        return cm_join_find(findings, kind, o->strict ? CM_WEIGHT_DECISION : CM_WEIGHT_NOTE, false,
                            v->name, file, err, "its chunks are not those of %s", first);
    default:
        return cm_join_find(findings, CM_FINDING_DIMENSIONS, CM_WEIGHT_DECISION, false, v->name,
                            file, err, "its dimensions are not those of %s", first);
    }
}

/* Descriptions that one variable was compared with, and the findings of it. */
typedef struct memory {
    const cm_described *last; /* like files stand in a row */
    uint32_t kinds;           /* in which LAST differs */
    cm_differing differing;   /* attributes */
    size_t finding[CM_FINDING_KINDS]
                  [2];         /* its number, + 1; of what is settled, and of what is not */
    const cm_described **seen; /* distinct ones, in a table by address */
    uint32_t *seen_kinds;      /* in which they differ */
    size_t nseen, capacity;
} memory;

static size_t place_of(const memory *m, const cm_described *d)
{
    size_t i = ((uintptr_t)d >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 20 & (m->capacity - 1);
    while (m->seen[i] != NULL && m->seen[i] != d)
        i = (i + 1) & (m->capacity - 1);
    return i;
}

static int grow(memory *m, cm_error *err)
{
    if ((m->nseen + 1) * 2 <= m->capacity)
        return CM_OK;
    memory more = {.capacity = m->capacity > 0 ? m->capacity * 2 : 16};
    more.seen = cm_calloc(more.capacity, sizeof(more.seen[0]), err);
    more.seen_kinds = cm_calloc(more.capacity, sizeof(more.seen_kinds[0]), err);
    if (more.seen == NULL || more.seen_kinds == NULL) {
        free(more.seen);
        free(more.seen_kinds);
        return CM_ENOMEM;
    }
    for (size_t i = 0; i < m->capacity; i++) {
        if (m->seen[i] == NULL)
            continue;
        size_t at = place_of(&more, m->seen[i]);
        more.seen[at] = m->seen[i];
        more.seen_kinds[at] = m->seen_kinds[i];
    }
    free(m->seen);
    free(m->seen_kinds);
    m->seen = more.seen;
    m->seen_kinds = more.seen_kinds;
    m->capacity = more.capacity;
    return CM_OK;
}

/* D, which was not compared before. */
static int see(const cm_join_input *in, const cm_join_tables *tables, cm_join_var *v, memory *m,
               const cm_described *d, cm_error *err)
{
    int rc = grow(m, err);
    if (rc != CM_OK)
        return rc;
    m->kinds = compare(in, tables, v, d);
    rc = compare_attributes(in, tables, v, d, &m->differing, &m->kinds, err);
    if (rc == CM_OK && !in->has_base)
        rc = cm_attributes_keep_common(in, v->attrs, cm_described_attrs(d), err);
    size_t at = place_of(m, d);
    m->seen[at] = d;
    m->seen_kinds[at] = m->kinds;
    m->nseen++;
    return rc;
}

/*
 * Files that need a decision and files that need none are separate findings, so that neither hides
 * the other.
 */
static bool is_settled(const cm_join_input *in, const cm_join_tables *tables, cm_finding_kind kind,
                       cm_join_var *v, const cm_described *d)
{
    if (kind == CM_FINDING_TYPE)
        return cm_join_type_is_settled(in, tables, v, d);
    return kind == CM_FINDING_PACKING && in->options->unpack && may_unpack(in, v, d);
}

static int note_kinds(const cm_join_input *in, const cm_join_tables *tables,
                      cm_join_findings *findings, cm_join_var *v, memory *m, const cm_described *d,
                      uint32_t file, cm_error *err)
{
    for (unsigned kind = 0; kind < CM_FINDING_KINDS; kind++) {
        if ((m->kinds & BIT(kind)) == 0)
            continue;
        size_t *number = &m->finding[kind][!is_settled(in, tables, (cm_finding_kind)kind, v, d)];
        if (*number != 0) {
            cm_finding *f = &findings->report->finding[*number - 1];
            int rc = cm_join_found_in(findings, f, file, err);
            if (rc != CM_OK)
                return rc;
            continue;
        }
        if (find_one(in, tables, findings, (cm_finding_kind)kind, v, d, file, &m->differing, err) ==
            NULL)
            return CM_ENOMEM;
        *number = findings->report->nfindings;
    }
    return CM_OK;
}

/* Findings about attributes, which were made at the first that differs, tell all that do. */
static int tell_all(const cm_join_input *in, cm_join_findings *findings, const cm_join_var *v,
                    const memory *m, cm_error *err)
{
    int rc = CM_OK;
    for (unsigned use = 0; use < CM_ATTRIBUTE_USES; use++)
        for (unsigned i = 0; rc == CM_OK && i < 2; i++)
            if (m->finding[OF_USE[use]][i] != 0)
                rc = cm_attributes_tell_all(
                    in, &m->differing, use, in->file[v->first]->path,
                    &findings->report->finding[m->finding[OF_USE[use]][i] - 1], err);
    return rc;
}

static int compare_variable(const cm_join_input *in, cm_join_tables *tables,
                            cm_join_findings *findings, uint32_t at, cm_error *err)
{
    cm_join_var *v = &tables->var[at];
    memory m = {.last = v->like};
    cm_reading kept;
    int rc = CM_OK;
    cm_join_widen_types(in, tables, at);
    for (size_t i = 0; rc == CM_OK && i < v->nfiles; i++) {
        const cm_skeleton *k = cm_join_skeleton(in, v->file[i]);
        const cm_described *d = k->var[tables->to_pos[k->index][at]];
        bool seen = true;
        if (d == v->like)
            continue;
        if (d != m.last) {
            m.last = d;
            cm_survey_rest(in->survey);
            size_t place = m.capacity > 0 ? place_of(&m, d) : 0;
            seen = m.capacity > 0 && m.seen[place] != NULL;
            if (seen)
                m.kinds = m.seen_kinds[place];
            else
                rc = see(in, tables, v, &m, d, err);
        }
        v->kinds |= m.kinds;
        if (rc == CM_OK)
            rc = note_kinds(in, tables, findings, v, &m, d, v->file[i], err);
        /* While its attributes are parsed: the units of many files differ, and are asked again. */
        if (rc == CM_OK && !seen && cm_join_counts_time(d))
            (void)cm_join_reading(in, tables, at, v->file[i], &kept);
    }
    if (rc == CM_OK)
        rc = tell_all(in, findings, v, &m, err);
    cm_differing_release(&m.differing);
    free(m.seen);
    free(m.seen_kinds);
    return rc;
}

int cm_join_compare(const cm_join_input *in, cm_join_tables *tables, cm_join_findings *findings,
                    cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < tables->nvars; i++)
        if (tables->var[i].wanted)
            rc = compare_variable(in, tables, findings, (uint32_t)i, err);
    return rc;
}
