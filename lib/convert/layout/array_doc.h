/* The metadata of an array as it will be written: describe.c decides. */
#ifndef CM_CONVERT_LAYOUT_ARRAY_DOC_H
#define CM_CONVERT_LAYOUT_ARRAY_DOC_H

#include "engine/engine.h"
#include "format/zarr/meta.h"

typedef struct cm_array_doc {
    cm_zarr_meta meta;
    cm_pass pass;       /* stored bytes go through: the layout's, or what its words allow */
    bool fill_survives; /* readers get meta.fill bit for bit */
    bool masks_fill;    /* readers take meta.fill for missing, which the source does not */
    bool keeps_words;   /* META is the source's document but for what was asked for */
    bool fill_stays;    /* what was never written becomes meta.fill, which readers see without
                           chunks */
} cm_array_doc;

#endif
