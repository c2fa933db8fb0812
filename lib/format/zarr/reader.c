/*
 * Reads stored chunks of a Zarr array by number.
 *
 * If the chain is sharding_indexed alone, these are inner chunks, read as ranges of the shards'
 * objects; otherwise a chunk is an object.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "format/zarr/reader.h"

enum {
    /* Another encoder may exceed our worst case: allow twice that, and headers. */
    STORED_SLACK = 64 << 10
};
/* For texts, which have no bound of their own. */
#define MAX_VLEN_DECODED ((size_t)1 << 30)

/* ---- chunks as objects ---- */

static int fetch_object(cm_array *a, uint64_t number, cm_buf *buf, cm_fetch *out, cm_error *err)
{
    cm_zarr_array *z = (cm_zarr_array *)a;
    uint64_t coord[CM_MAX_RANK];
    char key[CM_ZARR_KEY_SIZE];
    *out = (cm_fetch){0};
    cm_grid_coord(&a->grid, number, coord);
    int rc = cm_zarr_object_key(z, coord, key, err);
    if (rc == CM_OK) {
        uint64_t start = cm_now_ns();
        rc = cm_store_get(z->store, key, cm_zarr_max_stored(z), buf, err);
        out->io_ns = cm_now_ns() - start;
        out->nrequests = 1;
    }
    if (rc == CM_ENOTFOUND)
        return CM_OK;
    if (rc == CM_OK)
        rc = cm_zarr_chain_of(z, number, &out->chain, err);
    out->present = rc == CM_OK;
    out->nbytes = rc != CM_OK ? 0 : buf->nbytes;
    return cm_zarr_prefix_chunk(err, z, number, rc);
}

/* ---- chunks in shards ---- */

static int read_inner(cm_zarr_array *z, const cm_shard *shard, uint64_t local, cm_buf *buf,
                      cm_fetch *out, cm_error *err)
{
    bool present;
    cm_shard_entry e;
    int rc = cm_zarr_find_inner(z, shard, local, &present, &e, err);
    if (rc != CM_OK || !present)
        return rc;
    buf->nbytes = 0;
    rc = cm_buf_resize(buf, (size_t)e.nbytes, err);
    if (rc == CM_OK)
        rc = cm_object_read(shard->object, e.offset, buf->data, (size_t)e.nbytes, err);
    out->present = rc == CM_OK;
    out->nrequests++;
    out->nbytes += rc != CM_OK ? 0 : e.nbytes;
    return rc;
}

/*
 * Reads inner chunk LOCAL of the shard at COORD; *CHANGED: it failed because the shard was
 * replaced.
 */
static int fetch_from(cm_zarr_array *z, const uint64_t *coord, const char *key, uint64_t local,
                      cm_buf *buf, cm_fetch *out, bool *changed, cm_error *err)
{
    const cm_shard *shard;
    const cm_shard_layout *layout;
    cm_shard_cost cost;
    *changed = false;
    int rc = cm_zarr_layout_of(z, coord, &layout, err);
    if (rc != CM_OK)
        return rc;
    rc = cm_shard_cache_acquire(z->cache, cm_grid_number(&z->outer, coord), layout, key, &shard,
                                &cost, err);
    out->nrequests += cost.nrequests;
    out->nbytes += cost.nbytes;
    if (rc != CM_OK)
        return rc;
    rc = read_inner(z, shard, local, buf, out, err);
    if (rc == CM_OK)
        cm_shard_cache_release(z->cache, shard);
    else
        *changed = cm_shard_cache_renew(z->cache, shard);
    return rc;
}

static int fetch_inner(cm_array *a, uint64_t number, cm_buf *buf, cm_fetch *out, cm_error *err)
{
    cm_zarr_array *z = (cm_zarr_array *)a;
    uint64_t coord[CM_MAX_RANK], local;
    char key[CM_ZARR_KEY_SIZE];
    *out = (cm_fetch){0};
    cm_zarr_locate(z, number, coord, &local);
    int rc = cm_zarr_object_key(z, coord, key, err);
    if (rc == CM_OK) {
        uint64_t start = cm_now_ns();
        bool changed = true;
        for (int i = 0; changed && i < CM_ZARR_TRIES; i++)
            rc = fetch_from(z, coord, key, local, buf, out, &changed, err);
        out->io_ns = cm_now_ns() - start;
    }
    return cm_zarr_prefix_chunk(err, z, number, rc);
}

static bool is_absent(cm_array *a, uint64_t number)
{
    cm_zarr_array *z = (cm_zarr_array *)a;
    if (z->cache == NULL)
        return false; /* only the store knows */
    uint64_t coord[CM_MAX_RANK], local;
    cm_zarr_locate(z, number, coord, &local);
    return cm_shard_cache_knows_missing(z->cache, cm_grid_number(&z->outer, coord), local);
}

/* ---- variable-length elements ---- */

static cm_codec_ctx *take_ctx(cm_zarr_array *z, cm_error *err)
{
    pthread_mutex_lock(&z->lock);
    cm_codec_ctx *ctx = z->idle;
    z->idle = NULL;
    pthread_mutex_unlock(&z->lock);
    return ctx != NULL ? ctx : cm_codec_ctx_create(err);
}

static void give_ctx(cm_zarr_array *z, cm_codec_ctx *ctx)
{
    pthread_mutex_lock(&z->lock);
    cm_codec_ctx *extra = z->idle != NULL ? ctx : NULL;
    if (extra == NULL)
        z->idle = ctx;
    pthread_mutex_unlock(&z->lock);
    cm_codec_ctx_free(extra);
}

typedef struct string_read {
    cm_zarr_array *z;
    const cm_box *box;
    cm_codec_ctx *ctx;
    cm_buf stored;
    cm_strings chunk;
    cm_strings *out;
} string_read;

/* Copies the part that chunk COORD shares with the box; CHUNK NULL: fill values. */
static int scatter_strings(string_read *r, const uint64_t *coord, const cm_strings *chunk,
                           cm_error *err)
{
    const cm_array *a = &r->z->base;
    cm_box covered, part;
    uint64_t shape[CM_MAX_RANK];
    cm_grid_box(&a->grid, coord, &covered);
    cm_grid_chunk_shape(&a->grid, coord, shape);
    if (!cm_box_intersect(&covered, r->box, &part))
        return CM_OK;
    const char *fill = a->fill_text != NULL ? a->fill_text : "";
    uint64_t n = cm_box_nelem(&part), at[CM_MAX_RANK] = {0};
    for (uint64_t k = 0; k < n; k++) {
        uint64_t from = 0, to = 0;
        for (unsigned i = 0; i < a->rank; i++) {
            uint64_t index = part.start[i] + at[i];
            from = from * shape[i] + (index - covered.start[i]);
            to = to * r->box->shape[i] + (index - r->box->start[i]);
        }
        size_t nbytes = strlen(fill);
        const char *text = chunk != NULL ? cm_strings_get(chunk, from, &nbytes) : fill;
        int rc = cm_strings_set(r->out, to, text, nbytes, err);
        if (rc != CM_OK)
            return rc;
        for (unsigned i = a->rank; i-- > 0 && ++at[i] == part.shape[i];)
            at[i] = 0;
    }
    return CM_OK;
}

/* True if the box is exactly chunk COORD. */
static bool is_box(const string_read *r, const uint64_t *coord)
{
    const cm_grid *grid = &r->z->base.grid;
    uint64_t shape[CM_MAX_RANK];
    bool same = true;
    cm_grid_chunk_shape(grid, coord, shape);
    for (unsigned i = 0; i < grid->rank; i++)
        same = same && r->box->start[i] == cm_grid_first(grid, i, coord[i]) &&
               r->box->shape[i] == shape[i];
    return same;
}

static int read_string_chunk(string_read *r, const uint64_t *coord, cm_error *err)
{
    cm_array *a = &r->z->base;
    uint64_t number = cm_grid_number(&a->grid, coord);
    cm_fetch fetch;
    bool whole = is_box(r, coord); /* then decode in place: texts are long */
    cm_strings *chunk = whole ? r->out : &r->chunk;
    int rc = a->ops->fetch(a, number, &r->stored, &fetch, err);
    if (rc != CM_OK)
        return rc;
    if (!fetch.present)
        return scatter_strings(r, coord, NULL, err);
    const uint64_t nelem = cm_grid_chunk_nelem(&a->grid, coord);
    rc = cm_chain_decode_strings(cm_array_chain(a, fetch.chain), r->ctx, r->stored.data,
                                 r->stored.nbytes, chunk, err);
    if (rc == CM_OK && chunk->nelem != nelem)
        rc = cm_fail(err, CM_EFORMAT, "has %zu elements instead of %llu", chunk->nelem,
                     (unsigned long long)nelem);
    if (rc == CM_OK && !whole)
        rc = scatter_strings(r, coord, chunk, err);
    return cm_zarr_prefix_chunk(err, r->z, number, rc);
}

static int read_strings(cm_array *a, const cm_box *box, cm_strings *out, cm_error *err)
{
    uint64_t nelem = cm_box_nelem(box);
    int rc = cm_strings_reset(out, nelem, err);
    if (rc != CM_OK || nelem == 0)
        return rc;
    cm_zarr_array *z = (cm_zarr_array *)a;
    string_read r = {.z = z, .box = box, .out = out, .ctx = take_ctx(z, err)};
    if (r.ctx == NULL)
        return CM_ENOMEM;
    /* The caller's limit for the box applies to each chunk of it, stored and decoded. */
    size_t most = out->arena.max_nbytes;
    cm_strings_init(&r.chunk, most > 0 && most < MAX_VLEN_DECODED ? most : MAX_VLEN_DECODED);
    r.stored.max_nbytes = most;
    uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK], coord[CM_MAX_RANK], left = 1;
    cm_grid_cover(&a->grid, box, first, count);
    memcpy(coord, first, sizeof coord);
    for (unsigned i = 0; i < a->rank; i++)
        left *= count[i];
    for (; left > 0 && rc == CM_OK; left--) {
        rc = read_string_chunk(&r, coord, err);
        for (unsigned i = a->rank; i-- > 0 && ++coord[i] == first[i] + count[i];)
            coord[i] = first[i];
    }
    cm_strings_release(&r.chunk);
    cm_buf_release(&r.stored);
    give_ctx(z, r.ctx);
    return rc;
}

/* ---- opening ---- */

static void free_array(cm_array *a)
{
    cm_zarr_array *z = (cm_zarr_array *)a;
    cm_shard_cache_free(z->cache);
    cm_shard_layout_free(z->layout);
    cm_zarr_shapes_free(z->shapes);
    cm_zarr_meta_release(&z->keys);
    cm_codec_ctx_free(z->idle);
    pthread_mutex_destroy(&z->lock);
    cm_chain_free(a->chain);
    cm_json_free(a->attrs);
    for (unsigned i = 0; i < CM_MAX_RANK; i++)
        free(a->dim_name[i]);
    free(a->fill);
    free(a->fill_text);
    free(a->name);
    free(z->prefix);
    free(z);
}

static const cm_array_ops object_ops = {.fetch = fetch_object,
                                        .fetch_many = cm_zarr_fetch_objects,
                                        .fetch_begin = cm_zarr_begin_objects,
                                        .fetch_unwant = cm_zarr_unwant,
                                        .fetch_end = cm_zarr_end_objects,
                                        .is_absent = is_absent,
                                        .read_strings = read_strings,
                                        .free = free_array};
static const cm_array_ops shard_ops = {.fetch = fetch_inner,
                                       .fetch_many = cm_zarr_fetch_inner,
                                       .fetch_begin = cm_zarr_begin_inner,
                                       .fetch_unwant = cm_zarr_unwant,
                                       .fetch_end = cm_zarr_end_inner,
                                       .is_absent = is_absent,
                                       .read_strings = read_strings,
                                       .free = free_array};

/* Copies what must outlive the node. */
static int copy_description(cm_zarr_array *z, const cm_zarr_node *node, cm_error *err)
{
    const cm_zarr_meta *m = &node->meta;
    cm_array *a = &z->base;
    cm_zarr_meta copy;
    int rc = cm_zarr_meta_copy(m, &copy, err);
    if (rc != CM_OK)
        return rc;
    a->dtype = m->dtype;
    a->rank = m->rank;
    memcpy(a->shape, m->shape, sizeof a->shape);
    memcpy(a->dim_name, copy.dim_name, sizeof a->dim_name);
    memset(copy.dim_name, 0, sizeof copy.dim_name);
    a->attrs = copy.attrs;
    a->fill = copy.fill;
    a->fill_text = copy.fill_text;
    copy.attrs = NULL;
    copy.fill = NULL;
    copy.fill_text = NULL;
    memcpy(z->keys.cuts, copy.cuts, sizeof copy.cuts);
    memset(copy.cuts, 0, sizeof copy.cuts);
    cm_zarr_meta_release(&copy);
    memcpy(z->keys.shape, m->shape, sizeof m->shape);
    memcpy(z->keys.chunk, m->chunk, sizeof m->chunk);
    z->keys.zarr_format = m->zarr_format;
    z->keys.key_v2 = m->key_v2;
    z->keys.separator = m->separator;
    z->keys.rank = m->rank;
    a->name = cm_strdup(node->path, err);
    z->prefix = cm_asprintf(err, "%s%s", node->path, node->path[0] ? "/" : "");
    return a->name != NULL && z->prefix != NULL ? CM_OK : CM_ENOMEM;
}

static int prepare(cm_zarr_array *z, const cm_zarr_meta *m, size_t index_cache_nbytes,
                   cm_error *err)
{
    cm_array *a = &z->base;
    bool is_vlen = cm_dtype_is_vlen(&m->dtype);
    const cm_shard_spec *shard = cm_zarr_sharding(m);
    a->ops = shard != NULL ? &shard_ops : &object_ops;
    int rc = cm_zarr_meta_outer_grid(&z->keys, &z->outer, err);
    if (rc == CM_OK)
        rc = cm_zarr_shapes_create(m, &z->shapes, err);
    if (rc == CM_OK && shard != NULL) {
        rc = cm_shard_layout_create(shard, m->rank, m->chunk, &z->layout, err);
        if (rc == CM_OK)
            rc = cm_shard_cache_create(z->store, index_cache_nbytes, &z->cache, err);
    }
    const uint64_t *chunk = shard != NULL ? shard->chunk : m->chunk;
    if (rc == CM_OK)
        rc = cm_zarr_meta_grid(m, &a->grid, err);
    for (unsigned i = 0; i < m->rank; i++) /* M need not outlive the array */
        a->grid.cuts[i] = shard != NULL ? NULL : z->outer.cuts[i];
    if (rc == CM_OK)
        rc = cm_chain_create(shard != NULL ? shard->codecs : m->codecs,
                             shard != NULL ? shard->ncodecs : m->ncodecs, &m->dtype, m->rank, chunk,
                             &a->chain, err);
    if (rc != CM_OK)
        return rc;
    a->chunked = true;
    size_t bound = cm_chain_encoded_bound(a->chain);
    if (!is_vlen && (!cm_mul_size(bound, 2, &bound) ||
                     !cm_add_size(bound, STORED_SLACK, &a->max_stored_nbytes)))
        rc = cm_fail(err, CM_EBUDGET, "chunks are too large to address");
    return rc;
}

/* Behind a link to a disk that is not mounted no chunk is known to be absent. */
static int check_chunk_folder(const cm_zarr_array *z, const cm_zarr_node *node, cm_error *err)
{
    const cm_zarr_meta *m = &node->meta;
    bool is_link, any;
    if (m->zarr_format != 3 || m->key_v2 || m->separator != '/' || m->rank == 0)
        return CM_OK;
    char *key = cm_asprintf(err, "%s%sc", node->path, *node->path != '\0' ? "/" : "");
    if (key == NULL)
        return CM_ENOMEM;
    int rc = cm_store_is_link(z->store, key, &is_link, err);
    if (rc == CM_OK && is_link && cm_store_has_any(z->store, key, &any, NULL) == CM_ENOTFOUND)
        rc = cm_fail(err, CM_EIO, "%s: is a link to nothing, so that its chunks cannot be read",
                     key);
    free(key);
    return rc;
}

int cm_zarr_array_open(const cm_zarr_tree *tree, const cm_zarr_node *node,
                       size_t index_cache_nbytes, cm_array **out, cm_error *err)
{
    *out = NULL;
    const char *name = node->path[0] ? node->path : "/";
    if (node->meta.is_group)
        return cm_fail(err, CM_EINVAL, "%s is a group, not an array", name);
    if (node->unsupported != NULL || node->meta.verbatim)
        return cm_fail(err, CM_EUNSUPPORTED, "array %s: %s", name,
                       node->unsupported != NULL ? node->unsupported
                                                 : "its metadata is not understood");
    cm_zarr_array *z = cm_calloc(1, sizeof *z, err);
    if (z == NULL)
        return CM_ENOMEM;
    z->base.ops = &object_ops;
    z->store = tree->store;
    z->base.place = cm_store_name(tree->store);
    pthread_mutex_init(&z->lock, NULL);
    int rc = copy_description(z, node, err);
    if (rc == CM_OK)
        rc = prepare(z, &node->meta, index_cache_nbytes, err);
    if (rc == CM_OK)
        rc = check_chunk_folder(z, node, err);
    if (rc != CM_OK) {
        cm_error_prefix(err, "array %s", name);
        free_array(&z->base);
        return rc;
    }
    *out = &z->base;
    return CM_OK;
}
