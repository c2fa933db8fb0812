#ifndef CM_TOOLS_CHUNKCALC_ANSWER_H
#define CM_TOOLS_CHUNKCALC_ANSWER_H

#include "chunkcalc.h"

/*
 * Prints the recommendation of R in a few lines: the chunks, or that the present ones are to be
 * kept, the whole command, and why.  The command has the options of V that it needs to read the
 * store, and names shards where V does, also where there are none.  CM_ENOMEM.
 */
int chunkcalc_print_answer(const cm_chunkcalc_report *r, const chunkcalc_values *v, cm_error *err);

#endif
