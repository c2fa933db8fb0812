/* Names of variables and dimensions in the store, and words of attributes that refer to them. */
#ifndef CM_CONVERT_SELECT_RENAME_H
#define CM_CONVERT_SELECT_RENAME_H

#include "convert/job.h"

/* Gives the chosen variables their new names. */
int cm_job_rename(cm_job *job, cm_error *err);
/*
 * Call it once the names are known to be free: checks the dimensions' names, and renames in the
 * attributes of groups.
 */
int cm_job_rename_rest(cm_job *job, cm_error *err);
/* Renames in ATTRS, a copy of V's attributes. */
int cm_job_rename_words(const cm_job *job, const cm_variable *v, cm_json *attrs, cm_error *err);
/* Dimension J of V in the store, borrowed; NULL where it has no name. */
const char *cm_job_dim_name(const cm_job *job, const cm_variable *v, unsigned j);
/*
 * select.c: the variable that NAME refers to in an attribute of GROUP: there, or in the nearest
 * parent; "/a/b" counts from the root.  NULL: none.
 */
const cm_variable *cm_job_find_from(const cm_job *job, const char *group, size_t ngroup,
                                    const char *name, size_t nname);

#endif
