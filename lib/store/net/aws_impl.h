/* The inside of credentials, shared by aws.c and the files aws_*.c. */
#ifndef CM_STORE_NET_AWS_IMPL_H
#define CM_STORE_NET_AWS_IMPL_H

#include <pthread.h>
#include <time.h>

#include "store/net/aws.h"

/* Keys from a provider; zeroed: none. */
typedef struct cm_aws_keys {
    char *key, *secret, *token;
    time_t expires; /* 0: never */
} cm_aws_keys;

/* Settings of a profile, from both files. */
typedef struct cm_aws_profile {
    struct cm_aws_setting {
        char *name, *value;
    } * setting;
    size_t n;
    bool there; /* one of the files has the profile */
} cm_aws_profile;

typedef struct cm_aws_signer_item {
    cm_http_signer signer;
    time_t expires;
    struct cm_aws_signer_item *older;
} cm_aws_signer_item;

struct cm_aws {
    cm_net *net;
    const cm_net_settings *settings;
    pthread_mutex_t lock;
    bool google;
    bool read; /* profile and region have been read */
    cm_aws_profile profile;
    char *region;
    cm_aws_signer_item *newest;
};

/* ---- aws_keys.c ---- */

void cm_aws_keys_release(cm_aws_keys *keys);
/* Parses the JSON of processes, containers and instances. */
int cm_aws_keys_from_json(const void *text, size_t nbytes, cm_aws_keys *out, cm_error *err);
/* "2030-01-31T12:00:00Z"; 0: not a time. */
time_t cm_aws_time(const char *text);

/* ---- aws_config.c ---- */

/* A variable of the environment that is set and not empty; NULL otherwise. */
const char *cm_aws_variable(const cm_aws *aws, const char *name);
int cm_aws_profile_read(const cm_aws *aws, cm_aws_profile *out, cm_error *err);
void cm_aws_profile_release(cm_aws_profile *profile);
const char *cm_aws_profile_get(const cm_aws_profile *profile, const char *name);

/* ---- aws_remote.c: OUT stays zeroed if the source does not exist ---- */
int cm_aws_web_identity(cm_aws *aws, cm_aws_keys *out, cm_error *err);
int cm_aws_container(cm_aws *aws, cm_aws_keys *out, cm_error *err);
int cm_aws_instance(cm_aws *aws, cm_aws_keys *out, cm_error *err);

#endif
