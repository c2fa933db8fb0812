#include "format/zarr/shard_old.h"

#include <stdlib.h>
#include <string.h>

enum {
    COPY_NBYTES = 256 << 10,
    COMPARE_NBYTES = 16 << 10 /* of stack */
};

typedef struct extent {
    uint64_t first, end;
} extent;

struct cm_shard_old {
    cm_object_reader *object;
    uint64_t nchunks;
    cm_shard_entry *entry;
    extent *live; /* ranges in the index, sorted and disjoint */
    size_t nlive;
    extent *gap; /* free ranges before and between them */
    size_t ngaps;
    uint64_t end;
};

size_t cm_shard_old_memory(const cm_shard_layout *layout)
{
    size_t each = sizeof(cm_shard_entry) + 2 * sizeof(extent);
    return sizeof(cm_shard_old) + COPY_NBYTES + cm_shard_index_nbytes(layout) +
           (size_t)(cm_shard_nchunks(layout) + 1) * each;
}

void cm_shard_old_free(cm_shard_old *old)
{
    if (old == NULL)
        return;
    cm_object_close(old->object);
    free(old->entry);
    free(old->live);
    free(old->gap);
    free(old);
}

static bool is_missing(const cm_shard_entry *e)
{
    return e->offset == CM_SHARD_MISSING && e->nbytes == CM_SHARD_MISSING;
}

static int by_first(const void *a, const void *b)
{
    const extent *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Entries may overlap: a writer may store equal chunks once. */
static void find_live(cm_shard_old *old)
{
    size_t kept = 0;
    for (uint64_t i = 0; i < old->nchunks; i++) {
        const cm_shard_entry *e = &old->entry[i];
        if (!is_missing(e) && e->nbytes > 0)
            old->live[old->nlive++] = (extent){e->offset, e->offset + e->nbytes};
    }
    if (old->nlive > 0)
        qsort(old->live, old->nlive, sizeof(old->live[0]), by_first);
    for (size_t i = 0; i < old->nlive; i++) {
        extent *last = kept > 0 ? &old->live[kept - 1] : NULL;
        if (last != NULL && old->live[i].first <= last->end)
            last->end = old->live[i].end > last->end ? old->live[i].end : last->end;
        else
            old->live[kept++] = old->live[i];
    }
    old->nlive = kept;
}

/* The first HEAD bytes belong to the index. */
static void find_gaps(cm_shard_old *old, uint64_t head)
{
    old->end = head;
    for (size_t i = 0; i < old->nlive; i++) {
        if (old->live[i].first > old->end)
            old->gap[old->ngaps++] = (extent){old->end, old->live[i].first};
        old->end = old->live[i].end > old->end ? old->live[i].end : old->end;
    }
}

static int read_index(cm_shard_old *old, const cm_shard_layout *layout, const cm_buf *encoded,
                      cm_error *err)
{
    size_t nbytes = cm_shard_index_nbytes(layout);
    uint64_t total = cm_object_nbytes(old->object);
    if (total < nbytes || encoded->nbytes < nbytes)
        return cm_fail(err, CM_EFORMAT, "the shard has %llu bytes, and its index alone needs %zu",
                       (unsigned long long)total, nbytes);
    old->nchunks = cm_shard_nchunks(layout);
    old->entry = cm_calloc(old->nchunks, sizeof(*old->entry), err);
    old->live = cm_calloc(old->nchunks, sizeof(*old->live), err);
    old->gap = cm_calloc(old->nchunks, sizeof(*old->gap), err);
    if (old->entry == NULL || old->live == NULL || old->gap == NULL)
        return CM_ENOMEM;
    int rc = cm_shard_index_decode(layout, encoded->data, nbytes, total, old->entry, err);
    if (rc != CM_OK)
        return rc;
    find_live(old);
    find_gaps(old, cm_shard_index_at_start(layout) ? nbytes : 0);
    return CM_OK;
}

int cm_shard_old_open(cm_store *store, const char *key, const cm_shard_layout *layout,
                      cm_shard_old **out, cm_error *err)
{
    cm_buf encoded = {0};
    *out = NULL;
    cm_shard_old *old = cm_calloc(1, sizeof(*old), err);
    if (old == NULL)
        return CM_ENOMEM;
    int rc = cm_object_open_part(store, key, !cm_shard_index_at_start(layout),
                                 cm_shard_index_nbytes(layout), &encoded, &old->object, err);
    bool none = rc == CM_ENOTFOUND;
    if (rc == CM_OK && (rc = read_index(old, layout, &encoded, err)) == CM_EFORMAT)
        cm_error_prefix(err, "%s", key);
    cm_buf_release(&encoded);
    if (rc == CM_OK) {
        *out = old;
        return CM_OK;
    }
    cm_shard_old_free(old);
    return none ? CM_OK : rc;
}

int cm_shard_old_copy(cm_shard_old *old, cm_object_writer *to, cm_error *err)
{
    int rc = CM_OK;
    uint8_t *buf = cm_calloc(COPY_NBYTES, 1, err);
    if (buf == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < old->nlive; i++) {
        uint64_t at = old->live[i].first;
        while (rc == CM_OK && at < old->live[i].end) {
            uint64_t rest = old->live[i].end - at;
            size_t n = rest < COPY_NBYTES ? (size_t)rest : COPY_NBYTES;
            rc = cm_object_read(old->object, at, buf, n, err);
            if (rc == CM_OK)
                rc = cm_object_write(to, at, buf, n, err);
            at += n;
        }
    }
    free(buf);
    return rc;
}

int cm_shard_old_is(cm_shard_old *old, uint64_t local, const void *data, size_t nbytes, bool *same,
                    cm_shard_entry *entry, cm_error *err)
{
    uint8_t part[COMPARE_NBYTES];
    const cm_shard_entry *e = &old->entry[local];
    *entry = *e;
    *same = !is_missing(e) && e->nbytes == nbytes;
    for (size_t at = 0; *same && at < nbytes;) {
        size_t n = nbytes - at < sizeof(part) ? nbytes - at : sizeof(part);
        int rc = cm_object_read(old->object, e->offset + at, part, n, err);
        if (rc != CM_OK)
            return rc;
        *same = memcmp(part, (const uint8_t *)data + at, n) == 0;
        at += n;
    }
    return CM_OK;
}

uint64_t cm_shard_old_take(cm_shard_old *old, uint64_t nbytes)
{
    for (size_t i = 0; i < old->ngaps; i++) {
        extent *gap = &old->gap[i];
        if (gap->end - gap->first < nbytes)
            continue;
        uint64_t at = gap->first;
        gap->first += nbytes;
        return at;
    }
    uint64_t at = old->end;
    old->end += nbytes;
    return at;
}

uint64_t cm_shard_old_end(const cm_shard_old *old)
{
    return old->end;
}
