/* The closing sentence of a session, and the command that would help. */
#ifndef CM_JOB_READBENCH_SENTENCE_H
#define CM_JOB_READBENCH_SENTENCE_H

#include "job/readbench/facts.h"

/* libnetcdf read: storage and decoding cannot be told apart. */
bool cm_readbench_by_library(const cm_readbench_session *s);

/* The bottleneck, and what to try; NULL and an error without memory. */
char *cm_readbench_sentence(const cm_readbench_session *s, const cm_readbench_facts *facts,
                            cm_error *err);

/*
 * "chunkcalc --sample time=1,lat=64 --variable tas --recommend era5.zarr", for the part of a
 * sample that decodes the most in vain.
 */
void cm_readbench_chunkcalc_text(const cm_readbench_session *s, char *buf, size_t size);

#endif
