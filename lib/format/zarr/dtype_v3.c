/*
 * Data types of Zarr v3: the core's, those of zarr-extensions, and zarr-python's names for numpy's.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/zarr/internal.h"

static const struct {
    const char *name;
    cm_kind kind;
    uint32_t nbytes;
} PLAIN[] = {
    /* Of equal entries the first is written. */
    {"bool", CM_KIND_BOOL, 1},
    {"int8", CM_KIND_INT, 1},
    {"int16", CM_KIND_INT, 2},
    {"int32", CM_KIND_INT, 4},
    {"int64", CM_KIND_INT, 8},
    {"uint8", CM_KIND_UINT, 1},
    {"uint16", CM_KIND_UINT, 2},
    {"uint32", CM_KIND_UINT, 4},
    {"uint64", CM_KIND_UINT, 8},
    {"float16", CM_KIND_FLOAT, 2},
    {"float32", CM_KIND_FLOAT, 4},
    {"float64", CM_KIND_FLOAT, 8},
    {"complex64", CM_KIND_COMPLEX, 8},
    {"complex_float32", CM_KIND_COMPLEX, 8},
    {"complex128", CM_KIND_COMPLEX, 16},
    {"complex_float64", CM_KIND_COMPLEX, 16},
    {"string", CM_KIND_STRING, 0},
    {"variable_length_utf8", CM_KIND_STRING, 0},
    {"variable_length_bytes", CM_KIND_VLEN_BYTES, 0},
    {"bytes", CM_KIND_VLEN_BYTES, 0},
    {"binary", CM_KIND_VLEN_BYTES, 0},
};

static const struct {
    const char *name;
    cm_kind kind;
    uint32_t unit; /* the length must be a multiple */
} SIZED[] = {
    {"null_terminated_bytes", CM_KIND_BYTES, 1},
    {"raw_bytes", CM_KIND_RAW, 1},
    {"fixed_length_utf32", CM_KIND_UTF32, 4},
};

#define COUNT(table) (sizeof(table) / sizeof *(table))

static const char *const UNITS[] = {"generic", "Y",  "M",  "W",  "D",  "h",  "m", "s",
                                    "ms",      "us", "ns", "ps", "fs", "as", "μs"};

static bool is_time_unit(const char *unit)
{
    for (size_t i = 0; i < COUNT(UNITS); i++)
        if (strcmp(unit, UNITS[i]) == 0)
            return true;
    return false;
}

static int parse_time(const char *name, cm_kind kind, const cm_json *config, cm_dtype *out,
                      cm_error *err)
{
    const char *unit = cm_json_text(cm_json_member(config, "unit"), NULL);
    if (unit == NULL || !is_time_unit(unit))
        return cm_fail(err, CM_EFORMAT, "data type %s: unit '%s' is not a unit of time", name,
                       unit != NULL ? unit : "");
    uint64_t scale = 1;
    const cm_json *factor = cm_json_member(config, "scale_factor");
    if (factor != NULL && (!cm_json_get_u64(factor, &scale) || scale == 0 || scale > INT32_MAX))
        return cm_fail(err, CM_EFORMAT, "data type %s: scale_factor is not in 1 .. 2147483647",
                       name);
    *out = cm_dtype_make(kind, 8);
    strncpy(out->unit, strcmp(unit, "μs") == 0 ? "us" : unit, sizeof out->unit - 1);
    out->scale_factor = (uint32_t)scale;
    return CM_OK;
}

static int parse_sized(const char *name, cm_kind kind, uint64_t unit, const cm_json *config,
                       cm_dtype *out, cm_error *err)
{
    uint64_t nbytes;
    if (!cm_json_get_u64(cm_json_member(config, "length_bytes"), &nbytes) || nbytes % unit != 0)
        return cm_fail(err, CM_EFORMAT, "data type %s: length_bytes is missing or wrong", name);
    if (nbytes == 0 || nbytes > CM_ZARR_MAX_ITEM_NBYTES)
        return cm_fail(err, CM_EUNSUPPORTED, "data type %s with elements of %llu bytes", name,
                       (unsigned long long)nbytes);
    *out = cm_dtype_make(kind, (uint32_t)nbytes);
    return CM_OK;
}

/* r8, r16, ...: raw bits.  False when NAME is something else. */
static bool parse_raw_bits(const char *name, cm_dtype *out)
{
    if (name[0] != 'r' || name[1] < '1' || name[1] > '9')
        return false;
    char *end;
    unsigned long bits = strtoul(name + 1, &end, 10);
    if (*end || bits % 8 || bits / 8 > CM_ZARR_MAX_ITEM_NBYTES)
        return false;
    *out = cm_dtype_make(CM_KIND_RAW, (uint32_t)(bits / 8));
    return true;
}

int cm_zarr_dtype_from_v3(const cm_json *j, cm_dtype *out, bool *raw_bits, cm_error *err)
{
    const char *name;
    const cm_json *config;
    int rc = cm_zarr_named(j, "data_type", &name, &config, err);
    if (rc != CM_OK)
        return rc;
    *raw_bits = false;
    for (size_t i = 0; i < COUNT(PLAIN); i++) {
        if (strcmp(name, PLAIN[i].name) == 0) {
            *out = cm_dtype_make(PLAIN[i].kind, PLAIN[i].nbytes);
            return CM_OK;
        }
    }
    for (size_t i = 0; i < COUNT(SIZED); i++)
        if (strcmp(name, SIZED[i].name) == 0)
            return parse_sized(name, SIZED[i].kind, SIZED[i].unit, config, out, err);
    if (strcmp(name, "numpy.datetime64") == 0)
        return parse_time(name, CM_KIND_DATETIME, config, out, err);
    if (strcmp(name, "numpy.timedelta64") == 0)
        return parse_time(name, CM_KIND_TIMEDELTA, config, out, err);
    if (parse_raw_bits(name, out)) {
        *raw_bits = true;
        return CM_OK;
    }
    return cm_fail(err, CM_EUNSUPPORTED, "data type '%s' is not supported", name);
}

static cm_json *time_json(const cm_dtype *t)
{
    int rc = CM_OK;
    cm_json *config = cm_json_object();
    cm_zarr_set(&rc, config, "unit", cm_json_string(t->unit[0] ? t->unit : "generic"), NULL);
    cm_zarr_set(&rc, config, "scale_factor", cm_json_u64(t->scale_factor ? t->scale_factor : 1),
                NULL);
    if (rc != CM_OK) {
        cm_json_free(config);
        return NULL;
    }
    bool is_date = t->kind == CM_KIND_DATETIME;
    return cm_zarr_named_json(is_date ? "numpy.datetime64" : "numpy.timedelta64", config);
}

static cm_json *sized_json(const char *name, uint32_t nbytes)
{
    cm_json *config = cm_json_object();
    if (cm_json_set(config, "length_bytes", cm_json_u64(nbytes), NULL) != CM_OK) {
        cm_json_free(config);
        return NULL;
    }
    return cm_zarr_named_json(name, config);
}

static cm_json *dtype_json(const cm_dtype *t, bool raw_bits, bool *known)
{
    *known = true;
    if (t->kind == CM_KIND_DATETIME || t->kind == CM_KIND_TIMEDELTA)
        return time_json(t);
    if (t->kind == CM_KIND_RAW && raw_bits) {
        char name[24];
        snprintf(name, sizeof name, "r%llu", 8ull * t->nbytes);
        return cm_json_string(name);
    }
    for (size_t i = 0; i < COUNT(SIZED); i++)
        if (SIZED[i].kind == t->kind)
            return sized_json(SIZED[i].name, t->nbytes);
    for (size_t i = 0; i < COUNT(PLAIN); i++)
        if (PLAIN[i].kind == t->kind && PLAIN[i].nbytes == t->nbytes)
            return cm_json_string(PLAIN[i].name);
    *known = false;
    return NULL;
}

int cm_zarr_dtype_to_v3(const cm_dtype *t, bool raw_bits, cm_json **out, cm_error *err)
{
    bool known;
    *out = dtype_json(t, raw_bits, &known);
    if (*out != NULL)
        return CM_OK;
    char name[32];
    cm_dtype_name(t, name, sizeof name);
    if (known)
        return cm_fail(err, CM_ENOMEM, "no memory to describe the data type %s", name);
    return cm_fail(err, CM_EUNSUPPORTED, "Zarr v3 has no data type for %s", name);
}
