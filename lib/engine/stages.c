#include "engine/stages.h"

const char *const cm_stage_names[CM_NSTAGES] = {"read",   "decode", "scatter",
                                                "encode", "write",  "wait"};

void cm_engine_stats_add(cm_engine_stats *sum, const cm_engine_stats *one)
{
    for (int i = 0; i < CM_NSTAGES; i++) {
        sum->stage_ns[i] += one->stage_ns[i];
        sum->stage_calls[i] += one->stage_calls[i];
    }
    sum->pieces += one->pieces;
    sum->passed += one->passed;
    sum->read_nbytes += one->read_nbytes;
}
