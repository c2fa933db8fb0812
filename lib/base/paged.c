#include "base/paged.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/scratch.h"

enum {
    ALIGN = 16,
    PAGE = 4096,
    HELD_NBYTES = 64 << 10,   /* of ordinary memory, before there is a file */
    FIRST_BLOCK = 4 << 10,    /* of it; the next are twice as long, */
    SMALL_BLOCK = 64 << 10,   /* up to this */
    LARGE_BLOCK = 1 << 20,    /* of the file */
    TOUCH_NBYTES = 128 << 10, /* between two times that pages are let go */
    LEAST_TOUCH = 8 << 10     /* the system maps 16 pages around one that is read */
};

typedef struct block {
    uint8_t *data;
    size_t nbytes;
    bool mapped;
} block;

struct cm_paged {
    char *folder; /* NULL: the system's */
    block *block;
    size_t nblocks, capacity;
    size_t used; /* of the last block */
    size_t held; /* of ordinary memory */
    int fd;
    bool no_file; /* it was tried */
    off_t end;
    atomic_size_t touched;
};

int cm_unnamed_file(const char *folder)
{
    int fd = -1;
    if (folder == NULL || cm_scratch_open(folder, &fd, NULL) != CM_OK)
        (void)cm_scratch_open("/tmp", &fd, NULL);
    return fd;
}

cm_paged *cm_paged_create(const char *folder, cm_error *err)
{
    cm_paged *p = cm_calloc(1, sizeof(*p), err);
    if (p == NULL)
        return NULL;
    p->fd = -1;
    if (folder != NULL && (p->folder = cm_strdup(folder, err)) == NULL) {
        free(p);
        return NULL;
    }
    return p;
}

/* NBYTES of the file, with room on its disk: a page that finds none would end the process. */
static void *map_more(cm_paged *p, size_t nbytes)
{
    if (p->fd < 0 && !p->no_file) {
        p->fd = cm_unnamed_file(p->folder);
        p->no_file = p->fd < 0;
    }
    if (p->no_file || fallocate(p->fd, 0, p->end, (off_t)nbytes) != 0)
        return NULL;
    void *map = mmap(NULL, nbytes, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, p->end);
    if (map == MAP_FAILED)
        return NULL;
    p->end += (off_t)nbytes;
    return map;
}

static int add_block(cm_paged *p, size_t nbytes, cm_error *err)
{
    if (p->nblocks == p->capacity) {
        size_t capacity = p->capacity > 0 ? p->capacity * 2 : 16;
        block *more = realloc(p->block, capacity * sizeof(*more));
        if (more == NULL)
            return cm_fail(err, CM_ENOMEM, "no memory for lists of files");
        p->block = more;
        p->capacity = capacity;
    }
    size_t usual = p->nblocks < 4 ? (size_t)FIRST_BLOCK << p->nblocks : SMALL_BLOCK;
    size_t small = nbytes > usual ? nbytes : usual;
    size_t large = nbytes > LARGE_BLOCK ? (nbytes + PAGE - 1) / PAGE * PAGE : LARGE_BLOCK;
    block b = {.nbytes = large, .mapped = true};
    if (p->held + small > HELD_NBYTES)
        b.data = map_more(p, large);
    if (b.data == NULL) {
        b = (block){.data = cm_calloc(small, 1, err), .nbytes = small};
        if (b.data == NULL)
            return CM_ENOMEM;
        p->held += small;
    }
    p->block[p->nblocks++] = b;
    p->used = 0;
    return CM_OK;
}

void cm_paged_let_go(cm_paged *p)
{
    atomic_store(&p->touched, 0);
    for (size_t i = 0; i < p->nblocks; i++)
        if (p->block[i].mapped)
            (void)madvise(p->block[i].data, p->block[i].nbytes, MADV_DONTNEED);
}

static void touch(cm_paged *p, size_t nbytes)
{
    if (atomic_fetch_add(&p->touched, nbytes) + nbytes > TOUCH_NBYTES)
        cm_paged_let_go(p);
}

void cm_paged_touch(cm_paged *p, size_t nbytes)
{
    touch(p, nbytes < LEAST_TOUCH ? LEAST_TOUCH : nbytes);
}

void *cm_paged_calloc(cm_paged *p, size_t count, size_t size, cm_error *err)
{
    size_t nbytes;
    if (!cm_mul_size(count, size, &nbytes) || !cm_add_size(nbytes, ALIGN + PAGE, &nbytes)) {
        cm_fail(err, CM_ENOMEM, "no memory for %zu elements", count);
        return NULL;
    }
    nbytes = (nbytes - PAGE) / ALIGN * ALIGN;
    if ((p->nblocks == 0 || p->block[p->nblocks - 1].nbytes - p->used < nbytes) &&
        add_block(p, nbytes, err) != CM_OK)
        return NULL;
    void *data = p->block[p->nblocks - 1].data + p->used;
    p->used += nbytes;
    touch(p, nbytes);
    return data;
}

void cm_paged_free(cm_paged *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; i < p->nblocks; i++) {
        if (p->block[i].mapped)
            munmap(p->block[i].data, p->block[i].nbytes);
        else
            free(p->block[i].data);
    }
    if (p->fd >= 0)
        close(p->fd);
    free(p->folder);
    free(p->block);
    free(p);
}
