#include "archive/tables/described.h"

#include <string.h>
#include <strings.h>

#include "format/packing.h"

const cm_described *cm_join_described(const cm_join_input *in, const cm_join_tables *tables,
                                      uint32_t at, uint32_t file)
{
    const cm_skeleton *k = cm_join_skeleton(in, file);
    uint32_t pos = tables->to_pos[k->index][at];
    return pos == CM_JOIN_NONE ? NULL : k->var[pos];
}

bool cm_join_record(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                    uint32_t file, cm_surveyed_var *out)
{
    const cm_described *d = cm_join_described(in, tables, at, file);
    return d != NULL && cm_surveyed_find(in->file[file], d->name, out);
}

bool cm_join_same_member(const cm_json *a, const cm_json *b, const char *name)
{
    const cm_json *x = cm_json_member(a, name), *y = cm_json_member(b, name);
    return x == y || (x != NULL && y != NULL && cm_json_equal(x, y));
}

/* ---- what a description means ---- */

const char *cm_join_text(const cm_described *d, const char *attribute)
{
    return cm_json_text(cm_json_member(cm_described_attrs(d), attribute), NULL);
}

bool cm_join_counts_time(const cm_described *d)
{
    const char *units = cm_join_text(d, "units");
    return units != NULL && cm_time_axis_is(units);
}

bool cm_join_has_other_sign(const cm_described *d)
{
    const char *sign = cm_join_text(d, "_Unsigned");
    return sign != NULL && (d->dtype.kind == CM_KIND_INT || d->dtype.kind == CM_KIND_UINT) &&
           strcmp(sign, d->dtype.kind == CM_KIND_INT ? "true" : "false") == 0;
}

cm_dtype cm_join_unpacked(const cm_described *d)
{
    const cm_packing_words words = {.type = d->dtype,
                                    .attrs = cm_described_attrs(d),
                                    .fill = d->has_fill_value ? d->fill_value : NULL,
                                    .scale_nbytes = d->scale_nbytes,
                                    .offset_nbytes = d->offset_nbytes};
    return cm_packing_shown(&words);
}

/* ---- what variables say of each other ---- */

char cm_join_degrees(const cm_described *d)
{
    /* degrees_north, degree_N, degreesN, ... */
    const char *units = cm_join_text(d, "units");
    if (units == NULL || strncmp(units, "degree", 6) != 0)
        return '\0';
    units += 6;
    units += *units == 's';
    units += *units == '_' || *units == ' ';
    return *units == 'n' || *units == 'N' ? 'n' : *units == 'e' || *units == 'E' ? 'e' : '\0';
}

bool cm_join_is_northing(const cm_join_var *v)
{
    static const struct {
        const char *attribute, *value;
    } SAYS[] = {{"standard_name", "latitude"},
                {"standard_name", "grid_latitude"},
                {"standard_name", "projection_y_coordinate"},
                {"axis", "Y"},
                {"_CoordinateAxisType", "Lat"},
                {"_CoordinateAxisType", "GeoY"}};
    const char degrees = cm_join_degrees(v->like);
    bool says = degrees != '\0', northing = degrees == 'n';
    for (size_t i = 0; i < sizeof(SAYS) / sizeof(SAYS[0]); i++) {
        const char *text = cm_join_text(v->like, SAYS[i].attribute);
        says |= text != NULL;
        northing |= text != NULL && strcmp(text, SAYS[i].value) == 0;
    }
    return says ? northing
                : strcasecmp(v->name, "lat") == 0 || strcasecmp(v->name, "latitude") == 0;
}

static bool names(const char *text, const char *name)
{
    while (text != NULL && *text != '\0') {
        size_t n = strcspn(text, " \t\n,");
        if (strlen(name) == n && strncmp(name, text, n) == 0)
            return true;
        text += n + strspn(text + n, " \t\n,");
    }
    return false;
}

/* Bounds, 2-D coordinates and the like. */
bool cm_join_is_auxiliary(const cm_join_tables *tables, uint32_t at)
{
    static const char *const REFERRING[] = {"bounds", "climatology", "coordinates", "grid_mapping"};
    for (size_t i = 0; i < tables->nvars; i++)
        for (size_t k = 0; k < sizeof(REFERRING) / sizeof(REFERRING[0]); k++)
            if (names(cm_join_text(tables->var[i].like, REFERRING[k]), tables->var[at].name))
                return true;
    return tables->var[at].like->rank == 0;
}

bool cm_join_is_used(const cm_join_tables *tables, const cm_join_dim *d)
{
    for (size_t i = 0; i < tables->nvars; i++)
        for (unsigned k = 0; tables->var[i].wanted && k < tables->var[i].rank; k++)
            if (&tables->dim[tables->var[i].dim[k]] == d)
                return true;
    return false;
}

bool cm_join_is_coordinate(const cm_join_tables *tables, uint32_t at)
{
    for (size_t i = 0; i < tables->nvars; i++)
        if (names(cm_join_text(tables->var[i].like, "coordinates"), tables->var[at].name))
            return true;
    return false;
}
