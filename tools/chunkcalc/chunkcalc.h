/* The parts of the chunkcalc program. */
#ifndef CM_TOOLS_CHUNKCALC_H
#define CM_TOOLS_CHUNKCALC_H

#include <chunkmill/chunkcalc.h>
#include <chunkmill/passport.h>

#include "../common/outputs.h"

typedef enum chunkcalc_format {
    FORMAT_TABLE,
    FORMAT_CSV,
    FORMAT_JSON,
    FORMAT_MARKDOWN
} chunkcalc_format;

typedef struct chunkcalc_values {
    cm_chunkcalc_options o; /* what most options set */
    cm_net_settings net;
    bool stats;
    int format; /* chunkcalc_format */
    const char *plot;
    const char *report;
    bool overwrite;
} chunkcalc_values;

extern const cm_tool CHUNKCALC;

/* Everything but JSON, on standard output.  CM_ENOMEM. */
int chunkcalc_print(const cm_chunkcalc_report *report, const chunkcalc_values *values,
                    const cm_common_options *common, cm_error *err);

/*
 * The one JSON document, described by tools/schema/chunkcalc.json; PASSPORT is that of the page
 * PATH.  PASSPORT and FAILURE may be NULL.
 */
int chunkcalc_print_json(const cm_chunkcalc_report *report, const char *path,
                         const cm_passport *passport, const cm_error *failure, cm_error *err);

/* Draws the first read's chunks and bytes against the chunk size into FILE. */
int chunkcalc_plot(const cm_chunkcalc_report *report, cm_outfile *file, cm_error *err);
/* CM_EINVAL unless PATH ends in .svg. */
int chunkcalc_plot_check(const char *path, cm_error *err);

#endif
