#include "store/direct.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ALIGNMENT = 4096, /* the largest logical block of a disk; more than any memory alignment */
    /*
     * Size of a buffer: reads of 1 MiB reach a disk's full rate, 4 MiB allow for network file
     * systems.
     */
    BOUNCE_NBYTES = 4 << 20
};

typedef struct bounce {
    struct bounce *next;
    uint8_t *data;
} bounce;

struct cm_direct {
    pthread_mutex_t lock;
    bounce *idle;
};

int cm_direct_create(cm_direct **out, cm_error *err)
{
    *out = cm_calloc(1, sizeof **out, err);
    if (*out == NULL)
        return CM_ENOMEM;
    pthread_mutex_init(&(*out)->lock, NULL);
    return CM_OK;
}

void cm_direct_free(cm_direct *direct)
{
    if (direct == NULL)
        return;
    for (bounce *b = direct->idle, *next; b != NULL; b = next) {
        next = b->next;
        free(b->data);
        free(b);
    }
    pthread_mutex_destroy(&direct->lock);
    free(direct);
}

static bounce *take(cm_direct *direct, cm_error *err)
{
    pthread_mutex_lock(&direct->lock);
    bounce *b = direct->idle;
    if (b != NULL)
        direct->idle = b->next;
    pthread_mutex_unlock(&direct->lock);
    if (b != NULL)
        return b;
    b = cm_calloc(1, sizeof *b, err);
    if (b != NULL && (b->data = aligned_alloc(ALIGNMENT, BOUNCE_NBYTES)) == NULL) {
        cm_fail(err, CM_ENOMEM, "no memory for %d bytes", BOUNCE_NBYTES);
        free(b);
        return NULL;
    }
    return b;
}

static void give(cm_direct *direct, bounce *b)
{
    pthread_mutex_lock(&direct->lock);
    b->next = direct->idle;
    direct->idle = b;
    pthread_mutex_unlock(&direct->lock);
}

/*
 * Reads the aligned PIECE bytes at OFFSET until it has WANTED of them.  A read that stops between
 * two blocks is continued; one that stops elsewhere met the end of the file.
 */
static int read_piece(int fd, const char *key, uint64_t offset, uint8_t *dst, size_t piece,
                      size_t wanted, cm_error *err)
{
    size_t done = 0;
    while (done < wanted) {
        ssize_t n = pread(fd, dst + done, piece - done, (off_t)(offset + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EINVAL)
            return cm_fail(err, CM_EUNSUPPORTED,
                           "%s: its file system cannot read past the page cache in blocks of %d "
                           "bytes (O_DIRECT)",
                           key, ALIGNMENT);
        if (n < 0)
            return cm_fail_errno(err, errno, "%s", key);
        done += (size_t)n;
        if (done < wanted && (n == 0 || done % ALIGNMENT))
            return cm_fail(err, CM_EFORMAT, "%s: ends at %llu, %zu bytes short", key,
                           (unsigned long long)(offset + done), wanted - done);
    }
    return CM_OK;
}

int cm_direct_read(cm_direct *direct, int fd, const char *key, uint64_t offset, void *dst,
                   size_t nbytes, cm_error *err)
{
    uint8_t *to = dst;
    bounce *b = take(direct, err);
    int rc = b != NULL ? CM_OK : CM_ENOMEM;
    while (nbytes > 0 && rc == CM_OK) {
        size_t before = (size_t)(offset % ALIGNMENT);
        size_t part = nbytes < BOUNCE_NBYTES - before ? nbytes : BOUNCE_NBYTES - before;
        size_t piece = (before + part + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        rc = read_piece(fd, key, offset - before, b->data, piece, before + part, err);
        if (rc == CM_OK)
            memcpy(to, b->data + before, part);
        to += part;
        offset += part;
        nbytes -= part;
    }
    if (b != NULL)
        give(direct, b);
    return rc;
}
