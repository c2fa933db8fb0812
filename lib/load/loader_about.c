/* Description of a loader's dimensions and variables, coordinates included. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/missing.h"
#include "load/loader_impl.h"

enum {
    MAX_COORDS = 64 << 20 /* bytes of one dimension; larger ones are left out */
};

static int type_name(const cm_feed *feed, const cm_dtype *type, const char **out, cm_error *err)
{
    char text[32];
    *out = cm_strdup(feed != NULL ? cm_feed_type_name(feed, text, sizeof text)
                                  : cm_dtype_name(type, text, sizeof text),
                     err);
    return *out != NULL ? CM_OK : CM_ENOMEM;
}

/* ---- coordinates --------------------------------------------------------------------------- */

static int read_numbers(cm_array *a, const cm_box *box, void **out, cm_error *err)
{
    cm_codec_ctx *ctx = cm_codec_ctx_create(err);
    *out = ctx != NULL ? cm_calloc(cm_box_nelem(box) + 1, a->dtype.nbytes, err) : NULL;
    const int rc = *out != NULL ? cm_array_read(a, ctx, box, *out, err) : CM_ENOMEM;
    cm_codec_ctx_free(ctx);
    return rc;
}

/* Pointers to texts that end with NUL, and the texts behind them: one block. */
static int make_texts(const cm_strings *s, void **out, cm_error *err)
{
    const size_t pointers = (s->nelem + 1) * sizeof(char *);
    char **text = cm_calloc(pointers + s->arena.nbytes + s->nelem, 1, err);
    char *at = (char *)text + pointers;
    *out = text;
    for (size_t i = 0; text != NULL && i < s->nelem; i++) {
        size_t nbytes;
        const char *from = cm_strings_get(s, i, &nbytes);
        text[i] = memcpy(at, from, nbytes);
        at += nbytes + 1;
    }
    return text != NULL ? CM_OK : CM_ENOMEM;
}

/* Rows of single characters, as NetCDF has texts. */
static int read_rows(cm_array *a, const cm_box *box, cm_strings *s, cm_error *err)
{
    void *data = NULL;
    int rc = read_numbers(a, box, &data, err);
    for (uint64_t i = 0; rc == CM_OK && i < s->nelem; i++) {
        const char *row = (const char *)data + i * a->shape[1];
        rc = cm_strings_set(s, i, row, strnlen(row, a->shape[1]), err);
    }
    free(data);
    return rc;
}

static int read_texts(cm_array *a, const cm_box *box, void **out, cm_error *err)
{
    cm_strings s;
    cm_strings_init(&s, MAX_COORDS);
    int rc = cm_strings_reset(&s, a->shape[0], err);
    if (rc == CM_OK)
        rc = a->rank == 2 ? read_rows(a, box, &s, err) : cm_array_read_strings(a, box, &s, err);
    if (rc == CM_OK)
        rc = make_texts(&s, out, err);
    cm_strings_release(&s);
    return rc;
}

static int read_coords(cm_array *a, cm_loader_dim *d, cm_error *err)
{
    cm_box box = {.rank = a->rank, .shape = {a->shape[0], a->rank == 2 ? a->shape[1] : 0}};
    const cm_dtype text = {.kind = CM_KIND_STRING};
    const bool is_text = a->rank == 2 || a->dtype.kind == CM_KIND_STRING;
    void *values = NULL;
    int rc = is_text ? read_texts(a, &box, &values, err) : read_numbers(a, &box, &values, err);
    if (rc == CM_OK)
        rc = type_name(NULL, is_text ? &text : &a->dtype, &d->type, err);
    if (rc == CM_OK)
        d->coords = values;
    else
        free(values);
    return rc;
}

static int write_attributes(const cm_json *attrs, char **out, cm_error *err)
{
    cm_buf text = {0};
    int rc = cm_json_write(attrs, false, &text, err);
    if (rc == CM_OK)
        rc = cm_buf_append(&text, "", 1, err);
    if (rc == CM_OK && (*out = cm_strdup((const char *)text.data, err)) == NULL)
        rc = CM_ENOMEM;
    cm_buf_release(&text);
    return rc;
}

/* Numbers and texts of one dimension, and rows of characters. */
static bool are_coords(const cm_variable *v, uint64_t length)
{
    const bool is_text = v->dtype.kind == CM_KIND_STRING;
    const bool rows = v->is_char && v->rank == 2;
    const uint64_t size = is_text ? sizeof(cm_string_ref) : rows ? v->shape[1] : v->dtype.nbytes;
    if ((v->rank != 1 && !rows) || v->shape[0] != length || size == 0)
        return false;
    return (is_text || !cm_dtype_is_vlen(&v->dtype)) && length <= MAX_COORDS / size;
}

static int find_missing(const cm_variable *v, const cm_loader_dim *d, uint8_t **out, cm_error *err)
{
    const cm_dtype *type = &v->array->dtype;
    const uint8_t *coords = d->coords;
    const uint8_t *fill = v->has_fill_value ? v->fill_value : NULL;
    cm_missing missing;
    if (!cm_dtype_is_number(type) || type->nbytes > sizeof missing.element[0] ||
        !cm_missing_list(type, v->array->attrs, fill, &missing) || missing.n == 0)
        return CM_OK;
    if ((*out = cm_calloc(d->length + 1, 1, err)) == NULL)
        return CM_ENOMEM;
    for (uint64_t i = 0; i < d->length; i++)
        for (unsigned k = 0; k < missing.n; k++)
            (*out)[i] |= memcmp(coords + i * type->nbytes, missing.element[k], type->nbytes) == 0;
    return CM_OK;
}

/* Of the variable that is named like the dimension, in the group of a variable that has it. */
static int find_coords(cm_load_data *data, const cm_array *has, cm_loader_dim *d, char **attributes,
                       uint8_t **missing, cm_error *err)
{
    cm_variable *v;
    int rc = cm_load_data_find_coordinate(data, has, d->name, &v, err);
    if (rc == CM_OK && v != NULL && are_coords(v, d->length))
        rc = read_coords(v->array, d, err);
    if (rc == CM_OK && d->coords != NULL)
        rc = write_attributes(v->array->attrs, attributes, err);
    if (rc == CM_OK && d->coords != NULL)
        rc = find_missing(v, d, missing, err);
    if (rc == CM_EUNSUPPORTED || rc == CM_EBUDGET) /* of codecs not known here; long texts */
        rc = CM_OK;
    cm_load_data_leave(data, v);
    return rc;
}

static const cm_array *array_with(const cm_load_shared *s, unsigned dim)
{
    for (size_t p = 0; p < s->space.nparts; p++)
        for (unsigned d = 0; d < s->space.part[p].rank; d++)
            if (s->space.part[p].axis[d] == (int)dim)
                return s->data.array[s->space.part[p].array];
    return NULL;
}

static int describe_dims(cm_load_shared *s, cm_loader_about *h, cm_error *err)
{
    const cm_sample_space *space = &s->space.space;
    h->dim = cm_calloc(space->rank + 1, sizeof *h->dim, err);
    h->attributes = cm_calloc(space->rank + 1, sizeof *h->attributes, err);
    h->missing = cm_calloc(space->rank + 1, sizeof *h->missing, err);
    if (h->dim == NULL || h->attributes == NULL || h->missing == NULL)
        return CM_ENOMEM;
    for (unsigned j = 0; j < space->rank; j++) {
        cm_loader_dim *d = &h->dim[h->ndims++];
        const cm_array *has = array_with(s, j);
        d->length = s->space.dim_length[j];
        d->sample = space->sample[j];
        if (s->space.dim_name[j] == NULL)
            continue;
        if ((d->name = cm_strdup(s->space.dim_name[j], err)) == NULL)
            return CM_ENOMEM;
        int rc = CM_OK;
        if (has != NULL)
            rc = find_coords(&s->data, has, d, &h->attributes[j], &h->missing[j], err);
        if (rc != CM_OK)
            return rc;
    }
    return CM_OK;
}

/* ---- variables ----------------------------------------------------------------------------- */

static int describe_variables(const cm_load_shared *s, cm_loader_about *h, cm_error *err)
{
    const cm_load_space *space = &s->space;
    h->variable = cm_calloc(space->nparts, sizeof *h->variable, err);
    if (h->variable == NULL)
        return CM_ENOMEM;
    for (size_t p = 0; p < space->nparts; p++) {
        const cm_sample_part *part = &space->part[p];
        const cm_array *a = s->data.array[part->array];
        cm_loader_variable *v = &h->variable[h->nvariables++];
        v->lag = space->lag[p];
        v->ndims = part->rank;
        v->nbytes = space->part_nbytes[p];
        for (unsigned d = 0; d < part->rank; d++) {
            v->dim[d] = (uint32_t)part->axis[d];
            v->shape[d] = space->space.sample[part->axis[d]];
        }
        v->name = cm_strdup(cm_load_array_name(a), err);
        int rc = v->name != NULL ? type_name(&space->feed[p], NULL, &v->type, err) : CM_ENOMEM;
        if (rc == CM_OK)
            rc = type_name(NULL, &a->dtype, &v->stored_type, err);
        if (rc != CM_OK)
            return rc;
    }
    return CM_OK;
}

/* Elements between neighbours of each dimension of a tensor, samples first. */
static int find_strides(cm_loader_about *h, cm_error *err)
{
    enum {
        STEP = CM_LOADER_MAX_DIMS + 1
    };
    h->stride = cm_calloc(h->nvariables * STEP, sizeof *h->stride, err);
    for (size_t p = 0; h->stride != NULL && p < h->nvariables; p++) {
        const cm_loader_variable *v = &h->variable[p];
        int64_t stride = 1;
        for (unsigned d = v->ndims; d-- > 0; stride *= (int64_t)v->shape[d])
            h->stride[p * STEP + d + 1] = stride;
        h->stride[p * STEP] = stride;
    }
    return h->stride != NULL ? CM_OK : CM_ENOMEM;
}

int cm_loader_about_create(cm_loader *l, cm_loader_about **out, cm_error *err)
{
    cm_loader_about *h = cm_calloc(1, sizeof *h, err);
    *out = h;
    if (h == NULL)
        return CM_ENOMEM;
    atomic_init(&h->refs, 1);
    int rc = describe_dims(&l->run.shared, h, err);
    if (rc == CM_OK)
        rc = describe_variables(&l->run.shared, h, err);
    return rc == CM_OK ? find_strides(h, err) : rc;
}

const char *cm_loader_dim_attributes(const cm_loader *l, size_t dim)
{
    const bool is_here = l != NULL && l->pid == getpid();
    return is_here && dim < l->about->ndims ? l->about->attributes[dim] : NULL;
}

const uint8_t *cm_loader_dim_missing(const cm_loader *l, size_t dim)
{
    const bool is_here = l != NULL && l->pid == getpid();
    return is_here && dim < l->about->ndims ? l->about->missing[dim] : NULL;
}

const char *cm_loader_holes(const cm_loader *l)
{
    return l != NULL && l->pid == getpid() ? l->holes : NULL;
}

bool cm_loader_dim_range(const cm_loader *l, size_t dim, uint64_t *first, uint64_t *count)
{
    const bool is_here = l != NULL && l->pid == getpid() && dim < l->about->ndims;
    const cm_sample_space *s = is_here ? &l->run.shared.space.space : NULL;
    *first = is_here ? s->origin[dim] : 0;
    *count = is_here ? s->length[dim] : 0;
    return is_here;
}

cm_loader_about *cm_loader_about_ref(cm_loader_about *h)
{
    atomic_fetch_add(&h->refs, 1);
    return h;
}

void cm_loader_about_unref(cm_loader_about *h)
{
    if (h == NULL || atomic_fetch_sub(&h->refs, 1) != 1)
        return;
    for (size_t i = 0; i < h->ndims; i++) {
        free(h->attributes[i]);
        free(h->missing[i]);
        free((void *)h->dim[i].name);
        free((void *)h->dim[i].type);
        free((void *)h->dim[i].coords);
    }
    for (size_t i = 0; i < h->nvariables; i++) {
        free((void *)h->variable[i].name);
        free((void *)h->variable[i].type);
        free((void *)h->variable[i].stored_type);
    }
    free(h->dim);
    free(h->attributes);
    free(h->missing);
    free(h->variable);
    free(h->stride);
    free(h);
}
