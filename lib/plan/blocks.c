#include "plan/blocks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "plan/meetings.h"

enum {
    ALIGN = 64,            /* of chunks and frames, bytes */
    MOST_STRETCHED = 8,    /* a cell may be so many times the chunk, to be a multiple of the step */
    MOST_COUNTED = 1 << 14 /* blocks along a dimension that are looked at one by one */
};

/* ---- strips ---- */

/* Whether lags count along dimension J of the space. */
static bool is_lagged(const cm_blocks *b, int j)
{
    return (unsigned)j == b->space->lagged;
}

static void start_strip(cm_blocks *b, const cm_blocks_request *r, size_t p)
{
    const cm_sample_part *part = &r->part[p];
    const cm_grid *grid = r->grid[part->array];
    cm_block_strip *s = &b->strip[b->nstrips];
    *s = (cm_block_strip){.grid = grid,
                          .array = part->array,
                          .rank = part->rank,
                          .least_lag = part->lag,
                          .greatest_lag = part->lag};
    memcpy(s->axis, part->axis, part->rank * sizeof(s->axis[0]));
    size_t nbytes;
    if (!cm_mul_size(grid->chunk_nelem, r->element_nbytes[p], &nbytes) || nbytes > SIZE_MAX - ALIGN)
        s->chunk_nbytes = SIZE_MAX;
    else
        s->chunk_nbytes = (nbytes + ALIGN - 1) / ALIGN * ALIGN;
    b->strip_of[p] = b->nstrips++;
}

/* The chunks between two lags are worth decoding where samples of both overlap or nearly do. */
static bool is_close(const cm_blocks *b, const cm_block_strip *s, const cm_sample_part *part)
{
    const uint64_t reach =
        b->space->rank > 0 ? b->space->sample[b->space->lagged] + b->cell[b->space->lagged] : 0;
    return s->array == part->array && part->lag <= cm_add_sat(s->greatest_lag, reach) &&
           cm_add_sat(part->lag, reach) >= s->least_lag;
}

static void add_part(cm_blocks *b, const cm_blocks_request *r, size_t p)
{
    for (uint32_t i = 0; i < b->nstrips; i++) {
        cm_block_strip *s = &b->strip[i];
        if (!is_close(b, s, &r->part[p]))
            continue;
        const uint64_t lag = r->part[p].lag;
        s->least_lag = cm_min_u64(lag, s->least_lag);
        s->greatest_lag = cm_max_u64(lag, s->greatest_lag);
        b->strip_of[p] = i;
        return;
    }
    start_strip(b, r, p);
}

/* ---- cells ---- */

uint64_t cm_block_step(const cm_sample_space *space, unsigned j)
{
    return cm_sample_starts_anywhere(space->order) ? 1 : space->sample[j];
}

/* A multiple of STEP, and where that is not much longer of CHUNK, too: then nothing is cut. */
static uint64_t cell_of(uint64_t chunk, uint64_t step)
{
    const uint64_t longer = cm_max_u64(chunk, step);
    uint64_t both;
    if (cm_mul_u64(chunk / cm_gcd_u64(chunk, step), step, &both) && both / MOST_STRETCHED <= longer)
        return both;
    return cm_div_ceil(chunk, step) * step;
}

/* The longest chunk along J of those that are cut there, but no longer than the dimension. */
static uint64_t longest_chunk(const cm_blocks_request *r, unsigned j)
{
    uint64_t longest = 1;
    for (size_t p = 0; p < r->nparts; p++) {
        const cm_grid *grid = r->grid[r->part[p].array];
        for (unsigned d = 0; grid != NULL && d < grid->rank; d++) {
            const uint64_t chunk = cm_min_u64(grid->chunk[d], grid->shape[d]);
            if (r->part[p].axis[d] == (int)j && chunk > longest)
                longest = chunk;
        }
    }
    return longest;
}

/* ---- sizes ---- */

/* The first block of the space is cut where that begins; the others begin where chunks do. */
static uint64_t first_block(const cm_blocks *b, unsigned j)
{
    return b->space->origin[j] / b->length[j];
}

static uint64_t positions_along(const cm_blocks *b, unsigned j, uint64_t at, uint64_t *first)
{
    const uint64_t step = cm_block_step(b->space, j), origin = b->space->origin[j];
    const uint64_t start = (first_block(b, j) + at) * b->length[j];
    const uint64_t end = cm_div_ceil(start + b->length[j] - origin, step);
    *first = start > origin ? cm_div_ceil(start - origin, step) : 0;
    return cm_min_u64(end, b->space->count[j]) - *first;
}

/* Chunks of dimension D of S that block AT along its axis needs. */
static uint64_t chunks_along(const cm_blocks *b, const cm_block_strip *s, unsigned d, uint64_t at,
                             uint64_t *first)
{
    const int j = s->axis[d];
    *first = 0;
    if (j < 0)
        return s->grid->count[d];
    uint64_t position;
    const uint64_t n = positions_along(b, (unsigned)j, at, &position);
    const uint64_t step = cm_block_step(b->space, (unsigned)j);
    const uint64_t start = b->space->origin[j] + position * step;
    const uint64_t begin = start + (is_lagged(b, j) ? s->least_lag : 0);
    uint64_t last = start + (n - 1) * step + b->space->sample[j] - 1;
    const uint64_t end =
        b->space->origin[j] + b->space->length[j] - (is_lagged(b, j) ? b->space->reach : 0);
    last = cm_min_u64(last, end - 1); /* clipped: CM_ORDER_ALL */
    last += is_lagged(b, j) ? s->greatest_lag : 0;
    *first = cm_grid_find(s->grid, d, begin);
    return cm_grid_find(s->grid, d, last) - *first + 1;
}

/* Of chunks of several lengths, a bound where there are too many blocks to look at each. */
static uint64_t most_of_cuts(const cm_blocks *b, const cm_block_strip *s, unsigned d)
{
    const int j = s->axis[d];
    const cm_cuts *cuts = s->grid->cuts[d];
    uint64_t most = 1, first;
    if (b->count[j] <= MOST_COUNTED) {
        for (uint64_t at = 0; at < b->count[j]; at++)
            most = cm_max_u64(most, chunks_along(b, s, d, at, &first));
        return most;
    }
    const uint64_t reach = is_lagged(b, j) ? s->greatest_lag - s->least_lag : 0;
    const uint64_t span = cm_add_sat(b->length[j] + b->space->sample[j], reach);
    return cm_min_u64(span / cm_cuts_shortest(cuts) + 2, s->grid->count[d]);
}

/* Chunks of a block with N positions along J, the first of them BEHIND a chunk's beginning. */
static uint64_t chunks_of(const cm_blocks *b, const cm_block_strip *s, unsigned d, uint64_t n,
                          uint64_t behind)
{
    const int j = s->axis[d];
    const uint64_t reach = is_lagged(b, j) ? s->greatest_lag - s->least_lag : 0;
    const uint64_t span =
        (n - 1) * cm_block_step(b->space, (unsigned)j) + b->space->sample[j] + reach;
    return (behind + span - 1) / s->grid->chunk[d] + 1;
}

/*
 * No block needs more: the first, which begins where the space does, and those that begin as far
 * behind a chunk's beginning as any of the others can, which are multiples of a length apart.
 */
static uint64_t most_along(const cm_blocks *b, const cm_block_strip *s, unsigned d)
{
    const int j = s->axis[d];
    if (j < 0)
        return s->grid->count[d];
    if (s->grid->cuts[d] != NULL)
        return most_of_cuts(b, s, d);
    const uint64_t chunk = s->grid->chunk[d], step = cm_block_step(b->space, (unsigned)j);
    const uint64_t start = b->space->origin[j] + (is_lagged(b, j) ? s->least_lag : 0);
    uint64_t first;
    const uint64_t nfirst = positions_along(b, (unsigned)j, 0, &first);
    uint64_t most = chunks_of(b, s, d, nfirst, start % chunk);
    if (b->count[j] > 1) {
        const uint64_t g = cm_gcd_u64(b->length[j], chunk);
        const uint64_t positions = cm_min_u64(b->length[j] / step, b->space->count[j]);
        const uint64_t behind = chunk - g + (start + nfirst * step) % g;
        most = cm_max_u64(most, chunks_of(b, s, d, positions, behind));
    }
    return cm_min_u64(most, s->grid->count[d]);
}

static void size_frame(cm_blocks *b)
{
    size_t nbytes = 0;
    bool fits = true;
    b->frame_nchunks = 0;
    for (uint32_t i = 0; i < b->nstrips; i++) {
        cm_block_strip *s = &b->strip[i];
        s->nchunks = 1;
        for (unsigned d = 0; d < s->rank; d++) {
            s->most[d] = most_along(b, s, d);
            s->nchunks = cm_mul_sat(s->nchunks, s->most[d]);
        }
        size_t own;
        s->first = b->frame_nchunks;
        s->offset = nbytes;
        b->frame_nchunks = cm_add_sat(b->frame_nchunks, s->nchunks);
        fits = fits && cm_mul_size(s->nchunks, s->chunk_nbytes, &own) &&
               cm_add_size(nbytes, own, &nbytes);
    }
    fits = fits && b->frame_nchunks < UINT32_MAX &&
           cm_add_size(nbytes, b->frame_nchunks, &nbytes) && nbytes < SIZE_MAX / 2;
    b->frame_nbytes = fits ? (nbytes + ALIGN - 1) / ALIGN * ALIGN : SIZE_MAX;
}

void cm_blocks_grow(cm_blocks *b, const uint8_t *grown)
{
    b->nblocks = 1;
    for (unsigned j = 0; j < b->space->rank; j++) {
        const uint64_t last =
            b->space->origin[j] + (b->space->count[j] - 1) * cm_block_step(b->space, j);
        b->grown[j] = grown[j];
        b->length[j] = b->cell[j] > UINT64_MAX >> grown[j] ? UINT64_MAX / b->cell[j] * b->cell[j]
                                                           : b->cell[j] << grown[j];
        b->count[j] = last / b->length[j] - first_block(b, j) + 1;
        b->nblocks *= b->count[j]; /* no more than there are samples */
    }
    size_frame(b);
}

/* ---- making ---- */

int cm_blocks_make(const cm_blocks_request *r, cm_blocks *out, cm_error *err)
{
    static const uint8_t one_cell[CM_MAX_RANK];
    *out = (cm_blocks){.space = r->space, .nparts = r->nparts};
    out->strip = cm_calloc(r->nparts, sizeof(out->strip[0]), err);
    out->strip_of = out->strip == NULL ? NULL : cm_calloc(r->nparts, sizeof(uint32_t), err);
    if (out->strip_of == NULL)
        return CM_ENOMEM;
    for (unsigned j = 0; j < r->space->rank; j++)
        out->cell[j] = cell_of(longest_chunk(r, j), cm_block_step(r->space, j));
    for (size_t p = 0; p < r->nparts; p++) {
        out->strip_of[p] = CM_BLOCK_NO_STRIP;
        if (r->grid[r->part[p].array] != NULL)
            add_part(out, r, p);
    }
    cm_blocks_grow(out, one_cell);
    return CM_OK;
}

void cm_blocks_release(cm_blocks *b)
{
    free(b->strip);
    free(b->strip_of);
    *b = (cm_blocks){0};
}

/* ---- choosing ---- */

enum {
    USUAL_WINDOW = 64,
    MOST_WINDOW = 4096,
    LEAST_WINDOW = 16, /* blocks do not grow where fewer would be mixed */
    MIXED_BATCHES = 16 /* batches that are drawn from a window, where blocks have few samples */
};
/* Cost for each delivered byte, in bytes decoded: below this copying costs more. */
#define LITTLE_COST 0.0625
#define LITTLE_MORE 1.05 /* times the cost with one block for everything */
#define WORTH_IT    0.97 /* what growing leaves of the cost, at most */
/* To ask storage for a chunk costs as much as to decode so many bytes. */
#define REQUEST_NBYTES 1048576.0

static double mean_nsamples(const cm_blocks *b)
{
    return (double)b->space->nsamples / (double)b->nblocks;
}

/* Chunks that one sample meets, in the mean. */
static double met_by_sample(const cm_blocks *b, const cm_block_strip *s)
{
    double n = 1;
    for (unsigned d = 0; d < s->rank; d++) {
        const double mean = s->grid->cuts[d] != NULL
                                ? (double)s->grid->shape[d] / (double)s->grid->count[d]
                                : (double)s->grid->chunk[d];
        n *= s->axis[d] < 0 ? (double)s->grid->count[d]
                            : 1 + (double)(b->space->sample[s->axis[d]] - 1) / mean;
    }
    return n;
}

/*
 * Bytes decoded for each sample, and what asking for them costs.  An epoch that takes few of the
 * samples has few from each block, and decodes no more than these need.
 */
static double cost(const cm_blocks *b, const cm_blocks_budget *budget, uint64_t window)
{
    const double n = fmin(mean_nsamples(b), (double)budget->nsamples / (double)window);
    double total = 0;
    for (uint32_t i = 0; i < b->nstrips; i++) {
        const cm_block_strip *s = &b->strip[i];
        const double chunks = fmin((double)s->nchunks, n * met_by_sample(b, s));
        total += chunks * ((double)s->chunk_nbytes + REQUEST_NBYTES);
    }
    return total / n;
}

/* Chunks that have elements of the space. */
static double chunks_in_space(const cm_blocks *b, const cm_block_strip *s)
{
    double n = 1;
    for (unsigned d = 0; d < s->rank; d++) {
        const int j = s->axis[d];
        if (j < 0) {
            n *= (double)s->grid->count[d];
            continue;
        }
        const uint64_t origin = b->space->origin[j], last = origin + b->space->length[j] - 1;
        n *= (double)(cm_grid_find(s->grid, d, last) - cm_grid_find(s->grid, d, origin) + 1);
    }
    return n;
}

/* Where every chunk is decoded once. */
static double least_cost(const cm_blocks *b)
{
    double total = 0;
    for (uint32_t i = 0; i < b->nstrips; i++)
        total +=
            chunks_in_space(b, &b->strip[i]) * ((double)b->strip[i].chunk_nbytes + REQUEST_NBYTES);
    return total / (double)b->space->nsamples;
}

static uint64_t usual_window(const cm_blocks *b, const cm_blocks_budget *budget)
{
    const double wanted = (double)budget->batch * MIXED_BATCHES / mean_nsamples(b);
    uint64_t n = wanted < MOST_WINDOW ? (uint64_t)wanted : MOST_WINDOW;
    n = budget->window != 0 ? budget->window : cm_max_u64(n, USUAL_WINDOW);
    return cm_min_u64(n, b->nblocks);
}

/* Blocks that are begun while the samples under way are prepared. */
static uint64_t ahead(const cm_blocks *b, const cm_blocks_budget *budget)
{
    const double n = (double)budget->under_way / mean_nsamples(b) + 1;
    return n < MOST_WINDOW ? (uint64_t)n : MOST_WINDOW;
}

static uint64_t affordable(const cm_blocks *b, uint64_t nbytes)
{
    return b->frame_nbytes == SIZE_MAX ? 0 : nbytes / b->frame_nbytes;
}

/* A block that is alone needs no second frame: the next one waits until it is through. */
static uint64_t least_frames(const cm_blocks *b, uint64_t window)
{
    return window < b->nblocks && window > 1 ? window + 1 : window;
}

/* Blocks of a window that is just large enough; the one that was asked for where it was. */
static uint64_t least_window(const cm_blocks *b, const cm_blocks_budget *budget)
{
    const uint64_t n = budget->window != 0 ? budget->window : LEAST_WINDOW;
    return cm_min_u64(n, b->nblocks);
}

/* Doubles the blocks along the dimension that costs least then; false: there is no room. */
static bool grow_once(cm_blocks *b, const cm_blocks_budget *budget, double *then)
{
    uint8_t best[CM_MAX_RANK], grown[CM_MAX_RANK];
    bool found = false;
    memcpy(grown, b->grown, sizeof(grown));
    for (unsigned j = 0; j < b->space->rank; j++) {
        if (b->count[j] <= 1 || grown[j] >= CM_BLOCKS_MAX_GROWN || j >= CM_BLOCKS_MAX_GROWING)
            continue;
        grown[j]++;
        cm_blocks_grow(b, grown);
        const double next = cost(b, budget, usual_window(b, budget));
        if (affordable(b, budget->nbytes) >= least_frames(b, least_window(b, budget)) &&
            (!found || next < *then)) {
            *then = next;
            found = true;
            memcpy(best, grown, sizeof(best));
        }
        grown[j]--;
    }
    cm_blocks_grow(b, found ? best : grown);
    return found;
}

/* On the way to larger and larger blocks a step may cost more, and the next ones less. */
void cm_blocks_grow_within(cm_blocks *b, const cm_blocks_budget *budget)
{
    const double enough = LITTLE_COST * (double)budget->sample_nbytes;
    const double least = least_cost(b) * LITTLE_MORE;
    double now = cost(b, budget, usual_window(b, budget)), lowest = now;
    uint8_t best[CM_MAX_RANK];
    memcpy(best, b->grown, sizeof(best));
    while (lowest > enough && lowest > least && grow_once(b, budget, &now))
        if (now < WORTH_IT * lowest) {
            lowest = now;
            memcpy(best, b->grown, sizeof(best));
        }
    cm_blocks_grow(b, best);
}

int cm_blocks_fit(const cm_blocks *b, const cm_blocks_budget *budget, cm_blocks_fitted *out)
{
    const uint64_t most = affordable(b, budget->nbytes);
    uint64_t n = usual_window(b, budget);
    if (budget->window == 0 && least_frames(b, n) > most)
        n = most > 1 ? most - 1 : 1;
    const uint64_t least = least_frames(b, n);
    const uint64_t useful = cm_min_u64(n + ahead(b, budget), b->nblocks);
    *out = (cm_blocks_fitted){.window = n,
                              .nframes = cm_max_u64(cm_min_u64(useful, most), least),
                              .need = cm_mul_sat(least, b->frame_nbytes)};
    return least > most ? CM_EBUDGET : CM_OK;
}

/* ---- asking ---- */

static void block_at(const cm_blocks *b, uint64_t id, uint64_t *at)
{
    for (unsigned j = b->space->rank; j-- > 0; id /= b->count[j])
        at[j] = id % b->count[j];
}

void cm_block_positions(const cm_blocks *b, uint64_t id, uint64_t *first, uint64_t *n)
{
    uint64_t at[CM_MAX_RANK];
    block_at(b, id, at);
    for (unsigned j = 0; j < b->space->rank; j++)
        n[j] = positions_along(b, j, at[j], &first[j]);
}

uint64_t cm_block_nsamples(const cm_blocks *b, uint64_t id)
{
    uint64_t first[CM_MAX_RANK], n[CM_MAX_RANK], total = 1;
    cm_block_positions(b, id, first, n);
    for (unsigned j = 0; j < b->space->rank; j++)
        total *= n[j];
    return total;
}

void cm_block_chunks(const cm_blocks *b, uint32_t s, const cm_box *sample, uint64_t *first,
                     uint64_t *count)
{
    const cm_block_strip *strip = &b->strip[s];
    for (unsigned d = 0; d < strip->rank; d++) {
        const int j = strip->axis[d];
        const uint64_t at =
            j < 0 ? 0 : sample->start[j] / b->length[j] - first_block(b, (unsigned)j);
        count[d] = chunks_along(b, strip, d, at, &first[d]);
    }
}

uint64_t cm_block_chunk(const cm_blocks *b, uint32_t s, const uint64_t *first,
                        const uint64_t *coord)
{
    const cm_block_strip *strip = &b->strip[s];
    uint64_t number = 0;
    for (unsigned d = 0; d < strip->rank; d++)
        number = number * strip->most[d] + (coord[d] - first[d]);
    return strip->first + number;
}

void cm_block_walk_begin(cm_block_walk *w, const cm_blocks *b, uint32_t strip, const cm_box *sample,
                         const cm_box *box)
{
    const cm_grid *grid = b->strip[strip].grid;
    uint64_t ignored[CM_MAX_RANK];
    w->blocks = b;
    w->strip = strip;
    w->left = 1;
    cm_block_chunks(b, strip, sample, w->of_block, ignored);
    cm_grid_cover(grid, box, w->first, w->count);
    for (unsigned d = 0; d < grid->rank; d++) {
        w->next[d] = w->first[d];
        w->left *= w->count[d];
    }
}

bool cm_block_walk_next(cm_block_walk *w, uint64_t *number)
{
    const unsigned rank = w->blocks->strip[w->strip].rank;
    if (w->left == 0)
        return false;
    memcpy(w->coord, w->next, rank * sizeof(w->coord[0]));
    *number = cm_block_chunk(w->blocks, w->strip, w->of_block, w->coord);
    w->left--;
    for (unsigned d = rank; d-- > 0 && ++w->next[d] == w->first[d] + w->count[d];)
        w->next[d] = w->first[d];
    return true;
}

size_t cm_block_chunk_offset(const cm_blocks *b, uint32_t s, uint64_t number)
{
    const cm_block_strip *strip = &b->strip[s];
    return strip->offset + (number - strip->first) * strip->chunk_nbytes;
}

size_t cm_block_flag_offset(const cm_blocks *b, uint64_t number)
{
    const cm_block_strip *last = &b->strip[b->nstrips - 1];
    return last->offset + last->nchunks * last->chunk_nbytes + number;
}

/* Of dimension D of S: chunks of all blocks together, and different ones among them. */
static cm_blocks_count count_along(const cm_blocks *b, const cm_block_strip *s, unsigned d)
{
    const uint64_t nblocks = s->axis[d] < 0 ? 1 : b->count[s->axis[d]];
    cm_blocks_count sum = {0, 0};
    uint64_t end = 0;
    for (uint64_t at = 0; at < nblocks; at++) {
        uint64_t first;
        const uint64_t n = chunks_along(b, s, d, at, &first);
        sum.decoded += (double)n;
        if (first + n > end) {
            sum.distinct += (double)(first + n - cm_max_u64(first, end));
            end = first + n;
        }
    }
    return sum;
}

/* Blocks that have the same chunks of S, for it lacks the dimensions that tell them apart. */
static double repetitions(const cm_blocks *b, const cm_block_strip *s)
{
    double n = (double)b->nblocks;
    for (unsigned d = 0; d < s->rank; d++)
        n /= s->axis[d] < 0 ? 1 : (double)b->count[s->axis[d]];
    return n;
}

cm_blocks_count cm_blocks_decodes(const cm_blocks *b)
{
    cm_blocks_count total = {0, 0};
    for (uint32_t i = 0; i < b->nstrips; i++) {
        cm_blocks_count n = {repetitions(b, &b->strip[i]), 1};
        for (unsigned d = 0; d < b->strip[i].rank; d++) {
            const cm_blocks_count along = count_along(b, &b->strip[i], d);
            n.decoded *= along.decoded;
            n.distinct *= along.distinct;
        }
        total.decoded += n.decoded;
        total.distinct += n.distinct;
    }
    return total;
}
