/*
 * Credentials, region and endpoint, found where AWS's own tools find them and in their order:
 * environment, web identity, profile (keys, a process), container, instance metadata.  What has an
 * end is renewed before it.
 *
 * Nothing here ever puts a secret into a message.
 */
#ifndef CM_STORE_NET_AWS_H
#define CM_STORE_NET_AWS_H

#include "store/net/http.h"

typedef struct cm_aws cm_aws;

/* Touches nothing: credentials are looked for when they are first needed. */
int cm_aws_create(cm_net *net, const cm_net_settings *settings, cm_aws **out, cm_error *err);
void cm_aws_free(cm_aws *aws);
/* In a process that was forked: a lock may have been held by a thread that is not here. */
void cm_aws_forget_parent(cm_aws *aws);

/*
 * What signs requests now: *out is NULL where nothing is to be signed, and valid as long as AWS.
 * STALE, if not NULL, was refused as too old: another one is found, or CM_EIO.
 */
int cm_aws_signer(cm_aws *aws, const cm_http_signer *stale, const cm_http_signer **out,
                  cm_error *err);

/* The address of BUCKET's objects, "https://host" or "https://host/bucket", to be freed. */
int cm_aws_address(cm_aws *aws, const char *bucket, char **out, cm_error *err);

#endif
