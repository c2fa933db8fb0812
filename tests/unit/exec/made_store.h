/*
 * Arrays for the tests of reading: int32 elements that are their own index, in a
 * Zarr store that the test makes, with every N-th chunk left out.
 */
#ifndef TESTS_UNIT_EXEC_MADE_STORE_H
#define TESTS_UNIT_EXEC_MADE_STORE_H

#include <stdlib.h>
#include <string.h>

#include "format/zarr/open.h"
#include "format/zarr/writer.h"

#define UNUSED __attribute__((unused))

enum {
    MADE_FILL = -7
};

typedef struct made {
    unsigned rank;
    uint64_t shape[CM_MAX_RANK], chunk[CM_MAX_RANK];
    uint64_t shard[CM_MAX_RANK]; /* elements; 0: no shards */
    cm_codec_id codec;           /* after `bytes`; CM_CODEC_NONE: raw */
    unsigned absent_of;          /* every absent_of-th chunk is missing; 0: none */
} made;

UNUSED static cm_grid made_grid(const made *m)
{
    cm_grid g;
    assert_int_equal(cm_grid_init(&g, m->rank, m->shape, m->chunk, NULL), CM_OK);
    return g;
}

UNUSED static bool made_is_absent(const made *m, uint64_t number)
{
    return m->absent_of > 0 && number % m->absent_of == 0;
}

/* The element at AT. */
UNUSED static int32_t made_value(const made *m, const uint64_t *at)
{
    cm_grid g = made_grid(m);
    uint64_t index = 0, coord[CM_MAX_RANK];
    for (unsigned j = 0; j < m->rank; j++) {
        index = index * m->shape[j] + at[j];
        coord[j] = at[j] / m->chunk[j];
    }
    return made_is_absent(m, cm_grid_number(&g, coord)) ? MADE_FILL : (int32_t)index;
}

/* Element I, in C order, of BOX. */
UNUSED static int32_t made_value_in(const made *m, const cm_box *box, uint64_t i)
{
    uint64_t at[CM_MAX_RANK];
    for (unsigned j = box->rank; j-- > 0;) {
        at[j] = box->start[j] + i % box->shape[j];
        i /= box->shape[j];
    }
    return made_value(m, at);
}

static void made_put_chunks(const made *m, cm_zarr_writer *w)
{
    const cm_chain *chain = cm_zarr_writer_chain(w);
    const cm_grid *g = cm_zarr_writer_grid(w);
    cm_codec_ctx *ctx = cm_codec_ctx_create(NULL);
    int32_t *data = malloc(g->chunk_nelem * 4);
    uint8_t *encoded = malloc(cm_chain_encoded_bound(chain));
    for (uint64_t n = 0; n < g->nchunks; n++) {
        if (made_is_absent(m, n)) {
            assert_int_equal(cm_zarr_writer_skip(w, n, NULL), CM_OK);
            continue;
        }
        uint64_t coord[CM_MAX_RANK], at[CM_MAX_RANK];
        cm_grid_coord(g, n, coord);
        for (uint64_t i = 0; i < g->chunk_nelem; i++) {
            uint64_t rest = i;
            bool inside = true;
            for (unsigned j = m->rank; j-- > 0;) {
                at[j] = coord[j] * m->chunk[j] + rest % m->chunk[j];
                rest /= m->chunk[j];
                inside = inside && at[j] < m->shape[j];
            }
            data[i] = inside ? made_value(m, at) : -1;
        }
        size_t nbytes;
        assert_int_equal(cm_chain_encode(chain, ctx, data, encoded, &nbytes, NULL), CM_OK);
        assert_int_equal(cm_zarr_writer_put(w, n, encoded, nbytes, NULL), CM_OK);
    }
    free(encoded);
    free(data);
    cm_codec_ctx_free(ctx);
}

static void made_codecs(const made *m, cm_zarr_meta *meta)
{
    cm_codec_spec inner[2] = {{.id = CM_CODEC_BYTES},
                              {.id = m->codec, .level = 1, .blosc = {"zstd", CM_BLOSC_SHUFFLE, 0}}};
    cm_codec_spec index[2] = {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_CRC32C}};
    size_t n = m->codec == CM_CODEC_NONE ? 1 : 2;
    if (m->shard[0] == 0) {
        assert_int_equal(cm_codec_specs_copy(inner, n, &meta->codecs, NULL), CM_OK);
        meta->ncodecs = n;
        return;
    }
    cm_shard_spec shard = {
        .rank = m->rank, .codecs = inner, .ncodecs = n, .index_codecs = index, .nindex_codecs = 2};
    memcpy(shard.chunk, m->chunk, sizeof(shard.chunk));
    memcpy(meta->chunk, m->shard, sizeof(meta->chunk));
    cm_codec_spec sharding = {.id = CM_CODEC_SHARDING, .shard = &shard};
    assert_int_equal(cm_codec_specs_copy(&sharding, 1, &meta->codecs, NULL), CM_OK);
    meta->ncodecs = 1;
}

/* Writes the arrays M[i] as "a", "b", ... into STORE. */
UNUSED static void made_write(cm_store *store, const made *m, size_t n)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    int32_t fill = MADE_FILL;
    cm_zarr_meta meta[4] = {0};
    cm_zarr_entry entry[4] = {0};
    for (size_t i = 0; i < n; i++) {
        cm_zarr_meta *t = &meta[i];
        *t = (cm_zarr_meta){.zarr_format = 3,
                            .attrs = cm_json_object(),
                            .dtype = cm_dtype_make(CM_KIND_INT, 4),
                            .rank = m[i].rank,
                            .separator = '/',
                            .has_fill = true,
                            .fill = (uint8_t *)&fill};
        memcpy(t->shape, m[i].shape, sizeof(t->shape));
        memcpy(t->chunk, m[i].chunk, sizeof(t->chunk));
        made_codecs(&m[i], t);
        cm_zarr_writer *w = NULL;
        assert_int_equal(cm_zarr_writer_create(store, names[i], t, &w, NULL), CM_OK);
        made_put_chunks(&m[i], w);
        assert_int_equal(cm_zarr_writer_finish(w, NULL), CM_OK);
        cm_zarr_writer_free(w);
        entry[i] = (cm_zarr_entry){names[i], t};
    }
    assert_int_equal(cm_zarr_hierarchy_write(store, 3, entry, n, true, NULL), CM_OK);
    for (size_t i = 0; i < n; i++) {
        cm_codec_specs_free(meta[i].codecs, meta[i].ncodecs);
        cm_json_free(meta[i].attrs);
    }
}

UNUSED static cm_array *made_open(cm_store *store, const char *name)
{
    cm_zarr_tree tree;
    cm_array *a = NULL;
    cm_error err = {0};
    if (cm_zarr_open(store, &tree, &err) != CM_OK ||
        cm_zarr_array_open(&tree, cm_zarr_find(&tree, name), 1 << 16, &a, &err) != CM_OK)
        fail_msg("%s", err.text);
    cm_zarr_tree_release(&tree);
    return a;
}

/* A box that lies somewhere in M's array; lengths 1 or more. */
UNUSED static cm_box made_random_box(const made *m, uint64_t *state)
{
    cm_box box = {.rank = m->rank};
    for (unsigned j = 0; j < m->rank; j++) {
        *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        box.start[j] = (*state >> 33) % m->shape[j];
        *state = *state * UINT64_C(6364136223846793005) + 1442695040888963407u;
        box.shape[j] = 1 + (*state >> 33) % (m->shape[j] - box.start[j]);
    }
    return box;
}

#endif
