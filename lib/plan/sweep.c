#include "plan/sweep.h"

#include <string.h>

#include "base/number.h"
#include "plan/meetings.h"

enum {
    /*
     * Target chunks that a piece of a sliceable source meets: all of them are held until it is
     * copied, in whole pages each.
     */
    MOST_MET = 16,
    MOST_TRIED = 1 << 14 /* lengths of blocks, to find one that cuts no piece */
};

/*
 * The order that holds the fewest slots; the stored order unless another one
 * halves them, since reading a file front to back is what disks and read-ahead
 * like.  Dimensions of one target and one piece do not matter and stay last.
 */
static uint64_t best_order(const cm_meetings *m, unsigned rank, unsigned *order)
{
    enum {
        MAX_PERMUTED = 6
    }; /* 720 orders */
    unsigned matter[CM_MAX_RANK], idle[CM_MAX_RANK], nmatter = 0, nidle = 0;
    for (unsigned j = 0; j < rank; j++) {
        if (m[j].targets > 1 || m[j].pieces > 1)
            matter[nmatter++] = j;
        else
            idle[nidle++] = j;
    }
    memcpy(matter + nmatter, idle, nidle * sizeof(idle[0]));
    memcpy(order, matter, rank * sizeof(order[0]));
    uint64_t stored = cm_meetings_held(m, order, rank), best = stored;
    if (nmatter > MAX_PERMUTED)
        return stored;
    while (cm_next_permutation(matter, nmatter)) {
        uint64_t slots = cm_meetings_held(m, matter, rank);
        if (slots < best && slots <= stored / 2) {
            best = slots;
            memcpy(order, matter, rank * sizeof(order[0]));
        }
    }
    return best;
}

/*
 * The run lengths of a sliceable source: whole rows of the block, as many as make about
 * piece_nbytes and meet no more than MOST_MET target chunks, then one.  A partial run divides the
 * target chunk or is a multiple of it, so that pieces nest.
 */
static void choose_runs(const cm_sweep_request *r, cm_sweep *s)
{
    uint64_t room = cm_max_u64(1, r->piece_nbytes / cm_max_u64(1, r->itemsize)), met = 1;
    bool partial = false;
    for (unsigned j = s->rank; j-- > 0;) {
        cm_axis *axis = &s->axis[j];
        uint64_t extent = cm_min_u64(axis->n, cm_mul_sat(s->block[j], axis->target));
        uint64_t source_run = cm_mul_sat(extent, axis->step);
        uint64_t most = cm_mul_sat(axis->target, cm_max_u64(1, MOST_MET / met));
        if (partial) {
            axis->source = 1;
        } else if (source_run <= room && extent <= most) {
            axis->source = extent;
            room /= source_run;
            met = cm_mul_sat(met, cm_div_ceil(extent, axis->target));
        } else {
            uint64_t run = cm_min_u64(most, cm_max_u64(1, room / axis->step));
            if (run >= axis->target)
                run -= run % axis->target;
            else
                while (axis->target % run != 0)
                    run--;
            axis->source = run;
            partial = true;
        }
    }
}

static void axes_init(const cm_sweep_request *r, cm_sweep *s)
{
    for (unsigned j = 0; j < r->rank; j++) {
        cm_axis *axis = &s->axis[j];
        axis->n = r->shape[j];
        axis->target = r->target[j];
        axis->start = r->start[j];
        axis->step = r->step[j];
        axis->source = r->sliceable ? 1 : r->source[j];
        axis->kind = r->sliceable                 ? CM_PIECE_RUN
                     : r->cuts[j] != NULL         ? CM_PIECE_CUT
                     : axis->step <= axis->source ? CM_PIECE_CHUNK
                                                  : CM_PIECE_POINT;
        axis->cuts = axis->kind == CM_PIECE_CUT ? r->cuts[j] : NULL;
        s->block[j] = cm_div_ceil(axis->n, axis->target);
    }
}

static uint64_t evaluate(const cm_sweep_request *r, cm_sweep *s, cm_meetings *m)
{
    if (r->sliceable)
        choose_runs(r, s);
    for (unsigned j = 0; j < s->rank; j++)
        cm_meetings_find(&s->axis[j], s->block[j], CM_MEASURE_CHUNKS, &m[j]);
    return best_order(m, s->rank, s->order);
}

static uint64_t pieces_total(const cm_meetings *m, unsigned rank)
{
    uint64_t total = 1;
    for (unsigned j = 0; j < rank; j++)
        total = cm_mul_sat(total, m[j].pieces);
    return total;
}

/*
 * Half of a block, in target chunks; where whole source chunks fit into half,
 * cut at their boundary, so that none is decoded on both sides.
 */
static uint64_t half_block(const cm_axis *axis, uint64_t block)
{
    uint64_t half = (block + 1) / 2;
    if (axis->kind == CM_PIECE_CHUNK && axis->step == 1 && axis->start % axis->source == 0) {
        uint64_t period = axis->source / cm_gcd_u64(axis->source, axis->target);
        if (period <= half)
            half -= half % period;
    }
    return half;
}

/*
 * Halves the block along the dimension that costs the fewest reads; false when every block is
 * one chunk, which takes one slot.
 */
static bool shrink(const cm_sweep_request *r, cm_sweep *s, cm_meetings *m, uint64_t *slots)
{
    cm_sweep best, trial;
    uint64_t best_pieces = UINT64_MAX, best_slots = *slots;
    bool found = false;
    for (unsigned j = 0; j < s->rank; j++) {
        if (s->block[j] == 1)
            continue;
        trial = *s;
        trial.block[j] = half_block(&s->axis[j], s->block[j]);
        uint64_t trial_slots = evaluate(r, &trial, m);
        uint64_t pieces = pieces_total(m, s->rank);
        /* A smaller block that holds as much may still be a step towards one that holds less. */
        bool saves = trial_slots < *slots;
        if (found && best_slots < *slots && !saves)
            continue;
        bool better = pieces < best_pieces || (pieces == best_pieces && trial_slots < best_slots);
        if (!found || better || (saves && best_slots >= *slots)) {
            best = trial;
            best_pieces = pieces;
            best_slots = trial_slots;
            found = true;
        }
    }
    if (found) {
        *s = best;
        *slots = best_slots;
    }
    return found;
}

/*
 * Halves overshoot, up to twice as many reads as the slots would allow: blocks
 * grow again, along one dimension after the other, where that saves reads.
 */
static void grow(const cm_sweep_request *r, cm_sweep *s, cm_meetings *m)
{
    evaluate(r, s, m);
    uint64_t pieces = pieces_total(m, s->rank);
    for (unsigned j = 0; j < s->rank; j++) {
        uint64_t most = cm_div_ceil(s->axis[j].n, s->axis[j].target);
        for (uint64_t step = s->block[j]; step > 0; step /= 2) {
            cm_sweep trial = *s;
            trial.block[j] += step;
            if (trial.block[j] > most || evaluate(r, &trial, m) > r->max_slots)
                continue;
            uint64_t trial_pieces = pieces_total(m, s->rank);
            if (trial_pieces < pieces) {
                *s = trial;
                pieces = trial_pieces;
            }
        }
    }
}

static void summarise(const cm_sweep_request *r, cm_sweep *s)
{
    cm_meetings m[CM_MAX_RANK];
    s->slots = evaluate(r, s, m);
    s->total_blocks = s->total_pieces = s->source_chunks = s->touched = s->piece_nelem = 1;
    for (unsigned j = 0; j < s->rank; j++) {
        const cm_axis *axis = &s->axis[j];
        cm_range all = {0, axis->n}, whole = cm_axis_pieces(axis, all, all);
        s->nblocks[j] = cm_div_ceil(cm_div_ceil(axis->n, axis->target), s->block[j]);
        s->total_blocks = cm_mul_sat(s->total_blocks, s->nblocks[j]);
        s->total_pieces = cm_mul_sat(s->total_pieces, m[j].pieces);
        s->source_chunks = cm_mul_sat(s->source_chunks, whole.hi - whole.lo);
        s->touched = cm_mul_sat(s->touched, m[j].touched);
        uint64_t run = axis->source;
        if (axis->kind == CM_PIECE_RUN)
            run = cm_mul_sat(run - 1, axis->step) + 1;
        s->piece_nelem = cm_mul_sat(s->piece_nelem, run);
    }
    if (r->sliceable)
        s->source_chunks = s->total_pieces;
}

void cm_sweep_plan(const cm_sweep_request *r, cm_sweep *out)
{
    cm_meetings m[CM_MAX_RANK];
    memset(out, 0, sizeof(*out));
    out->rank = r->rank;
    axes_init(r, out);
    uint64_t slots = evaluate(r, out, m);
    bool fits = r->max_slots == 0 || slots <= r->max_slots;
    while (!fits && slots > r->max_slots && shrink(r, out, m, &slots)) {
    }
    if (!fits)
        grow(r, out, m);
    summarise(r, out);
}

void cm_sweep_with(const cm_sweep_request *r, const uint64_t *block, const unsigned *order,
                   cm_sweep *out)
{
    cm_meetings m[CM_MAX_RANK];
    memset(out, 0, sizeof(*out));
    out->rank = r->rank;
    axes_init(r, out);
    memcpy(out->block, block, r->rank * sizeof(block[0]));
    summarise(r, out);
    for (unsigned j = 0; j < r->rank; j++)
        cm_meetings_find(&out->axis[j], out->block[j], CM_MEASURE_CHUNKS, &m[j]);
    memcpy(out->order, order, r->rank * sizeof(order[0]));
    out->slots = cm_meetings_held(m, order, r->rank);
}

uint64_t cm_sweep_slots_for(const cm_sweep *sweep, const uint64_t *target)
{
    cm_meetings m[CM_MAX_RANK];
    uint64_t across = 1;
    for (unsigned j = 0; j < sweep->rank; j++) {
        cm_axis axis = sweep->axis[j];
        /*
         * Blocks that cut the larger chunk leave it open from block to block: then all of the
         * dimension counts.
         */
        uint64_t per = target[j] / axis.target;
        uint64_t block = sweep->block[j] % per == 0 ? sweep->block[j] / per : 0;
        axis.target = target[j];
        if (block == 0)
            block = cm_div_ceil(axis.n, axis.target);
        cm_meetings_find(&axis, block, CM_MEASURE_CHUNKS, &m[j]);
        across = cm_mul_sat(across, cm_div_ceil(axis.n, axis.target));
    }
    return sweep->total_blocks > 1 ? across : cm_meetings_held(m, sweep->order, sweep->rank);
}

void cm_sweep_shift(cm_sweep *s, const uint64_t *first)
{
    for (unsigned j = 0; j < s->rank; j++) {
        cm_axis *axis = &s->axis[j];
        uint64_t by = first[j] * axis->target;
        s->first[j] += first[j];
        axis->n += by;
        axis->start -= by * axis->step;
    }
}

/* True when a new block may begin every ROWS target chunks: pieces end there, too. */
static bool splits_at(const cm_sweep *s, uint64_t rows)
{
    const cm_axis *axis = &s->axis[0];
    const uint64_t end = cm_div_ceil(axis->n, axis->target);
    const cm_range all = {s->first[0] * axis->target, axis->n};
    bool ends = s->nblocks[0] == 1 || s->block[0] % rows == 0;
    for (uint64_t q = s->first[0] + rows; ends && q < end; q += rows) {
        const uint64_t at = q * axis->target;
        const cm_range before = cm_axis_pieces(axis, all, (cm_range){at - 1, at});
        ends = before.lo < cm_axis_pieces(axis, all, (cm_range){at, at + 1}).lo;
    }
    return ends;
}

/* Tries GRAIN times I, for I from FROM on towards TO; 0: none of these. */
static uint64_t find_split(const cm_sweep *s, uint64_t grain, uint64_t from, uint64_t to)
{
    for (unsigned tried = 0; tried < MOST_TRIED; tried++) {
        if (from > 0 && splits_at(s, from * grain))
            return from * grain;
        if (from == to)
            break;
        from = from < to ? from + 1 : from - 1;
    }
    return 0;
}

bool cm_sweep_split(cm_sweep *s, uint64_t rows, uint64_t grain)
{
    if (s->rank == 0 || rows >= s->block[0] || grain >= s->block[0])
        return false;
    const uint64_t near = cm_max_u64(rows / grain, 1), most = (s->block[0] - 1) / grain;
    uint64_t found = find_split(s, grain, near, near / 2 + 1);
    if (found == 0)
        found = find_split(s, grain, near, cm_min_u64(4 * near, most));
    if (found == 0)
        return false;
    const uint64_t others = s->total_blocks / s->nblocks[0];
    s->block[0] = found;
    s->nblocks[0] = cm_div_ceil(cm_div_ceil(s->axis[0].n, s->axis[0].target) - s->first[0], found);
    s->total_blocks = cm_mul_sat(others, s->nblocks[0]);
    return true;
}

/* Positions of block B along dimension J. */
static cm_range block_span(const cm_sweep *s, unsigned j, uint64_t b)
{
    const cm_axis *axis = &s->axis[j];
    uint64_t by = s->first[j] * axis->target, length = s->block[j] * axis->target;
    cm_range span = {by + b * length, by + (b + 1) * length};
    span.hi = cm_min_u64(span.hi, axis->n);
    return span;
}

static void enter_block(const cm_sweep *s, cm_sweep_cursor *c)
{
    uint64_t number = c->block;
    for (unsigned j = s->rank; j-- > 0;) {
        c->span[j] = block_span(s, j, number % s->nblocks[j]);
        number /= s->nblocks[j];
        c->pieces[j] = cm_axis_pieces(&s->axis[j], c->span[j], c->span[j]);
        c->piece[j] = c->pieces[j].lo;
    }
}

void cm_sweep_begin(const cm_sweep *s, uint64_t block, cm_sweep_cursor *c)
{
    memset(c, 0, sizeof(*c));
    c->block = block;
    enter_block(s, c);
}

void cm_sweep_next(const cm_sweep *s, cm_sweep_cursor *c)
{
    for (unsigned i = s->rank; i-- > 0;) {
        unsigned j = s->order[i];
        if (++c->piece[j] < c->pieces[j].hi)
            return;
        c->piece[j] = c->pieces[j].lo;
    }
    if (++c->block < s->total_blocks)
        enter_block(s, c);
    else
        c->done = true;
}

uint64_t cm_sweep_pieces_of(const cm_sweep *s, const cm_sweep_cursor *c, const uint64_t *coord)
{
    uint64_t n = 1;
    for (unsigned j = 0; j < s->rank; j++) {
        cm_range span = cm_axis_target_span(&s->axis[j], coord[j]);
        cm_range pieces = cm_axis_pieces(&s->axis[j], c->span[j], span);
        n *= pieces.hi - pieces.lo;
    }
    return n;
}
