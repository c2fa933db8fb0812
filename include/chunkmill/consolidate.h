/* Consolidated metadata of a store made anew, whoever wrote it. */
#ifndef CHUNKMILL_CONSOLIDATE_H
#define CHUNKMILL_CONSOLIDATE_H

#include <stdbool.h>
#include <stddef.h>

#include <chunkmill/error.h>
#include <chunkmill/net.h>

typedef struct cm_consolidate_options {
    const char *store; /* a folder or a bucket; what a user types */
    bool break_lock;   /* take over the lock of a run that cannot be seen from here */
    bool durable;      /* on the disk before it returns */
    cm_net *net;       /* reaches a bucket; may be NULL */
} cm_consolidate_options;

typedef struct cm_consolidate_report {
    int zarr_format;
    size_t narrays, ngroups; /* that are listed, the root counted */
    size_t nwritten;         /* documents that were renewed; the others said the same already */
    size_t ndocuments;
    char *note; /* for people, on the heap; or NULL */
} cm_consolidate_report;

/*
 * Lists in the consolidated metadata of a store what the documents of its nodes say, word by
 * word.  Each document is replaced in one step, that of the root last; in a bucket only where it
 * still is what it was when it was read, as far as the server has conditional writes.  CM_EEXIST:
 * another run writes the store, or one that was stopped is to be finished first, or what would be
 * written lies behind a symbolic link, or was changed meanwhile.  Where a node's document cannot
 * be read nothing is changed.
 * REPORT is valid, and to be released, in any case.
 */
int cm_consolidate(const cm_consolidate_options *options, cm_consolidate_report *report,
                   cm_error *err);
void cm_consolidate_report_release(cm_consolidate_report *report);

#endif
