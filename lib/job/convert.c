/*
 * nc2zarr's verb, from the options to the report: the steps of job.h in order.
 */
#include <chunkmill/convert.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fileurl.h"
#include "job/fingerprint.h"
#include "job/journal.h"
#include "job/output.h"
#include "job/store_path.h"

void cm_convert_options_init(cm_convert_options *options)
{
    *options = (cm_convert_options){.zarr_format = 3, .verify = CM_VERIFY_SAMPLE};
}

static bool has_prefix_path(const char *path, const char *prefix)
{
    size_t n = strlen(prefix);
    return n == 0 || (strncmp(path, prefix, n) == 0 && (path[n] == '\0' || path[n] == '/'));
}

/* The node after "::" is a group, or one variable, which is then converted with what it needs. */
static int check_group(cm_job *job, cm_convert_options *effective, cm_error *err)
{
    for (size_t i = 0; i < job->source->ngroups; i++)
        if (strcmp(job->source->group[i].path, job->group) == 0)
            return CM_OK;
    for (size_t i = 0; i < job->source->nvars; i++) {
        if (strcmp(job->source->var[i].name, job->group) == 0) {
            job->chosen = job->group;
            effective->variable = (cm_texts){&job->chosen, 1};
            job->group = "";
            return CM_OK;
        }
    }
    return cm_fail(err, CM_ENOTFOUND, "the file has no group or variable %s", job->group);
}

static int open_file(cm_job *job, const char *path, cm_error *err)
{
    cm_convert_report *r = job->report;
    const cm_dataset_options options = {.canceled = cm_monitor_cancels,
                                        .canceled_context = job->options->monitor};
    int rc = cm_dataset_open(path, job->group, &options, &job->source, err);
    if (rc != CM_OK)
        return rc;
    r->input_nbytes = job->source->nbytes;
    if ((r->input_format = cm_strdup(job->source->format_name, err)) == NULL)
        return CM_ENOMEM;
    return CM_OK;
}

static int prepare_variables(cm_job *job, cm_error *err)
{
    for (size_t i = 0; i < job->nvars; i++) {
        int rc = cm_dataset_prepare(job->source, job->var[i].source, err);
        if (rc != CM_OK)
            return rc;
    }
    for (size_t i = 0; i < cm_dataset_nwarnings(job->source); i++) {
        int rc = cm_job_warn(job, err, "%s", cm_dataset_warning_at(job->source, i));
        if (rc != CM_OK)
            return rc;
    }
    return CM_OK;
}

static uint64_t total_nbytes(const cm_job *job)
{
    uint64_t total = 0;
    for (size_t i = 0; i < job->ntransfers; i++) {
        const cm_grid *grid = cm_zarr_writer_grid(job->transfer[i].target);
        uint64_t nbytes = job->transfer[i].source->dtype.nbytes;
        for (unsigned j = 0; j < grid->rank; j++)
            nbytes *= grid->shape[j];
        total += nbytes;
    }
    return total;
}

static int move_all(cm_job *job, cm_error *err)
{
    cm_convert_report *r = job->report;
    cm_engine_options engine = {
        .nthreads = job->nthreads,
        .slots_nbytes = job->slots_nbytes,
        .monitor = job->options->monitor,
    };
    cm_engine_stats stats = {0};
    cm_monitor_phase(job->options->monitor, CM_PHASE_WORKING, total_nbytes(job));
    int rc = job->options->trace == NULL ? CM_OK : cm_trace_open(&job->trace, &engine.trace, err);
    if (rc == CM_OK)
        rc = cm_job_move_strings(job, err);
    if (rc == CM_OK)
        rc = cm_engine_run(job->transfer, job->ntransfers, &engine, &stats, err);
    cm_trace_close(engine.trace, &job->trace_error);
    for (int i = 0; i < CM_NSTAGES; i++)
        r->stage[r->nstages++] = (cm_stage_time){
            cm_stage_names[i], (double)stats.stage_ns[i] * 1e-9, stats.stage_calls[i]};
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        rc = job->var[i].absent ? CM_OK : cm_zarr_writer_finish(job->var[i].writer, err);
    return rc;
}

/* Groups that are described: those below the converted one; with a choice of variables, only those that hold some. */
bool cm_job_wants_group(const cm_job *job, const char *path)
{
    if (!has_prefix_path(path, job->group))
        return false;
    if (job->options->variable.n == 0)
        return true;
    for (size_t i = 0; i < job->nvars; i++)
        if (has_prefix_path(job->var[i].source->name, path))
            return true;
    return strcmp(path, job->group) == 0;
}

static int write_metadata(cm_job *job, cm_store *store, cm_error *err)
{
    size_t ngroups = job->source->ngroups, n = 0;
    cm_zarr_entry *entry = cm_calloc(ngroups + job->nvars, sizeof(entry[0]), err);
    cm_zarr_meta *group = cm_calloc(ngroups, sizeof(group[0]), err);
    int rc = entry == NULL || group == NULL ? CM_ENOMEM : CM_OK;
    cm_monitor_phase(job->options->monitor, CM_PHASE_FINISHING, 0);
    for (size_t i = 0; rc == CM_OK && i < ngroups; i++) {
        const cm_dataset_group *g = &job->source->group[i];
        if (!cm_job_wants_group(job, g->path))
            continue;
        const char *path = g->path + strlen(job->group);
        group[i] = (cm_zarr_meta){
            .zarr_format = job->options->zarr_format, .is_group = true, .attrs = g->attrs};
        entry[n++] = (cm_zarr_entry){path + (*path == '/'), &group[i]};
    }
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        entry[n++] = (cm_zarr_entry){job->var[i].name, &job->var[i].meta};
    if (rc == CM_OK && job->options->durable)
        rc = cm_store_sync(store, err);
    if (rc == CM_OK)
        rc = cm_zarr_hierarchy_write(store, job->options->zarr_format, entry, n,
                                     !job->options->no_consolidate, err);
    if (rc == CM_OK && job->options->durable)
        rc = cm_store_sync(store, err);
    free(entry);
    free(group);
    return rc;
}

/* What only the data could tell. */
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
                "GDAL takes for NoData; --fill-value %s:X chooses another",
                v->name, cm_element_to_double(&v->type, v->meta.fill), v->name);
    }
    return rc;
}

static uint64_t written_nbytes(const cm_job *job)
{
    uint64_t nbytes = 0;
    for (size_t i = 0; i < job->nvars; i++)
        nbytes += cm_zarr_writer_counts(job->var[i].writer).nbytes;
    return nbytes;
}

static uint64_t written_objects(const cm_job *job)
{
    uint64_t n = 0;
    for (size_t i = 0; i < job->nvars; i++)
        n += cm_zarr_writer_counts(job->var[i].writer).nobjects;
    return n;
}

static int on_skip(void *context, uint64_t chunk, cm_error *err)
{
    const cm_job_var *v = context;
    int rc = cm_journal_skip(v->journal, v->index, chunk, err);
    if (rc != CM_OK)
        cm_error_place(err, v->output);
    return rc;
}

/* What will be in the store: the variables, by whose numbers the journal counts, then the groups. */
static int list_made(cm_job *job, cm_made *made, cm_error *err)
{
    size_t ngroups = job->source->ngroups;
    *made = (cm_made){.node = cm_calloc(job->nvars + ngroups + 1, sizeof(made->node[0]), err)};
    if (made->node == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < job->nvars; i++) {
        cm_job_var *v = &job->var[i];
        made->node[made->n++] = (cm_made_node){v->name, &v->meta, v->absent ? NULL : v->writer};
    }
    for (size_t i = 0; i < ngroups; i++) {
        const char *path = job->source->group[i].path;
        if (cm_job_wants_group(job, path)) {
            path += strlen(job->group);
            made->node[made->n++] = (cm_made_node){.path = path + (*path == '/')};
        }
    }
    return CM_OK;
}

/* A run that was stopped goes on where its journal says; any other begins one. */
static int open_journal(cm_job *job, cm_output *out, const cm_made *made, cm_journal **journal,
                        cm_error *err)
{
    uint64_t done = 0;
    cm_json *fingerprint = NULL;
    int rc = cm_fingerprint_conversion(job, job->path, &fingerprint, err);
    if (rc == CM_OK)
        rc = cm_output_open_journal(out, fingerprint, made, job->nthreads, job->memory_limit,
                                    journal, &done, err);
    cm_json_free(fingerprint);
    if (rc == CM_OK && out->resumes)
        rc = cm_job_note(job, err, "resumed: %llu chunks and shards were done already",
                         (unsigned long long)done);
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        job->var[i].journal = *journal;
        job->var[i].output = out->path;
        job->var[i].index = i;
    }
    for (size_t i = 0, k = 0; rc == CM_OK && i < job->nvars; i++) {
        if (job->var[i].as_strings || job->var[i].absent)
            continue;
        job->transfer[k].on_skip = on_skip;
        job->transfer[k++].on_skip_context = &job->var[i];
    }
    return rc;
}

static int write_described(cm_job *job, cm_output *out, cm_error *err)
{
    cm_store_counts before = cm_store_count(out->store);
    int rc = write_metadata(job, out->store, err);
    cm_store_counts after = cm_store_count(out->store);
    if (rc != CM_OK)
        cm_error_place(err, out->path);
    job->report->nobjects = written_objects(job) + after.nput - before.nput;
    job->report->stored_nbytes = written_nbytes(job) + after.put_nbytes - before.put_nbytes;
    return rc;
}

/* The folder is ours alone, and holds nothing of an old store. */
static int begin(cm_job *job, cm_output *out, const cm_made *made, cm_error *err)
{
    cm_zarr_left left = {0};
    int rc = cm_output_lock(out, made, err);
    if (rc == CM_OK)
        rc = cm_output_begin(out, made, &left, err);
    if (rc == CM_OK && out->note != NULL)
        rc = cm_job_warn(job, err, "%s", out->note);
    if (rc == CM_OK && left.n > 0)
        rc = cm_job_warn(job, err, "%s: %llu files are not the old store's and were left: %s%s",
                         out->path, (unsigned long long)left.n, left.names,
                         left.n > left.nnamed ? ", ..." : "");
    return rc;
}

static int write_store(cm_job *job, cm_output *out, cm_made *made, cm_error *err)
{
    cm_journal *journal = NULL;
    bool planned = out->store != NULL;
    int rc = begin(job, out, planned ? made : NULL, err);
    if (rc == CM_OK && !planned) {
        rc = cm_job_plan(job, out->store, err);
        free(made->node);
        if (rc == CM_OK)
            rc = list_made(job, made, err);
        else
            *made = (cm_made){0};
    }
    if (rc == CM_OK)
        rc = open_journal(job, out, made, &journal, err);
    if (rc == CM_OK)
        rc = move_all(job, err);
    if (rc == CM_OK)
        rc = write_described(job, out, err);
    /* From here on the store is finished work, and stays whatever fails. */
    job->report->written = rc == CM_OK;
    cm_journal_close(journal);
    if (rc == CM_OK)
        cm_output_complete(out);
    return rc == CM_OK ? warn_of_data(job, err) : rc;
}

static int dry_run(cm_job *job, cm_error *err)
{
    cm_store *nowhere = NULL;
    int rc = cm_store_open_memory(&nowhere, err);
    if (rc == CM_OK)
        rc = cm_job_plan(job, nowhere, err);
    if (rc == CM_OK)
        rc = cm_job_report(job, false, err);
    if (rc == CM_OK)
        rc = cm_job_estimate(job, err);
    for (size_t i = 0; rc == CM_OK && i < job->report->nvariables; i++)
        job->report->nobjects += job->report->variable[i].nobjects;
    if (rc == CM_OK)
        rc = write_metadata(job, nowhere, err);
    if (rc == CM_OK)
        job->report->nobjects += cm_store_count(nowhere).nput;
    for (size_t i = 0; i < job->nvars; i++) {
        cm_zarr_writer_free(job->var[i].writer);
        job->var[i].writer = NULL;
    }
    cm_store_free(nowhere);
    return rc;
}

/* What is not said to be the output's is the input's. */
static void name_file(cm_error *err, const char *input, const char *output)
{
    size_t n = output == NULL ? 0 : strlen(output);
    bool is_outputs = err != NULL && n > 0 && strncmp(err->text, output, n) == 0 &&
                      (err->text[n] == ':' || err->text[n] == '/');
    if (!is_outputs)
        cm_error_place(err, input);
}

/* The store is complete, and may be all that a long run has to show: that it cannot be verified is said, and it stays. */
static int verify_written(cm_job *job, cm_output *out, cm_error *err)
{
    uint64_t start = cm_now_ns();
    int rc = cm_job_verify(job, out->store, err);
    job->report->verify_seconds = (double)(cm_now_ns() - start) * 1e-9;
    job->report->unverified = rc != CM_OK && rc != CM_EDIFFER;
    if (!job->report->unverified || rc == CM_ECANCELED)
        return rc;
    name_file(err, job->path, out->path);
    cm_error_prefix(err, "%s: written, but not verified", out->path);
    return rc;
}

static int write_and_verify(cm_job *job, cm_output *out, cm_made *made, cm_error *err)
{
    uint64_t start = cm_now_ns();
    int rc = write_store(job, out, made, err);
    if (rc == CM_EINVAL)
        name_file(err, job->path, out->path);
    cm_convert_report *r = job->report;
    /* What can be finished is left to be finished; everything else is removed. */
    r->resumable = (rc == CM_ECANCELED || rc == CM_ENOSPC) && (out->begun || out->resumes);
    if (rc == CM_ENOSPC && r->resumable)
        cm_error_suffix(err, "; --resume goes on when there is room");
    if (rc != CM_OK && !r->written && !r->resumable && !out->resumes)
        cm_output_discard(out, made);
    if (rc != CM_OK)
        return rc;
    r->seconds += (double)(cm_now_ns() - start) * 1e-9;
    rc = cm_job_report(job, true, err);
    return rc == CM_OK && job->options->verify != CM_VERIFY_NONE ? verify_written(job, out, err)
                                                                 : rc;
}

static int convert(cm_job *job, cm_output *out, cm_error *err)
{
    cm_made made = {0};
    uint64_t start = cm_now_ns();
    int rc = cm_job_describe(job, err);
    if (rc == CM_OK && job->options->dry_run)
        return dry_run(job, err);
    /* What is refused must not cost the store that is there: it is erased when the plan stands. */
    if (rc == CM_OK && out->store != NULL)
        rc = cm_job_plan(job, out->store, err);
    if (rc == CM_OK)
        rc = list_made(job, &made, err);
    job->report->seconds += (double)(cm_now_ns() - start) * 1e-9;
    if (rc == CM_OK)
        rc = write_and_verify(job, out, &made, err);
    free(made.node);
    return rc;
}

/* From the input to a layout: nothing is touched. */
static int describe_target(cm_job *job, cm_error *err)
{
    int rc = cm_job_select(job, err);
    if (rc == CM_OK)
        rc = prepare_variables(job, err);
    if (rc == CM_OK)
        rc = cm_job_view(job, err);
    return rc == CM_OK ? cm_job_layout(job, err) : rc;
}

static int check_options(const cm_convert_options *o, cm_error *err)
{
    if (o->resume && o->overwrite)
        return cm_fail(err, CM_EINVAL, "--resume and --overwrite exclude each other");
    if (o->certificate != NULL && o->verify != CM_VERIFY_FULL && !o->check)
        return cm_fail(err, CM_EINVAL, "--certificate needs --verify full, or --check");
    if (o->zarr_format != 2 && o->zarr_format != 3)
        return cm_fail(err, CM_EINVAL, "there is Zarr format 2 and 3, no %d", o->zarr_format);
    return CM_OK;
}

static void release(cm_job *job)
{
    for (size_t i = 0; i < job->nvars; i++) {
        cm_zarr_writer_free(job->var[i].writer);
        cm_zarr_meta_release(&job->var[i].meta);
        free(job->var[i].name);
    }
    free(job->var);
    free(job->transfer);
    cm_outfile_release(&job->trace);
    cm_dataset_close(job->source);
}

static bool is_canceled(void *monitor)
{
    return cm_monitor_canceled(monitor);
}

/* The files that the options name beside the store.  Nothing is touched. */
static int claim_files(cm_job *job, const char *input, const char *output, cm_outfile *certificate,
                       cm_error *err)
{
    const cm_convert_options *o = job->options;
    job->guarded[0] = input;
    job->guarded[1] = output;
    cm_outfile_guard guard = {.read = job->guarded,
                              .nread = o->check ? 2 : 1,
                              .made = o->check ? NULL : output,
                              .canceled = is_canceled,
                              .context = o->monitor};
    int rc = CM_OK;
    if (o->trace != NULL)
        rc = cm_outfile_claim(&job->trace, o->trace, &CM_KIND_TRACE, &guard, o->overwrite, err);
    if (rc == CM_OK && o->certificate != NULL)
        rc = cm_outfile_claim(certificate, o->certificate, &CM_KIND_CERTIFICATE, &guard,
                              o->overwrite, err);
    return rc;
}

/* Beside a store that is complete.  Returns RC, or what failed. */
static int finish_files(cm_job *job, int rc, const char *input, cm_outfile *certificate,
                        cm_error *err)
{
    const cm_convert_options *o = job->options;
    bool done = rc == CM_OK || rc == CM_EDIFFER;
    const char *store = job->report->written ? "; the store is complete" : "";
    int failed = CM_OK;
    if (done && o->certificate != NULL && !o->dry_run)
        failed = cm_job_certify(job, input, certificate, err);
    if (failed != CM_OK) {
        cm_error_suffix(err, "%s, but has no certificate", store);
        return failed;
    }
    if (!done || job->trace_error.status == CM_OK)
        return rc;
    if (err != NULL)
        *err = job->trace_error;
    cm_error_suffix(err, "%s, but has no trace", store);
    return job->trace_error.status;
}

int cm_convert(const cm_convert_options *options, cm_convert_report *report, cm_error *err)
{
    cm_convert_options effective = *options;
    cm_job job = {.options = &effective, .report = report};
    cm_output out = {0};
    cm_store_path in = {0};
    cm_outfile certificate = {.fd = -1};
    char *output = NULL;
    uint64_t start = cm_now_ns();
    memset(report, 0, sizeof(*report));
    cm_monitor_phase(options->monitor, CM_PHASE_OPENING, 0);
    int rc = check_options(options, err);
    if (rc == CM_OK && !options->dry_run && !options->check)
        rc = cm_output_check(&(cm_output_request){.root = options->output,
                                                  .node = "",
                                                  .overwrite = options->overwrite,
                                                  .resume = options->resume,
                                                  .break_lock = options->break_lock},
                             &out, err);
    if (rc == CM_OK && (report->output = cm_strdup(options->output, err)) == NULL)
        rc = CM_ENOMEM;
    if (rc == CM_OK)
        rc = cm_store_path_split(options->input, &in, err);
    job.path = in.path;
    job.group = in.node;
    if (rc == CM_OK)
        rc = cm_fileurl_path(options->output, &output, err);
    if (rc == CM_OK && !options->dry_run)
        rc = claim_files(&job, in.path, output, &certificate, err);
    if (rc == CM_OK)
        rc = open_file(&job, in.path, err);
    bool opened = rc == CM_OK;
    cm_monitor_phase(options->monitor, CM_PHASE_PLANNING, 0);
    if (rc == CM_OK)
        rc = check_group(&job, &effective, err);
    report->finished = rc == CM_OK && out.finished;
    if (report->finished)
        cm_output_tidy(&out);
    /* A proof that was asked for is given of a store that is complete already, too. */
    effective.check = options->check || (report->finished && options->verify == CM_VERIFY_FULL);
    bool works = !report->finished || effective.check;
    if (rc == CM_OK && works)
        rc = describe_target(&job, err);
    report->seconds = (double)(cm_now_ns() - start) * 1e-9;
    if (rc == CM_OK && works)
        rc = effective.check ? cm_job_check(&job, &effective.zarr_format, err)
                             : convert(&job, &out, err);
    rc = finish_files(&job, rc, in.path, &certificate, err);
    if (opened && rc != CM_OK && rc != CM_EINVAL && rc != CM_ECANCELED)
        name_file(err, in.path, out.path);
    report->nthreads = job.nthreads;
    report->memory_limit = job.memory_limit;
    report->memory_peak = cm_peak_rss();
    cm_monitor_phase(options->monitor, CM_PHASE_DONE, 0);
    release(&job);
    cm_outfile_release(&certificate);
    cm_output_release(&out);
    cm_store_path_release(&in);
    free(output);
    return rc;
}
