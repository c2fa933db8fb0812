/* Decodes Zstandard frames whose decoded size is not known before. */
#ifndef CM_CODEC_ZSTD_READER_H
#define CM_CODEC_ZSTD_READER_H

#include "base/mem.h"

/* Appends all frames in DATA to OUT; more than MOST bytes of it are CM_EFORMAT. */
int cm_zstd_read(const void *data, size_t nbytes, uint64_t most, cm_buf *out, cm_error *err);

#endif
