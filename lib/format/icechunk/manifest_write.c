#include "format/icechunk/manifest_write.h"

#include <stdlib.h>
#include <string.h>

#include "format/icechunk/file_write.h"
#include "format/icechunk/key.h"

enum { /* slots of ChunkRef */
    REF_INDEX,
    REF_INLINE,
    REF_OFFSET,
    REF_LENGTH,
    REF_CHUNK_ID,
    REF_LOCATION,
    REF_ETAG,
    REF_MODIFIED
};
enum { /* of ArrayManifest */
    ARRAY_NODE,
    ARRAY_REFS
};
enum { /* of Manifest */
    MANIFEST_ID,
    MANIFEST_ARRAYS,
    MANIFEST_DICTIONARY,
    MANIFEST_COMPRESSION
};

/* A table that waits for the position of its location. */
typedef struct waiting {
    uint32_t at, location;
} waiting;

typedef struct writing {
    cm_store *root;
    cm_ice_records *records;
    const cm_ice_places *places;
    const uint8_t *node;
    cm_ice_manifests *out;
    cm_ice_place *place; /* of one range */
    waiting *wait;
    size_t nwait;
    cm_flat_writer flat;
    cm_flat_shape inside, file, outside; /* of references */
} writing;

/* ---- one manifest ---- */

/* The shapes of references come first: offsets to their vtables go back. */
static int make_shapes(writing *w, cm_error *err)
{
    static const cm_flat_field inside[] = {CM_FLAT_OFFSET(REF_INDEX), CM_FLAT_OFFSET(REF_INLINE)};
    static const cm_flat_field file[] = {CM_FLAT_OFFSET(REF_INDEX),
                                         {REF_OFFSET, 8, 8},
                                         {REF_LENGTH, 8, 8},
                                         {REF_CHUNK_ID, CM_ICE_ID, 1}};
    static const cm_flat_field outside[] = {CM_FLAT_OFFSET(REF_INDEX),
                                            {REF_OFFSET, 8, 8},
                                            {REF_LENGTH, 8, 8},
                                            CM_FLAT_OFFSET(REF_LOCATION),
                                            {REF_MODIFIED, 4, 4}};
    int rc = cm_flat_shape_of(&w->flat, inside, 2, &w->inside, err);
    if (rc == CM_OK)
        rc = cm_flat_shape_of(&w->flat, file, 4, &w->file, err);
    return rc == CM_OK ? cm_flat_shape_of(&w->flat, outside, 5, &w->outside, err) : rc;
}

/* The tables above the references; *REF is the position of the first offset to one. */
static int begin(writing *w, const uint8_t *id, size_t nrefs, uint32_t *ref, cm_error *err)
{
    static const cm_flat_field manifest[] = {
        {MANIFEST_ID, CM_ICE_ID, 1}, CM_FLAT_OFFSET(MANIFEST_ARRAYS), {MANIFEST_COMPRESSION, 1, 1}};
    static const cm_flat_field array[] = {{ARRAY_NODE, CM_ICE_NODE_ID, 1},
                                          CM_FLAT_OFFSET(ARRAY_REFS)};
    cm_flat_writer *f = &w->flat;
    cm_flat_shape root, one;
    uint32_t at, list;
    int rc = cm_flat_begin(f, CM_ICE_IDENTIFIER, err);
    if (rc == CM_OK)
        rc = make_shapes(w, err);
    if (rc == CM_OK)
        rc = cm_flat_shape_of(f, manifest, 3, &root, err);
    if (rc == CM_OK)
        rc = cm_flat_shape_of(f, array, 2, &one, err);
    if (rc == CM_OK)
        rc = cm_flat_table(f, &root, &at, err);
    if (rc != CM_OK)
        return rc;
    cm_flat_root(f, at);
    /* The compression of locations stays 0: they stand there as they are, once for all chunks. */
    cm_flat_set(f, at + root.at[MANIFEST_ID], id, CM_ICE_ID);
    rc = cm_flat_vector(f, at + root.at[MANIFEST_ARRAYS], NULL, 1, 4, 4, &list, err);
    if (rc == CM_OK)
        rc = cm_flat_table(f, &one, &at, err);
    if (rc != CM_OK)
        return rc;
    cm_flat_point(f, list, at);
    cm_flat_set(f, at + one.at[ARRAY_NODE], w->node, CM_ICE_NODE_ID);
    return cm_flat_vector(f, at + one.at[ARRAY_REFS], NULL, nrefs, 4, 4, ref, err);
}

/* Sets the fields of P but its index in the table at AT. */
static int describe(writing *w, const cm_ice_place *p, uint32_t at, cm_error *err)
{
    cm_flat_writer *f = &w->flat;
    if (p->where == CM_ICE_INLINE)
        return cm_flat_vector(f, at + w->inside.at[REF_INLINE], p->bytes, p->nbytes, 1, 1, NULL,
                              err);
    const cm_flat_shape *shape = p->where == CM_ICE_IN_FILE ? &w->file : &w->outside;
    cm_flat_set(f, at + shape->at[REF_OFFSET], &p->offset, 8);
    cm_flat_set(f, at + shape->at[REF_LENGTH], &p->nbytes, 8);
    if (p->where == CM_ICE_IN_FILE)
        cm_flat_set(f, at + shape->at[REF_CHUNK_ID], p->id, CM_ICE_ID);
    else
        w->wait[w->nwait++] = (waiting){at, p->location};
    return CM_OK;
}

/* Points the offset at REF to the reference P of the chunk at INDEX. */
static int add(writing *w, const cm_ice_place *p, const uint32_t *index, uint32_t ref,
               cm_error *err)
{
    const cm_flat_shape *shape = p->where == CM_ICE_INLINE    ? &w->inside
                                 : p->where == CM_ICE_IN_FILE ? &w->file
                                                              : &w->outside;
    uint32_t at;
    int rc = cm_flat_table(&w->flat, shape, &at, err);
    if (rc != CM_OK)
        return rc;
    cm_flat_point(&w->flat, ref, at);
    rc = cm_flat_vector(&w->flat, at + shape->at[REF_INDEX], index, w->places->rank, 4, 4, NULL,
                        err);
    return rc == CM_OK ? describe(w, p, at, err) : rc;
}

static int by_location(const void *a, const void *b)
{
    const waiting *x = a, *y = b;
    if (x->location != y->location)
        return x->location < y->location ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Writes each location once, and points all its references there. */
static int write_locations(writing *w, cm_error *err)
{
    cm_flat_writer *f = &w->flat;
    cm_ice_location l = {0};
    uint32_t to = 0;
    int rc = CM_OK;
    qsort(w->wait, w->nwait, sizeof(w->wait[0]), by_location);
    for (size_t i = 0; rc == CM_OK && i < w->nwait; i++) {
        const uint32_t at = w->wait[i].at + w->outside.at[REF_LOCATION];
        if (i == 0 || w->wait[i].location != w->wait[i - 1].location) {
            rc = w->places->locate(w->places->context, w->wait[i].location, &l, err);
            if (rc == CM_OK)
                rc = cm_flat_string(f, at, l.url, strlen(l.url), err);
            if (rc == CM_OK)
                to = at + cm_load_le32(f->buf.data + at);
        } else {
            cm_flat_point(f, at, to);
        }
        if (rc == CM_OK)
            cm_flat_set(f, w->wait[i].at + w->outside.at[REF_MODIFIED], &l.modified_s, 4);
    }
    return rc;
}

static int write_file(writing *w, cm_ice_manifest *m, cm_error *err)
{
    char key[CM_ICE_KEY_SIZE];
    cm_ice_key("manifests", m->id, key);
    return cm_ice_file_write(w->root, key, CM_ICE_MANIFEST_FILE, &w->flat.buf, &m->nbytes, err);
}

static void mark(cm_ice_manifests *out, uint64_t number)
{
    out->present[number / 64] |= (uint64_t)1 << number % 64;
    out->nrefs++;
}

/* The references of the N chunks from number FIRST on, whose places are found. */
static int add_range(writing *w, const cm_ice_manifest *m, uint64_t first, size_t n, uint32_t ref,
                     cm_error *err)
{
    uint32_t index[CM_MAX_RANK];
    int rc = CM_OK;
    memcpy(index, m->first, sizeof(index));
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        if (w->place[i].where != CM_ICE_NOWHERE) {
            rc = add(w, &w->place[i], index, ref, err);
            ref += 4;
            mark(w->out, first + i);
            w->out->ninline += w->place[i].where == CM_ICE_INLINE;
        }
        for (unsigned j = w->places->rank; j-- > 0 && ++index[j] == m->end[j];)
            index[j] = m->first[j];
    }
    return rc;
}

static int write_range(writing *w, cm_ice_manifest *m, uint64_t first, size_t n, cm_error *err)
{
    uint32_t ref = 0;
    int rc = w->places->find(w->places->context, first, n, w->place, err);
    m->nrefs = 0;
    for (size_t i = 0; rc == CM_OK && i < n; i++)
        m->nrefs += w->place[i].where != CM_ICE_NOWHERE;
    if (rc != CM_OK || m->nrefs == 0)
        return rc;
    w->nwait = 0;
    rc = cm_ice_id_random(m->id, sizeof(m->id), err);
    if (rc == CM_OK)
        rc = cm_ice_records_name(w->records, 'm', m->id, err);
    if (rc == CM_OK)
        rc = begin(w, m->id, m->nrefs, &ref, err);
    if (rc == CM_OK)
        rc = add_range(w, m, first, n, ref, err);
    if (rc == CM_OK)
        rc = write_locations(w, err);
    return rc == CM_OK ? write_file(w, m, err) : rc;
}

/* ---- all of them ---- */

static int keep(cm_ice_manifests *out, const cm_ice_manifest *m, cm_error *err)
{
    if (m->nrefs == 0)
        return CM_OK;
    cm_ice_manifest *item =
        cm_make_room(out->item, out->n, &out->capacity, sizeof(out->item[0]), 16);
    if (item == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for manifests");
    out->item = item;
    item[out->n++] = *m;
    return CM_OK;
}

/*
 * The dimension that is cut into ranges, and how many of its indices each has: all dimensions
 * behind it are whole, and of those in front of it there is one index at a time.
 */
static unsigned cut(const cm_ice_places *p, uint64_t *step)
{
    uint64_t behind = 1;
    for (unsigned j = p->rank; j-- > 0;) {
        if (behind * p->shape[j] > CM_ICE_MANIFEST_REFS) {
            *step = CM_ICE_MANIFEST_REFS / behind;
            return j;
        }
        behind *= p->shape[j];
    }
    *step = p->rank > 0 ? p->shape[0] : 1;
    return 0;
}

static void set_range(cm_ice_manifest *m, const cm_ice_places *p, unsigned d, uint64_t step,
                      uint64_t first, uint64_t *n)
{
    uint64_t behind = 1, left = first;
    for (unsigned j = d + 1; j < p->rank; j++) {
        behind *= p->shape[j];
        m->first[j] = 0;
        m->end[j] = (uint32_t)p->shape[j];
    }
    left /= behind;
    for (unsigned j = d + 1; j-- > 0 && p->rank > 0;) {
        uint64_t at = left % p->shape[j], end = at + (j == d ? step : 1);
        left /= p->shape[j];
        m->first[j] = (uint32_t)at;
        m->end[j] = (uint32_t)(end < p->shape[j] ? end : p->shape[j]);
    }
    *n = p->rank > 0 ? (m->end[d] - m->first[d]) * behind : 1;
}

static int write_all(writing *w, uint64_t nchunks, cm_error *err)
{
    uint64_t step, n;
    const unsigned d = cut(w->places, &step);
    cm_ice_manifest m;
    int rc = CM_OK;
    for (uint64_t first = 0; rc == CM_OK && first < nchunks; first += n) {
        set_range(&m, w->places, d, step, first, &n);
        rc = write_range(w, &m, first, (size_t)n, err);
        if (rc == CM_OK)
            rc = keep(w->out, &m, err);
    }
    return rc;
}

int cm_ice_manifests_write(cm_store *root, cm_ice_records *records, const cm_ice_places *places,
                           const uint8_t node[CM_ICE_NODE_ID], cm_ice_manifests *out, cm_error *err)
{
    writing w = {.root = root, .records = records, .places = places, .node = node, .out = out};
    uint64_t nchunks;
    *out = (cm_ice_manifests){0};
    for (unsigned j = 0; j < places->rank; j++)
        if (places->shape[j] > UINT32_MAX)
            return cm_fail(err, CM_EUNSUPPORTED,
                           "%llu chunks along a dimension are more than Icechunk can count",
                           (unsigned long long)places->shape[j]);
    if (!cm_product_u64(places->rank, places->shape, &nchunks))
        return cm_fail(err, CM_EUNSUPPORTED, "too many chunks");
    const size_t most = nchunks < CM_ICE_MANIFEST_REFS ? (size_t)nchunks : CM_ICE_MANIFEST_REFS;
    out->present = cm_calloc(nchunks / 64 + 1, sizeof(out->present[0]), err);
    w.place = cm_calloc(most + 1, sizeof(w.place[0]), err);
    w.wait = cm_calloc(most + 1, sizeof(w.wait[0]), err);
    int rc = out->present == NULL || w.place == NULL || w.wait == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK)
        rc = write_all(&w, nchunks, err);
    free(w.place);
    free(w.wait);
    cm_flat_release(&w.flat);
    return rc;
}

void cm_ice_manifests_release(cm_ice_manifests *m)
{
    free(m->item);
    free(m->present);
    *m = (cm_ice_manifests){0};
}
