#include "store.h"

#include "fuzz.h"

enum {
    MAX_CHUNKS = 12,
    MAX_NELEM = 4096,
    INDEX_CACHE = 1 << 16
};

/* Whether one chunk at a time or many at once: the same bytes, or an error both times. */
static void compare_fetches(cm_array *a, uint64_t n)
{
    cm_fetch_item item[MAX_CHUNKS];
    cm_fetch_many many = {.item = item, .n = n};
    cm_buf buf = {0};
    cm_error err;
    bool all = true;
    for (uint64_t i = 0; i < n; i++)
        item[i] = (cm_fetch_item){.number = n - 1 - i};
    const int rc = cm_array_fetch_many(a, &many, &err);
    for (uint64_t i = 0; i < n; i++) {
        cm_fetch f;
        if (a->ops->fetch(a, item[i].number, &buf, &f, &err) != CM_OK) {
            all = false;
            continue;
        }
        REQUIRE(f.present || !f.skip);
        REQUIRE(!f.present || a->max_stored_nbytes == 0 || buf.nbytes <= a->max_stored_nbytes);
        if (rc == CM_OK)
            REQUIRE(
                item[i].present == f.present && (!f.present || item[i].nbytes == buf.nbytes) &&
                (!f.present || buf.nbytes == 0 || memcmp(item[i].data, buf.data, buf.nbytes) == 0));
    }
    REQUIRE((rc == CM_OK) == all);
    cm_fetch_many_release(&many);
    cm_buf_release(&buf);
}

/* Read twice, an array is the same. */
static void read_whole(cm_array *a, cm_codec_ctx *ctx)
{
    cm_box box = {.rank = a->rank};
    uint64_t nelem = 1;
    cm_error err;
    for (unsigned j = 0; j < a->rank; j++) {
        box.shape[j] = a->shape[j] < 8 ? a->shape[j] : 8;
        nelem *= box.shape[j];
        if (nelem == 0 || nelem > MAX_NELEM)
            return;
    }
    if (a->dtype.kind == CM_KIND_STRING || a->dtype.kind == CM_KIND_VLEN_BYTES) {
        cm_strings out;
        cm_strings_init(&out, 1 << 20);
        (void)cm_array_read_strings(a, &box, &out, &err);
        cm_strings_release(&out);
        return;
    }
    if (a->dtype.nbytes > 1024)
        return;
    const size_t nbytes = nelem * a->dtype.nbytes;
    uint8_t *once = malloc(nbytes), *twice = malloc(nbytes);
    REQUIRE(once != NULL && twice != NULL);
    if (cm_array_read(a, ctx, &box, once, &err) == CM_OK) {
        REQUIRE(cm_array_read(a, ctx, &box, twice, &err) == CM_OK);
        REQUIRE(memcmp(once, twice, nbytes) == 0);
    }
    free(once);
    free(twice);
}

/* A chunk that decodes to more is refused by its reader, too, but only when there is no memory. */
static bool is_small(const cm_array *a)
{
    return !a->chunked || (cm_chain_decoded_nbytes(a->chain) <= 1 << 20 &&
                           cm_chain_decode_memory(a->chain) <= 16 << 20);
}

void fuzz_read_store(cm_store *store)
{
    cm_zarr_tree tree;
    cm_zarr_conflicts conflicts;
    cm_error err;
    if (cm_zarr_open_whole(store, &tree, &conflicts, &err) != CM_OK)
        return;
    cm_codec_ctx *ctx = cm_codec_ctx_create(NULL);
    REQUIRE(ctx != NULL);
    for (size_t i = 0; i < tree.nnodes; i++) {
        cm_array *a;
        REQUIRE(cm_zarr_find(&tree, tree.node[i].path) == &tree.node[i]);
        if (cm_zarr_array_open(&tree, &tree.node[i], INDEX_CACHE, &a, &err) != CM_OK)
            continue;
        if (a->chunked)
            compare_fetches(a, a->grid.nchunks < MAX_CHUNKS ? a->grid.nchunks : MAX_CHUNKS);
        if (is_small(a))
            read_whole(a, ctx);
        cm_array_free(a);
    }
    cm_codec_ctx_free(ctx);
    cm_zarr_conflicts_release(&conflicts);
    cm_zarr_tree_release(&tree);
}
