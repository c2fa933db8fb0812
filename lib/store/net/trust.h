/* Which certificate authorities are trusted. */
#ifndef CM_STORE_NET_TRUST_H
#define CM_STORE_NET_TRUST_H

#include <chunkmill/net.h>

/*
 * The bundle that libcurl has to be told, or NULL: its own is right.  The user's choice comes
 * first (AWS_CA_BUNDLE, CURL_CA_BUNDLE, SSL_CERT_FILE).  A libcurl that was built elsewhere may
 * look where this system has no certificates; then it is where a distribution keeps them.  The
 * text is constant or the environment's.
 */
const char *cm_trust_bundle(const cm_net_settings *settings);

/* The same of a libcurl that looks for FILE and FOLDER (NULL: none), and of PLACES, up to NULL. */
const char *cm_trust_choose(const cm_net_settings *settings, const char *file, const char *folder,
                            const char *const *places);

#endif
