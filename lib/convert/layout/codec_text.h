/* The codecs of an array as people type them. */
#ifndef CM_CONVERT_LAYOUT_CODEC_TEXT_H
#define CM_CONVERT_LAYOUT_CODEC_TEXT_H

#include "format/zarr/meta.h"

/* "blosc:zstd:2:shuffle", "transpose+gzip:5": the chain that encodes chunks; NULL: no memory. */
char *cm_codec_text(const cm_zarr_meta *meta, cm_error *err);

#endif
