/* Nothing, in the place of a store: a dry run. */
#include "convert/sink/sink.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "convert/plan/inodes.h"
#include "convert/sink/store/fingerprint.h"
#include "convert/sink/store/store.h"
#include "store/open.h"
#include "store/zip.h"

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

/* Where the target will be decides what it takes to write. */
static int open_place(const cm_job *job, cm_store *nowhere, cm_store **place, cm_error *err)
{
    const cm_transform_options *o = job->options;
    *place = nowhere;
    if (o->net == NULL || o->target == NULL || !cm_store_url_is_remote(o->target))
        return CM_OK;
    return cm_store_open(o->target, &(cm_store_options){.output = true, .net = o->net}, place, err);
}

/* The stores of a plan that nobody carries out. */
typedef struct places {
    cm_store *nowhere, *place;
} places;

/* An old target gives inodes back when it goes: then nothing is told of those that are left. */
static int count_inodes(cm_job *job, const cm_store *place, cm_error *err)
{
    const cm_transform_options *o = job->options;
    struct stat st;
    if (o->target == NULL || cm_zip_is_name(o->target))
        return CM_OK;
    const bool local = !cm_store_is_remote(place);
    if (!local || stat(o->target, &st) == 0)
        return cm_job_count_inodes(job, local, NULL, err);
    char *above = cm_sink_folder_above(o->target, err);
    int rc = above != NULL ? cm_job_count_inodes(job, true, above, err) : CM_ENOMEM;
    free(above);
    return rc;
}

static int plan(cm_job *job, places *p, cm_error *err)
{
    int rc = cm_store_open_memory(&p->nowhere, err);
    if (rc == CM_OK)
        rc = open_place(job, p->nowhere, &p->place, err);
    if (rc == CM_OK)
        rc = cm_job_plan(job, p->place, err);
    if (rc == CM_OK)
        rc = count_inodes(job, p->place, err);
    if (rc == CM_OK)
        rc = cm_job_report(job, false, err);
    if (rc == CM_OK && job->options->defaults == CM_DEFAULTS_CHOOSE)
        rc = expect(job, p->nowhere, err);
    return rc;
}

/* Refuses what a run would refuse when it locks the output. */
static int check_output(cm_sink *s, cm_job *job, cm_error *err)
{
    cm_made made = {0};
    cm_json *fingerprint = NULL;
    if (s->out.root == NULL || job->options->part.on)
        return CM_OK;
    int rc = cm_fingerprint(job, &fingerprint, err);
    if (rc == CM_OK)
        rc = cm_job_list_made(job, &made, err);
    if (rc == CM_OK)
        rc = cm_output_foresee(&s->out, fingerprint, &made, err);
    cm_json_free(fingerprint);
    free(made.node);
    return rc;
}

static int begin(cm_sink *s, cm_job *job, bool *moves, cm_error *err)
{
    places p = {0};
    *moves = false;
    int rc = cm_sink_describe(job, job->options->part.on ? NULL : s->out.path, err);
    if (rc == CM_OK)
        rc = check_output(s, job, err);
    if (rc == CM_OK)
        rc = plan(job, &p, err);
    cm_job_release_writers(job);
    if (p.place != p.nowhere)
        cm_store_free(p.place);
    cm_store_free(p.nowhere);
    return rc;
}

/* Without an output the plan alone is shown. */
static int find(cm_sink *s, cm_job *job, cm_error *err)
{
    if (s->options->target == NULL)
        return CM_OK;
    return (s->options->part.on ? cm_sink_part : cm_sink_store).find(s, job, err);
}

const cm_sink_ops cm_sink_nothing = {
    .terms.foreseen = true, .find = find, .layout = cm_job_layout, .begin = begin};
