/*
 * How a part begins: the plan of its job is there, or this process publishes it, in the place of
 * one that is over, or given up.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"
#include "base/path.h"
#include "convert/plan/plan.h"
#include "convert/sink/part/parts_claim.h"
#include "convert/sink/store/store.h"
#include "convert/statistics/statistics.h"
#include "store/open.h"

static int read_plan(cm_job *job, cm_output *out, cm_error *err)
{
    cm_parts_plan_release(&job->parts->plan);
    int rc = cm_beside_open(&out->beside, true, err);
    return rc == CM_OK ? cm_parts_plan_read(&out->beside, &job->parts->plan, err) : rc;
}

/* In a bucket nothing tells a store that was removed from one of which nothing is made yet. */
static int target_is_gone(const cm_output *out, const cm_parts_plan *plan, bool *gone,
                          cm_error *err)
{
    const cm_store_options options = {.output = true, .net = out->net};
    struct stat st;
    cm_place place = CM_PLACE_FOLDER;
    bool there;
    int rc = CM_OK;
    if (!out->beside.remote) {
        rc = cm_path_stat(out->beside.root, &st, &there, err);
        *gone = rc == CM_OK && !(there && S_ISDIR(st.st_mode));
        return rc;
    }
    if (plan->complete)
        rc = cm_store_probe(out->root, &options, &place, err);
    *gone = rc == CM_OK && place == CM_PLACE_NOTHING;
    return rc;
}

static bool plan_is_there(cm_job *job, cm_output *out)
{
    cm_parts_plan plan;
    bool there = cm_parts_plan_read(&out->beside, &plan, NULL) == CM_OK && plan.json != NULL &&
                 strcmp(plan.hash, job->parts->plan.hash) != 0;
    cm_parts_plan_release(&plan);
    return there;
}

static int compare(const cm_job *job, cm_error *err)
{
    const cm_parts *p = job->parts;
    const cm_parts_chunks *chunks = cm_parts_chunks_of(p);
    int rc = cm_parts_compare(job, &p->plan, err);
    return rc == CM_OK && chunks != NULL ? chunks->compare(p->hooks->context, &p->plan, err) : rc;
}

static int is_gone(const cm_job *job, const cm_output *out, bool *gone, cm_error *err)
{
    const cm_parts *p = job->parts;
    const cm_parts_chunks *chunks = cm_parts_chunks_of(p);
    int rc = target_is_gone(out, &p->plan, gone, err);
    if (rc == CM_OK && !*gone && chunks != NULL && p->plan.complete)
        rc = chunks->is_gone(p->hooks->context, &p->plan, gone, err);
    return rc;
}

/* Behind "and ": what to do about a plan of something else. */
static const char *way_out(const cm_job *job)
{
    const cm_parts *p = job->parts;
    if (cm_parts_chunks_of(p) != NULL && !job->terms.grows)
        return "is not complete; run its parts, or begin again with `overwrite` and `break_lock`, "
               "which give them up";
    if (p->hooks != NULL)
        return "is not complete; run its parts, or let one process add to it with `break_lock`, "
               "which gives them up";
    return p->plan.complete ? "exists; `overwrite` begins again"
                            : "is not complete; remove it to begin again";
}

/*
 * Whether the plan that is there is to be replaced: *replace.  Nobody may be at it, and
 * the user must have asked for that: to overwrite what is complete; for what is not,
 * where others may be about to go on, to break their hold, too.
 */
static int judge_plan(cm_job *job, cm_output *out, bool *replace, cm_error *err)
{
    const cm_transform_options *o = job->options;
    const cm_parts_plan *plan = &job->parts->plan;
    cm_lock_holder who;
    uint64_t running = 0;
    cm_error why = {0};
    *replace = plan->json == NULL;
    if (*replace)
        return CM_OK;
    bool gone;
    int rc = is_gone(job, out, &gone, err);
    if (rc != CM_OK)
        return rc;
    rc = compare(job, &why);
    const bool same = rc == CM_OK && !gone;
    const bool again = cm_parts_chunks_of(job->parts) != NULL && plan->complete && o->overwrite &&
                       o->break_lock; /* one more commit */
    if (same && !again)
        return CM_OK;
    if (rc != CM_OK && rc != CM_EEXIST)
        return cm_fail(err, (cm_status)rc, "%s", why.text);
    /* Another plan is there because this one was done, or is not for the store as it is. */
    if (rc == CM_EEXIST && job->parts->hooks != NULL &&
        (rc = job->parts->hooks->check(job->parts->hooks->context, err)) != CM_OK)
        return rc;
    rc = cm_parts_running(&out->beside, &running, &who, err);
    if (rc != CM_OK)
        return rc;
    /* Data that another plan added before are part of the store now. */
    bool added = plan->complete && job->parts->hooks != NULL;
    *replace =
        running == 0 && (gone || added || (o->overwrite && (plan->complete || o->break_lock)));
    if (*replace || same)
        return CM_OK;
    if (gone)
        return cm_fail(err, CM_EEXIST, "%s: was removed while %" PRIu64 " %s it (%s)", out->path,
                       running, cm_of_count(running, "part writes", "parts write"), who.who);
    if (running > 0)
        return cm_fail(err, CM_EEXIST, "%s: %s; %" PRIu64 " %s (%s)", out->path, why.text, running,
                       cm_of_count(running, "part of it runs", "parts of it run"), who.who);
    return cm_fail(err, CM_EEXIST, "%s: %s, and %s", out->path, why.text, way_out(job));
}

int cm_parts_make_plan(cm_job *job, cm_output *out, cm_error *err)
{
    if (job->options->scratch == NULL && !out->beside.remote) {
        free(job->scratch.folder);
        if ((job->scratch.folder = cm_strdup(out->path, err)) == NULL)
            return CM_ENOMEM;
    }
    return cm_job_plan(job, out->store, err);
}

/* With the output's lock: what is there stays, but for an older plan. */
static int publish_addition(cm_job *job, cm_output *out, cm_error *err)
{
    const cm_parts_hooks *hooks = job->parts->hooks;
    cm_json *plan = NULL;
    bool published = false;
    int rc = hooks->check(hooks->context, err);
    if (rc == CM_OK)
        rc = cm_parts_propose(job, &plan, err);
    if (rc == CM_OK)
        rc = hooks->describe(hooks->context, plan, err);
    if (rc == CM_OK)
        rc = cm_parts_join(job, out, err);
    if (rc == CM_OK)
        rc = cm_parts_make_plan(job, out, err);
    if (rc == CM_OK && hooks->chunks != NULL)
        rc = hooks->chunks->clear(hooks->context, &job->parts->plan, err);
    if (rc == CM_OK)
        rc = cm_parts_forget(&out->beside, err);
    if (rc == CM_OK)
        rc = cm_parts_plan_publish(&out->beside, plan, &published, err);
    if (rc == CM_OK && !published)
        rc = cm_fail(err, CM_EEXIST, "%s: another process published a plan meanwhile", out->path);
    cm_json_free(plan);
    return rc;
}

/* With the output's lock, which other parts wait for: what is there goes, once. */
static int publish(cm_job *job, cm_output *out, cm_error *err)
{
    cm_made made = {0};
    cm_zarr_left left = {0};
    cm_json *plan = NULL;
    bool published = false;
    int rc = cm_output_decide(out, err);
    bool is_there = out->store != NULL;
    if (rc == CM_OK && job->options->statistics)
        rc = cm_statistics_check_place(job, out->path, err);
    if (rc == CM_OK)
        rc = cm_parts_propose(job, &plan, err);
    if (rc == CM_OK && is_there)
        rc = cm_parts_make_plan(job, out, err);
    if (rc == CM_OK)
        rc = cm_job_list_made(job, &made, err);
    if (rc == CM_OK)
        rc = cm_output_begin(out, &made, &left, err);
    if (rc == CM_OK && !is_there)
        rc = cm_parts_make_plan(job, out, err);
    if (rc == CM_OK)
        rc = cm_parts_plan_publish(&out->beside, plan, &published, err);
    /* Nothing is in it, and nobody else is about to fill it. */
    if (rc != CM_OK && !published && out->made && !out->beside.remote)
        rmdir(out->path);
    if (rc == CM_OK && !published)
        rc = cm_fail(err, CM_EEXIST, "%s: another process published a plan meanwhile", out->path);
    if (published || out->touched)
        cm_output_complete(out); /* the journal of the erasure */
    if (rc == CM_OK && left.n > 0)
        rc = cm_job_warn(job, err, "%s: %" PRIu64 " %s not the old store's, and stayed: %s%s",
                         out->path, left.n, cm_of_count(left.n, "file is", "files are"), left.names,
                         left.n > left.nnamed ? ", ..." : "");
    cm_json_free(plan);
    free(made.node);
    return rc;
}

int cm_parts_enter(cm_job *job, cm_output *out, cm_error *err)
{
    bool replace;
    for (;;) {
        cm_lock *lock = NULL;
        int rc = read_plan(job, out, err);
        if (rc == CM_OK)
            rc = judge_plan(job, out, &replace, err);
        if (rc != CM_OK || !replace)
            return rc;
        rc = cm_parts_wait(job, out, CM_LOCK_OUTPUT, &lock, plan_is_there, err);
        if (rc == CM_OK && lock != NULL) {
            /* Once more, now that nobody else can publish one. */
            rc = read_plan(job, out, err);
            if (rc == CM_OK)
                rc = judge_plan(job, out, &replace, err);
            if (rc == CM_OK && replace)
                rc = job->parts->hooks != NULL ? publish_addition(job, out, err)
                                               : publish(job, out, err);
            cm_lock_release(lock, &out->beside);
        }
        if (rc != CM_OK)
            return rc;
    }
}
