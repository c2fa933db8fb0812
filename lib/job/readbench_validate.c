/*
 * The batches of the first epoch made once more, and each sample compared with what
 * is read directly: box by box, by another way through the code, without loader,
 * cache, plan or merged requests.  A device's share of this is in readbench_stage.c.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "codec/checksum.h"
#include "exec/monitor.h"
#include "job/readbench.h"

typedef struct checker {
    cm_bench_rank *rank;
    cm_codec_ctx *ctx;
    cm_buf raw, fed;
} checker;

static bool is_canceled(void *context)
{
    return cm_monitor_canceled(((cm_bench_rank *)context)->bench->monitor);
}

static int differ(checker *c, const cm_batch *batch, uint64_t place, size_t p, uint64_t offset)
{
    cm_bench_rank *r = c->rank;
    const cm_array *a = r->bench->shared.data.array[r->bench->shared.space.part[p].array];
    r->nmismatches++;
    if (r->first_failure != NULL)
        return CM_OK;
    r->first_failure = cm_asprintf(&r->err,
                                   "batch %" PRIu64 ": variable %s: sample %" PRIu64
                                   ": byte %" PRIu64 " is not what the store holds",
                                   batch->number, cm_bench_array_name(a), place, offset);
    return r->first_failure != NULL ? CM_OK : CM_ENOMEM;
}

static int check_part(checker *c, const cm_batch *batch, const cm_box *sample, uint64_t place,
                      size_t p, const uint8_t *got)
{
    cm_bench_rank *r = c->rank;
    const cm_bench *b = r->bench;
    const cm_feed *feed = &b->shared.space.feed[p];
    cm_array *a = b->shared.data.array[b->shared.space.part[p].array];
    cm_box box;
    cm_sample_part_box(&b->shared.space.part[p], sample, &box);
    const uint64_t nelem = cm_box_nelem(&box);
    const size_t nbytes = nelem * cm_feed_nbytes(feed);
    int rc = cm_buf_resize(&c->raw, nelem * a->dtype.nbytes, &r->err);
    if (rc == CM_OK)
        rc = cm_buf_resize(&c->fed, nbytes, &r->err);
    if (rc == CM_OK)
        rc = cm_array_read(a, c->ctx, &box, c->raw.data, &r->err);
    if (rc != CM_OK)
        return rc;
    cm_feed_run(feed, c->fed.data, c->raw.data, nelem);
    r->nvalidated += nbytes;
    if (b->setting.validate == CM_READBENCH_VALIDATE_CHECKSUM) {
        const cm_simd simd = cm_cpu_simd();
        if (cm_crc32c(simd, got, nbytes) == cm_crc32c(simd, c->fed.data, nbytes))
            return CM_OK;
    } else if (memcmp(got, c->fed.data, nbytes) == 0)
        return CM_OK;
    uint64_t at = 0;
    while (at + 1 < nbytes && got[at] == c->fed.data[at])
        at++;
    return differ(c, batch, place, p, at);
}

static int check_batch(checker *c, const cm_batch *batch)
{
    const cm_bench_space *s = &c->rank->bench->shared.space;
    int rc = CM_OK;
    for (uint64_t k = 0; k < batch->nsamples && rc == CM_OK; k++) {
        const uint8_t *at = batch->data;
        cm_box sample;
        cm_sample_at(&s->space, 0, batch->sample[k], &sample);
        for (size_t p = 0; p < s->nparts && rc == CM_OK; p++) {
            rc = check_part(c, batch, &sample, k, p, at + k * s->part_nbytes[p]);
            at += batch->nsamples * s->part_nbytes[p];
        }
    }
    c->rank->nvalidated_batches++;
    return rc;
}

static int check_rank(cm_bench_rank *r)
{
    checker c = {.rank = r, .ctx = cm_codec_ctx_create(&r->err)};
    const uint64_t start = cm_now_ns();
    bool more = true;
    int rc = c.ctx != NULL ? cm_bench_rank_begin(r, 0) : CM_ENOMEM;
    while (rc == CM_OK && more) {
        cm_batch batch;
        rc = cm_loader_next(r->loader, is_canceled, r, &batch, &more, &r->err);
        if (rc != CM_OK || !more)
            break;
        if (batch.status == CM_OK) /* one that failed was counted in the timed pass */
            rc = check_batch(&c, &batch);
        cm_monitor_add(r->bench->monitor, batch.nbytes);
        cm_loader_release(r->loader, &batch);
    }
    r->validated_ns += cm_now_ns() - start;
    cm_codec_ctx_free(c.ctx);
    cm_buf_release(&c.raw);
    cm_buf_release(&c.fed);
    return rc;
}

int cm_bench_validate(cm_bench *b, cm_error *err)
{
    if (b->setting.validate == CM_READBENCH_VALIDATE_NONE)
        return CM_OK;
    for (unsigned i = 0; i < b->setting.ranks; i++) {
        cm_bench_rank *r = &b->rank[i];
        int rc = b->setting.uses_device ? cm_bench_stage_validate(r) : check_rank(r);
        if (rc != CM_OK) {
            if (err != NULL)
                *err = r->err;
            return rc;
        }
    }
    return CM_OK;
}
