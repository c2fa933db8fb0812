#ifndef CM_TOOLS_CHUNKCALC_ANSWER_H
#define CM_TOOLS_CHUNKCALC_ANSWER_H

#include <chunkmill/chunkcalc.h>

/*
 * Prints the recommendation of R in a few lines: the chunks, or that the present ones are to be
 * kept, the whole command, and why.  SHARDS_GIVEN: the command names shards also where there are
 * none.  CM_ENOMEM.
 */
int chunkcalc_print_answer(const cm_chunkcalc_report *r, bool shards_given, bool markdown,
                           cm_error *err);

#endif
