/* The digests of all arrays of a Zarr store or NetCDF file. */
#include <chunkmill/digest.h>

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/number.h"
#include "exec/watch/monitor.h"
#include "format/nc/nc.h"
#include "format/nc/preflight.h"
#include "format/zarr/open.h"
#include "job/common/conflicts.h"
#include "job/common/pairs.h"
#include "job/common/store_path.h"
#include "store/open.h"

enum {
    INDEX_CACHE = 4 << 20,
    REMOTE_THREADS = 16 /* behind a network */
};

typedef struct walk {
    cm_net *net;
    const char *path; /* without what stands after "::" */
    const char *node; /* "": all */
    unsigned nthreads;
    uint64_t memory;
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

/* A is NULL, or RC says why it cannot be read: the others of the store can. */
static int report_undigested(walk *w, const char *name, const cm_dtype *type, uint64_t nelem,
                             const cm_error *why, cm_error *err)
{
    char text[64];
    w->nfound++;
    return w->visit(w->context,
                    &(cm_digest_row){.name = name,
                                     .type = type == NULL ? "not known"
                                                          : cm_dtype_name(type, text, sizeof(text)),
                                     .nelem = nelem,
                                     .undigested = why->text},
                    err);
}

static uint64_t count(unsigned rank, const uint64_t *shape)
{
    uint64_t n;
    return cm_product_u64(rank, shape, &n) ? n : UINT64_MAX;
}

/*
 * Text that is too long for the part of one of several threads may be short enough for one
 * alone.
 */
static int sum(const walk *w, cm_pair *pair, bool serial, cm_error *err)
{
    cm_array *a = pair->want;
    uint64_t held = cm_peak_rss();
    uint64_t memory = w->memory > 2 * held ? w->memory - held : w->memory / 2;
    unsigned nthreads = serial ? 1 : w->nthreads;
    int rc = cm_pairs_run(pair, 1, nthreads, memory, w->monitor, err);
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

static int walk_node(walk *w, const cm_zarr_tree *tree, const cm_zarr_node *node, cm_error *err)
{
    const cm_zarr_meta *m = &node->meta;
    cm_array *a;
    cm_error why = {0};
    int rc = cm_zarr_array_open(tree, node, INDEX_CACHE, &a, &why);
    if (rc == CM_EUNSUPPORTED)
        return report_undigested(w, node->path, NULL, count(m->rank, m->shape), &why, err);
    if (rc != CM_OK) {
        if (err != NULL)
            *err = why;
        return rc;
    }
    rc = digest_one(w, a, err);
    cm_array_free(a);
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

static int walk_zarr(walk *w, cm_error *err)
{
    cm_store *store;
    cm_zarr_tree tree = {0};
    cm_zarr_conflicts conflicts = {0};
    int rc = cm_store_open(w->path, &(cm_store_options){.net = w->net}, &store, err);
    if (rc != CM_OK)
        return rc;
    rc = cm_zarr_open_whole(store, &tree, &conflicts, err);
    if (rc == CM_OK)
        rc = warn_of(w, &conflicts, tree.zarr_format, err);
    for (size_t i = 0; rc == CM_OK && i < tree.nnodes; i++)
        if (!tree.node[i].meta.is_group && is_meant(w, tree.node[i].path))
            rc = walk_node(w, &tree, &tree.node[i], err);
    if (rc == CM_OK && w->nfound == 0 && w->node[0] == '\0' && tree.nforeign > 0)
        rc = cm_fail(err, CM_EFORMAT, "has no array, and files (%s) that belong to none",
                     tree.foreign);
    cm_zarr_conflicts_release(&conflicts);
    cm_zarr_tree_release(&tree);
    cm_store_free(store);
    return rc;
}

static int walk_nc(walk *w, cm_error *err)
{
    cm_nc_file *file;
    const cm_dataset_options options = {
        .canceled = cm_monitor_cancels, .canceled_context = w->monitor, .memory = w->memory};
    int rc = cm_nc_open_tried(w->path, &options, &file, err);
    if (rc != CM_OK)
        return rc;
    for (size_t i = 0; rc == CM_OK && i < cm_nc_nvars(file); i++) {
        cm_nc_var *v = cm_nc_var_at(file, i);
        cm_error why = {0};
        if (!is_meant(w, v->array.name))
            continue;
        rc = cm_nc_var_prepare(file, v, &why);
        if (rc == CM_OK)
            rc = digest_one(w, &v->array, err);
        else if (rc == CM_EUNSUPPORTED)
            rc = report_undigested(w, v->array.name, &v->array.dtype,
                                   count(v->array.rank, v->array.shape), &why, err);
        else if (err != NULL)
            *err = why;
    }
    cm_nc_close(file);
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
        rc = at.is_folder ? walk_zarr(&w, err) : walk_nc(&w, err);
    }
    if (rc == CM_OK && w.nfound == 0 && w.node[0] != '\0')
        rc = cm_fail(err, CM_ENOTFOUND, "%s: has no array %s", at.path, w.node);
    else if (rc != CM_OK)
        cm_error_place(err, at.path);
    cm_monitor_phase(monitor, CM_PHASE_DONE, 0);
    cm_store_path_release(&at);
    return rc;
}
