/*
 * Writing the target: the lock, the journal, the chunks, the metadata last; and
 * what stays after a failure.
 */
#include "convert/sink/write.h"
#include "base/number.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "convert/beside/ledger.h"
#include "convert/sink/store/fingerprint.h"
#include "convert/sink/store/into.h"
#include "convert/source/inputs.h"
#include "convert/statistics/statistics.h"
#include "format/multi/multi.h"

/* ---- the journal ---- */

static int on_skip(void *context, uint64_t chunk, cm_error *err)
{
    const cm_job_var *v = context;
    int rc = cm_journal_skip(v->journal, v->index, chunk, err);
    if (rc != CM_OK)
        cm_error_place(err, v->output);
    return rc;
}

/* Of a chunk that is kept, the decoded elements are counted. */
static bool is_resumed(const cm_job_var *v)
{
    return !v->absent && !(v->transfer.see != NULL && v->stored_differs);
}

int cm_job_list_made(cm_job *job, cm_made *made, cm_error *err)
{
    const cm_dataset *ds = job->source;
    free(made->node);
    *made = (cm_made){.node = cm_calloc(job->nvars + ds->ngroups + 1, sizeof(made->node[0]), err)};
    if (made->node == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < job->nvars; i++) {
        cm_job_var *v = &job->var[i];
        made->node[made->n++] = (cm_made_node){.path = v->name,
                                               .meta = &v->meta,
                                               .writer = is_resumed(v) ? v->writer : NULL,
                                               .see = v->transfer.see,
                                               .see_context = v->transfer.see_context};
    }
    for (size_t i = 0; i < ds->ngroups; i++) {
        const char *path = ds->group[i].path;
        if (!cm_job_wants_group(job, path))
            continue;
        path += strlen(job->group);
        made->node[made->n++] = (cm_made_node){.path = path + (*path == '/')};
    }
    return CM_OK;
}

void cm_job_use_journal(cm_job *job, const cm_output *out, cm_journal *journal)
{
    for (size_t i = 0; i < job->nvars; i++) {
        cm_job_var *v = &job->var[i];
        v->journal = journal;
        v->output = out->path;
        v->index = i;
        v->transfer.on_skip = on_skip;
        v->transfer.on_skip_context = v;
    }
}

/* A run that was stopped goes on where its journal says; any other begins one. */
static int open_journal(cm_job *job, cm_output *out, const cm_made *made, cm_journal **journal,
                        cm_error *err)
{
    uint64_t done = 0;
    cm_json *fingerprint = NULL;
    int rc = cm_fingerprint(job, &fingerprint, err);
    if (rc == CM_OK)
        rc = cm_output_open_journal(out, fingerprint, made, cm_job_threads(job), job->memory_limit,
                                    journal, &done, err);
    cm_json_free(fingerprint);
    if (rc == CM_OK && out->resumes)
        rc = cm_job_note(job, err, "resumed: %llu %s done already", (unsigned long long)done,
                         cm_of_count(done, "chunk or shard was", "chunks and shards were"));
    if (rc == CM_OK)
        cm_job_use_journal(job, out, *journal);
    return rc;
}

/* ---- writing ---- */

void cm_job_sum_written(cm_job *job)
{
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        job->report->nobjects += v->ncopied;
        job->report->stored_nbytes += v->copied_nbytes;
        if (v->writer == NULL)
            continue;
        cm_zarr_written counts = cm_zarr_writer_counts(v->writer);
        job->report->nobjects += counts.nobjects;
        job->report->stored_nbytes += counts.nbytes;
    }
}

/* An earlier target goes, and the new one is a folder of ours alone. */
static int begin(cm_job *job, cm_output *out, const cm_made *made, cm_error *err)
{
    cm_zarr_left left = {0};
    int rc = cm_output_lock(out, made, err);
    if (rc == CM_OK)
        rc = cm_into_begin(job->into, cm_lock_replaced(out->lock), err);
    if (rc == CM_OK)
        rc = cm_output_begin(out, made, &left, err);
    if (rc != CM_OK)
        cm_error_place(err, out->path);
    if (rc == CM_OK && out->note != NULL)
        rc = cm_job_warn(job, err, "%s", out->note);
    if (rc == CM_OK && left.n > 0)
        rc = cm_job_warn(job, err, "%s: %llu %s not the old store's, and stayed: %s%s", out->path,
                         (unsigned long long)left.n, cm_of_count(left.n, "file is", "files are"),
                         left.names, left.n > left.nnamed ? ", ..." : "");
    return rc;
}

/* By the target's folder, which is there now, and surely on the target's disk. */
static int plan(cm_job *job, cm_output *out, cm_error *err)
{
    if (job->options->scratch == NULL && !cm_store_is_remote(out->store)) {
        free(job->scratch);
        if ((job->scratch = cm_strdup(out->path, err)) == NULL)
            return CM_ENOMEM;
    }
    return cm_job_plan(job, out->store, err);
}

/* Warns of facts that only the data could tell. */
static int warn_of_data(cm_job *job, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        cm_job_var *v = &job->var[i];
        if (v->repaired)
            rc = cm_job_warn(job, err, "variable %s: text that is not UTF-8 has become U+FFFD",
                             v->name);
        if (rc == CM_OK && v->found_fill)
            rc = cm_job_warn(
                job, err,
                "variable %s: its data hold the value that unwritten elements have (%.17g), which "
                "GDAL takes for NoData; `fill_value` %s:X chooses another",
                v->name, cm_element_to_double(&v->type, v->meta.fill), v->name);
    }
    return rc;
}

/* Metadata last: until it is there, no reader finds an array where chunks are missing. */
static int write_described(cm_job *job, cm_output *out, cm_error *err)
{
    cm_store_counts before = cm_store_count(out->store);
    int rc = cm_lock_check(out->lock, &out->beside, err);
    if (rc == CM_OK)
        rc = cm_job_write_metadata(job, out->store, err);
    cm_store_counts after = cm_store_count(out->store);
    if (rc != CM_OK)
        cm_error_place(err, out->path);
    job->report->nobjects = after.nput - before.nput;
    job->report->stored_nbytes = after.put_nbytes - before.put_nbytes;
    cm_job_sum_written(job);
    /* From here on the target is finished work, and stays whatever fails. */
    job->report->written = rc == CM_OK;
    if (rc == CM_OK && (rc = cm_into_finish(job->into, job, out->store, err)) != CM_OK)
        cm_error_place(err, job->into->root);
    return rc;
}

/*
 * Which files are in the store: an append need not read them again.  Without it it does, so the
 * store is complete whatever becomes of the ledger.
 */
static int write_ledger(cm_job *job, cm_output *out, cm_error *err)
{
    cm_ledger_writer ledger;
    cm_error why = {0};
    const cm_multi_spec *spec = cm_multi_spec_of(job->source);
    if (spec == NULL || *out->node != '\0')
        return CM_OK;
    int rc = cm_ledger_begin(&out->beside, &ledger, &why);
    if (rc == CM_OK)
        rc = cm_ledger_end(&ledger, cm_job_inputs_ledger_lines(job, &ledger, &why), &why);
    return rc == CM_OK ? CM_OK : cm_job_warn(job, err, "there is no ledger: %s", why.text);
}

static int write_store(cm_job *job, cm_output *out, cm_made *made, cm_error *err)
{
    cm_journal *journal = NULL;
    /*
     * What is there and no part of the target goes only when the plan, which may be refused, is
     * made.
     */
    bool is_there = out->store != NULL && !out->resumes;
    int rc = is_there ? plan(job, out, err) : CM_OK;
    if (rc == CM_OK)
        rc = cm_job_list_made(job, made, err);
    if (rc == CM_OK)
        rc = begin(job, out, made, err);
    if (rc == CM_OK && !is_there)
        rc = plan(job, out, err);
    if (rc == CM_OK && !is_there)
        rc = cm_job_list_made(job, made, err);
    if (rc == CM_OK)
        rc = open_journal(job, out, made, &journal, err);
    if (rc == CM_OK)
        rc = cm_job_run(job, out->store, err);
    if (rc == CM_OK)
        rc = write_described(job, out, err);
    if (rc == CM_OK && job->options->statistics)
        rc = cm_statistics_write(job, out->path, err);
    cm_journal_close(journal);
    if (rc == CM_OK)
        rc = write_ledger(job, out, err);
    if (rc == CM_OK)
        cm_output_complete(out);
    return rc == CM_OK ? warn_of_data(job, err) : rc;
}

/* ---- what stays ---- */

/* Writers are gone before the store that they write into. */
void cm_job_release_writers(cm_job *job)
{
    for (size_t i = 0; i < job->nvars; i++) {
        cm_zarr_writer_free(job->var[i].writer);
        job->var[i].writer = NULL;
    }
}

/* Errors without a place concern the source. */
void cm_job_name_source(const cm_job *job, cm_error *err)
{
    cm_error_place(err, job->path);
}

/* Work that can be resumed stays, and finished work; everything else is removed. */
static void leave(cm_job *job, cm_output *out, const cm_made *made, int rc, cm_error *err)
{
    cm_transform_report *r = job->report;
    /* One bad file of many is put right, or left out, and costs no other. */
    bool of_one = job->source != NULL && cm_multi_spec_of(job->source) != NULL &&
                  (rc == CM_EFORMAT || rc == CM_EIO || rc == CM_ENOTFOUND);
    r->resumable =
        (rc == CM_ECANCELED || rc == CM_ENOSPC || of_one) && (out->begun || out->resumes);
    if (rc == CM_ENOSPC && r->resumable)
        cm_error_suffix(err, "; `resume` goes on when there is room");
    if (r->written && *job->into->node != '\0') {
        /* Its journal is there: a second run has only the groups above it to do. */
        r->resumable = true;
        cm_error_prefix(err, "%s: written, but not yet entered in the store around it", out->path);
    }
    if (r->written || r->resumable || out->resumes)
        return;
    /* Another run may write there by now: its files are not ours to remove. */
    if (cm_lock_check(out->lock, &out->beside, NULL) == CM_EEXIST)
        return;
    cm_job_release_writers(job);
    r->resumable = !cm_output_discard(out, made);
    if (r->resumable)
        cm_error_suffix(err, "; not all that was written could be removed: `resume` finishes it");
    cm_into_discard(job->into);
}

/*
 * The target is complete, and may be all that a long run has to show: that it cannot be verified
 * is said, and it stays.
 */
static int verify(cm_job *job, cm_output *out, cm_error *err)
{
    uint64_t start = cm_now_ns();
    int rc = cm_job_verify(job, out->store, err);
    job->report->verify_seconds = (double)(cm_now_ns() - start) * 1e-9;
    job->report->unverified = rc != CM_OK && rc != CM_EDIFFER;
    if (!job->report->unverified || rc == CM_ECANCELED)
        return rc;
    cm_job_name_source(job, err);
    cm_error_prefix(err, "%s: written, but not verified", out->path);
    return rc;
}

int cm_job_write(cm_job *job, cm_output *out, cm_error *err)
{
    cm_made made = {0};
    uint64_t start = cm_now_ns();
    int rc = write_store(job, out, &made, err);
    if (rc != CM_OK)
        leave(job, out, &made, rc, err);
    free(made.node);
    if (rc != CM_OK)
        return rc;
    job->report->seconds += (double)(cm_now_ns() - start) * 1e-9;
    rc = cm_job_report(job, true, err);
    return rc == CM_OK && job->options->verify != CM_VERIFY_NONE ? verify(job, out, err) : rc;
}
