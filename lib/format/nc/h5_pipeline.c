#include "format/nc/h5_pipeline.h"

#include <stdlib.h>
#include <string.h>

static int too_few(const cm_h5_filter *f, size_t want, cm_error *err)
{
    return cm_fail(err, CM_EUNSUPPORTED, "filter %s (%d) has %zu parameters where %zu belong",
                   f->name, f->id, f->nvalues, want);
}

static int set_level(const cm_h5_filter *f, const cm_dtype *type, cm_codec_spec *s, cm_error *err)
{
    (void)type;
    (void)err;
    s->level = f->nvalues > 0 ? (int)f->value[0] : 0;
    return CM_OK;
}

static int set_shuffle(const cm_h5_filter *f, const cm_dtype *type, cm_codec_spec *s, cm_error *err)
{
    (void)err;
    s->elementsize = f->nvalues > 0 ? f->value[0] : type->nbytes;
    return CM_OK;
}

static int set_nothing(const cm_h5_filter *f, const cm_dtype *type, cm_codec_spec *s, cm_error *err)
{
    (void)f;
    (void)type;
    (void)s;
    (void)err;
    return CM_OK;
}

static int set_szip(const cm_h5_filter *f, const cm_dtype *type, cm_codec_spec *s, cm_error *err)
{
    (void)type;
    if (f->nvalues < 4)
        return too_few(f, 4, err);
    for (int i = 0; i < 4; i++)
        s->szip[i] = f->value[i];
    return CM_OK;
}

/* [revision, format, type size, chunk bytes, level, shuffle, compressor] */
static int set_blosc(const cm_h5_filter *f, const cm_dtype *type, cm_codec_spec *s, cm_error *err)
{
    static const char *const cname[] = {"blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"};
    (void)err;
    unsigned compressor = f->nvalues > 6 ? f->value[6] : 0;
    if (compressor >= sizeof cname / sizeof *cname)
        compressor = 0; /* decoding takes it from each chunk's own header */
    strcpy(s->blosc.cname, cname[compressor]);
    s->elementsize = f->nvalues > 2 ? f->value[2] : type->nbytes;
    s->level = f->nvalues > 4 ? (int)f->value[4] : 5;
    unsigned shuffle = f->nvalues > 5 ? f->value[5] : CM_BLOSC_SHUFFLE;
    s->blosc.shuffle =
        shuffle <= CM_BLOSC_BITSHUFFLE ? (cm_blosc_shuffle)shuffle : CM_BLOSC_NOSHUFFLE;
    return CM_OK;
}

/* [major, minor, element size, block, compressor, level] */
static int set_bitshuffle(const cm_h5_filter *f, const cm_dtype *type, cm_codec_spec *s,
                          cm_error *err)
{
    (void)type;
    if (f->nvalues < 3)
        return too_few(f, 3, err);
    for (size_t i = 0; i < 3; i++)
        s->bitshuffle[i] = f->nvalues > i + 2 ? f->value[i + 2] : 0;
    return CM_OK;
}

/*
 * Registered numbers:
 * https://github.com/HDFGroup/hdf5_plugins/blob/master/docs/RegisteredFilterPlugins.md
 */
static const struct {
    H5Z_filter_t id;
    cm_codec_id codec;
    int (*set)(const cm_h5_filter *f, const cm_dtype *type, cm_codec_spec *s, cm_error *err);
} known[] = {
    {H5Z_FILTER_DEFLATE, CM_CODEC_ZLIB, set_level},
    {H5Z_FILTER_SHUFFLE, CM_CODEC_SHUFFLE, set_shuffle},
    {H5Z_FILTER_FLETCHER32, CM_CODEC_FLETCHER32, set_nothing},
    {H5Z_FILTER_SZIP, CM_CODEC_SZIP, set_szip},
    {307, CM_CODEC_BZ2, set_level},
    {32000, CM_CODEC_LZF, set_nothing},
    {32001, CM_CODEC_BLOSC, set_blosc},
    {32004, CM_CODEC_HDF5_LZ4, set_nothing},
    {32008, CM_CODEC_BITSHUFFLE, set_bitshuffle},
    {32015, CM_CODEC_ZSTD, set_level},
};

const char *cm_h5_filter_name(H5Z_filter_t id)
{
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (known[k].id == id)
            return cm_codec_name(known[k].codec);
    switch (id) {
    case H5Z_FILTER_NBIT:
        return "nbit";
    case H5Z_FILTER_SCALEOFFSET:
        return "scaleoffset";
    case 32013:
        return "zfp";
    case 32026:
        return "blosc2";
    default:
        return "unnamed";
    }
}

static int read_filter(hid_t dcpl, unsigned i, cm_h5_filter *f, cm_error *err)
{
    unsigned flags = 0, config = 0;
    *f = (cm_h5_filter){.nvalues = CM_H5_FILTER_VALUES};
    f->id =
        H5Pget_filter2(dcpl, i, &flags, &f->nvalues, f->value, sizeof f->name, f->name, &config);
    if (f->id < 0)
        return cm_fail(err, CM_EUNSUPPORTED, "filter %u cannot be read", i);
    if (f->nvalues > CM_H5_FILTER_VALUES)
        f->nvalues = CM_H5_FILTER_VALUES;
    if (!f->name[0])
        snprintf(f->name, sizeof f->name, "%s", cm_h5_filter_name(f->id));
    return CM_OK;
}

static int add_filter(const cm_h5_filter *f, const cm_dtype *type, cm_codec_spec *s, cm_error *err)
{
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        if (known[k].id != f->id)
            continue;
        s->id = known[k].codec;
        return known[k].set(f, type, s, err);
    }
    return cm_fail(err, CM_EUNSUPPORTED, "filter %s (%d) is decoded by HDF5 alone", f->name, f->id);
}

int cm_h5_pipeline_of(const cm_h5_filter *filter, size_t nfilters, const cm_dtype *type,
                      bool big_endian, cm_codec_spec **out, size_t *nspecs, cm_error *err)
{
    cm_codec_spec *spec = cm_calloc(nfilters + 1, sizeof *spec, err);
    if (spec == NULL)
        return CM_ENOMEM;
    spec[0].id = CM_CODEC_BYTES;
    spec[0].big_endian = big_endian;
    for (size_t i = 0; i < nfilters; i++) {
        int rc = add_filter(&filter[i], type, &spec[i + 1], err);
        if (rc != CM_OK) {
            free(spec);
            return rc;
        }
    }
    *out = spec;
    *nspecs = nfilters + 1;
    return CM_OK;
}

int cm_h5_pipeline(hid_t dcpl, const cm_dtype *type, bool big_endian, cm_codec_spec **out,
                   size_t *nspecs, cm_error *err)
{
    cm_h5_filter filter[H5Z_MAX_NFILTERS];
    int nfilters = H5Pget_nfilters(dcpl);
    if (nfilters < 0 || nfilters > H5Z_MAX_NFILTERS)
        return cm_fail(err, CM_EUNSUPPORTED, "the filters cannot be read");
    for (int i = 0; i < nfilters; i++) {
        int rc = read_filter(dcpl, (unsigned)i, &filter[i], err);
        if (rc != CM_OK)
            return rc;
    }
    return cm_h5_pipeline_of(filter, (size_t)nfilters, type, big_endian, out, nspecs, err);
}
