/*
 * The writers of the target's arrays, and what the engine is to do for each; what codecs cannot
 * write is refused.
 */
#include <string.h>

#include "convert/statistics/statistics.h"

static const cm_codec_spec *chunk_codecs(const cm_zarr_meta *m, size_t *n)
{
    const cm_shard_spec *shard = cm_zarr_sharding(m);
    *n = shard != NULL ? shard->ncodecs : m->ncodecs;
    return shard != NULL ? shard->codecs : m->codecs;
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

/*
 * numcodecs shuffles whole elements alone, HDF5 also what is left: a chunk that no other reader
 * would take is refused.
 */
static int check_shuffle(const cm_job_var *v, cm_error *err)
{
    size_t n, i = 0, itemsize = v->type.nbytes;
    const cm_codec_spec *spec = chunk_codecs(&v->meta, &n);
    for (; i < n && cm_codec_class_of(spec[i].id) == CM_CODEC_ARRAY_ARRAY; i++)
        if (spec[i].astype.nbytes > 0)
            itemsize = spec[i].astype.nbytes;
    if (i + 1 >= n || spec[i].id != CM_CODEC_BYTES || spec[i + 1].id != CM_CODEC_SHUFFLE)
        return CM_OK;
    size_t nbytes = cm_zarr_writer_grid(v->writer)->chunk_nelem * itemsize;
    if (nbytes % spec[i + 1].elementsize == 0)
        return CM_OK;
    return cm_fail(err, CM_EUNSUPPORTED,
                   "codec shuffle: chunks of %zu bytes are not a multiple of its element size %u; "
                   "choose other `chunks`, or name another `codec`",
                   nbytes, spec[i + 1].elementsize);
}

static int check_encoder(const cm_job_var *v, cm_error *err)
{
    int rc = cm_chain_can_encode(cm_zarr_writer_chain(v->writer), err);
    return rc == CM_OK ? check_shuffle(v, err) : rc;
}

/*
 * GDAL takes the fill value of an integer for NoData: whether data hold it is worth knowing
 * where the file names none.
 */
static bool may_be_nodata(const cm_job *job, const cm_job_var *v)
{
    bool integer = v->type.kind == CM_KIND_INT || v->type.kind == CM_KIND_UINT;
    return job->zarr_format == 3 && integer && v->rank >= 2 && !v->keeps_words &&
           !v->source->has_fill_value && !v->source->is_char;
}

/* Where the source is cut, counted in the target's elements. */
static int set_cuts(cm_job_var *v, cm_error *err)
{
    enum {
        MOST = sizeof(v->own_cuts) / sizeof(v->own_cuts[0])
    };
    const cm_array *a = v->source->array;
    int rc = CM_OK;
    for (unsigned j = 0, own = 0; rc == CM_OK && j < a->rank; j++) {
        v->cuts[j] = a->cuts[j];
        if (a->cuts[j] == NULL ||
            (v->start[j] == 0 && v->step[j] == 1 && v->shape[j] == a->shape[j]))
            continue;
        if (own == MOST)
            return cm_fail(err, CM_EINTERNAL, "variable %s: it is cut along %u dimensions",
                           cm_job_name(v), own + 1);
        cm_cuts_release(&v->own_cuts[own]);
        rc = cm_cuts_part(a->cuts[j], v->start[j], v->step[j], v->shape[j], &v->own_cuts[own], err);
        v->cuts[j] = &v->own_cuts[own++];
    }
    memcpy(v->transfer.cuts, v->cuts, sizeof(v->transfer.cuts));
    return rc;
}

static int describe_transfer(cm_job *job, cm_job_var *v, cm_error *err)
{
    cm_transfer *t = &v->transfer;
    t->source = v->source->array;
    t->target = cm_zarr_writer_target(v->writer);
    t->target_type = v->type;
    t->pass = v->pass;
    t->conversion = v->converts ? &v->conversion : NULL;
    t->present = v->presence.bit;
    t->counts = &v->counts;
    const bool rounding = v->pass == CM_PASS_NOTHING && rounds(v->meta.codecs, v->meta.ncodecs);
    t->must_return = rounding && !v->converts;
    v->stored_differs = rounding && v->converts;
    memcpy(t->start, v->start, sizeof(t->start));
    memcpy(t->step, v->step, sizeof(t->step));
    t->absent_is_empty = v->fill_stays;
    if (v->meta.has_fill) {
        t->target_fill = v->meta.fill;
        t->skip_empty = v->fill_survives;
    }
    if (may_be_nodata(job, v))
        t->found_fill = &v->found_fill;
    int rc = v->statistics != NULL ? cm_statistics_watch(v, err) : CM_OK;
    return rc == CM_OK ? set_cuts(v, err) : rc;
}

/* However large it is: a dataset of HDF5 takes no space before its first element is written. */
static bool nothing_is_stored(const cm_variable *s)
{
    return s->located && s->stored_nbytes == 0;
}

bool cm_job_is_absent(const cm_job_var *v)
{
    return v->refer != NULL || (v->fill_stays && v->meta.has_fill && nothing_is_stored(v->source));
}

int cm_job_prepare(cm_job *job, cm_job_var *v, cm_store *store, cm_error *err)
{
    if (v->as_objects)
        return CM_OK;
    int rc = cm_zarr_writer_create(store, v->name, &v->meta, &v->writer, err);
    if (rc != CM_OK)
        return rc;
    cm_zarr_writer_shift(v->writer, v->first_object);
    cm_zarr_writer_early(v->writer, job->early);
    if (v->is_window && !v->is_beyond)
        cm_zarr_writer_replace(v->writer);
    if (v->pass == CM_PASS_NOTHING && (rc = check_encoder(v, err)) != CM_OK) {
        cm_error_prefix(err, "%s %s", cm_job_noun(job), cm_job_name(v));
        return rc;
    }
    v->absent = cm_job_is_absent(v);
    return v->as_strings || v->absent ? CM_OK : describe_transfer(job, v, err);
}

void cm_job_release_writers(cm_job *job)
{
    for (size_t i = 0; i < job->nvars; i++) {
        cm_zarr_writer_free(job->var[i].writer);
        job->var[i].writer = NULL;
    }
}
