/* The parts of the rechunk program. */
#ifndef CM_TOOLS_RECHUNK_H
#define CM_TOOLS_RECHUNK_H

#include <chunkmill/transform.h>

#include "../common/options.h"
#include "../common/part.h"

typedef struct rechunk_values {
    cm_transform_options o; /* what most options set */
    cm_net_settings net;
    bool digest;
    const char *append; /* a dimension; or NULL */
    bool recheck;
    int append_rest;
    cm_part_values part;
} rechunk_values;

extern const cm_tool RECHUNK;

/* The result, or under --dry-run the plan, as text on standard output. */
void rechunk_print_summary(const cm_transform_options *options, const cm_transform_report *report,
                           const cm_common_options *common);
/* The part of it that compares plan and bound: one row an array. */
void rechunk_print_plan(const cm_transform_report *report);
/* -v after a run: what was counted against what was planned. */
void rechunk_print_counts(const cm_transform_report *report);

/* A plan's name as it is printed: "copy", "sweep", ... */
const char *rechunk_plan_name(cm_plan_kind plan);
/* Whether N lengths are a shard's: an array without shards has zeros there. */
bool rechunk_sharded(unsigned rank, const uint64_t *shard);
/* Whether every count came out as planned. */
bool rechunk_as_planned(const cm_transform_variable *array);

/* The one JSON document of --json, described by tools/schema/rechunk.json.  FAILURE may be NULL. */
int rechunk_print_json(const cm_transform_options *options, const cm_transform_report *report,
                       const cm_error *failure, cm_error *err);

/* `rechunk --digest STORE...`.  Returns the exit status. */
int rechunk_digest(const cm_net_settings *net, const cm_common_options *common,
                   const cm_texts *paths);

#endif
