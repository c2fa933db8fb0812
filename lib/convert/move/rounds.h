/*
 * Rounds: an archive of more files than stay open is moved a stretch of files at a time, through
 * all variables, so that a file is opened, or an object fetched, once and not once for each.
 */
#ifndef CM_CONVERT_MOVE_ROUNDS_H
#define CM_CONVERT_MOVE_ROUNDS_H

#include "convert/job.h"

/*
 * In how many rounds the N transfers in LIST are moved; of several, each transfer says what is
 * moved together.  Counts and memory are those of one round.
 */
uint64_t cm_rounds_plan(const cm_job *job, cm_transfer *list, size_t n);

#endif
