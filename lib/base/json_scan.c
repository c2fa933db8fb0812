#include "base/json_scan.h"

#include <string.h>

#include "base/utf8.h"

static int fail(const cm_json_scan *s, cm_error *err, const char *what)
{
    return cm_fail(err, CM_EFORMAT, "JSON: %s at byte %zu", what, (size_t)(s->at - s->begin));
}

static void skip_space(cm_json_scan *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r'))
        s->at++;
}

/* AT is behind the string that begins there; false: it has no end. */
static bool skip_string(cm_json_scan *s)
{
    for (const char *p = s->at + 1; p < s->end; p++) {
        const char *quote = memchr(p, '"', (size_t)(s->end - p));
        const char *escape = quote == NULL ? NULL : memchr(p, '\\', (size_t)(quote - p));
        if (quote == NULL)
            return false;
        if (escape == NULL) {
            s->at = quote + 1;
            return true;
        }
        p = escape + 1; /* skip the escaped character */
    }
    return false;
}

static bool skip_nested(cm_json_scan *s)
{
    size_t depth = 0;
    while (s->at < s->end) {
        char c = *s->at;
        if (c == '"') {
            if (!skip_string(s))
                return false;
            continue;
        }
        depth += c == '{' || c == '[';
        s->at++;
        if ((c == '}' || c == ']') && --depth == 0)
            return true;
    }
    return false;
}

static int take_value(cm_json_scan *s, cm_json_slice *out, cm_error *err)
{
    const char *begin = s->at;
    bool whole = true;
    if (s->at < s->end && *s->at == '"')
        whole = skip_string(s);
    else if (s->at < s->end && (*s->at == '{' || *s->at == '['))
        whole = skip_nested(s);
    else
        while (s->at < s->end && strchr(",}] \t\r\n", *s->at) == NULL)
            s->at++;
    if (!whole)
        s->at = s->end;
    if (!whole || s->at == begin)
        return fail(s, err, whole ? "no value" : "the end of the text");
    *out = (cm_json_slice){begin, (size_t)(s->at - begin)};
    return CM_OK;
}

int cm_json_scan_begin(cm_json_scan *s, const void *text, size_t nbytes, cm_error *err)
{
    const char *first = text != NULL ? text : ""; /* an empty buffer has no address */
    *s = (cm_json_scan){first, first, first + nbytes, false};
    skip_space(s);
    if (s->at == s->end || *s->at != '{')
        return fail(s, err, "no object");
    s->at++;
    return CM_OK;
}

static int end_of_object(cm_json_scan *s, cm_error *err)
{
    s->at++;
    skip_space(s);
    return s->at == s->end ? CM_OK : fail(s, err, "more than one value");
}

int cm_json_scan_next(cm_json_scan *s, cm_json_slice *name, cm_json_slice *value, bool *more,
                      cm_error *err)
{
    *more = false;
    skip_space(s);
    if (s->at < s->end && *s->at == '}')
        return end_of_object(s, err);
    if (s->any && (s->at == s->end || *s->at != ','))
        return fail(s, err, s->at == s->end ? "the end of the text" : "no ','");
    s->at += s->any;
    s->any = true;
    skip_space(s);
    if (s->at == s->end || *s->at != '"')
        return fail(s, err, "no name");
    int rc = take_value(s, name, err);
    if (rc != CM_OK)
        return rc;
    skip_space(s);
    if (s->at == s->end || *s->at != ':')
        return fail(s, err, "no ':'");
    s->at++;
    skip_space(s);
    rc = take_value(s, value, err);
    *more = rc == CM_OK;
    return rc;
}

bool cm_json_slice_is_plain(const cm_json_slice *slice)
{
    if (slice->nbytes < 2 || slice->text[0] != '"')
        return false;
    for (size_t i = 1; i + 1 < slice->nbytes; i++)
        if ((unsigned char)slice->text[i] < ' ' || slice->text[i] == '\\')
            return false;
    return cm_utf8_is_valid(slice->text + 1, slice->nbytes - 2);
}
