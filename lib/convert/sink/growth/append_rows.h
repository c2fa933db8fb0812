/*
 * Rows of chunks of an array along the dimension that grows, as the store has it and as it will be.
 *
 * A rectilinear grid lists the length of each row.  Rows that are there keep theirs; new elements
 * come in rows of their own, as long as the chunks that they lie in already.
 */
#ifndef CM_CONVERT_SINK_GROWTH_APPEND_ROWS_H
#define CM_CONVERT_SINK_GROWTH_APPEND_ROWS_H

#include "format/dataset.h"
#include "model/cuts.h"

typedef struct cm_rows {
    uint64_t nbefore, n; /* in the store, and in the array as it will be */
    uint64_t chunk;      /* length of each, where the grid is regular along the dimension */
    bool listed;         /* it is not: */
    cm_cuts cuts;        /* all N, the last one whole */
} cm_rows;

/* Elements of the dimension, or rows, from FIRST on to END. */
typedef struct cm_row_range {
    uint64_t first, end;
} cm_row_range;

/*
 * Rows of T, which has WAS elements along AXIS and will have LENGTH.  Of a list those that are
 * there: _add makes the others.
 */
int cm_rows_begin(const cm_variable *t, unsigned axis, uint64_t was, uint64_t length, cm_rows *out,
                  cm_error *err);
void cm_rows_release(cm_rows *rows); /* zeroed memory is fine */
/* Appends COUNT rows of LENGTH to a list. */
int cm_rows_add(cm_rows *rows, uint64_t length, uint64_t count, cm_error *err);
/*
 * Appends rows up to element END: one between each two of the N elements of BORDER, which rise, or
 * several where that would be more than twice as long as the longest that the store has.
 */
int cm_rows_extend(cm_rows *rows, uint64_t end, const uint64_t *border, size_t n, cm_error *err);

/* The row that ELEMENT lies in, and the first element of row K, which may be N. */
uint64_t cm_rows_find(const cm_rows *rows, uint64_t element);
uint64_t cm_rows_first(const cm_rows *rows, uint64_t k);
uint64_t cm_rows_length(const cm_rows *rows, uint64_t k);
/* The first of the rows from K on that is of another length; at most END. */
uint64_t cm_rows_alike(const cm_rows *rows, uint64_t k, uint64_t end);

#endif
