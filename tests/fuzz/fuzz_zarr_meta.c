/*
 * Zarr metadata of both formats: any JSON is read or refused, and what was read
 * can be written, read again, and then says the same.
 */
#include <stdlib.h>

#include "format/zarr/meta.h"
#include "format/zarr/open.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static void check_meta(const cm_zarr_meta *m)
{
    if (m->rank > CM_MAX_RANK || !m->attrs || !m->raw)
        abort();
    if (m->verbatim || m->is_group)
        return;
    for (unsigned i = 0; i < m->rank; i++)
        if (m->chunk[i] == 0)
            abort();
    cm_chain *chain;
    if (cm_chain_create(m->codecs, m->ncodecs, &m->dtype, m->rank, m->chunk, &chain, NULL) == CM_OK)
        cm_chain_free(chain);
}

static void write_again(cm_zarr_meta *m)
{
    cm_json *j = NULL, *attrs = NULL, *once_more = NULL;
    cm_zarr_meta copy;
    int rc = m->zarr_format == 3 ? cm_zarr_meta_to_v3(m, &j, NULL)
                                 : cm_zarr_meta_to_v2(m, &j, &attrs, NULL);
    if (rc == CM_OK && m->zarr_format == 3 && !m->verbatim) {
        if (cm_zarr_meta_from_v3(j, &copy, NULL) != CM_OK ||
            cm_zarr_meta_to_v3(&copy, &once_more, NULL) != CM_OK || !cm_json_equal(j, once_more))
            abort();
        cm_zarr_meta_release(&copy);
    }
    cm_json_free(j);
    cm_json_free(attrs);
    cm_json_free(once_more);
    if (cm_zarr_meta_copy(m, &copy, NULL) != CM_OK)
        abort();
    cm_zarr_meta_set_format(&copy, 5 - m->zarr_format, NULL);
    cm_zarr_meta_release(&copy);
}

/* The same bytes as a store's root: what consolidated metadata make of it. */
static void open_store(const uint8_t *data, size_t nbytes, const char *key)
{
    cm_store *store;
    cm_zarr_tree tree;
    cm_zarr_conflicts conflicts;
    if (cm_store_open_memory(&store, NULL) != CM_OK)
        abort();
    if (cm_store_put(store, key, data, nbytes, NULL) != CM_OK)
        abort();
    if (cm_zarr_open_whole(store, &tree, &conflicts, NULL) == CM_OK) {
        for (size_t i = 0; i < tree.nnodes; i++) {
            cm_array *a;
            if (cm_zarr_find(&tree, tree.node[i].path) == NULL)
                abort();
            if (cm_zarr_array_open(&tree, &tree.node[i], 1 << 16, &a, NULL) == CM_OK)
                cm_array_free(a);
        }
        cm_zarr_conflicts_release(&conflicts);
        cm_zarr_tree_release(&tree);
    }
    cm_store_free(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    cm_json *j;
    if (cm_json_parse(data, nbytes, &j, NULL) != CM_OK)
        return 0;
    for (int format = 2; format <= 3; format++) {
        cm_zarr_meta m;
        int rc = format == 3 ? cm_zarr_meta_from_v3(j, &m, NULL)
                             : cm_zarr_meta_from_v2(j, cm_json_member(j, "attributes"), &m, NULL);
        if (rc == CM_OK || rc == CM_EUNSUPPORTED) {
            check_meta(&m);
            write_again(&m);
            cm_zarr_meta_release(&m);
        }
    }
    cm_json_free(j);
    open_store(data, nbytes, "zarr.json");
    open_store(data, nbytes, ".zmetadata");
    return 0;
}
