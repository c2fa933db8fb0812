/* Lists of codecs while they are read, and the type and shape that each codec sees. */
#include "format/zarr/internal.h"

int cm_spec_list_add(cm_spec_list *list, const cm_codec_spec *spec, cm_error *err)
{
    int rc = CM_GROW(list->spec, list->n, err);
    if (rc == CM_OK)
        list->spec[list->n++] = *spec;
    return rc;
}

bool cm_codec_sets_byte_order(cm_codec_id id)
{
    return id == CM_CODEC_DELTA || id == CM_CODEC_FIXEDSCALEOFFSET || id == CM_CODEC_QUANTIZE ||
           id == CM_CODEC_ASTYPE;
}

int cm_codec_check_byte_order(const cm_codec_spec *spec, bool big_endian, cm_error *err)
{
    static const char *const order[] = {"little", "big"};
    if (spec->dtype_big_endian == big_endian || cm_dtype_swap_nbytes(&spec->dtype) == 1)
        return CM_OK;
    return cm_fail(err, CM_EUNSUPPORTED,
                   "codec %s takes %s-endian elements for %s-endian ones, which changes them",
                   cm_codec_name(spec->id), order[big_endian], order[spec->dtype_big_endian]);
}

void cm_codec_scene_pass(cm_codec_scene *scene, const cm_codec_spec *spec)
{
    switch (spec->id) {
    case CM_CODEC_DELTA:
    case CM_CODEC_FIXEDSCALEOFFSET:
    case CM_CODEC_QUANTIZE:
    case CM_CODEC_ASTYPE:
        scene->type = spec->astype;
        break;
    case CM_CODEC_CAST_VALUE:
        scene->type = spec->cast->to;
        break;
    case CM_CODEC_PACKBITS:
        scene->type = cm_dtype_make(CM_KIND_UINT, 1);
        break;
    default:
        if (cm_codec_class_of(spec->id) != CM_CODEC_ARRAY_ARRAY)
            scene->is_bytes = true;
        break;
    }
}
