#include "base/json_place.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

static size_t skip_space(const char *t, size_t at, size_t end)
{
    while (at < end && (t[at] == ' ' || t[at] == '\t' || t[at] == '\n' || t[at] == '\r'))
        at++;
    return at;
}

/* Behind the string at AT; END where it does not end. */
static size_t skip_string(const char *t, size_t at, size_t end)
{
    for (at++; at < end && t[at] != '"'; at++)
        at += t[at] == '\\';
    return at < end ? at + 1 : end;
}

/* Behind the value at AT: brackets are counted, for the text is known to be well-formed. */
static size_t skip_value(const char *t, size_t at, size_t end)
{
    size_t depth = 0;
    while (at < end) {
        char c = t[at];
        if (c == '"') {
            at = skip_string(t, at, end);
        } else if (c == '{' || c == '[') {
            depth++;
            at++;
        } else if (c == '}' || c == ']') {
            if (depth == 0)
                return at;
            depth--;
            at++;
        } else if (depth == 0 && (c == ',' || c == ' ' || c == '\n' || c == '\t' || c == '\r')) {
            return at;
        } else {
            at++;
        }
        if (depth == 0 && (c == '"' || c == '}' || c == ']'))
            return at;
    }
    return at;
}

bool cm_json_place_root(const char *text, size_t nbytes, cm_json_place *out)
{
    out->begin = skip_space(text, 0, nbytes);
    out->end = skip_value(text, out->begin, nbytes);
    return out->begin < out->end;
}

bool cm_json_place_next(const char *text, cm_json_place at, size_t *cursor, cm_json_place *name,
                        cm_json_place *value)
{
    if (at.end <= at.begin + 1 || text[at.begin] != '{')
        return false;
    size_t end = at.end - 1, i = *cursor == 0 ? at.begin + 1 : *cursor;
    i = skip_space(text, i, end);
    if (i < end && text[i] == ',')
        i = skip_space(text, i + 1, end);
    if (i >= end || text[i] != '"')
        return false;
    name->begin = i;
    name->end = i = skip_string(text, i, end);
    i = skip_space(text, i, end);
    if (i >= end || text[i] != ':')
        return false;
    value->begin = skip_space(text, i + 1, end);
    value->end = *cursor = skip_value(text, value->begin, end);
    return value->begin < value->end;
}

char *cm_json_place_text(const char *text, cm_json_place at, cm_error *err)
{
    cm_json *j = NULL;
    if (cm_json_parse(text + at.begin, at.end - at.begin, &j, err) != CM_OK)
        return NULL;
    const char *found = cm_json_text(j, NULL);
    char *copy = NULL;
    if (found != NULL)
        copy = cm_strdup(found, err);
    else
        (void)cm_fail(err, CM_EFORMAT, "a name that is not a string");
    cm_json_free(j);
    return copy;
}

bool cm_json_place_member(const char *text, cm_json_place at, const char *name, cm_json_place *out)
{
    cm_json_place key, value;
    size_t cursor = 0;
    bool found = false;
    while (cm_json_place_next(text, at, &cursor, &key, &value)) {
        char *own = cm_json_place_text(text, key, NULL);
        if (own != NULL && strcmp(own, name) == 0) {
            *out = value;
            found = true;
        }
        free(own);
    }
    return found;
}

bool cm_json_place_element(const char *text, cm_json_place at, size_t i, cm_json_place *out)
{
    if (at.end <= at.begin + 1 || text[at.begin] != '[')
        return false;
    size_t end = at.end - 1, next = at.begin + 1;
    for (;; i--) {
        out->begin = skip_space(text, next, end);
        out->end = skip_value(text, out->begin, end);
        if (out->begin >= out->end)
            return false;
        if (i == 0)
            return true;
        next = skip_space(text, out->end, end);
        if (next >= end || text[next] != ',')
            return false;
        next++;
    }
}

static int by_place(const void *a, const void *b)
{
    const cm_json_edit *x = a, *y = b;
    return (x->at.begin > y->at.begin) - (x->at.begin < y->at.begin);
}

int cm_json_edit_apply(const char *text, size_t nbytes, cm_json_edit *edit, size_t n, cm_buf *out,
                       cm_error *err)
{
    size_t at = 0;
    int rc = CM_OK;
    if (n > 0)
        qsort(edit, n, sizeof(edit[0]), by_place);
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        if (edit[i].at.begin < at || edit[i].at.end > nbytes)
            return cm_fail(err, CM_EINTERNAL, "edits of a document overlap");
        rc = cm_buf_append(out, text + at, edit[i].at.begin - at, err);
        if (rc == CM_OK)
            rc = cm_buf_append(out, edit[i].text, strlen(edit[i].text), err);
        at = edit[i].at.end;
    }
    return rc == CM_OK ? cm_buf_append(out, text + at, nbytes - at, err) : rc;
}
