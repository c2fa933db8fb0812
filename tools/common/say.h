/* Sentences for people, on standard error. */
#ifndef CM_TOOLS_SAY_H
#define CM_TOOLS_SAY_H

#include <stdarg.h>
#include <stdio.h>

/*
 * One line "TOOL: TEXT" on standard error.  Names come from files that may be
 * hostile, so what would control a terminal is shown (base/visible.h).
 */
void cm_say(const char *tool, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cm_vsay(const char *tool, const char *format, va_list args);

/* TEXT to TO, as a terminal may get it: base/visible.h. */
void cm_print_clean(const char *text, FILE *to);

/*
 * As fprintf, with all texts and characters that "%s" and "%c" take shown in that way: what FORMAT
 * has of lines and columns is the program's, the rest may be anybody's.  Knows the conversions
 * "cdiouxXeEfgG%s" with their flags, widths, precisions and the lengths "l", "ll" and "z".
 */
void cm_print(FILE *to, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
