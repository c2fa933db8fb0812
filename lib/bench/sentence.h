/* The closing sentence of a session. */
#ifndef CM_BENCH_SENTENCE_H
#define CM_BENCH_SENTENCE_H

#include "bench/facts.h"

/* The cause and S's proposal in a sentence; NULL and an error without memory. */
char *cm_readbench_sentence(const cm_readbench_session *s, const cm_readbench_facts *facts,
                            cm_error *err);

#endif
