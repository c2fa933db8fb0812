/* Memory of a verification: what readers hold, how many threads fit, what a run must leave. */

#include "base/budget.h"
#include "convert/plan/verify_memory.h"
#include "job_fixture.h"

#define MIB ((uint64_t)1 << 20)

static cm_chain *chain_of(uint64_t nelem, cm_codec_id codec)
{
    const cm_dtype type = cm_dtype_make(CM_KIND_FLOAT, 4);
    const cm_codec_spec spec[] = {{.id = CM_CODEC_BYTES}, {.id = codec, .level = 1}};
    cm_chain *chain;
    OK(cm_chain_create(spec, codec == CM_CODEC_NONE ? 1 : 2, &type, 1, &nelem, &chain, err));
    return chain;
}

/* ---- what is counted ---- */

static const struct {
    const char *name;
    bool strings, encoded, chunked; /* the store's elements, its chunks; the source has chunks */
    uint64_t nelem, chunk[2];
    double reader, library; /* READER of encoded chunks: besides their chain's */
} COUNTED[] = {
    {"a raw chunk", false, false, false, 1000, {0}, 4000, 8},
    {"one that is decoded", false, true, false, 1000, {0}, 0, 8},
    {"strings", true, false, false, 1000, {0}, 64000, 128},
    {"strings that the source has in chunks", true, false, true, 10, {3, 5}, 640, 15 * 128},
    {"the source's chunk, stored and decoded", false, false, true, 1000, {10, 50}, 4000, 4000},
    {"more than memory holds",
     false,
     false,
     true,
     10,
     {(uint64_t)1 << 40, (uint64_t)1 << 40},
     40,
     0x1p83},
};

static void counted(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(COUNTED); i++) {
        cm_variable source = {.dtype = cm_dtype_make(CM_KIND_FLOAT, 4),
                              .rank = 2,
                              .has_source_chunks = COUNTED[i].chunked};
        memcpy(source.source_chunk, COUNTED[i].chunk, sizeof COUNTED[i].chunk);
        const cm_job_var v = {.source = &source, .view.as_strings = COUNTED[i].strings};
        cm_chain *chain = chain_of(COUNTED[i].nelem, COUNTED[i].encoded ? CM_CODEC_ZSTD : 0);
        cm_verify_memory m = {0};
        double reader = COUNTED[i].reader;
        if (COUNTED[i].encoded)
            reader += (double)(cm_chain_encoded_bound(chain) + cm_chain_decoded_nbytes(chain) +
                               cm_chain_decode_memory(chain));
        cm_verify_memory_add(&m, &v, COUNTED[i].strings && i % 2 == 0 ? NULL : chain,
                             COUNTED[i].nelem);
        if (m.reader != reader || m.library != COUNTED[i].library)
            fail_msg("%s: %g and %g", COUNTED[i].name, m.reader, m.library);
        m.reader++; /* the most of all variables, each by itself */
        m.library--;
        cm_verify_memory_add(&m, &v, COUNTED[i].strings ? NULL : chain, COUNTED[i].nelem);
        assert_true(m.reader == reader + 1 && m.library == COUNTED[i].library);
        cm_chain_free(chain);
    }
}

/* ---- threads ---- */

static const struct {
    const char *name;
    cm_verify_memory memory;
    uint64_t limit;
    unsigned most, n;
    double share;
} THREADS[] = {
    {"nothing is read: a box of 1 MiB beside each thread's own", {0}, 16 * MIB, 8, 8, MIB},
    {"one byte less", {0}, 16 * MIB - 1, 8, 7, (16.0 * MIB - 1) / 7 - MIB},
    {"no more than are asked for", {0}, 16 * MIB, 3, 3, 16.0 * MIB / 3 - MIB},
    {"a sixteenth of large chunks", {.reader = 32.0 * MIB}, 70 * MIB, 9, 2, 2.0 * MIB},
    {"but no less than 1 MiB", {.reader = 12.0 * MIB}, 28 * MIB - 1, 9, 1, 15.0 * MIB - 1},
    {"not quite", {.reader = 32.0 * MIB}, 70 * MIB - 1, 9, 1, 37.0 * MIB - 1},
    {"what is held, and what the library has once",
     {.held = 10 * MIB, .library = 20.0 * MIB},
     34 * MIB,
     9,
     2,
     1.0 * MIB},
    {"not one", {.held = 10 * MIB}, 12 * MIB - 1, 9, 0, -1},
    {"none is asked for", {0}, 100 * MIB, 0, 0, -1},
    {"more is held than allowed", {.held = 200 * MIB}, 100 * MIB, 4, 0, -1},
    {"a chunk that nothing holds", {.reader = 0x1p80}, UINT64_MAX, 4, 0, -1},
};

static void threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(THREADS); i++) {
        double share = -1;
        const cm_verify_memory *m = &THREADS[i].memory;
        const unsigned n = cm_verify_memory_threads(m, THREADS[i].limit, THREADS[i].most, &share);
        if (n != THREADS[i].n || share != THREADS[i].share)
            fail_msg("%s: %u, %f", THREADS[i].name, n, share);
        if (n > 0)
            assert_true(cm_verify_memory_least(m, n) <= (double)THREADS[i].limit);
        if (n < THREADS[i].most)
            assert_true(cm_verify_memory_least(m, n + 1) > (double)THREADS[i].limit);
    }
}

/* ---- before the run ---- */

typedef struct made_job {
    bool file, against, part;                            /* of the job */
    bool objects, no_words, subset, converts, is_joined; /* of its second variable */
} made_job;

static const struct {
    const char *name;
    made_job job;
    bool compares;
} DIGESTS[] = {
    {"all elements of a store stay", {0}, true},
    {"a file has no digests", {.file = true}, false},
    {"against a store that is there", {.against = true}, false},
    {"a part of a store", {.part = true}, false},
    {"objects are copied, whatever they are", {.objects = true, .no_words = true}, true},
    {"an array that was computed", {.no_words = true}, false},
    {"some of the elements", {.subset = true}, false},
    {"others", {.converts = true}, false},
    {"characters that become text", {.is_joined = true}, false},
};

static void digests(void **state)
{
    static const cm_transform_options OPTIONS = {.verify = CM_VERIFY_SAMPLE};
    const cm_zarr_meta words = {0};
    (void)state;
    for (size_t i = 0; i < COUNT(DIGESTS); i++) {
        const made_job *d = &DIGESTS[i].job;
        cm_dataset store = {.kind = d->file ? CM_DATASET_NETCDF : CM_DATASET_ZARR};
        cm_variable source[2] = {{.words = &words}, {.words = d->no_words ? NULL : &words}};
        cm_job_var var[2] = {
            {.source = &source[0], .view.whole = true},
            {.source = &source[1],
             .stored.as_objects = d->objects,
             .view = {.whole = !d->subset, .converts = d->converts, .join = d->is_joined}}};
        const cm_job job = {.options = &OPTIONS,
                            .terms = {.against = d->against ? "store" : NULL, .in_part = d->part},
                            .source = &store,
                            .var = var,
                            .nvars = 2};
        if (cm_job_compares_digests(&job) != DIGESTS[i].compares)
            fail_msg("%s", DIGESTS[i].name);
        /* A sample of digests takes nothing; without writers others take a thread and a box. */
        const size_t least =
            d->against || DIGESTS[i].compares ? 0 : CM_BUDGET_PER_THREAD + (size_t)MIB;
        assert_int_equal(cm_job_least_to_verify(&job), least);
    }
}

/* The least that a run leaves for verifying, over a plan. */
static void least(void **state)
{
    static const made_file SMALL = {"f", .var = {{"v", "float32", "t=4096 y=256"},
                                                 {"w", "float32", "t=4096"},
                                                 {"s", "string", "t=4096"}}};
    const cm_transform_options options = {.chunks = TEXTS("v:4096x256", "w:4096", "s:4096"),
                                          .codec = TEXTS("none"),
                                          .verify = CM_VERIFY_FULL};
    planned p;
    (void)state;
    planned_make(&p, &SMALL, &options, STEP_PLAN);
    if (p.status != CM_OK)
        fail_msg("%s", p.error.text);
    /* The largest chunk, and a box of a sixteenth, but no less than 1 MiB; two texts of the file */
    assert_int_equal(cm_job_least_to_verify(&p.job),
                     4 * MIB + CM_BUDGET_PER_THREAD + MIB + 2 * CM_STRING_ESTIMATE);
    p.options.verify = CM_VERIFY_NONE;
    assert_int_equal(cm_job_least_to_verify(&p.job), 0);
    planned_release(&p);
}

/* A chunk of source and target by turns: as stored, as decoded, and its elements. */
static void least_for_digests(void **state)
{
    static const made_file SMALL = {"f",
                                    .var = {{"v", "float32", "t=1000"}, {"w", "float32", "t=10"}}};
    const cm_transform_options options = {
        .chunks = TEXTS("v:100"), .codec = TEXTS("none"), .verify = CM_VERIFY_FULL};
    const cm_zarr_meta words = {0};
    planned p;
    (void)state;
    planned_make(&p, &SMALL, &options, STEP_PLAN);
    if (p.status != CM_OK)
        fail_msg("%s", p.error.text);
    cm_chain *chain[2] = {chain_of(10, CM_CODEC_NONE), chain_of(10, CM_CODEC_NONE)};
    p.made->kind = CM_DATASET_ZARR;
    for (size_t i = 0; i < 2; i++) {
        p.job.var[i].source->words = &words;
        p.job.var[i].source->array->chain = chain[i];
    }
    /* V's target has 100 elements: two such chunks, and one as it is stored */
    const size_t decoding = cm_chain_decode_memory(chain[0]);
    assert_int_equal(cm_job_least_to_verify(&p.job), 3 * 400 + decoding + CM_BUDGET_PER_THREAD);
    cm_chain *large = p.job.var[1].source->array->chain = chain_of(1000, CM_CODEC_NONE);
    assert_int_equal(cm_job_least_to_verify(&p.job), 3 * 4000 + decoding + CM_BUDGET_PER_THREAD);
    p.job.terms.foreseen = true; /* a dry run says the same */
    assert_int_equal(cm_job_least_to_verify(&p.job), 3 * 4000 + decoding + CM_BUDGET_PER_THREAD);
    p.job.terms.foreseen = false;
    p.options.verify = CM_VERIFY_SAMPLE;
    assert_int_equal(cm_job_least_to_verify(&p.job), 0);
    for (size_t i = 0; i < 2; i++) {
        p.job.var[i].source->array->chain = NULL;
        cm_chain_free(chain[i]);
    }
    cm_chain_free(large);
    planned_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(counted), cmocka_unit_test(threads),
                                       cmocka_unit_test(digests), cmocka_unit_test(least),
                                       cmocka_unit_test(least_for_digests)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
