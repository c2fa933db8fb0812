/*
 * Properties of every chain of codecs: it restores its input, stays
 * within its bound, and survives damage.
 */
#include "damage.h"

#include "codec/shard.h"

static const cm_dtype types[] = {
    {.kind = CM_KIND_FLOAT, .nbytes = 4},   {.kind = CM_KIND_BOOL, .nbytes = 1},
    {.kind = CM_KIND_INT, .nbytes = 1},     {.kind = CM_KIND_INT, .nbytes = 2},
    {.kind = CM_KIND_INT, .nbytes = 4},     {.kind = CM_KIND_INT, .nbytes = 8},
    {.kind = CM_KIND_UINT, .nbytes = 1},    {.kind = CM_KIND_UINT, .nbytes = 2},
    {.kind = CM_KIND_UINT, .nbytes = 4},    {.kind = CM_KIND_UINT, .nbytes = 8},
    {.kind = CM_KIND_FLOAT, .nbytes = 2},   {.kind = CM_KIND_FLOAT, .nbytes = 8},
    {.kind = CM_KIND_COMPLEX, .nbytes = 8}, {.kind = CM_KIND_COMPLEX, .nbytes = 16},
    {.kind = CM_KIND_BYTES, .nbytes = 3},   {.kind = CM_KIND_RAW, .nbytes = 300},
    {.kind = CM_KIND_UTF32, .nbytes = 8},   {.kind = CM_KIND_DATETIME, .nbytes = 8, .unit = "ns"},
};

static const struct shape {
    unsigned rank;
    uint64_t shape[4];
} shapes[] = {{0, {0}},     {1, {1}},        {1, {7}},         {1, {1000}},
              {2, {7, 13}}, {3, {3, 32, 9}}, {4, {2, 3, 4, 5}}};

/* The array in inner chunks of ones along the first dimension; filled in by shard_for. */
static cm_codec_spec inner_codecs[] = {{.id = CM_CODEC_BYTES, .big_endian = true},
                                       {.id = CM_CODEC_ZLIB, .level = 1}};
static cm_codec_spec index_codecs[] = {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_CRC32C}};
static cm_shard_spec at_end = {
    .codecs = inner_codecs, .ncodecs = 2, .index_codecs = index_codecs, .nindex_codecs = 2};
static cm_shard_spec at_start = {.codecs = inner_codecs,
                                 .ncodecs = 1,
                                 .index_codecs = index_codecs,
                                 .nindex_codecs = 1,
                                 .index_at_start = true};

#define F4                                                                                         \
    {                                                                                              \
        .kind = CM_KIND_FLOAT, .nbytes = 4                                                         \
    }
#define F8                                                                                         \
    {                                                                                              \
        .kind = CM_KIND_FLOAT, .nbytes = 8                                                         \
    }
#define I1                                                                                         \
    {                                                                                              \
        .kind = CM_KIND_INT, .nbytes = 1                                                           \
    }
#define I2                                                                                         \
    {                                                                                              \
        .kind = CM_KIND_INT, .nbytes = 2                                                           \
    }
#define I4                                                                                         \
    {                                                                                              \
        .kind = CM_KIND_INT, .nbytes = 4                                                           \
    }
#define U2                                                                                         \
    {                                                                                              \
        .kind = CM_KIND_UINT, .nbytes = 2                                                          \
    }
#define B1                                                                                         \
    {                                                                                              \
        .kind = CM_KIND_BOOL, .nbytes = 1                                                          \
    }

static cm_cast_spec to_i2 = {.to = I2, .rounding = CM_ROUND_NEAREST_EVEN};

static const struct row {
    const char *name;
    cm_dtype only; /* the one type that it is for; else all */
    bool transposes;
    bool shards;
    bool is_fixed; /* every value has the same encoded size */
    cm_codec_spec specs[5];
} rows[] = {
    {"nothing", .is_fixed = true},
    {"bytes little", .is_fixed = true, .specs = {{.id = CM_CODEC_BYTES}}},
    {"bytes big", .is_fixed = true, .specs = {{.id = CM_CODEC_BYTES, .big_endian = true}}},
    {"transpose", .transposes = true, .is_fixed = true, .specs = {{.id = CM_CODEC_TRANSPOSE}}},
    {"transpose, big, zstd", .transposes = true,
     .specs = {{.id = CM_CODEC_TRANSPOSE},
               {.id = CM_CODEC_BYTES, .big_endian = true},
               {.id = CM_CODEC_ZSTD, .level = 3}}},
    {"gzip", .specs = {{.id = CM_CODEC_GZIP, .level = 5}}},
    {"gzip 0", .specs = {{.id = CM_CODEC_GZIP}}},
    {"gzip -1", .specs = {{.id = CM_CODEC_GZIP, .level = -1}}},
    {"zlib 9", .specs = {{.id = CM_CODEC_ZLIB, .level = 9}}},
    {"zlib 12", .specs = {{.id = CM_CODEC_ZLIB, .level = 12}}},
    {"zstd -5", .specs = {{.id = CM_CODEC_ZSTD, .level = -5}}},
    {"zstd 3, checksum", .specs = {{.id = CM_CODEC_ZSTD, .level = 3, .checksum = true}}},
    {"zstd 19", .specs = {{.id = CM_CODEC_ZSTD, .level = 19}}},
    {"blosc zstd, one block", .specs = {{.id = CM_CODEC_BLOSC,
                                         .level = 2,
                                         .blosc = {"zstd", CM_BLOSC_SHUFFLE, CM_BLOSC_ONE_BLOCK}}}},
    {"blosc lz4",
     .specs = {{.id = CM_CODEC_BLOSC, .level = 5, .blosc = {"lz4", CM_BLOSC_SHUFFLE, 0}}}},
    {"blosc lz4hc, bits",
     .specs = {{.id = CM_CODEC_BLOSC, .level = 9, .blosc = {"lz4hc", CM_BLOSC_BITSHUFFLE, 0}}}},
    {"blosc zlib, no shuffle",
     .specs = {{.id = CM_CODEC_BLOSC, .level = 1, .blosc = {"zlib", CM_BLOSC_NOSHUFFLE, 256}}}},
    {"blosc blosclz", .specs = {{.id = CM_CODEC_BLOSC,
                                 .level = 5,
                                 .elementsize = 2,
                                 .blosc = {"blosclz", CM_BLOSC_SHUFFLE, 512}}}},
    {"blosc stored",
     .specs = {{.id = CM_CODEC_BLOSC, .level = 0, .blosc = {"lz4", CM_BLOSC_SHUFFLE, 0}}}},
    {"lz4", .specs = {{.id = CM_CODEC_LZ4, .level = 1}}},
    {"lz4 fast", .specs = {{.id = CM_CODEC_LZ4, .level = 1000000}}},
    {"bz2", .specs = {{.id = CM_CODEC_BZ2, .level = 1}}},
    {"shuffle 0", .is_fixed = true, .specs = {{.id = CM_CODEC_SHUFFLE}}},
    {"shuffle 4", .is_fixed = true, .specs = {{.id = CM_CODEC_SHUFFLE, .elementsize = 4}}},
    {"shuffle 8, zlib",
     .specs = {{.id = CM_CODEC_SHUFFLE, .elementsize = 8}, {.id = CM_CODEC_ZLIB, .level = 4}}},
    {"netCDF-4: fletcher32, shuffle, deflate", .specs = {{.id = CM_CODEC_BYTES},
                                                         {.id = CM_CODEC_FLETCHER32},
                                                         {.id = CM_CODEC_SHUFFLE, .elementsize = 4},
                                                         {.id = CM_CODEC_ZLIB, .level = 4}}},
    {"old netCDF-4: shuffle, deflate, fletcher32, big",
     .specs = {{.id = CM_CODEC_BYTES, .big_endian = true},
               {.id = CM_CODEC_SHUFFLE, .elementsize = 4},
               {.id = CM_CODEC_ZLIB, .level = 1},
               {.id = CM_CODEC_FLETCHER32}}},
    {"crc32c", .is_fixed = true, .specs = {{.id = CM_CODEC_CRC32C}}},
    {"crc32 in front", .is_fixed = true, .specs = {{.id = CM_CODEC_CRC32, .at_start = true}}},
    {"adler32 in front", .is_fixed = true, .specs = {{.id = CM_CODEC_ADLER32, .at_start = true}}},
    {"adler32, crc32", .is_fixed = true,
     .specs = {{.id = CM_CODEC_ADLER32}, {.id = CM_CODEC_CRC32}}},
    {"three checksums and zstd", .specs = {{.id = CM_CODEC_CRC32C},
                                           {.id = CM_CODEC_CRC32, .at_start = true},
                                           {.id = CM_CODEC_ZSTD, .level = 1},
                                           {.id = CM_CODEC_FLETCHER32}}},
    {"gzip of zstd of lz4",
     .specs = {{.id = CM_CODEC_LZ4}, {.id = CM_CODEC_ZSTD}, {.id = CM_CODEC_GZIP, .level = 1}}},
    {"sharding", .shards = true, .specs = {{.id = CM_CODEC_SHARDING, .shard = &at_end}}},
    {"sharding in front, crc32c", .shards = true,
     .specs = {{.id = CM_CODEC_SHARDING, .shard = &at_start}, {.id = CM_CODEC_CRC32C}}},
    {"transpose, sharding, gzip", .transposes = true, .shards = true,
     .specs = {{.id = CM_CODEC_TRANSPOSE},
               {.id = CM_CODEC_SHARDING, .shard = &at_end},
               {.id = CM_CODEC_GZIP, .level = 1}}},
    {"delta f4", .only = F4, .is_fixed = true,
     .specs = {{.id = CM_CODEC_DELTA, .dtype = F4, .astype = F4}}},
    {"delta i2 as i4", .only = I2, .is_fixed = true,
     .specs = {{.id = CM_CODEC_DELTA, .dtype = I2, .astype = I4}}},
    {"delta bool", .only = B1, .is_fixed = true,
     .specs = {{.id = CM_CODEC_DELTA, .dtype = B1, .astype = B1}}},
    {"fixedscaleoffset f8 as i2", .only = F8, .is_fixed = true,
     .specs =
         {{.id = CM_CODEC_FIXEDSCALEOFFSET, .scale = 4, .offset = 10, .dtype = F8, .astype = I2}}},
    {"fixedscaleoffset f4 as u2, zlib", .only = F4,
     .specs =
         {{.id = CM_CODEC_FIXEDSCALEOFFSET, .scale = 4, .offset = -10, .dtype = F4, .astype = U2},
          {.id = CM_CODEC_BYTES, .big_endian = true},
          {.id = CM_CODEC_ZLIB, .level = 1}}},
    {"quantize f8 as f4", .only = F8, .is_fixed = true,
     .specs = {{.id = CM_CODEC_QUANTIZE, .keepbits = 3, .dtype = F8, .astype = F4}}},
    {"bitround f4", .only = F4, .is_fixed = true,
     .specs = {{.id = CM_CODEC_BITROUND, .keepbits = 12}}},
    {"astype i4 as i1, delta, lz4", .only = I4,
     .specs = {{.id = CM_CODEC_ASTYPE, .dtype = I4, .astype = I1},
               {.id = CM_CODEC_DELTA, .dtype = I1, .astype = I1},
               {.id = CM_CODEC_LZ4}}},
    {"packbits", .only = B1, .is_fixed = true, .specs = {{.id = CM_CODEC_PACKBITS}}},
    {"packbits, zstd", .only = B1, .specs = {{.id = CM_CODEC_PACKBITS}, {.id = CM_CODEC_ZSTD}}},
    {"scale_offset f4, cast to i2", .only = F4, .is_fixed = true,
     .specs = {{.id = CM_CODEC_SCALE_OFFSET,
                .exact_scale = {0, 0, 0x80, 0x40},   /* 4 */
                .exact_offset = {0, 0, 0x80, 0x3f}}, /* 1 */
               {.id = CM_CODEC_CAST_VALUE, .cast = &to_i2}}},
    {"cast i4 to i2", .only = I4, .is_fixed = true,
     .specs = {{.id = CM_CODEC_CAST_VALUE, .cast = &to_i2}}},
};

/* Small numbers of each type, multiples of 1/4 for floats, so that lossy codecs lose nothing. */
static void fill_element(const cm_dtype *t, uint64_t i, uint8_t *out)
{
    double quarter = (double)(i * 7 % 200) * 0.25;
    uint64_t small = t->kind == CM_KIND_BOOL ? i % 3 == 0 : i * 7 % 100;
    float single = (float)quarter;
    uint16_t halves[] = {0x0000, 0x3800, 0x3c00, 0xc000, 0x4900}; /* 0 0.5 1 -2 10 */
    memset(out, (int)(i % 5), t->nbytes);
    switch (t->kind) {
    case CM_KIND_FLOAT:
        memcpy(out,
               t->nbytes == 8   ? (const void *)&quarter
               : t->nbytes == 4 ? (const void *)&single
                                : (const void *)&halves[i % 5],
               t->nbytes);
        break;
    case CM_KIND_BOOL:
    case CM_KIND_INT:
    case CM_KIND_UINT:
    case CM_KIND_DATETIME:
        memcpy(out, &small, t->nbytes);
        break;
    default:
        out[0] = (uint8_t)(i * 7);
    }
}

static size_t count_specs(const struct row *row)
{
    size_t n = 0;
    while (n < 5 && row->specs[n].id != CM_CODEC_NONE)
        n++;
    return n;
}

/* The row's chain for one type and shape. */
static cm_chain *make_chain(const struct row *row, const cm_dtype *type, const struct shape *s)
{
    cm_codec_spec specs[5];
    size_t n = count_specs(row);
    memcpy(specs, row->specs, sizeof specs);
    const uint64_t *inner = s->shape;
    uint64_t reversed[4];
    for (unsigned j = 0; row->transposes && j < s->rank; j++) {
        specs[0].order[j] = s->rank - 1 - j;
        reversed[j] = s->shape[s->rank - 1 - j];
        inner = reversed;
    }
    for (unsigned j = 0; row->shards && j < s->rank; j++) {
        at_end.chunk[j] = j == 0 ? 1 : inner[j];
        at_start.chunk[j] = at_end.chunk[j];
    }
    at_end.rank = at_start.rank = s->rank;
    cm_error err = {0};
    cm_chain *chain = NULL;
    int rc = cm_chain_create(specs, n, type, s->rank, s->shape, &chain, &err);
    if (rc)
        fail_msg("%s: %s", row->name, err.text);
    return chain;
}

static void check_row(const struct row *row, const cm_dtype *type, const struct shape *s,
                      bool damage, cm_codec_ctx *ctx)
{
    cm_error err = {0};
    cm_chain *chain = make_chain(row, type, s);
    size_t nbytes = cm_chain_decoded_nbytes(chain), bound = cm_chain_encoded_bound(chain);
    uint64_t nelem = 1;
    for (unsigned j = 0; j < s->rank; j++)
        nelem *= s->shape[j];
    assert_int_equal(nbytes, nelem * type->nbytes);
    uint8_t *data = malloc(nbytes), *back = malloc(nbytes), *encoded = malloc(bound);
    uint8_t *far = aligned_alloc(64, nbytes / 64 * 64 + 64);
    for (uint64_t i = 0; i < nelem; i++)
        fill_element(type, i, data + i * type->nbytes);
    uint8_t *kept = exact_copy(data, nbytes);

    size_t n = 0;
    assert_int_equal(cm_chain_can_encode(chain, &err), CM_OK);
    int rc = cm_chain_encode(chain, ctx, data, encoded, &n, &err);
    if (rc)
        fail_msg("%s: %s", row->name, err.text);
    assert_true(n <= bound);
    if (row->is_fixed)
        assert_int_equal(n, bound);
    uint8_t *chunk = exact_copy(encoded, n);
    memset(back, 0x5a, nbytes);
    rc = cm_chain_decode(chain, ctx, chunk, n, 0, back, &err);
    if (rc)
        fail_msg("%s: %s", row->name, err.text);
    assert_memory_equal(back, data, nbytes);
    memset(far, 0x5a, nbytes + 1);
    assert_int_equal(cm_chain_decode_far(chain, ctx, chunk, n, 0, far, &err), CM_OK);
    assert_memory_equal(far, data, nbytes);
    assert_int_equal(far[nbytes], 0x5a);
    assert_memory_equal(data, kept, nbytes);
    assert_memory_equal(chunk, encoded, n);
    if (damage)
        check_damage(chain, ctx, chunk, n);
    free(data);
    free(back);
    free(far);
    free(encoded);
    free(kept);
    free(chunk);
    cm_chain_free(chain);
}

static bool fits(const struct row *row, const cm_dtype *type, const struct shape *s)
{
    if (row->only.kind && !cm_dtype_equal(&row->only, type))
        return false;
    return !(row->transposes || row->shards) || s->rank > 0;
}

static void for_all(bool damage)
{
    cm_error err = {0};
    cm_codec_ctx *ctx = cm_codec_ctx_create(&err);
    assert_non_null(ctx);
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
            for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
                bool one_type = rows[r].only.kind || t == 0; /* damage knows no types */
                if (fits(&rows[r], &types[t], &shapes[s]) && (!damage || one_type))
                    check_row(&rows[r], &types[t], &shapes[s], damage, ctx);
            }
        }
    }
    cm_codec_ctx_free(ctx);
}

static void test_round_trip(void **state)
{
    (void)state;
    for_all(false);
}

static void test_damage(void **state)
{
    (void)state;
    for_all(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_round_trip),
                                       cmocka_unit_test(test_damage)};
    return cmocka_run_group_tests_name("codec conformance", tests, NULL, NULL);
}
