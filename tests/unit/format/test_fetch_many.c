/* Requests for chunks fetched alone and together; and stores that fail. */
#include "many_support.h"
#include "zarr_support.h"

enum {
    NCHUNKS = 12 /* of int16[48] */
};

static void open_one(cm_store *s, cm_array **a)
{
    cm_error err = {0};
    cm_zarr_tree tree;
    OK(cm_zarr_open(s, &tree, &err));
    OK(cm_zarr_array_open(&tree, cm_zarr_find(&tree, "x"), 1 << 20, a, &err));
    cm_zarr_tree_release(&tree);
}

/* An array of which the chunks of ABSENT (a bit each) are not stored. */
static cm_store *make_store(const char *shard, const char *codecs, unsigned absent)
{
    char text[2000];
    cm_error err = {0};
    cm_store *s = memory_store();
    cm_zarr_meta m = meta_v3(array_json(text, sizeof text, "[48]", shard, codecs));
    cm_zarr_writer *w;
    OK(cm_zarr_writer_create(s, "x", &m, &w, &err));
    for (unsigned i = 0; i < NCHUNKS; i++) {
        int16_t chunk[4] = {(int16_t)i, 1, 2, 3};
        if (absent >> i & 1)
            OK(cm_zarr_writer_skip(w, i, &err));
        else
            OK(cm_zarr_writer_put(w, i, chunk, sizeof chunk, &err));
    }
    OK(cm_zarr_writer_finish(w, &err));
    cm_zarr_writer_free(w);
    OK(cm_zarr_hierarchy_write(s, 3, &(cm_zarr_entry){"x", &m}, 1, true, &err));
    cm_zarr_meta_release(&m);
    return s;
}

static void test_counts(void **state)
{
    (void)state;
    enum {
        INDEX = 4 * 16 + 4,
        CHUNK = 8
    };
    static const struct {
        const char *name, *shard, *codecs;
        unsigned absent;
        const char *numbers; /* a letter for each chunk: a is 0 */
        struct {
            uint64_t nrequests, nbytes;
        } alone, cold, warm; /* alone: one by one, with all indices at hand */
    } row[] = {
        {"objects", "[4]", "[\"bytes\"]", 0, "abcd", {4, 32}, {4, 32}, {4, 32}},
        {"absent objects",
         "[4]",
         "[\"bytes\"]",
         1 << 1 | 1 << 3,
         "abcd",
         {4, 16},
         {4, 16},
         {4, 16}},
        {"a whole shard",
         "[16]",
         SHARDED("[4]", "end"),
         0,
         "abcd",
         {4, 32},
         {2, INDEX + 32},
         {1, 32}},
        {"any order",
         "[16]",
         SHARDED("[4]", "start"),
         0,
         "dacb",
         {4, 32},
         {2, INDEX + 32},
         {1, 32}},
        {"over a gap", "[16]", SHARDED("[4]", "end"), 0, "ad", {2, 16}, {2, INDEX + 32}, {1, 32}},
        {"the same twice", "[16]", SHARDED("[4]", "end"), 0, "bb", {2, 16}, {2, INDEX + 8}, {1, 8}},
        {"three shards",
         "[16]",
         SHARDED("[4]", "end"),
         0,
         "abefij",
         {6, 48},
         {6, 3 * INDEX + 48},
         {3, 48}},
        {"an absent shard",
         "[16]",
         SHARDED("[4]", "end"),
         0xf0,
         "abefij",
         {4, 32},
         {5, 2 * INDEX + 32},
         {2, 32}},
        {"absent within",
         "[16]",
         SHARDED("[4]", "end"),
         2,
         "abc",
         {2, 16},
         {2, INDEX + 16},
         {1, 16}},
        {"nothing at all", "[16]", SHARDED("[4]", "end"), 2, "", {0, 0}, {0, 0}, {0, 0}},
    };
    for (size_t i = 0; i < COUNT(row); i++) {
        cm_error err = {0};
        cm_store *s = make_store(row[i].shard, row[i].codecs, row[i].absent);
        cm_array *a;
        open_one(s, &a);
        cm_fetch_item item[NCHUNKS] = {{0}};
        cm_fetch_many many = {.item = item, .n = strlen(row[i].numbers)};
        for (int warm = 0; warm < 2; warm++) {
            for (size_t k = 0; k < many.n; k++)
                item[k].number = (uint64_t)(row[i].numbers[k] - 'a');
            uint64_t before = cm_store_count(s).get_nbytes;
            OK(cm_array_fetch_many(a, &many, &err));
            uint64_t nrequests = warm ? row[i].warm.nrequests : row[i].cold.nrequests;
            uint64_t nbytes = warm ? row[i].warm.nbytes : row[i].cold.nbytes;
            if (many.nrequests != nrequests || many.nbytes != nbytes)
                fail_msg("%s: %d requests, %d bytes", row[i].name, (int)many.nrequests,
                         (int)many.nbytes);
            assert_int_equal(cm_store_count(s).get_nbytes - before, nbytes);
            compare_with_alone(a, &many);
        }
        uint64_t nrequests = 0, nbytes = 0;
        cm_buf buf = {0};
        for (size_t k = 0; k < many.n; k++) {
            cm_fetch f;
            OK(a->ops->fetch(a, item[k].number, &buf, &f, &err));
            nrequests += f.nrequests;
            nbytes += f.nbytes;
        }
        if (nrequests != row[i].alone.nrequests || nbytes != row[i].alone.nbytes)
            fail_msg("%s: alone %d requests, %d bytes", row[i].name, (int)nrequests, (int)nbytes);
        cm_buf_release(&buf);
        cm_fetch_many_release(&many);
        cm_array_free(a);
        cm_store_free(s);
    }
}

/* More shards than are held open at once. */
static void test_many_shards(void **state)
{
    (void)state;
    char text[2000];
    cm_error err = {0};
    cm_store *s = memory_store();
    cm_zarr_meta m = meta_v3(array_json(text, sizeof text, "[400]", "[8]", SHARDED("[2]", "end")));
    cm_zarr_writer *w;
    OK(cm_zarr_writer_create(s, "x", &m, &w, &err));
    for (uint64_t i = 0; i < 200; i++)
        OK(i % 5 ? cm_zarr_writer_put(w, i, &i, 4, &err) : cm_zarr_writer_skip(w, i, &err));
    OK(cm_zarr_writer_finish(w, &err));
    cm_zarr_writer_free(w);
    OK(cm_zarr_hierarchy_write(s, 3, &(cm_zarr_entry){"x", &m}, 1, true, &err));
    cm_zarr_meta_release(&m);
    cm_array *a;
    open_one(s, &a);
    cm_fetch_many many = {0};
    check_fetch_many(a, &many);
    cm_fetch_many_release(&many);
    cm_fetch_many_release(&many);
    cm_fetch_many_release(NULL);
    cm_array_free(a);
    cm_store_free(s);
}

static void test_failures(void **state)
{
    (void)state;
    static const uint8_t long_chunk[200000];
    static const struct {
        const char *shard, *codecs, *key;
        size_t nbytes; /* of what lies there instead */
        uint64_t limit;
        int rc;
        const char *error;
    } row[] = {
        {"[4]", "[\"bytes\"]", "x/c/5", sizeof long_chunk, 0, CM_EFORMAT, "array x: chunk 5: "},
        {"[16]", SHARDED("[4]", "end"), "x/c/1", 10, 0, CM_EFORMAT, "array x: chunk 4: "},
        {"[16]", SHARDED("[4]", "end"), "x/c/1", 1000, 0, CM_EFORMAT, "array x: chunk 4: "},
        {"[4]", "[\"bytes\"]", "x/c/5", 8, 20, CM_EBUDGET, "20 are allowed"},
        {"[16]", SHARDED("[4]", "end"), "y", 8, 20, CM_EBUDGET, "20 are allowed"},
    };
    for (size_t i = 0; i < COUNT(row); i++) {
        cm_store *s = make_store(row[i].shard, row[i].codecs, 0);
        cm_error err = {0};
        cm_array *a;
        OK(cm_store_put(s, row[i].key, long_chunk, row[i].nbytes, &err));
        open_one(s, &a);
        cm_fetch_item item[NCHUNKS] = {{0}};
        cm_fetch_many many = {.item = item, .n = NCHUNKS};
        cm_buf_init(&many.buf, row[i].limit);
        for (int again = 0; again < 2; again++) {
            for (size_t k = 0; k < NCHUNKS; k++)
                item[k].number = k;
            assert_int_equal(cm_array_fetch_many(a, &many, &err), row[i].rc);
            if (!strstr(err.text, row[i].error))
                fail_msg("%s", err.text);
        }
        cm_fetch_many_release(&many);
        cm_array_free(a);
        cm_store_free(s);
    }
}

/* A kind that has no way of its own: chunk i holds i bytes, every third is absent. */
static int fetch_plain(cm_array *a, uint64_t number, cm_buf *buf, cm_fetch *out, cm_error *err)
{
    (void)a;
    *out = (cm_fetch){.present = number % 3 != 0, .skip = (uint32_t)number, .io_ns = 1};
    if (number == 99)
        return cm_fail(err, CM_EIO, "chunk 99: lost");
    if (!out->present)
        return CM_OK;
    out->nrequests = 2;
    out->nbytes = number;
    int rc = cm_buf_resize(buf, (size_t)number, err);
    memset(buf->data, (int)number, (size_t)number);
    return rc;
}

static void test_one_by_one(void **state)
{
    (void)state;
    static const cm_array_ops ops = {.fetch = fetch_plain}, none = {0};
    cm_array a = {.ops = &ops, .grid = {.nchunks = 98}, .name = "plain"};
    cm_fetch_many many = {0};
    cm_error err = {0};
    check_fetch_many(&a, &many);
    cm_store *s = make_store("[16]", SHARDED("[4]", "end"), 1);
    cm_array *other;
    open_one(s, &other); /* the state of one kind is no state of another */
    check_fetch_many(other, &many);
    check_fetch_many(&a, &many);
    cm_fetch_item item[3] = {{.number = 1}, {.number = 3}, {.number = 5}};
    many.item = item;
    many.n = 3;
    OK(cm_array_fetch_many(&a, &many, &err));
    assert_int_equal(many.nrequests, 4);
    assert_int_equal(many.nbytes, 6);
    assert_int_equal(many.io_ns, 3);
    item[1].number = 99;
    assert_int_equal(cm_array_fetch_many(&a, &many, &err), CM_EIO);
    assert_string_equal(err.text, "chunk 99: lost");
    a.ops = &none;
    assert_int_equal(cm_array_fetch_many(&a, &many, &err), CM_EINVAL);
    cm_fetch_many_release(&many);
    cm_array_free(other);
    cm_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_many_shards),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_one_by_one),
    };
    return cmocka_run_group_tests_name("fetch_many", tests, NULL, NULL);
}
