#include "format/zarr/shard_order.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* What is known of an inner chunk, and what its entry holds meanwhile. */
typedef enum state {
    STATE_TO_COME,
    STATE_HERE,    /* the address in the memory of the thread that has the lock */
    STATE_MEMORY,  /* waiting: where cm_early_keep put it */
    STATE_SCRATCH, /* waiting */
    STATE_PLACED   /* the entry is final: written, or left out, or outside of the array */
} state;

enum {
    GATHER_NBYTES = 16 << 10 /* on the stack: small chunks that waited go into one request */
};

struct cm_shard_order {
    cm_early *early;
    uint64_t nchunks;
    pthread_mutex_t lock; /* guards what follows */
    cm_object_writer *object;
    cm_shard_old *old;
    uint64_t next; /* all in front of it have their places */
    uint64_t end;
    cm_shard_entry *entry;
    uint8_t *state;
};

/* A chunk on its way to its place. */
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

/* Those outside of the array never come. */
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

/* Chunk LOCAL gets the next place. */
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

/* Those whose turn it is: up to CM_SHARD_MOST of them. */
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

/* How many moves from the first are neighbours in memory and in the shard; *nbytes of them. */
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

/* Small ones that are neighbours in the shard alone, by way of BUF; *taken of them. */
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

/* Writes the moves, and lets go of what waited, whatever comes of it. */
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

/* What becomes of the chunks of one call. */
typedef struct put {
    const cm_shard_chunk *chunk;
    size_t n;
    cm_shard_entry entry[CM_SHARD_MOST]; /* of those that the old shard has, or that wait */
    state state[CM_SHARD_MOST];
} put;

/* Whose bytes the old shard has, and what is left out, has a place; the others are to come. */
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

/* All are here for once: those whose turn it is are moves.  Returns how many. */
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

/* The rest waits.  Returns whether there is any. */
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

/* What was kept is for others to see; what could not be is a move.  Lock held. */
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
 * As long as a chunk of this call is neither done nor shown, or one that was written is not
 * counted, nobody frees ORDER.
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
