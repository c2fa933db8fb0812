/*
 * Batches of the loader that a device decodes: a fake driver and fakes of nvCOMP.  What arrives is
 * compared with the batches that the host decodes: the same samples, byte by byte; what fails there
 * fails here.
 */
#include "../fixtures/decode_fixture.h"

#include "gpu/cuda_abi.h"
#include "load/loader_impl.h"

static const char *const variables[] = {"v", "u", "s", "holes", "plain"};
static const char *const loaders[] = {"map", "planned"};
static struct cm_readbench_hook hook = {.device = &fake_device};
static fake_cuda_reset_fn *reset;

static cm_loader_options some_options(bool device)
{
    cm_loader_options o;
    cm_loader_options_init(&o, sizeof o);
    o.variable = variables;
    o.nvariables = NFIELDS;
    o.sample = "t=2,y=6,x=8";
    o.batch = BATCH;
    o.batches = 12;
    o.workers = 3;
    o.worker_threads = 1;
    o.window = 0;
    o.device = device ? "cuda" : NULL;
    o.decode = device ? "device" : "host";
    o.nvcomp = device ? libraries[0] : NULL;
    return o;
}

static cm_loader *open_loader(const char *path, const cm_loader_options *o)
{
    cm_loader *l;
    OK(cm_loader_open_with(path, o, &hook, &l, err));
    return l;
}

static void close_both(cm_loader *const *l)
{
    cm_loader_close(l[0]);
    cm_loader_close(l[1]);
    check_given_back();
}

static int begin_anew(void **state)
{
    (void)state;
    void *library = dlopen(driver, RTLD_NOW | RTLD_LOCAL);
    *(void **)&reset = dlsym(library, "fake_cuda_reset");
    assert_non_null(reset);
    forget(0);
    forget(1);
    reset();
    return 0;
}

/* One batch of each, which are the same or have both failed, at the same batch. */
typedef struct pair {
    uint64_t nbatches, nfailed;
    bool ended;
    char why[1024]; /* the first failure, of the device */
} pair;

static void compare_next(cm_loader *host, cm_loader *device, pair *p)
{
    cm_batch *a, *b;
    cm_error want = {0}, got = {0};
    const int rc = cm_loader_next(host, CM_LOADER_FOR_EVER, &a, &want);
    const int other = cm_loader_next(device, CM_LOADER_FOR_EVER, &b, &got);
    if ((rc == CM_OK) != (other == CM_OK) || (a == NULL) != (b == NULL))
        fail_msg("the host's batch: %d %s; the device's: %d %s", rc, want.text, other, got.text);
    p->nfailed += rc != CM_OK;
    p->ended = rc == CM_OK && a == NULL;
    if (rc != CM_OK && p->why[0] == '\0')
        snprintf(p->why, sizeof p->why, "%s", got.text);
    if (a == NULL)
        return;
    cm_batch_info x = {.size = sizeof x}, y = {.size = sizeof y};
    OK(cm_batch_describe(a, &x, err));
    OK(cm_batch_describe(b, &y, err));
    assert_true(x.number == y.number && x.nsamples == y.nsamples && x.epoch == y.epoch);
    assert_memory_equal(x.sample, y.sample, x.nsamples * sizeof *x.sample);
    assert_memory_equal(x.index, y.index, x.nsamples * 3 * sizeof *x.index);
    for (size_t i = 0; cm_batch_tensor(a, i) != NULL; i++) {
        const cm_tensor *t = cm_batch_tensor(a, i), *u = cm_batch_tensor(b, i);
        assert_string_equal(t->variable->name, u->variable->name);
        assert_string_equal(t->variable->type, u->variable->type);
        assert_int_equal(t->nbytes, u->nbytes);
        assert_int_equal(u->device_type, 2);
        if (memcmp(t->data, u->data, t->nbytes) != 0)
            fail_msg("batch %d of epoch %d: %s differs", (int)x.number, (int)x.epoch,
                     t->variable->name);
    }
    cm_batch_release(a);
    cm_batch_release(b);
    p->nbatches++;
}

static void compare_rest(cm_loader *host, cm_loader *device, pair *p)
{
    for (p->ended = false; !p->ended;)
        compare_next(host, device, p);
}

static void compare_epochs(cm_loader *host, cm_loader *device, uint64_t nepochs, pair *p)
{
    for (uint64_t epoch = 0; epoch < nepochs; epoch++) {
        OK(cm_loader_begin(host, epoch, err));
        OK(cm_loader_begin(device, epoch, err));
        compare_rest(host, device, p);
    }
}

/* ---- what arrives --------------------------------------------------------------------------- */

static void test_every_codec(void **state)
{
    static const char *const orders[] = {"random", "strided:3", "chunks", "sequential"};
    static const char *const samples[] = {"t=2,y=6,x=8", "t=1,y=16,x=18", "t=4,y=5,x=7"};
    (void)state;
    for (unsigned i = 0; i < NCHAINS * 6; i += stride(7)) {
        cm_loader_options o[2] = {some_options(false), some_options(true)};
        const unsigned which = i / NCHAINS % 2;
        cm_loader *l[2];
        pair p = {0};
        for (int k = 0; k < 2; k++) {
            o[k].loader = loaders[(i + i / NCHAINS) % 2];
            o[k].order = orders[i % 4];
            o[k].sample = samples[i % 3];
            o[k].sync = i % 5 == 0;
            o[k].workers = o[k].sync ? 0 : 1 + i % 3;
            o[k].seed = i;
            o[k].window = (i + i / NCHAINS) % 2 && i % 3 ? 5 : 0;
            o[k].batches = i % 7 == 0 ? 0 : 12;
        }
        o[1].nvcomp = libraries[which];
        o[1].staging = i % 4 == 0 ? "pageable" : NULL;
        fakes[which]->temp_nbytes = 64 * (i % 3);
        for (int k = 0; k < 2; k++)
            l[k] = open_loader(paths[i % NCHAINS], &o[k]);
        compare_epochs(l[0], l[1], 3, &p);
        assert_true(p.nbatches > 6 && p.nfailed == 0);
        assert_true((fakes[which]->nstreams > 0) == (i % NCHAINS != RAW));
        assert_int_equal(fakes[which]->nrefused, 0);
        close_both(l);
        forget((int)which);
    }
}

/* The planned loader's chunks travel and are decoded once, whoever needs them. */
static void test_a_chunk_travels_once(void **state)
{
    static const char *const one[] = {"u"};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        cm_loader_options o = some_options(true);
        cm_loader_stats s = {.size = sizeof s};
        forget(0);
        o.variable = one;
        o.nvariables = 1;
        o.loader = loaders[i];
        o.order = "random";
        o.sample = "t=2,y=3,x=3";
        o.batches = 0;
        cm_loader *l = open_loader(paths[1], &o);
        OK(cm_loader_begin(l, 0, err));
        for (cm_batch *b;;) {
            OK(cm_loader_next(l, CM_LOADER_FOR_EVER, &b, err));
            if (b == NULL)
                break;
            cm_batch_release(b);
        }
        OK(cm_loader_get_stats(l, &s, err));
        const unsigned nchunks = 8 * 1 * 2; /* each a stream of zstd */
        if (i == 1)
            assert_true(s.decoded == nchunks && fakes[0]->nstreams == nchunks);
        else
            assert_true(s.decoded > 20 * nchunks && fakes[0]->nstreams == s.decoded);
        cm_loader_close(l);
    }
}

static void test_every_rank(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        cm_loader_options o[2] = {some_options(false), some_options(true)};
        cm_loader *l[2];
        pair p = {0};
        for (int k = 0; k < 2; k++) {
            o[k].loader = loaders[i % 2];
            o[k].world_size = 4;
            o[k].rank = i / 2;
            o[k].drop_last = i / 2 % 2;
            l[k] = open_loader(paths[i % NCHAINS], &o[k]);
        }
        compare_epochs(l[0], l[1], 2, &p);
        assert_int_equal(p.nfailed, 0);
        close_both(l);
    }
}

/*
 * A position of either is one of the other, at any batch: also of an epoch whose chunks were
 * decoded for the batches before.
 */
static void test_positions(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 28; i += stride(5)) {
        cm_loader_options o[2] = {some_options(false), some_options(true)};
        const uint64_t n = i / 2 % 13;
        cm_loader *l[2], *again;
        cm_loader_position position;
        pair p = {0};
        for (int k = 0; k < 2; k++) {
            o[k].loader = loaders[i % 2];
            o[k].window = i % 2 && i % 3 ? 4 : 0;
            l[k] = open_loader(paths[i % NCHAINS], &o[k]);
        }
        OK(cm_loader_begin(l[0], 3, err));
        OK(cm_loader_begin(l[1], 3, err));
        for (uint64_t k = 0; k < n; k++)
            compare_next(l[0], l[1], &p);
        OK(cm_loader_save(l[i / 2 % 2], &position, err));
        again = open_loader(paths[i % NCHAINS], &o[1]);
        OK(cm_loader_restore(again, &position, err));
        compare_rest(l[0], again, &p);
        assert_true(p.nbatches == 12 && p.nfailed == 0);
        /* And back again, in the middle of an epoch. */
        OK(cm_loader_restore(l[0], &position, err));
        OK(cm_loader_restore(l[1], &position, err));
        compare_rest(l[0], l[1], &p);
        assert_true(p.nbatches == 24 - n && p.nfailed == 0);
        cm_loader_close(l[0]);
        cm_loader_close(l[1]);
        cm_loader_close(again);
        check_given_back();
    }
}

/* Batches are held while others are made, and given back late. */
static void test_batches_that_are_held(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        cm_loader_options o = some_options(true);
        cm_batch *held[4], *none;
        cm_error why = {0};
        o.loader = loaders[i];
        o.held = 3;
        cm_loader *l = open_loader(paths[3], &o);
        OK(cm_loader_begin(l, 0, err));
        for (unsigned k = 0; k < 4; k++)
            OK(cm_loader_next(l, CM_LOADER_FOR_EVER, &held[k], err));
        assert_int_equal(cm_loader_next(l, CM_LOADER_FOR_EVER, &none, &why), CM_EINVAL);
        for (unsigned k = 0; k < 4; k++) {
            cm_batch_info info = {.size = sizeof info};
            OK(cm_batch_describe(held[k], &info, err));
            const cm_tensor *t = cm_batch_tensor(held[k], 0);
            const field *f = field_named(fields, NFIELDS, t->variable->name);
            const uint64_t shape[] = {2, 6, 8};
            for (uint64_t s = 0; s < info.nsamples; s++) {
                uint64_t start[3];
                for (unsigned d = 0; d < 3; d++)
                    start[d] = (uint64_t)info.index[3 * s + d];
                uint8_t *want = field_box(f, start, shape);
                const size_t nbytes = SAMPLE * field_size(f);
                assert_memory_equal(want, (const uint8_t *)t->data + s * nbytes, nbytes);
                free(want);
            }
        }
        cm_loader_close(l);
        for (unsigned k = 0; k < 4; k++)
            cm_batch_release(held[k]); /* and with the last one the device */
        check_given_back();
    }
}

/* ---- damage --------------------------------------------------------------------------------- */

static void change(const char *store, const char *variable, const char *where, const char *bytes)
{
    char command[512];
    snprintf(command, sizeof command,
             "for f in $(find '%s/%s' -type f ! -name '.z*' ! -name '*.json' | sort | "
             "awk 'NR %% 3 == 2'); do n=$(($(stat -c %%s $f) %s)); "
             "printf '%s' | dd of=$f bs=1 seek=$n conv=notrunc 2>/dev/null; done",
             store, variable, where, bytes);
    assert_int_equal(system(command), 0);
}

/*
 * A third of the chunks damaged, in every codec: the batches that the host fails, fail, and no
 * other; nothing of it comes as far as nvCOMP.  Without a checksum bytes may change and still
 * decode: to the same on both sides.
 */
static void test_damaged_chunks(void **state)
{
    static const char *const where[] = {"/ 2", "- 5", "* 2 / 3", "* 0"};
    unsigned nfailed = 0;
    (void)state;
    for (unsigned i = 0; i < NCHAINS * 4; i += stride(7)) {
        cm_loader_options o[2] = {some_options(false), some_options(true)};
        cm_loader *l[2];
        char name[64];
        pair p = {0};
        forget(0);
        snprintf(name, sizeof name, "hurt-%u.zarr", i);
        char *path = make_chain(i % NCHAINS, name);
        for (int k = 0; k < 2; k++) {
            o[k].loader = loaders[(i + i / NCHAINS) % 2];
            o[k].sample = "t=1,y=4,x=4";
            l[k] = open_loader(path, &o[k]);
        }
        compare_epochs(l[0], l[1], 1, &p); /* whole yet */
        assert_int_equal(p.nfailed, 0);
        change(path, "v", where[i / NCHAINS], "\\377\\377\\377");
        change(path, "s", where[i / NCHAINS], "\\125\\252\\125");
        p = (pair){.nbatches = 0};
        compare_epochs(l[0], l[1], 2, &p);
        assert_int_equal(fakes[0]->nrefused, 0);
        nfailed += p.nfailed > 0;
        if (p.nfailed > 0 && (strstr(p.why, name) == NULL || strstr(p.why, "array ") == NULL))
            fail_msg("%s", p.why);
        close_both(l);
        free(path);
    }
    assert_true(nfailed > 2 * NCHAINS / stride(7));
}

/* Chunks that are cut short, emptied, or gone after they were read once. */
static void test_chunks_that_change(void **state)
{
    static const char *const how[] = {"truncate -s -3", "truncate -s 0", "truncate -s +9999999",
                                      "rm -f", "cp /proc/version"};
    (void)state;
    for (unsigned i = 0; i < NCHAINS * 5; i += stride(7)) {
        cm_loader_options o[2] = {some_options(false), some_options(true)};
        cm_loader *l[2];
        char name[64], command[512];
        pair p = {0};
        forget(0);
        snprintf(name, sizeof name, "cut-%u.zarr", i);
        char *path = make_chain(i % NCHAINS, name);
        for (int k = 0; k < 2; k++) {
            o[k].loader = loaders[(i + i / NCHAINS) % 2];
            l[k] = open_loader(path, &o[k]);
        }
        compare_epochs(l[0], l[1], 1, &p);
        snprintf(command, sizeof command,
                 "for f in $(find '%s/u' -type f ! -name '.z*' ! -name '*.json' | sort | "
                 "awk 'NR %% 4 == 1'); do %s $f; done",
                 path, how[i / NCHAINS % 5]);
        assert_int_equal(system(command), 0);
        compare_epochs(l[0], l[1], 2, &p);
        assert_int_equal(fakes[0]->nrefused, 0);
        cm_loader_close(l[0]);
        cm_loader_close(l[1]);
        free(path);
    }
}

/* ---- what fails on the device ---------------------------------------------------------------- */

/* Batches of L until the end: those that come are right, what they say otherwise is in WHY. */
static unsigned count_failures(cm_loader *l, cm_loader *host, char *why, size_t size)
{
    unsigned nfailed = 0;
    for (;;) {
        cm_batch *a, *b;
        cm_error got = {0};
        OK(cm_loader_next(host, CM_LOADER_FOR_EVER, &a, err));
        const int rc = cm_loader_next(l, CM_LOADER_FOR_EVER, &b, &got);
        if (rc != CM_OK) {
            nfailed++;
            snprintf(why, size, "%s", got.text);
        }
        for (size_t i = 0; b != NULL && cm_batch_tensor(b, i) != NULL; i++)
            assert_memory_equal(cm_batch_tensor(a, i)->data, cm_batch_tensor(b, i)->data,
                                cm_batch_tensor(b, i)->nbytes);
        cm_batch_release(a);
        cm_batch_release(b);
        if (a == NULL)
            return nfailed;
    }
}

/*
 * nvCOMP tells of an error, or of a wrong length: the batches that need what it made fail, with its
 * words; the others are right, and so is the next epoch.
 */
static void test_what_nvcomp_refuses(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 40; i += stride(7)) {
        cm_loader_options o[2] = {some_options(false), some_options(true)};
        cm_loader *l[2];
        char why[1024] = "";
        forget(0);
        fakes[0]->bad_stream = 1 + i * 3;
        fakes[0]->bad_status = i % 4 < 2 ? 12 : 0;
        for (int k = 0; k < 2; k++) {
            o[k].loader = loaders[i % 2];
            o[k].sync = true; /* chunks in one order, so that one number is one chunk */
            o[k].workers = 0;
            l[k] = open_loader(paths[1], &o[k]);
            OK(cm_loader_begin(l[k], 0, err));
        }
        const unsigned nfailed = count_failures(l[1], l[0], why, sizeof why);
        assert_true(nfailed >= 1 && (i % 2 == 1 || nfailed == 1));
        if (strstr(why, "nvCOMP 5.1.23") == NULL || strstr(why, "array ") == NULL ||
            strstr(why, paths[1]) == NULL)
            fail_msg("%s", why);
        for (int k = 0; k < 2; k++)
            OK(cm_loader_begin(l[k], 1, err));
        assert_int_equal(count_failures(l[1], l[0], why, sizeof why), 0);
        close_both(l);
    }
}

/* A call of the driver fails while batches come: no batch is wrong, and nothing hangs. */
static void test_a_driver_that_fails(void **state)
{
    static const char *const functions[] = {"cuMemcpyHtoDAsync", "cuEventSynchronize",
                                            "cuLaunchKernel", "cuMemcpyDtoHAsync",
                                            "cuMemsetD8Async"};
    (void)state;
    for (unsigned i = 0; i < 60; i += stride(7)) {
        cm_loader_options o[2] = {some_options(false), some_options(true)};
        cm_loader *l[2];
        char why[1024] = "";
        forget(0);
        for (int k = 0; k < 2; k++) {
            o[k].loader = loaders[i % 2];
            l[k] = open_loader(paths[3], &o[k]);
            OK(cm_loader_begin(l[k], 0, err));
        }
        cuda->fail = functions[i / 2 % 5];
        cuda->result = 700;
        cuda->fail_after = (int)(i / 10) * 4;
        /* It fails from then on. */
        const unsigned nfailed = count_failures(l[1], l[0], why, sizeof why);
        assert_true((nfailed > 0) == (cuda->fail_after < 0) && (nfailed > 0) == (why[0] != '\0'));
        cuda->fail = "";
        for (int k = 0; k < 2; k++)
            OK(cm_loader_begin(l[k], 1, err));
        assert_int_equal(count_failures(l[1], l[0], why, sizeof why), 0);
        close_both(l);
    }
}

/* The device is full when the loader is opened, or when nvCOMP needs more than is left. */
static void test_a_full_device(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 14; i++) {
        cm_loader_options o = some_options(true);
        cm_error why = {0};
        cm_loader *l;
        const size_t nbytes = cuda->nbytes;
        o.loader = loaders[i % 2];
        cuda->nbytes = (size_t)1 << (10 + i);
        const int rc = cm_loader_open_with(paths[3], &o, &hook, &l, &why);
        cuda->nbytes = nbytes;
        if (rc != CM_OK) {
            assert_int_equal(rc, CM_ENOMEM);
            if (strstr(why.text, "`device` cuda") == NULL)
                fail_msg("%s", why.text);
        } else
            assert_true(i > 4);
        cm_loader_close(l);
        check_given_back();
    }
    for (unsigned i = 0; i < 2; i++) {
        cm_loader_options o = some_options(true);
        cm_batch *b;
        cm_error why = {0};
        forget(0);
        fakes[0]->temp_nbytes = (size_t)1 << 40;
        o.loader = loaders[i];
        cm_loader *l = open_loader(paths[3], &o);
        OK(cm_loader_begin(l, 0, err));
        assert_int_equal(cm_loader_next(l, CM_LOADER_FOR_EVER, &b, &why), CM_ENOMEM);
        assert_null(b);
        fakes[0]->temp_nbytes = 64;
        OK(cm_loader_begin(l, 0, err));
        OK(cm_loader_next(l, CM_LOADER_FOR_EVER, &b, err));
        assert_non_null(b);
        cm_batch_release(b);
        cm_loader_close(l);
        check_given_back();
    }
}

/* Nothing page-locked stays, nor anything of the device. */
static void test_opened_a_thousand_times(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        cm_loader_options o = some_options(true);
        o.loader = loaders[i % 2];
        o.sync = true;
        o.workers = 0;
        o.nvariables = 2;
        o.batches = 2;
        cm_loader *l = open_loader(paths[i % NCHAINS], &o);
        cm_batch *b;
        assert_true(cuda->nregistered >= 2); /* slots, and what nvCOMP is told */
        if (i % 3 > 0) {
            OK(cm_loader_begin(l, i, err));
            OK(cm_loader_next(l, CM_LOADER_FOR_EVER, &b, err));
            cm_batch_release(i % 3 == 1 ? b : NULL);
        }
        cm_loader_close(l);
        if (i % 3 == 2)
            cm_batch_release(b);
        check_given_back();
    }
}

/* ---- what is refused ------------------------------------------------------------------------ */

static void test_refusals(void **state)
{
    cm_loader_options o = some_options(true);
    const refusal rows[] = {
        REFUSED_BY_BOTH,
        REFUSED(decode, NULL, CM_EINVAL, "`nvcomp`"),
        REFUSED(decode, "host", CM_EINVAL, "`nvcomp`"),
        REFUSED(nvcomp, driver, CM_EUNSUPPORTED, ""),
        REFUSED(memory, 6 << 20, CM_EBUDGET, "the memory allowed is"),
    };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        const size_t row = i / 2;
        cm_loader *l;
        cm_error err = {0};
        o = some_options(true);
        o.loader = loaders[i % 2];
        memcpy(rows[row].member, &rows[row].value, rows[row].nbytes);
        const int rc = cm_loader_open_with(paths[1], &o, &hook, &l, &err);
        if (rc != rows[row].status || strstr(err.text, rows[row].says) == NULL)
            fail_msg("row %zu: %d: %s", row, rc, err.text);
        assert_null(l);
        check_given_back();
    }
}

static void test_stores_that_are_refused(void **state)
{
    static const struct {
        const char *name, *says;
        container c;
        cm_codec_spec codecs[3];
    } rows[] = {
        {"no-bz2.zarr", "bz2", ZARR_V2, {{.id = CM_CODEC_BZ2, .level = 1}}},
        {"no-bits.zarr", "bit shuffle", ZARR_V3, {BLOSC("zstd", 2)}},
        {"no-chunks.nc", "it has no chunks", NETCDF_CLASSIC, {{.id = CM_CODEC_NONE}}},
    };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        cm_loader_options o = some_options(true);
        cm_loader *l;
        cm_error err = {0};
        made_codecs = rows[i / 2].codecs;
        char *path = make_store(rows[i / 2].name, rows[i / 2].c, fields, 2);
        o.nvariables = 2;
        o.loader = loaders[i % 2];
        assert_int_equal(cm_loader_open_with(path, &o, &hook, &l, &err), CM_EUNSUPPORTED);
        if (strstr(err.text, rows[i / 2].says) == NULL ||
            strstr(err.text, rows[i / 2].name) == NULL)
            fail_msg("row %zu: %s", i, err.text);
        assert_null(l);
        free(path);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_every_codec, begin_anew),
        cmocka_unit_test_setup(test_a_chunk_travels_once, begin_anew),
        cmocka_unit_test_setup(test_every_rank, begin_anew),
        cmocka_unit_test_setup(test_positions, begin_anew),
        cmocka_unit_test_setup(test_batches_that_are_held, begin_anew),
        cmocka_unit_test_setup(test_damaged_chunks, begin_anew),
        cmocka_unit_test_setup(test_chunks_that_change, begin_anew),
        cmocka_unit_test_setup(test_what_nvcomp_refuses, begin_anew),
        cmocka_unit_test_setup(test_a_driver_that_fails, begin_anew),
        cmocka_unit_test_setup(test_a_full_device, begin_anew),
        cmocka_unit_test_setup(test_opened_a_thousand_times, begin_anew),
        cmocka_unit_test_setup(test_refusals, begin_anew),
        cmocka_unit_test_setup(test_stores_that_are_refused, begin_anew),
    };
    const int served = serve_if_worker(argc, argv);
    if (served >= 0)
        return served;
    find_fakes(argv[0]);
    return cmocka_run_group_tests_name("loader_decode", tests, make_stores, remove_stores);
}
