#include "job/keep.h"

#include <string.h>

/* Why V's stored bytes cannot be passed on; NULL: they can.  The table of pass-through in the README follows it. */
static const char *obstacle(const cm_job_var *v)
{
    size_t n = v->source->ncodecs;
    const cm_codec_spec *spec = v->source->codecs;
    const cm_array *a = v->source->array;
    bool fletcher_first = false;
    if (v->as_strings)
        return "variable-length text is stored otherwise in HDF5";
    if (v->converts)
        return "its values are changed on the way";
    if (!a->chunked || spec == NULL)
        return "the file does not store it in chunks that can be copied";
    for (unsigned j = 0; j < v->rank; j++)
        if (v->start[j] != 0 || v->step[j] != 1 || v->shape[j] != a->shape[j])
            return "only a part of it is converted";
    for (size_t i = 1; i < n; i++) {
        switch (spec[i].id) {
        case CM_CODEC_ZLIB:
        case CM_CODEC_ZSTD:
        case CM_CODEC_BLOSC:
        case CM_CODEC_BZ2:
            break;
        case CM_CODEC_FLETCHER32:
            fletcher_first = i + 1 < n;
            break;
        case CM_CODEC_SHUFFLE:
            /* numcodecs' shuffle refuses a length that is no multiple of the element size. */
            if (fletcher_first && a->dtype.nbytes > 4)
                return "its checksum lies inside the shuffle, which Zarr readers cannot undo";
            break;
        default:
            return "Zarr has no name for one of its filters";
        }
    }
    return NULL;
}

/* The pipeline is deflate alone: then gzip can hold the same deflate data. */
static bool is_plain_deflate(const cm_job_var *v)
{
    size_t n = v->source->ncodecs;
    const cm_codec_spec *spec = v->source->codecs;
    return n == 2 && spec[1].id == CM_CODEC_ZLIB;
}

static bool is_uncompressed(const cm_job_var *v)
{
    return v->source->codecs != NULL && v->source->ncodecs == 1;
}

int cm_job_keep(cm_job *job, cm_job_var *v, cm_error *err)
{
    const char *why = obstacle(v);
    if (why == NULL && v->codec.keep_gzip && !is_plain_deflate(v) && !is_uncompressed(v))
        why = "it is not plain deflate, which alone can be wrapped as gzip";
    if (why == NULL) {
        v->pass = v->codec.keep_gzip && !is_uncompressed(v) ? CM_PASS_GZIP : CM_PASS_BYTES;
        return CM_OK;
    }
    v->codec = cm_codec_choice_default(&v->type);
    return cm_job_note(job, err, "variable %s is recoded: %s", v->name, why);
}

int cm_job_kept_codecs(const cm_job_var *v, cm_codec_spec **out, size_t *n, cm_error *err)
{
    *n = v->source->ncodecs;
    int rc = cm_codec_specs_copy(v->source->codecs, *n, out, err);
    if (rc == CM_OK && v->pass == CM_PASS_GZIP)
        (*out)[1].id = CM_CODEC_GZIP;
    return rc;
}

const char *cm_job_kept_readers(const cm_job_var *v, int zarr_format)
{
    size_t n = v->source->ncodecs;
    const cm_codec_spec *spec = v->source->codecs;
    bool filters = false, numcodecs = false;
    if (v->pass == CM_PASS_GZIP)
        return NULL;
    for (size_t i = 1; i < n; i++) {
        filters |= spec[i].id == CM_CODEC_SHUFFLE || spec[i].id == CM_CODEC_FLETCHER32;
        numcodecs |= spec[i].id != CM_CODEC_ZSTD && spec[i].id != CM_CODEC_BLOSC;
    }
    if (zarr_format == 3 && numcodecs)
        return "zarr-python, xarray, zarrs; not tensorstore, not GDAL";
    if (zarr_format == 2 && filters)
        return "zarr-python, xarray, zarrs, GDAL, netCDF-C; not tensorstore";
    return NULL;
}
