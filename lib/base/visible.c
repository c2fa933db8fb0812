#include "base/visible.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

static uint32_t code_point(const uint8_t *p, size_t n)
{
    uint32_t code = n == 1 ? p[0] : p[0] & (0x7fU >> n);
    for (size_t i = 1; i < n; i++)
        code = code << 6 | (p[i] & 0x3f);
    return code;
}

static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

/*
 * Marks of direction, breaks of lines, characters without width, and tags.  Joiners (U+200C,
 * U+200D) belong to the spelling of some languages.
 */
static bool is_unseen(uint32_t c)
{
    static const uint32_t ranges[][2] = {
        {0xad, 0xad},     {0x61c, 0x61c},   {0x180e, 0x180e}, {0x200b, 0x200b}, {0x200e, 0x200f},
        {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe007f}};
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (c >= ranges[i][0] && c <= ranges[i][1])
            return true;
    return false;
}

size_t cm_visible(const char *p, size_t n, char out[CM_VISIBLE_SIZE], size_t *nbytes)
{
    const uint8_t *u = (const uint8_t *)p;
    const size_t length = cm_utf8_length(u, n);
    const uint32_t c = length > 0 ? code_point(u, length) : u[0];
    if (length == 0 || is_control(c)) {
        *nbytes = (size_t)snprintf(out, CM_VISIBLE_SIZE, "\\x%02x", (unsigned)c);
    } else if (is_unseen(c)) {
        *nbytes =
            (size_t)snprintf(out, CM_VISIBLE_SIZE, c > 0xffff ? "\\U%08x" : "\\u%04x", (unsigned)c);
    } else {
        memcpy(out, p, length);
        *nbytes = length;
    }
    return length > 0 ? length : 1;
}
