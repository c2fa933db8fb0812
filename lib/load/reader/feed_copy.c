#include "load/reader/feed_copy.h"

#include <string.h>

#include "model/copy.h"

enum {
    MAX_VALUE_NBYTES = 16, /* of an element as it is fed */
    MIN_RUN = 64 /* elements: a call for each costs less than passing them through scratch twice */
};

void cm_feed_scratch_release(cm_feed_scratch *scratch)
{
    cm_buf_release(&scratch->gathered);
    cm_buf_release(&scratch->converted);
}

int cm_feed_scratch_reserve(cm_feed_scratch *scratch, const cm_feed *feed, uint64_t nelem,
                            cm_error *err)
{
    size_t gathered, converted;
    if (!cm_mul_size(nelem, feed->src.nbytes, &gathered) ||
        !cm_mul_size(nelem, cm_feed_nbytes(feed), &converted))
        return cm_fail(err, CM_EBUDGET, "%llu elements are too many to convert at once",
                       (unsigned long long)nelem);
    int rc = cm_buf_reserve(&scratch->gathered, gathered, err);
    return rc != CM_OK ? rc : cm_buf_reserve(&scratch->converted, converted, err);
}

/* Elements that lie side by side in both, and in *outer the dimensions around them. */
static uint64_t run_length(unsigned rank, const uint64_t *shape, const int64_t *dst_stride,
                           size_t dst_nbytes, const int64_t *src_stride, size_t src_nbytes,
                           unsigned *outer)
{
    uint64_t run = 1;
    unsigned j = rank;
    for (; j > 0; j--) {
        bool together = dst_stride[j - 1] == (int64_t)(run * dst_nbytes) &&
                        src_stride[j - 1] == (int64_t)(run * src_nbytes);
        if (!together && shape[j - 1] != 1)
            break;
        run *= shape[j - 1];
    }
    *outer = j;
    return run;
}

static void convert_runs(const cm_feed *feed, unsigned rank, const uint64_t *shape, uint64_t run,
                         uint8_t *dst, const int64_t *dst_stride, const uint8_t *src,
                         const int64_t *src_stride)
{
    uint64_t at[CM_MAX_RANK] = {0};
    for (;;) {
        cm_feed_run(feed, dst, src, run);
        unsigned j = rank;
        for (; j > 0; j--) {
            dst += dst_stride[j - 1];
            src += src_stride[j - 1];
            if (++at[j - 1] < shape[j - 1])
                break;
            dst -= dst_stride[j - 1] * (int64_t)shape[j - 1];
            src -= src_stride[j - 1] * (int64_t)shape[j - 1];
            at[j - 1] = 0;
        }
        if (j == 0)
            return;
    }
}

/* SHAPE elements of one level. */
static void copy_level(const cm_feed *feed, cm_feed_scratch *scratch, unsigned rank,
                       const uint64_t *shape, void *dst, const int64_t *dst_stride, const void *src,
                       const int64_t *src_stride)
{
    const size_t in = feed->src.nbytes, out = cm_feed_nbytes(feed);
    uint64_t nelem = 1;
    for (unsigned j = 0; j < rank; j++)
        nelem *= shape[j];
    if (nelem == 0)
        return;
    unsigned outer;
    uint64_t run = run_length(rank, shape, dst_stride, out, src_stride, in, &outer);
    if (run >= MIN_RUN || run == nelem) {
        convert_runs(feed, outer, shape, run, dst, dst_stride, src, src_stride);
        return;
    }
    int64_t packed[CM_MAX_RANK];
    cm_strides_c(rank, shape, in, packed);
    cm_copy_nd(rank, shape, in, scratch->gathered.data, packed, src, src_stride);
    cm_feed_run(feed, scratch->converted.data, scratch->gathered.data, nelem);
    cm_strides_c(rank, shape, out, packed);
    cm_copy_nd(rank, shape, out, dst, dst_stride, scratch->converted.data, packed);
}

void cm_feed_copy_box(const cm_feed *feed, cm_feed_scratch *scratch, const cm_box *box, void *dst,
                      const int64_t *dst_stride, const void *src, const int64_t *src_stride)
{
    const unsigned j = feed->level_dim;
    uint64_t shape[CM_MAX_RANK];
    cm_feed own;
    if (feed->level == NULL) {
        copy_level(feed, scratch, box->rank, box->shape, dst, dst_stride, src, src_stride);
        return;
    }
    memcpy(shape, box->shape, sizeof(shape));
    shape[j] = 1;
    for (uint64_t k = 0; k < box->shape[j]; k++)
        copy_level(cm_feed_at_level(feed, box->start[j] + k, &own), scratch, box->rank, shape,
                   (uint8_t *)dst + (int64_t)k * dst_stride[j], dst_stride,
                   (const uint8_t *)src + (int64_t)k * src_stride[j], src_stride);
}

void cm_feed_run_box(const cm_feed *feed, const cm_box *box, void *dst, const void *src)
{
    const unsigned j = feed->level_dim;
    const uint64_t nelem = cm_box_nelem(box);
    uint64_t inner = 1;
    cm_feed own;
    if (feed->level == NULL) {
        cm_feed_run(feed, dst, src, nelem);
        return;
    }
    for (unsigned i = j + 1; i < box->rank; i++)
        inner *= box->shape[i];
    for (uint64_t at = 0, row = 0; at < nelem; at += inner, row++)
        cm_feed_run(cm_feed_at_level(feed, box->start[j] + row % box->shape[j], &own),
                    (uint8_t *)dst + at * cm_feed_nbytes(feed),
                    (const uint8_t *)src + at * feed->src.nbytes, inner);
}

void cm_feed_fill_box(const cm_feed *feed, const cm_box *box, void *dst, const int64_t *dst_stride,
                      const void *value)
{
    const unsigned j = feed->level_dim;
    const bool levels = feed->level != NULL;
    uint64_t shape[CM_MAX_RANK];
    uint8_t fed[MAX_VALUE_NBYTES];
    cm_feed own;
    memcpy(shape, box->shape, sizeof(shape));
    if (levels)
        shape[j] = 1;
    for (uint64_t k = 0; k < (levels ? box->shape[j] : 1); k++) {
        cm_feed_run(cm_feed_at_level(feed, levels ? box->start[j] + k : 0, &own), fed, value, 1);
        cm_fill_nd(box->rank, shape, cm_feed_nbytes(feed),
                   (uint8_t *)dst + (levels ? (int64_t)k * dst_stride[j] : 0), dst_stride, fed);
    }
}
