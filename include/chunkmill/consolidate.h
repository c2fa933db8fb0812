/* Consolidated metadata of a store made anew, whoever wrote it. */
#ifndef CHUNKMILL_CONSOLIDATE_H
#define CHUNKMILL_CONSOLIDATE_H

#include <stdbool.h>
#include <stddef.h>

#include <chunkmill/error.h>

typedef struct cm_consolidate_options {
    const char *store; /* a folder; what a user types */
    bool break_lock;   /* take over the lock of a run that cannot be seen from here */
    bool durable;      /* on the disk before it returns */
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
 * word.  Each document is replaced in one rename, that of the root last.  CM_EEXIST: another run
 * writes the store, or one that was stopped is to be finished first, or what would be written lies
 * behind a symbolic link.  Where a node's document cannot be read nothing is changed.
 * REPORT is valid, and to be released, in any case.
 */
int cm_consolidate(const cm_consolidate_options *options, cm_consolidate_report *report,
                   cm_error *err);
void cm_consolidate_report_release(cm_consolidate_report *report);

#endif
