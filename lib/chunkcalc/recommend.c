#include "chunkcalc/recommend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/number.h"
#include "format/zarr/meta.h"
#include "plan/meetings.h"
#include "plan/rules.h"
#include "plan/samples.h"
#include "store/open.h"

enum {
    POWERS = 8,   /* 8 to 1024, in one and two dimensions */
    MULTIPLES = 5 /* a quarter to four times the sample, above */
};

#define WORTH_NBYTES     (4 << 20) /* a smaller array is read in no time whatever its chunks are */
#define MOST_NS          UINT64_C(2000000000) /* of measuring codecs, all arrays together */
#define SHARE            8    /* of the memory that a run has, measuring takes 1 in 8 */
#define REQUESTS_SECONDS 0.75 /* of asking a store behind a network, and as much for elements */

enum {
    FROM_MEMORY,
    FROM_DISK,
    BY_REQUESTS
};

typedef struct cm_suit_known { /* what one array told */
    cm_dtype dtype;
    uint64_t codecs; /* digest */
    double nbytes;   /* of the array */
    cm_codec_costs costs;
} cm_suit_known;

/* ---- costs --------------------------------------------------------------------------------- */

static void use_codec(const cm_codec_costs *c, cm_suit_costs *out)
{
    if (c->nchunks == 0)
        return;
    cm_cost_model *m = &out->cost;
    out->decode = true;
    out->nchunks = c->nchunks;
    m->decode = c->byte > 0 ? 1 / c->byte : m->decode;
    m->ratio = c->stored_byte > 0 ? 1 / c->stored_byte : 1;
    /* The stored overhead of small chunks is transferred with each of them. */
    m->chunk = c->chunk + c->stored / m->bandwidth;
}

static void use_storage(const cm_storage_costs *s, cm_suit_costs *out)
{
    if (s->ntries == 0)
        return;
    out->storage = true;
    out->cost.latency = s->open + s->request;
    out->cost.range = s->request;
    out->bandwidth = s->byte > 0;
    if (out->bandwidth)
        out->cost.bandwidth = 1 / s->byte;
}

static void describe(const char *source, cm_suit_costs *out)
{
    const char *whose = out->other ? "of an array of the same type and codec" : "of its elements";
    const char *where = out->cold ? "from the disk" : "in the page cache, where the array has room";

    const char *decode = strstr(source, "; decode "); /* which was measured */

    if (out->storage && out->remote)
        snprintf(out->text, sizeof out->text,
                 "measured: %.3g ms a request to this store%s; %s%s; %g %s at a time, from "
                 "the preset",
                 out->cost.latency * 1e3,
                 out->bandwidth ? " and its rate"
                                : ", whose objects are too small to tell the rate",
                 out->decode ? "ratio and decoding on chunks " : "decoding is the preset's",
                 out->decode ? whose : "", out->cost.concurrency,
                 cm_of_mean(out->cost.concurrency, "request", "requests"));
    else if (out->storage && out->decode)
        snprintf(out->text, sizeof out->text,
                 "measured: storage on files of the source, %s; ratio and decoding on %llu "
                 "%s %s",
                 where, (unsigned long long)out->nchunks,
                 cm_of_count(out->nchunks, "chunk", "chunks"), whose);
    else if (out->decode)
        snprintf(out->text, sizeof out->text, "%.*s; ratio and decoding measured on %llu %s %s",
                 decode != NULL ? (int)(decode - source) : 150, source,
                 (unsigned long long)out->nchunks, cm_of_count(out->nchunks, "chunk", "chunks"),
                 whose);
    else
        snprintf(out->text, sizeof out->text, "%s%s%s", source,
                 out->refused[0] != '\0' ? "; decoding is not measured: " : "", out->refused);
}

/* Decoded; 0 where there is no array. */
static double nbytes_of(const cm_suit_source *s)
{
    uint64_t nelem;
    if (s == NULL || s->array == NULL || !cm_product_u64(s->array->rank, s->array->shape, &nelem))
        return 0;
    return (double)nelem * s->array->dtype.nbytes;
}

bool cm_suit_measured(const cm_suit_costs *costs)
{
    return costs->storage || costs->decode;
}

void cm_suit_run_init(cm_suit_run *run, uint64_t memory)
{
    *run = (cm_suit_run){.memory = memory > 0 ? memory : cm_memory_available() / 2};
}

void cm_suit_run_release(cm_suit_run *run)
{
    free(run->known);
    run->known = NULL;
    run->nknown = 0;
}

/* Earlier measurements with this type and these codecs, on the array nearest in size; or NULL. */
static const cm_codec_costs *nearest(const cm_suit_run *run, const cm_suit_known *like)
{
    const cm_suit_known *best = NULL;
    for (size_t i = 0; i < run->nknown; i++) {
        const cm_suit_known *k = &run->known[i];
        if (k->codecs == like->codecs && cm_dtype_equal(&k->dtype, &like->dtype) &&
            (best == NULL ||
             fabs(log(k->nbytes / like->nbytes)) < fabs(log(best->nbytes / like->nbytes))))
            best = k;
    }
    return best != NULL ? &best->costs : NULL;
}

static int remember(cm_suit_run *run, const cm_suit_known *one, cm_error *err)
{
    int rc = CM_GROW(run->known, run->nknown, err);
    if (rc == CM_OK)
        run->known[run->nknown++] = *one;
    return rc;
}

static uint64_t mix(uint64_t h, uint64_t value)
{
    return (h ^ value) * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

/* Of what says how fast a codec is. */
static uint64_t digest_codecs(const cm_codec_spec *spec, size_t n)
{
    uint64_t h = n;
    for (size_t i = 0; i < n; i++) {
        const cm_codec_spec *s = &spec[i];
        h = mix(mix(h, (uint64_t)s->id), (uint64_t)s->level);
        h = mix(mix(h, s->keepbits), s->elementsize);
        h = mix(h, (uint64_t)s->blosc.shuffle);
        for (size_t k = 0; k < sizeof s->blosc.cname && s->blosc.cname[k] != '\0'; k++)
            h = mix(h, (uint8_t)s->blosc.cname[k]);
        if (s->shard != NULL)
            h = mix(h, digest_codecs(s->shard->codecs, s->shard->ncodecs));
    }
    return h;
}

/* REQUESTS: of elements at most; 0: any number. */
static int measure_codec(cm_suit_run *run, const cm_suit_source *s, double nbytes,
                         uint64_t requests, cm_suit_costs *out, cm_codec_costs *costs,
                         cm_error *err)
{
    const cm_cost_limits limits = {.nbytes = run->memory / SHARE > 0 ? run->memory / SHARE : 1,
                                   .requests = requests};
    const uint64_t start = cm_now_ns();
    cm_suit_known one = {
        .dtype = s->array->dtype, .codecs = digest_codecs(s->codecs, s->ncodecs), .nbytes = nbytes};
    const cm_codec_costs *known = run->spent_ns < MOST_NS ? NULL : nearest(run, &one);
    if (known != NULL) {
        *costs = *known;
        out->other = true;
        return CM_OK;
    }
    cm_error why = {0};
    int rc = cm_cost_probe_codec(s->array, s->codecs, s->ncodecs, &limits, &one.costs, &why);
    run->spent_ns += cm_now_ns() - start;
    if (rc == CM_ENOMEM)
        return cm_fail(err, rc, "no memory to measure decoding");
    *costs = rc == CM_OK ? one.costs : (cm_codec_costs){0};
    snprintf(out->refused, sizeof out->refused, "%.255s", rc != CM_OK ? why.text : "");
    if (costs->nchunks > 0)
        return remember(run, &one, err);
    out->needs = costs->needs > limits.nbytes ? costs->needs : 0;
    return CM_OK;
}

/* Keys of chunks, or shards, all over the array. */
static bool next_key(void *context, unsigned i, char *key)
{
    const cm_variable *v = context;
    const cm_zarr_meta *m = v->words;
    char below[CM_CHUNK_KEY_SIZE];
    uint64_t coord[CM_MAX_RANK], n = 1;
    for (unsigned j = 0; j < m->rank; j++)
        n = cm_mul_sat(n, cm_div_ceil(m->shape[j], m->chunk[j]));
    if (i >= n || n == UINT64_MAX)
        return false;
    uint64_t number = cm_permute(n, 0x9e3779b97f4a7c15, i);
    for (unsigned j = m->rank; j-- > 0;) {
        const uint64_t count = cm_div_ceil(m->shape[j], m->chunk[j]);
        coord[j] = number % count;
        number /= count;
    }
    const int length =
        snprintf(key, CM_COST_KEY_SIZE, "%s%s%s", v->name, v->name[0] != '\0' ? "/" : "",
                 cm_zarr_chunk_key(m, coord, below, sizeof below));
    return length > 0 && length < CM_COST_KEY_SIZE;
}

static int measure_storage(cm_suit_run *run, const cm_suit_source *s, int which,
                           cm_storage_costs *out, cm_error *err)
{
    const uint64_t start = cm_now_ns();
    int rc = CM_OK;
    if (!run->has_storage[which] && which == BY_REQUESTS)
        rc = cm_cost_probe_store(s->store, next_key, (void *)s->objects, REQUESTS_SECONDS,
                                 &run->storage[which], err);
    else if (!run->has_storage[which])
        rc = cm_cost_probe_files(s->path, which == FROM_DISK, &run->storage[which], err);
    run->has_storage[which] = rc == CM_OK;
    run->spent_ns += which == BY_REQUESTS ? cm_now_ns() - start : 0;
    *out = run->storage[which];
    return rc;
}

/* A store behind a network, which tells how many requests elements may take. */
static int measure_far(cm_suit_run *run, const cm_suit_source *s, double nbytes, cm_suit_costs *out,
                       cm_error *err)
{
    cm_storage_costs storage;
    cm_codec_costs codec = {0};
    int rc = measure_storage(run, s, BY_REQUESTS, &storage, err);
    if (rc != CM_OK || storage.ntries == 0)
        return rc;
    use_storage(&storage, out);
    out->remote = true;
    const double fit = REQUESTS_SECONDS / (out->cost.latency + 1e-6);
    rc = measure_codec(run, s, nbytes, fit < 1 ? 1 : (uint64_t)fit, out, &codec, err);
    use_codec(&codec, out);
    return rc;
}

static int measure_here(cm_suit_run *run, const cm_suit_source *s, bool has_files, double nbytes,
                        cm_suit_costs *out, cm_error *err)
{
    cm_codec_costs codec = {0};
    cm_storage_costs storage = {0};
    int rc = measure_codec(run, s, nbytes, 0, out, &codec, err);
    /* A request of microseconds beside a preset's codec, whose beginning costs nothing, would make
     * tiny chunks: both are measured or neither. */
    if (rc == CM_OK && codec.nchunks > 0 && has_files) {
        const double ratio = codec.stored_byte > 0 ? codec.stored_byte : 1;
        out->cold = s->cold || nbytes * ratio > (double)cm_memory_available() / 2;
        rc = measure_storage(run, s, out->cold ? FROM_DISK : FROM_MEMORY, &storage, err);
    }
    if (rc == CM_OK)
        use_storage(&storage, out);
    use_codec(&codec, out);
    return rc;
}

int cm_suit_measure(cm_suit_run *run, const cm_suit_source *source, const char *preset,
                    cm_suit_costs *out, cm_error *err)
{
    const cm_cost_preset *p = cm_cost_preset_find(preset);
    int rc = CM_OK;

    if (p == NULL)
        return cm_fail(err, CM_EINVAL, "`storage` %s: there are local, nfs and s3", preset);
    *out = (cm_suit_costs){.cost = p->model};
    const double nbytes = nbytes_of(source);
    const bool far = nbytes > 0 && source->store != NULL && source->objects != NULL &&
                     source->objects->words != NULL && cm_store_is_remote(source->store);
    const bool has_files = nbytes > 0 && source->path != NULL && strcmp(preset, "local") == 0 &&
                           !cm_store_url_is_remote(source->path);
    if (nbytes >= WORTH_NBYTES || (nbytes > 0 && source->any_size))
        rc = far ? measure_far(run, source, nbytes, out, err)
                 : measure_here(run, source, has_files, nbytes, out, err);
    if (rc == CM_OK)
        describe(p->source, out);
    return rc;
}

uint64_t cm_suit_least(bool measured)
{
    return measured ? CM_SUIT_LEAST : CM_DEFAULT_MIN_NBYTES;
}

/* ---- candidates ---------------------------------------------------------------------------- */

bool cm_suit_candidate(unsigned rank, const uint64_t *shape, uint64_t itemsize,
                       const uint64_t *sample, unsigned i, uint64_t *chunk, bool *listed)
{
    const bool powers = rank <= 2;
    double nbytes = (double)itemsize;

    if (i >= (powers ? POWERS : MULTIPLES))
        return false;
    for (unsigned j = 0; j < rank; j++) {
        chunk[j] = powers  ? UINT64_C(8) << i
                   : i < 2 ? cm_div_ceil(sample[j], UINT64_C(4) >> i)
                           : cm_mul_sat(sample[j], UINT64_C(1) << (i - 2));
        if (shape[j] != 0 && chunk[j] > shape[j])
            chunk[j] = shape[j];
        nbytes *= (double)chunk[j];
    }
    *listed = powers || nbytes <= (double)CM_DEFAULT_MAX_NBYTES || i == 0;
    return true;
}

typedef struct starts {
    uint64_t (*chunk)[CM_MAX_RANK];
    size_t n;
} starts;

static int collect(const cm_optimise_spec *spec, starts *s, cm_error *err)
{
    bool listed;

    s->chunk = cm_calloc(spec->nextra + POWERS + 2, sizeof *s->chunk, err);
    if (s->chunk == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < spec->nextra; i++)
        memcpy(s->chunk[s->n++], spec->extra[i], sizeof *s->chunk);
    for (unsigned i = 0; cm_suit_candidate(spec->rank, spec->shape, spec->itemsize,
                                           spec->read[0].sample, i, s->chunk[s->n], &listed);
         i++)
        s->n += listed;
    return CM_OK;
}

static void set_bounds(cm_optimise_spec *spec, const starts *s, bool measured)
{
    uint64_t low = CM_DEFAULT_MIN_NBYTES, high = CM_DEFAULT_MAX_NBYTES;

    for (size_t i = 0; i < s->n; i++) {
        uint64_t nbytes = spec->itemsize;
        for (unsigned j = 0; j < spec->rank; j++)
            if (!cm_mul_u64(nbytes, s->chunk[i][j], &nbytes))
                nbytes = UINT64_MAX;
        low = nbytes < low ? nbytes : low;
        high = nbytes > high && nbytes < UINT64_MAX ? nbytes : high;
    }
    const uint64_t floor = cm_suit_least(measured);
    low = low < floor ? floor : low;
    const uint64_t least = spec->min_nbytes, most = spec->max_nbytes;
    spec->min_nbytes = least != 0 ? least : low;
    spec->max_nbytes = most != 0 ? most : high;
    if (least == 0 && spec->min_nbytes > spec->max_nbytes)
        spec->min_nbytes = spec->max_nbytes;
    if (most == 0 && spec->max_nbytes < spec->min_nbytes)
        spec->max_nbytes = spec->min_nbytes;
}

/* Evaluates a choice made with other costs by those of SPEC. */
static int evaluate(const cm_optimise_spec *spec, cm_optimum *o, cm_error *err)
{
    int rc = CM_OK;

    for (size_t r = 0; r < spec->nreads; r++)
        o->own_seconds[r] = cm_optimise_read_cost(spec, r, o->own_chunk[r]).seconds;
    const cm_choice best = o->best;
    rc = cm_optimise_evaluate(spec, o->own_seconds, best.chunk, &o->best, err);
    for (size_t i = 0; i < o->nfront && rc == CM_OK; i++) {
        const cm_choice one = o->front[i];
        rc = cm_optimise_evaluate(spec, o->own_seconds, one.chunk, &o->front[i], err);
    }
    return rc;
}

int cm_suit_optimise(cm_optimise_spec *spec, bool measured, const uint64_t *present,
                     cm_optimum *out, cm_error *err)
{
    cm_optimise_spec search;
    starts s = {.n = 0};

    memset(out, 0, sizeof *out);
    int rc = collect(spec, &s, err);
    if (rc != CM_OK)
        return rc;
    set_bounds(spec, &s, measured);
    if (present != NULL)
        memcpy(s.chunk[s.n++], present, spec->rank * sizeof *present);
    if (spec->rank > 0 && spec->shape[0] != 0 &&
        cm_rule_rew(spec->rank, spec->shape, spec->itemsize, spec->max_nbytes, s.chunk[s.n],
                    NULL) == CM_OK)
        s.n++;
    search = *spec;
    search.extra = (const uint64_t(*)[CM_MAX_RANK])s.chunk;
    search.nextra = s.n;
    if (measured)
        search.cost = cm_cost_rounded(&spec->cost);
    rc = cm_optimise(&search, out, err);
    if (rc == CM_OK && measured)
        rc = evaluate(spec, out, err);
    free(s.chunk);
    return rc;
}
