/*
 * Data types of Zarr v2: numpy's array-interface strings.
 *
 * NCZarr writes a byte order where numpy has none ("<i1"), and none where numpy has one ("|i4",
 * then little-endian); both are accepted.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/zarr/internal.h"

static const struct {
    char code;
    cm_kind kind;
    const char *sizes; /* allowed, "" for any */
    uint32_t unit;     /* bytes per unit of the count */
} CODE[] = {
    {'b', CM_KIND_BOOL, "1", 1},    {'i', CM_KIND_INT, "1248", 1}, {'u', CM_KIND_UINT, "1248", 1},
    {'f', CM_KIND_FLOAT, "248", 1}, {'S', CM_KIND_BYTES, "", 1},   {'V', CM_KIND_RAW, "", 1},
    {'U', CM_KIND_UTF32, "", 4},    {'a', CM_KIND_BYTES, "", 1},
};

#define COUNT(table) (sizeof(table) / sizeof *(table))

static int unknown(const char *text, cm_error *err)
{
    return cm_fail(err, CM_EUNSUPPORTED, "dtype '%s' is not supported", text);
}

/* "M8[ns]", "m8[10s]", "M8": P is after the letter. */
static int parse_time(const char *text, const char *p, cm_kind kind, cm_dtype *out, cm_error *err)
{
    static const char *const units[] = {"generic", "Y",  "M",  "W",  "D",  "h",  "m",
                                        "s",       "ms", "us", "ns", "ps", "fs", "as"};
    if (*p != '8')
        return unknown(text, err);
    p++;
    *out = cm_dtype_make(kind, 8);
    out->scale_factor = 1;
    strcpy(out->unit, "generic");
    if (*p == '\0')
        return CM_OK;
    if (*p++ != '[')
        return unknown(text, err);
    if (*p >= '0' && *p <= '9') {
        char *end;
        unsigned long scale = strtoul(p, &end, 10);
        if (scale == 0 || scale > INT32_MAX)
            return unknown(text, err);
        out->scale_factor = (uint32_t)scale;
        p = end;
    }
    size_t nbytes = strcspn(p, "]");
    if (strcmp(p + nbytes, "]") != 0)
        return unknown(text, err);
    if (strncmp(p, "μs", nbytes) == 0 && nbytes == strlen("μs")) {
        strcpy(out->unit, "us");
        return CM_OK;
    }
    for (size_t i = 0; i < COUNT(units); i++) {
        if (strlen(units[i]) == nbytes && strncmp(p, units[i], nbytes) == 0) {
            strcpy(out->unit, units[i]);
            return CM_OK;
        }
    }
    return unknown(text, err);
}

static int parse_counted(const char *text, size_t row, const char *digits, cm_dtype *out,
                         cm_error *err)
{
    if (*digits < '1' || *digits > '9')
        return unknown(text, err);
    char *end;
    unsigned long long count = strtoull(digits, &end, 10);
    if (*end || count > CM_ZARR_MAX_ITEM_NBYTES / CODE[row].unit)
        return unknown(text, err);
    const char *sizes = CODE[row].sizes;
    if (*sizes && (count > 9 || strchr(sizes, '0' + (int)count) == NULL))
        return unknown(text, err);
    *out = cm_dtype_make(CODE[row].kind, (uint32_t)count * CODE[row].unit);
    return CM_OK;
}

int cm_zarr_dtype_from_v2(const char *text, cm_dtype *out, bool *big_endian, cm_error *err)
{
    const char *p = text;
    bool big = *p == '>';
    if (*p && strchr("<>|=", *p) != NULL)
        p++;
    int rc = CM_EUNSUPPORTED;
    if (*p == 'M' || *p == 'm') {
        rc = parse_time(text, p + 1, *p == 'M' ? CM_KIND_DATETIME : CM_KIND_TIMEDELTA, out, err);
    } else if (strcmp(p, "c8") == 0 || strcmp(p, "c16") == 0) {
        *out = cm_dtype_make(CM_KIND_COMPLEX, p[1] == '8' ? 8 : 16);
        rc = CM_OK;
    } else if (strcmp(p, "?") == 0) {
        *out = cm_dtype_make(CM_KIND_BOOL, 1);
        rc = CM_OK;
    } else {
        size_t row = 0;
        while (row < COUNT(CODE) && CODE[row].code != *p)
            row++;
        if (row < COUNT(CODE) && p[1] >= '0' && p[1] <= '9')
            rc = parse_counted(text, row, p + 1, out, err);
        else if (cm_dtype_parse(text, out, NULL) != CM_OK || cm_dtype_is_vlen(out))
            return unknown(text, err);
        else
            rc = CM_OK; /* "int16": codec configurations contain numpy's names too */
    }
    if (rc == CM_OK)
        *big_endian = big && cm_dtype_swap_nbytes(out) > 1;
    return rc;
}

int cm_zarr_dtype_to_v2(const cm_dtype *t, bool big_endian, char *buf, size_t size, cm_error *err)
{
    char order = cm_dtype_swap_nbytes(t) == 1 ? '|' : big_endian ? '>' : '<';
    if (t->kind == CM_KIND_COMPLEX) {
        snprintf(buf, size, "%cc%u", order, t->nbytes);
        return CM_OK;
    }
    if (t->kind == CM_KIND_DATETIME || t->kind == CM_KIND_TIMEDELTA) {
        char letter = t->kind == CM_KIND_DATETIME ? 'M' : 'm';
        if (!t->unit[0] || strcmp(t->unit, "generic") == 0)
            snprintf(buf, size, "%c%c8", order, letter);
        else if (t->scale_factor > 1)
            snprintf(buf, size, "%c%c8[%u%s]", order, letter, t->scale_factor, t->unit);
        else
            snprintf(buf, size, "%c%c8[%s]", order, letter, t->unit);
        return CM_OK;
    }
    if (cm_dtype_is_vlen(t)) {
        snprintf(buf, size, "|O");
        return CM_OK;
    }
    for (size_t i = 0; i < COUNT(CODE); i++) {
        if (CODE[i].kind == t->kind) {
            snprintf(buf, size, "%c%c%u", order, CODE[i].code, t->nbytes / CODE[i].unit);
            return CM_OK;
        }
    }
    return cm_fail(err, CM_EINTERNAL, "an element type that Zarr v2 cannot name");
}
