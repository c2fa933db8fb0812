#include "format/icechunk/flex_write.h"

#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 8, /* of all numbers and offsets, */
    BITS = 3   /* and so in types */
};

typedef enum flex_type {
    FLEX_NULL = 0,
    FLEX_INT = 1,
    FLEX_UINT = 2,
    FLEX_FLOAT = 3,
    FLEX_KEY = 4,
    FLEX_STRING = 5,
    FLEX_MAP = 9,
    FLEX_VECTOR = 10,
    FLEX_BOOL = 26
} flex_type;

/* A value: its bits or, of what lies in the buffer already, its position. */
typedef struct flex_value {
    flex_type type;
    bool is_offset;
    uint64_t bits;
} flex_value;

static uint8_t packed(flex_type type)
{
    return (uint8_t)((unsigned)type << 2 | BITS);
}

static int put(cm_buf *out, uint64_t v, cm_error *err)
{
    uint8_t bytes[WIDTH];
    cm_store_le64(bytes, v);
    return cm_buf_append(out, bytes, WIDTH, err);
}

/* Offsets go back from where they stand. */
static int put_value(cm_buf *out, const flex_value *v, cm_error *err)
{
    return put(out, v->is_offset ? out->nbytes - v->bits : v->bits, err);
}

static int align(cm_buf *out, cm_error *err)
{
    static const uint8_t zero[WIDTH] = {0};
    size_t past = out->nbytes % WIDTH;
    return past == 0 ? CM_OK : cm_buf_append(out, zero, WIDTH - past, err);
}

static int write_string(cm_buf *out, const char *text, size_t nbytes, flex_value *v, cm_error *err)
{
    int rc = align(out, err);
    if (rc == CM_OK)
        rc = put(out, nbytes, err);
    *v = (flex_value){FLEX_STRING, true, out->nbytes};
    if (rc == CM_OK)
        rc = cm_buf_append(out, text, nbytes, err);
    return rc == CM_OK ? cm_buf_append(out, "", 1, err) : rc;
}

static int write_value(cm_buf *out, const cm_json *j, flex_value *v, cm_error *err);

/* The N values V, and their types behind them where they differ. */
static int write_values(cm_buf *out, const flex_value *v, size_t n, bool typed, uint64_t *at,
                        cm_error *err)
{
    int rc = put(out, n, err);
    *at = out->nbytes;
    for (size_t i = 0; rc == CM_OK && i < n; i++)
        rc = put_value(out, &v[i], err);
    for (size_t i = 0; rc == CM_OK && !typed && i < n; i++) {
        uint8_t type = packed(v[i].type);
        rc = cm_buf_append(out, &type, 1, err);
    }
    return rc;
}

static int write_array(cm_buf *out, const cm_json *j, flex_value *v, cm_error *err)
{
    size_t n = cm_json_length(j);
    flex_value *item = cm_calloc(n + 1, sizeof(item[0]), err);
    int rc = item == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < n; i++)
        rc = write_value(out, cm_json_at(j, i), &item[i], err);
    if (rc == CM_OK)
        rc = align(out, err);
    *v = (flex_value){FLEX_VECTOR, true, 0};
    if (rc == CM_OK)
        rc = write_values(out, item, n, false, &v->bits, err);
    free(item);
    return rc;
}

typedef struct member {
    const char *name;
    const cm_json *value;
} member;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const member *)a)->name, ((const member *)b)->name);
}

/* Keys sorted, in a vector of their own in front of the values. */
static int write_members(cm_buf *out, const member *m, flex_value *key, flex_value *value, size_t n,
                         flex_value *v, cm_error *err)
{
    uint64_t keys;
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        key[i] = (flex_value){FLEX_KEY, true, out->nbytes};
        rc = cm_buf_append(out, m[i].name, strlen(m[i].name) + 1, err);
    }
    for (size_t i = 0; rc == CM_OK && i < n; i++)
        rc = write_value(out, m[i].value, &value[i], err);
    if (rc == CM_OK)
        rc = align(out, err);
    if (rc == CM_OK)
        rc = write_values(out, key, n, true, &keys, err);
    if (rc == CM_OK)
        rc = put_value(out, &(flex_value){FLEX_KEY, true, keys}, err);
    if (rc == CM_OK)
        rc = put(out, WIDTH, err);
    return rc == CM_OK ? write_values(out, value, n, false, &v->bits, err) : rc;
}

static int write_object(cm_buf *out, const cm_json *j, flex_value *v, cm_error *err)
{
    size_t n = cm_json_length(j), i = 0;
    member *m = cm_calloc(n + 1, sizeof(m[0]), err);
    flex_value *key = cm_calloc(n + 1, sizeof(key[0]), err);
    flex_value *value = cm_calloc(n + 1, sizeof(value[0]), err);
    int rc = m == NULL || key == NULL || value == NULL ? CM_ENOMEM : CM_OK;
    for (cm_json_iter it = cm_json_begin(j); rc == CM_OK && i < n && cm_json_next(&it);)
        m[i++] = (member){it.name, it.value};
    *v = (flex_value){FLEX_MAP, true, 0};
    if (rc == CM_OK) {
        qsort(m, n, sizeof(m[0]), by_name);
        rc = write_members(out, m, key, value, n, v, err);
    }
    free(m);
    free(key);
    free(value);
    return rc;
}

static flex_value number(const cm_json *j)
{
    flex_value v = {FLEX_FLOAT, false, 0};
    int64_t whole;
    double d = 0;
    if (cm_json_get_i64(j, &whole))
        return (flex_value){FLEX_INT, false, (uint64_t)whole};
    if (cm_json_get_u64(j, &v.bits)) {
        v.type = FLEX_UINT;
        return v;
    }
    (void)cm_json_get_double(j, &d);
    memcpy(&v.bits, &d, sizeof(d));
    return v;
}

static int write_value(cm_buf *out, const cm_json *j, flex_value *v, cm_error *err)
{
    bool truth = false;
    size_t nbytes;
    const char *text;
    switch (cm_json_type(j)) {
    case CM_JSON_BOOL:
        (void)cm_json_get_bool(j, &truth);
        *v = (flex_value){FLEX_BOOL, false, truth};
        return CM_OK;
    case CM_JSON_INT:
    case CM_JSON_DOUBLE:
        *v = number(j);
        return CM_OK;
    case CM_JSON_STRING:
        text = cm_json_text(j, &nbytes);
        return write_string(out, text, nbytes, v, err);
    case CM_JSON_ARRAY:
        return write_array(out, j, v, err);
    case CM_JSON_OBJECT:
        return write_object(out, j, v, err);
    case CM_JSON_NULL:
        break;
    }
    *v = (flex_value){FLEX_NULL, false, 0};
    return CM_OK;
}

int cm_flex_write(const cm_json *j, cm_buf *out, cm_error *err)
{
    flex_value root;
    out->nbytes = 0;
    int rc = write_value(out, j, &root, err);
    if (rc == CM_OK)
        rc = align(out, err);
    if (rc == CM_OK)
        rc = put_value(out, &root, err);
    const uint8_t end[2] = {packed(root.type), WIDTH};
    return rc == CM_OK ? cm_buf_append(out, end, sizeof(end), err) : rc;
}
