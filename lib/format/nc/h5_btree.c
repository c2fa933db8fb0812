#include "format/nc/h5_btree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_RANK = 32,
    MAX_LEVEL = 15, /* with two children a node, more chunks than any file has bytes would need 60;
                       real nodes have dozens */
    NODE_TYPE_CHUNKS = 1,
    USUAL_ENTRIES = 64 /* twice HDF5's default K of 32 */
};

typedef struct walker {
    const cm_source *source;
    const cm_h5_super *super;
    unsigned rank;
    cm_h5_visit *visit;
    void *context;
    cm_error *err;
    size_t prefix_nbytes;
    size_t key_nbytes;
    /*
     * Nodes do not overlap, so together they are no longer than the file.  Without this bound a
     * root that names one leaf 65,535 times has four billion chunks.
     */
    uint64_t nbytes_left;
    cm_buf node; /* the current node */
} walker;

static int corrupt(const walker *w, uint64_t at, const char *what)
{
    return cm_fail(w->err, CM_EFORMAT, "the chunk index is corrupt: the node at %" PRIu64 " %s", at,
                   what);
}

/* Reads the node at AT whole, usually with one call, and checks its prefix. */
static int read_node(walker *w, uint64_t at, unsigned level, unsigned *nentries)
{
    size_t entry = w->key_nbytes + w->super->offset_nbytes;
    size_t usual = w->prefix_nbytes + USUAL_ENTRIES * entry + w->key_nbytes;
    if (at > w->source->nbytes || w->source->nbytes - at < w->prefix_nbytes)
        return corrupt(w, at, "lies outside the file");
    uint64_t left = w->source->nbytes - at;
    size_t n = left < usual ? (size_t)left : usual;
    int rc = cm_buf_resize(&w->node, n, w->err);
    if (rc == CM_OK)
        rc = cm_source_read(w->source, at, w->node.data, n, w->err);
    if (rc != CM_OK)
        return rc;
    const uint8_t *p = w->node.data;
    if (memcmp(p, "TREE", 4) != 0)
        return corrupt(w, at, "has no signature");
    if (p[4] != NODE_TYPE_CHUNKS)
        return corrupt(w, at, "is not one of chunks");
    if (p[5] != level)
        return corrupt(w, at, "is of the wrong level");
    *nentries = cm_load_le16(p + 6);
    /* The last key is not read: it only bounds the last child. */
    size_t need = w->prefix_nbytes + *nentries * entry;
    if (need > left)
        return corrupt(w, at, "reaches past the end of the file");
    if (need > w->nbytes_left)
        return corrupt(w, at, "belongs to a tree larger than the file");
    w->nbytes_left -= need;
    if (need <= n)
        return CM_OK;
    rc = cm_buf_resize(&w->node, need, w->err);
    return rc != CM_OK ? rc : cm_source_read(w->source, at + n, w->node.data + n, need - n, w->err);
}

static bool absolute(const walker *w, uint64_t address, uint64_t *out)
{
    if (address == CM_H5_UNDEFINED || address > INT64_MAX - w->super->base)
        return false;
    *out = address + w->super->base;
    return true;
}

static int visit_leaf(walker *w, uint64_t at, unsigned nentries)
{
    const uint8_t *p = w->node.data + w->prefix_nbytes;
    uint64_t offset[MAX_RANK];
    for (unsigned i = 0; i < nentries; i++) {
        cm_h5_chunk chunk = {
            .offset = offset, .nbytes = cm_load_le32(p), .mask = cm_load_le32(p + 4)};
        for (unsigned j = 0; j < w->rank; j++)
            offset[j] = cm_load_le64(p + 8 + 8 * (size_t)j);
        p += w->key_nbytes;
        if (!absolute(w, cm_h5_load(p, w->super->offset_nbytes), &chunk.address))
            return corrupt(w, at, "has a chunk without an address");
        p += w->super->offset_nbytes;
        int rc = w->visit(w->context, &chunk, w->err);
        if (rc != CM_OK)
            return rc;
    }
    return CM_OK;
}

static int walk(walker *w, uint64_t at, unsigned level)
{
    unsigned nentries = 0;
    int rc = read_node(w, at, level, &nentries);
    if (rc != CM_OK || nentries == 0)
        return rc;
    if (level == 0)
        return visit_leaf(w, at, nentries);

    /* Children reuse the node's buffer, so copy their addresses first. */
    uint64_t *child = cm_calloc(nentries, sizeof *child, w->err);
    if (child == NULL)
        return CM_ENOMEM;
    const uint8_t *p = w->node.data + w->prefix_nbytes;
    for (unsigned i = 0; i < nentries && rc == CM_OK; i++) {
        p += w->key_nbytes;
        if (!absolute(w, cm_h5_load(p, w->super->offset_nbytes), &child[i]))
            rc = corrupt(w, at, "has a child without an address");
        p += w->super->offset_nbytes;
    }
    for (unsigned i = 0; i < nentries && rc == CM_OK; i++)
        rc = walk(w, child[i], level - 1);
    free(child);
    return rc;
}

int cm_h5_btree_visit(const cm_source *source, const cm_h5_super *super, uint64_t root,
                      unsigned rank, cm_h5_visit *visit, void *context, cm_error *err)
{
    if (rank == 0 || rank > MAX_RANK)
        return cm_fail(err, CM_EFORMAT, "the chunk index is corrupt: it has %u dimensions", rank);
    walker w = {.source = source,
                .super = super,
                .rank = rank,
                .visit = visit,
                .context = context,
                .err = err,
                .prefix_nbytes = 8 + 2 * super->offset_nbytes,
                .key_nbytes = 8 + 8 * ((size_t)rank + 1)};
    w.nbytes_left = source->nbytes;
    uint64_t at = 0;
    if (!absolute(&w, root, &at))
        return cm_fail(err, CM_EFORMAT, "the chunk index is corrupt: its root has no address");
    uint8_t level = 0;
    int rc = at > source->nbytes - 6 || source->nbytes < 6
                 ? cm_fail(err, CM_EFORMAT, "the chunk index lies outside the file")
                 : cm_source_read(source, at + 5, &level, 1, err);
    if (rc == CM_OK && level > MAX_LEVEL)
        rc = corrupt(&w, at, "is of too high a level");
    if (rc == CM_OK)
        rc = walk(&w, at, level);
    cm_buf_release(&w.node);
    return rc;
}
