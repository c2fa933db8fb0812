/* Chains that are accepted, and messages for those that are not. */

#include <zstd.h>

#include "../unit.h"
#include "codec/impl.h"

#define I2                                                                                         \
    {                                                                                              \
        .kind = CM_KIND_INT, .nbytes = 2                                                           \
    }
#define F4                                                                                         \
    {                                                                                              \
        .kind = CM_KIND_FLOAT, .nbytes = 4                                                         \
    }
#define C8                                                                                         \
    {                                                                                              \
        .kind = CM_KIND_COMPLEX, .nbytes = 8                                                       \
    }
#define TEXT                                                                                       \
    {                                                                                              \
        .kind = CM_KIND_STRING                                                                     \
    }
#define GIB   ((uint64_t)1 << 30)
#define MAX32 4294967295u

static cm_shard_spec of_four = {.rank = 1, .chunk = {4}};
static cm_codec_spec zlib_index[] = {{.id = CM_CODEC_ZLIB, .level = 1}};
static cm_shard_spec with_zlib_index = {
    .rank = 1, .chunk = {4}, .index_codecs = zlib_index, .nindex_codecs = 1};
static cm_cast_spec wrapping_float = {.to = F4, .out_of_range = CM_RANGE_WRAP};

static const struct refusal {
    const char *name;
    cm_status status;
    const char *says; /* part of the message */
    cm_dtype type;
    unsigned rank;
    uint64_t shape[4];
    cm_codec_spec specs[3];
} refusals[] = {
    {"two array->bytes codecs",
     CM_EFORMAT,
     "bytes is out of place",
     I2,
     1,
     {4},
     {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_BYTES}}},
    {"array->array after bytes",
     CM_EFORMAT,
     "transpose is out of place",
     I2,
     1,
     {4},
     {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_TRANSPOSE}}},
    {"array->array after zstd",
     CM_EFORMAT,
     "transpose is out of place",
     I2,
     1,
     {4},
     {{.id = CM_CODEC_ZSTD}, {.id = CM_CODEC_TRANSPOSE}}},
    {"a codec that is none", CM_EINVAL, "not known", I2, 1, {4}, {{.id = (cm_codec_id)99}}},
    {"33 dimensions", CM_EFORMAT, "33 dimensions", I2, 33, {1}, {{.id = CM_CODEC_BYTES}}},
    {"2 TiB", CM_EBUDGET, "larger than 1 TiB", I2, 1, {GIB * 1024}, {{.id = CM_CODEC_BYTES}}},
    {"a product that overflows",
     CM_EBUDGET,
     "larger than 1 TiB",
     I2,
     3,
     {UINT64_MAX / 2, 3, UINT64_MAX},
     {{.id = CM_CODEC_BYTES}}},
    {"1 TiB after a cast",
     CM_EBUDGET,
     "larger than 1 TiB",
     I2,
     1,
     {GIB * 512},
     {{.id = CM_CODEC_ASTYPE, .dtype = I2, .astype = F4}}},
    {"strings in bytes", CM_EFORMAT, "variable length", TEXT, 1, {4}, {{.id = CM_CODEC_BYTES}}},
    {"strings without a codec", CM_EFORMAT, "vlen-utf8", TEXT, 1, {4}, {{.id = CM_CODEC_ZSTD}}},
    {"numbers in vlen-utf8", CM_EFORMAT, "int16", I2, 1, {4}, {{.id = CM_CODEC_VLEN_UTF8}}},
    {"too many strings",
     CM_EUNSUPPORTED,
     "vlen-utf8",
     TEXT,
     1,
     {GIB * 5},
     {{.id = CM_CODEC_VLEN_UTF8}}},
    {"an order with one twice",
     CM_EFORMAT,
     "permutation",
     I2,
     2,
     {4, 4},
     {{.id = CM_CODEC_TRANSPOSE, .order = {1, 1}}}},
    {"an order out of range",
     CM_EFORMAT,
     "permutation",
     I2,
     2,
     {4, 4},
     {{.id = CM_CODEC_TRANSPOSE, .order = {0, 2}}}},
    {"gzip level 13", CM_EFORMAT, "level 13", I2, 1, {4}, {{.id = CM_CODEC_GZIP, .level = 13}}},
    {"bz2 level 10", CM_EFORMAT, "level 10", I2, 1, {4}, {{.id = CM_CODEC_BZ2, .level = 10}}},
    {"blosc level 10", CM_EFORMAT, "level 10", I2, 1, {4}, {{.id = CM_CODEC_BLOSC, .level = 10}}},
    {"blosc above 2 GiB",
     CM_EUNSUPPORTED,
     "blosc can hold",
     I2,
     1,
     {GIB},
     {{.id = CM_CODEC_BLOSC}}},
    {"lz4 above 2 GiB", CM_EUNSUPPORTED, "lz4 can hold", I2, 1, {GIB}, {{.id = CM_CODEC_LZ4}}},
    {"delta of another size",
     CM_EUNSUPPORTED,
     "int16",
     I2,
     1,
     {4},
     {{.id = CM_CODEC_DELTA, .dtype = F4, .astype = F4}}},
    {"delta of complex",
     CM_EUNSUPPORTED,
     "complex64",
     C8,
     1,
     {4},
     {{.id = CM_CODEC_DELTA, .dtype = C8, .astype = C8}}},
    {"quantize of integers",
     CM_EFORMAT,
     "floating-point",
     I2,
     1,
     {4},
     {{.id = CM_CODEC_QUANTIZE, .dtype = I2, .astype = I2}}},
    {"fixedscaleoffset by zero",
     CM_EFORMAT,
     "scale 0",
     F4,
     1,
     {4},
     {{.id = CM_CODEC_FIXEDSCALEOFFSET, .dtype = F4, .astype = I2}}},
    {"scale_offset by zero", CM_EFORMAT, "zero", F4, 1, {4}, {{.id = CM_CODEC_SCALE_OFFSET}}},
    {"scale_offset of complex",
     CM_EFORMAT,
     "complex64",
     C8,
     1,
     {4},
     {{.id = CM_CODEC_SCALE_OFFSET}}},
    {"cast_value to a float that wraps",
     CM_EFORMAT,
     "wrap",
     I2,
     1,
     {4},
     {{.id = CM_CODEC_CAST_VALUE, .cast = &wrapping_float}}},
    {"cast_value of complex",
     CM_EFORMAT,
     "complex64",
     C8,
     1,
     {4},
     {{.id = CM_CODEC_CAST_VALUE, .cast = &wrapping_float}}},
    {"packbits of int16", CM_EFORMAT, "int16", I2, 1, {4}, {{.id = CM_CODEC_PACKBITS}}},
    {"a shard that is no multiple",
     CM_EFORMAT,
     "multiple",
     I2,
     1,
     {10},
     {{.id = CM_CODEC_SHARDING, .shard = &of_four}}},
    {"a shard of another rank",
     CM_EFORMAT,
     "dimensions",
     I2,
     2,
     {4, 4},
     {{.id = CM_CODEC_SHARDING, .shard = &of_four}}},
    {"an index of varying size",
     CM_EFORMAT,
     "zlib",
     I2,
     1,
     {8},
     {{.id = CM_CODEC_SHARDING, .shard = &with_zlib_index}}},
    {"shards of strings",
     CM_EUNSUPPORTED,
     "sharding_indexed",
     TEXT,
     1,
     {8},
     {{.id = CM_CODEC_SHARDING, .shard = &of_four}}},
    {"szip without pixels", CM_EFORMAT, "szip", I2, 1, {4}, {{.id = CM_CODEC_SZIP}}},
    {"szip of 40 bits",
     CM_EFORMAT,
     "40 bits",
     I2,
     1,
     {4},
     {{.id = CM_CODEC_SZIP, .szip = {0, 8, 40, 64}}}},
    {"szip of long lines",
     CM_EFORMAT,
     "scanline",
     I2,
     1,
     {4},
     {{.id = CM_CODEC_SZIP, .szip = {0, 8, 16, MAX32}}}},
    {"bitshuffle in blocks of 12",
     CM_EFORMAT,
     "blocks of 12",
     I2,
     1,
     {4},
     {{.id = CM_CODEC_BITSHUFFLE, .bitshuffle = {2, 12, 0}}}},
    {"bitshuffle with another compressor",
     CM_EUNSUPPORTED,
     "number 7",
     I2,
     1,
     {4},
     {{.id = CM_CODEC_BITSHUFFLE, .bitshuffle = {2, 0, 7}}}},
};

static size_t count_specs(const cm_codec_spec specs[3])
{
    size_t n = 0;
    while (n < 3 && specs[n].id != CM_CODEC_NONE)
        n++;
    return n;
}

static void test_refusal(void **state)
{
    const struct refusal *r = *state;
    uint64_t shape[40] = {0};
    memcpy(shape, r->shape, sizeof r->shape);
    cm_error err = {0};
    cm_chain *chain = NULL;
    assert_int_equal(
        cm_chain_create(r->specs, count_specs(r->specs), &r->type, r->rank, shape, &chain, &err),
        r->status);
    assert_null(chain);
    assert_int_equal(err.status, r->status);
    if (!strstr(err.text, r->says))
        fail_msg("\"%s\" does not say \"%s\"", err.text, r->says);
}

static cm_chain *make(const cm_codec_spec *specs, size_t n, uint64_t nelem)
{
    cm_dtype type = I2;
    cm_error err = {0};
    cm_chain *chain = NULL;
    if (cm_chain_create(specs, n, &type, 1, &nelem, &chain, &err))
        fail_msg("%s", err.text);
    return chain;
}

static void test_raw(void **state)
{
    (void)state;
    static const struct {
        bool raw;
        cm_codec_spec specs[3];
    } rows[] = {{true, {{.id = CM_CODEC_NONE}}},
                {true, {{.id = CM_CODEC_BYTES}}},
                {false, {{.id = CM_CODEC_BYTES, .big_endian = true}}},
                {false, {{.id = CM_CODEC_CRC32C}}},
                {false, {{.id = CM_CODEC_BITROUND, .keepbits = 3}}}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cm_chain *chain = make(rows[i].specs, count_specs(rows[i].specs), 10);
        assert_int_equal(cm_chain_is_raw(chain), rows[i].raw);
        cm_chain_free(chain);
    }
    cm_codec_spec big = {.id = CM_CODEC_BYTES, .big_endian = true};
    cm_dtype byte = cm_dtype_make(CM_KIND_UINT, 1);
    uint64_t n = 10;
    cm_chain *chain;
    cm_error err = {0};
    assert_int_equal(cm_chain_create(&big, 1, &byte, 1, &n, &chain, &err), CM_OK);
    assert_true(cm_chain_is_raw(chain)); /* single bytes have no order */
    cm_chain_free(chain);
}

/*
 * Every subset of an HDF5 pipeline: the chunk as if its filters had been skipped, and the mask
 * for it.
 */
static void test_skip(void **state)
{
    (void)state;
    static const cm_codec_spec all[] = {{.id = CM_CODEC_BYTES, .big_endian = true},
                                        {.id = CM_CODEC_FLETCHER32},
                                        {.id = CM_CODEC_SHUFFLE, .elementsize = 2},
                                        {.id = CM_CODEC_ZLIB, .level = 1},
                                        {.id = CM_CODEC_CRC32C}};
    enum {
        NELEM = 37,
        NFILTERS = 4
    };
    int16_t data[NELEM], back[NELEM];
    for (int i = 0; i < NELEM; i++)
        data[i] = (int16_t)(i * 31);
    for (int big = 0; big < 2; big++) {
        cm_codec_spec specs[NFILTERS + 1];
        memcpy(specs, all, sizeof specs);
        specs[0].big_endian = big;
        cm_chain *whole = make(specs, NFILTERS + 1, NELEM);
        cm_error err = {0};
        cm_codec_ctx *ctx = cm_codec_ctx_create(&err);
        for (uint32_t mask = 0; mask < 1u << NFILTERS; mask++) {
            cm_codec_spec kept[NFILTERS + 1] = {specs[0]};
            size_t n = 1;
            for (uint32_t i = 0; i < NFILTERS; i++)
                if (!(mask >> i & 1))
                    kept[n++] = specs[i + 1];
            cm_chain *part = make(kept, n, NELEM);
            uint8_t *chunk = malloc(cm_chain_encoded_bound(part));
            size_t nbytes;
            assert_int_equal(cm_chain_encode(part, ctx, data, chunk, &nbytes, &err), CM_OK);
            memset(back, 0, sizeof back);
            if (cm_chain_decode(whole, ctx, chunk, nbytes, mask, back, &err))
                fail_msg("mask %x: %s", mask, err.text);
            assert_memory_equal(back, data, sizeof data);
            if (mask != 0)
                assert_int_not_equal(cm_chain_decode(whole, ctx, chunk, nbytes, 0, back, &err),
                                     CM_OK);
            free(chunk);
            cm_chain_free(part);
        }
        cm_codec_ctx_free(ctx);
        cm_chain_free(whole);
    }
}

/* A pipeline may have more filters than the mask has bits. */
static void test_long_pipeline(void **state)
{
    (void)state;
    cm_codec_spec specs[40];
    for (size_t i = 0; i < 40; i++)
        specs[i] = (cm_codec_spec){.id = CM_CODEC_CRC32C};
    cm_chain *chain = make(specs, 40, 3);
    cm_error err = {0};
    cm_codec_ctx *ctx = cm_codec_ctx_create(&err);
    int16_t data[] = {1, 2, 3}, back[3];
    uint8_t chunk[6 + 160];
    size_t nbytes;
    assert_int_equal(cm_chain_encoded_bound(chain), sizeof chunk);
    assert_int_equal(cm_chain_encode(chain, ctx, data, chunk, &nbytes, &err), CM_OK);
    assert_int_equal(nbytes, sizeof chunk);
    assert_int_equal(cm_chain_decode(chain, ctx, chunk, nbytes, 0, back, &err), CM_OK);
    assert_memory_equal(back, data, sizeof data);
    /* With the 32 that can be skipped left out, the other eight remain. */
    memmove(chunk + 6, chunk + 6 + 128, 32);
    assert_int_not_equal(cm_chain_decode(chain, ctx, chunk, 6 + 32, UINT32_MAX, back, &err), CM_OK);
    cm_codec_ctx_free(ctx);
    cm_chain_free(chain);
}

static void test_copies_are_deep(void **state)
{
    (void)state;
    uint8_t fill[2] = {7, 0};
    cm_cast_pair pair = {.from = {1}, .to = {2}};
    cm_cast_spec cast = {.to = I2, .encode_map = &pair, .nencode_map = 1};
    cm_codec_spec inner[] = {{.id = CM_CODEC_CAST_VALUE, .cast = &cast}, {.id = CM_CODEC_BYTES}};
    cm_codec_spec index[] = {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_CRC32C}};
    cm_shard_spec shard = {.rank = 1,
                           .chunk = {4},
                           .codecs = inner,
                           .ncodecs = 2,
                           .index_codecs = index,
                           .nindex_codecs = 2,
                           .fill = fill,
                           .fill_nbytes = 2};
    cm_codec_spec spec = {.id = CM_CODEC_SHARDING, .shard = &shard}, *copy;
    cm_error err = {0};
    assert_int_equal(cm_codec_specs_copy(&spec, 1, &copy, &err), CM_OK);
    inner[0].id = CM_CODEC_NONE;
    pair.to[0] = 9;
    fill[0] = 9;
    assert_int_equal(copy[0].shard->codecs[0].id, CM_CODEC_CAST_VALUE);
    assert_int_equal(copy[0].shard->codecs[0].cast->encode_map[0].to[0], 2);
    assert_int_equal(copy[0].shard->index_codecs[1].id, CM_CODEC_CRC32C);
    assert_int_equal(copy[0].shard->fill[0], 7);
    cm_codec_specs_free(copy, 1);
    assert_int_equal(cm_codec_specs_copy(NULL, 0, &copy, &err), CM_OK);
    assert_null(copy);
    cm_codec_specs_free(NULL, 0);
    cm_chain_free(NULL);
    cm_codec_ctx_free(NULL);
}

/* Scratch is counted: two buffers where three codecs stand in a row, none where one does. */
static void test_memory(void **state)
{
    (void)state;
    enum {
        NELEM = 1 << 20,
        NBYTES = 2 * NELEM
    };
    static const cm_codec_spec three[] = {{.id = CM_CODEC_BYTES, .big_endian = true},
                                          {.id = CM_CODEC_SHUFFLE, .elementsize = 2},
                                          {.id = CM_CODEC_ZLIB, .level = 1}};
    cm_chain *none = make(NULL, 0, NELEM), *one = make(&three[2], 1, NELEM),
             *all = make(three, 3, NELEM);
    assert_true(cm_chain_decode_memory(none) < 1024);
    assert_true(cm_chain_encode_memory(none) < 1024);
    assert_true(cm_chain_decode_memory(one) < NBYTES);
    assert_in_range(cm_chain_decode_memory(all), 2 * NBYTES, 2 * NBYTES + (1 << 16));
    assert_in_range(cm_chain_encode_memory(all), 2 * NBYTES, 2 * NBYTES + (2 << 20));
    cm_chain_free(none);
    cm_chain_free(one);
    cm_chain_free(all);
}

/* Memory of a context after a chunk, library contexts included. */
static size_t held(const cm_codec_ctx *ctx)
{
    return ctx->scratch[0].capacity + ctx->scratch[1].capacity + ctx->work.capacity +
           ctx->index.capacity + (ctx->inner ? held(ctx->inner) : 0) +
           ZSTD_sizeof_CCtx(ctx->zstd_encoder) + ZSTD_sizeof_DCtx(ctx->zstd_decoder);
}

static void test_memory_is_bounded(void **state)
{
    (void)state;
    enum {
        NELEM = 1 << 18
    };
    static const cm_codec_spec lists[][4] = {
        {{.id = CM_CODEC_ZSTD, .level = 1}},
        {{.id = CM_CODEC_ZSTD, .level = 9}},
        {{.id = CM_CODEC_SHUFFLE, .elementsize = 2}, {.id = CM_CODEC_ZSTD, .level = 3}},
        {{.id = CM_CODEC_BLOSC,
          .level = 2,
          .blosc = {"zstd", CM_BLOSC_SHUFFLE, CM_BLOSC_ONE_BLOCK}}},
        {{.id = CM_CODEC_BYTES, .big_endian = true},
         {.id = CM_CODEC_FLETCHER32},
         {.id = CM_CODEC_SHUFFLE, .elementsize = 2},
         {.id = CM_CODEC_ZSTD, .level = 3}},
    };
    int16_t *data = malloc(2 * NELEM), *back = malloc(2 * NELEM);
    for (uint32_t i = 0; i < NELEM; i++)
        data[i] = (int16_t)(i * 2654435761u >> 19);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        size_t n = lists[i][3].id ? 4 : count_specs(lists[i]);
        cm_chain *chain = make(lists[i], n, NELEM);
        cm_error err = {0};
        cm_codec_ctx *encoder = cm_codec_ctx_create(&err), *decoder = cm_codec_ctx_create(&err);
        uint8_t *chunk = malloc(cm_chain_encoded_bound(chain));
        size_t nbytes;
        assert_int_equal(cm_chain_encode(chain, encoder, data, chunk, &nbytes, &err), CM_OK);
        assert_int_equal(cm_chain_decode(chain, decoder, chunk, nbytes, 0, back, &err), CM_OK);
        assert_memory_equal(back, data, 2 * NELEM);
        assert_in_range(held(encoder), 1, cm_chain_encode_memory(chain));
        assert_in_range(held(decoder), 1, cm_chain_decode_memory(chain));
        cm_codec_ctx_free(encoder);
        cm_codec_ctx_free(decoder);
        free(chunk);
        cm_chain_free(chain);
    }
    free(data);
    free(back);
}

static void test_names(void **state)
{
    (void)state;
    for (int id = CM_CODEC_TRANSPOSE; id <= CM_CODEC_BITSHUFFLE; id++) {
        assert_string_not_equal(cm_codec_name((cm_codec_id)id), "unknown codec");
        cm_codec_class kind = id < CM_CODEC_BYTES  ? CM_CODEC_ARRAY_ARRAY
                              : id < CM_CODEC_GZIP ? CM_CODEC_ARRAY_BYTES
                                                   : CM_CODEC_BYTES_BYTES;
        assert_int_equal(cm_codec_class_of((cm_codec_id)id), kind);
    }
    assert_string_equal(cm_codec_name(CM_CODEC_NONE), "unknown codec");
    assert_string_equal(cm_codec_name(CM_CODEC_SHARDING), "sharding_indexed");
}

int main(void)
{
    enum {
        NROWS = sizeof refusals / sizeof refusals[0]
    };
    const struct CMUnitTest others[] = {
        cmocka_unit_test(test_raw),           cmocka_unit_test(test_skip),
        cmocka_unit_test(test_long_pipeline), cmocka_unit_test(test_copies_are_deep),
        cmocka_unit_test(test_memory),        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_names)};
    struct CMUnitTest tests[NROWS + sizeof others / sizeof others[0]];
    for (size_t i = 0; i < NROWS; i++)
        tests[i] = (struct CMUnitTest){.name = refusals[i].name,
                                       .test_func = test_refusal,
                                       .initial_state = (void *)(uintptr_t)&refusals[i]};
    memcpy(tests + NROWS, others, sizeof others);
    return cmocka_run_group_tests_name("codec chains", tests, NULL, NULL);
}
