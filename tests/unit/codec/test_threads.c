/* One chain, several threads, each with its own context. */
#include <pthread.h>

#include "../unit.h"
#include "codec/codec.h"

enum {
    NTHREADS = 4,
    NROUNDS = 30,
    NELEM = 4000
};

typedef struct worker {
    const cm_chain *chain;
    uint32_t seed;
    bool failed;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    cm_error err = {0};
    cm_codec_ctx *ctx = cm_codec_ctx_create(&err);
    uint8_t *out = malloc(cm_chain_encoded_bound(w->chain));
    float data[NELEM], back[NELEM];
    w->failed = !ctx || !out;
    for (int round = 0; round < NROUNDS && !w->failed; round++) {
        size_t n = 0;
        for (uint32_t i = 0; i < NELEM; i++)
            data[i] = (float)(i * w->seed % 1000 + (uint32_t)round);
        w->failed = cm_chain_encode(w->chain, ctx, data, out, &n, &err) ||
                    cm_chain_decode(w->chain, ctx, out, n, 0, back, &err) ||
                    memcmp(back, data, sizeof data) != 0;
    }
    free(out);
    cm_codec_ctx_free(ctx);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    cm_codec_spec inner[] = {{.id = CM_CODEC_BYTES, .big_endian = true},
                             {.id = CM_CODEC_GZIP, .level = 1}};
    cm_codec_spec index[] = {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_CRC32C}};
    cm_shard_spec shard = {.rank = 1,
                           .chunk = {1000},
                           .codecs = inner,
                           .ncodecs = 2,
                           .index_codecs = index,
                           .nindex_codecs = 2};
    const struct {
        size_t n;
        cm_codec_spec specs[3];
    } rows[] = {
        {3,
         {{.id = CM_CODEC_FLETCHER32},
          {.id = CM_CODEC_SHUFFLE, .elementsize = 4},
          {.id = CM_CODEC_ZLIB, .level = 1}}},
        {1,
         {{.id = CM_CODEC_BLOSC,
           .level = 2,
           .blosc = {"zstd", CM_BLOSC_SHUFFLE, CM_BLOSC_ONE_BLOCK}}}},
        {1, {{.id = CM_CODEC_BLOSC, .level = 5, .blosc = {"lz4", CM_BLOSC_BITSHUFFLE, 0}}}},
        {2, {{.id = CM_CODEC_LZ4}, {.id = CM_CODEC_ZSTD, .level = 1}}},
        {1, {{.id = CM_CODEC_BZ2, .level = 1}}},
        {1, {{.id = CM_CODEC_SHARDING, .shard = &shard}}},
    };
    cm_dtype type = cm_dtype_make(CM_KIND_FLOAT, 4);
    uint64_t nelem = NELEM;
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        cm_error err = {0};
        cm_chain *chain;
        if (cm_chain_create(rows[r].specs, rows[r].n, &type, 1, &nelem, &chain, &err))
            fail_msg("%s", err.text);
        pthread_t thread[NTHREADS];
        worker workers[NTHREADS];
        for (uint32_t i = 0; i < NTHREADS; i++) {
            workers[i] = (worker){.chain = chain, .seed = 7 + 2 * i};
            assert_int_equal(pthread_create(&thread[i], NULL, work, &workers[i]), 0);
        }
        for (size_t i = 0; i < NTHREADS; i++) {
            assert_int_equal(pthread_join(thread[i], NULL), 0);
            assert_false(workers[i].failed);
        }
        cm_chain_free(chain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests_name("codec threads", tests, NULL, NULL);
}
