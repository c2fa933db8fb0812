/*
 * What each variable is made of: parts of files, and what must be the same in several.
 */
#ifndef CM_JOB_ARCHIVE_FIELDS_H
#define CM_JOB_ARCHIVE_FIELDS_H

#include "job/archive/place.h"

typedef struct cm_field_source {
    const cm_placement *place; /* NULL: the variable has no joined dimension */
    uint32_t file;             /* then: the file that gives it */
    bool auxiliary;            /* others refer to it: bounds and the like */
} cm_field_source;

typedef struct cm_field_sources {
    cm_field_source *of; /* one for each variable of the join */
    size_t n;
    cm_placement **place; /* each is its own allocation */
    size_t nplaces;
    cm_multi_check *check;
    size_t nchecks, check_capacity;
} cm_field_sources;

/* Findings where something is missing, or differs as far as the survey can tell. */
int cm_join_fields(cm_join *j, cm_field_sources *out, cm_error *err);
void cm_field_sources_release(cm_field_sources *f);
/* Two files are compared while data move. */
int cm_field_sources_check(cm_field_sources *f, const cm_multi_check *check, cm_error *err);

/* Whether other variables name AT in their attributes, as bounds or coordinates. */
bool cm_join_is_auxiliary(const cm_join *j, uint32_t at);

/* Whether other variables name AT as one of their coordinates. */
bool cm_join_is_coordinate(const cm_join *j, uint32_t at);

/* The description of variable AT in FILE, which has it. */
const cm_described *cm_join_described(const cm_join *j, uint32_t at, uint32_t file);
bool cm_join_record(const cm_join *j, uint32_t at, uint32_t file, cm_surveyed_var *out);

#endif
