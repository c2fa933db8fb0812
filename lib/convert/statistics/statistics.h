/*
 * Statistics of what is written, counted while it is: for each variable of numbers, and each of
 * its levels, how many elements, how many missing, least, largest, mean and standard deviation.
 *
 * Values are those that readers show: fill values and NaN are missing, scale_factor and
 * add_offset applied.  Each target chunk is summed by itself (model/tally.h) and stands at its
 * number in a tree that is fixed by the layout: threads and memory do not change a bit.
 *
 * They lie beside the target, in the Zarr group TARGET.statistics.zarr, written when the target
 * is complete and removed before a target is written anew: what lies there is of the store as it
 * is.  Of a repository they are a group of the same commit.
 */
#ifndef CM_CONVERT_STATISTICS_STATISTICS_H
#define CM_CONVERT_STATISTICS_STATISTICS_H

#include "convert/job.h"

typedef struct cm_statistics cm_statistics; /* of one variable */

/*
 * Refuses what statistics cannot be had of; finds ranges and levels.  After the description.
 * TARGET (or NULL: nobody asks yet) is where they will lie.
 */
int cm_statistics_prepare(cm_job *job, const char *target, cm_error *err);
/* Room for V's chunks; V's transfer tells of each.  Once V's writer is made. */
int cm_statistics_watch(cm_job_var *v, cm_error *err);
/* Bytes that they take at most. */
uint64_t cm_statistics_nbytes(const cm_job *job);
/*
 * Tallies of V by this process, as text for another: appended to OUT, with a final NUL.  The other
 * hears the texts of all, which together tell of every chunk.
 */
int cm_statistics_tell(const cm_job_var *v, cm_buf *out, cm_error *err);
int cm_statistics_hear(cm_job_var *v, const char *text, size_t nbytes, cm_error *err);
/* CM_EEXIST where something lies where they will, and the job's options do not let it go. */
int cm_statistics_check_place(const cm_job *job, const char *target, cm_error *err);
/* Whether those of TARGET are there, whole.  NET, which may be NULL, reaches a bucket. */
int cm_statistics_are_there(const char *target, cm_net *net, bool *out, cm_error *err);
/* Removes the statistics of an older store at TARGET. */
int cm_statistics_forget(const char *target, cm_net *net, cm_error *err);
/* Writes those of JOB beside TARGET, and what they cost into the report. */
int cm_statistics_write(cm_job *job, const char *target, cm_error *err);
/*
 * The same into STORE, which holds nothing else, without consolidated metadata; the report takes
 * PLACE, where they will lie.  Of a target that has its statistics in itself: the arrays of each
 * variable are a group of its name.
 */
int cm_statistics_write_into(cm_job *job, cm_store *store, const char *target, char *place,
                             cm_error *err);
/* Calls VISIT with each array that will be written there, of RANK dimensions and one chunk. */
int cm_statistics_visit(const cm_job *job,
                        int (*visit)(void *context, const char *path, unsigned rank, cm_error *err),
                        void *context, cm_error *err);
void cm_statistics_free(cm_statistics *s); /* NULL accepted */

#endif
