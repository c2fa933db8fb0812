/*
 * The manifests of a repository that were read: those used latest stay, within a limit of bytes.
 *
 * One thread reads a manifest while others that need it wait.  All calls but create and free may
 * come from many threads at once.
 */
#ifndef CM_FORMAT_ICECHUNK_SHELF_H
#define CM_FORMAT_ICECHUNK_SHELF_H

#include "format/icechunk/manifest_read.h"

typedef struct cm_ice_shelf cm_ice_shelf;

/* Borrows ROOT.  The manifest used last stays, whatever it takes. */
int cm_ice_shelf_create(cm_store *root, size_t max_nbytes, cm_ice_shelf **out, cm_error *err);
/* No manifest may be in use.  NULL accepted. */
void cm_ice_shelf_free(cm_ice_shelf *shelf);

/* The manifest ID, which stays until it is given back. */
int cm_ice_shelf_take(cm_ice_shelf *shelf, const uint8_t id[CM_ICE_ID],
                      const cm_ice_manifest_view **out, cm_error *err);
/* The same of one that was read already; NULL: it is not here. */
const cm_ice_manifest_view *cm_ice_shelf_peek(cm_ice_shelf *shelf, const uint8_t id[CM_ICE_ID]);
void cm_ice_shelf_give(cm_ice_shelf *shelf, const cm_ice_manifest_view *m); /* NULL accepted */

#endif
