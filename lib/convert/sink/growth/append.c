/*
 * Adding to a store.  Chunks behind the old end come first, then those that the old dataset has
 * too, then coordinates; documents change last (append_commit.h).  Until then every reader of
 * the store sees the old dataset, for nothing of it has another value.
 *
 * Nothing tells a chunk that was written by a run that was stopped from any other object, and
 * nothing needs to: the same command writes, or removes, every chunk of its windows again.
 */
#include "convert/sink/growth/append_source.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "convert/beside/parts_files.h"
#include "convert/sink/growth/append_parts.h"
#include "convert/sink/growth/append_repair.h"
#include "convert/sink/write.h"
#include "convert/source/clashes.h"
#include "convert/source/inputs.h"
#include "convert/statistics/statistics.h"
#include "format/multi/multi.h"

/* ---- what is planned ---- */

static int open_target(cm_append_state *s, const cm_job *job, cm_error *err)
{
    const cm_dataset_options options = {.net = job->options->net};
    int rc = cm_dataset_open(s->append->root, "", &options, &s->target, err);
    if (rc == CM_OK && s->target->kind != CM_DATASET_ZARR)
        rc = cm_fail(err, CM_EINVAL, "is not a Zarr store");
    if (rc == CM_OK)
        rc = cm_append_check_length(s->append, s->target, err);
    if (rc != CM_OK)
        cm_error_place(err, s->append->root);
    return rc;
}

static int make_commit(const cm_append_state *s, const cm_json *ledger, cm_commit *out,
                       cm_error *err)
{
    cm_growth *growth = cm_calloc(s->ngrown + 1, sizeof(*growth), err);
    if (growth == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < s->ngrown; i++)
        growth[i] = s->grown[i].growth;
    int rc = cm_commit_make(s->append->store, s->target->zarr_format, growth, s->ngrown, ledger,
                            out, err);
    if (rc != CM_OK)
        cm_error_place(err, s->append->root);
    free(growth);
    return rc;
}

/* ---- the report ---- */

/* Adds one window to the report of its variable. */
static void add_window(cm_transform_variable *sum, const cm_transform_variable *w)
{
    sum->nchunks += w->nchunks;
    sum->nobjects += w->nobjects;
    sum->nskipped += w->nskipped;
    sum->decoded_nbytes += w->decoded_nbytes;
    sum->stored_nbytes += w->stored_nbytes;
    sum->planned_nbytes += w->planned_nbytes;
    sum->bound_nbytes += w->bound_nbytes;
    sum->planned_seconds += w->planned_seconds;
    const cm_plan_counts *from[] = {&w->planned, &w->counted};
    cm_plan_counts *to[] = {&sum->planned, &sum->counted};
    for (int k = 0; k < 2; k++) {
        to[k]->chunk_reads += from[k]->chunk_reads;
        to[k]->chunk_decodes += from[k]->chunk_decodes;
        to[k]->chunk_writes += from[k]->chunk_writes;
        to[k]->element_nbytes_read += from[k]->element_nbytes_read;
        to[k]->element_nbytes_written += from[k]->element_nbytes_written;
        to[k]->scratch_nbytes += from[k]->scratch_nbytes;
    }
}

/* One line for each variable, whose shape is that of the store as it will be. */
static int fold(cm_job *job, const cm_append_state *s, cm_error *err)
{
    cm_transform_report *r = job->report;
    size_t kept = 0;
    int rc = CM_OK;
    for (size_t i = 0; i < s->ngrown; i++) {
        const cm_grown *g = &s->grown[i];
        if (g->nwindows == 0)
            continue;
        cm_transform_variable sum = r->variable[g->first];
        for (size_t w = 1; w < g->nwindows; w++) {
            cm_transform_variable *other = &r->variable[g->first + w];
            add_window(&sum, other);
            cm_transform_variable_release(other);
        }
        sum.shape[g->growth.axis] = s->length;
        sum.compared = s->compared;
        sum.nchanged = g->nchanged;
        sum.largest_change = g->largest;
        free(sum.digest); /* of a window; it says nothing of the array */
        sum.digest = NULL;
        if (rc == CM_OK)
            rc = cm_append_source_layout(job, g->source, &sum, err);
        r->variable[kept++] = sum;
    }
    r->nvariables = kept;
    return rc;
}

void cm_append_tell(cm_job *job, const cm_append_state *s)
{
    cm_append_report *a = &job->report->append;
    a->on = true;
    a->was = s->was;
    a->length = s->length;
    a->nheld = s->nheld;
    a->nlisted = cm_append_nlisted(s->append);
}

static int report(cm_job *job, const cm_append_state *s, bool written, cm_error *err)
{
    int rc = cm_job_report(job, written, err);
    cm_append_report *a = &job->report->append;
    cm_replace_report *p = &job->report->replace;
    if (s->append->replace != NULL) {
        p->on = true;
        p->first = s->first;
        p->end = s->end;
        free(p->dimension);
        p->dimension = cm_strdup(s->append->dimension, err);
        return p->dimension == NULL ? CM_ENOMEM : rc;
    }
    cm_append_tell(job, s);
    if ((a->dimension = cm_strdup(s->append->dimension, err)) == NULL)
        return CM_ENOMEM;
    return rc;
}

/* ---- writing ---- */

/* Objects behind the old end that no document tells of. */
static void remove_beyond(cm_job *job)
{
    for (size_t i = 0; i < job->nvars; i++) {
        cm_job_var *v = &job->var[i];
        if (v->writer == NULL || !v->is_beyond)
            continue;
        (void)cm_zarr_writer_remove_all(v->writer, NULL);
    }
}

/* The statistics are those of the store as it was. */
static int forget_statistics(cm_job *job, const cm_append_state *s, cm_error *err)
{
    const char *root = s->append->root;
    bool there = false;
    bool changes = job->nvars > 0 || s->length > s->was; /* a dimension may have no coordinate */
    cm_net *net = s->append->beside.net;
    if (!changes)
        return CM_OK;
    int rc = cm_statistics_are_there(root, net, &there, err);
    if (rc == CM_OK)
        rc = cm_statistics_forget(root, net, err);
    if (rc == CM_OK && there)
        rc = cm_job_warn(
            job, err, "%s: its statistics were counted before this change, and were removed", root);
    return rc;
}

int cm_append_write_chunks(cm_job *job, cm_append_state *s, cm_error *err)
{
    cm_commit trial = {0};
    /* Documents that cannot be changed are found before anything is. */
    int rc = make_commit(s, NULL, &trial, err);
    cm_commit_release(&trial);
    if (rc == CM_OK)
        rc = cm_job_plan(job, s->append->store, err);
    if (rc == CM_OK && job->nvars > 0)
        rc = cm_append_mark(s->append, s->length, err);
    if (rc == CM_OK && s->append->replace != NULL)
        rc = cm_replace_write_note(s, err);
    if (rc == CM_OK && s->append->replace != NULL)
        rc = forget_statistics(job, s, err);
    if (rc == CM_OK)
        rc = cm_repair_write_note(s, err);
    if (rc != CM_OK)
        return rc;
    rc = cm_job_run(job, s->append->store, err);
    if (rc == CM_OK)
        return cm_append_remove_reach(s, err);
    /* Another run may write there by now: its files are not ours to remove. */
    if (cm_lock_check(s->append->lock, &s->append->beside, NULL) == CM_EEXIST)
        return rc;
    remove_beyond(job);
    (void)cm_repair_remove_left(s, NULL);
    if (cm_append_remove_reach(s, NULL) == CM_OK)
        cm_append_unmark(s->append);
    return rc;
}

int cm_append_commit(cm_job *job, cm_append_state *s, cm_error *err)
{
    cm_commit c = {0};
    cm_json *ledger = NULL;
    cm_monitor_phase(job->options->monitor, CM_PHASE_FINISHING, 0);
    int rc = cm_job_inputs_ledger(job, s->append->dimension, s->length, &ledger, err);
    if (rc == CM_OK)
        rc = cm_lock_check(s->append->lock, &s->append->beside, err);
    if (rc == CM_OK)
        rc = make_commit(s, ledger, &c, err);
    if (rc == CM_OK)
        rc = forget_statistics(job, s, err);
    if (rc == CM_OK)
        rc = cm_commit_run(&c, s->append->store, &s->append->beside, job->options->durable, err);
    cm_json_free(ledger);
    cm_commit_release(&c);
    if (rc == CM_OK)
        rc = cm_replace_remove_note(s->append, err);
    if (rc == CM_OK)
        cm_append_unmark(s->append);
    job->report->written = rc == CM_OK;
    /* Remains that are in nobody's way may stay until the next time. */
    if (rc == CM_OK)
        (void)cm_repair_remove_left(s, NULL);
    return rc;
}

static int write_all(cm_job *job, cm_append_state *s, cm_error *err)
{
    uint64_t start = cm_now_ns();
    cm_store_counts before = cm_store_count(s->append->store);
    /* The plan of parts is of the store as it was. */
    int rc = job->nvars > 0 ? cm_parts_forget(&s->append->beside, err) : CM_OK;
    if (rc == CM_OK)
        rc = cm_append_write_chunks(job, s, err);
    if (rc == CM_OK)
        rc = cm_append_commit(job, s, err);
    cm_store_counts after = cm_store_count(s->append->store);
    job->report->nobjects = after.nput - before.nput;
    job->report->stored_nbytes = after.put_nbytes - before.put_nbytes;
    job->report->seconds += (double)(cm_now_ns() - start) * 1e-9;
    if (rc == CM_OK)
        rc = report(job, s, true, err);
    return rc;
}

int cm_append_verify(cm_job *job, cm_append_state *s, cm_error *err)
{
    uint64_t start = cm_now_ns();
    int rc = cm_job_verify(job, s->append->store, err);
    job->report->verify_seconds = (double)(cm_now_ns() - start) * 1e-9;
    job->report->unverified = rc != CM_OK && rc != CM_EDIFFER;
    if (job->report->unverified && rc != CM_ECANCELED)
        cm_error_prefix(err, "%s: written, but not verified", s->append->root);
    return rc;
}

static int dry_run(cm_job *job, cm_append_state *s, cm_error *err)
{
    cm_store *nowhere = NULL;
    int rc = cm_store_open_memory(&nowhere, err);
    if (rc == CM_OK)
        rc = cm_job_plan(job, nowhere, err);
    if (rc == CM_OK)
        rc = report(job, s, false, err);
    if (rc == CM_OK)
        rc = cm_job_estimate(job, err);
    for (size_t i = 0; i < job->report->nvariables; i++)
        job->report->nobjects += job->report->variable[i].nobjects;
    cm_job_release_writers(job);
    cm_store_free(nowhere);
    return rc;
}

int cm_job_append(cm_job *job, cm_error *err)
{
    cm_append_state s = {.append = job->options->append};
    const bool in_parts = job->options->part.on && !job->options->dry_run;
    int rc = open_target(&s, job, err);
    /* Of files the survey has compared all but the data. */
    if (rc == CM_OK && (!job->options->dry_run || job->grown != NULL))
        rc = cm_job_compare_inputs(job, err);
    if (rc == CM_OK && (rc = cm_append_make_windows(job, &s, err)) != CM_OK)
        cm_error_place(err, s.append->root);
    if (rc == CM_OK && s.append->replace != NULL && !job->options->dry_run)
        rc = cm_replace_compare(job, &s, err);
    if (rc == CM_OK && job->options->dry_run)
        rc = dry_run(job, &s, err);
    else if (rc == CM_OK && in_parts)
        rc = cm_append_in_parts(job, &s, err);
    else if (rc == CM_OK && (rc = write_all(job, &s, err)) != CM_OK)
        cm_error_place(err, s.append->root);
    bool verifies = rc == CM_OK && !in_parts && !job->options->dry_run && job->nvars > 0 &&
                    job->options->verify != CM_VERIFY_NONE;
    if (verifies)
        rc = cm_append_verify(job, &s, err);
    if (job->report->nvariables > 0 && !in_parts) {
        cm_error why = {0};
        int folded = fold(job, &s, &why);
        if (rc == CM_OK && folded != CM_OK)
            rc = cm_fail(err, folded, "%s", why.text);
    }
    cm_job_release_writers(job);
    cm_append_state_release(&s);
    return rc;
}
