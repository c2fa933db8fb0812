/*
 * A dataset laid over another one: the variables of BELOW, followed by those of a specification
 * made of BELOW's variables.
 *
 * Variable I of BELOW is variable I of the overlay.  The specification's files are BELOW, open; the
 * variables that its parts name are prepared before elements are read.
 */
#ifndef CM_FORMAT_OVERLAY_H
#define CM_FORMAT_OVERLAY_H

#include "format/multi/multi.h"

/*
 * SPEC and BELOW are borrowed and must outlive the overlay, which alone prepares variables of BELOW
 * while it is open.
 */
int cm_overlay_open(cm_dataset *below, const cm_multi_spec *spec, const cm_dataset_options *options,
                    cm_dataset **out, cm_error *err);

#endif
