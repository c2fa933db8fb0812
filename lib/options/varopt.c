#include "options/varopt.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "options/glob.h"

char *cm_find_unescaped(const char *text, char c)
{
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\\' && p[1] != '\0')
            p++;
        else if (*p == c)
            return (char *)p;
    }
    return NULL;
}

void cm_unescape(char *text)
{
    char *to = text;
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == '\\' && p[1] != '\0' && strchr(":,=*@\\", p[1]) != NULL)
            p++;
        *to++ = *p;
    }
    *to = '\0';
}

int cm_split(const char *text, char separator, cm_part_visit *visit, void *context, cm_error *err)
{
    char *copy = cm_strdup(text, err);
    if (copy == NULL)
        return CM_ENOMEM;
    int rc = CM_OK;
    for (char *part = copy; part != NULL && rc == CM_OK;) {
        char *end = cm_find_unescaped(part, separator);
        if (end != NULL)
            *end++ = '\0';
        rc = visit(context, part, err);
        part = end;
    }
    free(copy);
    return rc;
}

/* A name like "flux[1]" means itself too. */
static bool matches(const char *pattern, const char *text)
{
    return strcmp(pattern, text) == 0 || cm_glob_matches(pattern, text);
}

bool cm_name_matches(const char *pattern, const char *name)
{
    const char *last = strrchr(name, '/');
    if (pattern[0] == '/') /* from the root, whatever deeper arrays are called */
        return matches(pattern + 1, name);
    if (matches(pattern, name))
        return true;
    return last != NULL && strchr(pattern, '/') == NULL && matches(pattern, last + 1);
}

typedef struct choice {
    const char *option, *where;
    const char *const *name;
    size_t n;
    bool *chosen;
} choice;

static int choose_by(void *context, char *pattern, cm_error *err)
{
    const choice *c = context;
    bool found = false;
    for (size_t i = 0; i < c->n; i++)
        if (c->name[i] != NULL && cm_name_matches(pattern, c->name[i]))
            found = c->chosen[i] = true;
    return found ? CM_OK
                 : cm_fail(err, CM_EINVAL, "%s %s: %s has no such array", c->option, pattern,
                           c->where);
}

int cm_names_choose(const char *option, const char *list, const char *where,
                    const char *const *name, size_t n, bool *chosen, cm_error *err)
{
    choice c = {option, where, name, n, chosen};
    return cm_split(list, ',', choose_by, &c, err);
}

static bool is_keyword(const char *text, size_t n, const char *const *keywords)
{
    for (; keywords != NULL && *keywords != NULL; keywords++)
        if (strlen(*keywords) == n && memcmp(*keywords, text, n) == 0)
            return true;
    return false;
}

int cm_varopts_parse(const char *option, const cm_texts *texts, const char *const *keywords,
                     cm_varopts *out, cm_error *err)
{
    *out = (cm_varopts){.option = option};
    if (texts->n == 0)
        return CM_OK;
    if ((out->item = cm_calloc(texts->n, sizeof(out->item[0]), err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < texts->n; i++) {
        const char *text = texts->text[i], *value = text;
        const char *colon = cm_find_unescaped(text, ':');
        cm_varopt *item = &out->item[out->n++];
        if (colon != NULL && !is_keyword(text, (size_t)(colon - text), keywords)) {
            value = colon + 1;
            if (colon == text)
                return cm_fail(err, CM_EINVAL, "%s %s: no variable stands before the ':'", option,
                               text);
            item->pattern = cm_asprintf(err, "%.*s", (int)(colon - text), text);
            if (item->pattern == NULL)
                return CM_ENOMEM;
        }
        if (*value == '\0')
            return cm_fail(err, CM_EINVAL, "%s %s: the value is empty", option, text);
        if ((item->value = cm_strdup(value, err)) == NULL)
            return CM_ENOMEM;
    }
    return CM_OK;
}

void cm_varopts_release(cm_varopts *opts)
{
    for (size_t i = 0; i < opts->n; i++) {
        free(opts->item[i].pattern);
        free(opts->item[i].value);
    }
    free(opts->item);
    *opts = (cm_varopts){0};
}

const char *cm_varopts_get(cm_varopts *opts, const char *name, bool general, bool *named)
{
    const cm_varopt *found = NULL;
    for (size_t i = 0; i < opts->n; i++) {
        cm_varopt *item = &opts->item[i];
        bool matches = item->pattern == NULL ? general : cm_name_matches(item->pattern, name);
        if (!matches)
            continue;
        item->used = true;
        /* A value by name is meant more than one for all. */
        if (found == NULL || item->pattern != NULL || found->pattern == NULL)
            found = item;
    }
    if (named != NULL)
        *named = found != NULL && found->pattern != NULL;
    return found == NULL ? NULL : found->value;
}

char *cm_varopt_make(const char *name, const char *value, cm_error *err)
{
    char *text = cm_calloc(2 * strlen(name) + strlen(value) + 2, 1, err), *to = text;
    for (const char *p = name; text != NULL && *p != '\0'; p++) {
        if (strchr(":,=*?[\\", *p) != NULL)
            *to++ = '\\';
        *to++ = *p;
    }
    if (text != NULL) {
        *to++ = ':';
        strcpy(to, value);
    }
    return text;
}

int cm_varopts_check_used(const cm_varopts *opts, cm_error *err)
{
    for (size_t i = 0; i < opts->n; i++)
        if (opts->item[i].pattern != NULL && !opts->item[i].used)
            return cm_fail(err, CM_EINVAL, "%s %s:%s: no chosen variable is named %s", opts->option,
                           opts->item[i].pattern, opts->item[i].value, opts->item[i].pattern);
    return CM_OK;
}
