/* A conversion of many files: a survey, and one store or several. */
#ifndef CM_TOOLS_NC2ZARR_ARCHIVE_H
#define CM_TOOLS_NC2ZARR_ARCHIVE_H

#include "../common/outputs.h"
#include "decide.h"
#include "nc2zarr.h"

#include <chunkmill/append.h>

typedef struct archive_job {
    const nc2zarr_values *v;
    const cm_common_options *common;
    nc2zarr_typed typed;
    cm_archive_options asked;
    cm_transform_options options;
    cm_append *append; /* NULL: a store is made */
    cm_archive *archive;
    const cm_archive_report **survey; /* of each store */
    size_t nstores;
    size_t ndecisions;
    nc2zarr_decisions decisions; /* of a survey, and where some are needed */
    size_t store;                /* that is converted */
    bool began;                  /* a conversion, which reports for itself */
    cm_transform_report report;
} archive_job;

/* A cm_run_job: converts JOB's store to the target of its options. */
int nc2zarr_convert_store(void *context, cm_error *err);

/* --store-per: all of them, each below the target.  STATUS is set to that of the last. */
int nc2zarr_convert_stores(archive_job *job, int *status);

/* Whether the places that --store-per makes may be made; CM_TOOL_RUN, or an exit status. */
int nc2zarr_check_stores(const nc2zarr_values *v, const char *output, const cm_outputs *outputs);

/* Whether --append or --replace may change OUTPUT: not a folder of stores; as above. */
int nc2zarr_check_grown(const nc2zarr_values *v, const char *output);

#endif
