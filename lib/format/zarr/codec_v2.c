/*
 * Converts order, filters and compressor of a .zarray into one chain, and back.
 *
 * numcodecs' filters work on numpy arrays in memory order, so for order F the chain begins with a
 * transpose.  Filters that change elements come before the `bytes` codec, which v2 leaves out, and
 * those that work on bytes after it.
 */
#include <stdlib.h>
#include <string.h>

#include "format/zarr/internal.h"

enum {
    MAX_CODECS = 64
};

static void set_reversed(unsigned rank, cm_codec_spec *out)
{
    *out = (cm_codec_spec){.id = CM_CODEC_TRANSPOSE};
    for (unsigned i = 0; i < rank; i++)
        out->order[i] = rank - 1 - i;
}

typedef struct reading {
    cm_spec_list list;
    cm_codec_scene scene;
    bool big_endian; /* of the elements that `bytes` gets */
} reading;

static int add(reading *r, const cm_codec_spec *spec, cm_error *err)
{
    if (cm_codec_class_of(spec->id) == CM_CODEC_BYTES_BYTES && !r->scene.is_bytes) {
        cm_codec_spec bytes = {
            .id = CM_CODEC_BYTES,
            .big_endian = r->big_endian && cm_dtype_swap_nbytes(&r->scene.type) > 1,
        };
        int rc = cm_spec_list_add(&r->list, &bytes, err);
        if (rc != CM_OK)
            return rc;
        cm_codec_scene_pass(&r->scene, &bytes);
    }
    int rc = CM_OK;
    if (cm_codec_class_of(spec->id) == CM_CODEC_ARRAY_ARRAY && r->scene.is_bytes)
        return cm_fail(err, CM_EUNSUPPORTED, "codec %s behind one that works on bytes",
                       cm_codec_name(spec->id));
    if (cm_codec_sets_byte_order(spec->id)) {
        rc = cm_codec_check_byte_order(spec, r->big_endian, err);
        r->big_endian = spec->astype_big_endian;
    }
    if (rc == CM_OK)
        rc = cm_spec_list_add(&r->list, spec, err);
    if (rc == CM_OK)
        cm_codec_scene_pass(&r->scene, spec);
    return rc;
}

static int add_numcodec(reading *r, const cm_json *j, cm_error *err)
{
    const char *id = cm_json_text(cm_json_member(j, "id"), NULL);
    if (id == NULL)
        return cm_fail(err, CM_EFORMAT, "a filter or compressor has no id");
    cm_codec_spec spec;
    cm_codec_scene scene = r->scene;
    int rc = cm_numcodec_parse(id, j, &scene, &spec, err);
    return rc != CM_OK ? rc : add(r, &spec, err);
}

static int read_all(reading *r, const cm_json *zarray, unsigned rank, cm_error *err)
{
    const char *order = cm_json_text(cm_json_member(zarray, "order"), NULL);
    if (order == NULL || (strcmp(order, "C") != 0 && strcmp(order, "F") != 0))
        return cm_fail(err, CM_EFORMAT, "order is neither C nor F");
    cm_codec_spec spec;
    int rc = CM_OK;
    if (order[0] == 'F' && rank > 1) {
        set_reversed(rank, &spec);
        rc = add(r, &spec, err);
    }
    const cm_json *filters = cm_json_member(zarray, "filters");
    size_t n = cm_json_length(filters);
    if (filters != NULL && (!cm_json_is(filters, CM_JSON_ARRAY) || n > MAX_CODECS))
        return cm_fail(err, CM_EFORMAT, "filters is not a list of at most %d", MAX_CODECS);
    for (size_t i = 0; i < n && rc == CM_OK; i++)
        rc = add_numcodec(r, cm_json_at(filters, i), err);
    const cm_json *compressor = cm_json_member(zarray, "compressor");
    if (rc == CM_OK && compressor != NULL)
        rc = add_numcodec(r, compressor, err);
    if (rc == CM_OK && !r->scene.is_bytes && !cm_dtype_is_vlen(&r->scene.type)) {
        spec = (cm_codec_spec){
            .id = CM_CODEC_BYTES,
            .big_endian = r->big_endian && cm_dtype_swap_nbytes(&r->scene.type) > 1,
        };
        rc = cm_spec_list_add(&r->list, &spec, err);
    }
    return rc;
}

int cm_zarr_codecs_from_v2(const cm_json *zarray, const cm_dtype *type, bool big_endian,
                           unsigned rank, cm_codec_spec **out, size_t *n, cm_error *err)
{
    reading r = {.scene = {.type = *type, .rank = rank}, .big_endian = big_endian};
    int rc = read_all(&r, zarray, rank, err);
    if (rc != CM_OK) {
        cm_codec_specs_free(r.list.spec, r.list.n);
        return rc;
    }
    *out = r.list.spec;
    *n = r.list.n;
    return CM_OK;
}

/* ---- writing ---- */

static bool is_compressor(cm_codec_id id)
{
    return id == CM_CODEC_GZIP || id == CM_CODEC_ZLIB || id == CM_CODEC_ZSTD ||
           id == CM_CODEC_BLOSC || id == CM_CODEC_LZ4 || id == CM_CODEC_BZ2;
}

static int transpose_to_v2(const cm_codec_spec *spec, unsigned rank, bool *order_f, cm_error *err)
{
    bool same = true, reversed = true;
    for (unsigned i = 0; i < rank; i++) {
        same = same && spec->order[i] == i;
        reversed = reversed && spec->order[i] == rank - 1 - i;
    }
    if (!same && !reversed)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "Zarr v2 has no codec transpose but for order F, all dimensions reversed; "
                       "`codec` chooses others");
    *order_f = !same;
    return CM_OK;
}

static int numcodec_json(const cm_codec_spec *spec, cm_json **out, cm_error *err)
{
    const char *id = cm_numcodec_id(spec->id);
    if (id == NULL)
        return cm_fail(err, CM_EUNSUPPORTED, "Zarr v2 has no codec %s; `codec` chooses others",
                       cm_codec_name(spec->id));
    cm_json *j = cm_json_object();
    int rc = cm_json_set(j, "id", cm_json_string(id), err);
    if (rc == CM_OK)
        rc = cm_numcodec_format(spec, j, &id, err);
    if (rc != CM_OK) {
        cm_json_free(j);
        return rc;
    }
    *out = j;
    return CM_OK;
}

/* The byte order that `bytes` stores, and the byte order to declare in v2's dtype. */
static void byte_orders(const cm_codec_spec *specs, size_t n, bool *stored, bool *declared,
                        size_t *last_typed)
{
    size_t first_typed = n;
    *stored = false;
    *last_typed = n;
    for (size_t i = 0; i < n; i++) {
        if (specs[i].id == CM_CODEC_BYTES)
            *stored = specs[i].big_endian;
        if (cm_codec_sets_byte_order(specs[i].id)) {
            *last_typed = i;
            first_typed = first_typed == n ? i : first_typed;
        }
    }
    *declared = first_typed < n ? specs[first_typed].dtype_big_endian : *stored;
}

int cm_zarr_codecs_to_v2(const cm_codec_spec *specs, size_t n, const cm_dtype *type, unsigned rank,
                         cm_v2_codecs *out, cm_error *err)
{
    *out = (cm_v2_codecs){0};
    bool stored;
    size_t last_typed;
    byte_orders(specs, n, &stored, &out->big_endian, &last_typed);
    out->big_endian = out->big_endian && cm_dtype_swap_nbytes(type) > 1;
    cm_json *filters = cm_json_array();
    int rc = filters != NULL ? CM_OK : cm_fail(err, CM_ENOMEM, "no memory for filters");
    for (size_t i = 0; i < n && rc == CM_OK; i++) {
        cm_json *j = NULL;
        cm_codec_spec spec = specs[i];
        if (spec.id == CM_CODEC_BYTES)
            continue;
        if (spec.id == CM_CODEC_TRANSPOSE && i == 0) {
            rc = transpose_to_v2(&spec, rank, &out->order_f, err);
            continue;
        }
        if (i == last_typed)
            spec.astype_big_endian = stored;
        rc = numcodec_json(&spec, &j, err);
        if (rc == CM_OK && i + 1 == n && is_compressor(spec.id))
            out->compressor = j;
        else if (rc == CM_OK)
            rc = cm_json_append(filters, j, err);
    }
    if (rc != CM_OK) {
        cm_json_free(filters);
        cm_json_free(out->compressor);
        *out = (cm_v2_codecs){0};
        return rc;
    }
    if (cm_json_length(filters) == 0) { /* the specification does not allow an empty list */
        cm_json_free(filters);
        filters = NULL;
    }
    out->filters = filters;
    return CM_OK;
}
