/* Elements that are normalized on their way, each by the numbers of its own level. */
#include <string.h>

#include "../unit.h"
#include "load/reader/feed_copy.h"
#include "model/copy.h"

enum {
    NDIMS = 3,
    MOST = 4 * 5 * 70
};

static const cm_feed_normal LEVEL[] = {{1, 2}, {-3, 0.5}, {10, 4}, {0, 1}, {7, 8}};

/* The level is dimension AT; a box that begins at its second place. */
typedef struct levels {
    cm_feed feed;
    cm_box box;
    float in[MOST], want[MOST], out[MOST];
    int64_t stride[CM_MAX_RANK];
} levels;

static void levels_begin(levels *l, unsigned at)
{
    static const uint64_t SHAPE[NDIMS] = {4, 3, 70};
    *l = (levels){.feed = {.src = cm_dtype_make(CM_KIND_FLOAT, 4),
                           .to = CM_FEED_FLOAT32,
                           .normalize = true,
                           .normal = {0, 1},
                           .level = LEVEL,
                           .level_dim = at},
                  .box = {.rank = NDIMS, .start = {3, 5, 2}}};
    memcpy(l->box.shape, SHAPE, sizeof SHAPE);
    l->box.start[at] = 1;
    l->box.shape[at] = 4;
    cm_strides_c(NDIMS, l->box.shape, 4, l->stride);
    const uint64_t n = cm_box_nelem(&l->box), inner = (uint64_t)l->stride[at] / 4;
    for (uint64_t i = 0; i < n; i++) {
        const cm_feed_normal *of = &LEVEL[1 + i / inner % 4];
        l->in[i] = (float)i;
        l->want[i] = (float)(((double)i - of->mean) / of->std);
    }
}

static void same(const levels *l)
{
    assert_memory_equal(l->out, l->want, cm_box_nelem(&l->box) * sizeof(float));
}

static void boxes(void **state)
{
    cm_feed_scratch scratch = {0};
    cm_error err = {0};
    (void)state;
    for (unsigned at = 0; at < NDIMS; at++) {
        levels l;
        levels_begin(&l, at);
        assert_int_equal(cm_feed_scratch_reserve(&scratch, &l.feed, MOST, &err), CM_OK);
        cm_feed_run_box(&l.feed, &l.box, l.out, l.in);
        same(&l);
        memset(l.out, 0, sizeof l.out);
        cm_feed_copy_box(&l.feed, &scratch, &l.box, l.out, l.stride, l.in, l.stride);
        same(&l);
    }
    cm_feed_scratch_release(&scratch);
}

static void filled(void **state)
{
    static const float VALUE = 6;
    (void)state;
    for (unsigned at = 0; at < NDIMS; at++) {
        levels l;
        levels_begin(&l, at);
        const uint64_t n = cm_box_nelem(&l.box), inner = (uint64_t)l.stride[at] / 4;
        for (uint64_t i = 0; i < n; i++) {
            const cm_feed_normal *of = &LEVEL[1 + i / inner % 4];
            l.want[i] = (float)((VALUE - of->mean) / of->std);
        }
        cm_feed_fill_box(&l.feed, &l.box, l.out, l.stride, &VALUE);
        same(&l);
        l.feed.level = NULL;
        cm_feed_fill_box(&l.feed, &l.box, l.out, l.stride, &VALUE);
        for (uint64_t i = 0; i < n; i++)
            l.want[i] = VALUE;
        same(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(boxes), cmocka_unit_test(filled)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
