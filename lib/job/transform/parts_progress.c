/*
 * How far a part is, written beside the store every few seconds; the first part adds
 * up what all of them say, for whoever watches it.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "job/transform/parts.h"
#include "job/transform/parts_status.h"

enum {
    EVERY_S = 10
};

struct cm_parts_teller {
    const cm_job *job;
    const cm_beside *beside;
    uint64_t all_nbytes; /* of all parts, decoded */
    pthread_t thread;
    pthread_mutex_t mutex; /* guards stop */
    pthread_cond_t wake;
    bool stop;
};

/* What cannot be written or read is not told: the work does not suffer from it. */
static void tell(const cm_parts_teller *t)
{
    const cm_parts *p = t->job->parts;
    cm_monitor *monitor = t->job->options->monitor;
    cm_parts_report all = {0};
    cm_snapshot s;
    cm_monitor_snapshot(monitor, &s);
    uint64_t done = s.phase == CM_PHASE_WORKING ? s.done_nbytes : s.total_nbytes;
    cm_json *note = cm_json_object();
    if (cm_json_set(note, "done_nbytes", cm_json_u64(done), NULL) == CM_OK &&
        cm_json_set(note, "total_nbytes", cm_json_u64(s.total_nbytes), NULL) == CM_OK)
        (void)cm_part_note(t->beside, p->progress, p->plan.hash, note, NULL);
    else
        cm_json_free(note);
    if (p->number != 0)
        return;
    if (cm_parts_look(t->beside, &p->plan, &all, NULL) == CM_OK) {
        uint64_t sum = all.complete ? t->all_nbytes : 0;
        for (uint64_t k = 0; all.part != NULL && k < all.nparts; k++)
            sum += k == p->number && all.part[k].state != CM_PART_DONE ? done
                                                                       : all.part[k].done_nbytes;
        cm_monitor_parts(monitor, all.nparts, all.count[CM_PART_DONE], sum, t->all_nbytes);
    }
    cm_parts_report_release(&all);
}

static void *tell_on(void *context)
{
    cm_parts_teller *t = context;
    struct timespec until;
    pthread_mutex_lock(&t->mutex);
    while (!t->stop) {
        pthread_mutex_unlock(&t->mutex);
        tell(t);
        pthread_mutex_lock(&t->mutex);
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_sec += EVERY_S;
        while (!t->stop && pthread_cond_timedwait(&t->wake, &t->mutex, &until) == 0)
            continue;
    }
    pthread_mutex_unlock(&t->mutex);
    return NULL;
}

static uint64_t all_nbytes(const cm_job *job)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        uint64_t nbytes = v->source->dtype.nbytes;
        for (unsigned j = 0; j < v->rank; j++)
            nbytes *= v->shape[j];
        sum += nbytes;
    }
    return sum;
}

int cm_parts_tell(const cm_job *job, const cm_beside *beside, cm_parts_teller **out, cm_error *err)
{
    pthread_condattr_t attr;
    sigset_t all, before;
    *out = NULL;
    if (job->options->monitor == NULL)
        return CM_OK;
    cm_parts_teller *t = cm_calloc(1, sizeof(*t), err);
    if (t == NULL)
        return CM_ENOMEM;
    t->job = job;
    t->beside = beside;
    t->all_nbytes = all_nbytes(job);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->wake, &attr);
    pthread_condattr_destroy(&attr);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&t->thread, NULL, tell_on, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed == 0) {
        *out = t;
        return CM_OK;
    }
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->mutex);
    free(t);
    return CM_OK; /* without a thread nothing is told */
}

void cm_parts_tell_end(cm_parts_teller *t)
{
    if (t == NULL)
        return;
    pthread_mutex_lock(&t->mutex);
    t->stop = true;
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->mutex);
    pthread_join(t->thread, NULL);
    tell(t);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->mutex);
    free(t);
}
