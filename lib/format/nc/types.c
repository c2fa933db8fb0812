#include "format/nc/types.h"

#include <stdio.h>

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
    if (rc)
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
