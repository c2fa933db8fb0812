/*
 * Reads zarr.json as real writers of Zarr v3 write it, and writes it as zarr-python does.
 *
 * zarr-specs docs/v3/core/index.rst, "Array metadata" and "Group metadata".
 */
#include <stdlib.h>
#include <string.h>

#include "format/zarr/internal.h"

/* ---- reading ---- */

static int read_attributes(const cm_json *j, cm_json **out, cm_error *err)
{
    const cm_json *attrs = cm_json_member(j, "attributes");
    if (attrs != NULL && !cm_json_is(attrs, CM_JSON_OBJECT))
        return cm_fail(err, CM_EFORMAT, "attributes is not an object");
    *out = attrs != NULL ? cm_json_copy(attrs) : cm_json_object();
    return *out != NULL ? CM_OK : cm_fail(err, CM_ENOMEM, "no memory for attributes");
}

static int read_key_encoding(const cm_json *j, cm_zarr_meta *out, cm_error *err)
{
    const char *name;
    const cm_json *config;
    int rc = cm_zarr_named(cm_json_member(j, "chunk_key_encoding"), "chunk_key_encoding", &name,
                           &config, err);
    if (rc != CM_OK)
        return rc;
    bool is_v2 = strcmp(name, "v2") == 0;
    if (!is_v2 && strcmp(name, "default") != 0)
        return cm_fail(err, CM_EUNSUPPORTED, "chunk key encoding '%s' is not supported", name);
    const cm_json *member = cm_json_member(config, "separator");
    const char *separator = member != NULL ? cm_json_text(member, NULL) : is_v2 ? "." : "/";
    if (separator == NULL || (strcmp(separator, "/") != 0 && strcmp(separator, ".") != 0))
        return cm_fail(err, CM_EFORMAT, "the separator of chunk_key_encoding is neither / nor .");
    out->separator = separator[0];
    out->key_v2 = is_v2;
    return CM_OK;
}

static int read_dimension_names(const cm_json *j, cm_zarr_meta *out, cm_error *err)
{
    const cm_json *names = cm_json_member(j, "dimension_names");
    if (names == NULL)
        return CM_OK;
    if (!cm_json_is(names, CM_JSON_ARRAY) || cm_json_length(names) != out->rank)
        return cm_fail(err, CM_EFORMAT, "dimension_names is not a list of %u names", out->rank);
    return cm_zarr_read_dim_names(names, out, err);
}

/* The value of chunks that a shard leaves out, which shards in shards leave out, too. */
static int fill_shards(cm_codec_spec *codecs, size_t ncodecs, const uint8_t *fill, size_t nbytes,
                       cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; i < ncodecs && rc == CM_OK; i++) {
        cm_shard_spec *shard = codecs[i].shard;
        if (shard == NULL)
            continue;
        shard->fill = cm_calloc(nbytes, 1, err);
        if (shard->fill == NULL)
            return CM_ENOMEM;
        memcpy(shard->fill, fill, nbytes);
        shard->fill_nbytes = nbytes;
        rc = fill_shards(shard->codecs, shard->ncodecs, fill, nbytes, err);
    }
    return rc;
}

static int read_type_and_codecs(const cm_json *j, cm_zarr_meta *out, cm_error *err)
{
    int rc =
        cm_zarr_dtype_from_v3(cm_json_member(j, "data_type"), &out->dtype, &out->raw_bits, err);
    if (rc != CM_OK)
        return rc;
    const cm_json *fill = cm_json_member(j, "fill_value");
    if (fill == NULL)
        return cm_fail(err, CM_EFORMAT, "fill_value is missing or null");
    out->has_fill = true;
    rc = cm_zarr_fill_from_json(fill, &out->dtype, &out->fill, &out->fill_text, err);
    if (rc != CM_OK)
        return rc;
    rc = cm_zarr_codecs_from_v3(cm_json_member(j, "codecs"), &out->dtype, out->rank, &out->codecs,
                                &out->ncodecs, err);
    if (rc != CM_OK || out->fill == NULL)
        return rc;
    return fill_shards(out->codecs, out->ncodecs, out->fill, out->dtype.nbytes, err);
}

static int check_members(const cm_json *j, bool is_group, cm_error *err)
{
    static const char *const array[] = {
        "zarr_format",        "node_type",  "shape",  "data_type",  "chunk_grid",
        "chunk_key_encoding", "fill_value", "codecs", "attributes", "storage_transformers",
        "dimension_names",    NULL};
    static const char *const group[] = {"zarr_format", "node_type", "attributes",
                                        "consolidated_metadata", NULL};
    for (cm_json_iter it = cm_json_begin(j); cm_json_next(&it);) {
        const char *const *known = is_group ? group : array;
        while (*known != NULL && strcmp(*known, it.name) != 0)
            known++;
        bool must = true;
        if (*known != NULL ||
            (cm_json_get_bool(cm_json_member(it.value, "must_understand"), &must) && !must))
            continue;
        return cm_fail(err, CM_EUNSUPPORTED, "extension '%s' is not supported", it.name);
    }
    const cm_json *transformers = cm_json_member(j, "storage_transformers");
    if (cm_json_length(transformers) > 0)
        return cm_fail(err, CM_EUNSUPPORTED, "storage transformers are not supported");
    return CM_OK;
}

/* Unsupported parts must not keep the rest from being read: keeps the first such message. */
static int keep_going(int rc, int *unsupported, cm_error *first, const cm_error *now)
{
    if (rc != CM_EUNSUPPORTED)
        return rc;
    if (*unsupported == CM_OK)
        *first = *now;
    *unsupported = CM_EUNSUPPORTED;
    return CM_OK;
}

static int read_array(const cm_json *j, cm_zarr_meta *out, cm_error *err)
{
    int rc =
        cm_zarr_read_lengths(cm_json_member(j, "shape"), "shape", 0, &out->rank, out->shape, err);
    if (rc == CM_OK)
        rc = read_dimension_names(j, out, err);
    const cm_json *transformers = cm_json_member(j, "storage_transformers");
    if (rc == CM_OK && transformers != NULL && !cm_json_is(transformers, CM_JSON_ARRAY))
        rc = cm_fail(err, CM_EFORMAT, "storage_transformers is not a list");
    static int (*const step[])(const cm_json *, cm_zarr_meta *, cm_error *) = {
        cm_zarr_grid_from_v3, read_key_encoding, read_type_and_codecs};
    int unsupported = CM_OK;
    cm_error first = {0}, now = {0};
    if (rc == CM_OK)
        rc = keep_going(check_members(j, false, &now), &unsupported, &first, &now);
    for (size_t i = 0; i < sizeof step / sizeof *step && rc == CM_OK; i++) {
        rc = step[i](j, out, &now);
        if (rc != CM_OK && rc != CM_EUNSUPPORTED && err != NULL)
            *err = now;
        rc = keep_going(rc, &unsupported, &first, &now);
    }
    if (rc == CM_OK && unsupported && err != NULL)
        *err = first;
    return rc != CM_OK ? rc : unsupported;
}

static int read_node(const cm_json *j, cm_zarr_meta *out, cm_error *err)
{
    uint64_t format;
    if (!cm_json_is(j, CM_JSON_OBJECT))
        return cm_fail(err, CM_EFORMAT, "not an object");
    if (!cm_json_get_u64(cm_json_member(j, "zarr_format"), &format) || format != 3)
        return cm_fail(err, CM_EFORMAT, "zarr_format is not 3");
    const char *type = cm_json_text(cm_json_member(j, "node_type"), NULL);
    if (type == NULL || (strcmp(type, "array") != 0 && strcmp(type, "group") != 0))
        return cm_fail(err, CM_EFORMAT, "node_type is neither array nor group");
    out->zarr_format = 3;
    out->separator = '/';
    out->is_group = strcmp(type, "group") == 0;
    int rc = read_attributes(j, &out->attrs, err);
    if (rc != CM_OK)
        return rc;
    return out->is_group ? check_members(j, true, err) : read_array(j, out, err);
}

int cm_zarr_meta_from_v3(const cm_json *j, cm_zarr_meta *out, cm_error *err)
{
    memset(out, 0, sizeof *out);
    return cm_zarr_keep_raw(read_node(j, out, err), j, out, err);
}

/* ---- writing ---- */

/* r<N>'s fill value is a list of bytes, in the core and for zarrs and tensorstore. */
static cm_json *byte_list(const uint8_t *data, size_t nbytes)
{
    cm_json *list = cm_json_array();
    for (size_t i = 0; i < nbytes; i++) {
        if (cm_json_append(list, cm_json_u64(data[i]), NULL) != CM_OK) {
            cm_json_free(list);
            return NULL;
        }
    }
    return list;
}

static int fill_to_json(const cm_zarr_meta *meta, cm_json **out, cm_error *err)
{
    uint8_t *zero = NULL;
    const uint8_t *fill = meta->fill;
    if (fill == NULL && (fill = zero = cm_calloc(meta->dtype.nbytes, 1, err)) == NULL)
        return CM_ENOMEM;
    int rc = CM_OK;
    if (meta->dtype.kind == CM_KIND_RAW && meta->raw_bits) {
        *out = byte_list(fill, meta->dtype.nbytes);
        rc = *out != NULL ? CM_OK : cm_fail(err, CM_ENOMEM, "no memory for a fill_value");
    } else {
        rc = cm_zarr_fill_to_json(&meta->dtype, fill, meta->fill_text, 3, out, err);
    }
    free(zero);
    return rc;
}

static cm_json *key_encoding_json(const cm_zarr_meta *meta)
{
    cm_json *config = cm_json_object();
    int rc = CM_OK;
    cm_zarr_set(&rc, config, "separator", cm_json_string_n(&meta->separator, 1), NULL);
    if (rc != CM_OK) {
        cm_json_free(config);
        return NULL;
    }
    return cm_zarr_named_json(meta->key_v2 ? "v2" : "default", config);
}

static int array_to_json(const cm_zarr_meta *meta, cm_json *j, cm_error *err)
{
    cm_json *type = NULL, *fill = NULL, *codecs = NULL, *names = NULL;
    int rc = cm_zarr_dtype_to_v3(&meta->dtype, meta->raw_bits, &type, err);
    if (rc == CM_OK)
        rc = fill_to_json(meta, &fill, err);
    if (rc == CM_OK)
        rc = cm_zarr_codecs_to_v3(meta->codecs, meta->ncodecs, &meta->dtype, meta->rank, &codecs,
                                  err);
    if (rc == CM_OK && meta->has_dim_names)
        rc = cm_zarr_dim_names(meta, &names, err);
    if (rc != CM_OK) {
        cm_json_free(type);
        cm_json_free(fill);
        cm_json_free(codecs);
        return rc;
    }
    cm_zarr_set(&rc, j, "shape", cm_zarr_lengths(meta->rank, meta->shape), err);
    cm_zarr_set(&rc, j, "data_type", type, err);
    cm_zarr_set(&rc, j, "chunk_grid", cm_zarr_grid_to_v3(meta), err);
    cm_zarr_set(&rc, j, "chunk_key_encoding", key_encoding_json(meta), err);
    cm_zarr_set(&rc, j, "fill_value", fill, err);
    cm_zarr_set(&rc, j, "codecs", codecs, err);
    cm_zarr_set(&rc, j, "attributes", cm_json_copy(meta->attrs), err);
    if (meta->has_dim_names)
        cm_zarr_set(&rc, j, "dimension_names", names, err);
    cm_zarr_set(&rc, j, "storage_transformers", cm_json_array(), err);
    return rc;
}

int cm_zarr_meta_to_v3(const cm_zarr_meta *meta, cm_json **out, cm_error *err)
{
    *out = NULL;
    if (meta->zarr_format != 3)
        return cm_fail(err, CM_EINTERNAL, "metadata of Zarr v%d written as v3", meta->zarr_format);
    if (meta->verbatim) {
        *out = cm_json_copy(meta->raw);
        return *out != NULL ? CM_OK : cm_fail(err, CM_ENOMEM, "no memory for metadata");
    }
    cm_json *j = cm_json_object();
    int rc = CM_OK;
    cm_zarr_set(&rc, j, "zarr_format", cm_json_u64(3), err);
    cm_zarr_set(&rc, j, "node_type", cm_json_string(meta->is_group ? "group" : "array"), err);
    if (meta->is_group)
        cm_zarr_set(&rc, j, "attributes", cm_json_copy(meta->attrs), err);
    else if (rc == CM_OK)
        rc = array_to_json(meta, j, err);
    if (rc != CM_OK) {
        cm_json_free(j);
        return rc;
    }
    *out = j;
    return CM_OK;
}
