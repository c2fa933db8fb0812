/*
 * numcodecs' configurations (numcodecs.readthedocs.io, and get_config() of each class): filters and
 * compressor of Zarr v2, and "numcodecs.ID" of v3.
 */
#include <stdlib.h>
#include <string.h>

#include "format/zarr/internal.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

typedef int parse_fn(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                     cm_error *err);
typedef int format_fn(const cm_codec_spec *spec, cm_json *object, cm_error *err);

static int wrong(const char *key, cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "'%s' is missing or wrong", key);
}

/* Reads an integer in LOWEST .. HIGHEST; ABSENT if the key is missing. */
static int read_int(const cm_json *config, const char *key, int64_t lowest, int64_t highest,
                    int64_t absent, int64_t *out, cm_error *err)
{
    const cm_json *j = cm_json_member(config, key);
    *out = absent;
    if (j != NULL && (!cm_json_get_i64(j, out) || *out < lowest || *out > highest))
        return wrong(key, err);
    return CM_OK;
}

/* ---- compressors ---- */

static int parse_level(const cm_json *config, int64_t lowest, int64_t highest, int64_t absent,
                       cm_codec_spec *out, cm_error *err)
{
    int64_t level;
    int rc = read_int(config, "level", lowest, highest, absent, &level, err);
    out->level = (int)level;
    return rc;
}

static int parse_zlib(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                      cm_error *err)
{
    (void)scene;
    return parse_level(config, -1, 9, 1, out, err);
}

static int parse_bz2(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                     cm_error *err)
{
    (void)scene;
    return parse_level(config, 1, 9, 1, out, err);
}

static int parse_zstd(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                      cm_error *err)
{
    (void)scene;
    const cm_json *checksum = cm_json_member(config, "checksum");
    if (checksum != NULL && !cm_json_get_bool(checksum, &out->checksum))
        return wrong("checksum", err);
    return parse_level(config, -131072, 22, 0, out, err);
}

static int format_level(const cm_codec_spec *spec, cm_json *object, cm_error *err)
{
    return cm_json_set(object, "level", cm_json_i64(spec->level), err);
}

static int format_zstd(const cm_codec_spec *spec, cm_json *object, cm_error *err)
{
    int rc = format_level(spec, object, err);
    if (spec->checksum) /* written only if set: readers of v2 do not know the key */
        cm_zarr_set(&rc, object, "checksum", cm_json_bool(true), err);
    return rc;
}

static int parse_lz4(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                     cm_error *err)
{
    (void)scene;
    int64_t acceleration;
    int rc = read_int(config, "acceleration", INT32_MIN, INT32_MAX, 1, &acceleration, err);
    out->level = (int)acceleration;
    return rc;
}

static int format_lz4(const cm_codec_spec *spec, cm_json *object, cm_error *err)
{
    return cm_json_set(object, "acceleration", cm_json_i64(spec->level ? spec->level : 1), err);
}

static int parse_blosc(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                       cm_error *err)
{
    const cm_json *j = cm_json_member(config, "cname");
    const char *cname = j != NULL ? cm_json_text(j, NULL) : "lz4";
    if (cname == NULL || strlen(cname) >= sizeof out->blosc.cname)
        return wrong("cname", err);
    strcpy(out->blosc.cname, cname);
    int64_t level, shuffle, blocksize;
    int rc = read_int(config, "clevel", 0, 9, 5, &level, err);
    rc = rc != CM_OK ? rc : read_int(config, "shuffle", -1, 2, 1, &shuffle, err);
    rc = rc != CM_OK ? rc : read_int(config, "blocksize", 0, INT32_MAX, 0, &blocksize, err);
    if (rc != CM_OK)
        return rc;
    /* c-blosc shuffles by the item size of its input buffer. */
    out->elementsize = scene->is_bytes ? 1 : scene->type.nbytes;
    if (shuffle < 0)
        shuffle = out->elementsize == 1 ? CM_BLOSC_BITSHUFFLE : CM_BLOSC_SHUFFLE;
    out->level = (int)level;
    out->blosc.shuffle = (cm_blosc_shuffle)shuffle;
    out->blosc.blocksize = (uint32_t)blocksize;
    return CM_OK;
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
    int64_t absent =
        cm_json_has(config, "elementsize") && !scene->is_bytes ? (int64_t)scene->type.nbytes : 4;
    int64_t elementsize;
    int rc = read_int(config, "elementsize", 1, INT32_MAX, absent, &elementsize, err);
    out->elementsize = (uint32_t)elementsize;
    return rc;
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
        return wrong("location", err);
    out->at_start = strcmp(text, "start") == 0;
    return CM_OK;
}

static int format_location(const cm_codec_spec *spec, cm_json *object, cm_error *err)
{
    if (spec->at_start == (spec->id != CM_CODEC_CRC32C))
        return CM_OK;
    return cm_json_set(object, "location", cm_json_string(spec->at_start ? "start" : "end"), err);
}

static int parse_nothing(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                         cm_error *err)
{
    (void)config, (void)scene, (void)out, (void)err;
    return CM_OK;
}

static int format_nothing(const cm_codec_spec *spec, cm_json *object, cm_error *err)
{
    (void)spec, (void)object, (void)err;
    return CM_OK;
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
    return text != NULL ? cm_zarr_dtype_from_v2(text, out, big_endian, err) : wrong(key, err);
}

static int read_types(const cm_json *config, const cm_codec_scene *scene, const char *dtype,
                      const char *astype, cm_codec_spec *out, cm_error *err)
{
    int rc =
        read_type(config, dtype, &scene->type, false, &out->dtype, &out->dtype_big_endian, err);
    return rc != CM_OK ? rc
                       : read_type(config, astype, &out->dtype, out->dtype_big_endian, &out->astype,
                                   &out->astype_big_endian, err);
}

static int format_types(const cm_codec_spec *spec, const char *dtype, const char *astype,
                        cm_json *object, cm_error *err)
{
    char text[48];
    int rc = cm_zarr_dtype_to_v2(&spec->dtype, spec->dtype_big_endian, text, sizeof text, err);
    if (rc == CM_OK)
        rc = cm_json_set(object, dtype, cm_json_string(text), err);
    if (rc == CM_OK)
        rc = cm_zarr_dtype_to_v2(&spec->astype, spec->astype_big_endian, text, sizeof text, err);
    return rc != CM_OK ? rc : cm_json_set(object, astype, cm_json_string(text), err);
}

static int parse_delta(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                       cm_error *err)
{
    return read_types(config, scene, "dtype", "astype", out, err);
}

static int format_delta(const cm_codec_spec *spec, cm_json *object, cm_error *err)
{
    return format_types(spec, "dtype", "astype", object, err);
}

static int parse_fixedscaleoffset(const cm_json *config, const cm_codec_scene *scene,
                                  cm_codec_spec *out, cm_error *err)
{
    if (!cm_json_get_double(cm_json_member(config, "scale"), &out->scale))
        return wrong("scale", err);
    if (!cm_json_get_double(cm_json_member(config, "offset"), &out->offset))
        return wrong("offset", err);
    return read_types(config, scene, "dtype", "astype", out, err);
}

static int format_fixedscaleoffset(const cm_codec_spec *spec, cm_json *object, cm_error *err)
{
    int rc = CM_OK;
    cm_zarr_set(&rc, object, "scale", cm_json_double(spec->scale), err);
    cm_zarr_set(&rc, object, "offset", cm_json_double(spec->offset), err);
    return rc != CM_OK ? rc : format_types(spec, "dtype", "astype", object, err);
}

static int parse_quantize(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                          cm_error *err)
{
    int64_t digits;
    if (!cm_json_has(config, "digits"))
        return wrong("digits", err);
    int rc = read_int(config, "digits", 0, 300, 0, &digits, err);
    out->keepbits = (uint32_t)digits;
    return rc != CM_OK ? rc : read_types(config, scene, "dtype", "astype", out, err);
}

static int format_quantize(const cm_codec_spec *spec, cm_json *object, cm_error *err)
{
    int rc = cm_json_set(object, "digits", cm_json_u64(spec->keepbits), err);
    return rc != CM_OK ? rc : format_types(spec, "dtype", "astype", object, err);
}

static int parse_bitround(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                          cm_error *err)
{
    (void)scene;
    int64_t keepbits;
    if (!cm_json_has(config, "keepbits"))
        return wrong("keepbits", err);
    int rc = read_int(config, "keepbits", 0, 52, 0, &keepbits, err);
    out->keepbits = (uint32_t)keepbits;
    return rc;
}

static int format_bitround(const cm_codec_spec *spec, cm_json *object, cm_error *err)
{
    return cm_json_set(object, "keepbits", cm_json_u64(spec->keepbits), err);
}

static int parse_astype(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                        cm_error *err)
{
    if (!cm_json_has(config, "encode_dtype"))
        return wrong("encode_dtype", err);
    return read_types(config, scene, "decode_dtype", "encode_dtype", out, err);
}

static int format_astype(const cm_codec_spec *spec, cm_json *object, cm_error *err)
{
    return format_types(spec, "decode_dtype", "encode_dtype", object, err);
}

/* ---- the table ---- */

static const struct {
    const char *name;
    cm_codec_id id;
    parse_fn *parse;
    format_fn *format;
} CODEC[] = {
    {"zlib", CM_CODEC_ZLIB, parse_zlib, format_level},
    {"gzip", CM_CODEC_GZIP, parse_zlib, format_level},
    {"bz2", CM_CODEC_BZ2, parse_bz2, format_level},
    {"zstd", CM_CODEC_ZSTD, parse_zstd, format_zstd},
    {"lz4", CM_CODEC_LZ4, parse_lz4, format_lz4},
    {"blosc", CM_CODEC_BLOSC, parse_blosc, format_blosc},
    {"shuffle", CM_CODEC_SHUFFLE, parse_shuffle, format_shuffle},
    {"crc32c", CM_CODEC_CRC32C, parse_location, format_location},
    {"crc32", CM_CODEC_CRC32, parse_location, format_location},
    {"adler32", CM_CODEC_ADLER32, parse_location, format_location},
    {"fletcher32", CM_CODEC_FLETCHER32, parse_nothing, format_nothing},
    {"delta", CM_CODEC_DELTA, parse_delta, format_delta},
    {"fixedscaleoffset", CM_CODEC_FIXEDSCALEOFFSET, parse_fixedscaleoffset,
     format_fixedscaleoffset},
    {"quantize", CM_CODEC_QUANTIZE, parse_quantize, format_quantize},
    {"bitround", CM_CODEC_BITROUND, parse_bitround, format_bitround},
    {"astype", CM_CODEC_ASTYPE, parse_astype, format_astype},
    {"packbits", CM_CODEC_PACKBITS, parse_nothing, format_nothing},
    {"vlen-utf8", CM_CODEC_VLEN_UTF8, parse_nothing, format_nothing},
    {"vlen-bytes", CM_CODEC_VLEN_BYTES, parse_nothing, format_nothing},
};

int cm_numcodec_parse(const char *id, const cm_json *config, const cm_codec_scene *scene,
                      cm_codec_spec *out, cm_error *err)
{
    for (size_t i = 0; i < COUNT(CODEC); i++) {
        if (strcmp(id, CODEC[i].name) != 0)
            continue;
        memset(out, 0, sizeof *out);
        out->id = CODEC[i].id;
        int rc = CODEC[i].parse(config, scene, out, err);
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
            return CODEC[i].format(spec, object, err);
        }
    }
    return cm_fail(err, CM_EUNSUPPORTED, "Zarr v2 has no codec %s", cm_codec_name(spec->id));
}
