#include <inttypes.h>
#include <math.h>

#include "../unit.h"
#include "chance.h"
#include "plan/optimise.h"
#include "plan/rules.h"

#define MIB (UINT64_C(1) << 20)

static cm_read reads[CM_MAX_READS];

/* A problem whose dimensions are below SIZE, or endless where ENDLESS allows it. */
static cm_optimise_spec random_problem(unsigned rank, uint64_t size, bool endless)
{
    cm_optimise_spec spec = {
        .rank = rank, .itemsize = UINT64_C(1) << random_below(4), .read = reads};

    spec.nreads = 1 + random_below(5);
    spec.align = (cm_align)random_below(3);
    spec.every = 1 + random_below(8);
    spec.objective = (cm_objective)random_below(4);
    spec.cost = cm_cost_preset_at(random_below(3))->model;
    spec.cost.reads = (double)(spec.every % 3);
    spec.min_nbytes = 1 + random_below(64);
    spec.max_nbytes = spec.min_nbytes * (2 + random_below(1000));
    memset(reads, 0, sizeof reads);
    for (unsigned j = 0; j < rank; j++) {
        spec.shape[j] = 2 + random_below(size - 1);
        for (size_t r = 0; r < spec.nreads; r++) {
            uint64_t step = random_below(4) ? 1 : 1 + random_below(3);
            reads[r].step[j] = step;
            reads[r].sample[j] = 1 + random_below((spec.shape[j] - 1) / step + 1);
            reads[r].weight = 0.5 + (double)random_below(10);
        }
        if (endless && random_below(3) == 0)
            spec.shape[j] = 0;
    }
    return spec;
}

static bool within(const cm_optimise_spec *spec, const uint64_t *chunk, uint64_t min_nbytes)
{
    uint64_t nbytes = spec->itemsize;
    for (unsigned j = 0; j < spec->rank; j++)
        nbytes *= chunk[j];
    return nbytes >= min_nbytes && nbytes <= spec->max_nbytes;
}

static bool next_shape(const cm_optimise_spec *spec, uint64_t *chunk)
{
    for (unsigned j = 0; j < spec->rank; j++) {
        if (++chunk[j] <= spec->shape[j])
            return true;
        chunk[j] = 1;
    }
    return false;
}

/* The least value over all integer shapes, by evaluating each. */
static double brute_force(const cm_optimise_spec *spec)
{
    double own[CM_MAX_READS], best = INFINITY;
    uint64_t chunk[4] = {1, 1, 1, 1}, whole = spec->itemsize, min_nbytes;

    for (unsigned j = 0; j < spec->rank; j++)
        whole *= spec->shape[j];
    min_nbytes = whole < spec->min_nbytes ? whole : spec->min_nbytes;
    for (size_t r = 0; r < spec->nreads; r++)
        own[r] = INFINITY;
    do {
        if (!within(spec, chunk, min_nbytes))
            continue;
        for (size_t r = 0; r < spec->nreads; r++)
            own[r] = fmin(own[r], cm_optimise_read_cost(spec, r, chunk).seconds);
    } while (next_shape(spec, chunk));
    do {
        cm_choice c;
        if (!within(spec, chunk, min_nbytes))
            continue;
        assert_int_equal(cm_optimise_evaluate(spec, own, chunk, &c, NULL), 0);
        best = fmin(best, cm_choice_value(&c, spec->objective));
    } while (next_shape(spec, chunk));
    return best;
}

static void check_against_brute_force(unsigned rank, uint64_t size, int n, double slack)
{
    for (int i = 0; i < n; i++) {
        cm_optimise_spec spec = random_problem(rank, size, false);
        cm_optimum optimum;
        cm_error err = {0};
        double want = brute_force(&spec);
        int rc = cm_optimise(&spec, &optimum, &err);
        if (isinf(want)) {
            assert_int_equal(rc, CM_EINVAL);
        } else {
            assert_int_equal(rc, 0);
            double got = cm_choice_value(&optimum.best, spec.objective);
            if (got > want * (1 + slack) || got < want * (1 - 1e-9))
                fail_msg("rank %u case %d objective %d: %.12g, brute force %.12g", rank, i,
                         spec.objective, got, want);
        }
        cm_optimum_release(&optimum);
    }
}

static void equals_brute_force(void **context)
{
    (void)context;
    check_against_brute_force(1, 500, 300, 1e-9);
    check_against_brute_force(2, 40, 300, 1e-9);
    check_against_brute_force(3, 14, 150, 1e-9);
    check_against_brute_force(4, 7, 100, 1e-9);
}

/* Too many shapes to try all: how far from the optimum does the search stay? */
static void large_problems_stay_near_brute_force(void **context)
{
    (void)context;
    check_against_brute_force(3, 80, 25, 0.001);
}

static void nothing_listed_is_better(void **context)
{
    static const double ratio[] = {0.25, 0.5, 1, 2, 4};
    int compared = 0;

    (void)context;
    for (int i = 0; i < 1000; i++) {
        unsigned rank = 1 + (unsigned)random_below(4);
        cm_optimise_spec spec = random_problem(rank, 2000, true);
        cm_optimum optimum;
        cm_choice other;
        uint64_t chunk[CM_MAX_RANK], shape[CM_MAX_RANK];

        spec.min_nbytes = 1024;
        spec.max_nbytes = 4096 << random_below(12);
        assert_int_equal(cm_optimise(&spec, &optimum, NULL), 0);
        double best = cm_choice_value(&optimum.best, spec.objective);
        unsigned combinations = 1;
        for (unsigned j = 0; j < rank; j++)
            combinations *= 5;
        for (unsigned k = 0; k < combinations + 2; k++) {
            unsigned rest = k;
            for (unsigned j = 0; j < rank; j++, rest /= 5) {
                double c = ceil((double)reads[0].sample[j] * ratio[rest % 5]);
                chunk[j] = (uint64_t)c;
                shape[j] = spec.shape[j] != 0 ? spec.shape[j] : 10000;
                if (chunk[j] > shape[j])
                    chunk[j] = shape[j];
            }
            if (k == combinations)
                assert_int_equal(
                    cm_rule_rew(rank, shape, spec.itemsize, spec.max_nbytes, chunk, NULL), 0);
            if (k == combinations + 1)
                assert_int_equal(cm_rule_zarr_python(rank, shape, spec.itemsize, chunk, NULL), 0);
            if (!within(&spec, chunk, spec.min_nbytes))
                continue;
            compared++;
            assert_int_equal(cm_optimise_evaluate(&spec, optimum.own_seconds, chunk, &other, NULL),
                             0);
            if (cm_choice_value(&other, spec.objective) < best * (1 - 1e-9))
                fail_msg("problem %d rank %u objective %d: %g with shape %u, chosen %g", i, rank,
                         spec.objective, cm_choice_value(&other, spec.objective), k, best);
        }
        cm_optimum_release(&optimum);
    }
    assert_true(compared > 5000);
}

static void the_front_is_a_front(void **context)
{
    (void)context;
    for (int i = 0; i < 200; i++) {
        cm_optimise_spec spec = random_problem(1 + (unsigned)random_below(3), 300, true);
        cm_optimum o;
        bool found = false;

        spec.max_nbytes = 1 << 14;
        spec.objective = (cm_objective)random_below(3);
        assert_int_equal(cm_optimise(&spec, &o, NULL), 0);
        assert_true(o.nfront >= 1);
        for (size_t k = 0; k < o.nfront; k++) {
            found = found || memcmp(o.front[k].chunk, o.best.chunk, sizeof o.best.chunk) == 0;
            assert_true(o.front[k].regret >= 1 - 1e-9);
            if (k == 0)
                continue;
            assert_true(o.front[k].bytes > o.front[k - 1].bytes);
            assert_true(o.front[k].requests < o.front[k - 1].requests);
        }
        /* More requests of a read share its bytes: the fewest of both need not cost least. */
        assert_true(found || (spec.cost.reads > 0 && spec.objective == CM_OBJECTIVE_COST));
        cm_optimum_release(&o);
    }
}

static void extra_shapes_are_considered(void **context)
{
    cm_optimise_spec spec = {.rank = 2, .itemsize = 4, .read = reads, .nreads = 1};
    const uint64_t extra[2][CM_MAX_RANK] = {{64, 64}, {5000, 1}};
    cm_optimum o;

    (void)context;
    memset(reads, 0, sizeof reads);
    reads[0] = (cm_read){.sample = {64, 64}, .weight = 1};
    spec.cost = cm_cost_preset_find("s3")->model;
    spec.min_nbytes = 1;
    spec.max_nbytes = MIB;
    spec.align = CM_ALIGN_EVERY;
    spec.every = 64;
    spec.extra = extra;
    spec.nextra = 2;
    assert_int_equal(cm_optimise(&spec, &o, NULL), 0);
    assert_true(o.best.requests == 1);
    cm_optimum_release(&o);
    spec.shape[1] = 10;
    reads[0].sample[1] = 10;
    assert_int_equal(cm_optimise(&spec, &o, NULL), 0);
    assert_true(o.best.chunk[1] <= 10);
    cm_optimum_release(&o);
}

static void fixed_lengths_are_kept(void **context)
{
    cm_optimise_spec spec = {.rank = 3, .shape = {1000, 721, 1440}, .itemsize = 4, .read = reads};
    cm_optimum o;

    (void)context;
    memset(reads, 0, sizeof reads);
    reads[0] = (cm_read){.sample = {3, 48, 48}, .weight = 1};
    spec.nreads = 1;
    spec.cost = cm_cost_preset_find("local")->model;
    spec.max_nbytes = MIB;
    spec.fixed[0] = 24;
    assert_int_equal(cm_optimise(&spec, &o, NULL), 0);
    assert_int_equal(o.best.chunk[0], 24);
    assert_true(o.best.chunk_nbytes <= MIB);
    cm_optimum_release(&o);
    spec.fixed[1] = 721;
    spec.fixed[2] = 1440;
    assert_int_equal(cm_optimise(&spec, &o, NULL), CM_EINVAL);
    cm_optimum_release(&o);
}

static void wrong_problems_are_refused(void **context)
{
    cm_optimise_spec good = {
        .rank = 2, .shape = {100, 100}, .itemsize = 4, .read = reads, .nreads = 2};
    cm_optimise_spec spec;
    cm_optimum o;
    cm_error err;

    (void)context;
    memset(reads, 0, sizeof reads);
    reads[0] = reads[1] = (cm_read){.sample = {10, 10}, .weight = 1};
    good.cost = cm_cost_preset_find("nfs")->model;
    good.max_nbytes = MIB;
    assert_int_equal(cm_optimise(&good, &o, &err), 0);
    cm_optimum_release(&o);

    spec = good, spec.rank = 33;
    assert_int_equal(cm_optimise(&spec, &o, &err), CM_EINVAL);
    spec = good, spec.nreads = 0;
    assert_int_equal(cm_optimise(&spec, &o, &err), CM_EINVAL);
    spec = good, spec.nreads = 65;
    assert_int_equal(cm_optimise(&spec, &o, &err), CM_EINVAL);
    spec = good, spec.itemsize = 0;
    assert_int_equal(cm_optimise(&spec, &o, &err), CM_EINVAL);
    spec = good, spec.min_nbytes = 2 * MIB;
    assert_int_equal(cm_optimise(&spec, &o, &err), CM_EINVAL);
    spec = good, spec.min_nbytes = 30011,
    spec.max_nbytes = 30013; /* no product of two is between */
    assert_int_equal(cm_optimise(&spec, &o, &err), CM_EINVAL);
    assert_non_null(strstr(err.text, "between"));
    spec = good, spec.cost.bandwidth = 0;
    assert_int_equal(cm_optimise(&spec, &o, &err), CM_EINVAL);
    reads[1].weight = 0;
    assert_int_equal(cm_optimise(&good, &o, &err), CM_EINVAL);
    reads[1].weight = 1;
    reads[1].sample[1] = 101;
    assert_int_equal(cm_optimise(&good, &o, &err), CM_EINVAL);
    assert_non_null(strstr(err.text, "read 2, dimension 1"));
}

/* 50 ms are promised for four dimensions and five reads: about a microsecond a shape. */
static void four_dimensions_and_five_reads_take_few_evaluations(void **context)
{
    cm_optimise_spec spec = {
        .rank = 4, .shape = {87600, 37, 721, 1440}, .itemsize = 4, .read = reads};
    cm_optimum o;

    (void)context;
    memset(reads, 0, sizeof reads);
    reads[0] = (cm_read){.sample = {1, 37, 721, 1440}, .weight = 1};
    reads[1] = (cm_read){.sample = {87600, 1, 1, 1}, .weight = 3};
    reads[2] = (cm_read){.sample = {3, 1, 64, 64}, .weight = 10};
    reads[3] = (cm_read){.sample = {24, 37, 1, 1}, .weight = 2};
    reads[4] = (cm_read){.sample = {365, 1, 48, 48}, .step = {24, 1, 1, 1}, .weight = 1};
    spec.nreads = 5;
    spec.cost = cm_cost_preset_find("s3")->model;
    spec.objective = CM_OBJECTIVE_REGRET;
    spec.max_nbytes = 64 * MIB;
    spec.min_nbytes = MIB / 4;
    assert_int_equal(cm_optimise(&spec, &o, NULL), 0);
    assert_true(o.nevaluated > 100);
    assert_true(o.nevaluated < 250000);
    cm_optimum_release(&o);
}

/* Above MOST_OBJECTS chunks one costs a part of a shard, less than a file; 0: no shards. */
static void chunks_that_are_files_cost_files(void **context)
{
    cm_optimum files, parts;
    (void)context;
    memset(reads, 0, sizeof reads);
    reads[0] = (cm_read){.sample = {8, 8}, .weight = 1};
    cm_optimise_spec spec = {.rank = 2,
                             .itemsize = 4,
                             .shape = {4096, 4096},
                             .read = reads,
                             .nreads = 1,
                             .align = CM_ALIGN_RANDOM,
                             .min_nbytes = 4096,
                             .max_nbytes = 64 * MIB};
    spec.cost = cm_cost_preset_find("local")->model;
    spec.cost.latency = 4 * spec.cost.range;
    assert_int_equal(cm_optimise(&spec, &files, NULL), 0);
    spec.most_objects = 1000;
    assert_int_equal(cm_optimise(&spec, &parts, NULL), 0);
    assert_true(cm_optimise_shards(&spec, parts.best.chunk_nbytes));
    assert_true(parts.best.chunk_nbytes < files.best.chunk_nbytes);
    cm_optimum_release(&files);
    cm_optimum_release(&parts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_brute_force),
        cmocka_unit_test(large_problems_stay_near_brute_force),
        cmocka_unit_test(nothing_listed_is_better),
        cmocka_unit_test(the_front_is_a_front),
        cmocka_unit_test(extra_shapes_are_considered),
        cmocka_unit_test(fixed_lengths_are_kept),
        cmocka_unit_test(wrong_problems_are_refused),
        cmocka_unit_test(four_dimensions_and_five_reads_take_few_evaluations),
        cmocka_unit_test(chunks_that_are_files_cost_files),
    };
    return cmocka_run_group_tests_name("optimise", tests, NULL, NULL);
}
