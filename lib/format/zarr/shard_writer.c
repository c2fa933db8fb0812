#include "format/zarr/shard_writer.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/zarr/shard_old.h"

enum {
    NLOCKS = 16 /* more than threads that start a shard in the same moment */
};

typedef struct shard {
    pthread_mutex_t lock; /* guards the making of object and entry, and the gaps of OLD */
    cm_object_writer *object;
    cm_shard_old *old; /* what has its name until it is whole, where that is being read */
    cm_shard_entry *entry;
    atomic_uint_fast64_t end;  /* the next inner chunk goes here */
    atomic_uint_fast64_t left; /* chunks to come */
} shard;

struct cm_shard_set {
    cm_store *store;
    const char *prefix;
    const cm_zarr_meta *meta;
    const cm_grid *grid, *outer;
    const uint64_t *origin; /* of the shards in the array whose shards are named */
    cm_shard_layout *layout;
    bool replaces;          /* shards that are being read */
    _Atomic(shard *) *slot; /* one for each shard; NULL before its first chunk and after its last */
    pthread_mutex_t lock[NLOCKS];
};

int cm_shard_set_create(cm_store *store, const char *prefix, const cm_zarr_meta *meta,
                        const cm_shard_spec *spec, const cm_grid *grid, const cm_grid *outer,
                        const uint64_t *origin, cm_shard_set **out, cm_error *err)
{
    *out = NULL;
    cm_shard_set *set = cm_calloc(1, sizeof *set, err);
    if (!set)
        return CM_ENOMEM;
    set->store = store;
    set->prefix = prefix;
    set->meta = meta;
    set->grid = grid;
    set->outer = outer;
    set->origin = origin;
    for (int i = 0; i < NLOCKS; i++)
        pthread_mutex_init(&set->lock[i], NULL);
    int rc = cm_shard_layout_create(spec, meta->rank, meta->chunk, &set->layout, err);
    if (rc == CM_OK && !(set->slot = cm_calloc(outer->nchunks, sizeof *set->slot, err)))
        rc = CM_ENOMEM;
    if (rc) {
        cm_shard_set_free(set);
        return rc;
    }
    *out = set;
    return CM_OK;
}

static void shard_free(shard *s)
{
    if (!s)
        return;
    cm_object_abort(s->object);
    cm_shard_old_free(s->old);
    free(s->entry);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

void cm_shard_set_free(cm_shard_set *set)
{
    if (!set)
        return;
    for (uint64_t i = 0; set->slot && i < set->outer->nchunks; i++)
        shard_free(atomic_load(&set->slot[i]));
    for (int i = 0; i < NLOCKS; i++)
        pthread_mutex_destroy(&set->lock[i]);
    free(set->slot);
    cm_shard_layout_free(set->layout);
    free(set);
}

size_t cm_shard_set_memory(const cm_shard_set *set)
{
    enum {
        WRITER_NBYTES = 1024 /* of the store, with the names of the object */
    };
    return sizeof(shard) + WRITER_NBYTES + cm_store_writer_nbytes(set->store) +
           (size_t)cm_shard_nchunks(set->layout) * sizeof(cm_shard_entry) +
           cm_shard_index_nbytes(set->layout) +
           (set->replaces ? cm_shard_old_memory(set->layout) : 0);
}

void cm_shard_set_replace(cm_shard_set *set)
{
    set->replaces = true;
}

/* How many chunks of the array lie in shard COORD; those outside of the array never come. */
static uint64_t count_inside(const cm_shard_set *set, const uint64_t *coord)
{
    const uint64_t *within = cm_shard_grid(set->layout)->count;
    uint64_t n = 1;
    for (unsigned i = 0; i < set->grid->rank; i++) {
        uint64_t rest = set->grid->count[i] - coord[i] * within[i];
        n *= rest < within[i] ? rest : within[i];
    }
    return n;
}

static int get_shard(cm_shard_set *set, uint64_t number, const uint64_t *coord, shard **out,
                     cm_error *err)
{
    shard *s = atomic_load(&set->slot[number]);
    if (s) {
        *out = s;
        return CM_OK;
    }
    pthread_mutex_t *lock = &set->lock[number % NLOCKS];
    pthread_mutex_lock(lock);
    s = atomic_load(&set->slot[number]);
    if (!s && (s = cm_calloc(1, sizeof *s, err)) != NULL) {
        pthread_mutex_init(&s->lock, NULL);
        atomic_init(&s->left, count_inside(set, coord));
        size_t head = cm_shard_index_at_start(set->layout) ? cm_shard_index_nbytes(set->layout) : 0;
        atomic_init(&s->end, head);
        atomic_store(&set->slot[number], s);
    }
    pthread_mutex_unlock(lock);
    *out = s;
    return s ? CM_OK : CM_ENOMEM;
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

/* Makes the object at KEY; what those who have the index of an older one read is in it first. */
static int open_object(const cm_shard_set *set, shard *s, const char *key, cm_error *err)
{
    int rc = CM_OK;
    if (set->replaces && s->old == NULL)
        rc = cm_shard_old_open(set->store, key, set->layout, &s->old, err);
    if (rc == CM_OK)
        rc = cm_object_create(set->store, key, &s->object, err);
    return rc == CM_OK && s->old != NULL ? cm_shard_old_copy(s->old, s->object, err) : rc;
}

/* Creates the object and an empty index before the first chunk that has bytes. */
static int open_shard(const cm_shard_set *set, shard *s, const uint64_t *coord, cm_error *err)
{
    int rc = CM_OK;
    pthread_mutex_lock(&s->lock);
    if (!s->entry) {
        size_t nbytes = (size_t)cm_shard_nchunks(set->layout) * sizeof *s->entry;
        s->entry = cm_calloc(nbytes, 1, err);
        if (s->entry)
            memset(s->entry, 0xff, nbytes); /* CM_SHARD_MISSING, all of them */
        else
            rc = CM_ENOMEM;
    }
    if (rc == CM_OK && !s->object) {
        char *key = shard_key(set, coord, err);
        rc = key ? open_object(set, s, key, err) : CM_ENOMEM;
        free(key);
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/* All its chunks were left out: what an earlier run left under its name would be read instead. */
static int remove_shard(const cm_shard_set *set, const uint64_t *coord, cm_error *err)
{
    char *key = shard_key(set, coord, err);
    int rc = key ? cm_store_delete(set->store, key, err) : CM_ENOMEM;
    free(key);
    return rc;
}

/* Writes the index and gives the object its name. */
static int finish_shard(const cm_shard_set *set, shard *s, const uint64_t *coord,
                        cm_shard_done *done, cm_error *err)
{
    if (!s->object)
        return remove_shard(set, coord, err);
    size_t nbytes = cm_shard_index_nbytes(set->layout);
    uint8_t *index = cm_calloc(nbytes, 1, err);
    int rc = index ? cm_shard_index_encode(set->layout, s->entry, index, err) : CM_ENOMEM;
    uint64_t end = s->old != NULL ? cm_shard_old_end(s->old) : atomic_load(&s->end);
    uint64_t offset = cm_shard_index_at_start(set->layout) ? 0 : end;
    if (rc == CM_OK)
        rc = cm_object_write(s->object, offset, index, nbytes, err);
    free(index);
    if (rc)
        return rc;
    cm_object_writer *object = s->object;
    s->object = NULL; /* commit frees it in any case */
    rc = cm_object_commit(object, err);
    if (rc == CM_OK)
        *done = (cm_shard_done){.made = true, .nbytes = nbytes};
    return rc;
}

/* Where a chunk lies; going on to the next number takes no division within a row of a shard. */
typedef struct place {
    uint64_t number;
    uint64_t coord[CM_MAX_RANK]; /* of the shard */
    uint64_t shard;
    uint64_t local; /* number within the shard */
    uint64_t rest;  /* chunks that follow it in its row of the shard */
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

/* From the chunk at P to chunk NUMBER. */
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

/* How many chunks from the first, which lies at P, go together; *nbytes of them. */
static size_t count_together(const cm_shard_set *set, const cm_put *put, size_t n, place p,
                             size_t *nbytes)
{
    uint64_t same = p.shard;
    size_t i = 1;
    *nbytes = put[0].nbytes;
    for (; put[0].data && i < n; i++) {
        if ((const uint8_t *)put[0].data + *nbytes != put[i].data)
            break;
        move_place(set, put[i].number, &p);
        if (p.shard != same)
            break;
        *nbytes += put[i].nbytes;
    }
    return i;
}

/* Chunk LOCAL of S: where it lies already, or where those who read the old shard do not look. */
static int write_beside_old(shard *s, uint64_t local, const void *data, size_t nbytes,
                            cm_error *err)
{
    bool same;
    int rc = cm_shard_old_is(s->old, local, data, nbytes, &same, &s->entry[local], err);
    if (rc != CM_OK || same)
        return rc;
    pthread_mutex_lock(&s->lock);
    uint64_t offset = cm_shard_old_take(s->old, nbytes);
    pthread_mutex_unlock(&s->lock);
    s->entry[local] = (cm_shard_entry){offset, nbytes};
    return cm_object_write(s->object, offset, data, nbytes, err);
}

/* Writes the chunks PUT, side by side in memory, behind each other into S; the first lies at P. */
static int write_together(const cm_shard_set *set, shard *s, const cm_put *put, size_t n,
                          size_t nbytes, place p, cm_error *err)
{
    int rc = open_shard(set, s, p.coord, err);
    if (rc)
        return rc;
    for (size_t i = 0; s->old != NULL && rc == CM_OK && i < n; i++) {
        if (i > 0)
            move_place(set, put[i].number, &p);
        rc = write_beside_old(s, p.local, put[i].data, put[i].nbytes, err);
    }
    if (s->old != NULL)
        return rc;
    uint64_t offset = atomic_fetch_add(&s->end, nbytes);
    rc = cm_object_write(s->object, offset, put[0].data, nbytes, err);
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            move_place(set, put[i].number, &p);
        s->entry[p.local] = (cm_shard_entry){offset, put[i].nbytes};
        offset += put[i].nbytes;
    }
    return rc;
}

int cm_shard_set_deliver(cm_shard_set *set, const cm_put *put, size_t n, size_t *taken,
                         cm_shard_done *done, cm_error *err)
{
    place first;
    size_t nbytes;
    shard *s;
    *done = (cm_shard_done){0};
    find_place(set, put[0].number, &first);
    *taken = count_together(set, put, n, first, &nbytes);
    int rc = get_shard(set, first.shard, first.coord, &s, err);
    if (rc == CM_OK && put[0].data)
        rc = write_together(set, s, put, *taken, nbytes, first, err);
    /* What failed is never counted down, so that the shard cannot become whole. */
    if (rc || atomic_fetch_sub(&s->left, *taken) != *taken)
        return rc;
    atomic_store(&set->slot[first.shard], NULL);
    rc = finish_shard(set, s, first.coord, done, err);
    shard_free(s);
    return rc;
}
