/* The digests of all arrays of a Zarr store or NetCDF file. */
#include <chunkmill/rechunk.h>

#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "format/nc/nc.h"
#include "format/zarr/open.h"
#include "job/pairs.h"
#include "job/store_path.h"

enum {
    INDEX_CACHE = 4 << 20
};

typedef struct walk {
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

static int digest_one(walk *w, cm_array *a, cm_error *err)
{
    cm_pair pair = {.want = a};
    char type[64], text[33];
    uint64_t nelem = 1;
    w->nfound++;
    for (unsigned j = 0; j < a->rank; j++)
        if (!cm_mul_u64(nelem, a->shape[j], &nelem))
            return cm_fail(err, CM_EFORMAT, "array %s: has too many elements", a->name);
    int rc = cm_pairs_run(&pair, 1, a->serial ? 1 : w->nthreads, w->memory, w->monitor, err);
    cm_pair_release(&pair);
    if (rc != CM_OK)
        return rc;
    return w->visit(w->context, a->name, cm_dtype_name(&a->dtype, type, sizeof(type)), nelem,
                    cm_digest_text(&pair.digest, text), err);
}

static int walk_zarr(walk *w, cm_error *err)
{
    cm_store *store;
    cm_zarr_tree tree = {0};
    int rc = cm_store_open_dir(w->path, false, &store, err);
    if (rc != CM_OK)
        return rc;
    rc = cm_zarr_open(store, &tree, err);
    for (size_t i = 0; rc == CM_OK && i < tree.nnodes; i++) {
        cm_array *a;
        if (tree.node[i].meta.is_group || !is_meant(w, tree.node[i].path))
            continue;
        rc = cm_zarr_array_open(&tree, &tree.node[i], INDEX_CACHE, &a, err);
        if (rc == CM_OK) {
            rc = digest_one(w, a, err);
            cm_array_free(a);
        }
    }
    cm_zarr_tree_release(&tree);
    cm_store_free(store);
    return rc;
}

static int walk_nc(walk *w, cm_error *err)
{
    cm_nc_file *file;
    int rc = cm_nc_open(w->path, &(cm_nc_options){0}, &file, err);
    if (rc != CM_OK)
        return rc;
    for (size_t i = 0; rc == CM_OK && i < cm_nc_nvars(file); i++) {
        cm_nc_var *v = cm_nc_var_at(file, i);
        if (!is_meant(w, v->array.name))
            continue;
        rc = cm_nc_var_prepare(file, v, err);
        if (rc == CM_OK)
            rc = digest_one(w, &v->array, err);
    }
    cm_nc_close(file);
    return rc;
}

int cm_digest_store(const char *path, unsigned nthreads, uint64_t memory, cm_monitor *monitor,
                    cm_digest_visit *visit, void *context, cm_error *err)
{
    walk w = {.node = "",
              .nthreads = nthreads > 0 ? nthreads : cm_cpu_count(),
              .monitor = monitor,
              .visit = visit,
              .context = context};
    cm_store_path at;
    uint64_t available = cm_memory_available() / 2;
    w.memory = memory > 0 ? memory : available < (UINT64_C(1) << 30) ? available : 1 << 30;
    int rc = cm_store_path_find(path, &at, err);
    if (rc == CM_OK) {
        w.path = at.path;
        w.node = at.node;
        rc = at.is_folder ? walk_zarr(&w, err) : walk_nc(&w, err);
    }
    if (rc == CM_OK && w.nfound == 0 && w.node[0] != '\0')
        rc = cm_fail(err, CM_ENOTFOUND, "%s: has no array %s", at.path, w.node);
    else if (rc != CM_OK && err != NULL && at.path != NULL && strstr(err->text, at.path) == NULL)
        cm_error_prefix(err, "%s", at.path);
    cm_monitor_phase(monitor, CM_PHASE_DONE, 0);
    cm_store_path_release(&at);
    return rc;
}
