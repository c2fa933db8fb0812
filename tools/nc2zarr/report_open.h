/* The command that shows in Python what was made. */
#ifndef CM_TOOLS_NC2ZARR_REPORT_OPEN_H
#define CM_TOOLS_NC2ZARR_REPORT_OPEN_H

#include <chunkmill/transform.h>

/* "Open it:" and the command, for a store, a repository or a document of references. */
void nc2zarr_print_opening(const cm_transform_options *options, const cm_transform_report *r);

#endif
