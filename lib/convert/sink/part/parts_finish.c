/*
 * The end of a store that parts make: whoever finds that all of them are done proves it and
 * writes the metadata.  It may be repeated, by this process or another, after a crash at any
 * point.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "convert/sink/part/parts.h"
#include "convert/sink/part/parts_claim.h"
#include "convert/sink/part/parts_counted.h"
#include "convert/sink/part/parts_status.h"
#include "convert/sink/store/store.h"
#include "convert/statistics/statistics.h"

bool cm_parts_is_complete(cm_job *job, cm_output *out)
{
    cm_parts_plan plan;
    bool complete = cm_parts_plan_read(&out->beside, &plan, NULL) == CM_OK && plan.complete &&
                    strcmp(plan.hash, job->parts->plan.hash) == 0;
    cm_parts_plan_release(&plan);
    return complete;
}

int cm_parts_check_plan(cm_job *job, cm_output *out, cm_error *err)
{
    cm_parts_plan plan;
    int rc = cm_parts_plan_read(&out->beside, &plan, err);
    if (rc == CM_OK && (plan.json == NULL || strcmp(plan.hash, job->parts->plan.hash) != 0))
        rc = cm_fail(err, CM_EEXIST, "%s: another run replaced the plan meanwhile; start again",
                     out->path);
    cm_parts_plan_release(&plan);
    return rc;
}

bool cm_parts_is_replaced(cm_job *job, cm_output *out)
{
    return cm_parts_check_plan(job, out, NULL) == CM_EEXIST;
}

/* With the output's lock: whether all that parts say that they made is there. */
static int prove_all(cm_job *job, cm_output *out, cm_error *err)
{
    char *wrong = NULL;
    cm_part_lack first;
    int rc = cm_part_claims_prove(job, out, 0, job->parts->plan.nparts, &wrong, &first, err);
    if (rc == CM_OK && wrong != NULL)
        rc = cm_fail(err, CM_ENOTFOUND,
                     "objects were removed or changed after they were made: part %" PRIu64
                     " made %" PRIu64 ", %" PRIu64 " are there; run part %s again",
                     first.number + 1, first.claimed.nobjects, first.there.nobjects, wrong);
    free(wrong);
    if (rc != CM_OK)
        cm_error_place(err, out->path);
    return rc;
}

/* ---- what was killed left ---- */

/* Documents in the folder of a node, and in those above it: whoever wrote them lost the lock. */
static int sweep_node(cm_store *store, const char *path, cm_error *err)
{
    char *folder = cm_strdup(path, err);
    int rc = folder == NULL ? CM_ENOMEM : CM_OK;
    for (char *end = folder; rc == CM_OK && *folder != '\0'; *end = '\0') {
        rc = cm_store_sweep_temporaries(store, folder, false, err);
        end = strrchr(folder, '/');
        end = end == NULL ? folder : end;
    }
    free(folder);
    return rc;
}

/*
 * A process that was killed while it finished the store left a document that has no name yet, and
 * one that published the plan its journal of what was overwritten.  With the output's lock, and
 * where every part is done, nobody else writes into these folders.
 */
static int sweep_left(cm_job *job, cm_output *out, cm_error *err)
{
    cm_made made = {0};
    bool folders = !cm_store_is_remote(out->store);
    int rc = cm_parts_abort_uploads(out->store, err);
    if (rc == CM_OK && folders)
        rc = cm_job_list_made(job, &made, err);
    if (rc == CM_OK && folders)
        rc = cm_store_sweep_temporaries(out->store, "", false, err);
    for (size_t i = 0; rc == CM_OK && i < made.n; i++)
        rc = sweep_node(out->store, made.node[i].path, err);
    if (rc == CM_OK)
        cm_beside_remove(&out->beside, out->journal);
    free(made.node);
    return rc;
}

/* ---- the end ---- */

static int write_statistics(cm_job *job, cm_output *out, cm_error *err)
{
    int rc = cm_parts_counted_join(job, &out->beside, err);
    return rc == CM_OK ? cm_statistics_write(job, out->path, err) : rc;
}

/* With the output's lock: the end of parts that add to a store. */
static int finish_addition(cm_job *job, cm_output *out, cm_lock *lock, cm_error *err)
{
    const cm_parts_hooks *hooks = job->parts->hooks;
    int rc = cm_store_sync(out->store, err);
    if (rc == CM_OK)
        rc = hooks->finish(hooks->context, job, lock, err);
    if (rc == CM_OK)
        rc = cm_part_claims_close(job, out, err);
    job->report->part.finished = rc == CM_OK;
    if (rc == CM_OK && hooks->chunks != NULL)
        hooks->chunks->closed(hooks->context);
    return rc;
}

/* With the output's lock. */
static int write_metadata(cm_job *job, cm_output *out, cm_error *err)
{
    cm_store_counts before = cm_store_count(out->store);
    int rc = cm_job_write_metadata(job, out->store, err);
    cm_store_counts after = cm_store_count(out->store);
    if (rc != CM_OK) {
        cm_error_place(err, out->path);
        return rc;
    }
    job->report->nobjects += after.nput - before.nput;
    job->report->stored_nbytes += after.put_nbytes - before.put_nbytes;
    rc = cm_store_sync(out->store, err);
    if (rc == CM_OK && job->options->statistics)
        rc = write_statistics(job, out, err);
    if (rc == CM_OK)
        rc = cm_part_claims_close(job, out, err);
    job->report->part.finished = rc == CM_OK;
    return rc;
}

static bool is_over(cm_job *job, cm_output *out)
{
    return cm_parts_is_complete(job, out) || cm_parts_is_replaced(job, out);
}

/* The metadata, unless another process writes them meanwhile. */
static int complete_store(cm_job *job, cm_output *out, cm_error *err)
{
    cm_lock *lock = NULL;
    int rc = cm_parts_wait(job, out, CM_LOCK_OUTPUT, &lock, is_over, err);
    if (rc == CM_OK && lock != NULL && !is_over(job, out)) {
        bool adds = job->parts->hooks != NULL;
        rc = prove_all(job, out, err);
        if (rc == CM_OK && !adds)
            rc = sweep_left(job, out, err);
        if (rc == CM_OK)
            rc = cm_lock_check(lock, &out->beside, err);
        if (rc == CM_OK)
            rc = adds ? finish_addition(job, out, lock, err) : write_metadata(job, out, err);
    }
    cm_lock_release(lock, &out->beside);
    return rc;
}

static bool is_tidy(cm_job *job, cm_output *out)
{
    return cm_parts_left(&out->beside) < CM_LEFT_FILES || cm_parts_is_replaced(job, out);
}

/*
 * Part files are removed under the output's lock, for files of the next plan have the same names.
 * Only part files are worth waiting for the lock: a lock alone, and temporaries, are removed by the
 * lock's holder.
 */
static void tidy(cm_job *job, cm_output *out)
{
    const cm_lock_request request = {.name = CM_LOCK_OUTPUT, .of_part = true};
    cm_left left = cm_parts_left(&out->beside);
    cm_lock *lock = NULL;
    char *note = NULL;
    if (left == CM_LEFT_FILES)
        (void)cm_parts_wait(job, out, CM_LOCK_OUTPUT, &lock, is_tidy, NULL);
    else if (left != CM_LEFT_NOTHING)
        (void)cm_lock_take_as(&out->beside, &request, &lock, &note, NULL);
    if (lock != NULL && cm_parts_is_complete(job, out))
        cm_parts_tidy(&out->beside);
    cm_lock_release(lock, &out->beside);
    free(note);
}

int cm_parts_finish(cm_job *job, cm_output *out, cm_error *err)
{
    cm_parts *p = job->parts;
    cm_part_report *r = &job->report->part;
    cm_parts_report all = {0};
    int rc = cm_parts_look(&out->beside, &p->plan, &all, err);
    if (rc == CM_OK && !all.complete && all.count[CM_PART_DONE] == p->plan.nparts)
        rc = complete_store(job, out, err);
    bool complete = rc == CM_OK && cm_parts_is_complete(job, out);
    if (complete)
        tidy(job, out);
    /* The next plan of a store that grew is no trouble of this job's. */
    if (rc == CM_OK && !complete && p->hooks != NULL && cm_parts_is_replaced(job, out))
        complete = p->hooks->is_in(p->hooks->context);
    if (rc == CM_OK && !complete)
        rc = cm_parts_check_plan(job, out, err);
    r->complete = job->report->written = complete;
    r->ndone = complete ? p->plan.nparts : all.count[CM_PART_DONE];
    r->nrunning = complete ? 0 : all.count[CM_PART_RUNNING];
    r->missing = complete ? cm_strdup("", err)
                          : cm_parts_list(&all, 1 << CM_PART_MISSING | 1 << CM_PART_STALE, err);
    cm_parts_report_release(&all);
    return rc == CM_OK && r->missing == NULL ? CM_ENOMEM : rc;
}
