/* Rows of text cells, written as an aligned table, as CSV or as Markdown. */
#ifndef CM_TOOLS_CHUNKCALC_GRID_H
#define CM_TOOLS_CHUNKCALC_GRID_H

#include "chunkcalc.h"

enum {
    GRID_COLUMNS = 32
};

/* Zero-initialise.  The first row is the header and sets the number of columns. */
typedef struct grid {
    size_t ncolumns;
    bool left[GRID_COLUMNS]; /* text; numbers stand to the right */
    char **cell;
    size_t ncells, capacity;
    bool failed; /* a cell found no memory */
} grid;

void grid_column(grid *g, const char *name, bool left);
void grid_cell(grid *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* CM_ENOMEM, with nothing printed, when a cell found no memory. */
int grid_print(const grid *g, chunkcalc_format format, FILE *to, cm_error *err);
void grid_release(grid *g);

#endif
