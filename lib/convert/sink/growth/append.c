/*
 * Adding to a store.  Chunks behind the old end come first, then those that the old dataset has
 * too, then coordinates; documents change last (append_commit.h).  Until then every reader of
 * the store sees the old dataset, for nothing of it has another value, but where files win over
 * the store (rewrite.c).
 *
 * Nothing tells a chunk that was written by a run that was stopped from any other object, and
 * nothing needs to: the same command writes, or removes, every chunk of its windows again.
 */
#include "convert/sink/growth/append_source.h"

#include <stdlib.h>
#include <string.h>

#include "convert/beside/parts_files.h"
#include "convert/sink/growth/append_parts.h"
#include "convert/sink/growth/append_repair.h"
#include "convert/sink/growth/append_repository.h"
#include "convert/sink/sink.h"
#include "convert/sink/store/store.h"
#include "convert/source/clashes.h"
#include "convert/source/inputs.h"
#include "convert/statistics/statistics.h"
#include "format/multi/multi.h"
#include "store/open.h"

/* ---- what is planned ---- */

static int open_target(cm_append_state *s, const cm_job *job, cm_error *err)
{
    const cm_dataset_options options = {.net = job->options->net};
    int rc = cm_dataset_open(s->append->opens, "", &options, &s->target, err);
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

/* Of all chunks of G, not of those of a window. */
static void tell_lengths(const cm_grown *g, cm_transform_variable *out)
{
    const unsigned axis = g->growth.axis;
    if (g->growth.chunk > 0 || g->rows.n == 0)
        return;
    out->chunk[axis] = g->rows.cuts.longest;
    out->shortest_chunk[axis] = cm_cuts_shortest(&g->rows.cuts);
    out->rectilinear = out->shortest_chunk[axis] < out->chunk[axis];
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
        if (g->rows.listed)
            tell_lengths(g, &sum);
        sum.compared = s->compared && !g->unread;
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

static void tell_growth(cm_job *job, const cm_append_state *s)
{
    cm_append_report *a = &job->report->append;
    a->on = true;
    a->was = s->was;
    a->length = s->length;
    a->nheld = s->nheld;
    a->nlisted = cm_append_nlisted(s->append);
}

int cm_append_tell_change(cm_job *job, const cm_append_state *s, cm_error *err)
{
    cm_replace_report *p = &job->report->replace;
    char **dimension = &job->report->append.dimension;
    if (s->append->replace != NULL) {
        p->on = true;
        p->first = s->first;
        p->end = s->end;
        dimension = &p->dimension;
    } else {
        tell_growth(job, s);
    }
    free(*dimension);
    *dimension = cm_strdup(s->append->dimension, err);
    return *dimension == NULL ? CM_ENOMEM : CM_OK;
}

int cm_append_tell_all(cm_job *job, const cm_append_state *s, bool written, cm_error *err)
{
    int rc = cm_job_report(job, written, err);
    const int told = cm_append_tell_change(job, s, err);
    return rc == CM_OK ? told : rc;
}

/* ---- writing ---- */

/* Objects behind the old end that no document tells of. */
static void remove_beyond(cm_job *job)
{
    for (size_t i = 0; i < job->nvars; i++) {
        cm_job_var *v = &job->var[i];
        if (v->move.writer == NULL || !v->window.is_beyond)
            continue;
        (void)cm_zarr_writer_remove_all(v->move.writer, NULL);
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

/* Documents that cannot be changed are found before anything is. */
static int check_documents(const cm_append_state *s, cm_error *err)
{
    cm_commit trial = {0};
    int rc = make_commit(s, NULL, &trial, err);
    cm_commit_release(&trial);
    return rc;
}

int cm_append_begin_chunks(cm_job *job, cm_append_state *s, cm_error *err)
{
    int rc = check_documents(s, err);
    if (rc == CM_OK)
        rc = cm_job_plan(job, s->append->store, err);
    if (rc == CM_OK && job->nvars > 0)
        rc = cm_append_mark_reach(s, err);
    if (rc == CM_OK)
        rc = cm_rewrite_write_note(job, s, err);
    if (rc == CM_OK && s->end > s->first)
        rc = forget_statistics(job, s, err);
    if (rc == CM_OK)
        rc = cm_repair_write_note(s, err);
    s->begun = rc == CM_OK;
    return rc;
}

void cm_append_withdraw_chunks(cm_job *job, cm_append_state *s)
{
    /* Another run may write there by now: its files are not ours to remove. */
    if (!s->begun || cm_lock_check(s->append->lock, &s->append->beside, NULL) == CM_EEXIST)
        return;
    remove_beyond(job);
    (void)cm_repair_remove_left(s, NULL);
    if (cm_append_remove_reach(s, NULL) == CM_OK)
        cm_append_unmark(s->append);
}

int cm_append_commit(cm_job *job, cm_append_state *s, cm_error *err)
{
    cm_commit c = {0};
    cm_json *ledger = NULL;
    s->begun = false; /* chunks stay from here on */
    int rc = cm_append_remove_reach(s, err);
    if (rc == CM_OK)
        cm_monitor_phase(job->options->monitor, CM_PHASE_FINISHING, 0);
    if (rc == CM_OK)
        rc = cm_job_inputs_ledger(job, s->append->dimension, s->length, &ledger, err);
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
        cm_append_unmark(s->append);
    job->report->written = rc == CM_OK;
    /* Remains that are in nobody's way may stay until the next time. */
    if (rc == CM_OK)
        (void)cm_repair_remove_left(s, NULL);
    return rc;
}

/* ---- as a sink ---- */

int cm_append_find(cm_sink *s, cm_job *job, cm_error *err)
{
    const bool files = s->options->dataset != NULL;
    const bool repository = s->options->append->repository != NULL;
    const bool remote = cm_store_url_is_remote(s->target);
    if (job->terms.alike && !files)
        return cm_fail(err, CM_EINVAL,
                       "`append` and `part`: parts can add files to a store, not another store");
    if (job->terms.alike && remote && !repository)
        return cm_fail(err, CM_EINVAL,
                       "%s: `append` and `part`: to a store behind a network one process adds",
                       s->target);
    int rc = repository ? cm_append_take_repository(s, err) : cm_sink_find_into(s, err);
    /* It is among its own sources; another one that is added lies apart from it. */
    s->among_sources = files || remote;
    if (s->into.zarr_format != 0)
        s->options->zarr_format = s->into.zarr_format;
    return rc;
}

/* A joined dataset has the store among its files already. */
int cm_append_join(cm_job *job, cm_error *err)
{
    return job->options->dataset == NULL ? cm_append_source_join(job, err) : CM_OK;
}

static int begin_windows(cm_job *job, cm_append_state *s, cm_error *err)
{
    int rc = cm_append_make_windows(job, s, err);
    if (rc != CM_OK)
        cm_error_place(err, s->append->root);
    return rc;
}

int cm_append_prepare_into(cm_append_state *a, cm_job *job, cm_error *err)
{
    a->append = job->options->append;
    int rc = open_target(a, job, err);
    if (rc == CM_OK)
        rc = cm_job_compare_inputs(job, err);
    if (rc == CM_OK)
        rc = begin_windows(job, a, err);
    /* Each of several processes would read all of both. */
    const bool compares = a->append->replace != NULL && !job->terms.alike;
    return rc == CM_OK && compares ? cm_replace_compare(job, a, err) : rc;
}

int cm_append_prepare(cm_sink *s, cm_job *job, cm_error *err)
{
    cm_append_state *a = s->own = cm_calloc(1, sizeof(*a), err);
    return a == NULL ? CM_ENOMEM : cm_append_prepare_into(a, job, err);
}

static int begin(cm_sink *s, cm_job *job, bool *moves, cm_error *err)
{
    int rc = cm_append_prepare(s, job, err);
    cm_append_state *a = s->own;
    (void)moves;
    if (rc != CM_OK)
        return rc;
    s->store = a->append->store;
    a->before = cm_store_count(s->store);
    a->writes = true;
    /* The plan of parts is of the store as it was. */
    rc = job->nvars > 0 ? cm_parts_forget(&a->append->beside, err) : CM_OK;
    return rc == CM_OK ? cm_append_begin_chunks(job, a, err) : rc;
}

static void count_written(cm_job *job, const cm_append_state *s)
{
    cm_store_counts after = cm_store_count(s->append->store);
    job->report->nobjects = after.nput - s->before.nput;
    job->report->stored_nbytes = after.put_nbytes - s->before.put_nbytes;
}

static int commit(cm_sink *s, cm_job *job, cm_error *err)
{
    cm_append_state *a = s->own;
    int rc = cm_append_commit(job, a, err);
    count_written(job, a);
    return rc == CM_OK ? cm_append_tell_all(job, a, true, err) : rc;
}

static void withdraw(cm_sink *s, cm_job *job, int rc, cm_error *err)
{
    cm_append_state *a = s->own;
    (void)rc;
    if (a == NULL || !a->writes)
        return;
    cm_append_withdraw_chunks(job, a);
    count_written(job, a);
    cm_error_place(err, a->append->root);
}

static int verify(cm_sink *s, cm_job *job, cm_error *err)
{
    return job->nvars > 0
               ? cm_sink_verify(job, s->store, ((cm_append_state *)s->own)->append->root, err)
               : CM_OK;
}

int cm_append_leave(cm_sink *s, cm_job *job, int rc, cm_error *err)
{
    cm_append_state *a = s->own;
    cm_error why = {0};
    int folded = a != NULL && job->report->nvariables > 0 ? fold(job, a, &why) : CM_OK;
    cm_append_end(s);
    return rc == CM_OK && folded != CM_OK ? cm_fail(err, folded, "%s", why.text) : rc;
}

void cm_append_end(cm_sink *s)
{
    if (s->own != NULL)
        cm_append_state_release(s->own);
    free(s->own);
    s->own = NULL;
}

const char *cm_append_end_output(cm_sink *s)
{
    cm_append *a = s->options->append;
    cm_output_end(&s->out);
    cm_append_give_back(a);
    return a->beside.stays;
}

const cm_sink_ops cm_sink_growth = {.kind = CM_SINK_GROWS,
                                    .terms.grows = true,
                                    .find = cm_append_find,
                                    .join = cm_append_join,
                                    .begin = begin,
                                    .commit = commit,
                                    .withdraw = withdraw,
                                    .verify = verify,
                                    .leave = cm_append_leave,
                                    .give_back = cm_append_end_output};

/* ---- a dry run of it ---- */

int cm_append_foresee_windows(cm_job *job, cm_append_state *a, cm_error *err)
{
    a->append = job->options->append;
    int rc = open_target(a, job, err);
    /* Of files the survey has compared all but the data. */
    if (rc == CM_OK && job->from.grown != NULL)
        rc = cm_job_compare_inputs(job, err);
    return rc == CM_OK ? begin_windows(job, a, err) : rc;
}

int cm_append_foresee(cm_job *job, const cm_append_state *s, cm_error *err)
{
    cm_store *nowhere = NULL;
    int rc = cm_store_open_memory(&nowhere, err);
    if (rc == CM_OK)
        rc = cm_job_plan(job, nowhere, err);
    if (rc == CM_OK)
        rc = cm_append_tell_all(job, s, false, err);
    if (rc == CM_OK)
        rc = cm_job_estimate(job, err);
    for (size_t i = 0; i < job->report->nvariables; i++)
        job->report->nobjects += job->report->variable[i].nobjects;
    cm_job_release_writers(job);
    cm_store_free(nowhere);
    return rc;
}

static int foresee(cm_sink *s, cm_job *job, bool *moves, cm_error *err)
{
    cm_append_state *a = s->own = cm_calloc(1, sizeof(*a), err);
    *moves = false;
    if (a == NULL)
        return CM_ENOMEM;
    int rc = cm_append_foresee_windows(job, a, err);
    if (rc == CM_OK)
        rc = check_documents(a, err);
    return rc == CM_OK ? cm_append_foresee(job, a, err) : rc;
}

const cm_sink_ops cm_sink_growth_foreseen = {.kind = CM_SINK_GROWS,
                                             .terms = {.grows = true, .foreseen = true},
                                             .find = cm_append_find,
                                             .join = cm_append_join,
                                             .begin = foresee,
                                             .leave = cm_append_leave,
                                             .give_back = cm_append_end_output};
