#include "exec/buffers.h"

#include <errno.h>
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

static size_t idle_nbytes(const cm_buffers *b)
{
    size_t total = 0;
    for (const idle_buffer *i = b->idle; i != NULL; i = i->next)
        total += i->nbytes;
    return total;
}

bool cm_buffers_have(const cm_buffers *b, size_t nbytes, uint64_t count)
{
    uint64_t in_use = b->held - idle_nbytes(b);
    return in_use <= b->limit && count <= (b->limit - in_use) / cm_buffers_nbytes(nbytes);
}

static void unmap_idle(cm_buffers *b, size_t room)
{
    while (b->idle != NULL && b->held + room > b->limit) {
        idle_buffer *first = b->idle;
        b->idle = first->next;
        b->held -= first->nbytes;
        munmap(first, first->nbytes);
    }
}

void *cm_buffers_get(cm_buffers *b, size_t nbytes, cm_error *err)
{
    size_t size = cm_buffers_nbytes(nbytes);
    for (idle_buffer **link = &b->idle; *link != NULL; link = &(*link)->next) {
        if ((*link)->nbytes == size) {
            idle_buffer *found = *link;
            *link = found->next;
            return found;
        }
    }
    unmap_idle(b, size);
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
}

void cm_buffers_release(cm_buffers *b)
{
    while (b->idle != NULL) {
        idle_buffer *first = b->idle;
        b->idle = first->next;
        b->held -= first->nbytes;
        munmap(first, first->nbytes);
    }
}
