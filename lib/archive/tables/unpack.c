/* Unpacks variables that files pack differently: the store holds their decoded numbers. */
#include <math.h>
#include <string.h>

#include "archive/tables/attributes.h"
#include "archive/tables/described.h"
#include "archive/tables/reading.h"

/* Each file needs a single number for missing elements: a second one would become data. */
static int check_missing(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                         cm_error *err)
{
    const cm_join_var *v = &tables->var[at];
    const cm_described *last = NULL;
    for (size_t i = 0; i < v->nfiles; i++) {
        const cm_described *d = cm_join_described(in, tables, at, v->file[i]);
        cm_reading r;
        if (d == last || !cm_json_has(cm_described_attrs(d), "missing_value"))
            continue;
        last = d;
        if (!cm_join_reading(in, tables, at, v->file[i], &r) || r.nmissing > 1 ||
            !d->has_fill_value)
            return cm_fail(err, CM_EUNSUPPORTED,
                           "%s: %s: has a missing_value that is not its _FillValue, and cannot be "
                           "unpacked with others",
                           in->file[v->file[i]]->path, v->name);
    }
    return CM_OK;
}

/* The type that holds the numbers of all files as they are decoded. */
static cm_dtype type_of(const cm_join_input *in, const cm_join_tables *tables, uint32_t at)
{
    const cm_join_var *v = &tables->var[at];
    const cm_described *last = NULL;
    cm_dtype type = cm_dtype_make(CM_KIND_FLOAT, 4);
    for (size_t i = 0; i < v->nfiles; i++) {
        const cm_described *d = cm_join_described(in, tables, at, v->file[i]);
        if (d == last)
            continue;
        last = d;
        cm_survey_rest(in->survey);
        if (cm_join_unpacked(d).nbytes > type.nbytes)
            type = cm_join_unpacked(d);
    }
    return type;
}

static void set_type(const cm_join_input *in, cm_join_tables *tables, uint32_t at)
{
    const double nan = NAN;
    const float nanf = NAN;
    cm_join_var *v = &tables->var[at];
    cm_dtype asked;
    /* A store keeps its type, which holds the files' values, and its own NaN. */
    if (in->has_base) {
        v->dtype = v->like->dtype;
        return;
    }
    v->in_double = cm_join_asked_type(tables, v, &asked) || cm_join_counts_time(v->like);
    v->dtype = v->in_double ? cm_dtype_make(CM_KIND_FLOAT, 8) : type_of(in, tables, at);
    v->has_fill_value = true;
    memset(v->fill_value, 0, sizeof(v->fill_value));
    memcpy(v->fill_value, v->dtype.nbytes == 4 ? (const void *)&nanf : &nan, v->dtype.nbytes);
}

/* As xarray would decode them. */
static int unpack(const cm_join_input *in, cm_join_tables *tables, cm_join_findings *findings,
                  uint32_t at, cm_error *err)
{
    static const char *const PACKED[] = {"scale_factor", "add_offset", "_Unsigned",
                                         "missing_value"};
    cm_join_var *v = &tables->var[at];
    if (!cm_dtype_is_number(&v->dtype))
        return cm_fail(err, CM_EUNSUPPORTED, "%s: only numbers are unpacked", v->name);
    int rc = check_missing(in, tables, at, err);
    if (rc != CM_OK)
        return rc;
    set_type(in, tables, at);
    for (size_t i = 0; i < sizeof(PACKED) / sizeof(PACKED[0]); i++)
        cm_json_remove(v->attrs, PACKED[i]);
    v->unpacked = true;
    if (!in->has_base)
        rc = cm_attributes_drop_limits(in, tables, findings, at, "its numbers are unpacked", err);
    return rc != CM_OK ? rc : cm_join_irreversible(findings, err, "%s was unpacked", v->name);
}

int cm_join_unpack(const cm_join_input *in, cm_join_tables *tables, cm_join_findings *findings,
                   cm_error *err)
{
    int rc = CM_OK;
    for (uint32_t i = 0; rc == CM_OK && in->options->unpack && i < tables->nvars; i++) {
        const cm_join_var *v = &tables->var[i];
        if (v->wanted && (v->kinds & UINT32_C(1) << CM_FINDING_PACKING) != 0)
            rc = unpack(in, tables, findings, i, err);
    }
    return rc;
}
