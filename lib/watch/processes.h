/*
 * This process and all that it began, and those began: their CPU time and memory.
 */
#ifndef CM_WATCH_PROCESSES_H
#define CM_WATCH_PROCESSES_H

#include "base/mem.h"

typedef struct cm_processes cm_processes;

typedef struct cm_processes_use {
    uint64_t cpu_ns; /* since the look before; a process that is new counts from now on */
    uint64_t rss_nbytes;
    uint32_t n;
} cm_processes_use;

cm_processes *cm_processes_open(cm_error *err); /* NULL: no memory */
void cm_processes_close(cm_processes *p);       /* NULL accepted */

/*
 * Looks at them all.  Memory is each one's own pages and, because most of it is
 * the same memory, the shared pages of the one that has the most of them.
 */
void cm_processes_look(cm_processes *p, cm_processes_use *out);

#endif
