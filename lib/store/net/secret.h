/*
 * Servers repeat what they were sent: secrets are removed from their texts before these are shown
 * or cut.
 */
#ifndef CM_STORE_NET_SECRET_H
#define CM_STORE_NET_SECRET_H

#include "store/net/http.h"

/*
 * Replaces by "***" any part of R's secrets (it may have none) in TEXT: a whole one, or eight
 * characters and more in a row.  True if there was one.
 */
bool cm_secret_hide(char *text, const cm_http *r);

#endif
