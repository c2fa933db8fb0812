#include "format/icechunk/manifest_write.h"

#include <stdlib.h>
#include <string.h>

#include "format/icechunk/file_write.h"
#include "format/icechunk/key.h"
#include "format/icechunk/manifest_ranges.h"

/* A table that waits for the position of its location. */
typedef struct waiting {
    uint32_t at, location;
    bool tagged;
} waiting;

typedef struct writing {
    cm_store *root;
    cm_ice_records *records;
    const cm_ice_manifest_job *job; /* of the array that is written, */
    const cm_ice_places *places;    /* its chunks, */
    cm_ice_manifests *out;          /* and what becomes of it */
    cm_ice_place *place;            /* of one range, or of small arrays one after the other */
    cm_ice_kept kept;
    waiting *wait;
    size_t nwait;
    cm_flat_writer flat;
    cm_flat_shape inside, file, outside, tagged; /* of references */
} writing;

/* ---- one manifest ---- */

/* The shapes of references come first: offsets to their vtables go back. */
static int make_shapes(writing *w, cm_error *err)
{
    static const cm_flat_field inside[] = {CM_FLAT_OFFSET(CM_ICE_CHUNK_INDEX),
                                           CM_FLAT_OFFSET(CM_ICE_CHUNK_INLINE)};
    static const cm_flat_field file[] = {CM_FLAT_OFFSET(CM_ICE_CHUNK_INDEX),
                                         {CM_ICE_CHUNK_OFFSET, 8, 8},
                                         {CM_ICE_CHUNK_LENGTH, 8, 8},
                                         {CM_ICE_CHUNK_ID, CM_ICE_ID, 1}};
    static const cm_flat_field outside[] = {CM_FLAT_OFFSET(CM_ICE_CHUNK_INDEX),
                                            {CM_ICE_CHUNK_OFFSET, 8, 8},
                                            {CM_ICE_CHUNK_LENGTH, 8, 8},
                                            CM_FLAT_OFFSET(CM_ICE_CHUNK_LOCATION),
                                            {CM_ICE_CHUNK_MODIFIED, 4, 4}};
    static const cm_flat_field tagged[] = {CM_FLAT_OFFSET(CM_ICE_CHUNK_INDEX),
                                           {CM_ICE_CHUNK_OFFSET, 8, 8},
                                           {CM_ICE_CHUNK_LENGTH, 8, 8},
                                           CM_FLAT_OFFSET(CM_ICE_CHUNK_LOCATION),
                                           CM_FLAT_OFFSET(CM_ICE_CHUNK_ETAG)};
    int rc = cm_flat_shape_of(&w->flat, inside, 2, &w->inside, err);
    if (rc == CM_OK)
        rc = cm_flat_shape_of(&w->flat, file, 4, &w->file, err);
    if (rc == CM_OK)
        rc = cm_flat_shape_of(&w->flat, outside, 5, &w->outside, err);
    return rc == CM_OK ? cm_flat_shape_of(&w->flat, tagged, 5, &w->tagged, err) : rc;
}

/* An array in a manifest. */
typedef struct listed {
    cm_ice_manifest_job *job;
    uint64_t nchunks;
    uint32_t nrefs; /* of this manifest */
    uint32_t ref;   /* position of the first offset to a reference */
} listed;

/* The table of array A, to which the offset at FROM points, and its list of references. */
static int begin_array(writing *w, const cm_flat_shape *shape, uint32_t from, listed *a,
                       cm_error *err)
{
    uint32_t at;
    int rc = cm_flat_table(&w->flat, shape, &at, err);
    if (rc != CM_OK)
        return rc;
    cm_flat_point(&w->flat, from, at);
    cm_flat_set(&w->flat, at + shape->at[CM_ICE_REFS_NODE], a->job->node, CM_ICE_NODE_ID);
    return cm_flat_vector(&w->flat, at + shape->at[CM_ICE_REFS_LIST], NULL, a->nrefs, 4, 4, &a->ref,
                          err);
}

/* The tables above the references of the N arrays A. */
static int begin(writing *w, const uint8_t *id, listed *a, size_t n, cm_error *err)
{
    static const cm_flat_field manifest[] = {{CM_ICE_MANIFEST_ID, CM_ICE_ID, 1},
                                             CM_FLAT_OFFSET(CM_ICE_MANIFEST_ARRAYS),
                                             {CM_ICE_MANIFEST_COMPRESSION, 1, 1}};
    static const cm_flat_field array[] = {{CM_ICE_REFS_NODE, CM_ICE_NODE_ID, 1},
                                          CM_FLAT_OFFSET(CM_ICE_REFS_LIST)};
    cm_flat_writer *f = &w->flat;
    cm_flat_shape root, one;
    uint32_t at, list = 0;
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
    cm_flat_set(f, at + root.at[CM_ICE_MANIFEST_ID], id, CM_ICE_ID);
    rc = cm_flat_vector(f, at + root.at[CM_ICE_MANIFEST_ARRAYS], NULL, n, 4, 4, &list, err);
    for (size_t i = 0; rc == CM_OK && i < n; i++)
        rc = begin_array(w, &one, list + 4 * (uint32_t)i, &a[i], err);
    return rc;
}

static const cm_flat_shape *shape_of(const writing *w, const cm_ice_place *p)
{
    if (p->where == CM_ICE_OUTSIDE)
        return p->tagged ? &w->tagged : &w->outside;
    return p->where == CM_ICE_INLINE ? &w->inside : &w->file;
}

/* Sets the fields of P but its index in the table at AT. */
static int describe(writing *w, const cm_ice_place *p, uint32_t at, cm_error *err)
{
    cm_flat_writer *f = &w->flat;
    if (p->where == CM_ICE_INLINE)
        return cm_flat_vector(f, at + w->inside.at[CM_ICE_CHUNK_INLINE], p->bytes, p->nbytes, 1, 1,
                              NULL, err);
    const cm_flat_shape *shape = shape_of(w, p);
    cm_flat_set(f, at + shape->at[CM_ICE_CHUNK_OFFSET], &p->offset, 8);
    cm_flat_set(f, at + shape->at[CM_ICE_CHUNK_LENGTH], &p->nbytes, 8);
    if (p->where == CM_ICE_IN_FILE)
        cm_flat_set(f, at + shape->at[CM_ICE_CHUNK_ID], p->id, CM_ICE_ID);
    else
        w->wait[w->nwait++] = (waiting){at, p->location, p->tagged};
    return CM_OK;
}

/* Points the offset at REF to the reference P of the chunk at INDEX. */
static int add(writing *w, const cm_ice_place *p, const uint32_t *index, uint32_t ref,
               cm_error *err)
{
    const cm_flat_shape *shape = shape_of(w, p);
    uint32_t at;
    int rc = cm_flat_table(&w->flat, shape, &at, err);
    if (rc != CM_OK)
        return rc;
    cm_flat_point(&w->flat, ref, at);
    rc = cm_flat_vector(&w->flat, at + shape->at[CM_ICE_CHUNK_INDEX], index, w->places->rank, 4, 4,
                        NULL, err);
    return rc == CM_OK ? describe(w, p, at, err) : rc;
}

static int by_location(const void *a, const void *b)
{
    const waiting *x = a, *y = b;
    if (x->location != y->location)
        return x->location < y->location ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static int locate(const writing *w, uint32_t number, cm_ice_location *out, cm_error *err)
{
    if ((number & CM_ICE_LOCATION_KEPT) == 0)
        return w->places->locate(w->places->context, number, out, err);
    *out = *cm_ice_kept_locate(&w->kept, number);
    return CM_OK;
}

/* TEXT for the field at AT; *TO is where it stands. */
static int write_text(writing *w, uint32_t at, const char *text, uint32_t *to, cm_error *err)
{
    int rc = cm_flat_string(&w->flat, at, text, strlen(text), err);
    if (rc == CM_OK)
        *to = at + cm_load_le32(w->flat.buf.data + at);
    return rc;
}

/* Writes each location once, and points all its references there. */
static int write_locations(writing *w, cm_error *err)
{
    cm_flat_writer *f = &w->flat;
    cm_ice_location l = {0};
    uint32_t to = 0, tag = 0;
    int rc = CM_OK;
    qsort(w->wait, w->nwait, sizeof(w->wait[0]), by_location);
    for (size_t i = 0; rc == CM_OK && i < w->nwait; i++) {
        const waiting *one = &w->wait[i];
        const cm_flat_shape *shape = one->tagged ? &w->tagged : &w->outside;
        const uint32_t at = one->at + shape->at[CM_ICE_CHUNK_LOCATION];
        const uint32_t tag_at = one->at + shape->at[CM_ICE_CHUNK_ETAG];
        if (i == 0 || one->location != w->wait[i - 1].location) {
            rc = locate(w, one->location, &l, err);
            if (rc == CM_OK)
                rc = write_text(w, at, l.url, &to, err);
            if (rc == CM_OK && one->tagged)
                rc = write_text(w, tag_at, l.etag, &tag, err);
        } else {
            cm_flat_point(f, at, to);
            if (one->tagged)
                cm_flat_point(f, tag_at, tag);
        }
        if (rc == CM_OK && !one->tagged)
            cm_flat_set(f, one->at + shape->at[CM_ICE_CHUNK_MODIFIED], &l.modified_s, 4);
    }
    return rc;
}

static int write_file(writing *w, cm_ice_manifest *m, cm_error *err)
{
    char key[CM_ICE_KEY_SIZE];
    cm_ice_key("manifests", m->id, key);
    return cm_ice_file_write(w->root, key, CM_ICE_MANIFEST_FILE, &w->flat.buf, &m->nbytes, err);
}

static void mark(cm_ice_manifests *out, uint64_t number, const cm_ice_place *p)
{
    out->present[number / 64] |= (uint64_t)1 << number % 64;
    out->nrefs++;
    out->noutside += p->where == CM_ICE_OUTSIDE;
}

/* The references of the chunks of M, of which the first has number FIRST, at PLACE. */
static int add_range(writing *w, const cm_ice_manifest *m, uint64_t first, size_t n,
                     const cm_ice_place *place, uint32_t ref, cm_error *err)
{
    uint32_t index[CM_MAX_RANK];
    int rc = CM_OK;
    w->nwait = 0;
    memcpy(index, m->extent.first, sizeof(index));
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        if (place[i].where != CM_ICE_NOWHERE) {
            rc = add(w, &place[i], index, ref, err);
            ref += 4;
            if (w->job->was == NULL) /* else chunks with another place are marked */
                mark(w->out, first + i, &place[i]);
        }
        for (unsigned j = w->places->rank; j-- > 0 && ++index[j] == m->extent.end[j];)
            index[j] = m->extent.first[j];
    }
    return rc == CM_OK ? write_locations(w, err) : rc;
}

static uint32_t count_refs(const cm_ice_place *place, size_t n)
{
    uint32_t nrefs = 0;
    for (size_t i = 0; i < n; i++)
        nrefs += place[i].where != CM_ICE_NOWHERE;
    return nrefs;
}

static int name_manifest(writing *w, uint8_t *id, cm_error *err)
{
    int rc = cm_ice_id_random(id, CM_ICE_ID, err);
    return rc == CM_OK ? cm_ice_records_name(w->records, 'm', id, err) : rc;
}

/* Places of chunks that stay where they are become those of the snapshot before. */
static int find_kept(writing *w, const cm_ice_manifest_job *job, const cm_ice_manifest *m,
                     cm_ice_place *place, cm_error *err)
{
    return job->was == NULL
               ? CM_OK
               : cm_ice_kept_find(&w->kept, job->was, job->places->rank, &m->extent, place, err);
}

/* A manifest of N chunks of one large array. */
static int write_range(writing *w, cm_ice_manifest_job *job, cm_ice_manifest *m, uint64_t first,
                       size_t n, cm_error *err)
{
    int rc = w->places->find(w->places->context, first, n, w->place, err);
    cm_ice_kept_forget(&w->kept);
    if (rc == CM_OK)
        rc = find_kept(w, job, m, w->place, err);
    listed a = {.job = job, .nrefs = rc == CM_OK ? count_refs(w->place, n) : 0};
    m->nrefs = a.nrefs;
    if (rc != CM_OK || a.nrefs == 0)
        return rc;
    rc = name_manifest(w, m->id, err);
    if (rc == CM_OK)
        rc = begin(w, m->id, &a, 1, err);
    if (rc == CM_OK)
        rc = add_range(w, m, first, n, w->place, a.ref, err);
    return rc == CM_OK ? write_file(w, m, err) : rc;
}

/* ---- large arrays ---- */

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

/* Marks those of N chunks, from number FIRST on, that have another place than before. */
static bool mark_changed(cm_ice_manifests *out, const cm_ice_place *place, uint64_t first, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (place[i].where == CM_ICE_KEPT)
            continue;
        mark(out, first + i, &place[i]);
        any = true;
    }
    return any;
}

/* All ranges; of an array that is changed, those in which a chunk has another place are dirty. */
static int find_dirty(writing *w, cm_ice_ranges *r, cm_error *err)
{
    int rc = cm_ice_ranges_make(r, w->places->rank, w->places->shape, err);
    for (size_t i = 0; rc == CM_OK && w->job->was != NULL && i < r->n; i++) {
        cm_ice_range *one = &r->item[i];
        rc = w->places->find(w->places->context, one->first, one->n, w->place, err);
        one->dirty = rc == CM_OK && mark_changed(w->out, w->place, one->first, one->n);
    }
    return rc == CM_OK && w->job->was != NULL ? cm_ice_ranges_spread(r, w->job->was, err) : rc;
}

/* Manifests of the array as it was that meet none of the ranges R that are written anew. */
static int keep_manifests(const writing *w, const cm_ice_ranges *r, cm_error *err)
{
    const cm_fb_table *was = w->job->was;
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < cm_ice_node_nmanifests(was); i++) {
        cm_ice_manifest m = {.nrefs = 1, .listed = true};
        const uint8_t *id;
        rc = cm_ice_node_manifest(was, i, w->places->rank, &id, &m.extent, err);
        if (rc != CM_OK || cm_ice_ranges_meet(r, &m.extent))
            continue;
        memcpy(m.id, id, CM_ICE_ID);
        rc = keep(w->out, &m, err);
    }
    return rc;
}

static int write_large(writing *w, cm_ice_manifest_job *job, cm_error *err)
{
    cm_ice_ranges r = {0};
    w->job = job;
    w->places = job->places;
    w->out = job->out;
    int rc = find_dirty(w, &r, err);
    if (rc == CM_OK && job->was != NULL)
        rc = keep_manifests(w, &r, err);
    for (size_t i = 0; rc == CM_OK && i < r.n; i++) {
        cm_ice_manifest m = {.extent = r.item[i].extent};
        if (!r.item[i].dirty)
            continue;
        rc = write_range(w, job, &m, r.item[i].first, r.item[i].n, err);
        if (rc == CM_OK)
            rc = keep(w->out, &m, err);
    }
    cm_ice_ranges_release(&r);
    return rc;
}

/* ---- small arrays ---- */

static void whole(cm_ice_manifest *m, const cm_ice_places *p)
{
    for (unsigned j = 0; j < p->rank; j++) {
        m->extent.first[j] = 0;
        m->extent.end[j] = (uint32_t)p->shape[j];
    }
}

/* A changed array of which no chunk has another place keeps its manifests. */
static int find_changed(writing *w, listed *a, cm_ice_place *place, cm_error *err)
{
    cm_ice_manifest m = {0};
    const cm_ice_ranges none = {0};
    if (mark_changed(a->job->out, place, 0, (size_t)a->nchunks)) {
        whole(&m, a->job->places);
        return find_kept(w, a->job, &m, place, err);
    }
    w->job = a->job;
    w->places = a->job->places;
    w->out = a->job->out;
    for (size_t i = 0; i < (size_t)a->nchunks; i++)
        place[i].where = CM_ICE_NOWHERE;
    return keep_manifests(w, &none, err);
}

/* Drops arrays without references; how many are left. */
static size_t find_small(writing *w, listed *a, size_t n, cm_error *err, int *rc)
{
    size_t at = 0, kept = 0;
    for (size_t i = 0; *rc == CM_OK && i < n; i++) {
        const cm_ice_places *p = a[i].job->places;
        *rc = p->find(p->context, 0, (size_t)a[i].nchunks, w->place + at, err);
        if (*rc == CM_OK && a[i].job->was != NULL)
            *rc = find_changed(w, &a[i], w->place + at, err);
        a[i].nrefs = *rc == CM_OK ? count_refs(w->place + at, (size_t)a[i].nchunks) : 0;
        if (a[i].nrefs == 0)
            continue;
        at += (size_t)a[i].nchunks;
        a[kept++] = a[i];
    }
    return kept;
}

/* One manifest of the N arrays A, whose chunks fit into one. */
static int write_shared(writing *w, listed *a, size_t n, cm_error *err)
{
    cm_ice_manifest m = {0};
    size_t at = 0;
    int rc = CM_OK;
    cm_ice_kept_forget(&w->kept);
    n = find_small(w, a, n, err, &rc);
    if (rc != CM_OK || n == 0)
        return rc;
    rc = name_manifest(w, m.id, err);
    if (rc == CM_OK)
        rc = begin(w, m.id, a, n, err);
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        w->job = a[i].job;
        w->places = a[i].job->places;
        w->out = a[i].job->out;
        whole(&m, w->places);
        rc = add_range(w, &m, 0, (size_t)a[i].nchunks, w->place + at, a[i].ref, err);
        at += (size_t)a[i].nchunks;
        m.nrefs += a[i].nrefs;
    }
    if (rc == CM_OK)
        rc = write_file(w, &m, err);
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        m.listed = i > 0;
        whole(&m, a[i].job->places);
        rc = keep(a[i].job->out, &m, err);
    }
    return rc;
}

static int write_small(writing *w, listed *a, size_t n, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0, end; rc == CM_OK && i < n; i = end) {
        uint64_t nchunks = 0;
        for (end = i; end < n && nchunks + a[end].nchunks <= CM_ICE_MANIFEST_REFS; end++)
            nchunks += a[end].nchunks;
        rc = write_shared(w, a + i, end - i, err);
    }
    return rc;
}

/* ---- all of them ---- */

static int prepare(const cm_ice_manifest_job *job, uint64_t *nchunks, cm_error *err)
{
    const cm_ice_places *p = job->places;
    *job->out = (cm_ice_manifests){0};
    for (unsigned j = 0; j < p->rank; j++)
        if (p->shape[j] > UINT32_MAX)
            return cm_fail(err, CM_EUNSUPPORTED,
                           "%llu chunks along a dimension are more than Icechunk can count",
                           (unsigned long long)p->shape[j]);
    if (!cm_product_u64(p->rank, p->shape, nchunks))
        return cm_fail(err, CM_EUNSUPPORTED, "too many chunks");
    job->out->present = cm_calloc(*nchunks / 64 + 1, sizeof(job->out->present[0]), err);
    return job->out->present == NULL ? CM_ENOMEM : CM_OK;
}

int cm_ice_manifests_write(cm_store *root, cm_ice_records *records, cm_ice_manifest_job *job,
                           size_t n, cm_error *err)
{
    writing w = {.root = root, .records = records, .kept.root = root};
    listed *small = cm_calloc(n + 1, sizeof(small[0]), err);
    size_t nsmall = 0;
    w.place = cm_calloc(CM_ICE_MANIFEST_REFS + 1, sizeof(w.place[0]), err);
    w.wait = cm_calloc(CM_ICE_MANIFEST_REFS + 1, sizeof(w.wait[0]), err);
    int rc = small == NULL || w.place == NULL || w.wait == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        uint64_t nchunks = 0;
        rc = prepare(&job[i], &nchunks, err);
        if (rc == CM_OK && nchunks > CM_ICE_SMALL_ARRAY)
            rc = write_large(&w, &job[i], err);
        else
            small[nsmall++] = (listed){.job = &job[i], .nchunks = nchunks};
    }
    if (rc == CM_OK)
        rc = write_small(&w, small, nsmall, err);
    free(small);
    free(w.place);
    free(w.wait);
    cm_ice_kept_release(&w.kept);
    cm_flat_release(&w.flat);
    return rc;
}

void cm_ice_manifests_release(cm_ice_manifests *m)
{
    free(m->item);
    free(m->present);
    *m = (cm_ice_manifests){0};
}
