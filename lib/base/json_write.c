/* The text of a JSON tree: strict, exact, and the same every time. */
#include "base/json.h"

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/utf8.h"

static int write_escape(cm_buf *out, uint8_t c, cm_error *err)
{
    static const char SHORT[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (size_t i = 0; SHORT[i]; i += 2) {
        if (c == (uint8_t)SHORT[i])
            return cm_buf_append(out, (const char[]){'\\', SHORT[i + 1]}, 2, err);
    }
    return cm_buf_printf(out, err, "\\u%04x", c);
}

static int write_string(cm_buf *out, const char *text, size_t n, cm_error *err)
{
    const uint8_t *p = (const uint8_t *)text;
    int rc = cm_buf_append(out, "\"", 1, err);
    size_t plain = 0; /* first byte that was not written yet */
    for (size_t i = 0; i < n && rc == CM_OK;) {
        size_t length = cm_utf8_length(p + i, n - i);
        const bool special = length == 0 || p[i] < 0x20 || p[i] == '"' || p[i] == '\\';
        if (!special) {
            i += length;
            continue;
        }
        if (i > plain)
            rc = cm_buf_append(out, p + plain, i - plain, err);
        if (rc == CM_OK)
            rc = length == 0 ? cm_buf_append(out, CM_UTF8_REPLACEMENT, 3, err)
                             : write_escape(out, p[i], err);
        i += length == 0 ? cm_utf8_bad_length(p + i, n - i) : 1;
        plain = i;
    }
    if (rc == CM_OK && n > plain)
        rc = cm_buf_append(out, p + plain, n - plain, err);
    return rc != CM_OK ? rc : cm_buf_append(out, "\"", 1, err);
}

typedef struct layout {
    bool pretty;
    unsigned depth;
} layout;

static int write_value(const cm_json *j, layout at, cm_buf *out, cm_error *err);

static int write_break(layout at, cm_buf *out, cm_error *err)
{
    return at.pretty ? cm_buf_printf(out, err, "\n%*s", (int)at.depth * 2, "") : CM_OK;
}

static int write_array(const cm_json *j, layout at, cm_buf *out, cm_error *err)
{
    const size_t n = cm_json_length(j);
    const layout inside = {at.pretty, at.depth + 1};
    int rc = cm_buf_append(out, "[", 1, err);
    for (size_t i = 0; i < n && rc == CM_OK; i++) {
        if (i > 0)
            rc = cm_buf_append(out, ",", 1, err);
        if (rc == CM_OK)
            rc = write_break(inside, out, err);
        if (rc == CM_OK)
            rc = write_value(cm_json_at(j, i), inside, out, err);
    }
    if (rc == CM_OK && n > 0)
        rc = write_break(at, out, err);
    return rc != CM_OK ? rc : cm_buf_append(out, "]", 1, err);
}

static int write_object(const cm_json *j, layout at, cm_buf *out, cm_error *err)
{
    const layout inside = {at.pretty, at.depth + 1};
    const char *colon = at.pretty ? ": " : ":";
    int rc = cm_buf_append(out, "{", 1, err);
    bool first = true;
    for (cm_json_iter it = cm_json_begin(j); rc == CM_OK && cm_json_next(&it); first = false) {
        if (!first)
            rc = cm_buf_append(out, ",", 1, err);
        if (rc == CM_OK)
            rc = write_break(inside, out, err);
        if (rc == CM_OK)
            rc = write_string(out, it.name, strlen(it.name), err);
        if (rc == CM_OK)
            rc = cm_buf_append(out, colon, strlen(colon), err);
        if (rc == CM_OK)
            rc = write_value(it.value, inside, out, err);
    }
    if (rc == CM_OK && !first)
        rc = write_break(at, out, err);
    return rc != CM_OK ? rc : cm_buf_append(out, "}", 1, err);
}

static int write_double(double value, cm_buf *out, cm_error *err)
{
    char text[32];
    cm_format_double(value, text, sizeof text);
    return cm_buf_printf(out, err, isfinite(value) ? "%s" : "\"%s\"", text);
}

static int write_value(const cm_json *j, layout at, cm_buf *out, cm_error *err)
{
    uint64_t u;
    int64_t i;
    double d;
    bool b;
    size_t n = 0;
    if (at.depth > CM_JSON_MAX_DEPTH)
        return cm_fail(err, CM_EINVAL, "JSON: nested deeper than %d", CM_JSON_MAX_DEPTH);
    switch (cm_json_type(j)) {
    case CM_JSON_NULL:
        return cm_buf_append(out, "null", 4, err);
    case CM_JSON_BOOL:
        return cm_buf_printf(out, err, "%s", cm_json_get_bool(j, &b) && b ? "true" : "false");
    case CM_JSON_INT:
        if (cm_json_get_i64(j, &i))
            return cm_buf_printf(out, err, "%lld", (long long)i);
        if (cm_json_get_u64(j, &u))
            return cm_buf_printf(out, err, "%llu", (unsigned long long)u);
        break;
    case CM_JSON_DOUBLE:
        if (cm_json_get_double(j, &d))
            return write_double(d, out, err);
        break;
    case CM_JSON_STRING: {
        const char *text = cm_json_text(j, &n);
        return write_string(out, text, n, err);
    }
    case CM_JSON_ARRAY:
        return write_array(j, at, out, err);
    case CM_JSON_OBJECT:
        return write_object(j, at, out, err);
    }
    return cm_fail(err, CM_EINTERNAL, "JSON: a value of no kind");
}

int cm_json_write(const cm_json *j, bool pretty, cm_buf *out, cm_error *err)
{
    return write_value(j, (layout){pretty, 0}, out, err);
}
