#include "plan/axis.h"

#include "base/number.h"

/* The first position whose source element is at or past SOURCE. */
static uint64_t position_of(const cm_axis *axis, uint64_t source)
{
    if (source <= axis->start)
        return 0;
    return (source - axis->start - 1) / axis->step + 1;
}

cm_range cm_axis_pieces(const cm_axis *axis, cm_range block, cm_range r)
{
    cm_range pieces = r;
    switch (axis->kind) {
    case CM_PIECE_CHUNK:
        pieces.lo = (axis->start + r.lo * axis->step) / axis->source;
        pieces.hi = (axis->start + (r.hi - 1) * axis->step) / axis->source + 1;
        break;
    case CM_PIECE_POINT:
        break;
    case CM_PIECE_RUN:
        pieces.lo = (r.lo - block.lo) / axis->source;
        pieces.hi = (r.hi - 1 - block.lo) / axis->source + 1;
        break;
    case CM_PIECE_CUT:
        pieces.lo = cm_cuts_find(axis->cuts, r.lo);
        pieces.hi = cm_cuts_find(axis->cuts, r.hi - 1) + 1;
        break;
    }
    return pieces;
}

cm_range cm_axis_piece_span(const cm_axis *axis, cm_range block, uint64_t k)
{
    cm_range span = {k, k + 1};
    switch (axis->kind) {
    case CM_PIECE_CHUNK:
        span.lo = position_of(axis, k * axis->source);
        span.hi = position_of(axis, (k + 1) * axis->source);
        break;
    case CM_PIECE_POINT:
        break;
    case CM_PIECE_RUN:
        span.lo = block.lo + k * axis->source;
        span.hi = span.lo + axis->source;
        break;
    case CM_PIECE_CUT:
        span.lo = cm_cuts_first(axis->cuts, k);
        span.hi = cm_cuts_end(axis->cuts, k);
        break;
    }
    if (span.lo < block.lo)
        span.lo = block.lo;
    span.hi = cm_min_u64(span.hi, block.hi);
    return span;
}

cm_range cm_axis_targets(const cm_axis *axis, cm_range r)
{
    return (cm_range){r.lo / axis->target, (r.hi - 1) / axis->target + 1};
}

cm_range cm_axis_target_span(const cm_axis *axis, uint64_t q)
{
    return (cm_range){q * axis->target, cm_min_u64(axis->n, (q + 1) * axis->target)};
}

uint64_t cm_axis_source_chunk(const cm_axis *axis, uint64_t k)
{
    if (axis->kind == CM_PIECE_CUT)
        return cm_cuts_piece(axis->cuts, k);
    return axis->kind == CM_PIECE_POINT ? (axis->start + k * axis->step) / axis->source : k;
}
