/*
 * HDF5's filters on chunks that h5py wrote with HDF5 and the filters of hdf5plugin, and
 * what damage does to them.
 */
#include "damage.h"

/* Element i of every array is i % period * 7 % modulus, in quarters where the type is a float. */
static const struct row {
    const char *name;
    cm_dtype type;
    uint64_t nelem;
    unsigned period, modulus;
    cm_codec_spec specs[3];
    const char *chunk;
} rows[] = {
    {"bitshuffle",
     {.kind = CM_KIND_INT, .nbytes = 2},
     43,
     43,
     100,
     {{.id = CM_CODEC_BITSHUFFLE, .bitshuffle = {2, 0, 0}}},
     "aaaaaaaaaa66666666661e9ee1011e542bb54aab9833c68c33e043f8103c007c001fc0000000000000000000"
     "000000000000000000000000000000000000000000000000000000000000000000000000500057005e00"},
    {"bitshuffle lz4",
     {.kind = CM_KIND_INT, .nbytes = 2},
     43,
     43,
     100,
     {{.id = CM_CODEC_BITSHUFFLE, .bitshuffle = {2, 16, 2}}},
     "00000000000000560000002000000019f800aaaa66661e9e542b9833e043007c000100500000000000000000"
     "19f800aaaa6666e101b54ac68cf810001f00010050000000000000000012f001aa661eab333cc00000000000"
     "00000000500057005e00"},
    {"bitshuffle zstd",
     {.kind = CM_KIND_INT, .nbytes = 2},
     43,
     43,
     100,
     {{.id = CM_CODEC_BITSHUFFLE, .bitshuffle = {2, 16, 3}}},
     "0000000000000056000000200000001e28b52ffd2020ad000078aaaa66661e9e542b9833e043007c00010033"
     "a8030000001e28b52ffd2020ad000078aaaa6666e101b54ac68cf810001f00010033a8030000001928b52ffd"
     "2010810000aa661eab333cc0000000000000000000500057005e00"},
    {"bitshuffle lz4 f8",
     {.kind = CM_KIND_FLOAT, .nbytes = 8},
     600,
     20,
     10,
     {{.id = CM_CODEC_BITSHUFFLE, .bitshuffle = {8, 0, 2}}},
     "00000000000012c0000020000000005e1f000100ffffffffffffffffffffffffffff555f8000020820050033"
     "5f22882082080500335f020b2cb0c00500335f2eb9e4924b0500335f669b6db6d90500335f6ebbedb6db0500"
     "ffff425f90400209240500330f741233500000000000"},
    {"lz4",
     {.kind = CM_KIND_INT, .nbytes = 2},
     129,
     43,
     100,
     {{.id = CM_CODEC_HDF5_LZ4}},
     "00000000000001020000004000000040000007000e0015001c0023002a00310038003f0046004d0054005b00"
     "620005000c0013001a00210028002f0036003d0044004b0052005900600003000a0011000000004018001f00"
     "26002d0034003b0042004900500057005e00000007000e0015001c0023002a00310038003f0046004d005400"
     "5b00620005000c0013001a0021002800000000402f0036003d0044004b0052005900600003000a0011001800"
     "1f0026002d0034003b0042004900500057005e00000007000e0015001c0023002a00310038003f0000000040"
     "46004d0054005b00620005000c0013001a00210028002f0036003d0044004b0052005900600003000a001100"
     "18001f0026002d0034003b004200490050005700000000025e00"},
    {"lz4 blocks that shrink",
     {.kind = CM_KIND_INT, .nbytes = 2},
     387,
     43,
     100,
     {{.id = CM_CODEC_HDF5_LZ4}},
     "00000000000003060000010000000061ff47000007000e0015001c0023002a00310038003f0046004d005400"
     "5b00620005000c0013001a00210028002f0036003d0044004b0052005900600003000a00110018001f002600"
     "2d0034003b0042004900500057005e0056009250005000570000000061ff475e00000007000e0015001c0023"
     "002a00310038003f0046004d0054005b00620005000c0013001a00210028002f0036003d0044004b00520059"
     "00600003000a00110018001f0026002d0034003b00420049005000570056009250004900500000000061ff47"
     "57005e00000007000e0015001c0023002a00310038003f0046004d0054005b00620005000c0013001a002100"
     "28002f0036003d0044004b0052005900600003000a00110018001f0026002d0034003b004200490050005600"
     "9250004200490000000006500057005e00"},
    {"lzf",
     {.kind = CM_KIND_INT, .nbytes = 2},
     129,
     43,
     100,
     {{.id = CM_CODEC_LZF}},
     "1f000007000e0015001c0023002a00310038003f0046004d0054005b00620005001f0c0013001a0021002800"
     "2f0036003d0044004b0052005900600003000a0011001618001f0026002d0034003b0042004900500057005e"
     "0000e0a055015e00"},
    {"lzf, long matches",
     {.kind = CM_KIND_FLOAT, .nbytes = 8},
     2000,
     20,
     10,
     {{.id = CM_CODEC_LZF}},
     "010000e0030001fc3f800d00f0a00700d0a007010040801700f4a00f00e0a0070002a01700f8a00f00e8a007"
     "c000e0ff4fe1ff3fe2ff2fc000e3ff1fe3ff1fe3ff1fc000e3ff1fe3ff1fe3ff1fc000e3ff1fe3ff1fe3ff1f"
     "c000e3ff1fe3ff1fe3ff1fc000e3ff1fe3ff1fe3ff1fc000e3ff1fe3ff1fe3ff1fc000e3ff1fe3ff1fe3ff1f"
     "c000e3ff1fe3ff1fe3ff1fc000e3ff1fe3ff1fe3ff1fc000e3ff1fe3ff1fe3ff1fc000e3ff1fe3ff1fe3ff1f"
     "c000e3ff1fe3ff1fe3ff1fc000e3ff1fe3ff1fe3ff1fc000e3ff1fe3ff1fe3ff1fc000e3ff1fe3ff1fe3ff1f"
     "c000e3ff1fe3ff1fe3ff1fc000e3ff1fe3ff1fe3ff1fc000e3ff1fe3ff1fe3ff1fc000e3ff1fe3ff1fe3a71f"
     "01e83f"},
    {"fletcher32",
     {.kind = CM_KIND_INT, .nbytes = 2},
     43,
     43,
     100,
     {{.id = CM_CODEC_FLETCHER32}},
     "000007000e0015001c0023002a00310038003f0046004d0054005b00620005000c0013001a00210028002f00"
     "36003d0044004b0052005900600003000a00110018001f0026002d0034003b0042004900500057005e000849"
     "a288"},
    {"shuffle, fletcher32",
     {.kind = CM_KIND_FLOAT, .nbytes = 8},
     20,
     20,
     10,
     {{.id = CM_CODEC_SHUFFLE, .elementsize = 8}, {.id = CM_CODEC_FLETCHER32}},
     "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
     "0000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
     "000000000000000000000000000000000000000000000000000000000000000000fcf0d000f4e002f8e800fc"
     "f0d000f4e002f8e8003f3f3f403f3f403f3f003f3f3f403f3f403f3fd39370dc"},
    {"shuffle, deflate",
     {.kind = CM_KIND_FLOAT, .nbytes = 4},
     129,
     43,
     100,
     {{.id = CM_CODEC_SHUFFLE, .elementsize = 4}, {.id = CM_CODEC_ZLIB, .level = 4}},
     "785e636018f1e041c28a073c1a2e09353db3566c3bb2c061c60516059b88928e694b361d7050e838f043c224"
     "20a765d282757b68a4d4dec1c1c1110e3079082e6d94020038785e4b"},
    {"szip nn i1",
     {.kind = CM_KIND_INT, .nbytes = 1},
     129,
     43,
     100,
     {{.id = CM_CODEC_SZIP, .szip = {169, 8, 8, 129}}},
     "81000000801555fb6db5fe003ddddddd37ff3bbbbbbafc007eeeee9aebffdddddddd7800ff775bf775ffeeee"
     "eeeeb800ffba73bbbafff77777775001ff35dddddd7f001f777775bdffeeeeeeeebf001fbbbba73afff77777"
     "775e003fddd35ddd7ffbbbbbbb88001fe0"},
    {"szip ec i1",
     {.kind = CM_KIND_INT, .nbytes = 1},
     129,
     43,
     100,
     {{.id = CM_CODEC_SZIP, .szip = {141, 16, 8, 43}}},
     "81000000df554924603babc1aa38f99b4d88bbaaa4923d93d050fb748b964035476aa4927f8f99b4d8930bf8"
     "000001beaa9248c07757835471f3369b11775549247b27a0a1f6e9172c806a8ed54924ff1f3369b12617f000"
     "00037d55249180eeaf06a8e3e66d3622eeaa9248f64f4143edd22e5900d51daa9249fe3e66d3624c2fe00000"
     "00"},
    {"szip nn i2",
     {.kind = CM_KIND_INT, .nbytes = 2},
     129,
     43,
     100,
     {{.id = CM_CODEC_SZIP, .szip = {169, 8, 16, 129}}},
     "0201000040000aaafdb6d97f800f7777774affe77777772fc007eeeee9ae5ffeeeeeeee5e003fddd6fddcbff"
     "dddddddcb800ffba73bbb97ffbbbbbbb94007fcd7777772fe003eeeeeeb75ffeeeeeeee5f800fddddd39cbff"
     "dddddddcbc007fbba6bbb97ffbbbbbbb84000ff0"},
    {"szip ec i2",
     {.kind = CM_KIND_INT, .nbytes = 2},
     129,
     43,
     100,
     {{.id = CM_CODEC_SZIP, .szip = {141, 16, 16, 43}}},
     "020100006faaa492301dd5e0d51c7ccda6c456eaa9248f64f4143edd22e5900d516d54924ff1f3369b12617f"
     "0000001beaa9248c07757835471f3369b115baaa4923d93d050fb748b96403545b552493fc7ccda6c4985fc0"
     "000006faaa492301dd5e0d51c7ccda6c456eaa9248f64f4143edd22e5900d516d54924ff1f3369b12617f000"
     "0000"},
    {"szip nn f4",
     {.kind = CM_KIND_FLOAT, .nbytes = 4},
     129,
     43,
     100,
     {{.id = CM_CODEC_SZIP, .szip = {169, 8, 32, 129}}},
     "0402000000008000780704fc83879941c657ce300e739c3fbf9870fb20383838cf82851ce739ffa3b838739a"
     "1c1c180e71c1c1cffe09f9070c02aaf3463180739c70711efe61c3ec832afe3184739ce7bf3f887070e73438"
     "e706038383839ffc1e7e41c3cca0e0e0e33e410839ce70ffc61015570d8318c239c707072fcfe21c1c300aaf"
     "3d3188739c40007f8040001ffa01007f8939f3f1318f780478000f90008f389cc244f3dfc0220000003e4e7c"
     "fc4c41e789e23c20"},
    {"szip ec f4",
     {.kind = CM_KIND_FLOAT, .nbytes = 4},
     129,
     43,
     100,
     {{.id = CM_CODEC_SZIP, .szip = {141, 16, 32, 43}}},
     "04020000020408102078070305470061422303e464d545b625074098d004203c58748896a4b2c0402088f81f"
     "03068a0d90925415d780000000001c038182a38030a11181f2326aa2db1283a04c6802101e2c3a444b525960"
     "2010447c0f81834506c8492a0aebc0000000000e01c0c151c0185088c0f91935516d8941d0263401080f161d"
     "2225a92cb01008223e07c0c1a2836424950575e00000000006a492492492507c0000421084210843fc492492"
     "4925240000421084210843f003124924927e00042108421084000001a924924924941f0000108421084210ff"
     "1249249249490000108421084210fc00c49249249f800108421084210000006a492492492507c00004210842"
     "10843fc4924924925240000421084210843f003124924927e000421084210840000000"},
    {"szip nn f8",
     {.kind = CM_KIND_FLOAT, .nbytes = 8},
     60,
     20,
     10,
     {{.id = CM_CODEC_SZIP, .szip = {169, 8, 64, 60}}},
     "e001000000008000400020001000080007807e0797fffa0ffeff817fffc0f2ffff4e3ffbf02ffff81e5ffffd"
     "07ff7e05ffff38797fffa0ffefc0bffffc0f2ffff41ffdff02ffff81e5fffe9a0203fff7170000080003ff01"
     "10ae023e21be00437c0470210df00bf8089081086f9cb2e808ffbe0042057011f10df0021105c0"},
    {"szip ec f8",
     {.kind = CM_KIND_FLOAT, .nbytes = 8},
     60,
     20,
     10,
     {{.id = CM_CODEC_SZIP, .szip = {141, 16, 64, 20}}},
     "e0010000041041041041041041041041041e01f9e1a001e9c005f1d001f9e1a001e98060203ffe0161000000"
     "0000000001c03f3c34003d3800be3a003f3c34003d300c0407ffc02c20000000000000003807e7868007a700"
     "17c74007e7868007a6018080fff805840000000000000006aa54ad5283fff83ff07fe0fffe0fd1088ffff87f"
     "8000000000006aa54ad5283fff83ff07fe0fffe0fd1088ffff87f8000000000006aa54ad5283fff83ff07fe0"
     "fffe0fd1088ffff87f80000000000000"},
    {"blosc zstd",
     {.kind = CM_KIND_FLOAT, .nbytes = 4},
     43,
     43,
     100,
     {{.id = CM_CODEC_BLOSC, .blosc = {"zstd", CM_BLOSC_SHUFFLE, 0}}},
     "02019104ac000000ac00000062000000140000004a00000028b52ffd20ac0d020034030000e060a8e00c2844"
     "607c8c9aa8b6c4a04098d004203c58748896a4b2c0402088c0f81834506c8492a0aebc003f40404041400400"
     "a090981e0028a04c000b"},
    {"zstd",
     {.kind = CM_KIND_FLOAT, .nbytes = 4},
     43,
     43,
     100,
     {{.id = CM_CODEC_ZSTD}},
     "28b52ffd20ac650300424a1822904585c6ffa007ff46e8adf942eeb66bcca15492aa735bc580cba6a7b7b41b"
     "7a1e53c3bcca7bbcc6533cc42bbcc11570491774353bf5a46779940779d05bbcc433bce6052e802b72d5cee4"
     "65dee5454ff21c8ff19e77788427b8a62bba9e9de902009933840c0016"},
    {"bzip2",
     {.kind = CM_KIND_INT, .nbytes = 2},
     43,
     43,
     100,
     {{.id = CM_CODEC_BZ2}},
     "425a6839314159265359630c71a0000000ff004a952a54a952a54a952a54a950002000411203464d32064019"
     "0301801934d06430434c468c3a47c259e8a4755642d86b4e8bafc31c92acf4d76df8e7a5b3bf3dfbf6b9f068"
     "080411177245385090630c71a0"},
};

static uint8_t *parse_hex(const char *text, size_t *nbytes)
{
    *nbytes = strlen(text) / 2;
    uint8_t *out = malloc(*nbytes);
    for (size_t i = 0; i < *nbytes; i++) {
        char pair[3] = {text[2 * i], text[2 * i + 1], 0};
        out[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return out;
}

static void expected_element(const struct row *row, uint64_t i, uint8_t *out)
{
    uint64_t n = i % row->period * 7 % row->modulus;
    double real = (double)n * 0.25;
    float single = (float)real;
    if (row->type.kind != CM_KIND_FLOAT)
        memcpy(out, &n, row->type.nbytes);
    else if (row->type.nbytes == 4)
        memcpy(out, &single, 4);
    else
        memcpy(out, &real, 8);
}

static void test_row(void **state)
{
    const struct row *row = *state;
    cm_error err = {0};
    size_t nspecs = 0, nbytes;
    while (nspecs < 3 && row->specs[nspecs].id)
        nspecs++;
    cm_chain *chain;
    cm_codec_ctx *ctx = cm_codec_ctx_create(&err);
    assert_non_null(ctx);
    if (cm_chain_create(row->specs, nspecs, &row->type, 1, &row->nelem, &chain, &err))
        fail_msg("%s", err.text);
    uint8_t *chunk = parse_hex(row->chunk, &nbytes);
    assert_true(nbytes <= cm_chain_encoded_bound(chain));
    uint8_t *data = malloc(cm_chain_decoded_nbytes(chain)), want[8];
    if (cm_chain_decode(chain, ctx, chunk, nbytes, 0, data, &err))
        fail_msg("%s", err.text);
    for (uint64_t i = 0; i < row->nelem; i++) {
        expected_element(row, i, want);
        assert_memory_equal(data + i * row->type.nbytes, want, row->type.nbytes);
    }
    check_damage(chain, ctx, chunk, nbytes);
    free(data);
    free(chunk);
    cm_chain_free(chain);
    cm_codec_ctx_free(ctx);
}

/* Filters that are only there to read HDF5 say so when they are asked to encode. */
static void test_read_only(void **state)
{
    (void)state;
    static const cm_codec_spec specs[] = {
        {.id = CM_CODEC_SZIP, .szip = {169, 8, 16, 64}},
        {.id = CM_CODEC_LZF},
        {.id = CM_CODEC_HDF5_LZ4},
        {.id = CM_CODEC_BITSHUFFLE, .bitshuffle = {2, 0, 2}},
    };
    cm_dtype type = cm_dtype_make(CM_KIND_INT, 2);
    uint64_t shape = 64;
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        cm_error err = {0};
        cm_chain *chain;
        assert_int_equal(cm_chain_create(&specs[i], 1, &type, 1, &shape, &chain, &err), CM_OK);
        assert_int_equal(cm_chain_can_encode(chain, &err), CM_EUNSUPPORTED);
        assert_non_null(strstr(err.text, cm_codec_name(specs[i].id)));
        cm_chain_free(chain);
    }
}

int main(void)
{
    enum {
        NROWS = sizeof rows / sizeof rows[0]
    };
    struct CMUnitTest tests[NROWS + 1] = {[NROWS] = cmocka_unit_test(test_read_only)};
    for (size_t i = 0; i < NROWS; i++)
        tests[i] = (struct CMUnitTest){.name = rows[i].name,
                                       .test_func = test_row,
                                       .initial_state = (void *)(uintptr_t)&rows[i]};
    return cmocka_run_group_tests_name("HDF5 filters", tests, NULL, NULL);
}
