#include "format/nc/h5_heap.h"

#include <string.h>

#include "format/nc/h5_tree2.h"

enum {
    MOST_LEVELS = 8, /* of indirect blocks */
    MOST_ROWS = 64,
    MOST_BLOCK_NBYTES = 1 << 22
};

static bool is_power(uint64_t v)
{
    return v != 0 && (v & (v - 1)) == 0;
}

static unsigned log2_of(uint64_t v)
{
    unsigned n = 0;
    while (v >>= 1)
        n++;
    return n;
}

/* ---- the header ---- */

static bool take_header(cm_h5_heap *h, cm_h5_cursor *c)
{
    unsigned o = h->bytes->offset_nbytes, l = h->bytes->length_nbytes;
    uint64_t version = cm_h5_take_number(c, 1);
    h->id_nbytes = (unsigned)cm_h5_take_number(c, 2);
    uint64_t filters = cm_h5_take_number(c, 2);
    uint64_t flags = cm_h5_take_number(c, 1);
    h->most_managed = cm_h5_take_number(c, 4);
    (void)cm_h5_take(c, l); /* number of the next huge object */
    h->huge = cm_h5_take_place(c, o);
    (void)cm_h5_take(c, l + o + 4 * l + l); /* free space, and managed objects */
    uint64_t nhuge = cm_h5_take_number(c, l);
    (void)cm_h5_take(c, 2 * l); /* tiny objects, which are stored in their IDs */
    h->width = (unsigned)cm_h5_take_number(c, 2);
    h->first = cm_h5_take_number(c, l);
    h->most_direct = cm_h5_take_number(c, l);
    unsigned bits = (unsigned)cm_h5_take_number(c, 2);
    (void)cm_h5_take(c, 2);
    h->root = cm_h5_take_place(c, o);
    h->root_nrows = (unsigned)cm_h5_take_number(c, 2);
    h->checked = (flags & 2) != 0;
    h->place_nbytes = (bits + 7) / 8;
    unsigned direct = (log2_of(h->most_direct) + 7) / 8;
    unsigned managed = log2_of(h->most_managed) / 8 + 1;
    h->size_nbytes = direct < managed ? direct : managed;
    return !c->bad && (nhuge == 0) == (h->huge == CM_H5_UNDEFINED) && version == 0 &&
           filters == 0 && (flags & ~UINT64_C(3)) == 0 && is_power(h->width) &&
           is_power(h->first) && is_power(h->most_direct) && h->first <= h->most_direct &&
           h->most_direct <= MOST_BLOCK_NBYTES && h->most_managed > 0 && bits > 0 && bits <= 64 &&
           h->root_nrows <= MOST_ROWS && h->width <= 1024 && h->id_nbytes <= 64 &&
           h->id_nbytes >= 1 + h->place_nbytes + h->size_nbytes;
}

int cm_h5_heap_open(cm_h5_bytes *b, uint64_t address, cm_h5_heap *out)
{
    const uint8_t *p;
    unsigned o = b->offset_nbytes, l = b->length_nbytes;
    uint64_t nbytes = 4 + 1 + 2 + 2 + 1 + 4 + l + o + l + o + 4 * l + 2 * l + 2 * l + 2 + l + l +
                      2 + 2 + o + 2 + 4;
    *out = (cm_h5_heap){.bytes = b, .address = address, .known = CM_H5_UNDEFINED};
    int rc = cm_h5_bytes_checked(b, address, nbytes, "FRHP", &p);
    if (rc != CM_OK)
        return rc;
    cm_h5_cursor c = {p + 4, p + nbytes - 4, false};
    return take_header(out, &c) && c.at == c.end ? CM_OK : CM_EUNSUPPORTED;
}

/* ---- managed objects ---- */

/* Bytes of a block in ROW. */
static uint64_t block_nbytes(const cm_h5_heap *h, unsigned row)
{
    return row == 0 ? h->first : h->first << (row - 1);
}

static unsigned ndirect_rows(const cm_h5_heap *h)
{
    return log2_of(h->most_direct) - log2_of(h->first) + 2;
}

/* The row and column of OFFSET in an indirect block, and where that child block begins. */
static void find_block(const cm_h5_heap *h, uint64_t offset, unsigned *row, uint64_t *column,
                       uint64_t *begin)
{
    uint64_t row_nbytes = h->first * h->width;
    *row = 0;
    *begin = 0;
    if (offset >= row_nbytes) {
        *row = log2_of(offset / row_nbytes) + 1;
        *begin = row_nbytes << (*row - 1);
    }
    *column = (offset - *begin) / block_nbytes(h, *row);
    *begin += *column * block_nbytes(h, *row);
}

/* Checks a block's prefix: version, the heap, and the block's place in it. */
static bool take_prefix(const cm_h5_heap *h, cm_h5_cursor *c, uint64_t begin)
{
    uint64_t version = cm_h5_take_number(c, 1);
    uint64_t owner = cm_h5_take_place(c, h->bytes->offset_nbytes);
    uint64_t offset = cm_h5_take_number(c, h->place_nbytes);
    return !c->bad && version == 0 && owner == h->address && offset == begin;
}

static int read_direct(cm_h5_heap *h, uint64_t address, uint64_t begin, uint64_t size,
                       uint64_t offset, size_t nbytes, const uint8_t **out)
{
    const uint8_t *p;
    int rc = cm_h5_bytes_get(h->bytes, address, size, &p);
    if (rc != CM_OK)
        return rc;
    cm_h5_cursor c = {p + 4, p + size, false};
    if (memcmp(p, "FHDB", 4) != 0 || !take_prefix(h, &c, begin))
        return CM_EUNSUPPORTED;
    size_t prefix = (size_t)(c.at - p);
    uint32_t stored = h->checked ? (uint32_t)cm_h5_take_number(&c, 4) : 0;
    if (c.bad || offset < (uint64_t)(c.at - p) || offset > size || nbytes > size - offset)
        return CM_EUNSUPPORTED;
    if (h->checked && h->known != address) {
        /* The checksum is computed with zeros in its own place. */
        uint8_t copy[MOST_BLOCK_NBYTES > 1 << 16 ? 1 << 16 : MOST_BLOCK_NBYTES];
        if (size > sizeof(copy))
            return CM_EUNSUPPORTED;
        memcpy(copy, p, (size_t)size);
        memset(copy + prefix, 0, 4);
        if (cm_h5_checksum(copy, (size_t)size) != stored)
            return CM_EUNSUPPORTED;
        h->known = address;
    }
    *out = p + offset;
    return CM_OK;
}

/* The address of the block with OFFSET, below the block at *ADDRESS that begins at *BEGIN. */
static int descend(cm_h5_heap *h, uint64_t *address, unsigned nrows, uint64_t *begin,
                   uint64_t offset, unsigned *row)
{
    const uint8_t *p;
    uint64_t column, inside;
    unsigned o = h->bytes->offset_nbytes;
    uint64_t nbytes = 4 + 1 + o + h->place_nbytes + (uint64_t)nrows * h->width * o + 4;
    int rc = cm_h5_bytes_checked(h->bytes, *address, nbytes, "FHIB", &p);
    if (rc != CM_OK)
        return rc;
    cm_h5_cursor c = {p + 4, p + nbytes - 4, false};
    if (!take_prefix(h, &c, *begin))
        return CM_EUNSUPPORTED;
    find_block(h, offset - *begin, row, &column, &inside);
    if (*row >= nrows)
        return CM_EUNSUPPORTED;
    (void)cm_h5_take(&c, ((uint64_t)*row * h->width + column) * o);
    *address = cm_h5_take_place(&c, o);
    *begin += inside;
    return c.bad || *address == CM_H5_UNDEFINED ? CM_EUNSUPPORTED : CM_OK;
}

static int find_managed(cm_h5_heap *h, uint64_t offset, size_t nbytes, const uint8_t **out)
{
    uint64_t address = h->root, begin = 0, size = h->first;
    unsigned nrows = h->root_nrows;
    if (address == CM_H5_UNDEFINED)
        return CM_EUNSUPPORTED;
    for (unsigned level = 0; nrows > 0; level++) {
        unsigned row;
        int rc = level < MOST_LEVELS ? descend(h, &address, nrows, &begin, offset, &row)
                                     : CM_EUNSUPPORTED;
        if (rc != CM_OK)
            return rc;
        size = block_nbytes(h, row);
        /* A child beyond the direct rows is an indirect block, as long as several rows. */
        nrows = row < ndirect_rows(h) ? 0 : log2_of(size) - log2_of(h->first * h->width) + 1;
        if (nrows > MOST_ROWS)
            return CM_EUNSUPPORTED;
    }
    return offset < begin ? CM_EUNSUPPORTED
                          : read_direct(h, address, begin, size, offset - begin, nbytes, out);
}

/* ---- huge objects ---- */

typedef struct huge {
    const cm_h5_heap *heap;
    uint64_t number, address, nbytes;
    bool found;
} huge;

static int visit_huge(void *context, const uint8_t *record)
{
    huge *f = context;
    unsigned o = f->heap->bytes->offset_nbytes, l = f->heap->bytes->length_nbytes;
    cm_h5_cursor c = {record, record + o + 2 * l, false};
    uint64_t address = cm_h5_take_place(&c, o), nbytes = cm_h5_take_number(&c, l);
    if (cm_h5_take_number(&c, l) != f->number)
        return CM_OK;
    if (f->found)
        return CM_EUNSUPPORTED;
    f->found = true;
    f->address = address;
    f->nbytes = nbytes;
    return CM_OK;
}

/* If an ID has no room for an address, it holds the object's number. */
static int find_huge(cm_h5_heap *h, cm_h5_cursor *id, const uint8_t **out, size_t *nbytes)
{
    unsigned o = h->bytes->offset_nbytes, l = h->bytes->length_nbytes, left = h->id_nbytes - 1;
    if (left >= o + l || h->huge == CM_H5_UNDEFINED)
        return CM_EUNSUPPORTED;
    huge f = {.heap = h, .number = cm_h5_take_number(id, left < l ? left : l)};
    int rc = cm_h5_tree2_walk(h->bytes, h->huge, CM_H5_TREE2_HUGE, o + 2 * l, visit_huge, &f);
    if (rc == CM_OK && (!f.found || f.nbytes > MOST_BLOCK_NBYTES))
        rc = CM_EUNSUPPORTED;
    if (rc == CM_OK)
        rc = cm_h5_bytes_get(h->bytes, f.address, f.nbytes, out);
    *nbytes = (size_t)f.nbytes;
    return rc;
}

int cm_h5_heap_find(cm_h5_heap *h, const uint8_t *id, const uint8_t **out, size_t *nbytes)
{
    enum {
        MANAGED = 0x00,
        HUGE_OBJECT = 0x10
    };
    cm_h5_cursor c = {id, id + h->id_nbytes, false};
    uint64_t kind = cm_h5_take_number(&c, 1);
    if (kind == HUGE_OBJECT)
        return find_huge(h, &c, out, nbytes);
    if (kind != MANAGED)
        return CM_EUNSUPPORTED;
    uint64_t offset = cm_h5_take_number(&c, h->place_nbytes);
    *nbytes = (size_t)cm_h5_take_number(&c, h->size_nbytes);
    return find_managed(h, offset, *nbytes, out);
}

/* ---- the global heap ---- */

int cm_h5_global_find(cm_h5_bytes *b, uint64_t address, uint64_t index, const uint8_t **out,
                      uint64_t *nbytes)
{
    const unsigned l = b->length_nbytes, prefix = 2 + 2 + 4 + l;
    const uint8_t *p;
    int rc = cm_h5_bytes_get(b, address, 8 + l, &p);
    if (rc != CM_OK)
        return rc;
    cm_h5_cursor c = {p, p + 8 + l, false};
    if (memcmp(cm_h5_take(&c, 4), "GCOL", 4) != 0 || cm_h5_take_number(&c, 4) != 1)
        return CM_EUNSUPPORTED;
    uint64_t all = cm_h5_take_number(&c, l);
    if (index == 0 || all < 8 + l || all > MOST_BLOCK_NBYTES)
        return CM_EUNSUPPORTED;
    rc = cm_h5_bytes_get(b, address, all, &p);
    if (rc != CM_OK)
        return rc;
    /* Objects follow each other; index 0 is the free space behind them, to the end. */
    c = (cm_h5_cursor){p + 8 + l, p + all, false};
    *out = NULL;
    while ((size_t)(c.end - c.at) >= prefix) {
        uint64_t left = (uint64_t)(c.end - c.at), i = cm_h5_take_number(&c, 2);
        (void)cm_h5_take(&c, 2 + 4);
        uint64_t size = cm_h5_take_number(&c, l);
        if (i == 0)
            return size == left && *out != NULL ? CM_OK : CM_EUNSUPPORTED;
        if (size > MOST_BLOCK_NBYTES)
            return CM_EUNSUPPORTED;
        const uint8_t *data = cm_h5_take(&c, (size + 7) / 8 * 8);
        if (data == NULL || (i == index && *out != NULL))
            return CM_EUNSUPPORTED;
        if (i == index) {
            *out = data;
            *nbytes = size;
        }
    }
    return *out != NULL ? CM_OK : CM_EUNSUPPORTED;
}
