#include "format/located.h"

#include <stdlib.h>
#include <string.h>

#include "format/dataset_impl.h"

/* Ignores the level: decoding does not depend on it. */
static bool same_codec(const cm_codec_spec *a, const cm_codec_spec *b)
{
    return a->id == b->id && a->checksum == b->checksum && a->big_endian == b->big_endian &&
           a->at_start == b->at_start && a->elementsize == b->elementsize &&
           a->keepbits == b->keepbits && memcmp(a->order, b->order, sizeof(a->order)) == 0 &&
           strcmp(a->blosc.cname, b->blosc.cname) == 0 && a->blosc.shuffle == b->blosc.shuffle &&
           a->blosc.blocksize == b->blosc.blocksize && a->scale == b->scale &&
           a->offset == b->offset &&
           memcmp(a->exact_scale, b->exact_scale, sizeof(a->exact_scale)) == 0 &&
           memcmp(a->exact_offset, b->exact_offset, sizeof(a->exact_offset)) == 0 &&
           cm_dtype_equal(&a->dtype, &b->dtype) && cm_dtype_equal(&a->astype, &b->astype) &&
           a->dtype_big_endian == b->dtype_big_endian &&
           a->astype_big_endian == b->astype_big_endian &&
           memcmp(a->szip, b->szip, sizeof(a->szip)) == 0 &&
           memcmp(a->bitshuffle, b->bitshuffle, sizeof(a->bitshuffle)) == 0 && a->cast == b->cast &&
           a->shard == b->shard;
}

bool cm_codecs_decode_alike(const cm_codec_spec *a, size_t na, const cm_codec_spec *b, size_t nb)
{
    if (na != nb)
        return false;
    for (size_t i = 0; i < na; i++)
        if (!same_codec(&a[i], &b[i]))
            return false;
    return true;
}

bool cm_form_decodes_alike(const cm_form *a, const cm_form *b)
{
    if (a->kind != b->kind || !cm_dtype_equal(&a->dtype, &b->dtype) || a->rank != b->rank ||
        a->swap != b->swap ||
        (a->kind == CM_LOCATED_CHUNKS &&
         memcmp(a->chunk, b->chunk, a->rank * sizeof(a->chunk[0])) != 0))
        return false;
    return cm_codecs_decode_alike(a->codecs, a->ncodecs, b->codecs, b->ncodecs);
}

bool cm_form_equal(const cm_form *a, const cm_form *b)
{
    if (!cm_form_decodes_alike(a, b) || a->has_fill != b->has_fill ||
        memcmp(a->fill, b->fill, sizeof(a->fill)) != 0)
        return false;
    for (size_t i = 0; i < a->ncodecs; i++)
        if (a->codecs[i].level != b->codecs[i].level)
            return false;
    return true;
}

int cm_dataset_locate(cm_dataset *ds, cm_variable *var, cm_located *out, cm_error *err)
{
    if (ds->ops->locate != NULL)
        return ds->ops->locate(ds, var, out, err);
    *out = (cm_located){0};
    cm_form *form = cm_calloc(1, sizeof(*form), err);
    if (form == NULL)
        return CM_ENOMEM;
    form->dtype = var->dtype;
    form->rank = var->rank;
    if (var->has_source_chunks)
        memcpy(form->chunk, var->source_chunk, var->rank * sizeof(form->chunk[0]));
    out->form = form;
    return CM_OK;
}

void cm_located_release(cm_located *located)
{
    if (located == NULL)
        return;
    if (located->form != NULL) {
        cm_codec_specs_free((cm_codec_spec *)(uintptr_t)located->form->codecs,
                            located->form->ncodecs);
        free((void *)(uintptr_t)located->form);
    }
    free((void *)(uintptr_t)located->place);
    *located = (cm_located){0};
}
