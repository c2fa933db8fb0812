/* The writers of the target's arrays, and what the engine is to do for each; what codecs cannot write is refused. */
#include <string.h>

#include "job/rechunk.h"

static bool fill_stays(const cm_re_array *a)
{
    static const uint8_t zeros[64];
    const cm_zarr_meta *m = &a->meta;
    const uint8_t *fill = a->source->fill;
    if (fill == NULL)
        fill = m->dtype.nbytes <= sizeof(zeros) ? zeros : NULL;
    /* Without a fill value absent chunks are undefined, and stay so. */
    if (!m->has_fill)
        return true;
    return fill != NULL && memcmp(fill, m->fill, m->dtype.nbytes) == 0;
}

static bool rounds(const cm_codec_spec *spec, size_t n)
{
    bool any = false;
    for (size_t i = 0; i < n && !any; i++) {
        const cm_codec_spec *s = &spec[i];
        switch (s->id) {
        case CM_CODEC_FIXEDSCALEOFFSET:
        case CM_CODEC_QUANTIZE:
        case CM_CODEC_BITROUND:
        case CM_CODEC_ASTYPE:
        case CM_CODEC_CAST_VALUE:
        case CM_CODEC_SCALE_OFFSET:
            any = true;
            break;
        case CM_CODEC_DELTA: /* whole numbers wrap, and come back */
            any = s->dtype.kind == CM_KIND_FLOAT || s->dtype.kind == CM_KIND_COMPLEX ||
                  !cm_dtype_equal(&s->dtype, &s->astype);
            break;
        case CM_CODEC_SHARDING:
            any = rounds(s->shard->codecs, s->shard->ncodecs);
            break;
        default:
            break;
        }
    }
    return any;
}

/* numcodecs shuffles whole elements alone, HDF5 also what is left: a chunk that no other reader would take is refused. */
static int check_shuffle(const cm_re_array *a, cm_error *err)
{
    const cm_shard_spec *shard = cm_re_sharding(&a->meta);
    const cm_codec_spec *spec = shard != NULL ? shard->codecs : a->meta.codecs;
    size_t n = shard != NULL ? shard->ncodecs : a->meta.ncodecs, i = 0;
    size_t itemsize = a->meta.dtype.nbytes;
    for (; i < n && cm_codec_class_of(spec[i].id) == CM_CODEC_ARRAY_ARRAY; i++)
        if (spec[i].astype.nbytes > 0)
            itemsize = spec[i].astype.nbytes;
    if (i + 1 >= n || spec[i].id != CM_CODEC_BYTES || spec[i + 1].id != CM_CODEC_SHUFFLE)
        return CM_OK;
    size_t nbytes = cm_zarr_writer_grid(a->writer)->chunk_nelem * itemsize;
    if (nbytes % spec[i + 1].elementsize == 0)
        return CM_OK;
    return cm_fail(err, CM_EUNSUPPORTED,
                   "codec shuffle: chunks of %zu bytes are no multiple of its element size %u; "
                   "choose other --chunks, or name another --codec",
                   nbytes, spec[i + 1].elementsize);
}

int cm_re_prepare(cm_re_array *a, cm_store *store, cm_error *err)
{
    int rc = a->how == CM_RE_OBJECTS
                 ? CM_OK
                 : cm_zarr_writer_create(store, a->node->path, &a->meta, &a->writer, err);
    if (rc != CM_OK || a->how == CM_RE_OBJECTS)
        return rc;
    if (!a->passes)
        rc = cm_chain_can_encode(cm_zarr_writer_chain(a->writer), err);
    if (rc == CM_OK && !a->passes)
        rc = check_shuffle(a, err);
    if (rc != CM_OK) {
        cm_error_prefix(err, "array %s", a->node->path[0] ? a->node->path : "/");
        return rc;
    }
    if (a->how == CM_RE_STRINGS)
        return CM_OK;
    cm_transfer *t = &a->transfer;
    t->source = a->source;
    t->target = a->writer;
    t->target_type = a->meta.dtype;
    t->pass = a->passes ? CM_PASS_BYTES : CM_PASS_NOTHING;
    t->present = a->presence.bit;
    t->counts = &a->counts;
    bool survives = false;
    rc = cm_zarr_fill_survives(&a->meta, &survives, err);
    /* The same words, which only v3 has, are seen alike in what stays absent. */
    bool same_words = a->meta.zarr_format == 3 && a->node->meta.zarr_format == 3;
    t->absent_is_empty = fill_stays(a) && (survives || same_words);
    t->must_return = !a->passes && rounds(a->meta.codecs, a->meta.ncodecs);
    if (a->meta.has_fill) {
        t->target_fill = a->meta.fill;
        t->skip_empty = survives;
    }
    for (unsigned j = 0; j < a->meta.rank; j++)
        t->step[j] = 1;
    return rc;
}
