/*
 * A fast 64-bit checksum against damage, not malice: always detects one changed 8-byte word, and
 * anything else except for one chance in 2^64.
 */
#ifndef CM_STORE_CHECKSUM_H
#define CM_STORE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

uint64_t cm_checksum64(const void *data, size_t nbytes, uint64_t seed);

#endif
