/* Chunks and shards, written by many threads and read back; and stores that lie. */
#include <pthread.h>
#include <stdatomic.h>

#include "many_support.h"
#include "zarr_support.h"

static int16_t value_at(uint64_t i)
{
    return (int16_t)(i * 31 % 1000);
}

/* ---- round trips ---- */

typedef struct job {
    cm_zarr_writer *w;
    const cm_zarr_meta *meta;
    atomic_uint_fast64_t next;
    atomic_int failures;
} job;

/*
 * Fills chunk COORD of META with value_at of the linear index, 7 outside; every third chunk is
 * only 7.
 */
static bool make_chunk(const cm_grid *grid, const uint64_t *coord, uint64_t number, int16_t *chunk)
{
    for (uint64_t k = 0; k < grid->chunk_nelem; k++) {
        uint64_t rest = k, linear = 0, index[CM_MAX_RANK];
        bool inside = true;
        for (unsigned i = grid->rank; i-- > 0; rest /= grid->chunk[i])
            index[i] = coord[i] * grid->chunk[i] + rest % grid->chunk[i];
        for (unsigned i = 0; i < grid->rank; i++) {
            inside = inside && index[i] < grid->shape[i];
            linear = linear * grid->shape[i] + index[i];
        }
        chunk[k] = inside && number % 3 ? value_at(linear) : 7;
    }
    return number % 3 != 0;
}

static void *deliver(void *argument)
{
    job *j = argument;
    const cm_grid *grid = cm_zarr_writer_grid(j->w);
    const cm_chain *chain = cm_zarr_writer_chain(j->w);
    cm_codec_ctx *ctx = cm_codec_ctx_create(NULL);
    int16_t *chunk = malloc(grid->chunk_nelem * 2);
    uint8_t *encoded = malloc(cm_chain_encoded_bound(chain));
    for (;;) {
        uint64_t number = atomic_fetch_add(&j->next, 1), coord[CM_MAX_RANK];
        if (number >= grid->nchunks)
            break;
        cm_grid_coord(grid, number, coord);
        size_t nbytes;
        if (!make_chunk(grid, coord, number, chunk))
            j->failures += cm_zarr_writer_skip(j->w, number, NULL) != CM_OK;
        else if (cm_chain_encode(chain, ctx, chunk, encoded, &nbytes, NULL) != CM_OK)
            j->failures++;
        else
            j->failures += cm_zarr_writer_put(j->w, number, encoded, nbytes, NULL) != CM_OK;
    }
    free(chunk);
    free(encoded);
    cm_codec_ctx_free(ctx);
    return NULL;
}

enum {
    NTHREADS = 4
};

static cm_zarr_written write_array(cm_store *s, const cm_zarr_meta *m)
{
    cm_error err = {0};
    job j = {.meta = m};
    OK(cm_zarr_writer_create(s, "a/x", m, &j.w, &err));
    pthread_t thread[NTHREADS];
    for (int i = 0; i < NTHREADS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, deliver, &j), 0);
    for (int i = 0; i < NTHREADS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(j.failures, 0);
    OK(cm_zarr_writer_finish(j.w, &err));
    cm_zarr_written counts = cm_zarr_writer_counts(j.w);
    assert_int_equal(counts.nchunks + counts.nskipped, cm_zarr_writer_grid(j.w)->nchunks);
    cm_zarr_writer_free(j.w);
    OK(cm_zarr_hierarchy_write(s, 3, &(cm_zarr_entry){"a/x", m}, 1, true, &err));
    return counts;
}

static cm_array *open_array(cm_store *s, size_t cache_nbytes)
{
    cm_error err = {0};
    cm_zarr_tree tree;
    cm_array *a;
    OK(cm_zarr_open(s, &tree, &err));
    OK(cm_zarr_array_open(&tree, cm_zarr_find(&tree, "a/x"), cache_nbytes, &a, &err));
    cm_zarr_tree_release(&tree);
    return a;
}

/* Every box of some kinds reads as what was written. */
static void check_boxes(cm_array *a)
{
    cm_error err = {0};
    for (unsigned kind = 0; kind < 4; kind++) {
        cm_box box = {.rank = a->rank};
        for (unsigned i = 0; i < a->rank; i++) {
            box.start[i] = kind == 0 ? 0 : a->shape[i] / (kind + 1);
            box.shape[i] = kind == 3 && a->shape[i] ? 1 : a->shape[i] - box.start[i];
        }
        uint64_t n = cm_box_nelem(&box);
        int16_t *got = malloc(n * 2 + 1);
        OK(cm_array_read(a, NULL, &box, got, &err));
        for (uint64_t k = 0; k < n; k++) {
            uint64_t rest = k, linear = 0, coord[CM_MAX_RANK], index[CM_MAX_RANK];
            for (unsigned i = a->rank; i-- > 0; rest /= box.shape[i])
                index[i] = box.start[i] + rest % box.shape[i];
            for (unsigned i = 0; i < a->rank; i++) {
                linear = linear * a->shape[i] + index[i];
                coord[i] = index[i] / a->grid.chunk[i];
            }
            bool stored = cm_grid_number(&a->grid, coord) % 3 != 0;
            assert_int_equal(got[k], stored ? value_at(linear) : 7);
        }
        free(got);
    }
}

static void *read_all(void *argument)
{
    check_boxes(argument);
    return NULL;
}

static void test_round_trip(void **state)
{
    (void)state;
    static const struct {
        const char *shape, *chunk, *codecs;
        uint64_t nobjects;
    } row[] = {
        {"[20,30]", "[6,7]", "[\"bytes\",{\"name\":\"gzip\",\"configuration\":{\"level\":1}}]", 13},
        {"[]", "[]", "[\"bytes\"]", 0}, /* chunk 0 is one that is left out */
        {"[0,3]", "[2,2]", "[\"bytes\"]", 0},
        {"[20,30]", "[8,12]", SHARDED("[4,3]", "end"), 9},
        {"[20,30]", "[8,12]", SHARDED("[4,3]", "start"), 9},
        {"[20,30]", "[100,100]", SHARDED("[10,10]", "end"), 1}, /* a shard larger than the array */
        {"[9]", "[3]", SHARDED("[3]", "end"), 2}, /* one chunk a shard; one is empty */
        {"[7,5,6]", "[4,4,6]", SHARDED("[2,1,3]", "start"), 4},
        {"[20,30]", "[8,12]",
         "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[8,6],\"codecs\":"
         "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":[2,3],\"codecs\":"
         "[\"bytes\"],\"index_codecs\":[\"bytes\"]}}],\"index_codecs\":[\"bytes\"]}}]",
         8}, /* the middle shard of the last column holds one chunk, which is left out */
    };
    for (size_t i = 0; i < COUNT(row); i++) {
        char text[2000];
        cm_store *s = memory_store();
        cm_zarr_meta m =
            meta_v3(array_json(text, sizeof text, row[i].shape, row[i].chunk, row[i].codecs));
        cm_zarr_written counts = write_array(s, &m);
        assert_int_equal(counts.nobjects, row[i].nobjects);
        /* A cache that holds everything, and one that holds nothing. */
        for (size_t cache = 0; cache <= 1 << 20; cache += 1 << 20) {
            cm_array *a = open_array(s, cache);
            check_boxes(a);
            cm_fetch_many many = {0};
            if (cache) /* without it the indices are read anew each time */
                check_fetch_many(a, &many);
            cm_fetch_many_release(&many);
            pthread_t thread[NTHREADS];
            for (int t = 0; t < NTHREADS; t++)
                assert_int_equal(pthread_create(&thread[t], NULL, read_all, a), 0);
            for (int t = 0; t < NTHREADS; t++)
                pthread_join(thread[t], NULL);
            cm_array_free(a);
        }
        cm_zarr_meta_release(&m);
        cm_store_free(s);
    }
}

static void test_known_absence(void **state)
{
    (void)state;
    char text[2000];
    cm_error err = {0};
    cm_store *s = memory_store();
    cm_zarr_meta m =
        meta_v3(array_json(text, sizeof text, "[20,30]", "[8,12]", SHARDED("[4,3]", "end")));
    write_array(s, &m);
    cm_array *a = open_array(s, 1 << 20);
    cm_buf buf = {0};
    cm_fetch f;
    assert_false(a->ops->is_absent(a, 0)); /* not known yet */
    OK(a->ops->fetch(a, 1, &buf, &f, &err));
    assert_true(f.present);
    assert_int_equal(buf.nbytes, 24);
    assert_true(a->ops->is_absent(a, 0)); /* chunk 0 lies in the same shard */
    assert_false(a->ops->is_absent(a, 1));
    uint64_t before = cm_store_count(s).nget;
    OK(a->ops->fetch(a, 0, &buf, &f, &err));
    assert_false(f.present);
    assert_int_equal(cm_store_count(s).nget, before); /* the index is at hand */
    cm_array_free(a);

    a = open_array(s, 0); /* no room for an index: the latest is kept nevertheless */
    before = cm_store_count(s).nget;
    static const uint64_t in_one_shard[] = {1, 2, 10, 11};
    for (size_t i = 0; i < COUNT(in_one_shard); i++)
        OK(a->ops->fetch(a, in_one_shard[i], &buf, &f, &err));
    assert_int_equal(cm_store_count(s).nget - before, 1 + COUNT(in_one_shard));
    OK(a->ops->fetch(a, 5, &buf, &f, &err)); /* another shard: the first is forgotten */
    assert_false(a->ops->is_absent(a, 0));
    cm_array_free(a);
    cm_buf_release(&buf);
    cm_zarr_meta_release(&m);
    cm_store_free(s);
}

/* ---- the writer's promises ---- */

static void test_delivery(void **state)
{
    (void)state;
    char text[2000];
    static const char *const codecs[] = {"[\"bytes\"]", SHARDED("[2]", "end")};
    for (size_t i = 0; i < COUNT(codecs); i++) {
        cm_error err = {0};
        cm_store *s = memory_store();
        cm_zarr_meta m =
            meta_v3(array_json(text, sizeof text, "[8]", i ? "[4]" : "[2]", codecs[i]));
        cm_zarr_writer *w;
        OK(cm_zarr_writer_create(s, "x", &m, &w, &err));
        assert_int_equal(cm_zarr_writer_grid(w)->nchunks, 4);
        assert_int_equal(cm_zarr_writer_outer_grid(w)->nchunks, i ? 2 : 4);
        assert_int_equal(cm_zarr_writer_target(w)->shard_nbytes > 0, i);
        OK(cm_zarr_writer_put(w, 0, "abcd", 4, &err));
        assert_int_equal(cm_zarr_writer_put(w, 0, "abcd", 4, &err), CM_EINTERNAL);
        assert_non_null(strstr(err.text, "array x: chunk 0: "));
        assert_int_equal(cm_zarr_writer_skip(w, 0, &err), CM_EINTERNAL);
        assert_int_equal(cm_zarr_writer_skip(w, 4, &err), CM_EINTERNAL);
        assert_int_equal(has_key(s, "x/c/0"), !i); /* a shard appears whole or not at all */
        OK(cm_zarr_writer_skip(w, 1, &err));
        assert_true(has_key(s, "x/c/0"));
        OK(cm_zarr_writer_skip(w, 2, &err));
        assert_int_equal(cm_zarr_writer_finish(w, &err), CM_EINTERNAL);
        assert_non_null(strstr(err.text, "array x: chunk 3: was never delivered"));
        OK(cm_zarr_writer_put(w, 3, "efgh", 4, &err));
        OK(cm_zarr_writer_finish(w, &err));
        cm_zarr_written c = cm_zarr_writer_counts(w);
        assert_int_equal(c.nchunks, 2);
        assert_int_equal(c.nskipped, 2);
        assert_int_equal(c.nobjects, 2);
        assert_int_equal(c.nbytes, i ? 8 + 2 * 36 : 8);
        assert_int_equal(cm_store_count(s).put_nbytes, c.nbytes);
        cm_zarr_writer_free(w);

        /* A second run finds what is there. */
        bool kept;
        OK(cm_store_delete(s, i ? "x/c/1" : "x/c/3", &err));
        OK(cm_zarr_writer_create(s, "x", &m, &w, &err));
        uint64_t nouter = cm_zarr_writer_outer_grid(w)->nchunks;
        OK(cm_zarr_writer_keep(w, 0, &kept, &err));
        assert_true(kept);
        OK(cm_zarr_writer_keep(w, nouter - 1, &kept, &err));
        assert_false(kept);
        assert_int_equal(cm_zarr_writer_counts(w).nkept, i ? 2 : 1);
        assert_int_equal(cm_zarr_writer_put(w, 0, "abcd", 4, &err), CM_EINTERNAL);
        assert_int_equal(cm_zarr_writer_keep(w, nouter, &kept, &err), CM_EINTERNAL);
        OK(cm_zarr_writer_put(w, 2, "abcd", 4, &err)); /* freed in the middle of a shard */
        cm_zarr_writer_free(w);
        assert_int_equal(has_key(s, "x/c/1"), 0);
        cm_zarr_meta_release(&m);
        cm_store_free(s);
    }
}

static void test_writer_refuses(void **state)
{
    (void)state;
    char text[2000];
    cm_error err = {0};
    cm_store *s = memory_store();
    cm_zarr_writer *w;
    cm_zarr_meta m = meta_v3(array_json(text, sizeof text, "[8]", "[4]", SHARDED("[3]", "end")));
    assert_int_equal(cm_zarr_writer_create(s, "x", &m, &w, &err), CM_EFORMAT);
    assert_non_null(strstr(err.text, "array x: "));
    assert_null(w);
    cm_zarr_meta_release(&m);
    m = meta_v3(GROUP_JSON);
    assert_int_equal(cm_zarr_writer_create(s, "x", &m, &w, &err), CM_EINVAL);
    cm_zarr_meta_release(&m);
    m = meta_v3(array_json(text, sizeof text, "[8]", "[4]", "[\"bytes\"]"));
    assert_int_equal(cm_zarr_writer_create(s, "../x", &m, &w, &err), CM_EFORMAT);
    cm_zarr_meta_release(&m);
    cm_store_free(s);
}

/* ---- stores that lie ---- */

static void put_bytes(cm_store *s, const char *key, const cm_buf *b)
{
    assert_int_equal(cm_store_put(s, key, b->data, b->nbytes, NULL), CM_OK);
}

static void assert_read_fails(cm_store *s, int rc, const char *part)
{
    cm_error err = {0};
    cm_array *a = open_array(s, 1 << 20);
    int16_t got[600];
    cm_box box = {.rank = a->rank};
    memcpy(box.shape, a->shape, sizeof box.shape);
    for (int again = 0; again < 2; again++) { /* a failure is not remembered as something else */
        assert_int_equal(cm_array_read(a, NULL, &box, got, &err), rc);
        if (!strstr(err.text, part) || !strstr(err.text, "array a/x: chunk "))
            fail_msg("%s", err.text);
    }
    cm_array_free(a);
}

static void test_bad_shards(void **state)
{
    (void)state;
    char text[2000];
    cm_error err = {0};
    cm_store *s = memory_store();
    cm_zarr_meta m =
        meta_v3(array_json(text, sizeof text, "[20,30]", "[20,30]",
                           "[{\"name\":\"sharding_indexed\",\"configuration\":{\"chunk_shape\":"
                           "[10,10],\"codecs\":[\"bytes\"],\"index_codecs\":[\"bytes\"]}}]"));
    write_array(s, &m);
    cm_buf good = {0}, bad = {0};
    OK(cm_store_get(s, "a/x/c/0/0", 10000, &good, &err));
    size_t n = good.nbytes, index = n - 6 * 16;
    static const struct {
        size_t entry; /* of the index; its numbers become these */
        uint64_t offset, nbytes;
        int rc;
        const char *error;
    } row[] = {
        {1, 1 << 20, 200, CM_EFORMAT, "shard"},    {1, 0, UINT64_MAX, CM_EFORMAT, "shard"},
        {1, UINT64_MAX, 200, CM_EFORMAT, "shard"}, {2, UINT64_MAX - 10, 200, CM_EFORMAT, "shard"},
        {4, 0, 3, CM_EFORMAT, "chunk 1/1"}, /* too short to be a chunk */
    };
    for (size_t i = 0; i < COUNT(row); i++) {
        OK(cm_buf_resize(&bad, n, &err));
        memcpy(bad.data, good.data, n);
        cm_store_le64(bad.data + index + 16 * row[i].entry, row[i].offset);
        cm_store_le64(bad.data + index + 16 * row[i].entry + 8, row[i].nbytes);
        put_bytes(s, "a/x/c/0/0", &bad);
        assert_read_fails(s, row[i].rc, row[i].error);
    }
    static const size_t cut[] = {0, 1, 95, 96};
    for (size_t i = 0; i < COUNT(cut); i++) {
        OK(cm_store_put(s, "a/x/c/0/0", good.data, cut[i], &err));
        assert_read_fails(s, CM_EFORMAT, "shard");
    }
    cm_buf_release(&good);
    cm_buf_release(&bad);
    cm_zarr_meta_release(&m);
    cm_store_free(s);
}

static void test_bad_chunks(void **state)
{
    (void)state;
    char text[2000];
    cm_error err = {0};
    cm_store *s = memory_store();
    cm_zarr_meta m = meta_v3(array_json(text, sizeof text, "[20,30]", "[10,10]", "[\"bytes\"]"));
    write_array(s, &m);
    static uint8_t large[200000];
    OK(cm_store_put(s, "a/x/c/0/1", large, 199, &err));
    assert_read_fails(s, CM_EFORMAT, "chunk 0/1: ");
    OK(cm_store_put(s, "a/x/c/0/1", large, sizeof large, &err)); /* more than may be stored */
    assert_read_fails(s, CM_EFORMAT, "chunk 0/1: ");
    cm_array *a = open_array(s, 0);
    cm_box box = {.rank = 2, .start = {0, 1}, .shape = {20, 30}};
    assert_int_equal(cm_array_read(a, NULL, &box, large, &err), CM_EINVAL);
    box.start[1] = UINT64_MAX;
    assert_int_equal(cm_array_read(a, NULL, &box, large, &err), CM_EINVAL);
    cm_strings strings = {0};
    box = (cm_box){.rank = 2};
    assert_int_equal(cm_array_read_strings(a, &box, &strings, &err), CM_EINVAL);
    assert_int_equal(cm_array_read(a, NULL, &box, large, &err), CM_OK); /* nothing */
    cm_array_free(a);
    cm_array_free(NULL);
    cm_zarr_meta_release(&m);
    cm_store_free(s);
}

static void test_open_refused(void **state)
{
    (void)state;
    char text[2000];
    cm_error err = {0};
    cm_store *s = memory_store();
    cm_zarr_tree tree;
    cm_array *a;
    put_text(s, "zarr.json", GROUP_JSON);
    put_text(s, "m/zarr.json", array_json(text, sizeof text, "[8]", "[4]", "[\"mystery\"]"));
    put_text(s, "n/zarr.json",
             array_json(text, sizeof text, "[8]", "[4]", "[\"bytes\",\"bytes\"]"));
    put_text(s, "o/zarr.json", array_json(text, sizeof text, "[8]", "[4]", SHARDED("[3]", "end")));
    OK(cm_zarr_open(s, &tree, &err));
    assert_int_equal(cm_zarr_array_open(&tree, cm_zarr_find(&tree, ""), 0, &a, &err), CM_EINVAL);
    assert_int_equal(cm_zarr_array_open(&tree, cm_zarr_find(&tree, "m"), 0, &a, &err),
                     CM_EUNSUPPORTED);
    assert_string_equal(err.text, "array m: codec 'mystery' is not supported");
    assert_int_equal(cm_zarr_array_open(&tree, cm_zarr_find(&tree, "n"), 0, &a, &err), CM_EFORMAT);
    assert_int_equal(cm_zarr_array_open(&tree, cm_zarr_find(&tree, "o"), 0, &a, &err), CM_EFORMAT);
    assert_null(a);
    cm_zarr_tree_release(&tree);
    cm_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),   cmocka_unit_test(test_known_absence),
        cmocka_unit_test(test_delivery),     cmocka_unit_test(test_writer_refuses),
        cmocka_unit_test(test_bad_shards),   cmocka_unit_test(test_bad_chunks),
        cmocka_unit_test(test_open_refused),
    };
    return cmocka_run_group_tests_name("zarr/data", tests, NULL, NULL);
}
