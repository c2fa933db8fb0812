/* Chunks that a listing did not tell of: counted, named and drawn as one by one. */
#include "../unit.h"
#include "format/zarr/census_tally.h"

enum {
    ROUNDS = 400
};

static uint64_t state_of_random = 11;

static uint64_t any(uint64_t n)
{
    state_of_random =
        state_of_random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state_of_random >> 33) % n;
}

/* A grid of chunks of 2, whose objects are there with a likelihood of PRESENT in 8. */
static void check(unsigned rank, const uint64_t *count, uint64_t present)
{
    cm_zarr_meta meta = {.zarr_format = 3, .separator = '/', .rank = rank, .has_fill = true};
    cm_variable v = {.name = (char *)"v", .words = &meta};
    cm_census_array out = {0};
    cm_census_tally t;
    cm_error err;
    uint64_t absent = 0, named = 0, want[CM_CENSUS_CELLS] = {0};
    for (unsigned j = 0; j < rank; j++) {
        meta.shape[j] = count[j] * 2 - 1;
        meta.chunk[j] = 2;
    }
    assert_int_equal(cm_census_tally_init(&t, &v, &out, &err), CM_OK);
    for (uint64_t i = 0; i < out.nchunks; i++) {
        uint64_t coord[CM_MAX_RANK] = {0};
        cm_grid_coord(&t.names.grid, i, coord);
        if (any(8) < present)
            cm_census_tally_see(&t, coord);
    }
    assert_int_equal(cm_census_tally_finish(&t, &err), CM_OK);
    for (uint64_t i = 0; i < out.nchunks; i++) {
        const cm_census_count *c = &out.hole[CM_CENSUS_ABSENT];
        uint64_t coord[CM_MAX_RANK] = {0};
        char text[CM_MAX_RANK * 21];
        if (cm_census_tally_saw(&t, i))
            continue;
        cm_grid_coord(&t.names.grid, i, coord);
        if (absent < CM_CENSUS_NAMED) {
            assert_true(named < c->nnames);
            assert_string_equal(c->name[named++], cm_coord_text(rank, coord, text, sizeof(text)));
        }
        const uint64_t row = rank > 0 ? coord[0] : 0, nrows = rank > 0 ? count[0] : 1;
        size_t cell = 0; /* the last that begins at ROW or above */
        while (cell + 1 < out.ncells && nrows * (cell + 1) / out.ncells <= row)
            cell++;
        want[cell]++;
        absent++;
    }
    for (size_t i = 0; i < out.ncells; i++)
        assert_int_equal(out.cell[i].nholes, want[i]);
    assert_int_equal(out.hole[CM_CENSUS_ABSENT].n, absent);
    assert_int_equal(out.hole[CM_CENSUS_ABSENT].more, absent > CM_CENSUS_NAMED);
    assert_int_equal(out.npresent, out.nchunks - absent);
    cm_census_tally_release(&t);
    cm_census c = {.array = cm_calloc(1, sizeof(*c.array), &err), .narrays = 1};
    *c.array = out;
    cm_census_release(&c);
}

static void test_absent_chunks(void **state)
{
    (void)state;
    check(0, NULL, 0);
    check(0, NULL, 8);
    for (int i = 0; i < ROUNDS; i++) {
        const unsigned rank = 1 + (unsigned)any(3);
        uint64_t count[3] = {1 + any(i % 10 == 0 ? 2000 : 90), 1 + any(9), 1 + any(20)};
        check(rank, count, any(9));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_absent_chunks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
