/*
 * The batches of the first epoch made once more, and each sample compared with what
 * is read directly: box by box, by another way through the code, without loader,
 * cache, plan or merged requests.  A program of the user's has its bytes to itself: the
 * checksum it gives is compared.  A device's share of this is in stage.c.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "bench/readbench.h"
#include "codec/checksum.h"

typedef struct checker {
    cm_bench_rank *rank;
    cm_codec_ctx *ctx;
    cm_buf raw, fed, batch;
    uint64_t nbytes; /* read so far, as delivered */
} checker;

static int differ(checker *c, const cm_load_batch *batch, uint64_t place, size_t p, uint64_t offset)
{
    cm_bench_rank *r = c->rank;
    const cm_array *a = r->bench->load.shared.data.array[r->bench->load.shared.space.part[p].array];
    r->nmismatches++;
    if (r->first_failure != NULL)
        return CM_OK;
    r->first_failure = cm_asprintf(&r->load->err,
                                   "batch %" PRIu64 ": variable %s: sample %" PRIu64
                                   ": byte %" PRIu64 " is not what the store holds",
                                   batch->number, cm_load_array_name(a), place, offset);
    return r->first_failure != NULL ? CM_OK : CM_ENOMEM;
}

/* Part P of SAMPLE as it is fed, into OUT, which has room for a whole one. */
static int read_part(checker *c, const cm_box *sample, size_t p, uint8_t *out, size_t *nbytes)
{
    cm_bench_rank *r = c->rank;
    const cm_bench *b = r->bench;
    const cm_feed *feed = &b->load.shared.space.feed[p];
    cm_array *a = b->load.shared.data.array[b->load.shared.space.part[p].array];
    cm_box box;
    cm_sample_part_box(&b->load.shared.space.part[p], sample, &box);
    const uint64_t nelem = cm_box_nelem(&box);
    int rc = cm_buf_resize(&c->raw, nelem * a->dtype.nbytes, &r->load->err);
    if (rc == CM_OK)
        rc = cm_array_read(a, c->ctx, &box, c->raw.data, &r->load->err);
    if (rc != CM_OK)
        return rc;
    cm_feed_run(feed, out, c->raw.data, nelem);
    *nbytes = nelem * cm_feed_nbytes(feed);
    c->nbytes += *nbytes;
    return CM_OK;
}

static int check_part(checker *c, const cm_load_batch *batch, const cm_box *sample, uint64_t place,
                      size_t p, const uint8_t *got)
{
    const cm_bench *b = c->rank->bench;
    size_t nbytes;
    int rc = cm_buf_resize(&c->fed, b->load.shared.space.part_nbytes[p], &c->rank->load->err);
    if (rc == CM_OK)
        rc = read_part(c, sample, p, c->fed.data, &nbytes);
    if (rc != CM_OK)
        return rc;
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

static int check_batch(void *context, const cm_load_batch *batch)
{
    checker *c = context;
    const cm_load_space *s = &c->rank->bench->load.shared.space;
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
    return rc;
}

/* Reads BATCH as its slot would hold it: samples that an edge clips are followed by zeros. */
static int read_batch(checker *c, const cm_load_batch *batch)
{
    const cm_load_space *s = &c->rank->bench->load.shared.space;
    size_t at = 0, got = 0, nbytes = 0;
    int rc = CM_OK;
    for (size_t p = 0; p < s->nparts; p++)
        nbytes += batch->nsamples * s->part_nbytes[p];
    rc = cm_buf_resize(&c->batch, nbytes, &c->rank->load->err);
    for (size_t p = 0; p < s->nparts && rc == CM_OK; p++)
        for (uint64_t k = 0; k < batch->nsamples && rc == CM_OK; k++, at += s->part_nbytes[p]) {
            uint8_t *out = (uint8_t *)c->batch.data + at;
            cm_box sample;
            cm_sample_at(&s->space, 0, batch->sample[k], &sample);
            rc = read_part(c, &sample, p, out, &got);
            if (rc == CM_OK)
                memset(out + got, 0, s->part_nbytes[p] - got);
        }
    return rc;
}

static int check_answer(void *context, const cm_load_batch *batch)
{
    checker *c = context;
    cm_bench_rank *r = c->rank;
    if (!batch->has_crc32c)
        return cm_fail(&r->load->err, CM_EINVAL,
                       "`validate` checksum: batch %" PRIu64
                       ": the loader's answer has no \"crc32c\" (the option checksum of "
                       "scripts/engines adds it)",
                       batch->number);
    int rc = read_batch(c, batch);
    if (rc != CM_OK || cm_crc32c(cm_cpu_simd(), c->batch.data, c->batch.nbytes) == batch->crc32c)
        return rc;
    r->nmismatches++;
    if (r->first_failure == NULL)
        r->first_failure = cm_asprintf(
            &r->load->err,
            "batch %" PRIu64 ": the loader's checksum is not that of what the store holds",
            batch->number);
    return r->first_failure != NULL ? CM_OK : CM_ENOMEM;
}

static int check_rank(cm_bench_rank *r)
{
    checker c = {.rank = r, .ctx = cm_codec_ctx_create(&r->load->err)};
    cm_bench_batch_fn *check =
        r->bench->load.setting.engine == CM_LOAD_COMMAND ? check_answer : check_batch;
    int rc = c.ctx != NULL ? cm_bench_rank_again(r, check, &c) : CM_ENOMEM;
    r->nvalidated += c.nbytes;
    cm_codec_ctx_free(c.ctx);
    cm_buf_release(&c.raw);
    cm_buf_release(&c.fed);
    cm_buf_release(&c.batch);
    return rc;
}

int cm_bench_validate(cm_bench *b, cm_error *err)
{
    if (b->setting.validate == CM_READBENCH_VALIDATE_NONE)
        return CM_OK;
    for (unsigned i = 0; i < b->load.setting.ranks; i++) {
        cm_bench_rank *r = &b->rank[i];
        int rc = b->load.setting.uses_device ? cm_bench_stage_validate(r) : check_rank(r);
        if (rc != CM_OK) {
            if (err != NULL)
                *err = r->load->err;
            return rc;
        }
    }
    return CM_OK;
}
