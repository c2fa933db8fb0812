/*
 * --check: compares an input with a store that is already there; writes nothing.
 *
 * The options say what the store should hold (variables, names, subset, types),
 * as they do for a conversion; its chunks and codecs are its own affair.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "convert/sink/store/output.h"
#include "convert/source/clashes.h"
#include "options/store_path.h"
#include "store/open.h"

/* The layout that the store has, for the report and for the boxes to compare. */
static void adopt_layout(cm_job_var *v, const cm_zarr_node *node)
{
    const cm_zarr_meta *m = &node->meta;
    if (m->is_group || m->rank != v->rank)
        return;
    memcpy(v->chunk, m->chunk, sizeof(v->chunk));
    v->sharded = m->ncodecs > 0 && m->codecs[0].id == CM_CODEC_SHARDING;
    if (v->sharded) {
        memcpy(v->shard, m->chunk, sizeof(v->shard));
        memcpy(v->chunk, m->codecs[0].shard->chunk, sizeof(v->chunk));
    }
}

static int adopt_layouts(cm_job *job, cm_store *store, cm_error *err)
{
    cm_zarr_tree tree;
    int rc = cm_zarr_open(store, &tree, err);
    if (rc != CM_OK)
        return rc;
    job->zarr_format = tree.zarr_format;
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_zarr_node *node = cm_zarr_find(&tree, job->var[i].name);
        if (node != NULL)
            adopt_layout(&job->var[i], node);
    }
    cm_zarr_tree_release(&tree);
    return CM_OK;
}

int cm_job_check(cm_job *job, cm_error *err)
{
    char *path = NULL;
    cm_store *store = NULL, *nowhere = NULL;
    int rc = cm_store_path_plain(job->options->target, &path, err);
    if (rc == CM_OK)
        rc = cm_store_open(path, &(cm_store_options){.net = job->options->net}, &store, err);
    if (rc == CM_OK)
        rc = adopt_layouts(job, store, err);
    if (rc != CM_OK && path != NULL)
        cm_error_place(err, path);
    if (rc == CM_OK)
        rc = cm_job_describe(job, err);
    if (rc == CM_OK)
        rc = cm_store_open_memory(&nowhere, err);
    if (rc == CM_OK)
        rc = cm_job_plan(job, nowhere, err);
    if (rc == CM_OK)
        rc = cm_job_report(job, false, err);
    uint64_t start = cm_now_ns();
    if (rc == CM_OK)
        rc = cm_job_compare_inputs(job, err);
    if (rc == CM_OK)
        rc = cm_job_verify(job, store, err);
    job->report->verify_seconds = (double)(cm_now_ns() - start) * 1e-9;
    for (size_t i = 0; i < job->nvars; i++) {
        cm_zarr_writer_free(job->var[i].writer);
        job->var[i].writer = NULL;
    }
    cm_store_free(nowhere);
    cm_store_free(store);
    free(path);
    return rc;
}
