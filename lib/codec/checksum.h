/* Checksums that no library brings along.  Pure functions, any thread. */
#ifndef CM_CODEC_CHECKSUM_H
#define CM_CODEC_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include "base/crc32c.h"

/* HDF5's variant of Fletcher's checksum. */
uint32_t cm_fletcher32(const void *data, size_t nbytes);

#endif
