/* Groups of statistics, by the mark that nc2zarr and rechunk leave in their attributes. */
#ifndef CM_FORMAT_COUNTED_H
#define CM_FORMAT_COUNTED_H

#include <string.h>

#include "base/json.h"

#define CM_COUNTED_MARK  "chunkmill"
#define CM_COUNTED_VALUE "statistics"

/* Whether ATTRS, which may be NULL, are those of such a group. */
static inline bool cm_group_is_counted(const cm_json *attrs)
{
    const char *mark = cm_json_text(cm_json_member(attrs, CM_COUNTED_MARK), NULL);
    return mark != NULL && strcmp(mark, CM_COUNTED_VALUE) == 0;
}

#endif
