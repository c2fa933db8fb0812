#include "exec/buffers.h"

#include <sys/mman.h>

/* An idle buffer keeps its own link in its first bytes. */
typedef struct cm_idle_buffer {
    struct cm_idle_buffer *next;
    size_t nbytes;
} idle_buffer;

enum {
    PAGE = 4096
};

size_t cm_buffers_nbytes(size_t nbytes)
{
    return nbytes == 0 ? PAGE : (nbytes + PAGE - 1) / PAGE * PAGE;
}

void cm_buffers_init(cm_buffers *b, size_t limit)
{
    *b = (cm_buffers){.limit = limit};
}

bool cm_buffers_have(const cm_buffers *b, size_t nbytes, uint64_t count)
{
    size_t in_use = b->held - b->idle_nbytes;
    return in_use <= b->limit && count <= (b->limit - in_use) / cm_buffers_nbytes(nbytes);
}

static idle_buffer *take_idle(cm_buffers *b)
{
    idle_buffer *first = b->idle;
    b->idle = first->next;
    b->idle_nbytes -= first->nbytes;
    return first;
}

static void unmap_idle(cm_buffers *b)
{
    idle_buffer *first = take_idle(b);
    b->held -= first->nbytes;
    munmap(first, first->nbytes);
}

void *cm_buffers_get(cm_buffers *b, size_t nbytes, cm_error *err)
{
    size_t size = cm_buffers_nbytes(nbytes);
    /* Transfers follow each other: another size than the one wanted now is not wanted again soon. */
    while (b->idle != NULL && b->idle->nbytes != size)
        unmap_idle(b);
    if (b->idle != NULL)
        return take_idle(b);
    void *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
        cm_fail(err, CM_ENOMEM, "no memory for a block of %zu bytes", size);
        return NULL;
    }
    b->held += size;
    return data;
}

void cm_buffers_put(cm_buffers *b, void *data, size_t nbytes)
{
    idle_buffer *buffer = data;
    buffer->nbytes = cm_buffers_nbytes(nbytes);
    buffer->next = b->idle;
    b->idle = buffer;
    b->idle_nbytes += buffer->nbytes;
}

void cm_buffers_release(cm_buffers *b)
{
    while (b->idle != NULL)
        unmap_idle(b);
}
