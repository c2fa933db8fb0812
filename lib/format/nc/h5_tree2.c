#include "format/nc/h5_tree2.h"

enum {
    MOST_DEPTH = 8,
    OVERHEAD = 4 + 1 + 1 + 4, /* of a node: signature, version, type, checksum */
    MOST_RECORDS = 1 << 20
};

typedef struct walker {
    cm_h5_bytes *bytes;
    unsigned type, record_nbytes;
    uint64_t node_nbytes;
    cm_h5_tree2_visit *visit;
    void *context;
    unsigned count_nbytes; /* of a child's number of records */
    /* Of the number of all records below a child of that depth. */
    unsigned total_nbytes[MOST_DEPTH + 1];
    uint64_t most[MOST_DEPTH + 1]; /* records per node */
    uint64_t nleft;                /* limit of records still to come */
} walker;

/* Bytes needed for numbers up to LIMIT. */
static unsigned width_of(uint64_t limit)
{
    unsigned n = 1;
    while (n < 8 && limit >> (8 * n) != 0)
        n++;
    return n;
}

static unsigned pointer_nbytes(const walker *w, unsigned depth)
{
    return w->bytes->offset_nbytes + w->count_nbytes + w->total_nbytes[depth - 1];
}

/* The widths follow from the number of records of a full tree. */
static bool set_widths(walker *w, unsigned depth)
{
    uint64_t all;
    if (w->node_nbytes < OVERHEAD + w->record_nbytes)
        return false;
    w->most[0] = all = (w->node_nbytes - OVERHEAD) / w->record_nbytes;
    w->count_nbytes = width_of(w->most[0]);
    w->total_nbytes[0] = 0;
    for (unsigned i = 1; i <= depth; i++) {
        unsigned pointer = pointer_nbytes(w, i);
        if (w->node_nbytes < OVERHEAD + pointer)
            return false;
        w->most[i] = (w->node_nbytes - OVERHEAD - pointer) / (w->record_nbytes + pointer);
        if (w->most[i] == 0 || !cm_mul_u64(w->most[i] + 1, all, &all) ||
            all > UINT64_MAX - w->most[i])
            return false;
        all += w->most[i];
        w->total_nbytes[i] = width_of(all);
    }
    return true;
}

static int walk(walker *w, uint64_t address, uint64_t nrecords, unsigned depth)
{
    const uint8_t *p;
    if (nrecords > w->most[depth] || nrecords > w->nleft)
        return CM_EUNSUPPORTED;
    w->nleft -= nrecords;
    uint64_t records = nrecords * w->record_nbytes;
    uint64_t pointers = depth > 0 ? (nrecords + 1) * pointer_nbytes(w, depth) : 0;
    int rc = cm_h5_bytes_get(w->bytes, address, w->node_nbytes, &p);
    if (rc == CM_OK)
        rc = cm_h5_bytes_checked(w->bytes, address, OVERHEAD + records + pointers,
                                 depth > 0 ? "BTIN" : "BTLF", &p);
    if (rc != CM_OK)
        return rc;
    if (p[4] != 0 || p[5] != w->type)
        return CM_EUNSUPPORTED;
    p += 6;
    cm_h5_cursor c = {p + records, p + records + pointers, false};
    for (uint64_t i = 0; rc == CM_OK && i <= nrecords; i++) {
        if (depth > 0) {
            uint64_t child = cm_h5_take_place(&c, w->bytes->offset_nbytes);
            uint64_t count = cm_h5_take_number(&c, w->count_nbytes);
            (void)cm_h5_take(&c, w->total_nbytes[depth - 1]);
            rc = walk(w, child, count, depth - 1);
        }
        if (rc == CM_OK && i < nrecords)
            rc = w->visit(w->context, p + i * w->record_nbytes);
    }
    return rc;
}

int cm_h5_tree2_walk(cm_h5_bytes *b, uint64_t address, cm_h5_tree2_type type, unsigned nbytes,
                     cm_h5_tree2_visit *visit, void *context)
{
    const uint8_t *p;
    uint64_t size = 4 + 1 + 1 + 4 + 2 + 2 + 1 + 1 + b->offset_nbytes + 2 + b->length_nbytes + 4;
    int rc = cm_h5_bytes_checked(b, address, size, "BTHD", &p);
    if (rc != CM_OK)
        return rc;
    walker w = {
        .bytes = b, .type = type, .record_nbytes = nbytes, .visit = visit, .context = context};
    cm_h5_cursor c = {p + 4, p + size, false};
    uint64_t version = cm_h5_take_number(&c, 1), kind = cm_h5_take_number(&c, 1);
    w.node_nbytes = cm_h5_take_number(&c, 4);
    uint64_t record = cm_h5_take_number(&c, 2);
    unsigned depth = (unsigned)cm_h5_take_number(&c, 2);
    (void)cm_h5_take(&c, 2); /* split and merge percentages */
    uint64_t root = cm_h5_take_place(&c, b->offset_nbytes);
    uint64_t nrecords = cm_h5_take_number(&c, 2);
    uint64_t total = cm_h5_take_number(&c, b->length_nbytes);
    if (version != 0 || kind != type || record != nbytes || depth > MOST_DEPTH ||
        total > MOST_RECORDS || !set_widths(&w, depth))
        return CM_EUNSUPPORTED;
    w.nleft = total;
    rc = total > 0 ? walk(&w, root, nrecords, depth) : CM_OK;
    return rc == CM_OK && w.nleft != 0 ? CM_EUNSUPPORTED : rc;
}
