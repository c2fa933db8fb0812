/* Settings: variables of the environment, ~/.aws/config and ~/.aws/credentials. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/net/aws_impl.h"

enum {
    MAX_LINE = 4096
};

const char *cm_aws_variable(const cm_aws *aws, const char *name)
{
    const char *value = aws->settings->variable != NULL ? aws->settings->variable(name) : NULL;
    return value != NULL && *value != '\0' ? value : NULL;
}

static char *trim(char *text)
{
    text += strspn(text, " \t\r\n");
    size_t n = strlen(text);
    while (n > 0 && strchr(" \t\r\n", text[n - 1]) != NULL)
        text[--n] = '\0';
    return text;
}

/* The last one wins. */
static int set(cm_aws_profile *p, const char *name, const char *value, cm_error *err)
{
    if (CM_GROW(p->setting, p->n, err) != CM_OK)
        return CM_ENOMEM;
    struct cm_aws_setting *s = &p->setting[p->n++];
    *s = (struct cm_aws_setting){cm_strdup(name, err), cm_strdup(value, err)};
    return s->name == NULL || s->value == NULL ? CM_ENOMEM : CM_OK;
}

/* "[profile NAME]" of config, "[NAME]" of either. */
static bool is_section(char *line, const char *name)
{
    char *end = strchr(line, ']');
    if (end == NULL)
        return false;
    *end = '\0';
    char *text = trim(line + 1);
    if (strncmp(text, "profile", 7) == 0 && (text[7] == ' ' || text[7] == '\t'))
        text = trim(text + 7);
    size_t n = strlen(text);
    if (n > 1 && (*text == '"' || *text == '\'') && text[n - 1] == *text) {
        text[n - 1] = '\0';
        text++;
    }
    return strcmp(text, name) == 0;
}

static int read_line(cm_aws_profile *p, char *line, char *above, size_t size, cm_error *err)
{
    bool below = *line == ' ' || *line == '\t'; /* of the setting before: "s3 =" */
    char *equals = strchr(line, '=');
    if (equals == NULL)
        return CM_OK;
    *equals = '\0';
    char *name = trim(line), *value = trim(equals + 1), both[128];
    char *comment = strstr(value, " #");
    if (comment != NULL)
        *trim(comment) = '\0', value = trim(value);
    if (!below)
        snprintf(above, size, "%s", name);
    snprintf(both, sizeof(both), "%s%s%s", below ? above : "", below ? "." : "", name);
    return set(p, both, value, err);
}

static int read_file(const char *path, const char *name, cm_aws_profile *p, cm_error *err)
{
    char line[MAX_LINE], above[64] = "";
    bool mine = false;
    int rc = CM_OK;
    FILE *f = fopen(path, "re");
    if (f == NULL)
        return errno == ENOENT || errno == ENOTDIR ? CM_OK : cm_fail_errno(err, errno, "%s", path);
    while (rc == CM_OK && fgets(line, sizeof(line), f) != NULL) {
        const char *text = line + strspn(line, " \t");
        if (*text == '#' || *text == ';' || *text == '\n' || *text == '\0')
            continue;
        if (*line == '[') {
            mine = is_section(line, name);
            p->there = p->there || mine;
        } else if (mine) {
            rc = read_line(p, line, above, sizeof(above), err);
        }
    }
    fclose(f);
    return rc;
}

static int read_named(const cm_aws *aws, const char *variable, const char *file, const char *name,
                      cm_aws_profile *p, cm_error *err)
{
    const char *path = cm_aws_variable(aws, variable), *home = cm_aws_variable(aws, "HOME");
    char *own = NULL;
    if (path == NULL && home == NULL)
        return CM_OK;
    if (path == NULL && (own = cm_asprintf(err, "%s/.aws/%s", home, file)) == NULL)
        return CM_ENOMEM;
    int rc = read_file(path != NULL ? path : own, name, p, err);
    free(own);
    return rc;
}

int cm_aws_profile_read(const cm_aws *aws, cm_aws_profile *out, cm_error *err)
{
    *out = (cm_aws_profile){0};
    const char *asked = cm_aws_variable(aws, "AWS_PROFILE");
    if (asked == NULL)
        asked = cm_aws_variable(aws, "AWS_DEFAULT_PROFILE");
    const char *name = asked != NULL ? asked : "default";
    int rc = read_named(aws, "AWS_CONFIG_FILE", "config", name, out, err);
    if (rc == CM_OK) /* its keys win */
        rc = read_named(aws, "AWS_SHARED_CREDENTIALS_FILE", "credentials", name, out, err);
    if (rc == CM_OK && asked != NULL && !out->there)
        rc = cm_fail(err, CM_EIO, "there is no AWS profile %s", name);
    return rc;
}

void cm_aws_profile_release(cm_aws_profile *p)
{
    for (size_t i = 0; i < p->n; i++) {
        free(p->setting[i].name);
        free(p->setting[i].value);
    }
    free(p->setting);
    *p = (cm_aws_profile){0};
}

const char *cm_aws_profile_get(const cm_aws_profile *p, const char *name)
{
    for (size_t i = p->n; i-- > 0;)
        if (strcmp(p->setting[i].name, name) == 0)
            return *p->setting[i].value != '\0' ? p->setting[i].value : NULL;
    return NULL;
}
