/* Chunks, or objects, of a variable that its source stores: open.c finds them. */
#ifndef CM_CONVERT_SOURCE_STORED_H
#define CM_CONVERT_SOURCE_STORED_H

#include "convert/source/presence.h"

typedef struct cm_stored {
    bool as_objects;      /* not understood: the objects of the source are copied */
    cm_presence presence; /* of a Zarr source's chunks; zeroed otherwise */
} cm_stored;

#endif
