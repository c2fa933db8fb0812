/*
 * Servers repeat what they were sent: no text of theirs is shown before what must stay secret is
 * taken out of it, and none is cut before that.
 */
#ifndef CM_STORE_NET_SECRET_H
#define CM_STORE_NET_SECRET_H

#include "store/net/http.h"

/*
 * Puts "***" in place of whatever TEXT repeats of the secrets that R takes along, of which R may
 * have none: all of one, or eight characters and more in a row.  True where there was something.
 */
bool cm_secret_hide(char *text, const cm_http *r);

#endif
