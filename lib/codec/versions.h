/* The compression libraries in use. */
#ifndef CM_CODEC_VERSIONS_H
#define CM_CODEC_VERSIONS_H

#include <stddef.h>

/* "zstd 1.5.4, blosc 1.21.3, ..." into BUF, which is returned; 160 bytes suffice. */
char *cm_codec_versions(char *buf, size_t size);

#endif
