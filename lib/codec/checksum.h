/* Checksums that no library brings along.  Pure functions, any thread. */
#ifndef CM_CODEC_CHECKSUM_H
#define CM_CODEC_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

/*
 * CRC-32C (Castagnoli), initial value and final complement included.  SIMD: the best that may
 * be used.
 */
uint32_t cm_crc32c(cm_simd simd, const void *data, size_t nbytes);

/* HDF5's variant of Fletcher's checksum. */
uint32_t cm_fletcher32(const void *data, size_t nbytes);

#endif
