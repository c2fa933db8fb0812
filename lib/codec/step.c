/* Shared by the codecs when a chain is prepared: arrays between steps, and room for bytes. */
#include <string.h>

#include "codec/impl.h"

int cm_codec_array_init(cm_codec_array *a, const cm_dtype *type, unsigned rank,
                        const uint64_t *shape, cm_error *err)
{
    if (rank > CM_MAX_RANK) {
        return cm_fail(err, CM_EFORMAT, "%u dimensions, and %d is the most that is handled", rank,
                       CM_MAX_RANK);
    }
    *a = (cm_codec_array){.type = *type, .rank = rank};
    if (rank > 0)
        memcpy(a->shape, shape, rank * sizeof *shape);
    /* An element of variable length takes at least the four bytes of its length. */
    uint64_t itemsize = cm_dtype_is_vlen(type) ? 4 : type->nbytes;
    uint64_t nbytes;
    if (!cm_product_u64(rank, shape, &a->nelem) || !cm_mul_u64(a->nelem, itemsize, &nbytes) ||
        nbytes > CM_CODEC_MAX_NBYTES) {
        char text[CM_MAX_RANK * 21 + 8];
        return cm_fail(err, CM_EBUDGET, "a chunk of %s elements of %llu bytes is larger than 1 TiB",
                       cm_shape_text(rank, shape, text, sizeof text), (unsigned long long)itemsize);
    }
    a->nbytes = cm_dtype_is_vlen(type) ? 0 : (size_t)nbytes;
    return CM_OK;
}

int cm_codec_retype(cm_codec_step *step, const cm_dtype *type, cm_error *err)
{
    return cm_codec_array_init(&step->out, type, step->in.rank, step->in.shape, err);
}

int cm_codec_view_all(const cm_codec_step *step, cm_span *data, cm_error *err)
{
    (void)step;
    (void)data;
    (void)err;
    return CM_OK;
}

int cm_codec_no_room(const cm_room *dst, size_t nbytes, cm_error *err)
{
    return cm_fail(err, CM_EBUDGET, "decodes to %zu bytes, where %zu are the most", nbytes,
                   dst->capacity);
}
