/*
 * Clashes that only the data of many files can show: files that must agree, and do not.  Looked for
 * before data move, so that a clash costs minutes and not hours.
 */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/number.h"
#include "base/threads.h"
#include "convert/source/clashes.h"

/* Differences of one variable that an option has decided about. */
typedef struct decided {
    uint64_t npairs, nelem; /* of files, that differ */
    size_t first_pair;
    double most;
} decided;

typedef struct inquiry {
    cm_job *job;
    const cm_multi_spec *spec;
    _Atomic size_t next;
    pthread_mutex_t lock; /* guards: */
    size_t worst;         /* the first check that failed; of those, so that it is always the same */
    cm_error error;
    cm_multi_clash clash;
    decided *decided; /* of each variable */
} inquiry;

/* True when the variable that is checked is converted. */
static bool is_wanted(const cm_job *job, size_t var)
{
    for (size_t i = 0; i < job->nvars; i++)
        if (job->var[i].source->index == var && !job->var[i].stored.as_objects)
            return true;
    return job->source->var[var].is_taken;
}

static void note(inquiry *q, size_t i, int rc, const cm_error *err, const cm_multi_clash *clash)
{
    bool differ = rc == CM_OK && clash->ndiffering > 0;
    if (rc == CM_OK && !differ)
        return;
    pthread_mutex_lock(&q->lock);
    if (differ && q->spec->check[i].may_differ) {
        decided *d = &q->decided[q->spec->check[i].var];
        if (d->npairs++ == 0 || i < d->first_pair)
            d->first_pair = i;
        d->nelem += clash->ndiffering;
        d->most = clash->most > d->most ? clash->most : d->most;
    } else if (i < q->worst) {
        q->worst = i;
        q->error = rc == CM_OK ? (cm_error){0} : *err;
        q->clash = *clash;
    }
    pthread_mutex_unlock(&q->lock);
}

static void worker_main(void *context, unsigned index)
{
    inquiry *q = context;
    (void)index;
    for (size_t i; (i = atomic_fetch_add(&q->next, 1)) < q->spec->nchecks;) {
        cm_error err = {0};
        cm_multi_clash clash = {0};
        if (!is_wanted(q->job, q->spec->check[i].var) ||
            (q->job->evidence.agreed != NULL && q->job->evidence.agreed[i]))
            continue;
        int rc = cm_monitor_canceled(q->job->options->monitor)
                     ? cm_fail(&err, CM_ECANCELED, "stopped by request")
                     : cm_multi_check_run(q->job->source, i, &clash, &err);
        note(q, i, rc, &err, &clash);
        if (rc != CM_OK || (clash.ndiffering > 0 && !q->spec->check[i].may_differ))
            atomic_store(&q->next, q->spec->nchecks);
    }
}

/* How far apart, as the rest of a sentence; "" where some are no numbers. */
static const char *most_text(double most, char *buf, size_t size)
{
    char number[40];
    buf[0] = '\0';
    if (isfinite(most) && most > 0)
        snprintf(buf, size, " by up to %s", cm_format_double(most, number, sizeof(number)));
    return buf;
}

static int tell_clash(const inquiry *q, cm_error *err)
{
    const cm_multi_check *check = &q->spec->check[q->worst];
    const cm_multi_var *v = &q->spec->var[check->var];
    const char *path[2] = {q->spec->file[check->part[0].file].path,
                           q->spec->file[check->part[1].file].path};
    char text[CM_MAX_RANK * 21], most[64];
    q->job->report->clash = check->what;
    for (int i = 0; i < 2; i++)
        q->job->report->clash_path[i] = path[i];
    cm_fail(
        err, CM_EFORMAT,
        "%s: variable %s: %s differ: element %s is %s, and %s in %s; %" PRIu64 " element%s%s%s%s",
        path[1], v->name, check->what, cm_coord_text(v->rank, q->clash.first, text, sizeof text),
        q->clash.value[1], q->clash.value[0], path[0], q->clash.ndiffering,
        cm_of_count(q->clash.ndiffering, " differs", "s differ"),
        most_text(q->clash.most, most, sizeof(most)), check->decide != NULL ? "; " : "",
        check->decide != NULL ? check->decide : "");
    cm_error_place(err, path[1]);
    return CM_EFORMAT;
}

/* Differences that an option decided about are counted. */
static int tell_decided(inquiry *q, cm_error *err)
{
    char most[64];
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < q->spec->nvars; i++) {
        const decided *d = &q->decided[i];
        const cm_multi_check *check = &q->spec->check[d->first_pair];
        if (d->npairs == 0)
            continue;
        q->job->evidence.inputs_differ = true;
        rc = cm_job_warn(q->job, err,
                         "%s: %" PRIu64 " element%s%s between files that have the same ones (%s), "
                         "in %" PRIu64 " pair%s of files; the first is %s",
                         q->spec->var[i].name, d->nelem,
                         cm_of_count(d->nelem, " differs", "s differ"),
                         most_text(d->most, most, sizeof(most)), check->what, d->npairs,
                         cm_of_count(d->npairs, "", "s"), q->spec->file[check->part[1].file].path);
    }
    return rc;
}

int cm_job_compare_inputs(cm_job *job, cm_error *err)
{
    const cm_multi_spec *spec = cm_multi_spec_of(job->source);
    if (spec == NULL || spec->nchecks == 0 || job->evidence.compared)
        return CM_OK;
    job->evidence.compared = true;
    inquiry q = {.job = job, .spec = spec, .worst = spec->nchecks};
    unsigned n = cm_job_threads(job);
    if ((q.decided = cm_calloc(spec->nvars + 1, sizeof(*q.decided), err)) == NULL)
        return CM_ENOMEM;
    pthread_mutex_init(&q.lock, NULL);
    cm_threads_run(n, worker_main, &q);
    pthread_mutex_destroy(&q.lock);
    int rc = CM_OK;
    if (q.worst == spec->nchecks)
        rc = tell_decided(&q, err);
    else if (q.error.status == CM_OK)
        rc = tell_clash(&q, err);
    else if ((rc = (int)q.error.status) != CM_OK && err != NULL)
        *err = q.error;
    free(q.decided);
    return rc;
}

int cm_job_inputs_unchanged(cm_job *job, cm_error *err)
{
    return cm_multi_spec_of(job->source) != NULL ? cm_multi_unchanged(job->source, err) : CM_OK;
}
