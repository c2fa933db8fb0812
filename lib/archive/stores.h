/* Which files and variables make which of several stores. */
#ifndef CM_ARCHIVE_STORES_H
#define CM_ARCHIVE_STORES_H

#include <chunkmill/archive.h>

#include "archive/survey/survey.h"

typedef struct cm_store_plan {
    char *name; /* below the output folder, without ending; NULL: the output itself */
    uint32_t *file;
    size_t nfiles;
    cm_texts only; /* exact names of the variables that are chosen; none: all.  Owned */
} cm_store_plan;

/* By `store_per`, sorted by name; without it one store of all files.  OUT is an array. */
int cm_stores_plan(const cm_archive_options *options, cm_survey *survey, cm_store_plan **out,
                   size_t *n, cm_error *err);
void cm_stores_free(cm_store_plan *plan, size_t n);

/* store_patterns.c: cm_archive_store_patterns of archive.h. */
int cm_store_patterns_find(const cm_archive_options *options, cm_survey *survey,
                           cm_store_pattern **out, size_t *n, cm_error *err);

#endif
