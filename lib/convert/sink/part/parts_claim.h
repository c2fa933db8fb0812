/*
 * The claim of a part, what it made: how many objects, their bytes, and a digest of which objects
 * these are and how long.  It stands in the part's file "done", and that of every part in the file
 * "complete".
 *
 * A store whose folder somebody emptied beside its plan looks like one that nobody began; only
 * the objects themselves prove that a part is done.  Looking at one costs a stat(): a
 * fifth of the calls that made it.
 */
#ifndef CM_CONVERT_SINK_PART_PARTS_CLAIM_H
#define CM_CONVERT_SINK_PART_PARTS_CLAIM_H

#include "convert/sink/part/parts.h"
#include "model/digest.h"

typedef struct cm_part_claim {
    bool there; /* false: nobody claims anything */
    uint64_t nobjects, nbytes;
    char digest[33];
    char counted[33]; /* of what it counted (parts_counted.h); "": nothing */
} cm_part_claim;

bool cm_part_claims_agree(const cm_part_claim *a, const cm_part_claim *b);

/*
 * Objects and statistics that the parts FIRST to FIRST + N - 1 really have, in OUTPUT's store and
 * beside it, into OUT[0 .. N-1]; by several threads.
 */
int cm_part_claims_see(cm_job *job, const cm_output *output, uint64_t first, uint64_t n,
                       cm_part_claim *out, cm_error *err);

/* CLAIM as JSON; NULL: no memory. */
cm_json *cm_part_claim_json(const cm_part_claim *claim);

/*
 * Reads the claim of part NUMBER, in the job's plan, from its own file; or, with *COMPLETE set,
 * from the file "complete", where all parts are done.
 */
int cm_part_claim_read(const cm_job *job, const cm_beside *b, uint64_t number, bool *complete,
                       cm_part_claim *out, cm_error *err);

/*
 * Checks the claims of the parts FIRST to FIRST + N - 1 against STORE, and takes those back
 * that do not hold, so that whoever makes such a part begins it.  With the output's lock, and
 * where the parts are done.  *WRONG, to be freed: their numbers, as text; NULL: there is none.
 * *EXAMPLE is the first of them and what is THERE of what it claimed.
 */
typedef struct cm_part_lack {
    uint64_t number;
    cm_part_claim claimed, there;
} cm_part_lack;
int cm_part_claims_prove(cm_job *job, cm_output *out, uint64_t first, uint64_t n, char **wrong,
                         cm_part_lack *example, cm_error *err);

/* All parts are done, and their claims hold: the store is complete.  With the output's lock. */
int cm_part_claims_close(cm_job *job, cm_output *out, cm_error *err);
#define CM_PARTS_SNAPSHOT                                                                          \
    "snapshot" /* member of "complete": the commit that was made, if one was */

/* Opens the store of OUT, which is there, for a part. */
int cm_parts_join(cm_job *job, cm_output *out, cm_error *err);

#endif
