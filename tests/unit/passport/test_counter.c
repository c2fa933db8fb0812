/* Counts of steps against sums of doubles, however an array is cut, and whichever its type is. */
#include <math.h>

#include "../unit.h"
#include "passport/counter.h"

enum {
    STEPS = 21,
    ROWS = 11,
    COLUMNS = 19,
    MOST = STEPS * ROWS * COLUMNS
};

static const struct {
    const char *name;
    const char *type;
    unsigned step;
    uint64_t chunk[3];
    double fill; /* of missing elements */
} CASES[] = {
    {"whole fields", "f4", 0, {1, ROWS, COLUMNS}, -9},
    {"several steps", "f4", 0, {4, ROWS, COLUMNS}, -9},
    {"tiles", "f4", 0, {8, 4, 9}, -9},
    {"series", "f4", 0, {STEPS, 1, 1}, -9},
    {"narrow tiles", "f4", 0, {STEPS, 2, 3}, -9},
    {"time in the middle", "f4", 1, {3, 5, COLUMNS}, -9},
    {"time last", "f4", 2, {4, 4, COLUMNS}, -9},
    {"double", "f8", 0, {4, 4, 9}, -9},
    {"packed", "i2", 0, {4, ROWS, COLUMNS}, -9},
    {"packed series", "i2", 0, {STEPS, 2, 2}, -9},
    {"int32", "i4", 0, {5, 4, 9}, -9},
    {"bytes", "u1", 0, {5, 4, 9}, 9},
    {"half", "f2", 0, {5, 4, 9}, -9},
    {"half series", "f2", 0, {5, 1, 1}, -9},
};

static cm_dtype type_named(const char *name)
{
    const char kind = name[0];
    return (cm_dtype){.kind = kind == 'f'   ? CM_KIND_FLOAT
                              : kind == 'i' ? CM_KIND_INT
                                            : CM_KIND_UINT,
                      .nbytes = (uint32_t)(name[1] - '0')};
}

/* Small whole numbers, which every type holds exactly; one of 7 is missing. */
static double value_of(size_t i)
{
    return i % 7 == 3 ? NAN : (double)(i * 37 % 101 + 10);
}

static void put(const cm_dtype *t, double v, uint8_t *at)
{
    const float single = (float)v;
    const int64_t whole = (int64_t)v;
    uint16_t half = 0;
    if (t->kind == CM_KIND_FLOAT && t->nbytes == 2) {
        int e;
        const double m = frexp(fabs(v), &e);
        half = (uint16_t)((v < 0) << 15 | (e + 14) << 10 | ((int)(m * 2048) & 1023));
    }
    memcpy(at,
           t->kind != CM_KIND_FLOAT ? (const void *)&whole
           : t->nbytes == 8         ? (const void *)&v
           : t->nbytes == 4         ? (const void *)&single
                                    : (const void *)&half,
           t->nbytes);
}

/* Tells C of every chunk of GRID, each as a whole chunk of its own. */
static void see_all(cm_counter *c, const cm_grid *grid, const cm_dtype *t, double fill)
{
    uint8_t *data = calloc(grid->chunk_nelem, t->nbytes);
    /* From the last to the first: the order does not count. */
    for (uint64_t n = grid->nchunks; n-- > 0;) {
        cm_box box;
        cm_grid_chunk_box(grid, n, &box);
        for (uint64_t i = 0; i < grid->chunk_nelem; i++) {
            uint64_t at[3], rest = i, index = 0;
            for (unsigned j = 3; j-- > 0; rest /= grid->chunk[j])
                at[j] = rest % grid->chunk[j];
            for (unsigned j = 0; j < 3; j++)
                index = index * grid->shape[j] + box.start[j] + at[j];
            const double v = value_of(index);
            put(t, isnan(v) ? fill : v, data + i * t->nbytes);
        }
        cm_counter_see(c, &box, grid->chunk, data);
    }
    free(data);
}

typedef struct wanted {
    double n, missing, min, max, sum, square;
} wanted;

static wanted want(const cm_grid *grid, unsigned step, uint64_t k)
{
    wanted w = {.min = INFINITY, .max = -INFINITY};
    for (uint64_t i = 0; i < MOST; i++) {
        const uint64_t at[3] = {i / (grid->shape[1] * grid->shape[2]),
                                i / grid->shape[2] % grid->shape[1], i % grid->shape[2]};
        const double v = value_of(i);
        if (at[step] != k)
            continue;
        w.n += !isnan(v);
        w.missing += isnan(v);
        if (isnan(v))
            continue;
        w.min = fmin(w.min, v);
        w.max = fmax(w.max, v);
        w.sum += v;
        w.square += v * v;
    }
    return w;
}

static unsigned differences(const cm_counter *c, const cm_grid *grid, unsigned step)
{
    unsigned bad = 0;
    for (uint64_t k = 0; k < c->nbins; k++) {
        const cm_bin *b = &c->bin[k];
        const wanted w = want(grid, step, k);
        bad += (double)b->count != w.n || (double)b->missing != w.missing || b->min != w.min ||
               b->max != w.max || fabs(b->sum.high - w.sum) > 1e-5 * w.sum ||
               fabs(b->square.high - w.square) > 1e-5 * w.square;
    }
    return bad;
}

static void steps_are_counted(void **state)
{
    unsigned bad = 0;
    (void)state;
    for (size_t i = 0; i < COUNT(CASES); i++) {
        static const uint64_t SHAPES[3][3] = {
            {STEPS, ROWS, COLUMNS}, {ROWS, STEPS, COLUMNS}, {ROWS, COLUMNS, STEPS}};
        cm_counter_options o = {.rule = {.type = type_named(CASES[i].type), .nfills = 1},
                                .rank = 3,
                                .step = CASES[i].step,
                                .nbytes = 1 << 20};
        memcpy(o.shape, SHAPES[o.step], sizeof SHAPES[0]);
        put(&o.rule.type, CASES[i].fill, o.rule.fill[0]);
        for (int simd = 0; simd < 2; simd++) {
            cm_counter *c;
            cm_grid grid;
            o.rule.simd = simd ? cm_cpu_simd() : CM_SIMD_NONE;
            uint64_t chunk[3];
            memcpy(chunk, CASES[i].chunk, sizeof chunk);
            for (unsigned j = 0; j < 3; j++)
                chunk[j] = chunk[j] < o.shape[j] ? chunk[j] : o.shape[j];
            assert_int_equal(cm_grid_init(&grid, 3, o.shape, chunk, NULL), CM_OK);
            assert_int_equal(cm_counter_create(&o, &c, NULL), CM_OK);
            see_all(c, &grid, &o.rule.type, CASES[i].fill);
            const unsigned n = differences(c, &grid, o.step);
            if (n > 0)
                print_error("%s: %u steps differ\n", CASES[i].name, n);
            bad += n;
            cm_counter_free(c);
        }
    }
    assert_int_equal(bad, 0);
}

static const struct {
    const char *name;
    float first, second, others;
    double mean;
} FAR[] = {
    {"an outlier first", 1e20f, 300, 280, (1e20 + 300 + 98 * 280.0) / 100},
    {"an outlier later", 280, 1e20f, 280, (1e20 + 99 * 280.0) / 100},
    {"a shift far away", -9999, 281, 280, (-9999 + 281 + 98 * 280.0) / 100},
    {"large numbers", 3e38f, 3e38f, 280, (6e38 + 98 * 280.0) / 100},
};

/* Floats are summed as floats: a value far from the others may not cost them their digits. */
static void far_values_cost_no_digits(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(FAR); i++) {
        float data[100];
        cm_counter *c;
        const cm_counter_options o = {.rule = {.type = type_named("f4"), .simd = cm_cpu_simd()},
                                      .rank = 2,
                                      .shape = {1, 100},
                                      .nbytes = 1 << 20};
        for (unsigned k = 0; k < 100; k++)
            data[k] = k == 0 ? FAR[i].first : k == 1 ? FAR[i].second : FAR[i].others;
        assert_int_equal(cm_counter_create(&o, &c, NULL), CM_OK);
        cm_counter_see(c, &(cm_box){.rank = 2, .shape = {1, 100}}, o.shape, (const uint8_t *)data);
        const cm_bin *b = &c->bin[0];
        assert_int_equal(b->count, 100);
        assert_true(fabs(b->sum.high / 100 / FAR[i].mean - 1) < 1e-6);
        assert_true(b->min == fminf(FAR[i].first, FAR[i].others));
        cm_counter_free(c);
    }
}

static double variance(const cm_bin *b)
{
    const long double mean = ((long double)b->sum.high + b->sum.low) / b->count;
    return (double)(((long double)b->square.high - mean * b->sum.high + b->square.low -
                     mean * b->sum.low) /
                    b->count);
}

/*
 * Large numbers that differ by little, in steps with few and with many elements side by side: their
 * squares have more digits than a double.
 */
static void squares_keep_their_digits(void **state)
{
    (void)state;
    for (unsigned n = 2; n <= 64; n *= 2) {
        double data[64];
        cm_counter *c;
        const cm_counter_options o = {.rule = {.type = type_named("f8"), .simd = cm_cpu_simd()},
                                      .rank = 2,
                                      .shape = {64 / n, n},
                                      .nbytes = 1 << 20};
        for (unsigned k = 0; k < 64; k++)
            data[k] = 0x1p30 + (k % 2 ? 1 : -1);
        assert_int_equal(cm_counter_create(&o, &c, NULL), CM_OK);
        cm_counter_see(c, &(cm_box){.rank = 2, .shape = {64 / n, n}}, o.shape,
                       (const uint8_t *)data);
        for (unsigned k = 0; k < 64 / n; k++)
            assert_true(fabs(variance(&c->bin[k]) - 1) < 1e-6);
        cm_counter_free(c);
    }
}

/* Long dimensions are counted in bins, and memory stays within what was asked for. */
static void many_steps_share_bins(void **state)
{
    cm_counter *c;
    const uint64_t n = 1000003;
    const cm_counter_options o = {.rule = {.type = type_named("i4"), .simd = cm_cpu_simd()},
                                  .rank = 1,
                                  .shape = {n},
                                  .nbytes = 1 << 18};
    int32_t *data = malloc(n * sizeof *data);
    (void)state;
    for (uint64_t i = 0; i < n; i++)
        data[i] = (int32_t)i;
    assert_true(cm_counter_nbytes(&o) < 1 << 19);
    assert_int_equal(cm_counter_create(&o, &c, NULL), CM_OK);
    cm_counter_see(c, &(cm_box){.rank = 1, .shape = {n}}, o.shape, (const uint8_t *)data);
    assert_true(c->together > 1 && c->nbins * c->together >= n);
    uint64_t count = 0;
    for (uint64_t k = 0; k < c->nbins; k++) {
        count += c->bin[k].count;
        assert_true(c->bin[k].min == (double)(k * c->together));
        assert_true(c->sample[k] == (double)(k * c->together));
    }
    assert_int_equal(count, n);
    free(data);
    cm_counter_free(c);
}

/* Equal fields have equal fingerprints, others not, also where chunks hold few of each. */
static void fingerprints(void **state)
{
    static const uint64_t CUT[][3] = {{1, 6, 8}, {9, 6, 8}, {4, 6, 8}, {9, 1, 1}, {2, 3, 5}};
    (void)state;
    for (size_t i = 0; i < COUNT(CUT); i++) {
        static float field[9][6][8];
        cm_counter *c;
        cm_grid grid;
        const cm_counter_options o = {.rule = {.type = type_named("f4"), .simd = cm_cpu_simd()},
                                      .rank = 3,
                                      .shape = {9, 6, 8},
                                      .nbytes = 1 << 20};
        assert_int_equal(cm_grid_init(&grid, 3, o.shape, CUT[i], NULL), CM_OK);
        assert_int_equal(cm_counter_create(&o, &c, NULL), CM_OK);
        for (unsigned t = 0; t < 9; t++)
            for (unsigned k = 0; k < 48; k++) /* steps 3 and 7 are equal */
                field[t][k / 8][k % 8] = 280 + (float)((k * 7 + (t == 7 ? 3 : t) * 13) % 31) / 64;
        for (uint64_t n = 0; n < grid.nchunks; n++) {
            cm_box box;
            static float chunk[9 * 6 * 8];
            float *to = chunk;
            cm_grid_chunk_box(&grid, n, &box);
            for (uint64_t t = 0; t < CUT[i][0]; t++)
                for (uint64_t y = 0; y < CUT[i][1]; y++)
                    for (uint64_t x = 0; x < CUT[i][2]; x++)
                        *to++ = t < box.shape[0] && y < box.shape[1] && x < box.shape[2]
                                    ? field[box.start[0] + t][box.start[1] + y][box.start[2] + x]
                                    : 0;
            cm_counter_see(c, &box, CUT[i], (const uint8_t *)chunk);
        }
        for (unsigned a = 0; a < 9; a++)
            for (unsigned b = 0; b < a; b++)
                assert_int_equal(c->bin[a].hash == c->bin[b].hash, a == 7 && b == 3);
        cm_counter_free(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_counted),
        cmocka_unit_test(far_values_cost_no_digits),
        cmocka_unit_test(squares_keep_their_digits),
        cmocka_unit_test(many_steps_share_bins),
        cmocka_unit_test(fingerprints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
