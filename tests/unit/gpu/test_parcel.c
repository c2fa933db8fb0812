/*
 * The tables of parcels, carried out here one unit at a time: they are the boxes that were
 * asked for.
 */

#include "../unit.h"
#include "gpu/parcel.h"

enum {
    SIZE = 1 << 20,
    RANK = 8
};

static uint8_t *parcel, *scratch, *batch, *expected;
static uint64_t seed;

static uint64_t next(uint64_t n)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (seed >> 33) % n;
}

static int set_up(void **state)
{
    (void)state;
    parcel = aligned_alloc(64, SIZE);
    scratch = aligned_alloc(64, SIZE);
    batch = aligned_alloc(64, SIZE);
    expected = malloc(SIZE);
    return parcel && scratch && batch && expected ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    free(parcel);
    free(scratch);
    free(batch);
    free(expected);
    return 0;
}

static const uint8_t *at_place(uint64_t place)
{
    return (place & CM_PARCEL_IN_SCRATCH ? scratch : parcel) + (place & ~CM_PARCEL_IN_SCRATCH);
}

static void carry_out(const cm_parcel_copy *c, uint8_t *out)
{
    uint64_t n = 1;
    for (int k = 0; k < CM_PARCEL_DIMS; k++) {
        assert_true(c->count[k] > 0);
        n *= c->count[k];
    }
    assert_true(n * c->run <= CM_PARCEL_UNITS && n * c->run > 0);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t src = c->src, dst = c->dst, rest = i;
        for (int k = 0; k < CM_PARCEL_DIMS; k++) {
            src += rest % c->count[k] * c->src_stride[k];
            dst += rest % c->count[k] * c->dst_stride[k];
            rest /= c->count[k];
        }
        assert_true(src % c->unit == 0 && dst % c->unit == 0);
        memcpy(out + dst, at_place(src), (size_t)c->run * c->unit);
    }
}

static void fill_scratch(void)
{
    for (size_t i = 0; i < SIZE; i++)
        scratch[i] = (uint8_t)next(256);
    memset(batch, 0xa5, SIZE);
    memset(expected, 0xa5, SIZE);
}

/* Of a chunk in C order, a box; into a sample in C order, a box. */
static void test_boxes(void **state)
{
    (void)state;
    seed = 5;
    for (int round = 0; round < 400; round++) {
        cm_parcel_writer w = {0};
        cm_error err = {0};
        uint64_t shape[RANK], src_stride[RANK], dst_stride[RANK];
        const unsigned rank = (unsigned)next(RANK + 1);
        const size_t itemsize = (size_t)1 << next(5);
        uint64_t src_step = itemsize, dst_step = itemsize;
        for (unsigned j = rank; j-- > 0;) {
            shape[j] = 1 + next(rank > 4 ? 3 : rank > 2 ? 9 : 70);
            src_stride[j] = src_step;
            dst_stride[j] = dst_step;
            src_step *= shape[j] + (next(2) ? next(3) : 0);
            dst_step *= shape[j] + (next(2) ? next(3) : 0);
        }
        if (round % 10 == 0) /* a fill value */
            memset(src_stride, 0, sizeof src_stride);
        const cm_parcel_box box = {.src = CM_PARCEL_IN_SCRATCH | next(50) * itemsize,
                                   .dst = next(50),
                                   .rank = rank,
                                   .shape = shape,
                                   .src_stride = src_stride,
                                   .dst_stride = dst_stride,
                                   .run_nbytes = itemsize};
        fill_scratch();
        cm_parcel_begin(&w, parcel, SIZE);
        if (cm_parcel_add_box(&w, &box, &err) != CM_OK)
            fail_msg("%s", err.text);
        uint64_t n = 1;
        for (unsigned j = 0; j < rank; j++)
            n *= shape[j];
        if (rank <= CM_PARCEL_DIMS)
            assert_true(w.nlast * sizeof(cm_parcel_copy) <
                        cm_parcel_tables_bound(1, n * itemsize, 0, 0, 0));
        for (size_t i = 0; i < w.nlast; i++)
            carry_out(&w.last[i], batch);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t rest = i, src = box.src & ~CM_PARCEL_IN_SCRATCH, dst = box.dst;
            for (unsigned j = rank; j-- > 0;) {
                src += rest % shape[j] * src_stride[j];
                dst += rest % shape[j] * dst_stride[j];
                rest /= shape[j];
            }
            memcpy(expected + dst, scratch + src, itemsize);
        }
        if (memcmp(batch, expected, SIZE) != 0)
            fail_msg("round %d: other bytes than the box's", round);
        cm_parcel_writer_release(&w);
    }
}

/* What has more units than one copy may have is cut, along a run as along dimensions. */
static void test_large_boxes(void **state)
{
    static const struct {
        unsigned rank;
        uint64_t shape[2], src_stride[2], dst_stride[2];
        size_t run;
    } rows[] = {{0, {0}, {0}, {0}, 300001},
                {1, {3}, {100001}, {120000}, 100001},
                {2, {300, 700}, {900, 1}, {701, 1}, 1},
                {2, {2, 100000}, {200000, 2}, {100001, 1}, 1}};
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        cm_parcel_writer w = {0};
        cm_error err = {0};
        const cm_parcel_box box = {.src = CM_PARCEL_IN_SCRATCH | 1,
                                   .dst = 2,
                                   .rank = rows[r].rank,
                                   .shape = rows[r].shape,
                                   .src_stride = rows[r].src_stride,
                                   .dst_stride = rows[r].dst_stride,
                                   .run_nbytes = rows[r].run};
        fill_scratch();
        cm_parcel_begin(&w, parcel, SIZE);
        assert_int_equal(cm_parcel_add_box(&w, &box, &err), CM_OK);
        assert_true(w.nlast > 1);
        for (size_t i = 0; i < w.nlast; i++)
            carry_out(&w.last[i], batch);
        const uint64_t n0 = box.rank > 0 ? box.shape[0] : 1, n1 = box.rank > 1 ? box.shape[1] : 1;
        for (uint64_t i = 0; i < n0; i++)
            for (uint64_t j = 0; j < n1; j++)
                memcpy(expected + 2 + i * rows[r].dst_stride[0] + j * rows[r].dst_stride[1],
                       scratch + 1 + i * rows[r].src_stride[0] + j * rows[r].src_stride[1],
                       rows[r].run);
        assert_memory_equal(batch, expected, SIZE);
        cm_parcel_writer_release(&w);
    }
}

static void test_nothing(void **state)
{
    static const uint64_t shape[] = {3, 0, 2}, stride[] = {8, 4, 2};
    const cm_parcel_box box = {0, 0, 3, shape, stride, stride, 2};
    cm_parcel_writer w = {0};
    cm_error err = {0};
    size_t nbytes;
    (void)state;
    cm_parcel_begin(&w, parcel, SIZE);
    assert_int_equal(cm_parcel_add_box(&w, &box, &err), CM_OK);
    assert_int_equal(cm_parcel_add_bytes(&w, 0, 0, 0, &err), CM_OK);
    assert_int_equal(cm_parcel_end(&w, 0, &nbytes, &err), CM_OK);
    assert_int_equal(cm_parcel_check(parcel, nbytes, &err), CM_OK);
    assert_int_equal(w.nlast + w.nfirst, 0);
    cm_parcel_writer_release(&w);
}

/* A slot that is too small is an error, whatever it is too small for. */
static void test_no_room(void **state)
{
    static const uint8_t bytes[100] = {1};
    (void)state;
    for (size_t capacity = 0;; capacity += 16) {
        cm_parcel_writer w = {0};
        cm_error err = {0};
        uint64_t place = 0;
        size_t nbytes = 0;
        uint8_t *slot = aligned_alloc(16, capacity + 16);
        cm_parcel_begin(&w, slot, capacity);
        int rc = cm_parcel_put(&w, bytes, sizeof bytes, &place, &err);
        const cm_parcel_stream stream = {.src = place, .src_nbytes = 100, .dst_nbytes = 200};
        if (rc == CM_OK)
            rc = cm_parcel_add_stream(&w, &stream, &err);
        if (rc == CM_OK)
            rc = cm_parcel_add_shuffled(&w, cm_parcel_scratch(&w, 200), 256, 4, 200, &err);
        if (rc == CM_OK)
            rc = cm_parcel_add_bytes(&w, place, 0, 10, &err);
        if (rc == CM_OK)
            rc = cm_parcel_end(&w, 7, &nbytes, &err);
        assert_true(rc == CM_OK || rc == CM_EINTERNAL);
        if (rc == CM_OK) {
            assert_true(nbytes <= capacity);
            assert_int_equal(cm_parcel_check(slot, nbytes, &err), CM_OK);
            assert_int_equal(cm_parcel_check(slot, nbytes - 16, &err), CM_EINTERNAL);
        }
        free(slot);
        cm_parcel_writer_release(&w);
        if (rc == CM_OK)
            return;
        assert_true(capacity < 4096);
    }
}

static void test_streams_stand_by_codec(void **state)
{
    cm_parcel_writer w = {0};
    cm_error err = {0};
    size_t nbytes;
    (void)state;
    cm_parcel_begin(&w, parcel, SIZE);
    for (uint32_t i = 0; i < 30; i++) {
        const cm_parcel_stream s = {.codec = 2 - i % 3, .chunk = i, .src = 16 * i};
        assert_int_equal(cm_parcel_add_stream(&w, &s, &err), CM_OK);
    }
    assert_int_equal(cm_parcel_end(&w, 0, &nbytes, &err), CM_OK);
    const cm_parcel *h = (const cm_parcel *)(const void *)parcel;
    const cm_parcel_stream *s = (const cm_parcel_stream *)(const void *)(parcel + h->streams_at);
    for (uint32_t i = 0; i < 30; i++) {
        assert_int_equal(s[i].codec, i / 10);
        assert_int_equal(s[i].chunk, 2 - i / 10 + 3 * (i % 10));
    }
    for (int c = 0; c < CM_PARCEL_NCODECS; c++)
        assert_int_equal(h->nstreams[c], 10);
    cm_parcel_writer_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_boxes),
        cmocka_unit_test(test_large_boxes),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_no_room),
        cmocka_unit_test(test_streams_stand_by_codec),
    };
    return cmocka_run_group_tests_name("parcel", tests, set_up, tear_down);
}
