/*
 * Where one dimension is cut into pieces, of any lengths.
 */
#ifndef CM_MODEL_CUTS_H
#define CM_MODEL_CUTS_H

#include <stdbool.h>
#include <stdint.h>

#include <chunkmill/error.h>

typedef struct cm_cuts {
    uint64_t n;      /* pieces, none of them empty */
    uint64_t *first; /* of each, and the length of the dimension behind the last: n + 1 */
    uint64_t longest;
    /* Where positions are a part of an array: of which of its pieces, how long; else NULL. */
    uint64_t *piece, *length;
} cm_cuts;

/* Room for N pieces, all zero. */
int cm_cuts_init(cm_cuts *cuts, uint64_t n, cm_error *err);
void cm_cuts_release(cm_cuts *cuts);

/* True when one of RANK dimensions is cut: the entries of the others are NULL. */
bool cm_cuts_any(const cm_cuts *const *cuts, unsigned rank);

/* The piece that POSITION lies in. */
uint64_t cm_cuts_find(const cm_cuts *cuts, uint64_t position);
/* How long piece K of the array is. */
uint64_t cm_cuts_length(const cm_cuts *cuts, uint64_t k);
/* The number in the array of piece K. */
uint64_t cm_cuts_piece(const cm_cuts *cuts, uint64_t k);

/*
 * Pieces by the N positions START, START + STEP, ... of an array cut by OF: position i is
 * element start + step * i.  Pieces without positions are left out.
 */
int cm_cuts_part(const cm_cuts *of, uint64_t start, uint64_t step, uint64_t n, cm_cuts *out,
                 cm_error *err);

#endif
