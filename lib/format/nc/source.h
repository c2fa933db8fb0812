/*
 * Bytes that can be read at an offset: what the parsers of this folder know of
 * a file.  Tests and fuzzers put memory in its place.
 */
#ifndef CM_FORMAT_NC_SOURCE_H
#define CM_FORMAT_NC_SOURCE_H

#include "format/merge.h"
#include "store/direct.h"

typedef struct cm_source {
    int (*read)(const struct cm_source *s, uint64_t offset, void *dst, size_t nbytes,
                cm_error *err);
    const uint8_t *memory; /* of a source in memory */
    int fd;                /* of a source that is a file */
    cm_direct *direct;     /* borrowed, of a file that was opened with O_DIRECT */
    uint64_t nbytes;       /* in all */
} cm_source;

cm_source cm_source_of_fd(int fd, uint64_t nbytes);
/* The same past the page cache: FD was opened with O_DIRECT. */
cm_source cm_source_of_direct(int fd, uint64_t nbytes, cm_direct *direct);
cm_source cm_source_of_memory(const void *data, size_t nbytes);

/* All NBYTES or an error; CM_EFORMAT when they do not lie within the source.  Any thread. */
int cm_source_read(const cm_source *s, uint64_t offset, void *dst, size_t nbytes, cm_error *err);
/*
 * Reads PIECEs, sorted, all of this source and placed in MANY's buffer, with as few requests as
 * they lie together; counts them in MANY.
 */
int cm_source_read_pieces(const cm_source *s, cm_fetch_many *many, const cm_piece *piece, size_t n,
                          cm_error *err);

#endif
