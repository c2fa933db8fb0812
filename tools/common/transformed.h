/* The part of a transform's --json document that nc2zarr and rechunk share. */
#ifndef CM_TOOLS_TRANSFORMED_H
#define CM_TOOLS_TRANSFORMED_H

#include <chunkmill/transform.h>

#include "document.h"

void cm_transform_put_verification(cm_document *doc, cm_json *o,
                                   const cm_transform_options *options,
                                   const cm_transform_report *r);
/* Member "inodes" of O, where there are many files, or too few inodes for them. */
void cm_transform_put_inodes(cm_document *doc, cm_json *o, const cm_transform_report *r);
void cm_transform_put_memory(cm_document *doc, cm_json *o, const cm_transform_report *r);
void cm_transform_put_stages(cm_document *doc, cm_json *o, const cm_transform_report *r);

#endif
