/*
 * Chunks taken apart: what the streams become, put together here by the libraries
 * themselves, is what the chain decodes; lengths that lie are found.
 */
#include "damage.h"

#include <stdio.h>

#include <blosc.h>
#include <libdeflate.h>
#include <lz4.h>
#include <zstd.h>

#include "codec/split.h"
#include "model/copy.h"

enum {
    MOST_NELEM = 40000,
    MOST_NBYTES = 4 * MOST_NELEM
};

static uint8_t *data, *stored, *raw, *back;
static cm_codec_ctx *ctx;

static int set_up(void **state)
{
    (void)state;
    cm_error err = {0};
    ctx = cm_codec_ctx_create(&err);
    data = malloc(MOST_NBYTES);
    stored = malloc(2 * MOST_NBYTES);
    raw = malloc(MOST_NBYTES);
    back = malloc(MOST_NBYTES);
    return ctx && data && stored && raw && back ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    cm_codec_ctx_free(ctx);
    free(data);
    free(stored);
    free(raw);
    free(back);
    return 0;
}

/* Elements that grow slowly, or bytes without any order. */
static void fill(size_t nbytes, bool random)
{
    uint32_t x = 12345;
    for (size_t i = 0; i < nbytes; i++) {
        x = x * 1664525 + 1013904223;
        data[i] = random ? (uint8_t)(x >> 24) : (uint8_t)(i % 4 == 0 ? i / 4 : i / 4000);
    }
}

static cm_chain *make(const cm_codec_spec *spec, size_t n, uint64_t nelem)
{
    cm_dtype type = cm_dtype_make(CM_KIND_FLOAT, 4);
    cm_error err = {0};
    cm_chain *chain = NULL;
    if (cm_chain_create(spec, n, &type, 1, &nelem, &chain, &err))
        fail_msg("%s", err.text);
    return chain;
}

/* One stream, by its library. */
static void decode_stream(const cm_split_stream *s)
{
    const uint8_t *from = stored + s->src;
    uint8_t *to = raw + s->dst;
    switch (s->kind) {
    case CM_SPLIT_STORED:
        assert_int_equal(s->src_nbytes, s->dst_nbytes);
        memcpy(to, from, s->dst_nbytes);
        break;
    case CM_SPLIT_ZSTD:
        assert_int_equal(ZSTD_decompress(to, s->dst_nbytes, from, s->src_nbytes), s->dst_nbytes);
        break;
    case CM_SPLIT_LZ4:
        assert_int_equal(LZ4_decompress_safe((const char *)from, (char *)to, (int)s->src_nbytes,
                                             (int)s->dst_nbytes),
                         s->dst_nbytes);
        break;
    case CM_SPLIT_DEFLATE: {
        struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
        assert_int_equal(
            libdeflate_deflate_decompress(d, from, s->src_nbytes, to, s->dst_nbytes, NULL),
            LIBDEFLATE_SUCCESS);
        libdeflate_free_decompressor(d);
        break;
    }
    }
}

/* What the description says of the whole chunk; every byte is made once. */
static void put_together(const cm_chunk_streams *s)
{
    size_t made = 0;
    memset(raw, 0xee, MOST_NBYTES);
    for (size_t i = 0; i < s->nstreams; i++) {
        assert_int_equal(s->stream[i].dst, made);
        decode_stream(&s->stream[i]);
        made += s->stream[i].dst_nbytes;
    }
    assert_int_equal(made, s->nbytes);
    if (s->typesize == 0) {
        memcpy(back, raw, s->nbytes);
        return;
    }
    for (size_t at = 0; at < s->nbytes; at += s->block_nbytes) {
        const size_t left = s->nbytes - at;
        const size_t nbytes = left < s->block_nbytes ? left : s->block_nbytes;
        const size_t n = nbytes / s->typesize;
        for (size_t e = 0; e < n; e++)
            for (size_t j = 0; j < s->typesize; j++)
                back[at + e * s->typesize + j] = raw[at + j * n + e];
        memcpy(back + at + n * s->typesize, raw + at + n * s->typesize, nbytes - n * s->typesize);
    }
}

static void check(const cm_chain *chain, size_t nbytes, uint32_t skip, cm_chunk_streams *s,
                  const char *what)
{
    cm_error err = {0};
    if (cm_chain_can_split(chain, &err) ||
        cm_chain_split(chain, stored, nbytes, skip, s, &err) != CM_OK)
        fail_msg("%s: %s", what, err.text);
    assert_true(s->nstreams <= cm_chain_split_bound(chain));
    cm_split_most most;
    size_t of[CM_SPLIT_NKINDS] = {0};
    cm_chain_split_most(chain, &most);
    for (size_t i = 0; i < s->nstreams; i++) {
        of[s->stream[i].kind]++;
        assert_true(s->stream[i].dst_nbytes <= most.stream_nbytes[s->stream[i].kind]);
    }
    for (int k = 0; k < CM_SPLIT_NKINDS; k++)
        assert_true(of[k] <= most.nstreams[k]);
    assert_true(nbytes <= most.stored_nbytes && s->nstreams <= most.all_streams);
    if (s->typesize > 0)
        assert_true((s->nbytes + s->block_nbytes - 1) / s->block_nbytes <= most.nblocks);
    put_together(s);
    const uint32_t unit = cm_chain_split_swap(chain);
    if (unit > 1)
        cm_swap_bytes(back, back, s->nbytes / unit, unit);
    if (memcmp(back, data, s->nbytes) != 0)
        fail_msg("%s: the streams are not the chunk", what);
}

#define SHUFFLE                                                                                    \
    {                                                                                              \
        .id = CM_CODEC_SHUFFLE, .elementsize = 4                                                   \
    }

static void test_every_chain(void **state)
{
    static const cm_codec_spec chains[][4] = {
        {{.id = CM_CODEC_BYTES}},
        {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_ZSTD, .level = 1}},
        {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_ZSTD, .level = 1, .checksum = true}},
        {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_LZ4, .level = 1}},
        {{.id = CM_CODEC_BYTES, .big_endian = true}},
        {{.id = CM_CODEC_BYTES, .big_endian = true}, {.id = CM_CODEC_ZSTD, .level = 1}},
        {{.id = CM_CODEC_BYTES, .big_endian = true},
         {.id = CM_CODEC_BLOSC, .level = 1, .blosc = {.cname = "lz4", .shuffle = 1}}},
        {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_ZLIB, .level = 1}},
        {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_GZIP, .level = 1}},
        {{.id = CM_CODEC_BYTES}, SHUFFLE},
        {{.id = CM_CODEC_BYTES}, SHUFFLE, {.id = CM_CODEC_ZLIB, .level = 1}},
        {{.id = CM_CODEC_BYTES},
         SHUFFLE,
         {.id = CM_CODEC_ZLIB, .level = 1},
         {.id = CM_CODEC_FLETCHER32}},
        {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_ZSTD, .level = 1}, {.id = CM_CODEC_CRC32C}},
        {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_CRC32, .at_start = true}},
        {{.id = CM_CODEC_BYTES},
         {.id = CM_CODEC_BLOSC, .level = 1, .blosc = {.cname = "zstd", .shuffle = 1}},
         {.id = CM_CODEC_CRC32C}},
    };
    static const uint64_t sizes[] = {1, 33, 1000, MOST_NELEM};
    cm_chunk_streams s = {0};
    (void)state;
    for (size_t c = 0; c < sizeof chains / sizeof *chains; c++)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            for (int random = 0; random < 2; random++) {
                char what[64];
                size_t n = 0, nbytes;
                cm_error err = {0};
                while (n < 4 && chains[c][n].id != CM_CODEC_NONE)
                    n++;
                fill(4 * sizes[i], random);
                cm_chain *chain = make(chains[c], n, sizes[i]);
                assert_int_equal(cm_chain_encode(chain, ctx, data, stored, &nbytes, &err), CM_OK);
                snprintf(what, sizeof what, "chain %zu, %d elements", c, (int)sizes[i]);
                check(chain, nbytes, 0, &s, what);
                cm_chain_free(chain);
            }
    cm_chunk_streams_release(&s);
}

/* Of c-blosc, many blocks, each split into streams or not, stored ones among them. */
static void test_blosc_frames(void **state)
{
    static const char *const cnames[] = {"zstd", "lz4", "lz4hc", "zlib"};
    static const size_t typesizes[] = {1, 2, 4, 8, 16, 17}, blocks[] = {0, 16384, 20000};
    cm_chunk_streams s = {0};
    (void)state;
    for (size_t i = 0; i < 4 * 6 * 3 * 4; i++) {
        const char *cname = cnames[i % 4];
        const bool random = i / 72 % 2, shuffled = i / 144;
        cm_codec_spec spec = {.id = CM_CODEC_BLOSC, .level = 5};
        char what[64];
        strcpy(spec.blosc.cname, cname);
        fill(MOST_NBYTES, random);
        memset(data, 0, MOST_NBYTES / 2); /* blocks of both kinds in a frame */
        const int nbytes =
            blosc_compress_ctx(5, shuffled, typesizes[i / 4 % 6], MOST_NBYTES, data, stored,
                               2 * MOST_NBYTES, cname, blocks[i / 24 % 3], 1);
        assert_true(nbytes > 0);
        snprintf(what, sizeof what, "%s, row %zu", cname, i);
        cm_chain *chain = make(&spec, 1, MOST_NELEM);
        check(chain, (size_t)nbytes, 0, &s, what);
        cm_chain_free(chain);
    }
    cm_chunk_streams_release(&s);
}

/* An HDF5 chunk whose mask says that a filter was left out. */
static void test_filter_masks(void **state)
{
    static const cm_codec_spec specs[] = {
        {.id = CM_CODEC_BYTES}, SHUFFLE, {.id = CM_CODEC_ZLIB, .level = 1}};
    cm_chunk_streams s = {0};
    size_t nbytes;
    cm_error err = {0};
    (void)state;
    fill(4 * 1000, false);
    cm_chain *whole = make(specs, 3, 1000), *shuffled = make(specs, 2, 1000);
    assert_int_equal(cm_chain_encode(shuffled, ctx, data, stored, &nbytes, &err), CM_OK);
    check(whole, nbytes, 2, &s, "without zlib");
    memcpy(stored, data, 4000);
    check(whole, 4000, 3, &s, "without both");
    cm_chain_free(whole);
    cm_chain_free(shuffled);
    cm_chunk_streams_release(&s);
}

static void test_what_is_refused(void **state)
{
    static const struct {
        cm_codec_spec spec[3];
        const char *says;
    } rows[] = {
        {{{.id = CM_CODEC_BITROUND, .keepbits = 7}, {.id = CM_CODEC_BYTES}}, "bitround"},
        {{{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_BZ2, .level = 1}}, "bz2"},
        {{{.id = CM_CODEC_BYTES},
          {.id = CM_CODEC_BLOSC, .level = 1, .blosc = {.cname = "blosclz"}}},
         "blosclz"},
        {{{.id = CM_CODEC_BYTES},
          {.id = CM_CODEC_BLOSC, .level = 1, .blosc = {.cname = "zstd", .shuffle = 2}}},
         "bit shuffle"},
        {{{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_CRC32C}, {.id = CM_CODEC_ZSTD, .level = 1}},
         "zstd stands after crc32c"},
        {{{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_ZSTD, .level = 1}, SHUFFLE},
         "shuffle stands after zstd"},
        {{{.id = CM_CODEC_BYTES},
          {.id = CM_CODEC_ZSTD, .level = 1},
          {.id = CM_CODEC_ZSTD, .level = 1}},
         "zstd stands after zstd"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n = 0;
        cm_error err = {0};
        while (n < 3 && rows[i].spec[n].id != CM_CODEC_NONE)
            n++;
        cm_chain *chain = make(rows[i].spec, n, 100);
        assert_int_equal(cm_chain_can_split(chain, &err), CM_EUNSUPPORTED);
        if (strstr(err.text, rows[i].says) == NULL)
            fail_msg("row %zu: %s", i, err.text);
        cm_chain_free(chain);
    }
}

/*
 * Any byte of a chunk damaged, or the chunk cut short: an error, or streams that lie
 * within what is stored and fill what they become.
 */
static void test_damage(void **state)
{
    static const cm_codec_spec chains[][3] = {
        {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_ZSTD, .level = 1}},
        {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_LZ4, .level = 1}},
        {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_ZLIB, .level = 1}},
        {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_GZIP, .level = 1}},
        {{.id = CM_CODEC_BYTES},
         {.id = CM_CODEC_BLOSC, .level = 1, .blosc = {.cname = "lz4", .shuffle = 1}}},
        {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_ZSTD, .level = 1}, {.id = CM_CODEC_CRC32C}},
    };
    cm_chunk_streams s = {0};
    (void)state;
    fill(4000, false);
    for (size_t c = 0; c < sizeof chains / sizeof *chains; c++) {
        cm_error err = {0};
        size_t nbytes, refused = 0;
        cm_chain *chain = make(chains[c], 3 - (chains[c][2].id == CM_CODEC_NONE), 1000);
        assert_int_equal(cm_chain_encode(chain, ctx, data, stored, &nbytes, &err), CM_OK);
        for (size_t i = 0; i < 2 * nbytes; i++) {
            /* Exactly as long as it says, so that a read beyond it is seen. */
            const size_t n = i < nbytes ? nbytes : i - nbytes;
            uint8_t *copy = malloc(n + (n == 0));
            memcpy(copy, stored, n);
            if (i < nbytes)
                copy[i] ^= 0xff;
            const int rc = cm_chain_split(chain, copy, n, 0, &s, &err);
            refused += rc != CM_OK;
            for (size_t k = 0; rc == CM_OK && k < s.nstreams; k++) {
                const cm_split_stream *t = &s.stream[k];
                assert_true(t->src <= n && t->src_nbytes <= n - t->src);
                assert_true(t->dst <= s.nbytes && t->dst_nbytes <= s.nbytes - t->dst);
            }
            free(copy);
        }
        assert_true(refused >= (c == 5 ? 2 * nbytes : 4));
        cm_chain_free(chain);
    }
    cm_chunk_streams_release(&s);
}

static void put_u32(size_t at, size_t value)
{
    for (int i = 0; i < 4; i++)
        stored[at + i] = (uint8_t)(value >> 8 * i);
}

/* A frame of blocks that are stored as they are, written here: NBYTES in blocks of BLOCK. */
static size_t write_blocks(size_t nbytes, size_t block)
{
    const size_t n = nbytes / block;
    memcpy(stored, (const uint8_t[4]){2, 1, 4 << 5 | 0x10, 1}, 4);
    put_u32(4, nbytes);
    put_u32(8, block);
    for (size_t i = 0; i < n; i++) {
        const size_t at = 16 + 4 * n + i * (4 + block);
        put_u32(16 + 4 * i, at);
        put_u32(at, block);
        memcpy(stored + at + 4, data + i * block, block);
    }
    put_u32(12, 16 + n * (8 + block));
    return 16 + n * (8 + block);
}

static void test_too_many_streams(void **state)
{
    const cm_codec_spec spec = {.id = CM_CODEC_BLOSC, .level = 1, .blosc = {.cname = "zstd"}};
    cm_chunk_streams s = {0};
    cm_error err = {0};
    (void)state;
    fill(MOST_NBYTES, true);
    cm_chain *chain = make(&spec, 1, MOST_NELEM);
    check(chain, write_blocks(MOST_NBYTES, 16000), 0, &s, "ten blocks");
    assert_int_equal(s.nstreams, 10);
    size_t nbytes = write_blocks(MOST_NBYTES, 500);
    assert_int_equal(cm_chain_split(chain, stored, nbytes, 0, &s, &err), CM_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "blocks of less than"));
    cm_chain_free(chain);
    cm_chunk_streams_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_chain),  cmocka_unit_test(test_blosc_frames),
        cmocka_unit_test(test_filter_masks), cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_damage),       cmocka_unit_test(test_too_many_streams),
    };
    return cmocka_run_group_tests_name("split", tests, set_up, tear_down);
}
