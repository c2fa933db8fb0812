/* Functions that end in every way, tried in a child process. */
#include "../unit.h"
#include "base/trial.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int succeed(void *context, cm_buf *record, cm_error *err)
{
    *(int *)context = 7; /* in the child's memory */
    return cm_buf_append(record, "what it found", 13, err);
}

static void test_returns(void **state)
{
    (void)state;
    int touched = 0;
    cm_buf record = {0};
    cm_trial_fate fate;
    cm_error err = {0};
    cm_buf_init(&record, 100);
    assert_int_equal(cm_trial_run(succeed, &touched, &(cm_trial_limits){0}, &record, &fate, &err),
                     CM_OK);
    assert_int_equal(fate.end, CM_TRIAL_RETURNED);
    assert_int_equal(touched, 0);
    assert_int_equal(record.nbytes, 13);
    assert_memory_equal(record.data, "what it found", 13);
    cm_buf_release(&record);
    errno = 0;
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* none is left to be reaped */
    assert_int_equal(errno, ECHILD);
}

static int refuse(void *context, cm_buf *record, cm_error *err)
{
    (void)record;
    return cm_fail(err, CM_EFORMAT, "%s: no such thing", (const char *)context);
}

static void test_fails(void **state)
{
    (void)state;
    char name[] = "x.nc";
    cm_trial_fate fate;
    cm_error err = {0};
    assert_int_equal(cm_trial_run(refuse, name, &(cm_trial_limits){0}, NULL, &fate, &err),
                     CM_EFORMAT);
    assert_int_equal(fate.end, CM_TRIAL_RETURNED);
    assert_string_equal(err.text, "x.nc: no such thing");
    assert_int_equal(err.status, CM_EFORMAT);
}

enum {
    LONG = 3 << 20 /* many times what a pipe holds */
};

static int tell_much(void *context, cm_buf *record, cm_error *err)
{
    (void)context;
    int rc = cm_buf_resize(record, LONG, err);
    for (size_t i = 0; rc == CM_OK && i < LONG; i++)
        record->data[i] = (uint8_t)(i * 7);
    return rc;
}

static void test_long_record(void **state)
{
    (void)state;
    cm_buf record;
    cm_trial_fate fate;
    cm_error err = {0};
    cm_buf_init(&record, LONG);
    assert_int_equal(cm_trial_run(tell_much, NULL, &(cm_trial_limits){0}, &record, &fate, &err),
                     CM_OK);
    assert_int_equal(record.nbytes, LONG);
    for (size_t i = 0; i < LONG; i++)
        assert_int_equal(record.data[i], (uint8_t)(i * 7));
    cm_buf_release(&record);
    cm_buf_init(&record, LONG - 1); /* the child's own buffer is no larger */
    assert_int_equal(cm_trial_run(tell_much, NULL, &(cm_trial_limits){0}, &record, &fate, &err),
                     CM_EBUDGET);
    cm_buf_release(&record);
}

/* ---- a child that stays ------------------------------------------------------------------ */

/* Gives back what it gets, plus what the function found; at 0 it dies, at 1 it loops. */
static void serve(void *context, int fd)
{
    int n;
    while (cm_fd_recv(fd, &n, sizeof n)) {
        cm_trial_renew_limits(1, 0);
        if (n == 0)
            abort();
        for (volatile unsigned i = 0; n == 1; i++) {
        }
        n += *(int *)context;
        if (!cm_fd_send(fd, &n, sizeof n))
            return;
    }
}

static int answer(cm_trial_child *child, int n)
{
    const cm_trial_limits limits = {0};
    int got = -1;
    assert_true(cm_fd_send(child->fd, &n, sizeof n));
    return cm_trial_receive(child, &got, sizeof got, &limits) ? got : -1;
}

static cm_trial_child keep(int *found)
{
    cm_buf record = {0};
    cm_trial_child child;
    cm_trial_fate fate;
    cm_error err = {0};
    cm_buf_init(&record, 100);
    assert_int_equal(cm_trial_keep(succeed, serve, found, &(cm_trial_limits){.cpu_s = 1}, &record,
                                   &fate, &child, &err),
                     CM_OK);
    assert_int_equal(fate.end, CM_TRIAL_RETURNED);
    assert_int_equal(record.nbytes, 13);
    assert_int_not_equal(child.pid, 0);
    cm_buf_release(&record);
    return child;
}

static void test_stays(void **state)
{
    (void)state;
    int found = 0;
    cm_trial_child child = keep(&found);
    assert_int_equal(answer(&child, 5), 12); /* 7 in the child's memory */
    assert_int_equal(answer(&child, 6), 13);
    assert_int_equal(cm_trial_part(&child, false).end, CM_TRIAL_RETURNED);
    assert_int_equal(child.pid, 0);
    assert_int_equal(cm_trial_part(&child, false).end, CM_TRIAL_NONE);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void test_stays_and_fails(void **state)
{
    (void)state;
    int found = 0;
    cm_trial_child child = keep(&found);
    assert_int_equal(answer(&child, 0), -1);
    cm_trial_fate fate = cm_trial_part(&child, false);
    assert_int_equal(fate.end, CM_TRIAL_CRASHED);
    assert_int_equal(fate.signal, SIGABRT);
    child = keep(&found);
    assert_int_equal(answer(&child, 1), -1); /* its limit is renewed for each request */
    assert_int_equal(cm_trial_part(&child, false).end, CM_TRIAL_ENDLESS);
    child = keep(&found);
    assert_int_equal(kill(child.pid, 0), 0);
    assert_int_equal(cm_trial_part(&child, true).signal, SIGKILL);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

static void test_stays_only_after_success(void **state)
{
    (void)state;
    char name[] = "x.nc";
    cm_trial_child child;
    cm_trial_fate fate;
    cm_error err = {0};
    assert_int_equal(
        cm_trial_keep(refuse, serve, name, &(cm_trial_limits){0}, NULL, &fate, &child, &err),
        CM_EFORMAT);
    assert_string_equal(err.text, "x.nc: no such thing");
    assert_int_equal(child.pid, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* ---- what does not return ---------------------------------------------------------------- */

static int die(void *context, cm_buf *record, cm_error *err)
{
    (void)record;
    (void)err;
    printf("not to be seen\n");
    fflush(stdout);
    raise(*(const int *)context);
    return CM_OK;
}

static int leave(void *context, cm_buf *record, cm_error *err)
{
    (void)context;
    (void)record;
    (void)err;
    _exit(0);
}

static int loop(void *context, cm_buf *record, cm_error *err)
{
    (void)record;
    (void)err;
    for (volatile unsigned i = 0; context != NULL; i++) {
    }
    return CM_OK;
}

static int wait_for_ever(void *context, cm_buf *record, cm_error *err)
{
    (void)record;
    (void)err;
    while (context == NULL)
        pause();
    return CM_OK;
}

static int want_100_gb(void *context, cm_buf *record, cm_error *err)
{
    (void)context;
    (void)record;
    void *p = mmap(NULL, (size_t)100 << 30, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return p == MAP_FAILED ? cm_fail(err, CM_ENOMEM, "refused") : CM_OK;
}

/* ThreadSanitizer brings an allocator of its own, whose heap is not checked. */
#ifdef __SANITIZE_THREAD__
#define END_OF_DAMAGED CM_TRIAL_RETURNED
#else
#define END_OF_DAMAGED CM_TRIAL_CRASHED
#endif

/* The block behind loses its size, and nobody sees it. */
static int overflow(void *context, cm_buf *record, cm_error *err)
{
    char *volatile block = malloc(1000), *volatile behind = malloc(1000);
    (void)context;
    (void)record;
    memset(block, 0, malloc_usable_size(block) + 16);
    return behind != NULL ? CM_OK : cm_fail(err, CM_ENOMEM, "no memory");
}

static bool third_time(void *context)
{
    return ++*(int *)context == 3;
}

static void test_other_ends(void **state)
{
    (void)state;
    int killed = SIGKILL, aborted = SIGABRT, asked = 0;
    const struct {
        const char *name;
        cm_trial_fn *fn;
        void *context;
        cm_trial_limits limits;
        int status;
        cm_trial_end end;
        int signal; /* 0: not looked at, sanitizers have handlers */
    } table[] = {
        {"killed", die, &killed, {0}, CM_OK, CM_TRIAL_CRASHED, SIGKILL},
        {"aborted", die, &aborted, {0}, CM_OK, CM_TRIAL_CRASHED, 0},
        {"exits", leave, NULL, {0}, CM_OK, CM_TRIAL_CRASHED, 0},
        {"loops", loop, &killed, {.cpu_s = 1}, CM_OK, CM_TRIAL_ENDLESS, 0},
        {"leaves a damaged heap", overflow, NULL, {0}, CM_OK, END_OF_DAMAGED, 0},
        {"waits for ever", wait_for_ever, NULL, {.wall_s = 1}, CM_OK, CM_TRIAL_LATE, 0},
        {"waits, and is not wanted any more",
         wait_for_ever,
         NULL,
         {.canceled = third_time, .context = &asked},
         CM_OK,
         CM_TRIAL_CANCELED,
         0},
        {"too much memory",
         want_100_gb,
         NULL,
         {.memory = 1 << 30},
         CM_ENOMEM,
         CM_TRIAL_RETURNED,
         0},
        {"memory without a limit", want_100_gb, NULL, {0}, CM_OK, CM_TRIAL_RETURNED, 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cm_trial_fate fate;
        cm_error err = {0};
        int rc = cm_trial_run(table[i].fn, table[i].context, &table[i].limits, NULL, &fate, &err);
        if (rc != table[i].status || fate.end != table[i].end ||
            (table[i].signal != 0 && fate.signal != table[i].signal))
            fail_msg("%s: status %d, end %d, signal %d", table[i].name, rc, fate.end, fate.signal);
    }
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
}

/* Neither signals of a terminal nor the parent's handlers affect the child. */
static int signal_itself(void *context, cm_buf *record, cm_error *err)
{
    (void)context;
    (void)record;
    (void)err;
    raise(SIGINT);
    raise(SIGTERM);
    raise(SIGPIPE);
    return CM_OK;
}

static void test_signals(void **state)
{
    (void)state;
    cm_trial_fate fate;
    cm_error err = {0};
    sigset_t before, after;
    sigprocmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(cm_trial_run(signal_itself, NULL, &(cm_trial_limits){0}, NULL, &fate, &err),
                     CM_OK);
    assert_int_equal(fate.end, CM_TRIAL_RETURNED);
    sigprocmask(SIG_SETMASK, NULL, &after);
    for (int s = 1; s < 32; s++)
        assert_int_equal(sigismember(&before, s), sigismember(&after, s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_returns),         cmocka_unit_test(test_fails),
        cmocka_unit_test(test_long_record),     cmocka_unit_test(test_other_ends),
        cmocka_unit_test(test_signals),         cmocka_unit_test(test_stays),
        cmocka_unit_test(test_stays_and_fails), cmocka_unit_test(test_stays_only_after_success),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
