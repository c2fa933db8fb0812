/* The closing sentence of a session. */
#ifndef CM_JOB_READBENCH_SENTENCE_H
#define CM_JOB_READBENCH_SENTENCE_H

#include "job/readbench/facts.h"

/* What the cause is, and what would help; NULL and an error without memory. */
char *cm_readbench_sentence(const cm_readbench_session *s, const cm_readbench_facts *facts,
                            cm_error *err);

#endif
