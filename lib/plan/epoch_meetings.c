/* Which samples of a rank meet which chunks, each chunk found once. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "plan/epoch_impl.h"
#include "plan/meetings.h"
#include "plan/shuffle.h"

enum {
    MIN_TABLE = 1 << 10
};

/* Distinct chunks by open addressing; at most half of the entries are in use. */
typedef struct table {
    uint32_t *entry; /* number of a chunk, plus 1; 0: free */
    size_t nentries; /* a power of two */
    size_t capacity; /* of meetings->chunk */
} table;

static size_t table_place(const table *t, const cm_epoch_distinct *all, cm_epoch_distinct chunk)
{
    size_t at = (size_t)cm_mix64(chunk.number + ((uint64_t)chunk.array << 48));

    for (at &= t->nentries - 1; t->entry[at] != 0; at = (at + 1) & (t->nentries - 1)) {
        const cm_epoch_distinct *other = &all[t->entry[at] - 1];
        if (other->number == chunk.number && other->array == chunk.array)
            break;
    }
    return at;
}

static int table_grow(table *t, cm_epoch_meetings *m, cm_error *err)
{
    const size_t nentries = t->nentries == 0 ? MIN_TABLE : t->nentries * 2;
    table grown = {cm_calloc(nentries, sizeof(uint32_t), err), nentries, nentries / 2};

    if (grown.entry == NULL)
        return CM_ENOMEM;
    cm_epoch_distinct *chunk = realloc(m->chunk, grown.capacity * sizeof(*chunk));
    if (chunk == NULL) {
        free(grown.entry);
        return cm_fail(err, CM_ENOMEM, "no memory for a plan of %zu chunks", grown.capacity);
    }
    m->chunk = chunk;
    for (uint32_t c = 0; c < m->nchunks; c++)
        grown.entry[table_place(&grown, m->chunk, m->chunk[c])] = c + 1;
    free(t->entry);
    *t = grown;
    return CM_OK;
}

static int table_find(table *t, cm_epoch_meetings *m, cm_epoch_distinct chunk, uint32_t *out,
                      cm_error *err)
{
    if (m->nchunks == t->capacity) {
        int rc = table_grow(t, m, err);
        if (rc != CM_OK)
            return rc;
    }
    const size_t at = table_place(t, m->chunk, chunk);
    if (t->entry[at] == 0) {
        m->chunk[m->nchunks++] = chunk;
        t->entry[at] = m->nchunks;
    }
    *out = t->entry[at] - 1;
    return CM_OK;
}

static int check_part(const cm_epoch_request *q, size_t p, cm_error *err)
{
    const cm_sample_part *part = &q->part[p];

    if (part->array >= q->narrays)
        return cm_fail(err, CM_EINVAL, "part %zu of the sample reads array %u of %zu", p,
                       part->array, q->narrays);
    const cm_grid *grid = q->grid[part->array];
    if (grid->rank != part->rank)
        return cm_fail(err, CM_EINVAL, "part %zu of the sample has %u dimensions, its array %u", p,
                       part->rank, grid->rank);
    for (unsigned d = 0; d < part->rank; d++) {
        const int j = part->axis[d];
        const uint64_t lag = j == 0 ? part->lag : 0;
        bool fits = part->shape[d] == grid->shape[d];
        if (j >= 0 && fits)
            fits = (unsigned)j < q->space->rank && lag <= (j == 0 ? q->space->reach : 0) &&
                   q->space->length[j] - (j == 0 ? q->space->reach : 0) + lag <= part->shape[d];
        if (!fits)
            return cm_fail(err, CM_EINVAL,
                           "part %zu of the sample leaves its array along dimension %u", p, d);
    }
    return CM_OK;
}

static int check_request(const cm_epoch_request *q, cm_error *err)
{
    if (q->window == 0)
        return cm_fail(err, CM_EINVAL, "a window has at least one chunk");
    if (q->share->nsamples > q->space->nsamples)
        return cm_fail(err, CM_EINVAL, "an epoch of %" PRIu64 " samples, there are %" PRIu64,
                       q->share->nsamples, q->space->nsamples);
    if (q->share->per_rank >= UINT32_MAX)
        return cm_fail(err, CM_EBUDGET,
                       "%" PRIu64 " samples of a rank are too many to plan an epoch",
                       q->share->per_rank);
    for (size_t p = 0; p < q->nparts; p++) {
        int rc = check_part(q, p, err);
        if (rc != CM_OK)
            return rc;
    }
    return CM_OK;
}

static void sample_of_rank(const cm_epoch_request *q, uint64_t k, cm_box *box)
{
    cm_sample_at(q->space, q->epoch, cm_epoch_share_sample(q->share, k), box);
}

/* The chunks of part P that SAMPLE meets; 0 where an array has no elements. */
static uint64_t cover(const cm_epoch_request *q, size_t p, const cm_box *sample, uint64_t *first,
                      uint64_t *count)
{
    const cm_grid *grid = q->grid[q->part[p].array];
    uint64_t n = 1;
    cm_box box;

    if (grid->nchunks == 0)
        return 0;
    cm_sample_part_box(&q->part[p], sample, &box);
    cm_grid_cover(grid, &box, first, count);
    for (unsigned d = 0; d < grid->rank; d++)
        n *= count[d];
    return n;
}

static int count_meetings(const cm_epoch_request *q, cm_epoch_meetings *m, cm_error *err)
{
    const uint64_t limit =
        q->max_meetings != 0 && q->max_meetings < UINT32_MAX ? q->max_meetings : UINT32_MAX;
    uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK], total = 0;
    cm_box sample;

    for (uint32_t k = 0; k < m->nsamples; k++) {
        m->begin[k] = (uint32_t)total;
        sample_of_rank(q, k, &sample);
        for (size_t p = 0; p < q->nparts; p++)
            total = cm_add_sat(total, cover(q, p, &sample, first, count));
        if (total > limit)
            break;
    }
    if (total > limit)
        return cm_fail(err, CM_EBUDGET,
                       "the samples of this epoch meet chunks more than %" PRIu64
                       " times, too often to plan it: fewer batches, or samples nearer to the "
                       "chunks' shape, need less",
                       limit);
    m->begin[m->nsamples] = (uint32_t)total;
    m->nmeetings = (uint32_t)total;
    return CM_OK;
}

/* Adds the chunks first .. first + count - 1 of part P's grid to the meetings from AT on. */
static int add_part(const cm_epoch_request *q, uint32_t p, const uint64_t *first,
                    const uint64_t *count, uint64_t n, table *t, cm_epoch_meetings *m, uint32_t at,
                    cm_error *err)
{
    const cm_grid *grid = q->grid[q->part[p].array];
    uint64_t coord[CM_MAX_RANK];

    for (unsigned d = 0; d < grid->rank; d++)
        coord[d] = first[d];
    for (uint64_t i = 0; i < n; i++) {
        const cm_epoch_distinct chunk = {cm_grid_number(grid, coord), q->part[p].array};
        int rc = table_find(t, m, chunk, &m->meeting[at + i].chunk, err);
        if (rc != CM_OK)
            return rc;
        m->meeting[at + i].part = p;
        for (unsigned d = grid->rank; d-- > 0; coord[d] = first[d])
            if (++coord[d] < first[d] + count[d])
                break;
    }
    return CM_OK;
}

static int list_meetings(const cm_epoch_request *q, table *t, cm_epoch_meetings *m, cm_error *err)
{
    uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK];
    cm_box sample;

    for (uint32_t k = 0; k < m->nsamples; k++) {
        uint32_t at = m->begin[k];
        sample_of_rank(q, k, &sample);
        for (uint32_t p = 0; p < q->nparts; p++) {
            const uint64_t n = cover(q, p, &sample, first, count);
            int rc = add_part(q, p, first, count, n, t, m, at, err);
            if (rc != CM_OK)
                return rc;
            at += (uint32_t)n;
        }
    }
    return CM_OK;
}

int cm_epoch_meetings_find(const cm_epoch_request *request, cm_epoch_meetings *out, cm_error *err)
{
    table t = {0};
    int rc;

    *out = (cm_epoch_meetings){0};
    rc = check_request(request, err);
    if (rc != CM_OK)
        return rc;
    out->nsamples = (uint32_t)request->share->per_rank;
    out->begin = cm_calloc((size_t)out->nsamples + 1, sizeof(*out->begin), err);
    if (out->begin == NULL)
        return CM_ENOMEM;
    rc = count_meetings(request, out, err);
    if (rc != CM_OK)
        return rc;
    out->meeting = cm_calloc((size_t)out->nmeetings + 1, sizeof(*out->meeting), err);
    if (out->meeting == NULL)
        return CM_ENOMEM;
    rc = list_meetings(request, &t, out, err);
    free(t.entry);
    return rc;
}

void cm_epoch_meetings_release(cm_epoch_meetings *meetings)
{
    free(meetings->begin);
    free(meetings->meeting);
    free(meetings->chunk);
    *meetings = (cm_epoch_meetings){0};
}
