/* Compresses bytes that come piece by piece into one Zstandard frame. */
#ifndef CM_CODEC_ZSTD_WRITER_H
#define CM_CODEC_ZSTD_WRITER_H

#include <stddef.h>
#include <stdint.h>

#include <chunkmill/error.h>

typedef struct cm_zstd_writer cm_zstd_writer;

/* Takes compressed bytes, in order. */
typedef int cm_zstd_sink(void *context, const void *data, size_t nbytes, cm_error *err);

/* A frame of NBYTES decoded bytes, which it says in its header. */
int cm_zstd_writer_open(int level, uint64_t nbytes, cm_zstd_sink *sink, void *context,
                        cm_zstd_writer **out, cm_error *err);
int cm_zstd_writer_put(cm_zstd_writer *w, const void *data, size_t nbytes, cm_error *err);
/* Ends the frame: CM_EINTERNAL where other than NBYTES were put. */
int cm_zstd_writer_end(cm_zstd_writer *w, cm_error *err);
void cm_zstd_writer_free(cm_zstd_writer *w); /* NULL accepted */

#endif
