/*
 * --part and --parts: which part of a conversion this process does, and what is said of
 * it and the others.
 */
#ifndef CM_TOOLS_PART_H
#define CM_TOOLS_PART_H

#include <chunkmill/transform.h>

#include "document.h"
#include "options.h"

/* Values of the options; NULL and 0: not given. */
typedef struct cm_part_values {
    const char *part;
    unsigned nparts;
    bool status;
} cm_part_values;

/*
 * From the values of the options and the launcher.  Says on
 * standard error, unless QUIET, what was found.  Returns CM_TOOL_RUN or an exit status.
 */
int cm_part_choose(const cm_tool *tool, const cm_part_values *v, bool quiet, cm_part_choice *out);

/* ARGV without what names a part, after the program's name; to be freed; NULL: no memory. */
char *cm_part_command(const cm_tool *tool, int argc, char **argv);
/* Of tasks of one step the first alone shows progress, of all, unless it was asked for. */
int cm_part_progress(const cm_part_choice *part, int progress);

/* --parts-status.  Returns the exit status. */
int cm_part_say_status(const cm_tool *tool, const cm_net_settings *settings,
                       const cm_common_options *common, const cm_texts *paths);

/* Member "part" of the document O: null where R is about no part. */
void cm_part_document(cm_document *doc, cm_json *o, const cm_part_report *r);
/* How the parts stand, for people, on standard output. */
void cm_part_print(const cm_part_report *r);

#endif
