/* Results on standard output: aligned tables, shapes and JSON documents. */
#ifndef CM_TOOLS_PRINT_H
#define CM_TOOLS_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/json.h"

enum {
    CM_TABLE_COLUMNS = 16
};

/*
 * A table of text cells, filled row by row and printed with aligned columns, two
 * spaces between them.  Zero-initialise it, then set ncolumns and right.
 */
typedef struct cm_table {
    size_t ncolumns;              /* at most CM_TABLE_COLUMNS */
    bool right[CM_TABLE_COLUMNS]; /* columns aligned to the right: numbers */
    char **cell;
    size_t ncells, capacity;
    bool failed; /* a cell found no memory */
} cm_table;

void cm_table_cell(cm_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints all rows, each after INDENT spaces.  False when memory was lacking: nothing is printed. */
bool cm_table_print(const cm_table *table, int indent, FILE *to);
void cm_table_release(cm_table *table);

/*
 * "24x64x64", or "scalar" when RANK is 0, into BUF, which is returned; cut with "..." where it
 * is longer.
 */
/* "28-31x5": lengths from SHORTEST to LONGEST along the first dimension. */
char *cm_format_shapes(unsigned rank, const uint64_t *shortest, const uint64_t *longest, char *buf,
                       size_t size);
char *cm_format_shape(unsigned rank, const uint64_t *shape, char *buf, size_t size);

/* "83 %", "0.4 %" of WHOLE, "-" when WHOLE is 0, into BUF, which is returned. */
char *cm_format_percent(double part, double whole, char *buf, size_t size);

/* 1234567 as "1,234,567" into BUF, which is returned; 32 bytes suffice. */
char *cm_format_count(uint64_t n, char *buf, size_t size);

/* TEXT as one word of a shell: bare where that is safe, otherwise in single quotes. */
void cm_print_shell_word(const char *text, FILE *to);

/* J as one indented document and a newline.  Whether TO took it, cm_tool_finish asks. */
int cm_print_json(const cm_json *j, FILE *to, cm_error *err);

#endif
