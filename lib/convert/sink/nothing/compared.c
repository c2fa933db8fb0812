/*
 * --check: compares an input with a store that is already there; writes nothing.
 *
 * The options say what the store should hold (variables, names, subset, types),
 * as they do for a conversion; its chunks and codecs are its own affair.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "convert/layout/codec_text.h"
#include "convert/sink/sink.h"
#include "convert/source/clashes.h"
#include "format/icechunk/key.h"
#include "format/icechunk/read_store.h"
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

static const cm_zarr_meta *meta_of(const cm_zarr_tree *tree, const cm_job_var *v)
{
    const cm_zarr_node *node = cm_zarr_find(tree, v->name);
    return node != NULL && !node->meta.is_group && node->meta.rank == v->view.rank ? &node->meta
                                                                                   : NULL;
}

/* ---- a complete store that is resumed ---- */

#define OTHER_LAYOUT "; `overwrite` makes it again"

/* Shapes that options say of the array; others were chosen, by what the archive was then. */
static int check_grid(const cm_job_var *v, const cm_zarr_meta *m, cm_error *err)
{
    const cm_layout *asked = &v->layout;
    char want[CM_MAX_RANK * 21], got[CM_MAX_RANK * 21];
    cm_layout there = {0};
    const size_t nbytes = v->view.rank * sizeof(there.chunk[0]);
    if (v->stored.as_objects)
        return CM_OK;
    adopt_layout(m, &there);
    if (asked->asked_shard && asked->sharded != there.sharded)
        return cm_fail(err, CM_EEXIST, "complete, but array %s has %s" OTHER_LAYOUT, v->name,
                       there.sharded ? "shards" : "no shards");
    if (asked->asked_shard && there.sharded && memcmp(asked->shard, there.shard, nbytes) != 0)
        return cm_fail(err, CM_EEXIST, "complete, but array %s has shards %s, not %s" OTHER_LAYOUT,
                       v->name, cm_shape_text(v->view.rank, there.shard, got, sizeof(got)),
                       cm_shape_text(v->view.rank, asked->shard, want, sizeof(want)));
    if (asked->asked_chunk && memcmp(asked->chunk, there.chunk, nbytes) != 0)
        return cm_fail(err, CM_EEXIST, "complete, but array %s has chunks %s, not %s" OTHER_LAYOUT,
                       v->name, cm_shape_text(v->view.rank, there.chunk, got, sizeof(got)),
                       cm_shape_text(v->view.rank, asked->chunk, want, sizeof(want)));
    return CM_OK;
}

/* The codecs of M, as a document has them. */
static int codecs_of(const cm_zarr_meta *m, cm_json **out, cm_error *err)
{
    static const char *const names[] = {"codecs", "filters", "compressor", "order"};
    cm_json *doc = NULL, *attrs = NULL;
    *out = cm_json_object();
    int rc = m->zarr_format == 2 ? cm_zarr_meta_to_v2(m, &doc, &attrs, err)
                                 : cm_zarr_meta_to_v3(m, &doc, err);
    for (size_t i = 0; rc == CM_OK && i < sizeof(names) / sizeof(names[0]); i++) {
        const cm_json *member = cm_json_member(doc, names[i]);
        if (member != NULL) /* not null */
            rc = cm_json_set(*out, names[i], cm_json_copy(member), err);
    }
    cm_json_free(doc);
    cm_json_free(attrs);
    return rc;
}

static int check_codecs(const cm_job_var *v, const cm_zarr_meta *m, cm_error *err)
{
    cm_json *want = NULL, *got = NULL;
    char *is = NULL, *asked = NULL;
    int rc = codecs_of(&v->doc.meta, &want, err);
    if (rc == CM_OK)
        rc = codecs_of(m, &got, err);
    if (rc == CM_OK && !cm_json_equal(want, got)) {
        is = cm_codec_text(m, err);
        asked = cm_codec_text(&v->doc.meta, err);
        rc = is == NULL || asked == NULL ? CM_ENOMEM
             : strcmp(is, asked) == 0
                 ? cm_fail(err, CM_EEXIST,
                           "complete, but codec %s of array %s has other settings" OTHER_LAYOUT, is,
                           v->name)
                 : cm_fail(err, CM_EEXIST,
                           "complete, but array %s has codec %s, not %s" OTHER_LAYOUT, v->name, is,
                           asked);
    }
    free(is);
    free(asked);
    cm_json_free(want);
    cm_json_free(got);
    return rc;
}

/*
 * The documents as they would be are made with the store's chunks: what differs are codecs.  Where
 * no option asks for a layout, any will do.
 */
static int check_resumed(cm_job *job, cm_store *store, cm_error *err)
{
    cm_zarr_tree tree;
    if (!job->report->finished || job->options->codec.n == 0)
        return CM_OK;
    int rc = cm_zarr_open(store, &tree, err);
    if (rc != CM_OK)
        return rc;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        const cm_zarr_meta *m = meta_of(&tree, v);
        if (m != NULL && !v->stored.as_objects)
            rc = check_codecs(v, m, err);
    }
    cm_zarr_tree_release(&tree);
    if (rc != CM_OK)
        cm_error_place(err, cm_store_name(store));
    return rc;
}

/* ---- the store as it is ---- */

static int adopt_layouts(cm_job *job, cm_store *store, cm_error *err)
{
    const bool resumed = job->report->finished;
    const int asked = job->options->zarr_format;
    cm_zarr_tree tree;
    int rc = cm_zarr_open(store, &tree, err);
    if (rc != CM_OK)
        return rc;
    if (resumed && asked != 0 && asked != tree.zarr_format)
        rc = cm_fail(err, CM_EEXIST, "complete, but in Zarr format %d, not %d" OTHER_LAYOUT,
                     tree.zarr_format, asked);
    job->zarr_format = tree.zarr_format;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        cm_job_var *v = &job->var[i];
        const cm_zarr_meta *m = meta_of(&tree, v);
        if (m != NULL && resumed)
            rc = check_grid(v, m, err);
        if (m != NULL)
            adopt_layout(m, &v->layout);
    }
    cm_zarr_tree_release(&tree);
    return rc;
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

/* The store, or the part of it below the node that the target names. */
static int open_against(cm_sink *s, cm_job *job, cm_error *err)
{
    const cm_store_options options = {.net = job->options->net, .memory = job->options->memory};
    int rc = cm_ice_store_open(s->against.path, &options, &s->store, err);
    if (rc == CM_OK)
        rc = note_snapshot(job, s->store, err);
    cm_store *whole = s->store;
    if (rc == CM_OK && *s->against.node != '\0') {
        s->store = NULL;
        rc = cm_store_subtree(whole, s->against.node, &s->store, err);
    }
    return rc;
}

static int open_store(cm_sink *s, cm_job *job, cm_error *err)
{
    int rc = open_against(s, job, err);
    if (rc == CM_OK)
        rc = adopt_layouts(job, s->store, err);
    if (rc != CM_OK)
        cm_error_place(err, s->store != NULL ? cm_store_name(s->store) : s->against.path);
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
        rc = check_resumed(job, s->store, err);
    if (rc != CM_OK || job->options->verify == CM_VERIFY_NONE)
        return rc;
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
    int rc = cm_store_path_split(s->options->target, &s->against, err);
    if (!job->report->finished)
        s->options->verify = CM_VERIFY_FULL;
    s->target = NULL;
    job->terms.against = s->against.path;
    return rc;
}

const cm_sink_ops cm_sink_compared = {.kind = CM_SINK_COMPARES,
                                      .find = find,
                                      .layout = cm_job_layout,
                                      .begin = begin,
                                      .verify = verify,
                                      .leave = leave,
                                      .give_back = cm_sink_end_output};
