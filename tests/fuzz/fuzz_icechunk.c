/* Metadata of Icechunk as trees: no read out of bounds; a tree is written as it was read. */
#include "format/icechunk/repo_write.h"
#include "format/icechunk/snapshot_write.h"
#include "fuzz.h"

/* Written, read and written again: a tree has one form. */
static void check_tree(const cm_fb_tree *tree, const cm_fb_schema *schema)
{
    cm_flat_writer first = {0}, second = {0};
    cm_fb_tree again;
    REQUIRE(cm_fb_write(tree->root, CM_ICE_IDENTIFIER, &first, NULL) == CM_OK);
    REQUIRE(cm_fb_read(first.buf.data, first.buf.nbytes, schema, "again", &again, NULL) == CM_OK);
    REQUIRE(cm_fb_write(again.root, CM_ICE_IDENTIFIER, &second, NULL) == CM_OK);
    REQUIRE(cm_buf_equal(&first.buf, &second.buf));
    cm_fb_release(&again);
    cm_flat_release(&first);
    cm_flat_release(&second);
}

static void commit(cm_fb_tree *repo)
{
    cm_error err = {0};
    cm_ice_tip tip = {.branch = "main", .message = "m", .backup = "b", .now_us = 5};
    const uint8_t *parent = cm_ice_repo_tip(repo->root, "main");
    if (cm_ice_repo_check(repo->root, &err) != CM_OK || parent == NULL)
        return;
    memcpy(tip.parent, parent, sizeof(tip.parent));
    memset(tip.id, 0x55, sizeof(tip.id));
    REQUIRE(cm_ice_repo_commit(repo, &tip, &err) == CM_OK);
    REQUIRE(memcmp(cm_ice_repo_tip(repo->root, "main"), tip.id, sizeof(tip.id)) == 0);
}

static void check_nodes(const cm_fb_tree *snapshot)
{
    cm_error err = {0};
    cm_ice_new_node node = {.path = "/a/b", .document = "{}", .nbytes = 2, .is_array = true};
    const cm_ice_change change = {.node = &node, .n = 1, .replaces = true};
    (void)cm_ice_snapshot_check(snapshot->root, NULL, &change, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    static const cm_fb_schema *const schemas[] = {&cm_ice_repo, &cm_ice_snapshot};
    cm_fb_tree tree;
    cm_error err = {0};
    if (nbytes == 0)
        return 0;
    const unsigned which = data[0] % 2;
    uint8_t *copy = fuzz_copy(data + 1, nbytes - 1);
    if (cm_fb_read(copy, nbytes - 1, schemas[which], "input", &tree, &err) == CM_OK) {
        check_tree(&tree, schemas[which]);
        if (which == 0)
            commit(&tree);
        else
            check_nodes(&tree);
        cm_fb_release(&tree);
    }
    free(copy);
    return 0;
}
