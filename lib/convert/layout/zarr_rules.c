/*
 * The metadata of every array, by rules that see the model only: what stands for
 * "nothing was written here", what a reader takes for missing, and the
 * attributes.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/utf8.h"
#include "convert/layout/describe.h"
#include "convert/layout/missing_attribute.h"
#include "convert/select/rename.h"
#include "format/missing.h"
#include "format/packing.h"
#include "options/fill_option.h"

/* Attributes of packed numbers mean nothing once values are unpacked. */
static const char *const packed_attributes[] = {"scale_factor", "add_offset",  "valid_min",
                                                "valid_max",    "valid_range", "missing_value",
                                                "_Unsigned",    NULL};

/* xarray masks strings by missing_value, as it does joined characters by their _FillValue. */
static int name_joined(const cm_variable *v, cm_json *attrs, cm_error *err)
{
    const char *fill = (const char *)v->fill_value;
    if (!v->has_fill_value)
        return CM_OK;
    return cm_missing_name(attrs, cm_json_string_n(fill, *fill != '\0'), err);
}

static int set_attributes(cm_job *job, const cm_job_var *v, const uint8_t *missing, cm_zarr_meta *m,
                          cm_error *err)
{
    if ((m->attrs = cm_json_copy(v->source->attrs)) == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for attributes");
    for (size_t i = 0; v->view.conversion.unpack && packed_attributes[i] != NULL; i++)
        cm_json_remove(m->attrs, packed_attributes[i]);
    if (v->view.heeds_sign)
        cm_json_remove(m->attrs, "_Unsigned");
    if (v->view.one_nodata)
        cm_json_remove(m->attrs, "missing_value");
    /* Strings are UTF-8, and numbers no text: readers would decode them by it. */
    if (v->source->is_char && (v->view.join || v->view.type.kind == CM_KIND_UINT))
        cm_json_remove(m->attrs, "_Encoding");
    int rc = v->view.join ? name_joined(v->source, m->attrs, err) : CM_OK;
    if (rc == CM_OK)
        rc = cm_job_rename_words(job, v->source, m->attrs, err);
    if (rc != CM_OK)
        return rc;
    if (job->zarr_format == 3 && missing != NULL && cm_dtype_is_number(&v->view.type))
        return cm_job_set_missing(m->attrs, &v->view.type, missing, err);
    return CM_OK;
}

static int set_dimensions(const cm_job *job, const cm_job_var *v, cm_zarr_meta *m, cm_error *err)
{
    m->has_dim_names = true;
    m->rank = v->view.rank;
    for (unsigned j = 0; j < v->view.rank; j++) {
        const char *name = cm_job_dim_name(job, v->source, j);
        m->shape[j] = v->view.shape[j];
        m->chunk[j] = v->layout.sharded ? v->layout.shard[j] : v->layout.chunk[j];
        if (name != NULL && (m->dim_name[j] = cm_utf8_strdup(name, err)) == NULL)
            return CM_ENOMEM;
    }
    return CM_OK;
}

/* An element of the source's type as the target's. */
static int convert_element(const cm_job_var *v, const uint8_t *from, uint8_t *to, cm_error *err)
{
    uint64_t bad;
    if (v->view.converts)
        return cm_conversion_run(&v->view.conversion, to, from, 1, &bad, err);
    memcpy(to, from, v->view.type.nbytes);
    return CM_OK;
}

static int parse_fill(const cm_job_var *v, const char *text, uint8_t *out, cm_error *err)
{
    char type[32];
    if (!cm_fill_parse(&v->view.type, text, out))
        return cm_fail(err, CM_EINVAL, "`fill_value` %s:%s: not a value of type %s", v->name, text,
                       cm_dtype_name(&v->view.type, type, sizeof(type)));
    return CM_OK;
}

/*
 * v3: fill_value is what unwritten elements are; v2: it is what readers mask, so
 * it is the file's _FillValue or nothing.
 */
static int set_fill(const cm_job *job, const cm_job_var *v, const char *asked,
                    const uint8_t *missing, cm_zarr_meta *m, cm_error *err)
{
    const cm_array *a = v->source->array;
    bool v3 = job->zarr_format == 3;
    if (v->view.as_strings && asked != NULL)
        return cm_fail(err, CM_EINVAL, "`fill_value` %s:%s: text has no other than the empty one",
                       v->name, asked);
    if (v->view.as_strings) {
        const char *text = v->view.join ? NULL : a->fill_text;
        m->has_fill = v3 || (text != NULL && *text != '\0');
        m->fill_text = cm_strdup(text == NULL ? "" : text, err);
        return m->fill_text == NULL ? CM_ENOMEM : CM_OK;
    }
    if ((m->fill = cm_calloc(1, v->view.type.nbytes, err)) == NULL)
        return CM_ENOMEM;
    m->has_fill = true;
    if (asked != NULL)
        return parse_fill(v, asked, m->fill, err);
    if (!v3) {
        m->has_fill = v->source->has_fill_value;
        if (m->has_fill)
            memcpy(m->fill, missing != NULL ? missing : v->source->fill_value, v->view.type.nbytes);
        return CM_OK;
    }
    if (a->fill == NULL)
        return CM_OK;
    if (v->view.converts && missing == NULL) {
        /*
         * The default fill may not fit the new type; then zero stands for it, and every chunk is
         * looked at.
         */
        if (convert_element(v, a->fill, m->fill, NULL) != CM_OK)
            memset(m->fill, 0, v->view.type.nbytes);
        return CM_OK;
    }
    if (v->view.converts)
        memcpy(m->fill, missing, v->view.type.nbytes);
    else
        memcpy(m->fill, a->fill, v->view.type.nbytes);
    return CM_OK;
}

/*
 * The fill value that was asked for, which Zarr 2 has readers mask: what was missing before is
 * named by missing_value then.
 */
static int name_missing(const uint8_t *missing, cm_zarr_meta *m, cm_error *err)
{
    const cm_dtype type = cm_packing_type_read(m->attrs, &m->dtype);
    const double x = cm_element_to_double(&type, missing);
    if (isinf(x))
        return cm_fail(err, CM_EUNSUPPORTED,
                       "its missing value is infinite, which JSON cannot say: Zarr 2 has no place "
                       "for it but the fill value");
    if (isnan(x)) /* always is */
        return CM_OK;
    return cm_missing_name(m->attrs,
                           type.kind != CM_KIND_FLOAT ? cm_job_integer_json(&type, missing)
                           : type.nbytes == 8         ? cm_json_double(x)
                                                      : cm_json_float((float)x),
                           err);
}

static bool fill_stays(const cm_job_var *v, const cm_zarr_meta *m)
{
    static const uint8_t zeros[16];
    const cm_array *a = v->source->array;
    uint8_t element[16];
    return !v->view.as_strings && m->has_fill &&
           convert_element(v, a->fill != NULL ? a->fill : zeros, element, NULL) == CM_OK &&
           memcmp(element, m->fill, v->view.type.nbytes) == 0;
}

int cm_job_describe_by_rules(cm_job *job, const cm_job_var *v, const char *asked, cm_array_doc *out,
                             cm_error *err)
{
    uint8_t missing[16];
    bool has_missing = v->source->has_fill_value && !v->source->is_char && !v->view.as_strings;
    out->meta.zarr_format = job->zarr_format;
    out->meta.dtype = v->view.type;
    out->meta.separator = job->zarr_format == 3 ? '/' : '.';
    int rc = has_missing ? convert_element(v, v->source->fill_value, missing, err) : CM_OK;
    if (rc == CM_OK)
        rc = set_dimensions(job, v, &out->meta, err);
    if (rc == CM_OK)
        rc = set_attributes(job, v, has_missing ? missing : NULL, &out->meta, err);
    if (rc == CM_OK)
        rc = set_fill(job, v, asked, has_missing ? missing : NULL, &out->meta, err);
    out->masks_fill = rc == CM_OK && job->zarr_format == 2 && asked != NULL &&
                      !(has_missing && memcmp(missing, out->meta.fill, v->view.type.nbytes) == 0);
    if (out->masks_fill)
        out->pass = CM_PASS_NOTHING; /* its elements are to be looked at */
    if (out->masks_fill && has_missing &&
        (rc = name_missing(missing, &out->meta, err)) == CM_EUNSUPPORTED)
        cm_error_prefix(err, "`fill_value` %s:%s", v->name, asked);
    if (rc == CM_OK)
        rc = cm_job_set_codecs(v, out, err);
    out->fill_survives = false;
    if (rc == CM_OK && out->meta.has_fill)
        rc = cm_zarr_fill_survives(&out->meta, &out->fill_survives, err);
    out->fill_stays = rc == CM_OK && out->fill_survives && fill_stays(v, &out->meta);
    return rc;
}
