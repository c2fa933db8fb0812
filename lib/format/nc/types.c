#include "format/nc/types.h"

#include <stdio.h>
#include <string.h>

static bool atomic(nc_type type, cm_dtype *out)
{
    static const struct {
        nc_type type;
        cm_kind kind;
        uint32_t nbytes;
    } table[] = {
        {NC_BYTE, CM_KIND_INT, 1},   {NC_CHAR, CM_KIND_BYTES, 1},  {NC_SHORT, CM_KIND_INT, 2},
        {NC_INT, CM_KIND_INT, 4},    {NC_FLOAT, CM_KIND_FLOAT, 4}, {NC_DOUBLE, CM_KIND_FLOAT, 8},
        {NC_UBYTE, CM_KIND_UINT, 1}, {NC_USHORT, CM_KIND_UINT, 2}, {NC_UINT, CM_KIND_UINT, 4},
        {NC_INT64, CM_KIND_INT, 8},  {NC_UINT64, CM_KIND_UINT, 8}, {NC_STRING, CM_KIND_STRING, 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].type != type)
            continue;
        *out = cm_dtype_make(table[i].kind, table[i].nbytes);
        return true;
    }
    return false;
}

bool cm_nc_default_fill(nc_type type, void *out)
{
    static const int8_t i8 = NC_FILL_BYTE;
    static const uint8_t u8 = NC_FILL_UBYTE;
    static const char text = NC_FILL_CHAR;
    static const int16_t i16 = NC_FILL_SHORT;
    static const uint16_t u16 = NC_FILL_USHORT;
    static const int32_t i32 = NC_FILL_INT;
    static const uint32_t u32 = NC_FILL_UINT;
    static const int64_t i64 = NC_FILL_INT64;
    static const uint64_t u64 = NC_FILL_UINT64;
    static const float f32 = NC_FILL_FLOAT;
    static const double f64 = NC_FILL_DOUBLE;
    static const struct {
        nc_type type;
        uint32_t nbytes;
        const void *value;
    } table[] = {{NC_BYTE, 1, &i8},   {NC_UBYTE, 1, &u8},   {NC_CHAR, 1, &text},
                 {NC_SHORT, 2, &i16}, {NC_USHORT, 2, &u16}, {NC_INT, 4, &i32},
                 {NC_UINT, 4, &u32},  {NC_INT64, 8, &i64},  {NC_UINT64, 8, &u64},
                 {NC_FLOAT, 4, &f32}, {NC_DOUBLE, 8, &f64}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (table[i].type != type)
            continue;
        memcpy(out, table[i].value, table[i].nbytes);
        return true;
    }
    return false;
}

int cm_nc_type_inquire(int ncid, nc_type type, cm_nc_type *out, cm_error *err)
{
    *out = (cm_nc_type){.base = type};
    if (atomic(type, &out->dtype))
        return CM_OK;

    char name[NC_MAX_NAME + 1] = "";
    size_t nbytes = 0, nfields = 0;
    nc_type base = NC_NAT;
    int class = 0;
    int rc = nc_inq_user_type(ncid, type, name, &nbytes, &base, &nfields, &class);
    if (rc != CM_OK)
        return cm_fail(err, CM_EFORMAT, "type %d cannot be read: %s", type, nc_strerror(rc));
    if (class == NC_ENUM && base != NC_STRING && atomic(base, &out->dtype)) {
        out->is_enum = true;
        out->base = base;
        out->nmembers = nfields;
        return CM_OK;
    }
    const char *kind = class == NC_COMPOUND ? "compound"
                       : class == NC_VLEN   ? "variable-length"
                       : class == NC_OPAQUE ? "opaque"
                                            : "user-defined";
    out->base = NC_NAT;
    out->dtype = cm_dtype_make(CM_KIND_RAW, nbytes <= UINT32_MAX ? (uint32_t)nbytes : UINT32_MAX);
    snprintf(out->unsupported, sizeof out->unsupported, "%s type %s", kind, name);
    return CM_OK;
}
