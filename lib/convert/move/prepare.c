/*
 * The writers of the target's arrays, and what the engine is to do for each; what codecs cannot
 * write is refused.
 */
#include <string.h>

#include "convert/passport/job_passport.h"
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
        case CM_CODEC_DELTA: /* integers wrap around, and back */
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
    size_t n, i = 0, itemsize = v->view.type.nbytes;
    const cm_codec_spec *spec = chunk_codecs(&v->doc.meta, &n);
    for (; i < n && cm_codec_class_of(spec[i].id) == CM_CODEC_ARRAY_ARRAY; i++)
        if (spec[i].astype.nbytes > 0)
            itemsize = spec[i].astype.nbytes;
    if (i + 1 >= n || spec[i].id != CM_CODEC_BYTES || spec[i + 1].id != CM_CODEC_SHUFFLE)
        return CM_OK;
    size_t nbytes = cm_zarr_writer_grid(v->move.writer)->chunk_nelem * itemsize;
    if (nbytes % spec[i + 1].elementsize == 0)
        return CM_OK;
    return cm_fail(err, CM_EUNSUPPORTED,
                   "codec shuffle: chunks of %zu bytes are not a multiple of its element size %u; "
                   "choose other `chunks`, or name another `codec`",
                   nbytes, spec[i + 1].elementsize);
}

static int check_encoder(const cm_job_var *v, cm_error *err)
{
    int rc = cm_chain_can_encode(cm_zarr_writer_chain(v->move.writer), err);
    return rc == CM_OK ? check_shuffle(v, err) : rc;
}

/*
 * GDAL takes the fill value of an integer for NoData: whether data hold it is worth knowing
 * where the file names none.
 */
static bool may_be_nodata(const cm_job *job, const cm_job_var *v)
{
    bool integer = v->view.type.kind == CM_KIND_INT || v->view.type.kind == CM_KIND_UINT;
    return job->zarr_format == 3 && integer && v->view.rank >= 2 && !v->doc.keeps_words &&
           !v->source->has_fill_value && !v->source->is_char;
}

/* Where the source is cut, counted in the target's elements. */
static int set_cuts(cm_job_var *v, cm_error *err)
{
    const cm_array *a = v->source->array;
    int rc = CM_OK;
    for (unsigned j = 0; rc == CM_OK && j < a->rank; j++) {
        v->move.cuts[j] = a->grid.cuts[j];
        if (a->grid.cuts[j] == NULL ||
            (v->view.start[j] == 0 && v->view.step[j] == 1 && v->view.shape[j] == a->shape[j]))
            continue;
        cm_cuts_release(&v->move.own_cuts[j]);
        rc = cm_cuts_part(a->grid.cuts[j], v->view.start[j], v->view.step[j], v->view.shape[j],
                          &v->move.own_cuts[j], err);
        v->move.cuts[j] = &v->move.own_cuts[j];
    }
    memcpy(v->move.transfer.cuts, v->move.cuts, sizeof(v->move.transfer.cuts));
    return rc;
}

static int describe_transfer(cm_job *job, cm_job_var *v, cm_error *err)
{
    cm_transfer *t = &v->move.transfer;
    t->source = v->source->array;
    t->target = cm_zarr_writer_target(v->move.writer);
    t->target_type = v->view.type;
    t->pass = v->doc.pass;
    t->conversion = v->view.converts ? &v->view.conversion : NULL;
    t->present = v->stored.presence.bit;
    t->counts = &v->moved.counts;
    const bool rounding =
        v->doc.pass == CM_PASS_NOTHING && rounds(v->doc.meta.codecs, v->doc.meta.ncodecs);
    t->must_return = rounding && !v->view.converts;
    v->move.stored_differs = rounding && v->view.converts;
    memcpy(t->start, v->view.start, sizeof(t->start));
    memcpy(t->step, v->view.step, sizeof(t->step));
    t->absent_is_empty = v->doc.fill_stays;
    if (v->doc.meta.has_fill) {
        t->target_fill = v->doc.meta.fill;
        t->skip_empty = v->doc.fill_survives;
    }
    t->refuses_fill = v->doc.masks_fill;
    if (may_be_nodata(job, v))
        t->found_fill = &v->moved.found_fill;
    t->see = NULL;
    int rc = v->statistics != NULL ? cm_statistics_watch(v, err) : CM_OK;
    if (rc == CM_OK && v->passport != NULL)
        rc = cm_job_passport_watch(v, err);
    return rc == CM_OK ? set_cuts(v, err) : rc;
}

/* However large it is: a dataset of HDF5 takes no space before its first element is written. */
static bool nothing_is_stored(const cm_variable *s)
{
    return s->located && s->stored_nbytes == 0;
}

bool cm_job_is_absent(const cm_job_var *v)
{
    return v->layout.refer != NULL ||
           (v->doc.fill_stays && v->doc.meta.has_fill && nothing_is_stored(v->source));
}

int cm_job_prepare(cm_job *job, cm_job_var *v, cm_store *store, cm_error *err)
{
    if (v->stored.as_objects)
        return CM_OK;
    int rc = cm_zarr_writer_create(store, v->name, &v->doc.meta, &v->move.writer, err);
    if (rc != CM_OK)
        return rc;
    cm_zarr_writer_shift(v->move.writer, v->window.first_object);
    cm_zarr_writer_early(v->move.writer, job->scratch.early);
    if (v->window.is_part && !v->window.is_beyond)
        cm_zarr_writer_replace(v->move.writer);
    if (v->doc.pass == CM_PASS_NOTHING && (rc = check_encoder(v, err)) != CM_OK) {
        cm_error_prefix(err, "%s %s", cm_job_noun(job), cm_job_name(v));
        return rc;
    }
    v->move.absent = cm_job_is_absent(v);
    return v->view.as_strings || v->move.absent ? CM_OK : describe_transfer(job, v, err);
}

void cm_job_release_writers(cm_job *job)
{
    for (size_t i = 0; i < job->nvars; i++) {
        cm_zarr_writer_free(job->var[i].move.writer);
        job->var[i].move.writer = NULL;
    }
}
