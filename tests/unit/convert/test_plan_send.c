/* Memory for pieces and chunks on their way to a server; the store only says how large they are. */

#include "base/budget.h"
#include "base/cpu.h"
#include "convert/plan/plan_send.h"
#include "job_fixture.h"
#include "store/impl.h"

#define MIB ((size_t)1 << 20)

typedef struct sending {
    cm_store base; /* first */
    size_t piece[CM_STORE_PIECES], put;
    cm_store_limits limits; /* the last that were set */
} sending;

static void set_limits(cm_store *store, const cm_store_limits *limits)
{
    ((sending *)store)->limits = *limits;
}

static size_t piece_nbytes(const cm_store *store)
{
    const sending *s = (const sending *)store;
    return s->piece[s->limits.pieces];
}

static size_t put_nbytes(const cm_store *store)
{
    return ((const sending *)store)->put;
}

static const cm_store_memory_ops MEMORY = {
    .limit = set_limits, .piece_nbytes = piece_nbytes, .put_nbytes = put_nbytes};
static const cm_store_ops SENDS = {.memory = &MEMORY};

static const struct {
    const char *name;
    unsigned pieces; /* the size that is tried */
    size_t piece, put, limit, held;
    bool objects; /* are copied: they are sent in pieces */
    bool fits;
    size_t ahead;
    bool last;
} TRIES[] = {
    {"a store without pieces", 0, 0, 0, 100 * MIB, 0, true, true, 0, true},
    {"nothing that is sent in pieces", 0, 16 * MIB, 0, 100 * MIB, 0, false, true, 0, true},
    {"files that threads fill", 0, 16 * MIB, 1, 1024 * MIB, 0, false, true, 64 * MIB, false},
    {"a quarter holds one piece of these", 0, 16 * MIB, 0, 127 * MIB, 0, true, false, 0, false},
    {"and two", 0, 16 * MIB, 0, 128 * MIB, 0, true, true, 32 * MIB, false},
    {"what is held is not free", 1, 8 * MIB, 0, 128 * MIB, 65 * MIB, true, false, 0, false},
    {"nor more than the limit", 1, 8 * MIB, 0, 1 * MIB, 2 * MIB, true, false, 0, false},
    {"no more than four", 1, 8 * MIB, 0, 1024 * MIB, 1 * MIB, true, true, 32 * MIB, false},
    {"one of the smallest in any case", 2, 5 * MIB, 0, 1 * MIB, 2 * MIB, true, true, 5 * MIB, true},
    {"and three", 2, 5 * MIB, 0, 61 * MIB, 0, true, true, 15 * MIB, true},
};

static void pieces_are_tried(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(TRIES); i++) {
        cm_job_var v = {.stored.as_objects = TRIES[i].objects};
        cm_job job = {.var = &v,
                      .nvars = 1,
                      .budget = {.limit_nbytes = TRIES[i].limit, .held_nbytes = TRIES[i].held}};
        sending s = {.base.ops = &SENDS, .put = TRIES[i].put};
        s.piece[TRIES[i].pieces] = TRIES[i].piece;
        const bool fits = cm_send_try(&job, &s.base, TRIES[i].pieces);
        const cm_budget *b = &job.budget;
        if (fits != TRIES[i].fits || b->sending.ahead_nbytes != TRIES[i].ahead ||
            b->held_nbytes != TRIES[i].held + TRIES[i].ahead || b->last_pieces != TRIES[i].last)
            fail_msg("%s: %d, %zu ahead, %zu held, %d", TRIES[i].name, fits,
                     b->sending.ahead_nbytes, (size_t)b->held_nbytes, b->last_pieces);
        assert_int_equal(s.limits.pieces, TRIES[i].pieces);
        assert_true(s.limits.ahead_nbytes == SIZE_MAX && s.limits.most_nbytes == SIZE_MAX);
        assert_int_equal(b->put_nbytes, TRIES[i].put);
    }
}

/* Chunks of each worker that may be on their way. */
static void chunks_ahead(void **state)
{
    static const struct {
        const char *name;
        size_t encoded, slot, request;
        unsigned nthreads;
        size_t free;
        unsigned n;
    } ROWS[] = {
        {"nothing is handed over", 0, 0, 1000, 4, SIZE_MAX, 0},
        {"16 of small ones", 1000, 0, 0, 1, SIZE_MAX, 16},
        {"by four threads", 1000, 0, 0, 4, SIZE_MAX, 4},
        {"two for each of many", 1000, 0, 0, 100, SIZE_MAX, 2},
        {"128 MiB of large ones", 16 * MIB, 0, 0, 1, SIZE_MAX, 8},
        {"of these with their requests", 16 * MIB, 0, 1, 1, SIZE_MAX, 7},
        {"two of what is larger", 300 * MIB, 0, 0, 1, SIZE_MAX, 2},
        {"slots are larger than what is encoded", 1 * MIB, 16 * MIB, 0, 1, SIZE_MAX, 8},
        {"and smaller", 16 * MIB, 1 * MIB, 0, 1, SIZE_MAX, 8},
        {"a quarter of the memory holds three", 1 * MIB, 0, 0, 1, 12 * MIB, 3},
        {"not quite", 1 * MIB, 0, 0, 1, 12 * MIB - 1, 2},
        {"one for each of two threads", 1 * MIB, 0, 0, 2, 12 * MIB, 1},
        {"no room", 1 * MIB, 0, 0, 1, 4 * MIB - 1, 0},
        {"no memory", 1 * MIB, 0, 0, 1, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        const cm_job job = {.budget.request_nbytes = ROWS[i].request};
        const cm_worker_need need = {
            .encoded = ROWS[i].encoded, .sends.encoded = true, .sent_slot = ROWS[i].slot};
        const unsigned n = cm_send_chunks(&job, ROWS[i].nthreads, &need, ROWS[i].free);
        if (n != ROWS[i].n)
            fail_msg("%s: %u", ROWS[i].name, n);
    }
}

/* A worker's buffers, and for each chunk on its way what is handed over, and a request. */
static void workers(void **state)
{
    const cm_job job = {.budget = {.request_nbytes = 30, .put_nbytes = 500}};
    const cm_worker_need need = {.stored = 1000, .encoded = 2000, .sends.encoded = true};
    const size_t alone = 3000 + CM_BUDGET_PER_THREAD + 30 + 500;
    (void)state;
    assert_int_equal(cm_send_worker_nbytes(&job, &need, 0), alone);
    assert_int_equal(cm_send_worker_nbytes(&job, &need, 1), alone + 2030);
    assert_int_equal(cm_send_worker_nbytes(&job, &need, 3), alone + 3 * 2030);
}

static void more_pieces(void **state)
{
    const cm_job job = {.budget = {.piece_nbytes = 5, .sending.ahead_nbytes = 15}}, none = {0};
    (void)state;
    assert_int_equal(cm_send_ahead(&job), 8 * 5 - 15);
    assert_int_equal(cm_send_ahead(&none), 0);
}

/* ---- over a plan ---- */

static const made_file FLOATS = {"f", .var = {{"v", "float32", "t=4 y=1024", .chunk = "2 1024"}}};

static cm_target *target_of(planned *p)
{
    return (cm_target *)(uintptr_t)cm_zarr_writer_target(p->job.var[0].move.writer);
}

static void slots(void **state)
{
    const cm_transform_options options = {.chunks = TEXTS("v:4x512"), .codec = TEXTS("none")};
    planned p;
    (void)state;
    planned_make(&p, &FLOATS, &options, STEP_PLAN);
    assert_int_equal(p.status, CM_OK);
    assert_int_equal(cm_send_slots_nbytes(&p.job.var[0], 3), 8192);
    target_of(&p)->sends = true;
    assert_int_equal(cm_send_slots_nbytes(&p.job.var[0], 0), 8192);
    assert_int_equal(cm_send_slots_nbytes(&p.job.var[0], 3), 4 * 8192);
    planned_release(&p);
}

/* The most that the store may take: shards in assembly, files that threads fill, and pieces. */
static void limits(void **state)
{
    sending s = {.base.ops = &SENDS};
    planned p;
    (void)state;
    planned_make(&p, &FLOATS, NULL, STEP_PLAN);
    p.job.budget = (cm_budget){.sent_nbytes = 1000,
                               .nthreads = 3,
                               .put_nbytes = 10,
                               .ahead_nbytes = 200,
                               .sending = {2, 50, 0}};
    target_of(&p)->sent_nbytes = 5000; /* of numbers: the plan counted it */
    cm_send_limit(&p.job, &s.base);
    assert_int_equal(s.limits.pieces, 2);
    assert_int_equal(s.limits.ahead_nbytes, 250);
    assert_int_equal(s.limits.most_nbytes, 1000 + 3 * 10 + 250);
    p.job.var[0].view.as_strings = true;
    p.job.budget.ahead_nbytes = 0;
    cm_send_limit(&p.job, &s.base);
    assert_int_equal(s.limits.most_nbytes, 5000 + 250);
    p.job.var[0].view.as_strings = false;
    planned_release(&p);
}

/* Threads wait for a network, but not where the store sends while they compute. */
static void threads(void **state)
{
    static const cm_net *const NET = (const cm_net *)&MEMORY; /* never looked at */
    static const struct {
        const char *name;
        unsigned asked;
        bool net;
        size_t piece;
        bool sends;
        unsigned least; /* of them, where the machine has fewer CPUs */
    } ROWS[] = {
        {"as many as are asked for", 3, true, 1, true, 3},
        {"one for each CPU", 0, false, 0, false, 1},
        {"behind a network", 0, true, 0, true, 16},
        {"chunks that are sent meanwhile", 0, true, 1, true, 1},
        {"chunks for which a thread waits", 0, true, 1, false, 16},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        sending s = {.base.ops = &SENDS, .piece = {ROWS[i].piece}};
        planned p;
        planned_make(&p, &FLOATS, NULL, STEP_PLAN);
        target_of(&p)->sends = ROWS[i].sends;
        p.options.nthreads = ROWS[i].asked;
        p.options.net = ROWS[i].net ? (cm_net *)(uintptr_t)NET : NULL;
        const unsigned cpus = ROWS[i].asked > 0 ? 0 : cm_cpu_count();
        const unsigned wanted = cpus > ROWS[i].least ? cpus : ROWS[i].least;
        if (cm_send_threads(&p.job, &s.base) != wanted)
            fail_msg("%s: %u, not %u", ROWS[i].name, cm_send_threads(&p.job, &s.base), wanted);
        p.options.net = NULL;
        planned_release(&p);
    }
}

/* Long shards take a few threads even on one CPU. */
static void threads_of_long_shards(void **state)
{
    static const made_file LARGE = {
        "f", .var = {{"v", "int8", "t=2 y=2"}, {"small", "int8", "t=2", .values = "0 1"}}};
    const cm_transform_options options = {.chunks = TEXTS("v:1x2"), .shards = TEXTS("v:2x2")};
    sending s = {.base.ops = &SENDS, .piece = {1}};
    planned p;
    (void)state;
    planned_make(&p, &LARGE, &options, STEP_PLAN);
    assert_int_equal(p.status, CM_OK);
    const unsigned cpus = cm_cpu_count();
    p.options.net = (cm_net *)(uintptr_t)&MEMORY;
    target_of(&p)->shard_nbytes = 1;
    target_of(&p)->outer.chunk_nelem = (64 << 20) - 1;
    p.job.var[0].view.shape[0] = 64 << 20;
    assert_int_equal(cm_send_threads(&p.job, &s.base), cpus > 16 ? cpus : 16);
    target_of(&p)->outer.chunk_nelem++;
    assert_int_equal(cm_send_threads(&p.job, &s.base), cpus > 4 ? cpus : 4);
    p.job.var[0].view.shape[0] = 8; /* 16 elements of 18 are less than nine of ten */
    assert_int_equal(cm_send_threads(&p.job, &s.base), cpus > 16 ? cpus : 16);
    p.job.var[0].view.shape[0] = 10; /* 20 of 22 are more */
    assert_int_equal(cm_send_threads(&p.job, &s.base), cpus > 4 ? cpus : 4);
    p.options.net = NULL;
    planned_release(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(pieces_are_tried),
                                       cmocka_unit_test(chunks_ahead),
                                       cmocka_unit_test(workers),
                                       cmocka_unit_test(more_pieces),
                                       cmocka_unit_test(slots),
                                       cmocka_unit_test(limits),
                                       cmocka_unit_test(threads),
                                       cmocka_unit_test(threads_of_long_shards)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
