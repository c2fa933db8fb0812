/*
 * Lengths of the chunks that an array with a rectilinear grid gets: those of the files' chunks
 * where the grid takes these as they are; else of what each file, or each chunk of another source,
 * gives.
 */
#ifndef CM_CONVERT_SINK_GROWTH_APPEND_LENGTHS_H
#define CM_CONVERT_SINK_GROWTH_APPEND_LENGTHS_H

#include "convert/sink/growth/append.h"

/* Sets the rows of G, which is T and gets elements of V; of a regular grid, too. */
int cm_append_choose_rows(cm_job *job, cm_append_state *s, const cm_job_var *v,
                          const cm_variable *t, cm_grown *g, cm_error *err);
/*
 * The grid of W, a window of G whose first row is ROW: all its rows have one length, or it is what
 * the files have, whose stored bytes pass where the codecs are the same.
 */
int cm_append_set_lengths(const cm_grown *g, uint64_t row, cm_job_var *w, cm_error *err);

#endif
