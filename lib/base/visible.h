/*
 * Text from outside (names of files, variables and objects, sentences of servers) as people may see
 * it: a terminal obeys what controls it, and a name that turns the direction of writing or begins a
 * line says something else than is there.
 */
#ifndef CM_BASE_VISIBLE_H
#define CM_BASE_VISIBLE_H

#include <stddef.h>
#include <stdint.h>

enum {
    CM_VISIBLE_SIZE = 16
};

/*
 * OUT becomes how the first character of P (of N bytes, N > 0) is shown, without a NUL, and *NBYTES
 * how many bytes that are; returns those it has at P.  Controls and bytes that are no UTF-8 become
 * "\x1b", marks that are not seen "\u202e" or "\U000e0041"; anything else stays.
 */
size_t cm_visible(const char *p, size_t n, char out[CM_VISIBLE_SIZE], size_t *nbytes);

#endif
