/*
 * The .zattrs of format 2 beside a sound .zarray: attributes are kept, the names of dimensions
 * are those of the array, and written in either format they say the same.
 */
#include "format/zarr/meta.h"
#include "format/zarr/open.h"
#include "fuzz.h"

#define ZARRAY                                                                                     \
    "{\"zarr_format\":2,\"shape\":[3,4],\"chunks\":[2,4],\"dtype\":\"<f4\",\"compressor\":null,"   \
    "\"fill_value\":0,\"order\":\"C\",\"filters\":null}"

static cm_json *zarray;

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    REQUIRE(cm_json_parse(ZARRAY, strlen(ZARRAY), &zarray, NULL) == CM_OK);
    return 0;
}

static void same_dimensions(const cm_zarr_meta *a, const cm_zarr_meta *b)
{
    for (unsigned i = 0; i < a->rank; i++) {
        REQUIRE(!a->dim_name[i] == !b->dim_name[i]);
        REQUIRE(!a->dim_name[i] || strcmp(a->dim_name[i], b->dim_name[i]) == 0);
    }
}

static void check_v2(const cm_zarr_meta *m)
{
    cm_json *j, *attrs;
    cm_zarr_meta again;
    REQUIRE(cm_zarr_meta_to_v2(m, &j, &attrs, NULL) == CM_OK);
    REQUIRE(cm_zarr_meta_from_v2(j, attrs, &again, NULL) == CM_OK);
    same_dimensions(m, &again);
    REQUIRE(cm_json_equal(m->attrs, again.attrs));
    cm_zarr_meta_release(&again);
    cm_json_free(j);
    cm_json_free(attrs);
}

static void check_v3(const cm_zarr_meta *m)
{
    cm_json *j;
    cm_zarr_meta three, again;
    REQUIRE(cm_zarr_meta_copy(m, &three, NULL) == CM_OK);
    if (cm_zarr_meta_set_format(&three, 3, NULL) == CM_OK) {
        REQUIRE(cm_zarr_meta_to_v3(&three, &j, NULL) == CM_OK);
        REQUIRE(cm_zarr_meta_from_v3(j, &again, NULL) == CM_OK);
        same_dimensions(m, &again);
        REQUIRE(cm_json_equal(m->attrs, again.attrs));
        cm_zarr_meta_release(&again);
        cm_json_free(j);
    }
    cm_zarr_meta_release(&three);
}

/* The same through a store. */
static void check_store(const uint8_t *data, size_t nbytes)
{
    cm_store *store;
    cm_zarr_tree tree;
    cm_array *a;
    cm_error err;
    REQUIRE(cm_store_open_memory(&store, NULL) == CM_OK);
    REQUIRE(cm_store_put(store, ".zarray", ZARRAY, strlen(ZARRAY), NULL) == CM_OK);
    REQUIRE(cm_store_put(store, ".zattrs", data, nbytes, NULL) == CM_OK);
    if (cm_zarr_open(store, &tree, &err) == CM_OK) {
        REQUIRE(tree.nnodes == 1 && tree.node[0].meta.rank == 2);
        if (cm_zarr_array_open(&tree, &tree.node[0], 0, &a, &err) == CM_OK)
            cm_array_free(a);
        cm_zarr_tree_release(&tree);
    }
    cm_store_free(store);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    cm_json *attrs;
    cm_zarr_meta m;
    if (cm_json_parse(data, nbytes, &attrs, NULL) == CM_OK) {
        int rc = cm_zarr_meta_from_v2(zarray, attrs, &m, NULL);
        if (rc == CM_OK) {
            check_v2(&m);
            check_v3(&m);
        }
        if (rc == CM_OK || rc == CM_EUNSUPPORTED)
            cm_zarr_meta_release(&m);
        cm_json_free(attrs);
    }
    check_store(data, nbytes);
    return 0;
}
