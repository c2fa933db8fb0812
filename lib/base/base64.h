/* Base64 (RFC 4648), the form of bytes in Zarr's metadata. */
#ifndef CM_BASE_BASE64_H
#define CM_BASE_BASE64_H

#include "base/mem.h"

/* False when TEXT is not base64; *data is on the heap. */
bool cm_base64_decode(const char *text, size_t text_nbytes, uint8_t **data, size_t *nbytes);
/* On the heap; NULL and an error when there is no memory. */
char *cm_base64_encode(const uint8_t *data, size_t nbytes, cm_error *err);

#endif
