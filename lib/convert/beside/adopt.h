/*
 * Which chunks of an unfinished store can be kept.
 *
 * A killed run leaves chunks that are cut short (cm_store_set_unread), a power failure files that
 * are empty, short, or zeros from the first block to the last that was not written; and whatever
 * lies under a chunk's name may be anything.  An object is kept when it decodes to a chunk, or its
 * shard's chunks do, and, if it is a file written before the machine started, has no block of
 * zeros: elements that are stored as they are, or a chunk that did not get smaller, decode with
 * such a block as well.  Others are written again.
 */
#ifndef CM_CONVERT_BESIDE_ADOPT_H
#define CM_CONVERT_BESIDE_ADOPT_H

#include "convert/beside/journal.h"

/*
 * Of the array NODE in STORE: its writer keeps what is good.  By up to NTHREADS
 * threads, fewer where MEMORY bytes do not hold a chunk for each.  *nkept is increased
 * by the objects kept.
 */
int cm_adopt(cm_store *store, const cm_made_node *node, unsigned nthreads, uint64_t memory,
             uint64_t *nkept, cm_error *err);

#endif
