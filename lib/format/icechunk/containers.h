/* Containers of virtual chunks: places that a repository's configuration names. */
#ifndef CM_FORMAT_ICECHUNK_CONTAINERS_H
#define CM_FORMAT_ICECHUNK_CONTAINERS_H

#include "store/store.h"

/* The configuration of the repository ROOT into OUT; nothing where it has none. */
int cm_ice_config_read(cm_store *root, cm_buf *out, cm_error *err);
/* Whether a container of CONFIG has URL. */
bool cm_ice_config_has(const cm_buf *config, const char *url);
/*
 * The URL that "vcc://NAME/REST" means by CONFIG, to be freed: the prefix of the container NAME,
 * and REST.  CM_EFORMAT: there is no such container.
 */
int cm_ice_container_url(const cm_buf *config, const char *location, char **out, cm_error *err);

#endif
