#include "convert/sink/growth/append_parts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "convert/sink/part/parts.h"
#include "convert/sink/part/parts_status.h"
#include "convert/sink/sink.h"
#include "convert/sink/store/store.h"

/* ---- which windows are whose ---- */

typedef struct windows {
    cm_job_var *var;
    size_t n;
} windows;

typedef struct cm_append_work {
    cm_append_state *s;
    windows beyond, rest; /* of all parts, and of the one that finishes */
    cm_parts_hooks hooks;
    cm_job_var *all; /* the job's own list, and its length */
    size_t nall;
} work;

static void take(cm_job *job, const windows *w)
{
    job->var = w->var;
    job->nvars = w->n;
}

static int split(const cm_job *job, work *w, cm_error *err)
{
    w->beyond.var = cm_calloc(job->nvars + 1, sizeof(cm_job_var), err);
    w->rest.var = cm_calloc(job->nvars + 1, sizeof(cm_job_var), err);
    if (w->beyond.var == NULL || w->rest.var == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        windows *to =
            v->window.is_beyond && v->window.phase == CM_PHASE_BEYOND ? &w->beyond : &w->rest;
        memcpy(&to->var[to->n++], v, sizeof(*v));
    }
    return CM_OK;
}

/* ---- what parts need to know ---- */

static int length_now(const cm_append *a, const char *dimension, uint64_t *out, cm_error *err)
{
    const cm_dataset_options options = {0};
    cm_dataset *ds = NULL;
    int rc = cm_dataset_open(a->root, "", &options, &ds, err);
    *out = 0;
    for (size_t i = 0; rc == CM_OK && i < ds->nvars; i++) {
        const cm_variable *v = &ds->var[i];
        unsigned j = cm_variable_dim(v, dimension);
        *out = j < v->rank ? v->shape[j] : *out;
    }
    cm_dataset_close(ds);
    return rc;
}

/* Nobody has added to the store since its arrays were looked at. */
static int check_length(const cm_append_state *s, cm_error *err)
{
    const cm_dataset_options options = {0};
    cm_dataset *now = NULL;
    int rc = cm_dataset_open(s->append->root, "", &options, &now, err);
    for (size_t i = 0; rc == CM_OK && i < s->ngrown; i++) {
        const cm_growth *g = &s->grown[i].growth;
        const cm_variable *v = cm_dataset_find(now, g->path);
        if (v == NULL || v->rank <= g->axis || v->shape[g->axis] != g->was)
            rc = cm_fail(err, CM_EEXIST, "array %s: was changed meanwhile; start again", g->path);
    }
    cm_dataset_close(now);
    return rc;
}

static int check(void *context, cm_error *err)
{
    const work *w = context;
    return check_length(w->s, err);
}

static bool is_in(void *context)
{
    const cm_append_state *s = ((const work *)context)->s;
    uint64_t now = 0;
    return length_now(s->append, s->append->dimension, &now, NULL) == CM_OK && now >= s->length;
}

static int describe(void *context, cm_json *plan, cm_error *err)
{
    const cm_append_state *s = ((const work *)context)->s;
    cm_json *j = cm_json_object();
    int rc = cm_json_set(j, "dimension", cm_json_string(s->append->dimension), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "was", cm_json_u64(s->was), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "length", cm_json_u64(s->length), err);
    if (rc == CM_OK)
        return cm_json_set(plan, CM_PARTS_ADD, j, err);
    cm_json_free(j);
    return rc;
}

/* A part that was killed left temporaries, which whoever finishes sweeps. */
static int again(void *context, cm_error *err)
{
    const cm_append_state *s = ((const work *)context)->s;
    return cm_append_mark(s->append, s->length, 0, err);
}

/* ---- the end ---- */

static int write_rest(cm_job *job, cm_append_state *s, cm_error *err)
{
    cm_store_counts before = cm_store_count(s->append->store);
    int rc = check_length(s, err);
    if (rc == CM_OK)
        rc = cm_append_sweep(s->append, err);
    if (rc == CM_OK)
        rc = cm_append_begin_chunks(job, s, err);
    if (rc == CM_OK && (rc = cm_job_run(job, s->append->store, err)) != CM_OK)
        cm_append_withdraw_chunks(job, s);
    if (rc == CM_OK)
        rc = cm_append_commit(job, s, err);
    cm_store_counts after = cm_store_count(s->append->store);
    job->report->nobjects += after.nput - before.nput;
    job->report->stored_nbytes += after.put_nbytes - before.put_nbytes;
    return rc;
}

/* The report counts a variable by the windows that the job has. */
static int verify_rest(cm_job *job, cm_append_state *s, cm_error *err)
{
    cm_transform_report *r = job->report;
    cm_transform_variable *own = r->variable;
    const size_t nown = r->nvariables;
    const uint64_t nverified = r->nverified;
    const double seconds = r->verify_seconds;
    if (job->nvars == 0 || job->options->verify == CM_VERIFY_NONE)
        return CM_OK;
    r->variable = NULL;
    r->nvariables = 0;
    int rc = cm_job_report(job, true, err);
    if (rc == CM_OK)
        rc = cm_sink_verify(job, s->append->store, s->append->root, err);
    for (size_t i = 0; i < r->nvariables; i++)
        cm_transform_variable_release(&r->variable[i]);
    free(r->variable);
    r->variable = own;
    r->nvariables = nown;
    r->nverified += nverified;
    r->verify_seconds += seconds;
    return rc;
}

/* With the output's lock: all chunks behind the old end are there. */
static int finish(void *context, cm_job *job, cm_lock *lock, cm_error *err)
{
    work *w = context;
    cm_append *a = w->s->append;
    struct cm_parts *parts = job->parts;
    const unsigned nstages = job->report->nstages;
    job->parts = NULL;
    job->terms.in_part = false;
    job->report->nstages = 0;
    a->lock = lock;
    take(job, &w->rest);
    int rc = write_rest(job, w->s, err);
    a->was = rc == CM_OK ? w->s->length : a->was;
    if (rc == CM_OK)
        rc = verify_rest(job, w->s, err);
    cm_job_release_writers(job);
    take(job, &w->beyond);
    a->lock = NULL;
    job->parts = parts;
    job->terms.in_part = true;
    if (nstages > 0)
        job->report->nstages = nstages;
    return rc;
}

/* ---- all ---- */

/* All windows are the job's again, which releases them. */
static void join_windows(cm_job *job, work *w)
{
    const size_t n = w->beyond.n + w->rest.n;
    if (w->beyond.var != NULL && w->rest.var != NULL && n == w->nall) {
        memcpy(w->all, w->beyond.var, w->beyond.n * sizeof(*w->all));
        memcpy(w->all + w->beyond.n, w->rest.var, w->rest.n * sizeof(*w->all));
    }
    take(job, &(windows){w->all, w->nall});
    free(w->beyond.var);
    free(w->rest.var);
    free(w);
}

static const cm_grown *grown_of(const cm_append_state *s, const char *path)
{
    for (size_t i = 0; i < s->ngrown; i++)
        if (strcmp(s->grown[i].growth.path, path) == 0)
            return &s->grown[i];
    return NULL;
}

static void tell_shapes(cm_job *job, const cm_append_state *s)
{
    for (size_t i = 0; i < job->report->nvariables; i++) {
        cm_transform_variable *v = &job->report->variable[i];
        const cm_grown *g = grown_of(s, v->name);
        if (g != NULL)
            v->shape[g->growth.axis] = s->length;
        free(v->digest); /* of a window; it says nothing of the array */
        v->digest = NULL;
    }
}

static int begin_part(cm_sink *sink, work *w, cm_job *job, bool *moves, cm_error *err)
{
    const cm_append_state *s = w->s;
    const cm_output_request request = {.root = s->append->root,
                                       .node = "",
                                       .break_lock = job->options->break_lock,
                                       .net = job->options->net,
                                       .monitor = job->options->monitor};
    w->hooks = (cm_parts_hooks){.context = w,
                                .check = check,
                                .is_in = is_in,
                                .describe = describe,
                                .again = again,
                                .finish = finish};
    int rc = split(job, w, err);
    if (rc == CM_OK) {
        take(job, &w->beyond);
        rc = cm_output_find(&request, &sink->out, err);
    }
    return rc == CM_OK ? cm_part_begin(job, &sink->out, &w->hooks, moves, err) : rc;
}

static int begin(cm_sink *sink, cm_job *job, bool *moves, cm_error *err)
{
    int rc = cm_append_prepare(sink, job, err);
    cm_append_state *s = sink->own;
    *moves = false;
    if (rc != CM_OK || job->nvars == 0) /* nothing is to be added */
        return rc;
    work *w = s->work = cm_calloc(1, sizeof(*w), err);
    if (w == NULL)
        return CM_ENOMEM;
    *w = (work){.s = s, .all = job->var, .nall = job->nvars};
    rc = begin_part(sink, w, job, moves, err);
    sink->store = sink->out.store;
    return rc;
}

static int commit(cm_sink *sink, cm_job *job, cm_error *err)
{
    cm_append_state *s = sink->own;
    if (s->work != NULL)
        return cm_part_commit(sink, job, err);
    job->report->written = true;
    return CM_OK;
}

static int leave(cm_sink *sink, cm_job *job, int rc, cm_error *err)
{
    cm_append_state *s = sink->own;
    cm_error why = {0};
    int told = CM_OK;
    if (s != NULL && s->work != NULL && (rc == CM_OK || rc == CM_EDIFFER))
        tell_shapes(job, s);
    if (s != NULL && s->work != NULL)
        join_windows(job, s->work);
    if (s != NULL && (s->work != NULL || rc == CM_OK))
        told = cm_append_tell_change(job, s, &why);
    cm_output_end(&sink->out);
    cm_append_end(sink);
    if (rc == CM_OK && told != CM_OK)
        return cm_fail(err, told, "%s", why.text);
    const char *stays = sink->out.beside.stays;
    return rc == CM_OK && stays != NULL ? cm_job_warn(job, err, "%s", stays) : rc;
}

const cm_sink_ops cm_sink_growth_part = {.kind = CM_SINK_GROWS,
                                         .terms.grows = true,
                                         .find = cm_append_find,
                                         .join = cm_append_join,
                                         .begin = begin,
                                         .commit = commit,
                                         .withdraw = cm_part_withdraw,
                                         .leave = leave,
                                         .give_back = cm_append_end_output};

/* ---- a plan that is found ---- */

/* All that the plan adds is in the store: nothing that its mark speaks of is left to be removed. */
static int settle_added(cm_append *a, cm_error *err)
{
    int rc = cm_append_sweep(a, err);
    if (rc == CM_OK)
        cm_append_unmark(a);
    return rc;
}

/* This append removes what parts left behind the end, up to LENGTH. */
static int take_over(cm_append *a, uint64_t length, cm_error *err)
{
    a->reach = length > a->reach ? length : a->reach;
    return cm_append_mark(a, a->reach, 0, err);
}

static int forget(cm_append *a, cm_error *err)
{
    int rc = cm_parts_forget(&a->beside, err);
    return rc == CM_OK ? cm_store_sweep_temporaries(a->beside.in, "", false, err) : rc;
}

/* A plan that adds steps of DIMENSION up to LENGTH, and is not complete. */
static int settle_plan(cm_append *a, const char *dimension, uint64_t length, bool gives_up,
                       bool *busy, cm_error *err)
{
    cm_lock_holder who;
    uint64_t now = 0, running = 0;
    *busy = true;
    int rc = length_now(a, dimension, &now, err);
    if (rc == CM_OK)
        rc = cm_parts_running(&a->beside, &running, &who, err);
    if (rc != CM_OK)
        return rc;
    if (now >= length)
        rc = settle_added(a, err);
    else if (gives_up && running == 0)
        rc = take_over(a, length, err);
    else
        return CM_OK;
    if (rc == CM_OK)
        rc = forget(a, err);
    *busy = rc != CM_OK;
    return rc;
}

int cm_append_settle_parts(cm_append *a, bool gives_up, bool *busy, cm_error *err)
{
    cm_parts_plan plan = {0};
    uint64_t length = 0;
    *busy = false;
    int rc = cm_parts_plan_read(&a->beside, &plan, err);
    const cm_json *j = cm_json_member(plan.json, CM_PARTS_ADD);
    const char *dimension = cm_json_text(cm_json_member(j, "dimension"), NULL);
    /* A process that was killed after that left its own. */
    if (rc == CM_OK && plan.complete && (j != NULL || a->repository != NULL))
        cm_parts_tidy(&a->beside);
    if (rc == CM_OK && !plan.complete && dimension != NULL &&
        cm_json_get_u64(cm_json_member(j, "length"), &length))
        rc = settle_plan(a, dimension, length, gives_up, busy, err);
    cm_parts_plan_release(&plan);
    return rc;
}
