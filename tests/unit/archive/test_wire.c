/* Numbers, texts and digests of a record: they come back, and nothing is read past the end. */

#include "../fixtures/ok.h"
#include "archive/survey/wire.h"

static void there_and_back(void **state)
{
    static const uint8_t BYTES[] = {0, 0xff, 7};
    cm_buf buf = {0};
    cm_wire_out out = {&buf, CM_OK, NULL};
    const cm_digest digest = cm_wire_digest("abc", 3);
    (void)state;
    cm_wire_put_u8(&out, 0xfe);
    cm_wire_put_u32(&out, 0xfedcba98);
    cm_wire_put_u64(&out, 0xfedcba9876543210);
    cm_wire_put_text(&out, "text");
    cm_wire_put_text(&out, "");
    cm_wire_put_text(&out, NULL);
    cm_wire_put_digest(&out, digest);
    cm_wire_put(&out, BYTES, sizeof BYTES);
    cm_wire_put(&out, NULL, 0);
    assert_int_equal(out.status, CM_OK);
    assert_int_equal(buf.nbytes, 1 + 4 + 8 + (4 + 5) + (4 + 1) + 4 + 16 + 3);

    cm_wire_in in = {buf.data, buf.data + buf.nbytes, false};
    assert_int_equal(cm_wire_get_u8(&in), 0xfe);
    assert_true(cm_wire_get_u32(&in) == 0xfedcba98);
    assert_true(cm_wire_get_u64(&in) == 0xfedcba9876543210);
    assert_string_equal(cm_wire_get_text(&in), "text");
    assert_string_equal(cm_wire_get_text(&in), "");
    assert_null(cm_wire_get_text(&in));
    assert_true(cm_wire_same(cm_wire_get_digest(&in), digest));
    assert_memory_equal(cm_wire_get(&in, sizeof BYTES), BYTES, sizeof BYTES);
    assert_false(in.bad);
    assert_ptr_equal(in.at, in.end);
    assert_null(cm_wire_get(&in, 1));
    assert_true(in.bad);
    cm_buf_release(&buf);
}

/* Of each length that is cut, nothing is given, and what follows is not believed either. */
static void cut(void **state)
{
    static const struct {
        const char *bytes;
        size_t nbytes;
        char kind;
        bool good;
    } ROWS[] = {
        {"\1", 1, '1', true},
        {"", 0, '1', false},
        {"\1\0\0\0", 4, '4', true},
        {"\1\0\0", 3, '4', false},
        {"\1\0\0\0\0\0\0\0", 8, '8', true},
        {"\1\0\0\0\0\0\0", 7, '8', false},
        {"\2\0\0\0a\0", 6, 't', true},
        {"\0\0\0\0", 4, 't', true}, /* none */
        {"\2\0\0\0a", 5, 't', false},
        {"\2\0\0\0ab", 6, 't', false},    /* without its end */
        {"\2\0\0\0\0a", 6, 't', false},   /* with one in front */
        {"\3\0\0\0a\0\0", 7, 't', false}, /* with two */
        {"\377\377\377\377a", 5, 't', false},
        {"0123456789abcdef", 16, 'd', true},
        {"0123456789abcde", 15, 'd', false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        uint8_t *exact = malloc(ROWS[i].nbytes + 1); /* so that reading on is found */
        memcpy(exact, ROWS[i].bytes, ROWS[i].nbytes);
        cm_wire_in in = {exact, exact + ROWS[i].nbytes, false};
        uint64_t value = 0;
        if (ROWS[i].kind == '1')
            value = cm_wire_get_u8(&in);
        else if (ROWS[i].kind == '4')
            value = cm_wire_get_u32(&in);
        else if (ROWS[i].kind == '8')
            value = cm_wire_get_u64(&in);
        else if (ROWS[i].kind == 't')
            value = cm_wire_get_text(&in) != NULL;
        else
            (void)cm_wire_get_digest(&in);
        if (in.bad == ROWS[i].good)
            fail_msg("row %u", (unsigned)i);
        if (in.bad)
            assert_int_equal(value, 0);
        else
            assert_ptr_equal(in.at, in.end);
        if (in.bad) { /* once bad, always */
            in.end = exact + ROWS[i].nbytes;
            in.at = exact;
            assert_null(cm_wire_get(&in, 0));
            assert_int_equal(cm_wire_get_u8(&in), 0);
        }
        free(exact);
    }
}

/* The first failure stays, and nothing more is put. */
static void failure(void **state)
{
    cm_buf buf;
    cm_error why = {0};
    (void)state;
    cm_buf_init(&buf, 6);
    cm_wire_out out = {&buf, CM_OK, &why};
    cm_wire_put_u32(&out, 1);
    cm_wire_put_u64(&out, 2);
    assert_int_equal(out.status, CM_EBUDGET);
    cm_wire_put_u8(&out, 3);
    cm_wire_put_text(&out, "x");
    assert_int_equal(out.status, CM_EBUDGET);
    assert_int_equal(buf.nbytes, 4);
    cm_buf_release(&buf);
}

static void digests(void **state)
{
    const cm_digest a = cm_wire_digest("abc", 3), b = cm_wire_digest("abd", 3),
                    c = cm_wire_digest("abc", 4), none = cm_wire_digest(NULL, 0);
    const cm_digest low = {.lo = a.lo, .hi = a.hi + 1}, high = {.lo = a.lo + 1, .hi = a.hi};
    (void)state;
    assert_true(cm_wire_same(a, cm_wire_digest("abc", 3)));
    assert_false(cm_wire_same(a, b));
    assert_false(cm_wire_same(a, c));
    assert_false(cm_wire_same(a, none));
    assert_false(cm_wire_same(a, low));
    assert_false(cm_wire_same(a, high));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(there_and_back), cmocka_unit_test(cut),
                                       cmocka_unit_test(failure), cmocka_unit_test(digests)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
