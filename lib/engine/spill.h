/*
 * Scratch space: what one pass over a source cannot hold in memory.
 *
 * A block of target chunks is cut into tiles.  The first tile of a block, at its
 * lowest corner, stays in memory; what a piece has for each other tile is
 * written to one scratch file.  Later every tile is read back and finished on
 * its own.
 *
 * The file needs no index.  Tiles follow each other, and within a tile its
 * pieces, both in the sweep's order and without gaps, so that the place of each
 * record is arithmetic, and writing goes forward in every tile.  The file has no
 * name: it is gone when this process is, however that ends.
 */
#ifndef CM_ENGINE_SPILL_H
#define CM_ENGINE_SPILL_H

#include "engine/worker.h"

typedef struct cm_spill cm_spill;

/*
 * A scratch file in FOLDER for pieces of SOURCE (borrowed) that come by SWEEP
 * (borrowed), whose blocks are whole numbers of TILE target chunks, but at the
 * array's end.  COUNTS (or NULL) gets the bytes written and read.
 */
int cm_spill_create(const char *folder, const cm_array *source, const cm_sweep *sweep,
                    const uint64_t *tile, cm_transfer_counts *counts, cm_spill **out,
                    cm_error *err);
/* NULL accepted. */
void cm_spill_free(cm_spill *spill);

/*
 * Makes ready for block BLOCK of the sweep; tiles whose chunks TARGET has got already are
 * passed over.
 */
int cm_spill_enter(cm_spill *spill, uint64_t block, const cm_target *target, cm_error *err);

/* True when target chunk COORD of the block lies in the tile that stays in memory. */
bool cm_spill_is_resident(const cm_spill *spill, const uint64_t *coord);
/* True when some of the target chunks TARGETS lie in tiles that are spilled. */
bool cm_spill_wants(const cm_spill *spill, const cm_range *targets);
/* Writes what piece P of W, which lies at FROM, has for each spilled tile. */
int cm_spill_piece(cm_worker *w, const cm_source_piece *p, const cm_loaded *from, cm_error *err);

uint64_t cm_spill_ntiles(const cm_spill *spill); /* of the block */
/*
 * True when tile I of the block was spilled; *number is its number among the blocks of a sweep
 * with blocks of TILE.
 */
bool cm_spill_tile(const cm_spill *spill, uint64_t i, uint64_t *number);
/* The scratch file as an array: boxes that are one piece within one tile of the block. */
cm_array *cm_spill_array(cm_spill *spill);
/* Gives the space of the block back. */
int cm_spill_leave(cm_spill *spill, cm_error *err);

#endif
