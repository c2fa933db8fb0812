#include "base/json.h"

#include <ctype.h>
#include <json-c/json.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/utf8.h"

/* json-c's reading functions take pointers to what they do not change. */
static struct json_object *unconst(const cm_json *j)
{
    return (struct json_object *)(uintptr_t)j;
}

/* ---- parsing -------------------------------------------------------------------------------- */

/*
 * json-c clips integers that need more than 64 bits.  JSON knows only numbers,
 * and some writers print 1e20 with all its zeros, so such an integer that is
 * exactly a double becomes one, by telling the tokener ".0" behind its digits;
 * any other is refused.
 */
typedef enum oddity {
    NOT_ODD,
    INT_IS_DOUBLE,
    INT_TOO_LARGE,
    HALF_PAIR,        /* a surrogate alone, "\ud800", which no UTF-8 can hold */
    CONTROL_IN_STRING /* JSON has none; json-c refuses them since 0.18, and not in names */
} oddity;

static oddity fit_of(const char *digits, size_t n, bool negative)
{
    char token[400], whole[400]; /* DBL_MAX has 309 digits */
    if (n >= sizeof token)
        return INT_TOO_LARGE;
    memcpy(token, digits, n);
    token[n] = 0;
    uint64_t size = 0;
    if (!cm_parse_u64(token, &size, NULL) && (!negative || size <= (uint64_t)INT64_MAX + 1))
        return NOT_ODD;
    snprintf(whole, sizeof whole, "%.0f", strtod(token, NULL));
    return strcmp(whole, token) ? INT_TOO_LARGE : INT_IS_DOUBLE;
}

/* The code of "\uXXXX" at TEXT, of which N bytes are there; 0: it is none. */
static unsigned escaped(const char *text, size_t n)
{
    unsigned code = 0;
    if (n < 6 || text[0] != '\\' || text[1] != 'u')
        return 0;
    for (size_t i = 2; i < 6; i++) {
        const char *digits = "0123456789abcdef", *at = NULL;
        if (isxdigit((unsigned char)text[i]))
            at = strchr(digits, tolower((unsigned char)text[i]));
        if (at == NULL)
            return 0;
        code = code << 4 | (unsigned)(at - digits);
    }
    return code;
}

static bool is_half(const char *text, size_t n, size_t *whole)
{
    const unsigned code = escaped(text, n);
    const bool leads = code >= 0xd800 && code < 0xdc00;
    *whole = 2;
    if (code < 0xd800 || code > 0xdfff)
        return false;
    const unsigned second = leads ? escaped(text + 6, n - 6) : 0;
    *whole = 12;
    return second < 0xdc00 || second > 0xdfff;
}

/* The end of the next piece of TEXT, which starts at POS outside of strings: behind an integer
   that does not fit 64 bits, at a control character of a string, or the end. */
static size_t piece_end(const char *text, size_t pos, size_t n, oddity *odd, size_t *token)
{
    *odd = NOT_ODD;
    while (pos < n) {
        if (text[pos] == '"') {
            for (pos++; pos < n && text[pos] != '"'; pos++) {
                if ((unsigned char)text[pos] < 0x20) {
                    *odd = CONTROL_IN_STRING;
                    *token = pos;
                    return pos;
                }
                size_t whole;
                if (text[pos] != '\\')
                    continue;
                if (is_half(text + pos, n - pos, &whole)) {
                    *odd = HALF_PAIR;
                    *token = pos;
                    return pos;
                }
                pos += whole - 1;
            }
            pos++;
        } else if (text[pos] >= '0' && text[pos] <= '9') {
            size_t start = pos;
            while (pos < n && text[pos] >= '0' && text[pos] <= '9')
                pos++;
            /* A fraction or an exponent makes it a double whose digits do not matter here;
               digits of either are skipped with it. */
            if (pos < n && strchr(".eE", text[pos]) != NULL) {
                while (pos < n && text[pos] && strchr(".eE+-0123456789", text[pos]) != NULL)
                    pos++;
                continue;
            }
            if (pos - start < 19)
                continue;
            *odd = fit_of(text + start, pos - start, start > 0 && text[start - 1] == '-');
            *token = start;
            if (*odd != NOT_ODD)
                return pos;
        } else {
            pos++;
        }
    }
    return n;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/*
 * Hands on N > 0 bytes; *END: how many were taken.  Strict: no comments, no trailing
 * commas or text; NaN and the infinities still pass.  json-c 0.18 takes bytes above 127
 * for control characters where it is strict (its issue 875).  They stand in strings
 * alone, where strictness has nothing to say of them.
 */
static struct json_object *feed(struct json_tokener *tok, const char *text, size_t n, size_t *end)
{
    struct json_object *tree;
    size_t pos = 0, stop = 0;
    do {
        const bool ascii = (unsigned char)text[pos] < 128;
        while (stop < n && ((unsigned char)text[stop] < 128) == ascii)
            stop++;
        json_tokener_set_flags(tok, ascii ? JSON_TOKENER_STRICT : 0);
        tree = json_tokener_parse_ex(tok, text + pos, (int)(stop - pos));
        *end = pos + json_tokener_get_parse_end(tok);
        pos = stop;
    } while (pos < n && json_tokener_get_error(tok) == json_tokener_continue);
    json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
    return tree;
}

static int parse_pieces(struct json_tokener *tok, const char *text, size_t n, cm_json **out,
                        cm_error *err)
{
    struct json_object *tree = NULL;
    enum json_tokener_error state = json_tokener_continue;
    size_t pos = 0, bad = 0;
    while (pos < n && state == json_tokener_continue) {
        oddity odd;
        size_t token;
        size_t end = piece_end(text, pos, n, &odd, &token);
        if (odd == CONTROL_IN_STRING)
            return cm_fail(err, CM_EFORMAT, "JSON: a control character in a string at byte %zu",
                           token);
        if (odd == HALF_PAIR)
            return cm_fail(err, CM_EFORMAT,
                           "JSON: half of a surrogate pair at byte %zu, which is no character",
                           token);
        if (odd == INT_TOO_LARGE)
            return cm_fail(err, CM_EFORMAT, "JSON: the integer at byte %zu does not fit 64 bits",
                           token);
        tree = feed(tok, text + pos, end - pos, &bad);
        state = json_tokener_get_error(tok);
        bad += pos;
        if (state == json_tokener_continue && odd == INT_IS_DOUBLE) {
            tree = json_tokener_parse_ex(tok, ".0", 2);
            state = json_tokener_get_error(tok);
        }
        pos = end;
    }
    if (state == json_tokener_continue) {
        /* A number at the very end is complete only when something follows. */
        tree = json_tokener_parse_ex(tok, "", 1);
        state = json_tokener_get_error(tok);
        bad = n;
    }
    if (state != json_tokener_success)
        return cm_fail(err, CM_EFORMAT, "JSON: %s at byte %zu", json_tokener_error_desc(state),
                       bad);
    for (; bad < n; bad++) {
        if (!is_space(text[bad])) {
            json_object_put(tree);
            return cm_fail(err, CM_EFORMAT, "JSON: text after the value at byte %zu", bad);
        }
    }
    *out = tree;
    return CM_OK;
}

/*
 * Levels that a tokener is to have room for: no more than TEXT has brackets.  It clears all of
 * them, which took a quarter of the time for a variable's attributes.
 */
static int depth_of(const char *text, size_t n)
{
    int depth = 2; /* json-c counts the level below the innermost container too */
    for (size_t i = 0; i < n && depth <= CM_JSON_MAX_DEPTH; i++)
        depth += text[i] == '{' || text[i] == '[';
    return depth <= CM_JSON_MAX_DEPTH ? depth : CM_JSON_MAX_DEPTH + 1;
}

/* Bytes of TEXT in front of the first that is not UTF-8; N: all are. */
static size_t valid_nbytes(const void *text, size_t n)
{
    const uint8_t *p = text;
    size_t i = 0, length = 1;
    while (i < n && length > 0) {
        length = p[i] < 128 ? 1 : cm_utf8_length(p + i, n - i);
        i += length;
    }
    return i;
}

int cm_json_parse(const void *text, size_t nbytes, cm_json **out, cm_error *err)
{
    *out = NULL;
    if (nbytes >= INT_MAX)
        return cm_fail(err, CM_EUNSUPPORTED, "JSON: a text of %zu bytes is too long", nbytes);
    const char *nul = nbytes ? memchr(text, 0, nbytes) : NULL;
    if (nul != NULL)
        return cm_fail(err, CM_EFORMAT, "JSON: a NUL at byte %zu",
                       (size_t)(nul - (const char *)text));
    const size_t valid = valid_nbytes(text, nbytes);
    if (valid < nbytes)
        return cm_fail(err, CM_EFORMAT, "JSON: the text at byte %zu is not UTF-8", valid);
    struct json_tokener *tok = json_tokener_new_ex(depth_of(text, nbytes));
    if (tok == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory to parse JSON");
    int rc = parse_pieces(tok, text, nbytes, out, err);
    json_tokener_free(tok);
    return rc;
}

/* ---- reading -------------------------------------------------------------------------------- */

void cm_json_free(cm_json *j)
{
    json_object_put(j);
}

cm_json *cm_json_copy(const cm_json *j)
{
    struct json_object *copy = NULL;
    if (j == NULL || json_object_deep_copy(unconst(j), &copy, NULL))
        return NULL;
    return copy;
}

cm_json *cm_json_share(const cm_json *j)
{
    return json_object_get(unconst(j));
}

static bool arrays_equal(const cm_json *a, const cm_json *b)
{
    const size_t n = cm_json_length(a);
    if (n != cm_json_length(b))
        return false;
    for (size_t i = 0; i < n; i++) {
        if (!cm_json_equal(cm_json_at(a, i), cm_json_at(b, i)))
            return false;
    }
    return true;
}

static bool objects_equal(const cm_json *a, const cm_json *b)
{
    if (cm_json_length(a) != cm_json_length(b))
        return false;
    for (cm_json_iter it = cm_json_begin(a); cm_json_next(&it);) {
        if (!cm_json_has(b, it.name) || !cm_json_equal(it.value, cm_json_member(b, it.name)))
            return false;
    }
    return true;
}

bool cm_json_equal(const cm_json *a, const cm_json *b)
{
    const cm_json_kind kind = cm_json_type(a);
    if (a == b)
        return true;
    if (kind != cm_json_type(b))
        return false;
    if (kind == CM_JSON_ARRAY)
        return arrays_equal(a, b);
    if (kind == CM_JSON_OBJECT)
        return objects_equal(a, b);
    /* To json-c a NaN differs from itself; two texts that say NaN are the same. */
    if (kind == CM_JSON_DOUBLE && isnan(json_object_get_double(a)))
        return isnan(json_object_get_double(b));
    return json_object_equal(unconst(a), unconst(b));
}

cm_json_kind cm_json_type(const cm_json *j)
{
    switch (json_object_get_type(j)) {
    case json_type_boolean:
        return CM_JSON_BOOL;
    case json_type_int:
        return CM_JSON_INT;
    case json_type_double:
        return CM_JSON_DOUBLE;
    case json_type_string:
        return CM_JSON_STRING;
    case json_type_array:
        return CM_JSON_ARRAY;
    case json_type_object:
        return CM_JSON_OBJECT;
    case json_type_null:
        break;
    }
    return CM_JSON_NULL;
}

bool cm_json_is(const cm_json *j, cm_json_kind kind)
{
    return cm_json_type(j) == kind;
}

bool cm_json_get_u64(const cm_json *j, uint64_t *out)
{
    if (!cm_json_is(j, CM_JSON_INT) || json_object_get_int64(j) < 0)
        return false;
    *out = json_object_get_uint64(j);
    return true;
}

bool cm_json_get_i64(const cm_json *j, int64_t *out)
{
    if (!cm_json_is(j, CM_JSON_INT))
        return false;
    /* json-c clips what lies above INT64_MAX to it. */
    const int64_t i = json_object_get_int64(j);
    if (i >= 0 && json_object_get_uint64(j) != (uint64_t)i)
        return false;
    *out = i;
    return true;
}

bool cm_json_get_double(const cm_json *j, double *out)
{
    int64_t i;
    uint64_t u;
    if (cm_json_is(j, CM_JSON_DOUBLE))
        *out = json_object_get_double(j);
    else if (cm_json_get_i64(j, &i))
        *out = (double)i;
    else if (cm_json_get_u64(j, &u))
        *out = (double)u;
    else
        return false;
    return true;
}

bool cm_json_get_bool(const cm_json *j, bool *out)
{
    if (!cm_json_is(j, CM_JSON_BOOL))
        return false;
    *out = json_object_get_boolean(j);
    return true;
}

const char *cm_json_text(const cm_json *j, size_t *nbytes)
{
    if (!cm_json_is(j, CM_JSON_STRING))
        return NULL;
    if (nbytes != NULL)
        *nbytes = (size_t)json_object_get_string_len(j);
    return json_object_get_string(unconst(j));
}

size_t cm_json_length(const cm_json *j)
{
    if (cm_json_is(j, CM_JSON_ARRAY))
        return json_object_array_length(j);
    return cm_json_is(j, CM_JSON_OBJECT) ? (size_t)json_object_object_length(j) : 0;
}

const cm_json *cm_json_at(const cm_json *array, size_t i)
{
    return cm_json_is(array, CM_JSON_ARRAY) ? json_object_array_get_idx(array, i) : NULL;
}

const cm_json *cm_json_member(const cm_json *object, const char *name)
{
    struct json_object *value = NULL;
    if (!cm_json_is(object, CM_JSON_OBJECT) || !json_object_object_get_ex(object, name, &value))
        return NULL;
    return value;
}

bool cm_json_has(const cm_json *object, const char *name)
{
    return cm_json_is(object, CM_JSON_OBJECT) && json_object_object_get_ex(object, name, NULL);
}

cm_json_iter cm_json_begin(const cm_json *object)
{
    cm_json_iter it = {NULL, NULL, NULL};
    if (cm_json_is(object, CM_JSON_OBJECT))
        it.entry = json_object_get_object(object)->head;
    return it;
}

bool cm_json_next(cm_json_iter *it)
{
    const struct lh_entry *entry = it->entry;
    if (entry == NULL)
        return false;
    it->name = entry->k;
    it->value = entry->v;
    it->entry = entry->next;
    return true;
}

/* ---- making --------------------------------------------------------------------------------- */

cm_json *cm_json_object(void)
{
    return json_object_new_object();
}

cm_json *cm_json_array(void)
{
    return json_object_new_array();
}

cm_json *cm_json_u64(uint64_t v)
{
    return json_object_new_uint64(v);
}

cm_json *cm_json_i64(int64_t v)
{
    return json_object_new_int64(v);
}

cm_json *cm_json_double(double v)
{
    return json_object_new_double(v);
}

cm_json *cm_json_float(float v)
{
    return json_object_new_double((double)v);
}

cm_json *cm_json_bool(bool v)
{
    return json_object_new_boolean(v);
}

cm_json *cm_json_string(const char *text)
{
    return cm_json_string_n(text, strlen(text));
}

cm_json *cm_json_string_n(const char *text, size_t nbytes)
{
    return nbytes < INT_MAX ? json_object_new_string_len(text, (int)nbytes) : NULL;
}

/* Stores VALUE, which may be NULL for null, and frees it when that fails. */
static int set_member(cm_json *object, const char *name, cm_json *value, cm_error *err)
{
    int rc = CM_OK;
    if (object == NULL)
        rc = cm_fail(err, CM_ENOMEM, "no memory for the JSON member '%s'", name);
    else if (!cm_json_is(object, CM_JSON_OBJECT))
        rc = cm_fail(err, CM_EINTERNAL, "JSON: '%s' is set in a value that is not an object", name);
    else if (json_object_object_add(object, name, value))
        rc = cm_fail(err, CM_ENOMEM, "no memory for the JSON member '%s'", name);
    if (rc != CM_OK)
        json_object_put(value);
    return rc;
}

static int append_element(cm_json *array, cm_json *value, cm_error *err)
{
    int rc = CM_OK;
    if (array == NULL)
        rc = cm_fail(err, CM_ENOMEM, "no memory for a JSON array");
    else if (!cm_json_is(array, CM_JSON_ARRAY))
        rc =
            cm_fail(err, CM_EINTERNAL, "JSON: an element is added to a value that is not an array");
    else if (json_object_array_add(array, value))
        rc = cm_fail(err, CM_ENOMEM, "no memory for a JSON array");
    if (rc != CM_OK)
        json_object_put(value);
    return rc;
}

int cm_json_set(cm_json *object, const char *name, cm_json *value, cm_error *err)
{
    if (value == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for the JSON member '%s'", name);
    return set_member(object, name, value, err);
}

int cm_json_set_null(cm_json *object, const char *name, cm_error *err)
{
    return set_member(object, name, NULL, err);
}

int cm_json_append(cm_json *array, cm_json *value, cm_error *err)
{
    if (value == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for an element of a JSON array");
    return append_element(array, value, err);
}

int cm_json_append_null(cm_json *array, cm_error *err)
{
    return append_element(array, NULL, err);
}

void cm_json_remove(cm_json *object, const char *name)
{
    if (cm_json_is(object, CM_JSON_OBJECT))
        json_object_object_del(object, name);
}
