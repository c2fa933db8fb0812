#include "format/icechunk/flat_read.h"

bool cm_flatbuf_has(const cm_flatbuf *f, size_t at, size_t nbytes)
{
    return at <= f->nbytes && nbytes <= f->nbytes - at;
}

bool cm_flatbuf_follow(const cm_flatbuf *f, size_t at, size_t *out)
{
    if (!cm_flatbuf_has(f, at, 4))
        return false;
    *out = at + cm_load_le32(f->data + at);
    return *out > at && cm_flatbuf_has(f, *out, 4);
}

bool cm_flatbuf_table_at(const cm_flatbuf *f, size_t at, cm_flatbuf_table *out)
{
    if (!cm_flatbuf_has(f, at, 4))
        return false;
    const int64_t vtable = (int64_t)at - (int32_t)cm_load_le32(f->data + at);
    if (vtable < 0 || !cm_flatbuf_has(f, (size_t)vtable, 4))
        return false;
    const size_t nbytes = cm_load_le16(f->data + vtable);
    *out = (cm_flatbuf_table){at, (size_t)vtable, nbytes < 4 ? 0 : (unsigned)(nbytes - 4) / 2};
    return nbytes >= 4 && nbytes % 2 == 0 && cm_flatbuf_has(f, (size_t)vtable, nbytes);
}

bool cm_flatbuf_table_from(const cm_flatbuf *f, size_t at, cm_flatbuf_table *out)
{
    size_t to;
    return cm_flatbuf_follow(f, at, &to) && cm_flatbuf_table_at(f, to, out);
}

size_t cm_flatbuf_field(const cm_flatbuf *f, const cm_flatbuf_table *t, unsigned slot)
{
    const size_t off = slot < t->nslots ? cm_load_le16(f->data + t->vtable + 4 + 2 * slot) : 0;
    return off > 0 ? t->at + off : 0;
}

const uint8_t *cm_flatbuf_bytes(const cm_flatbuf *f, const cm_flatbuf_table *t, unsigned slot,
                                size_t nbytes)
{
    const size_t at = cm_flatbuf_field(f, t, slot);
    return at > 0 && cm_flatbuf_has(f, at, nbytes) ? f->data + at : NULL;
}

bool cm_flatbuf_list_from(const cm_flatbuf *f, size_t at, size_t size, cm_flatbuf_list *out)
{
    size_t nbytes;
    if (!cm_flatbuf_follow(f, at, &out->first))
        return false;
    out->n = cm_load_le32(f->data + out->first);
    out->first += 4;
    return cm_mul_size(out->n, size, &nbytes) && cm_flatbuf_has(f, out->first, nbytes);
}

bool cm_flatbuf_list_of(const cm_flatbuf *f, const cm_flatbuf_table *t, unsigned slot, size_t size,
                        cm_flatbuf_list *out, bool *there)
{
    const size_t at = cm_flatbuf_field(f, t, slot);
    *out = (cm_flatbuf_list){0};
    if (there != NULL)
        *there = at > 0;
    return at == 0 || cm_flatbuf_list_from(f, at, size, out);
}
