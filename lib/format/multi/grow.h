/*
 * Pieces of files, or of a store and files, that are cut otherwise across the joined axes: a piece
 * that is smaller than a chunk has it decoded once for each piece.
 */
#ifndef CM_FORMAT_MULTI_GROW_H
#define CM_FORMAT_MULTI_GROW_H

#include "model/box.h"

/*
 * CHUNK, of RANK dimensions, grows by whole chunks to at least LONGEST along those that are not
 * JOINED, the last first, while a piece that is LONGEST along all JOINED ones has at most MOST
 * bytes.
 */
void cm_multi_pieces_grow(unsigned rank, const bool *joined, const uint64_t *longest,
                          uint32_t itemsize, uint64_t most, uint64_t *chunk);

#endif
