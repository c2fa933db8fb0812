/* The parts of the nc2zarr program. */
#ifndef CM_TOOLS_NC2ZARR_H
#define CM_TOOLS_NC2ZARR_H

#include <stdio.h>

#include <chunkmill/transform.h>

#include "../common/options.h"
#include "../common/part.h"

typedef struct nc2zarr_values {
    cm_transform_options o; /* what most options set */
    cm_net_settings net;
    const char *append;
    cm_part_values part;
} nc2zarr_values;

extern const cm_tool NC2ZARR;

/*
 * Refuses what the command line may ask for but this build does not do, with a
 * sentence.  Returns CM_TOOL_RUN when there is nothing to refuse.
 */
int nc2zarr_refuse(const nc2zarr_values *v, const cm_common_options *common, const cm_texts *paths);

/* The summary for people, of what was made or under --dry-run would be, on standard output. */
void nc2zarr_print_summary(const cm_transform_options *options, const cm_transform_report *report,
                           const cm_common_options *common);

/* The one JSON document of --json, described by tools/schema/nc2zarr.json.  FAILURE may be NULL. */
int nc2zarr_print_json(const cm_transform_options *options, const cm_transform_report *report,
                       const cm_error *failure, cm_error *err);

#endif
