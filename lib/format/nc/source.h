/*
 * A source of bytes at offsets, for the parsers of this folder: a file or, in tests and fuzzers,
 * memory.
 */
#ifndef CM_FORMAT_NC_SOURCE_H
#define CM_FORMAT_NC_SOURCE_H

#include "format/merge.h"
#include "store/direct.h"

typedef struct cm_source {
    int (*read)(const struct cm_source *s, uint64_t offset, void *dst, size_t nbytes,
                cm_error *err);
    const uint8_t *memory; /* sources in memory */
    int fd;                /* sources in files */
    cm_direct *direct;     /* borrowed; files opened with O_DIRECT */
    uint64_t nbytes;       /* in total */
} cm_source;

cm_source cm_source_of_fd(int fd, uint64_t nbytes);
/* A source that bypasses the page cache: FD was opened with O_DIRECT. */
cm_source cm_source_of_direct(int fd, uint64_t nbytes, cm_direct *direct);
cm_source cm_source_of_memory(const void *data, size_t nbytes);

/* Reads all NBYTES; CM_EFORMAT when they do not lie within the source.  Any thread. */
int cm_source_read(const cm_source *s, uint64_t offset, void *dst, size_t nbytes, cm_error *err);
/*
 * Reads sorted PIECEs, all of this source and placed in MANY's buffer, merging neighbours into one
 * request; counts the requests in MANY.
 */
int cm_source_read_pieces(const cm_source *s, cm_fetch_many *many, const cm_piece *piece, size_t n,
                          cm_error *err);

#endif
