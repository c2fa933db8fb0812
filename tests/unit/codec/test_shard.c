/* Shards: their index, and whole shards as one codec. */

#include "../unit.h"
#include "codec/shard.h"

#define M CM_SHARD_MISSING

static cm_codec_spec plain[] = {{.id = CM_CODEC_BYTES}};
static cm_codec_spec checked[] = {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_CRC32C}};
static cm_codec_spec big[] = {{.id = CM_CODEC_BYTES, .big_endian = true}};

static cm_shard_layout *make(const cm_shard_spec *spec, const uint64_t *shard)
{
    cm_error err = {0};
    cm_shard_layout *layout = NULL;
    if (cm_shard_layout_create(spec, spec->rank, shard, &layout, &err))
        fail_msg("%s", err.text);
    return layout;
}

static void test_layout(void **state)
{
    (void)state;
    cm_shard_spec spec = {.rank = 2, .chunk = {2, 3}, .index_codecs = checked, .nindex_codecs = 2};
    uint64_t shard[] = {4, 9};
    cm_shard_layout *layout = make(&spec, shard);
    assert_int_equal(cm_shard_nchunks(layout), 6);
    assert_int_equal(cm_shard_index_nbytes(layout), 6 * 16 + 4);
    assert_false(cm_shard_index_at_start(layout));
    assert_int_equal(cm_shard_grid(layout)->count[1], 3);
    cm_shard_layout_free(layout);
    cm_shard_layout_free(NULL);
}

/* The bytes of an index of two entries by the specification, in both byte orders. */
static void test_index_bytes(void **state)
{
    (void)state;
    static const cm_shard_entry entry[2] = {{0x0102, 0x30}, {M, M}};
    static const uint8_t little[32] = {2,   1,   0,   0,   0,   0,   0,   0,   0x30, 0,   0,
                                       0,   0,   0,   0,   0,   255, 255, 255, 255,  255, 255,
                                       255, 255, 255, 255, 255, 255, 255, 255, 255,  255};
    uint8_t out[36], big_want[32];
    memcpy(big_want, little, 32);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 8; i++)
            big_want[8 * k + i] = little[8 * k + 7 - i];
    const struct {
        cm_codec_spec *codecs;
        size_t n, nbytes;
        const uint8_t *want;
    } rows[] = {{plain, 1, 32, little}, {big, 1, 32, big_want}, {checked, 2, 36, little}};
    for (size_t i = 0; i < 3; i++) {
        cm_shard_spec spec = {
            .rank = 1, .chunk = {5}, .index_codecs = rows[i].codecs, .nindex_codecs = rows[i].n};
        uint64_t shard = 10;
        cm_error err = {0};
        cm_shard_entry back[2];
        cm_shard_layout *layout = make(&spec, &shard);
        assert_int_equal(cm_shard_index_nbytes(layout), rows[i].nbytes);
        assert_int_equal(cm_shard_index_encode(layout, entry, out, &err), CM_OK);
        assert_memory_equal(out, rows[i].want, 32);
        assert_int_equal(cm_shard_index_decode(layout, out, rows[i].nbytes, 0x132, back, &err),
                         CM_OK);
        assert_memory_equal(back, entry, sizeof entry);
        assert_int_not_equal(
            cm_shard_index_decode(layout, out, rows[i].nbytes - 1, 0x132, back, &err), CM_OK);
        cm_shard_layout_free(layout);
    }
}

static void test_entries_outside(void **state)
{
    (void)state;
    static const struct {
        cm_shard_entry entry;
        bool fine;
    } rows[] = {{{0, 100}, true},      {{100, 0}, true},   {{0, 101}, false}, {{100, 1}, false},
                {{101, 0}, false},     {{M, M}, true},     {{M, 0}, false},   {{0, M}, false},
                {{50, M - 49}, false}, {{M - 1, 2}, false}};
    cm_shard_spec spec = {.rank = 0, .index_codecs = plain, .nindex_codecs = 1};
    cm_shard_layout *layout = make(&spec, NULL);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cm_error err = {0};
        cm_shard_entry back;
        int rc = cm_shard_index_decode(layout, &rows[i].entry, 16, 100, &back, &err);
        assert_int_equal(rc, rows[i].fine ? CM_OK : CM_EFORMAT);
    }
    cm_shard_layout_free(layout);
}

static void test_damaged_index(void **state)
{
    (void)state;
    cm_shard_spec spec = {.rank = 1, .chunk = {5}, .index_codecs = checked, .nindex_codecs = 2};
    uint64_t shard = 10;
    static const cm_shard_entry entry[2] = {{0, 10}, {10, 20}};
    cm_shard_layout *layout = make(&spec, &shard);
    uint8_t out[36];
    cm_error err = {0};
    cm_shard_entry back[2];
    assert_int_equal(cm_shard_index_encode(layout, entry, out, &err), CM_OK);
    for (size_t bit = 0; bit < sizeof out * 8; bit++) {
        out[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(cm_shard_index_decode(layout, out, sizeof out, 1000, back, &err),
                         CM_EFORMAT);
        assert_non_null(strstr(err.text, "index of a shard"));
        out[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    cm_shard_layout_free(layout);
}

/* Inner chunks that are missing hold the fill value as the codecs in front encode it. */
static void test_missing_chunks(void **state)
{
    (void)state;
    cm_codec_spec inner[] = {{.id = CM_CODEC_BYTES}};
    cm_cast_spec cast = {.to = {.kind = CM_KIND_INT, .nbytes = 2}};
    float fill = -7;
    for (int given = 0; given < 2; given++) {
        cm_shard_spec shard = {.rank = 2,
                               .chunk = {2, 1},
                               .codecs = inner,
                               .ncodecs = 1,
                               .index_codecs = checked,
                               .nindex_codecs = 2,
                               .fill = given ? (uint8_t *)&fill : NULL,
                               .fill_nbytes = 4};
        cm_codec_spec specs[] = {{.id = CM_CODEC_TRANSPOSE, .order = {1, 0}},
                                 {.id = CM_CODEC_CAST_VALUE, .cast = &cast},
                                 {.id = CM_CODEC_SHARDING, .shard = &shard}};
        cm_dtype f4 = cm_dtype_make(CM_KIND_FLOAT, 4);
        uint64_t shape[] = {1, 6};
        cm_chain *chain;
        cm_error err = {0};
        cm_codec_ctx *ctx = cm_codec_ctx_create(&err);
        if (!ctx || cm_chain_create(specs, 3, &f4, 2, shape, &chain, &err))
            fail_msg("%s", err.text);
        float data[6] = {1, 2, -7, -7, 0, 0}, back[6];
        uint8_t out[200];
        size_t n;
        assert_int_equal(cm_chain_encode(chain, ctx, data, out, &n, &err), CM_OK);
        /* The second inner chunk is left out only where the fill value is known. */
        assert_int_equal(n, 3 * 16 + 4 + (given ? 8 : 12));
        assert_int_equal(cm_chain_decode(chain, ctx, out, n, 0, back, &err), CM_OK);
        assert_memory_equal(back, data, sizeof data);

        /* A shard with nothing but its index. */
        static const cm_shard_entry none[3] = {{M, M}, {M, M}, {M, M}};
        uint64_t whole[] = {6, 1};
        cm_shard_layout *layout = make(&shard, whole);
        assert_int_equal(cm_shard_index_encode(layout, none, out, &err), CM_OK);
        assert_int_equal(
            cm_chain_decode(chain, ctx, out, cm_shard_index_nbytes(layout), 0, back, &err), CM_OK);
        for (int i = 0; i < 6; i++)
            assert_true(back[i] == (given ? -7.0f : 0.0f));
        cm_shard_layout_free(layout);
        cm_chain_free(chain);
        cm_codec_ctx_free(ctx);
    }
}

/* Shards within shards, three deep, and the index in front of the middle one. */
static void test_nested(void **state)
{
    (void)state;
    cm_codec_spec zstd[] = {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_ZSTD, .level = 1}};
    cm_shard_spec low = {.rank = 2,
                         .chunk = {1, 4},
                         .codecs = zstd,
                         .ncodecs = 2,
                         .index_codecs = checked,
                         .nindex_codecs = 2};
    cm_codec_spec of_low[] = {{.id = CM_CODEC_SHARDING, .shard = &low}};
    cm_shard_spec middle = {.rank = 2,
                            .chunk = {2, 4},
                            .codecs = of_low,
                            .ncodecs = 1,
                            .index_codecs = big,
                            .nindex_codecs = 1,
                            .index_at_start = true};
    cm_codec_spec of_middle[] = {{.id = CM_CODEC_SHARDING, .shard = &middle},
                                 {.id = CM_CODEC_CRC32C}};
    cm_shard_spec top = {.rank = 2,
                         .chunk = {4, 8},
                         .codecs = of_middle,
                         .ncodecs = 2,
                         .index_codecs = checked,
                         .nindex_codecs = 2};
    cm_codec_spec spec = {.id = CM_CODEC_SHARDING, .shard = &top};
    cm_dtype i4 = cm_dtype_make(CM_KIND_INT, 4);
    uint64_t shape[] = {8, 24};
    cm_chain *chain;
    cm_error err = {0};
    cm_codec_ctx *ctx = cm_codec_ctx_create(&err);
    if (!ctx || cm_chain_create(&spec, 1, &i4, 2, shape, &chain, &err))
        fail_msg("%s", err.text);
    int32_t data[8 * 24], back[8 * 24];
    for (int i = 0; i < 8 * 24; i++)
        data[i] = i * i;
    uint8_t *out = malloc(cm_chain_encoded_bound(chain));
    size_t n;
    assert_int_equal(cm_chain_encode(chain, ctx, data, out, &n, &err), CM_OK);
    if (cm_chain_decode(chain, ctx, out, n, 0, back, &err))
        fail_msg("%s", err.text);
    assert_memory_equal(back, data, sizeof data);
    out[5] ^= 1;
    assert_int_equal(cm_chain_decode(chain, ctx, out, n, 0, back, &err), CM_EFORMAT);
    assert_non_null(strstr(err.text, "inner chunk 0"));
    free(out);
    cm_chain_free(chain);
    cm_codec_ctx_free(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),          cmocka_unit_test(test_index_bytes),
        cmocka_unit_test(test_entries_outside), cmocka_unit_test(test_damaged_index),
        cmocka_unit_test(test_missing_chunks),  cmocka_unit_test(test_nested),
    };
    return cmocka_run_group_tests_name("shards", tests, NULL, NULL);
}
