/* Chunks of variable-length elements. */
#include "damage.h"

#include <stdio.h>

static const cm_dtype text_type = {.kind = CM_KIND_STRING};

static cm_chain *make(const cm_codec_spec *specs, size_t n, unsigned rank, const uint64_t *shape)
{
    cm_error err = {0};
    cm_chain *chain = NULL;
    if (cm_chain_create(specs, n, &text_type, rank, shape, &chain, &err))
        fail_msg("%s", err.text);
    return chain;
}

/* Element I: "", or I written out, or many letters. */
static size_t element(size_t i, char *buf, size_t size)
{
    if (i % 5 == 0)
        return 0;
    if (i % 5 == 1) {
        memset(buf, 'a' + (int)(i % 26), size);
        return size;
    }
    return (size_t)snprintf(buf, size, "element \xc3\xa9 %zu", i);
}

static void fill(cm_strings *s, size_t nelem)
{
    char buf[3000];
    cm_error err = {0};
    assert_int_equal(cm_strings_reset(s, nelem, &err), CM_OK);
    for (size_t i = 0; i < nelem; i++) {
        size_t n = element(i, buf, sizeof buf);
        assert_int_equal(cm_strings_set(s, i, buf, n, &err), CM_OK);
    }
}

static void assert_filled(const cm_strings *s, size_t nelem)
{
    char buf[3000];
    assert_int_equal(s->nelem, nelem);
    for (size_t i = 0; i < nelem; i++) {
        size_t want = element(i, buf, sizeof buf), n;
        const char *text = cm_strings_get(s, i, &n);
        assert_int_equal(n, want);
        assert_memory_equal(text, buf, n);
    }
}

static const struct row {
    const char *name;
    size_t nspecs;
    cm_codec_spec specs[5];
} rows[] = {
    {"vlen-utf8", 1, {{.id = CM_CODEC_VLEN_UTF8}}},
    {"vlen-bytes", 1, {{.id = CM_CODEC_VLEN_BYTES}}},
    {"zstd", 2, {{.id = CM_CODEC_VLEN_UTF8}, {.id = CM_CODEC_ZSTD, .level = 3}}},
    {"gzip", 2, {{.id = CM_CODEC_VLEN_UTF8}, {.id = CM_CODEC_GZIP, .level = 9}}},
    {"bz2", 2, {{.id = CM_CODEC_VLEN_UTF8}, {.id = CM_CODEC_BZ2, .level = 1}}},
    {"lz4", 2, {{.id = CM_CODEC_VLEN_UTF8}, {.id = CM_CODEC_LZ4}}},
    {"blosc",
     2,
     {{.id = CM_CODEC_VLEN_UTF8},
      {.id = CM_CODEC_BLOSC, .level = 5, .blosc = {"lz4", CM_BLOSC_SHUFFLE, 0}}}},
    {"blosc, one block",
     2,
     {{.id = CM_CODEC_VLEN_UTF8},
      {.id = CM_CODEC_BLOSC, .level = 2, .blosc = {"zstd", CM_BLOSC_SHUFFLE, CM_BLOSC_ONE_BLOCK}}}},
    {"transpose twice",
     3,
     {{.id = CM_CODEC_TRANSPOSE, .order = {1, 2, 0}},
      {.id = CM_CODEC_TRANSPOSE, .order = {1, 0, 2}},
      {.id = CM_CODEC_VLEN_UTF8}}},
    {"transpose, shuffle, crc32c, zstd",
     5,
     {{.id = CM_CODEC_TRANSPOSE, .order = {2, 1, 0}},
      {.id = CM_CODEC_VLEN_UTF8},
      {.id = CM_CODEC_SHUFFLE, .elementsize = 4},
      {.id = CM_CODEC_CRC32C},
      {.id = CM_CODEC_ZSTD, .level = 1}}},
    {"shuffle 1, adler32 in front, fletcher32",
     4,
     {{.id = CM_CODEC_VLEN_UTF8},
      {.id = CM_CODEC_SHUFFLE, .elementsize = 1},
      {.id = CM_CODEC_ADLER32, .at_start = true},
      {.id = CM_CODEC_FLETCHER32}}},
};

static void test_row(void **state)
{
    const struct row *row = *state;
    uint64_t shape[] = {3, 5, 7};
    const size_t nelem = 3 * 5 * 7;
    cm_chain *chain = make(row->specs, row->nspecs, 3, shape);
    cm_error err = {0};
    cm_codec_ctx *ctx = cm_codec_ctx_create(&err);
    cm_strings in = {0}, out = {0};
    cm_buf chunk = {0};
    fill(&in, nelem);
    assert_int_equal(cm_chain_decoded_nbytes(chain), 0);
    assert_int_equal(cm_chain_encoded_bound(chain), 0);
    for (int again = 0; again < 2; again++) { /* what is left in the buffers does no harm */
        if (cm_chain_encode_strings(chain, ctx, &in, &chunk, &err))
            fail_msg("%s", err.text);
        assert_filled(&in, nelem);
        if (cm_chain_decode_strings(chain, ctx, chunk.data, chunk.nbytes, &out, &err))
            fail_msg("%s", err.text);
        assert_filled(&out, nelem);
    }
    for (size_t n = 0; n < chunk.nbytes; n += n < 100 ? 1 : 1 + chunk.nbytes / 50) {
        uint8_t *cut = exact_copy(chunk.data, n);
        assert_int_not_equal(cm_chain_decode_strings(chain, ctx, cut, n, &out, &err), CM_OK);
        free(cut);
    }
    uint8_t *bad = exact_copy(chunk.data, chunk.nbytes);
    for (size_t bit = 0; bit < 8 * 48; bit++) {
        bad[bit / 8] ^= (uint8_t)(1 << bit % 8);
        (void)cm_chain_decode_strings(chain, ctx, bad, chunk.nbytes, &out, &err);
        bad[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    free(bad);
    cm_strings_release(&in);
    cm_strings_release(&out);
    cm_buf_release(&chunk);
    cm_chain_free(chain);
    cm_codec_ctx_free(ctx);
}

/* numcodecs' VLenUTF8 of ["a", "", "bcd"], and of the same in Fortran order as a 1 x 3 array. */
static void test_golden(void **state)
{
    (void)state;
    static const uint8_t want[] = {3, 0, 0, 0, 1, 0, 0, 0,   'a', 0,
                                   0, 0, 0, 3, 0, 0, 0, 'b', 'c', 'd'};
    static const char *const texts[] = {"a", "", "bcd"};
    cm_codec_spec spec = {.id = CM_CODEC_VLEN_UTF8};
    uint64_t shape = 3;
    cm_chain *chain = make(&spec, 1, 1, &shape);
    cm_error err = {0};
    cm_codec_ctx *ctx = cm_codec_ctx_create(&err);
    cm_strings s = {0};
    cm_buf chunk = {0};
    assert_int_equal(cm_strings_reset(&s, 3, &err), CM_OK);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(cm_strings_set(&s, i, texts[i], strlen(texts[i]), &err), CM_OK);
    assert_int_equal(cm_chain_encode_strings(chain, ctx, &s, &chunk, &err), CM_OK);
    assert_int_equal(chunk.nbytes, sizeof want);
    assert_memory_equal(chunk.data, want, sizeof want);
    assert_int_equal(cm_chain_decode_strings(chain, ctx, want, sizeof want, &s, &err), CM_OK);
    size_t n;
    assert_memory_equal(cm_strings_get(&s, 2, &n), "bcd", 3);
    /* One byte too many, and another number of elements. */
    uint8_t more[sizeof want + 1] = {0};
    memcpy(more, want, sizeof want);
    assert_int_equal(cm_chain_decode_strings(chain, ctx, more, sizeof more, &s, &err), CM_EFORMAT);
    more[0] = 2;
    assert_int_equal(cm_chain_decode_strings(chain, ctx, more, sizeof want, &s, &err), CM_EFORMAT);
    cm_strings_release(&s);
    cm_buf_release(&chunk);
    cm_chain_free(chain);
    cm_codec_ctx_free(ctx);
}

/*
 * A small chunk that decodes to much is stopped by the arena's maximum, before that is
 * allocated.
 */
static void test_bomb(void **state)
{
    (void)state;
    static const cm_codec_id ids[] = {CM_CODEC_GZIP, CM_CODEC_ZSTD, CM_CODEC_BZ2, CM_CODEC_LZ4,
                                      CM_CODEC_BLOSC};
    enum {
        LONG = 8 << 20
    };
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        cm_codec_spec specs[] = {{.id = CM_CODEC_VLEN_UTF8},
                                 {.id = ids[i], .level = 1, .blosc = {.cname = "zstd"}}};
        uint64_t shape = 1;
        cm_chain *chain = make(specs, 2, 1, &shape);
        cm_error err = {0};
        cm_codec_ctx *ctx = cm_codec_ctx_create(&err), *fresh = cm_codec_ctx_create(&err);
        cm_strings in = {0}, out;
        cm_buf chunk = {0};
        char *text = calloc(1, LONG);
        assert_int_equal(cm_strings_reset(&in, 1, &err), CM_OK);
        assert_int_equal(cm_strings_set(&in, 0, text, LONG, &err), CM_OK);
        assert_int_equal(cm_chain_encode_strings(chain, ctx, &in, &chunk, &err), CM_OK);
        assert_true(chunk.nbytes < 100000);
        cm_strings_init(&out, 1 << 20);
        assert_int_equal(
            cm_chain_decode_strings(chain, fresh, chunk.data, chunk.nbytes, &out, &err),
            CM_EBUDGET);
        assert_true(cm_strings_memory(&out) <= 1 << 20);
        cm_strings_release(&out);
        cm_strings_init(&out, LONG);
        assert_int_equal(
            cm_chain_decode_strings(chain, fresh, chunk.data, chunk.nbytes, &out, &err), CM_OK);
        cm_strings_release(&out);
        cm_strings_release(&in);
        cm_buf_release(&chunk);
        cm_chain_free(chain);
        cm_codec_ctx_free(ctx);
        cm_codec_ctx_free(fresh);
        free(text);
    }
}

static void test_wrong_functions(void **state)
{
    (void)state;
    cm_codec_spec spec = {.id = CM_CODEC_VLEN_UTF8};
    uint64_t shape = 1;
    cm_chain *chain = make(&spec, 1, 1, &shape);
    cm_error err = {0};
    cm_codec_ctx *ctx = cm_codec_ctx_create(&err);
    uint8_t bytes[8] = {0};
    size_t n;
    assert_int_equal(cm_chain_decode(chain, ctx, bytes, 8, 0, bytes, &err), CM_EINTERNAL);
    assert_int_equal(cm_chain_encode(chain, ctx, bytes, bytes, &n, &err), CM_EINTERNAL);
    cm_chain_free(chain);
    cm_codec_ctx_free(ctx);
}

int main(void)
{
    enum {
        NROWS = sizeof rows / sizeof rows[0]
    };
    struct CMUnitTest tests[NROWS + 3] = {[NROWS] = cmocka_unit_test(test_golden),
                                          [NROWS + 1] = cmocka_unit_test(test_bomb),
                                          [NROWS + 2] = cmocka_unit_test(test_wrong_functions)};
    for (size_t i = 0; i < NROWS; i++)
        tests[i] = (struct CMUnitTest){.name = rows[i].name,
                                       .test_func = test_row,
                                       .initial_state = (void *)(uintptr_t)&rows[i]};
    return cmocka_run_group_tests_name("variable-length elements", tests, NULL, NULL);
}
