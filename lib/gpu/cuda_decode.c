#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/cuda_impl.h"
#include "gpu/decode.h"
#include "gpu/nvcomp.h"

enum {
    COPY_THREADS = 256,
    COPY_BLOCKS = 4096,
    UNWRITTEN = 0xff /* of statuses, until nvCOMP has written them */
};
/* nvCOMP's zstd wants three times what it decodes: streams are decoded in groups of so much. */
#define TEMP_NBYTES ((size_t)2 << 30)

/*
 * What nvCOMP is told of N streams, and tells: arrays one after the other, in memory of the
 * device.
 */
enum {
    TABLE_SRC,
    TABLE_SRC_NBYTES,
    TABLE_ROOM,
    TABLE_DST,
    TABLE_NTOLD,
    TABLE_MADE = TABLE_NTOLD,
    TABLE_STATUS,
    TABLE_STREAM_NBYTES = 8 * TABLE_STATUS + 4
};

typedef struct decoder_buffer {
    cm_device_memory *table;
    uint8_t *told; /* page-locked, as much as the table */
    cm_parcel_stream *stream;
    size_t nstreams;
} decoder_buffer;

struct cm_decoder {
    cuda_device *device;
    cm_decoder_limits limits;
    char **array; /* names */
    size_t narrays;
    nvcomp nvcomp;
    size_t nstreams; /* of a parcel, all codecs */
    struct {
        size_t nstreams, most_nbytes; /* that it is for */
        size_t group;                 /* streams that are decoded at once */
    } plan[CM_PARCEL_NCODECS];
    size_t temp_nbytes;
    cm_device_memory *scratch, *temp;
    decoder_buffer *buffer;
    unsigned nbuffers;
};

static uint64_t address_of(const cm_device_memory *m)
{
    return m ? ((const cuda_memory *)m)->address : 0;
}

/* ---- opening -------------------------------------------------------------------------------- */

/*
 * For N streams of at most MOST_NBYTES: as many at once as their temporary memory allows.  *TEMP
 * grows to what that is.
 */
static int plan_codec(cm_decoder *d, cm_parcel_codec codec, size_t n, size_t most_nbytes,
                      size_t *temp_nbytes, cm_error *err)
{
    size_t group = n, temp = 0;
    int rc = CM_OK;
    while (group > 0) {
        rc = cm_nvcomp_temp_size(&d->nvcomp, codec, group, most_nbytes, group * most_nbytes, NULL,
                                 &temp, err);
        if (rc != CM_OK || temp <= TEMP_NBYTES || group == 1)
            break;
        group = (group + 1) / 2;
    }
    d->plan[codec].nstreams = n;
    d->plan[codec].most_nbytes = most_nbytes;
    d->plan[codec].group = group;
    *temp_nbytes = temp > *temp_nbytes ? temp : *temp_nbytes;
    return rc;
}

static int alloc_temp(cm_decoder *d, size_t nbytes, cm_error *err)
{
    cm_device_free(d->temp);
    d->temp = NULL;
    d->temp_nbytes = 0;
    int rc = nbytes > 0 ? cm_device_alloc(&d->device->base, nbytes, &d->temp, err) : CM_OK;
    d->temp_nbytes = rc == CM_OK ? nbytes : 0;
    return rc;
}

static int open_buffer(cm_decoder *d, decoder_buffer *b, cm_error *err)
{
    const size_t nbytes = (d->nstreams + 1) * TABLE_STREAM_NBYTES;
    void *told = NULL;
    b->stream = cm_calloc(d->nstreams + 1, sizeof *b->stream, err);
    if (b->stream == NULL)
        return CM_ENOMEM;
    int rc = cm_device_alloc(&d->device->base, nbytes, &b->table, err);
    if (rc == CM_OK)
        rc = cm_device_alloc_locked(&d->device->base, nbytes, &told, NULL, err);
    b->told = told;
    return rc;
}

static int prepare(cm_decoder *d, const cm_decoder_options *o, cm_error *err)
{
    int rc = cm_cuda_enter(d->device, err);
    if (rc == CM_OK)
        rc = cm_nvcomp_load(o->library, &d->nvcomp, err);
    size_t temp = 0;
    for (int c = 0; c < CM_PARCEL_NCODECS && rc == CM_OK; c++) {
        d->nstreams += d->limits.nstreams[c];
        if (!d->limits.as_they_come)
            rc = plan_codec(d, c, d->limits.nstreams[c], d->limits.stream_nbytes[c], &temp, err);
    }
    if (rc == CM_OK && d->limits.scratch_nbytes > 0)
        rc = cm_device_alloc(&d->device->base, d->limits.scratch_nbytes, &d->scratch, err);
    if (rc == CM_OK)
        rc = alloc_temp(d, temp, err);
    d->buffer = cm_calloc(o->nbuffers, sizeof *d->buffer, rc == CM_OK ? err : NULL);
    if (rc == CM_OK && d->buffer == NULL)
        rc = CM_ENOMEM;
    for (; rc == CM_OK && d->nbuffers < o->nbuffers; d->nbuffers++)
        if ((rc = open_buffer(d, &d->buffer[d->nbuffers], err)) != CM_OK) {
            d->nbuffers++; /* what it has is freed with the others */
            break;
        }
    return rc;
}

static int copy_names(cm_decoder *d, const cm_decoder_options *o, cm_error *err)
{
    d->array = cm_calloc(o->narrays + 1, sizeof *d->array, err);
    if (d->array == NULL)
        return CM_ENOMEM;
    for (; d->narrays < o->narrays; d->narrays++)
        if ((d->array[d->narrays] = cm_strdup(o->array[d->narrays], err)) == NULL)
            return CM_ENOMEM;
    return CM_OK;
}

int cm_decoder_open(const cm_decoder_options *o, cm_decoder **out, cm_error *err)
{
    const cm_device_info *info = cm_device_get_info(o->device);
    *out = NULL;
    if (info->kind != CM_DEVICE_CUDA)
        return cm_fail(err, CM_EUNSUPPORTED, "the device %s does not decode: cuda does",
                       info->text);
    cm_decoder *d = cm_calloc(1, sizeof *d, err);
    if (d == NULL)
        return CM_ENOMEM;
    d->device = (cuda_device *)o->device;
    d->limits = o->limits;
    int rc = copy_names(d, o, err);
    if (rc == CM_OK)
        rc = prepare(d, o, err);
    if (rc != CM_OK) {
        cm_decoder_free(d);
        return rc;
    }
    *out = d;
    return CM_OK;
}

void cm_decoder_free(cm_decoder *d)
{
    if (d == NULL)
        return;
    for (unsigned i = 0; i < d->nbuffers; i++) {
        decoder_buffer *b = &d->buffer[i];
        cm_device_free(b->table);
        cm_device_free_locked(&d->device->base, b->told, (d->nstreams + 1) * TABLE_STREAM_NBYTES);
        free(b->stream);
    }
    free(d->buffer);
    for (size_t i = 0; i < d->narrays; i++)
        free(d->array[i]);
    free(d->array);
    cm_device_free(d->scratch);
    cm_device_free(d->temp);
    cm_nvcomp_unload(&d->nvcomp);
    free(d);
}

const char *cm_decoder_library(const cm_decoder *d)
{
    return d->nvcomp.text;
}

/* ---- one parcel ----------------------------------------------------------------------------- */

typedef struct work {
    cm_decoder *d;
    decoder_buffer *b;
    cuda_stream_handle stream;
    const cm_parcel *h;
    uint64_t parcel, scratch, batch, table; /* addresses */
} work;

static int check(const cm_decoder *d, const void *host, size_t nbytes,
                 const cm_device_memory *parcel, const cm_device_memory *batch, cm_error *err)
{
    const cm_parcel *h = host;
    int rc = cm_parcel_check(host, nbytes, err);
    if (rc != CM_OK)
        return rc;
    bool fits = h->nbytes <= parcel->nbytes && h->batch_nbytes <= batch->nbytes &&
                h->scratch_nbytes <= d->limits.scratch_nbytes;
    for (int c = 0; c < CM_PARCEL_NCODECS; c++)
        fits = fits && h->nstreams[c] <= d->limits.nstreams[c];
    return fits ? CM_OK : cm_fail(err, CM_EINTERNAL, "a parcel is larger than was planned");
}

/* A stream that lies elsewhere would have nvCOMP read or write there. */
static int check_stream(const work *w, const cm_parcel_stream *s, cm_error *err)
{
    const cm_parcel *h = w->h;
    if (s->src % CM_PARCEL_ALIGN || s->src > h->nbytes || s->src_nbytes > h->nbytes - s->src ||
        s->dst > h->scratch_nbytes || s->dst_nbytes > h->scratch_nbytes - s->dst ||
        s->dst_nbytes > w->d->limits.stream_nbytes[s->codec])
        return cm_fail(err, CM_EINTERNAL, "a stream of a parcel lies outside of it");
    return CM_OK;
}

static int send_table(work *w, cm_error *err)
{
    const size_t n = w->b->nstreams;
    uint64_t *told = (uint64_t *)(void *)w->b->told;
    for (size_t i = 0; i < n; i++) {
        const cm_parcel_stream *s = &w->b->stream[i];
        int rc = check_stream(w, s, err);
        if (rc != CM_OK)
            return rc;
        told[TABLE_SRC * n + i] = w->parcel + s->src;
        told[TABLE_SRC_NBYTES * n + i] = s->src_nbytes;
        told[TABLE_ROOM * n + i] = s->dst_nbytes;
        told[TABLE_DST * n + i] = w->scratch + s->dst;
    }
    const cuda_api *api = &w->d->device->api;
    cuda_result rc = api->cuMemcpyHtoDAsync(w->table, told, 8 * TABLE_NTOLD * n, w->stream);
    if (rc == CUDA_OK)
        rc = api->cuMemsetD8Async(w->table + 8 * TABLE_MADE * n, UNWRITTEN, 12 * n, w->stream);
    return rc == CUDA_OK ? CM_OK
                         : cm_cuda_fail(w->d->device, rc, "sending the table of streams", err);
}

/* Streams FROM .. FROM + N - 1, which are of CODEC. */
static int decode_streams(const work *w, cm_parcel_codec codec, size_t from, size_t n,
                          cm_error *err)
{
    static const nvcomp_options options = {.backend = NVCOMP_BACKEND_CUDA};
    const cm_decoder *d = w->d;
    const size_t all = w->b->nstreams;
    const size_t group = d->plan[codec].group;
    for (size_t i = 0; i < n; i += group) {
        const size_t left = n - i, now = left < group ? left : group;
        const uint64_t at = w->table + 8 * (from + i);
        const int status = d->nvcomp.codec[codec].decompress(
            at + 8 * TABLE_SRC * all, at + 8 * TABLE_SRC_NBYTES * all, at + 8 * TABLE_ROOM * all,
            at + 8 * TABLE_MADE * all, now, address_of(d->temp), d->temp_nbytes,
            at + 8 * TABLE_DST * all, options, w->table + 8 * TABLE_STATUS * all + 4 * (from + i),
            w->stream);
        if (status != NVCOMP_OK)
            return cm_nvcomp_fail(&d->nvcomp, status, "decoding", err);
    }
    return CM_OK;
}

static cuda_result copy_boxes(const work *w, uint64_t dst, uint64_t at, uint32_t n)
{
    uint64_t parcel = w->parcel, scratch = w->scratch, table = w->parcel + at, count = n;
    void *parameters[] = {&parcel, &scratch, &dst, &table, &count};
    const unsigned nblocks = n < COPY_BLOCKS ? n : COPY_BLOCKS;
    return n == 0
               ? CUDA_OK
               : w->d->device->api.cuLaunchKernel(w->d->device->copy, nblocks, 1, 1, COPY_THREADS,
                                                  1, 1, 0, w->stream, parameters, NULL);
}

static cuda_result unshuffle(const work *w)
{
    uint64_t parcel = w->parcel, scratch = w->scratch, table = w->parcel + w->h->tiles_at,
             count = w->h->ntiles;
    void *parameters[] = {&parcel, &scratch, &table, &count};
    const unsigned nblocks = count < COPY_BLOCKS ? (unsigned)count : COPY_BLOCKS;
    return count == 0 ? CUDA_OK
                      : w->d->device->api.cuLaunchKernel(w->d->device->unshuffle, nblocks, 1, 1,
                                                         COPY_THREADS, 1, 1, 0, w->stream,
                                                         parameters, NULL);
}

/*
 * Plans anew where streams are more or longer than those before, with room for a few more; what is
 * under way uses the temporary memory until then.
 */
static int fit(const work *w, cm_stream *s, cm_error *err)
{
    cm_decoder *d = w->d;
    const cm_parcel_stream *stream = w->b->stream;
    size_t temp = d->temp_nbytes;
    int rc = CM_OK;
    for (int c = 0; c < CM_PARCEL_NCODECS && rc == CM_OK; stream += w->h->nstreams[c++]) {
        size_t n = w->h->nstreams[c], most = d->plan[c].most_nbytes;
        for (size_t i = 0; i < w->h->nstreams[c]; i++)
            most = stream[i].dst_nbytes > most ? stream[i].dst_nbytes : most;
        if (n <= d->plan[c].nstreams && most <= d->plan[c].most_nbytes)
            continue;
        n = n > d->plan[c].nstreams ? n + n / 4 : d->plan[c].nstreams;
        rc = plan_codec(d, c, n, most, &temp, err);
    }
    if (rc == CM_OK && temp > d->temp_nbytes && (rc = cm_stream_sync(s, err)) == CM_OK)
        rc = alloc_temp(d, temp, err);
    if (rc != CM_OK) /* the next one plans from the beginning */
        memset(d->plan, 0, sizeof d->plan);
    return rc;
}

static int run(work *w, cm_error *err)
{
    const cm_parcel *h = w->h;
    const size_t n = w->b->nstreams;
    size_t from = 0;
    int rc = n > 0 ? send_table(w, err) : CM_OK;
    for (int c = 0; c < CM_PARCEL_NCODECS && rc == CM_OK; c++) {
        rc = decode_streams(w, c, from, h->nstreams[c], err);
        from += h->nstreams[c];
    }
    if (rc != CM_OK)
        return rc;
    cuda_result result = copy_boxes(w, w->scratch, h->first_at, h->nfirst);
    if (result == CUDA_OK)
        result = unshuffle(w);
    if (result == CUDA_OK)
        result = copy_boxes(w, w->batch, h->last_at, h->nlast);
    if (result == CUDA_OK && n > 0)
        result = w->d->device->api.cuMemcpyDtoHAsync(
            w->b->told + 8 * TABLE_MADE * n, w->table + 8 * TABLE_MADE * n, 12 * n, w->stream);
    return result == CUDA_OK ? CM_OK
                             : cm_cuda_fail(w->d->device, result, "putting a batch together", err);
}

int cm_decoder_submit(cm_decoder *d, cm_stream *s, unsigned buffer, const void *host,
                      size_t host_nbytes, const cm_device_memory *parcel, cm_device_memory *batch,
                      cm_error *err)
{
    int rc = check(d, host, host_nbytes, parcel, batch, err);
    if (rc == CM_OK)
        rc = cm_cuda_enter(d->device, err);
    if (rc != CM_OK)
        return rc;
    const cm_parcel *h = host;
    decoder_buffer *b = &d->buffer[buffer];
    work w = {.d = d,
              .b = b,
              .stream = ((cuda_stream *)s)->handle,
              .h = h,
              .parcel = address_of(parcel),
              .scratch = address_of(d->scratch),
              .batch = address_of(batch),
              .table = address_of(b->table)};
    b->nstreams = 0;
    for (int c = 0; c < CM_PARCEL_NCODECS; c++)
        b->nstreams += h->nstreams[c];
    if (b->nstreams > 0) /* the slot may be filled anew before they are checked */
        memcpy(b->stream, (const uint8_t *)host + h->streams_at, b->nstreams * sizeof *b->stream);
    rc = d->limits.as_they_come ? fit(&w, s, err) : CM_OK;
    return rc == CM_OK ? run(&w, err) : rc;
}

/* ---- what came of it ------------------------------------------------------------------------ */

static int fail_stream(const cm_decoder *d, const cm_parcel_stream *s, uint64_t made, int status,
                       cm_error *err)
{
    char where[320], doing[64];
    if (s->array < d->narrays)
        snprintf(where, sizeof where, "array %.200s: chunk number %" PRIu64, d->array[s->array],
                 s->chunk);
    else
        snprintf(where, sizeof where, "array %u: chunk number %" PRIu64, s->array, s->chunk);
    if (status == NVCOMP_OK)
        return cm_fail(err, CM_EFORMAT,
                       "%s: %s made %" PRIu64 " bytes of a stream of %s that has %" PRIu64, where,
                       d->nvcomp.text, made, cm_nvcomp_names[s->codec], s->dst_nbytes);
    snprintf(doing, sizeof doing, "a stream of %s", cm_nvcomp_names[s->codec]);
    (void)cm_nvcomp_fail(&d->nvcomp, status, doing, err);
    cm_error_prefix(err, "%s", where);
    if (err)
        err->status = CM_EFORMAT;
    return CM_EFORMAT;
}

int cm_decoder_check(const cm_decoder *d, unsigned buffer, cm_error *err)
{
    const decoder_buffer *b = &d->buffer[buffer];
    const size_t n = b->nstreams;
    const uint64_t *made = (const uint64_t *)(const void *)b->told + TABLE_MADE * n;
    const int32_t *status = (const int32_t *)(const void *)(b->told + 8 * TABLE_STATUS * n);
    for (size_t i = 0; i < n; i++)
        if (status[i] != NVCOMP_OK || made[i] != b->stream[i].dst_nbytes)
            return fail_stream(d, &b->stream[i], made[i], status[i], err);
    return CM_OK;
}
