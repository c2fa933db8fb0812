/* Records that are kept from one survey to the next: which hold, which go, what is not believed. */

#include <sys/stat.h>

#include "../fixtures/made_folder.h"
#include "archive/survey/cache.h"
#include "archive_fixture.h"

enum {
    NFILES = 3
};

/* Files in a folder, of which each has a record, and the survey of some. */
typedef struct caching {
    made_folder folder;
    char path[NFILES][240], cache[240];
} caching;

typedef struct surveying {
    cm_survey s;
    cm_spot spot[NFILES];
    cm_survey_cache c;
} surveying;

static void caching_begin(caching *t)
{
    made_folder_begin(&t->folder);
    snprintf(t->cache, sizeof t->cache, "%s/cache", t->folder.path);
    for (unsigned i = 0; i < NFILES; i++) {
        snprintf(t->path[i], sizeof t->path[i], "%s/%c.nc", t->folder.path, 'a' + i);
        FILE *f = fopen(t->path[i], "w");
        fprintf(f, "%u bytes", i);
        fclose(f);
    }
}

/* A survey that has seen files FIRST to END, and opened its cache. */
static void seen(surveying *u, const caching *t, unsigned first, unsigned end)
{
    *u = (surveying){.s.paged = cm_paged_create(NULL, NULL)};
    u->s.nfiles = end - first;
    u->s.file = cm_paged_calloc(u->s.paged, NFILES + 1, sizeof(cm_surveyed), NULL);
    OK(cm_records_create(NULL, u->s.paged, &u->s.records, err));
    for (unsigned i = first; i < end; i++) {
        struct stat st;
        assert_int_equal(stat(t->path[i], &st), 0);
        u->s.file[i - first] = (cm_surveyed){
            .path = t->path[i], .dev = st.st_dev, .ino = st.st_ino, .nbytes = (uint64_t)st.st_size};
        u->spot[i - first] = (cm_spot){.mtime_ns = cm_look_ns(&st.st_mtim),
                                       .ctime_ns = cm_look_ns(&st.st_ctim),
                                       .regular = true};
    }
    OK(cm_survey_cache_open(&u->c, t->cache, NULL, err));
}

static void seen_end(surveying *u)
{
    cm_survey_cache_release(&u->c);
    cm_survey_release(&u->s);
}

/* The record of file I, made of a table, has the identity of the file that is there. */
static void look_at(surveying *u, unsigned i)
{
    static const made_file CONTENT = {
        "made", .var = {STEP(0), {"v", "int16", "t*=1 y=2", .attrs = "{'units': 'K'}"}}};
    cm_looker l = {0};
    cm_frame f;
    cm_dataset *ds = made_open(&CONTENT);
    const cm_surveyed *file = &u->s.file[i];
    OK(cm_look_at(&l, ds, i, err));
    for (size_t at = 0; at < l.out.nbytes; at += sizeof f + f.nbytes) {
        uint8_t *payload = l.out.data + at + sizeof f;
        cm_spot *spot = &u->spot[i];
        uint64_t offset;
        memcpy(&f, l.out.data + at, sizeof f);
        if (f.kind == CM_FRAME_FILE) {
            cm_store_le64(payload + 8, file->dev);
            cm_store_le64(payload + 16, file->ino);
            cm_store_le64(payload + 24, file->nbytes);
            cm_store_le64(payload + 32, spot->mtime_ns);
            cm_store_le64(payload + 40, spot->ctime_ns);
        }
        OK(cm_records_append(u->s.records, &f, payload, &offset, err));
        if (f.kind == CM_FRAME_FILE) {
            spot->offset = offset;
            spot->nbytes = f.nbytes;
        }
    }
    cm_looker_release(&l);
    cm_dataset_close(ds);
}

static void save(surveying *u)
{
    OK(cm_records_map(u->s.records, err));
    for (size_t i = 0; i < u->s.nfiles; i++)
        if (u->spot[i].offset != 0)
            OK(cm_surveyed_read(&u->s, &u->s.file[i], &u->spot[i], err));
    OK(cm_survey_cache_save(&u->c, &u->s, u->spot, err));
}

/* A cache of files FIRST to END, each of which was looked at. */
static void make_cache(const caching *t, unsigned first, unsigned end)
{
    surveying u;
    seen(&u, t, first, end);
    OK(cm_survey_cache_load(&u.c, &u.s, u.spot, err));
    for (unsigned i = 0; i < end - first; i++)
        if (u.spot[i].offset == 0) {
            look_at(&u, i);
            u.c.is_old = true;
        }
    save(&u);
    seen_end(&u);
}

/* How many of the survey's files have a record now. */
static unsigned nknown(const surveying *u)
{
    unsigned n = 0;
    for (size_t i = 0; i < u->s.nfiles; i++)
        n += u->spot[i].offset != 0;
    return n;
}

/* ---- records that hold ---- */

static void kept(void **state)
{
    caching t;
    surveying u;
    (void)state;
    caching_begin(&t);
    seen(&u, &t, 0, 2);
    OK(cm_survey_cache_load(&u.c, &u.s, u.spot, err)); /* there is none */
    assert_true(nknown(&u) == 0 && u.s.cache_refused == NULL && !u.c.is_old);
    seen_end(&u);

    make_cache(&t, 0, 2);
    seen(&u, &t, 0, 2);
    OK(cm_survey_cache_load(&u.c, &u.s, u.spot, err));
    assert_null(u.s.cache_refused);
    assert_true(nknown(&u) == 2 && u.c.nothers == 0 && !u.c.is_old);
    OK(cm_records_map(u.s.records, err));
    for (size_t i = 0; i < 2; i++) {
        OK(cm_surveyed_read(&u.s, &u.s.file[i], &u.spot[i], err));
        assert_int_equal(u.s.file[i].skeleton->nvars, 2);
        assert_string_equal(u.s.file[i].skeleton->var[1]->name, "v");
    }
    seen_end(&u);

    /* A file that is new has none, and those of files that this survey is not about stay. */
    seen(&u, &t, 1, 3);
    OK(cm_survey_cache_load(&u.c, &u.s, u.spot, err));
    assert_true(u.spot[0].offset != 0 && u.spot[1].offset == 0);
    assert_int_equal(u.c.nothers, 1);
    seen_end(&u);
    make_cache(&t, 1, 3);
    seen(&u, &t, 0, 3);
    OK(cm_survey_cache_load(&u.c, &u.s, u.spot, err));
    assert_int_equal(nknown(&u), 3);
    seen_end(&u);
    made_folder_end(&t.folder);
}

/* A record goes where its file is not as it was. */
static void changed(void **state)
{
    static const char *const CHANGES[] = {"nothing", "inode", "size", "mtime", "ctime", "kind"};
    caching t;
    (void)state;
    caching_begin(&t);
    make_cache(&t, 0, 2);
    for (unsigned k = 0; k < COUNT(CHANGES); k++) {
        surveying u;
        seen(&u, &t, 0, 2);
        u.s.file[0].ino += k == 1;
        u.s.file[0].nbytes += k == 2;
        u.spot[0].mtime_ns += k == 3;
        u.spot[0].ctime_ns += k == 4;
        u.spot[0].regular = k != 5;
        u.s.file[0].dev++; /* which another mount may change */
        OK(cm_survey_cache_load(&u.c, &u.s, u.spot, err));
        if ((u.spot[0].offset != 0) != (k == 0) || u.spot[1].offset == 0 || u.c.is_old != (k > 0))
            fail_msg("%s", CHANGES[k]);
        assert_null(u.s.cache_refused);
        seen_end(&u);
    }
    made_folder_end(&t.folder);
}

static void others_that_changed(void **state)
{
    caching t;
    surveying u;
    (void)state;
    caching_begin(&t);
    make_cache(&t, 0, 3);
    FILE *f = fopen(t.path[0], "a");
    fputs("more", f);
    fclose(f);
    assert_int_equal(unlink(t.path[1]), 0);
    seen(&u, &t, 2, 3);
    OK(cm_survey_cache_load(&u.c, &u.s, u.spot, err));
    assert_true(nknown(&u) == 1 && u.c.nothers == 0 && u.c.is_old);
    seen_end(&u);
    made_folder_end(&t.folder);
}

/* Only a cache that is to change is written. */
static void written_again(void **state)
{
    caching t;
    surveying u;
    struct stat before, after;
    (void)state;
    caching_begin(&t);
    make_cache(&t, 0, 2);
    for (unsigned old = 0; old < 2; old++) {
        assert_int_equal(stat(t.cache, &before), 0);
        seen(&u, &t, 0, 2);
        OK(cm_survey_cache_load(&u.c, &u.s, u.spot, err));
        u.c.is_old = old;
        u.s.file[1].offline = old; /* it is not kept then */
        OK(cm_records_map(u.s.records, err));
        for (size_t i = 0; i < 2; i++)
            OK(cm_surveyed_read(&u.s, &u.s.file[i], &u.spot[i], err));
        OK(cm_survey_cache_save(&u.c, &u.s, u.spot, err));
        seen_end(&u);
        assert_int_equal(stat(t.cache, &after), 0);
        assert_int_equal(before.st_ino == after.st_ino, !old);
    }
    seen(&u, &t, 0, 2);
    OK(cm_survey_cache_load(&u.c, &u.s, u.spot, err));
    assert_true(u.spot[0].offset != 0 && u.spot[1].offset == 0);
    seen_end(&u);
    made_folder_end(&t.folder);
}

/* ---- damage ---- */

static size_t read_file(const char *path, uint8_t *data, size_t size)
{
    FILE *f = fopen(path, "r");
    const size_t n = fread(data, 1, size, f);
    fclose(f);
    return n;
}

static void write_file(const char *path, const uint8_t *data, size_t nbytes)
{
    FILE *f = fopen(path, "w");
    assert_int_equal(fwrite(data, 1, nbytes, f), nbytes);
    fclose(f);
}

/* Nothing of it is believed, and why is told. */
static void expect_refused(const caching *t, const char *what, size_t at)
{
    surveying u;
    char said[400];
    snprintf(said, sizeof said, "%s: the survey cache was ignored: ", t->cache);
    seen(&u, t, 0, 2);
    OK(cm_survey_cache_load(&u.c, &u.s, u.spot, err));
    if (u.s.cache_refused == NULL || strncmp(u.s.cache_refused, said, strlen(said)) != 0 ||
        nknown(&u) != 0 || u.c.nothers != 0 || !u.c.is_old || u.s.records->nbytes != 0)
        fail_msg("%s %zu: %s", what, at, u.s.cache_refused);
    seen_end(&u);
}

static void damaged(void **state)
{
    static uint8_t whole[1 << 16], other[1 << 16];
    caching t;
    (void)state;
    caching_begin(&t);
    make_cache(&t, 0, 3);
    const size_t n = read_file(t.cache, whole, sizeof whole);
    assert_true(n > 100 && n < sizeof whole);
    /* Behind the mark, without which the file is none of ours. */
    for (size_t at = sizeof(CM_MARK_SURVEY) - 1; at < n; at += at < 100 ? 1 : stride(23)) {
        memcpy(other, whole, n);
        other[at] ^= 0x10;
        write_file(t.cache, other, n);
        expect_refused(&t, "byte", at);
    }
    for (size_t length = sizeof(CM_MARK_SURVEY) - 1; length < n; length += stride(29)) {
        write_file(t.cache, whole, length);
        expect_refused(&t, "cut at", length);
    }
    memcpy(other, whole, n);
    other[n] = 0;
    write_file(t.cache, other, n + 1);
    expect_refused(&t, "longer than", n);
    made_folder_end(&t.folder);
}

/* Whole frames that are gone, or there twice. */
static void frames(void **state)
{
    static uint8_t whole[1 << 16], other[1 << 17];
    caching t;
    cm_frame f;
    (void)state;
    caching_begin(&t);
    make_cache(&t, 0, 3);
    const size_t n = read_file(t.cache, whole, sizeof whole);
    for (size_t at = sizeof(CM_MARK_SURVEY) - 1; at < n; at += sizeof f + f.nbytes) {
        memcpy(&f, whole + at, sizeof f);
        const size_t end = at + sizeof f + f.nbytes;
        memcpy(other, whole, at);
        memcpy(other + at, whole + end, n - end);
        write_file(t.cache, other, n - (end - at));
        expect_refused(&t, "without the frame at", at);
        memcpy(other, whole, end);
        memcpy(other + end, whole + at, n - at);
        write_file(t.cache, other, n + (end - at));
        expect_refused(&t, "twice the frame at", at);
    }
    made_folder_end(&t.folder);
}

/* ---- opening ---- */

static void opened(void **state)
{
    caching t;
    cm_survey_cache c;
    cm_error why = {0};
    (void)state;
    caching_begin(&t);
    assert_int_equal(cm_survey_cache_open(&c, t.path[0], NULL, &why), CM_EEXIST);
    cm_survey_cache_release(&c);
    assert_int_equal(cm_survey_cache_open(&c, t.cache, t.folder.path, &why), CM_EINVAL);
    cm_survey_cache_release(&c);
    OK(cm_survey_cache_open(&c, t.cache, NULL, err));
    cm_survey_cache_release(&c);
    struct stat st;
    assert_int_not_equal(stat(t.cache, &st), 0); /* nothing was written */
    made_folder_end(&t.folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kept),
                                       cmocka_unit_test(changed),
                                       cmocka_unit_test(others_that_changed),
                                       cmocka_unit_test(written_again),
                                       cmocka_unit_test(damaged),
                                       cmocka_unit_test(frames),
                                       cmocka_unit_test(opened)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
