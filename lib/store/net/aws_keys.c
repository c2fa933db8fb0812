/* Keys as servers and processes answer them. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "store/net/aws_impl.h"

void cm_aws_keys_release(cm_aws_keys *keys)
{
    free(keys->key);
    free(keys->secret);
    free(keys->token);
    *keys = (cm_aws_keys){0};
}

time_t cm_aws_time(const char *text)
{
    struct tm tm = {0};
    return text != NULL && strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) != NULL ? timegm(&tm) : 0;
}

static int copy_text(const cm_json *j, const char *name, char **out, cm_error *err)
{
    const char *text = cm_json_text(cm_json_member(j, name), NULL);
    if (text == NULL || *text == '\0')
        return CM_OK;
    *out = cm_strdup(text, err);
    return *out == NULL ? CM_ENOMEM : CM_OK;
}

int cm_aws_keys_from_json(const void *text, size_t nbytes, cm_aws_keys *out, cm_error *err)
{
    cm_json *j = NULL;
    /* Drop the parser's message: it might quote secrets from the text. */
    int rc = cm_json_parse(text, nbytes, &j, NULL);
    if (rc == CM_ENOMEM)
        return cm_fail(err, CM_ENOMEM, "no memory for credentials");
    rc = copy_text(j, "AccessKeyId", &out->key, err);
    if (rc == CM_OK)
        rc = copy_text(j, "SecretAccessKey", &out->secret, err);
    if (rc == CM_OK)
        rc = copy_text(j, "SessionToken", &out->token, err);
    if (rc == CM_OK && out->token == NULL)
        rc = copy_text(j, "Token", &out->token, err);
    out->expires = cm_aws_time(cm_json_text(cm_json_member(j, "Expiration"), NULL));
    cm_json_free(j);
    if (rc == CM_OK && (out->key == NULL || out->secret == NULL))
        rc = cm_fail(err, CM_EIO, "the answer holds no credentials");
    return rc;
}
