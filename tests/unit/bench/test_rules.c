/* Each rule on either side of its threshold, and the sentence at the end. */

#include <math.h>

#include "../unit.h"
#include "bench/rules.h"
#include "bench/summary.h"

enum {
    NCPUS = 4,
    MAX_LOOKS = 64,
    MAX_EVENTS = 8
};

#define MIB (UINT64_C(1) << 20)

/* A session that nothing can be said against, with room for looks and events. */
typedef struct fixture {
    cm_readbench_session s;
    cm_readbench_part part[2];
    cm_readbench_look look[MAX_LOOKS];
    float cpu[MAX_LOOKS][NCPUS];
    cm_readbench_event event[MAX_EVENTS];
} fixture;

/* Of what the cores do, other programs do so much. */
static void set_other_cpus(fixture *f, float others)
{
    for (size_t i = 0; i < f->s.nlooks; i++) {
        f->look[i].process_cpu = -others;
        for (unsigned c = 0; c < f->s.ncpus; c++)
            f->look[i].process_cpu += f->cpu[i][c];
    }
}

static void set_cores(fixture *f, float first, float others)
{
    for (size_t i = 0; i < f->s.nlooks; i++)
        for (unsigned c = 0; c < NCPUS; c++)
            f->cpu[i][c] = c == i % NCPUS ? first : others; /* work moves between cores */
    set_other_cpus(f, 0);
}

/* N epochs of four looks each, with peaks of resident memory in MiB. */
static void set_epochs(fixture *f, size_t n, const unsigned *peak)
{
    f->s.nevents = n;
    f->s.nlooks = 4 * n;
    for (size_t e = 0; e < n; e++)
        f->event[e] = (cm_readbench_event){.kind = CM_EVENT_EPOCH,
                                           .epoch = (uint32_t)e,
                                           .start_ns = 1000 * e,
                                           .end_ns = 1000 * e + 999};
    for (size_t i = 0; i < 4 * n; i++) {
        f->look[i] = (cm_readbench_look){.at_ns = 250 * i, .cpu = f->cpu[i]};
        f->look[i].rss_nbytes = (peak[i / 4] - (i % 4 == 2 ? 0 : 1)) * MIB;
    }
    set_cores(f, 0.3F, 0.3F);
}

static void init(fixture *f)
{
    static const unsigned steady[] = {300, 300, 300};
    *f = (fixture){.s = {.store = "era5.zarr",
                         .loader = "map",
                         .mode = "threads",
                         .temperature = "as found",
                         .workers = 2,
                         .pool_workers = 2,
                         .worker_threads = 1,
                         .ranks = 1,
                         .cpus = NCPUS,
                         .ncpus = NCPUS,
                         .store_nbytes = 1000 * MIB,
                         .memory_limit = 500 * MIB,
                         .resident_before = 0.1,
                         .resident_after = 0.2,
                         .wait_share = 0.02,
                         .amplification = {1.5, 1, 1},
                         .nparts = 1}};
    f->s.part = f->part;
    f->s.look = f->look;
    f->s.event = f->event;
    f->s.wait.n = 98;
    f->s.counts.batches = 100;
    f->s.counts.chunks = 5000;
    f->s.stage[0].total = 1;
    f->s.stage[1].total = 4;
    f->s.stage[2].total = 1;
    f->part[0] = (cm_readbench_part){.variable = "t2m",
                                     .rank = 3,
                                     .dim_name = {"time", "lat", "lon"},
                                     .sample = {1, 64, 64},
                                     .chunk = {24, 64, 64},
                                     .chunked = true,
                                     .nbytes = 16384};
    set_epochs(f, 3, steady);
}

static void release(fixture *f)
{
    for (size_t i = 0; i < f->s.nfindings; i++) {
        free(f->s.finding[i].rule);
        free(f->s.finding[i].sentence);
    }
    free(f->s.finding);
    free(f->s.sentence);
    f->s.finding = NULL;
    f->s.nfindings = 0;
    f->s.sentence = NULL;
}

static const char *finding(const fixture *f, const char *rule)
{
    for (size_t i = 0; i < f->s.nfindings; i++)
        if (strcmp(f->s.finding[i].rule, rule) == 0)
            return f->s.finding[i].sentence;
    return NULL;
}

/* ---- either side --------------------------------------------------------------------------- */

/* Sets what the rule looks at to VALUE. */
typedef void set_value(fixture *f, double value);

static void waits(fixture *f, double value)
{
    f->s.wait_share = value;
}
static void waits_for_storage(fixture *f, double value)
{
    f->s.wait_share = value;
    f->s.stage[0].total = 10;
}
static void storage_dominates(fixture *f, double value)
{
    f->s.wait_share = 0.6;
    f->s.stage[0].total = value;
    f->s.stage[1].total = 1 - value;
    f->s.stage[2].total = 0;
}
static void core_is_busy(fixture *f, double value)
{
    f->s.wait_share = 0.2;
    set_cores(f, (float)value, 0.3F);
}
static void others_are_busy(fixture *f, double value)
{
    f->s.wait_share = 0.2;
    set_cores(f, 0.99F, (float)value);
}
static void one_core_while_waiting(fixture *f, double value)
{
    f->s.wait_share = value;
    set_cores(f, 0.99F, 0.1F);
}
static void one_core_at_looks(fixture *f, double value)
{
    f->s.wait_share = 0.2;
    set_cores(f, 0.99F, 0.1F);
    for (size_t i = (size_t)(value * (double)f->s.nlooks + 0.5); i < f->s.nlooks; i++)
        f->cpu[i][0] = f->cpu[i][1] = 0.7F;
}
static void all_are_busy(fixture *f, double value)
{
    f->s.wait_share = 0.2;
    set_cores(f, (float)value, 0.99F);
}
static void all_busy_while_waiting(fixture *f, double value)
{
    f->s.wait_share = value;
    set_cores(f, 0.99F, 0.99F);
}
static void third_epoch_has(fixture *f, double value)
{
    set_epochs(f, 3, (const unsigned[]){100, 400, (unsigned)value});
}
static void second_epoch_has(fixture *f, double value)
{
    set_epochs(f, 3, (const unsigned[]){1000, (unsigned)value, 1100});
}
static void small_growth_to(fixture *f, double value)
{
    set_epochs(f, 3, (const unsigned[]){60, 62, (unsigned)value});
}
/* Of two epochs the second has more, whatever the reason. */
static void number_of_epochs(fixture *f, double value)
{
    set_epochs(f, (size_t)value, (const unsigned[]){100, 200, 400});
}
static void decodes(fixture *f, double value)
{
    f->s.amplification[0] = value;
}
/* VALUE times what the best chunks would decode, which is three bytes for each byte. */
static void decodes_more_than_the_best(fixture *f, double value)
{
    f->s.amplification[0] = 3 * value;
    f->s.counts.samples = 1000;
    f->s.counts.decoded_nbytes = (uint64_t)(3000 * 16384 * value);
    f->s.predicted.known = true;
    f->s.predicted.best_decoded_nbytes = 3 * 16384;
}
/* Many more bytes than the best chunks would, which save VALUE of the time. */
static void saves(fixture *f, double value)
{
    decodes_more_than_the_best(f, 5);
    f->s.predicted.read_seconds = 1;
    f->s.predicted.best_read_seconds = 1 - value;
}
static void others_use(fixture *f, double value)
{
    f->s.wait_share = 0.5;
    set_cores(f, 0.6F, 0.6F);
    set_other_cpus(f, (float)value);
}
static void others_use_the_rest(fixture *f, double value)
{
    f->s.wait_share = 0.5;
    set_cores(f, 0.95F, 0.95F);
    set_other_cpus(f, (float)value);
}
static void is_resident(fixture *f, double value)
{
    f->s.resident_after = value;
}
static void is_unknown_and_smaller(fixture *f, double value)
{
    f->s.resident_after = -1;
    f->s.memory_free = 700 * MIB;
    f->s.store_nbytes = (uint64_t)(700.0 * (double)MIB / value);
}
static void misses(fixture *f, double value)
{
    f->s.counts.missing_chunks = (uint64_t)value;
}
static void fails_chunks(fixture *f, double value)
{
    f->s.counts.failed_chunks = (uint64_t)value;
}
static void fails_batches(fixture *f, double value)
{
    f->s.counts.failed_batches = (uint64_t)value;
}
static void dies(fixture *f, double value)
{
    f->s.counts.deaths = (uint64_t)value;
}
static void differs(fixture *f, double value)
{
    f->s.device.mismatches = (uint64_t)value;
}
static void differs_on_a_device(fixture *f, double value)
{
    f->s.device.used = true;
    f->s.device.mismatches = (uint64_t)value;
}
static void has_workers(fixture *f, double value)
{
    f->s.pool_workers = (unsigned)value;
}
static void has_threads(fixture *f, double value)
{
    f->s.worker_threads = (unsigned)value;
}

static void test_rules_on_either_side(void **state)
{
    static const struct {
        const char *rule;
        set_value *set;
        double silent, speaks;
        const char *says;
    } rows[] = {
        {"loader-waits", waits, 0.30, 0.301, "waited 30 % of the time for data"},
        {"io-bound", waits_for_storage, 0.40, 0.401, "bound by I/O"},
        {"io-bound", storage_dominates, 0.50, 0.501, "60 %"},
        {"one-core", core_is_busy, 0.94, 0.96, "one CPU was busy"},
        {"one-core", others_are_busy, 0.51, 0.49, "other 3"},
        {"one-core", one_core_while_waiting, 0.05, 0.06, "one CPU was busy"},
        {"one-core", one_core_at_looks, 0.5, 0.6, "one CPU was busy"},
        {"cpu-bound", all_are_busy, 0.89, 0.91, "more workers are no gain"},
        {"cpu-bound", all_busy_while_waiting, 0.05, 0.06, "all 4 CPUs were busy"},
        {"memory-grows", third_epoch_has, 404, 405, "a leak, or a cache"},
        {"memory-grows", second_epoch_has, 1010, 1011, "with each epoch"},
        {"memory-grows", small_growth_to, 66, 67, "62.00 MiB to 67.00 MiB"},
        {"memory-grows", number_of_epochs, 2, 3, "a leak"},
        {"amplification", decodes, 4.0, 4.01, "4.0 bytes were decoded"},
        {"amplification", decodes_more_than_the_best, 1.99, 2.01, "2.0 times what the best chunks"},
        {"amplification", saves, 0.19, 0.21, "5.0 times what the best chunks"},
        {"contended", others_use, 0.9, 1.1, "other programs kept 1.1 of the 4 CPUs busy"},
        {"contended", others_use_the_rest, 0.39, 0.41, "this run 3.4"},
        {"fits-in-memory", is_resident, 0.90, 0.91, "page cache"},
        {"fits-in-memory", is_unknown_and_smaller, 1.0, 1.01, "page cache"},
        {"missing-chunks", misses, 0, 1, "1 of 5000"},
        {"failed-chunks", fails_chunks, 0, 1, "1 chunk could not"},
        {"failed-chunks", fails_batches, 0, 1, "1 of 100 batches"},
        {"workers-died", dies, 0, 1, "started again"},
        {"validation", differs, 0, 1, "1 difference from what the store holds"},
        {"validation", differs_on_a_device, 0, 2, "2 differences on the device"},
        {"oversubscribed", has_workers, NCPUS, NCPUS + 1, "5 threads on 4 CPUs"},
        {"oversubscribed", has_threads, NCPUS / 2, NCPUS / 2 + 1, "6 threads"},
    };
    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++)
        for (int side = 0; side < 2; side++) {
            fixture f;
            init(&f);
            rows[r].set(&f, side ? rows[r].speaks : rows[r].silent);
            assert_int_equal(cm_readbench_explain(&f.s, NULL), CM_OK);
            const char *said = finding(&f, rows[r].rule);
            if ((said != NULL) != (side == 1))
                fail_msg("row %zu, %s at %g: %s", r, rows[r].rule,
                         side ? rows[r].speaks : rows[r].silent, said ? said : "silent");
            if (said != NULL && strstr(said, rows[r].says) == NULL)
                fail_msg("row %zu: %s", r, said);
            release(&f);
        }
}

static void test_nothing_to_say(void **state)
{
    fixture f;
    (void)state;
    init(&f);
    assert_int_equal(cm_readbench_explain(&f.s, NULL), CM_OK);
    assert_int_equal(f.s.nfindings, 0);
    assert_non_null(strstr(f.s.sentence, "keeps up"));
    release(&f);
    /* A session that measured nothing at all. */
    cm_readbench_session empty = {.store = "a.zarr"};
    assert_int_equal(cm_readbench_explain(&empty, NULL), CM_OK);
    assert_int_equal(empty.nfindings, 0);
    assert_non_null(strstr(empty.sentence, "too few steps"));
    free(empty.sentence);
}

static void test_what_keeps_rules_silent(void **state)
{
    fixture f;
    (void)state;
    init(&f); /* what was made cold is not suspected */
    f.s.resident_after = 1;
    f.s.temperature = "cold";
    assert_int_equal(cm_readbench_explain(&f.s, NULL), CM_OK);
    assert_null(finding(&f, "fits-in-memory"));
    release(&f);

    init(&f); /* one CPU alone is all of them */
    f.s.wait_share = 0.5;
    f.s.ncpus = 1;
    set_cores(&f, 0.99F, 0.99F);
    assert_int_equal(cm_readbench_explain(&f.s, NULL), CM_OK);
    assert_null(finding(&f, "one-core"));
    assert_non_null(finding(&f, "cpu-bound"));
    release(&f);

    init(&f); /* looks between epochs do not count */
    f.s.wait_share = 0.5;
    set_cores(&f, 0.99F, 0.99F);
    for (size_t i = 0; i < f.s.nlooks; i++)
        f.look[i].at_ns += 1000000;
    assert_int_equal(cm_readbench_explain(&f.s, NULL), CM_OK);
    assert_null(finding(&f, "cpu-bound"));
    release(&f);

    init(&f); /* a library's time may be anything */
    waits_for_storage(&f, 0.9);
    f.s.engine = "netcdf";
    assert_int_equal(cm_readbench_explain(&f.s, NULL), CM_OK);
    assert_null(finding(&f, "io-bound"));
    release(&f);

    for (int busy = 0; busy < 2; busy++) { /* threads that wait for storage take no turns */
        init(&f);
        waits_for_storage(&f, 0.9);
        f.s.pool_workers = 16;
        f.s.wall_seconds = 10;
        f.s.cpu_seconds = busy ? 21 : 19; /* of 40 */
        set_cores(&f, 0, 0);
        assert_int_equal(cm_readbench_explain(&f.s, NULL), CM_OK);
        assert_int_equal(finding(&f, "oversubscribed") != NULL, busy);
        release(&f);
    }

    init(&f); /* memory that went down once does not grow */
    set_epochs(&f, 4, (const unsigned[]){100, 200, 190, 400});
    assert_int_equal(cm_readbench_explain(&f.s, NULL), CM_OK);
    assert_null(finding(&f, "memory-grows"));
    release(&f);
}

/* ---- the cause and its sentence ------------------------------------------------------------- */

static void storage_is_slow(fixture *f, double efficiency)
{
    storage_dominates(f, 0.8);
    f->s.rates.efficiency = efficiency;
}
static void reads_by_library(fixture *f, double value)
{
    storage_is_slow(f, value);
    f->s.engine = "netcdf";
}
static void decodes_and_waits(fixture *f, double value)
{
    f->s.wait_share = 0.5;
    f->s.amplification[0] = value;
}
static void decodes_and_waits_beside_the_best(fixture *f, double value)
{
    decodes_more_than_the_best(f, value);
    f->s.wait_share = 0.5;
}
static void decodes_with_a_plan(fixture *f, double value)
{
    decodes_and_waits(f, value);
    f->s.loader = "planned";
}
static void waits_with_threads(fixture *f, double value)
{
    f->s.wait_share = 0.5;
    f->s.pool_workers = (unsigned)value;
}
static void waits_without_stages(fixture *f, double value)
{
    f->s.wait_share = value;
    memset(f->s.stage, 0, sizeof(f->s.stage));
}
static void waits_for_copies(fixture *f, double value)
{
    f->s.wait_share = 0.5;
    f->s.device.used = true;
    f->s.wait.total = 10;
    f->s.device.wait.total = value;
}
static void has_spare(fixture *f, double value)
{
    f->s.accelerators.needed = 1e9;
    f->s.rates.capacity = value * 1e9;
}
static void fails(fixture *f, double value)
{
    f->s.counts.failed_batches = (uint64_t)value;
    f->s.first_failure = "t2m: chunk 3/0/1: too short";
}
static void meets_nothing(fixture *f, double value)
{
    f->s.counts.chunks = 20;
    f->s.counts.missing_chunks = (uint64_t)value;
}
static void saves_while_waiting(fixture *f, double value)
{
    saves(f, value);
    f->s.wait_share = 0.5;
}
/* As many bytes as with the best chunks, in many more requests. */
static void has_small_chunks(fixture *f, double value)
{
    decodes_more_than_the_best(f, 1);
    f->s.predicted.read_seconds = value;
    f->s.predicted.best_read_seconds = 1;
    f->s.wait_share = 0.5;
}
/* Storage takes the time, as fast as it can, but the loader could give VALUE times the need. */
static void has_capacity_while_waiting(fixture *f, double value)
{
    storage_is_slow(f, 0.95);
    has_spare(f, value);
}
/* Other programs use most of the CPUs while VALUE times what the best chunks need is decoded. */
static void decodes_among_others(fixture *f, double value)
{
    decodes_more_than_the_best(f, value);
    set_cores(f, 0.99F, 0.99F);
    set_other_cpus(f, 3);
    f->s.wait_share = 0.9;
}
/* The same with many small chunks. */
static void has_small_chunks_among_others(fixture *f, double value)
{
    decodes_among_others(f, 1);
    f->s.predicted.read_seconds = value;
    f->s.predicted.best_read_seconds = 1;
}
/* The same where a delay of VALUE of the loader's time is imitated. */
static void is_delayed_among_others(fixture *f, double value)
{
    storage_dominates(f, value);
    f->s.wait_share = 0.9;
    f->s.emulated = true;
    set_cores(f, 0.99F, 0.99F);
    set_other_cpus(f, 3.9F);
}
static void is_emulated(fixture *f, double value)
{
    f->s.wait_share = value;
    f->s.emulated = true;
}

static void test_the_closing_sentence(void **state)
{
    static const struct {
        set_value *set;
        double value;
        const char *cause, *says[2];
    } rows[] = {
        {waits, 0.05, "step", {"keeps up", "5.0 %"}},
        {waits, 0.06, "few-workers", {"steps waited 6 %", "decoding is the bottleneck"}},
        {has_spare, 3.5, "step", {"3.5 times as much", ""}},
        {storage_is_slow, 0.9, "storage", {"storage is the bottleneck", "at 90 %"}},
        {storage_is_slow, 0.4, "few-requests", {"storage is the bottleneck", "at 40 %"}},
        {storage_is_slow, 0, "few-requests", {"storage is the bottleneck (80 %", ""}},
        {reads_by_library, 0.4, "library", {"through libnetcdf is the bottleneck", ""}},
        {decodes_and_waits, 12, "chunk-shape", {"shape is the bottleneck (12.0", ""}},
        {decodes_with_a_plan, 12, "chunk-shape", {"chunks' shape", ""}},
        {decodes_and_waits_beside_the_best, 1.5, "few-workers", {"decoding is the bottleneck", ""}},
        {decodes_and_waits_beside_the_best, 3, "chunk-shape", {"where 3.0 would do", ""}},
        {saves_while_waiting, 0.1, "few-workers", {"decoding is the bottleneck", ""}},
        {saves_while_waiting, 0.8, "chunk-shape", {"(15.0 bytes decoded", "where 3.0 would do"}},
        {has_small_chunks, 2, "few-workers", {"decoding is the bottleneck", ""}},
        {has_small_chunks, 4, "chunk-shape", {"takes 4.0 times as long", ""}},
        {all_busy_while_waiting, 0.5, "cpus", {"the CPUs are the bottleneck", "all 4 of them"}},
        {others_use, 2, "contention", {"other programs kept 2.0 of the 4 CPUs", "quiet machine"}},
        {waits_with_threads,
         2,
         "few-workers",
         {"decoding is the bottleneck (67 %", "CPUs are idle"}},
        {waits_with_threads, NCPUS, "work", {"decoding is the bottleneck (67 %", ""}},
        {waits_without_stages, 0.5, "few-workers", {"loader's own work", "CPUs are idle"}},
        {waits_for_copies, 6, "device-copy", {"copy to the device is the bottleneck", ""}},
        {waits_for_copies, 4, "few-workers", {"decoding is the bottleneck", ""}},
        {fails, 2, "failures", {"2 of 100 batches failed", "chunk 3/0/1"}},
        {is_resident, 1, "step", {"keeps up", "from cold"}},
        {meets_nothing, 20, "nothing-stored", {"none of the chunks", "is stored"}},
        {meets_nothing, 19, "step", {"keeps up", ""}},
        {has_capacity_while_waiting, 0.9, "storage", {"at 95 %", ""}},
        {has_capacity_while_waiting, 1.1, "uneven", {"capacity of 1.10 GB/s", "unevenly"}},
        {decodes_among_others, 58, "chunk-shape", {"where 3.0 would do", ""}},
        {decodes_among_others, 1, "contention", {"quiet machine", ""}},
        {has_small_chunks_among_others, 20, "chunk-shape", {"takes 20.0 times as long", ""}},
        {is_delayed_among_others, 0.95, "few-requests", {"EMULATED", "storage is the bottleneck"}},
        {is_delayed_among_others, 0.1, "contention", {"EMULATED", "quiet machine"}},
        {is_emulated, 0.5, "few-workers", {"EMULATED: steps waited", ""}},
    };
    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        fixture f;
        init(&f);
        rows[r].set(&f, rows[r].value);
        assert_int_equal(cm_readbench_explain(&f.s, NULL), CM_OK);
        for (int i = 0; i < 2; i++)
            if (strstr(f.s.sentence, rows[r].says[i]) == NULL)
                fail_msg("row %zu: %s", r, f.s.sentence);
        if (strcmp(cm_readbench_cause_name(f.s.cause), rows[r].cause) != 0)
            fail_msg("row %zu: %s", r, cm_readbench_cause_name(f.s.cause));
        /* Nothing was simulated, so nothing is advised. */
        assert_null(strstr(f.s.sentence, "predicted"));
        assert_null(strstr(f.s.sentence, "try "));
        release(&f);
    }
}

/* A second program that burns CPUs must not be taken for the loader's own work. */
static void test_others_silence_what_times_say(void **state)
{
    static const char *const silent[] = {"loader-waits", "io-bound", "one-core", "cpu-bound"};
    fixture f;
    (void)state;
    init(&f);
    f.s.wait_share = 0.6;
    f.s.stage[0].total = 10; /* bound by I/O, had it been alone */
    set_cores(&f, 0.99F, 0.99F);
    set_other_cpus(&f, 2.8F);
    assert_int_equal(cm_readbench_explain(&f.s, NULL), CM_OK);
    assert_int_equal(f.s.cause, CM_CAUSE_CONTENTION);
    assert_string_equal(f.s.finding[0].rule, "contended");
    for (size_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++)
        assert_null(finding(&f, silent[i]));
    release(&f);

    init(&f); /* too few looks to tell */
    others_use(&f, 3);
    f.s.nlooks = 2;
    assert_int_equal(cm_readbench_explain(&f.s, NULL), CM_OK);
    assert_null(finding(&f, "contended"));
    release(&f);
}

/* Counts are the same beside other programs, and stand above their effect on times. */
static void test_counts_come_before_others(void **state)
{
    fixture f;
    (void)state;
    init(&f);
    decodes_among_others(&f, 58);
    assert_int_equal(cm_readbench_explain(&f.s, NULL), CM_OK);
    assert_int_equal(f.s.nfindings, 2);
    assert_string_equal(f.s.finding[0].rule, "amplification");
    assert_string_equal(f.s.finding[1].rule, "contended");
    assert_non_null(strstr(f.s.finding[1].sentence, "explains "));
    release(&f);
}

/* ---- like with like ------------------------------------------------------------------------- */

static void test_a_bound_that_is_passed_is_none(void **state)
{
    static const struct {
        const char *temperature;
        double before, after, asked, efficiency;
        bool from_memory;
        const char *uncompared;
    } rows[] = {
        {"as found", 1, 1, 90, 0.9, true, NULL},
        {"as found", 0.1, 0.2, 90, 0.9, false, NULL},
        {"cold", 0, 0.95, 90, 0.9, false, NULL}, /* the probe was made cold again */
        {"as found", -1, -1, 90, 0.9, false, NULL},
        {"as found", 0, 1, 90, 0, true, "filled the page cache"},
        {"as found", 1, 1, 102, 0, true, "no bound"},
        {"cold", 0, 0, 2405, 0, false, "no bound"},
        {"warm", 1, 1, 0, 0, true, NULL},
    };
    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        cm_readbench_session s = {.temperature = (char *)rows[r].temperature,
                                  .resident_before = rows[r].before,
                                  .resident_after = rows[r].after,
                                  .rates = {.asked = rows[r].asked, .storage = 100}};
        cm_readbench_compare_storage(&s);
        assert_true(fabs(s.rates.efficiency - (rows[r].efficiency)) < 1e-9);
        assert_int_equal(s.rates.from_memory, rows[r].from_memory);
        assert_int_equal(s.rates.uncompared == NULL, rows[r].uncompared == NULL);
        if (rows[r].uncompared != NULL)
            assert_non_null(strstr(s.rates.uncompared, rows[r].uncompared));
    }
}

/* A loader that keeps up feeds, however slow the first batches of an epoch were. */
static void test_what_keeps_up_feeds(void **state)
{
    (void)state;
    for (unsigned waits = 0; waits <= 100; waits++) {
        fixture f;
        init(&f);
        f.s.ranks = 4;
        f.s.wait_share = waits / 100.0;
        f.s.utilisation = 1 - f.s.wait_share;
        f.s.rates.logical = 1;
        cm_readbench_feed(&f.s, 100);
        assert_true(fabs(f.s.accelerators.needed - (400)) < 1e-9);
        assert_true(fabs(f.s.accelerators.got - (400 * f.s.utilisation)) < 1e-9);
        assert_int_equal(cm_readbench_explain(&f.s, NULL), CM_OK);
        if (f.s.cause == CM_CAUSE_STEP)
            assert_int_equal(f.s.accelerators.fed, 4);
        release(&f);
    }
    cm_readbench_session one = {.ranks = 1, .rates = {.logical = 60}};
    cm_readbench_feed(&one, 100); /* no step but the first: the rate of all that there is */
    assert_int_equal(one.accelerators.fed, 0);
    assert_true(fabs(one.accelerators.got - (60)) < 1e-9);
}

static void test_the_order_of_findings(void **state)
{
    fixture f;
    (void)state;
    init(&f);
    storage_dominates(&f, 0.6);
    f.s.amplification[0] = 40; /* 0.975 of reading and decoding */
    f.s.counts.deaths = 1;
    f.s.counts.missing_chunks = 1;
    assert_int_equal(cm_readbench_explain(&f.s, NULL), CM_OK);
    static const char *const order[] = {"workers-died", "loader-waits", "amplification", "io-bound",
                                        "missing-chunks"};
    assert_int_equal(f.s.nfindings, 5);
    for (size_t i = 0; i < 5; i++)
        assert_string_equal(f.s.finding[i].rule, order[i]);
    assert_int_equal(f.s.cause, CM_CAUSE_CHUNK_SHAPE);
    release(&f);
}

/* ---- more workers -------------------------------------------------------------------------- */

static void test_saturation(void **state)
{
    static const double gain[] = {0.049, 0.051, -0.2};
    (void)state;
    for (size_t g = 0; g < sizeof(gain) / sizeof(gain[0]); g++) {
        cm_readbench_setting two[] = {{"workers", "2"}, {"prefetch", "2"}};
        cm_readbench_setting four[] = {{"workers", "4"}, {"prefetch", "2"}};
        cm_readbench_setting other[] = {{"workers", "8"}, {"prefetch", "4"}};
        cm_readbench_session s[] = {
            {.store = "a", .workers = 4, .setting = four, .nsettings = 2},
            {.store = "a", .workers = 2, .setting = two, .nsettings = 2},
            {.store = "a", .workers = 8, .setting = other, .nsettings = 2},
            {.store = "b", .workers = 8, .setting = two, .nsettings = 2},
        };
        s[1].rates.samples = 100;
        s[0].rates.samples = 100 * (1 + gain[g]);
        s[2].rates.samples = s[3].rates.samples = 50; /* not to be compared */
        assert_int_equal(cm_readbench_explain_workers(s, 4, NULL), CM_OK);
        assert_int_equal(s[0].nfindings, gain[g] < CM_RULE_GAIN);
        assert_int_equal(s[1].nfindings + s[2].nfindings + s[3].nfindings, 0);
        if (s[0].nfindings == 1) {
            assert_string_equal(s[0].finding[0].rule, "saturated");
            assert_non_null(
                strstr(s[0].finding[0].sentence, gain[g] < 0 ? "20.0 % fewer" : "more"));
            free(s[0].finding[0].rule);
            free(s[0].finding[0].sentence);
        }
        free(s[0].finding);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_on_either_side),
        cmocka_unit_test(test_nothing_to_say),
        cmocka_unit_test(test_what_keeps_rules_silent),
        cmocka_unit_test(test_others_silence_what_times_say),
        cmocka_unit_test(test_counts_come_before_others),
        cmocka_unit_test(test_a_bound_that_is_passed_is_none),
        cmocka_unit_test(test_what_keeps_up_feeds),
        cmocka_unit_test(test_the_order_of_findings),
        cmocka_unit_test(test_the_closing_sentence),
        cmocka_unit_test(test_saturation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
