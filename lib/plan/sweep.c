#include "plan/sweep.h"

#include <string.h>

#include "base/number.h"

/*
 * How target chunks along one dimension relate to the piece at the cursor:
 * begun before and going on after it (mid), begun at it and going on (opening),
 * begun before and ending at it (closing), or met by it alone (nested).
 */
typedef struct meeting {
    uint64_t mid, opening, closing, nested;
} meeting;

enum {
    MAX_MEETINGS = 16,
    MAX_SCAN = 1 << 17 /* pieces looked at; longer dimensions get the worst case added */
};

/* The distinct meetings along one dimension, for one block length. */
typedef struct meetings {
    meeting item[MAX_MEETINGS];
    size_t n;
    uint64_t targets; /* of the longest block */
    uint64_t pieces;  /* of all blocks together */
    uint64_t touched; /* targets that one piece meets at most */
} meetings;

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Products of counts saturate: such a plan never fits. */
static uint64_t mul_sat(uint64_t a, uint64_t b)
{
    uint64_t product;
    return cm_mul_u64(a, b, &product) ? product : UINT64_MAX;
}

static uint64_t add_sat(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static cm_range block_span(const cm_axis *axis, uint64_t block, uint64_t b)
{
    return (cm_range){b * block * axis->target, min_u64(axis->n, (b + 1) * block * axis->target)};
}

static void meetings_add(meetings *m, meeting item)
{
    for (size_t i = 0; i < m->n; i++)
        if (memcmp(&m->item[i], &item, sizeof(item)) == 0)
            return;
    if (m->n < MAX_MEETINGS) {
        m->item[m->n++] = item;
        return;
    }
    /* Too many kinds: the last one becomes an upper bound of the rest. */
    meeting *last = &m->item[MAX_MEETINGS - 1];
    last->mid = max_u64(last->mid, item.mid);
    last->opening = max_u64(last->opening, item.opening);
    last->closing = max_u64(last->closing, item.closing);
    last->nested = max_u64(last->nested, item.nested);
}

static meeting meet(const cm_axis *axis, cm_range block, uint64_t piece, uint64_t *touched)
{
    meeting m = {0};
    cm_range targets = cm_axis_targets(axis, cm_axis_piece_span(axis, block, piece));
    *touched = targets.hi - targets.lo;
    /* Only the outermost targets can reach past the piece. */
    m.nested = *touched;
    for (int side = 0; side < (*touched > 1 ? 2 : 1); side++) {
        cm_range span = cm_axis_target_span(axis, side == 0 ? targets.lo : targets.hi - 1);
        cm_range pieces = cm_axis_pieces(axis, block, span);
        bool before = pieces.lo<piece, after = pieces.hi - 1> piece;
        if (!before && !after)
            continue;
        m.nested--;
        m.mid += before && after;
        m.opening += !before && after;
        m.closing += before && !after;
    }
    return m;
}

static void meetings_find(const cm_axis *axis, uint64_t block, meetings *out)
{
    memset(out, 0, sizeof(*out));
    uint64_t ntargets = cm_div_ceil(axis->n, axis->target);
    uint64_t nblocks = cm_div_ceil(ntargets, block), scanned = 0;
    out->targets = min_u64(block, ntargets);
    for (uint64_t b = 0; b < nblocks; b++) {
        if (b == MAX_SCAN) {
            out->pieces = mul_sat(out->pieces / MAX_SCAN + 1, nblocks);
            break;
        }
        cm_range span = block_span(axis, block, b);
        cm_range pieces = cm_axis_pieces(axis, span, span);
        out->pieces += pieces.hi - pieces.lo;
        for (uint64_t k = pieces.lo; k < pieces.hi && scanned < MAX_SCAN; k++, scanned++) {
            uint64_t touched;
            meetings_add(out, meet(axis, span, k, &touched));
            out->touched = max_u64(out->touched, touched);
        }
    }
    if (scanned == MAX_SCAN) {
        uint64_t most = axis->source / axis->target + 2;
        meetings_add(out, (meeting){1, 1, 1, most});
        out->touched = max_u64(out->touched, most);
    }
}

/*
 * Slots held at most when pieces come in lexicographic order of ORDER.  Looking
 * at the dimension ORDER[0] and the product `rest` of the targets along the
 * others: a target that is mid holds all of `rest`; of those opening, the ones
 * that the inner position has passed are held, of those closing the ones that
 * it has not, together at most `rest` and once more what is held at the inner
 * position; a nested one holds only the latter.
 */
static uint64_t slots_held(const meetings *m, const unsigned *order, unsigned rank)
{
    uint64_t inner = 1, rest = 1;
    for (unsigned i = rank; i-- > 0;) {
        const meetings *along = &m[order[i]];
        uint64_t most = 0;
        for (size_t k = 0; k < along->n; k++) {
            const meeting *at = &along->item[k];
            uint64_t pairs = min_u64(at->opening, at->closing);
            uint64_t held = mul_sat(at->mid + max_u64(at->opening, at->closing), rest);
            held = add_sat(held, mul_sat(pairs + at->nested, inner));
            most = max_u64(most, held);
        }
        inner = most;
        rest = mul_sat(rest, along->targets);
    }
    return inner;
}

static bool next_permutation(unsigned *order, unsigned n)
{
    unsigned i = n;
    while (i > 1 && order[i - 2] > order[i - 1])
        i--;
    if (i <= 1)
        return false;
    unsigned j = n - 1;
    while (order[j] < order[i - 2])
        j--;
    unsigned swap = order[i - 2];
    order[i - 2] = order[j];
    order[j] = swap;
    for (unsigned lo = i - 1, hi = n - 1; lo < hi; lo++, hi--) {
        swap = order[lo];
        order[lo] = order[hi];
        order[hi] = swap;
    }
    return true;
}

/*
 * The order that holds the fewest slots; the stored order unless another one
 * halves them, since reading a file front to back is what disks and read-ahead
 * like.  Dimensions of one target and one piece do not matter and stay last.
 */
static uint64_t best_order(const meetings *m, unsigned rank, unsigned *order)
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
    uint64_t stored = slots_held(m, order, rank), best = stored;
    if (nmatter > MAX_PERMUTED)
        return stored;
    while (next_permutation(matter, nmatter)) {
        uint64_t slots = slots_held(m, matter, rank);
        if (slots < best && slots <= stored / 2) {
            best = slots;
            memcpy(order, matter, rank * sizeof(order[0]));
        }
    }
    return best;
}

/*
 * The run lengths of a sliceable source: whole rows of the block, as many as
 * make about piece_nbytes, then one.  A partial run divides the target chunk or
 * is a multiple of it, so that pieces nest.
 */
static void choose_runs(const cm_sweep_request *r, cm_sweep *s)
{
    uint64_t room = max_u64(1, r->piece_nbytes / max_u64(1, r->itemsize));
    bool partial = false;
    for (unsigned j = s->rank; j-- > 0;) {
        cm_axis *axis = &s->axis[j];
        uint64_t extent = min_u64(axis->n, mul_sat(s->block[j], axis->target));
        uint64_t source_run = mul_sat(extent, axis->step);
        if (partial) {
            axis->source = 1;
        } else if (source_run <= room) {
            axis->source = extent;
            room /= source_run;
        } else {
            uint64_t run = max_u64(1, room / axis->step);
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
                     : axis->step <= axis->source ? CM_PIECE_CHUNK
                                                  : CM_PIECE_POINT;
        s->block[j] = cm_div_ceil(axis->n, axis->target);
    }
}

static uint64_t evaluate(const cm_sweep_request *r, cm_sweep *s, meetings *m)
{
    if (r->sliceable)
        choose_runs(r, s);
    for (unsigned j = 0; j < s->rank; j++)
        meetings_find(&s->axis[j], s->block[j], &m[j]);
    return best_order(m, s->rank, s->order);
}

static uint64_t pieces_total(const meetings *m, unsigned rank)
{
    uint64_t total = 1;
    for (unsigned j = 0; j < rank; j++)
        total = mul_sat(total, m[j].pieces);
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

/* Halves the block along the dimension that costs the fewest reads; false when every block is one chunk, which takes one slot. */
static bool shrink(const cm_sweep_request *r, cm_sweep *s, meetings *m, uint64_t *slots)
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

static void summarise(const cm_sweep_request *r, cm_sweep *s)
{
    meetings m[CM_MAX_RANK];
    s->slots = evaluate(r, s, m);
    s->total_blocks = s->total_pieces = s->source_chunks = s->touched = s->piece_nelem = 1;
    for (unsigned j = 0; j < s->rank; j++) {
        const cm_axis *axis = &s->axis[j];
        cm_range all = {0, axis->n}, whole = cm_axis_pieces(axis, all, all);
        s->nblocks[j] = cm_div_ceil(cm_div_ceil(axis->n, axis->target), s->block[j]);
        s->total_blocks = mul_sat(s->total_blocks, s->nblocks[j]);
        s->total_pieces = mul_sat(s->total_pieces, m[j].pieces);
        s->source_chunks = mul_sat(s->source_chunks, whole.hi - whole.lo);
        s->touched = mul_sat(s->touched, m[j].touched);
        uint64_t run = axis->source;
        if (axis->kind == CM_PIECE_RUN)
            run = mul_sat(run - 1, axis->step) + 1;
        s->piece_nelem = mul_sat(s->piece_nelem, run);
    }
    if (r->sliceable)
        s->source_chunks = s->total_pieces;
}

void cm_sweep_plan(const cm_sweep_request *r, cm_sweep *out)
{
    meetings m[CM_MAX_RANK];
    memset(out, 0, sizeof(*out));
    out->rank = r->rank;
    axes_init(r, out);
    uint64_t slots = evaluate(r, out, m);
    while (r->max_slots > 0 && slots > r->max_slots && shrink(r, out, m, &slots)) {
    }
    summarise(r, out);
}

uint64_t cm_sweep_slots_for(const cm_sweep *sweep, const uint64_t *target)
{
    meetings m[CM_MAX_RANK];
    uint64_t across = 1;
    for (unsigned j = 0; j < sweep->rank; j++) {
        cm_axis axis = sweep->axis[j];
        /* Blocks that cut the larger chunk leave it open from block to block: then all of the dimension counts. */
        uint64_t per = target[j] / axis.target;
        uint64_t block = sweep->block[j] % per == 0 ? sweep->block[j] / per : 0;
        axis.target = target[j];
        if (block == 0)
            block = cm_div_ceil(axis.n, axis.target);
        meetings_find(&axis, block, &m[j]);
        across = mul_sat(across, cm_div_ceil(axis.n, axis.target));
    }
    return sweep->total_blocks > 1 ? across : slots_held(m, sweep->order, sweep->rank);
}

static void enter_block(const cm_sweep *s, cm_sweep_cursor *c)
{
    uint64_t number = c->block;
    for (unsigned j = s->rank; j-- > 0;) {
        c->span[j] = block_span(&s->axis[j], s->block[j], number % s->nblocks[j]);
        number /= s->nblocks[j];
        c->pieces[j] = cm_axis_pieces(&s->axis[j], c->span[j], c->span[j]);
        c->piece[j] = c->pieces[j].lo;
    }
}

void cm_sweep_begin(const cm_sweep *s, cm_sweep_cursor *c)
{
    memset(c, 0, sizeof(*c));
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
