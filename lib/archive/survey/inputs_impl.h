/* The list of inputs from inside: inputs.c searches folders, inputs_remote.c buckets. */
#ifndef CM_ARCHIVE_SURVEY_INPUTS_IMPL_H
#define CM_ARCHIVE_SURVEY_INPUTS_IMPL_H

#include "archive/survey/inputs.h"

/* One more, last; zeroed but for its path and its place in the order. */
int cm_inputs_add(cm_inputs *in, const char *path, cm_input **out, cm_error *err);

bool cm_input_is_pattern(const char *text);
/* By its ending. */
bool cm_input_is_netcdf(const char *name);
/* All of these endings, for messages. */
#define CM_INPUT_ENDINGS ".nc, .nc4, .cdf, .h5, .hdf5 or .he5"

/*
 * Resolves TEXT, which is behind a network.  A named object is looked up later, by cm_inputs_look.
 */
int cm_inputs_find_remote(cm_inputs *in, const char *text, bool from_list, cm_error *err);
/* Asks about all objects that were named, several at once. */
int cm_inputs_look(cm_inputs *in, cm_error *err);

#endif
