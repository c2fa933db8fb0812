/* Measures what the reads of a log take here, as the scale of a prediction. */
#ifndef CM_TOOLS_CHUNKCALC_REPLAY_H
#define CM_TOOLS_CHUNKCALC_REPLAY_H

#include <chunkmill/chunkcalc.h>

/*
 * Replays some of the reads on the store as it is (readbench --replay), and sets the rates of all
 * layouts in R by what they took: a read costs some time whatever its chunks, and the rest goes by
 * the cost model.  Where the store cannot be measured, rates stay the model's, and a note says so.
 */
int chunkcalc_measure_rate(const cm_chunkcalc_options *o, cm_chunkcalc_report *r, cm_error *err);

#endif
