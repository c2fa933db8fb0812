/*
 * Superblock, object header and chunk B-tree of an HDF5 file in memory: parsed or refused, in
 * bounded time.
 */
#include <stdlib.h>

#include "format/nc/chunk_index.h"
#include "format/nc/h5_btree.h"
#include "format/nc/h5_object.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

typedef struct target {
    cm_grid grid;
    cm_chunk_index index;
    size_t nchunks;
} target;

static int add(void *context, const cm_h5_chunk *chunk, cm_error *err)
{
    target *t = context;
    t->nchunks++;
    return cm_chunk_index_add(&t->index, &t->grid, chunk->offset, chunk->address, chunk->nbytes,
                              chunk->mask, err);
}

static void walk(const cm_source *source, const cm_h5_super *super, uint64_t root, unsigned rank)
{
    cm_error err;
    target t = {0};
    uint64_t shape[CM_MAX_RANK], chunk[CM_MAX_RANK];
    for (unsigned j = 0; j < rank; j++) {
        shape[j] = j < 2 ? 100 : 1;
        chunk[j] = 1;
    }
    if (cm_grid_init(&t.grid, rank, shape, chunk, &err) != CM_OK)
        abort();
    if (cm_h5_btree_visit(source, super, root, rank, add, &t, &err) == CM_OK &&
        cm_chunk_index_finish(&t.index, &t.grid, &err) == CM_OK) {
        size_t found = 0;
        cm_chunk_place place;
        for (uint64_t i = 0; i < t.grid.nchunks; i++)
            found += cm_chunk_index_find(&t.index, i, &place);
        if (found != t.index.nentries)
            abort();
    }
    cm_chunk_index_release(&t.index);
}

/*
 * The first byte chooses where to begin, since a mutated file seldom leads from one part to
 * the next.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    if (nbytes < 4)
        return 0;
    cm_source source = cm_source_of_memory(data + 4, nbytes - 4);
    cm_h5_super super = {.offset_nbytes = 8, .length_nbytes = 8};
    cm_error err;
    if (data[0] & 1 && cm_h5_super_read(&source, &super, &err) != CM_OK)
        return 0;
    if (data[0] & 2) {
        walk(&source, &super, data[1], 1 + data[2] % CM_MAX_RANK);
        return 0;
    }
    cm_h5_layout_message layout;
    if (cm_h5_layout_read(&source, &super, (uint64_t)data[1] << 4, &layout, &err) != CM_OK)
        return 0;
    if (layout.index == CM_H5_INDEX_BTREE1 && layout.address != CM_H5_UNDEFINED)
        walk(&source, &super, layout.address, layout.rank);
    return 0;
}
