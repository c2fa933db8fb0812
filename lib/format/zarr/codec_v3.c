/*
 * Codec lists of Zarr v3: the core's, those of zarr-extensions, and numcodecs'.
 *
 * Follows zarr-specs docs/v3/codecs; writes as zarr-python 3 does.
 */
#include <stdlib.h>
#include <string.h>

#include "format/zarr/internal.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

enum {
    MAX_NESTING = 8, /* of nested shards */
    MAX_CODECS = 64
};

static int list_from_v3(const cm_json *list, const cm_dtype *type, unsigned rank, unsigned depth,
                        cm_codec_spec **out, size_t *n, cm_error *err);

/* ---- parsers of single codecs ---- */

typedef struct reading {
    const cm_json *config;
    const cm_codec_scene *scene;
    unsigned depth;
    cm_codec_spec *out;
    cm_error *err;
} reading;

static int parse_bytes(const reading *r)
{
    const cm_json *j = cm_json_member(r->config, "endian");
    const char *endian = j != NULL ? cm_json_text(j, NULL) : "little";
    if (endian == NULL || (strcmp(endian, "little") != 0 && strcmp(endian, "big") != 0))
        return cm_codec_key_wrong("endian", r->err);
    r->out->big_endian = strcmp(endian, "big") == 0 && cm_dtype_swap_nbytes(&r->scene->type) > 1;
    return CM_OK;
}

static int parse_transpose(const reading *r)
{
    const cm_json *order = cm_json_member(r->config, "order");
    unsigned rank = r->scene->rank;
    const char *text = cm_json_text(order, NULL); /* "C" and "F" appear in drafts of the core */
    if (text != NULL && (strcmp(text, "C") == 0 || strcmp(text, "F") == 0)) {
        for (unsigned i = 0; i < rank; i++)
            r->out->order[i] = text[0] == 'C' ? i : rank - 1 - i;
        return CM_OK;
    }
    if (!cm_json_is(order, CM_JSON_ARRAY) || cm_json_length(order) != rank)
        return cm_codec_key_wrong("order", r->err);
    uint64_t seen = 0;
    for (unsigned i = 0; i < rank; i++) {
        uint64_t dim;
        if (!cm_json_get_u64(cm_json_at(order, i), &dim) || dim >= rank || seen >> dim & 1)
            return cm_codec_key_wrong("order", r->err);
        seen |= (uint64_t)1 << dim;
        r->out->order[i] = (unsigned)dim;
    }
    return CM_OK;
}

static int parse_numcodec(const reading *r)
{
    /* gzip, zstd and bitround have the keys of numcodecs. */
    return cm_numcodec_parse(cm_numcodec_id(r->out->id), r->config, r->scene, r->out, r->err);
}

static int parse_gzip(const reading *r)
{
    if (!cm_json_has(r->config, "level"))
        return cm_codec_key_wrong("level", r->err);
    return parse_numcodec(r);
}

static int parse_blosc(const reading *r)
{
    static const char *const names[] = {"noshuffle", "shuffle", "bitshuffle"};
    const char *cname = cm_json_text(cm_json_member(r->config, "cname"), NULL);
    if (cname == NULL || strlen(cname) >= sizeof r->out->blosc.cname)
        return cm_codec_key_wrong("cname", r->err);
    strcpy(r->out->blosc.cname, cname);
    const char *shuffle = cm_json_text(cm_json_member(r->config, "shuffle"), NULL);
    size_t i = 0;
    while (shuffle != NULL && i < COUNT(names) && strcmp(shuffle, names[i]) != 0)
        i++;
    if (shuffle == NULL || i == COUNT(names))
        return cm_codec_key_wrong("shuffle", r->err);
    r->out->blosc.shuffle = (cm_blosc_shuffle)i;
    uint64_t level, typesize = 1, blocksize = 0;
    if (!cm_json_get_u64(cm_json_member(r->config, "clevel"), &level) || level > 9)
        return cm_codec_key_wrong("clevel", r->err);
    const cm_json *j = cm_json_member(r->config, "typesize");
    if (j != NULL ? !cm_json_get_u64(j, &typesize) || typesize == 0 || typesize > INT32_MAX
                  : i != 0)
        return cm_codec_key_wrong("typesize", r->err);
    j = cm_json_member(r->config, "blocksize");
    if (j != NULL && (!cm_json_get_u64(j, &blocksize) || blocksize > INT32_MAX))
        return cm_codec_key_wrong("blocksize", r->err);
    r->out->level = (int)level;
    r->out->elementsize = (uint32_t)typesize;
    r->out->blosc.blocksize = (uint32_t)blocksize;
    return CM_OK;
}

static int parse_nothing(const reading *r)
{
    (void)r;
    return CM_OK;
}

static int parse_cast_value(const reading *r)
{
    return cm_cast_value_parse(r->config, r->scene, r->out, r->err);
}

static int parse_scale_offset(const reading *r)
{
    return cm_scale_offset_parse(r->config, r->scene, r->out, r->err);
}

static int parse_sharding(const reading *r)
{
    if (r->depth >= MAX_NESTING)
        return cm_fail(r->err, CM_EFORMAT, "shards are nested deeper than %d", MAX_NESTING);
    cm_shard_spec *shard = cm_calloc(1, sizeof *shard, r->err);
    if (shard == NULL)
        return CM_ENOMEM;
    r->out->shard = shard;
    int rc = cm_zarr_read_lengths(cm_json_member(r->config, "chunk_shape"), "chunk_shape", 1,
                                  &shard->rank, shard->chunk, r->err);
    if (rc == CM_OK && shard->rank != r->scene->rank)
        rc = cm_codec_key_wrong("chunk_shape", r->err);
    const cm_json *j = cm_json_member(r->config, "index_location");
    const char *location = j != NULL ? cm_json_text(j, NULL) : "end";
    if (rc == CM_OK &&
        (location == NULL || (strcmp(location, "end") != 0 && strcmp(location, "start") != 0)))
        rc = cm_codec_key_wrong("index_location", r->err);
    if (rc != CM_OK)
        return rc;
    shard->index_at_start = strcmp(location, "start") == 0;
    cm_dtype u64 = cm_dtype_make(CM_KIND_UINT, 8);
    rc = list_from_v3(cm_json_member(r->config, "codecs"), &r->scene->type, shard->rank,
                      r->depth + 1, &shard->codecs, &shard->ncodecs, r->err);
    if (rc != CM_OK)
        return rc;
    rc = list_from_v3(cm_json_member(r->config, "index_codecs"), &u64, shard->rank + 1, MAX_NESTING,
                      &shard->index_codecs, &shard->nindex_codecs, r->err);
    if (rc != CM_OK)
        cm_error_prefix(r->err, "index_codecs");
    return rc;
}

static const struct {
    const char *name;
    cm_codec_id id;
    int (*parse)(const reading *r);
} CODEC[] = {
    {"bytes", CM_CODEC_BYTES, parse_bytes},
    {"transpose", CM_CODEC_TRANSPOSE, parse_transpose},
    {"gzip", CM_CODEC_GZIP, parse_gzip},
    {"zstd", CM_CODEC_ZSTD, parse_gzip},
    {"blosc", CM_CODEC_BLOSC, parse_blosc},
    {"crc32c", CM_CODEC_CRC32C, parse_nothing},
    {"sharding_indexed", CM_CODEC_SHARDING, parse_sharding},
    {"vlen-utf8", CM_CODEC_VLEN_UTF8, parse_nothing},
    {"vlen-bytes", CM_CODEC_VLEN_BYTES, parse_nothing},
    {"bitround", CM_CODEC_BITROUND, parse_numcodec},
    {"cast_value", CM_CODEC_CAST_VALUE, parse_cast_value},
    {"scale_offset", CM_CODEC_SCALE_OFFSET, parse_scale_offset},
};

static bool may_be_ignored(const cm_json *j)
{
    bool must = true;
    return cm_json_get_bool(cm_json_member(j, "must_understand"), &must) && !must;
}

static int codec_from_v3(const cm_json *j, const cm_codec_scene *scene, unsigned depth,
                         cm_spec_list *list, cm_error *err)
{
    const char *name;
    const cm_json *config;
    int rc = cm_zarr_named(j, "a codec", &name, &config, err);
    if (rc != CM_OK)
        return rc;
    cm_codec_spec spec = {0};
    size_t i = 0;
    while (i < COUNT(CODEC) && strcmp(name, CODEC[i].name) != 0)
        i++;
    if (i < COUNT(CODEC)) {
        spec.id = CODEC[i].id;
        rc = CODEC[i].parse(&(reading){config, scene, depth, &spec, err});
        if (rc != CM_OK)
            cm_error_prefix(err, "codec %s", name);
    } else if (strncmp(name, "numcodecs.", 10) == 0) {
        rc = cm_numcodec_parse(name + 10, config, scene, &spec, err);
    } else if (strcmp(name, "packbits") == 0) { /* numcodecs has another codec of this name */
        rc = cm_fail(err, CM_EUNSUPPORTED, "codec 'packbits' is not supported");
    } else {
        rc = cm_numcodec_parse(name, config, scene, &spec, err);
    }
    if (rc == CM_EUNSUPPORTED && may_be_ignored(j))
        return CM_OK;
    cm_codec_spec *owned = rc != CM_OK ? NULL : &spec;
    if (owned != NULL)
        rc = cm_spec_list_add(list, owned, err);
    if (rc != CM_OK) { /* release the half-read spec */
        cm_spec_list half = {0};
        if (cm_spec_list_add(&half, &spec, NULL) == CM_OK)
            cm_codec_specs_free(half.spec, half.n);
    }
    return rc;
}

/*
 * numcodecs' codecs view their input bytes as their own types (zarr-python's codecs/bytes.py passes
 * them on in stored order), so all byte orders from the first such codec to `bytes` must be equal.
 */
static int check_byte_orders(const cm_spec_list *list, cm_error *err)
{
    const cm_codec_spec *last = NULL;
    for (size_t i = 0; i < list->n; i++) {
        const cm_codec_spec *spec = &list->spec[i];
        int rc = CM_OK;
        if (last != NULL && spec->id == CM_CODEC_BYTES && cm_dtype_swap_nbytes(&last->astype) > 1 &&
            last->astype_big_endian != spec->big_endian)
            rc = cm_fail(err, CM_EUNSUPPORTED,
                         "codec %s has elements in another byte order than they are stored in",
                         cm_codec_name(last->id));
        if (last != NULL && cm_codec_sets_byte_order(spec->id))
            rc = cm_codec_check_byte_order(spec, last->astype_big_endian, err);
        if (rc != CM_OK)
            return rc;
        if (cm_codec_sets_byte_order(spec->id))
            last = spec;
    }
    return CM_OK;
}

static int list_from_v3(const cm_json *j, const cm_dtype *type, unsigned rank, unsigned depth,
                        cm_codec_spec **out, size_t *n, cm_error *err)
{
    size_t length = cm_json_length(j);
    if (!cm_json_is(j, CM_JSON_ARRAY) || length > MAX_CODECS)
        return cm_fail(err, CM_EFORMAT, "codecs is missing or no list of at most %d", MAX_CODECS);
    cm_spec_list list = {0};
    cm_codec_scene scene = {.type = *type, .rank = rank};
    int rc = CM_OK;
    for (size_t i = 0; i < length && rc == CM_OK; i++) {
        size_t before = list.n;
        rc = codec_from_v3(cm_json_at(j, i), &scene, depth, &list, err);
        if (rc == CM_OK && list.n > before)
            cm_codec_scene_pass(&scene, &list.spec[list.n - 1]);
    }
    if (rc == CM_OK)
        rc = check_byte_orders(&list, err);
    if (rc != CM_OK) {
        cm_codec_specs_free(list.spec, list.n);
        return rc;
    }
    *out = list.spec;
    *n = list.n;
    return CM_OK;
}

int cm_zarr_codecs_from_v3(const cm_json *list, const cm_dtype *type, unsigned rank,
                           cm_codec_spec **out, size_t *n, cm_error *err)
{
    return list_from_v3(list, type, rank, 0, out, n, err);
}
