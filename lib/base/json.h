/*
 * JSON, over a library that keeps 64-bit integers and the order of members.
 *
 * A cm_json is a tree.  JSON null is the NULL pointer, so every reading
 * function accepts NULL.  A tree has one owner; cm_json_set and cm_json_append
 * pass ownership of the value to the container, also when they fail.
 * Constructors return NULL when there is no memory, and cm_json_set and
 * cm_json_append report a NULL value as CM_ENOMEM, so that a chain of
 * constructors needs one check.  A tree may be read by many threads at once if
 * none writes it.
 *
 * Reading is tolerant: bare NaN, Infinity and -Infinity are doubles, as
 * zarr-python writes them.  Writing is strict: non-finite doubles come out as
 * the strings "NaN", "Infinity" and "-Infinity", doubles in the shortest form
 * that reads back the same and always with a point or an exponent, text in
 * valid UTF-8 (bad bytes become U+FFFD); text that is parsed must be UTF-8.
 */
#ifndef CM_BASE_JSON_H
#define CM_BASE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

typedef struct json_object cm_json;

typedef enum cm_json_kind {
    CM_JSON_NULL,
    CM_JSON_BOOL,
    CM_JSON_INT, /* any integer: int64 or uint64 */
    CM_JSON_DOUBLE,
    CM_JSON_STRING,
    CM_JSON_ARRAY,
    CM_JSON_OBJECT
} cm_json_kind;

enum {
    CM_JSON_MAX_DEPTH = 64
}; /* deeper input is CM_EFORMAT */

/*
 * Parses NBYTES of TEXT, all of it one value.  The error gives the offset.  *out may be NULL
 * for null.
 */
int cm_json_parse(const void *text, size_t nbytes, cm_json **out, cm_error *err);
/* Appends the text of J; PRETTY: two spaces of indentation and newlines. */
int cm_json_write(const cm_json *j, bool pretty, cm_buf *out, cm_error *err);
void cm_json_free(cm_json *j);
cm_json *cm_json_copy(const cm_json *j); /* deep */
/*
 * Another owner of J, to be freed like a copy; from now on none of them changes it.  Owners of one
 * value are of one thread at a time.
 */
cm_json *cm_json_share(const cm_json *j);
bool cm_json_equal(const cm_json *a, const cm_json *b);

cm_json_kind cm_json_type(const cm_json *j);
bool cm_json_is(const cm_json *j, cm_json_kind kind);

/* False when J is not an integer or does not fit; *out is then unchanged. */
bool cm_json_get_u64(const cm_json *j, uint64_t *out);
bool cm_json_get_i64(const cm_json *j, int64_t *out);
/* Any number; false otherwise. */
bool cm_json_get_double(const cm_json *j, double *out);
bool cm_json_get_bool(const cm_json *j, bool *out);
/* The text, NUL-terminated, owned by J; NULL when J is not a string.  NBYTES may be NULL. */
const char *cm_json_text(const cm_json *j, size_t *nbytes);

size_t cm_json_length(const cm_json *j); /* elements of an array or members of an object, else 0 */
const cm_json *cm_json_at(const cm_json *array, size_t i);
const cm_json *cm_json_member(const cm_json *object, const char *name); /* NULL: absent or null */
bool cm_json_has(const cm_json *object, const char *name);

/*
 * Members in order: cm_json_iter it = cm_json_begin(o); while (cm_json_next(&it)) use it.name,
 * it.value;
 */
typedef struct cm_json_iter {
    const char *name;
    const cm_json *value;
    const void *entry;
} cm_json_iter;
cm_json_iter cm_json_begin(const cm_json *object);
bool cm_json_next(cm_json_iter *it);

cm_json *cm_json_object(void);
cm_json *cm_json_array(void);
cm_json *cm_json_u64(uint64_t v);
cm_json *cm_json_i64(int64_t v);
cm_json *cm_json_double(double v);
cm_json *cm_json_float(float v); /* the float's exact double, as xarray compares it */
cm_json *cm_json_bool(bool v);
cm_json *cm_json_string(const char *text);
cm_json *cm_json_string_n(const char *text, size_t nbytes);

int cm_json_set(cm_json *object, const char *name, cm_json *value, cm_error *err);
int cm_json_set_null(cm_json *object, const char *name, cm_error *err);
int cm_json_append(cm_json *array, cm_json *value, cm_error *err);
int cm_json_append_null(cm_json *array, cm_error *err);
void cm_json_remove(cm_json *object, const char *name);

#endif
