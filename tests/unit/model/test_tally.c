/* Statistics of elements: against sums of long doubles, and the same bits with and without AVX2. */
#include <float.h>
#include <math.h>

#include "../unit.h"
#include "model/convert.h"
#include "model/half.h"
#include "model/tally.h"
#include "random.h"

enum {
    MOST = 20001,
    GUARD = 64
};

static const char *const TYPES[] = {"i1", "u1", "i2", "u2", "i4", "u4",
                                    "i8", "u8", "f2", "f4", "f8"};
static const uint64_t LENGTHS[] = {0, 1, 2, 7, 8, 9, 255, 8191, 8192, 8193, MOST};

/* Kinds of data. */
enum {
    ANYTHING,
    NEAR,    /* a small spread far from zero */
    EXTREME, /* nothing but the least number of the type */
    MISSING, /* many, and the first ones all */
    NDATA
};

static void put(const cm_dtype *t, uint8_t *at, double v)
{
    const float single = (float)v;
    const uint16_t half = cm_half_from_double(v);
    const int64_t i = (int64_t)v;
    memcpy(at,
           t->kind != CM_KIND_FLOAT ? (const void *)&i
           : t->nbytes == 8         ? (const void *)&v
           : t->nbytes == 4         ? (const void *)&single
                                    : (const void *)&half,
           t->nbytes);
}

static void make(const cm_tally_rule *rule, unsigned what, uint64_t seed, uint8_t *data)
{
    const cm_dtype *t = &rule->type;
    for (unsigned i = 0; i < MOST; i++) {
        uint8_t *at = data + (size_t)i * t->nbytes;
        const uint64_t bits = random_next(&seed);
        memcpy(at, &bits, t->nbytes);
        if (t->kind == CM_KIND_FLOAT && !(fabs(cm_element_to_double(t, at)) < 1e30))
            put(t, at, bits % 5 == 0 ? NAN : -3);
        if (what == NEAR)
            put(t, at, 100 + (double)(bits % 16));
        if (what == EXTREME)
            put(t, at, t->kind == CM_KIND_UINT ? 0 : t->nbytes == 1 ? -128 : -32768);
        if (what == MISSING && rule->nfills > 0 && (i < 9000 || bits % 3 == 0))
            memcpy(at, rule->fill[bits % rule->nfills], t->nbytes);
    }
}

static bool is_missing(const cm_tally_rule *rule, const uint8_t *at)
{
    for (unsigned f = 0; f < rule->nfills; f++)
        if (memcmp(at, rule->fill[f], rule->type.nbytes) == 0)
            return true;
    return isnan(cm_element_to_double(&rule->type, at));
}

static void expect(const cm_tally_rule *rule, const uint8_t *data, uint64_t n, const cm_tally *got)
{
    long double sum = 0, m2 = 0;
    double min = INFINITY, max = -INFINITY, size = 0;
    uint64_t count = 0;
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *at = data + i * rule->type.nbytes;
        const double v = cm_element_to_double(&rule->type, at);
        if (is_missing(rule, at))
            continue;
        count++;
        sum += v;
        min = fmin(min, v);
        max = fmax(max, v);
        size = fmax(size, fabs(v));
    }
    const long double mean = count > 0 ? sum / count : 0;
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *at = data + i * rule->type.nbytes;
        const long double d = cm_element_to_double(&rule->type, at) - mean;
        m2 += is_missing(rule, at) ? 0 : d * d;
    }
    assert_true(got->count == count && got->missing == n - count);
    assert_true(got->min == min && got->max == max);
    if (count == 0)
        return;
    assert_true(fabsl((long double)got->mean + got->rest - mean) <= 1e-12L * size);
    assert_true(fabsl(got->m2 - m2) <= 1e-12L * m2 + 1e-24L * size * size + DBL_MIN);
}

/* In runs of STEP elements, and once more where that is asked for. */
static cm_tally tally(const cm_tally_rule *rule, const uint8_t *data, uint64_t n, uint64_t step)
{
    cm_tally_sum s;
    cm_tally out;
    double mean = 0;
    for (unsigned again = 0; again < 2; again++) {
        cm_tally_begin(&s, again ? &mean : NULL);
        for (uint64_t i = 0; i < n; i += step)
            cm_tally_run(&s, rule, data + i * rule->type.nbytes, n - i < step ? n - i : step);
        if (cm_tally_end(&s, &out))
            break;
        mean = out.mean + out.rest;
    }
    return out;
}

static void check(cm_tally_rule *rule, unsigned what, uint64_t seed)
{
    static uint8_t data[MOST * 8 + GUARD];
    make(rule, what, seed, data);
    for (size_t l = 0; l < sizeof LENGTHS / sizeof *LENGTHS; l++)
        for (uint64_t step = 13; step < 2 * MOST; step += MOST) {
            rule->simd = cm_cpu_simd();
            const cm_tally fast = tally(rule, data, LENGTHS[l], step);
            rule->simd = 0;
            const cm_tally plain = tally(rule, data, LENGTHS[l], step);
            assert_memory_equal(&fast, &plain, sizeof fast);
            expect(rule, data, LENGTHS[l], &fast);
        }
}

static void test_all_types(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof TYPES / sizeof *TYPES; k++) {
        cm_tally_rule rule = {0};
        assert_int_equal(cm_dtype_parse(TYPES[k], &rule.type, NULL), CM_OK);
        assert_true(cm_tally_takes(&rule.type));
        put(&rule.type, rule.fill[0], 7);
        put(&rule.type, rule.fill[1], rule.type.kind == CM_KIND_UINT ? 255 : -9);
        put(&rule.type, rule.fill[2], 105); /* one of those that are near */
        put(&rule.type, rule.fill[3], 0);
        for (rule.nfills = 0; rule.nfills <= CM_TALLY_MAX_FILLS; rule.nfills++)
            for (unsigned what = 0; what < NDATA; what++)
                check(&rule, what, 1 + k * 100 + what);
    }
}

/* Packed integers are summed exactly: no cut into runs changes a bit. */
static void test_small_integers_are_exact(void **state)
{
    static int16_t data[MOST];
    cm_tally_rule rule = {.simd = cm_cpu_simd()};
    uint64_t seed = 4;
    int64_t sum = 0, square = 0;
    (void)state;
    assert_int_equal(cm_dtype_parse("i2", &rule.type, NULL), CM_OK);
    for (unsigned i = 0; i < MOST; i++) {
        data[i] = (int16_t)random_next(&seed);
        sum += data[i];
        square += (int64_t)data[i] * data[i];
    }
    const cm_tally all = tally(&rule, (const uint8_t *)data, MOST, MOST);
    const cm_tally runs = tally(&rule, (const uint8_t *)data, MOST, 101);
    assert_memory_equal(&all, &runs, sizeof all);
    assert_true(all.mean == (double)(sum / MOST));
    assert_true(all.rest == (double)(sum % MOST) / MOST);
    const __int128 spread = (__int128)square * MOST - (__int128)sum * sum;
    assert_true(all.m2 == (double)spread / MOST);
}

/* However they are divided into chunks. */
static void test_infinite_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        double x[4], mean;
    } ROW[] = {
        {"f8", {1, INFINITY, 2, 3}, INFINITY},
        {"f4", {-INFINITY, NAN, 2, 3}, -INFINITY},
        {"f2", {-INFINITY, 1, 2, INFINITY}, NAN},
        {"f8", {INFINITY, INFINITY, INFINITY, INFINITY}, INFINITY},
    };
    for (size_t i = 0; i < sizeof ROW / sizeof *ROW; i++)
        for (unsigned first = 0; first <= 4; first++) {
            cm_tally_rule rule = {.simd = cm_cpu_simd()};
            uint8_t data[32];
            assert_int_equal(cm_dtype_parse(ROW[i].type, &rule.type, NULL), CM_OK);
            const size_t size = rule.type.nbytes;
            for (size_t k = 0; k < 4; k++)
                put(&rule.type, data + k * size, ROW[i].x[k]);
            const cm_tally part[] = {tally(&rule, data, first, first),
                                     tally(&rule, data + first * size, 4 - first, 4 - first)};
            const cm_tally all = cm_tally_tree(part, 2);
            if (all.rest != 0 || !isnan(cm_tally_std(&all)) ||
                !(all.mean == ROW[i].mean || (isnan(all.mean) && isnan(ROW[i].mean))))
                fail_msg("row %zu, %u: mean %g, std %g", i, first, all.mean, cm_tally_std(&all));
        }
    /* Finite numbers whose squares are not. */
    cm_tally_rule rule = {.simd = cm_cpu_simd()};
    const double large[] = {1e200, -1e200, 0, 1};
    assert_int_equal(cm_dtype_parse("f8", &rule.type, NULL), CM_OK);
    const cm_tally all = tally(&rule, (const uint8_t *)large, 4, 4);
    assert_true(cm_tally_std(&all) == INFINITY && isfinite(all.mean));
}

/* A fill value of zero is one of either sign. */
static void test_zeros_of_both_signs(void **state)
{
    (void)state;
    static const char *const FLOATS[] = {"f2", "f4", "f8"};
    for (size_t i = 0; i < 3; i++) {
        cm_tally_rule rule = {.simd = cm_cpu_simd(), .nfills = 1};
        uint8_t data[32];
        assert_int_equal(cm_dtype_parse(FLOATS[i], &rule.type, NULL), CM_OK);
        for (size_t k = 0; k < 4; k++)
            put(&rule.type, data + k * rule.type.nbytes, k == 2 ? 3.0 : k == 1 ? -0.0 : 0.0);
        const cm_tally all = tally(&rule, data, 4, 4);
        assert_true(all.count == 1 && all.missing == 3 && all.min == 3);
        put(&rule.type, data, -0.0);
        assert_int_equal(cm_tally_of_one(&rule, data, 5).missing, 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_types),
        cmocka_unit_test(test_small_integers_are_exact),
        cmocka_unit_test(test_infinite_numbers),
        cmocka_unit_test(test_zeros_of_both_signs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
