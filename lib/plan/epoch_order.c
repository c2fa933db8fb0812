/* In which order chunks are read: as random as the stash allows. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "plan/epoch_impl.h"
#include "plan/shuffle.h"

int cm_epoch_peak(const uint32_t *begin, const uint32_t *end, size_t n, size_t npositions,
                  uint64_t *peak, cm_error *err)
{
    uint64_t open = 0;

    *peak = 0;
    /* begun[x] and ended[x]: intervals that begin at x, and that end before x. */
    uint32_t *begun = cm_calloc(2 * (npositions + 1), sizeof(*begun), err);
    if (begun == NULL)
        return CM_ENOMEM;
    uint32_t *ended = begun + npositions + 1;
    for (size_t i = 0; i < n; i++) {
        begun[begin[i]]++;
        ended[end[i] + 1]++;
    }
    for (size_t x = 0; x < npositions; x++) {
        open += begun[x];
        open -= ended[x];
        if (open > *peak)
            *peak = open;
    }
    free(begun);
    return CM_OK;
}

/*
 * Runs of K in C order, shuffled.  Windows are cut every K chunks, so a run that
 * is short is read last; it may be any of them, so that it is not always the
 * array's end that comes last.
 */
static void shuffle_runs(uint32_t *chunk, uint32_t n, uint64_t window, uint32_t *run,
                         const uint64_t *key)
{
    const uint32_t length = window < n ? (uint32_t)window : n;
    const uint32_t nfull = n / length, rest = n % length;
    const uint32_t short_run = (uint32_t)cm_below(key[1], (uint64_t)nfull + 1);
    uint32_t at = 0;

    for (uint32_t r = 0; r < nfull; r++)
        run[r] = r;
    cm_shuffle_u32(run, nfull, key[0]);
    for (uint32_t r = 0; r < nfull; r++) {
        const uint32_t first = run[r] * length + (run[r] >= short_run ? rest : 0);
        for (uint32_t i = 0; i < length; i++)
            chunk[at++] = first + i;
    }
    for (uint32_t i = 0; i < rest; i++)
        chunk[at++] = short_run * length + i;
}

static void put_in_order(const cm_epoch_request *q, cm_chunk_order order, uint32_t n,
                         uint32_t *chunk, uint32_t *scratch)
{
    const uint64_t seed = q->space->seed;

    if (order == CM_CHUNKS_RUNS) {
        const uint64_t key[2] = {cm_shuffle_key(seed, q->epoch, CM_SHUFFLE_RUNS),
                                 cm_shuffle_key(seed, q->epoch, CM_SHUFFLE_SHORT_RUN)};
        shuffle_runs(chunk, n, q->window, scratch, key);
        return;
    }
    for (uint32_t c = 0; c < n; c++)
        chunk[c] = c;
    if (order == CM_CHUNKS_RANDOM)
        cm_shuffle_u32(chunk, n, cm_shuffle_key(seed, q->epoch, CM_SHUFFLE_CHUNKS));
}

/* First and last position of each sample's chunks; a sample that meets none has both at 0. */
static void find_spans(const cm_epoch_meetings *m, const uint32_t *position, cm_epoch_order *o)
{
    for (uint32_t k = 0; k < m->nsamples; k++) {
        uint32_t first = UINT32_MAX, last = 0;
        for (uint32_t i = m->begin[k]; i < m->begin[k + 1]; i++) {
            const uint32_t at = position[m->meeting[i].chunk];
            first = at < first ? at : first;
            last = at > last ? at : last;
        }
        o->first[k] = first < last ? first : last;
        o->last[k] = last;
    }
}

static int find_peak_stash(const cm_epoch_meetings *m, uint64_t window, cm_epoch_order *o,
                           cm_error *err)
{
    uint32_t n = 0;

    uint32_t *begin = cm_calloc(2 * ((size_t)m->nsamples + 1), sizeof(*begin), err);
    if (begin == NULL)
        return CM_ENOMEM;
    uint32_t *end = begin + m->nsamples + 1;
    for (uint32_t k = 0; k < m->nsamples; k++) {
        if (o->first[k] / window == o->last[k] / window)
            continue;
        begin[n] = o->first[k];
        end[n++] = o->last[k];
    }
    int rc = cm_epoch_peak(begin, end, n, m->nchunks, &o->peak_stash, err);
    free(begin);
    return rc;
}

static int allocate(const cm_epoch_meetings *m, cm_epoch_order *o, cm_error *err)
{
    o->chunk = cm_calloc((size_t)m->nchunks + 1, sizeof(*o->chunk), err);
    if (o->chunk == NULL)
        return CM_ENOMEM;
    o->first = cm_calloc((size_t)m->nsamples + 1, sizeof(*o->first), err);
    if (o->first == NULL)
        return CM_ENOMEM;
    o->last = cm_calloc((size_t)m->nsamples + 1, sizeof(*o->last), err);
    return o->last == NULL ? CM_ENOMEM : CM_OK;
}

int cm_epoch_order_choose(const cm_epoch_request *request, const cm_epoch_meetings *meetings,
                          cm_epoch_order *out, cm_error *err)
{
    const uint32_t n = meetings->nchunks;
    uint64_t least = UINT64_MAX;
    int rc;

    *out = (cm_epoch_order){0};
    rc = allocate(meetings, out, err);
    if (rc != CM_OK)
        return rc;
    uint32_t *position = cm_calloc((size_t)n + 1, sizeof(*position), err);
    if (position == NULL)
        return CM_ENOMEM;
    for (int order = CM_CHUNKS_RANDOM; n > 0 && order <= CM_CHUNKS_SEQUENTIAL; order++) {
        out->order = (cm_chunk_order)order;
        put_in_order(request, out->order, n, out->chunk, position);
        for (uint32_t x = 0; x < n; x++)
            position[out->chunk[x]] = x;
        find_spans(meetings, position, out);
        rc = find_peak_stash(meetings, request->window, out, err);
        if (rc != CM_OK || out->peak_stash <= request->max_stash)
            break;
        least = out->peak_stash < least ? out->peak_stash : least;
    }
    free(position);
    if (rc == CM_OK && out->peak_stash > request->max_stash)
        return cm_fail(err, CM_EBUDGET,
                       "%" PRIu64
                       " samples at least would wait for their last chunk, there is room "
                       "for %" PRIu64 ": more memory, a larger window, or samples nearer to the "
                       "chunks' shape would do",
                       least, request->max_stash);
    return rc;
}

void cm_epoch_order_release(cm_epoch_order *order)
{
    free(order->chunk);
    free(order->first);
    free(order->last);
    *order = (cm_epoch_order){0};
}
