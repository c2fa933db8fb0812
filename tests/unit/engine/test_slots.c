/* Buffers under a limit, and the target chunks that lie in them. */

#include "../unit.h"
#include "engine/slots.h"

enum {
    PAGE = 4096
};

static void test_whole_pages(void **state)
{
    (void)state;
    const struct {
        size_t nbytes, want;
    } row[] = {{0, PAGE}, {1, PAGE}, {PAGE, PAGE}, {PAGE + 1, 2 * PAGE}, {10 * PAGE, 10 * PAGE}};
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        assert_int_equal(cm_buffers_nbytes(row[i].nbytes), row[i].want);
}

static void test_have_counts_what_is_in_use(void **state)
{
    (void)state;
    cm_buffers b;
    cm_buffers_init(&b, 4 * PAGE);
    assert_true(cm_buffers_have(&b, PAGE, 4));
    assert_false(cm_buffers_have(&b, PAGE, 5));
    assert_false(cm_buffers_have(&b, 1, 5));
    assert_true(cm_buffers_have(&b, 5 * PAGE, 0));
    assert_false(cm_buffers_have(&b, PAGE, UINT64_MAX));
    void *one = cm_buffers_get(&b, PAGE, NULL), *three = cm_buffers_get(&b, 3 * PAGE - 1, NULL);
    assert_false(cm_buffers_have(&b, 1, 1));
    cm_buffers_put(&b, three, 3 * PAGE - 1);
    assert_true(cm_buffers_have(&b, PAGE, 3));
    assert_false(cm_buffers_have(&b, PAGE, 4));
    cm_buffers_put(&b, one, PAGE);
    assert_true(cm_buffers_have(&b, 4 * PAGE, 1));
    cm_buffers_release(&b);
    assert_int_equal(b.held, 0);
    assert_int_equal(b.idle_nbytes, 0);
}

/* Memory held, idle buffers included, never exceeds the limit. */
static void test_idle_buffers_make_room(void **state)
{
    (void)state;
    cm_buffers b;
    void *held[8];
    cm_buffers_init(&b, 8 * PAGE);
    for (int i = 0; i < 8; i++)
        held[i] = cm_buffers_get(&b, PAGE, NULL);
    for (int i = 0; i < 8; i++)
        cm_buffers_put(&b, held[i], PAGE);
    assert_int_equal(b.held, 8 * PAGE);
    assert_ptr_equal(cm_buffers_get(&b, PAGE, NULL), held[7]);
    assert_int_equal(b.held, 8 * PAGE);
    void *large = cm_buffers_get(&b, 4 * PAGE, NULL);
    assert_non_null(large);
    assert_int_equal(b.held, 8 * PAGE);
    assert_int_equal(b.idle_nbytes, 3 * PAGE);
    memset(large, 1, 4 * PAGE);
    cm_buffers_put(&b, large, 4 * PAGE);
    cm_buffers_put(&b, held[7], PAGE);
    cm_buffers_release(&b);
    assert_int_equal(b.held, 0);
}

/* Buffers of many sizes come back for the size they have, whatever else is idle. */
static void test_sizes_are_kept_apart(void **state)
{
    (void)state;
    enum {
        SIZES = 40
    };
    cm_buffers b;
    uint8_t *held[SIZES];
    size_t sum = 0;
    cm_buffers_init(&b, SIZE_MAX);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < SIZES; i++) {
            held[i] = cm_buffers_get(&b, (size_t)(i / 2 + 1) * PAGE, NULL);
            memset(held[i], i, (size_t)(i / 2 + 1) * PAGE);
            sum += round == 0 ? (size_t)(i / 2 + 1) * PAGE : 0;
        }
        assert_int_equal(b.held, sum);
        assert_int_equal(b.idle_nbytes, 0);
        for (int i = 0; i < SIZES; i++) {
            assert_int_equal(held[i][(i / 2 + 1) * PAGE - 1], i);
            cm_buffers_put(&b, held[i], (size_t)(i / 2 + 1) * PAGE);
        }
        assert_int_equal(b.idle_nbytes, sum);
    }
    /* Of a hundred sizes not all stay. */
    for (size_t i = 1; i <= 100; i++)
        cm_buffers_put(&b, cm_buffers_get(&b, i * PAGE, NULL), i * PAGE);
    assert_true(b.held < 100 * 101 / 2 * PAGE);
    assert_int_equal(b.held, b.idle_nbytes);
    cm_buffers_release(&b);
    assert_int_equal(b.held, 0);
}

static void test_no_memory_is_an_error(void **state)
{
    (void)state;
    cm_buffers b;
    cm_error err = {0};
    cm_buffers_init(&b, SIZE_MAX);
    assert_null(cm_buffers_get(&b, SIZE_MAX / 2, &err));
    assert_int_equal(err.status, CM_ENOMEM);
    assert_int_equal(b.held, 0);
    cm_buffers_release(&b);
}

/* More slots than the first table has, of two transfers whose chunks have the same numbers. */
static void test_slots_are_found_until_they_are_removed(void **state)
{
    (void)state;
    enum {
        N = 1000
    };
    cm_transfer t[2] = {{.slot_nbytes = PAGE}, {.slot_nbytes = 2 * PAGE}};
    cm_slots slots;
    cm_buffers b;
    cm_buffers_init(&b, (size_t)3 * N * PAGE);
    assert_int_equal(cm_slots_init(&slots, NULL), CM_OK);
    for (uint64_t i = 0; i < 2 * N; i++) {
        uint64_t number = i / 2 * UINT64_C(0x100000001);
        cm_slot *slot = cm_slots_add(&slots, &b, &t[i % 2], number, PAGE << i % 2, i, NULL);
        assert_non_null(slot);
        assert_ptr_equal(cm_slots_find(&slots, &t[i % 2], number), slot);
    }
    assert_int_equal(slots.count, 2 * N);
    for (uint64_t i = 0; i < 2 * N; i += 3) {
        uint64_t number = i / 2 * UINT64_C(0x100000001);
        cm_slots_remove(&slots, &b, cm_slots_find(&slots, &t[i % 2], number));
    }
    for (uint64_t i = 0; i < 2 * N; i++) {
        cm_slot *slot = cm_slots_find(&slots, &t[i % 2], i / 2 * UINT64_C(0x100000001));
        assert_int_equal(slot == NULL, i % 3 == 0);
        if (slot != NULL)
            assert_int_equal(slot->left, i);
    }
    assert_null(cm_slots_find(&slots, &t[0], 1));
    cm_slots_release(&slots, &b);
    cm_buffers_release(&b);
    assert_int_equal(b.held, 0);
}

static void test_a_slot_that_is_used_again_is_new(void **state)
{
    (void)state;
    cm_transfer t = {.slot_nbytes = PAGE};
    cm_slots slots;
    cm_buffers b;
    cm_buffers_init(&b, PAGE);
    assert_int_equal(cm_slots_init(&slots, NULL), CM_OK);
    cm_slot *first = cm_slots_add(&slots, &b, &t, 5, PAGE, 1, NULL);
    cm_slots_remove(&slots, &b, first);
    cm_slot *second = cm_slots_add(&slots, &b, &t, 6, PAGE, 3, NULL);
    assert_ptr_equal(first, second);
    assert_int_equal(second->number, 6);
    assert_int_equal(second->left, 3);
    cm_slots_release(&slots, &b);
    cm_buffers_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_pages),
        cmocka_unit_test(test_have_counts_what_is_in_use),
        cmocka_unit_test(test_idle_buffers_make_room),
        cmocka_unit_test(test_sizes_are_kept_apart),
        cmocka_unit_test(test_no_memory_is_an_error),
        cmocka_unit_test(test_slots_are_found_until_they_are_removed),
        cmocka_unit_test(test_a_slot_that_is_used_again_is_new),
    };
    return cmocka_run_group_tests_name("slots", tests, NULL, NULL);
}
