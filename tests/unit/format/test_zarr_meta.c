/* Metadata of Zarr v3 and v2: what is read, what is refused, what is written. */
#include <stdio.h>

#include "../unit.h"
#include "format/zarr/meta.h"

static cm_json *parse(const char *text)
{
    cm_json *j;
    cm_error err = {0};
    if (cm_json_parse(text, strlen(text), &j, &err) != CM_OK)
        fail_msg("%s: %s", text, err.text);
    return j;
}

static char *print(const cm_json *j)
{
    cm_buf buf = {0};
    assert_int_equal(cm_json_write(j, false, &buf, NULL), CM_OK);
    assert_int_equal(cm_buf_append(&buf, "", 1, NULL), CM_OK);
    char *text = strdup((const char *)buf.data);
    cm_buf_release(&buf);
    return text;
}

/* A v3 array with TYPE, FILL and CODECS, and MORE members. */
static cm_json *array_v3(const char *type, const char *fill, const char *codecs, const char *more)
{
    char text[4096];
    snprintf(text, sizeof text,
             "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4,6],\"data_type\":%s,"
             "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[2,3]}},"
             "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":%s,\"codecs\":%s%s}",
             type, fill, codecs, more);
    return parse(text);
}

static cm_json *array_v2(const char *dtype, const char *fill, const char *compressor,
                         const char *filters, const char *more)
{
    char text[4096];
    snprintf(text, sizeof text,
             "{\"zarr_format\":2,\"shape\":[4,6],\"chunks\":[2,3],\"dtype\":%s,\"fill_value\":%s,"
             "\"compressor\":%s,\"filters\":%s%s}",
             dtype, fill, compressor, filters, more);
    return parse(text);
}

/* ---- v3 ---- */

static void test_v3_types(void **state)
{
    (void)state;
    static const struct {
        const char *type, *fill;
        int rc;
        const char *name;     /* as cm_dtype_name has it, or part of the error */
        const char *fill_hex; /* the element, or NULL */
    } row[] = {
        {"\"bool\"", "true", CM_OK, "bool", "01"},
        {"\"int8\"", "-128", CM_OK, "int8", "80"},
        {"\"int16\"", "-2", CM_OK, "int16", "feff"},
        {"\"int64\"", "-9223372036854775808", CM_OK, "int64", "0000000000000080"},
        {"\"uint64\"", "18446744073709551615", CM_OK, "uint64", "ffffffffffffffff"},
        {"\"uint8\"", "255.0", CM_OK, "uint8", "ff"},
        {"{\"name\":\"int32\"}", "7", CM_OK, "int32", "07000000"},
        {"\"float16\"", "0.1", CM_OK, "float16", "662e"},
        {"\"float16\"", "65504", CM_OK, "float16", "ff7b"},
        {"\"float16\"", "5.960464477539063e-08", CM_OK, "float16", "0100"},
        {"\"float16\"", "2.980232238769531e-08", CM_OK, "float16", "0000"},
        {"\"float16\"", "1.00048828125", CM_OK, "float16", "003c"}, /* halfway: to the even one */
        {"\"float16\"", "1.00146484375", CM_OK, "float16", "023c"},
        {"\"float16\"", "\"NaN\"", CM_OK, "float16", "007e"},
        {"\"float32\"", "1.5", CM_OK, "float32", "0000c03f"},
        {"\"float32\"", "\"-Infinity\"", CM_OK, "float32", "000080ff"},
        {"\"float32\"", "\"NaN\"", CM_OK, "float32", "0000c07f"},
        {"\"float32\"", "NaN", CM_OK, "float32", "0000c07f"},
        {"\"float32\"", "\"0x7fc00001\"", CM_OK, "float32", "0100c07f"},
        {"\"float32\"", "-0.0", CM_OK, "float32", "00000080"},
        {"\"float64\"", "\"0xfff8000000000001\"", CM_OK, "float64", "010000000000f8ff"},
        {"\"float64\"", "3", CM_OK, "float64", "0000000000000840"},
        {"\"complex64\"", "[1,\"NaN\"]", CM_OK, "complex64", "0000803f0000c07f"},
        {"\"complex128\"", "[0,\"Infinity\"]", CM_OK, "complex128",
         "0000000000000000000000000000f07f"},
        {"\"r16\"", "[1,255]", CM_OK, "raw2", "01ff"},
        {"{\"name\":\"raw_bytes\",\"configuration\":{\"length_bytes\":3}}", "\"AQID\"", CM_OK,
         "raw3", "010203"},
        {"{\"name\":\"null_terminated_bytes\",\"configuration\":{\"length_bytes\":4}}", "\"YWI=\"",
         CM_OK, "bytes4", "61620000"},
        {"{\"name\":\"null_terminated_bytes\",\"configuration\":{\"length_bytes\":1}}", "\"\"",
         CM_OK, "bytes1", "00"},
        {"{\"name\":\"fixed_length_utf32\",\"configuration\":{\"length_bytes\":8}}", "\"\\u00e4\"",
         CM_OK, "unicode2", "e400000000000000"},
        {"{\"name\":\"numpy.datetime64\",\"configuration\":{\"unit\":\"s\",\"scale_factor\":10}}",
         "\"NaT\"", CM_OK, "datetime64[10s]", "0000000000000080"},
        {"{\"name\":\"numpy.timedelta64\",\"configuration\":{\"unit\":\"ns\",\"scale_factor\":1}}",
         "-1", CM_OK, "timedelta64[ns]", "ffffffffffffffff"},
        {"\"string\"", "\"x\"", CM_OK, "string", NULL},
        {"\"variable_length_bytes\"", "\"\"", CM_OK, "variable_length_bytes", NULL},
        {"\"bytes\"", "[]", CM_OK, "variable_length_bytes", NULL},

        {"\"int8\"", "128", CM_EUNSUPPORTED, "too large for int8", NULL},
        {"\"int8\"", "-129", CM_EUNSUPPORTED, "too large for int8", NULL},
        {"\"uint8\"", "-1", CM_EUNSUPPORTED, "negative", NULL},
        {"\"int32\"", "1.5", CM_EUNSUPPORTED, "is not a valid int32", NULL},
        {"\"int64\"", "9223372036854775808", CM_EUNSUPPORTED, "too large", NULL},
        {"\"float32\"", "1e39", CM_EUNSUPPORTED, "too large for float32", NULL},
        {"\"float16\"", "65520", CM_EUNSUPPORTED, "too large for float16", NULL},
        {"\"float32\"", "\"0x7fc0\"", CM_EUNSUPPORTED, "is text that is not a valid float32", NULL},
        {"\"float32\"", "\"-1.5\"", CM_OK, "float32", "0000c0bf"},
        {"\"float32\"", "\"nan\"", CM_OK, "float32", "0000c07f"},
        {"\"float32\"", "\"1x\"", CM_EUNSUPPORTED, "is text", NULL},
        {"\"float32\"", "true", CM_OK, "float32", "0000803f"},
        {"\"uint8\"", "\"7\"", CM_OK, "uint8", "07"},
        {"\"uint8\"", "\"300\"", CM_EUNSUPPORTED, "too large", NULL},
        {"\"uint8\"", "\"0.5\"", CM_EUNSUPPORTED, "is not a valid uint8", NULL},
        {"\"int32\"", "null", CM_EFORMAT, "fill_value is missing or null", NULL},
        {"\"bool\"", "2", CM_EUNSUPPORTED, "is not a valid bool", NULL},
        {"\"complex64\"", "[1]", CM_EUNSUPPORTED, "is not a valid complex64", NULL},
        {"\"r16\"", "[1,2,3]", CM_EUNSUPPORTED, "longer than raw2", NULL},
        {"\"r16\"", "[1,256]", CM_EUNSUPPORTED, "more than bytes", NULL},
        {"\"string\"", "{}", CM_EUNSUPPORTED, "is not a valid string", NULL},
        {"\"string\"", "\"a\\u0000b\"", CM_EUNSUPPORTED, "NUL", NULL},
        {"\"r12\"", "[1]", CM_EUNSUPPORTED, "'r12'", NULL},
        {"\"bfloat16\"", "0", CM_EUNSUPPORTED, "'bfloat16'", NULL},
        {"{\"name\":\"struct\",\"configuration\":{\"fields\":[]}}", "0", CM_EUNSUPPORTED,
         "'struct'", NULL},
        {"{\"name\":\"raw_bytes\",\"configuration\":{\"length_bytes\":4294967296}}", "\"\"",
         CM_EUNSUPPORTED, "raw_bytes", NULL},
        {"{\"name\":\"raw_bytes\"}", "\"\"", CM_EFORMAT, "length_bytes", NULL},
        {"{\"name\":\"numpy.datetime64\",\"configuration\":{\"unit\":\"parsec\"}}", "0", CM_EFORMAT,
         "parsec", NULL},
        {"7", "0", CM_EFORMAT, "data_type", NULL},
    };
    for (size_t i = 0; i < COUNT(row); i++) {
        bool is_text = strstr(row[i].type, "string") || strstr(row[i].type, "variable") ||
                       strcmp(row[i].type, "\"bytes\"") == 0;
        cm_json *j = array_v3(row[i].type, row[i].fill,
                              is_text ? "[\"vlen-utf8\"]" : "[{\"name\":\"bytes\"}]", "");
        cm_zarr_meta m;
        cm_error err = {0};
        int rc = cm_zarr_meta_from_v3(j, &m, &err);
        if (rc != row[i].rc)
            fail_msg("%s %s: %d %s", row[i].type, row[i].fill, rc, err.text);
        if (rc == CM_OK) {
            char name[32], hex[64] = "";
            assert_string_equal(cm_dtype_name(&m.dtype, name, sizeof name), row[i].name);
            for (uint32_t k = 0; m.fill && k < m.dtype.nbytes; k++)
                sprintf(hex + 2 * k, "%02x", m.fill[k]);
            if (row[i].fill_hex)
                assert_string_equal(hex, row[i].fill_hex);
            else
                assert_non_null(m.fill_text);
            assert_true(m.has_fill);
        } else {
            if (!strstr(err.text, row[i].name))
                fail_msg("%s %s: %s", row[i].type, row[i].fill, err.text);
        }
        assert_int_equal(m.verbatim, rc == CM_EUNSUPPORTED);
        assert_int_equal(m.raw != NULL, rc != CM_EFORMAT);
        cm_zarr_meta_release(&m);
        cm_json_free(j);
    }
}

/* Codecs of v3: what is read comes out again as zarr-python writes it. */
static void test_v3_codecs(void **state)
{
    (void)state;
#define LE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
    static const struct {
        const char *in;
        int rc;
        const char *out; /* or part of the error; NULL: as IN */
    } row[] = {
        {"[" LE "]", CM_OK, NULL},
        {"[\"bytes\"]", CM_OK, "[" LE "]"},
        {"[]", CM_OK, "[" LE "]"},
        {"[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]", CM_OK, NULL},
        {"[" LE ",{\"name\":\"gzip\",\"configuration\":{\"level\":5}}]", CM_OK, NULL},
        {"[" LE ",{\"name\":\"zstd\",\"configuration\":{\"level\":-3,\"checksum\":true}}]", CM_OK,
         NULL},
        {"[" LE ",{\"name\":\"zstd\",\"configuration\":{\"level\":3}}]", CM_OK,
         "[" LE ",{\"name\":\"zstd\",\"configuration\":{\"level\":3,\"checksum\":false}}]"},
        {"[" LE ",{\"name\":\"blosc\",\"configuration\":{\"typesize\":4,\"cname\":\"lz4\","
         "\"clevel\":5,\"shuffle\":\"bitshuffle\",\"blocksize\":1024}}]",
         CM_OK, NULL},
        {"[" LE ",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"zstd\",\"clevel\":1,"
         "\"shuffle\":\"noshuffle\"}}]",
         CM_OK,
         "[" LE ",{\"name\":\"blosc\",\"configuration\":{\"typesize\":1,\"cname\":\"zstd\","
         "\"clevel\":1,\"shuffle\":\"noshuffle\",\"blocksize\":0}}]"},
        {"[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}," LE
         ",{\"name\":\"crc32c\"}]",
         CM_OK, NULL},
        {"[{\"name\":\"transpose\",\"configuration\":{\"order\":\"F\"}}," LE "]", CM_OK,
         "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}," LE "]"},
        {"[" LE ",{\"name\":\"numcodecs.zlib\",\"configuration\":{\"level\":4}}]", CM_OK, NULL},
        {"[" LE ",{\"name\":\"zlib\",\"configuration\":{\"level\":4}}]", CM_OK,
         "[" LE ",{\"name\":\"numcodecs.zlib\",\"configuration\":{\"level\":4}}]"},
        {"[" LE ",{\"name\":\"numcodecs.shuffle\",\"configuration\":{\"elementsize\":4}},"
         "{\"name\":\"numcodecs.lz4\",\"configuration\":{\"acceleration\":2}}]",
         CM_OK, NULL},
        {"[" LE ",{\"name\":\"numcodecs.crc32\",\"configuration\":{\"location\":\"end\"}}]", CM_OK,
         NULL},
        {"[" LE ",{\"name\":\"numcodecs.crc32c\",\"configuration\":{}}]", CM_OK,
         "[" LE ",{\"name\":\"crc32c\"}]"},
        {"[" LE ",{\"name\":\"numcodecs.fletcher32\"}]", CM_OK,
         "[" LE ",{\"name\":\"numcodecs.fletcher32\",\"configuration\":{}}]"},
        {"[{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\"<i4\",\"astype\":\"<i2\"}},"
         "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]",
         CM_OK, NULL},
        {"[{\"name\":\"numcodecs.fixedscaleoffset\",\"configuration\":{\"scale\":0.5,\"offset\":1."
         "0,"
         "\"dtype\":\"int32\",\"astype\":\"u1\"}},\"bytes\"]",
         CM_OK,
         "[{\"name\":\"numcodecs.fixedscaleoffset\",\"configuration\":{\"scale\":0.5,\"offset\":1."
         "0,"
         "\"dtype\":\"<i4\",\"astype\":\"|u1\"}},{\"name\":\"bytes\"}]"},
        {"[{\"name\":\"scale_offset\",\"configuration\":{\"offset\":5,\"scale\":2}},"
         "{\"name\":\"cast_value\",\"configuration\":{\"data_type\":\"uint8\",\"rounding\":"
         "\"towards-zero\",\"out_of_range\":\"clamp\",\"scalar_map\":{\"encode\":[[-1,255]],"
         "\"decode\":[[255,-1]]}}},{\"name\":\"bytes\"}]",
         CM_OK, NULL},
        {"[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[1,3],\"codecs\":[" LE
         "],\"index_codecs\":[" LE ",{\"name\":\"crc32c\"}],\"index_location\":\"start\"}}]",
         CM_OK, NULL},
        {"[" LE ",{\"name\":\"future\",\"must_understand\":false}]", CM_OK, "[" LE "]"},

        {"[" LE ",{\"name\":\"future\"}]", CM_EUNSUPPORTED, "codec 'future' is not supported"},
        {"[" LE ",{\"name\":\"numcodecs.lzma\",\"configuration\":{}}]", CM_EUNSUPPORTED, "'lzma'"},
        {"[{\"name\":\"packbits\",\"configuration\":{}}]", CM_EUNSUPPORTED, "packbits"},
        {"[{\"name\":\"cast_value\",\"configuration\":{\"data_type\":\"uint8\",\"rounding\":"
         "\"sometimes\"}}," LE "]",
         CM_EUNSUPPORTED, "sometimes"},
        {"[" LE ",{\"name\":\"gzip\",\"configuration\":{\"level\":10}}]", CM_EFORMAT, "level"},
        {"[" LE ",{\"name\":\"gzip\"}]", CM_EFORMAT, "level"},
        {"[" LE ",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"lz4\",\"clevel\":1,"
         "\"shuffle\":\"shuffle\"}}]",
         CM_EFORMAT, "typesize"},
        {"[" LE ",{\"name\":\"blosc\",\"configuration\":{\"cname\":\"a-name-far-too-long\"}}]",
         CM_EFORMAT, "cname"},
        {"[{\"name\":\"transpose\",\"configuration\":{\"order\":[0,0]}}," LE "]", CM_EFORMAT,
         "order"},
        {"[{\"name\":\"transpose\",\"configuration\":{\"order\":[0,1,2]}}," LE "]", CM_EFORMAT,
         "order"},
        {"[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"middle\"}}]", CM_EFORMAT, "endian"},
        {"[{\"name\":\"bytes\",\"configuration\":[]}]", CM_EFORMAT, "not an object"},
        {"[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[0,1],\"codecs\":[],"
         "\"index_codecs\":[]}}]",
         CM_EFORMAT, "zero"},
        {"[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[1],\"codecs\":[],"
         "\"index_codecs\":[]}}]",
         CM_EFORMAT, "chunk_shape"},
        {"[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[1,1]}}]", CM_EFORMAT,
         "codecs"},
        {"[{}]", CM_EFORMAT, "a codec"},
        {"{}", CM_EFORMAT, "codecs"},
        {"null", CM_EFORMAT, "codecs"},
    };
    for (size_t i = 0; i < COUNT(row); i++) {
        cm_json *j = array_v3("\"int32\"", "0", row[i].in, "");
        cm_zarr_meta m, copy;
        cm_error err = {0};
        int rc = cm_zarr_meta_from_v3(j, &m, &err);
        cm_json_free(j);
        if (rc != row[i].rc)
            fail_msg("%s: %d %s", row[i].in, rc, err.text);
        if (rc) {
            if (!strstr(err.text, row[i].out))
                fail_msg("%s: %s", row[i].in, err.text);
            cm_zarr_meta_release(&m);
            continue;
        }
        assert_int_equal(cm_zarr_meta_copy(&m, &copy, &err), CM_OK);
        cm_zarr_meta_release(&m);
        if (cm_zarr_meta_to_v3(&copy, &j, &err) != CM_OK)
            fail_msg("%s: %s", row[i].in, err.text);
        char *text = print(cm_json_member(j, "codecs"));
        assert_string_equal(text, row[i].out ? row[i].out : row[i].in);
        free(text);
        cm_json_free(j);
        cm_zarr_meta_release(&copy);
    }
}

static void test_v3_members(void **state)
{
    (void)state;
    static const struct {
        const char *from, *to; /* replaced in the document */
        int rc;
        const char *error;
    } row[] = {
        {"\"x\":0", "\"attributes\":{\"a\":[1]},\"dimension_names\":[\"y\",null]", CM_OK, ""},
        {"\"x\":0", "\"ext\":{\"must_understand\":false}", CM_OK, ""},
        {"\"x\":0", "\"storage_transformers\":[]", CM_OK, ""},
        {"\"x\":0", "\"dimension_names\":null", CM_OK, ""},
        {"[2,3]", "[1,100]", CM_OK, ""},
        {"[4,6]", "[0,6]", CM_OK, ""},
        {"{\"name\":\"default\"}", "\"default\"", CM_OK, ""},
        {"{\"name\":\"default\"}", "{\"name\":\"v2\"}", CM_OK, ""},
        {"\"x\":0", "\"ext\":{}", CM_EUNSUPPORTED, "extension 'ext'"},
        {"\"x\":0", "\"ext\":1", CM_EUNSUPPORTED, "extension 'ext'"},
        {"\"x\":0", "\"storage_transformers\":1e300", CM_EFORMAT, "not a list"},
        {"\"x\":0", "\"storage_transformers\":{}", CM_EFORMAT, "not a list"},
        {"\"x\":0", "\"storage_transformers\":[{\"name\":\"t\"}]", CM_EUNSUPPORTED, "transformers"},
        {"\"default\"", "\"hilbert\"", CM_EUNSUPPORTED, "'hilbert'"},
        {"\"x\":0", "\"attributes\":[]", CM_EFORMAT, "attributes"},
        {"\"x\":0", "\"dimension_names\":[\"y\"]", CM_EFORMAT, "dimension_names"},
        {"\"x\":0", "\"dimension_names\":[\"y\",1]", CM_EFORMAT, "dimension 1"},
        {"[2,3]", "[0,3]", CM_EFORMAT, "zero"},
        {"[2,3]", "[2]", CM_EFORMAT, "dimensions"},
        {"[2,3]", "[2,-3]", CM_EFORMAT, "not a length"},
        {"[2,3]", "[2,3.5]", CM_EFORMAT, "not a length"},
        {"[4,6]", "[9223372036854775807,9223372036854775807]", CM_EFORMAT, ""},
        {"[4,6]", "[4,18446744073709551615]", CM_EFORMAT, "not a length"},
        {"[4,6]", "7", CM_EFORMAT, "shape"},
        {"[4,6]", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", CM_EFORMAT,
         "33 dimensions"},
        {"{\"name\":\"default\"}", "{\"name\":\"default\",\"configuration\":{\"separator\":\"-\"}}",
         CM_EFORMAT, "separator"},
        {"\"array\"", "\"table\"", CM_EFORMAT, "node_type"},
        {"\"zarr_format\":3", "\"zarr_format\":2", CM_EFORMAT, "zarr_format"},
        {"\"fill_value\"", "\"file_value\"", CM_EFORMAT, "fill_value"},
    };
    static const char document[] =
        "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4,6],\"data_type\":\"int16\","
        "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[2,3]}},"
        "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,\"codecs\":[\"bytes\"],"
        "\"x\":0}";
    for (size_t i = 0; i < COUNT(row); i++) {
        char text[2048];
        const char *at = strstr(document, row[i].from);
        assert_non_null(at);
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - document), document, row[i].to,
                 at + strlen(row[i].from));
        char *x = strstr(text, ",\"x\":0"); /* the place holder itself is no member */
        if (x)
            memmove(x, x + 6, strlen(x + 6) + 1);
        cm_json *j = parse(text);
        cm_zarr_meta m;
        cm_error err = {0};
        int rc = cm_zarr_meta_from_v3(j, &m, &err);
        if (rc != row[i].rc || !strstr(err.text, row[i].error))
            fail_msg("%s: %d %s", row[i].to, rc, err.text);
        if (rc == CM_EUNSUPPORTED) { /* what is known is there nevertheless */
            assert_int_equal(m.rank, 2);
            assert_int_equal(m.shape[1], 6);
            cm_json *again;
            assert_int_equal(cm_zarr_meta_to_v3(&m, &again, &err), CM_OK);
            assert_true(cm_json_equal(again, j));
            cm_json_free(again);
            assert_int_equal(cm_zarr_meta_set_format(&m, 2, &err), CM_EUNSUPPORTED);
        }
        cm_zarr_meta_release(&m);
        cm_json_free(j);
    }
}

static void test_v3_group(void **state)
{
    (void)state;
    cm_json *j = parse("{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{\"a\":null},"
                       "\"consolidated_metadata\":{\"kind\":\"inline\",\"metadata\":{}}}");
    cm_zarr_meta m;
    assert_int_equal(cm_zarr_meta_from_v3(j, &m, NULL), CM_OK);
    cm_json_free(j);
    assert_true(m.is_group);
    assert_false(cm_json_has(m.raw, "consolidated_metadata"));
    assert_int_equal(cm_zarr_meta_to_v3(&m, &j, NULL), CM_OK);
    char *text = print(j);
    assert_string_equal(text,
                        "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{\"a\":null}}");
    free(text);
    cm_json_free(j);
    cm_zarr_meta_release(&m);
    cm_zarr_meta_release(&m); /* empty now */
}

/* ---- v2 ---- */

static void test_v2_types(void **state)
{
    (void)state;
    static const struct {
        const char *dtype;
        int rc;
        const char *name;    /* or part of the error */
        const char *written; /* the dtype written; NULL: the same */
    } row[] = {
        {"\"|b1\"", CM_OK, "bool", NULL},
        {"\"|i1\"", CM_OK, "int8", NULL},
        {"\"<i1\"", CM_OK, "int8", "|i1"},
        {"\">u1\"", CM_OK, "uint8", "|u1"},
        {"\"|i4\"", CM_OK, "int32", "<i4"},
        {"\">i4\"", CM_OK, "int32", NULL},
        {"\"<f2\"", CM_OK, "float16", NULL},
        {"\">f8\"", CM_OK, "float64", NULL},
        {"\"<c16\"", CM_OK, "complex128", NULL},
        {"\">c8\"", CM_OK, "complex64", NULL},
        {"\"|S12\"", CM_OK, "bytes12", NULL},
        {"\">S1\"", CM_OK, "bytes1", "|S1"},
        {"\"<U3\"", CM_OK, "unicode3", NULL},
        {"\">U3\"", CM_OK, "unicode3", NULL},
        {"\"|V7\"", CM_OK, "raw7", NULL},
        {"\"<M8[ns]\"", CM_OK, "datetime64[ns]", NULL},
        {"\">m8[25s]\"", CM_OK, "timedelta64[25s]", NULL},
        {"\"<M8\"", CM_OK, "datetime64", NULL},
        {"[[\"a\",\"<i4\"]]", CM_EUNSUPPORTED, "structured", NULL},
        {"\"|O\"", CM_EUNSUPPORTED, "'|O'", NULL},
        {"\"<f16\"", CM_EUNSUPPORTED, "'<f16'", NULL},
        {"\"<i3\"", CM_EUNSUPPORTED, "'<i3'", NULL},
        {"\"|S0\"", CM_EUNSUPPORTED, "'|S0'", NULL},
        {"\"|S99999999999999999999\"", CM_EUNSUPPORTED, "not supported", NULL},
        {"\"<M8[fortnight]\"", CM_EUNSUPPORTED, "fortnight", NULL},
        {"\"\"", CM_EUNSUPPORTED, "''", NULL},
        {"4", CM_EFORMAT, "dtype", NULL},
        {"null", CM_EFORMAT, "dtype", NULL},
    };
    for (size_t i = 0; i < COUNT(row); i++) {
        cm_json *j = array_v2(row[i].dtype, "null", "null", "null", ",\"order\":\"C\"");
        cm_zarr_meta m;
        cm_error err = {0};
        int rc = cm_zarr_meta_from_v2(j, NULL, &m, &err);
        cm_json_free(j);
        if (rc != row[i].rc)
            fail_msg("%s: %d %s", row[i].dtype, rc, err.text);
        if (rc) {
            if (!strstr(err.text, row[i].name))
                fail_msg("%s: %s", row[i].dtype, err.text);
            cm_zarr_meta_release(&m);
            continue;
        }
        char name[32], quoted[64];
        assert_string_equal(cm_dtype_name(&m.dtype, name, sizeof name), row[i].name);
        assert_false(m.has_fill);
        cm_json *attrs;
        assert_int_equal(cm_zarr_meta_to_v2(&m, &j, &attrs, &err), CM_OK);
        assert_null(attrs);
        assert_true(cm_json_has(j, "fill_value"));
        assert_null(cm_json_member(j, "fill_value"));
        snprintf(quoted, sizeof quoted, "\"%s\"", cm_json_text(cm_json_member(j, "dtype"), NULL));
        if (row[i].written)
            assert_string_equal(cm_json_text(cm_json_member(j, "dtype"), NULL), row[i].written);
        else
            assert_string_equal(quoted, row[i].dtype);
        cm_json_free(j);
        cm_zarr_meta_release(&m);
    }
}

static void test_v2_codecs(void **state)
{
    (void)state;
    static const struct {
        const char *dtype, *order, *filters, *compressor;
        int rc;
        const char *v3; /* the chain as v3 has it, or part of the error */
    } row[] = {
        {"<i4", "C", "null", "null", CM_OK,
         "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]"},
        {">i4", "C", "[]", "{\"id\":\"zlib\",\"level\":9}", CM_OK,
         "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}},"
         "{\"name\":\"numcodecs.zlib\",\"configuration\":{\"level\":9}}]"},
        {"|i1", "F", "null", "{\"id\":\"blosc\",\"shuffle\":-1}", CM_OK,
         "[{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}},{\"name\":\"bytes\"},"
         "{\"name\":\"blosc\",\"configuration\":{\"typesize\":1,\"cname\":\"lz4\",\"clevel\":5,"
         "\"shuffle\":\"bitshuffle\",\"blocksize\":0}}]"},
        {"<i4", "C", "[{\"id\":\"shuffle\",\"elementsize\":4}]", "{\"id\":\"zstd\",\"level\":1}",
         CM_OK,
         "[{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}},"
         "{\"name\":\"numcodecs.shuffle\",\"configuration\":{\"elementsize\":4}},"
         "{\"name\":\"zstd\",\"configuration\":{\"level\":1,\"checksum\":false}}]"},
        {">i4", "C", "[{\"id\":\"delta\",\"dtype\":\">i4\",\"astype\":\"<i2\"}]", "null", CM_OK,
         "[{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\">i4\",\"astype\":\"<i2\"}},"
         "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}]"},
        {"<f8", "C",
         "[{\"id\":\"fixedscaleoffset\",\"scale\":10,\"offset\":5,\"dtype\":\"<f8\","
         "\"astype\":\">u2\"}]",
         "null", CM_OK,
         "[{\"name\":\"numcodecs.fixedscaleoffset\",\"configuration\":{\"scale\":10.0,"
         "\"offset\":5.0,\"dtype\":\"<f8\",\"astype\":\">u2\"}},"
         "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}]"},
        {"|O", "C", "[{\"id\":\"vlen-utf8\"}]", "{\"id\":\"gzip\",\"level\":1}", CM_OK,
         "[{\"name\":\"vlen-utf8\",\"configuration\":{}},"
         "{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]"},
        {"|O", "C", "[{\"id\":\"vlen-bytes\"}]", "null", CM_OK,
         "[{\"name\":\"vlen-bytes\",\"configuration\":{}}]"},
        {"|O", "C", "[{\"id\":\"json2\"}]", "null", CM_EUNSUPPORTED, "json2"},
        {"<i4", "C", "null", "{\"id\":\"lzma\"}", CM_EUNSUPPORTED, "'lzma'"},
        {"<i4", "C", "null", "{\"level\":1}", CM_EFORMAT, "no id"},
        {"<i4", "C", "{}", "null", CM_EFORMAT, "filters"},
        {"<i4", "A", "null", "null", CM_EFORMAT, "order"},
        {"<i4", "C", "[{\"id\":\"delta\",\"dtype\":7}]", "null", CM_EFORMAT, "dtype"},
        {"<i4", "C", "null", "{\"id\":\"blosc\",\"shuffle\":3}", CM_EFORMAT, "shuffle"},
    };
    for (size_t i = 0; i < COUNT(row); i++) {
        char dtype[64], order[64];
        snprintf(dtype, sizeof dtype, "\"%s\"", row[i].dtype);
        snprintf(order, sizeof order, ",\"order\":\"%s\"", row[i].order);
        cm_json *j = array_v2(dtype, "null", row[i].compressor, row[i].filters, order), *attrs;
        cm_zarr_meta m;
        cm_error err = {0};
        int rc = cm_zarr_meta_from_v2(j, NULL, &m, &err);
        cm_json_free(j);
        if (rc != row[i].rc)
            fail_msg("row %zu: %d %s", i, rc, err.text);
        if (rc) {
            if (!strstr(err.text, row[i].v3))
                fail_msg("row %zu: %s", i, err.text);
            cm_zarr_meta_release(&m);
            continue;
        }
        /* To v3 and back again it is still the same array. */
        assert_int_equal(cm_zarr_meta_set_format(&m, 3, &err), CM_OK);
        assert_int_equal(cm_zarr_meta_to_v3(&m, &j, &err), CM_OK);
        char *text = print(cm_json_member(j, "codecs"));
        assert_string_equal(text, row[i].v3);
        free(text);
        cm_json_free(j);
        assert_int_equal(cm_zarr_meta_set_format(&m, 2, &err), CM_OK);
        assert_int_equal(cm_zarr_meta_to_v2(&m, &j, &attrs, &err), CM_OK);
        assert_string_equal(cm_json_text(cm_json_member(j, "dtype"), NULL), row[i].dtype);
        assert_string_equal(cm_json_text(cm_json_member(j, "order"), NULL), row[i].order);
        bool no_filters = strlen(row[i].filters) < 5 || !strncmp(row[i].filters, "null", 4);
        assert_int_equal(cm_json_member(j, "filters") == NULL, no_filters);
        assert_int_equal(cm_json_member(j, "compressor") == NULL,
                         !strcmp(row[i].compressor, "null"));
        cm_json_free(j);
        cm_zarr_meta_release(&m);
    }
}

static void test_v2_attributes(void **state)
{
    (void)state;
    static const struct {
        const char *attrs;
        bool has_names;
        const char *out; /* NULL: nothing to say */
    } row[] = {
        {"{}", false, NULL},
        {"{\"u\":\"m\",\"_ARRAY_DIMENSIONS\":[\"y\",\"x\"]}", true,
         "{\"_ARRAY_DIMENSIONS\":[\"y\",\"x\"],\"u\":\"m\"}"},
        {"{\"_ARRAY_DIMENSIONS\":[\"y\"]}", false, "{\"_ARRAY_DIMENSIONS\":[\"y\"]}"},
        {"{\"_ARRAY_DIMENSIONS\":7,\"z\":null}", false, "{\"_ARRAY_DIMENSIONS\":7,\"z\":null}"},
    };
    for (size_t i = 0; i < COUNT(row); i++) {
        cm_json *j = array_v2("\"<i4\"", "0", "null", "null", ",\"order\":\"C\"");
        cm_json *in = parse(row[i].attrs), *attrs;
        cm_zarr_meta m;
        assert_int_equal(cm_zarr_meta_from_v2(j, in, &m, NULL), CM_OK);
        cm_json_free(j);
        cm_json_free(in);
        assert_int_equal(m.has_dim_names, row[i].has_names);
        assert_int_equal(cm_zarr_meta_to_v2(&m, &j, &attrs, NULL), CM_OK);
        assert_int_equal(attrs == NULL, row[i].out == NULL);
        if (attrs) {
            char *text = print(attrs);
            assert_string_equal(text, row[i].out);
            free(text);
        }
        cm_json_free(attrs);
        cm_json_free(j);
        cm_zarr_meta_release(&m);
    }
}

static void test_other_format(void **state)
{
    (void)state;
    static const struct {
        const char *codecs;
        const char *error; /* NULL: v2 can say it */
    } row[] = {
        {"[\"bytes\",{\"name\":\"zstd\",\"configuration\":{\"level\":3,\"checksum\":true}}]", NULL},
        {"[{\"name\":\"transpose\",\"configuration\":{\"order\":[0,1]}},\"bytes\"]", NULL},
        {"[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[1,3],\"codecs\":"
         "[\"bytes\"],\"index_codecs\":[\"bytes\"]}}]",
         "sharding_indexed"},
        {"[{\"name\":\"scale_offset\",\"configuration\":{\"offset\":5,\"scale\":2}},\"bytes\"]",
         "scale_offset"},
    };
    for (size_t i = 0; i < COUNT(row); i++) {
        cm_json *j =
            array_v3("\"int16\"", "0", row[i].codecs, ",\"dimension_names\":[\"y\",\"x\"]");
        cm_zarr_meta m;
        cm_error err = {0};
        assert_int_equal(cm_zarr_meta_from_v3(j, &m, &err), CM_OK);
        cm_json_free(j);
        int rc = cm_zarr_meta_set_format(&m, 2, &err);
        assert_int_equal(rc, row[i].error ? CM_EUNSUPPORTED : CM_OK);
        assert_int_equal(m.zarr_format, row[i].error ? 3 : 2);
        assert_int_equal(m.separator, row[i].error ? '/' : '.');
        if (row[i].error)
            assert_non_null(strstr(err.text, row[i].error));
        assert_int_equal(cm_zarr_meta_set_format(&m, 4, &err), CM_EINVAL);
        cm_zarr_meta_release(&m);
    }
}

/* ---- keys and names ---- */

static void test_chunk_keys(void **state)
{
    (void)state;
    static const struct {
        int format;
        bool key_v2;
        char separator;
        unsigned rank;
        const char *key;
    } row[] = {
        {3, false, '/', 3, "c/0/18446744073709551615/10"},
        {3, false, '.', 3, "c.0.18446744073709551615.10"},
        {3, true, '.', 3, "0.18446744073709551615.10"},
        {3, true, '/', 1, "0"},
        {3, false, '/', 0, "c"},
        {3, true, '.', 0, "0"},
        {2, false, '.', 2, "0.18446744073709551615"},
        {2, false, '/', 2, "0/18446744073709551615"},
        {2, false, '.', 0, "0"},
    };
    static const uint64_t coord[] = {0, UINT64_MAX, 10};
    for (size_t i = 0; i < COUNT(row); i++) {
        cm_zarr_meta m = {.zarr_format = row[i].format,
                          .key_v2 = row[i].key_v2,
                          .separator = row[i].separator,
                          .rank = row[i].rank};
        char key[CM_CHUNK_KEY_SIZE];
        assert_string_equal(cm_zarr_chunk_key(&m, coord, key, sizeof key), row[i].key);
    }
    cm_zarr_meta m = {.zarr_format = 3, .separator = '/', .rank = CM_MAX_RANK};
    uint64_t large[CM_MAX_RANK];
    memset(large, 0xff, sizeof large);
    char key[CM_CHUNK_KEY_SIZE];
    assert_int_equal(strlen(cm_zarr_chunk_key(&m, large, key, sizeof key)), sizeof key - 1);
}

static void test_names(void **state)
{
    (void)state;
    char long_name[300];
    memset(long_name, 'x', sizeof long_name);
    long_name[256] = '\0';
    static const char *const good[] = {"tas", "__x", "a.b", "...a", "\xc3\xa4", " ", "zarr", ".b"};
    const char *const bad[] = {"",        ".",    "..",   "....",     "a/b",          "zarr.json",
                               ".zarray", ".zoo", "\xff", "\xc0\xaf", "\xed\xa0\x80", "a\xc3",
                               long_name};
    for (size_t i = 0; i < COUNT(good); i++) {
        bool warn;
        assert_int_equal(cm_zarr_name_check(good[i], &warn, NULL), CM_OK);
        assert_int_equal(warn, i == 1);
    }
    for (size_t i = 0; i < COUNT(bad); i++) {
        cm_error err = {0};
        assert_int_equal(cm_zarr_name_check(bad[i], NULL, &err), CM_EINVAL);
    }
    long_name[255] = '\0';
    assert_int_equal(cm_zarr_name_check(long_name, NULL, NULL), CM_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_v3_types),      cmocka_unit_test(test_v3_codecs),
        cmocka_unit_test(test_v3_members),    cmocka_unit_test(test_v3_group),
        cmocka_unit_test(test_v2_types),      cmocka_unit_test(test_v2_codecs),
        cmocka_unit_test(test_v2_attributes), cmocka_unit_test(test_other_format),
        cmocka_unit_test(test_chunk_keys),    cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests_name("zarr/meta", tests, NULL, NULL);
}
