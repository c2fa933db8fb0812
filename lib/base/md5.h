/* MD5 (RFC 1321), used as ETag by object stores.  Not secure. */
#ifndef CM_BASE_MD5_H
#define CM_BASE_MD5_H

#include <stddef.h>
#include <stdint.h>

enum {
    CM_MD5_NBYTES = 16
};

/* The MD5 of NBYTES of DATA.  Any thread. */
void cm_md5(const void *data, size_t nbytes, uint8_t out[CM_MD5_NBYTES]);

#endif
