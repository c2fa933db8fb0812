/* A command line to run again: what hints are made of. */
#ifndef CM_TOOLS_AGAIN_H
#define CM_TOOLS_AGAIN_H

#include "options.h"

/*
 * ARGV, which was parsed, as one could type it with more options at its end: without "--", and
 * without the options named in WITHOUT, which NULL ends.  NULL: no memory.
 */
char *cm_again_command(const cm_tool *tool, int argc, char **argv, const char *const *without);
/* The options of that alone, each word after a space. */
char *cm_again_options(const cm_tool *tool, int argc, char **argv, const char *const *without);

#endif
