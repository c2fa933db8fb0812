#ifndef CM_CONVERT_SINK_ICECHUNK_UNLIKE_H
#define CM_CONVERT_SINK_ICECHUNK_UNLIKE_H

#include "convert/sink/icechunk/node_list.h"

/*
 * An array of SNAPSHOT that stays beside arrays of LIST, with a dimension of another length than
 * they have: xarray opens no group with both.  *TELLS is a sentence, which the caller frees; NULL:
 * there is none.
 */
int cm_unlike_find(const cm_fb_table *snapshot, const cm_node_list *list, char **tells,
                   cm_error *err);

#endif
