#include "format/icechunk/flex_read.h"

#include <string.h>

enum { /* types */
    STRING = 5,
    MAP = 9
};

static const cm_flex null;

static bool number(const cm_flex *v, size_t at, unsigned width, uint64_t *out)
{
    uint8_t bytes[8] = {0};
    if (at > v->nbytes || width > v->nbytes - at)
        return false;
    memcpy(bytes, v->data + at, width);
    *out = cm_load_le64(bytes);
    return true;
}

/* The position that the offset of WIDTH bytes at AT points to, before it. */
static bool follow(const cm_flex *v, size_t at, unsigned width, size_t *out)
{
    uint64_t back;
    if (!number(v, at, width, &back) || back > at)
        return false;
    *out = at - (size_t)back;
    return true;
}

/* The type of a value, and the width of what is in it, in one byte. */
static cm_flex value_at(const cm_flex *v, size_t at, unsigned width, unsigned packed)
{
    cm_flex out = *v;
    out.at = at;
    out.width = width;
    out.type = packed >> 2;
    out.own_width = 1u << (packed & 3);
    return out;
}

cm_flex cm_flex_root(const void *data, size_t nbytes)
{
    const cm_flex v = {.data = data, .nbytes = nbytes};
    const uint8_t *bytes = data;
    if (nbytes < 3)
        return null;
    const unsigned width = bytes[nbytes - 1];
    if ((width != 1 && width != 2 && width != 4 && width != 8) || nbytes - 2 < width)
        return null;
    return value_at(&v, nbytes - 2 - width, width, bytes[nbytes - 2]);
}

/* The first of the N values of a map, behind its head; false: V is none. */
static bool open_map(const cm_flex *v, size_t *first, size_t *n)
{
    uint64_t count;
    if (v->type != MAP || !follow(v, v->at, v->width, first) || *first < 3 * v->own_width ||
        !number(v, *first - v->own_width, v->own_width, &count) || count > v->nbytes)
        return false;
    *n = (size_t)count;
    return *n * (v->own_width + 1) <= v->nbytes - *first;
}

size_t cm_flex_count(const cm_flex *v)
{
    size_t first, n;
    return open_map(v, &first, &n) ? n : 0;
}

cm_flex cm_flex_value(const cm_flex *v, size_t i)
{
    size_t first, n;
    if (!open_map(v, &first, &n) || i >= n)
        return null;
    return value_at(v, first + i * v->own_width, v->own_width,
                    v->data[first + n * v->own_width + i]);
}

cm_flex cm_flex_member(const cm_flex *v, const char *key)
{
    size_t first, n, keys, name;
    uint64_t width;
    if (!open_map(v, &first, &n) || !follow(v, first - 3 * v->own_width, v->own_width, &keys) ||
        !number(v, first - 2 * v->own_width, v->own_width, &width) ||
        (width != 1 && width != 2 && width != 4 && width != 8))
        return null;
    const size_t nkey = strlen(key) + 1;
    for (size_t i = 0; i < n; i++)
        if (follow(v, keys + i * (size_t)width, (unsigned)width, &name) &&
            nkey <= v->nbytes - name && memcmp(v->data + name, key, nkey) == 0)
            return cm_flex_value(v, i);
    return null;
}

const char *cm_flex_text(const cm_flex *v, size_t *nbytes)
{
    size_t first;
    uint64_t n;
    if (v->type != STRING || !follow(v, v->at, v->width, &first) || first < v->own_width ||
        !number(v, first - v->own_width, v->own_width, &n) || n > v->nbytes - first)
        return NULL;
    *nbytes = (size_t)n;
    return (const char *)v->data + first;
}
