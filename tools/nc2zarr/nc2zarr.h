/* The parts of the nc2zarr program. */
#ifndef CM_TOOLS_NC2ZARR_H
#define CM_TOOLS_NC2ZARR_H

#include <chunkmill/archive.h>
#include <chunkmill/transform.h>

#include "../common/document.h"
#include "../common/options.h"
#include "../common/part.h"

typedef struct nc2zarr_values {
    cm_transform_options o; /* what most options set */
    cm_net_settings net;
    cm_archive_options a; /* how many files become one */
    bool survey;
    bool consolidate;
    const char *append;  /* a dimension; or NULL */
    const char *replace; /* DIM=RANGE; or NULL */
    bool recheck;
    int append_rest;
    cm_part_values part;
} nc2zarr_values;

extern const cm_tool NC2ZARR;

/*
 * Refuses what the command line may ask for but this build does not do, with a
 * sentence.  Returns CM_TOOL_RUN when there is nothing to refuse.
 */
int nc2zarr_refuse(const nc2zarr_values *v, const cm_common_options *common, const cm_texts *paths);

/*
 * Whether the inputs are more than one plain file, or an option asks for what only files
 * together have.
 */
bool nc2zarr_is_archive(const nc2zarr_values *v, const cm_common_options *common,
                        const cm_texts *paths);

/* --consolidate, of the one store in PATHS.  Returns the exit status. */
int nc2zarr_consolidate(const nc2zarr_values *v, const cm_common_options *common,
                        const cm_texts *paths);

/* The command line as it was typed. */
typedef struct nc2zarr_typed {
    int argc;
    char **argv;
    const char *output; /* NULL: none was named */
    cm_texts inputs;
    bool ordered; /* the order of INPUTS counts */
} nc2zarr_typed;

/* Surveys, and converts what needs no decision.  Returns the exit status. */
int nc2zarr_archive(const nc2zarr_values *v, const cm_common_options *common,
                    const cm_texts *inputs, const char *output, const char *command,
                    const nc2zarr_typed *typed);

/* survey_line.c: INPUTS, each after a space, or the pattern that gives them in any order. */
void nc2zarr_print_inputs(const cm_texts *inputs, bool ordered, FILE *f);
/*
 * NAME, or with "-2", "-3", ... before its ending: the first from number FROM on that is not there.
 * NULL: no memory.
 */
char *nc2zarr_free_output(const char *name, unsigned from);

/* survey_draw.c: which steps are in how many files, on standard output. */
void nc2zarr_draw_coverage(const cm_archive_axis *axis);
/* The findings of a conversion, on standard error. */
void nc2zarr_say_findings(const cm_archive_report *report, const cm_common_options *common);
/* The first findings that need no decision and change the store, as lines of a summary. */
void nc2zarr_print_notes(const cm_archive_report *report);

struct nc2zarr_decisions;
/* The document of --survey --json, with the command line of D.  FAILURE may be NULL. */
int nc2zarr_print_survey_json(const cm_archive *archive, const cm_archive_report *const *report,
                              size_t n, const struct nc2zarr_decisions *d, const cm_error *failure,
                              cm_error *err);

/* Member "file_attributes": what files of store I say and the store does not say alike. */
void nc2zarr_put_left_out(cm_document *doc, cm_json *o, const cm_archive *archive, size_t i);

/* The option, with its value, that decides F; "" where there is none. */
const char *nc2zarr_option_for(const cm_finding *f, char *buf, size_t size);

/* Of an archive, what a conversion is of. */
typedef struct nc2zarr_of {
    const cm_archive *archive;
    const cm_archive_report *survey; /* of the store */
    size_t store;
    const char *name; /* of the store */
    cm_json *stores;  /* its document is appended to these, not printed; or NULL */
} nc2zarr_of;

/*
 * Reports STATUS of a conversion in sentences and results; OF is NULL for one file.
 * Returns the exit status.
 */
int nc2zarr_report(int status, const cm_transform_options *asked, const cm_transform_report *r,
                   const cm_common_options *common, const nc2zarr_typed *typed,
                   const nc2zarr_of *of, const cm_error *err);
/*
 * The summary for people, of what was made or under --dry-run would be, on standard output.
 * SURVEY is that of several files, or NULL.
 */
void nc2zarr_print_summary(const cm_transform_options *options, const cm_transform_report *report,
                           const cm_archive_report *survey, const cm_common_options *common,
                           const nc2zarr_typed *typed);

/* The document of --json, described by tools/schema/nc2zarr.json.  FAILURE may be NULL. */
cm_json *nc2zarr_document(cm_document *doc, const cm_transform_options *options,
                          const cm_transform_report *report, const nc2zarr_of *of,
                          const nc2zarr_typed *typed, const cm_error *failure);

#endif
