#include "model/dtype.h"

#include <stdio.h>
#include <string.h>

cm_dtype cm_dtype_make(cm_kind kind, uint32_t nbytes)
{
    return (cm_dtype){.kind = kind, .nbytes = nbytes};
}

bool cm_dtype_equal(const cm_dtype *a, const cm_dtype *b)
{
    return a->kind == b->kind && a->nbytes == b->nbytes && a->scale_factor == b->scale_factor &&
           !strncmp(a->unit, b->unit, sizeof a->unit);
}

bool cm_dtype_is_vlen(const cm_dtype *t)
{
    return t->kind == CM_KIND_STRING || t->kind == CM_KIND_VLEN_BYTES;
}

bool cm_dtype_is_number(const cm_dtype *t)
{
    return t->kind == CM_KIND_INT || t->kind == CM_KIND_UINT || t->kind == CM_KIND_FLOAT;
}

uint32_t cm_dtype_swap_nbytes(const cm_dtype *t)
{
    switch (t->kind) {
    case CM_KIND_INT:
    case CM_KIND_UINT:
    case CM_KIND_FLOAT:
    case CM_KIND_DATETIME:
    case CM_KIND_TIMEDELTA:
        return t->nbytes;
    case CM_KIND_COMPLEX:
        return t->nbytes / 2;
    case CM_KIND_UTF32:
        return 4;
    case CM_KIND_BOOL:
    case CM_KIND_BYTES:
    case CM_KIND_RAW:
    case CM_KIND_STRING:
    case CM_KIND_VLEN_BYTES:
        break;
    }
    return 1;
}

static void time_name(const cm_dtype *t, const char *kind, char *buf, size_t size)
{
    if (!strncmp(t->unit, "generic", sizeof t->unit) || !t->unit[0])
        snprintf(buf, size, "%s", kind);
    else if (t->scale_factor > 1)
        snprintf(buf, size, "%s[%u%.12s]", kind, t->scale_factor, t->unit);
    else
        snprintf(buf, size, "%s[%.12s]", kind, t->unit);
}

char *cm_dtype_name(const cm_dtype *t, char *buf, size_t size)
{
    switch (t->kind) {
    case CM_KIND_BOOL:
        snprintf(buf, size, "bool");
        return buf;
    case CM_KIND_INT:
        snprintf(buf, size, "int%u", t->nbytes * 8);
        return buf;
    case CM_KIND_UINT:
        snprintf(buf, size, "uint%u", t->nbytes * 8);
        return buf;
    case CM_KIND_FLOAT:
        snprintf(buf, size, "float%u", t->nbytes * 8);
        return buf;
    case CM_KIND_COMPLEX:
        snprintf(buf, size, "complex%u", t->nbytes * 8);
        return buf;
    case CM_KIND_BYTES:
        snprintf(buf, size, "bytes%u", t->nbytes);
        return buf;
    case CM_KIND_RAW:
        snprintf(buf, size, "raw%u", t->nbytes);
        return buf;
    case CM_KIND_UTF32:
        snprintf(buf, size, "unicode%u", t->nbytes / 4);
        return buf;
    case CM_KIND_DATETIME:
        time_name(t, "datetime64", buf, size);
        return buf;
    case CM_KIND_TIMEDELTA:
        time_name(t, "timedelta64", buf, size);
        return buf;
    case CM_KIND_STRING:
        snprintf(buf, size, "string");
        return buf;
    case CM_KIND_VLEN_BYTES:
        snprintf(buf, size, "variable_length_bytes");
        return buf;
    }
    snprintf(buf, size, "unknown");
    return buf;
}

static const struct {
    const char *name, *numpy;
    cm_kind kind;
    uint32_t nbytes;
} TYPE[] = {
    {"bool", "b1", CM_KIND_BOOL, 1},         {"int8", "i1", CM_KIND_INT, 1},
    {"int16", "i2", CM_KIND_INT, 2},         {"int32", "i4", CM_KIND_INT, 4},
    {"int64", "i8", CM_KIND_INT, 8},         {"uint8", "u1", CM_KIND_UINT, 1},
    {"uint16", "u2", CM_KIND_UINT, 2},       {"uint32", "u4", CM_KIND_UINT, 4},
    {"uint64", "u8", CM_KIND_UINT, 8},       {"float16", "f2", CM_KIND_FLOAT, 2},
    {"float32", "f4", CM_KIND_FLOAT, 4},     {"float64", "f8", CM_KIND_FLOAT, 8},
    {"complex64", "c8", CM_KIND_COMPLEX, 8}, {"complex128", "c16", CM_KIND_COMPLEX, 16},
    {"string", "string", CM_KIND_STRING, 0},
};

int cm_dtype_parse(const char *text, cm_dtype *out, cm_error *err)
{
    if (text[0] == '>')
        return cm_fail(err, CM_EINVAL, "type '%s': the byte order does not belong in a type", text);
    const char *numpy = text + (text[0] == '<' || text[0] == '|' || text[0] == '=');
    for (size_t i = 0; i < sizeof TYPE / sizeof *TYPE; i++) {
        if (!strcmp(text, TYPE[i].name) || !strcmp(numpy, TYPE[i].numpy)) {
            *out = cm_dtype_make(TYPE[i].kind, TYPE[i].nbytes);
            return CM_OK;
        }
    }
    return cm_fail(err, CM_EINVAL,
                   "'%s' is not a type: write bool, int8 to int64, uint8 to uint64, "
                   "float16 to float64, complex64, complex128 or string",
                   text);
}
