/*
 * From a zlib stream (RFC 1950) to a gzip member (RFC 1952) around the same
 * deflate data: other readers understand it, and nothing is compressed again.
 */
#ifndef CM_CODEC_REWRAP_H
#define CM_CODEC_REWRAP_H

#include "base/mem.h"

enum {
    CM_GZIP_OVERHEAD = 18 /* header and trailer; more than zlib's 6 */
};

/*
 * OUT gets the gzip member; DECODED is what ZLIB inflates to, for the CRC and the
 * length.  CM_EFORMAT when ZLIB is too short to be a stream or has a dictionary.
 */
int cm_zlib_to_gzip(const cm_buf *zlib, const void *decoded, size_t decoded_nbytes, cm_buf *out,
                    cm_error *err);

#endif
