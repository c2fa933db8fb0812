#include "base/base64.h"

#include <stdlib.h>
#include <string.h>

static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int digit_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool cm_base64_decode(const char *text, size_t text_nbytes, uint8_t **data, size_t *nbytes)
{
    if (text_nbytes % 4 != 0)
        return false;
    uint8_t *out = malloc(text_nbytes / 4 * 3 + 1);
    if (out == NULL)
        return false;
    size_t n = 0;
    for (size_t i = 0; i < text_nbytes; i += 4) {
        int padding = 0;
        uint32_t bits = 0;
        for (size_t k = 0; k < 4; k++) {
            bool last = i + 4 == text_nbytes;
            int value = digit_value(text[i + k]);
            if (text[i + k] == '=' && last && k >= 2)
                padding++;
            else if (value < 0 || padding > 0)
                goto bad;
            bits = bits << 6 | (uint32_t)(value < 0 ? 0 : value);
        }
        for (int k = 0; k < 3 - padding; k++)
            out[n++] = (uint8_t)(bits >> (16 - 8 * k));
    }
    *data = out;
    *nbytes = n;
    return true;
bad:
    free(out);
    return false;
}

char *cm_base64_encode(const uint8_t *data, size_t nbytes, cm_error *err)
{
    char *text = cm_calloc((nbytes + 2) / 3 * 4 + 1, 1, err);
    if (text == NULL)
        return NULL;
    char *p = text;
    for (size_t i = 0; i < nbytes; i += 3, p += 4) {
        size_t left = nbytes - i;
        uint32_t bits = (uint32_t)data[i] << 16;
        bits |= left > 1 ? (uint32_t)data[i + 1] << 8 : 0;
        bits |= left > 2 ? data[i + 2] : 0;
        for (int k = 0; k < 4; k++)
            p[k] = DIGITS[bits >> (18 - 6 * k) & 63];
        if (left < 3)
            p[3] = '=';
        if (left < 2)
            p[2] = '=';
    }
    return text;
}
