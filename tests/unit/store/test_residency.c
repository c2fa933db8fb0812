/*
 * Files in the page cache.  Where a file system keeps all it has there, eviction is not
 * seen.
 */
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "../unit.h"
#include "store/io.h"

enum {
    NBYTES = 3 * 4096 + 100
};

static void write_file(const char *folder, const char *name, size_t nbytes)
{
    char path[200];
    static const char bytes[4096] = "x";
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    for (size_t left = nbytes; left > 0;) {
        size_t n = left < sizeof bytes ? left : sizeof bytes;
        assert_int_equal(fwrite(bytes, 1, n, f), n);
        left -= n;
    }
    assert_int_equal(fclose(f), 0);
}

static bool keeps_all(const char *folder)
{
    struct statfs s;
    assert_int_equal(statfs(folder, &s), 0);
    return s.f_type == 0x01021994 /* tmpfs */ || s.f_type == 0x794c7630 /* overlayfs */;
}

static cm_residency measure(const char *path)
{
    cm_residency r = {.whole = true};
    cm_error err = {0};
    if (cm_residency_measure(path, 0, NULL, &r, &err) != CM_OK)
        fail_msg("%s", err.text);
    return r;
}

static void test_folder(void **state)
{
    (void)state;
    char folder[] = "/tmp/cm-residency-XXXXXX", path[200], command[200];
    cm_error err = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/sub", folder);
    assert_int_equal(mkdir(path, 0777), 0);
    write_file(folder, "a", NBYTES);
    write_file(folder, "empty", 0);
    write_file(folder, "sub/b", 8192);
    snprintf(path, sizeof path, "%s/sub/round", folder);
    assert_int_equal(symlink("..", path), 0);
    snprintf(path, sizeof path, "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0666), 0);
    snprintf(path, sizeof path, "%s/nowhere", folder);
    assert_int_equal(symlink("gone", path), 0);

    cm_residency r = measure(folder);
    assert_int_equal(r.nfiles, 3);
    assert_int_equal(r.nbytes, NBYTES + 8192);
    assert_int_equal(r.resident_nbytes, r.nbytes); /* just written */

    assert_int_equal(cm_residency_evict(folder, NULL, &err), CM_OK);
    r = measure(folder);
    assert_int_equal(r.nbytes, NBYTES + 8192);
    if (keeps_all(folder))
        print_message("this file system keeps all its pages: eviction is not seen\n");
    else
        assert_int_equal(r.resident_nbytes, 0);

    snprintf(path, sizeof path, "%s/a", folder); /* one file */
    assert_int_equal(cm_residency_warm(path, NULL, &err), CM_OK);
    r = measure(path);
    assert_int_equal(r.nfiles, 1);
    assert_int_equal(r.resident_nbytes, NBYTES);
    assert_int_equal(cm_residency_warm(folder, NULL, &err), CM_OK);
    assert_int_equal(measure(folder).resident_nbytes, NBYTES + 8192);

    snprintf(command, sizeof command, "rm -rf %s", folder);
    assert_int_equal(system(command), 0);
    cm_residency none = {.whole = true};
    assert_int_equal(cm_residency_measure(folder, 0, NULL, &none, &err), CM_ENOTFOUND);
    assert_non_null(strstr(err.text, folder));
    assert_int_equal(cm_residency_evict(folder, NULL, &err), CM_ENOTFOUND);
    assert_int_equal(cm_residency_warm(folder, NULL, &err), CM_ENOTFOUND);
    assert_int_equal(cm_residency_measure("/dev/null", 0, NULL, &none, &err), CM_EINVAL);
}

/* More pages than are asked about at once; sparse, so that it takes no room. */
static void test_large(void **state)
{
    (void)state;
    char path[] = "/tmp/cm-residency-XXXXXX";
    int fd = mkstemp(path);
    off_t nbytes = ((off_t)1 << 28) + 5000;
    assert_int_equal(ftruncate(fd, nbytes), 0);
    char last;
    assert_int_equal(pread(fd, &last, 1, nbytes - 1), 1);
    cm_residency r = measure(path);
    assert_int_equal(r.nbytes, nbytes);
    assert_int_equal(r.asked_nbytes, nbytes);
    assert_true(r.whole);
    cm_residency late = {.whole = true};
    assert_int_equal(cm_residency_measure(path, 1, NULL, &late, NULL), CM_OK);
    assert_false(late.whole);
    assert_int_equal(late.nfiles, 0);
    assert_true(r.resident_nbytes >= 5000 - 4096 && r.resident_nbytes < (uint64_t)nbytes);
    close(fd);
    unlink(path);
}

static bool want_after(void *context)
{
    unsigned *left = context;
    return *left == 0 || (*left)-- == 0;
}

/*
 * A sparse file of 4 TiB, whose pages take an hour to ask for: each verb ends at the first question
 * that is answered with yes, in the middle of it too.
 */
static void test_a_file_without_end_is_left(void **state)
{
    (void)state;
    char path[] = "/tmp/cm-residency-XXXXXX";
    int fd = mkstemp(path);
    if (ftruncate(fd, (off_t)1 << 42) != 0) {
        print_message("no file of 4 TiB can be made here\n");
        close(fd);
        unlink(path);
        skip();
    }
    for (unsigned questions = 0; questions < 4; questions++) {
        unsigned left = questions;
        const cm_stop stop = {want_after, &left};
        cm_residency r = {.whole = true};
        cm_error err = {0};
        assert_int_equal(cm_residency_measure(path, 0, &stop, &r, &err), CM_ECANCELED);
        assert_int_equal(r.nfiles, 0);
        left = questions;
        assert_int_equal(cm_residency_warm(path, &stop, &err), CM_ECANCELED);
    }
    unsigned none = 0;
    const cm_stop at_once = {want_after, &none};
    assert_int_equal(cm_residency_evict(path, &at_once, NULL), CM_ECANCELED);
    /* The time limit holds within a file. */
    cm_residency late = {.whole = true};
    assert_int_equal(cm_residency_measure(path, 10000000, NULL, &late, NULL), CM_OK);
    assert_false(late.whole);
    assert_true(late.asked_nbytes < (uint64_t)1 << 42);
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_a_file_without_end_is_left),
    };
    return cmocka_run_group_tests_name("residency", tests, NULL, NULL);
}
