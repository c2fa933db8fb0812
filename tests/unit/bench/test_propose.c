/* Proposals for sessions whose times and counts are made up. */

#include <math.h>

#include "../unit.h"
#include "bench/pipeline.h"
#include "bench/propose.h"
#include "bench/rules.h"

enum {
    NBATCHES = 40
};

#define MIB (UINT64_C(1) << 20)

typedef struct fixture {
    cm_readbench_session s;
    cm_readbench_batch record[NBATCHES];
    cm_readbench_part part;
    cm_readbench_facts f;
} fixture;

/* NBATCHES of SECONDS each, of which storage takes SHARE, on one of 8 CPUs; steps of STEP. */
static void init(fixture *f, double seconds, double share, double step)
{
    *f = (fixture){.s = {.loader = "map",
                         .mode = "threads",
                         .temperature = "warm",
                         .cause = CM_CAUSE_FEW_WORKERS,
                         .workers = 1,
                         .pool_workers = 1,
                         .worker_threads = 1,
                         .prefetch = 2,
                         .ranks = 1,
                         .batch = 32,
                         .batch_nbytes = MIB,
                         .batches_in_flight = 3,
                         .in_flight_nbytes = 3 * MIB,
                         .memory_planned = 50 * MIB,
                         .memory_limit = 500 * MIB,
                         .cpus = 8,
                         .wait_share = 0.5,
                         .nparts = 1},
                   .f = {.stage_share = {share, 1 - share}, .own_cpus = -1, .other_cpus = -1}};
    f->s.record = f->record;
    f->s.nrecords = NBATCHES;
    f->s.part = &f->part;
    f->s.counts.batches = NBATCHES;
    f->s.counts.chunks = 1000;
    f->s.step.mean = step;
    f->s.stage[0].total = seconds * share * NBATCHES;
    f->s.stage[1].total = seconds * (1 - share) * NBATCHES;
    for (uint32_t i = 0; i < NBATCHES; i++)
        f->record[i] = (cm_readbench_batch){
            .number = i, .begin_ns = 1000, .end_ns = 1000 + (uint64_t)(seconds * 1e9)};
}

static cm_readbench_proposal propose(const fixture *f)
{
    cm_readbench_proposal p;
    assert_int_equal(cm_readbench_propose(&f->s, &f->f, &p, NULL), CM_OK);
    return p;
}

/* ---- the pipeline --------------------------------------------------------------------------- */

static double run(double slower, double step, unsigned workers, unsigned ahead)
{
    double service[12];
    for (int i = 0; i < 12; i++)
        service[i] = 1;
    const cm_pipeline p = {service, 12, slower, step, workers, ahead};
    return cm_pipeline_seconds(&p);
}

static void test_the_pipeline(void **state)
{
    (void)state;
    assert_true(fabs(run(1, 2, 0, 0) - 36) < 1e-9); /* one after the other */
    assert_true(fabs(run(1, 2, 1, 2) - 25) < 1e-9); /* the first, then steps */
    assert_true(fabs(run(3, 2, 1, 2) - 38) < 1e-9); /* the worker, then the last step */
    assert_true(fabs(run(4, 2, 2, 4) - 28) < 1e-9); /* two hide what one does not */
    assert_true(fabs(run(4, 1, 4, 1) - 49) < 1e-9); /* the next one is made during a step */
    assert_true(fabs(run(4, 0, 4, 8) - 12) < 1e-9); /* as many as there are workers at once */
    assert_true(fabs(run(1, 0, 99, 999) - 1) < 1e-9);
}

static void test_a_late_batch_needs_a_longer_prefetch(void **state)
{
    fixture f;
    (void)state;
    init(&f, 0.005, 0.2, 0.01);
    f.s.cause = CM_CAUSE_UNEVEN;
    for (int i = 0; i < NBATCHES; i += 8) /* as much as two steps are long, and more */
        f.record[i].end_ns += 40000000;
    f.s.cpus = 1; /* no room for more workers: all that is decoded needs it */
    f.f.own_cpus = 0.9;
    f.s.wall_seconds = 0.005 * NBATCHES;
    const cm_readbench_proposal p = propose(&f);
    assert_int_equal(p.change, CM_CHANGE_PREFETCH);
    assert_true(p.value > 2 && p.gain > 1.1);
}

/* ---- workers -------------------------------------------------------------------------------- */

static void test_workers_where_cpus_are_idle(void **state)
{
    fixture f;
    (void)state;
    init(&f, 0.02, 0.1, 0.002);
    const cm_readbench_proposal p = propose(&f);
    assert_int_equal(p.change, CM_CHANGE_WORKERS);
    assert_int_equal(p.value, 8);
    assert_true(p.gain > 5 && p.gain <= 8);

    f.s.step.mean = 0.01; /* which no loader makes shorter */
    assert_true(propose(&f).gain <= 2.1);
    f.s.step.mean = 0.02;
    assert_int_equal(propose(&f).change, CM_CHANGE_NONE);
    assert_true(propose(&f).simulated);
}

static void test_no_workers_without_room(void **state)
{
    fixture f;
    (void)state;
    init(&f, 0.02, 0.1, 0.002); /* all of a CPU, and others have the rest */
    f.f.own_cpus = 0.95;
    f.f.other_cpus = 7;
    f.s.wall_seconds = 0.02 * NBATCHES;
    assert_int_equal(propose(&f).change, CM_CHANGE_NONE);

    init(&f, 0.02, 0.1, 0.002); /* nobody has looked at the CPUs, of which there are two */
    f.s.cpus = 2;
    assert_true(propose(&f).gain < 2.3);

    init(&f, 0.02, 0.1, 0.002); /* more batches than the memory holds */
    f.s.memory_limit = f.s.memory_planned + MIB;
    assert_int_equal(propose(&f).change, CM_CHANGE_NONE);

    init(&f, 0.02, 1, 0.002); /* storage gives more threads no more */
    f.s.rates.storage = f.s.rates.storage_more = 1e9;
    f.s.rates.more_threads = 4;
    assert_int_equal(propose(&f).change, CM_CHANGE_NONE);
    f.s.rates.storage_more = 3e9;
    assert_int_equal(propose(&f).change, CM_CHANGE_WORKERS);
    assert_true(propose(&f).gain < 5);

    init(&f, 0.02, 1, 0.002); /* an emulated storage has two streams */
    f.s.emulated = true;
    f.s.streams = 2;
    assert_int_equal(propose(&f).value, 2);
}

static void test_a_worker_where_there_is_none(void **state)
{
    fixture f;
    (void)state;
    init(&f, 0.01, 0.5, 0.01);
    f.s.mode = "sync";
    f.s.cpus = 1;
    f.s.batches_in_flight = 1;
    const cm_readbench_proposal p = propose(&f);
    assert_int_equal(p.change, CM_CHANGE_WORKERS);
    assert_true(p.gain > 1.8 && p.gain <= 2);
}

/* ---- chunks --------------------------------------------------------------------------------- */

/* Samples that take NOW seconds by the model, and THEN or LIGHT ones with other chunks. */
static void set_model(fixture *f, double now, double then, double light)
{
    f->s.cause = CM_CAUSE_CHUNK_SHAPE;
    f->s.cpus = 1;
    f->f.own_cpus = 1;
    f->s.wall_seconds = 0.032 * NBATCHES;
    f->s.memory_limit = f->s.memory_planned; /* only other chunks */
    f->s.counts.chunks = 32 * NBATCHES;
    f->s.predicted = (cm_readbench_predicted){.known = true,
                                              .chunks = 1,
                                              .batch_chunks = 32,
                                              .read_seconds = now,
                                              .best_read_seconds = then,
                                              .light_read_seconds = light};
}

static void test_chunks_that_cost_less(void **state)
{
    fixture f;
    (void)state;
    init(&f, 0.032, 0.1, 0.001);
    set_model(&f, 0.001, 0.0001, 0);
    cm_readbench_proposal p = propose(&f);
    assert_int_equal(p.change, CM_CHANGE_CHUNKS);
    assert_true(p.gain > 8 && p.gain <= 10);

    set_model(&f, 0.0005, 0.0001, 0); /* the model says half of what it takes */
    assert_true(propose(&f).gain < 5.5);
    set_model(&f, 0.002, 0.0001, 0); /* or twice: then the measurement counts */
    assert_true(propose(&f).gain < 11);
    set_model(&f, 0.001, 0.0009, 0); /* not worth it */
    assert_int_equal(propose(&f).change, CM_CHANGE_NONE);
    set_model(&f, 0.001, 0.0005, 0.0002);
    assert_int_equal(propose(&f).change, CM_CHANGE_CODEC);
    set_model(&f, 0.001, 0.0005, 0.00049); /* not worth another codec */
    assert_int_equal(propose(&f).change, CM_CHANGE_CHUNKS);
}

/* Nothing to hold the model against: it is believed less. */
/* Eight ranks on two CPUs: threads wait for each other, and a pool of eight serves them all. */
static void test_chunks_where_ranks_crowd(void **state)
{
    fixture f;
    (void)state;
    for (unsigned pools = 1; pools <= 8; pools += 7) {
        init(&f, 0.032 * 8, 0.1, 0.001);
        set_model(&f, 0.001, 0.0001, 0);
        f.s.ranks = 8;
        f.s.workers = 8 / pools;
        f.s.pool_workers = 8;
        f.s.batches_in_flight = 24;
        f.s.measured = (cm_readbench_measured){.batch_seconds = 0.032, .rounds = 9, .batches = 1};
        f.s.wall_seconds = 0.032 * 8 * NBATCHES;
        f.s.counts.batches = 8 * NBATCHES;
        f.s.counts.chunks = 32 * 8 * NBATCHES;
        f.s.stage[0].total *= 8;
        f.s.stage[1].total *= 8;
        const cm_readbench_proposal p = propose(&f);
        assert_int_equal(p.change, CM_CHANGE_CHUNKS);
        assert_true(p.gain > 8 && p.gain <= 10);
    }
}

static void test_layouts_that_were_not_simulated(void **state)
{
    fixture f;
    (void)state;
    init(&f, 0.032, 0.1, 0.001);
    set_model(&f, 0.001, 0.00099, 0);
    assert_int_equal(propose(&f).change, CM_CHANGE_NONE);
    assert_true(propose(&f).layouts);
    set_model(&f, 0, 0, 0); /* as of a log of reads */
    assert_int_equal(propose(&f).change, CM_CHANGE_NONE);
    assert_true(propose(&f).simulated && !propose(&f).layouts);
}

static void test_a_file_without_chunks(void **state)
{
    fixture f;
    (void)state;
    init(&f, 0.032, 0.1, 0.001);
    set_model(&f, 0, 0.0001, 0);
    f.s.predicted.known = false;
    assert_int_equal(propose(&f).change, CM_CHANGE_CHUNKS);
    assert_true(propose(&f).gain > 5 && propose(&f).gain < 6.5);
}

/* Batches that were measured alone may have met fewer chunks than others do. */
static void test_samples_are_not_alike(void **state)
{
    fixture f;
    (void)state;
    init(&f, 0.032, 0.1, 0.001);
    set_model(&f, 0.001, 0.00065, 0);
    f.s.measured = (cm_readbench_measured){.batch_seconds = 0.024, .rounds = 1};
    f.s.predicted.batch_chunks = 24;
    assert_int_equal(propose(&f).change, CM_CHANGE_CHUNKS);
    assert_true(fabs(propose(&f).gain - 1.5) < 0.1);
}

/* Copying elements into samples stays whatever the chunks are. */
static void test_assembling_stays(void **state)
{
    fixture f;
    (void)state;
    init(&f, 0.032, 0.1, 0.001);
    set_model(&f, 0.0005, 0.00001, 0);
    f.s.stage[2].total = 0.016 * NBATCHES;
    f.s.stage[1].total -= 0.016 * NBATCHES;
    f.s.measured = (cm_readbench_measured){.batch_seconds = 0.032, .rounds = 1};
    assert_true(propose(&f).gain > 1.8 && propose(&f).gain < 2);
}

static void test_no_chunks_where_the_model_does_not_hold(void **state)
{
    fixture f;
    (void)state;
    init(&f, 0.032, 0.1, 0.001);
    set_model(&f, 0.001, 0.0001, 0);
    f.s.loader = "planned";
    assert_int_equal(propose(&f).change, CM_CHANGE_NONE);
    f.s.loader = "map";
    f.s.counts.cache_hits = 500;
    assert_int_equal(propose(&f).change, CM_CHANGE_NONE);
    f.s.counts.cache_hits = 0;
    f.s.measured = (cm_readbench_measured){.batch_seconds = 0.1, .rounds = 1};
    f.s.temperature = "cold"; /* which later batches did not find it */
    assert_int_equal(propose(&f).change, CM_CHANGE_NONE);
    f.s.temperature = "warm";
    assert_int_equal(propose(&f).change, CM_CHANGE_CHUNKS);
    f.s.engine = "netcdf";
    assert_int_equal(propose(&f).change, CM_CHANGE_NONE);
}

/* ---- the device, and nothing ---------------------------------------------------------------- */

/* The sentence on the planned loader, of a sample that decoded one chunk or more. */
static void test_chunks_are_counted_in_words(void **state)
{
    (void)state;
    for (int many = 0; many < 2; many++) {
        fixture f;
        const char *said = NULL;
        init(&f, 0.032, 0.1, 0.001);
        set_model(&f, 0.001, 0.001, 0);
        f.s.counts.samples = many ? 10 * NBATCHES : 32 * NBATCHES;
        f.s.counts.chunks = 32 * NBATCHES;
        f.s.predicted.planned_per_sample = 0.1;
        f.s.wait.n = NBATCHES;
        assert_int_equal(cm_readbench_explain(&f.s, NULL), CM_OK);
        for (size_t i = 0; i < f.s.nfindings; i++) {
            if (strcmp(f.s.finding[i].rule, "decoded-again") == 0)
                said = f.s.finding[i].sentence;
        }
        assert_non_null(said);
        assert_non_null(strstr(said, many ? " 3.2 chunks for" : " 1 chunk for"));
        for (size_t i = 0; i < f.s.nfindings; i++) {
            free(f.s.finding[i].rule);
            free(f.s.finding[i].sentence);
        }
        free(f.s.finding);
        free(f.s.sentence);
    }
}

/* The planned loader decodes a tenth of the chunks: told beside what is proposed. */
static void test_chunks_that_serve_many_samples(void **state)
{
    fixture f;
    (void)state;
    init(&f, 0.032, 0.1, 0.001);
    set_model(&f, 0.001, 0.001, 0);
    f.s.counts.samples = 32 * NBATCHES;
    assert_true(propose(&f).planned_gain == 0); /* not asked */
    f.s.predicted.planned_per_sample = 0.1;
    assert_true(propose(&f).planned_gain > 8 && propose(&f).planned_gain <= 10);
    assert_int_equal(propose(&f).change, CM_CHANGE_NONE);

    f.s.measured = (cm_readbench_measured){.batch_seconds = 0.032, .rounds = 1};
    f.s.stage[2].total = 0.016 * NBATCHES; /* half of the work is copying */
    f.s.stage[1].total -= 0.016 * NBATCHES;
    assert_true(propose(&f).planned_gain > 1.6 && propose(&f).planned_gain < 2);
    f.s.counts.cache_hits = 500;
    assert_true(propose(&f).planned_gain == 0);
    f.s.counts.cache_hits = 0;
    f.s.loader = "planned";
    assert_true(propose(&f).planned_gain == 0);
}

static void test_page_locked_memory(void **state)
{
    fixture f;
    (void)state;
    init(&f, 0.0001, 0.1, 0.001);
    cm_readbench_setting staging = {"staging", "pageable"};
    f.s.cause = CM_CAUSE_DEVICE_COPY;
    f.s.setting = &staging;
    f.s.nsettings = 1;
    f.s.device.used = true;
    f.s.device.copied = 5e9;
    f.s.device.link_pinned = 2e10;
    f.s.wait.total = f.s.device.wait.total = 0.04;
    f.s.step.total = 0.04;
    const cm_readbench_proposal p = propose(&f);
    assert_int_equal(p.change, CM_CHANGE_STAGING);
    assert_true(fabs(p.gain - 0.08 / 0.05) < 1e-9);
    staging.value = "pinned";
    assert_int_equal(propose(&f).change, CM_CHANGE_NONE);
}

static void test_nothing_where_nothing_is_to_be_simulated(void **state)
{
    static const cm_readbench_cause causes[] = {
        CM_CAUSE_UNKNOWN, CM_CAUSE_FAILURES,    CM_CAUSE_NOTHING, CM_CAUSE_CONTENTION,
        CM_CAUSE_STEP,    CM_CAUSE_USER_LOADER, CM_CAUSE_LIBRARY};
    fixture f;
    (void)state;
    init(&f, 0.02, 0.1, 0.002);
    for (size_t i = 0; i < sizeof(causes) / sizeof(causes[0]); i++) {
        f.s.cause = causes[i];
        assert_int_equal(propose(&f).change, CM_CHANGE_NONE);
        assert_false(propose(&f).simulated);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_pipeline),
        cmocka_unit_test(test_a_late_batch_needs_a_longer_prefetch),
        cmocka_unit_test(test_workers_where_cpus_are_idle),
        cmocka_unit_test(test_no_workers_without_room),
        cmocka_unit_test(test_a_worker_where_there_is_none),
        cmocka_unit_test(test_chunks_that_cost_less),
        cmocka_unit_test(test_chunks_where_ranks_crowd),
        cmocka_unit_test(test_layouts_that_were_not_simulated),
        cmocka_unit_test(test_a_file_without_chunks),
        cmocka_unit_test(test_samples_are_not_alike),
        cmocka_unit_test(test_assembling_stays),
        cmocka_unit_test(test_no_chunks_where_the_model_does_not_hold),
        cmocka_unit_test(test_chunks_that_serve_many_samples),
        cmocka_unit_test(test_chunks_are_counted_in_words),
        cmocka_unit_test(test_page_locked_memory),
        cmocka_unit_test(test_nothing_where_nothing_is_to_be_simulated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
