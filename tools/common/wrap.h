/* Sentences in lines of a terminal's width. */
#ifndef CM_TOOLS_WRAP_H
#define CM_TOOLS_WRAP_H

#include <stdio.h>

/* Stands for a space at which no line ends. */
#define CM_WRAP_TIE "\x1f"

/* Columns of the terminal that FD is, from 40 to 200; 80 where it is none. */
unsigned cm_wrap_columns(int fd);

/*
 * TEXT, with all that would control a terminal shown, in lines of at most COLUMNS, where its words
 * allow: the first after INDENT spaces, the others after HANG.
 */
void cm_print_wrapped(FILE *to, unsigned columns, unsigned indent, unsigned hang, const char *text);

#endif
