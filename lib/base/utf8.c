#include "base/utf8.h"

#include <string.h>

size_t cm_utf8_length(const uint8_t *p, size_t n)
{
    const uint8_t c = p[0];
    if (c < 0x80)
        return 1;
    size_t length = c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
    if (c < 0xC2 || c > 0xF4 || n < length)
        return 0;
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    }
    /* Overlong forms, surrogates, and what lies above U+10FFFF (RFC 3629, section 4). */
    if ((c == 0xE0 && p[1] < 0xA0) || (c == 0xED && p[1] > 0x9F) || (c == 0xF0 && p[1] < 0x90) ||
        (c == 0xF4 && p[1] > 0x8F))
        return 0;
    return length;
}

size_t cm_utf8_bad_length(const uint8_t *p, size_t n)
{
    const uint8_t c = p[0];
    const size_t length = c < 0xC2 || c > 0xF4 ? 1 : c >= 0xF0 ? 4 : c >= 0xE0 ? 3 : 2;
    uint8_t low = c == 0xE0 ? 0xA0 : c == 0xF0 ? 0x90 : 0x80;
    uint8_t high = c == 0xED ? 0x9F : c == 0xF4 ? 0x8F : 0xBF;
    size_t i = 1;
    while (i < length && i < n && p[i] >= low && p[i] <= high) {
        low = 0x80;
        high = 0xBF;
        i++;
    }
    return i;
}

bool cm_utf8_is_valid(const void *text, size_t nbytes)
{
    const uint8_t *p = text;
    for (size_t i = 0; i < nbytes;) {
        size_t length = cm_utf8_length(p + i, nbytes - i);
        if (length == 0)
            return false;
        i += length;
    }
    return true;
}

int cm_utf8_repair(const void *text, size_t nbytes, cm_buf *out, cm_error *err)
{
    const uint8_t *p = text;
    for (size_t i = 0; i < nbytes;) {
        size_t length = cm_utf8_length(p + i, nbytes - i);
        int rc = length == 0 ? cm_buf_append(out, CM_UTF8_REPLACEMENT, 3, err)
                             : cm_buf_append(out, p + i, length, err);
        if (rc != CM_OK)
            return rc;
        i += length == 0 ? cm_utf8_bad_length(p + i, nbytes - i) : length;
    }
    return CM_OK;
}

int cm_utf8_from_latin1(const void *text, size_t nbytes, cm_buf *out, cm_error *err)
{
    const uint8_t *p = text;
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < nbytes; i++) {
        const uint8_t two[2] = {(uint8_t)(0xc0 | p[i] >> 6), (uint8_t)(0x80 | (p[i] & 0x3f))};
        rc = p[i] < 0x80 ? cm_buf_append(out, &p[i], 1, err) : cm_buf_append(out, two, 2, err);
    }
    return rc;
}

char *cm_utf8_strdup(const char *text, cm_error *err)
{
    cm_buf out = {0};
    int rc = cm_utf8_repair(text, strlen(text) + 1, &out, err);
    char *copy = rc == CM_OK ? cm_strdup((const char *)out.data, err) : NULL;
    cm_buf_release(&out);
    return copy;
}
