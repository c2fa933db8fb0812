/* Stores behind a network: buckets (S3) and web servers.  store/open.h opens them. */
#ifndef CM_STORE_NET_H
#define CM_STORE_NET_H

#include <chunkmill/net.h>

#include "store/store.h"

/* URL is "s3://..." or "http(s)://...".  Sends no request yet. */
int cm_store_open_remote(const char *url, cm_net *net, cm_store **out, cm_error *err);

/* The limit of concurrent requests that was set; 0: adapted to the observed speed. */
unsigned cm_net_concurrency(const cm_net *net);

/* Places that documents of references may point to besides their own. */
const cm_texts *cm_net_allow(const cm_net *net);

/* "libcurl 7.88.1, expat 2.5.0", cut to SIZE. */
char *cm_net_versions(char *buf, size_t size);

#endif
