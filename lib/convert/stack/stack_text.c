/* Parses `stack`: "NAME=A,B@DIM,C@DIM=V1/V2". */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "convert/stack/stack.h"
#include "options/varopt.h"

static int malformed(const char *text, cm_error *err)
{
    return cm_fail(err, CM_EINVAL,
                   "`stack` %s: not of the form NAME=A,B,C, where C may be VAR@DIM or "
                   "VAR@DIM=VALUE/VALUE",
                   text);
}

static size_t count(const char *text, char c)
{
    size_t n = 1;
    for (; *text != '\0'; text++)
        n += *text == c;
    return n;
}

/* "500/850/1000": those levels alone. */
static int parse_values(cm_stack_item *item, char *text, cm_error *err)
{
    item->value = cm_calloc(count(text, '/'), sizeof(item->value[0]), err);
    if (item->value == NULL)
        return CM_ENOMEM;
    for (char *at = text; at != NULL;) {
        char *slash = strchr(at, '/');
        if (slash != NULL)
            *slash = '\0';
        int rc = cm_parse_double(at, &item->value[item->nvalues++], err);
        if (rc != CM_OK)
            return rc;
        at = slash == NULL ? NULL : slash + 1;
    }
    return CM_OK;
}

typedef struct reading {
    cm_stack_text *out;
} reading;

static int visit_item(void *context, char *part, cm_error *err)
{
    cm_stack_text *out = ((reading *)context)->out;
    cm_stack_item *item = &out->item[out->nitems++];
    char *at = cm_find_unescaped(part, '@');
    char *values = at == NULL ? NULL : cm_find_unescaped(at + 1, '=');
    if (at != NULL)
        *at++ = '\0';
    if (values != NULL)
        *values++ = '\0';
    if (*part == '\0' || (at != NULL && *at == '\0') || (values != NULL && *values == '\0') ||
        (at == NULL && cm_find_unescaped(part, '=') != NULL))
        return malformed(out->text, err);
    cm_unescape(part);
    if (at != NULL)
        cm_unescape(at);
    item->name = cm_strdup(part, err);
    item->dim = at == NULL ? NULL : cm_strdup(at, err);
    if (item->name == NULL || (at != NULL && item->dim == NULL))
        return CM_ENOMEM;
    int rc = values == NULL ? CM_OK : parse_values(item, values, err);
    if (rc == CM_EINVAL)
        cm_error_prefix(err, "`stack` %s", out->text);
    return rc;
}

int cm_stack_text_parse(const char *text, cm_stack_text *out, cm_error *err)
{
    *out = (cm_stack_text){.text = text};
    char *copy = cm_strdup(text, err);
    if (copy == NULL)
        return CM_ENOMEM;
    char *list = cm_find_unescaped(copy, '=');
    int rc = list == NULL || list == copy || list[1] == '\0' ? malformed(text, err) : CM_OK;
    if (rc == CM_OK) {
        *list++ = '\0';
        cm_unescape(copy);
        out->name = cm_strdup(copy, err);
        out->item = cm_calloc(count(list, ','), sizeof(out->item[0]), err);
        rc = out->name == NULL || out->item == NULL ? CM_ENOMEM : CM_OK;
    }
    if (rc == CM_OK)
        rc = cm_split(list, ',', visit_item, &(reading){out}, err);
    free(copy);
    return rc;
}

void cm_stack_text_release(cm_stack_text *t)
{
    for (size_t i = 0; i < t->nitems; i++) {
        free(t->item[i].name);
        free(t->item[i].dim);
        free(t->item[i].value);
    }
    free(t->item);
    free(t->name);
    *t = (cm_stack_text){0};
}
