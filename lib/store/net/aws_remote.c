/* Credentials from a server: for a role, a container, an instance. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/net/aws_impl.h"
#include "store/net/url.h"
#include "store/net/xml.h"

static const uint64_t SECOND = 1000000000;

enum {
    MAX_FILE = 64 << 10
};

/* The first MAX_FILE bytes of PATH, without white space at the end. */
static int read_file(const char *path, char **out, cm_error *err)
{
    char *text = cm_calloc(MAX_FILE + 1, 1, err);
    FILE *f = text != NULL ? fopen(path, "re") : NULL;
    if (f == NULL) {
        free(text);
        return text == NULL ? CM_ENOMEM : cm_fail(err, CM_EIO, "%s: cannot be read", path);
    }
    size_t n = fread(text, 1, MAX_FILE, f);
    while (n > 0 && strchr(" \t\r\n", text[n - 1]) != NULL)
        n--;
    text[n] = '\0';
    fclose(f);
    *out = text;
    return CM_OK;
}

/* ---- a role, by a web identity token ---- */

static void from_sts(const cm_buf *text, cm_aws_keys *out, cm_error *err)
{
    static const char ROOT[] = "AssumeRoleWithWebIdentityResponse/"
                               "AssumeRoleWithWebIdentityResult/Credentials/";
    static const char *const names[] = {"AccessKeyId", "SecretAccessKey", "SessionToken",
                                        "Expiration"};
    char path[128], value[4][4096];
    for (size_t i = 0; i < 4; i++) {
        snprintf(path, sizeof(path), "%s%s", ROOT, names[i]);
        if (!cm_xml_find(text->data, text->nbytes, path, value[i], sizeof(value[i])))
            return;
    }
    out->key = cm_strdup(value[0], err);
    out->secret = cm_strdup(value[1], err);
    out->token = cm_strdup(value[2], err);
    out->expires = cm_aws_time(value[3]);
}

int cm_aws_web_identity(cm_aws *aws, cm_aws_keys *out, cm_error *err)
{
    const char *file = cm_aws_variable(aws, "AWS_WEB_IDENTITY_TOKEN_FILE");
    const char *role = cm_aws_variable(aws, "AWS_ROLE_ARN");
    const char *session = cm_aws_variable(aws, "AWS_ROLE_SESSION_NAME");
    const char *endpoint = cm_aws_variable(aws, "AWS_ENDPOINT_URL_STS");
    if (file == NULL || role == NULL) {
        file = cm_aws_profile_get(&aws->profile, "web_identity_token_file");
        role = cm_aws_profile_get(&aws->profile, "role_arn");
    }
    if (file == NULL || role == NULL)
        return CM_OK;
    cm_buf body = {0};
    char *token = NULL;
    int rc = read_file(file, &token, err);
    char *url = endpoint != NULL ? cm_asprintf(err, "%s/", endpoint)
                                 : cm_asprintf(err, "https://sts.%s.amazonaws.com/", aws->region);
    if (rc == CM_OK)
        rc = url == NULL ? CM_ENOMEM
                         : cm_buf_printf(&body, err,
                                         "Action=AssumeRoleWithWebIdentity&Version="
                                         "2011-06-15&RoleArn=");
    if (rc == CM_OK)
        rc = cm_url_encode(&body, role, false, err);
    if (rc == CM_OK)
        rc = cm_buf_printf(&body, err, "&RoleSessionName=");
    if (rc == CM_OK)
        rc = cm_url_encode(&body, session != NULL ? session : "chunkmill", false, err);
    if (rc == CM_OK)
        rc = cm_buf_printf(&body, err, "&WebIdentityToken=");
    if (rc == CM_OK)
        rc = cm_url_encode(&body, token, false, err);
    cm_http r = {.method = CM_HTTP_POST,
                 .url = url,
                 .secret = token,
                 .shown = "credentials for a role",
                 .s3 = true,
                 .credentials = true,
                 .body = body.data,
                 .body_nbytes = body.nbytes,
                 .patience = 4};
    if (rc == CM_OK)
        rc = cm_http_run(aws->net, &r, 1, err);
    if (rc == CM_OK && r.rc == CM_OK)
        from_sts(&r.text, out, err);
    if (rc == CM_OK && out->secret == NULL)
        rc = cm_fail(err, CM_EIO, "credentials for a role: the server's answer has none");
    cm_http_release(&r, 1);
    cm_buf_release(&body);
    free(url);
    free(token);
    return rc;
}

/* ---- documents at an address ---- */

/* TEXT is set to the body, NUL-terminated; CM_ENOTFOUND if there is none. */
static int fetch(cm_aws *aws, const char *url, const char *shown, const char *header,
                 unsigned patience, cm_buf *text, cm_error *err)
{
    cm_http r = {.method = CM_HTTP_GET,
                 .url = url,
                 .shown = shown,
                 .credentials = true,
                 .secret = header != NULL ? strchr(header, ':') + 2 : NULL,
                 .header = {header},
                 .patience = patience,
                 .max_ns = 2 * SECOND};
    int rc = cm_http_run(aws->net, &r, 1, err);
    if (rc == CM_OK && (rc = r.rc) == CM_OK)
        rc = cm_buf_append(&r.text, "", 1, err);
    *text = r.text;
    return rc;
}

int cm_aws_container(cm_aws *aws, cm_aws_keys *out, cm_error *err)
{
    const char *relative = cm_aws_variable(aws, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = cm_aws_variable(aws, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    const char *value = cm_aws_variable(aws, "AWS_CONTAINER_AUTHORIZATION_TOKEN");
    const char *file = cm_aws_variable(aws, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    char *token = NULL, *header = NULL;
    cm_buf text = {0};
    if (relative == NULL && full == NULL)
        return CM_OK;
    char *url = relative != NULL ? cm_asprintf(err, "http://169.254.170.2%s", relative)
                                 : cm_strdup(full, err);
    int rc = url == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK && file != NULL)
        rc = read_file(file, &token, err);
    if (rc == CM_OK && (token != NULL || value != NULL)) {
        header = cm_asprintf(err, "Authorization: %s", token != NULL ? token : value);
        rc = header == NULL ? CM_ENOMEM : CM_OK;
    }
    if (rc == CM_OK)
        rc = fetch(aws, url, "credentials of the container", header, 4, &text, err);
    if (rc == CM_ENOTFOUND)
        rc = cm_fail(err, CM_EIO, "credentials of the container: there are none");
    if (rc == CM_OK)
        rc = cm_aws_keys_from_json(text.data, text.nbytes - 1, out, err);
    cm_buf_release(&text);
    free(url);
    free(header);
    free(token);
    return rc;
}

/* ---- instance metadata (IMDSv2) ---- */

static int instance_token(cm_aws *aws, const char *base, char **out, cm_error *err)
{
    char *url = cm_asprintf(err, "%s/latest/api/token", base);
    if (url == NULL)
        return CM_ENOMEM;
    cm_http r = {.method = CM_HTTP_PUT,
                 .url = url,
                 .shown = "instance metadata",
                 .credentials = true,
                 .header = {"X-aws-ec2-metadata-token-ttl-seconds: 21600"},
                 .patience = 1,
                 .max_ns = SECOND};
    int rc = cm_http_run(aws->net, &r, 1, NULL);
    if (rc == CM_OK && r.rc == CM_OK && r.text.nbytes > 0) {
        *out = cm_asprintf(err, "X-aws-ec2-metadata-token: %.*s", (int)r.text.nbytes,
                           (char *)r.text.data);
        rc = *out == NULL ? CM_ENOMEM : CM_OK;
    } else if (rc != CM_ECANCELED) {
        rc = CM_OK; /* not an instance */
    }
    cm_http_release(&r, 1);
    free(url);
    return rc;
}

static int instance_keys(cm_aws *aws, const char *base, const char *token, cm_aws_keys *out,
                         cm_error *err)
{
    static const char PATH[] = "latest/meta-data/iam/security-credentials/";
    cm_buf role = {0}, text = {0};
    char *url = cm_asprintf(err, "%s/%s", base, PATH), *of_role = NULL;
    int rc = url == NULL ? CM_ENOMEM : fetch(aws, url, "instance metadata", token, 4, &role, err);
    if (rc == CM_OK) {
        role.data[strcspn((char *)role.data, "\r\n")] = '\0';
        of_role = cm_asprintf(err, "%s%s", url, (char *)role.data);
        rc = of_role == NULL ? CM_ENOMEM
                             : fetch(aws, of_role, "instance metadata", token, 4, &text, err);
    }
    if (rc == CM_OK)
        rc = cm_aws_keys_from_json(text.data, text.nbytes - 1, out, err);
    cm_buf_release(&role);
    cm_buf_release(&text);
    free(url);
    free(of_role);
    return rc == CM_ENOTFOUND ? CM_OK : rc; /* an instance without a role */
}

int cm_aws_instance(cm_aws *aws, cm_aws_keys *out, cm_error *err)
{
    const char *off = cm_aws_variable(aws, "AWS_EC2_METADATA_DISABLED");
    const char *base = cm_aws_variable(aws, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
    char *token = NULL;
    if (off != NULL && strcmp(off, "true") == 0)
        return CM_OK;
    if (base == NULL)
        base = "http://169.254.169.254";
    char *trimmed = cm_strdup(base, err);
    if (trimmed == NULL)
        return CM_ENOMEM;
    for (size_t n = strlen(trimmed); n > 0 && trimmed[n - 1] == '/'; n--)
        trimmed[n - 1] = '\0';
    int rc = instance_token(aws, trimmed, &token, err);
    if (rc == CM_OK && token != NULL)
        rc = instance_keys(aws, trimmed, token, out, err);
    free(token);
    free(trimmed);
    return rc;
}
