/*
 * One part of several, from the plan to the metadata.
 *
 *     enter    the plan is there, or this process publishes it (parts_enter.c)
 *     claim    the part's lock; a double of this part is waited for
 *     move     the part's objects, verified and synced, then its file "done"
 *     finish   all parts are done and their objects there: the metadata, then the file "complete"
 *              (parts_finish.c)
 *
 * Every step may be repeated, by this process or another, after a crash at any point.
 */
#include "convert/sink/part/parts.h"
#include "base/number.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "convert/plan/part_cut.h"
#include "convert/sink/part/parts_claim.h"
#include "convert/sink/part/parts_counted.h"
#include "convert/sink/part/parts_status.h"
#include "convert/sink/store/store.h"
#include "convert/statistics/statistics.h"

/* ---- the part ---- */

static int name_files(cm_parts *p, cm_error *err)
{
    p->lock = cm_part_file(p->number, "lock", err);
    p->progress = cm_part_file(p->number, "progress", err);
    p->journal = cm_part_file(p->number, "journal", err);
    p->done = cm_part_file(p->number, "done", err);
    return p->lock && p->progress && p->journal && p->done ? CM_OK : CM_ENOMEM;
}

/* The part, or all of them: then the files of single ones may be gone. */
static bool is_done(cm_job *job, cm_output *out)
{
    cm_json *note = NULL;
    bool done = cm_part_noted(&out->beside, job->parts->done, job->parts->plan.hash, &note, NULL) ==
                    CM_OK &&
                note != NULL;
    cm_json_free(note);
    return done || cm_parts_is_complete(job, out);
}

/* Nothing is left to be waited for: the part of the next plan has a lock of the same name. */
static bool is_over(cm_job *job, cm_output *out)
{
    return is_done(job, out) || cm_parts_is_replaced(job, out);
}

/* A part that is done is not any more where its objects are gone. */
static int prove_own(cm_job *job, cm_output *out, cm_error *err)
{
    const uint64_t number = job->parts->number;
    cm_lock *lock = NULL;
    cm_part_claim claim, there;
    cm_part_lack lack;
    char *wrong = NULL;
    bool complete;
    int rc = cm_part_claim_read(job, &out->beside, number, &complete, &claim, err);
    if (rc == CM_OK && complete && cm_parts_chunks_of(job->parts) != NULL)
        return CM_OK; /* a commit, which goes its own way */
    if (rc == CM_OK && out->store == NULL)
        rc = cm_parts_join(job, out, err);
    if (rc == CM_OK)
        rc = cm_part_claims_see(job, out, number, 1, &there, err);
    if (rc != CM_OK || cm_part_claims_agree(&claim, &there) || (complete && !claim.there))
        return rc;
    /* Once more, now that nobody else takes claims back. */
    rc = cm_parts_wait(job, out, CM_LOCK_OUTPUT, &lock, NULL, err);
    if (rc == CM_OK && is_done(job, out))
        rc = cm_part_claims_prove(job, out, number, 1, &wrong, &lack, err);
    cm_lock_release(lock, &out->beside);
    if (rc == CM_OK && wrong != NULL)
        rc = cm_job_warn(job, err,
                         "%s: of %" PRIu64 " objects that this part made %" PRIu64
                         " are there as they were; it is made again",
                         out->path, lack.claimed.nobjects, lack.there.nobjects);
    free(wrong);
    return rc;
}

/*
 * The part's lock, or the knowledge that it is done.  A run without parts that
 * overwrites looks at the locks of parts after it took its own: one of the two sees
 * the other.
 */
static int claim(cm_job *job, cm_output *out, cm_error *err)
{
    cm_parts *p = job->parts;
    cm_lock_holder who;
    int rc = cm_parts_wait(job, out, p->lock, &p->own, is_over, err);
    if (rc != CM_OK)
        return rc;
    if (p->own == NULL)
        return is_done(job, out) ? CM_OK : cm_parts_check_plan(job, out, err);
    rc = cm_lock_look(&out->beside, CM_LOCK_OUTPUT, &who, err);
    if (rc == CM_OK && who.state == CM_LOCK_OF_RUN)
        rc = cm_fail(err, CM_EEXIST, "%s: another run is writing it (%s); wait for its end",
                     out->path, who.who);
    return rc == CM_OK ? cm_parts_check_plan(job, out, err) : rc;
}

/* Goes on where the part was stopped, or begins its journal. */
static int open_journal(cm_job *job, cm_output *out, const cm_made *made, cm_journal **journal,
                        cm_error *err)
{
    static const cm_made nothing = {0};
    cm_parts *p = job->parts;
    cm_json *is = cm_json_object();
    cm_journal_phase phase;
    uint64_t done = 0;
    int rc = cm_json_set(is, "plan", cm_json_string(p->plan.hash), err);
    if (rc == CM_OK)
        rc = cm_journal_look(&out->beside, p->journal, &phase, err);
    /* An object of a store that grows proves nothing: all of the part is made again. */
    if (rc == CM_OK && p->hooks != NULL) {
        if (phase != CM_JOURNAL_NONE)
            rc = p->hooks->again(p->hooks->context, err);
        phase = CM_JOURNAL_NONE;
        made = &nothing;
    }
    if (rc == CM_OK && phase == CM_JOURNAL_WRITING)
        rc = cm_journal_resume(&out->beside, p->journal, is, made, out->store, cm_job_threads(job),
                               job->budget.limit_nbytes, journal, &done, err);
    else if (rc == CM_OK)
        rc = cm_journal_begin(&out->beside, p->journal, is, made, journal, err);
    if (rc == CM_OK && phase == CM_JOURNAL_WRITING)
        rc = cm_job_note(job, err, "resumed: %" PRIu64 " %s done already", done,
                         cm_of_count(done, "chunk or shard was", "chunks and shards were"));
    cm_json_free(is);
    if (rc == CM_OK && p->hooks == NULL)
        cm_job_use_journal(job, out, *journal);
    return rc;
}

/* Only what is this part's is resumed. */
static void keep_own(const cm_job *job, cm_made *made)
{
    for (size_t i = 0; i < job->nvars; i++)
        if (!cm_parts_has(&job->var[i]))
            made->node[i].writer = NULL;
}

/* Objects that this run made or found good. */
static uint64_t count_made(const cm_job *job)
{
    uint64_t n = 0;
    for (size_t i = 0; i < job->nvars; i++) {
        n += job->var[i].moved.ncopied;
        if (job->var[i].move.writer == NULL)
            continue;
        cm_zarr_written counts = cm_zarr_writer_counts(job->var[i].move.writer);
        n += counts.nobjects + counts.nkept_objects;
    }
    return n;
}

/* Claims for the part the objects that are there, and no fewer than it made. */
static int see_own(cm_job *job, cm_output *out, cm_part_claim *claim, cm_error *err)
{
    uint64_t made = count_made(job);
    int rc = cm_part_claims_see(job, out, job->parts->number, 1, claim, err);
    if (rc == CM_OK && claim->nobjects < made)
        rc = cm_fail(err, CM_ENOTFOUND,
                     "of %" PRIu64 " objects that this part made %" PRIu64
                     " are not there any more; somebody removes them",
                     made, made - claim->nobjects);
    if (rc != CM_OK)
        cm_error_place(err, out->path);
    return rc;
}

static int say_done(cm_job *job, cm_output *out, cm_error *err)
{
    cm_parts *p = job->parts;
    const uint64_t decoded = job->report->decoded_nbytes;
    cm_part_claim claim;
    cm_json *note = cm_json_object();
    int rc = cm_json_set(note, "done_nbytes", cm_json_u64(decoded), err);
    if (rc == CM_OK)
        rc = cm_json_set(note, "total_nbytes", cm_json_u64(decoded), err);
    if (rc == CM_OK)
        rc = cm_store_sync(out->store, err);
    if (rc == CM_OK)
        rc = cm_lock_check(p->own, &out->beside, err);
    if (rc == CM_OK && job->options->statistics)
        rc = cm_part_counted_write(job, &out->beside, err);
    if (rc == CM_OK)
        rc = see_own(job, out, &claim, err);
    if (rc == CM_OK)
        rc = cm_json_set(note, "made", cm_part_claim_json(&claim), err);
    if (rc == CM_OK) {
        rc = cm_part_note(&out->beside, p->done, p->plan.hash, note, err);
        note = NULL;
    }
    cm_json_free(note);
    if (rc == CM_OK)
        rc = cm_store_sync(out->beside.in, err);
    if (rc == CM_OK && cm_parts_chunks_of(p) == NULL)
        cm_beside_remove(&out->beside, p->journal);
    return rc;
}

/* Each part verifies its own, before it counts as done. */
static int verify(cm_job *job, cm_output *out, cm_error *err)
{
    uint64_t start = cm_now_ns();
    int rc = cm_job_verify(job, out->store, err);
    job->report->verify_seconds = (double)(cm_now_ns() - start) * 1e-9;
    return rc;
}

static int begin_journal(cm_job *job, cm_output *out, cm_error *err)
{
    cm_parts *p = job->parts;
    int rc = cm_job_list_made(job, &p->made, err);
    if (rc != CM_OK)
        return rc;
    keep_own(job, &p->made);
    cm_store_set_part(out->store, p->number + 1);
    return open_journal(job, out, &p->made, &p->log, err);
}

/* Up to the point where its objects can be moved. */
static int begin_move(cm_job *job, cm_output *out, cm_error *err)
{
    cm_parts *p = job->parts;
    int rc = CM_OK;
    p->moves = true;
    if (out->store == NULL)
        rc = cm_parts_join(job, out, err);
    if (rc == CM_OK && job->budget.nthreads == 0)
        rc = cm_parts_make_plan(job, out, err);
    if (rc == CM_OK)
        rc = cm_parts_narrow(job, cm_parts_weights(&p->plan), p->plan.nparts, p->number, err);
    if (rc == CM_OK && cm_parts_chunks_of(p) != NULL)
        rc = cm_parts_chunks_of(p)->begin(p->hooks->context, err);
    else if (rc == CM_OK)
        rc = begin_journal(job, out, err);
    return rc == CM_OK ? cm_parts_tell(job, &out->beside, &p->teller, err) : rc;
}

static int finish_move(cm_job *job, cm_output *out, cm_error *err)
{
    cm_journal_close(job->parts->log);
    job->parts->log = NULL;
    cm_job_sum_written(job);
    int rc = cm_job_report(job, true, err);
    if (rc == CM_OK && cm_parts_chunks_of(job->parts) != NULL)
        rc = cm_parts_chunks_of(job->parts)->moved(job->parts->hooks->context, err);
    if (rc == CM_OK && job->options->verify != CM_VERIFY_NONE)
        rc = verify(job, out, err);
    return rc == CM_OK ? say_done(job, out, err) : rc;
}

/* Whatever became of it, nobody waits for this part any more. */
static void end_move(cm_job *job, cm_output *out)
{
    cm_parts *p = job->parts;
    cm_journal_close(p->log);
    cm_parts_tell_end(p->teller);
    free(p->made.node);
    cm_lock_release(p->own, &out->beside);
    p->log = NULL;
    p->teller = NULL;
    p->made = (cm_made){0};
    p->own = NULL;
    p->moves = false;
}

/* ---- all ---- */

static void release(cm_job *job, cm_output *out)
{
    cm_parts *p = job->parts;
    end_move(job, out);
    cm_parts_plan_release(&p->plan);
    free(p->lock);
    free(p->progress);
    free(p->journal);
    free(p->done);
    free(p);
    cm_beside_leave(&out->beside);
    job->parts = NULL;
    job->terms.in_part = false;
}

int cm_part_begin(cm_job *job, cm_output *out, const cm_parts_hooks *hooks, bool *moves,
                  cm_error *err)
{
    cm_part_report *r = &job->report->part;
    cm_parts *p = job->parts = cm_calloc(1, sizeof(*p), err);
    *moves = false;
    r->on = true;
    if (p == NULL)
        return CM_ENOMEM;
    p->hooks = hooks;
    job->terms.in_part = true;
    int rc = cm_parts_enter(job, out, err);
    if (rc == CM_OK)
        rc = cm_parts_number(job, &p->plan, &p->number, err);
    if (rc == CM_OK)
        rc = name_files(p, err);
    r->number = p->number;
    r->nparts = p->plan.nparts;
    r->was_done = rc == CM_OK && is_done(job, out);
    if (r->was_done) {
        rc = prove_own(job, out, err);
        p->plan.complete = cm_parts_is_complete(job, out);
        r->was_done = rc == CM_OK && is_done(job, out);
    }
    if (rc != CM_OK || r->was_done)
        return rc;
    rc = claim(job, out, err);
    r->was_done = rc == CM_OK && is_done(job, out);
    if (rc != CM_OK || r->was_done)
        return rc;
    *moves = true;
    return begin_move(job, out, err);
}

int cm_part_commit(cm_sink *s, cm_job *job, cm_error *err)
{
    cm_output *out = &s->out;
    int rc = job->parts->moves ? finish_move(job, out, err) : CM_OK;
    if (rc != CM_OK)
        return rc;
    end_move(job, out);
    rc = cm_parts_finish(job, out, err);
    if (rc == CM_OK)
        release(job, out);
    return rc;
}

void cm_part_withdraw(cm_sink *s, cm_job *job, int rc, cm_error *err)
{
    if (job->parts == NULL)
        return;
    job->report->resumable = job->parts->moves;
    if (rc == CM_EEXIST) /* what is in the way is the output's */
        cm_error_place(err, s->out.path);
    release(job, &s->out);
}
