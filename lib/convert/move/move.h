/* The writer and the transfer of one variable, which prepare.c makes ready, and counts of them. */
#ifndef CM_CONVERT_MOVE_MOVE_H
#define CM_CONVERT_MOVE_MOVE_H

#include <stdatomic.h>

#include "engine/engine.h"
#include "format/zarr/writer.h"

typedef struct cm_move {
    bool absent; /* the source stores none of it and nothing needs to be written: no transfer */
    bool stored_differs;    /* chunks decode to other elements than were encoded: codecs round */
    cm_zarr_writer *writer; /* NULL: its objects are copied */
    cm_transfer transfer;
    /* Where the source's chunks are of several lengths, in target elements; NULL: they are not. */
    const cm_cuts *cuts[CM_MAX_RANK];
    cm_cuts own_cuts[CM_MAX_RANK]; /* of them, those of a part of the source */
} cm_move;

/* Counted by many threads at once. */
typedef struct cm_moved {
    cm_transfer_counts counts;
    uint64_t ncopied, copied_nbytes; /* objects, where they are copied */
    atomic_bool repaired;            /* text that was no UTF-8 has become U+FFFD */
    atomic_bool found_fill;          /* a stored element is what readers take for NoData */
} cm_moved;

#endif
