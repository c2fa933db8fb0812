/* Where the chunks of each part of a commit lie: the file "part-K.places" (icechunk/parcel.h). */
#ifndef CM_CONVERT_SINK_ICECHUNK_PART_PLACES_H
#define CM_CONVERT_SINK_ICECHUNK_PART_PLACES_H

#include "convert/sink/icechunk/writing.h"
#include "convert/sink/part/parts_claim.h"

#define CM_PART_PLACES "places"

/* Writes that of the job's own part, from R's records; it is on the disk then. */
int cm_part_places_write(cm_job *job, cm_store *session, cm_repository *r, cm_error *err);
/*
 * Claims for part NUMBER the chunks that its file tells of, as far as the files are there that they
 * lie in.
 */
int cm_part_places_see(cm_job *job, cm_store *session, const cm_repository *r, uint64_t number,
                       cm_part_claim *out, cm_error *err);
/* Records all of them, of every part, as R's own. */
int cm_part_places_take(cm_job *job, cm_store *session, cm_repository *r, cm_error *err);

#endif
