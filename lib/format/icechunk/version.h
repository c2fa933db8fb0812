/* Which snapshot of a repository a user means. */
#ifndef CM_FORMAT_ICECHUNK_VERSION_H
#define CM_FORMAT_ICECHUNK_VERSION_H

#include "format/icechunk/schema.h"
#include "store/store.h"

/*
 * VERSION is the name of a branch, "tag:NAME" or the letters of a snapshot's id.  CM_ENOTFOUND:
 * ROOT is not a repository, or has no such version.
 */
int cm_ice_version_find(cm_store *root, const char *version, uint8_t id[CM_ICE_ID], cm_error *err);

#endif
