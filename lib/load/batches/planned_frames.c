/* Frames of the planned loader, and the chunks in them. */
#include <stdlib.h>
#include <string.h>

#include "load/batches/planned_impl.h"

_Static_assert(sizeof(cm_planned_chunk) <= CM_BATCHER_CHUNK_NBYTES, "what is kept of a chunk");

size_t cm_planned_frame_offset(const cm_batcher *l, size_t number)
{
    return cm_batcher_slot_offset(l, l->options.nslots) + number * l->planned->blocks->frame_nbytes;
}

cm_planned_frame *cm_planned_frame_get(cm_batcher *l, uint64_t block)
{
    cm_planned *p = l->planned;
    cm_planned_frame *f = &p->frame[block % l->options.nframes];
    if (f->used && f->block == block)
        return f;
    if (f->used && f->nruns > 0)
        return NULL;
    f->used = true;
    f->block = block;
    memset(f->chunk, 0, p->blocks->frame_nchunks * sizeof(f->chunk[0]));
    return f;
}

int cm_planned_submit(cm_batcher *l, cm_error *err)
{
    const unsigned worker = cm_batcher_idlest(l);
    int rc =
        cm_pool_submit(l->pool, l->options.client, l->options.first_worker + worker, l->task, err);
    if (rc == CM_OK) {
        l->given[worker]++;
        l->outstanding++;
    }
    return rc;
}

/* Chunk C of FRAME, number NUMBER of its array, is to be decoded for PART. */
static int submit_chunk(cm_batcher *l, cm_planned_frame *f, uint64_t c, uint64_t number,
                        uint32_t part, cm_error *err)
{
    const cm_planned *p = l->planned;
    const uint32_t strip = p->blocks->strip_of[part];
    const size_t at = cm_planned_frame_offset(l, (size_t)(f - p->frame));
    cm_load_task *t = l->task;
    *t = (cm_load_task){.id = CM_PLANNED_RUNS + (uint64_t)(&f->chunk[c] - p->chunks),
                        .epoch = l->epoch,
                        .number = number,
                        .offset = at + cm_block_chunk_offset(p->blocks, strip, c),
                        .kind = CM_LOAD_CHUNK,
                        .array = p->blocks->strip[strip].array,
                        .npieces = 1};
    t->piece[0] = (cm_load_piece){.offset = at + cm_block_flag_offset(p->blocks, c), .part = part};
    return cm_planned_submit(l, err);
}

/* The run that is open, if any, needs chunk C of FRAME. */
static int need_chunk(cm_batcher *l, cm_planned_frame *f, uint64_t c, uint64_t number,
                      uint32_t part, cm_error *err)
{
    cm_planned *p = l->planned;
    cm_planned_chunk *x = &f->chunk[c];
    if (x->state == CM_CHUNK_ABSENT) {
        int rc = submit_chunk(l, f, c, number, part, err);
        if (rc != CM_OK)
            return rc;
        x->state = CM_CHUNK_UNDERWAY;
    }
    if (p->open == CM_BATCHER_NONE)
        return CM_OK;
    cm_planned_run *r = &p->run[p->open];
    cm_load_batch *b = &l->slot[r->slot].batch;
    if (x->state == CM_CHUNK_UNDERWAY) {
        r->nwaiting += (x->waiting >> p->open & 1) == 0;
        x->waiting |= UINT64_C(1) << p->open;
        return CM_OK;
    }
    b->missing |= x->missing;
    if (x->failure != NULL)
        cm_load_batch_fail(b, x->failure->status, x->failure->text);
    return CM_OK;
}

static int need_part(cm_batcher *l, cm_planned_frame *f, const cm_box *sample, uint32_t part,
                     cm_error *err)
{
    const cm_blocks *blocks = l->planned->blocks;
    const uint32_t strip = blocks->strip_of[part];
    cm_block_walk walk;
    uint64_t c;
    cm_box box;
    int rc = CM_OK;
    if (strip == CM_BLOCK_NO_STRIP)
        return CM_OK;
    cm_sample_part_box(&l->options.part[part], sample, &box);
    cm_block_walk_begin(&walk, blocks, strip, sample, &box);
    while (rc == CM_OK && cm_block_walk_next(&walk, &c))
        rc = need_chunk(l, f, c, cm_grid_number(blocks->strip[strip].grid, walk.coord), part, err);
    return rc;
}

int cm_planned_need(cm_batcher *l, cm_planned_frame *frame, const cm_box *sample, cm_error *err)
{
    int rc = CM_OK;
    for (uint32_t part = 0; part < l->options.nparts && rc == CM_OK; part++)
        rc = need_part(l, frame, sample, part, err);
    return rc;
}

static const cm_planned_failure *keep_failure(cm_planned *p, const cm_load_result *r)
{
    static const cm_planned_failure unknown = {
        .status = CM_ENOMEM, .text = "a chunk failed, and no memory was left to say why"};
    cm_planned_failure *f = malloc(sizeof(*f));
    if (f == NULL)
        return &unknown;
    f->status = r->status;
    memcpy(f->text, r->error, sizeof(f->text));
    f->next = p->failures;
    p->failures = f;
    return f;
}

void cm_planned_take_chunk(cm_batcher *l, const cm_load_result *r)
{
    cm_planned *p = l->planned;
    cm_planned_chunk *x = &p->chunks[r->id - CM_PLANNED_RUNS];
    const uint64_t waiting = x->waiting;
    x->state = CM_CHUNK_DECODED;
    x->waiting = 0;
    x->missing = r->counts.missing_chunks > 0;
    x->failure = r->status == CM_OK ? NULL : keep_failure(p, r);
    for (uint32_t i = 0; i < CM_PLANNED_RUNS; i++) {
        if ((waiting >> i & 1) == 0)
            continue;
        cm_load_batch *b = &l->slot[p->run[i].slot].batch;
        b->begin_ns = r->begin_ns < b->begin_ns ? r->begin_ns : b->begin_ns;
        b->missing |= x->missing;
        if (x->failure != NULL)
            cm_load_batch_fail(b, x->failure->status, x->failure->text);
        p->run[i].nwaiting--;
    }
}
