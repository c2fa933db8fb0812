#include "store/net/aws.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>

#include "store/net/aws_impl.h"

enum {
    EARLY_S = 300, /* renews credentials so long before they expire */
    MAX_OUTPUT = 1 << 20
};

/* ---- keys ---- */

static int copy_keys(const char *key, const char *secret, const char *token, cm_aws_keys *out,
                     cm_error *err)
{
    out->key = cm_strdup(key, err);
    out->secret = cm_strdup(secret, err);
    out->token = token != NULL ? cm_strdup(token, err) : NULL;
    bool whole = out->key != NULL && out->secret != NULL && (token == NULL || out->token != NULL);
    return whole ? CM_OK : CM_ENOMEM;
}

/* ---- sources of credentials, in order ---- */

static int from_environment(cm_aws *aws, cm_aws_keys *out, cm_error *err)
{
    const char *key = cm_aws_variable(aws, "AWS_ACCESS_KEY_ID");
    const char *secret = cm_aws_variable(aws, "AWS_SECRET_ACCESS_KEY");
    if (key == NULL)
        return CM_OK;
    if (secret == NULL)
        return cm_fail(err, CM_EIO, "AWS_ACCESS_KEY_ID is set, and AWS_SECRET_ACCESS_KEY is not");
    return copy_keys(key, secret, cm_aws_variable(aws, "AWS_SESSION_TOKEN"), out, err);
}

static int from_profile(cm_aws *aws, cm_aws_keys *out, cm_error *err)
{
    const cm_aws_profile *p = &aws->profile;
    const char *key = cm_aws_profile_get(p, "aws_access_key_id");
    const char *secret = cm_aws_profile_get(p, "aws_secret_access_key");
    if (key != NULL && secret != NULL)
        return copy_keys(key, secret, cm_aws_profile_get(p, "aws_session_token"), out, err);
    return CM_OK;
}

static int from_process(cm_aws *aws, cm_aws_keys *out, cm_error *err)
{
    const char *command = cm_aws_profile_get(&aws->profile, "credential_process");
    cm_buf text = {0};
    char piece[4096];
    int rc = CM_OK;
    if (command == NULL)
        return CM_OK;
    FILE *f = popen(command, "re");
    if (f == NULL)
        return cm_fail(err, CM_EIO, "the credential_process of the profile cannot be run");
    for (size_t n; rc == CM_OK && (n = fread(piece, 1, sizeof(piece), f)) > 0;)
        rc = text.nbytes + n > MAX_OUTPUT ? cm_fail(err, CM_EIO, "credentials are too long")
                                          : cm_buf_append(&text, piece, n, err);
    int status = pclose(f);
    if (rc == CM_OK && (status == -1 || !WIFEXITED(status) || WEXITSTATUS(status) != 0))
        rc = cm_fail(err, CM_EIO, "the credential_process of the profile failed");
    if (rc == CM_OK && (rc = cm_aws_keys_from_json(text.data, text.nbytes, out, err)) != CM_OK)
        cm_error_prefix(err, "the credential_process of the profile");
    cm_buf_release(&text);
    return rc;
}

/* Refuses settings of a profile that other tools support and this one does not. */
static int refuse_profile(cm_aws *aws, cm_aws_keys *out, cm_error *err)
{
    static const char *const names[] = {"sso_session", "sso_start_url", "source_profile",
                                        "credential_source", "login_session"};
    (void)out;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (cm_aws_profile_get(&aws->profile, names[i]) != NULL)
            return cm_fail(
                err, CM_EUNSUPPORTED,
                "the AWS profile needs %s, which is not built; the AWS CLI's \"configure "
                "export-credentials\" prints variables to set instead",
                names[i]);
    return CM_OK;
}

static int find_google_keys(cm_aws *aws, cm_aws_keys *out, cm_error *err)
{
    const char *key = cm_aws_variable(aws, "GS_ACCESS_KEY_ID");
    const char *secret = cm_aws_variable(aws, "GS_SECRET_ACCESS_KEY");
    if (key == NULL || secret == NULL)
        return cm_fail(err, CM_EIO,
                       "no HMAC keys for Google's buckets were found (GS_ACCESS_KEY_ID and "
                       "GS_SECRET_ACCESS_KEY); a public bucket is read anonymously");
    return copy_keys(key, secret, NULL, out, err);
}

static int find_keys(cm_aws *aws, cm_aws_keys *out, cm_error *err)
{
    static int (*const providers[])(cm_aws *, cm_aws_keys *, cm_error *) = {
        from_environment, cm_aws_web_identity, from_profile,    from_process,
        refuse_profile,   cm_aws_container,    cm_aws_instance,
    };
    if (aws->google)
        return find_google_keys(aws, out, err);
    for (size_t i = 0; i < sizeof(providers) / sizeof(providers[0]); i++) {
        int rc = providers[i](aws, out, err);
        if (rc != CM_OK || out->key != NULL)
            return rc;
    }
    return cm_fail(err, CM_EIO,
                   "no AWS credentials were found (environment, profile, container, instance); a "
                   "public bucket is read anonymously");
}

/* ---- signers ---- */

/* Reads region and profile, once. */
static int read_settings(cm_aws *aws, cm_error *err)
{
    if (aws->read)
        return CM_OK;
    if (aws->google) { /* buckets have places, and signatures any region */
        aws->read = aws->region != NULL || (aws->region = cm_strdup("auto", err)) != NULL;
        return aws->read ? CM_OK : CM_ENOMEM;
    }
    const char *region = cm_aws_variable(aws, "AWS_REGION");
    cm_aws_profile_release(&aws->profile);
    int rc = cm_aws_profile_read(aws, &aws->profile, err);
    if (rc != CM_OK)
        return rc;
    if (region == NULL)
        region = cm_aws_variable(aws, "AWS_DEFAULT_REGION");
    if (region == NULL)
        region = cm_aws_profile_get(&aws->profile, "region");
    if (region == NULL)
        region = "us-east-1";
    if (strspn(region, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") <
        strlen(region))
        return cm_fail(err, CM_EIO, "the AWS region %.40s is not the name of a region", region);
    free(aws->region);
    if ((aws->region = cm_strdup(region, err)) == NULL)
        return CM_ENOMEM;
    aws->read = true;
    return CM_OK;
}

static int add_signer(cm_aws *aws, cm_aws_keys *keys, cm_error *err)
{
    cm_aws_signer_item *s = cm_calloc(1, sizeof(*s), err);
    char *scope = cm_asprintf(err, "aws:amz:%s:s3", aws->region);
    if (s == NULL || scope == NULL) {
        free(s);
        free(scope);
        return CM_ENOMEM;
    }
    s->signer = (cm_http_signer){keys->key, keys->secret, keys->token, scope};
    s->expires = keys->expires;
    s->older = aws->newest;
    aws->newest = s;
    *keys = (cm_aws_keys){0};
    return CM_OK;
}

/* Renews with the lock held, possibly for long: other threads wait for the same credentials. */
static int renew(cm_aws *aws, const cm_http_signer *stale, cm_error *err)
{
    cm_aws_keys keys = {0};
    cm_error why = {0};
    time_t now = time(NULL);
    cm_aws_signer_item *s = aws->newest;
    aws->read = aws->read && stale == NULL; /* read the files again: they may hold new ones */
    int rc = read_settings(aws, &why);
    if (rc == CM_OK)
        rc = find_keys(aws, &keys, &why);
    if (rc == CM_OK && stale != NULL && strcmp(keys.secret, stale->secret) == 0 &&
        strcmp(keys.token != NULL ? keys.token : "", stale->token != NULL ? stale->token : "") == 0)
        rc = cm_fail(&why, CM_EIO,
                     "the session token has expired, and no newer one was found; get new "
                     "credentials");
    if (rc == CM_OK)
        rc = add_signer(aws, &keys, &why);
    cm_aws_keys_release(&keys);
    /* Keep using credentials that are still valid for a while. */
    if (rc != CM_OK && stale == NULL && s != NULL && s->expires > now + 10)
        return CM_OK;
    return rc == CM_OK ? rc : cm_fail(err, (cm_status)rc, "%s", why.text);
}

int cm_aws_signer(cm_aws *aws, const cm_http_signer *stale, const cm_http_signer **out,
                  cm_error *err)
{
    *out = NULL;
    if (aws->settings->anonymous)
        return CM_OK;
    pthread_mutex_lock(&aws->lock);
    const cm_aws_signer_item *s = aws->newest;
    bool old = s == NULL || (s->expires > 0 && s->expires < time(NULL) + EARLY_S);
    /* Another thread may have renewed it meanwhile. */
    bool refused = stale != NULL && s != NULL && &s->signer == stale;
    int rc = old || refused ? renew(aws, refused ? stale : NULL, err) : CM_OK;
    if (rc == CM_OK)
        *out = &aws->newest->signer;
    pthread_mutex_unlock(&aws->lock);
    return rc;
}

/* ---- addresses ---- */

static const char *endpoint_of(const cm_aws *aws)
{
    const char *names[] = {"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"};
    if (aws->google) {
        const char *set = cm_aws_variable(aws, "GS_ENDPOINT_URL");
        return set != NULL ? set : "https://storage.googleapis.com";
    }
    const char *ignored = cm_aws_variable(aws, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
    if (ignored != NULL && strcasecmp(ignored, "true") == 0)
        return NULL;
    for (size_t i = 0; i < 2; i++)
        if (cm_aws_variable(aws, names[i]) != NULL)
            return cm_aws_variable(aws, names[i]);
    return cm_aws_profile_get(&aws->profile, "endpoint_url");
}

/* Names with dots do not match the certificate, and others are not allowed in host names. */
static bool is_host_name(const char *bucket)
{
    return strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(bucket) &&
           strlen(bucket) < 64;
}

int cm_aws_address(cm_aws *aws, const char *bucket, char **out, cm_error *err)
{
    *out = NULL;
    pthread_mutex_lock(&aws->lock);
    int rc = read_settings(aws, err);
    const char *endpoint = rc == CM_OK ? endpoint_of(aws) : NULL;
    const char *style =
        rc == CM_OK ? cm_aws_profile_get(&aws->profile, "s3.addressing_style") : NULL;
    const char *china = rc == CM_OK && strncmp(aws->region, "cn-", 3) == 0 ? ".cn" : "";
    if (endpoint != NULL) {
        size_t n = strlen(endpoint);
        while (n > 0 && endpoint[n - 1] == '/')
            n--;
        if (strncasecmp(endpoint, "http://", 7) != 0 && strncasecmp(endpoint, "https://", 8) != 0)
            rc = cm_fail(err, CM_EIO, "the endpoint of S3 must be an http:// or https:// address");
        else if (memchr(endpoint, '@', n) != NULL || memchr(endpoint, '?', n) != NULL)
            rc = cm_fail(err, CM_EIO, "the endpoint of S3 has a user or a query");
        else
            *out = cm_asprintf(err, "%.*s/%s", (int)n, endpoint, bucket);
    } else if (rc == CM_OK && is_host_name(bucket) &&
               (style == NULL || strcmp(style, "path") != 0)) {
        *out = cm_asprintf(err, "https://%s.s3.%s.amazonaws.com%s", bucket, aws->region, china);
    } else if (rc == CM_OK) {
        *out = cm_asprintf(err, "https://s3.%s.amazonaws.com%s/%s", aws->region, china, bucket);
    }
    pthread_mutex_unlock(&aws->lock);
    return rc == CM_OK && *out == NULL ? CM_ENOMEM : rc;
}

/* ---- its life ---- */

int cm_aws_create(cm_net *net, const cm_net_settings *settings, bool google, cm_aws **out,
                  cm_error *err)
{
    cm_aws *aws = cm_calloc(1, sizeof(*aws), err);
    if (aws == NULL)
        return CM_ENOMEM;
    aws->net = net;
    aws->settings = settings;
    aws->google = google;
    pthread_mutex_init(&aws->lock, NULL);
    *out = aws;
    return CM_OK;
}

void cm_aws_forget_parent(cm_aws *aws)
{
    if (aws != NULL)
        pthread_mutex_init(&aws->lock, NULL);
}

void cm_aws_free(cm_aws *aws)
{
    if (aws == NULL)
        return;
    for (cm_aws_signer_item *s = aws->newest, *older; s != NULL; s = older) {
        older = s->older;
        free((char *)(uintptr_t)s->signer.key);
        free((char *)(uintptr_t)s->signer.secret);
        free((char *)(uintptr_t)s->signer.token);
        free((char *)(uintptr_t)s->signer.scope);
        free(s);
    }
    cm_aws_profile_release(&aws->profile);
    free(aws->region);
    pthread_mutex_destroy(&aws->lock);
    free(aws);
}
