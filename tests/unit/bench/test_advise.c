/* Workers for the CPUs of a machine. */

#include <chunkmill/readbench.h>

#include "../unit.h"

static void test_workers_for_cpus(void **state)
{
    static const struct {
        unsigned cpus, accelerators, reserve, workers, threads;
    } rows[] = {
        {10, 1, 2, 8, 1}, {20, 1, 2, 18, 1}, {60, 3, 2, 18, 1}, {160, 8, 2, 18, 1},
        {20, 8, 2, 1, 2}, {4, 1, 2, 2, 1},   {3, 1, 2, 1, 2},   {2, 1, 2, 1, 2},
        {1, 1, 2, 1, 2},  {10, 1, 0, 10, 1}, {11, 2, 2, 3, 1},  {8, 1, UINT32_MAX, 1, 2},
        {8, 64, 0, 1, 2}, /* fewer CPUs than accelerators */
    };
    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        cm_readbench_advice a;
        assert_int_equal(
            cm_readbench_advise(rows[r].cpus, rows[r].accelerators, rows[r].reserve, &a, NULL),
            CM_OK);
        if (a.workers != rows[r].workers || a.threads != rows[r].threads)
            fail_msg("%u CPUs, %u accelerators: %u workers with %u threads", rows[r].cpus,
                     rows[r].accelerators, a.workers, a.threads);
        assert_int_equal(a.warning != NULL, rows[r].threads == 2);
        assert_int_equal(a.cpus, rows[r].cpus);
        cm_readbench_advice_release(&a);
    }
}

static void test_this_machine(void **state)
{
    cm_readbench_advice a;
    cm_error err;
    (void)state;
    assert_int_equal(cm_readbench_advise(0, 1, 2, &a, NULL), CM_OK);
    assert_true(a.cpus >= 1 && a.workers >= 1);
    cm_readbench_advice_release(&a);
    assert_int_equal(cm_readbench_advise(8, 0, 2, &a, &err), CM_EINVAL);
    assert_non_null(strstr(err.text, "`accelerators`"));
    cm_readbench_advice_release(&a);
    cm_readbench_advice_release(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers_for_cpus),
        cmocka_unit_test(test_this_machine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
