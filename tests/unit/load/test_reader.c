/*
 * Boxes of stores that the test makes, read through every way that the reader
 * has, with elements and counts compared with arithmetic.
 */
#include <math.h>

#include "../fixtures/made_store.h"
#include "../unit.h"
#include "base/threads.h"
#include "load/reader/reader.h"

typedef struct row {
    const char *name;
    made m;
} row;

static const row rows[] = {
    {"raw", {.rank = 2, .shape = {20, 30}, .chunk = {4, 7}}},
    {"zstd", {.rank = 2, .shape = {20, 30}, .chunk = {4, 7}, .codec = CM_CODEC_ZSTD}},
    {"whole rows", {.rank = 2, .shape = {20, 30}, .chunk = {3, 30}, .codec = CM_CODEC_ZSTD}},
    {"shuffled whole rows",
     {.rank = 2, .shape = {20, 48}, .chunk = {4, 48}, .codec = CM_CODEC_BLOSC}},
    {"raw whole rows", {.rank = 3, .shape = {9, 8, 5}, .chunk = {1, 4, 5}}},
    {"holes",
     {.rank = 2, .shape = {20, 30}, .chunk = {5, 6}, .codec = CM_CODEC_GZIP, .absent_of = 3}},
    {"shards",
     {.rank = 2, .shape = {24, 32}, .chunk = {4, 8}, .shard = {12, 16}, .codec = CM_CODEC_ZSTD}},
    {"shards with holes",
     {.rank = 2, .shape = {24, 32}, .chunk = {4, 8}, .shard = {12, 16}, .absent_of = 2}},
    {"one chunk", {.rank = 1, .shape = {17}, .chunk = {40}, .codec = CM_CODEC_ZSTD}},
    {"many chunks", {.rank = 1, .shape = {1000}, .chunk = {3}, .absent_of = 5}},
};

/* chunkcalc's prediction for BOX. */
static void predict(const made *m, const cm_box *box, cm_load_counts *out)
{
    cm_grid g = made_grid(m);
    uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK];
    cm_grid_cover(&g, box, first, count);
    for (uint64_t n = 0; n < g.nchunks; n++) {
        uint64_t coord[CM_MAX_RANK];
        cm_box covered, part;
        cm_grid_coord(&g, n, coord);
        cm_grid_box(&g, coord, &covered);
        if (!cm_box_intersect(&covered, box, &part))
            continue;
        out->chunks++;
        if (made_is_absent(m, n)) {
            out->missing_chunks++;
            out->missing_nbytes += cm_box_nelem(&part) * 4;
        } else {
            out->decoded++;
            out->decoded_nbytes += g.chunk_nelem * 4;
        }
    }
    out->logical_nbytes += cm_box_nelem(box) * 4;
}

static void check_elements(const made *m, const cm_box *box, const int32_t *got)
{
    uint64_t n = cm_box_nelem(box);
    for (uint64_t i = 0; i < n; i++)
        if (got[i] != made_value_in(m, box, i))
            fail_msg("element %d is %d instead of %d", (int)i, got[i], made_value_in(m, box, i));
}

static cm_reader *new_reader(cm_chunk_cache *cache)
{
    cm_reader *r = NULL;
    cm_reader_options options = {.cache = cache, .store = "made"};
    assert_int_equal(cm_reader_create(&options, &r, NULL), CM_OK);
    return r;
}

static void boxes_and_counts(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        const made *m = &rows[k].m;
        cm_store *store;
        assert_int_equal(cm_store_open_memory(&store, NULL), CM_OK);
        made_write(store, m, 1);
        cm_array *a = made_open(store, "a");
        cm_reader *r = new_reader(NULL);
        uint64_t random = k + 1;
        int32_t *got = aligned_alloc(64, 4096 * 4);
        for (int trial = 0; trial < 60; trial++) {
            cm_box box = trial == 0 ? (cm_box){.rank = m->rank} : made_random_box(m, &random);
            if (trial == 0)
                memcpy(box.shape, m->shape, sizeof(box.shape));
            cm_load_counts counts = {0}, want = {0}, asked = {0};
            cm_error err = {0};
            if (trial > 0 && cm_reader_count(r, a, &box, &asked, &err) != CM_OK)
                fail_msg("%s: %s", rows[k].name, err.text);
            if (trial > 0)
                assert_int_equal(asked.decoded + asked.stage_calls[CM_LOAD_DECODE], 0);
            cm_reader_far(r, trial % 2 == 0);
            if (cm_reader_box(r, a, &box, NULL, got, &counts, &err) != CM_OK)
                fail_msg("%s: %s", rows[k].name, err.text);
            check_elements(m, &box, got);
            predict(m, &box, &want);
            if (trial > 0) { /* from then on the indices of all shards are at hand */
                assert_int_equal(asked.requests, counts.requests);
                assert_int_equal(asked.chunks, counts.chunks);
                if (m->shard[0] != 0)
                    assert_int_equal(asked.stored_nbytes, counts.stored_nbytes);
            }
            assert_int_equal(counts.chunks, want.chunks);
            assert_int_equal(counts.decoded, want.decoded);
            assert_int_equal(counts.decoded_nbytes, want.decoded_nbytes);
            assert_int_equal(counts.missing_chunks, want.missing_chunks);
            assert_int_equal(counts.missing_nbytes, want.missing_nbytes);
            assert_int_equal(counts.logical_nbytes, want.logical_nbytes);
            assert_int_equal(counts.failed_chunks, 0);
            if (m->codec == CM_CODEC_NONE && m->shard[0] == 0)
                assert_int_equal(counts.stored_nbytes, want.decoded_nbytes);
        }
        free(got);
        cm_reader_free(r);
        cm_array_free(a);
        cm_store_free(store);
    }
}

static void shard_index_is_a_request(void **state)
{
    (void)state;
    cm_store *store;
    assert_int_equal(cm_store_open_memory(&store, NULL), CM_OK);
    made m = {.rank = 1, .shape = {64}, .chunk = {8}, .shard = {32}, .codec = CM_CODEC_ZSTD};
    made_write(store, &m, 1);
    cm_array *a = made_open(store, "a");
    cm_reader *r = new_reader(NULL);
    cm_box box = {.rank = 1, .start = {3}, .shape = {2}};
    int32_t got[2];
    cm_load_counts counts = {0};
    assert_int_equal(cm_reader_box(r, a, &box, NULL, got, &counts, NULL), CM_OK);
    assert_int_equal(counts.requests, 2);
    assert_int_equal(cm_reader_box(r, a, &box, NULL, got, &counts, NULL), CM_OK);
    assert_int_equal(counts.requests, 3); /* the index is kept */
    assert_int_equal(counts.chunks, 2);
    cm_reader_free(r);
    cm_array_free(a);
    cm_store_free(store);
}

/* ---- conversion ---- */

static void fed(void **state)
{
    (void)state;
    static const uint64_t chunks[][2] = {{4, 7}, {3, 30}, {20, 2}, {1, 1}};
    for (size_t k = 0; k < 4; k++) {
        made m = {.rank = 2,
                  .shape = {20, 30},
                  .chunk = {chunks[k][0], chunks[k][1]},
                  .codec = CM_CODEC_ZSTD,
                  .absent_of = 4};
        cm_store *store;
        assert_int_equal(cm_store_open_memory(&store, NULL), CM_OK);
        made_write(store, &m, 1);
        cm_array *a = made_open(store, "a");
        cm_reader *r = new_reader(NULL);
        int32_t fill = MADE_FILL;
        cm_feed feed = {.src = a->dtype,
                        .to = CM_FEED_FLOAT32,
                        .unpack = true,
                        .scale = 0.5,
                        .offset = 1,
                        .nfills = 1};
        memcpy(feed.fill[0], &fill, 4);
        float got[600];
        uint64_t random = k + 9;
        for (int trial = 0; trial < 30; trial++) {
            cm_box box = made_random_box(&m, &random);
            cm_load_counts counts = {0};
            assert_int_equal(cm_reader_box(r, a, &box, &feed, got, &counts, NULL), CM_OK);
            for (uint64_t i = 0; i < cm_box_nelem(&box); i++) {
                int32_t v = made_value_in(&m, &box, i);
                if (v == MADE_FILL)
                    assert_true(isnan(got[i]));
                else
                    assert_true(got[i] == (float)(v * 0.5 + 1));
            }
            assert_int_equal(counts.logical_nbytes, cm_box_nelem(&box) * 4);
        }
        cm_reader_free(r);
        cm_array_free(a);
        cm_store_free(store);
    }
}

/* Chunks one by one, clipped at the edges, with and without a feed. */
static void single_chunks(void **state)
{
    (void)state;
    made m = {.rank = 2, .shape = {10, 9}, .chunk = {4, 4}, .codec = CM_CODEC_ZSTD, .absent_of = 4};
    cm_store *store;
    assert_int_equal(cm_store_open_memory(&store, NULL), CM_OK);
    made_write(store, &m, 1);
    cm_array *a = made_open(store, "a");
    cm_reader *r = new_reader(NULL);
    for (int with_feed = 0; with_feed < 2; with_feed++) {
        cm_feed feed = {.src = a->dtype, .to = CM_FEED_FLOAT32};
        cm_load_counts counts = {0};
        for (uint64_t n = 0; n < a->grid.nchunks; n++) {
            int32_t data[17];
            uint64_t coord[CM_MAX_RANK];
            cm_box box;
            cm_grid_coord(&a->grid, n, coord);
            cm_grid_box(&a->grid, coord, &box);
            data[cm_box_nelem(&box)] = 77;
            assert_int_equal(
                cm_reader_chunk(r, a, n, with_feed ? &feed : NULL, data, &counts, NULL), CM_OK);
            for (uint64_t i = 0; i < cm_box_nelem(&box); i++) {
                const int32_t want = made_value_in(&m, &box, i);
                float number;
                memcpy(&number, &data[i], 4);
                assert_true(with_feed ? number == (float)want : data[i] == want);
            }
            assert_int_equal(data[cm_box_nelem(&box)], 77);
        }
        assert_int_equal(counts.chunks, 9);
        assert_int_equal(counts.decoded, 6);
        assert_int_equal(counts.missing_chunks, 3);
        assert_int_equal(counts.logical_nbytes, 90 * 4);
    }
    cm_load_counts counts = {0};
    cm_error err = {0};
    assert_int_equal(cm_reader_chunk(r, a, 9, NULL, NULL, &counts, &err), CM_EINVAL);
    assert_non_null(strstr(err.text, "has no chunk 9"));
    cm_reader_free(r);
    cm_array_free(a);
    cm_store_free(store);
}

/* ---- errors ---- */

static void corrupt_chunks(void **state)
{
    (void)state;
    made m = {.rank = 1, .shape = {40}, .chunk = {8}, .codec = CM_CODEC_ZSTD};
    cm_store *store;
    assert_int_equal(cm_store_open_memory(&store, NULL), CM_OK);
    made_write(store, &m, 1);
    assert_int_equal(cm_store_put(store, "a/c/1", "rubbish", 7, NULL), CM_OK);
    assert_int_equal(cm_store_put(store, "a/c/3", "rubbish", 7, NULL), CM_OK);
    cm_array *a = made_open(store, "a");
    cm_reader *r = new_reader(NULL);
    cm_box box = {.rank = 1, .shape = {40}};
    int32_t got[40] = {0};
    cm_load_counts counts = {0};
    cm_error err = {0};
    assert_int_equal(cm_reader_box(r, a, &box, NULL, got, &counts, &err), CM_EFORMAT);
    assert_int_equal(counts.failed_chunks, 2);
    assert_int_equal(counts.decoded, 3);
    assert_int_equal(got[39], 39);
    if (strncmp(err.text, "memory: array a: chunk 1: ", 26) != 0)
        fail_msg("%s", err.text);
    cm_reader_free(r);
    cm_array_free(a);
    cm_store_free(store);
}

/* Chunk 2 cannot be fetched. */
typedef struct broken {
    cm_array array; /* first */
    cm_array *inner;
} broken;

static int broken_fetch(cm_array *a, uint64_t number, cm_buf *buf, cm_fetch *out, cm_error *err)
{
    broken *b = (broken *)a;
    if (number == 2)
        return cm_fail(err, CM_EIO, "array a: chunk 2: the disk is gone");
    return b->inner->ops->fetch(b->inner, number, buf, out, err);
}

static void unreadable_chunk(void **state)
{
    (void)state;
    static const cm_array_ops ops = {.fetch = broken_fetch};
    made m = {.rank = 1, .shape = {40}, .chunk = {8}};
    cm_store *store;
    assert_int_equal(cm_store_open_memory(&store, NULL), CM_OK);
    made_write(store, &m, 1);
    for (int with_cache = 0; with_cache < 2; with_cache++) {
        cm_chunk_cache *cache = NULL;
        if (with_cache)
            assert_int_equal(cm_chunk_cache_create(1 << 20, CM_CACHE_LRU, &cache, NULL), CM_OK);
        broken b = {.inner = made_open(store, "a")};
        b.array = *b.inner;
        b.array.ops = &ops;
        cm_reader *r = new_reader(cache);
        cm_box box = {.rank = 1, .shape = {40}};
        int32_t got[40] = {0};
        cm_load_counts counts = {0};
        cm_error err = {0};
        assert_int_equal(cm_reader_box(r, &b.array, &box, NULL, got, &counts, &err), CM_EIO);
        assert_string_equal(err.text, "memory: array a: chunk 2: the disk is gone");
        assert_int_equal(counts.failed_chunks, 1);
        assert_int_equal(counts.decoded, 4);
        assert_int_equal(got[39], 39);
        cm_reader_free(r);
        cm_chunk_cache_free(cache);
        cm_array_free(b.inner);
    }
    cm_store_free(store);
}

static void refusals(void **state)
{
    (void)state;
    made m = {.rank = 1, .shape = {40}, .chunk = {8}};
    cm_store *store;
    assert_int_equal(cm_store_open_memory(&store, NULL), CM_OK);
    made_write(store, &m, 1);
    cm_array *a = made_open(store, "a");
    cm_reader *r = new_reader(NULL), *library = NULL;
    cm_reader_options options = {.library = true};
    assert_int_equal(cm_reader_create(&options, &library, NULL), CM_OK);
    int32_t got[40];
    cm_load_counts counts = {0};
    cm_error err = {0};
    cm_box outside = {.rank = 1, .start = {39}, .shape = {2}};
    assert_int_equal(cm_reader_box(r, a, &outside, NULL, got, &counts, &err), CM_EINVAL);
    assert_non_null(strstr(err.text, "outside"));
    cm_box inside = {.rank = 1, .shape = {2}};
    assert_int_equal(cm_reader_box(library, a, &inside, NULL, got, &counts, &err), CM_EUNSUPPORTED);
    cm_box empty = {.rank = 1, .start = {40}};
    assert_int_equal(cm_reader_box(r, a, &empty, NULL, got, &counts, &err), CM_OK);
    assert_int_equal(counts.chunks, 0);
    cm_reader_free(library);
    cm_reader_free(r);
    cm_array_free(a);
    cm_store_free(store);
}

/* ---- sliceable arrays ---- */

static int box_of_indices(cm_array *a, const cm_box *box, void *dst, cm_error *err)
{
    (void)err;
    made m = {.rank = a->rank};
    memcpy(m.shape, a->shape, sizeof(m.shape));
    memcpy(m.chunk, a->shape, sizeof(m.chunk));
    for (uint64_t i = 0; i < cm_box_nelem(box); i++)
        ((int32_t *)dst)[i] = made_value_in(&m, box, i);
    return CM_OK;
}

static void sliceable(void **state)
{
    (void)state;
    static const cm_array_ops ops = {.read_box = box_of_indices};
    static const struct {
        const char *name;
        cm_box box;
        uint64_t chunk[3];
        bool serial;
        uint64_t chunks, requests, stored, decoded, decoded_nbytes;
    } table[] = {
        {"everything", {3, {0, 0, 0}, {4, 6, 8}}, {4, 6, 8}, false, 1, 1, 768, 0, 768},
        {"whole planes", {3, {1, 0, 0}, {2, 6, 8}}, {4, 6, 8}, false, 1, 1, 384, 0, 384},
        {"rows", {3, {1, 2, 0}, {2, 3, 8}}, {4, 6, 8}, false, 1, 2, 192, 0, 192},
        {"parts of rows", {3, {1, 2, 1}, {2, 3, 4}}, {4, 6, 8}, false, 1, 6, 96, 0, 96},
        {"a library's chunks", {3, {1, 2, 1}, {2, 3, 4}}, {2, 3, 8}, true, 4, 4, 0, 4, 768},
    };
    for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
        cm_array a = {.ops = &ops,
                      .name = (char *)"x",
                      .dtype = cm_dtype_make(CM_KIND_INT, 4),
                      .rank = 3,
                      .shape = {4, 6, 8},
                      .serial = table[k].serial};
        assert_int_equal(cm_grid_init(&a.grid, 3, a.shape, table[k].chunk, NULL), CM_OK);
        cm_reader *r = new_reader(NULL);
        int32_t got[192], want[192];
        float number[192];
        cm_load_counts counts = {0}, again = {0};
        assert_int_equal(cm_reader_box(r, &a, &table[k].box, NULL, got, &counts, NULL), CM_OK);
        box_of_indices(&a, &table[k].box, want, NULL);
        assert_memory_equal(got, want, cm_box_nelem(&table[k].box) * 4);
        assert_int_equal(counts.chunks, table[k].chunks);
        assert_int_equal(counts.requests, table[k].requests);
        assert_int_equal(counts.stored_nbytes, table[k].stored);
        assert_int_equal(counts.decoded, table[k].decoded);
        assert_int_equal(counts.decoded_nbytes, table[k].decoded_nbytes);
        /* The same, converted. */
        cm_feed feed = {.src = a.dtype, .to = CM_FEED_FLOAT32};
        assert_int_equal(cm_reader_box(r, &a, &table[k].box, &feed, number, &again, NULL), CM_OK);
        for (uint64_t i = 0; i < cm_box_nelem(&table[k].box); i++)
            assert_true(number[i] == (float)want[i]);
        assert_int_equal(again.logical_nbytes, counts.logical_nbytes);
        cm_reader_free(r);
    }
}

/* However many chunks are fetched at once, the elements are the same; memory is what that takes. */
static void groups(void **state)
{
    (void)state;
    static const struct {
        size_t nbytes;
        unsigned calls; /* for 25 chunks of 112 bytes */
    } table[] = {{1, 25}, {112, 25}, {250, 13}, {600, 5}, {1 << 20, 1}, {0, 1}};
    made m = {.rank = 2, .shape = {20, 30}, .chunk = {4, 7}, .absent_of = 6};
    cm_store *store;
    assert_int_equal(cm_store_open_memory(&store, NULL), CM_OK);
    made_write(store, &m, 1);
    cm_array *a = made_open(store, "a");
    for (size_t k = 0; k < sizeof(table) / sizeof(table[0]); k++) {
        cm_reader_options options = {.group_nbytes = table[k].nbytes};
        cm_reader *r = NULL;
        cm_box box = {.rank = 2, .start = {1, 2}, .shape = {17, 27}};
        int32_t got[17 * 27];
        cm_load_counts counts = {0};
        assert_int_equal(cm_reader_create(&options, &r, NULL), CM_OK);
        assert_int_equal(cm_reader_box(r, a, &box, NULL, got, &counts, NULL), CM_OK);
        check_elements(&m, &box, got);
        assert_int_equal(counts.chunks, 25);
        assert_int_equal(counts.stage_calls[CM_LOAD_STORAGE], table[k].calls);
        cm_reader_free(r);
    }
    const cm_feed same = {.src = a->dtype}, other = {.src = a->dtype, .to = CM_FEED_FLOAT16};
    const size_t plain = cm_reader_memory(a, NULL);
    assert_true(plain > 2 * 4 * 7 * 4);
    assert_int_equal(cm_reader_memory(a, &same), plain);
    assert_int_equal(cm_reader_memory(a, &other), plain + 4 * 7 * (4 + 2));
    cm_array_free(a);
    cm_store_free(store);
}

/* ---- the cache behind readers ---- */

static void cached(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        const made *m = &rows[k].m;
        cm_store *store;
        cm_chunk_cache *cache = NULL;
        assert_int_equal(cm_store_open_memory(&store, NULL), CM_OK);
        made_write(store, m, 1);
        cm_array *a = made_open(store, "a");
        assert_int_equal(cm_chunk_cache_create(6000, CM_CACHE_LRU, &cache, NULL), CM_OK);
        cm_reader *r = new_reader(cache);
        cm_load_counts counts = {0}, want = {0};
        uint64_t random = k + 77;
        int32_t *got = malloc(4096 * 4);
        for (int trial = 0; trial < 60; trial++) {
            cm_box box = made_random_box(m, &random);
            assert_int_equal(cm_reader_box(r, a, &box, NULL, got, &counts, NULL), CM_OK);
            check_elements(m, &box, got);
            predict(m, &box, &want);
            assert_true(cm_chunk_cache_nbytes(cache) <= 6000);
        }
        assert_int_equal(counts.chunks, want.chunks);
        assert_int_equal(counts.missing_nbytes, want.missing_nbytes);
        assert_int_equal(counts.cache_hits + counts.cache_misses, counts.chunks);
        assert_int_equal(counts.decoded, counts.cache_misses - counts.missing_chunks);
        free(got);
        cm_reader_free(r);
        cm_chunk_cache_free(cache);
        cm_array_free(a);
        cm_store_free(store);
    }
}

typedef struct crowd {
    const made *m;
    cm_array *array;
    cm_chunk_cache *cache;
    cm_load_counts counts[4];
    bool wrong[4];
} crowd;

static void read_all(void *context, unsigned worker)
{
    crowd *c = context;
    cm_reader *r = new_reader(c->cache);
    cm_box box = {.rank = c->m->rank};
    memcpy(box.shape, c->m->shape, sizeof(box.shape));
    int32_t *got = malloc(cm_box_nelem(&box) * 4);
    for (int turn = 0; turn < 5; turn++) {
        c->wrong[worker] |=
            cm_reader_box(r, c->array, &box, NULL, got, &c->counts[worker], NULL) != CM_OK;
        for (uint64_t i = 0; i < cm_box_nelem(&box); i++)
            c->wrong[worker] |= got[i] != made_value_in(c->m, &box, i);
    }
    free(got);
    cm_reader_free(r);
}

/*
 * Threads that read the same: with room for all, each chunk is decoded once; with little, all
 * is right.
 */
static void crowds(void **state)
{
    (void)state;
    static const size_t limits[] = {1 << 20, 3000};
    made m = {.rank = 1, .shape = {600}, .chunk = {7}, .codec = CM_CODEC_ZSTD};
    for (size_t k = 0; k < 2; k++) {
        cm_store *store;
        assert_int_equal(cm_store_open_memory(&store, NULL), CM_OK);
        made_write(store, &m, 1);
        crowd c = {.m = &m, .array = made_open(store, "a")};
        assert_int_equal(cm_chunk_cache_create(limits[k], CM_CACHE_FIFO, &c.cache, NULL), CM_OK);
        cm_threads_run(4, read_all, &c);
        uint64_t decoded = 0, misses = 0;
        for (int i = 0; i < 4; i++) {
            assert_false(c.wrong[i]);
            assert_int_equal(c.counts[i].chunks, 5 * 86);
            decoded += c.counts[i].decoded;
            misses += c.counts[i].cache_misses;
        }
        assert_int_equal(decoded, misses);
        if (k == 0)
            assert_int_equal(decoded, 86);
        assert_true(cm_chunk_cache_nbytes(c.cache) <= limits[k]);
        cm_chunk_cache_free(c.cache);
        cm_array_free(c.array);
        cm_store_free(store);
    }
}

static void stages_fill_the_call(void **state)
{
    (void)state;
    made m = {.rank = 1, .shape = {64}, .chunk = {8}, .codec = CM_CODEC_ZSTD};
    cm_store *store;
    assert_int_equal(cm_store_open_memory(&store, NULL), CM_OK);
    made_write(store, &m, 1);
    cm_array *a = made_open(store, "a");
    cm_delay *delay = NULL;
    cm_delay_model model = {.latency = 0.005, .bandwidth = INFINITY, .concurrency = 1};
    assert_int_equal(cm_delay_create(&model, &delay, NULL), CM_OK);
    cm_reader_options options = {.delay = delay};
    cm_reader *r = NULL;
    assert_int_equal(cm_reader_create(&options, &r, NULL), CM_OK);
    cm_box box = {.rank = 1, .start = {4}, .shape = {30}};
    int32_t got[64];
    cm_load_counts counts = {0};
    assert_int_equal(cm_reader_box(r, a, &box, NULL, got, &counts, NULL), CM_OK);
    assert_int_equal(counts.requests, 5);
    assert_true(counts.stage_ns[CM_LOAD_STORAGE] >= 25000000);
    assert_int_equal(counts.stage_calls[CM_LOAD_STORAGE], 1);
    assert_int_equal(counts.stage_calls[CM_LOAD_DECODE], 5);
    cm_reader_free(r);
    cm_delay_free(delay);
    cm_array_free(a);
    cm_store_free(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(boxes_and_counts),
        cmocka_unit_test(shard_index_is_a_request),
        cmocka_unit_test(fed),
        cmocka_unit_test(single_chunks),
        cmocka_unit_test(corrupt_chunks),
        cmocka_unit_test(unreadable_chunk),
        cmocka_unit_test(refusals),
        cmocka_unit_test(sliceable),
        cmocka_unit_test(groups),
        cmocka_unit_test(cached),
        cmocka_unit_test(crowds),
        cmocka_unit_test(stages_fill_the_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
