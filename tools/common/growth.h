/* Reports the growth of a store by --append: lines of the summaries, and a member of --json. */
#ifndef CM_TOOLS_GROWTH_H
#define CM_TOOLS_GROWTH_H

#include <chunkmill/transform.h>

#include "document.h"
#include "options.h"

/*
 * Refuses options that a store which grows leaves no choice of, by the table of the library, before
 * anything is opened.  ASKED is "append" or "replace"; OF_FILES: files are added, not another
 * store.  Returns CM_TOOL_RUN where there is none.
 */
int cm_growth_refuse(const cm_tool *tool, const cm_common_options *common, const char *asked,
                     const cm_transform_options *o, bool of_files);
/* Whether that table refuses OPTION, however it is given. */
bool cm_growth_forbids(const cm_tool *tool, const char *option, bool of_files);

/* ": time 20 to 40 from " */
void cm_growth_print(const cm_append_report *a);
/* "  Nothing is to be added; ...". */
void cm_growth_print_nothing(const cm_append_report *a);
/* Prints the steps held back, and the files that were not read; nothing if there are none. */
void cm_growth_print_rest(const cm_append_report *a);
/* Member "append" of O; null where the store did not grow. */
void cm_growth_document(cm_document *doc, cm_json *o, const cm_append_report *a);

#endif
