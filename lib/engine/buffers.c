#include "engine/buffers.h"

#include <sys/mman.h>

/* An idle buffer keeps its own links in its first bytes. */
typedef struct cm_idle_buffer {
    struct cm_idle_buffer *next;  /* of the same size */
    struct cm_idle_buffer *other; /* the first one of another size; of the first of a size alone */
    size_t nbytes;
} idle_buffer;

enum {
    PAGE = 4096,
    MAX_SIZES = 32 /* that are kept; a transfer clipped along five dimensions has as many */
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

/* Where the first idle buffer of NBYTES hangs; at the end where there is none. */
static idle_buffer **first_of(cm_buffers *b, size_t nbytes, unsigned *nsizes)
{
    idle_buffer **link = &b->idle;
    for (*nsizes = 0; *link != NULL && (*link)->nbytes != nbytes; ++*nsizes)
        link = &(*link)->other;
    return link;
}

/* Takes out what hangs at LINK. */
static idle_buffer *take_idle(cm_buffers *b, idle_buffer **link)
{
    idle_buffer *first = *link;
    if (first->next != NULL)
        first->next->other = first->other;
    *link = first->next != NULL ? first->next : first->other;
    b->idle_nbytes -= first->nbytes;
    return first;
}

static void unmap_idle(cm_buffers *b, idle_buffer **link)
{
    idle_buffer *first = take_idle(b, link);
    b->held -= first->nbytes;
    munmap(first, first->nbytes);
}

void *cm_buffers_get(cm_buffers *b, size_t nbytes, cm_error *err)
{
    size_t size = cm_buffers_nbytes(nbytes);
    unsigned nsizes;
    idle_buffer **link = first_of(b, size, &nsizes);
    if (*link != NULL)
        return take_idle(b, link);
    while (b->idle != NULL && (b->held > b->limit || size > b->limit - b->held))
        unmap_idle(b, &b->idle);
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
    unsigned nsizes;
    buffer->nbytes = cm_buffers_nbytes(nbytes);
    idle_buffer **link = first_of(b, buffer->nbytes, &nsizes);
    /* The first size is the oldest, for transfers follow each other. */
    while (*link == NULL && nsizes >= MAX_SIZES) {
        unmap_idle(b, &b->idle);
        link = first_of(b, buffer->nbytes, &nsizes);
    }
    buffer->next = *link;
    buffer->other = *link == NULL ? NULL : (*link)->other;
    *link = buffer;
    b->idle_nbytes += buffer->nbytes;
}

void cm_buffers_release(cm_buffers *b)
{
    while (b->idle != NULL)
        unmap_idle(b, &b->idle);
}
