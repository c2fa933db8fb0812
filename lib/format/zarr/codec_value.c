/*
 * cast_value and scale_offset of zarr-extensions, whose configurations contain values of the
 * chain's types.
 */
#include <stdlib.h>
#include <string.h>

#include "format/zarr/internal.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

/* In the order of cm_cast_spec's enumerations. */
static const char *const ROUNDING[] = {"nearest-even", "towards-zero", "towards-positive",
                                       "towards-negative", "nearest-away"};
static const char *const RANGE[] = {"error", "clamp", "wrap"};

enum {
    MAX_PAIRS = 1 << 16 /* in a scalar map: every value of a 16-bit type */
};

/* The index of CONFIG's KEY in NAMES; the first when the key is absent. */
static int read_choice(const cm_json *config, const char *key, const char *const *names, size_t n,
                       unsigned *out, cm_error *err)
{
    *out = 0;
    const cm_json *j = cm_json_member(config, key);
    if (j == NULL)
        return CM_OK;
    const char *text = cm_json_text(j, NULL);
    for (size_t i = 0; text != NULL && i < n; i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (unsigned)i;
            return CM_OK;
        }
    }
    return cm_fail(err, CM_EUNSUPPORTED, "%s '%s' is not known", key, text != NULL ? text : "");
}

static int read_map(const cm_json *list, const cm_dtype *from, const cm_dtype *to,
                    cm_cast_pair **out, size_t *n, cm_error *err)
{
    if (list == NULL)
        return CM_OK;
    size_t count = cm_json_length(list);
    if (!cm_json_is(list, CM_JSON_ARRAY) || count > MAX_PAIRS)
        return cm_fail(err, CM_EFORMAT, "its scalar_map is not a list of pairs");
    cm_cast_pair *pair = cm_calloc(count, sizeof *pair, err);
    if (pair == NULL)
        return CM_ENOMEM;
    int rc = CM_OK;
    for (size_t i = 0; i < count && rc == CM_OK; i++) {
        const cm_json *j = cm_json_at(list, i);
        if (cm_json_length(j) != 2)
            rc = cm_fail(err, CM_EFORMAT, "its scalar_map is not a list of pairs");
        if (rc == CM_OK)
            rc = cm_zarr_element_from_json(cm_json_at(j, 0), from, pair[i].from, err);
        if (rc == CM_OK)
            rc = cm_zarr_element_from_json(cm_json_at(j, 1), to, pair[i].to, err);
    }
    if (rc != CM_OK) {
        free(pair);
        return rc;
    }
    *out = pair;
    *n = count;
    return CM_OK;
}

static bool fits_pair(const cm_dtype *t)
{
    return cm_dtype_is_number(t) || t->kind == CM_KIND_COMPLEX;
}

int cm_cast_value_parse(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                        cm_error *err)
{
    cm_cast_spec *cast = cm_calloc(1, sizeof *cast, err);
    if (cast == NULL)
        return CM_ENOMEM;
    out->cast = cast;
    bool raw_bits;
    int rc = cm_zarr_dtype_from_v3(cm_json_member(config, "data_type"), &cast->to, &raw_bits, err);
    if (rc == CM_OK && (!fits_pair(&cast->to) || !fits_pair(&scene->type)))
        rc = cm_fail(err, CM_EUNSUPPORTED, "it is between types that are not numbers");
    unsigned rounding = 0, range = 0;
    if (rc == CM_OK)
        rc = read_choice(config, "rounding", ROUNDING, COUNT(ROUNDING), &rounding, err);
    if (rc == CM_OK)
        rc = read_choice(config, "out_of_range", RANGE, COUNT(RANGE), &range, err);
    cast->rounding = rounding;
    cast->out_of_range = range;
    const cm_json *map = cm_json_member(config, "scalar_map");
    if (rc == CM_OK && map != NULL && !cm_json_is(map, CM_JSON_OBJECT))
        rc = cm_codec_key_wrong("scalar_map", err);
    if (rc == CM_OK)
        rc = read_map(cm_json_member(map, "encode"), &scene->type, &cast->to, &cast->encode_map,
                      &cast->nencode_map, err);
    if (rc == CM_OK)
        rc = read_map(cm_json_member(map, "decode"), &cast->to, &scene->type, &cast->decode_map,
                      &cast->ndecode_map, err);
    return rc; /* the caller releases OUT */
}

static int pair_json(const cm_cast_pair *pair, const cm_dtype *from, const cm_dtype *to,
                     cm_json **out, cm_error *err)
{
    cm_json *a = NULL, *b = NULL;
    cm_json *list = cm_json_array();
    int rc = cm_zarr_element_to_json(from, pair->from, 3, &a, err);
    if (rc == CM_OK)
        rc = cm_json_append(list, a, err);
    if (rc == CM_OK)
        rc = cm_zarr_element_to_json(to, pair->to, 3, &b, err);
    if (rc == CM_OK)
        rc = cm_json_append(list, b, err);
    if (rc != CM_OK) {
        cm_json_free(list);
        return rc;
    }
    *out = list;
    return CM_OK;
}

static int add_map(cm_json *map, const char *name, const cm_cast_pair *pair, size_t n,
                   const cm_dtype *from, const cm_dtype *to, cm_error *err)
{
    if (n == 0)
        return CM_OK;
    cm_json *list = cm_json_array();
    int rc = CM_OK;
    for (size_t i = 0; i < n && rc == CM_OK; i++) {
        cm_json *j;
        rc = pair_json(&pair[i], from, to, &j, err);
        if (rc == CM_OK)
            rc = cm_json_append(list, j, err);
    }
    if (rc != CM_OK) {
        cm_json_free(list);
        return rc;
    }
    return cm_json_set(map, name, list, err);
}

int cm_cast_value_format(const cm_codec_spec *spec, const cm_codec_scene *scene, cm_json *object,
                         cm_error *err)
{
    const cm_cast_spec *cast = spec->cast;
    cm_json *type;
    int rc = cm_zarr_dtype_to_v3(&cast->to, false, &type, err);
    if (rc != CM_OK)
        return rc;
    cm_zarr_set(&rc, object, "data_type", type, err);
    cm_zarr_set(&rc, object, "rounding", cm_json_string(ROUNDING[cast->rounding]), err);
    if (cast->out_of_range != CM_RANGE_ERROR)
        cm_zarr_set(&rc, object, "out_of_range", cm_json_string(RANGE[cast->out_of_range]), err);
    if (rc != CM_OK || (cast->nencode_map == 0 && cast->ndecode_map == 0))
        return rc;
    cm_json *map = cm_json_object();
    rc = add_map(map, "encode", cast->encode_map, cast->nencode_map, &scene->type, &cast->to, err);
    if (rc == CM_OK)
        rc = add_map(map, "decode", cast->decode_map, cast->ndecode_map, &cast->to, &scene->type,
                     err);
    if (rc != CM_OK) {
        cm_json_free(map);
        return rc;
    }
    return cm_json_set(object, "scalar_map", map, err);
}

int cm_scale_offset_parse(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                          cm_error *err)
{
    if (!fits_pair(&scene->type))
        return cm_fail(err, CM_EUNSUPPORTED, "it is on a type that is not a number");
    cm_json *one = cm_json_u64(1), *zero = cm_json_u64(0);
    const cm_json *scale = cm_json_member(config, "scale");
    const cm_json *offset = cm_json_member(config, "offset");
    int rc = one != NULL && zero != NULL ? CM_OK : cm_fail(err, CM_ENOMEM, "no memory for a codec");
    if (rc == CM_OK)
        rc = cm_zarr_element_from_json(scale != NULL ? scale : one, &scene->type, out->exact_scale,
                                       err);
    if (rc == CM_OK)
        rc = cm_zarr_element_from_json(offset != NULL ? offset : zero, &scene->type,
                                       out->exact_offset, err);
    cm_json_free(one);
    cm_json_free(zero);
    return rc;
}

int cm_scale_offset_format(const cm_codec_spec *spec, const cm_codec_scene *scene, cm_json *object,
                           cm_error *err)
{
    cm_json *offset, *scale;
    int rc = cm_zarr_element_to_json(&scene->type, spec->exact_offset, 3, &offset, err);
    if (rc != CM_OK)
        return rc;
    rc = cm_json_set(object, "offset", offset, err);
    if (rc == CM_OK)
        rc = cm_zarr_element_to_json(&scene->type, spec->exact_scale, 3, &scale, err);
    return rc != CM_OK ? rc : cm_json_set(object, "scale", scale, err);
}
