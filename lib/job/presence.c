#include "job/presence.h"

#include <stdlib.h>

#include "codec/shard.h"

enum {
    MAX_OBJECTS = 8 << 20 /* a minute of asking; a bit for each is nothing */
};

typedef struct finder {
    cm_store *store;
    const cm_zarr_node *node;
    const cm_shard_spec *spec; /* NULL: no shards */
    cm_shard_layout *layout;
    cm_grid grid, outer;
    cm_shard_entry *entry;
    cm_buf index;
    cm_presence *out;
} finder;

static const cm_shard_spec *sharding_of(const cm_zarr_meta *m)
{
    return m->ncodecs == 1 && m->codecs[0].id == CM_CODEC_SHARDING ? m->codecs[0].shard : NULL;
}

static void mark(finder *f, const uint64_t *coord, uint64_t nbytes)
{
    uint64_t number = cm_grid_number(&f->grid, coord);
    f->out->bit[number / 64] |= UINT64_C(1) << number % 64;
    f->out->npresent++;
    if (nbytes > f->out->max_nbytes)
        f->out->max_nbytes = nbytes;
}

static int read_index(finder *f, const char *key, const uint64_t *shard, cm_error *err)
{
    const cm_grid *within = cm_shard_grid(f->layout);
    cm_object_reader *object;
    size_t nbytes = cm_shard_index_nbytes(f->layout);
    int rc = cm_object_open(f->store, key, &object, err);
    if (rc != CM_OK)
        return rc;
    uint64_t total = cm_object_nbytes(object);
    if (total < nbytes)
        rc = cm_fail(err, CM_EFORMAT, "%s: is shorter than its index", key);
    if (rc == CM_OK)
        rc = cm_buf_resize(&f->index, nbytes, err);
    if (rc == CM_OK)
        rc = cm_object_read(object, cm_shard_index_at_start(f->layout) ? 0 : total - nbytes,
                            f->index.data, nbytes, err);
    cm_object_close(object);
    if (rc == CM_OK)
        rc = cm_shard_index_decode(f->layout, f->index.data, nbytes, total, f->entry, err);
    if (rc != CM_OK) {
        char text[CM_MAX_RANK * 21];
        cm_error_prefix(err, "array %s: shard %s", f->node->path,
                        cm_coord_text(f->grid.rank, shard, text, sizeof(text)));
    }
    for (uint64_t i = 0; rc == CM_OK && i < cm_shard_nchunks(f->layout); i++) {
        uint64_t coord[CM_MAX_RANK];
        bool inside = true;
        cm_grid_coord(within, i, coord);
        for (unsigned j = 0; j < f->grid.rank; j++) {
            coord[j] += shard[j] * within->count[j];
            inside = inside && coord[j] < f->grid.count[j];
        }
        if (inside && f->entry[i].offset != CM_SHARD_MISSING)
            mark(f, coord, f->entry[i].nbytes);
    }
    return rc;
}

static int ask(finder *f, uint64_t number, cm_error *err)
{
    char name[CM_CHUNK_KEY_SIZE];
    uint64_t coord[CM_MAX_RANK], nbytes;
    cm_grid_coord(&f->outer, number, coord);
    cm_zarr_chunk_key(&f->node->meta, coord, name, sizeof(name));
    char *key = cm_asprintf(err, "%s%s%s", f->node->path, f->node->path[0] ? "/" : "", name);
    if (key == NULL)
        return CM_ENOMEM;
    int rc = cm_store_size(f->store, key, &nbytes, err);
    if (rc == CM_OK) {
        f->out->nobjects++;
        f->out->nbytes += nbytes;
        if (f->spec != NULL)
            rc = read_index(f, key, coord, err);
        else
            mark(f, coord, nbytes);
    }
    free(key);
    return rc == CM_ENOTFOUND ? CM_OK : rc;
}

static int prepare(finder *f, cm_error *err)
{
    const cm_zarr_meta *m = &f->node->meta;
    f->spec = sharding_of(m);
    int rc = cm_grid_init(&f->outer, m->rank, m->shape, m->chunk, err);
    if (rc == CM_OK)
        rc = cm_grid_init(&f->grid, m->rank, m->shape, f->spec ? f->spec->chunk : m->chunk, err);
    if (rc == CM_OK && f->spec != NULL)
        rc = cm_shard_layout_create(f->spec, m->rank, m->chunk, &f->layout, err);
    if (rc == CM_OK && f->layout != NULL) {
        f->entry = cm_calloc(cm_shard_nchunks(f->layout), sizeof(f->entry[0]), err);
        rc = f->entry == NULL ? CM_ENOMEM : CM_OK;
    }
    f->out->nchunks = f->grid.nchunks;
    if (rc == CM_OK && f->outer.nchunks <= MAX_OBJECTS) {
        f->out->bit = cm_calloc(f->grid.nchunks / 64 + 1, sizeof(f->out->bit[0]), err);
        rc = f->out->bit == NULL ? CM_ENOMEM : CM_OK;
    }
    return rc;
}

int cm_presence_find(cm_store *store, const cm_zarr_node *node, cm_presence *out, cm_error *err)
{
    finder f = {.store = store, .node = node, .out = out};
    *out = (cm_presence){0};
    int rc = prepare(&f, err);
    for (uint64_t i = 0; rc == CM_OK && out->bit != NULL && i < f.outer.nchunks; i++)
        rc = ask(&f, i, err);
    cm_shard_layout_free(f.layout);
    cm_buf_release(&f.index);
    free(f.entry);
    if (rc != CM_OK)
        cm_presence_release(out);
    return rc;
}

void cm_presence_release(cm_presence *p)
{
    free(p->bit);
    *p = (cm_presence){0};
}
