/*
 * A store, or a node in one, that this process makes: the lock, the journal, the chunks, the
 * metadata last; and what stays after a failure.
 */
#include "convert/sink/store/store.h"
#include "base/number.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "convert/beside/ledger.h"
#include "convert/passport/job_passport.h"
#include "convert/plan/inodes.h"
#include "convert/sink/sink.h"
#include "convert/sink/store/fingerprint.h"
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
    return !v->move.absent && !(v->move.transfer.see != NULL && v->move.stored_differs);
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
                                               .meta = &v->doc.meta,
                                               .writer = is_resumed(v) ? v->move.writer : NULL,
                                               .see = v->move.transfer.see,
                                               .see_context = v->move.transfer.see_context};
    }
    for (size_t i = 0; i < ds->ngroups; i++) {
        const char *path = ds->group[i].path;
        if (!cm_job_wants_group(job, path))
            continue;
        path += strlen(job->from.group);
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
        v->move.transfer.on_skip = on_skip;
        v->move.transfer.on_skip_context = v;
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
        rc = cm_output_open_journal(out, fingerprint, made, cm_job_threads(job),
                                    job->budget.limit_nbytes, journal, &done, err);
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
        job->report->nobjects += v->moved.ncopied;
        job->report->stored_nbytes += v->moved.copied_nbytes;
        if (v->move.writer == NULL)
            continue;
        cm_zarr_written counts = cm_zarr_writer_counts(v->move.writer);
        job->report->nobjects += counts.nobjects;
        job->report->stored_nbytes += counts.nbytes;
    }
}

/* State of a run until its store is complete. */
typedef struct making {
    cm_made made;
    cm_journal *journal;
} making;

/* An earlier target goes, and the new one is a folder of ours alone. */
static int make_place(cm_sink *s, cm_job *job, const cm_made *made, cm_error *err)
{
    cm_output *out = &s->out;
    cm_zarr_left left = {0};
    int rc = cm_output_lock(out, made, err);
    if (rc == CM_OK)
        rc = cm_into_begin(&s->into, cm_lock_replaced(out->lock), err);
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

/*
 * By the target's folder, which is there now, and surely on the target's disk.  FRESH: it is to get
 * all of the store, and no old one goes.
 */
static int plan(cm_job *job, cm_output *out, bool fresh, cm_error *err)
{
    const bool local = !cm_store_is_remote(out->store);
    if (job->options->scratch == NULL && local) {
        free(job->scratch.folder);
        if ((job->scratch.folder = cm_strdup(out->is_zip ? out->beside.path : out->path, err)) ==
            NULL)
            return CM_ENOMEM;
    }
    int rc = cm_job_plan(job, out->store, err);
    if (rc == CM_OK && !out->is_zip)
        rc = cm_job_count_inodes(job, local, local && fresh ? out->path : NULL, err);
    return rc;
}

int cm_job_warn_of_data(cm_job *job, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        cm_job_var *v = &job->var[i];
        if (v->moved.repaired)
            rc = cm_job_warn(job, err, "variable %s: text that is not UTF-8 has become U+FFFD",
                             v->name);
        if (rc == CM_OK && v->moved.found_fill)
            rc = cm_job_warn(
                job, err,
                "variable %s: its data hold the value that unwritten elements have (%.17g), which "
                "GDAL takes for NoData; `fill_value` %s:X chooses another",
                v->name, cm_element_to_double(&v->view.type, v->doc.meta.fill), v->name);
    }
    return rc;
}

/* Metadata last: until it is there, no reader finds an array where chunks are missing. */
static int write_described(cm_sink *s, cm_job *job, cm_error *err)
{
    cm_output *out = &s->out;
    cm_store_set_unread(out->store, false);
    cm_store_counts before = cm_store_count(out->store);
    int rc = cm_lock_check(out->lock, &out->beside, err);
    if (rc == CM_OK)
        rc = cm_job_write_metadata(job, out->store, err);
    if (rc == CM_OK)
        rc = cm_output_finish(out, err);
    cm_store_counts after = cm_store_count(out->store);
    if (rc != CM_OK)
        cm_error_place(err, out->path);
    job->report->nobjects = after.nput - before.nput;
    job->report->stored_nbytes = after.put_nbytes - before.put_nbytes;
    cm_job_sum_written(job);
    /* From here on the target is finished work, and stays whatever fails. */
    job->report->written = rc == CM_OK;
    if (rc == CM_OK && (rc = cm_into_finish(&s->into, job, out->store, err)) != CM_OK)
        cm_error_place(err, s->into.root);
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
    if (spec == NULL || *out->node != '\0' || out->is_zip)
        return CM_OK;
    int rc = cm_ledger_begin(&out->beside, &ledger, &why);
    if (rc == CM_OK)
        rc = cm_ledger_end(&ledger, cm_job_inputs_ledger_lines(job, &ledger, &why), &why);
    return rc == CM_OK ? CM_OK : cm_job_warn(job, err, "there is no ledger: %s", why.text);
}

static int begin(cm_sink *s, cm_job *job, bool *moves, cm_error *err)
{
    cm_output *out = &s->out;
    making *m = NULL;
    (void)moves;
    int rc = cm_sink_describe(job, out->path, err);
    if (rc == CM_OK && (m = s->own = cm_calloc(1, sizeof(*m), err)) == NULL)
        rc = CM_ENOMEM;
    if (rc != CM_OK)
        return rc;
    /* Plan first where an output exists that is not resumed: a refused plan deletes nothing. */
    bool is_there = out->store != NULL && !out->resumes;
    if (is_there)
        rc = plan(job, out, false, err);
    if (rc == CM_OK)
        rc = cm_job_list_made(job, &m->made, err);
    if (rc == CM_OK)
        rc = make_place(s, job, &m->made, err);
    if (rc == CM_OK && !is_there)
        rc = plan(job, out, !out->resumes, err);
    if (rc == CM_OK && !is_there)
        rc = cm_job_list_made(job, &m->made, err);
    if (rc == CM_OK && !out->is_zip)
        rc = open_journal(job, out, &m->made, &m->journal, err);
    /*
     * A store where nothing stood: no document tells of its chunks, nobody has an old one in
     * memory, and a run that goes on proves each chunk by reading it (adopt.h).
     */
    if (rc == CM_OK && !is_there && !out->resumes && *out->node == '\0')
        cm_store_set_unread(out->store, true);
    s->store = out->store;
    return rc;
}

static void close_journal(making *m)
{
    cm_journal_close(m->journal);
    m->journal = NULL;
}

static int commit(cm_sink *s, cm_job *job, cm_error *err)
{
    int rc = write_described(s, job, err);
    if (rc == CM_OK && job->options->statistics)
        rc = cm_statistics_write(job, s->out.path, err);
    if (rc == CM_OK && job->options->report != NULL)
        rc = cm_job_passport_finish(job, err);
    close_journal(s->own);
    if (rc == CM_OK)
        rc = write_ledger(job, &s->out, err);
    if (rc == CM_OK)
        cm_output_complete(&s->out);
    if (rc == CM_OK)
        rc = cm_job_warn_of_data(job, err);
    return rc == CM_OK ? cm_job_report(job, true, err) : rc;
}

/* ---- what stays ---- */

/* Errors without a place concern the source. */
void cm_job_name_source(const cm_job *job, cm_error *err)
{
    cm_error_place(err, job->from.path);
}

/* Work that can be resumed stays, and finished work; everything else is removed. */
static void withdraw(cm_sink *s, cm_job *job, int rc, cm_error *err)
{
    making *m = s->own;
    cm_output *out = &s->out;
    cm_transform_report *r = job->report;
    /* One bad file of many is put right, or left out, and costs no other. */
    const bool of_one = job->source != NULL && cm_multi_spec_of(job->source) != NULL &&
                        (rc == CM_EFORMAT || rc == CM_EIO || rc == CM_ENOTFOUND);
    if (m == NULL)
        return;
    close_journal(m);
    r->resumable =
        (rc == CM_ECANCELED || rc == CM_ENOSPC || of_one) && (out->begun || out->resumes);
    if (rc == CM_ENOSPC && r->resumable)
        cm_error_suffix(err, "; `resume` goes on when there is room");
    if (r->written && *s->into.node != '\0') {
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
    r->resumable = !cm_output_discard(out, &m->made);
    if (r->resumable)
        cm_error_suffix(err, "; not all that was written could be removed: `resume` finishes it");
    cm_into_discard(&s->into);
}

/*
 * The target is complete, and may be all that a long run has to show: that it cannot be verified
 * is said, and it stays.
 */
static int verify(cm_sink *s, cm_job *job, cm_error *err)
{
    const uint64_t start = cm_now_ns();
    int rc = cm_job_verify(job, s->store, err);
    if (rc != CM_OK && rc != CM_EDIFFER && rc != CM_ECANCELED)
        cm_job_name_source(job, err);
    return cm_sink_verified(job, rc, start, s->out.path, err);
}

static int leave(cm_sink *s, cm_job *job, int rc, cm_error *err)
{
    making *m = s->own;
    (void)job;
    (void)err;
    if (m != NULL)
        free(m->made.node);
    free(m);
    s->own = NULL;
    return rc;
}

/* ---- what stands there ---- */

static int find(cm_sink *s, cm_job *job, cm_error *err)
{
    const cm_transform_options *o = s->options;
    int rc = cm_sink_find_into(s, err);
    if (rc == CM_OK)
        rc = cm_sink_take_format(s, err);
    const cm_output_request request = {.root = s->into.root,
                                       .node = s->into.node,
                                       .overwrite = o->overwrite,
                                       .resume = o->resume,
                                       .monitor = o->monitor,
                                       .break_lock = o->break_lock,
                                       .net = o->net};
    if (rc == CM_OK)
        rc = cm_output_check(&request, &s->out, err);
    if (rc == CM_OK && s->out.resumes && o->sample != NULL)
        rc = cm_journal_member(&s->out.beside, s->out.journal, CM_FINGERPRINT_CHUNKS,
                               &job->sample_chunks, err);
    return rc;
}

const char *cm_sink_end_output(cm_sink *s)
{
    cm_output_end(&s->out);
    return s->out.beside.stays;
}

const cm_sink_ops cm_sink_store = {.find = find,
                                   .layout = cm_job_layout,
                                   .begin = begin,
                                   .commit = commit,
                                   .withdraw = withdraw,
                                   .verify = verify,
                                   .leave = leave,
                                   .give_back = cm_sink_end_output};
