#include "model/cuts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    LEAST_ROOM = 8 /* runs */
};

void cm_cuts_release(cm_cuts *cuts)
{
    if (cuts == NULL)
        return;
    free(cuts->run);
    free(cuts->part);
    *cuts = (cm_cuts){0};
}

/* ---- making ---- */

static int grow(cm_cuts *cuts, bool is_part, cm_error *err)
{
    if (cuts->nruns < cuts->room)
        return CM_OK;
    size_t room = cuts->room == 0 ? LEAST_ROOM : cuts->room, nbytes;
    if (!cm_mul_size(room, cuts->room == 0 ? 1 : 2, &room) ||
        !cm_mul_size(room, sizeof(cuts->run[0]), &nbytes))
        return cm_fail(err, CM_ENOMEM, "no memory for %zu runs of chunks", cuts->nruns);
    cm_cut_run *run = realloc(cuts->run, nbytes);
    if (run != NULL)
        cuts->run = run;
    cm_cut_part *part =
        run != NULL && is_part ? realloc(cuts->part, room * sizeof(cuts->part[0])) : NULL;
    if (part != NULL)
        cuts->part = part;
    if (run == NULL || (is_part && part == NULL))
        return cm_fail(err, CM_ENOMEM, "no memory for %zu runs of chunks", cuts->nruns);
    cuts->room = room;
    return CM_OK;
}

/* Whether pieces of LENGTH continue the last run; PART NULL: of the array itself. */
static bool continues(const cm_cuts *cuts, uint64_t length, const cm_cut_part *part)
{
    if (cuts->nruns == 0 || cuts->run[cuts->nruns - 1].length != length)
        return false;
    if (part == NULL)
        return true;
    const cm_cut_part *last = &cuts->part[cuts->nruns - 1];
    return last->length == part->length &&
           part->piece == last->piece + (cuts->n - cuts->run[cuts->nruns - 1].number);
}

static int add(cm_cuts *cuts, uint64_t length, uint64_t count, const cm_cut_part *part,
               cm_error *err)
{
    uint64_t all;
    if (!cm_mul_u64(length, count, &all) || all > UINT64_MAX - cuts->end)
        return cm_fail(err, CM_EFORMAT, "the lengths of chunks add up to more than 2^64 - 1");
    if (!continues(cuts, length, part)) {
        int rc = grow(cuts, part != NULL, err);
        if (rc != CM_OK)
            return rc;
        cuts->run[cuts->nruns] =
            (cm_cut_run){.number = cuts->n, .first = cuts->end, .length = length};
        if (part != NULL)
            cuts->part[cuts->nruns] = *part;
        cuts->nruns++;
    }
    cuts->n += count; /* no more than there are elements */
    cuts->end += all;
    if (length > cuts->longest)
        cuts->longest = length;
    return CM_OK;
}

int cm_cuts_add(cm_cuts *cuts, uint64_t length, uint64_t count, cm_error *err)
{
    return add(cuts, length, count, NULL, err);
}

void cm_cuts_trim(cm_cuts *cuts, uint64_t length)
{
    while (cuts->nruns > 0 && cuts->run[cuts->nruns - 1].first >= length)
        cuts->nruns--;
    cuts->end = length;
    cuts->n = cuts->longest = 0;
    if (cuts->nruns == 0)
        return;
    /* Room that grew by doubling goes back. */
    cm_cut_run *run = cuts->part == NULL && cuts->nruns < cuts->room
                          ? realloc(cuts->run, cuts->nruns * sizeof(*run))
                          : NULL;
    if (run != NULL) {
        cuts->run = run;
        cuts->room = cuts->nruns;
    }
    const cm_cut_run *last = &cuts->run[cuts->nruns - 1];
    cuts->n = last->number + (length - last->first - 1) / last->length + 1;
    for (size_t i = 0; i < cuts->nruns; i++)
        if (cuts->run[i].length > cuts->longest)
            cuts->longest = cuts->run[i].length;
}

int cm_cuts_copy(const cm_cuts *cuts, cm_cuts *out, cm_error *err)
{
    *out = *cuts;
    out->room = cuts->nruns;
    out->part = NULL;
    out->run = cm_calloc(cuts->nruns + 1, sizeof(out->run[0]), err);
    if (out->run != NULL && cuts->part != NULL)
        out->part = cm_calloc(cuts->nruns + 1, sizeof(out->part[0]), err);
    if (out->run == NULL || (cuts->part != NULL && out->part == NULL)) {
        cm_cuts_release(out);
        return CM_ENOMEM;
    }
    memcpy(out->run, cuts->run, cuts->nruns * sizeof(out->run[0]));
    if (cuts->part != NULL)
        memcpy(out->part, cuts->part, cuts->nruns * sizeof(out->part[0]));
    return CM_OK;
}

bool cm_cuts_equal(const cm_cuts *a, const cm_cuts *b)
{
    return a->n == b->n && a->end == b->end && a->nruns == b->nruns &&
           (a->nruns == 0 || memcmp(a->run, b->run, a->nruns * sizeof(a->run[0])) == 0);
}

bool cm_cuts_any(const cm_cuts *const *cuts, unsigned rank)
{
    for (unsigned j = 0; j < rank; j++)
        if (cuts[j] != NULL)
            return true;
    return false;
}

/* ---- asking ---- */

/* The run that VALUE lies in: the number of a piece, or a position. */
static size_t search(const cm_cuts *cuts, bool is_position, uint64_t value)
{
    size_t lo = 0, hi = cuts->nruns;
    while (hi - lo > 1) {
        const size_t middle = lo + (hi - lo) / 2;
        const cm_cut_run *r = &cuts->run[middle];
        if ((is_position ? r->first : r->number) <= value)
            lo = middle;
        else
            hi = middle;
    }
    return lo;
}

static size_t run_of(const cm_cuts *cuts, uint64_t k)
{
    return search(cuts, false, k);
}

uint64_t cm_cuts_find(const cm_cuts *cuts, uint64_t position)
{
    const cm_cut_run *r = &cuts->run[search(cuts, true, position)];
    return r->number + (position - r->first) / r->length;
}

static uint64_t first_in(const cm_cut_run *r, uint64_t k)
{
    return r->first + (k - r->number) * r->length;
}

uint64_t cm_cuts_first(const cm_cuts *cuts, uint64_t k)
{
    return first_in(&cuts->run[run_of(cuts, k)], k);
}

uint64_t cm_cuts_end(const cm_cuts *cuts, uint64_t k)
{
    const cm_cut_run *r = &cuts->run[run_of(cuts, k)];
    const uint64_t first = first_in(r, k);
    return cuts->end - first < r->length ? cuts->end : first + r->length;
}

uint64_t cm_cuts_length(const cm_cuts *cuts, uint64_t k)
{
    const size_t i = run_of(cuts, k);
    return cuts->part != NULL ? cuts->part[i].length : cuts->run[i].length;
}

uint64_t cm_cuts_piece(const cm_cuts *cuts, uint64_t k)
{
    const size_t i = run_of(cuts, k);
    return cuts->part != NULL ? cuts->part[i].piece + (k - cuts->run[i].number) : k;
}

uint64_t cm_cuts_sum(const cm_cuts *cuts, uint64_t lo, uint64_t hi)
{
    uint64_t sum = 0;
    for (size_t i = lo < hi ? run_of(cuts, lo) : cuts->nruns; i < cuts->nruns; i++) {
        const uint64_t behind = i + 1 < cuts->nruns ? cuts->run[i + 1].number : cuts->n;
        const uint64_t end = behind < hi ? behind : hi;
        if (lo >= end)
            break;
        sum += (end - lo) * (cuts->part != NULL ? cuts->part[i].length : cuts->run[i].length);
        lo = end;
    }
    return sum;
}

uint64_t cm_cuts_shortest(const cm_cuts *cuts)
{
    uint64_t shortest = cuts->longest;
    for (size_t i = 0; i < cuts->nruns; i++)
        if (cuts->run[i].length < shortest)
            shortest = cuts->run[i].length;
    return shortest;
}

/* ---- parts ---- */

/* Positions of a part: the first that is at or behind element AT. */
static uint64_t position_at(uint64_t at, uint64_t start, uint64_t step)
{
    return at <= start ? 0 : (at - start - 1) / step + 1;
}

/*
 * Pieces of OF from K on that lie in its run I: how many of them have as many positions as piece
 * K has; *WIDTH is that number.
 */
static uint64_t alike(const cm_cuts *of, size_t i, uint64_t k, uint64_t start, uint64_t step,
                      uint64_t n, uint64_t *width)
{
    const cm_cut_run *r = &of->run[i];
    const uint64_t first = cm_cuts_first(of, k), end = cm_cuts_end(of, k);
    const uint64_t lo = position_at(first, start, step), hi = position_at(end, start, step);
    *width = (hi < n ? hi : n) - lo;
    if (r->length % step != 0 || first < start || hi > n || end - first < r->length)
        return 1;
    /* Each whole piece has r->length / step positions; the last one with all of them. */
    const uint64_t of_run = (i + 1 < of->nruns ? of->run[i + 1].number : of->n) - k;
    const uint64_t left = (n - lo) / *width;
    uint64_t whole = of_run < left ? of_run : left;
    if (k + whole == of->n && cm_cuts_end(of, of->n - 1) - cm_cuts_first(of, of->n - 1) < r->length)
        whole--;
    return whole;
}

int cm_cuts_part(const cm_cuts *of, uint64_t start, uint64_t step, uint64_t n, cm_cuts *out,
                 cm_error *err)
{
    *out = (cm_cuts){0};
    if (n == 0)
        return CM_OK;
    const uint64_t behind = cm_cuts_find(of, start + (n - 1) * step) + 1;
    int rc = CM_OK;
    for (uint64_t k = cm_cuts_find(of, start), count; rc == CM_OK && k < behind; k += count) {
        const size_t i = run_of(of, k);
        uint64_t width;
        count = alike(of, i, k, start, step, n, &width);
        const cm_cut_part part = {.piece = k, .length = cm_cuts_length(of, k)};
        if (width > 0)
            rc = add(out, width, count, &part, err);
    }
    if (rc != CM_OK)
        cm_cuts_release(out);
    out->longest = rc == CM_OK ? of->longest : 0;
    return rc;
}
