/*
 * HDF5's filter pipeline as a list of codecs.
 */
#ifndef CM_FORMAT_NC_H5_PIPELINE_H
#define CM_FORMAT_NC_H5_PIPELINE_H

#include "codec/codec.h"
#include "format/nc/h5.h"

enum {
    CM_H5_FILTER_VALUES = 32 /* client data of a filter; those decoded here have at most 8 */
};

/* A filter as the file describes it. */
typedef struct cm_h5_filter {
    H5Z_filter_t id;
    size_t nvalues;
    unsigned value[CM_H5_FILTER_VALUES];
    char name[64];
} cm_h5_filter;

/* "lzf", "nbit": the name of filter ID, by which messages call it. */
const char *cm_h5_filter_name(H5Z_filter_t id);

/*
 * The codecs of a dataset with creation properties DCPL, in encoding order: one
 * array->bytes codec, then one bytes->bytes codec for each filter, so that bit i
 * of a chunk's filter mask is bit i of cm_chain_decode's SKIP.  CM_EUNSUPPORTED,
 * naming the filter, when one has no codec.  The caller holds the lock.
 */
int cm_h5_pipeline(hid_t dcpl, const cm_dtype *type, bool big_endian, cm_codec_spec **out,
                   size_t *nspecs, cm_error *err);
/* cm_h5_pipeline for filters that were read before; calls no library. */
int cm_h5_pipeline_of(const cm_h5_filter *filter, size_t nfilters, const cm_dtype *type,
                      bool big_endian, cm_codec_spec **out, size_t *nspecs, cm_error *err);

#endif
