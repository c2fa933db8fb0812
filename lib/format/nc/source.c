#include "format/nc/source.h"

#include <inttypes.h>
#include <string.h>

#include "base/fd.h"

static int read_fd(const cm_source *s, uint64_t offset, void *dst, size_t nbytes, cm_error *err)
{
    size_t got;
    int errnum = cm_fd_read_at(s->fd, dst, nbytes, offset, &got);
    if (errnum != 0)
        return cm_fail_errno(err, errnum, "cannot read %zu bytes at %" PRIu64, nbytes, offset);
    if (got < nbytes)
        return cm_fail(err, CM_EFORMAT,
                       "%zu bytes wanted at %" PRIu64
                       ", but the file, which has become shorter, ends at %" PRIu64,
                       nbytes, offset, offset + got);
    return CM_OK;
}

static int read_memory(const cm_source *s, uint64_t offset, void *dst, size_t nbytes, cm_error *err)
{
    (void)err;
    memcpy(dst, s->memory + offset, nbytes);
    return CM_OK;
}

static int read_direct(const cm_source *s, uint64_t offset, void *dst, size_t nbytes, cm_error *err)
{
    return cm_direct_read(s->direct, s->fd, "the file", offset, dst, nbytes, err);
}

cm_source cm_source_of_fd(int fd, uint64_t nbytes)
{
    return (cm_source){.read = read_fd, .fd = fd, .nbytes = nbytes};
}

cm_source cm_source_of_direct(int fd, uint64_t nbytes, cm_direct *direct)
{
    return (cm_source){.read = read_direct, .fd = fd, .direct = direct, .nbytes = nbytes};
}

cm_source cm_source_of_memory(const void *data, size_t nbytes)
{
    return (cm_source){.read = read_memory, .memory = data, .fd = -1, .nbytes = nbytes};
}

int cm_source_read(const cm_source *s, uint64_t offset, void *dst, size_t nbytes, cm_error *err)
{
    if (offset > s->nbytes || nbytes > s->nbytes - offset)
        return cm_fail(err, CM_EFORMAT,
                       "%zu bytes wanted at %" PRIu64 ", but the file ends at %" PRIu64, nbytes,
                       offset, s->nbytes);
    if (nbytes == 0)
        return CM_OK;
    return s->read(s, offset, dst, nbytes, err);
}

int cm_source_read_pieces(const cm_source *s, cm_fetch_many *many, const cm_piece *piece, size_t n,
                          cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0, count; i < n && rc == CM_OK; i += count) {
        uint64_t end;
        count = cm_pieces_merge(piece + i, n - i, &end);
        size_t nbytes = (size_t)(end - piece[i].offset);
        rc = cm_source_read(s, piece[i].offset, many->buf.data + piece[i].at, nbytes, err);
        many->nrequests++;
        many->nbytes += nbytes;
    }
    return rc;
}
