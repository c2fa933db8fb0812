/* Percentiles of times: the least that at least so many of them do not exceed. */
#include <math.h>

#include "../unit.h"
#include "bench/readbench.h"

static void test_percentiles(void **state)
{
    /* Of 1, 2, ... n in any order; NaN where none lies above. */
    static const struct {
        size_t n;
        double mean, p50, p95, p99, p999;
    } rows[] = {
        {1, 1, 1, NAN, NAN, NAN},    {2, 1.5, 1, NAN, NAN, NAN},
        {3, 2, 2, NAN, NAN, NAN},    {20, 10.5, 10, 19, NAN, NAN},
        {21, 11, 11, 20, NAN, NAN},  {40, 20.5, 20, 38, NAN, NAN},
        {101, 51, 51, 96, 100, NAN}, {1001, 501, 501, 951, 991, 1000},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        double seconds[1001];
        const size_t n = rows[i].n;
        for (size_t k = 0; k < n; k++)
            seconds[k] = (double)((k * 17 + 3) % n + 1); /* 17 divides none of them */
        const cm_readbench_times t = cm_bench_times(seconds, n);
        const double got[] = {t.mean, t.p50, t.p95, t.p99, t.p999};
        const double want[] = {rows[i].mean, rows[i].p50, rows[i].p95, rows[i].p99, rows[i].p999};
        for (size_t k = 0; k < 5; k++)
            if (!(got[k] == want[k] || (isnan(got[k]) && isnan(want[k]))))
                fail_msg("of %zu, number %zu: %g, not %g", n, k, got[k], want[k]);
        assert_true(t.n == n && t.max == (double)n);
    }
    assert_int_equal(cm_bench_times(NULL, 0).n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_percentiles)};
    return cmocka_run_group_tests_name("times", tests, NULL, NULL);
}
