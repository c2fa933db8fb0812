/* CRC-32C (Castagnoli).  Any thread. */
#ifndef CM_BASE_CRC32C_H
#define CM_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

#include "base/cpu.h"

/* Initial value and final complement included.  SIMD: the best that may be used. */
uint32_t cm_crc32c(cm_simd simd, const void *data, size_t nbytes);

#endif
