/*
 * Makes the files that are read cold or warm, and measures how much of them is in the page cache.
 */
#include <stdlib.h>
#include <sys/stat.h>

#include "bench/readbench.h"
#include "format/icechunk/read_store.h"
#include "store/open.h"
#include "watch/monitor.h"

#define MEASURE_NS UINT64_C(2000000000) /* limits the time for a store of a million files */
#define STILL_WARM 0.05

typedef struct visit {
    const cm_stop *stop;
    cm_residency *sum; /* of measure */
} visit;

typedef int path_visit(const visit *v, const char *path, cm_error *err);

/* The chunks of a repository are in few files, whatever their array. */
static int visit_repository(const visit *v, const cm_store *store, path_visit *visit_path,
                            cm_error *err)
{
    char *path;
    int rc = cm_ice_store_chunks(store, &path, err);
    if (rc == CM_OK && path != NULL)
        rc = visit_path(v, path, err);
    free(path);
    return rc;
}

/* The file, the folder of each array, or that of all chunks of a repository. */
static int visit_paths(const cm_bench *b, path_visit *visit_path, cm_residency *sum, cm_error *err)
{
    const cm_stop stop = {cm_monitor_cancels, b->monitor};
    const visit v = {&stop, sum};
    const cm_load_data *d = &b->load.shared.data;
    if (cm_store_url_is_remote(d->path))
        return CM_OK; /* nothing of it lies in this machine's page cache */
    if (d->slow != NULL && cm_ice_store_is(d->slow))
        return visit_repository(&v, d->slow, visit_path, err);
    int rc = d->is_nc ? visit_path(&v, d->path, err) : CM_OK;
    struct stat st;
    /* References and URLs are no folders, and what lies behind them is not looked for. */
    const bool is_folder = stat(d->path, &st) == 0 && S_ISDIR(st.st_mode);
    for (size_t i = 0; i < d->narrays && rc == CM_OK && is_folder; i++) {
        char *path = cm_asprintf(err, "%s/%s", d->path, d->array[i]->name);
        rc = path != NULL ? visit_path(&v, path, err) : CM_ENOMEM;
        free(path);
    }
    return rc;
}

static int evict(const visit *v, const char *path, cm_error *err)
{
    return cm_residency_evict(path, v->stop, err);
}

static int warm(const visit *v, const char *path, cm_error *err)
{
    return cm_residency_warm(path, v->stop, err);
}

static int measure(const visit *v, const char *path, cm_error *err)
{
    return cm_residency_measure(path, MEASURE_NS, v->stop, v->sum, err);
}

int cm_bench_evict(const cm_bench *b, cm_error *err)
{
    return visit_paths(b, evict, NULL, err);
}

int cm_bench_residency(const cm_bench *b, uint64_t *nbytes, double *share, cm_error *err)
{
    cm_residency sum = {.whole = true};
    int rc = visit_paths(b, measure, &sum, err);
    *share = sum.asked_nbytes > 0 ? (double)sum.resident_nbytes / (double)sum.asked_nbytes : -1;
    *nbytes = sum.whole ? sum.nbytes : 0;
    return rc;
}

int cm_bench_temperature(cm_bench *b, cm_error *err)
{
    cm_readbench_session *s = b->session;
    const cm_readbench_options *o = b->options;
    int rc = CM_OK;
    s->temperature = cm_strdup(o->cold ? "cold" : o->warm ? "warm" : "as found", err);
    if (s->temperature == NULL)
        return CM_ENOMEM;
    if (o->cold)
        rc = cm_bench_evict(b, err);
    else if (o->warm)
        rc = visit_paths(b, warm, NULL, err);
    if (rc == CM_OK)
        rc = cm_bench_residency(b, &s->store_nbytes, &s->resident_before, err);
    if (rc != CM_OK || !o->cold || (s->resident_before >= 0 && s->resident_before <= STILL_WARM))
        return rc;
    if (s->resident_before < 0)
        return cm_bench_warn(b, err,
                             "%s: the kernel was asked to drop it from memory; only users who may "
                             "write the files can check that",
                             b->load.shared.data.path);
    return cm_bench_warn(b, err,
                         "%s: the kernel keeps %.0f %% of it in memory although it was asked to "
                         "forget it: this run is not cold",
                         b->load.shared.data.path, 100 * s->resident_before);
}
