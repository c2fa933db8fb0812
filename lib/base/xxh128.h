/*
 * XXH3 of 128 bits: tells files apart that differ by accident, at the speed of memory.  It is what
 * `xxh128sum` prints; against someone who wants two files to look alike, take SHA-256.
 */
#ifndef CM_BASE_XXH128_H
#define CM_BASE_XXH128_H

#include <stddef.h>
#include <stdint.h>

enum {
    CM_XXH128_TEXT = 33 /* 32 hexadecimal digits and a NUL */
};

typedef struct cm_xxh128 {
    _Alignas(64) uint8_t state[576]; /* as libxxhash has it */
} cm_xxh128;

void cm_xxh128_begin(cm_xxh128 *x);
void cm_xxh128_add(cm_xxh128 *x, const void *data, size_t nbytes);
/* The digest of everything added so far, in lower-case hexadecimal digits. */
char *cm_xxh128_text(const cm_xxh128 *x, char text[CM_XXH128_TEXT]);

#endif
