#include "format/zarr/shard_order.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* State of an inner chunk; for some states its entry holds an address or offset meanwhile. */
typedef enum state {
    STATE_TO_COME,
    STATE_HERE,    /* the entry is the address in the memory of the calling thread */
    STATE_MEMORY,  /* waiting at the place of cm_early_keep */
    STATE_SCRATCH, /* waiting in the scratch file */
    STATE_PLACED   /* the entry is final: written, left out, or outside the array */
} state;

enum {
    GATHER_NBYTES = 16 << 10 /* of stack: small chunks that waited are written together */
};

struct cm_shard_order {
    cm_early *early;
    uint64_t nchunks;
    pthread_mutex_t lock; /* guards the rest */
    cm_object_writer *object;
    cm_shard_old *old;
    uint64_t next; /* all chunks before it have their places */
    uint64_t end;
    cm_shard_entry *entry;
    uint8_t *state;
};

/* A chunk that is to be written to its place. */
typedef struct move {
    state from;
    uint64_t source; /* an address, or an offset in the scratch file */
    cm_shard_entry to;
} move;

size_t cm_shard_order_memory(const cm_shard_layout *layout)
{
    return sizeof(cm_shard_order) +
           (size_t)cm_shard_nchunks(layout) * (sizeof(cm_shard_entry) + sizeof(uint8_t));
}

/* Skips chunks outside the array, which never arrive. */
static void pass_over_outside(cm_shard_order *o, const cm_grid *grid, const uint64_t *inside)
{
    bool edge = false;
    for (unsigned j = 0; j < grid->rank; j++)
        edge = edge || inside[j] < grid->count[j];
    if (!edge)
        return;
    for (uint64_t i = 0; i < o->nchunks; i++) {
        uint64_t rest = i;
        for (unsigned j = grid->rank; j-- > 0; rest /= grid->count[j])
            if (rest % grid->count[j] >= inside[j])
                o->state[i] = STATE_PLACED;
    }
}

int cm_shard_order_create(const cm_shard_layout *layout, const uint64_t *inside, cm_early *early,
                          cm_shard_order **out, cm_error *err)
{
    cm_shard_order *o = *out = cm_calloc(1, sizeof(*o), err);
    if (o == NULL)
        return CM_ENOMEM;
    o->early = early;
    o->nchunks = cm_shard_nchunks(layout);
    o->end = cm_shard_index_at_start(layout) ? cm_shard_index_nbytes(layout) : 0;
    pthread_mutex_init(&o->lock, NULL);
    o->entry = cm_calloc(o->nchunks, sizeof(o->entry[0]), err);
    o->state = cm_calloc(o->nchunks, sizeof(o->state[0]), err);
    if (o->entry == NULL || o->state == NULL) {
        cm_shard_order_free(o);
        *out = NULL;
        return CM_ENOMEM;
    }
    memset(o->entry, 0xff, o->nchunks * sizeof(o->entry[0])); /* CM_SHARD_MISSING */
    pass_over_outside(o, cm_shard_grid(layout), inside);
    return CM_OK;
}

static cm_early_place place_of(state s)
{
    return s == STATE_MEMORY    ? CM_EARLY_MEMORY
           : s == STATE_SCRATCH ? CM_EARLY_SCRATCH
                                : CM_EARLY_NOWHERE;
}

void cm_shard_order_free(cm_shard_order *o)
{
    if (o == NULL)
        return;
    for (uint64_t i = o->next; o->entry != NULL && o->state != NULL && i < o->nchunks; i++)
        cm_early_drop(o->early, place_of(o->state[i]), o->entry[i].offset, o->entry[i].nbytes);
    pthread_mutex_destroy(&o->lock);
    free(o->entry);
    free(o->state);
    free(o);
}

void cm_shard_order_begin(cm_shard_order *o, cm_object_writer *object, cm_shard_old *old)
{
    pthread_mutex_lock(&o->lock);
    o->object = object;
    o->old = old;
    pthread_mutex_unlock(&o->lock);
}

const cm_shard_entry *cm_shard_order_entries(const cm_shard_order *o)
{
    return o->entry;
}

uint64_t cm_shard_order_end(const cm_shard_order *o)
{
    return o->old != NULL ? cm_shard_old_end(o->old) : o->end;
}

/* ---- placing; with the lock held ---- */

/* Gives chunk LOCAL the next place. */
static void place(cm_shard_order *o, uint64_t local, move *out)
{
    cm_shard_entry *e = &o->entry[local];
    *out = (move){.from = (state)o->state[local], .source = e->offset};
    if (o->old != NULL) {
        e->offset = cm_shard_old_take(o->old, e->nbytes);
    } else {
        e->offset = o->end;
        o->end += e->nbytes;
    }
    out->to = *e;
    o->state[local] = STATE_PLACED;
}

/* Places chunks in order as far as they have arrived, up to CM_SHARD_MOST. */
static size_t place_ready(cm_shard_order *o, move *out)
{
    size_t n = 0;
    for (; o->next < o->nchunks && o->state[o->next] != STATE_TO_COME; o->next++) {
        if (o->state[o->next] == STATE_PLACED)
            continue;
        if (n == CM_SHARD_MOST)
            break;
        place(o, o->next, &out[n++]);
    }
    return n;
}

/* ---- writing; without the lock ---- */

static bool in_memory(const move *m)
{
    return m->from != STATE_SCRATCH;
}

/*
 * The number of moves, from the first, that are adjacent in memory and in the shard; *nbytes in
 * all.
 */
static size_t neighbours(const move *m, size_t n, size_t *nbytes)
{
    size_t i = 1;
    *nbytes = (size_t)m[0].to.nbytes;
    while (i < n && in_memory(&m[0]) && in_memory(&m[i]) && m[i].source == m[0].source + *nbytes &&
           m[i].to.offset == m[0].to.offset + *nbytes)
        *nbytes += (size_t)m[i++].to.nbytes;
    return i;
}

static int get(cm_shard_order *o, const move *m, size_t at, uint8_t *to, size_t nbytes,
               cm_error *err)
{
    if (!in_memory(m))
        return cm_early_read(o->early, m->source + at, to, nbytes, err);
    memcpy(to, (const uint8_t *)(uintptr_t)m->source + at, nbytes);
    return CM_OK;
}

/*
 * Gathers small moves that are adjacent only in the shard in BUF, and writes them; *taken of them.
 */
static int write_gathered(cm_shard_order *o, const move *m, size_t n, uint8_t *buf, size_t *taken,
                          cm_error *err)
{
    size_t nbytes = 0, i = 0;
    int rc = CM_OK;
    for (; rc == CM_OK && i < n && m[i].to.nbytes <= GATHER_NBYTES - nbytes &&
           m[i].to.offset == m[0].to.offset + nbytes;
         nbytes += (size_t)m[i++].to.nbytes)
        rc = get(o, &m[i], 0, buf + nbytes, (size_t)m[i].to.nbytes, err);
    *taken = i;
    return rc == CM_OK ? cm_object_write(o->object, m[0].to.offset, buf, nbytes, err) : rc;
}

static int write_from_scratch(cm_shard_order *o, const move *m, uint8_t *buf, cm_error *err)
{
    int rc = CM_OK;
    for (uint64_t at = 0; rc == CM_OK && at < m->to.nbytes;) {
        uint64_t rest = m->to.nbytes - at;
        size_t n = rest < GATHER_NBYTES ? (size_t)rest : GATHER_NBYTES;
        rc = get(o, m, at, buf, n, err);
        if (rc == CM_OK)
            rc = cm_object_write(o->object, m->to.offset + at, buf, n, err);
        at += n;
    }
    return rc;
}

/* Writes the moves, and frees the copies that waited, even after an error. */
static int write_moves(cm_shard_order *o, const move *m, size_t n, cm_error *err)
{
    uint8_t buf[GATHER_NBYTES];
    int rc = CM_OK;
    for (size_t nbytes, taken, i = 0; rc == CM_OK && i < n; i += taken) {
        taken = neighbours(m + i, n - i, &nbytes);
        if (taken == 1 && nbytes < GATHER_NBYTES)
            rc = write_gathered(o, m + i, n - i, buf, &taken, err);
        else if (in_memory(&m[i]))
            rc = cm_object_write(o->object, m[i].to.offset, (const void *)(uintptr_t)m[i].source,
                                 nbytes, err);
        else
            rc = write_from_scratch(o, &m[i], buf, err);
    }
    for (size_t i = 0; i < n; i++)
        cm_early_drop(o->early, place_of(m[i].from), m[i].source, (size_t)m[i].to.nbytes);
    return rc;
}

/* ---- putting ---- */

/* State of one call. */
typedef struct put {
    const cm_shard_chunk *chunk;
    size_t n;
    /* Of chunks found in the old shard, and of those that wait. */
    cm_shard_entry entry[CM_SHARD_MOST];
    state state[CM_SHARD_MOST];
} put;

/*
 * Marks chunks as placed if the old shard has their bytes, or if they are left out; the rest are
 * still to be written.
 */
static int begin_put(cm_shard_order *o, put *p, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < p->n; i++) {
        const cm_shard_chunk *c = &p->chunk[i];
        bool same = false;
        p->entry[i] = (cm_shard_entry){CM_SHARD_MISSING, CM_SHARD_MISSING};
        if (c->data != NULL && o->old != NULL)
            rc = cm_shard_old_is(o->old, c->local, c->data, c->nbytes, &same, &p->entry[i], err);
        p->state[i] = c->data == NULL || same ? STATE_PLACED : STATE_TO_COME;
    }
    return rc;
}

/* Marks all as arrived and places those that are next; returns the number of moves. */
static size_t place_first(cm_shard_order *o, put *p, move *m, uint64_t *done)
{
    pthread_mutex_lock(&o->lock);
    for (size_t i = 0; i < p->n; i++) {
        const cm_shard_chunk *c = &p->chunk[i];
        bool placed = p->state[i] == STATE_PLACED;
        *done += placed;
        o->entry[c->local] = placed ? p->entry[i] : (cm_shard_entry){(uintptr_t)c->data, c->nbytes};
        o->state[c->local] = placed ? STATE_PLACED : STATE_HERE;
    }
    size_t n = place_ready(o, m);
    for (size_t i = 0; i < p->n; i++) {
        uint8_t *s = &o->state[p->chunk[i].local];
        p->state[i] = *s == STATE_HERE ? STATE_TO_COME : STATE_PLACED;
        *s = *s == STATE_HERE ? STATE_TO_COME : *s;
    }
    pthread_mutex_unlock(&o->lock);
    return n;
}

/* Keeps copies of the rest.  Returns whether there are any. */
static bool keep_rest(cm_shard_order *o, put *p)
{
    bool any = false;
    for (size_t i = 0; i < p->n; i++) {
        const cm_shard_chunk *c = &p->chunk[i];
        if (p->state[i] != STATE_TO_COME)
            continue;
        any = true;
        p->entry[i].nbytes = c->nbytes;
        cm_early_place where = cm_early_keep(o->early, c->data, c->nbytes, &p->entry[i].offset);
        p->state[i] = where == CM_EARLY_MEMORY    ? STATE_MEMORY
                      : where == CM_EARLY_SCRATCH ? STATE_SCRATCH
                                                  : STATE_HERE;
        if (p->state[i] == STATE_HERE)
            p->entry[i].offset = (uintptr_t)c->data;
    }
    return any;
}

/* Publishes the copies to other threads; chunks that could not be kept become moves.  Lock held. */
static size_t show_rest(cm_shard_order *o, put *p, move *m)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        uint64_t local = p->chunk[i].local;
        if (p->state[i] == STATE_PLACED)
            continue;
        o->entry[local] = p->entry[i];
        o->state[local] = (uint8_t)p->state[i];
        if (p->state[i] == STATE_HERE)
            place(o, local, &m[n++]);
    }
    return n;
}

/*
 * ORDER is not freed while a chunk of this call is neither done nor published, or one that was
 * written is not counted.
 */
int cm_shard_order_put(cm_shard_order *o, const cm_shard_chunk *chunk, size_t n, uint64_t *done,
                       cm_error *err)
{
    move m[CM_SHARD_MOST];
    put p = {.chunk = chunk, .n = n};
    *done = 0;
    int rc = begin_put(o, &p, err);
    if (rc != CM_OK)
        return rc;
    size_t nmoves = place_first(o, &p, m, done);
    rc = write_moves(o, m, nmoves, err);
    *done += nmoves;
    if (rc != CM_OK || (!keep_rest(o, &p) && nmoves < CM_SHARD_MOST))
        return rc;
    pthread_mutex_lock(&o->lock);
    nmoves = show_rest(o, &p, m);
    if (nmoves == 0)
        nmoves = place_ready(o, m);
    pthread_mutex_unlock(&o->lock);
    while (rc == CM_OK && nmoves > 0) {
        rc = write_moves(o, m, nmoves, err);
        *done += nmoves;
        pthread_mutex_lock(&o->lock);
        nmoves = rc == CM_OK ? place_ready(o, m) : 0;
        pthread_mutex_unlock(&o->lock);
    }
    return rc;
}
