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
    const char *begin; /* NULL: not known */
} cm_heap;

/* Before what may damage it.  No other thread runs, here and below: for a child just forked. */
cm_heap cm_heap_find(void);
/* As it was found; larger and smaller ones are the same heap. */
bool cm_heap_is_whole(const cm_heap *heap);
/* Where it is not, the process ends as glibc would end it (SIGABRT), once it stumbled over that. */
void cm_heap_check(const cm_heap *heap);

/*
 * Memory that is handed out holds no numbers that make sense, until it is written to: a library
 * that reads it all the same fails, where elsewhere it may find zeros and go on.  FILL: from now
 * on, or no more.
 */
void cm_heap_fill(bool fill);

#endif
