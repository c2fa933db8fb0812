/* Sentences for people, on standard error. */
#ifndef CM_TOOLS_SAY_H
#define CM_TOOLS_SAY_H

#include <stdarg.h>
#include <stdio.h>

/*
 * One line "TOOL: TEXT" on standard error.  Names come from files that may be
 * hostile, so control characters are shown as \xNN and never reach the terminal.
 */
void cm_say(const char *tool, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cm_vsay(const char *tool, const char *format, va_list args);

/* TEXT to TO, with control characters shown as \xNN. */
void cm_print_clean(const char *text, FILE *to);

#endif
