#include "yaml.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#include "base/number.h"

/*
 * YAML 1.1, which PyYAML reads, takes these for booleans and null, and 1.2 some of
 * them (yaml.org/type/bool.html, yaml.org/type/null.html).
 */
static const char *const RESERVED[] = {"y",    "n",     "yes",  "no",  "on", "off",
                                       "true", "false", "null", "inf", "nan"};

static bool is_plain(const char *text)
{
    static const char FIRST[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    static const char REST[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./";

    if (*text == '\0' || strchr(FIRST, *text) == NULL || text[strspn(text, REST)] != '\0')
        return false;
    for (size_t i = 0; i < sizeof(RESERVED) / sizeof(RESERVED[0]); i++)
        if (strcasecmp(text, RESERVED[i]) == 0)
            return false;
    return true;
}

/* NBYTES of TEXT, valid UTF-8 as all text of a document is, in double quotes. */
static void print_quoted(const char *text, size_t nbytes, FILE *to)
{
    putc('"', to);
    for (size_t i = 0; i < nbytes; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            fprintf(to, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            fprintf(to, "\\x%02x", c);
        else if (c == 0xc2 && i + 1 < nbytes && (unsigned char)text[i + 1] < 0xa0)
            fprintf(to, "\\x%02x", (unsigned char)text[++i]); /* C1, next line included */
        else if (c == 0xe2 && i + 2 < nbytes && (unsigned char)text[i + 1] == 0x80 &&
                 ((unsigned char)text[i + 2] & 0xfe) == 0xa8) {
            fprintf(to, "\\u20%02x", (unsigned char)text[i + 2] - 0x80); /* line separators */
            i += 2;
        } else
            putc(c, to);
    }
    putc('"', to);
}

static void print_text(const char *text, size_t nbytes, FILE *to)
{
    if (strlen(text) == nbytes && is_plain(text))
        fputs(text, to);
    else
        print_quoted(text, nbytes, to);
}

/* YAML 1.1 wants a point in the mantissa and a sign in the exponent. */
static void print_double(double v, FILE *to)
{
    char buf[40];

    if (!isfinite(v)) {
        fputs(isnan(v) ? ".nan" : v > 0 ? ".inf" : "-.inf", to);
        return;
    }
    cm_format_double(v, buf, sizeof(buf));
    size_t mantissa = strcspn(buf, "e");
    fprintf(to, "%.*s", (int)mantissa, buf);
    if (memchr(buf, '.', mantissa) == NULL)
        fputs(".0", to);
    if (buf[mantissa] == 'e') {
        const char *exponent = buf + mantissa + 1;
        fprintf(to, "e%s%s", *exponent == '-' || *exponent == '+' ? "" : "+", exponent);
    }
}

static void print_scalar(const cm_json *j, FILE *to)
{
    size_t nbytes;
    int64_t i = 0;
    uint64_t u = 0;
    double v = 0;
    bool b = false;

    switch (cm_json_type(j)) {
    case CM_JSON_NULL:
        fputs("null", to);
        break;
    case CM_JSON_BOOL:
        cm_json_get_bool(j, &b);
        fputs(b ? "true" : "false", to);
        break;
    case CM_JSON_INT:
        if (cm_json_get_u64(j, &u))
            fprintf(to, "%" PRIu64, u);
        else if (cm_json_get_i64(j, &i))
            fprintf(to, "%" PRId64, i);
        break;
    case CM_JSON_DOUBLE:
        cm_json_get_double(j, &v);
        print_double(v, to);
        break;
    case CM_JSON_STRING: {
        const char *text = cm_json_text(j, &nbytes);
        print_text(text, nbytes, to);
        break;
    }
    case CM_JSON_ARRAY:
        fputs("[]", to);
        break;
    case CM_JSON_OBJECT:
        fputs("{}", to);
        break;
    }
}

static bool is_block(const cm_json *j)
{
    cm_json_kind kind = cm_json_type(j);
    return (kind == CM_JSON_ARRAY || kind == CM_JSON_OBJECT) && cm_json_length(j) > 0;
}

/*
 * Recursion ends: a tree is no deeper than CM_JSON_MAX_DEPTH.  STARTED: a dash stands on the
 * line.
 */
static void print_block(const cm_json *j, int indent, bool started, FILE *to)
{
    if (cm_json_is(j, CM_JSON_OBJECT)) {
        cm_json_iter it = cm_json_begin(j);
        while (cm_json_next(&it)) {
            fprintf(to, "%*s", started ? 0 : indent, "");
            started = false;
            print_text(it.name, strlen(it.name), to);
            putc(':', to);
            if (is_block(it.value)) {
                putc('\n', to);
                print_block(it.value, indent + 2, false, to);
                continue;
            }
            putc(' ', to);
            print_scalar(it.value, to);
            putc('\n', to);
        }
        return;
    }
    for (size_t i = 0; i < cm_json_length(j); i++) {
        const cm_json *value = cm_json_at(j, i);
        fprintf(to, "%*s- ", started ? 0 : indent, "");
        started = false;
        if (is_block(value)) {
            print_block(value, indent + 2, true, to);
            continue;
        }
        print_scalar(value, to);
        putc('\n', to);
    }
}

void readbench_print_yaml(const cm_json *j, FILE *to)
{
    if (is_block(j)) {
        print_block(j, 0, false, to);
        return;
    }
    print_scalar(j, to);
    putc('\n', to);
}
