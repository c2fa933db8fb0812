/*
 * rechunk's verb on small stores in a temporary folder: over random geometries
 * the target equals the source, by digest, and what was counted is what was
 * planned.
 */
#include <stdio.h>
#include <unistd.h>

#include <chunkmill/digest.h>
#include <chunkmill/transform.h>

#include "../fixtures/ok.h"
#include "base/budget.h"
#include "base/clock.h"
#include "format/zarr/open.h"
#include "format/zarr/writer.h"

static char folder[] = "/tmp/chunkmill-rechunk-XXXXXX";
static char source[64], target[64];
static uint64_t seed;

static uint64_t below(uint64_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (seed >> 33) % n;
}

static void wipe(const char *path)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", path);
    assert_int_equal(system(command), 0);
}

static int make_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(source, sizeof(source), "%s/source.zarr", folder);
    snprintf(target, sizeof(target), "%s/target.zarr", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    wipe(folder);
    return 0;
}

/* ---- a source ---- */

typedef struct made {
    cm_zarr_meta meta;
    unsigned absent_of; /* every so many chunks one is left out; 0: none */
} made;

/* Rank, shape, chunks, order, byte order and codec by chance. */
static void random_meta(cm_zarr_meta *m, int zarr_format, unsigned rank)
{
    static const uint64_t longest[] = {1, 60, 24, 14, 8, 5, 4};
    cm_codec_spec spec[3] = {{0}};
    size_t n = 0;
    *m = (cm_zarr_meta){.zarr_format = zarr_format,
                        .attrs = cm_json_object(),
                        .dtype = cm_dtype_make(CM_KIND_INT, 4),
                        .rank = rank,
                        .has_fill = true,
                        .separator = zarr_format == 3 ? '/' : '.'};
    m->fill = calloc(1, 4);
    m->fill[0] = 7;
    for (unsigned j = 0; j < rank; j++) {
        m->shape[j] = 1 + below(longest[rank]);
        m->chunk[j] = 1 + below(m->shape[j] + 2);
    }
    if (rank > 1 && below(2)) {
        spec[n].id = CM_CODEC_TRANSPOSE;
        for (unsigned j = 0; j < rank; j++)
            spec[n].order[j] = rank - 1 - j;
        n++;
    }
    spec[n++] = (cm_codec_spec){.id = CM_CODEC_BYTES, .big_endian = below(2) != 0};
    if (below(2))
        spec[n++] = (cm_codec_spec){.id = CM_CODEC_GZIP, .level = 1};
    OK(cm_codec_specs_copy(spec, n, &m->codecs, err));
    m->ncodecs = n;
}

static void write_chunks(cm_store *store, const char *path, const made *a)
{
    cm_zarr_writer *w;
    cm_codec_ctx *ctx = cm_codec_ctx_create(NULL);
    OK(cm_zarr_writer_create(store, path, &a->meta, &w, err));
    const cm_grid *grid = cm_zarr_writer_grid(w);
    const cm_chain *chain = cm_zarr_writer_chain(w);
    int32_t *data = calloc(grid->chunk_nelem, 4);
    uint8_t *encoded = malloc(cm_chain_encoded_bound(chain) + 1);
    for (uint64_t k = 0; k < grid->nchunks; k++) {
        size_t nbytes;
        if (a->absent_of > 0 && k % a->absent_of == 0) {
            OK(cm_zarr_writer_skip(w, k, err));
            continue;
        }
        for (uint64_t i = 0; i < grid->chunk_nelem; i++)
            data[i] = (int32_t)(k * 1000003 + i * 7919);
        OK(cm_chain_encode(chain, ctx, data, encoded, &nbytes, err));
        OK(cm_zarr_writer_put(w, k, encoded, nbytes, err));
    }
    OK(cm_zarr_writer_finish(w, err));
    cm_zarr_writer_free(w);
    cm_codec_ctx_free(ctx);
    free(data);
    free(encoded);
}

static void make_source(const made *a)
{
    cm_store *store;
    cm_zarr_entry entry = {"g/a", &a->meta};
    wipe(source);
    OK(cm_store_open_dir(source, true, &store, err));
    write_chunks(store, "g/a", a);
    OK(cm_zarr_hierarchy_write(store, a->meta.zarr_format, &entry, 1, false, err));
    cm_store_free(store);
}

static void shape_text(const cm_zarr_meta *m, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = '\0';
    for (unsigned j = 0; j < m->rank; j++)
        used += (size_t)snprintf(buf + used, size - used, "%s%d", j > 0 ? "x" : "",
                                 (int)(1 + below(m->shape[j])));
}

typedef struct digests {
    char text[40];
    unsigned n;
} digests;

static int take_digest(void *context, const cm_digest_row *row, cm_error *err)
{
    digests *d = context;
    (void)err;
    snprintf(d->text, sizeof(d->text), "%s", row->digest);
    d->n++;
    return CM_OK;
}

static void check_counts(const cm_transform_variable *a)
{
    assert_int_equal(a->planned.chunk_reads, a->counted.chunk_reads);
    assert_int_equal(a->planned.chunk_decodes, a->counted.chunk_decodes);
    assert_int_equal(a->planned.chunk_writes, a->counted.chunk_writes);
    assert_int_equal(a->planned.element_nbytes_read, a->counted.element_nbytes_read);
    assert_int_equal(a->planned.element_nbytes_written, a->counted.element_nbytes_written);
    assert_int_equal(a->planned.scratch_nbytes, a->counted.scratch_nbytes);
}

/* Rechunks source to target; the plan that was taken, or -1 where the memory was too little. */
static int rechunk(cm_transform_options *o)
{
    cm_transform_report report;
    cm_error failure = {0};
    digests before = {{0}, 0}, after = {{0}, 0};
    o->source = source;
    o->target = target;
    o->verify = CM_VERIFY_FULL;
    wipe(target);
    int rc = cm_transform(o, &report, &failure);
    if (rc == CM_EBUDGET) {
        cm_transform_report_release(&report);
        assert_int_not_equal(access(target, F_OK), 0);
        return -1;
    }
    if (rc != CM_OK)
        fail_msg("%s", failure.text);
    assert_int_equal(report.nvariables, 1);
    check_counts(&report.variable[0]);
    assert_true(report.variable[0].planned_nbytes >= report.variable[0].bound_nbytes);
    OK(cm_digest_store(source, NULL, 1, 0, NULL, take_digest, &before, err));
    OK(cm_digest_store(target, NULL, 2, 0, NULL, take_digest, &after, err));
    assert_string_equal(before.text, after.text);
    assert_string_equal(report.variable[0].digest, after.text);
    int plan = (int)report.variable[0].plan;
    cm_transform_report_release(&report);
    return plan;
}

/* ---- the tests ---- */

static void any_geometry(void **state)
{
    (void)state;
    unsigned taken[5] = {0};
    seed = 3;
    for (int i = 0; i < 100; i++) {
        made a = {.absent_of = below(3) == 0 ? 2 + (unsigned)below(3) : 0};
        char chunks[64], shards[64];
        const char *const chunk_list[] = {chunks}, *const codec_list[] = {"zstd:1"},
                          *const shard_list[] = {shards};
        cm_transform_options o;
        random_meta(&a.meta, 2 + (int)below(2), (unsigned)below(7));
        make_source(&a);
        shape_text(&a.meta, chunks, sizeof(chunks));
        cm_transform_options_init(&o, CM_DEFAULTS_KEEP);
        o.nthreads = 1 + (unsigned)below(2);
        o.zarr_format = below(2) ? 0 : 2 + (int)below(2);
        if (a.meta.rank > 1 && below(5) > 0)
            o.chunks = (cm_texts){chunk_list, 1};
        if (below(2))
            o.codec = (cm_texts){codec_list, 1};
        snprintf(shards, sizeof(shards), "auto:%d", 64 << below(4));
        if (a.meta.rank > 1 && below(3) == 0 &&
            (o.zarr_format == 3 || (o.zarr_format == 0 && a.meta.zarr_format == 3)))
            o.shards = (cm_texts){shard_list, 1};
        taken[rechunk(&o)]++;
        cm_zarr_meta_release(&a.meta);
    }
    assert_true(taken[CM_PLAN_COPY] > 0 && taken[CM_PLAN_SWEEP] > 0);
}

/* Every plan, by giving just so much memory. */
static void small_memory(void **state)
{
    (void)state;
    unsigned taken[5] = {0};
    seed = 5;
    for (int i = 0; i < 12; i++) {
        made a = {.absent_of = below(4) == 0 ? 3 : 0};
        char chunks[64];
        const char *const chunk_list[] = {chunks};
        cm_transform_options o;
        random_meta(&a.meta, 3, 2 + (unsigned)below(2));
        /* Maps to series, on the whole: long target chunks across many source chunks. */
        a.meta.shape[0] = 40 + below(20);
        a.meta.chunk[0] = 1 + below(4);
        a.meta.shape[1] = 200 + below(100);
        a.meta.chunk[1] = a.meta.shape[1] - below(10);
        if (a.meta.rank == 3)
            a.meta.shape[2] = a.meta.chunk[2] = 3;
        make_source(&a);
        snprintf(chunks, sizeof(chunks), "%dx%d%s", (int)(a.meta.shape[0] - below(20)),
                 1 + (int)below(3), a.meta.rank == 3 ? "x2" : "");
        cm_transform_options_init(&o, CM_DEFAULTS_KEEP);
        o.nthreads = 1;
        o.chunks = (cm_texts){chunk_list, 1};
        int plan = -1;
        uint64_t spare = i % 2 ? below(1 << 20) : 0;
        for (uint64_t more = CM_BUDGET_RESERVE + CM_BUDGET_PER_THREAD; plan < 0; more += 40 << 10) {
            o.memory = cm_peak_rss() + more + spare;
            plan = rechunk(&o);
        }
        taken[plan]++;
        cm_zarr_meta_release(&a.meta);
    }
    if (taken[CM_PLAN_SPILL] == 0)
        fail_msg("%u sweeps, %u columns, %u spills, %u reads again", taken[CM_PLAN_SWEEP],
                 taken[CM_PLAN_COLUMN], taken[CM_PLAN_SPILL], taken[CM_PLAN_REREAD]);
}

static void no_elements(void **state)
{
    (void)state;
    made a = {0};
    cm_transform_options o;
    const char *const chunks[] = {"2x3"};
    seed = 9;
    random_meta(&a.meta, 3, 2);
    a.meta.shape[0] = 0;
    make_source(&a);
    cm_transform_options_init(&o, CM_DEFAULTS_KEEP);
    o.chunks = (cm_texts){chunks, 1};
    rechunk(&o);
    cm_zarr_meta_release(&a.meta);
}

static void strings(void **state)
{
    (void)state;
    cm_zarr_meta m = {.zarr_format = 3,
                      .attrs = cm_json_object(),
                      .dtype = cm_dtype_make(CM_KIND_STRING, 0),
                      .rank = 2,
                      .shape = {5, 7},
                      .chunk = {2, 3},
                      .has_fill = true,
                      .separator = '/'};
    cm_codec_spec spec = {.id = CM_CODEC_VLEN_UTF8};
    cm_zarr_entry entry = {"s", &m};
    cm_store *store;
    cm_zarr_writer *w;
    cm_strings text = {0};
    cm_buf bytes = {0};
    cm_codec_ctx *ctx = cm_codec_ctx_create(NULL);
    m.fill_text = strdup("");
    OK(cm_codec_specs_copy(&spec, 1, &m.codecs, err));
    m.ncodecs = 1;
    wipe(source);
    OK(cm_store_open_dir(source, true, &store, err));
    OK(cm_zarr_writer_create(store, "s", &m, &w, err));
    for (uint64_t k = 0; k < cm_zarr_writer_grid(w)->nchunks; k++) {
        OK(cm_strings_reset(&text, 6, err));
        for (size_t i = 0; i < 6 && k != 3; i++) {
            char one[32];
            int n =
                snprintf(one, sizeof(one), "%.*s\xc3\xa9%d", (int)(i * k % 9), "abcdefghi", (int)k);
            OK(cm_strings_set(&text, i, one, (size_t)n, err));
        }
        OK(cm_chain_encode_strings(cm_zarr_writer_chain(w), ctx, &text, &bytes, err));
        OK(cm_zarr_writer_put(w, k, bytes.data, bytes.nbytes, err));
    }
    cm_zarr_writer_free(w);
    OK(cm_zarr_hierarchy_write(store, 3, &entry, 1, false, err));
    cm_store_free(store);
    for (int i = 0; i < 6; i++) {
        static const char *const shapes[] = {"5x7", "1x1", "3x2", "2x3", "4x5", "auto"};
        cm_transform_options o;
        cm_transform_options_init(&o, CM_DEFAULTS_KEEP);
        o.chunks = (cm_texts){&shapes[i], 1};
        o.zarr_format = i % 2 ? 2 : 3;
        rechunk(&o);
    }
    cm_strings_release(&text);
    cm_buf_release(&bytes);
    cm_codec_ctx_free(ctx);
    cm_zarr_meta_release(&m);
}

/* ---- refusals ---- */

static void refused(void **state)
{
    (void)state;
    made a = {0};
    static const char *const bad[] = {"9x9x9", "0x2", "nope=3", "b:2x2"};
    static const char *const keep[] = {"keep"};
    char inside[80];
    cm_transform_options o;
    cm_transform_report report;
    cm_error err = {0};
    seed = 21;
    random_meta(&a.meta, 3, 2);
    make_source(&a);
    wipe(target);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        cm_transform_options_init(&o, CM_DEFAULTS_KEEP);
        o.source = source;
        o.target = target;
        o.chunks = (cm_texts){&bad[i], 1};
        assert_int_equal(cm_transform(&o, &report, &err), CM_EINVAL);
        cm_transform_report_release(&report);
        assert_int_not_equal(access(target, F_OK), 0);
    }
    o.chunks.n = 0;
    o.codec = (cm_texts){keep, 1};
    assert_int_equal(cm_transform(&o, &report, &err), CM_EINVAL);
    cm_transform_report_release(&report);
    /* Overwriting the source, or what holds it, would take it away. */
    o.codec.n = 0;
    o.overwrite = true;
    o.target = source;
    assert_int_equal(cm_transform(&o, &report, &err), CM_EINVAL);
    cm_transform_report_release(&report);
    snprintf(inside, sizeof(inside), "%s/new", source);
    o.overwrite = false;
    o.target = inside;
    assert_int_equal(cm_transform(&o, &report, &err), CM_EINVAL);
    cm_transform_report_release(&report);
    o.target = target;
    o.memory = 1 << 20;
    assert_int_equal(cm_transform(&o, &report, &err), CM_EBUDGET);
    cm_transform_report_release(&report);
    assert_non_null(strstr(err.text, "need at least"));
    assert_int_not_equal(access(target, F_OK), 0);
    cm_zarr_meta_release(&a.meta);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_geometry), cmocka_unit_test(small_memory),
        cmocka_unit_test(no_elements),  cmocka_unit_test(strings),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
