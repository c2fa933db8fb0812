/* Manifests of an array that changes: which stay, and what those that are written anew say. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit.h"
#include "base/paged.h"
#include "format/icechunk/key.h"
#include "format/icechunk/manifest_ranges.h"
#include "format/icechunk/manifest_write.h"

enum {
    MOST = 64
};

/* ---- ranges ---- */

static void test_ranges(void **state)
{
    static const struct {
        unsigned rank;
        uint64_t shape[3];
        size_t n;            /* ranges */
        uint32_t first, end; /* of the second, along D */
        unsigned d;
    } c[] = {
        {1, {5}, 1, 0, 0, 0},
        {1, {65536}, 1, 0, 0, 0},
        {1, {65537}, 2, 65536, 65537, 0},
        {2, {3, 40000}, 3, 1, 2, 0},
        {2, {100, 1000}, 2, 65, 100, 0},
        {3, {2, 3, 70000}, 12, 65536, 70000, 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        cm_ice_ranges r = {0};
        uint64_t at = 0;
        assert_int_equal(cm_ice_ranges_make(&r, c[i].rank, c[i].shape, NULL), CM_OK);
        assert_int_equal(r.n, c[i].n);
        for (size_t k = 0; k < r.n; at += r.item[k++].n)
            assert_int_equal(r.item[k].first, at);
        if (r.n > 1) {
            assert_int_equal(r.item[1].extent.first[c[i].d], c[i].first);
            assert_int_equal(r.item[1].extent.end[c[i].d], c[i].end);
        }
        cm_ice_ranges_release(&r);
    }
}

/* ---- an array, and the commit that changes it ---- */

typedef struct chunks {
    uint64_t changed[MOST]; /* numbers, up to the first that is not below the one before */
    size_t nchanged;
    bool fresh;    /* nothing is kept */
    uint64_t most; /* chunks from here on are nowhere, unless they are changed */
} chunks;

static bool is_changed(const chunks *c, uint64_t number)
{
    for (size_t i = 0; i < c->nchanged; i++)
        if (c->changed[i] == number)
            return true;
    return false;
}

/* By its number: every fourth is inline, every seventh of the others lies outside. */
static int find(void *context, uint64_t first, size_t n, cm_ice_place *out, cm_error *err)
{
    static const uint8_t byte[] = {1, 2, 3};
    const chunks *c = context;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        const uint64_t k = first + i;
        out[i] = (cm_ice_place){.where = c->fresh ? CM_ICE_NOWHERE : CM_ICE_KEPT};
        if (is_changed(c, k)) {
            out[i] = (cm_ice_place){.where = CM_ICE_IN_FILE, .offset = k, .nbytes = 9};
            if (k % 2 == 1)
                out[i].where = CM_ICE_NOWHERE; /* it is removed */
            else if (k % 5 == 0)
                out[i].where = CM_ICE_OUTSIDE; /* in a file that the snapshot before may not know */
            out[i].location = k % 4 == 0 ? 2 : 0;
        } else if (c->fresh && k < c->most && k % 4 == 0) {
            out[i] = (cm_ice_place){.where = CM_ICE_INLINE, .nbytes = 3, .bytes = byte};
        } else if (c->fresh && k < c->most) {
            out[i] = (cm_ice_place){.where = k % 7 == 0 ? CM_ICE_OUTSIDE : CM_ICE_IN_FILE,
                                    .tagged = k % 2 == 1,
                                    .location = k % 2 == 1,
                                    .offset = k,
                                    .nbytes = 5};
        }
    }
    return CM_OK;
}

static int locate(void *context, uint32_t number, cm_ice_location *out, cm_error *err)
{
    (void)context, (void)err;
    *out = number == 2   ? (cm_ice_location){.url = "s3://b/new", .modified_s = 88}
           : number == 1 ? (cm_ice_location){.url = "s3://b/tagged", .etag = "abc"}
                         : (cm_ice_location){.url = "s3://b/timed", .modified_s = 77};
    return CM_OK;
}

static void open_records(cm_ice_records *r, int fd[3])
{
    for (int i = 0; i < 3; i++)
        assert_true((fd[i] = cm_unnamed_file("/tmp")) >= 0);
    assert_int_equal(cm_ice_records_open(r, fd[0], fd[1], fd[2], NULL), CM_OK);
}

/* The node of an array with the manifests M. */
static cm_fb_table *make_node(cm_fb_tree *tree, const uint8_t *id, unsigned rank,
                              const cm_ice_manifests *m)
{
    cm_fb_table *node = cm_fb_table_new(tree, &cm_ice_node, NULL);
    cm_fb_table *data = cm_fb_table_new(tree, &cm_ice_array, NULL);
    cm_fb_table **ref = cm_fb_alloc(tree, m->n * sizeof(ref[0]), NULL);
    for (size_t i = 0; i < m->n; i++) {
        uint8_t range[8 * CM_MAX_RANK];
        for (unsigned j = 0; j < rank; j++) {
            cm_store_le32(range + 8 * (size_t)j, m->item[i].extent.first[j]);
            cm_store_le32(range + 8 * (size_t)j + 4, m->item[i].extent.end[j]);
        }
        ref[i] = cm_fb_table_new(tree, &cm_ice_manifest_ref, NULL);
        cm_fb_set(tree, ref[i], CM_ICE_MANIFEST_REF_ID, m->item[i].id, 1, NULL);
        cm_fb_set(tree, ref[i], CM_ICE_MANIFEST_REF_EXTENTS, range, rank, NULL);
    }
    cm_fb_set_tables(tree, data, CM_ICE_ARRAY_MANIFESTS, ref, m->n, NULL);
    cm_fb_set(tree, node, CM_ICE_NODE_NODE_ID, id, 1, NULL);
    cm_fb_set_tables(tree, node, CM_ICE_NODE_DATA, &data, 1, NULL);
    return node;
}

/* Chunk NUMBER of the array of NODE is that of AFTER, or, where that keeps it, of BEFORE. */
static void check_chunk(cm_ice_kept *k, const cm_fb_table *node, unsigned rank, chunks *before,
                        chunks *after, const uint64_t *was, const uint64_t *shape, uint64_t number)
{
    cm_ice_extent extent;
    cm_ice_place got = {.where = CM_ICE_KEPT}, want;
    uint64_t left = number, then = 0, index[CM_MAX_RANK];
    bool there = true;
    for (unsigned j = rank; j-- > 0; left /= shape[j])
        index[j] = left % shape[j];
    for (unsigned j = 0; j < rank; j++) {
        extent.first[j] = (uint32_t)index[j];
        extent.end[j] = (uint32_t)index[j] + 1;
        there = there && index[j] < was[j];
        then = then * was[j] + index[j];
    }
    assert_int_equal(find(after, number, 1, &want, NULL), CM_OK);
    if (want.where == CM_ICE_KEPT && there)
        assert_int_equal(find(before, then, 1, &want, NULL), CM_OK);
    else if (want.where == CM_ICE_KEPT)
        want.where = CM_ICE_NOWHERE;
    cm_ice_kept_forget(k);
    assert_int_equal(cm_ice_kept_find(k, node, rank, &extent, &got, NULL), CM_OK);
    assert_int_equal(got.where, want.where);
    if (want.where == CM_ICE_INLINE)
        assert_memory_equal(got.bytes, want.bytes, 3);
    if (want.where == CM_ICE_IN_FILE || want.where == CM_ICE_OUTSIDE)
        assert_int_equal(got.offset, want.offset);
    if (want.where == CM_ICE_OUTSIDE) {
        cm_ice_location l;
        const cm_ice_location *now = cm_ice_kept_locate(k, got.location);
        locate(NULL, want.location, &l, NULL);
        assert_string_equal(now->url, l.url);
        assert_int_equal(now->modified_s, l.modified_s);
        assert_string_equal(now->etag != NULL ? now->etag : "", l.etag != NULL ? l.etag : "");
    }
}

typedef struct kase {
    unsigned rank;
    uint64_t was[2], shape[2];
    uint64_t changed[4];
    size_t nchanged, nmanifests, nkept; /* after the change */
    bool one;                           /* the first commit was another program's: one manifest */
} kase;

static void check_case(const kase *c)
{
    static const uint8_t id[CM_ICE_NODE_ID] = {1, 2, 3, 4, 5, 6, 7, 8};
    cm_store *root = NULL;
    cm_ice_records records;
    cm_ice_manifests first = {0}, second = {0};
    cm_fb_tree tree = {0};
    chunks before = {.fresh = true, .most = UINT64_MAX}, after = {.nchanged = c->nchanged};
    cm_ice_places places = {.rank = c->rank, .find = find, .locate = locate, .context = &before};
    cm_ice_manifest_job job = {.places = &places, .out = &first};
    uint64_t nchunks = 1;
    size_t nkept = 0;
    int fd[3];
    memcpy(after.changed, c->changed, sizeof(c->changed));
    memcpy(job.node, id, sizeof(id));
    open_records(&records, fd);
    assert_int_equal(cm_store_open_memory(&root, NULL), CM_OK);
    memcpy(places.shape, c->was, sizeof(c->was));
    assert_int_equal(cm_ice_manifests_write(root, &records, &job, 1, NULL), CM_OK);
    if (c->one) { /* all extents in one: what lies elsewhere is nowhere */
        memcpy(first.item[0].extent.end, (uint32_t[]){(uint32_t)c->was[0], (uint32_t)c->was[1]}, 8);
        first.n = 1;
        before.most = first.item[0].nrefs;
    }
    cm_fb_table *node = make_node(&tree, id, c->rank, &first);
    memcpy(places.shape, c->shape, sizeof(c->shape));
    places.context = &after;
    job.was = node;
    job.out = &second;
    assert_int_equal(cm_ice_manifests_write(root, &records, &job, 1, NULL), CM_OK);
    for (size_t i = 0; i < second.n; i++)
        nkept += second.item[i].listed;
    assert_int_equal(second.n, c->nmanifests);
    assert_int_equal(nkept, c->nkept);
    assert_int_equal(second.nrefs, c->nchanged);
    for (unsigned j = 0; j < c->rank; j++)
        nchunks *= c->shape[j];
    cm_ice_kept kept = {.root = root};
    node = make_node(&tree, id, c->rank, &second);
    for (uint64_t k = 0; k < nchunks; k += nchunks / 9 + 1)
        check_chunk(&kept, node, c->rank, &before, &after, c->was, c->shape, k);
    for (size_t i = 0; i < c->nchanged; i++)
        check_chunk(&kept, node, c->rank, &before, &after, c->was, c->shape, c->changed[i]);
    cm_ice_kept_release(&kept);
    cm_fb_release(&tree);
    cm_ice_manifests_release(&first);
    cm_ice_manifests_release(&second);
    cm_store_free(root);
    for (int i = 0; i < 3; i++)
        close(fd[i]);
}

/* Where an array's chunks lie, up to the first that is not the repository's. */
static void test_holds(void **state)
{
    static const uint8_t id[CM_ICE_NODE_ID] = {1};
    static const struct {
        uint64_t nchunks;
        cm_ice_holds holds;
    } c[] = {{0, CM_ICE_HOLDS_NOTHING}, {7, CM_ICE_HOLDS_CHUNKS}, {8, CM_ICE_HOLDS_REFERENCES}};
    (void)state;
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        cm_store *root = NULL;
        cm_ice_records records;
        cm_ice_manifests made = {0};
        cm_fb_tree tree = {0};
        cm_ice_holds holds;
        chunks all = {.fresh = true, .most = c[i].nchunks};
        cm_ice_places places = {.rank = 1, .shape = {9}, .find = find, .locate = locate};
        cm_ice_manifest_job job = {.places = &places, .out = &made};
        int fd[3];
        places.context = &all;
        memcpy(job.node, id, sizeof(id));
        open_records(&records, fd);
        assert_int_equal(cm_store_open_memory(&root, NULL), CM_OK);
        assert_int_equal(cm_ice_manifests_write(root, &records, &job, 1, NULL), CM_OK);
        cm_fb_table *node = make_node(&tree, id, 1, &made);
        assert_int_equal(cm_ice_node_holds(root, node, &holds, NULL), CM_OK);
        assert_int_equal(holds, c[i].holds);
        assert_int_equal(made.noutside, c[i].holds == CM_ICE_HOLDS_REFERENCES);
        cm_fb_release(&tree);
        cm_ice_manifests_release(&made);
        cm_store_free(root);
        for (int k = 0; k < 3; k++)
            close(fd[k]);
    }
}

static void test_changes(void **state)
{
    static const kase c[] = {
        /* Small arrays have one manifest, which stays where nothing changes. */
        {.rank = 1, .was = {9}, .shape = {9}, .nmanifests = 1, .nkept = 1},
        {.rank = 1, .was = {9}, .shape = {12}, .changed = {8, 10}, .nchanged = 2, .nmanifests = 1},
        {.rank = 1,
         .was = {20},
         .shape = {41},
         .changed = {20, 30, 40},
         .nchanged = 3,
         .nmanifests = 1},
        {.rank = 2,
         .was = {3, 4},
         .shape = {3, 6},
         .changed = {3, 4, 16},
         .nchanged = 3,
         .nmanifests = 1},
        /* Of three ranges the last is written anew, or a fourth comes. */
        {.rank = 2,
         .was = {3, 33000},
         .shape = {3, 33000},
         .changed = {66006},
         .nchanged = 1,
         .nmanifests = 3,
         .nkept = 2},
        {.rank = 2,
         .was = {2, 33000},
         .shape = {3, 33000},
         .changed = {66000, 66006},
         .nchanged = 2,
         .nmanifests = 3,
         .nkept = 2},
        /* It grows along the other dimension: ranges are rows still. */
        {.rank = 2,
         .was = {2, 33000},
         .shape = {2, 33001},
         .changed = {66000},
         .nchanged = 1,
         .nmanifests = 2,
         .nkept = 1},
        /* One manifest of all: it goes as a whole. */
        {.rank = 2,
         .was = {2, 33000},
         .shape = {3, 33000},
         .changed = {33000},
         .nchanged = 1,
         .nmanifests = 2,
         .one = true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
        check_case(&c[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ranges), cmocka_unit_test(test_holds),
                                       cmocka_unit_test(test_changes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
