/* Orders of access against lists made the simple way, shares against DistributedSampler's. */
#include <inttypes.h>
#include <math.h>

#include "../unit.h"
#include "plan/samples.h"

typedef struct space_row {
    const char *name;
    cm_sample_space space;
    uint64_t nsamples;
} space_row;

#define SPACE(r, ...)                                                                              \
    {                                                                                              \
        .rank = r, __VA_ARGS__                                                                     \
    }

static const space_row rows[] = {
    {"random", SPACE(2, .length = {9, 7}, .sample = {3, 2}, .order = CM_ORDER_RANDOM), 42},
    {"random, reach",
     SPACE(2, .length = {9, 7}, .sample = {3, 2}, .reach = 4, .order = CM_ORDER_RANDOM), 18},
    {"random, reach along the second dimension",
     SPACE(2, .length = {9, 7}, .sample = {3, 2}, .reach = 4, .lagged = 1,
           .order = CM_ORDER_RANDOM),
     14},
    {"random, one place", SPACE(1, .length = {5}, .sample = {5}, .order = CM_ORDER_RANDOM), 1},
    {"random, rank 0", SPACE(0, .order = CM_ORDER_RANDOM), 1},
    {"random, 3 dimensions",
     SPACE(3, .length = {6, 5, 8}, .sample = {1, 2, 8}, .order = CM_ORDER_RANDOM), 24},
    {"sequential", SPACE(3, .length = {7, 8, 9}, .sample = {2, 3, 4}, .order = CM_ORDER_SEQUENTIAL),
     12},
    {"sequential, reach",
     SPACE(2, .length = {12, 4}, .sample = {3, 2}, .reach = 1, .order = CM_ORDER_SEQUENTIAL), 6},
    {"strided",
     SPACE(2, .length = {10, 7}, .sample = {2, 1}, .order = CM_ORDER_STRIDED, .parameter = 4), 35},
    {"strided, even",
     SPACE(1, .length = {12}, .sample = {1}, .order = CM_ORDER_STRIDED, .parameter = 4), 12},
    {"strided, too far",
     SPACE(1, .length = {12}, .sample = {3}, .order = CM_ORDER_STRIDED, .parameter = 100), 4},
    {"runs",
     SPACE(2, .length = {10, 7}, .sample = {1, 2}, .order = CM_ORDER_BLOCK_SHUFFLE, .parameter = 7),
     30},
    {"runs, even",
     SPACE(1, .length = {24}, .sample = {2}, .order = CM_ORDER_BLOCK_SHUFFLE, .parameter = 4), 12},
    {"runs, one short",
     SPACE(1, .length = {8}, .sample = {1}, .order = CM_ORDER_BLOCK_SHUFFLE, .parameter = 9), 8},
    {"chunks",
     SPACE(2, .length = {20, 17}, .sample = {3, 2}, .chunk = {7, 5}, .order = CM_ORDER_CHUNKS), 48},
    {"chunks smaller than samples",
     SPACE(3, .length = {20, 17, 9}, .sample = {6, 2, 4}, .chunk = {4, 5, 100},
           .order = CM_ORDER_CHUNKS),
     48},
    {"chunks, reach",
     SPACE(2, .length = {20, 9}, .sample = {2, 2}, .chunk = {5, 4}, .reach = 5,
           .order = CM_ORDER_CHUNKS),
     28},
    {"chunks, from within one",
     SPACE(2, .origin = {5, 9}, .length = {20, 17}, .sample = {3, 2}, .chunk = {7, 5},
           .order = CM_ORDER_CHUNKS),
     48},
    {"chunks, within one",
     SPACE(1, .origin = {40}, .length = {6}, .sample = {2}, .chunk = {50},
           .order = CM_ORDER_CHUNKS),
     3},
    {"random, from within",
     SPACE(2, .origin = {4, 1}, .length = {9, 7}, .sample = {3, 2}, .reach = 4,
           .order = CM_ORDER_RANDOM),
     18},
    {"sequential, from within",
     SPACE(2, .origin = {1, 2}, .length = {12, 4}, .sample = {3, 2}, .order = CM_ORDER_SEQUENTIAL),
     8},
    {"all, from within",
     SPACE(2, .origin = {3, 5}, .length = {10, 7}, .sample = {3, 4}, .order = CM_ORDER_ALL), 8},
    {"map, from within", SPACE(2, .origin = {6, 0}, .length = {11, 3}, .order = CM_ORDER_MAP), 11},
    {"map", SPACE(3, .length = {11, 3, 4}, .order = CM_ORDER_MAP), 11},
    {"map, reach", SPACE(2, .length = {11, 3}, .reach = 4, .order = CM_ORDER_MAP), 7},
    {"series", SPACE(3, .length = {11, 3, 4}, .order = CM_ORDER_SERIES), 12},
    {"series, reach", SPACE(2, .length = {11, 3}, .reach = 4, .order = CM_ORDER_SERIES), 3},
    {"map, reach along the second dimension",
     SPACE(2, .length = {11, 3}, .reach = 1, .lagged = 1, .order = CM_ORDER_MAP), 11},
    {"series, reach along the second dimension",
     SPACE(2, .length = {11, 3}, .reach = 1, .lagged = 1, .order = CM_ORDER_SERIES), 2},
    {"all", SPACE(2, .length = {10, 7}, .sample = {3, 4}, .order = CM_ORDER_ALL), 8},
    {"all, reach", SPACE(2, .length = {10, 7}, .sample = {3, 4}, .reach = 2, .order = CM_ORDER_ALL),
     6},
    {"all, one", SPACE(1, .length = {10}, .sample = {10}, .order = CM_ORDER_ALL), 1},
};

static cm_sample_space make(const space_row *row)
{
    cm_sample_space space = row->space;
    cm_error err;

    if (cm_sample_space_init(&space, NULL, &err) != CM_OK)
        fail_msg("%s: %s", row->name, err.text);
    return space;
}

/* The list that an order stands for, in C order numbers; false for those that shuffle. */
static bool expected_order(const cm_sample_space *s, uint64_t *list)
{
    size_t n = 0;

    if (s->order == CM_ORDER_SEQUENTIAL || s->order == CM_ORDER_ALL) {
        for (; n < s->nsamples; n++)
            list[n] = n;
    } else if (s->order == CM_ORDER_STRIDED) {
        for (uint64_t r = 0; r < s->parameter; r++)
            for (uint64_t x = r; x < s->nsamples; x += s->parameter)
                list[n++] = x;
    } else if (s->order == CM_ORDER_CHUNKS) {
        cm_grid grid;
        uint64_t end[CM_MAX_RANK];
        for (unsigned j = 0; j < s->rank; j++)
            end[j] = s->origin[j] + s->length[j];
        assert_int_equal(cm_grid_init(&grid, s->rank, end, s->chunk, NULL), CM_OK);
        for (uint64_t chunk = 0; chunk < grid.nchunks; chunk++)
            for (uint64_t x = 0; x < s->nsamples; x++) {
                uint64_t at[CM_MAX_RANK], rest = x;
                for (unsigned j = s->rank; j-- > 0; rest /= s->count[j])
                    at[j] = (s->origin[j] + rest % s->count[j] * s->sample[j]) / s->chunk[j];
                if (cm_grid_number(&grid, at) == chunk)
                    list[n++] = x;
            }
    } else {
        return false;
    }
    assert_int_equal(n, s->nsamples);
    return true;
}

static void check_inside(const char *name, const cm_sample_space *s, const cm_box *box)
{
    assert_int_equal(box->rank, s->rank);
    for (unsigned j = 0; j < s->rank; j++) {
        const uint64_t end = s->origin[j] + s->length[j] - (j == s->lagged ? s->reach : 0);
        if (box->shape[j] == 0 || box->start[j] < s->origin[j] ||
            box->start[j] + box->shape[j] > end)
            fail_msg("%s: %" PRIu64 " + %" PRIu64 " along %u, which ends at %" PRIu64, name,
                     box->start[j], box->shape[j], j, end);
        if (s->order != CM_ORDER_ALL && box->shape[j] != s->sample[j])
            fail_msg("%s: length %" PRIu64 " along %u", name, box->shape[j], j);
    }
}

static void test_orders_visit_what_they_say(void **state)
{
    (void)state;
    for (size_t r = 0; r < COUNT(rows); r++) {
        const cm_sample_space s = make(&rows[r]);
        uint64_t list[64];
        bool seen[64] = {false};
        const bool known = expected_order(&s, list);

        if (s.nsamples != rows[r].nsamples)
            fail_msg("%s: %" PRIu64 " samples", rows[r].name, s.nsamples);
        for (uint64_t i = 0; i < s.nsamples; i++) {
            const uint64_t number = cm_sample_number(&s, 3, i);
            cm_box box;
            if (number >= s.nsamples || seen[number])
                fail_msg("%s: sample %" PRIu64 " is number %" PRIu64, rows[r].name, i, number);
            seen[number] = true;
            if (known && number != list[i])
                fail_msg("%s: sample %" PRIu64 " is number %" PRIu64 ", not %" PRIu64, rows[r].name,
                         i, number, list[i]);
            cm_sample_at(&s, 3, i, &box);
            check_inside(rows[r].name, &s, &box);
        }
    }
}

/* Numbers are in C order of first elements, and so different ones are different samples. */
static void test_numbers_are_in_c_order(void **state)
{
    (void)state;
    for (size_t r = 0; r < COUNT(rows); r++) {
        const cm_sample_space s = make(&rows[r]);
        uint64_t of_number[64];
        cm_box last = {0}, box;

        for (uint64_t i = 0; i < s.nsamples; i++)
            of_number[cm_sample_number(&s, 1, i)] = i;
        for (uint64_t x = 0; x < s.nsamples; x++, last = box) {
            unsigned j = 0;
            cm_sample_at(&s, 1, of_number[x], &box);
            while (x > 0 && j < s.rank && box.start[j] == last.start[j])
                j++;
            if (x > 0 && (j == s.rank || box.start[j] < last.start[j]))
                fail_msg("%s: number %" PRIu64 " does not follow", rows[r].name, x);
        }
    }
}

static void test_all_covers_each_element_once(void **state)
{
    (void)state;
    for (size_t r = 0; r < COUNT(rows); r++) {
        const cm_sample_space s = make(&rows[r]);
        uint8_t times[128] = {0};
        cm_box box;

        if (s.order != CM_ORDER_ALL)
            continue;
        const uint64_t width = s.rank > 1 ? s.length[1] : 1, rows_used = s.length[0] - s.reach;
        for (uint64_t i = 0; i < s.nsamples; i++) {
            cm_sample_at(&s, 0, i, &box);
            const uint64_t top = box.start[0] - s.origin[0];
            const uint64_t left = s.rank > 1 ? box.start[1] - s.origin[1] : 0;
            for (uint64_t y = 0; y < box.shape[0]; y++)
                for (uint64_t x = 0; x < (s.rank > 1 ? box.shape[1] : 1); x++)
                    times[(top + y) * width + left + x]++;
        }
        for (uint64_t e = 0; e < rows_used * width; e++)
            assert_int_equal(times[e], 1);
    }
}

/* Along a dimension with cuts each chunk is a sample, along another one they have its length. */
static void test_whole_chunks(void **state)
{
    static const uint64_t LENGTH[] = {5, 1, 4, 2};
    const cm_order order[] = {CM_ORDER_CHUNKS, CM_ORDER_ALL};
    cm_cuts cuts = {0};
    cm_box box;
    (void)state;
    for (size_t k = 0; k < COUNT(LENGTH); k++)
        assert_int_equal(cm_cuts_add(&cuts, LENGTH[k], 1, NULL), CM_OK);
    cm_cuts_trim(&cuts, 11); /* the last chunk reaches past the array */
    for (size_t k = 0; k < COUNT(order); k++) {
        cm_sample_space s = SPACE(2, .length = {11, 7}, .sample = {5, 3}, .chunk = {5, 3},
                                  .cuts = {&cuts}, .whole_chunks = true, .order = order[k]);
        const uint64_t along = order[k] == CM_ORDER_ALL ? 3 : 2;
        assert_int_equal(cm_sample_space_init(&s, NULL, NULL), CM_OK);
        assert_int_equal(s.nsamples, 4 * along);
        for (uint64_t i = 0; i < s.nsamples; i++) {
            const uint64_t row = i / along, x = i % along * 3;
            cm_sample_at(&s, 0, i, &box);
            assert_int_equal(box.start[0], cm_cuts_first(&cuts, row));
            assert_int_equal(box.shape[0], row == 3 ? 1 : LENGTH[row]);
            assert_int_equal(box.start[1], x);
            assert_int_equal(box.shape[1], x == 6 ? 1 : 3);
        }
        s.reach = 1; /* lags need samples of one length */
        assert_int_equal(cm_sample_space_init(&s, NULL, NULL), CM_OK);
        cm_sample_at(&s, 0, 0, &box);
        assert_int_equal(s.nsamples, 2 * along);
        assert_int_equal(box.shape[0], 5);
    }
    cm_cuts_release(&cuts);
}

static void test_runs_stay_together(void **state)
{
    (void)state;
    for (size_t r = 0; r < COUNT(rows); r++) {
        const cm_sample_space s = make(&rows[r]);
        bool moved = false, mixed = false, tail_moved = false;
        if (s.order != CM_ORDER_BLOCK_SHUFFLE)
            continue;
        const uint64_t nruns = (s.nsamples + s.parameter - 1) / s.parameter;
        for (uint64_t epoch = 0; epoch < 64; epoch++) {
            uint64_t changes = 0, last = UINT64_MAX;
            for (uint64_t i = 0; i < s.nsamples; i++) {
                const uint64_t number = cm_sample_number(&s, epoch, i);
                const uint64_t run = number / s.parameter;
                changes += run != last;
                moved |= i < s.parameter && run != 0;
                mixed |= i > 0 && run == last && number < cm_sample_number(&s, epoch, i - 1);
                tail_moved |= run == nruns - 1 && i < s.parameter;
                last = run;
            }
            assert_int_equal(changes, nruns);
        }
        assert_true(mixed);
        assert_int_equal(moved, nruns > 1);
        assert_true(tail_moved);
    }
}

static void test_maps_and_series(void **state)
{
    cm_sample_space map = SPACE(3, .length = {11, 3, 4}, .reach = 2, .order = CM_ORDER_MAP);
    cm_sample_space series = SPACE(3, .length = {11, 3, 4}, .reach = 2, .order = CM_ORDER_SERIES);
    (void)state;

    assert_int_equal(cm_sample_space_init(&map, NULL, NULL), CM_OK);
    assert_int_equal(cm_sample_space_init(&series, NULL, NULL), CM_OK);
    assert_memory_equal(map.sample, ((uint64_t[]){1, 3, 4}), 3 * sizeof(uint64_t));
    assert_memory_equal(series.sample, ((uint64_t[]){9, 1, 1}), 3 * sizeof(uint64_t));
}

static void test_seeds_and_epochs(void **state)
{
    (void)state;
    for (size_t r = 0; r < COUNT(rows); r++) {
        cm_sample_space s = make(&rows[r]), t = make(&rows[r]);
        const bool shuffles = s.order == CM_ORDER_RANDOM || s.order == CM_ORDER_MAP ||
                              s.order == CM_ORDER_SERIES || s.order == CM_ORDER_BLOCK_SHUFFLE;
        unsigned other_epoch = 0, other_seed = 0;

        t.seed = 1;
        for (uint64_t i = 0; i < s.nsamples; i++) {
            assert_int_equal(cm_sample_number(&s, 5, i), cm_sample_number(&s, 5, i));
            other_epoch += cm_sample_number(&s, 5, i) != cm_sample_number(&s, 6, i);
            other_seed += cm_sample_number(&s, 5, i) != cm_sample_number(&t, 5, i);
        }
        if (!shuffles)
            assert_int_equal(other_epoch + other_seed, 0);
        else if (s.nsamples > 10)
            assert_true(other_epoch > 0 && other_seed > 0);
    }
}

/* Orders of N numbers are numbered by their inversions (Lehmer's code). */
static size_t order_number(uint64_t n, const uint64_t *to)
{
    size_t code = 0;
    for (uint64_t i = 0; i < n; i++) {
        size_t smaller = 0;
        for (uint64_t j = i + 1; j < n; j++)
            smaller += to[j] < to[i];
        code = code * (n - i) + smaller;
    }
    return code;
}

static double chi_square(const uint64_t *count, size_t ncells, double expected)
{
    double sum = 0;
    for (size_t c = 0; c < ncells; c++)
        sum += ((double)count[c] - expected) * ((double)count[c] - expected) / expected;
    return sum;
}

/* A chi-square of F degrees has mean F and variance 2F: five deviations are never chance. */
static void check_uniform(const char *what, uint64_t n, const uint64_t *count, size_t ncells,
                          double expected)
{
    const double degrees = (double)ncells - 1, x = chi_square(count, ncells, expected);
    if (fabs(x - degrees) > 5 * sqrt(2 * degrees))
        fail_msg("%s of %" PRIu64 ": chi-square %.1f with %.0f degrees", what, n, x, degrees);
}

static void test_all_orders_are_equally_frequent(void **state)
{
    static const size_t factorial[] = {1, 1, 2, 6, 24, 120, 720};
    (void)state;
    for (uint64_t n = 2; n <= 6; n++) {
        uint64_t count[720] = {0}, to[6];
        const uint64_t ntrials = 200 * factorial[n];
        cm_sample_space s = SPACE(1, .length = {n}, .sample = {1}, .order = CM_ORDER_RANDOM);
        assert_int_equal(cm_sample_space_init(&s, NULL, NULL), CM_OK);
        for (uint64_t epoch = 0; epoch < ntrials; epoch++) {
            for (uint64_t i = 0; i < n; i++)
                to[i] = cm_sample_number(&s, epoch, i);
            count[order_number(n, to)]++;
        }
        check_uniform("orders", n, count, factorial[n], 200);
    }
}

static void test_every_place_is_equally_likely(void **state)
{
    static const uint64_t sizes[] = {7, 16, 17, 40, 100};
    (void)state;
    for (size_t k = 0; k < COUNT(sizes); k++) {
        static uint64_t count[100 * 100];
        const uint64_t n = sizes[k];
        cm_sample_space s = SPACE(1, .length = {n}, .sample = {1}, .order = CM_ORDER_RANDOM);
        assert_int_equal(cm_sample_space_init(&s, NULL, NULL), CM_OK);
        for (uint64_t first = 0; first < n; first += 5) { /* pairs (i, i + 1) too */
            memset(count, 0, sizeof(count));
            for (uint64_t seed = 0; seed < 20 * n; seed++) {
                s.seed = seed;
                count[cm_sample_number(&s, 0, first)]++;
            }
            check_uniform("places", n, count, n, 20);
        }
        memset(count, 0, sizeof(count));
        for (uint64_t seed = 0; seed < 20 * n * n; seed++)
            count[cm_permute(n, seed * UINT64_C(0x9e3779b97f4a7c15), 0) * n +
                  cm_permute(n, seed * UINT64_C(0x9e3779b97f4a7c15), 1)]++;
        for (uint64_t i = 0; i < n; i++) /* equal places cannot be: as if they were full */
            count[i * n + i] = (uint64_t)(20.0 * (double)n / (double)(n - 1));
        check_uniform("pairs", n, count, n * n, 20.0 * (double)n / (double)(n - 1));
    }
}

static void test_permutations_of_any_size(void **state)
{
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 63, 64, 65, 1000, 4096, 5000};
    (void)state;
    for (size_t k = 0; k < COUNT(sizes); k++) {
        bool seen[5000] = {false};
        for (uint64_t i = 0; i < sizes[k]; i++) {
            const uint64_t to = cm_permute(sizes[k], 12345, i);
            assert_true(to < sizes[k] && !seen[to]);
            seen[to] = true;
        }
    }
    for (unsigned bits = 40; bits < 64; bits++) {
        const uint64_t n = (UINT64_C(1) << bits) + 1;
        const uint64_t a = cm_permute(n, 9, n - 1), b = cm_permute(n, 9, n - 2);
        assert_true(a < n && b < n && a != b);
    }
    assert_true(cm_permute(UINT64_MAX, 1, 5) < UINT64_MAX);
}

static void test_refusals(void **state)
{
    static char *const names[] = {"time", NULL, "lon"};
    static const struct {
        cm_sample_space space;
        const char *says;
    } bad[] = {
        {SPACE(2, .length = {9, 7}, .sample = {10, 1}),
         "a sample of 10 does not fit dimension time"},
        {SPACE(2, .length = {9, 7}, .sample = {1, 8}), "dimension 1, which has 7"},
        {SPACE(1, .length = {9}, .sample = {3}, .reach = 7), "a sample of 3 and lags that span 7"},
        {SPACE(1, .length = {9}, .sample = {1}, .reach = 9), "lags that span 9 do not fit"},
        {SPACE(1, .length = {9}, .sample = {1}, .reach = UINT64_MAX), "do not fit"},
        {SPACE(1, .length = {9}, .reach = 12, .order = CM_ORDER_SERIES), "lags that span 12"},
        {SPACE(1, .length = {9}, .sample = {0}), "takes no elements of dimension time"},
        {SPACE(1, .length = {0}, .sample = {1}), "dimension time has no elements"},
        {SPACE(2, .length = {4, 0}, .order = CM_ORDER_MAP), "dimension 1 has no elements"},
        {SPACE(0, .reach = 1), "lags need a dimension"},
        {SPACE(0, .order = CM_ORDER_MAP), "the order map needs"},
        {SPACE(0, .order = CM_ORDER_SERIES), "the order series needs"},
        {SPACE(33, .order = CM_ORDER_RANDOM), "33 dimensions"},
        {SPACE(1, .length = {9}, .sample = {1}, .order = CM_ORDER_STRIDED), "stride of at least 1"},
        {SPACE(1, .length = {9}, .sample = {1}, .order = CM_ORDER_BLOCK_SHUFFLE), "at least 1"},
        {SPACE(1, .length = {9}, .sample = {1}, .order = CM_ORDER_CHUNKS), "has no chunks"},
        {SPACE(2, .length = {UINT64_C(1) << 40, UINT64_C(1) << 23}, .sample = {1, 1}),
         "more than 2^62 different samples"},
        {SPACE(2, .length = {UINT64_MAX, UINT64_MAX}, .sample = {1, 1}), "more than 2^62"},
    };
    (void)state;
    for (size_t r = 0; r < COUNT(bad); r++) {
        cm_sample_space s = bad[r].space;
        cm_error err = {0};
        if (cm_sample_space_init(&s, names, &err) != CM_EINVAL || !strstr(err.text, bad[r].says))
            fail_msg("row %zu: %s", r, err.text);
    }
}

static void test_the_longest_dimensions(void **state)
{
    cm_sample_space s = SPACE(2, .length = {UINT64_MAX, 3}, .sample = {UINT64_MAX / 5, 2},
                              .chunk = {UINT64_MAX / 2, 3}, .order = CM_ORDER_CHUNKS);
    cm_box box;
    (void)state;

    assert_int_equal(cm_sample_space_init(&s, NULL, NULL), CM_OK);
    assert_int_equal(s.nsamples, 5);
    cm_sample_at(&s, 0, 4, &box);
    assert_int_equal(box.start[0], UINT64_MAX / 5 * 4);
    s = (cm_sample_space)SPACE(1, .length = {UINT64_MAX}, .sample = {UINT64_MAX - 1},
                               .order = CM_ORDER_ALL);
    assert_int_equal(cm_sample_space_init(&s, NULL, NULL), CM_OK);
    cm_sample_at(&s, 0, 1, &box);
    assert_int_equal(box.start[0], UINT64_MAX - 1);
    assert_int_equal(box.shape[0], 1);
}

static void test_parts_of_samples(void **state)
{
    static const struct {
        const char *name;
        cm_sample_part part;
        cm_box expected;
    } parts[] = {
        {"all dimensions",
         {.rank = 3, .axis = {0, 1, 2}, .shape = {90, 80, 70}},
         {3, {10, 20, 30}, {1, 2, 3}}},
        {"lag", {.rank = 2, .axis = {0, 2}, .shape = {90, 70}, .lag = 6}, {2, {16, 30}, {1, 3}}},
        {"one taken whole",
         {.rank = 3, .axis = {0, -1, 2}, .shape = {90, 5, 70}},
         {3, {10, 0, 30}, {1, 5, 3}}},
        {"other order of dimensions",
         {.rank = 2, .axis = {2, 0}, .shape = {70, 90}, .lag = 1},
         {2, {30, 11}, {3, 1}}},
        {"no dimension of the space",
         {.rank = 1, .axis = {-1}, .shape = {4}, .lag = 6},
         {1, {0}, {4}}},
        {"scalar", {.rank = 0}, {0, {0}, {0}}},
        {"lag without the dimension",
         {.rank = 1, .axis = {1}, .shape = {80}, .lag = 6},
         {1, {20}, {2}}},
    };
    const cm_box sample = {3, {10, 20, 30}, {1, 2, 3}};
    (void)state;
    for (size_t r = 0; r < COUNT(parts); r++) {
        cm_box box;
        cm_sample_part_box(&parts[r].part, &sample, &box);
        if (!cm_box_equal(&box, &parts[r].expected))
            fail_msg("%s", parts[r].name);
    }
}

/* torch.utils.data.DistributedSampler over 0 .. n-1 without shuffling, without dropping. */
static size_t distributed_sampler(uint64_t n, uint64_t world, uint64_t rank, uint64_t *list)
{
    uint64_t indices[512], total = 0;
    const uint64_t per_rank = (n + world - 1) / world;
    size_t taken = 0;

    for (; total < n; total++)
        indices[total] = total;
    for (; total < per_rank * world; total++)
        indices[total] = indices[total - n];
    for (uint64_t i = rank; i < total; i += world)
        list[taken++] = indices[i];
    assert_int_equal(taken, per_rank);
    return taken;
}

static void check_share(uint64_t n, uint64_t world, uint64_t batch, bool drop_last)
{
    uint8_t times[256] = {0};
    const uint64_t kept = n / world / batch * batch;

    for (uint64_t rank = 0; rank < world; rank++) {
        cm_epoch_share share = {
            .nsamples = n, .world = world, .rank = rank, .batch = batch, .drop_last = drop_last};
        uint64_t list[256], k = 0;
        const size_t full = distributed_sampler(n, world, rank, list);
        if (drop_last && kept == 0) {
            assert_int_equal(cm_epoch_share_init(&share, NULL), CM_EINVAL);
            continue;
        }
        assert_int_equal(cm_epoch_share_init(&share, NULL), CM_OK);
        assert_int_equal(share.per_rank, drop_last ? kept : full);
        for (uint64_t b = 0; b < share.nbatches; b++) {
            const uint64_t here = cm_epoch_share_batch(&share, b);
            assert_true(here > 0 && here <= batch);
            assert_true(here == batch || (b == share.nbatches - 1 && !drop_last));
            for (uint64_t end = k + here; k < end; k++) {
                assert_int_equal(cm_epoch_share_sample(&share, k), list[k]);
                times[list[k]]++;
            }
        }
        assert_int_equal(k, share.per_rank);
    }
    /* Nothing twice when dropping, nothing left out when not. */
    for (uint64_t i = 0; i < n; i++)
        assert_true(drop_last ? times[i] <= 1 : times[i] >= 1);
}

static void test_shares_are_those_of_torch(void **state)
{
    (void)state;
    for (uint64_t n = 1; n < 40; n++)
        for (uint64_t world = 1; world < 12; world++)
            for (uint64_t batch = 1; batch < 9; batch += 2) {
                check_share(n, world, batch, false);
                check_share(n, world, batch, true);
            }
    check_share(200, 7, 16, true);
}

/* A rank that leaves early takes the first samples of its whole share, and so do all others. */
static void test_shares_left_early(void **state)
{
    (void)state;
    for (uint64_t most = 1; most < 9; most++)
        for (uint64_t rank = 0; rank < 3; rank++)
            for (int drop = 0; drop < 2; drop++) {
                cm_epoch_share whole = {
                    .nsamples = 50, .world = 3, .rank = rank, .batch = 4, .drop_last = drop};
                cm_epoch_share share = whole;
                share.leaves_after = most;
                assert_int_equal(cm_epoch_share_init(&whole, NULL), CM_OK);
                assert_int_equal(cm_epoch_share_init(&share, NULL), CM_OK);
                const bool ends = most >= whole.nbatches;
                assert_int_equal(share.nbatches, ends ? whole.nbatches : most);
                assert_int_equal(share.per_rank, ends ? whole.per_rank : 4 * most);
                assert_int_equal(share.whole, whole.per_rank);
                for (uint64_t k = 0; k < share.per_rank; k++) {
                    assert_int_equal(cm_epoch_share_sample(&share, k),
                                     cm_epoch_share_sample(&whole, k));
                    assert_int_equal(cm_epoch_share_place(&share, k),
                                     cm_epoch_share_place(&whole, k));
                }
            }
}

static void test_shares_refused(void **state)
{
    static const cm_epoch_share bad[] = {
        {.nsamples = 0, .world = 1, .batch = 1},
        {.nsamples = 1, .world = 0, .batch = 1},
        {.nsamples = 1, .world = 1, .batch = 0},
        {.nsamples = 1, .world = 2, .rank = 2, .batch = 1},
        {.nsamples = UINT64_MAX, .world = 2, .batch = 1},
        {.nsamples = 5, .world = 1, .batch = 6, .drop_last = true},
    };
    (void)state;
    for (size_t r = 0; r < COUNT(bad); r++) {
        cm_epoch_share share = bad[r];
        assert_int_equal(cm_epoch_share_init(&share, NULL), CM_EINVAL);
    }
}

/* Displacement by definition, in quadratic time. */
static double displacement(const cm_sample_space *s, uint64_t epoch, uint64_t n)
{
    double sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t before = 0;
        for (uint64_t j = 0; j < n; j++)
            before += cm_sample_number(s, epoch, j) < cm_sample_number(s, epoch, i);
        sum += fabs((double)i - (double)before);
    }
    return sum / (double)n / (double)n;
}

static void test_displacement(void **state)
{
    (void)state;
    for (size_t r = 0; r < COUNT(rows); r++) {
        const cm_sample_space s = make(&rows[r]);
        for (uint64_t n = s.nsamples; n > 0; n /= 2)
            assert_true(fabs(cm_sample_displacement(&s, 2, n) - displacement(&s, 2, n)) < 1e-12);
        if (s.order == CM_ORDER_SEQUENTIAL || s.order == CM_ORDER_ALL)
            assert_true(cm_sample_displacement(&s, 2, s.nsamples) == 0);
    }
    cm_sample_space large = SPACE(1, .length = {5000000}, .sample = {1}, .order = CM_ORDER_RANDOM);
    assert_int_equal(cm_sample_space_init(&large, NULL, NULL), CM_OK);
    assert_true(fabs(cm_sample_displacement(&large, 0, large.nsamples) - 1.0 / 3) < 1e-3);
    assert_true(fabs(cm_sample_displacement(&large, 0, 3000) - 1.0 / 3) < 2e-2);
    large.order = CM_ORDER_BLOCK_SHUFFLE;
    large.parameter = 5000000;
    assert_int_equal(cm_sample_space_init(&large, NULL, NULL), CM_OK);
    assert_true(fabs(cm_sample_displacement(&large, 0, large.nsamples) - 1.0 / 3) < 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders_visit_what_they_say),
        cmocka_unit_test(test_numbers_are_in_c_order),
        cmocka_unit_test(test_all_covers_each_element_once),
        cmocka_unit_test(test_whole_chunks),
        cmocka_unit_test(test_runs_stay_together),
        cmocka_unit_test(test_maps_and_series),
        cmocka_unit_test(test_seeds_and_epochs),
        cmocka_unit_test(test_all_orders_are_equally_frequent),
        cmocka_unit_test(test_every_place_is_equally_likely),
        cmocka_unit_test(test_permutations_of_any_size),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_the_longest_dimensions),
        cmocka_unit_test(test_parts_of_samples),
        cmocka_unit_test(test_shares_are_those_of_torch),
        cmocka_unit_test(test_shares_left_early),
        cmocka_unit_test(test_shares_refused),
        cmocka_unit_test(test_displacement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
