/*
 * Writes a metadata file: its header, and a flatbuffer compressed behind it.  The flatbuffer may
 * come piece by piece; its size is known before.
 */
#ifndef CM_FORMAT_ICECHUNK_FILE_WRITE_H
#define CM_FORMAT_ICECHUNK_FILE_WRITE_H

#include "store/open.h"

enum {
    CM_ICE_MAGIC_NBYTES = 12,
    CM_ICE_WRITER_NBYTES = 24, /* the writer's name, padded with spaces */
    CM_ICE_HEADER_NBYTES =
        CM_ICE_MAGIC_NBYTES + CM_ICE_WRITER_NBYTES + 3, /* version, kind, codec */
    CM_ICE_ZSTD = 1
};
#define CM_ICE_MAGIC CM_ICECHUNK_MAGIC

typedef enum cm_ice_kind {
    CM_ICE_SNAPSHOT_FILE = 1,
    CM_ICE_MANIFEST_FILE = 2,
    CM_ICE_LOG_FILE = 4,
    CM_ICE_REPO_FILE = 6
} cm_ice_kind;

typedef struct cm_ice_file cm_ice_file;

/* KEY in STORE, of NBYTES of flatbuffer. */
int cm_ice_file_create(cm_store *store, const char *key, cm_ice_kind kind, uint64_t nbytes,
                       cm_ice_file **out, cm_error *err);
int cm_ice_file_put(cm_ice_file *f, const void *data, size_t nbytes, cm_error *err);
/* *STORED, which may be NULL, becomes the file's bytes.  Frees F, as abort does. */
int cm_ice_file_commit(cm_ice_file *f, uint64_t *stored, cm_error *err);
void cm_ice_file_abort(cm_ice_file *f); /* NULL accepted */

/* All at once. */
int cm_ice_file_write(cm_store *store, const char *key, cm_ice_kind kind, const cm_buf *flat,
                      uint64_t *stored, cm_error *err);
/* The content of OUT becomes such a file. */
int cm_ice_file_seal(cm_ice_kind kind, const cm_buf *flat, cm_buf *out, cm_error *err);

#endif
