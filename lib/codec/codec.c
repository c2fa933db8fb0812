/*
 * Names and classes of codecs, and copies of their specifications.
 */
#include <stdlib.h>
#include <string.h>

#include "codec/impl.h"

static const cm_codec_ops *const table[] = {
    [CM_CODEC_TRANSPOSE] = &cm_transpose_ops,
    [CM_CODEC_DELTA] = &cm_delta_ops,
    [CM_CODEC_FIXEDSCALEOFFSET] = &cm_fixedscaleoffset_ops,
    [CM_CODEC_QUANTIZE] = &cm_quantize_ops,
    [CM_CODEC_BITROUND] = &cm_bitround_ops,
    [CM_CODEC_ASTYPE] = &cm_astype_ops,
    [CM_CODEC_SCALE_OFFSET] = &cm_scale_offset_ops,
    [CM_CODEC_CAST_VALUE] = &cm_cast_value_ops,
    [CM_CODEC_PACKBITS] = &cm_packbits_ops,
    [CM_CODEC_BYTES] = &cm_bytes_ops,
    [CM_CODEC_VLEN_UTF8] = &cm_vlen_utf8_ops,
    [CM_CODEC_VLEN_BYTES] = &cm_vlen_bytes_ops,
    [CM_CODEC_SHARDING] = &cm_sharding_ops,
    [CM_CODEC_GZIP] = &cm_gzip_ops,
    [CM_CODEC_ZLIB] = &cm_zlib_ops,
    [CM_CODEC_ZSTD] = &cm_zstd_ops,
    [CM_CODEC_BLOSC] = &cm_blosc_ops,
    [CM_CODEC_LZ4] = &cm_lz4_ops,
    [CM_CODEC_BZ2] = &cm_bz2_ops,
    [CM_CODEC_SHUFFLE] = &cm_shuffle_ops,
    [CM_CODEC_CRC32C] = &cm_crc32c_ops,
    [CM_CODEC_CRC32] = &cm_crc32_ops,
    [CM_CODEC_ADLER32] = &cm_adler32_ops,
    [CM_CODEC_FLETCHER32] = &cm_fletcher32_ops,
    [CM_CODEC_SZIP] = &cm_szip_ops,
    [CM_CODEC_HDF5_LZ4] = &cm_hdf5_lz4_ops,
    [CM_CODEC_LZF] = &cm_lzf_ops,
    [CM_CODEC_BITSHUFFLE] = &cm_bitshuffle_ops,
};

const cm_codec_ops *cm_codec_ops_of(cm_codec_id id)
{
    size_t i = (size_t)id;
    return i < sizeof table / sizeof table[0] ? table[i] : NULL;
}

const char *cm_codec_name(cm_codec_id id)
{
    const cm_codec_ops *ops = cm_codec_ops_of(id);
    return ops != NULL ? ops->name : "unknown codec";
}

cm_codec_class cm_codec_class_of(cm_codec_id id)
{
    const cm_codec_ops *ops = cm_codec_ops_of(id);
    return ops != NULL ? ops->kind : CM_CODEC_BYTES_BYTES;
}

/* *to gets NBYTES copied from FROM; nothing, and success, for none. */
static int copy_block(const void *from, size_t count, size_t size, void *to, cm_error *err)
{
    if (from == NULL || count == 0)
        return CM_OK;
    void *block = cm_calloc(count, size, err);
    if (block == NULL)
        return CM_ENOMEM;
    memcpy(block, from, count * size);
    memcpy(to, &block, sizeof block);
    return CM_OK;
}

static int copy_cast(const cm_cast_spec *from, cm_cast_spec **out, cm_error *err)
{
    int rc = copy_block(from, 1, sizeof *from, out, err);
    if (rc != CM_OK)
        return rc;
    cm_cast_spec *to = *out;
    to->encode_map = NULL;
    to->decode_map = NULL;
    rc = copy_block(from->encode_map, from->nencode_map, sizeof *from->encode_map, &to->encode_map,
                    err);
    if (rc == CM_OK) {
        rc = copy_block(from->decode_map, from->ndecode_map, sizeof *from->decode_map,
                        &to->decode_map, err);
    }
    return rc;
}

static int copy_shard(const cm_shard_spec *from, cm_shard_spec **out, cm_error *err)
{
    int rc = copy_block(from, 1, sizeof *from, out, err);
    if (rc != CM_OK)
        return rc;
    cm_shard_spec *to = *out;
    to->codecs = NULL;
    to->index_codecs = NULL;
    to->fill = NULL;
    rc = cm_codec_specs_copy(from->codecs, from->ncodecs, &to->codecs, err);
    if (rc == CM_OK)
        rc = cm_codec_specs_copy(from->index_codecs, from->nindex_codecs, &to->index_codecs, err);
    if (rc == CM_OK)
        rc = copy_block(from->fill, from->fill_nbytes, 1, &to->fill, err);
    return rc;
}

int cm_codec_specs_copy(const cm_codec_spec *specs, size_t n, cm_codec_spec **out, cm_error *err)
{
    *out = NULL;
    if (n == 0)
        return CM_OK;
    cm_codec_spec *copy = cm_calloc(n, sizeof *copy, err);
    if (copy == NULL)
        return CM_ENOMEM;
    int rc = CM_OK;
    for (size_t i = 0; i < n && rc == CM_OK; i++) {
        copy[i] = specs[i];
        copy[i].cast = NULL;
        copy[i].shard = NULL;
        if (specs[i].cast != NULL)
            rc = copy_cast(specs[i].cast, &copy[i].cast, err);
        if (specs[i].shard != NULL && rc == CM_OK)
            rc = copy_shard(specs[i].shard, &copy[i].shard, err);
    }
    if (rc != CM_OK) {
        cm_codec_specs_free(copy, n);
        return rc;
    }
    *out = copy;
    return CM_OK;
}

void cm_codec_specs_free(cm_codec_spec *specs, size_t n)
{
    if (specs == NULL)
        return;
    for (size_t i = 0; i < n; i++) {
        if (specs[i].cast != NULL) {
            free(specs[i].cast->encode_map);
            free(specs[i].cast->decode_map);
            free(specs[i].cast);
        }
        if (specs[i].shard != NULL) {
            cm_codec_specs_free(specs[i].shard->codecs, specs[i].shard->ncodecs);
            cm_codec_specs_free(specs[i].shard->index_codecs, specs[i].shard->nindex_codecs);
            free(specs[i].shard->fill);
            free(specs[i].shard);
        }
    }
    free(specs);
}

int cm_codec_names(const cm_codec_spec *spec, size_t n, char **out, cm_error *err)
{
    cm_buf buf = {0};
    int rc = CM_OK;
    for (size_t i = 0; i < n && rc == CM_OK; i++)
        rc = cm_buf_printf(&buf, err, "%s%s", i > 0 ? " " : "", cm_codec_name(spec[i].id));
    if (rc == CM_OK) {
        *out = cm_asprintf(err, "%.*s", (int)buf.nbytes, buf.nbytes > 0 ? (char *)buf.data : "");
        rc = *out != NULL ? CM_OK : CM_ENOMEM;
    }
    cm_buf_release(&buf);
    return rc;
}
