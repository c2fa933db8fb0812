#include "load/batches/pack.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "load/batches/pack_impl.h"

enum {
    NONE = -1,
    BOX_RANK = CM_MAX_RANK + 2
};

/* ---- packers ---- */

int cm_packer_create(const cm_load_arrays *in, cm_proof *proof, cm_packer **out, cm_error *err)
{
    cm_packer *p = cm_calloc(1, sizeof *p, err);
    if (p == NULL)
        return CM_ENOMEM;
    p->in = in;
    p->proof = proof;
    p->ctx = cm_codec_ctx_create(err);
    p->fill = cm_calloc(in->narrays + 1, sizeof *p->fill, err);
    if (p->ctx == NULL || p->fill == NULL) {
        cm_packer_free(p);
        return CM_ENOMEM;
    }
    *out = p;
    return CM_OK;
}

void cm_packer_free(cm_packer *p)
{
    if (p == NULL)
        return;
    cm_codec_ctx_free(p->ctx);
    cm_fetch_many_release(&p->many);
    cm_chunk_streams_release(&p->split);
    cm_parcel_writer_release(&p->w);
    cm_buf_release(&p->decoded);
    free(p->chunk);
    free(p->use);
    free(p->order);
    free(p->bucket);
    free(p->fill);
    free(p);
}

void cm_pack_stage(cm_packer *p, cm_load_counts *counts, int which)
{
    const uint64_t now = cm_now_ns();
    counts->stage_ns[which] += now - p->last_ns;
    counts->stage_calls[which]++;
    p->last_ns = now;
}

/* ---- which chunks ---- */

/* Room for N uses, of as many chunks; what there is of them stays. */
static int make_room(cm_packer *p, size_t n, cm_error *err)
{
    if (n <= p->room)
        return CM_OK;
    const size_t more = 2 * n;
    size_t nbuckets = 64;
    while (nbuckets < 2 * more)
        nbuckets *= 2;
    cm_packed *chunk = realloc(p->chunk, more * sizeof *chunk);
    p->chunk = chunk != NULL ? chunk : p->chunk;
    cm_pack_use *uses = realloc(p->use, more * sizeof *uses);
    p->use = uses != NULL ? uses : p->use;
    uint32_t *order = realloc(p->order, more * sizeof *order);
    p->order = order != NULL ? order : p->order;
    int32_t *bucket = malloc(nbuckets * sizeof *bucket);
    if (chunk == NULL || uses == NULL || order == NULL || bucket == NULL) {
        free(bucket);
        return cm_fail(err, CM_ENOMEM, "no memory for the chunks of a batch");
    }
    free(p->bucket);
    p->bucket = bucket;
    p->nbuckets = nbuckets;
    p->room = more;
    return CM_OK;
}

/* The chunk's number in the batch. */
static uint32_t chunk_of(cm_packer *p, uint32_t array, uint64_t number)
{
    uint64_t h = (number * UINT64_C(0x9e3779b97f4a7c15)) ^ array * UINT64_C(0xc2b2ae3d27d4eb4f);
    size_t at = (h >> 20) & (p->nbuckets - 1);
    for (; p->bucket[at] != NONE; at = (at + 1) & (p->nbuckets - 1)) {
        const cm_packed *c = &p->chunk[p->bucket[at]];
        if (c->array == array && c->number == number)
            return (uint32_t)p->bucket[at];
    }
    p->bucket[at] = (int32_t)p->nchunks;
    p->chunk[p->nchunks] =
        (cm_packed){.number = number, .array = array, .travels = true, .frame = CM_CARRY_NO_FRAME};
    return (uint32_t)p->nchunks++;
}

static void sample_box(const cm_packer *p, const cm_load_task *task, const cm_pack_use *u,
                       cm_box *box)
{
    cm_box sample;
    cm_sample_at(p->in->space, task->epoch, task->piece[u->piece].sample, &sample);
    cm_sample_part_box(&p->in->part[u->part], &sample, box);
}

/* Calls of EACH for the chunks that a part of a sample meets. */
static uint64_t for_each_chunk(cm_packer *p, const cm_array *a, const cm_box *box,
                               const cm_pack_use *u, bool add)
{
    uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK], coord[CM_MAX_RANK], n = 1;
    cm_grid_cover(&a->grid, box, first, count);
    for (unsigned j = 0; j < a->rank; j++) {
        coord[j] = first[j];
        n *= count[j];
    }
    for (uint64_t left = add ? n : 0; left > 0; left--) {
        p->use[p->nuses] = *u;
        p->use[p->nuses++].chunk =
            chunk_of(p, p->in->part[u->part].array, cm_grid_number(&a->grid, coord));
        for (unsigned j = a->rank; j-- > 0 && ++coord[j] == first[j] + count[j];)
            coord[j] = first[j];
    }
    return n;
}

static void forget_chunks(cm_packer *p)
{
    p->nchunks = p->nuses = 0;
    memset(p->bucket, 0xff, p->nbuckets * sizeof *p->bucket);
}

/* Those that the load carries, and those that its batch needs and others have carried. */
static int find_carried(cm_packer *p, const cm_load_task *task, cm_error *err)
{
    cm_carry *c = task->carry;
    const size_t from = c->carried_at[task->load], to = c->carried_at[task->load + 1];
    const size_t first = c->use_at[task->load], end = c->use_at[task->load + 1];
    int rc = make_room(p, to - from + end - first + 1, err);
    if (rc != CM_OK)
        return rc;
    forget_chunks(p);
    for (size_t i = from; i < to; i++) {
        cm_carry_chunk *chunk = &c->chunk[c->carried[i]];
        cm_packed *x = &p->chunk[chunk_of(p, chunk->array, chunk->number)];
        x->frame = chunk->frame;
        x->carried = chunk;
    }
    for (size_t i = first; i < end; i++) {
        const cm_carry_chunk *chunk = &c->chunk[c->use[i].chunk];
        const uint32_t number = chunk_of(p, chunk->array, chunk->number);
        cm_packed *x = &p->chunk[number];
        if (x->carried == NULL) {
            x->travels = false;
            x->present = true; /* a frame has fill values too */
            x->place = CM_PARCEL_IN_SCRATCH | chunk->frame;
        }
        p->use[p->nuses++] =
            (cm_pack_use){.chunk = number, .part = c->use[i].part, .piece = c->use[i].piece};
    }
    return CM_OK;
}

static int find_chunks(cm_packer *p, const cm_load_task *task, cm_error *err)
{
    uint64_t n = 0;
    if (task->carry != NULL)
        return find_carried(p, task, err);
    for (int add = 0; add < 2; add++) {
        for (uint32_t i = 0; i < task->npieces; i++)
            for (uint32_t part = 0; part < p->in->nparts; part++) {
                const cm_pack_use u = {.part = part, .piece = i};
                cm_box box;
                sample_box(p, task, &u, &box);
                if (cm_box_nelem(&box) > 0)
                    n += for_each_chunk(p, p->in->array[p->in->part[part].array], &box, &u, add);
            }
        if (add)
            break;
        int rc = n > INT32_MAX / 4 ? cm_fail(err, CM_EBUDGET, "a batch meets too many chunks")
                                   : make_room(p, n, err);
        if (rc != CM_OK)
            return rc;
        forget_chunks(p);
    }
    return CM_OK;
}

/* ---- boxes ---- */

/*
 * Two dimensions more: the numbers of an element that is one or two of them, and their bytes,
 * which are read from the last on.
 */
static void swap_bytes(cm_parcel_box *box, uint64_t *shape, uint64_t *src_stride,
                       uint64_t *dst_stride, size_t itemsize, uint32_t swap)
{
    const unsigned n = box->rank;
    shape[n] = itemsize / swap;
    src_stride[n] = dst_stride[n] = swap;
    shape[n + 1] = swap;
    src_stride[n + 1] = UINT64_MAX; /* one byte back */
    dst_stride[n + 1] = 1;
    box->rank = n + 2;
    box->src += swap - 1;
    box->run_nbytes = 1;
}

/* What U's chunk has of its sample, to the sample's place in the batch. */
static int add_use(cm_packer *p, const cm_load_task *task, const cm_pack_use *u,
                   cm_load_counts *counts, cm_error *err)
{
    const cm_packed *c = &p->chunk[u->chunk];
    const cm_array *a = p->in->array[c->array];
    const size_t itemsize = a->dtype.nbytes;
    const uint32_t swap = cm_chain_split_swap(a->chain);
    uint64_t coord[CM_MAX_RANK], shape[BOX_RANK], src_stride[BOX_RANK], dst_stride[BOX_RANK];
    uint64_t src_step = itemsize, dst_step = itemsize, src = c->place;
    uint64_t dst =
        cm_load_offset(p->in->part_nbytes, task->nbatch, u->part, task->piece[u->piece].place);
    cm_box sample, covered, shared;
    sample_box(p, task, u, &sample);
    cm_grid_coord(&a->grid, c->number, coord);
    cm_grid_box(&a->grid, coord, &covered);
    if (!cm_box_intersect(&covered, &sample, &shared))
        return CM_OK;
    for (unsigned j = a->rank; j-- > 0;) {
        src_stride[j] = c->present ? src_step : 0;
        dst_stride[j] = dst_step;
        if (c->present)
            src += (shared.start[j] - coord[j] * a->grid.chunk[j]) * src_step;
        dst += (shared.start[j] - sample.start[j]) * dst_step;
        src_step *= a->grid.chunk[j];
        dst_step *= sample.shape[j];
        shape[j] = shared.shape[j];
    }
    const uint64_t nbytes = cm_box_nelem(&shared) * itemsize;
    counts->logical_nbytes += nbytes;
    if (task->carry == NULL) { /* else with the load that it travels with */
        counts->chunks++;
        counts->missing_chunks += !c->present;
        counts->missing_nbytes += c->present ? 0 : nbytes;
    }
    cm_parcel_box box = {.src = src,
                         .dst = dst,
                         .rank = a->rank,
                         .shape = shape,
                         .src_stride = src_stride,
                         .dst_stride = dst_stride,
                         .run_nbytes = itemsize};
    if (swap > 1)
        swap_bytes(&box, shape, src_stride, dst_stride, itemsize, swap);
    return cm_parcel_add_box(&p->w, &box, err);
}

/* What a clipped sample leaves of its place becomes zero. */
static int clear_rest(cm_packer *p, const cm_load_task *task, const cm_pack_use *u, cm_error *err)
{
    static const uint8_t zero;
    static const uint64_t nothing = 0, one = 1;
    const size_t whole = p->in->part_nbytes[u->part];
    cm_box box;
    int rc = CM_OK;
    sample_box(p, task, u, &box);
    const size_t nbytes =
        cm_box_nelem(&box) * p->in->array[p->in->part[u->part].array]->dtype.nbytes;
    if (nbytes > whole)
        return cm_fail(err, CM_EINTERNAL, "a sample is larger than its place");
    if (nbytes == whole)
        return CM_OK;
    if (p->zeros == 0)
        rc = cm_parcel_put(&p->w, &zero, 1, &p->zeros, err);
    const uint64_t left = whole - nbytes;
    const cm_parcel_box rest = {.src = p->zeros,
                                .dst =
                                    nbytes + cm_load_offset(p->in->part_nbytes, task->nbatch,
                                                            u->part, task->piece[u->piece].place),
                                .rank = 1,
                                .shape = &left,
                                .src_stride = &nothing,
                                .dst_stride = &one,
                                .run_nbytes = 1};
    return rc == CM_OK ? cm_parcel_add_box(&p->w, &rest, err) : rc;
}

static int add_boxes(cm_packer *p, const cm_load_task *task, cm_load_counts *counts, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; i < p->nuses && rc == CM_OK; i++)
        rc = add_use(p, task, &p->use[i], counts, err);
    for (uint32_t i = 0; i < task->npieces && rc == CM_OK; i++)
        for (uint32_t part = 0; part < p->in->nparts && rc == CM_OK; part++)
            rc = clear_rest(p, task, &(cm_pack_use){.part = part, .piece = i}, err);
    return rc;
}

/* ---- a batch ---- */

/* What of all samples lies in missing chunk X of the plan. */
static uint64_t missing_nbytes(const cm_packer *p, const cm_load_task *task, size_t x)
{
    const cm_epoch_plan *plan = task->carry->plan;
    const cm_epoch_chunk *chunk = &plan->chunk[x];
    const cm_array *a = p->in->array[chunk->array];
    uint64_t coord[CM_MAX_RANK], nelem = 0;
    cm_box covered, sample, box, shared;
    cm_grid_coord(&a->grid, chunk->number, coord);
    cm_grid_box(&a->grid, coord, &covered);
    for (uint32_t i = 0; i < chunk->nuses; i++) {
        const cm_epoch_use *u = &plan->use[chunk->first_use + i];
        cm_sample_at(p->in->space, task->epoch, plan->sample[u->place], &sample);
        cm_sample_part_box(&p->in->part[u->part], &sample, &box);
        nelem += cm_box_intersect(&covered, &box, &shared) ? cm_box_nelem(&shared) : 0;
    }
    return nelem * a->dtype.nbytes;
}

static void count_carried(const cm_packer *p, const cm_load_task *task, cm_load_counts *counts)
{
    const cm_carry *c = task->carry;
    for (size_t i = c->carried_at[task->load]; i < c->carried_at[task->load + 1]; i++) {
        const cm_carry_chunk *chunk = &c->chunk[c->carried[i]];
        counts->chunks++;
        counts->missing_chunks += chunk->missing;
        counts->missing_nbytes += chunk->missing ? missing_nbytes(p, task, c->carried[i]) : 0;
    }
}

int cm_packer_run(cm_packer *p, const cm_load_task *task, uint8_t *slot, size_t slot_nbytes,
                  cm_load_result *result, cm_error *err)
{
    cm_load_counts *counts = &result->counts;
    const uint64_t cpu_ns = cm_thread_cpu_ns();
    p->last_ns = cm_now_ns();
    cm_parcel_begin(&p->w, slot, slot_nbytes);
    memset(p->fill, 0, p->in->narrays * sizeof *p->fill);
    p->zeros = 0;
    int rc = find_chunks(p, task, err);
    if (task->carry != NULL) /* frames come first in the scratch */
        (void)cm_parcel_scratch(&p->w, task->carry->frames_nbytes);
    if (rc == CM_OK) {
        cm_pack_stage(p, counts, CM_LOAD_ASSEMBLE);
        rc = cm_pack_chunks(p, counts, err);
    }
    if (rc == CM_OK && task->carry != NULL)
        count_carried(p, task, counts);
    if (rc == CM_OK)
        rc = add_boxes(p, task, counts, err);
    if (rc == CM_OK)
        rc =
            cm_parcel_end(&p->w, cm_load_offset(p->in->part_nbytes, task->nbatch, p->in->nparts, 0),
                          &result->nbytes, err);
    cm_pack_stage(p, counts, CM_LOAD_ASSEMBLE);
    counts->cpu_ns += cm_thread_cpu_ns() - cpu_ns;
    return rc;
}
