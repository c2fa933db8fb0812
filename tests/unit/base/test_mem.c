

#include "../unit.h"
#include "base/mem.h"

static void test_checked_arithmetic(void **state)
{
    (void)state;
    size_t s = 5;
    uint64_t u = 5;
    assert_true(cm_mul_size(1u << 31, 1u << 31, &s));
    assert_int_equal(s, UINT64_C(1) << 62);
    assert_false(cm_mul_size((size_t)1 << 32, (size_t)1 << 32, &s));
    assert_int_equal(s, UINT64_C(1) << 62);
    assert_true(cm_add_size(SIZE_MAX - 1, 1, &s));
    assert_true(s == SIZE_MAX);
    s = 7;
    assert_false(cm_add_size(SIZE_MAX, 1, &s));
    assert_int_equal(s, 7);
    assert_true(cm_mul_u64(UINT64_MAX, 1, &u));
    assert_true(u == UINT64_MAX);
    assert_false(cm_mul_u64(UINT64_MAX, 2, &u));
}

static void test_product(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t n;
        uint64_t factor[4];
        bool fits;
        uint64_t product;
    } ROW[] = {
        {"none", 0, {0}, true, 1},
        {"three", 3, {2, 3, 7}, true, 42},
        {"largest", 2, {UINT64_MAX, 1}, true, UINT64_MAX},
        {"too large", 2, {UINT64_C(1) << 40, UINT64_C(1) << 40}, false, 0},
        {"a zero behind an overflow", 3, {UINT64_C(1) << 40, UINT64_C(1) << 40, 0}, true, 0},
        {"wraps to a small number", 3, {UINT64_C(1) << 40, UINT64_C(1) << 40, 3}, false, 0},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++) {
        uint64_t out = 99;
        print_message("  %s\n", ROW[i].name);
        assert_int_equal(cm_product_u64(ROW[i].n, ROW[i].factor, &out), ROW[i].fits);
        assert_int_equal(out, ROW[i].fits ? ROW[i].product : 99);
    }
}

static void test_allocation(void **state)
{
    (void)state;
    cm_error err = {0};
    uint8_t *p = cm_calloc(3, 5, &err);
    assert_non_null(p);
    for (int i = 0; i < 15; i++)
        assert_int_equal(p[i], 0);
    free(p);
    p = cm_calloc(0, 8, &err);
    assert_non_null(p);
    free(p);
    assert_null(cm_calloc(SIZE_MAX / 2, 16, &err));
    assert_int_equal(err.status, CM_ENOMEM);

    char *text = cm_strdup("abc", &err);
    assert_string_equal(text, "abc");
    free(text);
    text = cm_asprintf(&err, "%s/%d", "c", 12);
    assert_string_equal(text, "c/12");
    free(text);
}

static void test_room_for_one_more(void **state)
{
    uint32_t *items = NULL;
    size_t capacity = 0;
    (void)state;
    for (uint32_t i = 0; i < 1000; i++) {
        uint32_t *more = cm_make_room(items, i, &capacity, sizeof(*more), 3);
        assert_non_null(more);
        assert_true(capacity > i && (i < 3 ? capacity == 3 : capacity <= 2 * i));
        items = more;
        items[i] = i;
    }
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(items[i], i);
    size_t huge = SIZE_MAX / 4;
    assert_null(cm_make_room(items, huge, &huge, sizeof(*items), 3));
    assert_int_equal(huge, SIZE_MAX / 4);
    assert_int_equal(items[999], 999);
    free(items);
}

static void test_list_grows_by_one(void **state)
{
    /* From FROM items to TO, from where it goes on: a list that became shorter keeps its room. */
    static const struct {
        size_t from, to;
    } ROW[] = {{0, 1000}, {513, 1025}, {512, 600}, {3, 9}, {1, 2}, {0, 70}};
    cm_error err = {0};
    uint32_t *items = NULL;
    (void)state;
    for (size_t k = 0; k < sizeof ROW / sizeof *ROW; k++) {
        print_message("  %zu to %zu\n", ROW[k].from, ROW[k].to);
        for (size_t i = ROW[k].from; i < ROW[k].to; i++) {
            assert_int_equal(CM_GROW(items, i, &err), CM_OK);
            items[i] = (uint32_t)i;
        }
        for (size_t i = 0; i < ROW[k].to; i++)
            assert_int_equal(items[i], i);
    }
    free(items);
}

static void test_list_that_cannot_grow(void **state)
{
    static const struct {
        size_t n, size;
        int rc;
    } ROW[] = {
        {(SIZE_MAX >> 1) + 1, 1, CM_ENOMEM},  /* twice as many are too many */
        {(SIZE_MAX >> 3) + 1, 16, CM_ENOMEM}, /* so many bytes are too many */
        {((size_t)1 << 60) + 1, 16, CM_OK},   /* there is room */
        {3, sizeof(uint32_t), CM_OK},
    };
    uint32_t *items = malloc(sizeof *items);
    (void)state;
    assert_non_null(items);
    items[0] = 7;
    for (size_t k = 0; k < sizeof ROW / sizeof *ROW; k++) {
        cm_error err = {0};
        uint32_t *before = items;
        print_message("  %zu of %zu bytes\n", ROW[k].n, ROW[k].size);
        assert_int_equal(cm_grow(&items, ROW[k].n, ROW[k].size, &err), ROW[k].rc);
        assert_int_equal(err.status, ROW[k].rc);
        assert_ptr_equal(items, before);
        assert_int_equal(items[0], 7);
    }
    free(items);
}

static void test_buffer_grows_and_keeps(void **state)
{
    (void)state;
    cm_buf buf = {0};
    cm_error err = {0};
    for (int i = 0; i < 10000; i++) {
        uint8_t byte = (uint8_t)(i * 7);
        assert_int_equal(cm_buf_append(&buf, &byte, 1, &err), CM_OK);
        assert_int_equal((uintptr_t)buf.data % 64, 0);
    }
    assert_int_equal(buf.nbytes, 10000);
    assert_true(buf.capacity < 20000);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(buf.data[i], (uint8_t)(i * 7));
    assert_int_equal(cm_buf_resize(&buf, 3, &err), CM_OK);
    assert_int_equal(cm_buf_resize(&buf, 100000, &err), CM_OK);
    assert_int_equal(buf.data[2], 14);
    assert_true(buf.capacity < 100000 + 64);
    assert_int_equal(cm_buf_append(&buf, NULL, 0, &err), CM_OK);
    cm_buf_release(&buf);
    assert_null(buf.data);
    assert_int_equal(buf.nbytes + buf.capacity, 0);
    cm_buf_release(&buf);
    cm_buf_release(NULL);
}

static void test_buffer_respects_its_maximum(void **state)
{
    (void)state;
    cm_buf buf;
    cm_error err = {0};
    char data[64] = {0};
    cm_buf_init(&buf, 100);
    assert_int_equal(cm_buf_append(&buf, data, 64, &err), CM_OK);
    assert_int_equal(cm_buf_append(&buf, data, 36, &err), CM_OK);
    assert_int_equal(cm_buf_append(&buf, data, 1, &err), CM_EBUDGET);
    assert_int_equal(buf.nbytes, 100);
    assert_int_equal(cm_buf_resize(&buf, 1000, &err), CM_EBUDGET);
    cm_buf_release(&buf);
    assert_int_equal(buf.max_nbytes, 100);
    assert_int_equal(cm_buf_reserve(&buf, SIZE_MAX - 3, &err), CM_EBUDGET);
    buf.max_nbytes = 0;
    assert_int_equal(cm_buf_reserve(&buf, SIZE_MAX - 3, &err), CM_ENOMEM);
    buf.nbytes = 8;
    assert_int_equal(cm_buf_append(&buf, data, SIZE_MAX - 4, &err), CM_ENOMEM);
}

static void test_buffer_printf(void **state)
{
    (void)state;
    cm_buf buf = {0};
    cm_error err = {0};
    char longer[1000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    assert_int_equal(cm_buf_printf(&buf, &err, "%d,", 12), CM_OK);
    assert_int_equal(cm_buf_printf(&buf, &err, "%s", longer), CM_OK);
    assert_int_equal(buf.nbytes, 3 + 999);
    assert_memory_equal(buf.data, "12,", 3);
    assert_memory_equal(buf.data + 3, longer, 999);
    cm_buf_release(&buf);
}

static void test_loads_and_stores(void **state)
{
    (void)state;
    const uint8_t bytes[] = {0xAA, 1, 2, 3, 4, 5, 6, 7, 8};
    const uint8_t *p = bytes + 1; /* unaligned */
    uint8_t out[9];
    assert_int_equal(cm_load_le16(p), 0x0201);
    assert_int_equal(cm_load_le32(p), 0x04030201);
    assert_int_equal(cm_load_be32(p), 0x01020304);
    assert_true(cm_load_le64(p) == UINT64_C(0x0807060504030201));
    assert_true(cm_load_be64(p) == UINT64_C(0x0102030405060708));
    cm_store_le32(out + 1, 0x04030201);
    assert_memory_equal(out + 1, p, 4);
    cm_store_be32(out + 1, 0x01020304);
    assert_memory_equal(out + 1, p, 4);
    cm_store_le64(out + 1, UINT64_C(0x0807060504030201));
    assert_memory_equal(out + 1, p, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checked_arithmetic),
        cmocka_unit_test(test_product),
        cmocka_unit_test(test_allocation),
        cmocka_unit_test(test_room_for_one_more),
        cmocka_unit_test(test_list_grows_by_one),
        cmocka_unit_test(test_list_that_cannot_grow),
        cmocka_unit_test(test_buffer_grows_and_keeps),
        cmocka_unit_test(test_buffer_respects_its_maximum),
        cmocka_unit_test(test_buffer_printf),
        cmocka_unit_test(test_loads_and_stores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
