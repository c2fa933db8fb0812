/* Closed forms against brute force: every offset tried, every element placed. */
#include <inttypes.h>
#include <math.h>

#include "../unit.h"
#include "base/number.h"
#include "chance.h"
#include "plan/touch.h"

enum {
    MAX_OFFSETS = 4096, /* along one dimension */
    MAX_VALUE = 1 << 16 /* of a count in the brute force */
};

/* Chunks and shards met at each offset of one dimension. */
typedef struct brute_axis {
    size_t n;
    unsigned chunks[MAX_OFFSETS], shards[MAX_OFFSETS];
} brute_axis;

static unsigned count_cells(const cm_touch_axis *a, uint64_t offset, uint64_t cell)
{
    unsigned n = 0;
    uint64_t last = UINT64_MAX;

    for (uint64_t i = 0; cell != 0 && i < a->sample; i++) {
        uint64_t at = (offset + i * a->step) / cell;
        n += at != last;
        last = at;
    }
    return n;
}

static void try_all_offsets(const cm_touch_axis *a, brute_axis *b)
{
    uint64_t every = a->align == CM_ALIGN_RANDOM  ? 1
                     : a->align == CM_ALIGN_CHUNK ? a->chunk
                                                  : a->every;
    uint64_t span = (a->sample - 1) * a->step + 1;
    /* Along an endless dimension everything repeats after every * cell elements. */
    uint64_t end = a->length != 0 ? a->length - span + 1 : every * (a->shard ? a->shard : a->chunk);

    b->n = 0;
    for (uint64_t o = 0; o < end; o += every) {
        assert_true(b->n < MAX_OFFSETS);
        b->chunks[b->n] = count_cells(a, o, a->chunk);
        b->shards[b->n++] = count_cells(a, o, a->shard);
    }
}

static void random_axis(cm_touch_axis *a, uint64_t size, bool sharded, cm_align align,
                        uint64_t every)
{
    *a = (cm_touch_axis){.align = align, .every = every};
    a->step = random_below(3) ? 1 : 1 + random_below(size / 2 + 1);
    a->sample = 1 + random_below(size / a->step + 1);
    uint64_t span = (a->sample - 1) * a->step + 1;
    a->length = random_below(3) ? span + random_below(size) : 0;
    a->chunk = 1 + random_below(size);
    a->shard = sharded ? a->chunk * (1 + random_below(4)) : 0;
}

static void check_stat(const char *what, const cm_touch_stat *s, const unsigned *histogram,
                       uint64_t total, long case_number)
{
    uint64_t min = 0, max = 0, p50 = 0, p95 = 0, seen = 0;
    double sum = 0;

    for (unsigned v = 0; v < MAX_VALUE && seen < total; v++) {
        if (histogram[v] == 0)
            continue;
        if (seen == 0)
            min = v;
        max = v;
        seen += histogram[v];
        sum += (double)v * histogram[v];
        if (p50 == 0 && seen * 100 >= total * 50)
            p50 = v;
        if (p95 == 0 && seen * 100 >= total * 95)
            p95 = v;
    }
    assert_int_equal(seen, total);
    if (s->min != min || s->max != max || s->p50 != p50 || s->p95 != p95 ||
        fabs(s->mean - sum / (double)total) > 1e-11 * s->mean)
        fail_msg("case %ld, %s: %" PRIu64 " %g %" PRIu64 " %" PRIu64 " %" PRIu64
                 ", brute force %" PRIu64 " %g %" PRIu64 " %" PRIu64 " %" PRIu64,
                 case_number, what, s->min, s->mean, s->p50, s->p95, s->max, min,
                 sum / (double)total, p50, p95, max);
}

static unsigned chunk_histogram[MAX_VALUE], request_histogram[MAX_VALUE],
    shard_histogram[MAX_VALUE];

static void check_case(long case_number, unsigned rank, uint64_t size)
{
    static brute_axis brute[4];
    cm_touch_axis axis[4];
    cm_touch_stats stats;
    cm_error err = {0};
    bool sharded = random_below(3) == 0;
    cm_align align = (cm_align)random_below(3);
    uint64_t every = 1 + random_below(size), nbytes = 4, total = 1;
    unsigned highest = 1;

    for (unsigned j = 0; j < rank; j++) {
        random_axis(&axis[j], size, sharded, align, every);
        try_all_offsets(&axis[j], &brute[j]);
        nbytes *= axis[j].chunk;
        total *= brute[j].n;
        highest *= 2 * (unsigned)(axis[j].sample + 1);
    }
    assert_true(highest < MAX_VALUE);
    if (cm_touch_read(rank, axis, 4, &stats, &err) != 0)
        fail_msg("case %ld: %s", case_number, err.text);
    memset(chunk_histogram, 0, (highest + 1) * sizeof *chunk_histogram);
    memset(shard_histogram, 0, (highest + 1) * sizeof *shard_histogram);
    memset(request_histogram, 0, (highest + 1) * sizeof *request_histogram);
    for (uint64_t i = 0; i < total; i++) {
        unsigned chunks = 1, shards = 1;
        uint64_t rest = i;
        for (unsigned j = 0; j < rank; j++) {
            chunks *= brute[j].chunks[rest % brute[j].n];
            shards *= brute[j].shards[rest % brute[j].n];
            rest /= brute[j].n;
        }
        chunk_histogram[chunks]++;
        shard_histogram[shards]++;
        request_histogram[sharded ? chunks + shards : chunks]++;
    }
    check_stat("chunks", &stats.chunks, chunk_histogram, total, case_number);
    check_stat("requests", &stats.requests, request_histogram, total, case_number);
    if (sharded)
        check_stat("shards", &stats.shards, shard_histogram, total, case_number);
    assert_int_equal(stats.bytes.min, stats.chunks.min * nbytes);
    assert_int_equal(stats.bytes.max, stats.chunks.max * nbytes);
    double mean = 1;
    for (unsigned j = 0; j < rank; j++)
        mean *= cm_touch_mean(&axis[j]);
    assert_true(fabs(mean - stats.chunks.mean) <= 1e-12 * mean);
}

/* ---- chunks of several lengths ---- */

enum {
    LONG_SIDE = 40
};

static uint64_t cut_axis_at_random(cm_cuts *cuts, uint64_t length, uint64_t multiple)
{
    *cuts = (cm_cuts){0};
    while (cuts->end < length)
        assert_int_equal(
            cm_cuts_add(cuts, multiple * (1 + random_below(8)), 1 + random_below(2), NULL), 0);
    cm_cuts_trim(cuts, length);
    return cuts->longest;
}

/* Of the read at OFFSET: chunks, shards, and the elements of those chunks. */
static void meet_pieces(const cm_touch_axis *a, uint64_t offset, uint64_t *chunks, uint64_t *shards,
                        uint64_t *nelem)
{
    uint64_t chunk = UINT64_MAX, shard = UINT64_MAX;
    *chunks = *shards = *nelem = 0;
    for (uint64_t i = 0; i < a->sample; i++) {
        const uint64_t at = offset + i * a->step;
        const uint64_t c = a->cuts != NULL ? cm_cuts_find(a->cuts, at) : at / a->chunk;
        const uint64_t s = a->shard == 0 ? 0 : cm_cuts_find(a->shard_cuts, at);
        *shards += a->shard != 0 && s != shard;
        if (c != chunk)
            *nelem += a->cuts != NULL ? cm_cuts_length(a->cuts, c) : a->chunk;
        *chunks += c != chunk;
        chunk = c;
        shard = s;
    }
}

static void chunks_of_several_lengths(void **context)
{
    (void)context;
    for (int round = 0; round < 4000; round++) {
        cm_cuts cuts;
        cm_touch_axis a = {.length = 1 + random_below(LONG_SIDE), .step = 1};
        cm_touch_stats stats;
        cm_error err = {0};
        const bool sharded = random_below(3) == 0;
        if (random_below(3) == 0)
            a.step = 1 + random_below(9);
        a.sample = 1 + random_below((a.length - 1) / a.step + 1);
        a.chunk = 1 + random_below(3);
        a.align = (cm_align)random_below(3);
        a.every = 1 + random_below(5);
        const uint64_t longest = cut_axis_at_random(&cuts, a.length, sharded ? a.chunk : 1);
        if (sharded) {
            a.shard = longest;
            a.shard_cuts = &cuts;
        } else {
            a.chunk = longest;
            a.cuts = &cuts;
        }
        uint64_t n = 0, most_bytes = 0, least_bytes = UINT64_MAX, most_shards = 0;
        double chunks = 0, nelem = 0;
        for (uint64_t o = 0; o + (a.sample - 1) * a.step < a.length; o++) {
            const bool begins =
                sharded ? o % a.chunk == 0 : cm_cuts_first(&cuts, cm_cuts_find(&cuts, o)) == o;
            uint64_t c, s, e;
            if ((a.align == CM_ALIGN_CHUNK && !begins) ||
                (a.align == CM_ALIGN_EVERY && o % a.every != 0))
                continue;
            meet_pieces(&a, o, &c, &s, &e);
            n++;
            chunks += (double)c;
            nelem += (double)e;
            most_bytes = cm_max_u64(most_bytes, 4 * e);
            least_bytes = cm_min_u64(least_bytes, 4 * e);
            most_shards = cm_max_u64(most_shards, s);
        }
        if (cm_touch_read(1, &a, 4, &stats, &err) != 0)
            fail_msg("round %d: %s", round, err.text);
        assert_true(fabs(stats.chunks.mean - chunks / (double)n) < 1e-12 * stats.chunks.mean);
        assert_true(fabs(stats.bytes.mean - 4 * nelem / (double)n) < 1e-12 * stats.bytes.mean);
        assert_int_equal(stats.bytes.max, most_bytes);
        assert_int_equal(stats.bytes.min, least_bytes);
        assert_int_equal(stats.shards.max, most_shards);
        cm_cuts_release(&cuts);
    }
}

static void equals_brute_force_in_one_dimension(void **context)
{
    (void)context;
    for (long i = 0; i < 50000; i++)
        check_case(i, 1, 30);
}

static void equals_brute_force_in_two_dimensions(void **context)
{
    (void)context;
    for (long i = 0; i < 40000; i++)
        check_case(i, 2, 8);
}

static void equals_brute_force_in_three_dimensions(void **context)
{
    (void)context;
    for (long i = 0; i < 10000; i++)
        check_case(i, 3, 5);
}

static void equals_brute_force_in_four_dimensions(void **context)
{
    (void)context;
    for (long i = 0; i < 3000; i++)
        check_case(i, 4, 3);
}

/* Chunks of a plane marked one by one, so that "chunks multiply" is itself tested. */
static void marking_a_plane_gives_the_same(void **context)
{
    (void)context;
    for (int n = 0; n < 500; n++) {
        cm_touch_axis a[2];
        uint64_t min = UINT64_MAX, max = 0, sum = 0, k = 0;
        for (int j = 0; j < 2; j++) {
            random_axis(&a[j], 6, false, CM_ALIGN_RANDOM, 1);
            a[j].length = (a[j].sample - 1) * a[j].step + 1 + random_below(6);
        }
        for (uint64_t oy = 0; oy + (a[0].sample - 1) * a[0].step < a[0].length; oy++)
            for (uint64_t ox = 0; ox + (a[1].sample - 1) * a[1].step < a[1].length; ox++, k++) {
                bool met[16][16] = {{false}};
                uint64_t count = 0;
                for (uint64_t y = 0; y < a[0].sample; y++)
                    for (uint64_t x = 0; x < a[1].sample; x++) {
                        bool *cell = &met[(oy + y * a[0].step) / a[0].chunk]
                                         [(ox + x * a[1].step) / a[1].chunk];
                        count += !*cell;
                        *cell = true;
                    }
                min = count < min ? count : min;
                max = count > max ? count : max;
                sum += count;
            }
        cm_touch_stats stats;
        assert_int_equal(cm_touch_read(2, a, 1, &stats, NULL), 0);
        assert_int_equal(stats.chunks.min, min);
        assert_int_equal(stats.chunks.max, max);
        assert_true(fabs(stats.chunks.mean - (double)sum / (double)k) < 1e-12 * stats.chunks.mean);
    }
}

static void floor_sums_equal_their_definition(void **context)
{
    (void)context;
    for (int i = 0; i < 20000; i++) {
        uint64_t n = random_below(60), m = 1 + random_below(50), a = random_below(200),
                 b = random_below(200), sum = 0;
        for (uint64_t k = 0; k < n; k++)
            sum += (a * k + b) / m;
        assert_true(cm_floor_sum(n, m, a, b) == sum);
    }
}

/* Distinct chunks of a batch, from the probability of every chunk, found by trying all offsets. */
static void batches_equal_brute_force(void **context)
{
    (void)context;
    for (int n = 0; n < 10000; n++) {
        unsigned rank = 1 + (unsigned)random_below(2);
        cm_touch_axis a[2];
        double p[2][128], want = 0, got;
        uint64_t nchunks[2] = {1, 1}, batch = 1 + random_below(40);
        cm_align align = (cm_align)random_below(3);
        uint64_t every = 1 + random_below(12);

        p[1][0] = 1;
        for (unsigned j = 0; j < rank; j++) {
            random_axis(&a[j], 14, false, align, every);
            uint64_t span = (a[j].sample - 1) * a[j].step + 1, total = 0;
            uint64_t step = align == CM_ALIGN_RANDOM  ? 1
                            : align == CM_ALIGN_CHUNK ? a[j].chunk
                                                      : every;
            a[j].length = span + random_below(60);
            nchunks[j] = cm_div_ceil(a[j].length, a[j].chunk);
            memset(p[j], 0, sizeof p[j]);
            for (uint64_t o = 0; o + span <= a[j].length; o += step, total++) {
                uint64_t last = UINT64_MAX;
                for (uint64_t i = 0; i < a[j].sample; i++) {
                    uint64_t at = (o + i * a[j].step) / a[j].chunk;
                    p[j][at] += at != last;
                    last = at;
                }
            }
            for (uint64_t i = 0; i < nchunks[j]; i++)
                p[j][i] /= (double)total;
        }
        for (uint64_t i = 0; i < nchunks[0]; i++)
            for (uint64_t k = 0; k < nchunks[1]; k++)
                want += 1 - pow(1 - p[0][i] * p[1][k], (double)batch);
        assert_int_equal(cm_touch_batch(rank, a, batch, &got, NULL), 0);
        if (fabs(got - want) > 1e-9 * want)
            fail_msg("case %d: %g, brute force %g", n, got, want);
    }
}

static const struct {
    const char *name;
    cm_touch_axis axis;
    int want;
} refused[] = {
    {"no sample", {0, 0, 1, 4, 0, CM_ALIGN_RANDOM, 0, NULL, NULL}, CM_EINVAL},
    {"no step", {0, 1, 0, 4, 0, CM_ALIGN_RANDOM, 0, NULL, NULL}, CM_EINVAL},
    {"no chunk", {0, 1, 1, 0, 0, CM_ALIGN_RANDOM, 0, NULL, NULL}, CM_EINVAL},
    {"every 0", {0, 1, 1, 4, 0, CM_ALIGN_EVERY, 0, NULL, NULL}, CM_EINVAL},
    {"sample over the array", {10, 11, 1, 4, 0, CM_ALIGN_RANDOM, 0, NULL, NULL}, CM_EINVAL},
    {"stride over the array", {10, 6, 2, 4, 0, CM_ALIGN_RANDOM, 0, NULL, NULL}, CM_EINVAL},
    {"span overflows",
     {0, UINT64_MAX, UINT64_MAX, 4, 0, CM_ALIGN_RANDOM, 0, NULL, NULL},
     CM_EINVAL},
    {"length over 2^62", {UINT64_MAX, 1, 1, 4, 0, CM_ALIGN_RANDOM, 0, NULL, NULL}, CM_EINVAL},
    {"shard no multiple", {0, 8, 1, 4, 6, CM_ALIGN_RANDOM, 0, NULL, NULL}, CM_EINVAL},
    {"shard too long to count",
     {UINT64_C(1) << 40, 10, 1, 4, UINT64_C(1) << 32, CM_ALIGN_EVERY, 3, NULL, NULL},
     CM_EUNSUPPORTED},
    {"stride that just fits", {11, 6, 2, 4, 0, CM_ALIGN_RANDOM, 0, NULL, NULL}, CM_OK},
};

static void wrong_axes_are_refused(void **context)
{
    (void)context;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        cm_touch_count count;
        cm_error err = {0};
        int rc = cm_touch_count_axis(&refused[i].axis, &count, &err);
        if (rc != refused[i].want || (rc != CM_OK && err.text[0] == 0))
            fail_msg("%s: %d, %s", refused[i].name, rc, err.text);
    }
}

static void overflow_is_reported(void **context)
{
    cm_touch_axis axis[3];
    cm_touch_stats stats;
    cm_error err;

    (void)context;
    for (int j = 0; j < 3; j++)
        axis[j] = (cm_touch_axis){.sample = UINT64_C(1) << 30, .step = 1, .chunk = 1};
    assert_int_equal(cm_touch_read(2, axis, 8, &stats, &err), CM_OK);
    assert_true(stats.bytes.max == UINT64_C(1) << 63);
    assert_int_equal(cm_touch_read(2, axis, 16, &stats, &err), CM_EINVAL);
    assert_int_equal(cm_touch_read(3, axis, 1, &stats, &err), CM_EINVAL);
    for (int j = 0; j < 3; j++)
        axis[j].chunk = UINT64_C(1) << 40;
    assert_int_equal(cm_touch_read(2, axis, 1, &stats, &err), CM_EINVAL);
}

/* Arrays of any size take no time: the whole of a petabyte is one division. */
static void huge_arrays_are_exact(void **context)
{
    cm_touch_axis a = {.length = UINT64_C(1) << 61, .sample = 1000, .step = 1, .chunk = 64};
    cm_touch_count count;

    (void)context;
    assert_int_equal(cm_touch_count_axis(&a, &count, NULL), 0);
    /* 999 = 15*64 + 39: 39 of 64 offsets meet one chunk more. */
    uint64_t n = (UINT64_C(1) << 61) - 999;
    assert_int_equal(count.chunks, 16);
    assert_int_equal(count.total, n);
    assert_int_equal(count.weight[1][0], n / 64 * 39 + (n % 64 > 25 ? n % 64 - 25 : 0));
}

/* Places that are all that fit, once each, are those of the closed form. */
static void test_places(void **unused)
{
    (void)unused;
    for (uint64_t chunk = 1; chunk <= 12; chunk++)
        for (uint64_t sample = 1; sample <= 10; sample++) {
            cm_touch_place place[10];
            size_t n = 0;
            for (uint64_t at = 0; at + sample <= 10; at++)
                place[n++] = (cm_touch_place){.first = at, .count = sample, .weight = 3};
            const cm_touch_axis axis = {.length = 10, .sample = sample, .step = 1, .chunk = chunk};
            assert_true(fabs(cm_touch_places_mean(place, n, chunk) - cm_touch_mean(&axis)) < 1e-9);
        }
    const cm_touch_place two[] = {{0, 4, 1}, {3, 2, 3}};
    assert_true(fabs(cm_touch_places_mean(two, 2, 4) - (1 * 1 + 3 * 2) / 4.0) < 1e-12);
    const cm_touch_place far = {UINT64_MAX - 5, 6, 1};
    assert_true(cm_touch_places_mean(&far, 1, 1) == 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(floor_sums_equal_their_definition),
        cmocka_unit_test(chunks_of_several_lengths),
        cmocka_unit_test(equals_brute_force_in_one_dimension),
        cmocka_unit_test(equals_brute_force_in_two_dimensions),
        cmocka_unit_test(equals_brute_force_in_three_dimensions),
        cmocka_unit_test(equals_brute_force_in_four_dimensions),
        cmocka_unit_test(marking_a_plane_gives_the_same),
        cmocka_unit_test(batches_equal_brute_force),
        cmocka_unit_test(wrong_axes_are_refused),
        cmocka_unit_test(overflow_is_reported),
        cmocka_unit_test(huge_arrays_are_exact),
    };
    return cmocka_run_group_tests_name("touch", tests, NULL, NULL);
}
