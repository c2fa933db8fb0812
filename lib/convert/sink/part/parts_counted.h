/*
 * Tallies of a part for `statistics`, in the file "part-K.statistics": one document with a text for
 * each variable (statistics.h).  The part's claim names the digest of the file's bytes, so that a
 * part without its tallies is not done.  The files stay beside a store that is complete: a part
 * that is made again is counted with the others once more.
 */
#ifndef CM_CONVERT_SINK_PART_PARTS_COUNTED_H
#define CM_CONVERT_SINK_PART_PARTS_COUNTED_H

#include "convert/sink/part/parts.h"

#define CM_PART_COUNTED "statistics"

/* Writes that of the job's own part. */
int cm_part_counted_write(const cm_job *job, const cm_beside *b, cm_error *err);
/* The digest of part NUMBER's file; "": there is none. */
int cm_part_counted_digest(const cm_beside *b, uint64_t number, char digest[33], cm_error *err);
/* The job's variables hear what all parts counted. */
int cm_parts_counted_join(cm_job *job, const cm_beside *b, cm_error *err);

#endif
