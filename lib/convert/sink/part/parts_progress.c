/*
 * How far a part is, written beside the store every few seconds; the first part adds
 * up what all of them say, for whoever watches it.
 */
#include <stdlib.h>

#include "base/ticker.h"
#include "convert/sink/part/parts.h"
#include "convert/sink/part/parts_status.h"

#define EVERY_NS        UINT64_C(10000000000)
#define REMOTE_EVERY_NS UINT64_C(60000000000) /* a few requests for each part */

struct cm_parts_teller {
    const cm_job *job;
    const cm_beside *beside;
    uint64_t all_nbytes; /* of all parts, decoded */
    cm_ticker ticker;
};

/* Failures to write or read progress are silent: the work does not suffer from them. */
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

static uint64_t tell_on(void *context)
{
    const cm_parts_teller *t = context;
    tell(t);
    return t->beside->remote ? REMOTE_EVERY_NS : EVERY_NS;
}

static uint64_t all_nbytes(const cm_job *job)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        uint64_t nbytes = v->source->dtype.nbytes;
        for (unsigned j = 0; j < v->view.rank; j++)
            nbytes *= v->view.shape[j];
        sum += nbytes;
    }
    return sum;
}

int cm_parts_tell(const cm_job *job, const cm_beside *beside, cm_parts_teller **out, cm_error *err)
{
    *out = NULL;
    if (job->options->monitor == NULL)
        return CM_OK;
    cm_parts_teller *t = cm_calloc(1, sizeof(*t), err);
    if (t == NULL)
        return CM_ENOMEM;
    t->job = job;
    t->beside = beside;
    t->all_nbytes = all_nbytes(job);
    /* The first time at once, so that the first line of progress tells of all parts. */
    if (cm_ticker_start(&t->ticker, tell_on(t), tell_on, t, NULL) == CM_OK)
        *out = t;
    else
        free(t);
    return CM_OK; /* without a thread nothing is told */
}

void cm_parts_tell_end(cm_parts_teller *t)
{
    if (t == NULL)
        return;
    cm_ticker_stop(&t->ticker);
    tell(t);
    free(t);
}
