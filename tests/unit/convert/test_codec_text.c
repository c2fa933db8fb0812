/* Codecs of an array as people type them. */

#include "../fixtures/tell.h"
#include "convert/layout/codec_text.h"

enum {
    MOST_CODECS = 4
};

static const struct {
    cm_codec_spec codec[MOST_CODECS]; /* the first without an id ends them */
    bool verbatim;
    const char *text;
} ROWS[] = {
    {{{.id = CM_CODEC_NONE}}, false, "none"},
    {{{.id = CM_CODEC_NONE}}, true, "not known"},
    {{{.id = CM_CODEC_BYTES}}, false, "none"},
    {{{.id = CM_CODEC_BYTES, .big_endian = true}}, false, "bytes:big"},
    {{{.id = CM_CODEC_VLEN_UTF8}}, false, "none"},
    {{{.id = CM_CODEC_VLEN_BYTES}, {.id = CM_CODEC_ZSTD, .level = 3}}, false, "zstd:3"},
    {{{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_ZSTD, .level = -5}}, false, "zstd:-5"},
    {{{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_GZIP, .level = 5}}, true, "gzip:5"},
    {{{.id = CM_CODEC_ZLIB, .level = 1}}, false, "zlib:1"},
    {{{.id = CM_CODEC_BZ2, .level = 9}}, false, "bz2:9"},
    {{{.id = CM_CODEC_LZ4, .level = 9}}, false, "lz4"},
    {{{.id = CM_CODEC_TRANSPOSE}, {.id = CM_CODEC_BYTES}, {.id = CM_CODEC_GZIP, .level = 5}},
     false,
     "transpose+gzip:5"},
    {{{.id = CM_CODEC_BYTES, .big_endian = true}, {.id = CM_CODEC_SHUFFLE}, {.id = CM_CODEC_ZLIB}},
     false,
     "bytes:big+shuffle+zlib:0"},
    {{{.id = CM_CODEC_BYTES},
      {.id = CM_CODEC_BLOSC, .level = 2, .blosc = {"zstd", CM_BLOSC_NOSHUFFLE, 0}}},
     false,
     "blosc:zstd:2:noshuffle"},
    {{{.id = CM_CODEC_BLOSC, .level = 9, .blosc = {"lz4hc", CM_BLOSC_SHUFFLE, 0}}},
     false,
     "blosc:lz4hc:9:shuffle"},
    {{{.id = CM_CODEC_BLOSC, .blosc = {"blosclz", CM_BLOSC_BITSHUFFLE, 0}},
      {.id = CM_CODEC_CRC32C}},
     false,
     "blosc:blosclz:0:bitshuffle+crc32c"},
};

/* Of an array, and of the chunks in its shards. */
static void texts(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        cm_codec_spec spec[MOST_CODECS];
        size_t n = 0;
        memcpy(spec, ROWS[i].codec, sizeof spec);
        while (n < MOST_CODECS && spec[n].id != CM_CODEC_NONE)
            n++;
        for (unsigned sharded = 0; sharded < 2; sharded++) {
            cm_shard_spec shard = {.codecs = spec, .ncodecs = n};
            cm_codec_spec outer = {.id = CM_CODEC_SHARDING, .shard = &shard};
            const cm_zarr_meta meta = {.codecs = sharded ? &outer : spec,
                                       .ncodecs = sharded ? 1 : n,
                                       .verbatim = ROWS[i].verbatim};
            char *text = cm_codec_text(&meta, NULL);
            tell_compare(sharded ? "in shards" : "alone", text, ROWS[i].text, &bad);
            free(text);
        }
    }
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
