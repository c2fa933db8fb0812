/*
 * Files cut at random become the same store as the file that they were cut from, element for
 * element, with the reads that the plan told.
 */
#include "../fixtures/multi_fixture.h"

/* Converts the file PATH, or DATASET; the report is the caller's to release. */
static void convert(const char *path, cm_dataset *dataset, const char *chunks, const char *codec,
                    cm_transform_report *report)
{
    char target[96];
    cm_error err = {0};
    const cm_texts texts = {&chunks, 1};
    cm_transform_options o;
    cm_transform_options_init(&o, CM_DEFAULTS_CHOOSE);
    snprintf(target, sizeof target, "%s/out.zarr", multi_folder);
    o.source = path;
    o.dataset = dataset;
    o.target = target;
    o.overwrite = true;
    o.verify = CM_VERIFY_FULL;
    o.nthreads = 3;
    if (chunks != NULL)
        o.chunks = texts;
    if (codec != NULL)
        o.codec = (cm_texts){&codec, 1};
    if (cm_transform(&o, report, &err) != CM_OK)
        fail_msg("%s: %s", path != NULL ? path : dataset->path, err.text);
}

static void same_digests(const cm_transform_report *one, const cm_transform_report *many)
{
    assert_int_equal(one->nvariables, many->nvariables);
    for (size_t i = 0; i < one->nvariables; i++) {
        const cm_transform_variable *a = &one->variable[i];
        bool found = false;
        for (size_t k = 0; k < many->nvariables; k++) {
            const cm_transform_variable *b = &many->variable[k];
            if (strcmp(a->name, b->name) != 0)
                continue;
            found = true;
            if (strcmp(a->digest, b->digest) != 0)
                fail_msg("variable %s: %s in one file, %s in many", a->name, a->digest, b->digest);
        }
        if (!found)
            fail_msg("variable %s is not there", a->name);
    }
}

/* The engine's counts equal the plan's. */
static void exact_plan(const cm_transform_report *r)
{
    for (size_t i = 0; i < r->nvariables; i++) {
        const cm_transform_variable *v = &r->variable[i];
        if (v->planned.chunk_reads != v->counted.chunk_reads)
            fail_msg("variable %s (%s): %llu chunks are to be read, %llu were", v->name, v->access,
                     (unsigned long long)v->planned.chunk_reads,
                     (unsigned long long)v->counted.chunk_reads);
        assert_int_equal(v->planned.chunk_reads, v->counted.chunk_reads);
        assert_int_equal(v->planned.chunk_decodes, v->counted.chunk_decodes);
        assert_int_equal(v->planned.element_nbytes_read, v->counted.element_nbytes_read);
        assert_int_equal(v->planned.chunk_writes, v->counted.chunk_writes);
    }
}

/* Whether steps A to B of file K, which begins with step FROM of all, were written at all. */
static bool is_written(const way *w, uint64_t from, uint64_t a, uint64_t b)
{
    for (uint64_t t = from + a; t < from + b; t++)
        if (!w->leaves_out || t % 16 < 8)
            return true;
    return false;
}

/* The stored chunks of v that hold an element of the archive, by trying all. */
static uint64_t distinct_chunks(const archive *a)
{
    uint64_t n = 0;
    for (size_t i = 0; i < a->var[0].nparts; i++) {
        const cm_multi_part *p = &a->part[0][i];
        const way *w = &a->way[p->file];
        uint64_t rest =
            ((NY + w->chunk[1] - 1) / w->chunk[1]) * ((NX + w->chunk[2] - 1) / w->chunk[2]);
        uint64_t long_ = w->unlimited || w->chunk[0] < p->length[0] ? w->chunk[0] : p->length[0];
        for (uint64_t t = 0; t < p->length[0]; t += long_) {
            uint64_t end = t + long_ < p->length[0] ? t + long_ : p->length[0];
            if (t < p->first[0] + p->count[0] && end > p->first[0] &&
                is_written(w, p->origin[0] - p->first[0], t, end))
                n += rest;
        }
    }
    return n;
}

/* With ample memory each of them is read once, and decoded once if it is not passed on. */
static void reads_once(const archive *a, const cm_transform_report *r, bool keeps)
{
    for (size_t i = 0; i < r->nvariables; i++) {
        const cm_transform_variable *v = &r->variable[i];
        if (strcmp(v->name, "v") != 0)
            continue;
        /* The library reads what is shorter than its unlimited dimension. */
        const bool chunks = strncmp(v->access, "chunks of many files", 20) == 0;
        assert_true(chunks || (a->way[0].leaves_out && a->way[0].unlimited));
        if (!chunks)
            continue;
        if (v->counted.chunk_reads != distinct_chunks(a))
            fail_msg("v (%s): %llu chunks were read, and %llu hold something", v->access,
                     (unsigned long long)v->counted.chunk_reads,
                     (unsigned long long)distinct_chunks(a));
        if (v->counted.chunk_decodes != 0 || !keeps)
            assert_int_equal(v->counted.chunk_decodes, v->counted.chunk_reads);
    }
}

static way any_way(bool classic)
{
    way w = {.classic = classic && any(3) == 0,
             .chunk = {1 + any(9), NY, 1 + any(NX)},
             .deflate = (int)any(4) - 1,
             .shuffle = any(2) != 0,
             .fletcher = any(4) == 0,
             .unlimited = any(2) != 0};
    return w;
}

/* KIND 0: all files alike; 1: chunks of t differ; 2: everything differs, and some are classic. */
static void one_split(unsigned kind)
{
    archive a;
    begin_archive(&a);
    unsigned total = 1 + any(60), without = kind == 2 ? 6 : NVARS;
    way first = any_way(kind == 2);
    first.leaves_out = any(4) == 0;
    for (unsigned at = 0; at < total;) {
        unsigned left = total - at;
        unsigned count = any(6) == 0 ? 0 : any(4) == 0 ? 1 : 1 + any(left < 20 ? left : 20);
        /* Steps that others have too. */
        unsigned from = at - any(3) * (any(3) == 0), to = at + count + any(3) * (any(3) == 0);
        from = from > at ? 0 : from;
        to = to > total ? total : to;
        way w = first;
        if (kind == 1)
            w.chunk[0] = 1 + any(9);
        if (kind == 2) {
            w = any_way(true);
            w.leaves_out = first.leaves_out;
        }
        if (count == 0)
            from = to = at;
        w.unlimited = w.unlimited || from == to;
        if (a.nfiles + 1 == MAX_FILES)
            count = total - at, from = at, to = total;
        add_file(&a, from, to, at, count, &w);
        at += count;
    }
    end_archive(&a, without);
    char whole[96];
    snprintf(whole, sizeof whole, "%s/whole.nc", multi_folder);
    way one = first;
    one.classic = without == 6;
    write_file(whole, 0, total, &one);
    static const char *const chunks[] = {"t=10,y=3,x=4", "t=1", "source", "t=31,y=7,x=9"};
    static const char *const codecs[] = {"keep", "keep:gzip", "zstd"};
    const char *asked = any(2) == 0 ? chunks[any(4)] : NULL;
    const char *codec = asked == NULL || strcmp(asked, "source") == 0 ? codecs[any(3)] : NULL;
    cm_error err = {0};
    cm_dataset *ds = NULL;
    cm_transform_report of_one, of_many;
    convert(whole, NULL, asked, codec, &of_one);
    if (cm_multi_dataset_open(&a.spec, NULL, &ds, &err) != CM_OK)
        fail_msg("%s", err.text);
    convert(NULL, ds, asked, codec, &of_many);
    same_digests(&of_one, &of_many);
    exact_plan(&of_one);
    exact_plan(&of_many);
    if (kind < 2) /* otherwise they are no grid of chunks, and read in boxes */
        reads_once(&a, &of_many, codec != NULL);
    cm_transform_report_release(&of_one);
    cm_transform_report_release(&of_many);
    cm_dataset_close(ds);
    release_archive(&a);
    unlink(whole);
}

static void test_splits(void **state)
{
    const char *more = getenv("CHUNKMILL_LONG"), *most = getenv("CHUNKMILL_FULL");
    const bool is_long = more != NULL && *more != '\0';
    unsigned n = is_long && most != NULL && *most != '\0' ? 167 : is_long ? 33 : 4;
    (void)state;
    for (unsigned kind = 0; kind < 3; kind++) {
        for (unsigned i = 0; i < n; i++) {
            multi_seed = kind * 1000 + i + 1;
            one_split(kind);
        }
    }
}

/* Flips bytes in the middle of the file, or back; its time of change stays. */
static void damage(const cm_multi_file *f)
{
    enum {
        LENGTH = 600
    };
    uint8_t bytes[LENGTH];
    FILE *file = fopen(f->path, "r+b");
    assert_non_null(file);
    const long at = (long)f->nbytes - LENGTH - 100;
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fread(bytes, 1, LENGTH, file), LENGTH);
    for (size_t i = 0; i < LENGTH; i++)
        bytes[i] ^= 0x5a;
    assert_int_equal(fseek(file, at, SEEK_SET), 0);
    assert_int_equal(fwrite(bytes, 1, LENGTH, file), LENGTH);
    assert_int_equal(fclose(file), 0);
    const struct timespec then = {.tv_sec = (time_t)(f->mtime_ns / 1000000000u),
                                  .tv_nsec = (long)(f->mtime_ns % 1000000000u)};
    assert_int_equal(utimensat(AT_FDCWD, f->path, (struct timespec[2]){then, then}, 0), 0);
}

/* Each file is there with its digest, and what was lost is said. */
static void check_certificate(const char *path, const archive *a)
{
    static char text[1 << 16];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    for (unsigned k = 0; k < a->nfiles; k++) {
        char command[160], digest[65] = "";
        snprintf(command, sizeof command, "sha256sum '%s'", a->path[k]);
        FILE *pipe = popen(command, "r");
        assert_non_null(pipe);
        assert_int_equal(fread(digest, 1, 64, pipe), 64);
        pclose(pipe);
        if (strstr(text, a->path[k]) == NULL || strstr(text, digest) == NULL)
            fail_msg("%s (%s) is not in the certificate", a->path[k], digest);
    }
    assert_non_null(strstr(text, "\"reproducible\": false"));
    assert_non_null(strstr(text, "steps were dropped"));
    unlink(path);
}

/* A bad file is named, what was done is kept, and the run goes on when the file is good again. */
static void test_damage_and_resume(void **state)
{
    enum {
        STEPS = 12,
        FILES = 5,
        BAD = 3
    };
    const way w = {.chunk = {1, NY, NX}, .deflate = 1, .shuffle = true};
    char target[96];
    cm_error err = {0};
    archive a;
    (void)state;
    begin_archive(&a);
    for (unsigned k = 0; k < FILES; k++)
        add_file(&a, k * STEPS, (k + 1) * STEPS, k * STEPS, STEPS, &w);
    end_archive(&a, 1);
    snprintf(target, sizeof target, "%s/resumed.zarr", multi_folder);
    cm_transform_options o;
    cm_transform_options_init(&o, CM_DEFAULTS_CHOOSE);
    o.target = target;
    o.chunks = (cm_texts){(const char *const[]){"t=5"}, 1};
    o.verify = CM_VERIFY_FULL;
    o.nthreads = 2;
    char certificate[96];
    snprintf(certificate, sizeof certificate, "%s/certificate.json", multi_folder);
    cm_transform_report whole, report;
    assert_int_equal(cm_multi_dataset_open(&a.spec, NULL, &o.dataset, &err), CM_OK);
    convert(NULL, o.dataset, "t=5", NULL, &whole);
    cm_dataset_close(o.dataset);

    damage(&a.file[BAD]);
    assert_int_equal(cm_multi_dataset_open(&a.spec, NULL, &o.dataset, &err), CM_OK);
    assert_int_equal(cm_transform(&o, &report, &err), CM_EFORMAT);
    if (strncmp(err.text, a.path[BAD], strlen(a.path[BAD])) != 0)
        fail_msg("%s", err.text);
    assert_true(report.resumable);
    assert_false(report.written);
    cm_transform_report_release(&report);
    cm_dataset_close(o.dataset);

    damage(&a.file[BAD]);
    o.resume = true;
    o.certificate = certificate;
    a.spec.irreversible = "steps were dropped";
    assert_int_equal(cm_multi_dataset_open(&a.spec, NULL, &o.dataset, &err), CM_OK);
    if (cm_transform(&o, &report, &err) != CM_OK)
        fail_msg("%s", err.text);
    check_certificate(certificate, &a);
    o.certificate = NULL;
    same_digests(&whole, &report);
    cm_transform_report_release(&report);
    cm_dataset_close(o.dataset);

    /* Another archive does not go on with it. */
    o.overwrite = true;
    o.resume = false;
    damage(&a.file[BAD]);
    assert_int_equal(cm_multi_dataset_open(&a.spec, NULL, &o.dataset, &err), CM_OK);
    assert_int_equal(cm_transform(&o, &report, &err), CM_EFORMAT);
    cm_transform_report_release(&report);
    cm_dataset_close(o.dataset);
    a.part[0][0].origin[0] = a.part[0][1].origin[0];
    a.part[0][1].origin[0] = 0;
    cm_multi_part first = a.part[0][0];
    a.part[0][0] = a.part[0][1];
    a.part[0][1] = first;
    o.overwrite = false;
    o.resume = true;
    assert_int_equal(cm_multi_dataset_open(&a.spec, NULL, &o.dataset, &err), CM_OK);
    assert_int_not_equal(cm_transform(&o, &report, &err), CM_OK);
    assert_false(report.written);
    cm_transform_report_release(&report);
    cm_dataset_close(o.dataset);
    cm_transform_report_release(&whole);
    release_archive(&a);
}

/* Files that must say the same and do not stop the run before anything is readable. */
static void test_clash(void **state)
{
    const way w = {.chunk = {2, NY, NX}, .deflate = 1};
    char target[96];
    cm_error err = {0};
    cm_transform_report report;
    archive a;
    (void)state;
    begin_archive(&a);
    add_file(&a, 0, 8, 0, 8, &w);
    add_file(&a, 4, 12, 8, 4, &w); /* steps 4 to 8 are in both */
    end_archive(&a, 1);
    cm_multi_check check = {.what = "overlapping steps"};
    check.part[0] = a.part[0][0];
    check.part[0].origin[0] = check.part[0].first[0] = 4;
    check.part[0].count[0] = 4;
    check.part[1] = (cm_multi_part){.file = 1, .origin = {4}, .count = {4}, .length = {8}};
    a.spec.check = &check;
    a.spec.nchecks = 1;
    snprintf(target, sizeof target, "%s/clash.zarr", multi_folder);
    cm_transform_options o;
    cm_transform_options_init(&o, CM_DEFAULTS_CHOOSE);
    o.target = target;
    for (int turn = 0; turn < 3; turn++) {
        /* The same; a step too far; the same, decided about. */
        if (turn > 0)
            check.part[1].first[0] = 1;
        check.may_differ = turn == 2;
        assert_int_equal(cm_multi_dataset_open(&a.spec, NULL, &o.dataset, &err), CM_OK);
        int rc = cm_transform(&o, &report, &err);
        assert_int_equal(rc, turn == 1 ? CM_EFORMAT : CM_OK);
        assert_int_equal(report.written, turn != 1);
        if (turn == 1) {
            assert_true(report.resumable);
            assert_string_equal(report.clash, check.what);
            assert_non_null(strstr(err.text, "element 4/0/0"));
            assert_non_null(strstr(err.text, a.path[0]));
            assert_non_null(strstr(err.text, a.path[1]));
        }
        if (turn == 2)
            assert_int_equal(report.nwarnings, 1);
        cm_transform_report_release(&report);
        cm_dataset_close(o.dataset);
        char command[160];
        snprintf(command, sizeof command, "rm -rf '%s'*", target);
        assert_int_equal(system(command), 0);
    }
    release_archive(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_splits),
                                       cmocka_unit_test(test_damage_and_resume),
                                       cmocka_unit_test(test_clash)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
