/* Writes fill values of every type as zarr-python does. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/zarr/internal.h"
#include "model/half.h"

static uint64_t load_bits(const uint8_t *src, uint32_t nbytes)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < nbytes; i++)
        bits |= (uint64_t)src[i] << 8 * i;
    return bits;
}

static cm_json *float_json(const uint8_t *element, uint32_t nbytes, int zarr_format)
{
    uint64_t bits = load_bits(element, nbytes);
    double value;
    uint64_t quiet_nan; /* the meaning of "NaN" */
    if (nbytes == 2) {
        value = cm_half_to_double((uint16_t)bits);
        quiet_nan = 0x7e00;
    } else if (nbytes == 4) {
        float single;
        memcpy(&single, element, 4);
        value = (double)single;
        quiet_nan = 0x7fc00000;
    } else {
        memcpy(&value, element, 8);
        quiet_nan = 0x7ff8000000000000;
    }
    if (isnan(value) && bits != quiet_nan && zarr_format == 3) {
        char text[24];
        snprintf(text, sizeof text, "0x%0*llx", (int)(2 * nbytes), (unsigned long long)bits);
        return cm_json_string(text);
    }
    return cm_json_double(value); /* "NaN", "Infinity" or "-Infinity" if not finite */
}

static cm_json *complex_json(const uint8_t *element, uint32_t nbytes, int zarr_format)
{
    cm_json *pair = cm_json_array();
    int rc = cm_json_append(pair, float_json(element, nbytes / 2, zarr_format), NULL);
    if (rc == CM_OK)
        rc = cm_json_append(pair, float_json(element + nbytes / 2, nbytes / 2, zarr_format), NULL);
    if (rc != CM_OK) {
        cm_json_free(pair);
        return NULL;
    }
    return pair;
}

static cm_json *int_json(const cm_dtype *t, const uint8_t *element)
{
    uint64_t bits = load_bits(element, t->nbytes);
    if (t->kind == CM_KIND_UINT)
        return cm_json_u64(bits);
    unsigned unused = 64 - 8 * t->nbytes;
    return cm_json_i64((int64_t)(bits << unused) >> unused);
}

static cm_json *base64_json(const uint8_t *data, size_t nbytes)
{
    char *text = cm_base64_encode(data, nbytes, NULL);
    cm_json *j = text != NULL ? cm_json_string(text) : NULL;
    free(text);
    return j;
}

static size_t encode_utf8(uint32_t code, char *out)
{
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        code = 0xfffd;
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = n - 1; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(0xf00 >> n | code);
    return n;
}

static cm_json *utf32_json(const uint8_t *element, uint32_t nbytes)
{
    while (nbytes >= 4 && cm_load_le32(element + nbytes - 4) == 0)
        nbytes -= 4;
    char *text = malloc(nbytes + 1);
    if (text == NULL)
        return NULL;
    size_t n = 0;
    for (uint32_t at = 0; at < nbytes; at += 4)
        n += encode_utf8(cm_load_le32(element + at), text + n);
    cm_json *j = cm_json_string_n(text, n);
    free(text);
    return j;
}

static cm_json *element_json(const cm_dtype *t, const uint8_t *element, int zarr_format)
{
    uint32_t nbytes = t->nbytes;
    switch (t->kind) {
    case CM_KIND_BOOL:
        return cm_json_bool(element[0] != 0);
    case CM_KIND_INT:
    case CM_KIND_UINT:
    case CM_KIND_DATETIME:
    case CM_KIND_TIMEDELTA:
        return int_json(t, element);
    case CM_KIND_FLOAT:
        return float_json(element, nbytes, zarr_format);
    case CM_KIND_COMPLEX:
        return complex_json(element, nbytes, zarr_format);
    case CM_KIND_BYTES:
        while (nbytes > 0 && element[nbytes - 1] == 0) /* numpy ignores trailing zeros */
            nbytes--;
        return base64_json(element, nbytes);
    case CM_KIND_RAW:
        return base64_json(element, nbytes);
    case CM_KIND_UTF32:
        return utf32_json(element, nbytes);
    case CM_KIND_STRING:
    case CM_KIND_VLEN_BYTES:
        break;
    }
    return NULL;
}

int cm_zarr_element_to_json(const cm_dtype *t, const uint8_t *element, int zarr_format,
                            cm_json **out, cm_error *err)
{
    *out = element_json(t, element, zarr_format);
    return *out != NULL ? CM_OK : cm_fail(err, CM_ENOMEM, "no memory for a fill_value");
}

int cm_zarr_fill_to_json(const cm_dtype *t, const uint8_t *fill, const char *text, int zarr_format,
                         cm_json **out, cm_error *err)
{
    *out = NULL;
    if (!cm_dtype_is_vlen(t)) {
        if (fill == NULL)
            return cm_fail(err, CM_EINTERNAL, "an array has no fill value");
        return cm_zarr_element_to_json(t, fill, zarr_format, out, err);
    }
    text = text != NULL ? text : "";
    *out = t->kind == CM_KIND_STRING ? cm_json_string(text)
                                     : base64_json((const uint8_t *)text, strlen(text));
    return *out != NULL ? CM_OK : cm_fail(err, CM_ENOMEM, "no memory for a fill_value");
}

/*
 * Whether an element of floats, FLOAT_NBYTES each, has a NaN other than the one written as "NaN".
 */
static bool has_special_nan(const uint8_t *element, uint32_t nbytes, uint32_t float_nbytes)
{
    static const struct {
        uint64_t infinity, nan;
    } bits[] = {
        {0x7c00, 0x7e00}, {0x7f800000, 0x7fc00000}, {0x7ff0000000000000, 0x7ff8000000000000}};
    unsigned row = float_nbytes == 2 ? 0 : float_nbytes == 4 ? 1 : 2;
    bool any = false;
    for (uint32_t at = 0; at < nbytes; at += float_nbytes) {
        uint64_t value = load_bits(element + at, float_nbytes);
        uint64_t magnitude = value & ~((uint64_t)1 << (8 * float_nbytes - 1));
        any = any || (magnitude > bits[row].infinity && value != bits[row].nan);
    }
    return any;
}

int cm_zarr_fill_survives(const cm_zarr_meta *meta, bool *out, cm_error *err)
{
    const cm_dtype *t = &meta->dtype;
    cm_json *j = NULL, *back = NULL;
    cm_buf text = {0};
    uint8_t *fill = NULL;
    char *fill_text = NULL;
    *out = meta->fill == NULL; /* text is valid UTF-8 without NULs */
    if (meta->fill == NULL)
        return CM_OK;
    if (t->kind == CM_KIND_FLOAT && has_special_nan(meta->fill, t->nbytes, t->nbytes))
        return CM_OK;
    if (t->kind == CM_KIND_COMPLEX && has_special_nan(meta->fill, t->nbytes, t->nbytes / 2))
        return CM_OK;
    int rc = cm_zarr_fill_to_json(t, meta->fill, NULL, meta->zarr_format, &j, err);
    if (rc == CM_OK)
        rc = cm_json_write(j, false, &text, err);
    if (rc == CM_OK)
        rc = cm_json_parse(text.data, text.nbytes, &back, err);
    if (rc == CM_OK) {
        rc = cm_zarr_fill_from_json(back, t, &fill, &fill_text, err);
        *out = rc == CM_OK && memcmp(fill, meta->fill, t->nbytes) == 0;
        rc = rc == CM_EUNSUPPORTED ? CM_OK : rc;
    }
    free(fill);
    free(fill_text);
    cm_buf_release(&text);
    cm_json_free(j);
    cm_json_free(back);
    return rc;
}
