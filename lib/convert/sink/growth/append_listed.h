/* Consolidated metadata of an array that grows, held against its own documents. */
#ifndef CM_CONVERT_SINK_GROWTH_APPEND_LISTED_H
#define CM_CONVERT_SINK_GROWTH_APPEND_LISTED_H

#include "base/json_place.h"
#include "convert/sink/growth/append_commit.h"

/*
 * CM_EFORMAT where they say other types, fill values or attributes: readers of the two would take
 * new elements for others.  TEXT is the document that lists: in version 3 it does so AT a place, in
 * version 2 in LIST, by the names of documents.
 */
int cm_listed_check_v3(cm_store *store, const cm_growth *g, const char *text, cm_json_place at,
                       cm_error *err);
int cm_listed_check_v2(cm_store *store, const cm_growth *g, const char *text, cm_json_place list,
                       cm_error *err);

#endif
