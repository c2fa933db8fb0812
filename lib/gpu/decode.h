/*
 * Parcels decoded on a device: nvCOMP for the streams, our kernels for what comes before and
 * after (gpu/parcel.h).
 *
 * Only `cuda` has a decoder.  It tells whether each stream decoded to the right length, not
 * whether the bytes are right: its input must be proven before (load/batches/proof.h).
 *
 * A decoder belongs to the thread of its device.
 */
#ifndef CM_GPU_DECODE_H
#define CM_GPU_DECODE_H

#include "gpu/device.h"
#include "gpu/parcel.h"

typedef struct cm_decoder cm_decoder;

/* The most that a parcel may have. */
typedef struct cm_decoder_limits {
    size_t parcel_nbytes; /* that travel */
    size_t scratch_nbytes;
    size_t nstreams[CM_PARCEL_NCODECS];
    size_t stream_nbytes[CM_PARCEL_NCODECS]; /* decoded, of one */
    /*
     * The streams' limits are what could be, and far from what is: what nvCOMP needs besides is
     * allocated as parcels come, and not before.
     */
    bool as_they_come;
} cm_decoder_limits;

typedef struct cm_decoder_options {
    cm_device *device;   /* not owned; must outlive the decoder */
    const char *library; /* path of libnvcomp.so; NULL: the system's */
    cm_decoder_limits limits;
    unsigned nbuffers;        /* parcels that are under way at once, numbered from 0 */
    const char *const *array; /* NARRAYS names, for messages; copied */
    size_t narrays;
} cm_decoder_options;

/*
 * CM_EUNSUPPORTED where the device has none, CM_ENOTFOUND without nvCOMP, CM_ENOMEM without
 * room.
 */
int cm_decoder_open(const cm_decoder_options *options, cm_decoder **out, cm_error *err);
/* No work of it may be under way.  NULL is accepted. */
void cm_decoder_free(cm_decoder *d);
const char *cm_decoder_library(const cm_decoder *d); /* "nvCOMP 5.0.0" */

/*
 * Puts on S what makes a batch in BATCH of the parcel at HOST (of HOST_NBYTES, its table of
 * streams among them), of which PARCEL is the copy.  HOST is not needed afterwards.  The scratch
 * stays as a parcel leaves it: parcels of one stream may use what those before have put there.
 * CM_ENOMEM: what nvCOMP needs for this one does not fit the device; others may.
 */
int cm_decoder_submit(cm_decoder *d, cm_stream *s, unsigned buffer, const void *host,
                      size_t host_nbytes, const cm_device_memory *parcel, cm_device_memory *batch,
                      cm_error *err);
/*
 * After that was reached: CM_OK, or CM_EFORMAT with the chunk whose stream was not decoded
 * whole.
 */
int cm_decoder_check(const cm_decoder *d, unsigned buffer, cm_error *err);

#endif
