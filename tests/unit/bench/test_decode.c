/*
 * Chunks decoded on the device: a fake driver and fakes of nvCOMP, which decode with the
 * host's libraries.  What arrives is compared, byte by byte, with what is read directly;
 * what is damaged never comes as far as the decoder.
 */
#include "../fixtures/decode_fixture.h"

static cm_readbench_options decode_options(const char *const *list, bool all)
{
    static const char *const some[] = {"v,u"}, *const every[] = {"v,u,s,holes,plain"};
    cm_readbench_options o = quick_options(list, 1);
    o.variables = (cm_texts){all ? every : some, 1};
    o.sample = "t=2,y=6,x=8";
    o.batch = BATCH;
    o.batches = BATCHES;
    o.device = "cuda";
    o.decode = "device";
    o.nvcomp = libraries[0];
    o.hook = &fake_hook;
    return o;
}

/* ---- what arrives --------------------------------------------------------------------------- */

static void test_every_codec(void **state)
{
    static const char *const orders[] = {"random", "strided:3", "all", "chunks"};
    static const char *const modes[] = {"threads", "sync"};
    (void)state;
    for (int i = 0; i < NCHAINS * 8; i += (int)stride(7)) {
        const char *const list[] = {paths[i % NCHAINS]};
        const int which = i / NCHAINS % 2;
        cm_readbench_options o = decode_options(list, true);
        cm_readbench_report r;
        forget(which);
        o.nvcomp = libraries[which];
        o.order = orders[i / NCHAINS % 4];
        if (strcmp(o.order, "all") == 0)
            o.batches = 0;
        o.mode = modes[i % 2];
        o.workers = i % 2 ? 0 : 2;
        o.staging = i % 3 == 0 ? "pageable" : "pinned";
        o.no_overlap = i % 5 == 0;
        o.device_step = i % 4 == 0;
        o.unordered = i % 7 == 0 && i % 2 == 0;
        o.loader = i / (4 * NCHAINS) ? "planned" : "map";
        if (i / (4 * NCHAINS)) {
            o.unordered = false;
            o.window = i % 3 ? 0 : 3;
        }
        o.validate = i % 4 == 1 ? CM_READBENCH_VALIDATE_CHECKSUM : CM_READBENCH_VALIDATE_FULL;
        run(&o, &r, chains[i % NCHAINS].name);
        const cm_readbench_session *s = &r.session[0];
        const cm_readbench_decode *d = &s->device.decode;
        assert_int_equal(s->device.mismatches, 0);
        assert_int_equal(s->counts.failed_batches, 0);
        assert_true(s->device.validated_batches > 0);
        assert_int_equal(s->device.validated_nbytes, s->counts.samples / 2 * SAMPLE_NBYTES);
        assert_true(d->used && d->proven > 0 && d->host > 0 && d->device > 0 && d->path > 0);
        assert_true(has_finding(s, "device-decode") && d->cpus_alike > 0 && d->travelled > 0);
        assert_string_equal(d->library, which ? "nvCOMP 6.1.23" : "nvCOMP 5.1.23");
        assert_string_equal(d->gpudirect, "no: the kernel's nvidia-fs driver is not loaded");
        assert_true((fakes[which]->nstreams > 0) == (i % NCHAINS != RAW));
        assert_int_equal(fakes[which]->nrefused, 0);
        check_given_back();
        cm_readbench_report_release(&r);
    }
}

/* Several ranks at once, with pools of their own or a shared one: every batch of each arrives. */
static void test_ranks(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        const char *const list[] = {paths[i % NCHAINS]};
        cm_readbench_options o = decode_options(list, true);
        cm_readbench_report r;
        forget(i % 2);
        o.nvcomp = libraries[i % 2];
        o.loader = i / 4 ? "planned" : "map";
        o.accelerators = 3;
        o.workers = 2;
        o.pool = i / 2 % 2 ? "shared" : "rank";
        run(&o, &r, o.pool);
        const cm_readbench_session *s = &r.session[0];
        assert_int_equal(s->device.mismatches, 0);
        assert_int_equal(s->counts.failed_batches, 0);
        assert_int_equal(s->device.validated_batches, 3 * BATCHES);
        assert_true(fakes[i % 2]->nstreams > 0);
        check_given_back();
        cm_readbench_report_release(&r);
    }
}

/* HDF5's filters: shuffle and deflate. */
static void test_a_file(void **state)
{
    const char *const list[] = {paths[NCHAINS]};
    cm_readbench_options o = decode_options(list, false);
    cm_readbench_report r;
    (void)state;
    forget(0);
    run(&o, &r, "a file");
    assert_int_equal(r.session[0].device.mismatches, 0);
    assert_int_equal(r.session[0].device.validated_batches, BATCHES);
    assert_true(fakes[0]->nstreams > 0);
    cm_readbench_report_release(&r);
}

/*
 * The counts are those of the same reads decoded here, but that the map loader decodes a chunk once
 * a batch.
 */
static void test_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * NCHAINS; i += stride(3)) {
        const char *const list[] = {paths[i % NCHAINS]};
        cm_readbench_counts counts[2];
        for (int device = 0; device < 2; device++) {
            cm_readbench_options o = decode_options(list, true);
            cm_readbench_report r;
            o.decode = device ? "device" : "host";
            if (!device)
                o.nvcomp = NULL;
            o.loader = i < NCHAINS ? "map" : "planned";
            o.batch = i < NCHAINS ? 1 : BATCH;
            run(&o, &r, chains[i % NCHAINS].name);
            counts[device] = r.session[0].counts;
            cm_readbench_report_release(&r);
        }
        assert_int_equal(counts[0].chunks, counts[1].chunks);
        assert_int_equal(counts[0].decoded, counts[1].decoded);
        assert_int_equal(counts[0].decoded_nbytes, counts[1].decoded_nbytes);
        assert_int_equal(counts[0].logical_nbytes, counts[1].logical_nbytes);
        assert_int_equal(counts[0].missing_chunks, counts[1].missing_chunks);
        assert_int_equal(counts[0].missing_nbytes, counts[1].missing_nbytes);
        assert_int_equal(counts[0].samples, counts[1].samples);
    }
}

/* A chunk that several samples of a batch meet is fetched and decoded once. */
static void test_a_chunk_comes_once_a_batch(void **state)
{
    static const char *const variables[] = {"plain"};
    const char *const list[] = {paths[0]};
    cm_readbench_options o = decode_options(list, false);
    cm_readbench_report r;
    (void)state;
    o.variables = (cm_texts){variables, 1}; /* three chunks, one time step after the other */
    o.sample = "t=1,y=16,x=18";
    o.order = "all";
    o.batches = 0;
    o.batch = 15;
    o.epochs = 1;
    run(&o, &r, "once");
    assert_int_equal(r.session[0].counts.chunks, 15);
    assert_int_equal(r.session[0].counts.decoded, 3);
    assert_int_equal(r.session[0].device.mismatches, 0);
    cm_readbench_report_release(&r);
}

/* ---- damage --------------------------------------------------------------------------------- */

/* The chunks of field "v" in the store, one byte in the middle of each flipped. */
static unsigned damage(const char *store, const char *suffix)
{
    char command[512];
    snprintf(command, sizeof command,
             "for f in $(find '%s/v' -type f ! -name '.z*' ! -name '*.json'); do n=$(($(stat -c "
             "%%s $f) %s)); "
             "printf '\\377\\377\\377' | dd of=$f bs=1 seek=$n conv=notrunc 2>/dev/null; done; "
             "find '%s/v' -type f | wc -l | grep -q -v '^0$'",
             store, suffix, store);
    return system(command) == 0;
}

/*
 * Whatever the codec, no damaged stream is given to nvCOMP, and the batches fail with a
 * sentence.
 */
static void test_damaged_chunks(void **state)
{
    static const char *const where[] = {"/ 2", "- 5", "* 2 / 3"};
    (void)state;
    for (size_t i = 0; i < NCHAINS; i++)
        for (size_t w = 0; w < 3; w++) {
            static const char *const variables[] = {"v"};
            char name[64];
            cm_error err = {0};
            snprintf(name, sizeof name, "bad-%zu-%zu.zarr", i, w);
            char *path = make_chain(i, name);
            assert_true(damage(path, where[w]));
            const char *const list[] = {path};
            cm_readbench_options o = decode_options(list, false);
            cm_readbench_report r;
            forget(0);
            o.variables = (cm_texts){variables, 1};
            o.loader = (i + w) % 2 ? "planned" : "map";
            const int rc = cm_readbench(&o, NULL, &r, &err);
            assert_int_equal(fakes[0]->nrefused, 0);
            /* Without a checksum bytes may change and still decode: to the same on both sides. */
            if (rc == CM_OK && r.session[0].counts.failed_batches == 0)
                assert_int_equal(r.session[0].device.mismatches, 0);
            else {
                const char *why = rc == CM_OK ? r.session[0].first_failure : err.text;
                assert_non_null(why);
                if (strstr(why, name) == NULL || strstr(why, "array v: chunk ") == NULL)
                    fail_msg("%s", why);
            }
            if (strcmp(chains[i].name, "zstd-crc.zarr") == 0 ||
                strcmp(chains[i].name, "gzip.zarr") == 0)
                assert_int_equal(r.session[0].counts.failed_batches, 2 * BATCHES);
            check_given_back();
            cm_readbench_report_release(&r);
            free(path);
        }
}

/*
 * A stream that nvCOMP cannot decode fails its batch and no other; in the validating pass it
 * differs.
 */
static void test_what_nvcomp_refuses(void **state)
{
    (void)state;
    for (int status = 0; status < 2; status++) {
        const char *const list[] = {paths[1]};
        cm_readbench_options o = decode_options(list, false);
        cm_readbench_report r;
        cm_error err = {0};
        forget(0);
        fakes[0]->bad_stream = 5;
        fakes[0]->bad_status = status ? 12 : 0;
        o.validate = CM_READBENCH_VALIDATE_NONE;
        const int rc = cm_readbench(&o, NULL, &r, &err);
        const cm_readbench_session *s = &r.session[0];
        assert_int_equal(s->counts.failed_batches, 1);
        assert_int_equal(s->counts.batches, 2 * BATCHES);
        assert_non_null(s->first_failure);
        if (strstr(s->first_failure, "batch 0: array ") == NULL ||
            strstr(s->first_failure, "nvCOMP 5.1.23") == NULL)
            fail_msg("%s", s->first_failure);
        assert_int_equal(rc, CM_EFORMAT);
        check_given_back();
        cm_readbench_report_release(&r);
    }
    forget(0);
}

/*
 * Bits that flip on the way to the device are found: of whole chunks every byte counts, but
 * for padding.
 */
static void test_flips_on_the_way(void **state)
{
    static const char *const variables[] = {"u"};
    unsigned found = 0;
    (void)state;
    for (uint64_t i = 0; i < 60; i += stride(7)) {
        const cm_device_fault fault = {.batch = i % 2, .offset = 128 + 41 * i, .mask = 4};
        const cm_device_hooks hooks = {
            .cuda_driver = driver, .sysfs = "/nonexistent", .faults = &fault, .nfaults = 1};
        struct cm_readbench_hook hook = {.device = &hooks, .no_probe = true};
        const char *const list[] = {paths[i % 4 < 2 ? 1 : 6]};
        cm_readbench_options o = decode_options(list, true);
        cm_readbench_report r;
        cm_error err = {0};
        forget(0);
        o.variables = (cm_texts){variables, 1};
        o.sample = "t=2,y=16,x=18";
        o.order = "all";
        o.batches = 0;
        o.epochs = 1;
        o.hook = &hook;
        const int rc = cm_readbench(&o, NULL, &r, &err);
        assert_true(rc == CM_OK || rc == CM_EDIFFER || rc == CM_EFORMAT);
        found += rc != CM_OK;
        cm_readbench_report_release(&r);
    }
    assert_true(found >= 54 / stride(7));
    forget(0);
}

/* ---- what is refused ------------------------------------------------------------------------ */

static void test_refusals(void **state)
{
    static const char *const list[] = {NULL};
    cm_readbench_options o = decode_options(list, false);
    const refusal rows[] = {
        REFUSED_BY_BOTH,
        REFUSED(log_samples, 1, CM_EINVAL, "nothing to log"),
        REFUSED(engine, "netcdf", CM_EINVAL, "only the native engine"),
        REFUSED(memory, 12 << 20, CM_EBUDGET, "the memory allowed is"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const stores[] = {paths[1]};
        cm_readbench_report r;
        cm_error err = {0};
        o = decode_options(stores, false);
        o.store = (cm_texts){stores, 1};
        memcpy(rows[i].member, &rows[i].value, rows[i].nbytes);
        const int rc = cm_readbench(&o, NULL, &r, &err);
        if (rc != rows[i].status || strstr(err.text, rows[i].says) == NULL)
            fail_msg("row %zu: %d: %s", i, rc, err.text);
        check_given_back();
        cm_readbench_report_release(&r);
    }
}

/* Processes that are forked pack too; others have no proof, nor has a plan of its own. */
static void test_processes(void **state)
{
    static const struct {
        const char *context, *loader, *says;
    } rows[] = {{"fork", "map", NULL},
                {"spawn", "map", "begun anew"},
                {"forkserver", "map", "begun anew"},
                {"fork", "planned", "`mode` threads"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *const list[] = {paths[i]};
        cm_readbench_options o = decode_options(list, true);
        cm_readbench_report r;
        cm_error err = {0};
        forget(0);
        o.mode = "processes";
        o.context = rows[i].context;
        o.loader = rows[i].loader;
        const int rc = cm_readbench(&o, NULL, &r, &err);
        if (rows[i].says == NULL) {
            if (rc != CM_OK)
                fail_msg("%s", err.text);
            assert_int_equal(r.session[0].device.mismatches, 0);
            assert_int_equal(r.session[0].device.validated_batches, BATCHES);
            assert_true(fakes[0]->nstreams > 0);
        } else if (rc != CM_EINVAL || strstr(err.text, rows[i].says) == NULL)
            fail_msg("%s: %d: %s", rows[i].context, rc, err.text);
        check_given_back();
        cm_readbench_report_release(&r);
    }
}

static void test_stores_that_are_refused(void **state)
{
    static const struct {
        const char *name, *says;
        container c;
        cm_codec_spec codecs[3];
    } rows[] = {
        {"bz2.zarr", "bz2", ZARR_V2, {{.id = CM_CODEC_BZ2, .level = 1}}},
        {"bits.zarr", "bit shuffle", ZARR_V3, {BLOSC("zstd", 2)}},
        {"contiguous.nc", "it has no chunks", NETCDF_CLASSIC, {{.id = CM_CODEC_NONE}}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cm_readbench_report r;
        cm_error err = {0};
        made_codecs = rows[i].codecs;
        char *path = make_store(rows[i].name, rows[i].c, fields, 2);
        const char *const list[] = {path};
        const cm_readbench_options o = decode_options(list, false);
        assert_int_equal(cm_readbench(&o, NULL, &r, &err), CM_EUNSUPPORTED);
        if (strstr(err.text, rows[i].says) == NULL || strstr(err.text, rows[i].name) == NULL)
            fail_msg("row %zu: %s", i, err.text);
        cm_readbench_report_release(&r);
        free(path);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_codec),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_a_file),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_a_chunk_comes_once_a_batch),
        cmocka_unit_test(test_damaged_chunks),
        cmocka_unit_test(test_what_nvcomp_refuses),
        cmocka_unit_test(test_flips_on_the_way),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_stores_that_are_refused),
    };
    const int served = serve_if_worker(argc, argv);
    if (served >= 0)
        return served;
    find_fakes(argv[0]);
    return cmocka_run_group_tests_name("readbench_decode", tests, make_stores, remove_stores);
}
