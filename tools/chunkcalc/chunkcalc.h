/* The parts of the chunkcalc program. */
#ifndef CM_TOOLS_CHUNKCALC_H
#define CM_TOOLS_CHUNKCALC_H

#include <stdio.h>

#include <chunkmill/chunkcalc.h>

#include "../common/outputs.h"

typedef enum chunkcalc_format {
    FORMAT_TABLE,
    FORMAT_CSV,
    FORMAT_JSON,
    FORMAT_MARKDOWN
} chunkcalc_format;

typedef struct chunkcalc_values {
    const char *sample;
    cm_list read, chunks;
    const char *shards, *shape, *dtype, *align, *variable;
    uint64_t itemsize, batch;
    double step_time;
    bool recommend, audit, stats;
    uint64_t min_bytes, max_bytes;
    int objective; /* cm_chunkcalc_objective */
    int storage;   /* position in "local|nfs|s3" */
    double latency, bandwidth, decode, concurrency, ratio;
    int format; /* chunkcalc_format */
    const char *plot;
    bool overwrite;
} chunkcalc_values;

extern const cm_tool CHUNKCALC;

/* Everything but JSON, on standard output.  CM_ENOMEM. */
int chunkcalc_print(const cm_chunkcalc_report *report, const chunkcalc_values *values,
                    cm_error *err);

/* The one JSON document, described by tools/schema/chunkcalc.json.  FAILURE may be NULL. */
int chunkcalc_print_json(const cm_chunkcalc_report *report, const cm_error *failure, cm_error *err);

/* Draws the first read's chunks and bytes against the chunk size into FILE, .svg or .png. */
int chunkcalc_plot(const cm_chunkcalc_report *report, cm_outfile *file, cm_error *err);
/* CM_EINVAL unless PATH ends in .svg or .png. */
int chunkcalc_plot_check(const char *path, cm_error *err);

#endif
