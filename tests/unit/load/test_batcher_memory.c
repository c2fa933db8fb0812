/*
 * Every allocation of a pool and a loader fails once: what was asked for is then
 * refused with an error, or done when it is asked for again; nothing leaks.
 */
#include "batcher_fixture.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

static void test_allocations_fail(void **state)
{
    (void)state;
    skip(); /* a sanitizer has these functions for itself */
}

#else

#include <errno.h>

void *__libc_malloc(size_t nbytes);
void *__libc_calloc(size_t count, size_t size);
void __libc_free(void *block);

/* Allocations of this thread until one fails; 0: none does. */
static _Thread_local unsigned until_failure;
/* Blocks that this thread has allocated and not freed. */
static _Thread_local long nblocks;

static bool fails_now(void)
{
    if (until_failure == 0 || --until_failure > 0)
        return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t nbytes)
{
    void *block = fails_now() ? NULL : __libc_malloc(nbytes);
    nblocks += block != NULL;
    return block;
}

void *calloc(size_t count, size_t size)
{
    void *block = fails_now() ? NULL : __libc_calloc(count, size);
    nblocks += block != NULL;
    return block;
}

void free(void *block)
{
    nblocks -= block != NULL;
    __libc_free(block);
}

typedef struct run {
    fixture f;
    unsigned nerrors;
} run;

/* The call may fail, and then for want of memory or of a thread. */
static bool done(run *r, int rc)
{
    if (rc == CM_OK)
        return true;
    assert_true(rc == CM_ENOMEM || rc == CM_EIO);
    assert_true(r->f.err.text[0] != '\0');
    r->nerrors++;
    return false;
}

static void take_all(run *r)
{
    fixture *f = &r->f;
    for (uint64_t number = 0; number < f->share.nbatches;) {
        cm_load_batch b;
        bool more;
        if (!done(r, cm_batcher_next(f->loader, NULL, NULL, &b, &more, &f->err)))
            continue;
        assert_int_equal(b.number, number);
        if (b.status == CM_OK)
            assert_true(content_is_right(&f->problem, 0, &b));
        cm_batcher_release(f->loader, &b);
        number++;
    }
}

/* Pool, loader and an epoch, the planned one with a chunk that fails; as far as memory goes. */
static void run_through(run *r, const cm_load_source *source)
{
    fixture *f = &r->f;
    if (!done(r, cm_pool_create(&f->pool_options, source, &f->arena, &f->pool, &f->err)))
        return;
    if (!done(r, cm_batcher_create(f->pool, &f->arena, &f->options, &f->loader, &f->err)))
        return;
    if (done(r, cm_batcher_begin(f->loader, &f->share, 0, 0, &f->err)))
        take_all(r);
}

static void prepare(run *r, bool planned)
{
    fixture *f = &r->f;
    problem_init(&f->problem, CM_ORDER_RANDOM);
    set_share(f, 60, 8);
    f->options = (cm_batcher_options){.nworkers = 2, .prefetch = 2, .nslots = 3};
    if (!planned)
        return;
    problem_block(&f->problem, 0);
    f->problem.fail_chunk = 3;
    f->options.blocks = &f->problem.blocks;
    f->options.part = f->problem.part;
    f->options.window = 6;
    f->options.nframes = 8;
}

/* True: all allocations were done, N is past the last one. */
static bool fail_number(const kind *k, bool planned, unsigned n, unsigned *nerrors)
{
    run r = {0};
    prepare(&r, planned);
    start_pool(&r.f, k, 1);
    cm_pool_free(r.f.pool);
    r.f.pool = NULL;
    const cm_load_source source = {
        .context = &r.f.source, .open = source_open, .load = source_load, .close = source_close};
    const long before = nblocks;
    until_failure = n;
    run_through(&r, &source);
    bool all = until_failure > 0;
    until_failure = 0;
    *nerrors = r.nerrors;
    cm_batcher_free(r.f.loader);
    cm_pool_free(r.f.pool);
    assert_int_equal(nblocks, before);
    cm_arena_release(&r.f.arena);
    cm_blocks_release(&r.f.problem.blocks);
    return all;
}

static void test_allocations_fail(void **state)
{
    (void)state;
    for (int k = THREADS; k <= FORK; k++)
        for (int planned = 0; planned < 2; planned++) {
            unsigned nfailed = 0, nerrors;
            /* The first time leaves what the C library keeps for its threads. */
            assert_true(fail_number(&kinds[k], planned, UINT32_MAX, &nerrors));
            for (unsigned n = 1; !fail_number(&kinds[k], planned, n, &nerrors); n++)
                nfailed += nerrors > 0;
            assert_true(nfailed > (planned ? 20 : 10));
            assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        }
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_allocations_fail)};
    return cmocka_run_group_tests_name("loader, memory", tests, NULL, NULL);
}
