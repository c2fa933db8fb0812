/* Lines that the summaries of nc2zarr and rechunk share, on standard output. */
#ifndef CM_TOOLS_SUMMARY_H
#define CM_TOOLS_SUMMARY_H

#include <chunkmill/transform.h>

#include "options.h"

/*
 * cm_transform, with options of TOOL for settings in the report's sentences (naming.h).  Warnings
 * that there are before anything is written are said by then, unless COMMON says to be quiet.
 */
int cm_summary_transform(const cm_tool *tool, const cm_common_options *common,
                         const cm_transform_options *options, cm_transform_report *r,
                         cm_error *err);
/* The other warnings, and differences. */
void cm_summary_say(const cm_tool *tool, const cm_common_options *common,
                    const cm_transform_report *r);

/* "  LABEL: TEXT", TEXT coming from a file. */
void cm_print_remark(const char *label, const char *text);

/* "  VERB against WITH: N elements in T, no difference", or that nothing was compared. */
void cm_print_verdict(const char *verb, const char *with, const cm_transform_report *r);

/*
 * Of a target of many files: "  2,805 folders beside these files; --shards auto makes about 5
 * files"; of another one, nothing.
 */
void cm_print_inodes(const cm_transform_report *r);

/* Of a plan: "  Memory: at most PLANNED of LIMIT, N threads". */
void cm_print_planned_memory(uint64_t planned, uint64_t limit, unsigned nthreads);
/* Of what was done: "  T, RATE decoded, N threads, at most PEAK of memory". */
/* "  Statistics of 3 variables in x.statistics.zarr (0.02 s, 1.3 % of the work)". */
void cm_print_statistics(const char *folder, size_t nvariables, double seconds, double share);
void cm_print_cost(double seconds, uint64_t decoded_nbytes, unsigned nthreads, uint64_t peak);

/* Where the threads of TOOL spent their time; nothing where N is 0. */
void cm_print_stages(const char *tool, const cm_stage_time *stage, size_t n);

#endif
