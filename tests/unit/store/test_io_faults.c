/* Files that shrink, vanish, or are none, under every way of reading. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "store/io.h"

enum {
    SIZE = 300000
};

typedef struct fixture {
    cm_io io;
    char folder[64];
    cm_store *store;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->io = *(const cm_io *)*state;
    *state = f;
    strcpy(f->folder, "/tmp/cm-faults-XXXXXX");
    if (!mkdtemp(f->folder))
        return -1;
    int rc = cm_store_open_dir_io(f->folder, f->io, &f->store, NULL);
    return rc == CM_EUNSUPPORTED ? 0 : rc;
}

static int tear_down(void **state)
{
    fixture *f = *state;
    char command[128];
    cm_store_free(f->store);
    snprintf(command, sizeof command, "rm -rf %s", f->folder);
    free(f);
    return system(command) == 0 ? 0 : -1;
}

static cm_store *store_with(void **state, const char *key)
{
    const fixture *f = *state;
    static uint8_t bytes[SIZE];
    if (!f->store)
        skip();
    for (size_t k = 0; k < SIZE; k++)
        bytes[k] = (uint8_t)(k % 251);
    assert_int_equal(cm_store_put(f->store, key, bytes, SIZE, NULL), CM_OK);
    return f->store;
}

static const char *path_of(void **state, const char *key)
{
    static char path[100];
    snprintf(path, sizeof path, "%s/%s", ((const fixture *)*state)->folder, key);
    return path;
}

/* A mapping of a file that shrank must not end the process. */
static void test_shrunk(void **state)
{
    cm_store *s = store_with(state, "x");
    cm_error err = {0};
    cm_object_reader *r;
    static uint8_t got[SIZE];
    static const struct {
        off_t left;
        uint64_t offset;
        size_t nbytes;
        int rc;
    } row[] = {
        {200000, 0, SIZE, CM_EFORMAT},    {200000, 0, 200000, CM_OK},
        {200000, 250000, 10, CM_EFORMAT}, {4096, 0, 4097, CM_EFORMAT},
        {4096, 8192, 4096, CM_EFORMAT},   {0, 0, 1, CM_EFORMAT},
        {0, SIZE - 1, 1, CM_EFORMAT},     {100, 0, 101, CM_EFORMAT},
    };
    assert_int_equal(cm_object_open(s, "x", &r, &err), CM_OK);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        assert_int_equal(truncate(path_of(state, "x"), row[i].left), 0);
        memset(err.text, 0, sizeof err.text);
        int rc = cm_object_read(r, row[i].offset, got, row[i].nbytes, &err);
        assert_int_equal(rc, row[i].rc);
        assert_int_equal(rc != CM_OK, strstr(err.text, "x: ends at ") != NULL);
        cm_buf buf = {0};
        uint64_t nrequests;
        cm_store_read many[3] = {{.reader = r, .offset = 0, .nbytes = 0},
                                 {.reader = r, .offset = row[i].offset, .nbytes = row[i].nbytes},
                                 {.reader = r, .offset = 1, .nbytes = 0}};
        assert_int_equal(cm_store_read_many(s, many, 3, &buf, &nrequests, &err), rc);
        cm_buf_release(&buf);
    }
    cm_object_close(r);
}

static void test_vanished(void **state)
{
    cm_store *s = store_with(state, "x");
    cm_error err = {0};
    cm_object_reader *r;
    static uint8_t got[SIZE];
    assert_int_equal(cm_object_open(s, "x", &r, &err), CM_OK);
    assert_int_equal(unlink(path_of(state, "x")), 0);
    assert_int_equal(cm_object_read(r, 0, got, SIZE, &err), CM_OK); /* open, it stays */
    assert_int_equal(got[SIZE - 1], (SIZE - 1) % 251);
    cm_buf buf = {0};
    uint64_t nrequests;
    cm_store_read many[2] = {{.key = "x", .nbytes = UINT64_MAX, .max_nbytes = SIZE},
                             {.reader = r, .offset = 5, .nbytes = 1}};
    assert_int_equal(cm_store_read_many(s, many, 2, &buf, &nrequests, &err), CM_OK);
    assert_true(many[0].absent);
    assert_int_equal(buf.data[many[1].at], 5);
    cm_buf_release(&buf);
    cm_object_close(r);
}

static void test_no_files(void **state)
{
    cm_store *s = store_with(state, "x");
    cm_buf buf = {0};
    static const struct {
        const char *key;
        int rc;
    } row[] = {{"pipe", CM_EFORMAT},      {"folder", CM_ENOTFOUND}, {"gone", CM_ENOTFOUND},
               {"x/below", CM_ENOTFOUND}, {"round", CM_EIO},        {"good", CM_OK}};
    assert_int_equal(mkfifo(path_of(state, "pipe"), 0666), 0);
    assert_int_equal(mkdir(path_of(state, "folder"), 0777), 0);
    assert_int_equal(symlink("nowhere", path_of(state, "gone")), 0);
    assert_int_equal(symlink("round", path_of(state, "round")), 0);
    assert_int_equal(symlink("x", path_of(state, "good")), 0);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        cm_error err = {0};
        cm_object_reader *r = NULL;
        uint64_t nrequests;
        cm_store_read many[2] = {{.key = "x", .nbytes = UINT64_MAX, .max_nbytes = SIZE},
                                 {.key = row[i].key, .nbytes = UINT64_MAX, .max_nbytes = SIZE}};
        assert_int_equal(cm_store_get(s, row[i].key, SIZE, &buf, &err), row[i].rc);
        assert_int_equal(cm_object_open(s, row[i].key, &r, &err), row[i].rc);
        cm_object_close(r);
        int rc = cm_store_read_many(s, many, 2, &buf, &nrequests, &err);
        assert_int_equal(many[1].absent, row[i].rc == CM_ENOTFOUND);
        assert_int_equal(rc, many[1].absent ? CM_OK : row[i].rc);
        assert_true(rc == CM_OK || strstr(err.text, row[i].key));
    }
    cm_buf_release(&buf);
}

/* No descriptor is left behind by calls that fail in the middle. */
static void test_descriptors(void **state)
{
    cm_store *s = store_with(state, "x");
    cm_buf buf = {0};
    cm_store_read many[100];
    int before = dup(0);
    close(before);
    for (int turn = 0; turn < 3; turn++) {
        cm_error err = {0};
        uint64_t nrequests;
        for (int i = 0; i < 100; i++)
            many[i] = (cm_store_read){
                .key = "x", .nbytes = UINT64_MAX, .max_nbytes = i == 80 ? 10 : SIZE};
        assert_int_equal(cm_store_read_many(s, many, 100, &buf, &nrequests, &err), CM_EFORMAT);
        assert_int_equal(cm_store_get(s, "x", 10, &buf, &err), CM_EFORMAT);
        cm_object_reader *r;
        assert_int_equal(cm_object_open(s, "none", &r, &err), CM_ENOTFOUND);
    }
    int after = dup(0);
    close(after);
    assert_int_equal(before, after);
    /* Too few of them for what goes to the kernel at once: fewer go; with none, a sentence. */
    struct rlimit old, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = (struct rlimit){.rlim_cur = (rlim_t)before + 10, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    cm_error err = {0};
    uint64_t nrequests;
    many[80].max_nbytes = SIZE;
    int rc = cm_store_read_many(s, many, 100, &buf, &nrequests, &err);
    const size_t nbytes = buf.nbytes;
    few.rlim_cur = (rlim_t)before;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    int none = cm_store_read_many(s, many, 100, &buf, &nrequests, &err);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(rc, CM_OK);
    assert_int_equal(nbytes, 100 * SIZE);
    assert_int_equal(none, CM_EIO);
    assert_non_null(strstr(err.text, "Too many open files"));
    assert_int_equal(cm_store_read_many(s, many, 100, &buf, &nrequests, &err), CM_OK);
    assert_int_equal(buf.nbytes, 100 * SIZE);
    cm_buf_release(&buf);
}

static void test_refused(void **state)
{
    (void)state;
    cm_store *s;
    cm_error err = {0};
    assert_int_equal(cm_store_open_dir_io("/nowhere/at/all", CM_IO_MMAP, &s, &err), CM_ENOTFOUND);
    assert_null(s);
    /* /proc has files, but none can be read past a page cache. */
    assert_int_equal(cm_store_open_dir_io("/proc/self", CM_IO_DIRECT, &s, &err), CM_EUNSUPPORTED);
    assert_non_null(strstr(err.text, "/proc/self: "));
    assert_non_null(strstr(err.text, "O_DIRECT"));
    assert_null(s);
}

int main(void)
{
    static cm_io io[] = {CM_IO_PREAD, CM_IO_MMAP, CM_IO_URING, CM_IO_DIRECT};
#define EACH(name)                                                                                 \
    {#name " (pread)", name, set_up, tear_down, &io[0]},                                           \
        {#name " (mmap)", name, set_up, tear_down, &io[1]},                                        \
        {#name " (uring)", name, set_up, tear_down, &io[2]},                                       \
    {                                                                                              \
#name " (direct)", name, set_up, tear_down, &io[3]                                         \
    }
    const struct CMUnitTest tests[] = {
        EACH(test_shrunk),
        EACH(test_vanished),
        EACH(test_no_files),
        EACH(test_descriptors),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("store/io faults", tests, NULL, NULL);
}
