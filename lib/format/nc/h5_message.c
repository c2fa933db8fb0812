#include "format/nc/h5_message.h"

#include <stdlib.h>
#include <string.h>

enum {
    CLASS_FIXED = 0,
    CLASS_FLOAT = 1,
    CLASS_STRING = 3,
    CLASS_COMPOUND = 6,
    CLASS_REFERENCE = 7,
    CLASS_VLEN = 9,
    LONGEST_NAME = 250 /* netCDF-C's names have at most 256 bytes */
};

/* netCDF-C normalises names that are not ASCII, and refuses some that it never writes. */
static bool is_usual(const uint8_t *p, uint64_t nbytes)
{
    for (uint64_t i = 0; i < nbytes; i++)
        if (p[i] < ' ' || p[i] > '~' || p[i] == '/')
            return false;
    bool letter = (p[0] >= 'a' && p[0] <= 'z') || (p[0] >= 'A' && p[0] <= 'Z') || p[0] == '_';
    return (letter || (p[0] >= '0' && p[0] <= '9')) && p[nbytes - 1] != ' ';
}

/* ---- types ---- */

static bool good_width(uint32_t nbytes)
{
    return nbytes == 1 || nbytes == 2 || nbytes == 4 || nbytes == 8;
}

/* Integers that use all their bits. */
static int decode_fixed(cm_h5_cursor *c, unsigned bits, cm_h5_type *out)
{
    uint64_t offset = cm_h5_take_number(c, 2), precision = cm_h5_take_number(c, 2);
    if (c->bad || (bits & ~9u) != 0 || !good_width(out->nbytes) || offset != 0 ||
        precision != 8 * (uint64_t)out->nbytes)
        return CM_EUNSUPPORTED;
    out->class = CM_H5_CLASS_NUMBER;
    out->big_endian = (bits & 1) != 0 && out->nbytes > 1;
    out->dtype = cm_dtype_make(bits & 8 ? CM_KIND_INT : CM_KIND_UINT, out->nbytes);
    return CM_OK;
}

/* float32 and float64 of IEEE 754. */
static int decode_float(cm_h5_cursor *c, unsigned bits, cm_h5_type *out)
{
    static const uint8_t single[] = {0, 0, 32, 0, 23, 8, 0, 23, 127, 0, 0, 0};
    static const uint8_t twice[] = {0, 0, 64, 0, 52, 11, 0, 52, 255, 3, 0, 0};
    const uint8_t *p = cm_h5_take(c, sizeof(single));
    bool is_single = out->nbytes == 4 && p != NULL && memcmp(p, single, sizeof(single)) == 0;
    bool is_double = out->nbytes == 8 && p != NULL && memcmp(p, twice, sizeof(twice)) == 0;
    /* The byte order, a mantissa with an implied first bit, and the sign in the last bit. */
    if ((bits & ~1u) != (is_single ? 0x1f20u : 0x3f20u) || !(is_single || is_double))
        return CM_EUNSUPPORTED;
    out->class = CM_H5_CLASS_NUMBER;
    out->big_endian = (bits & 1) != 0;
    out->dtype = cm_dtype_make(CM_KIND_FLOAT, out->nbytes);
    return CM_OK;
}

static int decode_text(unsigned bits, cm_h5_type *out)
{
    unsigned padding = bits & 15, charset = bits >> 4;
    if (padding > 2 || charset > 1 || out->nbytes == 0)
        return CM_EUNSUPPORTED;
    out->class = CM_H5_CLASS_TEXT;
    out->ends_in_nul = padding == 0;
    out->dtype = cm_dtype_make(CM_KIND_BYTES, out->nbytes);
    return CM_OK;
}

/* Strings, and lists of references to objects. */
static int decode_vlen(cm_h5_cursor *c, unsigned bits, cm_h5_type *out)
{
    enum {
        SEQUENCE = 0,
        STRING = 1,
        OBJECT = 0
    };
    unsigned kind = bits & 15;
    uint64_t head = cm_h5_take_number(c, 4);
    cm_h5_type base = {.nbytes = (uint32_t)cm_h5_take_number(c, 4)};
    unsigned class = (unsigned)head & 15, own = (unsigned)head >> 4 & 15;
    if (c->bad || bits >> 12 != 0 || own < 1 || own > 3)
        return CM_EUNSUPPORTED;
    if (kind == STRING && base.nbytes == 1) {
        /* HDF5 1.14 refuses integers with more bits than their bytes hold, 1.10 does not. */
        int rc = class == CLASS_STRING  ? decode_text((unsigned)head >> 8, &base)
                 : class == CLASS_FIXED ? decode_fixed(c, (unsigned)head >> 8, &base)
                                        : CM_EUNSUPPORTED;
        if (rc != CM_OK)
            return rc;
        out->class = CM_H5_CLASS_VLEN_TEXT;
        out->dtype = cm_dtype_make(CM_KIND_STRING, 0);
        return CM_OK;
    }
    if (kind != SEQUENCE || class != CLASS_REFERENCE || (head >> 8 & 15) != OBJECT)
        return CM_EUNSUPPORTED;
    out->class = CM_H5_CLASS_VLEN_REFERENCE;
    return CM_OK;
}

/* Skips the name of a member, which older versions pad with NULs. */
static void take_name(cm_h5_cursor *c, unsigned version)
{
    const uint8_t *end = c->bad ? NULL : memchr(c->at, '\0', (size_t)(c->end - c->at));
    uint64_t n = end == NULL ? 0 : (uint64_t)(end - c->at) + 1;
    c->bad = n < 2 || n > LONGEST_NAME;
    (void)cm_h5_take(c, version < 3 ? (n + 7) / 8 * 8 : n);
}

/* Checks a member of a compound of SIZE, an integer or a reference, and finds its end. */
static bool is_member(cm_h5_cursor *c, unsigned version, uint32_t size, uint64_t *end)
{
    unsigned width = size < 1u << 8 ? 1 : size < 1u << 16 ? 2 : 4;
    take_name(c, version);
    uint64_t offset = cm_h5_take_number(c, version < 3 ? 4 : width);
    if (version == 1)
        (void)cm_h5_take(c, 4 + 4 + 4 + 16); /* for members that are arrays */
    uint64_t head = cm_h5_take_number(c, 4);
    cm_h5_type t = {.nbytes = (uint32_t)cm_h5_take_number(c, 4)};
    unsigned class = (unsigned)head & 15, bits = (unsigned)(head >> 8), own = (head >> 4) & 15;
    bool known = class == CLASS_REFERENCE
                     ? bits == 0 && t.nbytes == 8
                     : class == CLASS_FIXED && decode_fixed(c, bits, &t) == CM_OK;
    bool behind = offset >= *end;
    *end = offset + t.nbytes;
    return !c->bad && known && own >= 1 && own <= 3 && behind && *end <= size;
}

/* The list of references to a scale; checked, but not read. */
static int decode_compound(cm_h5_cursor *c, unsigned bits, unsigned version, cm_h5_type *out)
{
    enum {
        MOST_MEMBERS = 4
    };
    uint64_t end = 0;
    bool good = bits > 0 && bits <= MOST_MEMBERS;
    for (unsigned i = 0; good && i < bits; i++)
        good = is_member(c, version, out->nbytes, &end);
    out->class = CM_H5_CLASS_COMPOUND;
    return good ? CM_OK : CM_EUNSUPPORTED;
}

int cm_h5_type_decode(const uint8_t *p, size_t nbytes, cm_h5_type *out)
{
    cm_h5_cursor c = {p, p + nbytes, false};
    uint64_t head = cm_h5_take_number(&c, 1);
    unsigned bits = (unsigned)cm_h5_take_number(&c, 3), version = (unsigned)head >> 4;
    *out = (cm_h5_type){.nbytes = (uint32_t)cm_h5_take_number(&c, 4)};
    if (c.bad || version < 1 || version > 3)
        return CM_EUNSUPPORTED;
    switch (head & 15) {
    case CLASS_FIXED:
        return decode_fixed(&c, bits, out);
    case CLASS_FLOAT:
        return decode_float(&c, bits, out);
    case CLASS_STRING:
        return decode_text(bits, out);
    case CLASS_VLEN:
        return decode_vlen(&c, bits, out);
    case CLASS_COMPOUND:
        return decode_compound(&c, bits, version, out);
    default:
        return CM_EUNSUPPORTED;
    }
}

/* ---- shapes ---- */

int cm_h5_space_decode(const cm_h5_bytes *b, const uint8_t *p, size_t nbytes, cm_h5_space *out)
{
    enum {
        HAS_MOST = 1,
        SCALAR = 0,
        SIMPLE = 1,
        NONE = 2
    };
    cm_h5_cursor c = {p, p + nbytes, false};
    uint64_t version = cm_h5_take_number(&c, 1);
    unsigned rank = (unsigned)cm_h5_take_number(&c, 1), flags = (unsigned)cm_h5_take_number(&c, 1);
    uint64_t kind = rank > 0 ? SIMPLE : SCALAR;
    if (version == 1)
        (void)cm_h5_take(&c, 5);
    else
        kind = cm_h5_take_number(&c, 1);
    if (c.bad || version < 1 || version > 2 || rank > CM_MAX_RANK || flags > HAS_MOST ||
        kind > NONE || (kind == SIMPLE) != (rank > 0))
        return CM_EUNSUPPORTED;
    out->null = kind == NONE;
    out->rank = rank;
    out->nelem = !out->null;
    for (unsigned j = 0; j < rank; j++) {
        out->extent[j] = out->most[j] = cm_h5_take_number(&c, b->length_nbytes);
        if (!cm_mul_u64(out->nelem, out->extent[j], &out->nelem))
            return CM_EUNSUPPORTED;
    }
    for (unsigned j = 0; j < rank && flags == HAS_MOST; j++) {
        out->most[j] = cm_h5_take_place(&c, b->length_nbytes);
        if (out->extent[j] > out->most[j])
            return CM_EUNSUPPORTED;
    }
    return c.bad ? CM_EUNSUPPORTED : CM_OK;
}

/* ---- attributes ---- */

/* Takes NBYTES, which version 1 of the message pads to a multiple of 8. */
static const uint8_t *take_part(cm_h5_cursor *c, unsigned version, uint64_t nbytes)
{
    return cm_h5_take(c, version == 1 ? (nbytes + 7) / 8 * 8 : nbytes);
}

/* True for a name of NBYTES with one NUL, at its end. */
static bool is_name(const uint8_t *p, uint64_t nbytes)
{
    return p != NULL && nbytes > 1 && nbytes <= LONGEST_NAME && p[nbytes - 1] == '\0' &&
           is_usual(p, nbytes - 1);
}

int cm_h5_attribute_decode(const cm_h5_bytes *b, const uint8_t *p, size_t nbytes,
                           cm_h5_attribute *out)
{
    cm_h5_cursor c = {p, p + nbytes, false};
    unsigned version = (unsigned)cm_h5_take_number(&c, 1);
    uint64_t flags = cm_h5_take_number(&c, 1); /* of shared types; reserved in version 1 */
    uint64_t name_nbytes = cm_h5_take_number(&c, 2), type_nbytes = cm_h5_take_number(&c, 2);
    uint64_t space_nbytes = cm_h5_take_number(&c, 2), all;
    uint64_t charset = version == 3 ? cm_h5_take_number(&c, 1) : 0;
    const uint8_t *name = take_part(&c, version, name_nbytes);
    const uint8_t *type = take_part(&c, version, type_nbytes);
    const uint8_t *space = take_part(&c, version, space_nbytes);
    if (c.bad || version < 1 || version > 3 || flags != 0 || charset > 1 ||
        !is_name(name, name_nbytes))
        return CM_EUNSUPPORTED;
    cm_h5_space shape;
    out->name = (const char *)name;
    int rc = cm_h5_type_decode(type, (size_t)type_nbytes, &out->type);
    if (rc == CM_OK)
        rc = cm_h5_space_decode(b, space, (size_t)space_nbytes, &shape);
    if (rc != CM_OK)
        return rc;
    out->rank = shape.rank;
    out->nelem = shape.nelem;
    if (!cm_mul_u64(out->nelem, out->type.nbytes, &all))
        return CM_EUNSUPPORTED;
    out->data = cm_h5_take(&c, all);
    return c.bad ? CM_EUNSUPPORTED : CM_OK;
}

/* ---- fill values, layouts and filters ---- */

int cm_h5_fill_decode(const uint8_t *p, size_t nbytes, cm_h5_fill_message *out)
{
    enum {
        NEVER = 1, /* fill time */
        UNDEFINED = 0x10,
        HAS_VALUE = 0x20
    };
    cm_h5_cursor c = {p, p + nbytes, false};
    uint64_t version = cm_h5_take_number(&c, 1), when;
    bool has_value;
    *out = (cm_h5_fill_message){0};
    if (version == 3) {
        unsigned flags = (unsigned)cm_h5_take_number(&c, 1);
        when = flags >> 2 & 3;
        has_value = flags & HAS_VALUE;
        out->defined = !(flags & UNDEFINED);
        if (flags >> 6 != 0 || (has_value && !out->defined))
            return CM_EUNSUPPORTED;
    } else if (version == 2) {
        (void)cm_h5_take(&c, 1); /* allocation time */
        when = cm_h5_take_number(&c, 1);
        uint64_t defined = cm_h5_take_number(&c, 1);
        has_value = out->defined = defined == 1;
        if (defined > 1)
            return CM_EUNSUPPORTED;
    } else {
        return CM_EUNSUPPORTED;
    }
    if (when > 2)
        return CM_EUNSUPPORTED;
    out->never = when == NEVER;
    if (has_value)
        out->nbytes = (uint32_t)cm_h5_take_number(&c, 4);
    if (out->nbytes > 0)
        out->value = cm_h5_take(&c, out->nbytes);
    /* Version 2 writes an empty value for the default; version 3 does not. */
    bool empty = has_value && version == 3 && out->nbytes == 0;
    return c.bad || empty ? CM_EUNSUPPORTED : CM_OK;
}

int cm_h5_layout_decode(const cm_h5_bytes *b, const uint8_t *p, size_t nbytes, cm_h5_layout *out)
{
    enum {
        VERSION = 3,
        CONTIGUOUS = 1,
        CHUNKED = 2
    };
    cm_h5_cursor c = {p, p + nbytes, false};
    *out = (cm_h5_layout){0};
    uint64_t version = cm_h5_take_number(&c, 1), class = cm_h5_take_number(&c, 1);
    if (version != VERSION || (class != CONTIGUOUS && class != CHUNKED))
        return CM_EUNSUPPORTED;
    out->chunked = class == CHUNKED;
    if (!out->chunked) {
        out->address = cm_h5_take_place(&c, b->offset_nbytes);
        out->nbytes = cm_h5_take_number(&c, b->length_nbytes);
        return c.bad ? CM_EUNSUPPORTED : CM_OK;
    }
    /* Including the dimension of the element's bytes. */
    unsigned rank = (unsigned)cm_h5_take_number(&c, 1);
    if (rank < 2 || rank > CM_MAX_RANK + 1)
        return CM_EUNSUPPORTED;
    out->address = cm_h5_take_place(&c, b->offset_nbytes);
    out->rank = rank - 1;
    uint64_t all = 1; /* bytes of a chunk, at most 4 GiB in HDF5 */
    for (unsigned j = 0; j < out->rank; j++) {
        out->chunk[j] = cm_h5_take_number(&c, 4);
        if (out->chunk[j] == 0 || !cm_mul_u64(all, out->chunk[j], &all))
            return CM_EUNSUPPORTED;
    }
    out->itemsize = (uint32_t)cm_h5_take_number(&c, 4);
    bool fits = cm_mul_u64(all, out->itemsize, &all) && all <= UINT32_MAX;
    return c.bad || !fits ? CM_EUNSUPPORTED : CM_OK;
}

int cm_h5_filters_decode(const uint8_t *p, size_t nbytes, cm_h5_filter *out, size_t most, size_t *n)
{
    enum {
        NUMBERED = 256 /* from here on filters have names in version 2 as well */
    };
    cm_h5_cursor c = {p, p + nbytes, false};
    uint64_t version = cm_h5_take_number(&c, 1);
    *n = (size_t)cm_h5_take_number(&c, 1);
    if (version == 1)
        (void)cm_h5_take(&c, 6);
    if (c.bad || version < 1 || version > 2 || *n == 0 || *n > most)
        return CM_EUNSUPPORTED;
    for (size_t i = 0; i < *n; i++) {
        cm_h5_filter *f = &out[i];
        *f = (cm_h5_filter){.id = (int)cm_h5_take_number(&c, 2)};
        uint64_t name = version == 1 || f->id >= NUMBERED ? cm_h5_take_number(&c, 2) : 0;
        (void)cm_h5_take(&c, 2); /* optional or not */
        f->nvalues = (size_t)cm_h5_take_number(&c, 2);
        (void)take_part(&c, (unsigned)version, name);
        if (c.bad || f->nvalues > CM_H5_FILTER_VALUES)
            return CM_EUNSUPPORTED;
        for (size_t k = 0; k < f->nvalues; k++)
            f->value[k] = (unsigned)cm_h5_take_number(&c, 4);
        if (version == 1 && f->nvalues % 2 != 0)
            (void)cm_h5_take(&c, 4);
    }
    return c.bad ? CM_EUNSUPPORTED : CM_OK;
}

/* ---- links ---- */

int cm_h5_link_decode(const cm_h5_bytes *b, const uint8_t *p, size_t nbytes, cm_h5_link *out)
{
    enum {
        WIDTH = 3, /* of the name's length */
        HAS_ORDER = 4,
        HAS_KIND = 8,
        HAS_CHARSET = 16,
        HARD = 0
    };
    cm_h5_cursor c = {p, p + nbytes, false};
    uint64_t version = cm_h5_take_number(&c, 1);
    unsigned flags = (unsigned)cm_h5_take_number(&c, 1);
    uint64_t kind = flags & HAS_KIND ? cm_h5_take_number(&c, 1) : HARD;
    *out = (cm_h5_link){.order = flags & HAS_ORDER ? cm_h5_take_number(&c, 8) : 0};
    uint64_t charset = flags & HAS_CHARSET ? cm_h5_take_number(&c, 1) : 0;
    uint64_t length = cm_h5_take_number(&c, 1u << (flags & WIDTH));
    const uint8_t *name = cm_h5_take(&c, length);
    out->address = cm_h5_take_place(&c, b->offset_nbytes);
    if (c.bad || version != 1 || flags > 31 || kind != HARD || charset > 1 || length == 0 ||
        length >= LONGEST_NAME || !is_usual(name, length))
        return CM_EUNSUPPORTED;
    out->name = strndup((const char *)name, (size_t)length);
    return out->name == NULL ? CM_ENOMEM : CM_OK;
}

int cm_h5_dense_decode(const cm_h5_bytes *b, bool links, const uint8_t *p, size_t nbytes,
                       cm_h5_dense *out)
{
    enum {
        ORDERED = 1,
        INDEXED = 2
    };
    cm_h5_cursor c = {p, p + nbytes, false};
    uint64_t version = cm_h5_take_number(&c, 1);
    unsigned flags = (unsigned)cm_h5_take_number(&c, 1);
    out->ordered = flags & ORDERED;
    if (out->ordered)
        (void)cm_h5_take(&c, links ? 8 : 2); /* the highest number so far */
    out->heap = cm_h5_take_place(&c, b->offset_nbytes);
    out->tree = cm_h5_take_place(&c, b->offset_nbytes);
    out->ordered_tree = flags & INDEXED ? cm_h5_take_place(&c, b->offset_nbytes) : CM_H5_UNDEFINED;
    return c.bad || version != 0 || flags > 3 ? CM_EUNSUPPORTED : CM_OK;
}
