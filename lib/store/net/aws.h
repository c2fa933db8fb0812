/*
 * Credentials, region and endpoint, from the places where AWS's own tools look, in their order:
 * environment, web identity, profile (keys, a process), container, instance metadata.  Renewed
 * before they expire.
 *
 * No secret is ever put into a message.
 */
#ifndef CM_STORE_NET_AWS_H
#define CM_STORE_NET_AWS_H

#include "store/net/http.h"

typedef struct cm_aws cm_aws;

/*
 * Credentials are looked for only when first needed.  GOOGLE: those of Google's XML interface, HMAC
 * keys in GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY, and its endpoint, or GS_ENDPOINT_URL; none of
 * AWS's is sent there.
 */
int cm_aws_create(cm_net *net, const cm_net_settings *settings, bool google, cm_aws **out,
                  cm_error *err);
void cm_aws_free(cm_aws *aws);
/* Call it in a forked process: a thread that does not exist here may have held a lock. */
void cm_aws_forget_parent(cm_aws *aws);

/*
 * The present signer: *out is NULL if requests are not signed, and valid as long as AWS.  STALE, if
 * not NULL, was refused as expired: finds another one, or CM_EIO.
 */
int cm_aws_signer(cm_aws *aws, const cm_http_signer *stale, const cm_http_signer **out,
                  cm_error *err);

/* The address of BUCKET's objects, "https://host" or "https://host/bucket", to be freed. */
int cm_aws_address(cm_aws *aws, const char *bucket, char **out, cm_error *err);

#endif
