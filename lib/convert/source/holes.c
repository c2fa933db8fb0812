#include "convert/source/holes.h"

#include <stdlib.h>
#include <string.h>

#include "format/zarr/census_tally.h"

int cm_holes_begin(cm_job *job, cm_error *err)
{
    cm_census *c = &job->report->census;
    cm_census_release(c);
    c->array = cm_calloc(job->nvars + 1, sizeof(*c->array), err);
    c->sized = true;
    return c->array != NULL ? CM_OK : CM_ENOMEM;
}

int cm_holes_find(cm_job *job, cm_job_var *v, cm_error *err)
{
    const cm_stop stop = {cm_monitor_cancels, job->options->monitor};
    cm_presence *p = &v->stored.presence;
    cm_census *c = &job->report->census;
    cm_census_array *a = &c->array[c->narrays++];
    cm_census_tally tally = {0};
    a->name = cm_strdup(v->source->name, err);
    int rc = a->name != NULL ? cm_census_tally_init(&tally, v->source, a, err) : CM_ENOMEM;
    if (rc == CM_OK)
        rc = cm_presence_find(cm_dataset_store(job->source), v->source->name, v->source->words,
                              cm_job_threads(job), &stop, a->unclear == NULL ? &tally : NULL, p,
                              err);
    if (rc == CM_OK && !p->listed && a->unclear == NULL &&
        (a->unclear = cm_strdup("its objects were not listed", err)) == NULL)
        rc = CM_ENOMEM;
    if (rc == CM_OK)
        rc = cm_census_tally_finish(&tally, err);
    cm_census_tally_release(&tally);
    return rc;
}

static int warn(cm_job *job, const cm_census *c, cm_error *err)
{
    char *line = NULL;
    int rc = cm_census_line(c, &line, err);
    if (rc == CM_OK && line != NULL)
        rc = cm_job_warn(job, err, "%s", line);
    free(line);
    return rc;
}

/* Moves the arrays of FROM behind those of the report. */
static int take(cm_job *job, cm_census *from, cm_error *err)
{
    cm_census *c = &job->report->census;
    cm_census_array *grown =
        realloc(c->array, (c->narrays + from->narrays + 1) * sizeof(*c->array));
    if (grown == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for a census");
    c->array = grown;
    memcpy(&c->array[c->narrays], from->array, from->narrays * sizeof(*from->array));
    c->narrays += from->narrays;
    from->narrays = 0;
    return CM_OK;
}

/* Arrays that another one is made of, whose chunks nobody looked for: a listing of each. */
static int count_taken(cm_job *job, cm_error *err)
{
    const cm_dataset *ds = job->source;
    const cm_stop stop = {cm_monitor_cancels, job->options->monitor};
    const cm_census_options options = {.depth = CM_CENSUS_NAMES, .stop = &stop};
    cm_variable **taken = cm_calloc(ds->nvars + 1, sizeof(*taken), err);
    cm_census found = {0};
    size_t n = 0;
    if (taken == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < ds->nvars; i++)
        if (ds->var[i].is_taken && ds->var[i].words != NULL)
            taken[n++] = &ds->var[i];
    int rc = n > 0 ? cm_census_of_arrays(job->source, taken, n, &options, &found, err) : CM_OK;
    free(taken);
    if (rc == CM_OK && found.narrays > 0)
        rc = take(job, &found, err);
    cm_census_release(&found);
    return rc;
}

int cm_holes_end(cm_job *job, cm_error *err)
{
    cm_census *c = &job->report->census;
    int rc = count_taken(job, err);
    if (rc == CM_OK && c->narrays > 0)
        rc = warn(job, c, err);
    job->report->has_census = rc == CM_OK && c->narrays > 0;
    return rc;
}
