#include "base/heap.h"

#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A block's header in glibc; the list is written into blocks that are free. */
typedef struct block {
    size_t nbytes_before;                /* of the block before, where that is free */
    size_t nbytes;                       /* of this one, from here on; its lowest bits are flags */
    const struct block *next, *previous; /* in the list of free ones */
} block;

enum {
    BEFORE_IS_USED = 1,
    ELSEWHERE = 2 | 4, /* not of this heap: has a mapping, or an arena, of its own */
    FLAGS = BEFORE_IS_USED | ELSEWHERE,
    UNIT = 2 * sizeof(size_t),
    LEAST = sizeof(block),
    /* Where the heap could not grow: two marks of one unit each, and nothing behind them. */
    END_MARKS = 2 * UNIT
};

static bool lies_in(const block *b, const char *begin, const char *end)
{
    return (const char *)b >= begin && (const char *)b <= end - sizeof(*b);
}

/* Lists begin outside the heap, and only what lies in it is followed. */
static bool is_linked(const block *b, const char *begin, const char *end)
{
    return (!lies_in(b->next, begin, end) || b->next->previous == b) &&
           (!lies_in(b->previous, begin, end) || b->previous->next == b);
}

static bool is_whole(const char *begin, const char *end)
{
    for (const char *at = begin; end - at > END_MARKS;) {
        const block *b = (const block *)(const void *)at;
        const size_t nbytes = b->nbytes & ~(size_t)FLAGS, left = (size_t)(end - at);
        if ((b->nbytes & ELSEWHERE) != 0 || nbytes < LEAST || nbytes % UNIT != 0 || nbytes > left)
            return false;
        if (nbytes == left) /* what was never handed out */
            return true;
        const block *after = (const block *)(const void *)(at + nbytes);
        const bool is_free = (after->nbytes & BEFORE_IS_USED) == 0;
        if (is_free && (after->nbytes_before != nbytes || !is_linked(b, begin, end)))
            return false;
        at += nbytes;
    }
    return true;
}

/* glibc's is the one that the system names. */
static const char *find_begin(void)
{
    char line[512];
    unsigned long begin = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    if (maps == NULL)
        return NULL;
    while (begin == 0 && fgets(line, sizeof(line), maps) != NULL)
        if (strstr(line, " [heap]\n") == NULL || sscanf(line, "%lx", &begin) != 1)
            begin = 0;
    fclose(maps);
    return (const char *)(uintptr_t)begin;
}

void cm_heap_fill(bool fill)
{
    enum {
        /* Fills memory that is freed; its complement, 0xa5, memory that is handed out. */
        NO_NUMBER = 0x5a
    };
    (void)mallopt(M_PERTURB, fill ? NO_NUMBER : 0);
}

cm_heap cm_heap_find(void)
{
    cm_heap heap = {find_begin()};
    /* Another allocator's looks like a damaged one. */
    if (!cm_heap_is_whole(&heap))
        heap.begin = NULL;
    return heap;
}

bool cm_heap_is_whole(const cm_heap *heap)
{
    const char *end = sbrk(0);
    return heap->begin == NULL || (uintptr_t)heap->begin % UNIT != 0 || is_whole(heap->begin, end);
}

void cm_heap_check(const cm_heap *heap)
{
    if (cm_heap_is_whole(heap))
        return;
    (void)raise(SIGABRT);
    _exit(1); /* where that is ignored */
}
