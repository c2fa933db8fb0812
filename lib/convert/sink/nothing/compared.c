/*
 * --check: compares an input with a store that is already there; writes nothing.
 *
 * The options say what the store should hold (variables, names, subset, types),
 * as they do for a conversion; its chunks and codecs are its own affair.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "convert/sink/sink.h"
#include "convert/source/clashes.h"
#include "format/icechunk/key.h"
#include "format/icechunk/read_store.h"
#include "options/store_path.h"
#include "store/open.h"
#include "store/subtree.h"

/* The layout that the store has, for the report and for the boxes to compare. */
static void adopt_layout(const cm_zarr_meta *m, cm_layout *out)
{
    memcpy(out->chunk, m->chunk, sizeof(out->chunk));
    out->sharded = m->ncodecs > 0 && m->codecs[0].id == CM_CODEC_SHARDING;
    if (out->sharded) {
        memcpy(out->shard, m->chunk, sizeof(out->shard));
        memcpy(out->chunk, m->codecs[0].shard->chunk, sizeof(out->chunk));
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
        cm_job_var *v = &job->var[i];
        const cm_zarr_node *node = cm_zarr_find(&tree, v->name);
        if (node != NULL && !node->meta.is_group && node->meta.rank == v->view.rank)
            adopt_layout(&node->meta, &v->layout);
    }
    cm_zarr_tree_release(&tree);
    return CM_OK;
}

/* The id of the snapshot, if STORE is one, for the certificate. */
static int note_snapshot(cm_job *job, const cm_store *store, cm_error *err)
{
    const uint8_t *id = cm_ice_store_snapshot(store);
    char letters[CM_ICE_ID_TEXT + 1];
    if (id == NULL)
        return CM_OK;
    cm_ice_id_letters(id, letters);
    job->report->snapshot = cm_strdup(letters, err);
    return job->report->snapshot == NULL ? CM_ENOMEM : CM_OK;
}

/* "icechunk:PATH::GROUP": what was made of the source lies below that group. */
static int open_against(cm_sink *s, cm_job *job, cm_error *err)
{
    const cm_store_options options = {.net = job->options->net, .memory = job->options->memory};
    cm_store_path at = {0};
    if (cm_icechunk_path(s->against) == NULL)
        return cm_ice_store_open(s->against, &options, &s->store, err);
    int rc = cm_store_path_split(s->against, &at, err);
    if (rc == CM_OK)
        rc = cm_ice_store_open(at.path, &options, &s->store, err);
    if (rc == CM_OK)
        rc = note_snapshot(job, s->store, err);
    cm_store *whole = s->store;
    if (rc == CM_OK && *at.node != '\0') {
        s->store = NULL;
        rc = cm_store_subtree(whole, at.node, &s->store, err);
    }
    cm_store_path_release(&at);
    return rc;
}

static int open_store(cm_sink *s, cm_job *job, cm_error *err)
{
    int rc = open_against(s, job, err);
    if (rc == CM_OK && job->report->snapshot == NULL)
        rc = note_snapshot(job, s->store, err);
    if (rc == CM_OK)
        rc = adopt_layouts(job, s->store, err);
    if (rc != CM_OK)
        cm_error_place(err, s->against);
    return rc;
}

/* The plan says how chunks are read; the report how the target should be. */
static int begin(cm_sink *s, cm_job *job, bool *moves, cm_error *err)
{
    cm_store *nowhere = NULL;
    *moves = false;
    int rc = open_store(s, job, err);
    if (rc == CM_OK)
        rc = cm_job_describe(job, err);
    if (rc == CM_OK)
        rc = cm_store_open_memory(&nowhere, err);
    s->own = nowhere;
    if (rc == CM_OK)
        rc = cm_job_plan(job, nowhere, err);
    return rc == CM_OK ? cm_job_report(job, false, err) : rc;
}

static int verify(cm_sink *s, cm_job *job, cm_error *err)
{
    uint64_t start = cm_now_ns();
    int rc = cm_job_compare_inputs(job, err);
    if (rc == CM_OK)
        rc = cm_job_verify(job, s->store, err);
    job->report->verify_seconds = (double)(cm_now_ns() - start) * 1e-9;
    return rc;
}

static int leave(cm_sink *s, cm_job *job, int rc, cm_error *err)
{
    (void)job;
    (void)err;
    cm_store_free(s->own);
    cm_store_free(s->store);
    s->own = s->store = NULL;
    return rc;
}

/*
 * All of the store is held against the source, whatever else was asked for; where the store was
 * complete before, as much as was asked for.
 */
static int find(cm_sink *s, cm_job *job, cm_error *err)
{
    const char *target = s->options->target;
    int rc = cm_icechunk_path(target) == NULL ? cm_store_path_plain(target, &s->against, err)
             : (s->against = cm_strdup(target, err)) == NULL ? CM_ENOMEM
                                                             : CM_OK;
    if (!job->report->finished)
        s->options->verify = CM_VERIFY_FULL;
    s->target = NULL;
    job->terms.against = s->against;
    return rc;
}

const cm_sink_ops cm_sink_compared = {.kind = CM_SINK_COMPARES,
                                      .find = find,
                                      .layout = cm_job_layout,
                                      .begin = begin,
                                      .verify = verify,
                                      .leave = leave,
                                      .give_back = cm_sink_end_output};
