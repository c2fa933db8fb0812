/*
 * Where one dimension is cut into pieces, of any lengths.
 *
 * Neighbouring pieces of one length are one run, so that the memory grows with the number of
 * changes of length; a piece is found by binary search.
 */
#ifndef CM_MODEL_CUTS_H
#define CM_MODEL_CUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <chunkmill/error.h>

typedef struct cm_cut_run {
    uint64_t number; /* of its first piece */
    uint64_t first;  /* where that begins */
    uint64_t length; /* of each; the last piece of the dimension may be clipped at the end */
} cm_cut_run;

/* The pieces of an array behind a run of pieces of a part of it. */
typedef struct cm_cut_part {
    uint64_t piece;  /* number in the array of the first */
    uint64_t length; /* of each, in the array */
} cm_cut_part;

typedef struct cm_cuts {
    uint64_t n;   /* pieces, none of them empty */
    uint64_t end; /* length of the dimension */
    uint64_t longest;
    size_t nruns, room;
    cm_cut_run *run;
    cm_cut_part *part; /* where positions are a part of an array: of each run; else NULL */
} cm_cuts;

void cm_cuts_release(cm_cuts *cuts); /* NULL and zeroed memory are fine */
/*
 * Appends COUNT pieces of LENGTH, neither of which is 0, to CUTS, which start as zeroed memory.
 * CM_EFORMAT: the dimension gets longer than 2^64 - 1.
 */
int cm_cuts_add(cm_cuts *cuts, uint64_t length, uint64_t count, cm_error *err);
/* The dimension has only LENGTH elements, at most `end`: drops the pieces behind. */
void cm_cuts_trim(cm_cuts *cuts, uint64_t length);
int cm_cuts_copy(const cm_cuts *cuts, cm_cuts *out, cm_error *err);
/* True when both cut a dimension in the same places into pieces of the same lengths. */
bool cm_cuts_equal(const cm_cuts *a, const cm_cuts *b);
/* True when one of RANK dimensions is cut: the entries of the others are NULL. */
bool cm_cuts_any(const cm_cuts *const *cuts, unsigned rank);

/* The piece that POSITION lies in. */
uint64_t cm_cuts_find(const cm_cuts *cuts, uint64_t position);
/* Piece K lies from _first to before _end. */
uint64_t cm_cuts_first(const cm_cuts *cuts, uint64_t k);
uint64_t cm_cuts_end(const cm_cuts *cuts, uint64_t k);
/* How long piece K of the array is; a last piece that is clipped: what it would have. */
uint64_t cm_cuts_length(const cm_cuts *cuts, uint64_t k);
/* The lengths of pieces LO <= k < HI, added up. */
uint64_t cm_cuts_sum(const cm_cuts *cuts, uint64_t lo, uint64_t hi);
/* Of all pieces, as they are stored. */
uint64_t cm_cuts_shortest(const cm_cuts *cuts);
/* The number in the array of piece K. */
uint64_t cm_cuts_piece(const cm_cuts *cuts, uint64_t k);

/*
 * Pieces by the N positions START, START + STEP, ... of an array cut by OF: position i is
 * element start + step * i.  Pieces without positions are left out.
 */
int cm_cuts_part(const cm_cuts *of, uint64_t start, uint64_t step, uint64_t n, cm_cuts *out,
                 cm_error *err);

#endif
