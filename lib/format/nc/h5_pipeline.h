/*
 * HDF5's filter pipeline as a list of codecs.
 */
#ifndef CM_FORMAT_NC_H5_PIPELINE_H
#define CM_FORMAT_NC_H5_PIPELINE_H

#include "codec/codec.h"
#include "format/nc/h5.h"

/*
 * The codecs of a dataset with creation properties DCPL, in encoding order: one
 * array->bytes codec, then one bytes->bytes codec for each filter, so that bit i
 * of a chunk's filter mask is bit i of cm_chain_decode's SKIP.  CM_EUNSUPPORTED,
 * naming the filter, when one has no codec.  The caller holds the lock.
 */
int cm_h5_pipeline(hid_t dcpl, const cm_dtype *type, bool big_endian, cm_codec_spec **out,
                   size_t *nspecs, cm_error *err);

#endif
