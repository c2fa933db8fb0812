/*
 * The queue: which piece or target chunk a worker does next.
 *
 * One lock guards the cursor, the slots and the list of target chunks that are
 * ready.  A worker takes a ready target chunk before it begins a piece, because
 * encoding frees memory; it begins a piece only when all slots that the piece
 * needs can be had.  That cannot come to a standstill: the slots that are held
 * when every begun piece is done and every ready chunk is written are what the
 * sweep counted, and the options leave room for those.  A worker that finds
 * nothing waits for what it has on its way first, which may hold slots too.
 */
#include "engine/engine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/number.h"
#include "base/threads.h"
#include "engine/deliver.h"
#include "engine/direct.h"
#include "engine/outbox.h"
#include "engine/pieces.h"
#include "engine/spill.h"

typedef struct engine {
    const cm_transfer *transfer;
    size_t n;
    const cm_engine_options *options;
    cm_worker *worker;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    uint64_t round;
    size_t at;      /* transfer under the cursor */
    cm_range share; /* of its blocks or objects, in this round */
    cm_sweep_cursor cursor;
    bool direct;          /* it goes chunk by chunk: */
    uint64_t folder;      /* objects that one worker takes at a time; of shards one */
    uint64_t begun;       /* the first object of the share that nobody has begun */
    cm_same_chunks *same; /* what each worker began; those from LO to HI are to be taken */
    cm_slots slots;
    cm_buffers buffers;
    cm_slot *ready, **last_ready; /* in the order in which they became ready, and its end */
    size_t nready;
    unsigned busy; /* workers at a piece or a target chunk */
    cm_error error;
} engine;

typedef enum take {
    TAKE_NOTHING,
    TAKE_PIECES,
    TAKE_TARGETS,
    TAKE_SAME
} take;

/* Bytes of the slot for target chunk COORD. */
static size_t slot_nbytes_at(const cm_transfer *t, const uint64_t *coord)
{
    cm_box valid;
    if (!t->clips)
        return t->slot_nbytes;
    cm_grid_box(&t->target->grid, coord, &valid);
    return cm_buffers_nbytes(cm_box_nelem(&valid) * t->source->dtype.nbytes);
}

/* Describes the piece under the cursor, without its slots. */
static void describe_piece(const engine *e, cm_source_piece *p)
{
    const cm_transfer *t = &e->transfer[e->at];
    const cm_sweep_cursor *c = &e->cursor;
    p->transfer = t;
    p->nslots = 1;
    p->number = 0;
    for (unsigned j = 0; j < t->sweep.rank; j++) {
        const cm_axis *axis = &t->sweep.axis[j];
        p->span[j] = cm_axis_piece_span(axis, c->span[j], c->piece[j]);
        p->targets[j] = cm_axis_targets(axis, p->span[j]);
        p->nslots *= p->targets[j].hi - p->targets[j].lo;
        p->coord[j] = cm_axis_source_chunk(axis, c->piece[j]);
        if (axis->kind == CM_PIECE_RUN)
            p->coord[j] = p->targets[j].lo;
    }
    const cm_array *source = t->source;
    bool runs = t->sweep.rank > 0 && t->sweep.axis[0].kind == CM_PIECE_RUN;
    p->number = cm_grid_number(runs ? &t->target->grid : &source->grid, p->coord);
    p->absent = t->may_be_absent && cm_transfer_is_absent(t, p->number);
}

static bool advance_coord(const cm_range *within, unsigned rank, uint64_t *coord)
{
    for (unsigned j = rank; j-- > 0;) {
        if (++coord[j] < within[j].hi)
            return true;
        coord[j] = within[j].lo;
    }
    return false;
}

/* True when every piece that meets target chunk COORD is unallocated. */
static bool all_absent(const engine *e, const cm_source_piece *p, const uint64_t *coord)
{
    const cm_transfer *t = p->transfer;
    const cm_sweep *s = &t->sweep;
    cm_range pieces[CM_MAX_RANK];
    uint64_t piece[CM_MAX_RANK], chunk[CM_MAX_RANK];
    for (unsigned j = 0; j < s->rank; j++) {
        pieces[j] = cm_axis_pieces(&s->axis[j], e->cursor.span[j],
                                   cm_axis_target_span(&s->axis[j], coord[j]));
        piece[j] = pieces[j].lo;
    }
    do {
        for (unsigned j = 0; j < s->rank; j++)
            chunk[j] = cm_axis_source_chunk(&s->axis[j], piece[j]);
        if (!cm_transfer_is_absent(t, cm_grid_number(&t->source->grid, chunk)))
            return false;
    } while (advance_coord(pieces, s->rank, piece));
    return true;
}

static int skip_target(engine *e, const cm_transfer *t, uint64_t number, const uint64_t *coord)
{
    cm_box valid;
    cm_grid_box(&t->target->grid, coord, &valid);
    cm_monitor_add(e->options->monitor, cm_box_nelem(&valid) * t->source->dtype.nbytes);
    cm_transfer_count_delivered(t, 1, cm_box_nelem(&valid));
    return cm_transfer_skip(t, number, &e->error);
}

/* True when target chunk COORD is to be filled by this pass. */
static bool is_wanted(const cm_transfer *t, const uint64_t *coord, uint64_t number)
{
    return (t->spill == NULL || cm_spill_is_resident(t->spill, coord)) &&
           !cm_target_is_delivered(t->target, number);
}

/*
 * The slots that are there already, NULL where one is missing or the chunk has
 * been delivered; returns the bytes of those that are missing.
 */
static size_t find_slots(const engine *e, cm_source_piece *p)
{
    const cm_transfer *t = p->transfer;
    const cm_grid *grid = &t->target->grid;
    uint64_t coord[CM_MAX_RANK], i = 0;
    size_t missing = 0;
    for (unsigned j = 0; j < grid->rank; j++)
        coord[j] = p->targets[j].lo;
    do {
        uint64_t number = cm_grid_number(grid, coord);
        p->slot[i] = cm_slots_find(&e->slots, t, number);
        if (p->slot[i] == NULL && is_wanted(t, coord, number))
            missing += slot_nbytes_at(t, coord);
        i++;
    } while (advance_coord(p->targets, grid->rank, coord));
    return missing;
}

/*
 * Makes the slots that are missing; a target chunk that nothing was ever written to needs none
 * and is left out.
 */
static int make_slots(engine *e, cm_source_piece *p)
{
    const cm_transfer *t = p->transfer;
    const cm_grid *grid = &t->target->grid;
    uint64_t coord[CM_MAX_RANK], i = 0;
    int rc = CM_OK;
    for (unsigned j = 0; j < grid->rank; j++)
        coord[j] = p->targets[j].lo;
    do {
        cm_slot **slot = &p->slot[i++];
        uint64_t number = cm_grid_number(grid, coord);
        if (*slot != NULL || !is_wanted(t, coord, number))
            continue;
        if (p->absent && t->absent_is_empty && all_absent(e, p, coord)) {
            rc = skip_target(e, t, number, coord);
        } else {
            uint64_t left = cm_sweep_pieces_of(&t->sweep, &e->cursor, coord);
            *slot = cm_slots_add(&e->slots, &e->buffers, t, number, slot_nbytes_at(t, coord), left,
                                 &e->error);
            rc = *slot == NULL ? (int)e->error.status : CM_OK;
        }
    } while (rc == CM_OK && advance_coord(p->targets, grid->rank, coord));
    return rc;
}

/*
 * Finds or makes the slots of P.  False when more buffers are needed than can be
 * had now; *idle: nothing needs P, and it need not be read.
 */
static bool claim_slots(engine *e, cm_source_piece *p, bool *idle, int *rc)
{
    size_t missing = find_slots(e, p);
    if (missing > 0 && !cm_buffers_have(&e->buffers, missing, 1))
        return false;
    if (missing > 0)
        *rc = make_slots(e, p);
    *idle =
        p->transfer->spill == NULL || p->absent || !cm_spill_wants(p->transfer->spill, p->targets);
    for (uint64_t i = 0; i < p->nslots && *idle; i++)
        *idle = p->slot[i] == NULL;
    return true;
}

static bool at_end(const engine *e)
{
    return e->at == e->n;
}

/*
 * How many objects one worker takes at a time: those of the smallest folder that gives a batch, as
 * two workers that create files in one folder wait for each other in the kernel (17 % of the CPU of
 * 600 chunks that are passed on).
 */
static uint64_t folder_of(const cm_transfer *t)
{
    const cm_grid *grid = &t->target->grid;
    const uint64_t batch = cm_transfer_source_batch(t);
    uint64_t n = 1;
    if (cm_transfer_has_shards(t))
        return 1;
    for (unsigned j = grid->rank; j-- > 0 && (n == 1 || n < batch);)
        n *= grid->count[j];
    return n;
}

/* The chunks of the next shard, or of the next folder. */
static void begin_object(engine *e, cm_same_chunks *same)
{
    const cm_transfer *t = &e->transfer[e->at];
    const cm_grid *grid = &t->target->grid;
    const uint64_t end = cm_min_u64((e->begun / e->folder + 1) * e->folder, e->share.hi);
    *same = (cm_same_chunks){.transfer = t, .lo = e->begun, .hi = end};
    memcpy(same->count, grid->count, sizeof(same->count));
    if (cm_transfer_has_shards(t)) {
        const cm_grid *outer = &t->target->outer;
        uint64_t coord[CM_MAX_RANK];
        cm_box box;
        cm_grid_coord(outer, e->begun, coord);
        cm_grid_box(outer, coord, &box);
        cm_grid_cover(grid, &box, same->first, same->count);
        same->lo = 0;
        same->hi = 1;
        for (unsigned j = 0; j < grid->rank; j++)
            same->hi *= same->count[j];
    }
    e->begun = end;
}

/* All blocks of T or, where chunks stay, all objects. */
static cm_range range_of(const cm_transfer *t)
{
    if (t->target->grid.nchunks == 0)
        return (cm_range){0, 0};
    if (!cm_transfer_is_direct(t))
        return (cm_range){t->first_block, t->end_block > 0 ? t->end_block : t->sweep.total_blocks};
    return (cm_range){t->first_object, t->end_object > 0           ? t->end_object
                                       : cm_transfer_has_shards(t) ? t->target->outer.nchunks
                                                                   : t->target->grid.nchunks};
}

/* The number of N units that are moved in the rounds before ROUND. */
static uint64_t before_round(uint64_t n, uint64_t round, uint64_t nrounds)
{
    return n / nrounds * round + cm_div_ceil(n % nrounds * round, nrounds);
}

/* The blocks or objects of T that are moved in this round. */
static cm_range share_of(const engine *e, const cm_transfer *t)
{
    const cm_range all = range_of(t);
    const uint64_t n = all.hi - all.lo, rounds = cm_max_u64(e->options->rounds, 1);
    const uint64_t unit = t->together > 0 && t->together < n ? t->together : cm_max_u64(n, 1);
    const uint64_t nunits = cm_div_ceil(n, unit);
    const uint64_t lo = unit * before_round(nunits, e->round, rounds);
    const uint64_t hi = unit * before_round(nunits, e->round + 1, rounds);
    return (cm_range){all.lo + lo, all.lo + cm_min_u64(hi, n)};
}

/* The transfer under the cursor or, where nothing of it is left in this round, one behind it. */
static void enter_transfer(engine *e)
{
    const uint64_t rounds = cm_max_u64(e->options->rounds, 1);
    for (;; e->at++) {
        if (e->at == e->n) {
            if (e->round + 1 >= rounds)
                return;
            e->round++;
            e->at = 0;
        }
        e->share = share_of(e, &e->transfer[e->at]);
        if (e->share.lo < e->share.hi)
            break;
    }
    const cm_transfer *t = &e->transfer[e->at];
    e->direct = cm_transfer_is_direct(t);
    e->folder = folder_of(t);
    e->begun = e->share.lo;
    if (!e->direct)
        cm_sweep_begin(&t->sweep, e->share.lo, &e->cursor);
}

static void next_transfer(engine *e)
{
    e->at++;
    enter_transfer(e);
}

static void advance(engine *e)
{
    const cm_transfer *t = &e->transfer[e->at];
    cm_sweep_next(&t->sweep, &e->cursor);
    if (e->cursor.done || e->cursor.block >= e->share.hi)
        next_transfer(e);
}

/*
 * Pieces of one transfer whose slots can be had; *passed: of these, and of those that nothing
 * needs.
 */
static void take_pieces(engine *e, cm_worker *w, size_t *passed)
{
    const cm_transfer *t = &e->transfer[e->at];
    size_t limit = cm_transfer_source_batch(t), used = 0;
    int rc = CM_OK;
    w->npieces = *passed = 0;
    for (; *passed < limit && !at_end(e) && t == &e->transfer[e->at]; ++*passed) {
        cm_source_piece *p = &w->piece[w->npieces];
        bool idle;
        p->slot = w->slot + used;
        describe_piece(e, p);
        if ((used > 0 && p->nslots > w->nslots - used) || !claim_slots(e, p, &idle, &rc) ||
            rc != CM_OK)
            break;
        advance(e);
        if (idle)
            continue;
        w->npieces++;
        used += p->nslots;
    }
}

/* Its share of the ready target chunks of one transfer. */
static void take_targets(engine *e, cm_worker *w)
{
    const cm_transfer *t = e->ready->transfer;
    size_t limit = cm_transfer_target_batch(t), share = e->nready / e->options->nthreads + 1;
    limit = share < limit ? share : limit;
    for (w->ntargets = 0; w->ntargets < limit && e->ready != NULL && e->ready->transfer == t;
         e->nready--) {
        w->target[w->ntargets++] = e->ready;
        e->ready = e->ready->next_ready;
    }
    if (e->ready == NULL)
        e->last_ready = &e->ready;
}

static uint64_t left_of(const cm_same_chunks *same)
{
    return same->hi - same->lo;
}

/* Of the objects that were begun, the one with most left. */
static cm_same_chunks *most_left(const engine *e)
{
    cm_same_chunks *most = &e->same[0];
    for (unsigned i = 1; i < e->options->nthreads; i++)
        if (left_of(&e->same[i]) > left_of(most))
            most = &e->same[i];
    return most;
}

/*
 * Each worker has a shard or a folder of its own while there are any, and then helps with
 * another's: two that write into one file wait for each other in the kernel.
 */
static void take_same(engine *e, cm_worker *w)
{
    size_t limit = cm_transfer_source_batch(&e->transfer[e->at]);
    cm_same_chunks *same = &e->same[w->index];
    if (left_of(same) == 0 && e->begun < e->share.hi)
        begin_object(e, same);
    else if (left_of(same) == 0)
        same = most_left(e);
    w->same = *same;
    if (limit < left_of(same))
        w->same.hi = same->lo + limit;
    same->lo = w->same.hi;
    if (e->begun == e->share.hi && left_of(most_left(e)) == 0)
        next_transfer(e);
}

/* Takes what can be done now.  With the lock held. */
static take try_take(engine *e, cm_worker *w)
{
    size_t passed = 0;
    do {
        if (e->error.status != CM_OK)
            return TAKE_NOTHING;
        if (cm_monitor_canceled(e->options->monitor)) {
            cm_fail(&e->error, CM_ECANCELED, "stopped by request");
            return TAKE_NOTHING;
        }
        if (e->ready != NULL) {
            take_targets(e, w);
            return TAKE_TARGETS;
        }
        if (at_end(e))
            return TAKE_NOTHING;
        if (e->direct) {
            take_same(e, w);
            return TAKE_SAME;
        }
        take_pieces(e, w, &passed);
        if (e->error.status == CM_OK && w->npieces > 0)
            return TAKE_PIECES;
    } while (passed > 0);
    return TAKE_NOTHING;
}

/* Slots whose elements were sent.  With the lock held. */
static void take_back(engine *e, cm_worker *w)
{
    cm_slot *slot;
    while ((slot = w->outbox.emptied) != NULL) {
        w->outbox.emptied = slot->next_ready;
        cm_slots_remove(&e->slots, &e->buffers, slot);
    }
}

/* Waits for what W has on its way, the OLDEST or all; lock held, and let go meanwhile. */
static void wait_for_answers(engine *e, cm_worker *w, bool oldest)
{
    cm_error err = {0};
    e->busy++; /* there may be room for others afterwards */
    pthread_mutex_unlock(&e->lock);
    uint64_t start = cm_now_ns();
    int rc = oldest ? cm_outbox_end_oldest(&w->outbox, &err) : cm_outbox_end_all(&w->outbox, &err);
    cm_worker_stage(w, CM_STAGE_WRITE, NULL, 0, start);
    pthread_mutex_lock(&e->lock);
    e->busy--;
    if (rc != CM_OK && e->error.status == CM_OK)
        e->error = err;
    take_back(e, w);
    pthread_cond_broadcast(&e->wake);
}

/* Waits for work.  Called, and returns, with the lock held. */
static take take_work(engine *e, cm_worker *w)
{
    take what;
    while ((what = try_take(e, w)) == TAKE_NOTHING) {
        if (e->error.status != CM_OK)
            break;
        if (w->outbox.n > 0) {
            wait_for_answers(e, w, true);
            continue;
        }
        if (e->busy == 0) {
            if (!at_end(e))
                cm_fail(&e->error, CM_EINTERNAL, "variable %s: the plan's blocks do not fit",
                        e->transfer[e->at].source->name);
            break;
        }
        uint64_t start = cm_now_ns();
        pthread_cond_wait(&e->wake, &e->lock);
        cm_worker_stage(w, CM_STAGE_WAIT, NULL, 0, start);
    }
    return what;
}

static int do_work(cm_worker *w, take what, cm_error *err)
{
    switch (what) {
    case TAKE_PIECES:
        return cm_worker_pieces(w, err);
    case TAKE_TARGETS:
        return cm_worker_targets(w, err);
    case TAKE_SAME:
        return cm_worker_same(w, err);
    case TAKE_NOTHING:
        break;
    }
    return CM_OK;
}

/* Target chunks whose last piece W has brought become ready.  With the lock held. */
static void release_pieces(engine *e, cm_worker *w)
{
    for (size_t k = 0; k < w->npieces; k++) {
        for (uint64_t i = 0; i < w->piece[k].nslots; i++) {
            cm_slot *slot = w->piece[k].slot[i];
            if (slot != NULL && atomic_fetch_sub(&slot->left, 1) == 1) {
                slot->next_ready = NULL;
                *e->last_ready = slot;
                e->last_ready = &slot->next_ready;
                e->nready++;
            }
        }
    }
}

static void worker_main(void *context, unsigned index)
{
    engine *e = context;
    cm_worker *w = &e->worker[index];
    cm_error err = {0};
    take what;
    pthread_mutex_lock(&e->lock);
    while ((what = take_work(e, w)) != TAKE_NOTHING) {
        e->busy++;
        pthread_mutex_unlock(&e->lock);
        int rc = do_work(w, what, &err);
        pthread_mutex_lock(&e->lock);
        e->busy--;
        if (rc != CM_OK && e->error.status == CM_OK)
            e->error = err;
        for (size_t i = 0; what == TAKE_TARGETS && i < w->ntargets; i++)
            if (w->target[i] != NULL)
                cm_slots_remove(&e->slots, &e->buffers, w->target[i]);
        take_back(e, w);
        if (what == TAKE_PIECES && rc == CM_OK)
            release_pieces(e, w);
        pthread_cond_broadcast(&e->wake);
    }
    if (w->outbox.n > 0)
        wait_for_answers(e, w, false);
    pthread_cond_broadcast(&e->wake);
    pthread_mutex_unlock(&e->lock);
}

int cm_engine_run(const cm_transfer *transfer, size_t n, const cm_engine_options *options,
                  cm_engine_stats *stats, cm_error *err)
{
    engine e = {.transfer = transfer, .n = n, .options = options};
    e.last_ready = &e.ready;
    unsigned nworkers = options->nthreads, made = 0;
    memset(stats, 0, sizeof(*stats));
    for (size_t i = 0; i < n; i++)
        if (transfer[i].pass != CM_PASS_NOTHING && !cm_transfer_is_direct(&transfer[i]))
            return cm_fail(err, CM_EINTERNAL, "variable %s: its chunks do not stay as they are",
                           transfer[i].source->name);
    pthread_mutex_init(&e.lock, NULL);
    pthread_cond_init(&e.wake, NULL);
    size_t limit = options->slots_nbytes;
    for (size_t i = 0; i < n; i++)
        limit = cm_max_u64(limit, transfer[i].slot_nbytes);
    cm_buffers_init(&e.buffers, limit);
    enter_transfer(&e);
    int rc = cm_slots_init(&e.slots, err);
    if (rc == CM_OK && (e.worker = cm_calloc(nworkers, sizeof(e.worker[0]), err)) == NULL)
        rc = CM_ENOMEM;
    if (rc == CM_OK && (e.same = cm_calloc(nworkers, sizeof(e.same[0]), err)) == NULL)
        rc = CM_ENOMEM;
    for (; rc == CM_OK && made < nworkers; made++)
        rc = cm_worker_init(&e.worker[made], made, transfer, n, options->ahead, options->monitor,
                            options->trace, err);
    if (rc == CM_OK) {
        cm_threads_run(nworkers, worker_main, &e);
        rc = e.error.status;
        if (rc != CM_OK && err != NULL)
            *err = e.error;
    }
    for (unsigned i = 0; i < made; i++) {
        cm_engine_stats_add(stats, &e.worker[i].stats);
        cm_worker_release(&e.worker[i]);
    }
    free(e.worker);
    free(e.same);
    cm_slots_release(&e.slots, &e.buffers);
    cm_buffers_release(&e.buffers);
    pthread_cond_destroy(&e.wake);
    pthread_mutex_destroy(&e.lock);
    return rc;
}
