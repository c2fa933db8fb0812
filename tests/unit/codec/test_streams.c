/*
 * Streams as others write them: several in a row, padded, without a size, with
 * sizes that are lies.
 */
#include "damage.h"

#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>

enum {
    NBYTES = 1000
};

static uint8_t data[NBYTES];
static cm_codec_ctx *ctx;

static int set_up(void **state)
{
    (void)state;
    cm_error err = {0};
    ctx = cm_codec_ctx_create(&err);
    for (size_t i = 0; i < NBYTES; i++)
        data[i] = (uint8_t)(i * i >> 4);
    return ctx ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    cm_codec_ctx_free(ctx);
    return 0;
}

static cm_chain *make_of(const cm_codec_spec *spec, uint64_t nelem)
{
    cm_dtype byte = cm_dtype_make(CM_KIND_UINT, 1);
    cm_error err = {0};
    cm_chain *chain = NULL;
    if (cm_chain_create(spec, 1, &byte, 1, &nelem, &chain, &err))
        fail_msg("%s", err.text);
    return chain;
}

static cm_chain *make(cm_codec_id id, uint64_t nelem)
{
    return make_of(&(cm_codec_spec){.id = id, .level = 1}, nelem);
}

/* data[from .. from + n) as one stream of ID, at OUT; returns its length. */
static size_t encode(cm_codec_id id, size_t from, size_t n, uint8_t *out)
{
    cm_chain *chain = make(id, n);
    cm_error err = {0};
    size_t nbytes;
    if (cm_chain_encode(chain, ctx, data + from, out, &nbytes, &err))
        fail_msg("%s", err.text);
    cm_chain_free(chain);
    return nbytes;
}

/* Decodes to DATA, or fails with a message that says SAYS. */
static void expect(cm_codec_id id, const uint8_t *stream, size_t nbytes, const char *says)
{
    cm_chain *chain = make(id, NBYTES);
    uint8_t *copy = exact_copy(stream, nbytes), *back = malloc(NBYTES);
    cm_error err = {0};
    int rc = cm_chain_decode(chain, ctx, copy, nbytes, 0, back, &err);
    if (!says) {
        if (rc)
            fail_msg("%s", err.text);
        assert_memory_equal(back, data, NBYTES);
    } else {
        assert_int_equal(rc, CM_EFORMAT);
        if (!strstr(err.text, says))
            fail_msg("\"%s\" does not say \"%s\"", err.text, says);
    }
    free(copy);
    free(back);
    cm_chain_free(chain);
}

static void test_several_streams(void **state)
{
    (void)state;
    static const cm_codec_id ids[] = {CM_CODEC_GZIP, CM_CODEC_ZSTD, CM_CODEC_BZ2};
    for (size_t i = 0; i < 3; i++) {
        uint8_t stream[4 * NBYTES];
        size_t n = encode(ids[i], 0, 333, stream);
        n += encode(ids[i], 333, 1, stream + n);
        size_t before_last = n;
        n += encode(ids[i], 334, NBYTES - 334, stream + n);
        expect(ids[i], stream, n, NULL);
        expect(ids[i], stream, before_last, "334 bytes for a chunk that has 1000");
        size_t more = n + encode(ids[i], 0, 1, stream + n);
        expect(ids[i], stream, more, "more than 1000");
        stream[n] = 'x';
        expect(ids[i], stream, n + 1, "");
    }
}

static void test_padding(void **state)
{
    (void)state;
    uint8_t stream[2 * NBYTES] = {0};
    size_t n = encode(CM_CODEC_GZIP, 0, NBYTES, stream);
    memset(stream + n, 0, 100);
    expect(CM_CODEC_GZIP, stream, n + 100, NULL);
    stream[n + 100] = 1;
    expect(CM_CODEC_GZIP, stream, n + 101, "damaged");
    n = encode(CM_CODEC_ZLIB, 0, NBYTES, stream);
    expect(CM_CODEC_ZLIB, stream, n + 7, NULL); /* as zlib's inflate */
}

/* FEXTRA, FNAME, FCOMMENT and FHCRC, which gzip(1) and others set (RFC 1952, 2.3). */
static void test_gzip_header(void **state)
{
    (void)state;
    uint8_t plain[2 * NBYTES], stream[3 * NBYTES];
    size_t n = encode(CM_CODEC_GZIP, 0, NBYTES, plain);
    static const uint8_t head[] = {0x1f, 0x8b, 8,   0x1e, 1,   2,   3, 4,   0,   3, 3, 0, 'a',
                                   'b',  'c',  'n', 'a',  'm', 'e', 0, 'c', 'o', 0, 0, 0};
    memcpy(stream, head, sizeof head);
    memcpy(stream + sizeof head, plain + 10, n - 10);
    expect(CM_CODEC_GZIP, stream, sizeof head + n - 10, NULL);
}

static void test_zstd_frames(void **state)
{
    (void)state;
    uint8_t stream[4 * NBYTES];
    ZSTD_CCtx *c = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, 0);
    size_t n = ZSTD_compress2(c, stream, sizeof stream, data, NBYTES);
    assert_false(ZSTD_isError(n));
    assert_true(ZSTD_getFrameContentSize(stream, n) == ZSTD_CONTENTSIZE_UNKNOWN);
    expect(CM_CODEC_ZSTD, stream, n, NULL);
    ZSTD_freeCCtx(c);
    static const uint8_t skippable[] = {0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'};
    memcpy(stream, skippable, sizeof skippable);
    n = sizeof skippable + encode(CM_CODEC_ZSTD, 0, NBYTES, stream + sizeof skippable);
    expect(CM_CODEC_ZSTD, stream, n, NULL);
}

/* A frame is what libzstd makes with these parameters, with a checksum where one is asked for. */
static void test_zstd_parameters(void **state)
{
    (void)state;
    static const struct {
        int level;
        bool checksum;
    } rows[] = {{1, false}, {1, true}, {9, false}, {19, true}, {-3, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const cm_codec_spec spec = {
            .id = CM_CODEC_ZSTD, .level = rows[i].level, .checksum = rows[i].checksum};
        cm_chain *chain = make_of(&spec, NBYTES);
        uint8_t got[2 * NBYTES], want[2 * NBYTES];
        size_t nbytes;
        cm_error err = {0};
        assert_int_equal(cm_chain_encode(chain, ctx, data, got, &nbytes, &err), CM_OK);
        ZSTD_CCtx *c = ZSTD_createCCtx();
        ZSTD_CCtx_setParameter(c, ZSTD_c_compressionLevel, rows[i].level);
        ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, rows[i].checksum);
        assert_int_equal(ZSTD_compress2(c, want, sizeof want, data, NBYTES), nbytes);
        assert_memory_equal(got, want, nbytes);
        ZSTD_freeCCtx(c);
        cm_chain_free(chain);
    }
}

/* HDF5 before 1.6.3 swapped the bytes of both halves; no other order is right. */
static void test_old_fletcher32(void **state)
{
    (void)state;
    uint8_t stream[NBYTES + 4], sum[4];
    size_t n = encode(CM_CODEC_FLETCHER32, 0, NBYTES, stream);
    memcpy(sum, stream + NBYTES, 4);
    static const struct {
        uint8_t order[4];
        const char *says;
    } rows[] = {{{0, 1, 2, 3}, NULL},
                {{1, 0, 3, 2}, NULL},
                {{3, 2, 1, 0}, "checksum"},
                {{2, 3, 0, 1}, "checksum"}};
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 4; k++)
            stream[NBYTES + k] = sum[rows[i].order[k]];
        expect(CM_CODEC_FLETCHER32, stream, n, rows[i].says);
    }
}

/* A few bytes that claim 2^60 or 2^31 decoded bytes cost nothing but a message. */
static void test_claims(void **state)
{
    (void)state;
    static const struct {
        cm_codec_id id;
        size_t nbytes;
        uint8_t stream[24];
    } rows[] = {
        {CM_CODEC_ZSTD, 17, {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 0, 0, 0x10, 1, 0, 0, 0}},
        {CM_CODEC_LZ4, 10, {0xff, 0xff, 0xff, 0x7f, 1, 2, 3, 4, 5, 6}},
        {CM_CODEC_HDF5_LZ4, 16, {0x10, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 4}},
        {CM_CODEC_BLOSC, 20, {2, 1, 0x90, 1, 0, 0, 0, 0x40, 0, 0, 0, 0x40, 20, 0, 0, 0}},
        {CM_CODEC_BLOSC, 20, {2, 1, 0x11, 1, 0, 0, 0, 0x40, 1, 0, 0, 0, 20, 0, 0, 0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        expect(rows[i].id, rows[i].stream, rows[i].nbytes, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_several_streams), cmocka_unit_test(test_padding),
        cmocka_unit_test(test_gzip_header),     cmocka_unit_test(test_zstd_frames),
        cmocka_unit_test(test_zstd_parameters), cmocka_unit_test(test_old_fletcher32),
        cmocka_unit_test(test_claims),
    };
    return cmocka_run_group_tests_name("codec streams", tests, set_up, tear_down);
}
