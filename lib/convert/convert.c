/*
 * The verb behind nc2zarr and rechunk, from the options to the report: the steps
 * of transform.h in order.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "convert/layout/refer.h"
#include "convert/select/merge_along.h"
#include "convert/sink/give_back.h"
#include "convert/sink/growth/append_source.h"
#include "convert/sink/part/parts.h"
#include "convert/sink/references/document.h"
#include "convert/sink/store/files.h"
#include "convert/sink/store/fingerprint.h"
#include "convert/sink/store/into.h"
#include "convert/sink/write.h"
#include "convert/source/inputs.h"
#include "convert/stack/stack.h"
#include "convert/statistics/statistics.h"
#include "options/store_path.h"
#include "store/open.h"

void cm_transform_options_init(cm_transform_options *options, cm_defaults defaults)
{
    *options = (cm_transform_options){.defaults = defaults, .verify = CM_VERIFY_SAMPLE};
}

/* ---- what was asked for ---- */

/* Every chunk is counted while it is made, or found good when a run goes on. */
static int check_statistics(const cm_transform_options *o, cm_error *err)
{
    if (o->check)
        return cm_fail(err, CM_EINVAL, "`statistics` and `check`: nothing is written");
    if (o->refer != NULL)
        return cm_fail(err, CM_EINVAL,
                       "`statistics`: references are made without reading the data");
    if (o->target != NULL && strstr(o->target, "::") != NULL)
        return cm_fail(err, CM_EINVAL, "%s: `statistics` are of a store, not of a node in one",
                       o->target);
    return CM_OK;
}

static int check_combinations(const cm_transform_options *o, cm_error *err)
{
    if ((o->source == NULL && o->dataset == NULL) || (o->target == NULL && !o->dry_run))
        return cm_fail(err, CM_EINVAL, "a source and a target are needed");
    if (o->resume && o->overwrite)
        return cm_fail(err, CM_EINVAL, "`resume` and `overwrite` exclude each other");
    if (o->certificate != NULL && o->part.on && !o->check)
        return cm_fail(err, CM_EINVAL,
                       "a certificate is about a whole store: `check` makes one when all parts are "
                       "done");
    if (o->certificate != NULL && o->verify != CM_VERIFY_FULL && !o->check)
        return cm_fail(err, CM_EINVAL, "`certificate` needs `verify` full, or `check`");
    if (o->statistics_range.n > 0 && !o->statistics)
        return cm_fail(err, CM_EINVAL, "`statistics_range` needs `statistics`");
    if (o->statistics)
        return check_statistics(o, err);
    return CM_OK;
}

static int check_options(const cm_transform_options *o, cm_error *err)
{
    int rc = check_combinations(o, err);
    if (rc != CM_OK)
        return rc;
    if (o->zarr_format != 0 && o->zarr_format != 2 && o->zarr_format != 3)
        return cm_fail(err, CM_EINVAL, "the Zarr format must be 2 or 3, not %d", o->zarr_format);
    if (o->target != NULL && !o->check && cm_store_url_is_remote(o->target) &&
        strncasecmp(o->target, "s3:", 3) != 0)
        return cm_fail(err, CM_EINVAL,
                       "%s: nothing can be written over HTTP; a bucket is s3://BUCKET/PREFIX",
                       o->target);
    return CM_OK;
}

/* Why an option says nothing to a store that grows, or to references. */
enum {
    LAYOUT = 1, /* what a new store is like */
    VALUES = 2, /* what its values are */
    OTHER = 4,
    APPEND = LAYOUT | VALUES | OTHER,
    REFER = 8
};

/* The first option given that appending, or writing references, leaves no choice of; or NULL. */
static const char *option_without_choice(const cm_transform_options *o, bool refers, int *why)
{
    const struct {
        bool given;
        const char *text;
        int excluded_by;
    } row[] = {
        {o->chunks.n > 0, "`chunks`", LAYOUT | REFER},
        {o->shards.n > 0, "`shards`", LAYOUT | REFER},
        {o->codec.n > 0, "`codec`", LAYOUT | REFER},
        {o->sample != NULL, "`sample`", LAYOUT | REFER},
        {o->dtype.n > 0, "`dtype`", VALUES | REFER},
        {o->unpack.n > 0, "`unpack`", VALUES | REFER},
        {o->keepbits.n > 0, "`keepbits`", VALUES | REFER},
        {o->subset.n > 0, "`subset`", VALUES | REFER},
        {o->fill_value.n > 0, "`fill_value`", LAYOUT | REFER},
        {o->stack.n > 0, "`stack`", VALUES | REFER},
        {o->merge_along.n > 0, "`merge_along`", REFER},
        {o->variable.n > 0 && o->dataset != NULL, "`variable`", OTHER},
        {o->overwrite, "`overwrite`", OTHER},
        {o->no_consolidate, "`no_consolidate`", LAYOUT},
        {o->resume, "`resume`", REFER},
        {o->check, "`check`", OTHER | REFER},
        {o->refer != NULL, "`refer`", OTHER},
        {o->certificate != NULL, "`certificate`", OTHER | REFER},
        {o->part.on, "`part`", REFER},
        {o->statistics, "`statistics`", OTHER},
        {o->skip_unsupported && o->dataset == NULL, "`skip_unsupported`", OTHER},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        if (row[i].given && (row[i].excluded_by & (refers ? REFER : APPEND)) != 0) {
            *why = row[i].excluded_by;
            return row[i].text;
        }
    return NULL;
}

static int check_grows(const cm_transform_options *o, cm_error *err)
{
    int why = 0;
    const char *given = option_without_choice(o, false, &why);
    if (given == NULL)
        return CM_OK;
    if ((why & LAYOUT) != 0)
        return cm_fail(err, CM_EINVAL, "%s: a store that grows keeps its layout", given);
    if ((why & VALUES) != 0 && o->dataset != NULL)
        return cm_fail(err, CM_EINVAL,
                       "%s: files are added as they are, to a store that keeps its dimensions and "
                       "types",
                       given);
    if ((why & VALUES) != 0)
        return cm_fail(err, CM_EINVAL,
                       "%s: a source is added as it is; make another store of it with this option "
                       "first, and add from that one",
                       given);
    return cm_fail(err, CM_EINVAL, "%s: not possible while a store grows", given);
}

static int check_append(const cm_transform_options *o, cm_error *err)
{
    if (o->append != NULL && o->part.on && o->dataset == NULL)
        return cm_fail(err, CM_EINVAL,
                       "`append` and `part`: parts can add files to a store, not another store");
    if (o->append != NULL && o->part.on && cm_store_url_is_remote(o->target))
        return cm_fail(err, CM_EINVAL,
                       "%s: `append` and `part`: to a store behind a network one process adds",
                       o->target);
    return o->append != NULL ? check_grows(o, err) : CM_OK;
}

static int check_refer(const cm_transform_options *o, cm_error *err)
{
    if (cm_store_url_is_remote(o->target))
        return cm_fail(err, CM_EINVAL, "%s: references can only be written to a local file",
                       o->target);
    int why;
    const char *given = option_without_choice(o, true, &why);
    if (given != NULL)
        return cm_fail(err, CM_EINVAL,
                       "%s: references point to the files' own bytes and cannot change them",
                       given);
    if (o->base_url != NULL && strstr(o->base_url, "://") == NULL)
        return cm_fail(err, CM_EINVAL, "`base_url` %s: is not a URL", o->base_url);
    return strcmp(o->refer, "json") == 0
               ? CM_OK
               : cm_fail(err, CM_EINVAL, "`refer` %s: references are written as json", o->refer);
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

/*
 * The target is neither the source, nor in it, nor around it: overwriting would take the source
 * away.
 */
static int check_apart(const cm_job *job, cm_error *err)
{
    const cm_transform_options *o = job->options;
    const char *target = o->target;
    if (target == NULL || o->check)
        return CM_OK;
    if (cm_store_url_is_remote(target)) {
        /* A store that grows is among its own sources. */
        bool clash = job->options->append == NULL &&
                     (is_inside(target, job->source->path) || is_inside(job->source->path, target));
        return clash ? cm_fail(err, CM_EINVAL, "%s: is the source, or lies in it or around it",
                               target)
                     : CM_OK;
    }
    /* A store that grows is among its own sources. */
    bool joined = o->append != NULL && o->dataset != NULL;
    char *source = joined ? NULL : realpath(job->source->path, NULL);
    char *there = realpath(target, NULL);
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
    } else if (there != NULL && cm_job_inputs_lie_in(job, there)) {
        rc = cm_fail(err, CM_EINVAL, "%s: an input lies in it", target);
    }
    if (rc != CM_OK)
        cm_error_place(err, target);
    free(source);
    free(there);
    return rc;
}

static int find_scratch(cm_job *job, cm_error *err)
{
    const cm_transform_options *o = job->options;
    struct stat st;
    if (o->scratch == NULL) {
        job->scratch = folder_above(
            o->target != NULL && !cm_store_url_is_remote(o->target) ? o->target : "./x", err);
        return job->scratch == NULL ? CM_ENOMEM : CM_OK;
    }
    if (stat(o->scratch, &st) != 0 || !S_ISDIR(st.st_mode))
        return cm_fail(err, CM_EINVAL, "`scratch` %s: is not a folder", o->scratch);
    job->scratch = cm_strdup(o->scratch, err);
    return job->scratch == NULL ? CM_ENOMEM : CM_OK;
}

/* OUT, a copy of O, gets a target that is a folder, and the format of the store that it lies in. */
static int find_target(const cm_transform_options *o, cm_into *into, cm_transform_options *out,
                       cm_error *err)
{
    if (o->target == NULL || o->check || o->refer != NULL)
        return CM_OK;
    int rc = cm_into_find(o->target, o->net, into, err);
    if (rc != CM_OK)
        return rc;
    out->target = into->folder;
    if (into->zarr_format != 0 && o->zarr_format != 0 && o->zarr_format != into->zarr_format &&
        o->append == NULL)
        return cm_fail(err, CM_EINVAL, "`zarr_format` %d: %s is of Zarr format %d", o->zarr_format,
                       into->root, into->zarr_format);
    if (into->zarr_format != 0)
        out->zarr_format = into->zarr_format;
    return CM_OK;
}

/* ---- the source ---- */

/* The node after "::" is a group, or one variable, which is then converted with what it needs. */
static int check_group(cm_job *job, cm_transform_options *effective, cm_error *err)
{
    const cm_dataset *ds = job->source;
    for (size_t i = 0; i < ds->ngroups; i++)
        if (strcmp(ds->group[i].path, job->group) == 0)
            return CM_OK;
    for (size_t i = 0; i < ds->nvars; i++) {
        if (strcmp(ds->var[i].name, job->group) != 0)
            continue;
        job->chosen = job->group;
        effective->variable = (cm_texts){&job->chosen, 1};
        job->group = "";
        return CM_OK;
    }
    return cm_fail(err, CM_ENOTFOUND, "the file has no group or variable %s", job->group);
}

static int open_source(cm_job *job, const cm_store_path *at, cm_transform_options *effective,
                       cm_error *err)
{
    cm_transform_report *r = job->report;
    const cm_dataset_options options = {.canceled = cm_monitor_cancels,
                                        .canceled_context = job->options->monitor,
                                        .net = job->options->net,
                                        .memory = job->options->memory};
    int rc = CM_OK;
    job->source = job->options->dataset;
    if (job->source == NULL)
        rc = cm_dataset_open(at->path, at->node, &options, &job->source, err);
    if (rc != CM_OK)
        return rc;
    r->source_nbytes = job->source->nbytes;
    const cm_multi_spec *spec = cm_multi_spec_of(job->source);
    r->nfiles = spec != NULL ? spec->nfiles : 0;
    r->zarr_format_before = job->source->zarr_format;
    if ((r->source_format = cm_strdup(job->source->format_name, err)) == NULL)
        return CM_ENOMEM;
    if (job->source->kind == CM_DATASET_ZARR)
        job->group = "";
    else
        rc = check_group(job, effective, err);
    job->zarr_format = effective->zarr_format;
    if (job->zarr_format == 0)
        job->zarr_format = job->source->zarr_format != 0 ? job->source->zarr_format : 3;
    r->zarr_format_after = job->zarr_format;
    if (rc == CM_OK)
        rc = cm_job_merge_along(job, err);
    return rc == CM_OK ? cm_job_stack(job, &options, err) : rc;
}

/* A dataset that is there goes by its own name. */
static int name_dataset(const cm_dataset *ds, cm_store_path *at, cm_error *err)
{
    at->path = cm_strdup(ds->path, err);
    at->node = cm_strdup("", err);
    return at->path == NULL || at->node == NULL ? CM_ENOMEM : CM_OK;
}

/* From the source to a layout: nothing is touched. */
static int prepare(cm_job *job, cm_error *err)
{
    int rc = check_apart(job, err);
    cm_monitor_phase(job->options->monitor, CM_PHASE_PLANNING, 0);
    if (rc == CM_OK)
        rc = find_scratch(job, err);
    if (rc == CM_OK)
        rc = cm_job_select(job, err);
    if (rc == CM_OK && job->options->append != NULL && job->options->dataset == NULL)
        rc = cm_append_source_join(job, err);
    if (rc == CM_OK)
        rc = cm_job_tell_stacks(job, err);
    if (rc == CM_OK)
        rc = cm_job_open_arrays(job, err);
    if (rc == CM_OK)
        rc = cm_job_view(job, err);
    if (rc != CM_OK || job->options->append != NULL) /* the store has a layout */
        return rc;
    return job->options->refer != NULL ? cm_job_refer_layout(job, err) : cm_job_layout(job, err);
}

/* The files and bytes to come. */
static int expect(cm_job *job, cm_store *nowhere, cm_error *err)
{
    cm_transform_report *r = job->report;
    uint64_t before = cm_store_count(nowhere).nput;
    int rc = cm_job_estimate(job, err);
    if (rc == CM_OK)
        rc = cm_job_write_metadata(job, nowhere, err);
    r->nobjects = cm_store_count(nowhere).nput - before;
    for (size_t i = 0; i < r->nvariables; i++)
        r->nobjects += r->variable[i].nobjects;
    return rc;
}

/* Where the target will be decides what it takes to write; nothing is asked of a server. */
static int open_place(const cm_job *job, cm_store *nowhere, cm_store **place, cm_error *err)
{
    const cm_transform_options *o = job->options;
    *place = nowhere;
    if (o->net == NULL || o->target == NULL || !cm_store_url_is_remote(o->target))
        return CM_OK;
    return cm_store_open(o->target, &(cm_store_options){.output = true, .net = o->net}, place, err);
}

static int dry_run(cm_job *job, cm_error *err)
{
    cm_store *nowhere = NULL, *place = NULL;
    int rc = cm_store_open_memory(&nowhere, err);
    if (rc == CM_OK)
        rc = open_place(job, nowhere, &place, err);
    if (rc == CM_OK)
        rc = cm_job_plan(job, place, err);
    if (rc == CM_OK)
        rc = cm_job_report(job, false, err);
    if (rc == CM_OK && job->options->defaults == CM_DEFAULTS_CHOOSE)
        rc = expect(job, nowhere, err);
    cm_job_release_writers(job);
    if (place != nowhere)
        cm_store_free(place);
    cm_store_free(nowhere);
    return rc;
}

static int transform(cm_job *job, cm_output *out, cm_error *err)
{
    const cm_transform_options *o = job->options;
    if (o->append != NULL)
        return cm_job_append(job, err);
    int rc = cm_job_describe(job, err);
    if (rc == CM_OK)
        rc = cm_job_notice(job, err);
    if (rc != CM_OK)
        return rc;
    if (o->warn != NULL) {
        o->warn(o->warn_context, job->report->warning, job->report->nwarnings);
        job->report->nwarned = job->report->nwarnings;
    }
    if (o->statistics)
        rc = cm_statistics_prepare(job, o->dry_run || o->part.on ? NULL : out->path, err);
    if (rc != CM_OK)
        return rc;
    if (o->refer != NULL)
        return cm_job_refer_write(job, err);
    if (o->dry_run)
        return dry_run(job, err);
    return o->part.on ? cm_job_write_part(job, out, NULL, err) : cm_job_write(job, out, err);
}

static void release(cm_job *job)
{
    cm_job_release_writers(job);
    for (size_t i = 0; i < job->nvars; i++) {
        cm_refer_free(job->var[i].refer);
        cm_statistics_free(job->var[i].statistics);
        cm_presence_release(&job->var[i].presence);
        for (size_t k = 0; k < sizeof(job->var[i].own_cuts) / sizeof(cm_cuts); k++)
            cm_cuts_release(&job->var[i].own_cuts[k]);
        cm_zarr_meta_release(&job->var[i].meta);
        free(job->var[i].window);
        free(job->var[i].name);
    }
    free(job->var);
    cm_early_free(job->early);
    free(job->scratch);
    cm_json_free(job->sample_chunks);
    free(job->guarded);
    cm_outfile_release(&job->trace);
    cm_job_unstack(job);
    cm_job_unmerge(job);
    /* Where the source was joined with the store, it is closed after what was made of both. */
    if (job->source != job->options->dataset &&
        (job->grown == NULL || cm_multi_spec_of(job->source) != NULL))
        cm_dataset_close(job->source);
    cm_append_source_free(job->grown);
}

/* A store that several processes make is looked at when there is a plan. */
static int check_output(const cm_transform_options *o, const cm_into *into, cm_output *out,
                        cm_error *err)
{
    const cm_output_request request = {.root = into->root,
                                       .node = into->node,
                                       .overwrite = o->overwrite,
                                       .resume = o->resume && !o->part.on,
                                       .break_lock = o->break_lock,
                                       .net = o->net};
    if (!o->part.on)
        return cm_output_check(&request, out, err);
    if (*into->node != '\0')
        return cm_fail(err, CM_EINVAL, "%s: several processes make a store, not a node in one",
                       o->target);
    return cm_output_find(&request, out, err);
}

/* A store that is complete is not read again to be counted. */
static int check_counted(const cm_output *out, cm_error *err)
{
    bool there;
    int rc = cm_statistics_are_there(out->path, out->beside.net, &there, err);
    return rc == CM_OK && !there
               ? cm_fail(err, CM_EEXIST,
                         "%s: is complete, and has no statistics; `overwrite` makes both",
                         out->path)
               : rc;
}

/* Everything that one call holds until it returns. */
typedef struct held {
    const cm_transform_options *asked;
    cm_transform_options options;
    cm_into into;
    cm_job job;
    cm_output out;
    cm_store_path at;
    cm_outfile certificate;
    char *target; /* of a check */
} held;

/* Where the target is, and what stands there. */
static int find_output(held *h, cm_transform_report *report, cm_error *err)
{
    const cm_transform_options *asked = h->asked, *o = &h->options;
    int rc = check_options(asked, err);
    if (rc == CM_OK)
        rc = check_append(asked, err);
    if (rc == CM_OK)
        rc = find_target(asked, &h->into, &h->options, err);
    if (rc == CM_OK && !o->dry_run && !o->check && o->refer == NULL && o->append == NULL)
        rc = check_output(o, &h->into, &h->out, err);
    if (rc == CM_OK && h->out.resumes && o->sample != NULL)
        rc = cm_journal_member(&h->out.beside, h->out.journal, CM_FINGERPRINT_CHUNKS,
                               &h->job.sample_chunks, err);
    if (rc == CM_OK && asked->target != NULL &&
        (report->target = cm_strdup(asked->target, err)) == NULL)
        rc = CM_ENOMEM;
    if (rc == CM_OK && o->refer != NULL && (rc = check_refer(asked, err)) == CM_OK)
        h->options.zarr_format = 2;
    return rc;
}

/* Opens the source, after the other output files have been claimed. */
static int find_input(held *h, cm_error *err)
{
    cm_transform_options *o = &h->options;
    cm_store_path *at = &h->at;
    int rc = o->dataset == NULL ? cm_store_path_split(o->source, at, err)
                                : name_dataset(o->dataset, at, err);
    if (rc == CM_OK && o->dataset == NULL)
        rc = cm_store_path_fetch(at, o->net, o->scratch, err);
    h->job.path = at->url != NULL ? at->url : at->path;
    h->job.group = at->node;
    if (rc == CM_OK && o->check)
        rc = cm_store_path_plain(o->target, &h->target, err);
    if (rc == CM_OK && !o->dry_run)
        rc = cm_job_claim_files(&h->job, at->path, h->target != NULL ? h->target : h->into.root,
                                &h->certificate, err);
    return rc == CM_OK ? open_source(&h->job, at, o, err) : rc;
}

/* Plans the work; *WORKS is false where the target is complete and no proof is wanted. */
static int find_work(held *h, cm_transform_report *report, bool *works, cm_error *err)
{
    const cm_transform_options *asked = h->asked;
    int rc = CM_OK;
    report->finished = h->out.finished;
    if (report->finished)
        cm_output_tidy(&h->out);
    if (report->finished && asked->statistics)
        rc = check_counted(&h->out, err);
    /* A proof that was asked for is given of a target that is complete already, too. */
    h->options.check = asked->check || (report->finished && asked->verify == CM_VERIFY_FULL);
    *works = !report->finished || h->options.check;
    return rc == CM_OK && *works ? prepare(&h->job, err) : rc;
}

int cm_transform(const cm_transform_options *asked, cm_transform_report *report, cm_error *err)
{
    held h = {.asked = asked, .options = *asked, .certificate = {.fd = -1}};
    cm_job *job = &h.job;
    bool works = false;
    uint64_t start = cm_now_ns();
    *job = (cm_job){.options = &h.options, .report = report, .into = &h.into, .group = ""};
    memset(report, 0, sizeof(*report));
    cm_monitor_phase(asked->monitor, CM_PHASE_OPENING, 0);
    int rc = find_output(&h, report, err);
    if (rc == CM_OK)
        rc = find_input(&h, err);
    if (rc == CM_OK)
        rc = find_work(&h, report, &works, err);
    report->seconds = (double)(cm_now_ns() - start) * 1e-9;
    if (rc == CM_OK && works)
        rc = h.options.check ? cm_job_check(job, err) : transform(job, &h.out, err);
    rc = cm_job_finish_files(job, rc, &h.certificate, err);
    if (job->source != NULL && rc != CM_OK && rc != CM_ECANCELED && rc != CM_EDIFFER)
        cm_job_name_source(job, err);
    if (rc != CM_OK)
        cm_store_path_name(&h.at, err);
    report->nthreads = job->nthreads;
    report->memory_limit = job->memory_limit;
    report->memory_peak = cm_peak_rss();
    cm_monitor_phase(asked->monitor, CM_PHASE_DONE, 0);
    release(job);
    cm_outfile_release(&h.certificate);
    free(h.target);
    int given_back = cm_job_give_back(job, &h.out, rc == CM_OK ? err : NULL);
    if (rc == CM_OK)
        rc = given_back;
    cm_output_release(&h.out);
    cm_into_release(&h.into);
    cm_store_path_release(&h.at);
    return rc;
}
