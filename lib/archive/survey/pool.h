/*
 * The child processes of a survey.
 *
 * Each takes the next file, looks at it, and sends frames (look.h).  A file that kills its
 * process, or uses more CPU time than such a file can need, is tried once more alone, and then
 * has a record that says so; all others are looked at all the same.
 */
#ifndef CM_ARCHIVE_SURVEY_POOL_H
#define CM_ARCHIVE_SURVEY_POOL_H

#include "archive/survey/look.h"
#include "watch/monitor.h"

typedef struct cm_survey_job {
    const char *const *path;
    const uint64_t *number; /* of each, for its record */
    cm_copy *const *copy;   /* of each; NULL: it is a file */
    cm_copies *copies;      /* theirs; NULL: all are files */
    size_t n;
    unsigned nprocesses;
    uint64_t memory;     /* bytes that the user allows for all; 0: nothing is said */
    cm_monitor *monitor; /* or NULL */
    /* One frame; in the caller's thread. */
    int (*take)(void *context, const cm_frame *frame, const uint8_t *payload, cm_error *err);
    void *context;
} cm_survey_job;

/* CM_OK when TAKE has had a record of each file; CM_ECANCELED. */
int cm_survey_pool_run(const cm_survey_job *job, cm_error *err);

#endif
