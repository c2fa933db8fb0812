/* The objects found of an array are the same for any kind and number of searchers. */
#include <stdatomic.h>
#include <stdio.h>

#include "../unit.h"
#include "convert/source/presence.h"
#include "format/zarr/open.h"

enum {
    NCHUNKS = 2999,
    SHARD = 4
};

static const char *const PLAIN =
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[2999],\"data_type\":\"uint8\","
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[1]}},"
    "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,"
    "\"codecs\":[{\"name\":\"bytes\"}]}";
static const char *const SHARDED =
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[2999],\"data_type\":\"uint8\","
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[4]}},"
    "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,"
    "\"codecs\":[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[1],"
    "\"codecs\":[{\"name\":\"bytes\"}],\"index_codecs\":[{\"name\":\"bytes\",\"configuration\":"
    "{\"endian\":\"little\"}}],\"index_location\":\"end\"}}]}";

static void put(cm_store *store, uint64_t number, const void *data, size_t nbytes)
{
    char key[32];
    snprintf(key, sizeof(key), "c/%u", (unsigned)number);
    assert_int_equal(cm_store_put(store, key, data, nbytes, NULL), CM_OK);
}

/* Two of three chunks, of 1 to 5 bytes. */
static bool is_there(uint64_t i, uint64_t *nbytes)
{
    *nbytes = 1 + i * 7 % 5;
    return i * 11 % 3 != 0;
}

static void put_chunks(cm_store *store, cm_presence *want)
{
    uint64_t n;
    for (uint64_t i = 0; i < NCHUNKS; i++)
        if (is_there(i, &n)) {
            put(store, i, "12345", n);
            want->npresent++;
            want->nobjects++;
            want->nbytes += n;
        }
    want->max_nbytes = 5;
}

/* Every fifth shard is absent; the entries of the last one past the array count for nothing. */
static void put_shards(cm_store *store, cm_presence *want)
{
    for (uint64_t s = 0; s * SHARD < NCHUNKS; s++) {
        uint8_t object[SHARD * 5 + SHARD * 16];
        uint64_t entry[SHARD][2], n;
        if (s % 5 == 0)
            continue;
        for (uint64_t k = 0; k < SHARD; k++) {
            bool there = is_there(s * SHARD + k, &n);
            entry[k][0] = there ? k * 5 : UINT64_MAX;
            entry[k][1] = there ? n : UINT64_MAX;
            want->npresent += there && s * SHARD + k < NCHUNKS;
        }
        memset(object, 'x', sizeof(object));
        memcpy(object + SHARD * 5, entry, sizeof(entry));
        put(store, s, object, sizeof(object));
        want->nobjects++;
        want->nbytes += sizeof(object);
    }
    want->max_nbytes = 5;
}

static bool bit_of(const cm_presence *p, uint64_t i)
{
    return p->bit[i / 64] >> i % 64 & 1;
}

static void check(const cm_presence *got, const cm_presence *want, bool sharded)
{
    uint64_t n;
    assert_int_equal(got->nchunks, NCHUNKS);
    assert_int_equal(got->npresent, want->npresent);
    assert_int_equal(got->nobjects, want->nobjects);
    assert_int_equal(got->nbytes, want->nbytes);
    assert_int_equal(got->max_nbytes, want->max_nbytes);
    for (uint64_t i = 0; i < NCHUNKS; i++)
        assert_int_equal(bit_of(got, i), is_there(i, &n) && !(sharded && i / SHARD % 5 == 0));
}

static void open_store(bool sharded, cm_store **store, cm_zarr_tree *tree, cm_presence *want)
{
    const char *metadata = sharded ? SHARDED : PLAIN;
    cm_error err = {0};
    assert_int_equal(cm_store_open_memory(store, NULL), CM_OK);
    assert_int_equal(cm_store_put(*store, "zarr.json", metadata, strlen(metadata), NULL), CM_OK);
    *want = (cm_presence){0};
    (sharded ? put_shards : put_chunks)(*store, want);
    if (cm_zarr_open(*store, tree, &err) != CM_OK)
        fail_msg("%s", err.text);
}

static void test_all_find_the_same(void **state)
{
    (void)state;
    for (int sharded = 0; sharded < 2; sharded++)
        for (unsigned nthreads = 1; nthreads <= 8; nthreads *= 2) {
            cm_store *store;
            cm_zarr_tree tree;
            cm_presence want, got;
            cm_error err = {0};
            open_store(sharded, &store, &tree, &want);
            if (cm_presence_find(store, "", &cm_zarr_find(&tree, "")->meta, nthreads, NULL, NULL,
                                 &got, &err) != CM_OK)
                fail_msg("%s", err.text);
            check(&got, &want, sharded);
            cm_presence_release(&got);
            cm_zarr_tree_release(&tree);
            cm_store_free(store);
        }
}

static void test_a_broken_shard_is_named(void **state)
{
    (void)state;
    for (unsigned nthreads = 1; nthreads <= 4; nthreads += 3) {
        cm_store *store;
        cm_zarr_tree tree;
        cm_presence want, got;
        cm_error err = {0};
        open_store(true, &store, &tree, &want);
        put(store, 701, "short", 5);
        assert_int_equal(cm_presence_find(store, "", &cm_zarr_find(&tree, "")->meta, nthreads, NULL,
                                          NULL, &got, &err),
                         CM_EFORMAT);
        assert_non_null(strstr(err.text, "shard 701"));
        assert_non_null(strstr(err.text, "shorter than its index"));
        assert_null(got.bit);
        cm_zarr_tree_release(&tree);
        cm_store_free(store);
    }
}

static bool want_after(void *context)
{
    atomic_int *left = context;
    return atomic_fetch_sub(left, 1) <= 0;
}

static void test_the_search_ends_when_it_is_no_longer_wanted(void **state)
{
    (void)state;
    for (unsigned nthreads = 1; nthreads <= 4; nthreads += 3)
        for (int questions = 0; questions < 700; questions += 233) {
            cm_store *store;
            cm_zarr_tree tree;
            cm_presence want, got;
            cm_error err = {0};
            atomic_int left = questions;
            const cm_stop stop = {want_after, &left};
            open_store(false, &store, &tree, &want);
            assert_int_equal(cm_presence_find(store, "", &cm_zarr_find(&tree, "")->meta, nthreads,
                                              &stop, NULL, &got, &err),
                             CM_ECANCELED);
            assert_null(got.bit);
            /* Each thread asks once more at most. */
            assert_true(atomic_load(&left) >= -(int)nthreads);
            cm_zarr_tree_release(&tree);
            cm_store_free(store);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_find_the_same),
        cmocka_unit_test(test_a_broken_shard_is_named),
        cmocka_unit_test(test_the_search_ends_when_it_is_no_longer_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
