/*
 * Whether the heap of malloc is in one piece: a library that wrote past the end of a block is found
 * out before another allocation dies of it, or returns memory that is in use.
 *
 * glibc's blocks lie in one piece of memory, each beginning with its size, so that one leads to the
 * next up to the end.  Nothing is known of other allocators (the sanitizers', preloaded ones), and
 * of the heaps of further threads: what is not known is taken to be whole.
 */
#ifndef CM_BASE_HEAP_H
#define CM_BASE_HEAP_H

#include <stdbool.h>

typedef struct cm_heap {
    const char *begin; /* NULL: unknown */
} cm_heap;

/*
 * Call it before code that may damage the heap.  No other thread may run, here and below: for a
 * child just forked.
 */
cm_heap cm_heap_find(void);
/* Whether the heap is intact; it may have grown or shrunk since. */
bool cm_heap_is_whole(const cm_heap *heap);
/* Ends a process with a damaged heap by SIGABRT, as glibc would do when it notices. */
void cm_heap_check(const cm_heap *heap);

/*
 * Fills allocated memory with senseless numbers until it is written to: a library that reads
 * uninitialised memory then fails instead of finding zeros.  FILL: on or off.
 */
void cm_heap_fill(bool fill);

#endif
