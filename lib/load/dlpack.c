/*
 * Tensors as DLPack has them (https://dmlc.github.io/dlpack/latest/c_api.html): the
 * structures below are that interface, version 1.0 and the one before it had versions.
 */
#include <stdlib.h>
#include <string.h>

#include "load/loader_impl.h"

typedef struct dl_tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
} dl_tensor;

typedef struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    dl_tensor dl_tensor;
} managed_versioned;

typedef struct DLManagedTensor {
    dl_tensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *self);
} managed_legacy;

/* Type names as cm_feed_type_name gives them. */
static const struct {
    const char *name;
    uint8_t code, bits;
} types[] = {{"int8", 0, 8},       {"int16", 0, 16},       {"int32", 0, 32},   {"int64", 0, 64},
             {"uint8", 1, 8},      {"uint16", 1, 16},      {"uint32", 1, 32},  {"uint64", 1, 64},
             {"float16", 2, 16},   {"float32", 2, 32},     {"float64", 2, 64}, {"bfloat16", 4, 16},
             {"complex64", 5, 64}, {"complex128", 5, 128}, {"bool", 6, 8}};

static int describe(cm_batch *b, size_t i, dl_tensor *out, cm_error *err)
{
    int rc = cm_batch_check(b, err);
    if (rc != CM_OK)
        return rc;
    if (i >= b->hold->about->nvariables)
        return cm_fail(err, CM_EINVAL, "the batch has no tensor %zu", i);
    const cm_tensor *t = &b->tensor[i];
    *out = (dl_tensor){.data = t->data,
                       .device_type = t->device_type,
                       .device_id = t->device_number,
                       .ndim = (int32_t)t->ndims,
                       .lanes = 1,
                       .shape = (int64_t *)t->shape,
                       .strides = &b->hold->about->stride[i * (CM_LOADER_MAX_DIMS + 1)]};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (strcmp(types[k].name, t->variable->type) == 0) {
            out->code = types[k].code;
            out->bits = types[k].bits;
            return CM_OK;
        }
    return cm_fail(err, CM_EUNSUPPORTED, "variable %s: DLPack has no type %s", t->variable->name,
                   t->variable->type);
}

/* In a forked child cm_batch_release does nothing; the small struct is the child's own copy. */
void cm_loader_delete_versioned(managed_versioned *self)
{
    if (self != NULL)
        cm_batch_release(self->manager_ctx);
    free(self);
}

void cm_loader_delete_legacy(managed_legacy *self)
{
    if (self != NULL)
        cm_batch_release(self->manager_ctx);
    free(self);
}

int cm_batch_dlpack(cm_batch *b, size_t i, managed_versioned **out, cm_error *err)
{
    dl_tensor t;
    *out = NULL;
    int rc = describe(b, i, &t, err);
    managed_versioned *m = rc == CM_OK ? cm_calloc(1, sizeof *m, err) : NULL;
    if (m == NULL)
        return rc == CM_OK ? CM_ENOMEM : rc;
    *m = (managed_versioned){
        .major = 1, .manager_ctx = b, .deleter = cm_loader_delete_versioned, .dl_tensor = t};
    cm_batch_ref(b);
    *out = m;
    return CM_OK;
}

int cm_batch_dlpack_legacy(cm_batch *b, size_t i, managed_legacy **out, cm_error *err)
{
    dl_tensor t;
    *out = NULL;
    int rc = describe(b, i, &t, err);
    managed_legacy *m = rc == CM_OK ? cm_calloc(1, sizeof *m, err) : NULL;
    if (m == NULL)
        return rc == CM_OK ? CM_ENOMEM : rc;
    *m = (managed_legacy){.dl_tensor = t, .manager_ctx = b, .deleter = cm_loader_delete_legacy};
    cm_batch_ref(b);
    *out = m;
    return CM_OK;
}
