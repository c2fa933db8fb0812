#include "format/zarr/shapes.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEAST_BUCKETS = 64
};

typedef struct entry {
    cm_chain *chain; /* one of both */
    cm_shard_layout *layout;
    struct entry *next; /* in the same bucket */
    uint64_t shape[];
} entry;

struct cm_zarr_shapes {
    unsigned rank;
    cm_dtype dtype;
    cm_codec_spec *codecs;
    size_t ncodecs;
    pthread_mutex_t lock; /* of the rest */
    entry **bucket;
    size_t nbuckets, nentries;
};

int cm_zarr_shapes_create(const cm_zarr_meta *meta, cm_zarr_shapes **out, cm_error *err)
{
    *out = NULL;
    if (!cm_zarr_meta_is_cut(meta))
        return CM_OK;
    cm_zarr_shapes *s = cm_calloc(1, sizeof(*s), err);
    if (s == NULL)
        return CM_ENOMEM;
    pthread_mutex_init(&s->lock, NULL);
    s->rank = meta->rank;
    s->dtype = meta->dtype;
    s->ncodecs = meta->ncodecs;
    s->nbuckets = LEAST_BUCKETS;
    int rc = cm_codec_specs_copy(meta->codecs, meta->ncodecs, &s->codecs, err);
    if (rc == CM_OK && (s->bucket = cm_calloc(s->nbuckets, sizeof(s->bucket[0]), err)) == NULL)
        rc = CM_ENOMEM;
    if (rc != CM_OK) {
        cm_zarr_shapes_free(s);
        return rc;
    }
    *out = s;
    return CM_OK;
}

static void free_entry(entry *e)
{
    cm_chain_free(e->chain);
    cm_shard_layout_free(e->layout);
    free(e);
}

void cm_zarr_shapes_free(cm_zarr_shapes *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; s->bucket != NULL && i < s->nbuckets; i++)
        for (entry *e = s->bucket[i], *next; e != NULL; e = next) {
            next = e->next;
            free_entry(e);
        }
    free(s->bucket);
    cm_codec_specs_free(s->codecs, s->ncodecs);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* ---- the table ---- */

static size_t bucket_of(const cm_zarr_shapes *s, const uint64_t *shape)
{
    uint64_t hash = 0;
    for (unsigned j = 0; j < s->rank; j++)
        hash = (hash ^ shape[j]) * 0x9e3779b97f4a7c15u;
    return (size_t)(hash >> 32) % s->nbuckets;
}

/* Twice as many buckets; without memory they stay as they are, and lists get longer. */
static void grow(cm_zarr_shapes *s)
{
    const size_t before = s->nbuckets;
    entry **old = s->bucket, **larger = calloc(2 * before, sizeof(larger[0]));
    if (larger == NULL)
        return;
    s->bucket = larger;
    s->nbuckets = 2 * before;
    for (size_t i = 0; i < before; i++)
        for (entry *e = old[i], *next; e != NULL; e = next) {
            entry **at = &larger[bucket_of(s, e->shape)];
            next = e->next;
            e->next = *at;
            *at = e;
        }
    free(old);
}

static int make(const cm_zarr_shapes *s, const uint64_t *shape, entry **out, cm_error *err)
{
    const bool sharded = s->ncodecs == 1 && s->codecs[0].id == CM_CODEC_SHARDING;
    entry *e = cm_calloc(1, sizeof(*e) + s->rank * sizeof(e->shape[0]), err);
    if (e == NULL)
        return CM_ENOMEM;
    memcpy(e->shape, shape, s->rank * sizeof(shape[0]));
    int rc =
        sharded ? cm_shard_layout_create(s->codecs[0].shard, s->rank, shape, &e->layout, err)
                : cm_chain_create(s->codecs, s->ncodecs, &s->dtype, s->rank, shape, &e->chain, err);
    if (rc != CM_OK) {
        free_entry(e);
        return rc;
    }
    *out = e;
    return CM_OK;
}

static int find(cm_zarr_shapes *s, const uint64_t *shape, entry **out, cm_error *err)
{
    int rc = CM_OK;
    pthread_mutex_lock(&s->lock);
    entry *e = s->bucket[bucket_of(s, shape)];
    while (e != NULL && memcmp(e->shape, shape, s->rank * sizeof(shape[0])) != 0)
        e = e->next;
    if (e == NULL && (rc = make(s, shape, &e, err)) == CM_OK) {
        if (++s->nentries > s->nbuckets)
            grow(s);
        entry **at = &s->bucket[bucket_of(s, shape)];
        e->next = *at;
        *at = e;
    }
    pthread_mutex_unlock(&s->lock);
    *out = e;
    return rc;
}

int cm_zarr_shapes_chain(cm_zarr_shapes *shapes, const uint64_t *shape, const cm_chain **out,
                         cm_error *err)
{
    entry *e;
    int rc = find(shapes, shape, &e, err);
    *out = rc == CM_OK ? e->chain : NULL;
    return rc;
}

int cm_zarr_shard_at(cm_zarr_shapes *shapes, const cm_shard_layout *all, const cm_grid *outer,
                     const cm_grid *inner, const uint64_t *coord, uint64_t *first,
                     const cm_shard_layout **out, cm_error *err)
{
    uint64_t shape[CM_MAX_RANK];
    entry *e;
    for (unsigned j = 0; j < outer->rank; j++)
        first[j] = cm_grid_first(outer, j, coord[j]) / inner->chunk[j];
    *out = all;
    if (shapes == NULL)
        return CM_OK;
    cm_grid_chunk_shape(outer, coord, shape);
    int rc = find(shapes, shape, &e, err);
    *out = rc == CM_OK ? e->layout : NULL;
    return rc;
}
