/* What a loader says of its dimensions and variables, coordinates included. */
#include <stdlib.h>
#include <string.h>

#include "job/loader/loader_impl.h"

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

static int read_coords(cm_array *a, cm_loader_dim *d, cm_error *err)
{
    cm_box box = {.rank = 1, .shape = {a->shape[0]}};
    cm_codec_ctx *ctx = cm_codec_ctx_create(err);
    void *values = ctx != NULL ? cm_calloc(a->shape[0] + 1, a->dtype.nbytes, err) : NULL;
    int rc = values != NULL ? cm_array_read(a, ctx, &box, values, err) : CM_ENOMEM;
    if (rc == CM_OK)
        rc = type_name(NULL, &a->dtype, &d->type, err);
    cm_codec_ctx_free(ctx);
    if (rc == CM_OK)
        d->coords = values;
    else
        free(values);
    return rc;
}

static bool are_coords(const cm_array *a, uint64_t length)
{
    return a->rank == 1 && a->shape[0] == length && !cm_dtype_is_vlen(&a->dtype) &&
           a->dtype.nbytes > 0 && length <= MAX_COORDS / a->dtype.nbytes;
}

/* Of the variable that is named like the dimension, in the group of a variable that has it. */
static int find_coords(cm_load_data *data, const cm_array *has, cm_loader_dim *d, cm_error *err)
{
    const char *slash = strrchr(has->name, '/');
    const size_t n = slash != NULL ? (size_t)(slash - has->name) + 1 : 0;
    char *name = cm_asprintf(err, "%.*s%s", (int)n, has->name, d->name);
    cm_variable *v = NULL;
    if (name == NULL)
        return CM_ENOMEM;
    int rc = cm_load_data_find(data, name, &v, err);
    if (rc == CM_OK && v != NULL && are_coords(v->array, d->length))
        rc = read_coords(v->array, d, err);
    cm_load_data_leave(data, v);
    free(name);
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
    if (h->dim == NULL)
        return CM_ENOMEM;
    for (unsigned j = 0; j < space->rank; j++) {
        cm_loader_dim *d = &h->dim[h->ndims++];
        const cm_array *has = array_with(s, j);
        d->length = space->length[j];
        d->sample = space->sample[j];
        if (s->space.dim_name[j] == NULL)
            continue;
        if ((d->name = cm_strdup(s->space.dim_name[j], err)) == NULL)
            return CM_ENOMEM;
        int rc = has != NULL ? find_coords(&s->data, has, d, err) : CM_OK;
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
        v->lag = part->lag;
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
    free(h->variable);
    free(h->stride);
    free(h);
}
