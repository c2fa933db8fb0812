/*
 * numcodecs' configurations (numcodecs.readthedocs.io, and get_config() of each class): filters and
 * compressor of Zarr v2, and "numcodecs.ID" of v3.
 */
#include <stdlib.h>
#include <string.h>

#include "format/zarr/internal.h"

#define COUNT(table)  (sizeof(table) / sizeof *(table))
#define PLACE(member) offsetof(cm_codec_spec, member)

typedef int parse_fn(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                     cm_error *err);
typedef int format_fn(const cm_codec_spec *spec, cm_json *object, cm_error *err);

int cm_codec_key_wrong(const char *key, cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "'%s' is missing or wrong", key);
}

/* A whole number of a configuration, a member of 32 bits of the specification. */
typedef struct number {
    const char *key; /* NULL: there is none */
    size_t place;
    int64_t lowest, highest, absent;
    bool needed;
    bool zero_is_absent; /* 0 is written as ABSENT */
} number;

static int read_number(const number *n, const cm_json *config, cm_codec_spec *out, cm_error *err)
{
    const cm_json *j = cm_json_member(config, n->key);
    int64_t value = n->absent;
    if (j == NULL ? n->needed
                  : !cm_json_get_i64(j, &value) || value < n->lowest || value > n->highest)
        return cm_codec_key_wrong(n->key, err);
    memcpy((char *)out + n->place, &(int32_t){(int32_t)value}, sizeof(int32_t));
    return CM_OK;
}

static int write_number(const number *n, const cm_codec_spec *spec, cm_json *object, cm_error *err)
{
    int32_t value;
    memcpy(&value, (const char *)spec + n->place, sizeof value);
    int64_t written = n->zero_is_absent && value == 0 ? n->absent : value;
    return cm_json_set(object, n->key, cm_json_i64(written), err);
}

/* ---- compressors ---- */

static int parse_zstd(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                      cm_error *err)
{
    (void)scene;
    const cm_json *checksum = cm_json_member(config, "checksum");
    if (checksum != NULL && !cm_json_get_bool(checksum, &out->checksum))
        return cm_codec_key_wrong("checksum", err);
    return CM_OK;
}

static int format_zstd(const cm_codec_spec *spec, cm_json *object, cm_error *err)
{
    /* Written only if set: readers of v2 do not know the key. */
    return spec->checksum ? cm_json_set(object, "checksum", cm_json_bool(true), err) : CM_OK;
}

static int parse_blosc(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                       cm_error *err)
{
    static const number numbers[] = {
        {"clevel", PLACE(level), 0, 9, 5, false, false},
        {"shuffle", PLACE(blosc.shuffle), -1, 2, 1, false, false},
        {"blocksize", PLACE(blosc.blocksize), 0, INT32_MAX, 0, false, false},
    };
    const cm_json *j = cm_json_member(config, "cname");
    const char *cname = j != NULL ? cm_json_text(j, NULL) : "lz4";
    if (cname == NULL || strlen(cname) >= sizeof out->blosc.cname)
        return cm_codec_key_wrong("cname", err);
    strcpy(out->blosc.cname, cname);
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < COUNT(numbers); i++)
        rc = read_number(&numbers[i], config, out, err);
    /* c-blosc shuffles by the item size of its input buffer. */
    out->elementsize = scene->is_bytes ? 1 : scene->type.nbytes;
    if (rc == CM_OK && (int)out->blosc.shuffle < 0)
        out->blosc.shuffle = out->elementsize == 1 ? CM_BLOSC_BITSHUFFLE : CM_BLOSC_SHUFFLE;
    return rc;
}

static int format_blosc(const cm_codec_spec *spec, cm_json *object, cm_error *err)
{
    /* Every frame has its block size; 0 in the metadata where the size depends on the chunk. */
    uint32_t blocksize = spec->blosc.blocksize == CM_BLOSC_ONE_BLOCK ? 0 : spec->blosc.blocksize;
    int rc = CM_OK;
    cm_zarr_set(&rc, object, "cname", cm_json_string(spec->blosc.cname), err);
    cm_zarr_set(&rc, object, "clevel", cm_json_i64(spec->level), err);
    cm_zarr_set(&rc, object, "shuffle", cm_json_i64((int)spec->blosc.shuffle), err);
    cm_zarr_set(&rc, object, "blocksize", cm_json_u64(blocksize), err);
    return rc;
}

/* ---- shuffle and checksums ---- */

static int parse_shuffle(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                         cm_error *err)
{
    /* zarr-python writes null until it knows the type. */
    bool null = cm_json_has(config, "elementsize") && !scene->is_bytes;
    const number n = {.key = "elementsize",
                      .place = PLACE(elementsize),
                      .lowest = 1,
                      .highest = INT32_MAX,
                      .absent = null ? (int64_t)scene->type.nbytes : 4};
    return read_number(&n, config, out, err);
}

static int format_shuffle(const cm_codec_spec *spec, cm_json *object, cm_error *err)
{
    return cm_json_set(object, "elementsize", cm_json_u64(spec->elementsize), err);
}

/* numcodecs puts crc32 and adler32 in front, crc32c behind, by default. */
static int parse_location(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                          cm_error *err)
{
    (void)scene;
    out->at_start = out->id != CM_CODEC_CRC32C;
    const cm_json *j = cm_json_member(config, "location");
    if (j == NULL)
        return CM_OK;
    const char *text = cm_json_text(j, NULL);
    if (text == NULL || (strcmp(text, "start") != 0 && strcmp(text, "end") != 0))
        return cm_codec_key_wrong("location", err);
    out->at_start = strcmp(text, "start") == 0;
    return CM_OK;
}

static int format_location(const cm_codec_spec *spec, cm_json *object, cm_error *err)
{
    if (spec->at_start == (spec->id != CM_CODEC_CRC32C))
        return CM_OK;
    return cm_json_set(object, "location", cm_json_string(spec->at_start ? "start" : "end"), err);
}

/* ---- filters that change elements ---- */

static int read_type(const cm_json *config, const char *key, const cm_dtype *absent,
                     bool absent_big_endian, cm_dtype *out, bool *big_endian, cm_error *err)
{
    const cm_json *j = cm_json_member(config, key);
    *out = *absent;
    *big_endian = absent_big_endian;
    if (j == NULL)
        return CM_OK;
    const char *text = cm_json_text(j, NULL);
    return text != NULL ? cm_zarr_dtype_from_v2(text, out, big_endian, err)
                        : cm_codec_key_wrong(key, err);
}

static int format_type(const cm_dtype *type, bool big_endian, const char *key, cm_json *object,
                       cm_error *err)
{
    char text[48];
    int rc = cm_zarr_dtype_to_v2(type, big_endian, text, sizeof text, err);
    return rc == CM_OK ? cm_json_set(object, key, cm_json_string(text), err) : rc;
}

static int parse_fixedscaleoffset(const cm_json *config, const cm_codec_scene *scene,
                                  cm_codec_spec *out, cm_error *err)
{
    (void)scene;
    if (!cm_json_get_double(cm_json_member(config, "scale"), &out->scale))
        return cm_codec_key_wrong("scale", err);
    if (!cm_json_get_double(cm_json_member(config, "offset"), &out->offset))
        return cm_codec_key_wrong("offset", err);
    return CM_OK;
}

static int format_fixedscaleoffset(const cm_codec_spec *spec, cm_json *object, cm_error *err)
{
    int rc = CM_OK;
    cm_zarr_set(&rc, object, "scale", cm_json_double(spec->scale), err);
    cm_zarr_set(&rc, object, "offset", cm_json_double(spec->offset), err);
    return rc;
}

static int parse_astype(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                        cm_error *err)
{
    (void)scene, (void)out;
    return cm_json_has(config, "encode_dtype") ? CM_OK : cm_codec_key_wrong("encode_dtype", err);
}

/* ---- the table ---- */

typedef struct codec {
    const char *name;
    cm_codec_id id;
    number number;
    parse_fn *parse; /* of other keys; NULL: there are none */
    format_fn *format;
    const char *dtype, *astype; /* keys of the types before and after; NULL: there are none */
} codec;

#define LEVEL(lowest, highest, absent)                                                             \
    .number = {"level", PLACE(level), lowest, highest, absent, false, false}
#define BITS(key, most) .number = {key, PLACE(keepbits), 0, most, 0, true, false}
#define TYPES           .dtype = "dtype", .astype = "astype"

static const codec CODEC[] = {
    {"zlib", CM_CODEC_ZLIB, LEVEL(-1, 9, 1)},
    {"gzip", CM_CODEC_GZIP, LEVEL(-1, 9, 1)},
    {"bz2", CM_CODEC_BZ2, LEVEL(1, 9, 1)},
    {"zstd", CM_CODEC_ZSTD, LEVEL(-131072, 22, 0), .parse = parse_zstd, .format = format_zstd},
    {"lz4", CM_CODEC_LZ4,
     .number = {"acceleration", PLACE(level), INT32_MIN, INT32_MAX, 1, false, true}},
    {"blosc", CM_CODEC_BLOSC, .parse = parse_blosc, .format = format_blosc},
    {"shuffle", CM_CODEC_SHUFFLE, .parse = parse_shuffle, .format = format_shuffle},
    {"crc32c", CM_CODEC_CRC32C, .parse = parse_location, .format = format_location},
    {"crc32", CM_CODEC_CRC32, .parse = parse_location, .format = format_location},
    {"adler32", CM_CODEC_ADLER32, .parse = parse_location, .format = format_location},
    {"fletcher32", CM_CODEC_FLETCHER32, .parse = NULL},
    {"delta", CM_CODEC_DELTA, TYPES},
    {"fixedscaleoffset", CM_CODEC_FIXEDSCALEOFFSET, .parse = parse_fixedscaleoffset,
     .format = format_fixedscaleoffset, TYPES},
    {"quantize", CM_CODEC_QUANTIZE, BITS("digits", 300), TYPES},
    {"bitround", CM_CODEC_BITROUND, BITS("keepbits", 52)},
    {"astype", CM_CODEC_ASTYPE, .parse = parse_astype, .dtype = "decode_dtype",
     .astype = "encode_dtype"},
    {"packbits", CM_CODEC_PACKBITS, .parse = NULL},
    {"vlen-utf8", CM_CODEC_VLEN_UTF8, .parse = NULL},
    {"vlen-bytes", CM_CODEC_VLEN_BYTES, .parse = NULL},
};

static int parse(const codec *c, const cm_json *config, const cm_codec_scene *scene,
                 cm_codec_spec *out, cm_error *err)
{
    int rc = c->parse != NULL ? c->parse(config, scene, out, err) : CM_OK;
    if (rc == CM_OK && c->number.key != NULL)
        rc = read_number(&c->number, config, out, err);
    if (rc != CM_OK || c->dtype == NULL)
        return rc;
    rc = read_type(config, c->dtype, &scene->type, false, &out->dtype, &out->dtype_big_endian, err);
    return rc != CM_OK ? rc
                       : read_type(config, c->astype, &out->dtype, out->dtype_big_endian,
                                   &out->astype, &out->astype_big_endian, err);
}

static int format(const codec *c, const cm_codec_spec *spec, cm_json *object, cm_error *err)
{
    int rc = c->number.key != NULL ? write_number(&c->number, spec, object, err) : CM_OK;
    if (rc == CM_OK && c->format != NULL)
        rc = c->format(spec, object, err);
    if (rc != CM_OK || c->dtype == NULL)
        return rc;
    rc = format_type(&spec->dtype, spec->dtype_big_endian, c->dtype, object, err);
    return rc != CM_OK
               ? rc
               : format_type(&spec->astype, spec->astype_big_endian, c->astype, object, err);
}

int cm_numcodec_parse(const char *id, const cm_json *config, const cm_codec_scene *scene,
                      cm_codec_spec *out, cm_error *err)
{
    for (size_t i = 0; i < COUNT(CODEC); i++) {
        if (strcmp(id, CODEC[i].name) != 0)
            continue;
        memset(out, 0, sizeof *out);
        out->id = CODEC[i].id;
        int rc = parse(&CODEC[i], config, scene, out, err);
        if (rc != CM_OK)
            cm_error_prefix(err, "codec %s", id);
        return rc;
    }
    return cm_fail(err, CM_EUNSUPPORTED, "codec '%s' is not supported", id);
}

const char *cm_numcodec_id(cm_codec_id id)
{
    for (size_t i = 0; i < COUNT(CODEC); i++)
        if (CODEC[i].id == id)
            return CODEC[i].name;
    return NULL;
}

int cm_numcodec_format(const cm_codec_spec *spec, cm_json *object, const char **id, cm_error *err)
{
    for (size_t i = 0; i < COUNT(CODEC); i++) {
        if (CODEC[i].id == spec->id) {
            *id = CODEC[i].name;
            return format(&CODEC[i], spec, object, err);
        }
    }
    return cm_fail(err, CM_EUNSUPPORTED, "Zarr v2 has no codec %s", cm_codec_name(spec->id));
}
