/*
 * Parses fill values of every type from JSON.
 *
 * Zarr v3 core, "fill value representation", the data types of zarr-extensions, and
 * zarr.readthedocs.io "Zarr storage specification 2", "Fill value encoding".
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/utf8.h"
#include "format/zarr/internal.h"
#include "model/half.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

static int bad(const char *what, const cm_dtype *t, cm_error *err)
{
    char name[32];
    return cm_fail(err, CM_EFORMAT, "fill_value %s %s", what, cm_dtype_name(t, name, sizeof name));
}

/* ---- numbers ---- */

/* Bits of one float of NBYTES. */
static void store_bits(uint64_t bits, uint32_t nbytes, uint8_t *dst)
{
    for (uint32_t i = 0; i < nbytes; i++)
        dst[i] = (uint8_t)(bits >> 8 * i);
}

/* "0x7fc00001": the bits, most significant first.  False for any other TEXT. */
static bool parse_hex_bits(const char *text, uint32_t nbytes, uint8_t *dst)
{
    if (strncmp(text, "0x", 2) != 0 || strlen(text) != 2 + 2 * (size_t)nbytes ||
        strspn(text + 2, "0123456789abcdefABCDEF") != 2 * (size_t)nbytes)
        return false;
    store_bits(strtoull(text + 2, NULL, 16), nbytes, dst);
    return true;
}

/* "0", "-1.5e3", "nan", "inf": some writers quote numbers, and zarr-python accepts it. */
static bool number_from_text(const char *text, double *out)
{
    char *end;
    if (text[strspn(text, "0123456789.+-aefintyAEFINTY")] != '\0' || text[0] == '\0')
        return false;
    *out = strtod(text, &end);
    return *end == '\0';
}

static int float_from_json(const cm_json *j, const cm_dtype *t, uint32_t nbytes, uint8_t *dst,
                           cm_error *err)
{
    static const struct {
        const char *text;
        uint64_t bits[3]; /* float16, float32, float64; "NaN" means exactly this NaN (v3 core) */
    } special[] = {
        {"NaN", {0x7e00, 0x7fc00000, 0x7ff8000000000000}},
        {"Infinity", {0x7c00, 0x7f800000, 0x7ff0000000000000}},
        {"+Infinity", {0x7c00, 0x7f800000, 0x7ff0000000000000}},
        {"-Infinity", {0xfc00, 0xff800000, 0xfff0000000000000}},
    };
    unsigned column = nbytes == 2 ? 0 : nbytes == 4 ? 1 : 2;
    const char *text = cm_json_text(j, NULL);
    if (text != NULL) {
        for (size_t i = 0; i < COUNT(special); i++) {
            if (strcmp(text, special[i].text) == 0) {
                store_bits(special[i].bits[column], nbytes, dst);
                return CM_OK;
            }
        }
        if (parse_hex_bits(text, nbytes, dst))
            return CM_OK;
    }
    double value;
    bool truth;
    if (text != NULL ? !number_from_text(text, &value) : !cm_json_get_double(j, &value)) {
        if (text != NULL)
            return bad("is text that is not a valid", t, err);
        if (!cm_json_get_bool(j, &truth))
            return bad("is not a valid", t, err);
        value = truth;
    }
    if (isnan(value)) {
        store_bits(special[0].bits[column], nbytes, dst);
    } else if (nbytes == 8) {
        memcpy(dst, &value, 8);
    } else if (nbytes == 4) {
        /* Halfway between the largest float and the next power of two. */
        if (isfinite(value) && fabs(value) >= 0x1.ffffffp127)
            return bad("is too large for", t, err);
        float single = (float)value;
        memcpy(dst, &single, 4);
    } else {
        uint16_t half = cm_half_from_double(value);
        if (isfinite(value) && (half & 0x7fff) == 0x7c00)
            return bad("is too large for", t, err);
        memcpy(dst, &half, 2);
    }
    return CM_OK;
}

static int int_from_json(const cm_json *j, const cm_dtype *t, uint8_t *dst, cm_error *err)
{
    uint32_t bits = 8 * t->nbytes;
    int64_t i;
    uint64_t u;
    double d;
    bool truth;
    const char *text = cm_json_text(j, NULL);
    if (text != NULL && cm_parse_i64(text, &i, NULL) == CM_OK) {
        u = (uint64_t)i; /* a quoted number, which zarr-python accepts too */
    } else if (cm_json_get_bool(j, &truth)) {
        i = truth;
        u = truth;
    } else if (cm_json_is(j, CM_JSON_DOUBLE) && cm_json_get_double(j, &d)) {
        /* Some writers print integers with a decimal point; below 2^53 that loses nothing. */
        if (!(fabs(d) <= 0x1p53) || d != floor(d))
            return bad("is not a valid", t, err);
        i = (int64_t)d;
        u = (uint64_t)i;
    } else if (cm_json_get_i64(j, &i)) {
        u = (uint64_t)i;
    } else if (cm_json_get_u64(j, &u)) {
        i = INT64_MAX;
        if (t->kind != CM_KIND_UINT || bits < 64)
            return bad("is too large for", t, err);
    } else {
        return bad("is not a valid", t, err);
    }
    if (t->kind == CM_KIND_UINT) {
        if (i < 0)
            return bad("is negative, unlike", t, err);
        if (bits < 64 && u >> bits)
            return bad("is too large for", t, err);
    } else if (bits < 64 && (i < -((int64_t)1 << (bits - 1)) || i >= (int64_t)1 << (bits - 1))) {
        return bad("is too large for", t, err);
    }
    store_bits(u, t->nbytes, dst);
    return CM_OK;
}

static int bool_from_json(const cm_json *j, const cm_dtype *t, uint8_t *dst, cm_error *err)
{
    bool value;
    double number;
    if (cm_json_get_bool(j, &value))
        *dst = value;
    else if (cm_json_get_double(j, &number) && (number == 0 || number == 1))
        *dst = number == 1;
    else
        return bad("is not a valid", t, err);
    return CM_OK;
}

static int time_from_json(const cm_json *j, const cm_dtype *t, uint8_t *dst, cm_error *err)
{
    const char *text = cm_json_text(j, NULL);
    int64_t value = INT64_MIN; /* numpy's NaT */
    if ((text == NULL || strcmp(text, "NaT") != 0) && !cm_json_get_i64(j, &value))
        return bad("is not a valid", t, err);
    store_bits((uint64_t)value, 8, dst);
    return CM_OK;
}

/* ---- fixed-length bytes and text ---- */

static bool is_zero(const cm_json *j)
{
    double number;
    return cm_json_get_double(j, &number) && number == 0;
}

/* Bytes from a base64 text or a list of numbers, on the heap. */
static int bytes_from_json(const cm_json *j, const cm_dtype *t, uint8_t **data, size_t *nbytes,
                           cm_error *err)
{
    size_t length;
    const char *text = cm_json_text(j, &length);
    if (text != NULL)
        return cm_base64_decode(text, length, data, nbytes) ? CM_OK
                                                            : bad("is not base64 of", t, err);
    if (!cm_json_is(j, CM_JSON_ARRAY))
        return bad("is not a valid", t, err);
    length = cm_json_length(j);
    uint8_t *list = cm_calloc(length, 1, err);
    if (list == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < length; i++) {
        uint64_t byte;
        if (!cm_json_get_u64(cm_json_at(j, i), &byte) || byte > 255) {
            free(list);
            return bad("is a list that holds more than bytes, for", t, err);
        }
        list[i] = (uint8_t)byte;
    }
    *data = list;
    *nbytes = length;
    return CM_OK;
}

static int fixed_bytes_from_json(const cm_json *j, const cm_dtype *t, uint8_t *dst, cm_error *err)
{
    memset(dst, 0, t->nbytes);
    if (is_zero(j)) /* older writers: an empty element */
        return CM_OK;
    uint8_t *data;
    size_t nbytes;
    int rc = bytes_from_json(j, t, &data, &nbytes, err);
    const char *text = cm_json_text(j, NULL);
    if (rc == CM_EFORMAT && text != NULL && t->kind == CM_KIND_BYTES && strlen(text) <= t->nbytes) {
        memcpy(dst, text, strlen(text)); /* NCZarr: the characters themselves */
        return CM_OK;
    }
    if (rc != CM_OK)
        return rc;
    if (nbytes > t->nbytes)
        rc = bad("is longer than", t, err);
    else
        memcpy(dst, data, nbytes);
    free(data);
    return rc;
}

/* One character of valid UTF-8 at P; its length, or 0. */
static size_t decode_utf8(const uint8_t *p, size_t left, uint32_t *out)
{
    size_t n = cm_utf8_length(p, left);
    if (n == 0)
        return 0;
    *out = n == 1 ? p[0] : p[0] & (0x7f >> n);
    for (size_t i = 1; i < n; i++)
        *out = *out << 6 | (p[i] & 0x3f);
    return n;
}

static int utf32_from_json(const cm_json *j, const cm_dtype *t, uint8_t *dst, cm_error *err)
{
    memset(dst, 0, t->nbytes);
    if (is_zero(j))
        return CM_OK;
    size_t left;
    const char *text = cm_json_text(j, &left);
    if (text == NULL)
        return bad("is not a valid", t, err);
    for (uint32_t at = 0; left > 0; at += 4) {
        uint32_t code;
        size_t n = decode_utf8((const uint8_t *)text, left, &code);
        if (n == 0)
            return bad("is not UTF-8, as is needed for", t, err);
        if (at + 4 > t->nbytes)
            return bad("is longer than", t, err);
        cm_store_le32(dst + at, code);
        text += n;
        left -= n;
    }
    return CM_OK;
}

int cm_zarr_element_from_json(const cm_json *j, const cm_dtype *t, uint8_t *dst, cm_error *err)
{
    switch (t->kind) {
    case CM_KIND_BOOL:
        return bool_from_json(j, t, dst, err);
    case CM_KIND_INT:
    case CM_KIND_UINT:
        return int_from_json(j, t, dst, err);
    case CM_KIND_FLOAT:
        return float_from_json(j, t, t->nbytes, dst, err);
    case CM_KIND_COMPLEX: {
        uint32_t half = t->nbytes / 2;
        if (!cm_json_is(j, CM_JSON_ARRAY)) { /* a real number without an imaginary part */
            memset(dst + half, 0, half);
            return float_from_json(j, t, half, dst, err);
        }
        if (cm_json_length(j) != 2)
            return bad("is not a valid", t, err);
        int rc = float_from_json(cm_json_at(j, 0), t, half, dst, err);
        return rc != CM_OK ? rc : float_from_json(cm_json_at(j, 1), t, half, dst + half, err);
    }
    case CM_KIND_BYTES:
    case CM_KIND_RAW:
        return fixed_bytes_from_json(j, t, dst, err);
    case CM_KIND_UTF32:
        return utf32_from_json(j, t, dst, err);
    case CM_KIND_DATETIME:
    case CM_KIND_TIMEDELTA:
        return time_from_json(j, t, dst, err);
    case CM_KIND_STRING:
    case CM_KIND_VLEN_BYTES:
        break;
    }
    return cm_fail(err, CM_EINTERNAL, "an element of variable length has no fixed bytes");
}

/* Numbers become text as by zarr-python's str(): 0 is "0". */
static int text_from_number(const cm_json *j, const cm_dtype *t, char **out, cm_error *err)
{
    int64_t i;
    double d;
    bool truth;
    *out = NULL;
    if (cm_json_get_bool(j, &truth))
        *out = cm_strdup(truth ? "True" : "False", err);
    else if (cm_json_get_i64(j, &i))
        *out = cm_asprintf(err, "%lld", (long long)i);
    else if (cm_json_get_double(j, &d) && d == floor(d) && fabs(d) < 1e15)
        *out = cm_asprintf(err, "%.1f", d);
    else
        return bad("is not a valid", t, err);
    return *out != NULL ? CM_OK : CM_ENOMEM;
}

static int text_from_json(const cm_json *j, const cm_dtype *t, char **out, cm_error *err)
{
    if (t->kind == CM_KIND_STRING && cm_json_text(j, NULL) == NULL)
        return text_from_number(j, t, out, err);
    if (is_zero(j)) { /* zarr-python 2 wrote it for bytes without a fill value */
        *out = cm_strdup("", err);
        return *out != NULL ? CM_OK : CM_ENOMEM;
    }
    size_t nbytes;
    const char *text = cm_json_text(j, &nbytes);
    uint8_t *data = NULL;
    if (t->kind == CM_KIND_VLEN_BYTES) {
        int rc = bytes_from_json(j, t, &data, &nbytes, err);
        if (rc != CM_OK)
            return rc;
        text = (const char *)data;
    }
    if (text == NULL)
        return bad("is not a valid", t, err);
    int rc = CM_OK;
    if (memchr(text, '\0', nbytes) != NULL)
        rc = cm_fail(err, CM_EUNSUPPORTED, "a fill_value with a NUL in it");
    else if ((*out = cm_calloc(nbytes + 1, 1, err)) == NULL)
        rc = CM_ENOMEM;
    else
        memcpy(*out, text, nbytes);
    free(data);
    return rc;
}

int cm_zarr_fill_from_json(const cm_json *j, const cm_dtype *t, uint8_t **fill, char **text,
                           cm_error *err)
{
    *fill = NULL;
    *text = NULL;
    int rc;
    if (cm_dtype_is_vlen(t)) {
        rc = text_from_json(j, t, text, err);
    } else {
        *fill = cm_calloc(t->nbytes, 1, err);
        rc = *fill != NULL ? cm_zarr_element_from_json(j, t, *fill, err) : CM_ENOMEM;
    }
    if (rc != CM_OK) {
        free(*fill);
        *fill = NULL;
    }
    /* An unknown fill value makes only this array unsupported, not its store unreadable. */
    return rc == CM_EFORMAT ? cm_fail(err, CM_EUNSUPPORTED, "%s", err != NULL ? err->text : "")
                            : rc;
}
