#include "plan/meetings.h"

#include <string.h>

#include "base/mem.h"
#include "base/number.h"

enum {
    MAX_SCAN = 1 << 17, /* pieces looked at; longer dimensions get the worst case added */
    /* Of several lengths, where more differ: forty years of hours are 350,640. */
    MAX_SCAN_CUTS = 1 << 19
};

/* Products of counts saturate: such a plan never fits. */
uint64_t cm_mul_sat(uint64_t a, uint64_t b)
{
    uint64_t product;
    return cm_mul_u64(a, b, &product) ? product : UINT64_MAX;
}

uint64_t cm_add_sat(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

cm_range cm_axis_block_span(const cm_axis *axis, uint64_t block, uint64_t b)
{
    return (cm_range){b * block * axis->target,
                      cm_min_u64(axis->n, (b + 1) * block * axis->target)};
}

static void meetings_add(cm_meetings *m, cm_meeting item)
{
    for (size_t i = 0; i < m->n; i++)
        if (memcmp(&m->item[i], &item, sizeof(item)) == 0)
            return;
    if (m->n < CM_MAX_MEETINGS) {
        m->item[m->n++] = item;
        return;
    }
    /* Too many kinds: the last one becomes an upper bound of the rest. */
    cm_meeting *last = &m->item[CM_MAX_MEETINGS - 1];
    last->mid = cm_max_u64(last->mid, item.mid);
    last->opening = cm_max_u64(last->opening, item.opening);
    last->closing = cm_max_u64(last->closing, item.closing);
    last->nested = cm_max_u64(last->nested, item.nested);
}

static uint64_t size_of(const cm_axis *axis, cm_measure measure, cm_range targets)
{
    if (measure == CM_MEASURE_CHUNKS)
        return targets.hi - targets.lo;
    return cm_axis_target_span(axis, targets.hi - 1).hi - cm_axis_target_span(axis, targets.lo).lo;
}

static cm_meeting meet(const cm_axis *axis, cm_measure measure, cm_range block, uint64_t piece,
                       uint64_t *touched)
{
    cm_meeting m = {0};
    cm_range targets = cm_axis_targets(axis, cm_axis_piece_span(axis, block, piece));
    *touched = targets.hi - targets.lo;
    /* Only the outermost targets can reach past the piece. */
    m.nested = size_of(axis, measure, targets);
    for (int side = 0; side < (*touched > 1 ? 2 : 1); side++) {
        uint64_t at = side == 0 ? targets.lo : targets.hi - 1;
        uint64_t size = size_of(axis, measure, (cm_range){at, at + 1});
        cm_range pieces = cm_axis_pieces(axis, block, cm_axis_target_span(axis, at));
        bool before = pieces.lo<piece, after = pieces.hi - 1> piece;
        if (!before && !after)
            continue;
        m.nested -= size;
        m.mid += before && after ? size : 0;
        m.opening += !before && after ? size : 0;
        m.closing += before && !after ? size : 0;
    }
    return m;
}

void cm_meetings_find(const cm_axis *axis, uint64_t block, cm_measure measure, cm_meetings *out)
{
    memset(out, 0, sizeof(*out));
    uint64_t ntargets = cm_div_ceil(axis->n, axis->target);
    uint64_t nblocks = cm_div_ceil(ntargets, block), scanned = 0;
    uint64_t most_scanned = axis->kind == CM_PIECE_CUT ? MAX_SCAN_CUTS : MAX_SCAN;
    uint64_t each = measure == CM_MEASURE_CHUNKS ? 1 : cm_min_u64(axis->target, axis->n);
    out->targets = size_of(axis, measure, (cm_range){0, cm_min_u64(block, ntargets)});
    for (uint64_t b = 0; b < nblocks; b++) {
        if (b == most_scanned) {
            out->pieces = cm_mul_sat(out->pieces / most_scanned + 1, nblocks);
            break;
        }
        cm_range span = cm_axis_block_span(axis, block, b);
        cm_range pieces = cm_axis_pieces(axis, span, span);
        out->pieces += pieces.hi - pieces.lo;
        for (uint64_t k = pieces.lo; k < pieces.hi && scanned < most_scanned; k++, scanned++) {
            uint64_t touched;
            meetings_add(out, meet(axis, measure, span, k, &touched));
            out->touched = cm_max_u64(out->touched, touched);
        }
    }
    if (scanned == most_scanned) {
        uint64_t most = axis->source / axis->target + 2;
        meetings_add(out, (cm_meeting){each, each, each, cm_mul_sat(most, each)});
        out->touched = cm_max_u64(out->touched, most);
    }
}

/*
 * Most targets held while pieces come in lexicographic order of ORDER, from the innermost
 * dimension outwards.  `rest` is the product of the targets along the inner dimensions, `inner`
 * what they hold at one position.  Along one dimension a target that is mid holds `rest`, a nested
 * one `inner`.  One that opens holds what the inner position has passed, one that closes what it
 * has not: a pair of them at most `rest` + `inner`, one without a partner at most `rest`.
 */
uint64_t cm_meetings_held(const cm_meetings *m, const unsigned *order, unsigned rank)
{
    uint64_t inner = 1, rest = 1;
    for (unsigned i = rank; i-- > 0;) {
        const cm_meetings *along = &m[order[i]];
        uint64_t most = 0;
        for (size_t k = 0; k < along->n; k++) {
            const cm_meeting *at = &along->item[k];
            uint64_t pairs = cm_min_u64(at->opening, at->closing);
            uint64_t held = cm_mul_sat(at->mid + cm_max_u64(at->opening, at->closing), rest);
            held = cm_add_sat(held, cm_mul_sat(pairs + at->nested, inner));
            most = cm_max_u64(most, held);
        }
        inner = most;
        rest = cm_mul_sat(rest, along->targets);
    }
    return inner;
}

bool cm_next_permutation(unsigned *order, unsigned n)
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
