#ifndef CM_CONVERT_SINK_RULES_H
#define CM_CONVERT_SINK_RULES_H

#include <chunkmill/transform.h>

/* CM_EINVAL, naming the option, where O asks for what its sink leaves no choice of. */
int cm_sink_check_options(const cm_transform_options *o, cm_error *err);

#endif
