/* Writes codec lists of Zarr v3 as zarr-python 3 does. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/zarr/internal.h"

static cm_json *bytes_json(const cm_codec_spec *spec, const cm_codec_scene *scene)
{
    if (cm_dtype_swap_nbytes(&scene->type) == 1) /* zarr-python omits the key here, too */
        return cm_zarr_named_json("bytes", NULL);
    cm_json *config = cm_json_object();
    int rc = CM_OK;
    cm_zarr_set(&rc, config, "endian", cm_json_string(spec->big_endian ? "big" : "little"), NULL);
    if (rc != CM_OK) {
        cm_json_free(config);
        return NULL;
    }
    return cm_zarr_named_json("bytes", config);
}

static int transpose_config(const cm_codec_spec *spec, unsigned rank, cm_json *config,
                            cm_error *err)
{
    uint64_t order[CM_MAX_RANK];
    for (unsigned i = 0; i < rank; i++)
        order[i] = spec->order[i];
    return cm_json_set(config, "order", cm_zarr_lengths(rank, order), err);
}

static int zstd_config(const cm_codec_spec *spec, cm_json *config, cm_error *err)
{
    int rc = CM_OK;
    cm_zarr_set(&rc, config, "level", cm_json_i64(spec->level), err);
    cm_zarr_set(&rc, config, "checksum", cm_json_bool(spec->checksum), err);
    return rc;
}

static int blosc_config(const cm_codec_spec *spec, const cm_codec_scene *scene, cm_json *config,
                        cm_error *err)
{
    static const char *const names[] = {"noshuffle", "shuffle", "bitshuffle"};
    /* Every frame has its block size; 0 in the metadata where the size depends on the chunk. */
    uint32_t blocksize = spec->blosc.blocksize == CM_BLOSC_ONE_BLOCK ? 0 : spec->blosc.blocksize;
    uint32_t typesize = spec->elementsize ? spec->elementsize : scene->type.nbytes;
    int rc = CM_OK;
    cm_zarr_set(&rc, config, "typesize", cm_json_u64(typesize ? typesize : 1), err);
    cm_zarr_set(&rc, config, "cname", cm_json_string(spec->blosc.cname), err);
    cm_zarr_set(&rc, config, "clevel", cm_json_i64(spec->level), err);
    cm_zarr_set(&rc, config, "shuffle", cm_json_string(names[spec->blosc.shuffle]), err);
    cm_zarr_set(&rc, config, "blocksize", cm_json_u64(blocksize), err);
    return rc;
}

static int shard_config(const cm_shard_spec *shard, const cm_codec_scene *scene, cm_json *config,
                        cm_error *err)
{
    cm_dtype u64 = cm_dtype_make(CM_KIND_UINT, 8);
    cm_json *codecs, *index_codecs;
    int rc = cm_zarr_codecs_to_v3(shard->codecs, shard->ncodecs, &scene->type, scene->rank, &codecs,
                                  err);
    if (rc != CM_OK)
        return rc;
    rc = cm_zarr_codecs_to_v3(shard->index_codecs, shard->nindex_codecs, &u64, scene->rank + 1,
                              &index_codecs, err);
    if (rc != CM_OK) {
        cm_json_free(codecs);
        return rc;
    }
    cm_zarr_set(&rc, config, "chunk_shape", cm_zarr_lengths(shard->rank, shard->chunk), err);
    cm_zarr_set(&rc, config, "codecs", codecs, err);
    cm_zarr_set(&rc, config, "index_codecs", index_codecs, err);
    cm_zarr_set(&rc, config, "index_location",
                cm_json_string(shard->index_at_start ? "start" : "end"), err);
    return rc;
}

/* Fills CONFIG and names the codec in NAME. */
static int codec_config(const cm_codec_spec *spec, const cm_codec_scene *scene, cm_json *config,
                        char *name, size_t size, cm_error *err)
{
    snprintf(name, size, "%s", cm_codec_name(spec->id));
    switch (spec->id) {
    case CM_CODEC_TRANSPOSE:
        return transpose_config(spec, scene->rank, config, err);
    case CM_CODEC_GZIP:
        return cm_json_set(config, "level", cm_json_i64(spec->level < 0 ? 6 : spec->level), err);
    case CM_CODEC_ZSTD:
        return zstd_config(spec, config, err);
    case CM_CODEC_BLOSC:
        return blosc_config(spec, scene, config, err);
    case CM_CODEC_SHARDING:
        return shard_config(spec->shard, scene, config, err);
    case CM_CODEC_CAST_VALUE:
        return cm_cast_value_format(spec, scene, config, err);
    case CM_CODEC_SCALE_OFFSET:
        return cm_scale_offset_format(spec, scene, config, err);
    case CM_CODEC_VLEN_UTF8:
    case CM_CODEC_VLEN_BYTES:
        return CM_OK;
    default:
        break;
    }
    const char *id = cm_numcodec_id(spec->id);
    if (id == NULL)
        return cm_fail(err, CM_EUNSUPPORTED, "Zarr v3 has no codec %s; `codec` chooses others",
                       cm_codec_name(spec->id));
    snprintf(name, size, "numcodecs.%s", id);
    return cm_numcodec_format(spec, config, &id, err);
}

static int codec_to_v3(const cm_codec_spec *spec, const cm_codec_scene *scene, cm_json **out,
                       cm_error *err)
{
    if (spec->id == CM_CODEC_BYTES) {
        *out = bytes_json(spec, scene);
    } else if (spec->id == CM_CODEC_CRC32C && !spec->at_start) {
        *out = cm_zarr_named_json("crc32c", NULL);
    } else {
        char name[64];
        cm_json *config = cm_json_object();
        int rc = codec_config(spec, scene, config, name, sizeof name, err);
        if (rc != CM_OK) {
            cm_json_free(config);
            return rc;
        }
        *out = config != NULL ? cm_zarr_named_json(name, config) : NULL;
    }
    return *out != NULL ? CM_OK : cm_fail(err, CM_ENOMEM, "no memory to describe a codec");
}

int cm_zarr_codecs_to_v3(const cm_codec_spec *specs, size_t n, const cm_dtype *type, unsigned rank,
                         cm_json **out, cm_error *err)
{
    cm_codec_scene scene = {.type = *type, .rank = rank};
    cm_json *list = cm_json_array();
    int rc = CM_OK;
    for (size_t i = 0; i <= n && rc == CM_OK; i++) {
        /* Chains may leave `bytes` implicit; v3 may not. */
        static const cm_codec_spec plain = {.id = CM_CODEC_BYTES};
        bool unsaid = !scene.is_bytes && !cm_dtype_is_vlen(type) &&
                      (i == n || cm_codec_class_of(specs[i].id) == CM_CODEC_BYTES_BYTES);
        const cm_codec_spec *const todo[] = {unsaid ? &plain : NULL, i < n ? &specs[i] : NULL};
        for (size_t k = 0; k < 2 && rc == CM_OK; k++) {
            cm_json *j;
            if (todo[k] == NULL)
                continue;
            rc = codec_to_v3(todo[k], &scene, &j, err);
            if (rc == CM_OK)
                rc = cm_json_append(list, j, err);
            cm_codec_scene_pass(&scene, todo[k]);
        }
    }
    if (rc != CM_OK) {
        cm_json_free(list);
        return rc;
    }
    *out = list;
    return CM_OK;
}

int cm_zarr_codecs_check_v3(const cm_codec_spec *specs, size_t n, const cm_dtype *type,
                            cm_error *err)
{
    cm_codec_scene scene = {.type = *type};
    for (size_t i = 0; i < n && !scene.is_bytes; i++) {
        const uint32_t nbytes = cm_dtype_swap_nbytes(&scene.type);
        cm_codec_scene_pass(&scene, &specs[i]);
        if (scene.is_bytes && nbytes > 1 && cm_dtype_swap_nbytes(type) == 1)
            return cm_fail(err, CM_EUNSUPPORTED,
                           "its filters store elements of one byte as those of %u, which "
                           "zarr-python does not read in Zarr v3; `codec` chooses others",
                           (unsigned)nbytes);
    }
    return CM_OK;
}
