/*
 * Requests chunks before a thread wants them, for stores behind a network: the number of requests
 * under way does not depend on how busy the decoding threads are.
 *
 * Each batch has a list of the boxes that are read for it.  Their chunks are requested in that
 * order, list after list, as far as there are places.  A place belongs to one group of chunks, as a
 * reader fetches them at once, from its request until a thread takes the answer.  A thread itself
 * fetches chunks that were not requested yet, so no thread ever waits for a place.
 */
#ifndef CM_LOAD_READER_LOOKAHEAD_H
#define CM_LOAD_READER_LOOKAHEAD_H

#include "load/reader/chunk_walk.h"

typedef struct cm_lookahead cm_lookahead;           /* of one process, shared by its workers */
typedef struct cm_lookahead_list cm_lookahead_list; /* one batch's */

/* GROUP_NBYTES: that of the readers (cm_reader_options). */
int cm_lookahead_create(unsigned nplaces, size_t group_nbytes, cm_lookahead **out, cm_error *err);
void cm_lookahead_free(cm_lookahead *ahead); /* after all lists; NULL accepted */

/* Bytes of one place at most, besides the stored bytes of a group (cm_reader_stored_nbytes). */
size_t cm_lookahead_place_nbytes(void);

int cm_lookahead_list_create(cm_lookahead *ahead, cm_lookahead_list **out, cm_error *err);
void cm_lookahead_list_free(cm_lookahead_list *list); /* NULL accepted; it is not begun */

/*
 * Box I of a list: false where it cannot be told.  Any worker's thread may ask, one at a time,
 * until the list is ended.
 */
typedef bool cm_lookahead_box(void *context, uint64_t i, cm_array **array, cm_box *box);

/* The list's boxes are 0 to N - 1 from now on. */
void cm_lookahead_begin(cm_lookahead_list *list, uint64_t n, cm_lookahead_box *box, void *context);
/*
 * Ends LIST, from which no thread fetches any more; waits for requests whose answers nobody took.
 */
void cm_lookahead_end(cm_lookahead_list *list);

/*
 * cm_array_fetch_many of a group of chunks that box I of LIST meets.  Many threads, which begin
 * the boxes in their order.
 */
int cm_lookahead_fetch(cm_lookahead_list *list, uint64_t i, cm_array *a, cm_fetch_many *many,
                       cm_error *err);

#endif
