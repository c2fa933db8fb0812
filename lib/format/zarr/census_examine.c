/* Looks at the objects of an array: their sizes, the indices of shards, and what they decode to. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/threads.h"
#include "format/zarr/census_tally.h"
#include "format/zarr/shapes.h"

enum {
    SHARE = 64, /* objects that a thread takes at once */
    MAX_INDEX = 256 << 20,
    MAX_STRINGS = 1 << 30
};

/* The objects that all threads look through. */
typedef struct examination {
    cm_store *store;
    cm_census_tally *tally;
    cm_array *array;         /* to decode with; NULL: no chunk is decoded */
    cm_zarr_shapes *shapes;  /* NULL: all objects have one shape */
    cm_shard_layout *layout; /* of the largest shard */
    const cm_stop *stop;
    atomic_uint_fast64_t next;
    atomic_bool failed;
    pthread_mutex_t lock; /* of what follows */
    int status;
    cm_error *err;
} examination;

/* One thread's own. */
typedef struct examiner {
    examination *all;
    cm_shard_entry *entry;
    cm_codec_ctx *ctx;
    cm_buf index, stored;
    uint8_t *decoded;
    cm_strings strings;
    cm_error err;
} examiner;

/* Whether an error tells of the object, and not of this process or of storage as a whole. */
static bool is_of_object(const examination *x, int rc)
{
    return rc == CM_EFORMAT || rc == CM_EUNSUPPORTED || rc == CM_EBUDGET ||
           (rc == CM_EIO && !cm_store_is_remote(x->store));
}

/* ---- one chunk ----------------------------------------------------------------------------- */

static int decode(examiner *e, uint64_t number, const cm_fetch *fetch, cm_error *err)
{
    const cm_array *a = e->all->array;
    const cm_chain *chain = cm_array_chain(a, fetch->chain);
    if (!cm_dtype_is_vlen(&a->dtype))
        return cm_chain_decode(chain, e->ctx, e->stored.data, e->stored.nbytes, fetch->skip,
                               e->decoded, err);
    uint64_t coord[CM_MAX_RANK];
    cm_grid_coord(&a->grid, number, coord);
    const uint64_t nelem = cm_grid_chunk_nelem(&a->grid, coord);
    int rc =
        cm_chain_decode_strings(chain, e->ctx, e->stored.data, e->stored.nbytes, &e->strings, err);
    if (rc == CM_OK && e->strings.nelem != nelem)
        rc = cm_fail(err, CM_EFORMAT, "has %zu elements instead of %llu", e->strings.nelem,
                     (unsigned long long)nelem);
    return rc;
}

/* Chunk NUMBER of the grid, decoded as any reader does. */
static int decode_chunk(examiner *e, uint64_t number, cm_error *err)
{
    examination *x = e->all;
    cm_error why = {0};
    cm_fetch fetch;
    int rc = x->array->ops->fetch(x->array, number, &e->stored, &fetch, &why);
    if (rc == CM_OK && !fetch.present) { /* removed since it was listed */
        cm_census_tally_chunk(x->tally, CM_CENSUS_ABSENT, number, NULL);
        return CM_OK;
    }
    if (rc == CM_OK && !x->tally->sharded &&
        !cm_census_tally_size(x->tally, number, (uint64_t)e->stored.nbytes))
        return CM_OK;
    if (rc == CM_OK)
        rc = decode(e, number, &fetch, &why);
    if (rc == CM_OK || !is_of_object(x, rc)) {
        if (rc != CM_OK && err != NULL)
            *err = why;
        return rc;
    }
    cm_census_tally_chunk(x->tally, CM_CENSUS_UNDECODABLE, number, why.text);
    return CM_OK;
}

/* ---- one shard ----------------------------------------------------------------------------- */

/* Entry I of the shard LAYOUT of TOTAL bytes, whose first chunk is FIRST. */
static int judge_entry(examiner *e, const cm_shard_layout *layout, const uint64_t *first,
                       uint64_t i, uint64_t total, cm_error *err)
{
    examination *x = e->all;
    const cm_grid *within = cm_shard_grid(layout);
    const cm_shard_entry *entry = &e->entry[i];
    uint64_t coord[CM_MAX_RANK];
    char why[160];
    cm_grid_coord(within, i, coord);
    for (unsigned j = 0; j < within->rank; j++) {
        coord[j] += first[j];
        if (coord[j] >= x->tally->grid.count[j])
            return CM_OK; /* of a shard at the edge */
    }
    const uint64_t number = cm_grid_number(&x->tally->grid, coord);
    if (entry->offset == CM_SHARD_MISSING && entry->nbytes == CM_SHARD_MISSING) {
        cm_census_tally_chunk(x->tally, CM_CENSUS_LEFT_OUT, number, NULL);
        return CM_OK;
    }
    if (entry->nbytes == 0) {
        cm_census_tally_chunk(x->tally, CM_CENSUS_EMPTY, number, NULL);
        return CM_OK;
    }
    if (entry->offset <= total && entry->nbytes <= total - entry->offset)
        return x->array != NULL ? decode_chunk(e, number, err) : CM_OK;
    snprintf(why, sizeof(why), "has %llu bytes at %llu by the index of its shard, which has %llu",
             (unsigned long long)entry->nbytes, (unsigned long long)entry->offset,
             (unsigned long long)total);
    cm_census_tally_chunk(x->tally, CM_CENSUS_TRUNCATED, number, why);
    return CM_OK;
}

/* Reads the index of the shard KEY; *nbytes are those of the shard. */
static int read_index(examiner *e, const cm_shard_layout *layout, const char *key, uint64_t *nbytes,
                      cm_error *err)
{
    examination *x = e->all;
    cm_object_reader *object;
    const size_t want = cm_shard_index_nbytes(layout);
    if (want > MAX_INDEX)
        return cm_fail(err, CM_EBUDGET, "the index of a shard has %zu bytes", want);
    int rc = cm_object_open_part(x->store, key, !cm_shard_index_at_start(layout), want, &e->index,
                                 &object, err);
    if (rc != CM_OK)
        return rc;
    *nbytes = cm_object_nbytes(object);
    cm_object_close(object);
    if (e->index.nbytes < want)
        return CM_OK;
    if (e->entry == NULL &&
        (e->entry = cm_calloc((size_t)cm_shard_nchunks(x->layout), sizeof(*e->entry), err)) == NULL)
        return CM_ENOMEM;
    /* Entries are judged one by one: that one leaves the shard tells nothing of the others. */
    return cm_shard_index_decode(layout, e->index.data, want, UINT64_MAX, e->entry, err);
}

static int examine_shard(examiner *e, const char *key, uint64_t number, cm_error *err)
{
    examination *x = e->all;
    cm_error why = {0};
    char text[96];
    const cm_shard_layout *layout;
    uint64_t coord[CM_MAX_RANK], first[CM_MAX_RANK], total = 0;
    cm_grid_coord(&x->tally->names.grid, number, coord);
    int rc = cm_zarr_shard_at(x->shapes, x->layout, &x->tally->names.grid, &x->tally->grid, coord,
                              first, &layout, err);
    if (rc != CM_OK)
        return rc;
    const size_t want = cm_shard_index_nbytes(layout);
    rc = read_index(e, layout, key, &total, &why);
    /* Servers refuse ranges of an object without bytes. */
    if (is_of_object(x, rc) && cm_store_size(x->store, key, &total, NULL) == CM_OK && total == 0)
        rc = CM_OK;
    if (rc == CM_OK && total < want) {
        snprintf(text, sizeof(text), "has %llu bytes, fewer than its index",
                 (unsigned long long)total);
        cm_census_tally_object(x->tally, total == 0 ? CM_CENSUS_EMPTY : CM_CENSUS_TRUNCATED, number,
                               total == 0 ? NULL : text);
        return CM_OK;
    }
    if (rc == CM_ENOTFOUND || is_of_object(x, rc)) {
        cm_census_tally_object(x->tally,
                               rc == CM_ENOTFOUND ? CM_CENSUS_ABSENT : CM_CENSUS_UNDECODABLE,
                               number, why.text);
        return CM_OK;
    }
    if (rc != CM_OK) {
        if (err != NULL)
            *err = why;
        return rc;
    }
    for (uint64_t i = 0; rc == CM_OK && i < cm_shard_nchunks(layout); i++)
        rc = judge_entry(e, layout, first, i, total, err);
    return rc;
}

/* ---- all objects --------------------------------------------------------------------------- */

static int examine_size(examiner *e, const char *key, uint64_t number, cm_error *err)
{
    examination *x = e->all;
    cm_error why = {0};
    uint64_t nbytes = 0;
    int rc = cm_store_size(x->store, key, &nbytes, &why);
    if (rc == CM_OK) {
        (void)cm_census_tally_size(x->tally, number, nbytes);
    } else if (rc == CM_ENOTFOUND) {
        cm_census_tally_object(x->tally, CM_CENSUS_ABSENT, number, NULL);
    } else if (is_of_object(x, rc)) {
        cm_census_tally_object(x->tally, CM_CENSUS_UNDECODABLE, number, why.text);
    } else {
        if (err != NULL)
            *err = why;
        return rc;
    }
    return CM_OK;
}

static int examine(examiner *e, uint64_t number, cm_error *err)
{
    examination *x = e->all;
    const cm_census_tally *t = x->tally;
    uint64_t coord[CM_MAX_RANK];
    char name[CM_CHUNK_KEY_SIZE];
    if (!t->sharded && x->array != NULL)
        return decode_chunk(e, number, err);
    cm_grid_coord(&t->names.grid, number, coord);
    cm_zarr_chunk_key(t->meta, coord, name, sizeof(name));
    char *key = cm_asprintf(err, "%s%s%s", t->path, t->path[0] ? "/" : "", name);
    if (key == NULL)
        return CM_ENOMEM;
    int rc = t->sharded ? examine_shard(e, key, number, err) : examine_size(e, key, number, err);
    free(key);
    return rc;
}

static int begin(examiner *e)
{
    const cm_array *a = e->all->array;
    cm_strings_init(&e->strings, MAX_STRINGS);
    if (a == NULL)
        return CM_OK;
    e->ctx = cm_codec_ctx_create(&e->err);
    if (e->ctx == NULL)
        return CM_ENOMEM;
    const size_t nbytes = cm_chain_decoded_nbytes(a->chain);
    e->decoded = cm_calloc(nbytes + 1, 1, &e->err);
    return e->decoded != NULL ? CM_OK : CM_ENOMEM;
}

static void examine_main(void *context, unsigned index)
{
    examination *x = context;
    examiner e = {.all = x};
    uint64_t lo = 0;
    const uint64_t n = x->tally->names.grid.nchunks;
    int rc = begin(&e);
    (void)index;
    while (rc == CM_OK && !atomic_load(&x->failed) && (lo = atomic_fetch_add(&x->next, SHARE)) < n)
        for (uint64_t i = lo; i < lo + SHARE && i < n && rc == CM_OK; i++)
            if (cm_census_tally_saw(x->tally, i) && (rc = cm_stop_check(x->stop, &e.err)) == CM_OK)
                rc = examine(&e, i, &e.err);
    pthread_mutex_lock(&x->lock);
    if (rc != CM_OK && x->status == CM_OK) {
        x->status = rc;
        if (x->err != NULL)
            *x->err = e.err;
    }
    pthread_mutex_unlock(&x->lock);
    if (rc != CM_OK)
        atomic_store(&x->failed, true);
    cm_codec_ctx_free(e.ctx);
    cm_buf_release(&e.index);
    cm_buf_release(&e.stored);
    cm_strings_release(&e.strings);
    free(e.decoded);
    free(e.entry);
}

/* Bytes that one thread takes. */
static uint64_t thread_nbytes(const examination *x)
{
    uint64_t own = 0;
    if (x->layout != NULL)
        own = 2 * (uint64_t)cm_shard_index_nbytes(x->layout);
    if (x->array != NULL)
        own += (uint64_t)cm_array_decoded_nbytes(x->array) + x->array->max_stored_nbytes +
               cm_array_decode_memory(x->array);
    return own;
}

/* As many as there is work for, and memory. */
static unsigned threads_for(const examination *x, const cm_census_options *o)
{
    const uint64_t shares = (x->tally->nseen + SHARE - 1) / SHARE, own = thread_nbytes(x);
    uint64_t n = o->nthreads > 0 ? o->nthreads : 1;
    if (x->array == NULL && cm_store_is_remote(x->store) && n < 16)
        n = 16; /* they wait */
    if (o->memory > 0 && own > 0 && n > o->memory / own)
        n = o->memory / own;
    if (n > shares && x->array == NULL)
        n = shares;
    return n > 0 ? (unsigned)n : 1;
}

static int make_layout(examination *x, cm_error *err)
{
    const cm_zarr_meta *m = x->tally->meta;
    if (!x->tally->sharded)
        return CM_OK;
    int rc = cm_zarr_shapes_create(m, &x->shapes, err);
    if (rc != CM_OK)
        return rc;
    return cm_shard_layout_create(cm_zarr_sharding(m), m->rank, m->chunk, &x->layout, err);
}

/* The array to decode with; where there is no codec for it, sizes are looked at all the same. */
static int open_array(examination *x, cm_dataset *ds, bool *opened, cm_error *err)
{
    cm_census_tally *t = x->tally;
    cm_error why = {0};
    *opened = t->var->array == NULL;
    int rc = cm_dataset_prepare(ds, t->var, &why);
    x->array = rc == CM_OK ? t->var->array : NULL;
    if (rc == CM_OK || (rc != CM_EUNSUPPORTED && rc != CM_EBUDGET)) {
        if (rc != CM_OK && err != NULL)
            *err = why;
        return rc;
    }
    t->out->undecoded = cm_strdup(why.text, err);
    return t->out->undecoded != NULL ? CM_OK : CM_ENOMEM;
}

/* Where decoding takes more than the memory allowed, only sizes are looked at. */
static int check_memory(examination *x, const cm_census_options *o, cm_error *err)
{
    char needs[32];
    const uint64_t own = thread_nbytes(x), held = cm_resident(NULL);
    if (x->array == NULL || o->memory == 0 || (held < o->memory && own <= o->memory - held))
        return CM_OK;
    x->array = NULL;
    x->tally->out->undecoded = cm_asprintf(err, "this may take %s of memory: more than `memory`",
                                           cm_format_size(held + own, needs, sizeof(needs)));
    return x->tally->out->undecoded != NULL ? CM_OK : CM_ENOMEM;
}

int cm_census_examine(cm_dataset *ds, cm_census_tally *t, const cm_census_options *o, cm_error *err)
{
    examination x = {.store = cm_dataset_store(ds), .tally = t, .stop = o->stop, .err = err};
    const bool decodes = o->depth == CM_CENSUS_DECODE;
    bool opened = false;
    int rc = CM_OK;
    if (t->out->unclear != NULL || t->nseen == 0 || t->seen == NULL ||
        o->depth == CM_CENSUS_NAMES || (t->sized && !t->sharded && !decodes))
        return CM_OK;
    if (decodes)
        rc = open_array(&x, ds, &opened, err);
    if (rc == CM_OK)
        rc = make_layout(&x, err);
    if (rc == CM_OK)
        rc = check_memory(&x, o, err);
    if (rc == CM_OK) {
        pthread_mutex_init(&x.lock, NULL);
        cm_threads_run(threads_for(&x, o), examine_main, &x);
        pthread_mutex_destroy(&x.lock);
        rc = x.status;
    }
    cm_shard_layout_free(x.layout);
    cm_zarr_shapes_free(x.shapes);
    if (opened)
        cm_dataset_unprepare(ds, t->var);
    return rc;
}
