/* Writes the chunks of one array into a store. */
#include "format/zarr/writer.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/zarr/shapes.h"
#include "format/zarr/shard_writer.h"

struct cm_zarr_writer {
    cm_target base; /* first, so that one can be cast to the other */
    cm_store *store;
    const cm_zarr_meta *meta;
    char *path;
    char *prefix;        /* of chunk keys: "" or "path/" */
    uint64_t first, end; /* this writer's objects of the outer grid */
    uint64_t nours;      /* chunks in those objects */
    bool restricted;     /* others write the rest */
    /* Of the outer grid in the larger array that names the chunks. */
    uint64_t origin[CM_MAX_RANK];
    cm_zarr_shapes *shapes;          /* NULL: all chunks have one */
    cm_shard_set *shards;            /* NULL: no shards */
    atomic_uint_fast64_t *delivered; /* one bit for each chunk */
    atomic_uint_fast64_t nchunks, nskipped, nkept, nkept_objects, nobjects, nbytes;
};

static const char *display_name(const cm_zarr_writer *w)
{
    return w->path[0] ? w->path : "/";
}

static int prefix_chunk(cm_error *err, const cm_zarr_writer *w, uint64_t number, int rc)
{
    if (rc == CM_OK || err == NULL)
        return rc;
    uint64_t coord[CM_MAX_RANK];
    char text[CM_MAX_RANK * 21];
    cm_grid_coord(&w->base.grid, number, coord);
    cm_error_prefix(err, "array %s: chunk %s", display_name(w),
                    cm_target_chunk_text(&w->base, coord, text, sizeof(text)));
    cm_error_place(err, cm_store_name(w->store));
    return rc;
}

static int prepare(cm_zarr_writer *w, const char *path, cm_error *err)
{
    const cm_zarr_meta *m = w->meta;
    const cm_shard_spec *shard = cm_zarr_sharding(m);
    const uint64_t *chunk = shard != NULL ? shard->chunk : m->chunk;
    w->path = cm_strdup(path, err);
    w->prefix = cm_asprintf(err, "%s%s", path, path[0] ? "/" : "");
    if (w->path == NULL || w->prefix == NULL)
        return CM_ENOMEM;
    if (m->is_group || m->verbatim)
        return cm_fail(err, CM_EINVAL, "there is nothing to write chunks by");
    int rc = path[0] ? cm_key_check(path, err) : CM_OK;
    if (rc == CM_OK)
        rc = cm_zarr_meta_outer_grid(m, &w->base.outer, err);
    if (rc == CM_OK && shard != NULL && shard->rank != m->rank)
        rc = cm_fail(err, CM_EINVAL, "inner chunks of %u dimensions in an array of %u", shard->rank,
                     m->rank);
    if (rc == CM_OK)
        rc = cm_zarr_meta_grid(m, &w->base.grid, err);
    if (rc == CM_OK && shard != NULL && cm_zarr_meta_is_cut(m))
        rc = cm_fail(err, CM_EUNSUPPORTED, "shards of several lengths are read, and not written");
    if (rc == CM_OK)
        rc = cm_zarr_shapes_create(m, &w->shapes, err);
    if (rc == CM_OK)
        rc = cm_chain_create(shard != NULL ? shard->codecs : m->codecs,
                             shard != NULL ? shard->ncodecs : m->ncodecs, &m->dtype, m->rank, chunk,
                             &w->base.chain, err);
    if (rc == CM_OK && shard != NULL)
        rc = cm_shard_set_create(w->store, w->prefix, m, shard, &w->base.grid, &w->base.outer,
                                 w->origin, cm_chain_encoded_bound(w->base.chain), &w->shards, err);
    if (rc == CM_OK) {
        w->base.sends = shard == NULL && cm_store_writes_async(w->store);
        w->end = w->base.outer.nchunks;
        w->nours = w->base.grid.nchunks;
        cm_zarr_writer_measure(w);
        w->delivered = cm_calloc(w->base.grid.nchunks / 64 + 1, sizeof *w->delivered, err);
        rc = w->delivered != NULL ? CM_OK : CM_ENOMEM;
    }
    return rc;
}

/* Marks chunk NUMBER as delivered; a second time is a bug of the caller. */
static int mark(cm_zarr_writer *w, uint64_t number, cm_error *err)
{
    if (number >= w->base.grid.nchunks)
        return cm_fail(err, CM_EINTERNAL, "array %s: no chunk number %llu", display_name(w),
                       (unsigned long long)number);
    uint64_t bit = (uint64_t)1 << number % 64;
    if (atomic_fetch_or(&w->delivered[number / 64], bit) & bit)
        return prefix_chunk(err, w, number,
                            cm_fail(err, CM_EINTERNAL, "was delivered a second time"));
    return CM_OK;
}

int cm_zarr_writer_key(const cm_zarr_writer *w, uint64_t outer, char **out, cm_error *err)
{
    uint64_t coord[CM_MAX_RANK];
    char name[CM_CHUNK_KEY_SIZE];
    cm_grid_coord(&w->base.outer, outer, coord);
    for (unsigned i = 0; i < w->base.outer.rank; i++)
        coord[i] += w->origin[i];
    cm_zarr_chunk_key(w->meta, coord, name, sizeof name);
    *out = cm_asprintf(err, "%s%s", w->prefix, name);
    return *out != NULL ? CM_OK : CM_ENOMEM;
}

/* ---- operations of a target ---- */

static int target_put(cm_target *t, const cm_put *put, size_t n, cm_error *err)
{
    return cm_zarr_writer_put_many((cm_zarr_writer *)t, put, n, err);
}

static int target_skip(cm_target *t, uint64_t number, cm_error *err)
{
    return cm_zarr_writer_skip((cm_zarr_writer *)t, number, err);
}

static bool target_is_delivered(const cm_target *t, uint64_t number)
{
    return cm_zarr_writer_is_delivered((const cm_zarr_writer *)t, number);
}

static int begin_object(cm_zarr_writer *w, const cm_put *put, cm_store_change **out, cm_error *err)
{
    char *key;
    int rc = cm_zarr_writer_key(w, put->number, &key, err);
    if (rc != CM_OK)
        return rc;
    rc = put->data != NULL ? cm_store_put_begin(w->store, key, put->data, put->nbytes, out, err)
                           : cm_store_delete_begin(w->store, key, out, err);
    free(key);
    return rc;
}

static int target_begin(cm_target *t, const cm_put *put, cm_sent *out, cm_error *err)
{
    cm_zarr_writer *w = (cm_zarr_writer *)t;
    cm_store_change *change;
    int rc = mark(w, put->number, err);
    if (rc == CM_OK)
        rc = prefix_chunk(err, w, put->number, begin_object(w, put, &change, err));
    if (rc == CM_OK)
        *out = (cm_sent){put->number, put->nbytes, put->data == NULL, change};
    return rc;
}

static bool target_is_done(const cm_sent *sent)
{
    return cm_store_change_done(sent->state);
}

static int target_end(cm_target *t, const cm_sent *sent, cm_error *err)
{
    cm_zarr_writer *w = (cm_zarr_writer *)t;
    int rc = prefix_chunk(err, w, sent->number, cm_store_change_end(sent->state, err));
    if (rc == CM_OK && sent->omitted) {
        atomic_fetch_add(&w->nskipped, 1);
    } else if (rc == CM_OK) {
        atomic_fetch_add(&w->nobjects, 1);
        atomic_fetch_add(&w->nchunks, 1);
        atomic_fetch_add(&w->nbytes, sent->nbytes);
    }
    return rc;
}

static int target_chain(cm_target *t, uint64_t number, const cm_chain **out, cm_error *err)
{
    const cm_zarr_writer *w = (const cm_zarr_writer *)t;
    uint64_t coord[CM_MAX_RANK], shape[CM_MAX_RANK];
    cm_grid_coord(&t->grid, number, coord);
    cm_grid_chunk_shape(&t->grid, coord, shape);
    return cm_zarr_shapes_chain(w->shapes, shape, out, err);
}

static const cm_target_ops target_ops = {.put = target_put,
                                         .omit = target_skip,
                                         .is_delivered = target_is_delivered,
                                         .begin = target_begin,
                                         .is_done = target_is_done,
                                         .end = target_end,
                                         .chain_of = target_chain};

cm_target *cm_zarr_writer_target(cm_zarr_writer *w)
{
    return w == NULL ? NULL : &w->base;
}

/* ---- creating ---- */

int cm_zarr_writer_create(cm_store *store, const char *path, const cm_zarr_meta *meta,
                          cm_zarr_writer **out, cm_error *err)
{
    *out = NULL;
    cm_zarr_writer *w = cm_calloc(1, sizeof *w, err);
    if (w == NULL)
        return CM_ENOMEM;
    w->base.ops = &target_ops;
    w->store = store;
    w->meta = meta;
    int rc = prepare(w, path, err);
    if (rc != CM_OK) {
        cm_error_prefix(err, "array %s", path[0] ? path : "/");
        cm_zarr_writer_free(w);
        return rc;
    }
    *out = w;
    return CM_OK;
}

void cm_zarr_writer_free(cm_zarr_writer *w)
{
    if (w == NULL)
        return;
    cm_shard_set_free(w->shards);
    cm_chain_free(w->base.chain);
    cm_zarr_shapes_free(w->shapes);
    free(w->delivered);
    free(w->prefix);
    free(w->path);
    free(w);
}

/* The chunks of the grid in outer chunk OUTER: from FIRST on, COUNT along each dimension. */
static uint64_t chunks_of(const cm_zarr_writer *w, uint64_t outer, uint64_t *first, uint64_t *count)
{
    uint64_t coord[CM_MAX_RANK], n = 1;
    cm_box box;
    cm_grid_coord(&w->base.outer, outer, coord);
    cm_grid_box(&w->base.outer, coord, &box);
    cm_grid_cover(&w->base.grid, &box, first, count);
    for (unsigned i = 0; i < w->base.grid.rank; i++)
        n *= count[i];
    return n;
}

int cm_zarr_writer_restrict(cm_zarr_writer *w, uint64_t first, uint64_t end, cm_error *err)
{
    uint64_t at[CM_MAX_RANK], count[CM_MAX_RANK];
    if (first > end || end > w->base.outer.nchunks)
        return cm_fail(err, CM_EINTERNAL, "array %s: no objects %llu to %llu", display_name(w),
                       (unsigned long long)first, (unsigned long long)end);
    w->restricted = true;
    w->first = first;
    w->end = end;
    w->nours = w->shards != NULL ? 0 : end - first;
    for (uint64_t outer = first; w->shards != NULL && outer < end; outer++)
        w->nours += chunks_of(w, outer, at, count);
    return CM_OK;
}

void cm_zarr_writer_shift(cm_zarr_writer *w, const uint64_t origin[CM_MAX_RANK])
{
    const cm_target *t = &w->base;
    for (unsigned j = 0; j < t->outer.rank; j++) {
        w->origin[j] = origin[j];
        w->base.first_chunk[j] = origin[j] * (t->outer.chunk[j] / t->grid.chunk[j]);
    }
}

void cm_zarr_writer_replace(cm_zarr_writer *w)
{
    if (w->shards == NULL)
        return;
    cm_shard_set_replace(w->shards);
    cm_zarr_writer_measure(w);
}

void cm_zarr_writer_measure(cm_zarr_writer *w)
{
    if (w->shards != NULL)
        w->base.shard_nbytes = cm_shard_set_memory(w->shards, &w->base.sent_nbytes);
}

void cm_zarr_writer_early(cm_zarr_writer *w, cm_early *early)
{
    if (w->shards != NULL)
        cm_shard_set_early(w->shards, early);
}

void cm_zarr_writer_range(const cm_zarr_writer *w, uint64_t *first, uint64_t *end)
{
    *first = w->first;
    *end = w->end;
}

const cm_grid *cm_zarr_writer_grid(const cm_zarr_writer *w)
{
    return &w->base.grid;
}

const cm_chain *cm_zarr_writer_chain(const cm_zarr_writer *w)
{
    return w->base.chain;
}

const cm_grid *cm_zarr_writer_outer_grid(const cm_zarr_writer *w)
{
    return &w->base.outer;
}

/* ---- delivering ---- */

static int put_object(cm_zarr_writer *w, const cm_put *put, cm_error *err)
{
    char *key;
    int rc = cm_zarr_writer_key(w, put->number, &key, err);
    if (rc != CM_OK)
        return rc;
    rc = cm_store_put(w->store, key, put->data, put->nbytes, err);
    free(key);
    if (rc == CM_OK)
        atomic_fetch_add(&w->nobjects, 1);
    return rc;
}

/* Removes the object of a chunk of fill values: an earlier run's object would be read instead. */
static int remove_object(cm_zarr_writer *w, uint64_t outer, cm_error *err)
{
    char *key;
    int rc = cm_zarr_writer_key(w, outer, &key, err);
    if (rc != CM_OK)
        return rc;
    rc = cm_store_delete(w->store, key, err);
    free(key);
    return rc;
}

int cm_zarr_writer_remove_all(cm_zarr_writer *w, cm_error *err)
{
    int rc = CM_OK;
    for (uint64_t outer = 0; outer < w->base.outer.nchunks; outer++) {
        int failed = remove_object(w, outer, rc == CM_OK ? err : NULL);
        rc = rc == CM_OK ? failed : rc;
    }
    return rc;
}

/* Delivers *taken of the N marked chunks PUT; DATA NULL: leaves the chunk out. */
static int deliver(cm_zarr_writer *w, const cm_put *put, size_t n, size_t *taken, cm_error *err)
{
    *taken = 1;
    if (w->shards == NULL)
        return put->data != NULL ? put_object(w, put, err) : remove_object(w, put->number, err);
    cm_shard_done done;
    int rc = cm_shard_set_deliver(w->shards, put, n, taken, &done, err);
    if (rc == CM_OK && done.made) {
        atomic_fetch_add(&w->nobjects, 1);
        atomic_fetch_add(&w->nbytes, done.nbytes);
    }
    return rc;
}

int cm_zarr_writer_put_many(cm_zarr_writer *w, const cm_put *put, size_t n, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; i < n && rc == CM_OK; i++)
        rc = mark(w, put[i].number, err);
    for (size_t taken, i = 0; i < n && rc == CM_OK; i += taken) {
        uint64_t nbytes = 0;
        rc = prefix_chunk(err, w, put[i].number, deliver(w, put + i, n - i, &taken, err));
        for (size_t k = 0; k < taken; k++)
            nbytes += put[i + k].nbytes;
        if (rc == CM_OK) {
            atomic_fetch_add(&w->nchunks, taken);
            atomic_fetch_add(&w->nbytes, nbytes);
        }
    }
    return rc;
}

int cm_zarr_writer_put(cm_zarr_writer *w, uint64_t number, const void *data, size_t nbytes,
                       cm_error *err)
{
    cm_put put = {number, data != NULL ? data : "", nbytes};
    return cm_zarr_writer_put_many(w, &put, 1, err);
}

int cm_zarr_writer_skip(cm_zarr_writer *w, uint64_t number, cm_error *err)
{
    cm_put nothing = {.number = number};
    size_t taken;
    int rc = mark(w, number, err);
    if (rc != CM_OK)
        return rc;
    rc = prefix_chunk(err, w, number, deliver(w, &nothing, 1, &taken, err));
    if (rc == CM_OK)
        atomic_fetch_add(&w->nskipped, 1);
    return rc;
}

/* Calls VISIT with each chunk of the grid in outer chunk OUTER; stops at an error. */
static int each_chunk(cm_zarr_writer *w, uint64_t outer,
                      int (*visit)(cm_zarr_writer *w, uint64_t number, cm_error *err),
                      cm_error *err)
{
    uint64_t coord[CM_MAX_RANK], first[CM_MAX_RANK], count[CM_MAX_RANK];
    uint64_t left = chunks_of(w, outer, first, count);
    memcpy(coord, first, sizeof coord);
    for (; left > 0; left--) {
        int rc = visit(w, cm_grid_number(&w->base.grid, coord), err);
        if (rc != CM_OK)
            return rc;
        for (unsigned i = w->base.grid.rank; i-- > 0 && ++coord[i] == first[i] + count[i];)
            coord[i] = first[i];
    }
    return CM_OK;
}

static int mark_kept(cm_zarr_writer *w, uint64_t number, cm_error *err)
{
    int rc = mark(w, number, err);
    if (rc == CM_OK)
        atomic_fetch_add(&w->nkept, 1);
    return rc;
}

int cm_zarr_writer_has(cm_zarr_writer *w, uint64_t outer, bool *there, cm_error *err)
{
    *there = false;
    if (outer >= w->base.outer.nchunks)
        return cm_fail(err, CM_EINTERNAL, "array %s: no object number %llu", display_name(w),
                       (unsigned long long)outer);
    char *key;
    int rc = cm_zarr_writer_key(w, outer, &key, err);
    if (rc != CM_OK)
        return rc;
    rc = cm_store_size(w->store, key, NULL, err);
    free(key);
    *there = rc == CM_OK;
    return rc == CM_ENOTFOUND ? CM_OK : rc;
}

int cm_zarr_writer_keep(cm_zarr_writer *w, uint64_t outer, bool *kept, cm_error *err)
{
    *kept = false;
    int rc = cm_zarr_writer_has(w, outer, kept, err);
    if (rc == CM_OK && *kept)
        rc = each_chunk(w, outer, mark_kept, err);
    *kept = *kept && rc == CM_OK;
    if (*kept)
        atomic_fetch_add(&w->nkept_objects, 1);
    return rc;
}

/* Whether the object of chunk NUMBER is written by others. */
static bool is_foreign(const cm_zarr_writer *w, uint64_t number)
{
    uint64_t coord[CM_MAX_RANK];
    cm_grid_coord(&w->base.grid, number, coord);
    for (unsigned j = 0; j < w->base.grid.rank; j++)
        coord[j] = cm_grid_find(&w->base.outer, j, cm_grid_first(&w->base.grid, j, coord[j]));
    uint64_t outer = cm_grid_number(&w->base.outer, coord);
    return outer < w->first || outer >= w->end;
}

bool cm_zarr_writer_is_delivered(const cm_zarr_writer *w, uint64_t number)
{
    if (w->restricted && is_foreign(w, number))
        return true;
    return atomic_load(&w->delivered[number / 64]) >> number % 64 & 1;
}

static int check_delivered(cm_zarr_writer *w, uint64_t number, cm_error *err)
{
    if (cm_zarr_writer_is_delivered(w, number))
        return CM_OK;
    return prefix_chunk(err, w, number, cm_fail(err, CM_EINTERNAL, "was never delivered"));
}

int cm_zarr_writer_finish(cm_zarr_writer *w, cm_error *err)
{
    cm_zarr_written c = cm_zarr_writer_counts(w);
    int rc = CM_OK;
    if (c.nchunks + c.nskipped + c.nkept == w->nours)
        return CM_OK;
    for (uint64_t outer = w->first; rc == CM_OK && outer < w->end; outer++)
        rc = each_chunk(w, outer, check_delivered, err);
    return rc != CM_OK ? rc
                       : cm_fail(err, CM_EINTERNAL, "array %s: a chunk could not be written",
                                 display_name(w));
}

cm_zarr_written cm_zarr_writer_counts(const cm_zarr_writer *w)
{
    return (cm_zarr_written){
        .nchunks = atomic_load(&w->nchunks),
        .nskipped = atomic_load(&w->nskipped),
        .nkept = atomic_load(&w->nkept),
        .nkept_objects = atomic_load(&w->nkept_objects),
        .nobjects = atomic_load(&w->nobjects),
        .nbytes = atomic_load(&w->nbytes),
    };
}
