#include "load/batches/carry.h"

#include <stdlib.h>
#include <string.h>

#include "plan/meetings.h"

/* While it is made. */
typedef struct making {
    cm_carry *c;
    const cm_load_arrays *in;
    const cm_proof *proof;
    uint64_t nbatches; /* from the first that is made */
    uint32_t *order;   /* chunks by their first batch */
    int64_t *load;     /* by chunk, from the first batch on: below 0 before it */
} making;

void cm_carry_release(cm_carry *c)
{
    for (size_t i = 0; c->chunk != NULL && i < c->nchunks; i++)
        free(c->chunk[i].why);
    free(c->chunk);
    free(c->carried);
    free(c->carried_at);
    free(c->use);
    free(c->use_at);
    *c = (cm_carry){0};
}

uint64_t cm_carry_nbytes(const cm_epoch_plan *plan)
{
    const uint64_t chunks = sizeof(cm_carry_chunk) + 2 * sizeof(uint32_t) + sizeof(int64_t) +
                            sizeof(uint64_t) /* a frame that is free */;
    return cm_add_sat(cm_mul_sat(plan->nchunks, chunks + 2 * sizeof(size_t)),
                      cm_add_sat(cm_mul_sat(plan->nuses, sizeof(cm_carry_use)),
                                 cm_mul_sat(plan->nplaces, 2 * sizeof(size_t))));
}

/* ---- who needs what -------------------------------------------------------------------------- */

static uint64_t batch_of(const cm_carry *c, uint32_t place)
{
    return place / c->batch - c->first_batch;
}

static int list_chunks(making *m, cm_error *err)
{
    cm_carry *c = m->c;
    const cm_epoch_plan *plan = c->plan;
    c->chunk = cm_calloc(plan->nchunks + 1, sizeof *c->chunk, err);
    if (c->chunk == NULL)
        return CM_ENOMEM;
    for (; c->nchunks < plan->nchunks; c->nchunks++) {
        const cm_epoch_chunk *from = &plan->chunk[c->nchunks];
        cm_carry_chunk *to = &c->chunk[c->nchunks];
        *to = (cm_carry_chunk){.number = from->number,
                               .array = from->array,
                               .first = from->nuses > 0 ? UINT32_MAX : 0,
                               .frame = CM_CARRY_NO_FRAME};
        for (uint32_t i = 0; i < from->nuses; i++) {
            const uint32_t b = (uint32_t)batch_of(c, plan->use[from->first_use + i].place);
            to->first = b < to->first ? b : to->first;
            to->last = b > to->last ? b : to->last;
        }
    }
    return CM_OK;
}

/* Those that one batch needs first stay in the order of reading. */
static int order_chunks(making *m, cm_error *err)
{
    const cm_carry *c = m->c;
    size_t *end = cm_calloc(m->nbatches + 2, sizeof *end, err);
    m->order = cm_calloc(c->nchunks + 1, sizeof *m->order, err);
    if (end != NULL && m->order != NULL) {
        for (size_t i = 0; i < c->nchunks; i++)
            end[c->chunk[i].first + 1]++;
        for (uint64_t b = 0; b < m->nbatches; b++)
            end[b + 1] += end[b];
        for (size_t i = 0; i < c->nchunks; i++)
            m->order[end[c->chunk[i].first]++] = (uint32_t)i;
    }
    const bool done = end != NULL && m->order != NULL;
    free(end);
    return done ? CM_OK : CM_ENOMEM;
}

/* ---- which load ------------------------------------------------------------------------------ */

static uint64_t cost_of(const making *m, const cm_carry_chunk *chunk)
{
    return m->proof->array[chunk->array].most.stored_nbytes + 1;
}

/* As late as can be, from the last chunk on; what does not fit goes one load earlier. */
static int choose_loads(making *m, cm_error *err)
{
    const cm_carry *c = m->c;
    uint64_t all = 0, most = 0, used = 0;
    int64_t at = (int64_t)m->nbatches - 1;
    m->load = cm_calloc(c->nchunks + 1, sizeof *m->load, err);
    if (m->load == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < c->nchunks; i++) {
        const uint64_t cost = cost_of(m, &c->chunk[i]);
        all = cm_add_sat(all, cost);
        most = cost > most ? cost : most;
    }
    const uint64_t room = cm_add_sat(m->nbatches > 0 ? all / m->nbatches : 0, most);
    for (size_t i = c->nchunks; i-- > 0;) {
        const cm_carry_chunk *chunk = &c->chunk[m->order[i]];
        const uint64_t cost = cost_of(m, chunk);
        if (at > (int64_t)chunk->first) {
            at = chunk->first;
            used = 0;
        }
        if (used > 0 && cost > room - used) {
            at--;
            used = 0;
        }
        used += cost;
        m->load[m->order[i]] = at;
    }
    return CM_OK;
}

/* Numbers of loads from 0 on, and what each carries. */
static int list_loads(making *m, cm_error *err)
{
    cm_carry *c = m->c;
    int64_t least = 0;
    for (size_t i = 0; i < c->nchunks; i++)
        least = m->load[i] < least ? m->load[i] : least;
    if ((uint64_t)-least + m->nbatches >= UINT32_MAX)
        return cm_fail(err, CM_EBUDGET, "an epoch has too many batches");
    c->nbefore = (uint32_t)-least;
    c->nloads = c->nbefore + (uint32_t)m->nbatches;
    c->carried = cm_calloc(c->nchunks + 1, sizeof *c->carried, err);
    c->carried_at = cm_calloc((size_t)c->nloads + 2, sizeof *c->carried_at, err);
    if (c->carried == NULL || c->carried_at == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < c->nchunks; i++) {
        cm_carry_chunk *chunk = &c->chunk[i];
        chunk->load = (uint32_t)(m->load[i] - least);
        chunk->first += c->nbefore;
        chunk->last += c->nbefore;
        c->carried_at[chunk->load + 2]++;
    }
    for (uint32_t l = 0; l < c->nloads; l++)
        c->carried_at[l + 2] += c->carried_at[l + 1];
    for (size_t i = 0; i < c->nchunks; i++) /* [l + 1] is a cursor, and in the end where l ends */
        c->carried[c->carried_at[c->chunk[i].load + 1]++] = (uint32_t)i;
    return CM_OK;
}

static int list_uses(making *m, cm_error *err)
{
    cm_carry *c = m->c;
    const cm_epoch_plan *plan = c->plan;
    c->use = cm_calloc(plan->nuses + 1, sizeof *c->use, err);
    c->use_at = cm_calloc((size_t)c->nloads + 2, sizeof *c->use_at, err);
    if (c->use == NULL || c->use_at == NULL)
        return CM_ENOMEM;
    for (uint64_t i = 0; i < plan->nuses; i++)
        c->use_at[c->nbefore + batch_of(c, plan->use[i].place) + 2]++;
    for (uint32_t l = 0; l < c->nloads; l++)
        c->use_at[l + 2] += c->use_at[l + 1];
    for (size_t x = 0; x < c->nchunks; x++) {
        const cm_epoch_chunk *from = &plan->chunk[x];
        for (uint32_t i = 0; i < from->nuses; i++) {
            const cm_epoch_use *use = &plan->use[from->first_use + i];
            const size_t at = c->use_at[c->nbefore + batch_of(c, use->place) + 1]++;
            c->use[at] = (cm_carry_use){.chunk = (uint32_t)x,
                                        .part = use->part,
                                        .piece = (uint32_t)(use->place % c->batch)};
        }
    }
    return CM_OK;
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* Chunks by the load after which their frames are free. */
static uint32_t *order_by_end(const cm_carry *c, size_t **at, cm_error *err)
{
    uint32_t *order = cm_calloc(c->nchunks + 1, sizeof *order, err);
    *at = cm_calloc((size_t)c->nloads + 2, sizeof **at, order != NULL ? err : NULL);
    if (order == NULL || *at == NULL) {
        free(order);
        return NULL;
    }
    for (size_t i = 0; i < c->nchunks; i++)
        (*at)[c->chunk[i].last + 2]++;
    for (uint32_t l = 0; l < c->nloads; l++)
        (*at)[l + 2] += (*at)[l + 1];
    for (size_t i = 0; i < c->nchunks; i++)
        order[(*at)[c->chunk[i].last + 1]++] = (uint32_t)i;
    return order;
}

static uint64_t frame_nbytes(const making *m, uint32_t array)
{
    const uint64_t n = cm_chain_decoded_nbytes(m->in->array[array]->chain);
    return (n + CM_PARCEL_SCRATCH_ALIGN - 1) / CM_PARCEL_SCRATCH_ALIGN * CM_PARCEL_SCRATCH_ALIGN;
}

/*
 * Frames of one array, numbered as they are needed: those that are free are used again, the latest
 * first.  *PEAK is how many there are.
 */
static void number_frames(making *m, uint32_t array, const uint32_t *ends, const size_t *ends_at,
                          uint64_t *unused, uint64_t *peak)
{
    cm_carry *c = m->c;
    size_t nunused = 0;
    *peak = 0;
    for (uint32_t l = 0; l < c->nloads; l++) {
        for (size_t i = c->carried_at[l]; i < c->carried_at[l + 1]; i++) {
            cm_carry_chunk *chunk = &c->chunk[c->carried[i]];
            if (chunk->array == array && (chunk->load != chunk->first || chunk->last != l))
                chunk->frame = nunused > 0 ? unused[--nunused] : (*peak)++;
        }
        for (size_t i = ends_at[l]; i < ends_at[l + 1]; i++) {
            const cm_carry_chunk *chunk = &c->chunk[ends[i]];
            if (chunk->array == array && chunk->frame != CM_CARRY_NO_FRAME)
                unused[nunused++] = chunk->frame;
        }
    }
}

static int place_frames(making *m, cm_error *err)
{
    cm_carry *c = m->c;
    size_t *ends_at = NULL;
    uint32_t *ends = order_by_end(c, &ends_at, err);
    uint64_t *unused = ends != NULL ? cm_calloc(c->nchunks + 1, sizeof *unused, err) : NULL;
    int rc = unused != NULL ? CM_OK : CM_ENOMEM;
    for (uint32_t a = 0; a < m->in->narrays && rc == CM_OK; a++) {
        const uint64_t each = frame_nbytes(m, a);
        uint64_t peak = 0, total;
        number_frames(m, a, ends, ends_at, unused, &peak);
        for (size_t i = 0; i < c->nchunks; i++)
            if (c->chunk[i].array == a && c->chunk[i].frame != CM_CARRY_NO_FRAME)
                c->chunk[i].frame = c->frames_nbytes + c->chunk[i].frame * each;
        if (!cm_mul_u64(peak, each, &total) || !cm_add_size(c->frames_nbytes, total, &total) ||
            total >= CM_PARCEL_IN_SCRATCH)
            rc = cm_fail(err, CM_EBUDGET, "chunks that several batches need have too many bytes");
        else
            c->frames_nbytes = total;
    }
    free(ends);
    free(ends_at);
    free(unused);
    return rc;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int find_most(making *m, cm_error *err)
{
    cm_carry *c = m->c;
    for (uint32_t l = 0; l < c->nloads; l++) {
        cm_pack_tally t = {.nuses = c->use_at[l + 1] - c->use_at[l]};
        for (size_t i = c->carried_at[l]; i < c->carried_at[l + 1]; i++)
            if (!cm_pack_tally_add(&t, m->in, m->proof, c->chunk[c->carried[i]].array, 1))
                return cm_fail(err, CM_EBUDGET, "a batch meets too many chunks to be packed");
        cm_pack_tally_most(&c->most, &t);
    }
    return CM_OK;
}

int cm_carry_make(const cm_epoch_plan *plan, const cm_epoch_share *share, uint64_t first_batch,
                  const cm_load_arrays *in, const cm_proof *proof, cm_carry *out, cm_error *err)
{
    making m = {.c = out,
                .in = in,
                .proof = proof,
                .nbatches = share->nbatches > first_batch ? share->nbatches - first_batch : 0};
    *out = (cm_carry){.plan = plan, .batch = share->batch, .first_batch = first_batch};
    int rc = list_chunks(&m, err);
    if (rc == CM_OK)
        rc = order_chunks(&m, err);
    if (rc == CM_OK)
        rc = choose_loads(&m, err);
    if (rc == CM_OK)
        rc = list_loads(&m, err);
    if (rc == CM_OK)
        rc = list_uses(&m, err);
    if (rc == CM_OK)
        rc = place_frames(&m, err);
    if (rc == CM_OK)
        rc = find_most(&m, err);
    free(m.order);
    free(m.load);
    return rc;
}

/* ---- what became of them --------------------------------------------------------------------- */

void cm_carry_fail(cm_carry_chunk *chunk, int status, const char *why)
{
    if (chunk->status != CM_OK) /* the first reason stays */
        return;
    chunk->status = status;
    chunk->why = strdup(why);
}

void cm_carry_lose(cm_carry *c, uint32_t load, int status, const char *why)
{
    for (size_t i = c->carried_at[load]; i < c->carried_at[load + 1]; i++)
        cm_carry_fail(&c->chunk[c->carried[i]], status, why);
}

const cm_carry_chunk *cm_carry_check(const cm_carry *c, uint32_t load, bool *missing)
{
    const cm_carry_chunk *failed = NULL;
    *missing = false;
    for (size_t i = c->use_at[load]; i < c->use_at[load + 1]; i++) {
        const cm_carry_chunk *chunk = &c->chunk[c->use[i].chunk];
        *missing = *missing || chunk->missing;
        if (failed == NULL && chunk->status != CM_OK)
            failed = chunk;
    }
    return failed;
}
