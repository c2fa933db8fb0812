
#include <stdio.h>

#include "../unit.h"
#include "base/paged.h"

enum {
    LISTS = 3000,
    LONGEST = 40000
};

static size_t length_of(size_t i)
{
    return i % 500 == 0 ? LONGEST : i * 7919 % 1500;
}

static void lists_stay_what_they_are(void **state)
{
    static const char *const FOLDER[] = {NULL, "/nowhere/at/all", "/tmp"};
    (void)state;
    for (size_t f = 0; f < sizeof(FOLDER) / sizeof(FOLDER[0]); f++) {
        static uint8_t *list[LISTS];
        cm_error err = {0};
        cm_paged *p = cm_paged_create(FOLDER[f], &err);
        assert_non_null(p);
        for (size_t i = 0; i < LISTS; i++) {
            list[i] = cm_paged_calloc(p, length_of(i), 1, &err);
            assert_non_null(list[i]);
            assert_int_equal((uintptr_t)list[i] % 16, 0);
            for (size_t k = 0; k < length_of(i); k++)
                assert_int_equal(list[i][k], 0);
            memset(list[i], (int)(i % 251) + 1, length_of(i));
            if (i % 97 == 0)
                cm_paged_let_go(p);
        }
        for (size_t i = 0; i < LISTS; i++) {
            cm_paged_touch(p, list[i], length_of(i));
            for (size_t k = 0; k < length_of(i); k++)
                assert_int_equal(list[i][k], i % 251 + 1);
        }
        cm_paged_free(p);
    }
}

/* Of this process, in KiB; what lies in a file and was let go does not count. */
static long resident(void)
{
    char line[128];
    long n = -1;
    FILE *f = fopen("/proc/self/status", "r");
    assert_non_null(f);
    while (fgets(line, sizeof(line), f) != NULL)
        (void)sscanf(line, "VmRSS: %ld", &n);
    fclose(f);
    assert_true(n > 0);
    return n;
}

/* Lists in a file, whose memory is measured: ThreadSanitizer's own would be counted too. */
static cm_paged *begin_measured(void)
{
#ifdef __SANITIZE_THREAD__
    skip();
#endif
    cm_error err = {0};
    cm_paged *p = cm_paged_create("/tmp", &err);
    assert_non_null(p);
    return p;
}

static void long_lists_take_little_memory(void **state)
{
    enum {
        N = 64,
        NBYTES = 1 << 20
    };
    (void)state;
    cm_error err = {0};
    cm_paged *p = begin_measured();
    long before = resident();
    for (size_t i = 0; i < N; i++) {
        uint8_t *list = cm_paged_calloc(p, NBYTES, 1, &err);
        assert_non_null(list);
        memset(list, 1, NBYTES);
    }
    cm_paged_let_go(p);
    assert_true(resident() - before < 8 << 10);
    cm_paged_free(p);
}

/* Lists touched before each access take little memory, in any order, without further calls. */
static void touched_lists_take_little_memory(void **state)
{
    enum {
        NBYTES = 64 << 20,
        STEP = 1 << 10,
        STRIDE = 40503 /* odd, so that it leads to every step */
    };
    (void)state;
    cm_error err = {0};
    cm_paged *p = begin_measured();
    uint8_t *list = cm_paged_calloc(p, NBYTES, 1, &err);
    assert_non_null(list);
    long before = resident(), most = before;
    for (size_t turn = 0; turn < 2; turn++)
        for (size_t i = 0; i < NBYTES / STEP; i++) {
            uint8_t *at = list + (turn == 0 ? i : i * STRIDE % (NBYTES / STEP)) * STEP;
            cm_paged_touch(p, at, STEP);
            if (turn == 0)
                memset(at, (int)(i % 251) + 1, STEP);
            else
                assert_int_equal(at[STEP - 1], (size_t)(at - list) / STEP % 251 + 1);
            if (i % 997 == 0 && resident() > most)
                most = resident();
        }
    uint8_t *copy = cm_paged_calloc(p, NBYTES, 1, &err);
    assert_non_null(copy);
    cm_paged_copy(p, copy, list, NBYTES);
    most = resident() > most ? resident() : most;
    assert_true(most - before < 2 << 10);
    cm_paged_let_go(p);
    assert_int_equal(memcmp(copy, list, NBYTES), 0);
    cm_paged_free(p);
}

static void too_long_a_list_is_refused(void **state)
{
    (void)state;
    cm_error err = {0};
    cm_paged *p = cm_paged_create(NULL, &err);
    assert_null(cm_paged_calloc(p, SIZE_MAX / 4, 8, &err));
    assert_int_equal(err.status, CM_ENOMEM);
    assert_null(cm_paged_calloc(p, SIZE_MAX - 8, 1, &err));
    assert_non_null(cm_paged_calloc(p, 1, 8, &err));
    cm_paged_free(p);
    cm_paged_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_stay_what_they_are),
        cmocka_unit_test(long_lists_take_little_memory),
        cmocka_unit_test(touched_lists_take_little_memory),
        cmocka_unit_test(too_long_a_list_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
