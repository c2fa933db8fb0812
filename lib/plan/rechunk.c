/*
 * The search: computes in closed form the traffic of each tile whose target chunks fit the memory,
 * and of each way to widen it to a block.
 *
 * A block as large as its tile spills nothing, but source chunks that its seams cut are read
 * again.  A wider block has fewer seams, but spills all that lies outside its first tile.  Along a
 * dimension whose tiles end where source chunks end, neither happens.
 */
#include "plan/rechunk.h"

#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "plan/meetings.h"

enum {
    MAX_LENGTHS = 24,  /* tile lengths looked at along one dimension */
    MAX_WIDTHS = 6,    /* blocks for each */
    MAX_TILES = 20000, /* tile shapes in all */
    MAX_PERMUTED = 6   /* dimensions of which all orders are tried: 720 */
};

/* A block length along one dimension and what follows from it. */
typedef struct width {
    uint64_t block;    /* target chunks */
    uint64_t pieces;   /* read, of all blocks */
    uint64_t read;     /* elements along this dimension that those cover */
    uint64_t resident; /* positions in the first tile of a block, of all blocks */
} width;

typedef struct length {
    uint64_t tile; /* target chunks */
    width width[MAX_WIDTHS];
    unsigned nwidths;    /* the first is the tile itself */
    cm_meetings chunks;  /* target chunks counted */
    cm_meetings lengths; /* their elements */
} length;

typedef struct dimension {
    unsigned index; /* of the array */
    length *length; /* longest first */
    unsigned n;
} dimension;

typedef struct search {
    const cm_route_request *request;
    cm_axis axis[CM_MAX_RANK];
    dimension dim[CM_MAX_RANK]; /* those along which anything is cut */
    unsigned ndims;
    double nelem;
    uint64_t uncut; /* elements of the array along the dimensions that are not in dim */
    bool may_clip;  /* and something is saved by that */
    bool by_time;
    double most_traffic; /* by time */
    double most_seconds; /* by bytes; 0: any */
    bool clips;          /* how target chunks are held in what is looked at */
    /* the best so far */
    bool found, best_clips;
    double cost;
    unsigned at[CM_MAX_RANK], wide[CM_MAX_RANK];
    unsigned order[CM_MAX_RANK]; /* positions in dim, outermost first */
} search;

static uint64_t ntargets(const cm_axis *axis)
{
    return cm_div_ceil(axis->n, axis->target);
}

/* A seam between blocks that cuts a source chunk makes it be read once more. */
static width make_width(const cm_axis *axis, uint64_t block, uint64_t tile)
{
    uint64_t step = block * axis->target, nblocks = cm_div_ceil(ntargets(axis), block);
    uint64_t seams = nblocks - 1, per = axis->source / cm_gcd_u64(axis->source, step);
    uint64_t cut = seams - seams / per;
    uint64_t last = (axis->n - 1) / axis->source * axis->source;
    uint64_t cut_last = seams - cm_min_u64(seams, last / step);
    width w = {.block = block};
    w.pieces = cm_div_ceil(axis->n, axis->source) + cut;
    w.read = axis->n + (cut - cut_last) * axis->source + cut_last * (axis->n - last);
    w.resident = seams * cm_min_u64(tile * axis->target, step) +
                 cm_min_u64(tile * axis->target, axis->n - seams * step);
    return w;
}

static void add_width(const cm_axis *axis, length *l, unsigned most, uint64_t block)
{
    for (unsigned i = 0; i < l->nwidths; i++)
        if (l->width[i].block == block)
            return;
    if (l->nwidths < most)
        l->width[l->nwidths++] = make_width(axis, block, l->tile);
}

/* Target chunks after which both kinds of chunks end together. */
static uint64_t period(const cm_axis *axis)
{
    return axis->source / cm_gcd_u64(axis->source, axis->target);
}

/* The tile itself, with MOST > 1 also wider blocks. */
static void fill_length(const cm_axis *axis, uint64_t tile, unsigned most, length *l)
{
    uint64_t all = ntargets(axis), whole = period(axis);
    l->tile = tile;
    add_width(axis, l, most, tile);
    /* Tiles that end where source chunks end have no seams to avoid. */
    if (most > 1 && l->width[0].read > axis->n) {
        uint64_t closed = cm_mul_sat(tile, whole / cm_gcd_u64(whole, tile));
        add_width(axis, l, most, cm_min_u64(closed, all));
        for (uint64_t k = 8; k >= 2; k /= 2)
            if (tile * k < cm_min_u64(closed, all))
                add_width(axis, l, most, tile * k);
    }
    cm_meetings_find(axis, tile, CM_MEASURE_CHUNKS, &l->chunks);
    cm_meetings_find(axis, tile, CM_MEASURE_LENGTHS, &l->lengths);
}

static void add_length(uint64_t *list, unsigned *n, unsigned most, uint64_t all, uint64_t tile)
{
    tile = tile > all ? all : tile < 1 ? 1 : tile;
    for (unsigned i = 0; i < *n; i++)
        if (list[i] == tile)
            return;
    if (*n < most)
        list[(*n)++] = tile;
}

static int longer_first(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* The whole, periods, fractions and powers of two: few enough for all combinations. */
static unsigned choose_lengths(const cm_axis *axis, unsigned most, uint64_t *list)
{
    uint64_t all = ntargets(axis), p = period(axis);
    unsigned n = 0;
    add_length(list, &n, most, all, all);
    add_length(list, &n, most, all, 1);
    if (p < all)
        add_length(list, &n, most, all, p);
    for (uint64_t k = 2; k <= 4; k++)
        add_length(list, &n, most, all, cm_div_ceil(all, k));
    for (uint64_t k = 2; k <= all / p / 2 && n < most / 2; k *= 2)
        add_length(list, &n, most, all, p * k);
    for (uint64_t k = 2; k < all && n < most; k = all <= most ? k + 1 : 2 * k)
        add_length(list, &n, most, all, k);
    for (uint64_t k = 5; k < 32 && n < most; k++)
        add_length(list, &n, most, all, cm_div_ceil(all, k));
    qsort(list, n, sizeof(list[0]), longer_first);
    return n;
}

static bool is_cut(const cm_axis *axis)
{
    return axis->n > axis->target || axis->n > axis->source;
}

/* Lengths along each dimension, so that all combinations stay below MAX_TILES. */
static unsigned lengths_each(const search *s)
{
    /* More dimensions have more orders and more blocks for each tile. */
    double tiles = s->ndims <= 5 ? MAX_TILES : MAX_TILES / 4;
    for (unsigned most = MAX_LENGTHS; most > 2; most--) {
        double total = 1;
        for (unsigned i = 0; i < s->ndims; i++)
            total *= (double)cm_min_u64(most, ntargets(&s->axis[s->dim[i].index]));
        if (total <= tiles)
            return most;
    }
    return 2;
}

static int prepare(search *s, cm_error *err)
{
    const cm_route_request *r = s->request;
    s->nelem = 1;
    s->uncut = 1;
    s->may_clip = false;
    for (unsigned j = 0; j < r->rank; j++) {
        s->axis[j] = (cm_axis){.kind = CM_PIECE_CHUNK,
                               .n = r->shape[j],
                               .target = r->target[j],
                               .source = r->source[j],
                               .step = 1};
        s->nelem *= (double)r->shape[j];
        s->may_clip |= r->may_clip && r->shape[j] % r->target[j] != 0;
        if (is_cut(&s->axis[j]))
            s->dim[s->ndims++].index = j;
        else
            s->uncut = cm_mul_sat(s->uncut, r->shape[j]);
    }
    unsigned most = lengths_each(s);
    /* All combinations of these too are looked at, for each tile. */
    unsigned wide = s->ndims <= 3 ? MAX_WIDTHS : s->ndims <= 4 ? 4 : s->ndims <= 6 ? 3 : 2;
    for (unsigned i = 0; i < s->ndims; i++) {
        const cm_axis *axis = &s->axis[s->dim[i].index];
        uint64_t list[MAX_LENGTHS];
        s->dim[i].n = choose_lengths(axis, most, list);
        if ((s->dim[i].length = cm_calloc(s->dim[i].n, sizeof(length), err)) == NULL)
            return CM_ENOMEM;
        for (unsigned k = 0; k < s->dim[i].n; k++)
            fill_length(axis, list[k], r->may_spill ? wide : 1, &s->dim[i].length[k]);
    }
    return CM_OK;
}

/* ---- one candidate ---- */

static const length *length_at(const search *s, const unsigned *at, unsigned i)
{
    return &s->dim[i].length[at[i]];
}

static double seconds_of(const cm_route_request *r, double read, double written, double spilled)
{
    return (read / r->rates.read + written / r->rates.write + 2 * spilled / r->rates.scratch) *
           (double)r->itemsize;
}

/* Traffic, or seconds, of tile AT with blocks WIDE; negative when it may not be. */
static double cost_of(const search *s, const unsigned *at, const unsigned *wide)
{
    const cm_route_request *r = s->request;
    double read = s->nelem, resident = s->nelem, block = 1, tile = 1;
    bool spills = false;
    for (unsigned i = 0; i < s->ndims; i++) {
        const length *l = length_at(s, at, i);
        const width *w = &l->width[wide[i]];
        const cm_axis *axis = &s->axis[s->dim[i].index];
        read *= (double)w->read / (double)axis->n;
        resident *= (double)w->resident / (double)axis->n;
        block *= (double)cm_min_u64(axis->n, w->block * axis->target);
        tile *= (double)cm_min_u64(axis->n, l->tile * axis->target);
        spills |= wide[i] != 0;
    }
    for (unsigned j = 0; j < r->rank; j++)
        if (!is_cut(&s->axis[j])) {
            block *= (double)s->axis[j].n;
            tile *= (double)s->axis[j].n;
        }
    double spilled = spills ? s->nelem - resident : 0, traffic = read + s->nelem + 2 * spilled;
    double scratch = spills ? (block - tile) * (double)r->itemsize : 0;
    if (r->scratch_nbytes != UINT64_MAX && scratch > (double)r->scratch_nbytes)
        return -1;
    if (s->by_time)
        return traffic > s->most_traffic ? -1 : seconds_of(r, read, s->nelem, spilled);
    if (s->most_seconds > 0 && seconds_of(r, read, s->nelem, spilled) > s->most_seconds)
        return -1;
    return traffic;
}

/* Bytes that the target chunks of a tile take in ORDER. */
static uint64_t room_of(const search *s, const cm_meetings *chunks, const cm_meetings *lengths,
                        const unsigned *order)
{
    const cm_route_request *r = s->request;
    uint64_t slots = cm_meetings_held(chunks, order, s->ndims);
    if (!s->clips)
        return cm_mul_sat(slots, r->slot_nbytes);
    uint64_t nelem = cm_mul_sat(cm_meetings_held(lengths, order, s->ndims), s->uncut);
    return cm_add_sat(cm_mul_sat(nelem, r->itemsize), cm_mul_sat(slots, r->clip_spare));
}

/* The stored order where it fits, else the one that takes the least room; its room. */
static uint64_t choose_order(const search *s, const unsigned *at, unsigned *order)
{
    cm_meetings chunks[CM_MAX_RANK], lengths[CM_MAX_RANK];
    unsigned trial[CM_MAX_RANK];
    for (unsigned i = 0; i < s->ndims; i++) {
        chunks[i] = length_at(s, at, i)->chunks;
        lengths[i] = length_at(s, at, i)->lengths;
        order[i] = trial[i] = i;
    }
    uint64_t best = room_of(s, chunks, lengths, order);
    if (s->ndims > MAX_PERMUTED || best <= s->request->room_nbytes)
        return best;
    while (cm_next_permutation(trial, s->ndims)) {
        uint64_t room = room_of(s, chunks, lengths, trial);
        if (room < best) {
            best = room;
            memcpy(order, trial, sizeof(trial));
        }
    }
    return best;
}

static void keep(search *s, const unsigned *at, const unsigned *wide, const unsigned *order,
                 double cost)
{
    s->found = true;
    s->cost = cost;
    s->best_clips = s->clips;
    memcpy(s->at, at, sizeof(s->at));
    memcpy(s->wide, wide, sizeof(s->wide));
    memcpy(s->order, order, sizeof(s->order));
}

static bool next_wide(const search *s, const unsigned *at, unsigned *wide)
{
    for (unsigned i = s->ndims; i-- > 0;) {
        if (++wide[i] < length_at(s, at, i)->nwidths)
            return true;
        wide[i] = 0;
    }
    return false;
}

static bool next_tile(const search *s, unsigned *at)
{
    for (unsigned i = s->ndims; i-- > 0;) {
        if (++at[i] < s->dim[i].n)
            return true;
        at[i] = 0;
    }
    return false;
}

static void try_tile(search *s, const unsigned *at)
{
    unsigned wide[CM_MAX_RANK] = {0}, best[CM_MAX_RANK] = {0}, order[CM_MAX_RANK];
    double least = -1;
    do {
        double cost = cost_of(s, at, wide);
        if (cost >= 0 && (least < 0 || cost < least)) {
            least = cost;
            memcpy(best, wide, sizeof(best));
        }
    } while (next_wide(s, at, wide));
    if (least < 0 || (s->found && least >= s->cost))
        return;
    if (choose_order(s, at, order) <= s->request->room_nbytes)
        keep(s, at, best, order, least);
}

static bool is_canceled(const cm_route_request *r)
{
    return r->canceled != NULL && r->canceled(r->context);
}

static void look_at_all(search *s)
{
    unsigned at[CM_MAX_RANK] = {0};
    do {
        try_tile(s, at);
        /* Nothing is less than reading and writing everything once. */
        if (s->found && !s->by_time && s->cost <= 2 * s->nelem)
            return;
    } while (!is_canceled(s->request) && next_tile(s, at));
}

/* Whole target chunks are encoded where they lie: clipped only where that saves traffic. */
static void look(search *s)
{
    s->found = s->clips = false;
    look_at_all(s);
    s->clips = s->may_clip;
    if (s->may_clip && !(s->found && s->cost <= 2 * s->nelem && !s->by_time))
        look_at_all(s);
}

/* ---- the route ---- */

static void fill_request(const cm_route_request *r, cm_sweep_request *out)
{
    *out = (cm_sweep_request){.rank = r->rank, .itemsize = r->itemsize};
    memcpy(out->shape, r->shape, sizeof(out->shape));
    memcpy(out->target, r->target, sizeof(out->target));
    memcpy(out->source, r->source, sizeof(out->source));
    for (unsigned j = 0; j < r->rank; j++)
        out->step[j] = 1;
}

static bool rates_known(const cm_route_request *r)
{
    return r->rates.read > 0 && r->rates.write > 0 && r->rates.scratch > 0;
}

static void classify(const search *s, cm_route *out)
{
    uint64_t n = out->nelem_written;
    bool once = out->chunk_reads == out->sweep.source_chunks;
    out->kind = out->spills               ? CM_ROUTE_SPILL
                : once                    ? CM_ROUTE_SWEEP
                : out->nelem_read / 2 < n ? CM_ROUTE_COLUMN
                                          : CM_ROUTE_REREAD;
    out->traffic = cm_add_sat(cm_add_sat(out->nelem_read, n), cm_mul_sat(2, out->nelem_spilled));
    out->least = out->traffic;
    out->seconds = rates_known(s->request) ? seconds_of(s->request, (double)out->nelem_read,
                                                        (double)n, (double)out->nelem_spilled)
                                           : 0;
}

static uint64_t held_nbytes(const search *s, const cm_route *out)
{
    const cm_route_request *r = s->request;
    cm_meetings lengths[CM_MAX_RANK];
    if (!out->clips)
        return cm_mul_sat(out->slots, r->slot_nbytes);
    for (unsigned j = 0; j < r->rank; j++)
        cm_meetings_find(&out->tiled.axis[j], out->tile[j], CM_MEASURE_LENGTHS, &lengths[j]);
    uint64_t nelem = cm_meetings_held(lengths, out->tiled.order, r->rank);
    return cm_add_sat(cm_mul_sat(nelem, r->itemsize), cm_mul_sat(out->slots, r->clip_spare));
}

static void build(const search *s, cm_route *out)
{
    const cm_route_request *r = s->request;
    cm_sweep_request request;
    uint64_t block[CM_MAX_RANK], resident = 1, block_nelem = 1, tile_nelem = 1;
    unsigned order[CM_MAX_RANK], n = 0;
    memset(out, 0, sizeof(*out));
    out->chunk_reads = out->nelem_read = out->nelem_written = 1;
    for (unsigned i = 0; i < s->ndims; i++)
        order[n++] = s->dim[s->order[i]].index;
    for (unsigned j = 0, i = 0; j < r->rank; j++) {
        const cm_axis *axis = &s->axis[j];
        width w = {.block = 1, .pieces = 1, .read = axis->n, .resident = axis->n};
        out->tile[j] = 1;
        if (is_cut(axis)) {
            const length *l = length_at(s, s->at, i);
            w = l->width[s->wide[i]];
            out->tile[j] = l->tile;
            out->spills |= s->wide[i++] != 0;
        } else {
            order[n++] = j;
        }
        block[j] = w.block;
        out->chunk_reads = cm_mul_sat(out->chunk_reads, w.pieces);
        out->nelem_read = cm_mul_sat(out->nelem_read, w.read);
        out->nelem_written *= axis->n;
        resident *= w.resident;
        block_nelem *= cm_min_u64(axis->n, w.block * axis->target);
        tile_nelem *= cm_min_u64(axis->n, out->tile[j] * axis->target);
    }
    fill_request(r, &request);
    cm_sweep_with(&request, block, order, &out->sweep);
    cm_sweep_with(&request, out->tile, order, &out->tiled);
    out->slots = out->tiled.slots;
    out->clips = s->best_clips;
    out->held_nbytes = held_nbytes(s, out);
    out->nelem_spilled = out->spills ? out->nelem_written - resident : 0;
    out->scratch_nelem = out->spills ? block_nelem - tile_nelem : 0;
    classify(s, out);
}

/* ---- swept, without scratch ---- */

/* Source elements along one dimension that the pieces of all blocks cover. */
static uint64_t read_along(const cm_route_request *r, const cm_sweep *sweep, unsigned j)
{
    const cm_axis *axis = &sweep->axis[j];
    uint64_t total = 0, step = sweep->block[j] * axis->target;
    for (uint64_t lo = 0; lo < axis->n; lo += step) {
        cm_range block = {lo, cm_min_u64(lo + step, axis->n)};
        cm_range k = cm_axis_pieces(axis, block, block);
        if (axis->kind == CM_PIECE_CUT) {
            total += cm_cuts_sum(axis->cuts, k.lo, k.hi);
            continue;
        }
        if (axis->kind == CM_PIECE_CHUNK) {
            uint64_t first = k.lo * axis->source, end = cm_mul_sat(k.hi, axis->source);
            total += cm_min_u64(end, r->whole[j]) - first;
            continue;
        }
        for (; k.lo < k.hi; k.lo++) {
            cm_range span = cm_axis_piece_span(axis, block, k.lo);
            if (axis->kind == CM_PIECE_RUN) {
                total += (span.hi - span.lo - 1) * axis->step + 1;
            } else {
                uint64_t first = cm_axis_source_chunk(axis, k.lo) * axis->source;
                total += cm_min_u64(axis->source, r->whole[j] - first);
            }
        }
    }
    return total;
}

static void swept_request(const cm_route_request *r, cm_sweep_request *out)
{
    fill_request(r, out);
    out->sliceable = r->sliceable;
    out->piece_nbytes = r->piece_nbytes;
    out->max_slots = r->room_nbytes / r->slot_nbytes;
    memcpy(out->cuts, r->cuts, sizeof(out->cuts));
    if (!r->is_part)
        return;
    memcpy(out->start, r->start, sizeof(out->start));
    memcpy(out->step, r->step, sizeof(out->step));
}

static void route_by_sweep(const cm_route_request *request, cm_route *out)
{
    cm_route_request r = *request;
    cm_sweep_request q;
    search s = {.request = request};
    if (!r.is_part)
        memcpy(r.whole, r.shape, sizeof(r.whole));
    memset(out, 0, sizeof(*out));
    swept_request(&r, &q);
    cm_sweep_plan(&q, &out->sweep);
    out->tiled = out->sweep;
    memcpy(out->tile, out->sweep.block, sizeof(out->tile));
    out->slots = out->sweep.slots;
    out->held_nbytes = cm_mul_sat(out->slots, r.slot_nbytes);
    out->chunk_reads = out->sweep.total_pieces;
    out->nelem_read = out->nelem_written = 1;
    for (unsigned j = 0; j < r.rank; j++) {
        out->nelem_read = cm_mul_sat(out->nelem_read, read_along(&r, &out->sweep, j));
        out->nelem_written = cm_mul_sat(out->nelem_written, r.shape[j]);
    }
    classify(&s, out);
    out->least = 0;
    out->bound = out->kind == CM_ROUTE_SWEEP ? out->traffic : cm_mul_sat(2, out->nelem_written);
}

/* ---- the choice ---- */

/* Of all within the noise of the quickest, the one of the least traffic. */
static void choose(search *s, cm_route *out)
{
    look(s);
    if (is_canceled(s->request))
        return;
    build(s, out);
    const double least = s->cost, four = 4 * s->nelem;
    if (least <= 2 * s->nelem || !rates_known(s->request))
        return;
    s->by_time = true;
    s->most_traffic = 1.5 * least > four ? four : 1.5 * least;
    s->most_traffic = s->most_traffic < least ? least : s->most_traffic;
    look(s);
    s->most_seconds = CM_ROUTE_NOISE * s->cost;
    if (out->seconds <= s->most_seconds)
        return;
    s->by_time = false;
    look(s);
    if (is_canceled(s->request))
        return;
    const uint64_t traffic = out->traffic;
    build(s, out);
    out->least = traffic;
}

int cm_route_plan(const cm_route_request *request, cm_route *out, cm_error *err)
{
    search s = {.request = request};
    bool swept =
        request->is_part || request->sliceable || cm_cuts_any(request->cuts, request->rank);
    if (swept || request->few_slots) {
        route_by_sweep(request, out);
        if (swept || out->kind == CM_ROUTE_SWEEP)
            return CM_OK;
    }
    int rc = prepare(&s, err);
    if (rc == CM_OK) {
        choose(&s, out);
        rc = is_canceled(request) ? cm_fail(err, CM_ECANCELED, "stopped by request") : CM_OK;
    }
    if (rc == CM_OK)
        out->bound = cm_route_bound(request);
    for (unsigned i = 0; i < s.ndims; i++)
        free(s.dim[i].length);
    return rc;
}
