/*
 * A dataset laid over another one: the variables of BELOW, and after them those of a
 * specification, which are made of BELOW's.
 *
 * Variable I of BELOW is variable I of the overlay.  The specification's files are BELOW,
 * open; the variables that its parts name are prepared before elements are read.
 */
#ifndef CM_FORMAT_OVERLAY_H
#define CM_FORMAT_OVERLAY_H

#include "format/multi/multi.h"

/*
 * SPEC and BELOW are borrowed, and live until the overlay is closed; as long as it is open,
 * variables of BELOW are prepared by it alone.
 */
int cm_overlay_open(cm_dataset *below, const cm_multi_spec *spec, const cm_dataset_options *options,
                    cm_dataset **out, cm_error *err);

#endif
