/* Costs of a batch by the model: numbers that can be checked on paper. */
#include <math.h>

#include "../unit.h"
#include "bench/foresee.h"

static const cm_chunk_costs warm = {.request = {10e-6, 8e-6},
                                    .byte = {1e-9, 1e-9},
                                    .chunk = {100e-6, 90e-6},
                                    .stored_nbytes = 5000,
                                    .nchunks = 1};
static const cm_chunk_costs cold = {.request = {1e-3, 20e-6},
                                    .byte = {10e-9, 2e-9},
                                    .chunk = {100e-6, 90e-6},
                                    .stored_nbytes = 5000,
                                    .nchunks = 1};
static const cm_slowed none = {0};

static void check(double got, double want, const char *what)
{
    if (fabs(got - want) > 1e-12)
        fail_msg("%s: %g instead of %g", what, got, want);
}

static void every_term_counts(void **state)
{
    (void)state;
    /* 15 requests for 44 chunks of 200,000 bytes in all */
    const cm_batch_work w = {.requests = 15, .stored_nbytes = 200000, .chunks = 44, .distinct = 44};
    const cm_seconds t = cm_foresee(&w, &warm, &warm, &none);
    check(t.wall, 150e-6 + 200e-6 + 4400e-6, "wall");
    check(t.cpu, 120e-6 + 200e-6 + 3960e-6, "CPU");
}

/* Where requests are under way together, most of the time is the call's. */
static void calls_count(void **state)
{
    (void)state;
    cm_chunk_costs far = warm, near = warm;
    far.call = (cm_seconds){30e-3, 40e-6};
    near.call = (cm_seconds){1e-3, 30e-6};
    const cm_batch_work w = {
        .calls = 4, .requests = 32, .stored_nbytes = 1000, .chunks = 32, .distinct = 8};
    far.chunk = near.chunk = (cm_seconds){0};
    const cm_seconds t = cm_foresee(&w, &far, &near, &none);
    check(t.wall, 4 * (30e-3 / 4 + 1e-3 * 3 / 4) + 320e-6 + 1e-6, "wall");
    check(t.cpu, 4 * (40e-6 / 4 + 30e-6 * 3 / 4) + 256e-6 + 1e-6, "CPU");
}

/* Chunks that are objects: how long they are is known from those that were probed. */
static void bytes_that_storage_alone_knows(void **state)
{
    (void)state;
    const cm_batch_work w = {.requests = 10, .chunks = 10, .distinct = 10};
    const cm_seconds t = cm_foresee(&w, &warm, &warm, &none);
    check(t.wall, 100e-6 + 10 * 5000 * 1e-9 + 10 * 100e-6, "wall");
}

static void what_is_met_again_is_warm(void **state)
{
    (void)state;
    const cm_batch_work w = {.requests = 40, .stored_nbytes = 40000, .chunks = 40, .distinct = 10};
    const cm_seconds t = cm_foresee(&w, &cold, &warm, &none);
    check(t.wall, 10 * 1e-3 + 10000 * 10e-9 + 30 * 10e-6 + 30000 * 1e-9 + 4e-3, "wall");
    const cm_seconds all = cm_foresee(&w, &warm, &warm, &none);
    check(all.wall, 40 * 10e-6 + 40000 * 1e-9 + 4e-3, "all warm");
}

static void a_slowed_storage_takes_its_time(void **state)
{
    (void)state;
    const cm_batch_work w = {.requests = 4, .stored_nbytes = 4000, .chunks = 4, .distinct = 4};
    const cm_slowed slow = {.latency = 10e-3, .bandwidth = 1e6};
    check(cm_foresee(&w, &warm, &warm, &slow).wall, 40e-3 + 4e-3 + 4 * 100e-6, "slow");
    const cm_slowed fast = {.latency = 0, .bandwidth = INFINITY};
    check(cm_foresee(&w, &warm, &warm, &fast).wall, 44e-6 + 4 * 100e-6, "as it is");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_term_counts),
        cmocka_unit_test(calls_count),
        cmocka_unit_test(bytes_that_storage_alone_knows),
        cmocka_unit_test(what_is_met_again_is_warm),
        cmocka_unit_test(a_slowed_storage_takes_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
