#include "convert/layout/keep.h"

#include "convert/layout/rectilinear.h"

#include <string.h>

/*
 * HDF5's shuffle leaves the bytes after the last whole element alone, numcodecs' raises
 * "Shuffle buffer is not an integer multiple of elementsize".  The length of what comes
 * to it is known up to the first compressor: the chunk's, and four bytes for a checksum.
 */
static const char *shuffle_obstacle(const cm_codec_spec *spec, size_t n, size_t nbytes)
{
    enum {
        CHECKSUM_NBYTES = 4
    };
    bool compressed = false;
    for (size_t i = 1; i < n; i++) {
        bool moves = spec[i].id == CM_CODEC_SHUFFLE && spec[i].elementsize > 1;
        if (moves && compressed)
            return "it is compressed before the shuffle, which Zarr readers cannot undo";
        if (moves && nbytes % spec[i].elementsize != 0)
            return "its checksum lies inside the shuffle, which Zarr readers cannot undo";
        if (spec[i].id == CM_CODEC_FLETCHER32)
            nbytes += CHECKSUM_NBYTES;
        else
            compressed |= spec[i].id != CM_CODEC_SHUFFLE;
    }
    return NULL;
}

const char *cm_job_codecs_obstacle(const cm_codec_spec *spec, size_t n, size_t nbytes)
{
    for (size_t i = 1; i < n; i++) {
        switch (spec[i].id) {
        case CM_CODEC_ZLIB:
        case CM_CODEC_ZSTD:
        case CM_CODEC_BLOSC:
        case CM_CODEC_BZ2:
        case CM_CODEC_FLETCHER32:
        case CM_CODEC_SHUFFLE:
            break;
        default:
            return "Zarr has no name for one of its filters";
        }
    }
    return shuffle_obstacle(spec, n, nbytes);
}

/*
 * Why V's stored bytes cannot be passed on; NULL: they can.  The table of pass-through in the
 * README follows it.
 */
static const char *obstacle(const cm_job *job, const cm_job_var *v, const cm_layout *out)
{
    size_t n = v->source->ncodecs;
    const cm_codec_spec *spec = v->source->codecs;
    const cm_array *a = v->source->array;
    if (v->view.as_strings)
        return "variable-length text is stored otherwise in HDF5";
    if (v->view.converts)
        return "its values are changed on the way";
    if (!a->chunked || spec == NULL)
        return "the file does not store it in chunks that can be copied";
    if (cm_array_is_cut(a) && !out->rectilinear)
        return cm_job_rectilinear_obstacle(job, v) == NULL
                   ? "chunks of its files differ in length; `grid` rectilinear keeps them"
                   : "chunks of its files do not lie on one grid";
    for (unsigned j = 0; j < v->view.rank; j++)
        if (v->view.start[j] != 0 || v->view.step[j] != 1 || v->view.shape[j] != a->shape[j])
            return "only a part of it is converted";
    return cm_job_codecs_obstacle(spec, n, cm_chain_decoded_nbytes(a->chain));
}

/* The pipeline is deflate alone: then gzip can hold the same deflate data. */
static bool is_plain_deflate(const cm_job_var *v)
{
    size_t n = v->source->ncodecs;
    const cm_codec_spec *spec = v->source->codecs;
    return n == 2 && spec[1].id == CM_CODEC_ZLIB;
}

/* gzip has a checksum of the bytes as they are stored, and chunks are decoded to native ones. */
static bool is_swapped(const cm_job_var *v)
{
    return v->source->codecs[0].big_endian && cm_dtype_swap_nbytes(&v->source->dtype) > 1;
}

static bool is_uncompressed(const cm_job_var *v)
{
    return v->source->codecs != NULL && v->source->ncodecs == 1;
}

int cm_job_keep(cm_job *job, const cm_job_var *v, cm_layout *out, cm_error *err)
{
    const char *why = obstacle(job, v, out);
    if (why == NULL && out->codec.keep_gzip && !is_plain_deflate(v) && !is_uncompressed(v))
        why = "it is not plain deflate, which alone can be wrapped as gzip";
    if (why == NULL && out->codec.keep_gzip && !is_uncompressed(v) && is_swapped(v))
        why = "its elements are big-endian: gzip's checksum is of bytes that are not at hand";
    if (why == NULL) {
        out->pass = out->codec.keep_gzip && !is_uncompressed(v) ? CM_PASS_GZIP : CM_PASS_BYTES;
        return CM_OK;
    }
    out->codec = cm_codec_choice_default(&v->view.type);
    return cm_job_note(job, err, "variable %s is recoded: %s", v->name, why);
}

int cm_job_kept_codecs(const cm_job_var *v, cm_codec_spec **out, size_t *n, cm_error *err)
{
    *n = v->source->ncodecs;
    int rc = cm_codec_specs_copy(v->source->codecs, *n, out, err);
    if (rc == CM_OK && v->layout.pass == CM_PASS_GZIP)
        (*out)[1].id = CM_CODEC_GZIP;
    return rc;
}

const char *cm_job_kept_readers(const cm_job_var *v, int zarr_format)
{
    size_t n = v->source->ncodecs;
    const cm_codec_spec *spec = v->source->codecs;
    bool filters = false, numcodecs = false;
    if (v->layout.pass == CM_PASS_GZIP)
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
