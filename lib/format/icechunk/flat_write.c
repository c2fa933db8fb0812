#include "format/icechunk/flat_write.h"

#include <string.h>

enum {
    ROOT = 0,
    HEADER = 8 /* the root offset, and the identifier */
};

/* NBYTES zeroed bytes at the end, at a position that is OFF past a multiple of ALIGN. */
static int extend(cm_flat_writer *w, size_t nbytes, size_t align, size_t off, uint32_t *at,
                  cm_error *err)
{
    size_t was = w->buf.nbytes, begin = was, end;
    while (begin % align != off)
        begin++;
    if (!cm_add_size(begin, nbytes, &end) || end > CM_FLAT_MOST)
        return cm_fail(err, CM_EUNSUPPORTED, "a metadata file would be larger than 2 GiB");
    if (end > w->buf.capacity) {
        size_t twice = 2 * w->buf.capacity;
        int rc = cm_buf_reserve(&w->buf, twice > end ? twice : end + 4096, err);
        if (rc != CM_OK)
            return rc;
    }
    w->buf.nbytes = end;
    memset(w->buf.data + was, 0, end - was);
    *at = (uint32_t)begin;
    return CM_OK;
}

int cm_flat_begin(cm_flat_writer *w, const char *id, cm_error *err)
{
    uint32_t at;
    w->buf.nbytes = w->vtables.nbytes = 0;
    int rc = extend(w, HEADER, 1, 0, &at, err);
    if (rc == CM_OK)
        memcpy(w->buf.data + 4, id, 4);
    return rc;
}

void cm_flat_release(cm_flat_writer *w)
{
    cm_buf_release(&w->buf);
    cm_buf_release(&w->vtables);
}

/* ---- shapes ---- */

static void store16(uint8_t *p, size_t v)
{
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

/* Lays the fields out, the widest first, and makes the vtable; its bytes. */
static size_t lay_out(const cm_flat_field *field, size_t n, cm_flat_shape *out, uint8_t *vtable)
{
    size_t nbytes = 4, nslots = 0;
    *out = (cm_flat_shape){.align = 4};
    for (unsigned align = 8; align > 0; align /= 2)
        for (size_t i = 0; i < n; i++) {
            if (field[i].align != align)
                continue;
            out->at[field[i].slot] = (uint8_t)nbytes;
            nbytes += field[i].nbytes;
            if (align > out->align)
                out->align = (uint8_t)align;
            if ((size_t)field[i].slot + 1 > nslots)
                nslots = (size_t)field[i].slot + 1;
        }
    out->nbytes = (uint16_t)nbytes;
    store16(vtable, 4 + 2 * nslots);
    store16(vtable + 2, nbytes);
    for (size_t i = 0; i < nslots; i++)
        store16(vtable + 4 + 2 * i, out->at[i]);
    return 4 + 2 * nslots;
}

int cm_flat_shape_of(cm_flat_writer *w, const cm_flat_field *field, size_t n, cm_flat_shape *out,
                     cm_error *err)
{
    uint8_t vtable[4 + 2 * CM_FLAT_SLOTS];
    const size_t nbytes = lay_out(field, n, out, vtable);
    for (size_t i = 0; i < w->vtables.nbytes; i += 4) {
        uint32_t there = cm_load_le32(w->vtables.data + i);
        if (cm_load_le16(w->buf.data + there) == nbytes &&
            memcmp(w->buf.data + there, vtable, nbytes) == 0) {
            out->vtable = there;
            return CM_OK;
        }
    }
    int rc = extend(w, nbytes, 2, 0, &out->vtable, err);
    if (rc != CM_OK)
        return rc;
    memcpy(w->buf.data + out->vtable, vtable, nbytes);
    return cm_buf_append(&w->vtables, &out->vtable, 4, err);
}

/* ---- tables ---- */

int cm_flat_table(cm_flat_writer *w, const cm_flat_shape *shape, uint32_t *at, cm_error *err)
{
    /* The offset to the vtable takes 4 bytes; what follows it is aligned. */
    int rc = extend(w, shape->nbytes, shape->align, shape->align == 8 ? 4 : 0, at, err);
    if (rc == CM_OK)
        cm_store_le32(w->buf.data + *at, *at - shape->vtable);
    return rc;
}

void cm_flat_set(cm_flat_writer *w, uint32_t at, const void *value, size_t nbytes)
{
    memcpy(w->buf.data + at, value, nbytes);
}

void cm_flat_point(cm_flat_writer *w, uint32_t at, uint32_t to)
{
    cm_store_le32(w->buf.data + at, to - at);
}

void cm_flat_root(cm_flat_writer *w, uint32_t to)
{
    cm_flat_point(w, ROOT, to);
}

/* ---- vectors ---- */

int cm_flat_vector(cm_flat_writer *w, uint32_t from, const void *data, size_t count, size_t size,
                   size_t align, uint32_t *first, cm_error *err)
{
    size_t nbytes;
    uint32_t at;
    if (!cm_mul_size(count, size, &nbytes) || nbytes > CM_FLAT_MOST)
        return cm_fail(err, CM_EUNSUPPORTED, "a metadata file would be larger than 2 GiB");
    int rc = extend(w, 4 + nbytes, align > 4 ? align : 4, align > 4 ? align - 4 : 0, &at, err);
    if (rc != CM_OK)
        return rc;
    cm_store_le32(w->buf.data + at, (uint32_t)count);
    if (data != NULL && nbytes > 0)
        memcpy(w->buf.data + at + 4, data, nbytes);
    cm_flat_point(w, from, at);
    if (first != NULL)
        *first = at + 4;
    return CM_OK;
}

int cm_flat_string(cm_flat_writer *w, uint32_t from, const char *text, size_t nbytes, cm_error *err)
{
    uint32_t nul;
    int rc = cm_flat_vector(w, from, text, nbytes, 1, 1, NULL, err);
    return rc == CM_OK ? extend(w, 1, 1, 0, &nul, err) : rc;
}
