#include "kinds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum {
    MIB = 1 << 20,
    NBYTES = 3 * MIB + 5 /* an odd size, more than one block of each kernel */
};

typedef struct bench {
    cm_device *device;
    cm_stream *stream;
    cm_device_memory *memory;
    uint8_t *locked, *back;
} bench;

static bench open_bench(const kind *k)
{
    bench b = {.device = open_kind(k)};
    void *p;
    OK(cm_stream_open(b.device, &b.stream, why));
    OK(cm_device_alloc(b.device, NBYTES, &b.memory, why));
    OK(cm_device_alloc_locked(b.device, NBYTES, &p, NULL, why));
    b.locked = p;
    OK(cm_device_alloc_locked(b.device, NBYTES, &p, NULL, why));
    b.back = p;
    return b;
}

static void close_bench(bench *b)
{
    cm_stream_close(b->stream);
    cm_device_free(b->memory);
    cm_device_free_locked(b->device, b->locked, NBYTES);
    cm_device_free_locked(b->device, b->back, NBYTES);
    cm_device_close(b->device);
}

/* ---- the device ----------------------------------------------------------------------------- */

static void test_info(void **state)
{
    const kind *k = present_kind(state);
    cm_device *d = open_kind(k);
    const cm_device_info *i = cm_device_get_info(d);
    if (strcmp(k->text, "host") == 0) {
        assert_int_equal(i->kind, CM_DEVICE_HOST);
        assert_string_equal(i->name, "memory of this machine");
    } else {
        assert_int_equal(i->kind, CM_DEVICE_CUDA);
        assert_string_equal(i->text, "cuda:0");
        assert_true(i->name[0] && i->api[0] && i->total_nbytes > 0);
        assert_true(i->capability_major >= 7 && i->multiprocessors > 0);
    }
    cm_device_close(d);
}

static void test_copies(void **state)
{
    bench b = open_bench(present_kind(state));
    static const struct {
        size_t offset, nbytes;
    } rows[] = {{0, NBYTES}, {0, 1}, {1, 4095}, {NBYTES - 3, 3}, {MIB + 7, MIB}, {5, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fill(b.locked, NBYTES, i + 1);
        memset(b.back, 0, NBYTES);
        OK(cm_stream_poison(b.stream, b.memory, 0x5a, why));
        OK(cm_stream_copy_in(b.stream, 0, b.memory, rows[i].offset, b.locked, rows[i].nbytes, why));
        OK(cm_stream_copy_out(b.stream, b.back, b.memory, 0, NBYTES, why));
        OK(cm_stream_sync(b.stream, why));
        for (size_t at = 0; at < NBYTES; at++) {
            const bool inside = at >= rows[i].offset && at - rows[i].offset < rows[i].nbytes;
            if (b.back[at] != (inside ? b.locked[at - rows[i].offset] : 0x5a))
                fail_msg("row %zu, byte %zu", i, at);
        }
    }
    close_bench(&b);
}

static void test_pageable_copy(void **state)
{
    bench b = open_bench(present_kind(state));
    uint8_t *plain = malloc(NBYTES);
    assert_non_null(plain);
    fill(plain, NBYTES, 77);
    OK(cm_stream_copy_in(b.stream, 0, b.memory, 0, plain, NBYTES, why));
    OK(cm_stream_copy_out(b.stream, b.back, b.memory, 0, NBYTES, why));
    OK(cm_stream_sync(b.stream, why));
    assert_memory_equal(plain, b.back, NBYTES);
    free(plain);
    close_bench(&b);
}

static void test_checksum(void **state)
{
    bench b = open_bench(present_kind(state));
    static const size_t lengths[] = {0, 1, 3, 4, 15, 16, 17, 31, 4096, 65537, MIB, NBYTES};
    fill(b.locked, NBYTES, 5);
    memset(b.locked + MIB, 0xff, MIB);
    OK(cm_stream_copy_in(b.stream, 0, b.memory, 0, b.locked, NBYTES, why));
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (size_t offset = 0; offset <= 48 && offset + lengths[i] <= NBYTES; offset += 16) {
            cm_checksum found;
            OK(cm_stream_checksum(b.stream, b.memory, offset, lengths[i], &found, why));
            assert_true(cm_checksum_equal(found, cm_checksum_of(b.locked + offset, lengths[i])));
        }
    cm_checksum unused;
    assert_int_equal(cm_stream_checksum(b.stream, b.memory, 8, 16, &unused, NULL), CM_EINVAL);
    close_bench(&b);
}

static void test_ranges_are_checked(void **state)
{
    bench b = open_bench(present_kind(state));
    cm_error err;
    uint8_t byte = 0;
    assert_int_equal(cm_stream_copy_in(b.stream, 0, b.memory, NBYTES, &byte, 1, &err), CM_EINVAL);
    assert_string_equal(err.text,
                        "1 bytes at offset 3145733 do not lie in 3145733 bytes of device memory");
    assert_int_equal(cm_stream_copy_in(b.stream, 0, b.memory, SIZE_MAX, &byte, 2, NULL), CM_EINVAL);
    assert_int_equal(cm_stream_copy_out(b.stream, &byte, b.memory, 1, NBYTES, NULL), CM_EINVAL);
    cm_device_memory *none;
    assert_int_equal(cm_device_alloc(b.device, 0, &none, NULL), CM_EINVAL);
    assert_null(none);
    cm_device *other = open_kind(*state);
    cm_stream *stream;
    OK(cm_stream_open(other, &stream, why));
    assert_int_equal(cm_stream_poison(stream, b.memory, 0, NULL), CM_EINVAL);
    cm_stream_close(stream);
    cm_device_close(other);
    close_bench(&b);
}

static void test_out_of_memory(void **state)
{
    const kind *k = present_kind(state);
    cm_device *d = open_kind(k);
    cm_device_memory *m;
    cm_error err;
    assert_int_equal(cm_device_alloc(d, (size_t)1 << 50, &m, &err), CM_ENOMEM);
    assert_null(m);
    assert_non_null(strstr(err.text, "were asked for"));
    assert_non_null(strstr(err.text, "free"));
    cm_device_close(d);
}

static void test_locking(void **state)
{
    const kind *k = present_kind(state);
    cm_device *d = open_kind(k);
    cm_lock_report r;
    void *p;
    OK(cm_device_alloc_locked(d, 8 * MIB, &p, &r, why));
    assert_int_equal(r.nbytes, 8 * MIB);
    assert_true(r.touch_ns > 0 && r.lock_ns > 0);
    assert_true(r.locked == (r.note[0] == '\0'));
    for (size_t i = 0; i < 8 * MIB; i += 4096)
        assert_int_equal(((uint8_t *)p)[i], 0);
    cm_device_free_locked(d, p, 8 * MIB);

    uint8_t *own = aligned_alloc(4096, MIB);
    assert_non_null(own);
    fill(own, MIB, 3);
    OK(cm_device_lock(d, own, MIB, &r, why));
    uint8_t expected[64];
    fill(expected, sizeof expected, 3);
    assert_memory_equal(own, expected, sizeof expected); /* touching changes nothing */
    OK(cm_device_unlock(d, own, MIB, why));
    assert_int_equal(cm_device_lock(d, own, 0, &r, NULL), CM_EINVAL);
    free(own);
    cm_device_close(d);
}

/* ---- streams and events --------------------------------------------------------------------- */

/*
 * Steps of BUSY_NS on one stream and a copy on another; returns whether the copy was seen before
 * they ended.
 */
static bool copied_meanwhile(const kind *k, bench *b, cm_stream *steps, uint64_t busy_ns)
{
    cm_event *start, *end, *copied;
    OK(cm_event_open(b->device, true, &start, why));
    OK(cm_event_open(b->device, true, &end, why));
    OK(cm_event_open(b->device, false, &copied, why));
    const uint64_t before = cm_now_ns();
    OK(cm_event_record(start, steps, why));
    OK(cm_stream_busy(steps, busy_ns, why));
    OK(cm_event_record(end, steps, why));
    OK(cm_stream_copy_in(b->stream, 0, b->memory, 0, b->locked, NBYTES, why));
    OK(cm_event_record(copied, b->stream, why));
    OK(cm_event_wait(copied, why));
    const uint64_t copy_seen = cm_now_ns();
    OK(cm_event_wait(end, why));
    const uint64_t after = cm_now_ns();
    uint64_t started, ended, span;
    OK(cm_event_time(start, &started, why));
    OK(cm_event_time(end, &ended, why));
    OK(cm_event_span(start, end, &span, why));
    /* The fake's steps take no time. */
    if (k->driver == NULL)
        assert_true(span >= busy_ns - 1000000);
    assert_in_range(started, before - 1000000, after + 1000000);
    assert_in_range(ended, started + span - 2000, started + span + 2000);
    assert_true(ended <= after + 1000000);
    cm_event_close(start);
    cm_event_close(end);
    cm_event_close(copied);
    return copy_seen < ended;
}

/* Streams that waited for each other would never be seen so, however long the steps are. */
static void test_streams_run_beside_each_other(void **state)
{
    const kind *k = present_kind(state);
    bench b = open_bench(k);
    cm_stream *steps;
    OK(cm_stream_open(b.device, &steps, why));
    uint64_t busy_ns = 50000000;
    while (!copied_meanwhile(k, &b, steps, busy_ns) && k->driver == NULL) {
        busy_ns *= 2;
        assert_true(busy_ns < UINT64_C(30000000000));
    }
    cm_stream_close(steps);
    close_bench(&b);
}

static void test_streams_in_order(void **state)
{
    bench b = open_bench(present_kind(state));
    cm_stream *second;
    cm_event *written;
    OK(cm_stream_open(b.device, &second, why));
    OK(cm_event_open(b.device, false, &written, why));
    OK(cm_stream_after(second, written, why)); /* not recorded: nothing to wait for */
    OK(cm_event_wait(written, why));
    fill(b.locked, NBYTES, 21);
    OK(cm_stream_poison(b.stream, b.memory, 0, why));
    OK(cm_stream_busy(b.stream, 20000000, why));
    OK(cm_stream_copy_in(b.stream, 0, b.memory, 0, b.locked, NBYTES, why));
    OK(cm_event_record(written, b.stream, why));
    OK(cm_stream_after(second, written, why));
    OK(cm_stream_copy_out(second, b.back, b.memory, 0, NBYTES, why));
    OK(cm_stream_sync(second, why));
    assert_memory_equal(b.locked, b.back, NBYTES);
    cm_event_close(written);
    cm_stream_close(second);
    close_bench(&b);
}

static void test_events_without_time(void **state)
{
    bench b = open_bench(present_kind(state));
    cm_event *timed, *untimed;
    cm_error err;
    uint64_t ns;
    OK(cm_event_open(b.device, true, &timed, why));
    OK(cm_event_open(b.device, false, &untimed, why));
    assert_int_equal(cm_event_time(timed, &ns, &err), CM_EINVAL);
    assert_string_equal(err.text, "the event has no time: it is not recorded");
    OK(cm_event_record(untimed, b.stream, why));
    assert_int_equal(cm_event_span(untimed, timed, &ns, &err), CM_EINVAL);
    assert_string_equal(err.text, "the event has no time: it is untimed");
    cm_event_close(timed);
    cm_event_close(untimed);
    close_bench(&b);
}

/* More work than a queue holds. */
static void test_many_pieces_of_work(void **state)
{
    bench b = open_bench(present_kind(state));
    for (size_t i = 0; i < 500; i++)
        OK(cm_stream_copy_in(b.stream, i, b.memory, i * 16, b.locked, 16, why));
    OK(cm_stream_sync(b.stream, why));
    close_bench(&b);
}

/* VmLck and VmPin of this process, in kB. */
static long locked_kib(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    assert_non_null(f);
    char line[256];
    long sum = 0, value;
    while (fgets(line, sizeof line, f))
        if (sscanf(line, "VmLck: %ld kB", &value) == 1 ||
            sscanf(line, "VmPin: %ld kB", &value) == 1)
            sum += value;
    fclose(f);
    return sum;
}

/* Work of another library on its streams precedes ours that waits for it; host has none. */
static void test_streams_of_others(void **state)
{
    enum {
        DEFAULT_STREAM = 1,
        SMALL = 4096
    };
    const kind *k = present_kind(state);
    static uint8_t src[SMALL], seen[SMALL];
    cm_device *d = open_kind(k);
    cm_device_memory *m;
    cm_stream *mine, *other;
    cm_event *e;
    cm_error err = {0};
    fill(src, SMALL, 7);
    void *before = cm_device_enter(d);
    OK(cm_device_alloc(d, SMALL, &m, why));
    assert_non_null(cm_device_memory_address(m));
    OK(cm_stream_open(d, &mine, why));
    OK(cm_event_open(d, false, &e, why));
    if (cm_device_get_info(d)->kind == CM_DEVICE_HOST)
        assert_int_equal(cm_stream_adopt(d, DEFAULT_STREAM, &other, &err), CM_EINVAL);
    else {
        OK(cm_stream_adopt(d, DEFAULT_STREAM, &other, why));
        OK(cm_event_record(e, other, why));
        OK(cm_stream_after(mine, e, why));
        cm_stream_close(other);
    }
    OK(cm_stream_copy_in(mine, 0, m, 0, src, SMALL, why));
    OK(cm_device_sync(d, why));
    OK(cm_stream_copy_out(mine, seen, m, 0, SMALL, why));
    OK(cm_stream_sync(mine, why));
    assert_memory_equal(seen, src, SMALL);
    cm_event_close(e);
    cm_stream_close(mine);
    cm_device_free(m);
    cm_device_leave(d, before);
    cm_device_close(d);
}

/*
 * A context of a real device takes some tenths of a second to make and to take down:
 * of most opens it is that of another one, which stays.
 */
static void test_a_thousand_opens(void **state)
{
    enum {
        OPENS = 1000,
        ALONE = 10
    };
    const kind *k = present_kind(state);
    cm_device *other = NULL;
    cm_device_close(open_kind(k));
    const long before = locked_kib();
    for (int i = 0; i < OPENS; i++) {
        if (i == ALONE)
            other = open_kind(k);
        cm_device *d = open_kind(k);
        void *p;
        OK(cm_device_alloc_locked(d, 65536, &p, NULL, why));
        cm_device_free_locked(d, p, 65536);
        cm_device_close(d);
    }
    cm_device_close(other);
    assert_int_equal(locked_kib(), before);
}

static const device_test TESTS[] = {
    {"info", test_info},
    {"copies", test_copies},
    {"pageable copy", test_pageable_copy},
    {"checksum", test_checksum},
    {"ranges are checked", test_ranges_are_checked},
    {"out of memory", test_out_of_memory},
    {"locking", test_locking},
    {"streams run beside each other", test_streams_run_beside_each_other},
    {"streams in order", test_streams_in_order},
    {"events without time", test_events_without_time},
    {"many pieces of work", test_many_pieces_of_work},
    {"streams of others", test_streams_of_others},
    {"a thousand opens", test_a_thousand_opens},
};

int main(int argc, char **argv)
{
    (void)argc;
    return run_with_each_kind("device", TESTS, sizeof TESTS / sizeof *TESTS, argv[0]);
}
