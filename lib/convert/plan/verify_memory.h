/*
 * Memory of a verification, for its own plan and for that of the conversion before it:
 *
 *     held by the process + what libnetcdf holds of the file
 *   + threads x (a chunk of the store, stored and decoded, + a box of both sides)
 *
 * Boxes may be small, but each reads the chunks that it meets; so a box has at least
 * a sixteenth of what a chunk of the store takes.
 */
#ifndef CM_CONVERT_PLAN_VERIFY_MEMORY_H
#define CM_CONVERT_PLAN_VERIFY_MEMORY_H

#include "convert/job.h"

enum {
    CM_STRING_ESTIMATE = 64 /* bytes that a variable-length element is taken for */
};

typedef struct cm_verify_memory { /* zeroed: nothing is verified */
    uint64_t held;                /* by the process */
    double library;               /* of the variables that were added, the most */
    double reader;
} cm_verify_memory;

/*
 * Counts V, whose array in the store has chunks of CHUNK_NELEM elements, encoded by CHAIN (NULL:
 * strings).
 */
void cm_verify_memory_add(cm_verify_memory *m, const cm_job_var *v, const cm_chain *chain,
                          uint64_t chunk_nelem);
/* The least that N threads need, in bytes. */
double cm_verify_memory_least(const cm_verify_memory *m, unsigned n);
/*
 * How many threads, at most MOST, find room below LIMIT, and in *share what the boxes
 * of each may take; 0: not one.
 */
unsigned cm_verify_memory_threads(const cm_verify_memory *m, uint64_t limit, unsigned most,
                                  double *share);

/*
 * Whether digests verify as much as comparing elements, with each chunk decoded once: this run
 * makes all of the store, no variable's elements change, and no other library reads the source.
 */
bool cm_job_compares_digests(const cm_job *job);
/* Bytes beside what the process holds: the least that verifying after the run needs. */
size_t cm_job_least_to_verify(const cm_job *job);

#endif
