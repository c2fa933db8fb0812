/*
 * Strided copies that convert what they copy: model/copy.h with a feed.
 */
#ifndef CM_LOAD_READER_FEED_COPY_H
#define CM_LOAD_READER_FEED_COPY_H

#include "model/box.h"
#include "model/feed.h"

/* Two buffers of one worker, kept from call to call. */
typedef struct cm_feed_scratch {
    cm_buf gathered;
    cm_buf converted;
} cm_feed_scratch;

void cm_feed_scratch_release(cm_feed_scratch *scratch);

/* Makes room for converting NELEM elements at once, so that the copy allocates nothing. */
int cm_feed_scratch_reserve(cm_feed_scratch *scratch, const cm_feed *feed, uint64_t nelem,
                            cm_error *err);

/*
 * The elements of BOX of the array from SRC, of the feed's source type, to DST, as fed; strides are
 * bytes of either.  Long runs are converted from place to place, short ones are gathered first, so
 * that converting always sees many elements at once.  Room for as many was reserved.
 */
void cm_feed_copy_box(const cm_feed *feed, cm_feed_scratch *scratch, const cm_box *box, void *dst,
                      const int64_t *dst_stride, const void *src, const int64_t *src_stride);
/* The same where both are in C order, of the shape of BOX; no room is needed. */
void cm_feed_run_box(const cm_feed *feed, const cm_box *box, void *dst, const void *src);
/* The one element VALUE, as fed, to all of BOX. */
void cm_feed_fill_box(const cm_feed *feed, const cm_box *box, void *dst, const int64_t *dst_stride,
                      const void *value);

#endif
