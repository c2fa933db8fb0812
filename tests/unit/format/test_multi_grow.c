/* Pieces that grow to the chunks of files which are cut otherwise. */
#include "format/multi/grow.h"

#include "../unit.h"

enum {
    RANK = 3
};

/* Joined dimensions are written with a negative length: minus the longest chunk along them. */
typedef struct row {
    const char *name;
    unsigned rank;
    int64_t longest[RANK];
    uint64_t chunk[RANK];
    uint32_t itemsize;
    uint64_t most;
    uint64_t want[RANK];
} row;

static const row rows[] = {
    {"chunks alike", 3, {-4, 10, 10}, {4, 10, 10}, 4, 1 << 20, {4, 10, 10}},
    {"chunks of files are shorter", 3, {-4, 5, 5}, {4, 10, 10}, 4, 1 << 20, {4, 10, 10}},
    {"series of maps", 3, {-4, 10, 10}, {1, 1, 1}, 4, 1 << 20, {1, 10, 10}},
    {"whole chunks", 3, {-1, 7, 10}, {1, 3, 4}, 4, 1 << 20, {1, 9, 12}},
    {"one more would be too much", 2, {-2, 100}, {1, 1}, 4, 99 * 8, {1, 99}},
    {"just enough", 2, {-2, 100}, {1, 1}, 4, 100 * 8, {1, 100}},
    {"the last dimension first", 3, {-1, 8, 8}, {1, 1, 1}, 1, 16, {1, 2, 8}},
    {"a part of the last one", 3, {-1, 8, 8}, {1, 1, 1}, 1, 3, {1, 1, 3}},
    {"no room for two", 2, {-1, 8}, {1, 4}, 4, 31, {1, 4}},
    {"too large as it is", 2, {-1000, 8}, {1, 4}, 4, 1000, {1, 4}},
    {"a piece is as long as the longest chunk along a joined dimension",
     2,
     {-50, 8},
     {1, 1},
     1,
     200,
     {1, 4}},
    {"no dimension is joined", 2, {6, 6}, {2, 2}, 8, 1 << 20, {6, 6}},
    {"two are", 3, {-2, -3, 9}, {1, 1, 2}, 1, 1 << 20, {1, 1, 10}},
    {"only joined ones", 1, {-9}, {2}, 4, 1 << 20, {2}},
    {"a scalar", 0, {0}, {0}, 8, 1 << 20, {0}},
    {"elements of no size", 1, {8}, {2}, 0, 6, {6}},
    {"an empty dimension that is joined", 2, {0, 8}, {0, 2}, 4, 1 << 20, {0, 2}},
    {"more bytes than 64 bits count", 2, {INT64_MIN, 8}, {1, 2}, 4, UINT64_MAX, {1, 2}},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        const row *r = &rows[i];
        uint64_t chunk[RANK], longest[RANK];
        bool joined[RANK];
        for (unsigned j = 0; j < RANK; j++) {
            joined[j] = r->longest[j] < 0;
            longest[j] = joined[j] ? -(uint64_t)r->longest[j] : (uint64_t)r->longest[j];
            chunk[j] = r->chunk[j];
        }
        cm_multi_pieces_grow(r->rank, joined, longest, r->itemsize, r->most, chunk);
        for (unsigned j = 0; j < r->rank; j++)
            if (chunk[j] != r->want[j])
                fail_msg("%s: %llu along dimension %u, not %llu", r->name,
                         (unsigned long long)chunk[j], j, (unsigned long long)r->want[j]);
    }
}

/* Of many shapes: whole chunks, as few as reach the longest, within the room that there is. */
static void test_bounds(void **state)
{
    (void)state;
    unsigned ngrown = 0;
    for (uint64_t code = 0; code < 6 * 6 * 6 * 6 * 8; code++) {
        const bool joined[RANK] = {true, false, false};
        const uint64_t old[RANK] = {1, 1 + code % 6, 1 + code / 6 % 6};
        const uint64_t longest[RANK] = {3, 1 + 2 * (code / 36 % 6), 1 + 3 * (code / 216 % 6)};
        const uint64_t most = UINT64_C(20) << (code / 1296);
        uint64_t chunk[RANK] = {old[0], old[1], old[2]};
        cm_multi_pieces_grow(RANK, joined, longest, 2, most, chunk);
        assert_int_equal(chunk[0], old[0]);
        bool same = true;
        for (unsigned j = 1; j < RANK; j++) {
            assert_int_equal(chunk[j] % old[j], 0);
            assert_true(chunk[j] == old[j] || chunk[j] < longest[j] + old[j]);
            same = same && chunk[j] == old[j];
        }
        assert_true(same || 2 * 3 * chunk[1] * chunk[2] <= most);
        ngrown += !same;
    }
    assert_true(ngrown > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
