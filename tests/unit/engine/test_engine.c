/*
 * The engine moves arrays whose elements are their own index, from a source in
 * memory to a store in memory, over random geometries, and everything is read
 * back.
 */

#include "../unit.h"
#include "engine/engine.h"
#include "engine/plan.h"
#include "format/zarr/open.h"
#include "format/zarr/writer.h"
#include "store/impl.h"

/* ---- a source in memory ---- */

typedef struct source {
    cm_array array; /* first */
    _Atomic uint64_t reads;
    uint64_t fail_at;    /* fetching this chunk fails; UINT64_MAX: none */
    unsigned absent_of;  /* every absent_of-th chunk was never written; 0: all were */
    unsigned masked_of;  /* every masked_of-th chunk has a filter mask; 0: none */
    bool absent_is_told; /* only by reading */
    size_t gap;          /* bytes between chunks that are read together, */
    bool backwards;      /* which lie the other way round in memory */
    cm_monitor *stop_at; /* canceled by the third read; or NULL */
} source;

/* The arrays that were read, in order, by one thread. */
typedef struct read_log {
    const cm_array *of[64];
    size_t n;
} read_log;

static read_log *reads_of;

enum {
    FILL = -7
};

static int32_t value_at(const cm_array *a, const uint64_t *at)
{
    const source *s = (const source *)a;
    uint64_t coord[CM_MAX_RANK], index = 0;
    for (unsigned j = 0; j < a->rank; j++) {
        index = index * a->shape[j] + at[j];
        coord[j] = at[j] / a->grid.chunk[j];
    }
    bool absent =
        a->chunked && s->absent_of > 0 && cm_grid_number(&a->grid, coord) % s->absent_of == 0;
    return absent ? FILL : (int32_t)index;
}

static void fill_box(const cm_array *a, const uint64_t *start, const uint64_t *shape, int32_t *dst)
{
    uint64_t n = 1, at[CM_MAX_RANK];
    for (unsigned j = 0; j < a->rank; j++)
        n *= shape[j];
    for (uint64_t i = 0; i < n; i++) {
        uint64_t rest = i;
        bool inside = true;
        for (unsigned j = a->rank; j-- > 0;) {
            at[j] = start[j] + rest % shape[j];
            rest /= shape[j];
            inside = inside && at[j] < a->shape[j];
        }
        dst[i] = inside ? value_at(a, at) : -1;
    }
}

static bool absent(const source *s, uint64_t number)
{
    return s->absent_of > 0 && number % s->absent_of == 0;
}

static bool is_absent(cm_array *a, uint64_t number)
{
    const source *s = (const source *)a;
    return !s->absent_is_told && absent(s, number);
}

static int fetch(cm_array *a, uint64_t number, cm_buf *buf, cm_fetch *out, cm_error *err)
{
    source *s = (source *)a;
    uint64_t coord[CM_MAX_RANK], start[CM_MAX_RANK];
    if (++s->reads == 3 && s->stop_at != NULL)
        cm_monitor_cancel(s->stop_at);
    if (reads_of != NULL && reads_of->n < 64)
        reads_of->of[reads_of->n++] = a;
    if (number == s->fail_at)
        return cm_fail(err, CM_EIO, "chunk %d cannot be read", (int)number);
    out->present = !absent(s, number);
    out->skip = s->masked_of > 0 && number % s->masked_of == 0;
    cm_grid_coord(&a->grid, number, coord);
    for (unsigned j = 0; j < a->rank; j++)
        start[j] = coord[j] * a->grid.chunk[j];
    int rc = cm_buf_resize(buf, a->grid.chunk_nelem * 4, err);
    if (rc == CM_OK)
        fill_box(a, start, a->grid.chunk, (int32_t *)buf->data);
    return rc;
}

static int fetch_many(cm_array *a, cm_fetch_many *many, cm_error *err)
{
    source *s = (source *)a;
    size_t nbytes = a->grid.chunk_nelem * 4, each = nbytes + s->gap;
    cm_buf one = {0};
    int rc = cm_buf_resize(&many->buf, many->n * each, err);
    for (size_t i = 0; i < many->n && rc == CM_OK; i++) {
        cm_fetch_item *item = &many->item[i];
        cm_fetch got = {0};
        size_t at = s->backwards ? many->n - 1 - i : i;
        rc = fetch(a, item->number, &one, &got, err);
        memset(many->buf.data + at * each, 0x5a, each);
        if (rc == CM_OK)
            memcpy(many->buf.data + at * each, one.data, nbytes);
        *item = (cm_fetch_item){.number = item->number,
                                .present = got.present,
                                .skip = got.skip,
                                .data = many->buf.data + at * each,
                                .nbytes = nbytes};
    }
    cm_buf_release(&one);
    return rc;
}

static int read_box(cm_array *a, const cm_box *box, void *dst, cm_error *err)
{
    (void)err;
    ((source *)a)->reads++;
    fill_box(a, box->start, box->shape, dst);
    return CM_OK;
}

static const cm_array_ops chunk_ops = {.fetch = fetch, .is_absent = is_absent};
static const cm_array_ops many_ops = {
    .fetch = fetch, .fetch_many = fetch_many, .is_absent = is_absent};
static const cm_array_ops box_ops = {.read_box = read_box};
static const int32_t fill_value = FILL;

static void source_init(source *s, unsigned rank, const uint64_t *shape, const uint64_t *chunk)
{
    memset(s, 0, sizeof(*s));
    cm_array *a = &s->array;
    s->fail_at = UINT64_MAX;
    a->name = (char *)"x";
    a->dtype = cm_dtype_make(CM_KIND_INT, 4);
    a->rank = rank;
    memcpy(a->shape, shape, rank * sizeof(shape[0]));
    a->fill = (uint8_t *)&fill_value;
    a->chunked = chunk != NULL;
    a->ops = chunk == NULL ? &box_ops : &chunk_ops;
    uint64_t whole[CM_MAX_RANK];
    for (unsigned j = 0; j < rank; j++)
        whole[j] = shape[j] > 0 ? shape[j] : 1;
    assert_int_equal(cm_grid_init(&a->grid, rank, shape, chunk == NULL ? whole : chunk, NULL),
                     CM_OK);
    cm_codec_spec bytes = {.id = CM_CODEC_BYTES};
    assert_int_equal(cm_chain_create(&bytes, 1, &a->dtype, rank, a->grid.chunk, &a->chain, NULL),
                     CM_OK);
}

/* ---- one transfer, from the source to a store and back ---- */

typedef struct run {
    source src;
    cm_store *store;
    cm_zarr_meta meta;
    cm_zarr_writer *writer;
    cm_transfer transfer;
    cm_engine_stats stats;
    unsigned ahead; /* the target sends: so many chunks of a worker */
    unsigned rounds, together;
    uint64_t fail_late; /* of them, the one that is not taken in the end */
} run;

static void run_init(run *r, unsigned rank, const uint64_t *shape, const uint64_t *source_chunk,
                     const uint64_t *target_chunk)
{
    memset(r, 0, sizeof(*r));
    r->fail_late = UINT64_MAX;
    source_init(&r->src, rank, shape, source_chunk);
    assert_int_equal(cm_store_open_memory(&r->store, NULL), CM_OK);
    cm_zarr_meta *m = &r->meta;
    m->zarr_format = 3;
    m->attrs = cm_json_object();
    m->dtype = r->src.array.dtype;
    m->rank = rank;
    m->separator = '/';
    m->has_fill = true;
    m->fill = (uint8_t *)&fill_value;
    for (unsigned j = 0; j < rank; j++) {
        m->shape[j] = shape[j];
        m->chunk[j] = target_chunk[j];
        r->transfer.step[j] = 1;
    }
    cm_codec_spec codecs[2] = {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_ZSTD, .level = 1}};
    assert_int_equal(cm_codec_specs_copy(codecs, 2, &m->codecs, NULL), CM_OK);
    m->ncodecs = 2;
    r->transfer.source = &r->src.array;
    r->transfer.target_type = m->dtype;
    r->transfer.target_fill = m->fill;
    r->transfer.skip_empty = r->transfer.absent_is_empty = true;
}

/* Shards of up to three chunks along each dimension; chunks keep the codecs that they have. */
static void run_in_shards(run *r)
{
    cm_zarr_meta *m = &r->meta;
    cm_codec_spec index[2] = {{.id = CM_CODEC_BYTES}, {.id = CM_CODEC_CRC32C}}, *inner = m->codecs;
    cm_shard_spec shard = {.rank = m->rank,
                           .codecs = inner,
                           .ncodecs = m->ncodecs,
                           .index_codecs = index,
                           .nindex_codecs = 2,
                           .index_at_start = rand() % 2 == 0};
    for (unsigned j = 0; j < m->rank; j++) {
        shard.chunk[j] = m->chunk[j];
        m->chunk[j] *= 1 + (uint64_t)(rand() % 3);
    }
    cm_codec_spec sharding = {.id = CM_CODEC_SHARDING, .shard = &shard};
    assert_int_equal(cm_codec_specs_copy(&sharding, 1, &m->codecs, NULL), CM_OK);
    cm_codec_specs_free(inner, m->ncodecs);
    m->ncodecs = 1;
}

/* The subset start + step * i, COUNT elements of it. */
static void run_subset(run *r, unsigned j, uint64_t start, uint64_t step, uint64_t count)
{
    r->transfer.start[j] = start;
    r->transfer.step[j] = step;
    r->meta.shape[j] = count;
}

/* Blocks and order for at most MAX_SLOTS target chunks; one read takes about PIECE_NBYTES. */
static void plan(cm_transfer *t, uint64_t max_slots, size_t piece_nbytes)
{
    const cm_grid *grid = &t->target->grid;
    cm_sweep_request r = {
        .rank = grid->rank,
        .sliceable = cm_transfer_is_sliceable(t),
        .itemsize = t->source->dtype.nbytes,
        .piece_nbytes = piece_nbytes,
        .max_slots = max_slots,
    };
    memcpy(r.shape, grid->shape, sizeof(r.shape));
    memcpy(r.target, grid->chunk, sizeof(r.target));
    memcpy(r.source, t->source->grid.chunk, sizeof(r.source));
    memcpy(r.cuts, t->cuts, sizeof(r.cuts));
    memcpy(r.start, t->start, sizeof(r.start));
    memcpy(r.step, t->step, sizeof(r.step));
    cm_sweep sweep;
    cm_sweep_plan(&r, &sweep);
    cm_transfer_adopt(t, &sweep);
    cm_worker_need need = {0};
    cm_transfer_worker_need(t, t->sweep.piece_nelem * r.itemsize, &need);
    t->worker_nbytes = cm_worker_need_nbytes(&need);
}

/* ---- a target that looks at what it was given when it is waited for ---- */

typedef struct late {
    cm_target base; /* first */
    cm_target *real;
    _Atomic uint64_t nbegun, nended;
    uint64_t fail_at; /* this chunk, in the end; UINT64_MAX: none */
} late;

static int late_put(cm_target *t, const cm_put *put, size_t n, cm_error *err)
{
    (void)t, (void)put, (void)n;
    return cm_fail(err, CM_EINTERNAL, "it sends, so nobody puts");
}

static int late_omit(cm_target *t, uint64_t number, cm_error *err)
{
    return cm_target_skip(((late *)t)->real, number, err);
}

static bool late_is_delivered(const cm_target *t, uint64_t number)
{
    return cm_target_is_delivered(((const late *)t)->real, number);
}

static int late_begin(cm_target *t, const cm_put *put, cm_sent *out, cm_error *err)
{
    (void)err;
    late *l = (late *)t;
    cm_put *kept = malloc(sizeof(*kept));
    *kept = *put;
    *out = (cm_sent){put->number, put->nbytes, put->data == NULL, kept};
    atomic_fetch_add(&l->nbegun, 1);
    return CM_OK;
}

static bool late_is_done(const cm_sent *sent)
{
    return sent->number % 3 == 0;
}

static int late_end(cm_target *t, const cm_sent *sent, cm_error *err)
{
    late *l = (late *)t;
    cm_put put = *(cm_put *)sent->state;
    free(sent->state);
    atomic_fetch_add(&l->nended, 1);
    if (sent->number == l->fail_at)
        return cm_fail(err, CM_EIO, "object %llu is not taken", (unsigned long long)sent->number);
    return put.data == NULL ? cm_target_skip(l->real, put.number, err)
                            : cm_target_put(l->real, &put, 1, err);
}

static const cm_target_ops late_ops = {
    late_put, late_omit, late_is_delivered, late_begin, late_is_done, late_end, NULL};

static void make_late(run *r, late *l)
{
    *l = (late){.base = *r->transfer.target, .real = r->transfer.target, .fail_at = r->fail_late};
    l->base.ops = &late_ops;
    l->base.sends = true;
    r->transfer.target = &l->base;
}

static int run_go(run *r, unsigned nthreads, uint64_t max_slots, cm_monitor *monitor, cm_error *err)
{
    if (r->writer == NULL)
        assert_int_equal(cm_zarr_writer_create(r->store, "x", &r->meta, &r->writer, err), CM_OK);
    r->transfer.target = cm_zarr_writer_target(r->writer);
    if (cm_zarr_writer_grid(r->writer)->nchunks > 0)
        plan(&r->transfer, max_slots, 64);
    if (r->rounds > 1 && !cm_transfer_is_direct(&r->transfer))
        (void)cm_sweep_split(&r->transfer.sweep, 1, 1);
    r->transfer.together = r->together;
    late l;
    if (r->ahead > 0 && r->transfer.target->shard_nbytes == 0)
        make_late(r, &l);
    cm_engine_options o = {.nthreads = nthreads,
                           .slots_nbytes = r->transfer.sweep.slots * r->transfer.slot_nbytes,
                           .ahead = r->ahead,
                           .rounds = r->rounds,
                           .monitor = monitor};
    int rc = cm_engine_run(&r->transfer, 1, &o, &r->stats, err);
    if (r->transfer.target == &l.base)
        assert_int_equal(l.nended, l.nbegun);
    r->transfer.target = cm_zarr_writer_target(r->writer);
    return rc == CM_OK ? cm_zarr_writer_finish(r->writer, err) : rc;
}

static void run_release(run *r)
{
    cm_zarr_writer_free(r->writer);
    cm_store_free(r->store);
    cm_codec_specs_free(r->meta.codecs, r->meta.ncodecs);
    cm_json_free(r->meta.attrs);
    cm_chain_free(r->src.array.chain);
}

/* Every element of the store is the source's. */
static void check_store(run *r)
{
    cm_zarr_entry entry = {"x", &r->meta};
    cm_zarr_tree tree;
    cm_array *a = NULL;
    cm_error err = {0};
    cm_box box = {.rank = r->meta.rank};
    if (cm_zarr_hierarchy_write(r->store, 3, &entry, 1, true, &err) != CM_OK ||
        cm_zarr_open(r->store, &tree, &err) != CM_OK ||
        cm_zarr_array_open(&tree, cm_zarr_find(&tree, "x"), 1 << 16, &a, &err) != CM_OK)
        fail_msg("%s", err.text);
    cm_codec_ctx *ctx = cm_codec_ctx_create(NULL);
    memcpy(box.shape, r->meta.shape, sizeof(box.shape));
    uint64_t n = cm_box_nelem(&box), at[CM_MAX_RANK];
    int32_t *got = malloc(n * 4 + 4);
    if (cm_array_read(a, ctx, &box, got, &err) != CM_OK)
        fail_msg("%s", err.text);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t rest = i;
        for (unsigned j = box.rank; j-- > 0;) {
            at[j] = r->transfer.start[j] + rest % box.shape[j] * r->transfer.step[j];
            rest /= box.shape[j];
        }
        assert_int_equal(got[i], value_at(&r->src.array, at));
    }
    free(got);
    cm_codec_ctx_free(ctx);
    cm_array_free(a);
    cm_zarr_tree_release(&tree);
}

static void random_run(run *r, unsigned *max_slots)
{
    uint64_t shape[4], from[4], to[4];
    unsigned rank = (unsigned)(rand() % 5);
    for (unsigned j = 0; j < rank; j++) {
        shape[j] = (uint64_t)(rand() % 13) + (rand() % 20 > 0);
        from[j] = 1 + (uint64_t)(rand() % 15);
        to[j] = 1 + (uint64_t)(rand() % 15);
    }
    bool chunked = rand() % 4 > 0, same = chunked && rand() % 3 == 0;
    run_init(r, rank, shape, chunked ? from : NULL, same ? from : to);
    r->src.absent_of = rand() % 3 == 0 ? 1 + (unsigned)(rand() % 3) : 0;
    if (chunked && rand() % 2 == 0) {
        r->src.array.ops = &many_ops;
        r->src.gap = (size_t)(rand() % 3) * 3;
        r->src.backwards = rand() % 2 == 0;
    }
    r->src.absent_is_told = rand() % 2 == 0;
    r->transfer.absent_is_empty = rand() % 2 == 0;
    if (same && rand() % 2 == 0) {
        r->transfer.pass = CM_PASS_BYTES;
        r->src.masked_of = (unsigned)(rand() % 4);
        /* The source's: bytes alone; zstd owns nothing. */
        r->meta.ncodecs = 1;
    }
    if (rand() % 3 == 0)
        run_in_shards(r);
    for (unsigned j = 0; j < rank && !same; j++) {
        if (rand() % 4 > 0 || shape[j] < 3)
            continue;
        uint64_t start = (uint64_t)(rand() % 3), step = 1 + (uint64_t)(rand() % 4);
        run_subset(r, j, start, step, (shape[j] - start - 1) / step + 1);
    }
    r->transfer.clips = rand() % 2 == 0;
    *max_slots = rand() % 2 ? 0 : 1 + (unsigned)(rand() % 5);
}

static void test_random_geometries(void **state)
{
    (void)state;
    srand(11);
    for (int trial = 0; trial < 1500; trial++) {
        run r;
        unsigned max_slots;
        cm_error err = {0};
        random_run(&r, &max_slots);
        r.ahead = rand() % 2 ? 0 : 1 + (unsigned)(rand() % 4);
        r.rounds = rand() % 2 ? 0 : (unsigned)(rand() % 6);
        r.together = (unsigned)(rand() % 4);
        unsigned nthreads = 1 + (unsigned)(trial % 4);
        if (run_go(&r, nthreads, max_slots, NULL, &err) != CM_OK)
            fail_msg("trial %d: %s", trial, err.text);
        check_store(&r);
        if (r.src.absent_of == 0)
            assert_int_equal(r.stats.pieces, r.src.reads);
        if (r.src.absent_of == 0 && cm_zarr_writer_grid(r.writer)->nchunks > 0)
            assert_int_equal(r.stats.pieces, r.transfer.sweep.total_pieces);
        run_release(&r);
    }
}

/* Every subset of six elements, between chunks of all lengths up to four: edges meet everywhere. */
static void test_every_subset_of_a_row(void **state)
{
    (void)state;
    const uint64_t n = 6;
    for (unsigned i = 0; i < 6 * 6 * 4 * 4 * 2; i++) {
        const uint64_t start = i % 6, count = i / 6 % 6 + 1;
        const uint64_t from = i / 36 % 4 + 1, to = i / 144 % 4 + 1;
        run r;
        cm_error err = {0};
        if (start + count > n)
            continue;
        run_init(&r, 1, &n, &from, &to);
        run_subset(&r, 0, start, 1, count);
        r.transfer.clips = i / 576 > 0;
        if (run_go(&r, 1, 0, NULL, &err) != CM_OK)
            fail_msg("%u: %s", i, err.text);
        check_store(&r);
        run_release(&r);
    }
}

/*
 * Of three arrays a third each round: one whose chunks stay, one in blocks of two target chunks, of
 * four source chunks each, and one that cannot be parted.
 */
static void test_rounds(void **state)
{
    (void)state;
    const uint64_t n[3] = {12, 24, 3}, from[3] = {1, 1, 1}, to[3] = {1, 2, 3};
    run r[3];
    cm_transfer list[3];
    read_log log = {.n = 0};
    cm_engine_stats stats;
    cm_error err = {0};
    size_t slots = 0, at = 0;
    for (unsigned i = 0; i < 3; i++) {
        run_init(&r[i], 1, &n[i], &from[i], &to[i]);
        assert_int_equal(cm_zarr_writer_create(r[i].store, "x", &r[i].meta, &r[i].writer, &err),
                         CM_OK);
        r[i].transfer.target = cm_zarr_writer_target(r[i].writer);
        plan(&r[i].transfer, 0, 64);
        r[i].transfer.together = i < 2;
        if (i == 1)
            assert_true(cm_sweep_split(&r[i].transfer.sweep, 2, 1));
        list[i] = r[i].transfer;
        slots += list[i].sweep.slots * list[i].slot_nbytes;
    }
    const cm_engine_options o = {.nthreads = 1, .slots_nbytes = slots, .rounds = 3};
    reads_of = &log;
    assert_int_equal(cm_engine_run(list, 3, &o, &stats, &err), CM_OK);
    reads_of = NULL;
    assert_int_equal(log.n, 12 + 24 + 3);
    for (unsigned round = 0; round < 3; round++) {
        const unsigned each[3] = {4, 8, round == 0 ? 3 : 0};
        for (unsigned i = 0; i < 3; i++)
            for (unsigned k = 0; k < each[i]; k++)
                assert_ptr_equal(log.of[at++], &r[i].src.array);
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(cm_zarr_writer_finish(r[i].writer, &err), CM_OK);
        check_store(&r[i]);
        run_release(&r[i]);
    }
}

static void test_nothing_is_read_for_chunks_that_were_never_written(void **state)
{
    (void)state;
    run r;
    cm_error err = {0};
    run_init(&r, 2, (uint64_t[]){20, 20}, (uint64_t[]){5, 5}, (uint64_t[]){10, 10});
    r.src.absent_of = 1;
    assert_int_equal(run_go(&r, 2, 0, NULL, &err), CM_OK);
    assert_int_equal(r.src.reads, 0);
    assert_int_equal(cm_zarr_writer_counts(r.writer).nskipped, 4);
    assert_int_equal(cm_zarr_writer_counts(r.writer).nobjects, 0);
    check_store(&r);
    run_release(&r);
}

static void test_first_error_stops_all(void **state)
{
    (void)state;
    for (unsigned nthreads = 1; nthreads <= 4; nthreads++) {
        run r;
        cm_error err = {0};
        run_init(&r, 2, (uint64_t[]){40, 40}, (uint64_t[]){4, 4}, (uint64_t[]){8, 40});
        r.src.fail_at = 17;
        assert_int_equal(run_go(&r, nthreads, 0, NULL, &err), CM_EIO);
        assert_non_null(strstr(err.text, "chunk 17 cannot be read"));
        assert_true(r.src.reads < 100);
        run_release(&r);
    }
}

static void test_error_of_what_is_on_its_way_stops_all(void **state)
{
    (void)state;
    for (unsigned nthreads = 1; nthreads <= 4; nthreads++) {
        run r;
        cm_error err = {0};
        run_init(&r, 2, (uint64_t[]){40, 40}, (uint64_t[]){5, 7}, (uint64_t[]){4, 4});
        r.ahead = 3;
        r.fail_late = 50;
        assert_int_equal(run_go(&r, nthreads, 0, NULL, &err), CM_EIO);
        assert_string_equal(err.text, "object 50 is not taken");
        run_release(&r);
    }
}

static void test_canceled_between_chunks(void **state)
{
    (void)state;
    run r;
    cm_error err = {0};
    cm_monitor *monitor = cm_monitor_create(NULL);
    run_init(&r, 1, (uint64_t[]){100000}, (uint64_t[]){10}, (uint64_t[]){10});
    r.src.stop_at = monitor;
    assert_int_equal(run_go(&r, 2, 0, monitor, &err), CM_ECANCELED);
    assert_true(r.src.reads < 1000); /* of 10,000: tiny chunks are read in batches */
    run_release(&r);
    cm_monitor_free(monitor);
}

static void test_what_is_delivered_is_left_alone(void **state)
{
    (void)state;
    run r;
    cm_error err = {0};
    cm_monitor *monitor = cm_monitor_create(NULL);
    run_init(&r, 1, (uint64_t[]){1000}, (uint64_t[]){10}, (uint64_t[]){20});
    r.src.stop_at = monitor;
    assert_int_equal(run_go(&r, 1, 0, monitor, &err), CM_ECANCELED);
    uint64_t before = r.src.reads, done = cm_zarr_writer_counts(r.writer).nchunks;
    assert_true(done >= 1);
    r.src.stop_at = NULL;
    assert_int_equal(run_go(&r, 1, 0, NULL, &err), CM_OK);
    assert_int_equal(r.src.reads - before, 2 * (50 - done));
    check_store(&r);
    run_release(&r);
    cm_monitor_free(monitor);
}

/* 3,000 chunks of 8 bytes go into 3 shards of a store in memory with few writes. */
static void test_tiny_chunks_are_put_together(void **state)
{
    const cm_pass passes[] = {CM_PASS_BYTES, CM_PASS_NOTHING};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        run r;
        cm_error err = {0};
        run_init(&r, 1, (uint64_t[]){6000}, (uint64_t[]){2}, (uint64_t[]){2});
        r.meta.ncodecs = 1;
        run_in_shards(&r);
        r.meta.chunk[0] = 2000;
        r.transfer.pass = passes[i];
        assert_int_equal(run_go(&r, 2, 0, NULL, &err), CM_OK);
        assert_int_equal(r.src.reads, 3000);
        assert_true(r.stats.stage_calls[CM_STAGE_WRITE] <= 60);
        check_store(&r);
        run_release(&r);
    }
}

/* A store that knows how many of its objects are being written. */
static const cm_store_write_ops *plain;
static atomic_int nopen, most_open;

static int create_counted(cm_store *store, const char *key, const cm_object_form *form,
                          cm_object_writer **out, cm_error *err)
{
    int n = atomic_fetch_add(&nopen, 1) + 1, most = atomic_load(&most_open);
    while (n > most && !atomic_compare_exchange_weak(&most_open, &most, n))
        continue;
    return plain->create(store, key, form, out, err);
}

static int commit_counted(cm_object_writer *writer, cm_error *err)
{
    atomic_fetch_sub(&nopen, 1);
    return plain->commit(writer, err);
}

/* No more than the plan leaves room for. */
static void test_each_worker_has_a_shard_of_its_own(void **state)
{
    (void)state;
    for (unsigned nthreads = 1; nthreads <= 4; nthreads++) {
        run r;
        cm_error err = {0};
        run_init(&r, 2, (uint64_t[]){90, 70}, (uint64_t[]){2, 5}, (uint64_t[]){2, 5});
        r.meta.ncodecs = 1;
        run_in_shards(&r);
        r.meta.chunk[0] = 6;
        r.meta.chunk[1] = 20; /* 15 x 4 shards */
        r.transfer.pass = CM_PASS_BYTES;
        const cm_store_ops *ops = r.store->ops;
        plain = ops->write;
        cm_store_write_ops write = *plain;
        write.create = create_counted;
        write.commit = commit_counted;
        cm_store_ops counted = *ops;
        counted.write = &write;
        r.store->ops = &counted;
        atomic_store(&most_open, 0);
        assert_int_equal(run_go(&r, nthreads, 0, NULL, &err), CM_OK);
        assert_int_equal(atomic_load(&nopen), 0);
        assert_in_range(atomic_load(&most_open), 1, nthreads);
        assert_int_equal(cm_transfer_open_shards(&r.transfer, &r.transfer.sweep, nthreads),
                         nthreads);
        assert_int_equal(cm_transfer_open_shards(&r.transfer, &r.transfer.sweep, 100), 60);
        r.store->ops = ops;
        check_store(&r);
        run_release(&r);
    }
}

static void test_stored_bytes_pass_only_between_equal_chunks(void **state)
{
    (void)state;
    run r;
    cm_error err = {0};
    run_init(&r, 1, (uint64_t[]){100}, (uint64_t[]){10}, (uint64_t[]){20});
    r.transfer.pass = CM_PASS_BYTES;
    assert_int_equal(run_go(&r, 1, 0, NULL, &err), CM_EINTERNAL);
    assert_int_equal(r.src.reads, 0);
    run_release(&r);
}

static void test_stored_bytes_pass_through(void **state)
{
    (void)state;
    run r;
    cm_error err = {0};
    run_init(&r, 2, (uint64_t[]){30, 30}, (uint64_t[]){7, 9}, (uint64_t[]){7, 9});
    r.meta.ncodecs = 1; /* the source's: bytes alone */
    r.transfer.pass = CM_PASS_BYTES;
    r.src.absent_of = 4;
    assert_int_equal(run_go(&r, 3, 0, NULL, &err), CM_OK);
    assert_int_equal(r.stats.stage_calls[CM_STAGE_DECODE], 0);
    assert_int_equal(r.stats.passed, r.src.reads);
    r.meta.ncodecs = 1;
    check_store(&r);
    r.meta.ncodecs = 2;
    run_release(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_geometries),
        cmocka_unit_test(test_rounds),
        cmocka_unit_test(test_every_subset_of_a_row),
        cmocka_unit_test(test_nothing_is_read_for_chunks_that_were_never_written),
        cmocka_unit_test(test_first_error_stops_all),
        cmocka_unit_test(test_error_of_what_is_on_its_way_stops_all),
        cmocka_unit_test(test_canceled_between_chunks),
        cmocka_unit_test(test_what_is_delivered_is_left_alone),
        cmocka_unit_test(test_stored_bytes_pass_through),
        cmocka_unit_test(test_tiny_chunks_are_put_together),
        cmocka_unit_test(test_each_worker_has_a_shard_of_its_own),
        cmocka_unit_test(test_stored_bytes_pass_only_between_equal_chunks),
    };
    return cmocka_run_group_tests_name("engine", tests, NULL, NULL);
}
