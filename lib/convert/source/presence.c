#include "convert/source/presence.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/threads.h"
#include "codec/shard.h"
#include "convert/source/listing.h"
#include "format/zarr/shapes.h"

enum {
    MAX_OBJECTS = 8 << 20, /* a minute of asking; a bit for each is nothing */
    /* A thread's share: where a request takes a millisecond, a quarter of a second of it. */
    SHARE = 256,
    /* Of a shard's index; with longer ones each thread's own would be seen in the memory. */
    MAX_INDEX = 64 << 10
};

/* The list that all threads look through. */
typedef struct search {
    cm_listing list; /* where it was read, no object is asked for */
    cm_store *store;
    const char *path;
    const cm_zarr_meta *meta;
    const cm_shard_spec *spec; /* NULL: no shards */
    cm_zarr_shapes *shapes;    /* NULL: all objects have one shape */
    cm_shard_layout *layout;   /* of the largest shard */
    cm_grid grid, outer;
    const cm_stop *stop;
    cm_census_tally *tally; /* or NULL */
    uint64_t *bit;          /* of OUT */
    atomic_uint_fast64_t next;
    atomic_bool failed;
    pthread_mutex_t lock; /* of what follows */
    cm_presence *out;
    int status;
    cm_error *err;
} search;

/* One thread's own. */
typedef struct finder {
    search *all;
    cm_shard_entry *entry;
    cm_buf index;
    cm_presence found;
    cm_error err;
} finder;

static void mark(finder *f, const uint64_t *coord, uint64_t nbytes)
{
    uint64_t number = cm_grid_number(&f->all->grid, coord);
    /* Others have bits of the same word. */
    __atomic_fetch_or(&f->all->bit[number / 64], UINT64_C(1) << number % 64, __ATOMIC_RELAXED);
    f->found.npresent++;
    if (nbytes > f->found.max_nbytes)
        f->found.max_nbytes = nbytes;
}

/* FIRST is the first chunk of the shard. */
static void mark_entries(finder *f, const cm_shard_layout *layout, const uint64_t *first)
{
    const search *s = f->all;
    const cm_grid *within = cm_shard_grid(layout);
    for (uint64_t i = 0; i < cm_shard_nchunks(layout); i++) {
        uint64_t coord[CM_MAX_RANK];
        bool inside = true;
        cm_grid_coord(within, i, coord);
        for (unsigned j = 0; j < s->grid.rank; j++) {
            coord[j] += first[j];
            inside = inside && coord[j] < s->grid.count[j];
        }
        if (inside && f->entry[i].offset != CM_SHARD_MISSING)
            mark(f, coord, f->entry[i].nbytes);
        else if (inside && s->tally != NULL)
            cm_census_tally_chunk(s->tally, CM_CENSUS_LEFT_OUT, cm_grid_number(&s->grid, coord),
                                  NULL);
    }
}

static int read_index(finder *f, const char *key, const uint64_t *shard, cm_error *err)
{
    const search *s = f->all;
    cm_object_reader *object;
    const cm_shard_layout *layout;
    uint64_t first[CM_MAX_RANK];
    int rc =
        cm_zarr_shard_at(s->shapes, s->layout, &s->outer, &s->grid, shard, first, &layout, err);
    if (rc == CM_OK)
        rc = cm_object_open(s->store, key, &object, err);
    if (rc != CM_OK)
        return rc;
    const size_t nbytes = cm_shard_index_nbytes(layout);
    uint64_t total = cm_object_nbytes(object);
    if (total < nbytes)
        rc = cm_fail(err, CM_EFORMAT, "%s: is shorter than its index", key);
    if (rc == CM_OK)
        rc = cm_buf_resize(&f->index, nbytes, err);
    if (rc == CM_OK)
        rc = cm_object_read(object, cm_shard_index_at_start(layout) ? 0 : total - nbytes,
                            f->index.data, nbytes, err);
    cm_object_close(object);
    if (rc == CM_OK)
        rc = cm_shard_index_decode(layout, f->index.data, nbytes, total, f->entry, err);
    if (rc == CM_OK) {
        mark_entries(f, layout, first);
        return CM_OK;
    }
    char text[CM_MAX_RANK * 21];
    cm_error_prefix(err, "array %s: shard %s", s->path,
                    cm_coord_text(s->grid.rank, shard, text, sizeof(text)));
    return rc;
}

static int ask(finder *f, uint64_t number, cm_error *err)
{
    const search *s = f->all;
    char name[CM_CHUNK_KEY_SIZE];
    uint64_t coord[CM_MAX_RANK], nbytes;
    cm_grid_coord(&s->outer, number, coord);
    cm_zarr_chunk_key(s->meta, coord, name, sizeof(name));
    char *key = cm_asprintf(err, "%s%s%s", s->path, s->path[0] ? "/" : "", name);
    if (key == NULL)
        return CM_ENOMEM;
    int rc = s->list.read ? cm_listing_find(&s->list, name, &nbytes)
                          : cm_store_size(s->store, key, &nbytes, err);
    if (rc == CM_OK) {
        f->found.nobjects++;
        f->found.nbytes += nbytes;
        if (s->tally != NULL)
            cm_census_tally_see(s->tally, coord);
        if (s->tally != NULL && s->spec == NULL)
            (void)cm_census_tally_size(s->tally, number, nbytes);
        if (s->spec != NULL)
            rc = read_index(f, key, coord, err);
        else
            mark(f, coord, nbytes);
    }
    free(key);
    return rc == CM_ENOTFOUND ? CM_OK : rc;
}

/* ---- behind a network: a listing tells of a thousand objects with one request ---- */

/* The objects of a listing, by the names that the grid gives them. */
static void tell_listed(const search *s)
{
    uint64_t coord[CM_MAX_RANK], nbytes;
    char name[CM_CHUNK_KEY_SIZE];
    for (uint64_t i = 0; i < s->outer.nchunks; i++) {
        cm_grid_coord(&s->outer, i, coord);
        cm_zarr_chunk_key(s->meta, coord, name, sizeof(name));
        if (cm_listing_find(&s->list, name, &nbytes) == CM_OK)
            cm_census_tally_see(s->tally, coord);
    }
}

/* Indices of shards are a request each: those that are needed are read when they are. */
static int list_objects(search *s, cm_error *err)
{
    bool wanted = (s->layout == NULL || s->tally != NULL) && s->outer.nchunks <= CM_LISTING_MOST;
    int rc = wanted ? cm_listing_read(s->store, s->path, s->stop, &s->list, err) : CM_EUNSUPPORTED;
    s->out->listed = rc == CM_OK;
    if (rc == CM_OK && s->layout != NULL) {
        tell_listed(s);
        rc = CM_EUNSUPPORTED;
    }
    if (rc != CM_EUNSUPPORTED)
        return rc;
    free(s->bit);
    s->bit = s->out->bit = NULL;
    s->out->npresent = s->out->nchunks;
    return CM_OK;
}

/* ---- all of them ---- */

static int prepare(search *s, cm_error *err)
{
    const cm_zarr_meta *m = s->meta;
    s->spec = cm_zarr_sharding(m);
    int rc = cm_zarr_meta_outer_grid(m, &s->outer, err);
    if (rc == CM_OK)
        rc = cm_zarr_meta_grid(m, &s->grid, err);
    if (rc == CM_OK)
        rc = cm_zarr_shapes_create(m, &s->shapes, err);
    if (rc == CM_OK && s->spec != NULL)
        rc = cm_shard_layout_create(s->spec, m->rank, m->chunk, &s->layout, err);
    if (rc != CM_OK)
        return rc;
    s->out->nchunks = s->grid.nchunks;
    if (s->outer.nchunks <= MAX_OBJECTS) {
        s->bit = s->out->bit = cm_calloc(s->grid.nchunks / 64 + 1, sizeof(s->bit[0]), err);
        rc = s->bit == NULL ? CM_ENOMEM : CM_OK;
    }
    return rc;
}

/* Adds what F has found, or its error if it is the first one. */
static void give(finder *f, int rc)
{
    search *s = f->all;
    cm_presence *to = s->out;
    pthread_mutex_lock(&s->lock);
    to->npresent += f->found.npresent;
    to->nobjects += f->found.nobjects;
    to->nbytes += f->found.nbytes;
    if (f->found.max_nbytes > to->max_nbytes)
        to->max_nbytes = f->found.max_nbytes;
    if (rc != CM_OK && s->status == CM_OK) {
        s->status = rc;
        if (s->err != NULL)
            *s->err = f->err;
    }
    pthread_mutex_unlock(&s->lock);
}

static void find_main(void *context, unsigned index)
{
    search *s = context;
    finder f = {.all = s};
    int rc = CM_OK;
    (void)index;
    if (s->layout != NULL &&
        (f.entry = cm_calloc(cm_shard_nchunks(s->layout), sizeof(f.entry[0]), &f.err)) == NULL)
        rc = CM_ENOMEM;
    uint64_t lo = 0;
    while (rc == CM_OK && !atomic_load(&s->failed) &&
           (lo = atomic_fetch_add(&s->next, SHARE)) < s->outer.nchunks)
        for (uint64_t i = lo; i < lo + SHARE && i < s->outer.nchunks && rc == CM_OK; i++)
            if ((rc = cm_stop_check(s->stop, &f.err)) == CM_OK)
                rc = ask(&f, i, &f.err);
    if (rc != CM_OK)
        atomic_store(&s->failed, true);
    if (rc != CM_OK && rc != CM_ECANCELED)
        cm_error_place(&f.err, cm_store_name(s->store));
    give(&f, rc);
    cm_buf_release(&f.index);
    free(f.entry);
}

static unsigned threads_for(const search *s, unsigned most)
{
    const uint64_t shares = (s->outer.nchunks + SHARE - 1) / SHARE;
    if (s->layout != NULL && cm_shard_index_nbytes(s->layout) > MAX_INDEX)
        return 1;
    return shares < most ? (unsigned)(shares > 0 ? shares : 1) : most;
}

int cm_presence_find(cm_store *store, const char *path, const cm_zarr_meta *meta, unsigned nthreads,
                     const cm_stop *stop, cm_census_tally *tally, cm_presence *out, cm_error *err)
{
    search s = {.store = store,
                .path = path,
                .meta = meta,
                .stop = stop,
                .tally = tally,
                .out = out,
                .err = err};
    *out = (cm_presence){0};
    int rc = prepare(&s, err);
    if (rc == CM_OK && s.bit != NULL && cm_store_is_remote(store))
        rc = list_objects(&s, err);
    s.out->listed = s.out->listed || s.bit != NULL;
    if (rc == CM_OK && s.bit != NULL) {
        pthread_mutex_init(&s.lock, NULL);
        cm_threads_run(threads_for(&s, nthreads), find_main, &s);
        pthread_mutex_destroy(&s.lock);
        rc = s.status;
    }
    cm_shard_layout_free(s.layout);
    cm_zarr_shapes_free(s.shapes);
    cm_listing_release(&s.list);
    if (rc != CM_OK)
        cm_presence_release(out);
    return rc;
}

void cm_presence_release(cm_presence *p)
{
    free(p->bit);
    *p = (cm_presence){0};
}
