/* Containers of virtual chunks: places that a repository's configuration names. */
#ifndef CM_FORMAT_ICECHUNK_CONTAINERS_H
#define CM_FORMAT_ICECHUNK_CONTAINERS_H

#include "store/store.h"

/*
 * The URL that "vcc://NAME/REST" means in the repository ROOT, to be freed: the prefix of the
 * container NAME, and REST.  CM_EFORMAT: there is no such container.
 */
int cm_ice_container_url(cm_store *root, const char *location, char **out, cm_error *err);

#endif
