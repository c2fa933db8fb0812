/* Blosc frames against c-blosc: what it writes is read, and what is written is what it would. */
#include "damage.h"

#include <blosc.h>

enum {
    MAX_NBYTES = 150001
};

static uint8_t *data, *frame, *back;
static cm_codec_ctx *ctx;

static int set_up(void **state)
{
    (void)state;
    cm_error err = {0};
    ctx = cm_codec_ctx_create(&err);
    data = malloc(MAX_NBYTES);
    frame = malloc(MAX_NBYTES + BLOSC_MAX_OVERHEAD);
    back = malloc(MAX_NBYTES);
    return ctx && data && frame && back ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    cm_codec_ctx_free(ctx);
    free(data);
    free(frame);
    free(back);
    return 0;
}

/* Elements that grow slowly, or bytes without any order. */
static void fill(size_t nbytes, bool random)
{
    uint32_t x = 12345;
    for (size_t i = 0; i < nbytes; i++) {
        x = x * 1664525 + 1013904223;
        data[i] = random ? (uint8_t)(x >> 24)
                         : (uint8_t)(i % 4 == 0   ? i / 4
                                     : i % 4 == 1 ? i / 1024
                                                  : 0);
    }
}

static cm_chain *make(const cm_codec_spec *spec, uint64_t nbytes)
{
    cm_dtype byte = cm_dtype_make(CM_KIND_UINT, 1);
    cm_error err = {0};
    cm_chain *chain = NULL;
    if (cm_chain_create(spec, 1, &byte, 1, &nbytes, &chain, &err))
        fail_msg("%s", err.text);
    return chain;
}

static const size_t sizes[] = {1, 100, 128, 129, 4096, 65536, 65540, 150001};
static const size_t typesizes[] = {1, 2, 4, 8, 16, 17, 255};
static const char *const cnames[] = {"zstd", "lz4", "lz4hc", "zlib", "blosclz", "snappy"};

static void test_reads_c_blosc(void **state)
{
    (void)state;
    static const size_t blocksizes[] = {0, 256, 5000, MAX_NBYTES};
    cm_codec_spec spec = {.id = CM_CODEC_BLOSC};
    for (size_t c = 0; c < 6; c++) {
        for (size_t s = 0; s < 8; s++) {
            for (size_t t = 0; t < 7; t++) {
                for (unsigned v = 0; v < 12; v++) {
                    size_t n = sizes[s];
                    fill(n, v % 8 == 7);
                    int made = blosc_compress_ctx((int)(v % 4) * 2, (int)(v % 3), typesizes[t], n,
                                                  data, frame, n + BLOSC_MAX_OVERHEAD, cnames[c],
                                                  blocksizes[v / 3], 1);
                    if (made <= 0)
                        continue; /* a build without this compressor */
                    cm_chain *chain = make(&spec, n);
                    cm_error err = {0};
                    memset(back, 0, n);
                    if (cm_chain_decode(chain, ctx, frame, (size_t)made, 0, back, &err))
                        fail_msg("%s of %zu bytes, type of %zu, %u: %s", cnames[c], n, typesizes[t],
                                 v, err.text);
                    assert_memory_equal(back, data, n);
                    cm_chain_free(chain);
                }
            }
        }
    }
}

/* Frames of several blocks and streams, cut and bent; the conformance suite has small ones only. */
static void test_damage(void **state)
{
    (void)state;
    cm_codec_spec spec = {.id = CM_CODEC_BLOSC};
    for (size_t c = 0; c < 5; c++) {
        size_t n = 5001;
        fill(n, false);
        int made =
            blosc_compress_ctx(5, 1, 4, n, data, frame, n + BLOSC_MAX_OVERHEAD, cnames[c], 1024, 1);
        assert_true(made > 0);
        cm_chain *chain = make(&spec, n);
        check_damage(chain, ctx, frame, (size_t)made);
        cm_chain_free(chain);
    }
}

static void test_one_block(void **state)
{
    (void)state;
    for (unsigned v = 0; v < 2 * 8 * 7 * 2 * 3; v++) {
        size_t n = sizes[v % 8], typesize = typesizes[v / 8 % 7];
        int level = v % 3 == 0 ? 1 : v % 3 == 1 ? 2 : 5;
        const bool is_lz4 = v / 224 == 1;
        fill(n, v / 56 % 2);
        cm_codec_spec spec = {.id = CM_CODEC_BLOSC,
                              .level = level,
                              .elementsize = (uint32_t)typesize,
                              .blosc = {"zstd", v / 112 % 2 ? CM_BLOSC_SHUFFLE : CM_BLOSC_NOSHUFFLE,
                                        v / 224 == 2 ? 0 : CM_BLOSC_ONE_BLOCK}};
        if (is_lz4)
            strcpy(spec.blosc.cname, "lz4");
        cm_chain *chain = make(&spec, n);
        cm_error err = {0};
        size_t made, nbytes, cbytes, blocksize;
        uint8_t *out = malloc(cm_chain_encoded_bound(chain));
        if (cm_chain_encode(chain, ctx, data, out, &made, &err))
            fail_msg("%s", err.text);
        blosc_cbuffer_sizes(out, &nbytes, &cbytes, &blocksize);
        assert_int_equal(nbytes, n);
        assert_int_equal(cbytes, made);
        if (n % typesize == 0)
            assert_int_equal(blocksize, n);
        assert_int_equal(blosc_decompress_ctx(out, back, n, 1), (int)n);
        assert_memory_equal(back, data, n);
        assert_int_equal(cm_chain_decode(chain, ctx, out, made, 0, back, &err), CM_OK);
        assert_memory_equal(back, data, n);
        /*
         * c-blosc would have written the same header, but it splits LZ4's and cuts 0 into
         * blocks.
         */
        if (!is_lz4 && spec.blosc.blocksize != 0) {
            int want = blosc_compress_ctx(level, (int)spec.blosc.shuffle, typesize, n, data, frame,
                                          n + BLOSC_MAX_OVERHEAD, "zstd", n, 1);
            assert_true(want > 0);
            assert_memory_equal(out, frame, 12);
        }
        free(out);
        cm_chain_free(chain);
    }
}

/* Elements of more than 255 bytes have no type size in a frame. */
static void test_long_elements(void **state)
{
    (void)state;
    cm_codec_spec spec = {
        .id = CM_CODEC_BLOSC, .level = 1, .blosc = {"zstd", CM_BLOSC_SHUFFLE, CM_BLOSC_ONE_BLOCK}};
    cm_dtype type = cm_dtype_make(CM_KIND_RAW, 300);
    uint64_t nelem = 10;
    cm_error err = {0};
    cm_chain *chain;
    assert_int_equal(cm_chain_create(&spec, 1, &type, 1, &nelem, &chain, &err), CM_OK);
    size_t made;
    fill(3000, false);
    assert_int_equal(cm_chain_encode(chain, ctx, data, frame, &made, &err), CM_OK);
    assert_int_equal(frame[3], 1);
    assert_int_equal(cm_chain_decode(chain, ctx, frame, made, 0, back, &err), CM_OK);
    assert_memory_equal(back, data, 3000);
    cm_chain_free(chain);
}

static void test_unknown_compressor(void **state)
{
    (void)state;
    cm_codec_spec spec = {.id = CM_CODEC_BLOSC, .level = 1, .blosc = {.cname = "squeeze"}};
    cm_chain *chain = make(&spec, 10);
    cm_error err = {0};
    assert_int_equal(cm_chain_can_encode(chain, &err), CM_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "squeeze"));
    cm_chain_free(chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_c_blosc),      cmocka_unit_test(test_damage),
        cmocka_unit_test(test_one_block),          cmocka_unit_test(test_long_elements),
        cmocka_unit_test(test_unknown_compressor),
    };
    return cmocka_run_group_tests_name("blosc", tests, set_up, tear_down);
}
