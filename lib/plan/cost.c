#include "plan/cost.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/number.h"

/*
 * Decoding: blosc:zstd:2:shuffle of float32 climate fields in chunks of 1 MiB,
 * measured on one core of a 2-core virtual machine, 1.5 to 2.1 GB/s.
 */
#define DECODE 1.5e9
#define DECODE_SOURCE                                                                              \
    "decode 1.5 GB/s: blosc:zstd:2:shuffle on float32 fields, measured on one core"

static const cm_cost_preset PRESETS[] = {
    {"local",
     {.latency = 85e-6,
      .range = 85e-6,
      .bandwidth = 3.2e9,
      .decode = DECODE,
      .concurrency = 1,
      .ratio = 1},
     "85 us and 3.2 GB/s: random read latency and sequential read rate of the NVMe drive Intel DC "
     "P4500 in its Lenovo product guide; one request at a time; " DECODE_SOURCE},
    {"nfs",
     {.latency = 1e-3,
      .range = 250e-6,
      .bandwidth = 524288000,
      .decode = DECODE,
      .concurrency = 1,
      .ratio = 1},
     "500 MiB/s a client and 250 us an operation: Amazon EFS performance page; 1 ms a chunk, since "
     "look-up, open, read and close are an operation each; one request at a time; " DECODE_SOURCE},
    {"s3",
     {.latency = 100e-3,
      .range = 100e-3,
      .bandwidth = 90e6,
      .decode = DECODE,
      .concurrency = 16,
      .ratio = 1},
     "100 to 200 ms to the first byte and 85 to 90 MB/s a request: Amazon S3 performance design "
     "patterns; 16 requests at a time; " DECODE_SOURCE},
};

const cm_cost_preset *cm_cost_preset_at(size_t i)
{
    return i < sizeof PRESETS / sizeof *PRESETS ? &PRESETS[i] : NULL;
}

const cm_cost_preset *cm_cost_preset_find(const char *name)
{
    for (size_t i = 0; cm_cost_preset_at(i) != NULL; i++)
        if (strcmp(PRESETS[i].name, name) == 0)
            return &PRESETS[i];
    return NULL;
}

static bool positive(double x)
{
    return isfinite(x) && x > 0;
}

int cm_cost_model_check(const cm_cost_model *m, cm_error *err)
{
    if (!isfinite(m->latency) || m->latency < 0)
        return cm_fail(err, CM_EINVAL, "`latency` must be 0 or more");
    if (!isfinite(m->range) || m->range < 0 || !isfinite(m->chunk) || m->chunk < 0)
        return cm_fail(err, CM_EINVAL, "the time of a request or a chunk must be 0 or more");
    if (!positive(m->bandwidth) || !positive(m->decode))
        return cm_fail(err, CM_EINVAL, "`bandwidth` and `decode` must be more than 0");
    if (!positive(m->concurrency))
        return cm_fail(err, CM_EINVAL, "`concurrency` must be more than 0");
    if (!isfinite(m->reads) || m->reads < 0)
        return cm_fail(err, CM_EINVAL, "the number of reads at a time must be 0 or more");
    if (!positive(m->ratio))
        return cm_fail(err, CM_EINVAL, "`ratio` must be more than 0");
    return CM_OK;
}

/* Of N requests of one read, those that are under way together. */
static double together(const cm_cost_model *m, double n)
{
    const double most = m->reads > 0 ? m->concurrency / m->reads : m->concurrency;
    return m->reads == 0 ? most : fmax(1, fmin(n, most));
}

double cm_cost_work_waiting(const cm_cost_model *m, const cm_cost_work *w)
{
    return m->latency * w->objects / together(m, w->objects) +
           m->range * w->ranges / together(m, w->ranges);
}

double cm_cost_work_moving(const cm_cost_model *m, const cm_cost_work *w)
{
    return w->decoded / m->ratio / m->bandwidth / together(m, fmax(w->objects, w->ranges));
}

double cm_cost_work_seconds(const cm_cost_model *m, const cm_cost_work *w)
{
    const double stored = w->decoded / m->ratio;

    if (m->reads > 0)
        return cm_cost_work_waiting(m, w) + cm_cost_work_moving(m, w) + m->chunk * w->chunks +
               w->decoded / m->decode;
    return (m->latency * w->objects + m->range * w->ranges + m->chunk * w->chunks +
            stored / m->bandwidth + w->decoded / m->decode) /
           m->concurrency;
}

cm_cost_model cm_cost_rounded(const cm_cost_model *m)
{
    cm_cost_model out = *m;
    const double chunk = m->latency + m->chunk;
    const double byte = 1 / m->ratio / m->bandwidth + 1 / m->decode;
    if (chunk <= 0)
        return out;
    const double scale = exp2(2 * round(log2(chunk / byte) / 2)) * byte / chunk;
    out.latency *= scale;
    out.range *= scale;
    out.chunk *= scale;
    return out;
}

static int too_large(cm_error *err)
{
    return cm_fail(err, CM_EINVAL, "an array of this shape, type and chunks exceeds 2^64 bytes");
}

int cm_footprint_count(unsigned rank, const uint64_t *shape, const uint64_t *chunk,
                       const uint64_t *shard, uint64_t itemsize, double ratio, cm_footprint *out,
                       cm_error *err)
{
    uint64_t per_shard = 1;

    *out = (cm_footprint){
        .nchunks = 1, .nobjects = 1, .array_nbytes = itemsize, .chunk_nbytes = itemsize};
    for (unsigned j = 0; j < rank; j++) {
        uint64_t object = shard != NULL ? shard[j] : chunk[j];
        if (chunk[j] == 0 || object == 0 || object % chunk[j] != 0)
            return cm_fail(err, CM_EINVAL,
                           "dimension %u: shard length %" PRIu64
                           " is not a multiple of the chunk length %" PRIu64,
                           j, object, chunk[j]);
        if (!cm_mul_u64(out->nchunks, cm_div_ceil(shape[j], chunk[j]), &out->nchunks) ||
            !cm_mul_u64(out->nobjects, cm_div_ceil(shape[j], object), &out->nobjects) ||
            !cm_mul_u64(per_shard, object / chunk[j], &per_shard) ||
            !cm_mul_u64(out->array_nbytes, shape[j], &out->array_nbytes) ||
            !cm_mul_u64(out->chunk_nbytes, chunk[j], &out->chunk_nbytes))
            return too_large(err);
    }
    if (!cm_mul_u64(out->nchunks, out->chunk_nbytes, &out->decoded_nbytes))
        return too_large(err);
    out->padding_nbytes = out->decoded_nbytes - out->array_nbytes;
    if (shard != NULL) {
        /* Zarr v3, sharding-indexed: 16 n bytes and a crc32c of 4. */
        uint64_t index;
        if (!cm_mul_u64(per_shard, 16, &index) || index > UINT64_MAX - 4 ||
            !cm_mul_u64(index + 4, out->nobjects, &out->index_nbytes))
            return too_large(err);
    }
    out->stored_nbytes = (double)out->decoded_nbytes / ratio + (double)out->index_nbytes;
    return CM_OK;
}

/* The elements of all chunks of GRID, as they are stored. */
static bool stored_nelem(const cm_grid *grid, uint64_t *nelem)
{
    *nelem = 1;
    for (unsigned j = 0; j < grid->rank; j++) {
        const cm_cuts *cuts = grid->cuts[j];
        uint64_t along;
        if (!cm_mul_u64(grid->count[j], grid->chunk[j], &along))
            return false;
        if (cuts != NULL)
            along = cm_cuts_sum(cuts, 0, cuts->n);
        if (!cm_mul_u64(*nelem, along, nelem))
            return false;
    }
    return true;
}

int cm_footprint_of_grid(const cm_grid *chunks, const cm_grid *objects, uint64_t itemsize,
                         double ratio, cm_footprint *out, cm_error *err)
{
    const bool sharded = memcmp(chunks->chunk, objects->chunk, sizeof chunks->chunk) != 0;
    uint64_t nelem, in_shards, index = 0;

    *out = (cm_footprint){.nchunks = chunks->nchunks, .nobjects = objects->nchunks};
    if (!cm_product_u64(chunks->rank, chunks->shape, &out->array_nbytes) ||
        !cm_mul_u64(out->array_nbytes, itemsize, &out->array_nbytes) ||
        !cm_mul_u64(chunks->chunk_nelem, itemsize, &out->chunk_nbytes) ||
        !stored_nelem(chunks, &nelem) || !cm_mul_u64(nelem, itemsize, &out->decoded_nbytes) ||
        !stored_nelem(objects, &in_shards))
        return too_large(err);
    out->padding_nbytes = out->decoded_nbytes - out->array_nbytes;
    if (sharded && (!cm_mul_u64(in_shards / chunks->chunk_nelem, 16, &index) ||
                    !cm_mul_u64(out->nobjects, 4, &out->index_nbytes) ||
                    index > UINT64_MAX - out->index_nbytes))
        return too_large(err);
    out->index_nbytes += index;
    out->stored_nbytes = (double)out->decoded_nbytes / ratio + (double)out->index_nbytes;
    return CM_OK;
}
