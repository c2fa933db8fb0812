#include "plan/epoch.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/number.h"
#include "plan/displacement.h"
#include "plan/epoch_impl.h"
#include "plan/shuffle.h"

/* What the steps share. */
typedef struct making {
    const cm_epoch_request *request;
    cm_epoch_meetings meetings;
    cm_epoch_order order;
    uint32_t *sample; /* by place: of the rank */
    cm_epoch_plan *plan;
} making;

/* Samples by the window of their last chunk, those of a window shuffled. */
static int order_samples(making *m, cm_error *err)
{
    const uint64_t window = m->request->window;
    /* Samples of empty arrays meet no chunk, and are complete in window 0 all the same. */
    const uint64_t nwindows = m->plan->nwindows > 0 ? m->plan->nwindows : 1;
    const uint32_t n = m->meetings.nsamples;
    const uint64_t key =
        cm_shuffle_key(m->request->space->seed, m->request->epoch, CM_SHUFFLE_WINDOWS);

    m->sample = cm_calloc((size_t)n + 1, sizeof(*m->sample), err);
    uint32_t *end = m->sample == NULL ? NULL : cm_calloc(nwindows + 1, sizeof(*end), err);
    if (end == NULL)
        return CM_ENOMEM;
    for (uint32_t k = 0; k < n; k++)
        end[m->order.last[k] / window + 1]++;
    for (uint64_t w = 0; w < nwindows; w++)
        end[w + 1] += end[w];
    for (uint32_t k = 0; k < n; k++) /* end[w] is a cursor, and in the end where w ends */
        m->sample[end[m->order.last[k] / window]++] = k;
    for (uint64_t w = 0; w < nwindows; w++) {
        const uint32_t begin = w == 0 ? 0 : end[w - 1];
        cm_shuffle_u32(m->sample + begin, end[w] - begin, cm_mix64(key + w));
    }
    free(end);
    return CM_OK;
}

static int allocate(cm_epoch_plan *plan, cm_error *err)
{
    const size_t n = (size_t)plan->nplaces + 1;

    plan->sample = cm_calloc(n, sizeof(*plan->sample), err);
    plan->missing = plan->sample ? cm_calloc(n, sizeof(*plan->missing), err) : NULL;
    plan->window_of = plan->missing ? cm_calloc(n, sizeof(*plan->window_of), err) : NULL;
    plan->stashed = plan->window_of ? cm_calloc(n, sizeof(*plan->stashed), err) : NULL;
    plan->chunk = plan->stashed ? cm_calloc(plan->nchunks + 1, sizeof(*plan->chunk), err) : NULL;
    plan->use = plan->chunk ? cm_calloc(plan->nuses + 1, sizeof(*plan->use), err) : NULL;
    return plan->use == NULL ? CM_ENOMEM : CM_OK;
}

static void fill_places(const making *m)
{
    const cm_epoch_order *o = &m->order;
    const uint64_t window = m->request->window;
    cm_epoch_plan *plan = m->plan;

    for (uint64_t place = 0; place < plan->nplaces; place++) {
        const uint32_t k = m->sample[place];
        plan->sample[place] = cm_epoch_share_sample(m->request->share, k);
        plan->missing[place] = m->meetings.begin[k + 1] - m->meetings.begin[k];
        plan->window_of[place] = o->last[k] / window;
        plan->stashed[place] = o->first[k] / window != o->last[k] / window;
    }
}

/* Uses chunk by chunk, those of a chunk by place. */
static int fill_uses(const making *m, cm_error *err)
{
    const cm_epoch_meetings *meetings = &m->meetings;
    cm_epoch_plan *plan = m->plan;

    uint64_t *next = cm_calloc(plan->nchunks + 1, sizeof(*next), err);
    if (next == NULL)
        return CM_ENOMEM;
    for (uint64_t i = 0; i < plan->nuses; i++)
        next[meetings->meeting[i].chunk]++;
    for (uint64_t x = 0, first = 0; x < plan->nchunks; x++) {
        const uint32_t c = m->order.chunk[x];
        const cm_epoch_distinct *chunk = &meetings->chunk[c];
        plan->chunk[x] = (cm_epoch_chunk){chunk->number, chunk->array, (uint32_t)next[c], first};
        next[c] = first;
        first += plan->chunk[x].nuses;
    }
    for (uint64_t place = 0; place < plan->nplaces; place++) {
        const uint32_t k = m->sample[place];
        for (uint32_t i = meetings->begin[k]; i < meetings->begin[k + 1]; i++) {
            const cm_epoch_meeting *meeting = &meetings->meeting[i];
            plan->use[next[meeting->chunk]++] = (cm_epoch_use){(uint32_t)place, meeting->part};
        }
    }
    free(next);
    return CM_OK;
}

/* A batch is open from the first sample put in to the last one complete. */
static int find_peak_open(const making *m, cm_error *err)
{
    cm_epoch_plan *plan = m->plan;
    const cm_epoch_share *share = m->request->share;
    const size_t nbatches = (size_t)cm_div_ceil(plan->nplaces, share->batch);

    uint32_t *begin = cm_calloc(2 * (nbatches + 1), sizeof(*begin), err);
    if (begin == NULL)
        return CM_ENOMEM;
    uint32_t *end = begin + nbatches + 1;
    for (uint64_t place = 0; place < plan->nplaces; place++) {
        const uint32_t k = m->sample[place];
        const uint64_t b = place / share->batch;
        const uint32_t put = plan->stashed[place] ? m->order.last[k] : m->order.first[k];
        if (place % share->batch == 0 || put < begin[b])
            begin[b] = put;
        if (m->order.last[k] > end[b])
            end[b] = m->order.last[k];
    }
    int rc = cm_epoch_peak(begin, end, plan->nchunks == 0 ? 0 : nbatches, plan->nchunks,
                           &plan->peak_open, err);
    free(begin);
    return rc;
}

static int make_plan(making *m, cm_error *err)
{
    const cm_epoch_request *q = m->request;
    cm_epoch_plan *plan = m->plan;
    int rc = cm_epoch_meetings_find(q, &m->meetings, err);

    if (rc == CM_OK)
        rc = cm_epoch_meetings_sort(q, &m->meetings, err);
    if (rc == CM_OK)
        rc = cm_epoch_order_choose(q, &m->meetings, &m->order, err);
    if (rc != CM_OK)
        return rc;
    plan->order = m->order.order;
    plan->nplaces = m->meetings.nsamples;
    plan->nuses = m->meetings.nmeetings;
    plan->nchunks = m->meetings.nchunks;
    plan->nwindows = cm_div_ceil(plan->nchunks, q->window);
    plan->peak_stash = m->order.peak_stash;
    rc = order_samples(m, err);
    if (rc == CM_OK)
        rc = allocate(plan, err);
    if (rc != CM_OK)
        return rc;
    fill_places(m);
    rc = fill_uses(m, err);
    if (rc == CM_OK)
        rc = find_peak_open(m, err);
    if (rc == CM_OK)
        rc = cm_displacement_of(q->space, q->epoch, plan->sample, plan->nplaces,
                                &plan->displacement, err);
    return rc;
}

int cm_epoch_plan_make(const cm_epoch_request *request, cm_epoch_plan *plan, cm_error *err)
{
    making m = {.request = request, .plan = plan};

    *plan = (cm_epoch_plan){0};
    int rc = make_plan(&m, err);
    free(m.sample);
    cm_epoch_order_release(&m.order);
    cm_epoch_meetings_release(&m.meetings);
    if (rc != CM_OK)
        cm_epoch_plan_release(plan);
    return rc;
}

void cm_epoch_plan_skip(cm_epoch_plan *plan, uint64_t first_place)
{
    uint64_t nuses = 0, nchunks = 0;
    plan->first_place = first_place < plan->nplaces ? first_place : plan->nplaces;
    for (uint64_t x = 0; x < plan->nchunks; x++) {
        cm_epoch_chunk c = plan->chunk[x];
        const cm_epoch_use *use = &plan->use[c.first_use];
        const uint64_t first_use = nuses;
        for (uint32_t i = 0; i < c.nuses; i++)
            if (use[i].place >= plan->first_place)
                plan->use[nuses++] = use[i];
        c.first_use = first_use;
        c.nuses = (uint32_t)(nuses - first_use);
        if (c.nuses > 0)
            plan->chunk[nchunks++] = c;
    }
    for (uint64_t place = 0; place < plan->first_place; place++)
        plan->missing[place] = 0;
    plan->nuses = nuses;
    plan->nchunks = nchunks;
}

void cm_epoch_plan_release(cm_epoch_plan *plan)
{
    if (plan == NULL)
        return;
    free(plan->sample);
    free(plan->missing);
    free(plan->window_of);
    free(plan->stashed);
    free(plan->chunk);
    free(plan->use);
    *plan = (cm_epoch_plan){0};
}
