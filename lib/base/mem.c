#include "base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements are little-endian in memory everywhere; nothing swaps on behalf of the host. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the host must be little-endian");
_Static_assert(sizeof(size_t) == 8, "sizes of arrays need 64 bits");

enum {
    ALIGNMENT = 64, /* a cache line, and the widest vector */
    FIRST_CAPACITY = 256
};

bool cm_mul_size(size_t a, size_t b, size_t *out)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

bool cm_add_size(size_t a, size_t b, size_t *out)
{
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *out = sum;
    return true;
}

bool cm_mul_u64(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

bool cm_product_u64(size_t n, const uint64_t *factor, uint64_t *out)
{
    uint64_t product = 1;
    bool fits = true;
    for (size_t i = 0; i < n; i++) {
        /* A zero wins wherever it stands: what overflowed before it does not count. */
        if (factor[i] == 0) {
            *out = 0;
            return true;
        }
        fits = fits && cm_mul_u64(product, factor[i], &product);
    }
    if (fits)
        *out = product;
    return fits;
}

void *cm_make_room(void *items, size_t n, size_t *capacity, size_t size, size_t first)
{
    size_t more = first, nbytes;
    if (n < *capacity)
        return items;
    if ((*capacity > 0 && !cm_mul_size(*capacity, 2, &more)) || !cm_mul_size(more, size, &nbytes))
        return NULL;
    void *moved = realloc(items, nbytes);
    if (moved != NULL)
        *capacity = more;
    return moved;
}

int cm_grow(void *list, size_t n, size_t size, cm_error *err)
{
    if ((n & (n - 1)) != 0)
        return CM_OK;
    size_t more = 1, nbytes;
    void *items;
    /* Copied, since a pointer to the list of any type is no pointer to a void pointer. */
    memcpy(&items, list, sizeof(items));
    const bool fits = (n == 0 || cm_mul_size(n, 2, &more)) && cm_mul_size(more, size, &nbytes);
    items = fits ? realloc(items, nbytes) : NULL;
    if (items == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for %zu elements of %zu bytes", n + 1, size);
    memcpy(list, &items, sizeof(items));
    return CM_OK;
}

void *cm_calloc(size_t count, size_t size, cm_error *err)
{
    size_t nbytes;
    void *p = NULL;
    /* A size of zero still gives a block, so that NULL always means failure. */
    if (cm_mul_size(count, size, &nbytes))
        p = calloc(1, nbytes ? nbytes : 1);
    if (p == NULL)
        cm_fail(err, CM_ENOMEM, "no memory for %zu elements of %zu bytes", count, size);
    return p;
}

char *cm_strdup(const char *text, cm_error *err)
{
    char *copy = strdup(text);
    if (copy == NULL)
        cm_fail(err, CM_ENOMEM, "no memory for %zu bytes of text", strlen(text) + 1);
    return copy;
}

char *cm_asprintf(cm_error *err, const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0) {
        cm_fail(err, CM_ENOMEM, "no memory for a text");
        return NULL;
    }
    return text;
}

void cm_buf_init(cm_buf *buf, size_t max_nbytes)
{
    *buf = (cm_buf){.max_nbytes = max_nbytes};
}

int cm_buf_reserve(cm_buf *buf, size_t capacity, cm_error *err)
{
    /* First, because what is allocated is rounded up and may pass the maximum by a little. */
    if (buf->max_nbytes && capacity > buf->max_nbytes)
        return cm_fail(err, CM_EBUDGET, "%zu bytes are needed where %zu are allowed", capacity,
                       buf->max_nbytes);
    if (capacity <= buf->capacity)
        return CM_OK;
    if (capacity > SIZE_MAX - ALIGNMENT)
        return cm_fail(err, CM_ENOMEM, "no memory for %zu bytes", capacity);
    size_t rounded = (capacity + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    uint8_t *data = aligned_alloc(ALIGNMENT, rounded);
    if (data == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for %zu bytes", capacity);
    if (buf->nbytes)
        memcpy(data, buf->data, buf->nbytes);
    free(buf->data);
    buf->data = data;
    buf->capacity = rounded;
    return CM_OK;
}

/* Room for NBYTES more than needed now, so that appending costs amortised constant time. */
static int grow(cm_buf *buf, size_t nbytes, cm_error *err)
{
    if (nbytes <= buf->capacity)
        return cm_buf_reserve(buf, nbytes, err);
    /* A quarter, not double: chunk-sized buffers count against the memory budget. */
    size_t better = buf->capacity + buf->capacity / 4;
    if (better < FIRST_CAPACITY)
        better = FIRST_CAPACITY;
    if (buf->max_nbytes && better > buf->max_nbytes)
        better = buf->max_nbytes;
    return cm_buf_reserve(buf, better > nbytes ? better : nbytes, err);
}

int cm_buf_resize(cm_buf *buf, size_t nbytes, cm_error *err)
{
    /* No spare capacity: only appending needs it. */
    int rc = cm_buf_reserve(buf, nbytes, err);
    if (rc != CM_OK)
        return rc;
    buf->nbytes = nbytes;
    return CM_OK;
}

int cm_buf_append(cm_buf *buf, const void *data, size_t nbytes, cm_error *err)
{
    size_t total;
    if (!cm_add_size(buf->nbytes, nbytes, &total))
        return cm_fail(err, CM_ENOMEM, "no memory for %zu bytes more", nbytes);
    int rc = grow(buf, total, err);
    if (rc != CM_OK)
        return rc;
    if (nbytes)
        memcpy(buf->data + buf->nbytes, data, nbytes);
    buf->nbytes = total;
    return CM_OK;
}

int cm_buf_printf(cm_buf *buf, cm_error *err, const char *format, ...)
{
    char small[256];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (n < 0)
        return cm_fail(err, CM_EINTERNAL, "the text of format '%s' cannot be made", format);
    if ((size_t)n < sizeof small)
        return cm_buf_append(buf, small, (size_t)n, err);

    /* vsnprintf also writes a NUL, which is not counted in nbytes. */
    int rc = grow(buf, buf->nbytes + (size_t)n + 1, err);
    if (rc != CM_OK)
        return rc;
    va_start(args, format);
    vsnprintf((char *)buf->data + buf->nbytes, (size_t)n + 1, format, args);
    va_end(args);
    buf->nbytes += (size_t)n;
    return CM_OK;
}

bool cm_buf_equal(const cm_buf *a, const cm_buf *b)
{
    return a->nbytes == b->nbytes && (a->nbytes == 0 || memcmp(a->data, b->data, a->nbytes) == 0);
}

void cm_buf_release(cm_buf *buf)
{
    if (buf == NULL)
        return;
    free(buf->data);
    *buf = (cm_buf){.max_nbytes = buf->max_nbytes};
}

#define LOAD(name, type, convert)                                                                  \
    type name(const void *p)                                                                       \
    {                                                                                              \
        type v;                                                                                    \
        memcpy(&v, p, sizeof v);                                                                   \
        return convert(v);                                                                         \
    }
#define STORE(name, type, convert)                                                                 \
    void name(void *p, type v)                                                                     \
    {                                                                                              \
        v = convert(v);                                                                            \
        memcpy(p, &v, sizeof v);                                                                   \
    }

LOAD(cm_load_le16, uint16_t, )
LOAD(cm_load_le32, uint32_t, )
LOAD(cm_load_le64, uint64_t, )
LOAD(cm_load_be32, uint32_t, __builtin_bswap32)
LOAD(cm_load_be64, uint64_t, __builtin_bswap64)
STORE(cm_store_le32, uint32_t, )
STORE(cm_store_le64, uint64_t, )
STORE(cm_store_be32, uint32_t, __builtin_bswap32)
