/*
 * The source of an append that is one dataset, as rechunk has it: it holds what the store was
 * made of, and new elements behind them.
 *
 * The two are joined: the store gives the elements that it has, the source the others.  What lies
 * in chunks behind the old end is read from the source itself, with the plans of a source that is
 * moved whole.
 */
#ifndef CM_CONVERT_SINK_GROWTH_APPEND_SOURCE_H
#define CM_CONVERT_SINK_GROWTH_APPEND_SOURCE_H

#include "convert/sink/growth/append.h"

typedef struct cm_append_source cm_append_source;

/*
 * Puts the joined dataset in the place of JOB's source, whose variables are chosen: each is one
 * of the store, with dimensions, type and meaning of its own.  What is to be compared before
 * anything is written are the dataset's checks.
 */
int cm_append_source_join(cm_job *job, cm_error *err);
/* Makes V, whose elements are JOB's, the variable of the source itself. */
void cm_append_source_of(const cm_job *job, cm_job_var *v);
/* How the source stores V, a variable of the joined dataset; nothing for another job. */
int cm_append_source_layout(const cm_job *job, const cm_variable *v, cm_transform_variable *out,
                            cm_error *err);
void cm_append_source_free(cm_append_source *s); /* NULL accepted */

#endif
