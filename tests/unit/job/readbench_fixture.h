/*
 * What the tests of readbench's verb share: stores and files that they make, whose
 * every element follows from its place, so that what was delivered is compared with
 * arithmetic and not with another way of reading.
 */
#ifndef TESTS_UNIT_JOB_READBENCH_FIXTURE_H
#define TESTS_UNIT_JOB_READBENCH_FIXTURE_H

#include <stdio.h>
#include <unistd.h>

#include <netcdf.h>

#include <chunkmill/readbench.h>

#include "format/zarr/open.h"
#include "format/zarr/writer.h"
#include "job/readbench/readbench.h"
#include "ok.h"

#define MARKER "--worker-of-test-readbench"
#define UNUSED __attribute__((unused))

enum {
    FIELD_RANK = 4,
    FIELD_FILL = -7
};

typedef enum field_type {
    FIELD_INT32,
    FIELD_INT16,
    FIELD_FLOAT32
} field_type;

typedef struct field {
    const char *name;
    const char *dims; /* a letter each; its length is the rank */
    uint64_t shape[FIELD_RANK];
    uint64_t chunk[FIELD_RANK]; /* all 0: none (NetCDF) */
    uint64_t shard[FIELD_RANK]; /* all 0: none */
    field_type type;
    unsigned absent_of; /* every so many chunks one is not stored; 0: none */
    unsigned fill_of;   /* every so many elements one is FIELD_FILL; 0: none */
    unsigned packed;    /* 1: scale_factor 0.5, add_offset 3; 2: and _Unsigned: below 0 are large */
    bool plain;         /* not compressed */
} field;

typedef enum container {
    ZARR_V3,
    ZARR_V2,
    NETCDF4,
    NETCDF_CLASSIC
} container;

static char folder[64];

UNUSED static int make_folder(void **state)
{
    const char *tmp = getenv("TMPDIR");
    (void)state;
    snprintf(folder, sizeof folder, "%s/cm-readbench-XXXXXX",
             tmp != NULL && strlen(tmp) < 40 ? tmp : "/tmp");
    return mkdtemp(folder) != NULL ? 0 : -1;
}

UNUSED static int remove_folder(void **state)
{
    char command[96];
    (void)state;
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* NAME in the folder; freed by the caller. */
UNUSED static char *in_folder(const char *name)
{
    char *path = malloc(strlen(folder) + strlen(name) + 2);
    sprintf(path, "%s/%s", folder, name);
    return path;
}

/* ---- elements ---- */

/* _FillValue again, as in most files, and as many others as there may be. */
enum {
    NMISSING = 5
};
static const int missing_values[NMISSING] = {FIELD_FILL, -32000, -32001, FIELD_FILL, -32002};

static void put_fill_attributes(cm_json *attrs)
{
    cm_json *list = cm_json_array();
    for (size_t i = 0; i < NMISSING; i++)
        OK(cm_json_append(list, cm_json_i64(missing_values[i]), err));
    OK(cm_json_set(attrs, "_FillValue", cm_json_i64(FIELD_FILL), err));
    OK(cm_json_set(attrs, "missing_value", list, err));
}

static unsigned field_rank(const field *f)
{
    return (unsigned)strlen(f->dims);
}

static size_t field_size(const field *f)
{
    return f->type == FIELD_INT16 ? 2 : 4;
}

/* As a number, whatever its type: small enough for each of them to hold it. */
static int field_number(const field *f, const uint64_t *at)
{
    uint64_t index = 0, chunk = 0;
    for (unsigned j = 0; j < field_rank(f); j++) {
        index = index * f->shape[j] + at[j];
        if (f->absent_of > 0)
            chunk = chunk * ((f->shape[j] + f->chunk[j] - 1) / f->chunk[j]) + at[j] / f->chunk[j];
    }
    if (f->absent_of > 0 && chunk % f->absent_of == 0)
        return FIELD_FILL;
    if (f->fill_of > 0 && index % f->fill_of == 0)
        return FIELD_FILL;
    return (int)((index * 2654435761u + (uint64_t)f->name[0]) % 30011);
}

static void put_element(const field *f, const uint64_t *at, uint8_t *out)
{
    const int n = field_number(f, at);
    const int16_t narrow = (int16_t)n;
    const float real = (float)n;
    if (f->type == FIELD_INT16)
        memcpy(out, &narrow, 2);
    else
        memcpy(out, f->type == FIELD_FLOAT32 ? (const void *)&real : (const void *)&n, 4);
}

/* Element I, in C order, of the box at START of SHAPE: where it lies. */
static void place_in(unsigned rank, const uint64_t *start, const uint64_t *shape, uint64_t i,
                     uint64_t *at)
{
    for (unsigned j = rank; j-- > 0;) {
        at[j] = start[j] + i % shape[j];
        i /= shape[j];
    }
}

static uint64_t product(unsigned rank, const uint64_t *n)
{
    uint64_t p = 1;
    for (unsigned j = 0; j < rank; j++)
        p *= n[j];
    return p;
}

/* The box as it lies in F; past the array's end what a chunk holds there. */
static uint8_t *field_box(const field *f, const uint64_t *start, const uint64_t *shape)
{
    const uint64_t n = product(field_rank(f), shape);
    uint8_t *data = calloc(n + 1, 4);
    uint64_t at[FIELD_RANK];
    for (uint64_t i = 0; i < n; i++) {
        bool inside = true;
        place_in(field_rank(f), start, shape, i, at);
        for (unsigned j = 0; j < field_rank(f); j++)
            inside = inside && at[j] < f->shape[j];
        if (inside)
            put_element(f, at, data + i * field_size(f));
    }
    return data;
}

/* ---- Zarr ---- */

static cm_dtype field_dtype(const field *f)
{
    return cm_dtype_make(f->type == FIELD_FLOAT32 ? CM_KIND_FLOAT : CM_KIND_INT,
                         (uint32_t)field_size(f));
}

/* Of the stores that are made next, after `bytes`, CM_CODEC_NONE last; NULL: gzip. */
UNUSED static const cm_codec_spec *made_codecs;
UNUSED static bool made_big_endian; /* their elements */

static void set_codecs(const field *f, cm_zarr_meta *m)
{
    cm_codec_spec inner[4] = {{.id = CM_CODEC_BYTES, .big_endian = made_big_endian},
                              {.id = CM_CODEC_GZIP, .level = 1}};
    size_t ninner = 2;
    if (made_codecs != NULL)
        for (ninner = 1; made_codecs[ninner - 1].id != CM_CODEC_NONE; ninner++)
            inner[ninner] = made_codecs[ninner - 1];
    cm_codec_spec index[2] = {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_CRC32C}};
    cm_shard_spec shard = {.rank = m->rank,
                           .codecs = inner,
                           .ncodecs = f->plain ? 1 : ninner,
                           .index_codecs = index,
                           .nindex_codecs = 2};
    cm_codec_spec sharding = {.id = CM_CODEC_SHARDING, .shard = &shard};
    const bool sharded = m->rank > 0 && f->shard[0] > 0;
    m->ncodecs = sharded ? 1 : shard.ncodecs;
    if (sharded) {
        memcpy(shard.chunk, f->chunk, sizeof f->chunk);
        memcpy(m->chunk, f->shard, sizeof f->shard);
    }
    OK(cm_codec_specs_copy(sharded ? &sharding : inner, m->ncodecs, &m->codecs, err));
}

static void set_meta(const field *f, int zarr_format, cm_zarr_meta *m)
{
    *m = (cm_zarr_meta){.zarr_format = zarr_format,
                        .attrs = cm_json_object(),
                        .dtype = field_dtype(f),
                        .rank = field_rank(f),
                        .has_dim_names = true,
                        .has_fill = true,
                        .separator = zarr_format == 3 ? '/' : '.'};
    const int fill = FIELD_FILL;
    const int16_t narrow = FIELD_FILL;
    const float real = FIELD_FILL;
    m->fill = calloc(1, 4);
    memcpy(m->fill,
           f->type == FIELD_INT16     ? (const void *)&narrow
           : f->type == FIELD_FLOAT32 ? (const void *)&real
                                      : (const void *)&fill,
           field_size(f));
    for (unsigned j = 0; j < m->rank; j++) {
        const char name[2] = {f->dims[j], '\0'};
        m->shape[j] = f->shape[j];
        m->chunk[j] = f->chunk[j];
        m->dim_name[j] = strdup(name);
    }
    set_codecs(f, m);
    if (f->packed) {
        OK(cm_json_set(m->attrs, "scale_factor", cm_json_double(0.5), err));
        OK(cm_json_set(m->attrs, "add_offset", cm_json_double(3), err));
    }
    if (f->packed == 2)
        OK(cm_json_set(m->attrs, "_Unsigned", cm_json_string("true"), err));
    if (f->fill_of > 0)
        put_fill_attributes(m->attrs);
}

static void put_chunks(const field *f, cm_store *store, const cm_zarr_meta *m)
{
    cm_zarr_writer *w;
    cm_codec_ctx *ctx = cm_codec_ctx_create(NULL);
    OK(cm_zarr_writer_create(store, f->name, m, &w, err));
    const cm_grid *grid = cm_zarr_writer_grid(w);
    const cm_chain *chain = cm_zarr_writer_chain(w);
    uint8_t *encoded = malloc(cm_chain_encoded_bound(chain) + 1);
    for (uint64_t k = 0; k < grid->nchunks; k++) {
        uint64_t start[CM_MAX_RANK];
        size_t nbytes;
        if (f->absent_of > 0 && k % f->absent_of == 0) {
            OK(cm_zarr_writer_skip(w, k, err));
            continue;
        }
        cm_grid_coord(grid, k, start);
        for (unsigned j = 0; j < m->rank; j++)
            start[j] *= f->chunk[j];
        uint8_t *data = field_box(f, start, f->chunk);
        OK(cm_chain_encode(chain, ctx, data, encoded, &nbytes, err));
        OK(cm_zarr_writer_put(w, k, encoded, nbytes, err));
        free(data);
    }
    OK(cm_zarr_writer_finish(w, err));
    cm_zarr_writer_free(w);
    cm_codec_ctx_free(ctx);
    free(encoded);
}

static void write_zarr(const char *path, int zarr_format, const field *f, size_t n)
{
    cm_store *store;
    cm_zarr_meta *meta = calloc(n, sizeof *meta);
    cm_zarr_entry *entry = calloc(n, sizeof *entry);
    OK(cm_store_open_dir(path, true, &store, err));
    for (size_t i = 0; i < n; i++) {
        set_meta(&f[i], zarr_format, &meta[i]);
        put_chunks(&f[i], store, &meta[i]);
        entry[i] = (cm_zarr_entry){f[i].name, &meta[i]};
    }
    OK(cm_zarr_hierarchy_write(store, zarr_format, entry, n, true, err));
    cm_store_free(store);
    for (size_t i = 0; i < n; i++)
        cm_zarr_meta_release(&meta[i]);
    free(meta);
    free(entry);
}

/* ---- NetCDF ---- */

#define NC(call) assert_int_equal(call, NC_NOERR)

static void define_variable(int ncid, const field *f, bool classic, int *varid)
{
    static const nc_type types[] = {NC_INT, NC_SHORT, NC_FLOAT};
    int dim[FIELD_RANK];
    size_t chunk[FIELD_RANK];
    for (unsigned j = 0; j < field_rank(f); j++) {
        const char name[2] = {f->dims[j], '\0'};
        if (nc_inq_dimid(ncid, name, &dim[j]) != NC_NOERR)
            NC(nc_def_dim(ncid, name, f->shape[j], &dim[j]));
        chunk[j] = f->chunk[j];
    }
    NC(nc_def_var(ncid, f->name, types[f->type], (int)field_rank(f), dim, varid));
    if (!classic && field_rank(f) > 0 && f->chunk[0] > 0) {
        NC(nc_def_var_chunking(ncid, *varid, NC_CHUNKED, chunk));
        if (!f->plain)
            NC(nc_def_var_deflate(ncid, *varid, 1, 1, 1));
    }
    if (f->packed) {
        const double scale = 0.5, offset = 3;
        NC(nc_put_att_double(ncid, *varid, "scale_factor", NC_DOUBLE, 1, &scale));
        NC(nc_put_att_double(ncid, *varid, "add_offset", NC_DOUBLE, 1, &offset));
    }
    if (f->packed == 2)
        NC(nc_put_att_text(ncid, *varid, "_Unsigned", 4, "true"));
    if (f->fill_of > 0) {
        NC(nc_put_att_int(ncid, *varid, "_FillValue", types[f->type], 1, missing_values));
        NC(nc_put_att_int(ncid, *varid, "missing_value", types[f->type], NMISSING, missing_values));
    }
}

static void write_netcdf(const char *path, bool classic, const field *f, size_t n)
{
    static const uint64_t origin[FIELD_RANK] = {0};
    int ncid, varid[16];
    NC(nc_create(path, classic ? NC_64BIT_OFFSET : NC_NETCDF4, &ncid));
    for (size_t i = 0; i < n; i++)
        define_variable(ncid, &f[i], classic, &varid[i]);
    NC(nc_enddef(ncid));
    for (size_t i = 0; i < n; i++) {
        uint8_t *data = field_box(&f[i], origin, f[i].shape);
        NC(nc_put_var(ncid, varid[i], data));
        free(data);
    }
    NC(nc_close(ncid));
}

/* Its path, freed by the caller. */
UNUSED static char *make_store(const char *name, container c, const field *f, size_t n)
{
    char *path = in_folder(name);
    if (c == ZARR_V3 || c == ZARR_V2)
        write_zarr(path, c == ZARR_V3 ? 3 : 2, f, n);
    else
        write_netcdf(path, c == NETCDF_CLASSIC, f, n);
    return path;
}

/* ---- running ---- */

static const char *const self[] = {"/proc/self/exe", MARKER, NULL};
static struct cm_readbench_hook quick = {.no_probe = true};

/* Steps that take no time, and no probing. */
UNUSED static cm_readbench_options quick_options(const char *const *store, size_t nstores)
{
    cm_readbench_options o;
    cm_readbench_options_init(&o);
    o.store = (cm_texts){store, nstores};
    o.step_forward = 0;
    o.workers = 2;
    o.batch = 4;
    o.self = self;
    o.hook = &quick;
    return o;
}

/* Runs to the end, or fails the test with what went wrong. */
UNUSED static void run(const cm_readbench_options *o, cm_readbench_report *r, const char *what)
{
    cm_error err = {0};
    if (cm_readbench(o, NULL, r, &err) != CM_OK)
        fail_msg("%s: %s", what, err.text);
}

typedef struct kind {
    const char *name, *mode, *context;
} kind;

UNUSED static const kind kinds[] = {{"sync", "sync", NULL},
                                    {"threads", "threads", NULL},
                                    {"fork", "processes", "fork"},
                                    {"spawn", "processes", "spawn"},
                                    {"forkserver", "processes", "forkserver"}};
enum {
    NKINDS = 5,
    FIRST_BEGUN = 3 /* those whose processes begin anew, which takes longer */
};

UNUSED static void set_kind(cm_readbench_options *o, const kind *k)
{
    o->mode = k->mode;
    o->context = k->context;
    if (strcmp(k->mode, "sync") == 0)
        o->workers = 0;
}

/* ---- what was delivered ---- */

/* CRC-32C, bit by bit. */
static uint32_t slow_crc32c(const uint8_t *data, size_t n)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= data[i];
        for (int k = 0; k < 8; k++)
            crc = (crc >> 1) ^ (crc & 1 ? UINT32_C(0x82f63b78) : 0);
    }
    return ~crc;
}

static const field *field_named(const field *f, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(f[i].name, name) == 0)
            return &f[i];
    fail_msg("there is no variable %s", name);
    return NULL;
}

/* Every sample's bytes are those that lie at its place. */
UNUSED static void check_bytes(const cm_readbench_session *s, const field *f, size_t n,
                               const char *what)
{
    for (size_t i = 0; i < s->nlogged; i++) {
        const cm_readbench_sample *x = &s->logged[i];
        assert_true(x->part < s->nparts);
        const field *v = field_named(f, n, s->part[x->part].variable);
        uint8_t *data = field_box(v, x->start, x->shape);
        const uint64_t nelem = product(field_rank(v), x->shape);
        if (slow_crc32c(data, nelem * field_size(v)) != x->crc32c)
            fail_msg("%s: epoch %u, rank %u, batch %u, sample %u, %s: other bytes", what, x->epoch,
                     x->rank, x->batch, x->place, v->name);
        free(data);
    }
}

/* Each epoch delivers each of its NSAMPLES in every part, once. */
UNUSED static void check_complete(const cm_readbench_session *s, uint64_t nepochs,
                                  uint64_t nsamples, const char *what)
{
    size_t nparts = 0;
    for (size_t p = 0; p < s->nparts; p++)
        nparts += !s->part[p].is_static;
    if (s->nlogged != nepochs * nsamples * nparts)
        fail_msg("%s: %zu parts of samples, not %d", what, s->nlogged,
                 (int)(nepochs * nsamples * nparts));
    bool *seen = calloc(s->nlogged + 1, sizeof *seen);
    for (size_t i = 0; i < s->nlogged; i++) {
        const cm_readbench_sample *x = &s->logged[i];
        assert_true(x->number < nsamples && x->epoch < nepochs && x->part < nparts);
        bool *one = &seen[(x->epoch * nsamples + x->number) * nparts + x->part];
        if (*one)
            fail_msg("%s: sample %d came twice", what, (int)x->number);
        *one = true;
    }
    free(seen);
}

UNUSED static bool has_finding(const cm_readbench_session *s, const char *rule)
{
    for (size_t i = 0; i < s->nfindings; i++)
        if (strcmp(s->finding[i].rule, rule) == 0)
            return true;
    return false;
}

/* For main: what this program does when it was begun as a worker. */
UNUSED static int serve_if_worker(int argc, char **argv)
{
    cm_error err = {0};
    if (argc != 3 || strcmp(argv[1], MARKER) != 0)
        return -1;
    return cm_readbench_serve(atoi(argv[2]), &err) == CM_OK ? 0 : 1;
}

#endif
