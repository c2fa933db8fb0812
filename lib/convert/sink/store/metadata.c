/*
 * The metadata of the target, written when all chunks are there.  Codecs that
 * stay are written in the words that the source has for them, and members that
 * are not known here stay: they are for other readers too.
 */
#include <stdlib.h>
#include <string.h>

#include "convert/job.h"

/* ---- codecs as the source has them ---- */

/* The configuration of the one sharding codec in LIST; NULL: there is none. */
static const cm_json *sharding_of(const cm_json *list)
{
    return cm_json_member(cm_json_at(list, 0), "configuration");
}

/* Sets MEMBER in the configuration of the one codec in *LIST, which is made anew. */
static int set_in_sharding(cm_json **list, const char *member, const cm_json *value, cm_error *err)
{
    cm_json *made = cm_json_array(), *codec = cm_json_copy(cm_json_at(*list, 0));
    cm_json *configuration = cm_json_copy(sharding_of(*list));
    int rc = cm_json_set(configuration, member, cm_json_copy(value), err);
    if (rc == CM_OK) {
        rc = cm_json_set(codec, "configuration", configuration, err);
        configuration = NULL;
    }
    if (rc == CM_OK) {
        rc = cm_json_append(made, codec, err);
        codec = NULL;
    }
    cm_json_free(configuration);
    cm_json_free(codec);
    cm_json_free(rc == CM_OK ? *list : made);
    if (rc == CM_OK)
        *list = made;
    return rc;
}

/*
 * Chunks and shards are the target's; the codecs inside of them, and those of a shard's index,
 * the source's.
 */
static int keep_v3(const cm_job_var *v, cm_json *doc, cm_error *err)
{
    const cm_zarr_meta *was = v->source->words;
    const cm_json *inner = cm_json_member(was->raw, "codecs"), *index = NULL;
    if (v->source->is_sharded) {
        const cm_json *configuration = sharding_of(inner);
        inner = cm_json_member(configuration, "codecs");
        index = cm_json_member(configuration, "index_codecs");
    }
    if (!v->layout.sharded)
        return cm_json_set(doc, "codecs", cm_json_copy(inner), err);
    cm_json *codecs = cm_json_copy(cm_json_member(doc, "codecs"));
    int rc = set_in_sharding(&codecs, "codecs", inner, err);
    if (rc == CM_OK && index != NULL)
        rc = set_in_sharding(&codecs, "index_codecs", index, err);
    if (rc == CM_OK)
        return cm_json_set(doc, "codecs", codecs, err);
    cm_json_free(codecs);
    return rc;
}

/*
 * Which of the two members holds a codec is the source's choice for each of them
 * (a checksum may be the compressor, zlib the last filter), so both are the
 * source's, or null.  No filters are null: an empty list is against the specification.
 */
static int keep_v2(const cm_job_var *v, cm_json *doc, cm_error *err)
{
    const cm_json *compressor = cm_json_member(v->source->words->raw, "compressor");
    const cm_json *filters = cm_json_member(v->source->words->raw, "filters");
    int rc = compressor == NULL ? cm_json_set_null(doc, "compressor", err)
                                : cm_json_set(doc, "compressor", cm_json_copy(compressor), err);
    if (rc != CM_OK)
        return rc;
    return cm_json_length(filters) == 0 ? cm_json_set_null(doc, "filters", err)
                                        : cm_json_set(doc, "filters", cm_json_copy(filters), err);
}

/* ---- members as the source has them ---- */

static int to_json(const cm_zarr_meta *meta, cm_json **doc, cm_error *err)
{
    cm_json *attrs = NULL;
    if (meta->zarr_format == 3)
        return cm_zarr_meta_to_v3(meta, doc, err);
    int rc = cm_zarr_meta_to_v2(meta, doc, &attrs, err);
    cm_json_free(attrs);
    return rc;
}

/* Members that are not known here, and need not be: NCZarr has its dimensions in such. */
static int keep_members(const cm_json *raw, cm_json *doc, cm_error *err)
{
    int rc = CM_OK;
    for (cm_json_iter it = cm_json_begin(raw); rc == CM_OK && cm_json_next(&it);)
        if (it.value != NULL && !cm_json_has(doc, it.name))
            rc = cm_json_set(doc, it.name, cm_json_copy(it.value), err);
    return rc;
}

/*
 * The document of META, of array V or (NULL) of a group, with the codecs, where they stay, and the
 * unknown members of WAS, into *RAW; NULL: nothing of WAS is kept.
 */
static int keep_words(const cm_zarr_meta *was, const cm_job_var *v, const cm_zarr_meta *meta,
                      cm_json **raw, cm_error *err)
{
    cm_json *doc = NULL;
    *raw = NULL;
    if (was->verbatim || was->raw == NULL || was->zarr_format != meta->zarr_format)
        return CM_OK;
    int rc = to_json(meta, &doc, err);
    if (rc == CM_OK && v != NULL && v->layout.same_codec)
        rc = meta->zarr_format == 3 ? keep_v3(v, doc, err) : keep_v2(v, doc, err);
    if (rc == CM_OK)
        rc = keep_members(was->raw, doc, err);
    if (rc != CM_OK) {
        cm_json_free(doc);
        return rc;
    }
    *raw = doc;
    return CM_OK;
}

/* ---- the hierarchy ---- */

static int describe_group(const cm_job *job, const cm_dataset_group *g, cm_zarr_meta *out,
                          cm_error *err)
{
    cm_json *raw = NULL;
    if (g->words == NULL) {
        *out = (cm_zarr_meta){.zarr_format = job->zarr_format, .is_group = true};
        out->attrs = cm_json_copy(g->attrs);
        return out->attrs == NULL ? cm_fail(err, CM_ENOMEM, "no memory for attributes") : CM_OK;
    }
    int rc = cm_zarr_meta_copy(g->words, out, err);
    if (rc == CM_OK && !(g->words->verbatim && g->words->zarr_format == job->zarr_format))
        rc = cm_zarr_meta_set_format(out, job->zarr_format, err);
    if (rc == CM_OK)
        rc = keep_words(g->words, NULL, out, &raw, err);
    if (raw != NULL) {
        cm_json_free(out->raw);
        out->raw = raw;
        out->verbatim = true;
    }
    return rc;
}

static int add_groups(const cm_job *job, cm_zarr_meta *group, cm_zarr_entry *entry, size_t *n,
                      cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < job->source->ngroups; i++) {
        const cm_dataset_group *g = &job->source->group[i];
        if (!cm_job_wants_group(job, g->path))
            continue;
        const char *path = g->path + strlen(job->from.group);
        rc = describe_group(job, g, &group[i], err);
        entry[(*n)++] = (cm_zarr_entry){path + (*path == '/'), &group[i]};
    }
    return rc;
}

/* V's metadata into *OUT, which borrows all of it but, where that is another, RAW. */
static int describe_array(const cm_job_var *v, cm_zarr_meta *out, cm_error *err)
{
    cm_json *raw = NULL;
    *out = v->doc.meta;
    if (v->stored.as_objects || !v->doc.keeps_words)
        return CM_OK;
    int rc = keep_words(v->source->words, v, &v->doc.meta, &raw, err);
    if (raw != NULL) {
        out->raw = raw;
        out->verbatim = true;
    }
    return rc;
}

/* Several windows of one array are described once. */
static bool is_another_window(const cm_job *job, size_t i)
{
    return i > 0 && job->var[i].window.is_part &&
           strcmp(job->var[i].name, job->var[i - 1].name) == 0;
}

static int write_all(cm_job *job, cm_store *store, bool durable, cm_error *err)
{
    size_t n = 0, ngroups = job->source->ngroups;
    bool keeps = job->options->defaults == CM_DEFAULTS_KEEP && job->source->kind == CM_DATASET_ZARR;
    bool consolidated = !job->terms.unconsolidated &&
                        (keeps ? job->source->consolidated : !job->options->no_consolidate);
    cm_zarr_entry *entry = cm_calloc(ngroups + job->nvars + 1, sizeof(entry[0]), err);
    cm_zarr_meta *group = cm_calloc(ngroups + 1, sizeof(group[0]), err);
    cm_zarr_meta *array = cm_calloc(job->nvars + 1, sizeof(array[0]), err);
    int rc = entry == NULL || group == NULL || array == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK)
        rc = add_groups(job, group, entry, &n, err);
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        rc = describe_array(&job->var[i], &array[i], err);
        if (!is_another_window(job, i))
            entry[n++] = (cm_zarr_entry){job->var[i].name, &array[i]};
    }
    if (rc == CM_OK && durable)
        rc = cm_store_sync(store, err);
    if (rc == CM_OK)
        rc = cm_zarr_hierarchy_write(store, job->zarr_format, entry, n, consolidated, err);
    if (rc == CM_OK && durable)
        rc = cm_store_sync(store, err);
    for (size_t i = 0; group != NULL && i < ngroups; i++)
        cm_zarr_meta_release(&group[i]);
    for (size_t i = 0; array != NULL && i < job->nvars; i++)
        if (array[i].raw != job->var[i].doc.meta.raw)
            cm_json_free(array[i].raw);
    free(entry);
    free(group);
    free(array);
    return rc;
}

int cm_job_write_metadata(cm_job *job, cm_store *store, cm_error *err)
{
    cm_monitor_phase(job->options->monitor, CM_PHASE_FINISHING, 0);
    return write_all(job, store, job->options->durable, err);
}

int cm_job_describe_in_memory(cm_job *job, cm_store **out, cm_error *err)
{
    int rc = cm_store_open_memory(out, err);
    return rc == CM_OK ? write_all(job, *out, false, err) : rc;
}

/* Opens, and closes, every array of TREE that can be read, as the verification does. */
static int open_arrays(const cm_zarr_tree *tree, cm_error *err)
{
    cm_array **open = cm_calloc(tree->nnodes + 1, sizeof(open[0]), err);
    int rc = open == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < tree->nnodes; i++)
        if (!tree->node[i].meta.is_group && tree->node[i].unsupported == NULL)
            rc = cm_zarr_array_open(tree, &tree->node[i], 0, &open[i], err);
    for (size_t i = 0; open != NULL && i < tree->nnodes; i++)
        cm_array_free(open[i]);
    free(open);
    return rc == CM_EUNSUPPORTED ? CM_OK : rc;
}

int cm_job_rehearse_metadata(cm_job *job, cm_error *err)
{
    cm_zarr_tree tree = {0};
    cm_store *store = NULL;
    int rc = cm_job_describe_in_memory(job, &store, err);
    if (rc == CM_OK && job->options->verify != CM_VERIFY_NONE)
        rc = cm_zarr_open(store, &tree, err);
    if (rc == CM_OK)
        rc = open_arrays(&tree, err);
    cm_zarr_tree_release(&tree);
    cm_store_free(store);
    return rc;
}
