#include "archive/survey/ahead.h"

#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/threads.h"

/* ---- telling the children ---- */

static void tell(cm_ahead *a, size_t at, cm_ahead_state state)
{
    atomic_store(&a->state[at], state);
    (void)syscall(SYS_futex, &a->state[at], FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool cm_ahead_must_wait(cm_ahead *a, size_t at)
{
    return a->state != NULL && a->copy[at] != NULL && atomic_load(&a->state[at]) == CM_AHEAD_COMING;
}

bool cm_ahead_wait(cm_ahead *a, size_t at, char path[CM_COPY_PATH_SIZE])
{
    const struct timespec turn = {.tv_sec = 1};
    while (cm_ahead_must_wait(a, at))
        (void)syscall(SYS_futex, &a->state[at], FUTEX_WAIT, CM_AHEAD_COMING, &turn, NULL, 0);
    return atomic_load(&a->state[at]) == CM_AHEAD_HERE &&
           cm_copy_path(a->copy[at], path, NULL) == CM_OK;
}

/* ---- the threads ---- */

/* Another object has the name, none, or nobody may read it: that is about this file alone. */
static bool is_of_file(const cm_error *err)
{
    return !err->passes && (err->status == CM_EFORMAT || err->status == CM_ENOTFOUND ||
                            err->status == CM_EUNSUPPORTED);
}

void cm_ahead_advise(cm_error *err)
{
    if (err->passes)
        cm_error_suffix(err, "; that is no fault of the file: run the same command again");
}

static void fail(cm_ahead *a, size_t at, cm_error *why)
{
    cm_ahead_failure *f = is_of_file(why) ? calloc(1, sizeof(*f)) : NULL;
    cm_ahead_advise(why);
    pthread_mutex_lock(&a->lock);
    if (f != NULL) {
        *f = (cm_ahead_failure){.next = a->failed, .at = at, .why = *why};
        a->failed = f;
    } else if (a->fatal == CM_OK) {
        a->fatal = why->status;
        a->fatal_why = *why;
    }
    pthread_mutex_unlock(&a->lock);
    tell(a, at, CM_AHEAD_FAILED);
}

/*
 * The next that there is room for, in the order of the survey: later ones must not take the room of
 * those that the children wait for.  False: there is none.
 */
static bool next_file(cm_ahead *a, size_t *at)
{
    bool found = false;
    cm_error ignored = {0};
    pthread_mutex_lock(&a->turn);
    while (!found && !atomic_load(&a->stop) && a->next < a->ntodo) {
        *at = a->todo[a->next++];
        found = a->copy[*at] != NULL && atomic_load(&a->state[*at]) == CM_AHEAD_COMING;
        /* A copy that fails here fails when it is taken, too. */
        if (found)
            (void)cm_copy_await(a->copy[*at], &ignored);
        found = found && !atomic_load(&a->stop);
    }
    pthread_mutex_unlock(&a->turn);
    return found;
}

static void *run(void *context)
{
    cm_ahead *a = context;
    for (size_t at; next_file(a, &at);) {
        char path[CM_COPY_PATH_SIZE];
        cm_error why = {0};
        bool taken;
        int rc = cm_copy_take(a->copy[at], CM_COPY_NOW, &taken, path, &why);
        if (rc == CM_OK) {
            pthread_mutex_lock(&a->lock);
            a->leased[at] = true;
            pthread_mutex_unlock(&a->lock);
            tell(a, at, CM_AHEAD_HERE);
        } else if (!atomic_load(&a->stop)) {
            fail(a, at, &why);
        }
    }
    return NULL;
}

/* ---- for the parent ---- */

int cm_ahead_init(cm_ahead *a, cm_copies *copies, cm_copy *const *copy, size_t n, cm_error *err)
{
    *a = (cm_ahead){.copies = copies, .copy = copy, .n = n};
    pthread_mutex_init(&a->lock, NULL);
    pthread_mutex_init(&a->turn, NULL);
    if (copies == NULL || n == 0)
        return CM_OK;
    if ((a->leased = cm_calloc(n, sizeof(a->leased[0]), err)) == NULL)
        return CM_ENOMEM;
    void *shared = mmap(NULL, n * sizeof(a->state[0]), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return cm_fail(err, CM_ENOMEM, "no memory to survey %zu files", n);
    a->state = shared;
    return cm_copies_prepare(copies, err);
}

void cm_ahead_release(cm_ahead *a)
{
    cm_ahead_stop(a);
    for (cm_ahead_failure *f = a->failed, *next; f != NULL; f = next) {
        next = f->next;
        free(f);
    }
    if (a->state != NULL)
        munmap(a->state, a->n * sizeof(a->state[0]));
    free(a->leased);
    pthread_mutex_destroy(&a->lock);
    pthread_mutex_destroy(&a->turn);
}

int cm_ahead_start(cm_ahead *a, const size_t *todo, size_t ntodo, cm_error *err)
{
    if (a->state == NULL)
        return CM_OK;
    a->todo = todo;
    a->ntodo = ntodo;
    a->next = 0;
    atomic_store(&a->stop, false);
    cm_copies_stop(a->copies, false);
    while (a->nthreads < CM_AHEAD_THREADS && a->nthreads < ntodo) {
        int errnum = cm_thread_begin(&a->thread[a->nthreads], run, a);
        if (errnum != 0 && a->nthreads == 0)
            return cm_fail_errno(err, errnum, "no thread can be made that fetches inputs");
        if (errnum != 0)
            break;
        a->nthreads++;
    }
    return CM_OK;
}

void cm_ahead_stop(cm_ahead *a)
{
    if (a->state == NULL)
        return;
    atomic_store(&a->stop, true);
    cm_copies_stop(a->copies, true);
    while (a->nthreads > 0)
        pthread_join(a->thread[--a->nthreads], NULL);
    cm_copies_stop(a->copies, false);
    for (size_t i = 0; i < a->n; i++) {
        if (!a->leased[i])
            continue;
        a->leased[i] = false;
        atomic_store(&a->state[i], CM_AHEAD_COMING);
        cm_copy_give(a->copy[i]);
    }
}

void cm_ahead_done(cm_ahead *a, size_t at)
{
    if (a->state == NULL)
        return;
    pthread_mutex_lock(&a->lock);
    bool leased = a->leased[at];
    a->leased[at] = false;
    pthread_mutex_unlock(&a->lock);
    if (leased)
        cm_copy_give(a->copy[at]);
}

void cm_ahead_undo(cm_ahead *a, size_t at)
{
    if (a->state == NULL || atomic_load(&a->state[at]) != CM_AHEAD_HERE)
        return;
    atomic_store(&a->state[at], CM_AHEAD_COMING);
    cm_ahead_done(a, at);
}

cm_ahead_failure *cm_ahead_failed(cm_ahead *a)
{
    if (a->state == NULL)
        return NULL;
    pthread_mutex_lock(&a->lock);
    cm_ahead_failure *list = a->failed;
    a->failed = NULL;
    pthread_mutex_unlock(&a->lock);
    return list;
}

int cm_ahead_check(cm_ahead *a, cm_error *err)
{
    if (a->state == NULL)
        return CM_OK;
    pthread_mutex_lock(&a->lock);
    int rc = (int)a->fatal;
    if (rc != CM_OK && err != NULL)
        *err = a->fatal_why;
    pthread_mutex_unlock(&a->lock);
    return rc;
}
