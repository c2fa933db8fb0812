/* The source of a rechunking, and which of its arrays are meant. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "codec/shard.h"
#include "job/rechunk.h"
#include "job/store_path.h"
#include "job/varopt.h"

enum {
    CACHED_SHARDS = 8 /* at least: one for each worker, and those that a sweep comes back to */
};
#define MIN_CACHE ((size_t)256 << 10)
#define MAX_CACHE ((size_t)16 << 20)

const cm_shard_spec *cm_re_sharding(const cm_zarr_meta *m)
{
    return m->ncodecs == 1 && m->codecs[0].id == CM_CODEC_SHARDING ? m->codecs[0].shard : NULL;
}

/* Room for the indices of a few shards; none is needed where there are none. */
static size_t cache_of(const cm_zarr_meta *m)
{
    const cm_shard_spec *shard = cm_re_sharding(m);
    uint64_t nbytes = CACHED_SHARDS * sizeof(cm_shard_entry);
    if (shard == NULL)
        return 0;
    for (unsigned j = 0; j < m->rank && j < shard->rank; j++)
        if (shard->chunk[j] == 0 || !cm_mul_u64(nbytes, m->chunk[j] / shard->chunk[j], &nbytes))
            return MIN_CACHE;
    return nbytes < MIN_CACHE ? MIN_CACHE : nbytes > MAX_CACHE ? MAX_CACHE : (size_t)nbytes;
}

/* "store::group/array" is that folder of the store. */
static int locate(const char *source, char **out, cm_error *err)
{
    struct stat st;
    cm_store_path at;
    int rc = cm_store_path_split(source, &at, err);
    if (rc == CM_OK && at.node[0] != '\0' && (rc = cm_key_check(at.node, err)) != CM_OK)
        cm_error_place(err, at.path);
    if (rc == CM_OK) {
        *out = cm_asprintf(err, "%s%s%s", at.path, at.node[0] != '\0' ? "/" : "", at.node);
        rc = *out == NULL ? CM_ENOMEM : CM_OK;
    }
    if (rc == CM_OK && at.node[0] != '\0' && stat(*out, &st) != 0)
        rc = cm_fail(err, CM_ENOTFOUND, "%s: has no group or array %s", at.path, at.node);
    cm_store_path_release(&at);
    return rc;
}

/* Groups may be empty; a folder of other things is no source. */
static int check_arrays(const cm_zarr_tree *tree, cm_error *err)
{
    size_t narrays = 0;
    for (size_t i = 0; i < tree->nnodes; i++)
        narrays += !tree->node[i].meta.is_group;
    if (narrays > 0 || tree->nforeign == 0)
        return CM_OK;
    return cm_fail(
        err, CM_EFORMAT, "has no array: %llu files in it (%s%s) belong to none that has metadata",
        (unsigned long long)tree->nforeign, tree->foreign, tree->nforeign > 1 ? ", ..." : "");
}

int cm_re_open(cm_re_job *job, cm_error *err)
{
    int rc = locate(job->options->source, &job->path, err);
    if (rc == CM_OK)
        rc = cm_store_open_dir(job->path, false, &job->store, err);
    if (rc == CM_OK)
        rc = cm_zarr_open_whole(job->store, &job->tree, &job->conflicts, err);
    if (rc == CM_OK)
        rc = check_arrays(&job->tree, err);
    if (rc == CM_OK && job->options->zarr_format == 0)
        job->zarr_format = job->tree.zarr_format;
    else
        job->zarr_format = job->options->zarr_format;
    return rc;
}

/* ---- the choice ---- */

typedef struct choice {
    const cm_zarr_tree *tree;
    bool *chosen; /* one for each node */
} choice;

static int choose(void *context, char *part, cm_error *err)
{
    choice *c = context;
    bool any = false;
    for (size_t i = 0; i < c->tree->nnodes; i++) {
        const cm_zarr_node *node = &c->tree->node[i];
        if (node->meta.is_group || !cm_name_matches(part, node->path))
            continue;
        c->chosen[i] = any = true;
    }
    if (any)
        return CM_OK;
    return cm_fail(err, CM_EINVAL, "--variable %s: the store has no such array", part);
}

static int open_array(cm_re_job *job, cm_re_array *a, cm_error *err)
{
    const cm_zarr_node *node = a->node;
    if (node->unsupported != NULL || node->meta.verbatim) {
        a->how = CM_RE_OBJECTS;
        return CM_OK;
    }
    a->cache_nbytes = cache_of(&node->meta);
    int rc = cm_zarr_array_open(&job->tree, node, a->cache_nbytes, &a->source, err);
    if (rc == CM_EUNSUPPORTED) {
        a->how = CM_RE_OBJECTS;
        return CM_OK;
    }
    if (rc == CM_OK)
        rc = cm_presence_find(job->store, node, cm_re_threads(job->options), &a->presence, err);
    if (rc != CM_OK)
        return rc;
    uint64_t missing = a->presence.nchunks - a->presence.npresent;
    if (a->presence.bit != NULL && missing > 0 && !node->meta.has_fill)
        rc = cm_re_warn(job, err,
                        "array %s: %llu of %llu chunks are missing and it has no fill value, so "
                        "what they held is undefined; they are taken for zero",
                        node->path[0] ? node->path : "/", (unsigned long long)missing,
                        (unsigned long long)a->presence.nchunks);
    a->how = cm_dtype_is_vlen(&node->meta.dtype) ? CM_RE_STRINGS : CM_RE_ELEMENTS;
    /* What is there is known: no more room than that for stored bytes. */
    if (a->presence.bit != NULL && a->how == CM_RE_ELEMENTS)
        a->source->max_stored_nbytes = a->presence.max_nbytes > 0 ? a->presence.max_nbytes : 1;
    return rc;
}

int cm_re_select(cm_re_job *job, cm_error *err)
{
    const cm_texts *names = &job->options->variable;
    size_t n = job->tree.nnodes;
    choice c = {.tree = &job->tree, .chosen = cm_calloc(n > 0 ? n : 1, sizeof(bool), err)};
    job->array = cm_calloc(n > 0 ? n : 1, sizeof(job->array[0]), err);
    int rc = c.chosen == NULL || job->array == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < names->n; i++)
        rc = cm_split(names->text[i], ',', choose, &c, err);
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        const cm_zarr_node *node = &job->tree.node[i];
        if (node->meta.is_group || (names->n > 0 && !c.chosen[i]))
            continue;
        cm_re_array *a = &job->array[job->narrays];
        a->node = node;
        a->index = job->narrays++;
        rc = open_array(job, a, err);
    }
    free(c.chosen);
    return rc;
}

bool cm_re_wants_group(const cm_re_job *job, const char *path)
{
    size_t n = strlen(path);
    if (job->options->variable.n == 0 || n == 0)
        return true;
    for (size_t i = 0; i < job->narrays; i++) {
        const char *name = job->array[i].node->path;
        if (strncmp(name, path, n) == 0 && name[n] == '/')
            return true;
    }
    return false;
}
