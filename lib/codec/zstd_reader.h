/* Decodes Zstandard frames whose decoded size is not known before. */
#ifndef CM_CODEC_ZSTD_READER_H
#define CM_CODEC_ZSTD_READER_H

#include "base/mem.h"

/* Appends all frames in DATA to OUT; more than MOST bytes of it are CM_EFORMAT. */
int cm_zstd_read(const void *data, size_t nbytes, uint64_t most, cm_buf *out, cm_error *err);

/* A dictionary that small frames were compressed with. */
typedef struct cm_zstd_dict cm_zstd_dict;
int cm_zstd_dict_create(const void *data, size_t nbytes, cm_zstd_dict **out, cm_error *err);
void cm_zstd_dict_free(cm_zstd_dict *dict); /* NULL accepted */
/* Decodes one frame into ROOM bytes at DST; CM_EFORMAT: it is damaged, or longer.  DICT or NULL. */
int cm_zstd_dict_read(const cm_zstd_dict *dict, const void *data, size_t nbytes, void *dst,
                      size_t room, size_t *got, cm_error *err);

#endif
