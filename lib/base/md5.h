/*
 * MD5 (RFC 1321): what servers of objects call an ETag.  No protection from an attacker.
 */
#ifndef CM_BASE_MD5_H
#define CM_BASE_MD5_H

#include <stddef.h>
#include <stdint.h>

enum {
    CM_MD5_NBYTES = 16
};

/* Of NBYTES of DATA.  Any thread. */
void cm_md5(const void *data, size_t nbytes, uint8_t out[CM_MD5_NBYTES]);

#endif
