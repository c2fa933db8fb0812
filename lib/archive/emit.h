/* The result of a join: the specification of one dataset, and the memory that it points to. */
#ifndef CM_ARCHIVE_EMIT_H
#define CM_ARCHIVE_EMIT_H

#include "archive/axes/values.h"

typedef struct cm_emitted {
    cm_multi_file *file;
    cm_multi_group *group;
    size_t ngroups;
    cm_multi_var *var;
    cm_multi_how **how; /* all of them */
    size_t nhows;
    uint32_t *number; /* of each variable of the join, that in the specification */
    char fingerprint[33];
} cm_emitted;

void cm_emitted_free(cm_emitted *e);

/* leftout.c: cm_multi_spec.left_out; JOIN is a cm_join. */
int cm_join_left_out(const void *join, uint32_t file, cm_json **out, cm_error *err);

/* groups.c: the attributes of groups that files agree on. */
int cm_join_groups(const cm_join_input *in, cm_join_findings *findings, cm_emitted *emitted,
                   cm_error *err);

#endif
