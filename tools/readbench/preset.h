/* Measurements that others have published, as one command. */
#ifndef CM_TOOLS_READBENCH_PRESET_H
#define CM_TOOLS_READBENCH_PRESET_H

#include "readbench.h"

/*
 * --preset: sets what VALUES' options leave open as the measurement had it, and makes its settings
 * the points of OUT.  *SAMPLE, to be freed, holds what VALUES then points to.  CM_EINVAL where an
 * option is at odds with it.
 */
int readbench_preset_make(readbench_values *values, const cm_common_options *common,
                          const cm_texts *paths, readbench_sweep *out, char **sample,
                          cm_error *err);

/* Adds the comparison with what was published to the notes of R. */
int readbench_preset_judge(cm_readbench_report *r, cm_error *err);

#endif
