/*
 * rechunk's verb, from the options to the report: the steps of job/rechunk.h in
 * order.
 */
#include <chunkmill/rechunk.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chunkmill/version.h>

#include "base/clock.h"
#include "exec/watch/monitor.h"
#include "job/fingerprint.h"
#include "job/rechunk.h"
#include "job/store_path.h"
#include "model/digest.h"

void cm_rechunk_options_init(cm_rechunk_options *options)
{
    *options = (cm_rechunk_options){.verify = CM_VERIFY_SAMPLE};
}

static int check_options(const cm_rechunk_options *o, cm_error *err)
{
    if (o->source == NULL || (o->target == NULL && !o->dry_run))
        return cm_fail(err, CM_EINVAL, "a source and a target are needed");
    if (o->resume && o->overwrite)
        return cm_fail(err, CM_EINVAL, "--resume and --overwrite exclude each other");
    if (o->zarr_format != 0 && o->zarr_format != 2 && o->zarr_format != 3)
        return cm_fail(err, CM_EINVAL, "there is Zarr format 2 and 3, no %d", o->zarr_format);
    return CM_OK;
}

/* The nearest folder above PATH that is there. */
static char *folder_above(const char *path, cm_error *err)
{
    struct stat st;
    char *folder = cm_strdup(path, err);
    while (folder != NULL) {
        size_t n = strlen(folder);
        while (n > 1 && folder[n - 1] == '/')
            folder[--n] = '\0';
        char *slash = strrchr(folder, '/');
        if (slash == NULL)
            strcpy(folder, ".");
        else
            slash[slash == folder] = '\0';
        if (stat(folder, &st) == 0 || strcmp(folder, ".") == 0 || strcmp(folder, "/") == 0)
            break;
    }
    return folder;
}

static bool is_inside(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/* The target is neither the source, nor in it, nor around it: overwriting would take the source away. */
static int check_apart(const cm_re_job *job, cm_error *err)
{
    const char *target = job->options->target;
    char *source = realpath(job->path, NULL), *there = realpath(target, NULL);
    int rc = CM_OK;
    if (there == NULL) {
        char *above = folder_above(target, err);
        there = above == NULL ? NULL : realpath(above, NULL);
        free(above);
        /* A target that is not there yet can only lie in the source. */
        if (source != NULL && there != NULL && is_inside(there, source))
            rc = cm_fail(err, CM_EINVAL, "%s: lies inside the source", target);
    } else if (source != NULL && (is_inside(there, source) || is_inside(source, there))) {
        rc = cm_fail(err, CM_EINVAL, "%s: is the source, or lies in it or around it", target);
    }
    free(source);
    free(there);
    return rc;
}

/* ---- the journal ---- */

/* The source by its place and by what its metadata say. */
static int set_source(cm_json *j, const cm_re_job *job, cm_error *err)
{
    cm_digest digest = {0};
    char text[33];
    int rc = cm_fingerprint_path(j, "source", job->path, err);
    for (size_t i = 0; rc == CM_OK && i < job->tree.nnodes; i++) {
        const cm_zarr_node *node = &job->tree.node[i];
        cm_buf raw = {0};
        cm_digest_element(&digest, 2 * i, node->path, strlen(node->path));
        if (node->meta.raw != NULL)
            rc = cm_json_write(node->meta.raw, false, &raw, err);
        cm_digest_element(&digest, 2 * i + 1, raw.data, raw.nbytes);
        cm_buf_release(&raw);
    }
    if (rc == CM_OK)
        rc =
            cm_json_set(j, "source's metadata", cm_json_string(cm_digest_text(&digest, text)), err);
    return rc;
}

static int fingerprint(const cm_re_job *job, cm_json **out, cm_error *err)
{
    const cm_rechunk_options *o = job->options;
    cm_json *j = cm_json_object();
    int rc = cm_json_set(j, "version", cm_json_string(cm_version()), err);
    if (rc == CM_OK)
        rc = set_source(j, job, err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "--zarr-format", cm_json_i64(job->zarr_format), err);
    if (rc == CM_OK)
        rc = cm_fingerprint_texts(j, "--chunks", &o->chunks, err);
    if (rc == CM_OK)
        rc = cm_fingerprint_texts(j, "--shards", &o->shards, err);
    if (rc == CM_OK)
        rc = cm_fingerprint_texts(j, "--codec", &o->codec, err);
    if (rc == CM_OK)
        rc = cm_fingerprint_texts(j, "--variable", &o->variable, err);
    if (rc == CM_OK)
        *out = j;
    else
        cm_json_free(j);
    return rc;
}

static int on_skip(void *context, uint64_t chunk, cm_error *err)
{
    const cm_re_array *a = context;
    int rc = cm_journal_skip(a->journal, a->index, chunk, err);
    if (rc != CM_OK)
        cm_error_place(err, a->target);
    return rc;
}

/* What will be in the target: the arrays, by whose numbers the journal counts, then the groups. */
static int list_made(cm_re_job *job, cm_made *made, cm_error *err)
{
    size_t most = job->narrays + job->tree.nnodes + 1;
    *made = (cm_made){.node = cm_calloc(most, sizeof(made->node[0]), err)};
    if (made->node == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < job->narrays; i++) {
        const cm_re_array *a = &job->array[i];
        made->node[made->n++] = (cm_made_node){a->node->path, &a->meta, a->writer};
    }
    for (size_t i = 0; i < job->tree.nnodes; i++) {
        const cm_zarr_node *node = &job->tree.node[i];
        if (node->meta.is_group && cm_re_wants_group(job, node->path))
            made->node[made->n++] = (cm_made_node){.path = node->path};
    }
    return CM_OK;
}

static int open_journal(cm_re_job *job, cm_output *out, const cm_made *made, cm_journal **journal,
                        cm_error *err)
{
    uint64_t done = 0;
    cm_json *j = NULL;
    int rc = fingerprint(job, &j, err);
    if (rc == CM_OK)
        rc = cm_output_open_journal(out, j, made, job->nthreads, job->memory_limit, journal, &done,
                                    err);
    cm_json_free(j);
    if (rc == CM_OK && out->resumes)
        rc = cm_re_note(job, err, "resumed: %llu chunks and shards were done already",
                        (unsigned long long)done);
    for (size_t i = 0; rc == CM_OK && i < job->narrays; i++) {
        cm_re_array *a = &job->array[i];
        a->journal = *journal;
        a->target = out->path;
        a->transfer.on_skip = on_skip;
        a->transfer.on_skip_context = a;
    }
    return rc;
}

/* ---- writing ---- */

static void sum_written(cm_re_job *job)
{
    for (size_t i = 0; i < job->narrays; i++) {
        const cm_re_array *a = &job->array[i];
        job->report->nobjects += a->ncopied;
        job->report->stored_nbytes += a->copied_nbytes;
        if (a->writer == NULL)
            continue;
        cm_zarr_written counts = cm_zarr_writer_counts(a->writer);
        job->report->nobjects += counts.nobjects;
        job->report->stored_nbytes += counts.nbytes;
    }
}

/* What is there goes, and the target is a folder of ours alone. */
static int begin(cm_re_job *job, cm_output *out, const cm_made *made, cm_error *err)
{
    cm_zarr_left left = {0};
    int rc = cm_output_lock(out, made, err);
    if (rc == CM_OK)
        rc = cm_re_into_begin(job->into, err);
    if (rc == CM_OK)
        rc = cm_output_begin(out, made, &left, err);
    if (rc != CM_OK)
        cm_error_place(err, out->path);
    if (rc == CM_OK && out->note != NULL)
        rc = cm_re_warn(job, err, "%s", out->note);
    if (rc == CM_OK && left.n > 0)
        rc = cm_re_warn(job, err, "%s: %llu files are not the old store's and were left: %s%s",
                        out->path, (unsigned long long)left.n, left.names,
                        left.n > left.nnamed ? ", ..." : "");
    return rc;
}

/* By the target's folder, which is there now, and surely on the target's disk. */
static int plan(cm_re_job *job, cm_output *out, cm_error *err)
{
    if (job->options->scratch == NULL) {
        free(job->scratch);
        if ((job->scratch = cm_strdup(out->path, err)) == NULL)
            return CM_ENOMEM;
    }
    return cm_re_plan(job, out->store, err);
}

static int write_store(cm_re_job *job, cm_output *out, cm_made *made, cm_error *err)
{
    cm_rechunk_report *r = job->report;
    cm_journal *journal = NULL;
    /* What is there and no part of the target goes only when the plan, which may be refused, is made. */
    bool is_there = out->store != NULL && !out->resumes;
    int rc = is_there ? plan(job, out, err) : CM_OK;
    if (rc == CM_OK)
        rc = list_made(job, made, err);
    if (rc == CM_OK)
        rc = begin(job, out, made, err);
    if (rc == CM_OK && !is_there) {
        rc = plan(job, out, err);
        free(made->node);
        *made = (cm_made){0};
        if (rc == CM_OK)
            rc = list_made(job, made, err);
    }
    if (rc == CM_OK)
        rc = open_journal(job, out, made, &journal, err);
    if (rc == CM_OK)
        rc = cm_re_run(job, out->store, err);
    if (rc == CM_OK) {
        cm_store_counts before = cm_store_count(out->store);
        rc = cm_re_write_metadata(job, out->store, err);
        if (rc != CM_OK)
            cm_error_place(err, out->path);
        cm_store_counts after = cm_store_count(out->store);
        r->nobjects = after.nput - before.nput;
        r->stored_nbytes = after.put_nbytes - before.put_nbytes;
        sum_written(job);
    }
    /* From here on the target is finished work, and stays whatever fails. */
    r->written = rc == CM_OK;
    if (rc == CM_OK && (rc = cm_re_into_finish(job->into, job, out->store, err)) != CM_OK)
        cm_error_place(err, job->into->root);
    cm_journal_close(journal);
    if (rc == CM_OK)
        cm_output_complete(out);
    return rc;
}

/* Writers are gone before the store that they write into. */
static void release_writers(cm_re_job *job)
{
    for (size_t i = 0; i < job->narrays; i++) {
        cm_zarr_writer_free(job->array[i].writer);
        job->array[i].writer = NULL;
    }
}

static int dry_run(cm_re_job *job, cm_error *err)
{
    cm_store *nowhere = NULL;
    int rc = cm_store_open_memory(&nowhere, err);
    if (rc == CM_OK)
        rc = cm_re_plan(job, nowhere, err);
    if (rc == CM_OK)
        rc = cm_re_report(job, false, err);
    release_writers(job);
    cm_store_free(nowhere);
    return rc;
}

/* Errors of formats say which of the two stores they are about. */
static void name_source(const cm_re_job *job, int rc, cm_error *err)
{
    const char *target = job->options->target;
    size_t n = target == NULL ? 0 : strlen(target);
    bool is_targets = err != NULL && n > 0 && strncmp(err->text, target, n) == 0 &&
                      (err->text[n] == ':' || err->text[n] == '/');
    if (!is_targets && (rc == CM_EFORMAT || rc == CM_EUNSUPPORTED || rc == CM_EIO))
        cm_error_place(err, job->path);
}

static int verify_written(cm_re_job *job, const cm_output *out, cm_error *err)
{
    cm_rechunk_report *r = job->report;
    uint64_t start = cm_now_ns();
    int rc = cm_re_verify(job, out->store, err);
    r->verify_seconds = (double)(cm_now_ns() - start) * 1e-9;
    r->unverified = rc != CM_OK && rc != CM_EDIFFER;
    if (r->unverified && rc != CM_ECANCELED) {
        name_source(job, rc, err);
        cm_error_prefix(err, "%s: written, but not verified", job->options->target);
    }
    return rc;
}

static int write_and_verify(cm_re_job *job, cm_output *out, cm_error *err)
{
    cm_rechunk_report *r = job->report;
    cm_made made = {0};
    uint64_t start = cm_now_ns();
    int rc = write_store(job, out, &made, err);
    /* What can be finished is left to be finished; everything else is removed. */
    r->resumable = (rc == CM_ECANCELED || rc == CM_ENOSPC) && (out->begun || out->resumes);
    if (rc == CM_ENOSPC && r->resumable)
        cm_error_suffix(err, "; --resume goes on when there is room");
    if (rc != CM_OK && r->written) {
        /* Its journal is there: a second run has only the groups above it to do. */
        r->resumable = true;
        cm_error_prefix(err, "%s: written, but not yet entered in the store around it",
                        job->options->target);
    } else if (rc != CM_OK && !r->resumable && !out->resumes) {
        release_writers(job);
        cm_output_discard(out, &made);
        cm_re_into_discard(job->into);
    }
    if (rc == CM_OK) {
        r->seconds += (double)(cm_now_ns() - start) * 1e-9;
        rc = cm_re_report(job, true, err);
        if (rc == CM_OK && job->options->verify != CM_VERIFY_NONE)
            rc = verify_written(job, out, err);
    }
    free(made.node);
    return rc;
}

static void release(cm_re_job *job)
{
    release_writers(job);
    for (size_t i = 0; i < job->narrays; i++) {
        cm_re_array *a = &job->array[i];
        cm_array_free(a->source);
        cm_presence_release(&a->presence);
        cm_zarr_meta_release(&a->meta);
    }
    free(job->array);
    cm_zarr_tree_release(&job->tree);
    cm_zarr_conflicts_release(&job->conflicts);
    cm_store_free(job->store);
    free(job->path);
    free(job->scratch);
    cm_outfile_release(&job->trace);
}

static int find_scratch(cm_re_job *job, cm_error *err)
{
    const cm_rechunk_options *o = job->options;
    struct stat st;
    if (o->scratch == NULL) {
        job->scratch = folder_above(o->target != NULL ? o->target : "./x", err);
        return job->scratch == NULL ? CM_ENOMEM : CM_OK;
    }
    if (stat(o->scratch, &st) != 0 || !S_ISDIR(st.st_mode))
        return cm_fail(err, CM_EINVAL, "--scratch %s: is no folder", o->scratch);
    job->scratch = cm_strdup(o->scratch, err);
    return job->scratch == NULL ? CM_ENOMEM : CM_OK;
}

/* From the options to a layout: nothing is touched. */
static int prepare(cm_re_job *job, cm_error *err)
{
    int rc = cm_re_open(job, err);
    if (rc == CM_OK && job->options->target != NULL)
        rc = check_apart(job, err);
    cm_monitor_phase(job->options->monitor, CM_PHASE_PLANNING, 0);
    if (rc == CM_OK)
        rc = find_scratch(job, err);
    if (rc == CM_OK)
        rc = cm_re_select(job, err);
    if (rc == CM_OK)
        rc = cm_re_layout(job, err);
    if (rc == CM_OK)
        rc = cm_re_notice(job, err);
    return rc;
}

/* OUT, a copy of O, gets a target that is a folder, and the format of the store that it lies in. */
static int find_target(const cm_rechunk_options *o, cm_re_into *into, cm_rechunk_options *out,
                       cm_error *err)
{
    if (o->target == NULL)
        return CM_OK;
    int rc = cm_re_into_find(o->target, into, err);
    if (rc != CM_OK)
        return rc;
    out->target = into->folder;
    if (into->zarr_format != 0 && o->zarr_format != 0 && o->zarr_format != into->zarr_format)
        return cm_fail(err, CM_EINVAL, "--zarr-format %d: %s is of Zarr format %d", o->zarr_format,
                       into->root, into->zarr_format);
    if (into->zarr_format != 0)
        out->zarr_format = into->zarr_format;
    return CM_OK;
}

static bool is_canceled(void *monitor)
{
    return cm_monitor_canceled(monitor);
}

/* What the options name beside the stores is no part of them.  Nothing is touched. */
static int claim_files(cm_re_job *job, cm_store_path *source, cm_error *err)
{
    const cm_rechunk_options *o = job->options;
    int rc = cm_store_path_split(o->source, source, err);
    job->guarded = source->path;
    const cm_outfile_guard guard = {.read = &job->guarded,
                                    .nread = 1,
                                    .made = job->into->root,
                                    .canceled = is_canceled,
                                    .context = o->monitor};
    if (rc == CM_OK && o->scratch != NULL)
        rc = cm_outfile_check_folder(o->scratch, &guard, err);
    if (rc == CM_OK && o->trace != NULL)
        rc = cm_outfile_claim(&job->trace, o->trace, &CM_KIND_TRACE, &guard, o->overwrite, err);
    return rc;
}

int cm_rechunk(const cm_rechunk_options *asked, cm_rechunk_report *report, cm_error *err)
{
    cm_rechunk_options options = *asked;
    cm_re_into into = {0};
    cm_re_job job = {.options = &options, .report = report, .into = &into};
    cm_output out = {0};
    cm_store_path source = {0};
    uint64_t start = cm_now_ns();
    memset(report, 0, sizeof(*report));
    cm_monitor_phase(asked->monitor, CM_PHASE_OPENING, 0);
    int rc = check_options(asked, err);
    if (rc == CM_OK)
        rc = find_target(asked, &into, &options, err);
    if (rc == CM_OK && !options.dry_run)
        rc = cm_output_check(&(cm_output_request){.root = into.root,
                                                  .node = into.node,
                                                  .overwrite = options.overwrite,
                                                  .resume = options.resume,
                                                  .break_lock = options.break_lock},
                             &out, err);
    if (rc == CM_OK && asked->target != NULL &&
        (report->target = cm_strdup(asked->target, err)) == NULL)
        rc = CM_ENOMEM;
    if (rc == CM_OK && !options.dry_run)
        rc = claim_files(&job, &source, err);
    report->finished = rc == CM_OK && out.finished;
    if (report->finished)
        cm_output_tidy(&out);
    bool in_source = rc == CM_OK, works = !report->finished;
    if (rc == CM_OK && works)
        rc = prepare(&job, err);
    report->zarr_format_before = job.tree.zarr_format;
    report->zarr_format_after = job.zarr_format;
    report->seconds = (double)(cm_now_ns() - start) * 1e-9;
    if (rc == CM_OK && works)
        rc = options.dry_run ? dry_run(&job, err) : write_and_verify(&job, &out, err);
    if ((rc == CM_OK || rc == CM_EDIFFER) && job.trace_error.status != CM_OK) {
        rc = job.trace_error.status;
        if (err != NULL)
            *err = job.trace_error;
        cm_error_suffix(err, "; the target is complete, but has no trace");
    }
    if (in_source)
        name_source(&job, rc, err);
    report->nthreads = job.nthreads;
    report->memory_limit = job.memory_limit;
    report->memory_peak = cm_peak_rss();
    cm_monitor_phase(asked->monitor, CM_PHASE_DONE, 0);
    release(&job);
    cm_output_release(&out);
    cm_store_path_release(&source);
    cm_re_into_release(&into);
    return rc;
}
