/*
 * From settings to options.  A message of the library names a setting by its field in the
 * options of the verb, between backquotes: "raise `memory`".  Here the field becomes the
 * option that sets it, by the rows of the tool: "raise --memory".
 */
#ifndef CM_TOOLS_NAMING_H
#define CM_TOOLS_NAMING_H

#include "options.h"

/* TEXT with options for settings; to be freed.  NULL without memory. */
char *cm_tool_name_options(const cm_tool *tool, const char *text);

/* Name options in place; a text is unchanged if memory is short.  NULL accepted. */
void cm_tool_name_error(const cm_tool *tool, cm_error *err);
void cm_tool_name_text(const cm_tool *tool, char **text); /* on the heap, or *TEXT is NULL */
void cm_tool_name_texts(const cm_tool *tool, char **text, size_t n);

#endif
