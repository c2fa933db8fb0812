/* A heap that is whole, and one that a write past the end of a block has damaged. */
#include "../unit.h"
#include "base/heap.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    NBLOCKS = 4000
};

/* Blocks of all sizes, a third of them free again, so that there are gaps and lists. */
static void churn(void)
{
    char **block = malloc(NBLOCKS * sizeof(*block));
    for (size_t i = 0; i < NBLOCKS; i++)
        assert_non_null(block[i] = malloc(1 + i * 7919 % (i % 100 == 0 ? 90000 : 700)));
    for (size_t i = 0; i < NBLOCKS; i += 3)
        free(block[i]);
    for (size_t i = 1; i < NBLOCKS; i += 6)
        block[i] = realloc(block[i], 3000);
}

/* In a child of one thread, as where it is used. */
static int end_of(int (*fn)(void))
{
    int status = -1;
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        _exit(fn());
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int stay_whole(void)
{
    cm_heap heap = cm_heap_find();
    churn();
    bool grown = cm_heap_is_whole(&heap);
    /* Where it cannot grow, glibc goes on elsewhere, and marks the end. */
    (void)setrlimit(RLIMIT_DATA, &(struct rlimit){0, RLIM_INFINITY});
    for (int i = 0; i < 3000; i++)
        free(malloc(1 + (size_t)i % 2 * 40000) == NULL ? NULL : malloc(200));
    return grown && cm_heap_is_whole(&heap) ? 0 : 1;
}

static size_t past;

/* Behind what a block may use lies the size of the next one. */
static int write_past(void)
{
    churn();
    cm_heap heap = cm_heap_find();
    if (heap.begin == NULL)
        return 2;
    char *volatile block = malloc(40), *volatile behind = malloc(40);
    memset(block, 0x7f, malloc_usable_size(block) + past);
    (void)behind;
    return cm_heap_is_whole(&heap) ? 1 : 0;
}

static void test_whole(void **state)
{
    (void)state;
    assert_int_equal(end_of(stay_whole), 0);
}

static void test_damaged(void **state)
{
    (void)state;
    past = 0;
    int untouched = end_of(write_past);
    if (untouched == 2)
        skip(); /* another allocator */
    assert_int_equal(untouched, 1);
    for (past = 1; past <= 16; past++)
        assert_int_equal(end_of(write_past), 0);
}

static int read_unwritten(void)
{
    volatile unsigned char *block;
    cm_heap_fill(true);
    block = malloc(5000);
    int first = block[4000];
    cm_heap_fill(false);
    return first;
}

static void test_unwritten(void **state)
{
    (void)state;
    if (end_of(write_past) == 2)
        skip();
    assert_int_equal(end_of(read_unwritten), 0xa5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_unwritten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
