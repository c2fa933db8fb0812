#include "bench/replay.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/sentences.h"
#include "chunkcalc/access_dataset.h"
#include "format/dataset.h"
#include "load/options.h"
#include "options/store_path.h"
#include "store/open.h"

enum {
    COMPARED = 16,      /* objects of the log that are checked in the store */
    MOST_VARIABLES = 64 /* read together as one sample */
};

struct cm_bench_replay {
    cm_readbench_report *report;
    cm_access_log *log;
    cm_store *store;
    cm_dataset *ds;
    cm_variable *leader;
    cm_access_reads reads;
    cm_load_boxes boxes;
    char *name[MOST_VARIABLES];
    cm_texts names;
};

static int note(cm_bench_replay *r, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int warn(cm_bench_replay *r, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static CM_DEFINE_SENTENCE(note, cm_bench_replay, note, nnotes)
static CM_DEFINE_SENTENCE(warn, cm_bench_replay, warning, nwarnings)

static int open_store(cm_bench_replay *r, const cm_readbench_options *o, cm_error *err)
{
    cm_store_path at = {0};
    int rc = cm_store_path_find(o->store.text[0], o->net, &at, err);
    if (rc == CM_OK && (!at.is_folder || at.node[0] != '\0'))
        rc =
            cm_fail(err, CM_EINVAL, "%s: a log of reads is replayed on a Zarr store, from its root",
                    o->store.text[0]);
    if (rc == CM_OK)
        rc = cm_store_open(at.path, &(cm_store_options){.net = o->net}, &r->store, err);
    const cm_dataset_options options = {.net = o->net, .quick = true, .store = r->store};
    if (rc == CM_OK)
        rc = cm_dataset_open(at.path, "", &options, &r->ds, err);
    cm_store_path_release(&at);
    return rc;
}

/* ---- what is read together ----------------------------------------------------------------- */

/* Whether both have the same dimensions in the same order, so that one box fits both. */
static bool has_dims_of(const cm_variable *v, const cm_variable *of)
{
    bool same = v->rank == of->rank;
    for (unsigned j = 0; same && j < v->rank; j++)
        same = v->shape[j] == of->shape[j] && v->dim_name[j] != NULL && of->dim_name[j] != NULL &&
               strcmp(v->dim_name[j], of->dim_name[j]) == 0;
    return same;
}

/* Whether V was read with the leader's boxes, one after the other. */
static int is_read_alike(const cm_bench_replay *r, const cm_variable *v, bool *alike, cm_error *err)
{
    cm_access_array array;
    cm_access_reads reads;
    *alike = false;
    if (!has_dims_of(v, r->leader) || v->unsupported != NULL || !cm_access_array_of(v, &array))
        return CM_OK;
    int rc = cm_access_reads_find(r->log, &array, &reads, err);
    *alike = rc == CM_OK && reads.n == r->reads.n && reads.wanted == r->reads.wanted &&
             memcmp(reads.box, r->reads.box, reads.n * 2 * reads.rank * sizeof *reads.box) == 0;
    cm_access_reads_release(&reads);
    return rc;
}

static int add_name(cm_bench_replay *r, const char *name, cm_error *err)
{
    r->name[r->names.n] = cm_strdup(name, err);
    r->names.text = (const char *const *)r->name;
    return r->name[r->names.n++] != NULL ? CM_OK : CM_ENOMEM;
}

static int name_variables(cm_bench_replay *r, cm_error *err)
{
    int rc = add_name(r, r->leader->name, err);
    for (size_t i = 0; i < r->ds->nvars && rc == CM_OK && r->names.n < MOST_VARIABLES; i++) {
        bool alike = false;
        if (&r->ds->var[i] != r->leader)
            rc = is_read_alike(r, &r->ds->var[i], &alike, err);
        if (rc == CM_OK && alike)
            rc = add_name(r, r->ds->var[i].name, err);
    }
    return rc;
}

/* ---- what is said -------------------------------------------------------------------------- */

static int say_reads(cm_bench_replay *r, const cm_readbench_options *o, cm_error *err)
{
    char took[32], stored[32], more[64] = "";
    const cm_access_reads *a = &r->reads;
    if (r->names.n > 1)
        snprintf(more, sizeof more, " and %zu more %s", r->names.n - 1,
                 cm_of_count(r->names.n - 1, "variable", "variables"));
    int rc = note(r, err,
                  "%s: %zu %s of %s%s, %u at a time by %u process%s in %s; %" PRIu64
                  " %s for its chunks gave %s",
                  o->replay, a->n, cm_of_count(a->n, "read", "reads"), r->leader->name, more,
                  a->together, a->nprocesses, cm_of_count(a->nprocesses, "", "es"),
                  cm_format_time(a->seconds, took, sizeof took), a->nrequests,
                  cm_of_count(a->nrequests, "request", "requests"),
                  cm_format_size(a->stored_nbytes, stored, sizeof stored));
    if (rc == CM_OK && !a->wanted)
        rc = note(r, err,
                  "%s: says which chunks were read, not which of their elements were wanted: whole "
                  "chunks are read",
                  o->replay);
    return rc;
}

static int say_changes(cm_bench_replay *r, const cm_readbench_options *o, cm_error *err)
{
    char text[512];
    cm_access_array array;
    if (!cm_access_array_of(r->leader, &array))
        return CM_OK;
    if (r->reads.rechunked)
        return note(r, err,
                    "%s: %s had other chunks when it was recorded; the same elements are read",
                    o->replay, r->leader->name);
    int rc = cm_access_compare(r->log, &array, r->store, COMPARED, text, sizeof text, err);
    if (rc == CM_OK && text[0] != '\0')
        rc = warn(r, err, "%s: %s: the store changed since the log was recorded", o->replay, text);
    return rc;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static void set_options(const cm_bench_replay *r, cm_readbench_options *o)
{
    o->variables = r->names;
    if (o->workers == 0 && (o->mode == NULL || strcmp(o->mode, "sync") != 0)) {
        const unsigned most = o->nthreads > 0 ? o->nthreads : 4096;
        o->workers = r->reads.together < most ? r->reads.together : most;
        o->worker_threads = o->worker_threads > 0 ? o->worker_threads : 1;
    }
    if (o->mode == NULL && r->reads.nprocesses > 1)
        o->mode = "processes";
    /* Any read that ended lets the next one begin. */
    o->unordered = o->unordered || o->workers > 1;
    o->boxes = &r->boxes;
}

static int check(const cm_readbench_options *o, cm_error *err)
{
    if (o->npoints > 0)
        return cm_fail(err, CM_EINVAL, "`replay` and a list of settings to run exclude each other");
    if (o->sample != NULL || o->order != NULL || o->lags != NULL)
        return cm_fail(err, CM_EINVAL,
                       "`replay` says which elements are read and when: `sample`, `order` and "
                       "`lags` cannot");
    if (o->variables.n > 1 || (o->variables.n == 1 && strchr(o->variables.text[0], ',') != NULL))
        return cm_fail(err, CM_EINVAL, "`replay` takes one of `variables`, or finds them");
    return CM_OK;
}

int cm_bench_replay_open(cm_readbench_options *o, cm_readbench_report *report,
                         cm_bench_replay **out, cm_error *err)
{
    cm_bench_replay *r = cm_calloc(1, sizeof *r, err);
    const char *only = o->variables.n > 0 ? o->variables.text[0] : NULL;
    *out = r;
    if (r == NULL)
        return CM_ENOMEM;
    r->report = report;
    int rc = check(o, err);
    if (rc == CM_OK)
        rc = cm_access_log_open(o->replay, &r->log, err);
    if (rc == CM_OK)
        rc = open_store(r, o, err);
    if (rc == CM_OK)
        rc = cm_access_choose(r->log, r->ds, only, &r->leader, &r->reads, err);
    if (rc == CM_OK)
        rc = only != NULL ? add_name(r, only, err) : name_variables(r, err);
    if (rc == CM_OK)
        rc = say_reads(r, o, err);
    if (rc == CM_OK)
        rc = say_changes(r, o, err);
    if (rc != CM_OK)
        return rc;
    r->boxes = (cm_load_boxes){.rank = r->reads.rank, .n = r->reads.n, .box = r->reads.box};
    set_options(r, o);
    cm_dataset_close(r->ds);
    cm_store_free(r->store);
    r->ds = NULL;
    r->store = NULL;
    r->leader = NULL;
    return CM_OK;
}

void cm_bench_replay_free(cm_bench_replay *r)
{
    if (r == NULL)
        return;
    cm_dataset_close(r->ds);
    cm_store_free(r->store);
    cm_access_reads_release(&r->reads);
    cm_access_log_free(r->log);
    for (size_t i = 0; i < r->names.n; i++)
        free(r->name[i]);
    free(r);
}
