/* The digests of all arrays of a Zarr store or NetCDF file. */
#include <chunkmill/digest.h>

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/number.h"
#include "digest/pairs.h"
#include "format/zarr/conflict_text.h"
#include "format/zarr/dataset.h"
#include "options/store_path.h"
#include "watch/monitor.h"

enum {
    INDEX_CACHE = 4 << 20,
    LEAST_SPARE = 1 << 20, /* so that the least that is named is enough */
    REMOTE_THREADS = 16    /* behind a network */
};

typedef struct walk {
    cm_net *net;
    const char *path; /* without what stands after "::" */
    const char *node; /* "": all */
    unsigned nthreads;
    uint64_t memory;
    bool limited; /* MEMORY was asked for */
    cm_monitor *monitor;
    cm_digest_visit *visit;
    void *context;
    uint64_t nfound;
} walk;

/* True for the node itself and what lies below it. */
static bool is_meant(const walk *w, const char *name)
{
    size_t n = strlen(w->node);
    return n == 0 || (strncmp(name, w->node, n) == 0 && (name[n] == '\0' || name[n] == '/'));
}

static uint64_t count(unsigned rank, const uint64_t *shape)
{
    uint64_t n;
    return cm_product_u64(rank, shape, &n) ? n : UINT64_MAX;
}

/* WHY says why V cannot be read: the others can. */
static int report_undigested(walk *w, const cm_variable *v, const cm_error *why, cm_error *err)
{
    char text[64];
    w->nfound++;
    return w->visit(
        w->context,
        &(cm_digest_row){.name = v->name,
                         /* A type that a document names in words of its own is not known. */
                         .type = v->words != NULL ? "not known"
                                                  : cm_dtype_name(&v->dtype, text, sizeof(text)),
                         .nelem = count(v->rank, v->shape),
                         .undigested = why->text},
        err);
}

static int check_memory(const walk *w, const cm_array *a, cm_error *err)
{
    char limit[32], least[32];
    const uint64_t need = w->limited ? cm_pairs_digest_least(a) : 0;
    if (need <= w->memory)
        return CM_OK;
    return cm_fail(err, CM_EBUDGET,
                   "array %s: not enough memory: the limit is %s, its chunks need at least %s; "
                   "raise `memory`",
                   a->name[0] != '\0' ? a->name : "/",
                   cm_format_size(w->memory, limit, sizeof(limit)),
                   cm_format_size(need + LEAST_SPARE, least, sizeof(least)));
}

/*
 * Text that is too long for the part of one of several threads may be short enough for one
 * alone.
 */
static int sum(const walk *w, cm_pair *pair, bool serial, cm_error *err)
{
    cm_array *a = pair->want;
    const uint64_t resident = cm_resident(NULL), held = resident > 0 ? resident : cm_peak_rss();
    uint64_t memory = w->memory > 2 * held ? w->memory - held : w->memory / 2;
    unsigned nthreads = serial ? 1 : w->nthreads;
    int rc = check_memory(w, a, err);
    if (rc != CM_OK)
        return rc;
    rc = cm_pairs_run(pair, 1, nthreads, memory, w->monitor, err);
    cm_pair_release(pair);
    if (rc == CM_EBUDGET && nthreads > 1) {
        *pair = (cm_pair){.want = a};
        rc = cm_pairs_run(pair, 1, 1, memory, w->monitor, err);
        cm_pair_release(pair);
    }
    char size[32];
    if (rc == CM_EBUDGET)
        cm_error_suffix(err, "; not enough memory (the limit is %s)",
                        cm_format_size(w->memory, size, sizeof(size)));
    return rc;
}

static int digest_one(walk *w, cm_array *a, cm_error *err)
{
    cm_pair pair = {.want = a};
    char type[64], text[33];
    uint64_t nelem = 1;
    w->nfound++;
    for (unsigned j = 0; j < a->rank; j++)
        if (!cm_mul_u64(nelem, a->shape[j], &nelem))
            return cm_fail(err, CM_EFORMAT, "array %s: has too many elements", a->name);
    int rc = sum(w, &pair, a->serial, err);
    if (rc != CM_OK)
        return rc;
    return w->visit(w->context,
                    &(cm_digest_row){.name = a->name,
                                     .type = cm_dtype_name(&a->dtype, type, sizeof(type)),
                                     .nelem = nelem,
                                     .digest = cm_digest_text(&pair.digest, text)},
                    err);
}

static int walk_variable(walk *w, cm_dataset *ds, cm_variable *v, cm_error *err)
{
    cm_error why = {0};
    int rc = cm_dataset_prepare(ds, v, &why);
    if (rc == CM_OK)
        rc = digest_one(w, v->array, err);
    else if (rc == CM_EUNSUPPORTED)
        rc = report_undigested(w, v, &why, err);
    else if (err != NULL)
        *err = why;
    cm_dataset_unprepare(ds, v);
    return rc;
}

/* The digest is that of what consolidated metadata say; who reads something else is told. */
static int warn_of(walk *w, const cm_zarr_conflicts *conflicts, int zarr_format, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < conflicts->n; i++) {
        const cm_zarr_conflict *c = &conflicts->item[i];
        if (c->kind == CM_ZARR_REORDERED || !is_meant(w, c->path))
            continue;
        char *text = cm_conflict_text(c, zarr_format, err);
        rc =
            text == NULL ? CM_ENOMEM : w->visit(w->context, &(cm_digest_row){.warning = text}, err);
        free(text);
    }
    return rc;
}

static int walk_dataset(walk *w, cm_error *err)
{
    cm_dataset *ds;
    const cm_dataset_options options = {.index_cache_nbytes = INDEX_CACHE,
                                        .net = w->net,
                                        .canceled = cm_monitor_cancels,
                                        .canceled_context = w->monitor,
                                        .memory = w->memory};
    int rc = cm_dataset_open(w->path, "", &options, &ds, err);
    if (rc != CM_OK)
        return rc;
    if (ds->kind == CM_DATASET_ZARR)
        rc = warn_of(w, cm_zarr_dataset_conflicts(ds), ds->zarr_format, err);
    for (size_t i = 0; rc == CM_OK && i < ds->nvars; i++)
        if (is_meant(w, ds->var[i].name))
            rc = walk_variable(w, ds, &ds->var[i], err);
    cm_dataset_close(ds);
    return rc;
}

int cm_digest_store(const char *path, cm_net *net, unsigned nthreads, uint64_t memory,
                    cm_monitor *monitor, cm_digest_visit *visit, void *context, cm_error *err)
{
    walk w = {.node = "",
              .net = net,
              .nthreads = nthreads > 0  ? nthreads
                          : net != NULL ? REMOTE_THREADS
                                        : cm_cpu_count(),
              .limited = memory > 0,
              .monitor = monitor,
              .visit = visit,
              .context = context};
    cm_store_path at;
    uint64_t available = cm_memory_available() / 2;
    w.memory = memory > 0 ? memory : available < (UINT64_C(1) << 30) ? available : 1 << 30;
    int rc = cm_store_path_find(path, net, &at, err);
    if (rc == CM_OK) {
        w.path = at.path;
        w.node = at.node;
        rc = walk_dataset(&w, err);
    }
    if (rc == CM_OK && w.nfound == 0 && w.node[0] != '\0')
        rc = cm_fail(err, CM_ENOTFOUND, "%s: has no array %s", at.path, w.node);
    else if (rc != CM_OK)
        cm_error_place(err, at.path);
    cm_monitor_phase(monitor, CM_PHASE_DONE, 0);
    if (rc != CM_OK)
        cm_store_path_name(&at, err);
    cm_store_path_release(&at);
    return rc;
}
