/* Which pieces come with one request. */
#include "nc_support.h"

#include "format/merge.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

static void test_merge(void **state)
{
    (void)state;
    enum {
        MIB = 1 << 20
    };
    static const struct {
        const char *name;
        cm_piece piece[4];
        size_t n, merged;
        uint64_t end;
    } row[] = {
        {"one", {{0, 10, 5, 0, 0, 0}}, 1, 1, 15},
        {"side by side", {{0, 10, 5, 0, 0, 0}, {0, 15, 5, 0, 0, 0}}, 2, 2, 20},
        {"a page between", {{0, 0, 5, 0, 0, 0}, {0, 4101, 5, 0, 0, 0}}, 2, 2, 4106},
        {"more than a page", {{0, 0, 5, 0, 0, 0}, {0, 4102, 5, 0, 0, 0}}, 2, 1, 5},
        {"two objects", {{0, 0, 5, 0, 0, 0}, {1, 5, 5, 0, 0, 0}}, 2, 1, 5},
        {"one within another", {{0, 0, 50, 0, 0, 0}, {0, 9, 5, 0, 0, 0}}, 2, 2, 50},
        {"the same twice", {{0, 7, 5, 0, 0, 0}, {0, 7, 5, 0, 0, 0}}, 2, 2, 12},
        {"as long as may be",
         {{0, 0, 4 * MIB, 0, 0, 0}, {0, 4 * MIB, 4 * MIB, 0, 0, 0}},
         2,
         2,
         8 * MIB},
        {"too long", {{0, 0, 4 * MIB, 0, 0, 0}, {0, 4 * MIB, 4 * MIB + 1, 0, 0, 0}}, 2, 1, 4 * MIB},
        {"alone too long", {{0, 0, 9 * MIB, 0, 0, 0}, {0, 1, 4, 0, 0, 0}}, 2, 2, 9 * MIB},
        {"nothing stored", {{0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 0}}, 2, 2, 0},
        {"at the end of all offsets", {{0, UINT64_MAX - 9, 9, 0, 0, 0}}, 1, 1, UINT64_MAX},
    };
    for (size_t i = 0; i < COUNT(row); i++) {
        uint64_t end = 0;
        if (cm_pieces_merge(row[i].piece, row[i].n, &end) != row[i].merged || end != row[i].end)
            fail_msg("%s", row[i].name);
    }
}

static void test_sort(void **state)
{
    (void)state;
    cm_piece piece[200];
    uint32_t random = 1;
    for (size_t n = 0; n <= COUNT(piece); n++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < n; i++) {
            random = random * 1664525 + 1013904223;
            piece[i] = (cm_piece){.object = random >> 29, .offset = random >> 10 & 63, .item = i};
            sum += piece[i].object << 8 | piece[i].offset;
        }
        cm_pieces_sort(piece, n);
        bool seen[COUNT(piece)] = {false};
        for (size_t i = 0; i < n; i++) {
            assert_false(seen[piece[i].item]);
            seen[piece[i].item] = true;
            sum -= piece[i].object << 8 | piece[i].offset;
            if (i > 0)
                assert_true(piece[i - 1].object < piece[i].object ||
                            (piece[i - 1].object == piece[i].object &&
                             piece[i - 1].offset <= piece[i].offset));
        }
        assert_int_equal(sum, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_sort),
    };
    return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
