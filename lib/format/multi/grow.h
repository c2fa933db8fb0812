/*
 * Grows pieces of files, or of a store and files, that are chunked differently across the axes that
 * are not joined: a chunk that spans several pieces is decoded once for each of them.
 */
#ifndef CM_FORMAT_MULTI_GROW_H
#define CM_FORMAT_MULTI_GROW_H

#include "model/box.h"

/*
 * Grows CHUNK, of RANK dimensions, by whole chunks towards LONGEST along dimensions that are not
 * JOINED, the last first, while a piece that is LONGEST along all JOINED ones stays within MOST
 * bytes.
 */
void cm_multi_pieces_grow(unsigned rank, const bool *joined, const uint64_t *longest,
                          uint32_t itemsize, uint64_t most, uint64_t *chunk);

#endif
