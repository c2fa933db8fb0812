/*
 * Files that are added to a store, by themselves: their arrays have the elements behind the end of
 * the store alone, and with them the files' own chunks, which a rectilinear grid takes as they are.
 */
#ifndef CM_CONVERT_SINK_GROWTH_APPEND_FILES_H
#define CM_CONVERT_SINK_GROWTH_APPEND_FILES_H

#include "convert/sink/growth/append.h"
#include "format/multi/multi.h"

typedef struct cm_append_files cm_append_files;

/*
 * *OUT is V, a variable of the joined dataset, without the elements of the store: prepared, of the
 * state's dataset of files.  NULL: what is added to V does not come from files, or only from one
 * dataset.
 */
int cm_append_files_find(cm_job *job, cm_append_state *s, const cm_variable *v, cm_variable **out,
                         cm_error *err);
cm_dataset *cm_append_files_dataset(const cm_append_files *f);
void cm_append_files_free(cm_append_files *f); /* NULL accepted */

/* The specification of V, where files are joined with the store; NULL: it is none of theirs. */
const cm_multi_var *cm_append_joined_var(const cm_job *job, const cm_variable *v);
/* The joined axis of V that the store grows along; naxes: none. */
unsigned cm_append_joined_axis(const cm_append_state *s, const cm_multi_var *v);

#endif
