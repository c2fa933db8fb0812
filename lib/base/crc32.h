/* CRC-32 as zip files and gzip have it.  Any thread. */
#ifndef CM_BASE_CRC32_H
#define CM_BASE_CRC32_H

#include <stddef.h>
#include <stdint.h>

/* Of what CRC is the checksum of (0: of nothing), followed by DATA. */
uint32_t cm_crc32(uint32_t crc, const void *data, size_t nbytes);

#endif
