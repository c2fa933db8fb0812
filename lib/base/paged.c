#include "base/paged.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/scratch.h"

enum {
    ALIGN = 16,
    PAGE = 4096,
    HELD_NBYTES = 64 << 10, /* of ordinary memory, before there is a file */
    FIRST_BLOCK = 4 << 10,  /* of it; the next are twice as long, */
    SMALL_BLOCK = 64 << 10, /* up to this */
    LARGE_BLOCK = 1 << 20,  /* of the file, at least, */
    SHARE_OF_FILE = 4,      /* and a fourth of what there is, so that blocks stay few */
    WINDOW_BITS = 16,       /* the system maps 16 pages, aligned, around one that is read */
    MOST_WINDOWS = 8        /* in memory */
};

#define WINDOW ((size_t)1 << WINDOW_BITS)

typedef struct block {
    uint8_t *data;
    size_t nbytes;
    atomic_bool *seen; /* of each window: it is in memory; NULL: the block is ordinary memory */
} block;

struct cm_paged {
    char *folder; /* NULL: the system's */
    block *block;
    size_t nblocks;
    size_t used; /* of the last block */
    size_t held; /* of ordinary memory */
    int fd;
    bool no_file; /* it was tried */
    off_t end;
    atomic_size_t touched; /* windows */
    atomic_size_t last;    /* block that was touched */
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
    /* Else the system makes larger pages of the file, up to MiB, and maps each as a whole. */
    (void)madvise(map, nbytes, MADV_RANDOM);
    p->end += (off_t)nbytes;
    return map;
}

/* One that lies in the file, of at least NBYTES; its data stay NULL where there is no room. */
static int map_block(cm_paged *p, size_t nbytes, block *out, cm_error *err)
{
    size_t share = (size_t)p->end / SHARE_OF_FILE;
    nbytes = nbytes > LARGE_BLOCK ? nbytes : LARGE_BLOCK;
    nbytes = ((nbytes > share ? nbytes : share) + PAGE - 1) / PAGE * PAGE;
    atomic_bool *seen = cm_calloc(nbytes / WINDOW + 2, sizeof(*seen), err);
    if (seen == NULL)
        return CM_ENOMEM;
    *out = (block){.data = map_more(p, nbytes), .nbytes = nbytes, .seen = seen};
    if (out->data == NULL) {
        free(seen);
        *out = (block){0};
    }
    return CM_OK;
}

static int add_block(cm_paged *p, size_t nbytes, cm_error *err)
{
    if (CM_GROW(p->block, p->nblocks, err) != CM_OK)
        return CM_ENOMEM;
    size_t usual = p->nblocks < 4 ? (size_t)FIRST_BLOCK << p->nblocks : SMALL_BLOCK;
    size_t small = nbytes > usual ? nbytes : usual;
    block b = {0};
    if (p->held + small > HELD_NBYTES && map_block(p, nbytes, &b, err) != CM_OK)
        return CM_ENOMEM;
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

/* ---- what is in memory ---- */

static size_t window_of(const block *b, const uint8_t *at)
{
    return (size_t)(((uintptr_t)at >> WINDOW_BITS) - ((uintptr_t)b->data >> WINDOW_BITS));
}

void cm_paged_let_go(cm_paged *p)
{
    atomic_store(&p->touched, 0);
    for (size_t i = 0; i < p->nblocks; i++) {
        const block *b = &p->block[i];
        if (b->seen == NULL)
            continue;
        for (size_t w = 0, n = window_of(b, b->data + b->nbytes - 1) + 1; w < n; w++)
            atomic_store_explicit(&b->seen[w], false, memory_order_relaxed);
        (void)madvise(b->data, b->nbytes, MADV_DONTNEED);
    }
}

/* The one that AT lies in: mostly that of the time before.  NULL: it is none of P's. */
static const block *block_of(cm_paged *p, const uint8_t *at)
{
    size_t last = atomic_load_explicit(&p->last, memory_order_relaxed);
    for (size_t i = 0; i < p->nblocks; i++) {
        size_t k = last + i < p->nblocks ? last + i : last + i - p->nblocks;
        const block *b = &p->block[k];
        if ((uintptr_t)at - (uintptr_t)b->data >= b->nbytes)
            continue;
        if (k != last)
            atomic_store_explicit(&p->last, k, memory_order_relaxed);
        return b;
    }
    return NULL;
}

void cm_paged_touch(cm_paged *p, const void *data, size_t nbytes)
{
    const uint8_t *at = data;
    const block *b = nbytes > 0 ? block_of(p, at) : NULL;
    if (b == NULL || b->seen == NULL)
        return;
    for (size_t w = window_of(b, at), end = window_of(b, at + nbytes - 1); w <= end; w++) {
        if (atomic_load_explicit(&b->seen[w], memory_order_relaxed))
            continue;
        if (atomic_fetch_add(&p->touched, 1) >= MOST_WINDOWS) {
            cm_paged_let_go(p);
            atomic_fetch_add(&p->touched, 1);
        }
        atomic_store_explicit(&b->seen[w], true, memory_order_relaxed);
    }
}

void cm_paged_copy(cm_paged *p, void *to, const void *from, size_t nbytes)
{
    for (size_t at = 0, n; at < nbytes; at += n) {
        n = nbytes - at < WINDOW ? nbytes - at : WINDOW;
        cm_paged_touch(p, (const uint8_t *)from + at, n);
        cm_paged_touch(p, (uint8_t *)to + at, n);
        memcpy((uint8_t *)to + at, (const uint8_t *)from + at, n);
    }
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
    /* A longer one comes into memory as it is filled, maybe without being touched. */
    if (nbytes < WINDOW)
        cm_paged_touch(p, data, nbytes);
    else
        cm_paged_let_go(p);
    return data;
}

void cm_paged_free(cm_paged *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; i < p->nblocks; i++) {
        if (p->block[i].seen != NULL)
            munmap(p->block[i].data, p->block[i].nbytes);
        else
            free(p->block[i].data);
        free(p->block[i].seen);
    }
    if (p->fd >= 0)
        close(p->fd);
    free(p->folder);
    free(p->block);
    free(p);
}
