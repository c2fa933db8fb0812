/* Times of all files in one unit. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/axes/values.h"
#include "archive/tables/attributes.h"
#include "archive/tables/described.h"
#include "archive/tables/reading.h"

#define BIT(kind) (UINT32_C(1) << (kind))

/* Variable 0 has the units; the others are its bounds. */
typedef struct family {
    uint32_t member[CM_TIME_MEMBERS];
    unsigned n;
} family;

static void find_family(const cm_join_tables *tables, uint32_t at, family *f)
{
    static const char *const REFERRING[] = {"bounds", "climatology"};
    *f = (family){.member = {at}, .n = 1};
    for (size_t i = 0; i < 2 && f->n < CM_TIME_MEMBERS; i++) {
        const char *name = cm_join_text(tables->var[at].like, REFERRING[i]);
        uint32_t other = name == NULL ? CM_JOIN_NONE : cm_join_var_named(tables, name);
        if (other != CM_JOIN_NONE && tables->var[other].wanted &&
            cm_dtype_is_number(&tables->var[other].like->dtype))
            f->member[f->n++] = other;
    }
}

/* The numbers of variable AT in FILE, and how it counts; nothing in *NELEM where it has none. */
typedef struct counted {
    cm_time_coding coding;
    const void *number;
    void *own; /* to be freed */
    uint64_t nelem;
    bool there;
} counted;

static int read_file(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                     uint32_t file, counted *out, cm_error *err)
{
    cm_surveyed_var s;
    size_t nbytes;
    *out = (counted){0};
    if (!cm_join_record(in, tables, at, file, &s))
        return CM_OK;
    out->there = true;
    if (!s.has_values)
        return cm_fail(err, CM_EUNSUPPORTED, "it is too large to be counted from another date");
    int rc = cm_join_time_coding(in, tables, at, file, &out->coding, err);
    const void *values = cm_survey_values(in->survey, s.values, &nbytes);
    out->nelem = nbytes / s.var->dtype.nbytes;
    return rc == CM_OK ? cm_join_time_numbers(in, tables, at, file, values, out->nelem,
                                              &out->number, &out->own, err)
                       : rc;
}

static int see_file(const cm_join_input *in, const cm_join_tables *tables, const family *f,
                    unsigned m, uint32_t file, cm_time_choice *choice, cm_error *err)
{
    counted c;
    uint64_t bad;
    int rc = read_file(in, tables, f->member[m], file, &c, err);
    if (rc == CM_OK && c.there)
        rc = cm_time_choice_see(choice, m, &c.coding, c.number, c.nelem, file, &bad, err);
    free(c.own);
    return rc;
}

/* Whether TO, of a store, holds the times of FILE. */
static int check_file(const cm_join_input *in, const cm_join_tables *tables, const family *f,
                      unsigned m, uint32_t file, const cm_time_coding *to, cm_error *err)
{
    counted c;
    uint64_t bad;
    if (file == 0)
        return CM_OK;
    int rc = read_file(in, tables, f->member[m], file, &c, err);
    void *dst = rc == CM_OK ? cm_calloc((size_t)c.nelem + 1, to->dtype.nbytes, err) : NULL;
    if (rc == CM_OK && dst == NULL)
        rc = CM_ENOMEM;
    if (rc == CM_OK && c.there)
        rc = cm_time_rebase(&c.coding, to, c.number, dst, c.nelem, &bad, err);
    free(dst);
    free(c.own);
    return rc;
}

/* Whether files can be joined without V. */
static bool is_needless(const cm_join_input *in, const cm_join_tables *tables, const cm_join_var *v)
{
    bool used = in->has_base || v->like->is_coordinate;
    for (size_t i = 0; !used && i < tables->ndims; i++)
        used = tables->dim[i].var == v - tables->var;
    return !used;
}

static int refuse(const cm_join_input *in, const cm_join_tables *tables, cm_join_findings *findings,
                  const cm_join_var *v, uint32_t file, const cm_error *why, cm_error *err)
{
    cm_finding_kind kind =
        why->status == CM_EUNSUPPORTED ? CM_FINDING_CALENDAR : CM_FINDING_TIME_UNITS;
    const bool anew = in->has_base && kind == CM_FINDING_TIME_UNITS;
    cm_finding *f = cm_join_find(
        findings, kind, CM_WEIGHT_DECISION, false, v->name, file, err, "%s%s", why->text,
        anew ? "; made anew of all files the store counts in units that hold every time" : "");
    if (f == NULL)
        return CM_ENOMEM;
    if (kind != CM_FINDING_TIME_UNITS || !is_needless(in, tables, v))
        return CM_OK;
    f->by = CM_DECIDER_EXCLUDE;
    return (f->value = cm_strdup(v->name, err)) == NULL ? CM_ENOMEM : CM_OK;
}

static int take_choice(const cm_join_input *in, cm_join_tables *tables, cm_join_findings *findings,
                       const family *f, const cm_time_choice *choice, const cm_time_chosen *chosen,
                       cm_error *err)
{
    cm_join_var *parent = &tables->var[f->member[0]];
    char type[32];
    int rc = cm_json_set(parent->attrs, "units", cm_json_string(chosen->units), err);
    for (unsigned m = 0; rc == CM_OK && m < f->n; m++) {
        cm_join_var *v = &tables->var[f->member[m]];
        v->rebased = v->given = true;
        v->coding = chosen->coding[m];
        v->dtype = v->coding.dtype;
        v->has_fill_value = v->coding.has_fill;
        memcpy(v->fill_value, v->coding.fill, sizeof(v->coding.fill));
        if (!in->has_base) {
            /* The fill value marks missing times. */
            cm_json_remove(v->attrs, "missing_value");
            rc = cm_attributes_drop_limits(in, tables, findings, f->member[m],
                                           "times are counted anew", err);
        }
        if (rc == CM_OK && m > 0 && cm_json_has(v->attrs, "units"))
            rc = cm_json_set(v->attrs, "units", cm_json_string(chosen->units), err);
    }
    if (rc != CM_OK || (chosen->same_unit && cm_dtype_equal(&parent->dtype, &parent->like->dtype)))
        return rc;
    uint32_t file = choice->any_lost ? (uint32_t)choice->lost : parent->first;
    return cm_join_find(findings, CM_FINDING_TIME_UNITS, CM_WEIGHT_WARNING,
                        in->options->time_units != NULL, parent->name, file, err,
                        "all times are stored as %s, %s",
                        cm_dtype_name(&parent->dtype, type, sizeof(type)), chosen->units) == NULL
               ? CM_ENOMEM
               : CM_OK;
}

/* A store keeps its units of time: all files must fit them. */
static int count_as_base(const cm_join_input *in, cm_join_tables *tables,
                         cm_join_findings *findings, const family *f, cm_error *err)
{
    cm_time_choice choice = {0};
    cm_time_chosen chosen = {.same_unit = true};
    cm_error why = {0};
    const cm_join_var *v = &tables->var[f->member[0]];
    snprintf(chosen.units, sizeof(chosen.units), "%s", cm_join_text(v->like, "units"));
    for (unsigned m = 0; m < f->n; m++) {
        if (cm_join_described(in, tables, f->member[m], 0) == NULL)
            return cm_fail(err, CM_EINVAL, "%s: is not in the store",
                           tables->var[f->member[m]].name);
        int rc = cm_join_time_coding(in, tables, f->member[m], 0, &chosen.coding[m], &why);
        for (size_t i = 0; rc == CM_OK && i < in->nfiles; i++) {
            rc = check_file(in, tables, f, m, (uint32_t)i, &chosen.coding[m], &why);
            if (rc != CM_OK && rc != CM_ENOMEM)
                return refuse(in, tables, findings, v, (uint32_t)i, &why, err);
        }
        if (rc != CM_OK)
            return rc == CM_ENOMEM ? cm_fail(err, rc, "%s", why.text)
                                   : refuse(in, tables, findings, v, 0, &why, err);
    }
    return take_choice(in, tables, findings, f, &choice, &chosen, err);
}

static int choose(const cm_join_input *in, cm_join_tables *tables, cm_join_findings *findings,
                  const family *f, cm_error *err)
{
    if (in->has_base)
        return count_as_base(in, tables, findings, f, err);
    cm_join_var *v = &tables->var[f->member[0]];
    cm_time_choice choice;
    cm_time_chosen chosen;
    cm_time_axis axis;
    cm_error why = {0};
    const char *units =
        in->options->time_units != NULL ? in->options->time_units : cm_join_text(v->like, "units");
    int rc = cm_time_axis_parse(units, cm_join_text(v->like, "calendar"), &axis, &why);
    if (rc != CM_OK && in->options->time_units != NULL)
        return cm_fail(err, CM_EINVAL, "`time_units` %s: %s", units, why.text);
    if (rc != CM_OK)
        return refuse(in, tables, findings, v, v->first, &why, err);
    cm_time_choice_begin(&choice, &axis, in->options->time_units != NULL);
    for (size_t i = 0; i < in->nfiles; i++) {
        for (unsigned m = 0; rc == CM_OK && m < f->n; m++)
            rc = see_file(in, tables, f, m, (uint32_t)i, &choice, &why);
        if (rc != CM_OK)
            return rc == CM_ENOMEM ? cm_fail(err, rc, "%s", why.text)
                                   : refuse(in, tables, findings, v, (uint32_t)i, &why, err);
    }
    rc = cm_time_choice_end(&choice, units, &chosen, &why);
    if (rc != CM_OK)
        return refuse(in, tables, findings, v, choice.any_lost ? (uint32_t)choice.lost : v->first,
                      &why, err);
    return take_choice(in, tables, findings, f, &choice, &chosen, err);
}

/* Whether the times of V are not all counted alike already. */
static bool needs_choice(const cm_join_input *in, const cm_join_var *v)
{
    const uint32_t kinds = BIT(CM_FINDING_TIME_UNITS) | BIT(CM_FINDING_TYPE) | BIT(CM_FINDING_FILL);
    if (!v->wanted || v->rebased || !cm_join_counts_time(v->like) ||
        !cm_dtype_is_number(&v->like->dtype) || (v->kinds & BIT(CM_FINDING_CALENDAR)) != 0)
        return false;
    return (v->kinds & kinds) != 0 ||
           (in->options->time_units != NULL &&
            strcmp(in->options->time_units, cm_join_text(v->like, "units")) != 0);
}

/* A store goes on in its units: units that are asked for must equal them. */
static int check_asked(const cm_join_input *in, const cm_join_var *v, cm_error *err)
{
    cm_time_axis asked, own;
    const char *units = cm_join_text(v->like, "units");
    const char *calendar = cm_join_text(v->like, "calendar");
    if (!in->has_base || in->options->time_units == NULL || !v->wanted ||
        !cm_join_counts_time(v->like))
        return CM_OK;
    int rc = cm_time_axis_parse(in->options->time_units, calendar, &asked, err);
    if (rc != CM_OK)
        return cm_fail(err, CM_EINVAL, "`time_units` %s: cannot be counted in",
                       in->options->time_units);
    /* Other checks find units of the store that do not count time. */
    if (strcmp(units, in->options->time_units) == 0 ||
        cm_time_axis_parse(units, calendar, &own, NULL) != CM_OK ||
        (asked.origin_us == own.origin_us && asked.unit_us == own.unit_us &&
         asked.per_us == own.per_us))
        return CM_OK;
    return cm_fail(
        err, CM_EINVAL,
        "variable %s: the store counts it in %s, and keeps that; leave `time_units` out, "
        "or make a new store",
        v->name, units);
}

int cm_join_times(const cm_join_input *in, cm_join_tables *tables, cm_join_findings *findings,
                  cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < tables->nvars; i++)
        rc = check_asked(in, &tables->var[i], err);
    for (size_t i = 0; rc == CM_OK && i < tables->nvars; i++) {
        family f;
        if (!needs_choice(in, &tables->var[i]))
            continue;
        find_family(tables, (uint32_t)i, &f);
        rc = choose(in, tables, findings, &f, err);
    }
    return rc;
}
