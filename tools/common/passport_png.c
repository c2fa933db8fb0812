/*
 * A PNG (W3C Recommendation, second edition) of 8-bit indices into a palette, whose data is a zlib
 * stream of stored blocks (RFC 1950, 1951): pictures are of a few kilobytes.
 *
 * The palette is viridis (van der Walt and Smith, 2015) through a few of its colours: it rises
 * evenly in lightness, so that it can be read without seeing colours, and in print.
 */
#include "passport_png.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"

enum {
    MISSING = 255, /* the index after the scale's */
    BLOCK = 65535  /* bytes of a stored block at most */
};

static const uint8_t ANCHORS[][3] = {{68, 1, 84},    {70, 50, 127},  {54, 92, 141},
                                     {39, 127, 142}, {31, 161, 135}, {74, 194, 109},
                                     {159, 218, 58}, {253, 231, 37}};

static void make_palette(uint8_t *rgb)
{
    const unsigned nspans = sizeof(ANCHORS) / sizeof(ANCHORS[0]) - 1;
    for (unsigned i = 0; i < MISSING; i++) {
        const double at = (double)i / (MISSING - 1) * nspans;
        const unsigned k = at < nspans ? (unsigned)at : nspans - 1;
        for (unsigned c = 0; c < 3; c++)
            rgb[3 * i + c] =
                (uint8_t)lround(ANCHORS[k][c] + (at - k) * (ANCHORS[k + 1][c] - ANCHORS[k][c]));
    }
    memset(rgb + 3 * (size_t)MISSING, 0xb4, 3);
}

/* ---- chunks ---- */

static uint32_t crc(const uint8_t *data, size_t nbytes)
{
    uint32_t c = 0xffffffffu;
    for (size_t i = 0; i < nbytes; i++) {
        c ^= data[i];
        for (unsigned k = 0; k < 8; k++)
            c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
    }
    return ~c;
}

static uint32_t adler(const uint8_t *data, size_t nbytes)
{
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < nbytes; i++) {
        a = (a + data[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

static int put_be32(cm_buf *to, uint32_t v, cm_error *err)
{
    uint8_t bytes[4];
    cm_store_be32(bytes, v);
    return cm_buf_append(to, bytes, sizeof bytes, err);
}

static int put_chunk(cm_buf *to, const char *type, const uint8_t *data, size_t nbytes,
                     cm_error *err)
{
    int rc = put_be32(to, (uint32_t)nbytes, err);
    const size_t from = to->nbytes;
    if (rc == CM_OK)
        rc = cm_buf_append(to, type, 4, err);
    if (rc == CM_OK && nbytes > 0)
        rc = cm_buf_append(to, data, nbytes, err);
    return rc == CM_OK ? put_be32(to, crc(to->data + from, to->nbytes - from), err) : rc;
}

/* DATA as a zlib stream. */
static int store(const uint8_t *data, size_t nbytes, cm_buf *to, cm_error *err)
{
    int rc = cm_buf_append(to, "\x78\x01", 2, err);
    for (size_t at = 0; rc == CM_OK && at < nbytes; at += BLOCK) {
        const size_t n = nbytes - at < BLOCK ? nbytes - at : BLOCK;
        const uint8_t head[5] = {at + n == nbytes, (uint8_t)n, (uint8_t)(n >> 8),
                                 (uint8_t)(~n & 0xff), (uint8_t)(~n >> 8 & 0xff)};
        rc = cm_buf_append(to, head, sizeof head, err);
        if (rc == CM_OK)
            rc = cm_buf_append(to, data + at, n, err);
    }
    return rc == CM_OK ? put_be32(to, adler(data, nbytes), err) : rc;
}

/* ROWS: HEIGHT rows of WIDTH indices, each after a byte for its filter, 0. */
static int encode(const cm_buf *rows, unsigned width, unsigned height, cm_buf *png, cm_error *err)
{
    uint8_t head[13] = {0}, palette[3 * (MISSING + 1)];
    cm_buf data = {0};
    cm_store_be32(head, width);
    cm_store_be32(head + 4, height);
    head[8] = 8; /* bits */
    head[9] = 3; /* of an index */
    make_palette(palette);
    int rc = cm_buf_append(png, "\x89PNG\r\n\x1a\n", 8, err);
    if (rc == CM_OK)
        rc = put_chunk(png, "IHDR", head, sizeof head, err);
    if (rc == CM_OK)
        rc = put_chunk(png, "PLTE", palette, sizeof palette, err);
    if (rc == CM_OK)
        rc = store(rows->data, rows->nbytes, &data, err);
    if (rc == CM_OK)
        rc = put_chunk(png, "IDAT", data.data, data.nbytes, err);
    if (rc == CM_OK)
        rc = put_chunk(png, "IEND", NULL, 0, err);
    cm_buf_release(&data);
    return rc;
}

static char *data_uri(const cm_buf *rows, unsigned width, unsigned height, cm_error *err)
{
    cm_buf png = {0};
    char *uri = NULL;
    if (encode(rows, width, height, &png, err) == CM_OK) {
        char *text = cm_base64_encode(png.data, png.nbytes, err);
        if (text != NULL)
            uri = cm_asprintf(err, "data:image/png;base64,%s", text);
        free(text);
    }
    cm_buf_release(&png);
    return uri;
}

/* ---- pictures ---- */

static uint8_t index_of(const passport_scale *s, float value)
{
    if (isnan(value))
        return MISSING;
    const double at = s->high > s->low ? (value - s->low) / (s->high - s->low) : 0.5;
    return (uint8_t)lround((at < 0 ? 0 : at > 1 ? 1 : at) * (MISSING - 1));
}

char *passport_png(const cm_passport_picture *p, const passport_scale *scale, bool flipped,
                   cm_error *err)
{
    cm_buf rows = {0};
    char *uri = NULL;
    if (cm_buf_resize(&rows, (size_t)p->height * (p->width + 1), err) == CM_OK) {
        uint8_t *to = rows.data;
        for (unsigned r = 0; r < p->height; r++) {
            const float *row = p->value + (size_t)(flipped ? p->height - 1 - r : r) * p->width;
            *to++ = 0;
            for (unsigned c = 0; c < p->width; c++)
                *to++ = index_of(scale, row[c]);
        }
        uri = data_uri(&rows, p->width, p->height, err);
    }
    cm_buf_release(&rows);
    return uri;
}

char *passport_png_scale(cm_error *err)
{
    uint8_t row[1 + MISSING] = {0};
    for (unsigned i = 0; i < MISSING; i++)
        row[1 + i] = (uint8_t)i;
    return data_uri(&(cm_buf){.data = row, .nbytes = sizeof row}, MISSING, 1, err);
}
