#include "format/zarr/shard_writer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/zarr/shard_order.h"

enum {
    NLOCKS = 16 /* more than the threads that start a shard at the same moment */
};

typedef struct shard {
    pthread_mutex_t lock; /* guards the creation of the object */
    cm_object_writer *object;
    cm_shard_old *old; /* the old object while it is being read and replaced */
    cm_shard_order *order;
    atomic_uint_fast64_t left; /* chunks not yet done */
} shard;

struct cm_shard_set {
    cm_store *store;
    const char *prefix;
    const cm_zarr_meta *meta;
    const cm_grid *grid, *outer;
    const uint64_t *origin; /* of META's shards in the larger array that names them */
    cm_shard_layout *layout;
    cm_early *own, *early;  /* for waiting chunks; OWN if the caller set none */
    size_t chunk_most;      /* maximum bytes of an encoded inner chunk */
    bool replaces;          /* existing shards are being read */
    _Atomic(shard *) *slot; /* one for each shard; NULL before its first chunk and after its last */
    pthread_mutex_t lock[NLOCKS];
};

int cm_shard_set_create(cm_store *store, const char *prefix, const cm_zarr_meta *meta,
                        const cm_shard_spec *spec, const cm_grid *grid, const cm_grid *outer,
                        const uint64_t *origin, size_t chunk_most, cm_shard_set **out,
                        cm_error *err)
{
    *out = NULL;
    cm_shard_set *set = cm_calloc(1, sizeof *set, err);
    if (set == NULL)
        return CM_ENOMEM;
    set->store = store;
    set->prefix = prefix;
    set->meta = meta;
    set->grid = grid;
    set->outer = outer;
    set->origin = origin;
    set->chunk_most = chunk_most;
    for (int i = 0; i < NLOCKS; i++)
        pthread_mutex_init(&set->lock[i], NULL);
    int rc = cm_shard_layout_create(spec, meta->rank, meta->chunk, &set->layout, err);
    if (rc == CM_OK)
        rc = cm_early_create(&set->own, err);
    set->early = set->own;
    if (rc == CM_OK && (set->slot = cm_calloc(outer->nchunks, sizeof *set->slot, err)) == NULL)
        rc = CM_ENOMEM;
    if (rc != CM_OK) {
        cm_shard_set_free(set);
        return rc;
    }
    *out = set;
    return CM_OK;
}

static void shard_free(shard *s)
{
    if (s == NULL)
        return;
    cm_object_abort(s->object);
    cm_shard_order_free(s->order);
    cm_shard_old_free(s->old);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void cm_shard_set_free(cm_shard_set *set)
{
    if (set == NULL)
        return;
    for (uint64_t i = 0; set->slot != NULL && i < set->outer->nchunks; i++)
        shard_free(atomic_load(&set->slot[i]));
    for (int i = 0; i < NLOCKS; i++)
        pthread_mutex_destroy(&set->lock[i]);
    free(set->slot);
    cm_early_free(set->own);
    cm_shard_layout_free(set->layout);
    free(set);
}

/*
 * Chunks are written in order, by whichever thread completes the order; if an old shard is kept,
 * into its gaps.
 */
static cm_object_form form_of(const cm_shard_set *set)
{
    const size_t index = cm_shard_index_nbytes(set->layout);
    size_t most = 0;
    if (!cm_mul_size((size_t)cm_shard_nchunks(set->layout), set->chunk_most, &most) ||
        !cm_add_size(most, index, &most))
        most = SIZE_MAX;
    return (cm_object_form){.most_nbytes = most,
                            .in_order = !set->replaces,
                            .head_nbytes = cm_shard_index_at_start(set->layout) ? index : 0};
}

size_t cm_shard_set_memory(const cm_shard_set *set, size_t *sent)
{
    enum {
        WRITER_NBYTES = 1024 /* in the store, the object's names included */
    };
    const cm_object_form form = form_of(set);
    *sent = cm_store_writer_nbytes(set->store, &form);
    return sizeof(shard) + WRITER_NBYTES + *sent + cm_shard_order_memory(set->layout) +
           cm_shard_index_nbytes(set->layout) +
           (set->replaces ? cm_shard_old_memory(set->layout) : 0);
}

void cm_shard_set_replace(cm_shard_set *set)
{
    set->replaces = true;
}

void cm_shard_set_early(cm_shard_set *set, cm_early *early)
{
    set->early = early;
}

/* The array's chunks in shard COORD along each dimension; returns their number. */
static uint64_t find_inside(const cm_shard_set *set, const uint64_t *coord, uint64_t *inside)
{
    const uint64_t *within = cm_shard_grid(set->layout)->count;
    uint64_t n = 1;
    for (unsigned i = 0; i < set->grid->rank; i++) {
        uint64_t rest = set->grid->count[i] - coord[i] * within[i];
        inside[i] = rest < within[i] ? rest : within[i];
        n *= inside[i];
    }
    return n;
}

static shard *make_shard(const cm_shard_set *set, const uint64_t *coord, cm_error *err)
{
    uint64_t inside[CM_MAX_RANK];
    shard *s = cm_calloc(1, sizeof *s, err);
    if (s == NULL)
        return NULL;
    pthread_mutex_init(&s->lock, NULL);
    atomic_init(&s->left, find_inside(set, coord, inside));
    if (cm_shard_order_create(set->layout, inside, set->early, &s->order, err) == CM_OK)
        return s;
    shard_free(s);
    return NULL;
}

static int get_shard(cm_shard_set *set, uint64_t number, const uint64_t *coord, shard **out,
                     cm_error *err)
{
    shard *s = atomic_load(&set->slot[number]);
    if (s != NULL) {
        *out = s;
        return CM_OK;
    }
    pthread_mutex_t *lock = &set->lock[number % NLOCKS];
    pthread_mutex_lock(lock);
    s = atomic_load(&set->slot[number]);
    if (s == NULL && (s = make_shard(set, coord, err)) != NULL)
        atomic_store(&set->slot[number], s);
    pthread_mutex_unlock(lock);
    *out = s;
    return s != NULL ? CM_OK : CM_ENOMEM;
}

static char *shard_key(const cm_shard_set *set, const uint64_t *coord, cm_error *err)
{
    char name[CM_CHUNK_KEY_SIZE];
    uint64_t there[CM_MAX_RANK];
    for (unsigned i = 0; i < set->outer->rank; i++)
        there[i] = coord[i] + set->origin[i];
    cm_zarr_chunk_key(set->meta, there, name, sizeof name);
    return cm_asprintf(err, "%s%s", set->prefix, name);
}

/* Creates the object at KEY, beginning with the ranges that readers with an older index need. */
static int open_object(const cm_shard_set *set, shard *s, const char *key, cm_error *err)
{
    int rc = CM_OK;
    if (set->replaces && s->old == NULL)
        rc = cm_shard_old_open(set->store, key, set->layout, &s->old, err);
    const cm_object_form form = form_of(set);
    if (rc == CM_OK)
        rc = cm_object_create(set->store, key, &form, &s->object, err);
    return rc == CM_OK && s->old != NULL ? cm_shard_old_copy(s->old, s->object, err) : rc;
}

/* Creates the object before the first chunk with bytes. */
static int open_shard(const cm_shard_set *set, shard *s, const uint64_t *coord, cm_error *err)
{
    int rc = CM_OK;
    pthread_mutex_lock(&s->lock);
    if (s->object == NULL) {
        char *key = shard_key(set, coord, err);
        rc = key != NULL ? open_object(set, s, key, err) : CM_ENOMEM;
        free(key);
        if (rc == CM_OK)
            cm_shard_order_begin(s->order, s->object, s->old);
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/* Removes a shard whose chunks were all left out: an earlier run's object would be read instead. */
static int remove_shard(const cm_shard_set *set, const uint64_t *coord, cm_error *err)
{
    char *key = shard_key(set, coord, err);
    int rc = key != NULL ? cm_store_delete(set->store, key, err) : CM_ENOMEM;
    free(key);
    return rc;
}

/* Writes the index and gives the object its name. */
static int finish_shard(const cm_shard_set *set, shard *s, const uint64_t *coord,
                        cm_shard_done *done, cm_error *err)
{
    if (s->object == NULL)
        return remove_shard(set, coord, err);
    size_t nbytes = cm_shard_index_nbytes(set->layout);
    uint8_t *index = cm_calloc(nbytes, 1, err);
    int rc = index != NULL
                 ? cm_shard_index_encode(set->layout, cm_shard_order_entries(s->order), index, err)
                 : CM_ENOMEM;
    uint64_t offset = cm_shard_index_at_start(set->layout) ? 0 : cm_shard_order_end(s->order);
    if (rc == CM_OK)
        rc = cm_object_write(s->object, offset, index, nbytes, err);
    free(index);
    if (rc != CM_OK)
        return rc;
    cm_object_writer *object = s->object;
    s->object = NULL; /* commit always frees it */
    rc = cm_object_commit(object, err);
    if (rc == CM_OK)
        *done = (cm_shard_done){.made = true, .nbytes = nbytes};
    return rc;
}

/* The place of a chunk; stepping to the next number needs no division within a row of a shard. */
typedef struct place {
    uint64_t number;
    uint64_t coord[CM_MAX_RANK]; /* of the shard */
    uint64_t shard;
    uint64_t local; /* number within the shard */
    uint64_t rest;  /* further chunks in its row of the shard */
} place;

static void find_place(const cm_shard_set *set, uint64_t number, place *p)
{
    const cm_grid *within = cm_shard_grid(set->layout);
    uint64_t coord[CM_MAX_RANK], local[CM_MAX_RANK];
    unsigned rank = set->grid->rank;
    cm_grid_coord(set->grid, number, coord);
    for (unsigned i = 0; i < rank; i++) {
        p->coord[i] = coord[i] / within->count[i];
        local[i] = coord[i] % within->count[i];
    }
    p->number = number;
    p->shard = cm_grid_number(set->outer, p->coord);
    p->local = cm_grid_number(within, local);
    p->rest = 0;
    if (rank > 0) {
        uint64_t in_shard = within->count[rank - 1] - local[rank - 1];
        uint64_t in_array = set->grid->count[rank - 1] - coord[rank - 1];
        p->rest = (in_shard < in_array ? in_shard : in_array) - 1;
    }
}

/* Moves P to chunk NUMBER. */
static void move_place(const cm_shard_set *set, uint64_t number, place *p)
{
    if (number != p->number + 1 || p->rest == 0) {
        find_place(set, number, p);
        return;
    }
    p->number++;
    p->local++;
    p->rest--;
}

/* Lists the first chunks of PUT, from the one at P on, that share a shard; returns their number. */
static size_t list_chunks(const cm_shard_set *set, const cm_put *put, size_t n, place p,
                          cm_shard_chunk *out)
{
    uint64_t same = p.shard;
    size_t i = 0;
    for (; i < n && i < CM_SHARD_MOST; i++) {
        if (i > 0)
            move_place(set, put[i].number, &p);
        if (p.shard != same)
            break;
        out[i] = (cm_shard_chunk){p.local, put[i].data, put[i].nbytes};
    }
    return i;
}

int cm_shard_set_deliver(cm_shard_set *set, const cm_put *put, size_t n, size_t *taken,
                         cm_shard_done *done, cm_error *err)
{
    cm_shard_chunk chunk[CM_SHARD_MOST];
    place first;
    shard *s;
    uint64_t ndone = 0;
    *done = (cm_shard_done){0};
    find_place(set, put[0].number, &first);
    *taken = list_chunks(set, put, n, first, chunk);
    int rc = get_shard(set, first.shard, first.coord, &s, err);
    for (size_t i = 0; rc == CM_OK && i < *taken; i++) {
        if (chunk[i].data == NULL)
            continue;
        rc = open_shard(set, s, first.coord, err);
        break;
    }
    if (rc == CM_OK)
        rc = cm_shard_order_put(s->order, chunk, *taken, &ndone, err);
    /* Failed chunks are never counted down, so the shard is never finished. */
    if (rc != CM_OK || ndone == 0 || atomic_fetch_sub(&s->left, ndone) != ndone)
        return rc;
    atomic_store(&set->slot[first.shard], NULL);
    rc = finish_shard(set, s, first.coord, done, err);
    shard_free(s);
    return rc;
}
