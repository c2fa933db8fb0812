/*
 * Writes FlexBuffers (flatbuffers.dev/flexbuffers): values of metadata, and the configuration of a
 * repository.
 */
#ifndef CM_FORMAT_ICECHUNK_FLEX_WRITE_H
#define CM_FORMAT_ICECHUNK_FLEX_WRITE_H

#include "base/json.h"

/* The content of OUT becomes J.  Every number takes 8 bytes. */
int cm_flex_write(const cm_json *j, cm_buf *out, cm_error *err);

#endif
