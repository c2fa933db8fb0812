/* What only a folder on a real file system can do wrong. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/store.h"

static char root[64];
static char path_text[256];

static const char *path(const char *below)
{
    snprintf(path_text, sizeof path_text, "%s/%s", root, below);
    return path_text;
}

static int make_root(void **state)
{
    (void)state;
    strcpy(root, "/tmp/cm-dir-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
    (void)state;
    char command[400];
    snprintf(command, sizeof command, "chmod -R u+rwx %s; rm -rf %s", root, root);
    return system(command);
}

static void write_file(const char *name, const char *text)
{
    FILE *f = fopen(path(name), "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static bool exists(const char *name)
{
    struct stat st;
    return lstat(path(name), &st) == 0;
}

static cm_store *open_root(void)
{
    cm_store *s;
    cm_error err = {0};
    if (cm_store_open_dir(root, false, &s, &err) != CM_OK)
        fail_msg("%s", err.text);
    return s;
}

static void test_open(void **state)
{
    (void)state;
    cm_store *s;
    cm_error err = {0};
    assert_int_equal(cm_store_open_dir(path("none"), false, &s, &err), CM_ENOTFOUND);
    assert_non_null(strstr(err.text, "none: no such folder"));
    assert_null(s);
    write_file("file", "x");
    assert_int_equal(cm_store_open_dir(path("file"), false, &s, &err), CM_EFORMAT);
    assert_non_null(strstr(err.text, "not a folder"));
    assert_int_equal(cm_store_open_dir(path("file"), true, &s, &err), CM_EFORMAT);
    assert_int_not_equal(cm_store_open_dir(path("file/below"), true, &s, &err), CM_OK);
    assert_int_equal(cm_store_open_dir("", true, &s, &err), CM_EINVAL);

    assert_int_equal(cm_store_open_dir(path("new/er/store/"), true, &s, &err), CM_OK);
    assert_true(exists("new/er/store"));
    cm_store_free(s);
    cm_store_free(NULL);
}

static void test_key_through_a_file(void **state)
{
    (void)state;
    cm_store *s = open_root();
    cm_error err = {0};
    cm_buf buf = {0};
    write_file("file", "x");
    assert_int_not_equal(cm_store_put(s, "file/a/b", "x", 1, &err), CM_OK);
    assert_non_null(strstr(err.text, "file/a/b"));
    assert_int_equal(cm_store_get(s, "file/a/b", 9, &buf, &err), CM_ENOTFOUND);
    assert_int_equal(cm_store_delete(s, "file/a/b", &err), CM_OK);
    assert_int_equal(mkdir(path("folder"), 0777), 0);
    assert_int_not_equal(cm_store_put(s, "folder", "x", 1, &err), CM_OK);
    assert_int_equal(cm_store_prune(s, "folder", &err), CM_OK);
    assert_false(exists("folder"));
    cm_store_free(s);
}

static void test_odd_files(void **state)
{
    (void)state;
    cm_store *s = open_root();
    cm_error err = {0};
    cm_buf buf = {0};
    uint64_t n;
    assert_int_equal(mkfifo(path("fifo"), 0666), 0);
    assert_int_equal(cm_store_get(s, "fifo", 9, &buf, &err), CM_EFORMAT);
    assert_int_equal(cm_store_size(s, "fifo", &n, &err), CM_EFORMAT);
    write_file("real", "text");
    assert_int_equal(symlink("real", path("link")), 0);
    assert_int_equal(symlink("loop", path("loop")), 0);
    assert_int_equal(cm_store_get(s, "link", 9, &buf, &err), CM_OK);
    assert_int_equal(buf.nbytes, 4);
    assert_int_not_equal(cm_store_get(s, "loop", 9, &buf, &err), CM_OK);
    bool link = false;
    assert_int_equal(cm_store_is_link(s, "link", &link, &err), CM_OK);
    assert_true(link);
    assert_int_equal(cm_store_is_link(s, "real", &link, &err), CM_OK);
    assert_false(link);
    assert_int_equal(cm_store_is_link(s, "nothing", &link, &err), CM_OK);
    assert_false(link);
    cm_buf_release(&buf);
    cm_store_free(s);
}

static void test_no_permission(void **state)
{
    (void)state;
    if (geteuid() == 0) {
        print_message("root may write everywhere: not tested\n");
        skip();
    }
    cm_store *s = open_root();
    cm_error err = {0};
    assert_int_equal(mkdir(path("closed"), 0555), 0);
    assert_int_equal(cm_store_put(s, "closed/a", "x", 1, &err), CM_EIO);
    assert_non_null(strstr(err.text, "closed/a"));
    cm_store_free(s);
}

/* A file size limit stands in for a full disk: the write stops short, then fails. */
static void test_failed_write(void **state)
{
    (void)state;
    cm_store *s = open_root();
    cm_error err = {0};
    static char data[100000];
    struct rlimit old, small = {4096, RLIM_INFINITY};
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = cm_store_put(s, "a/big", data, sizeof data, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(rc, CM_EIO);
    assert_non_null(strstr(err.text, "a/big: "));
    assert_int_equal(cm_store_prune(s, "a", &err), CM_OK);
    assert_false(exists("a")); /* nothing was left in it */
    cm_store_free(s);
}

static void test_full_disk(void **state)
{
    (void)state;
    if (access("/dev/full", W_OK) != 0)
        skip();
    cm_store *s = open_root();
    cm_error err = {0};
    assert_int_equal(cm_fail_errno(&err, ENOSPC, "%s", "c/0"), CM_ENOSPC);
    cm_object_writer *w;
    assert_int_equal(cm_object_create(s, "c/0", &w, &err), CM_OK);
    /* The writer's descriptor, the newest, is pointed at a device that is always full. */
    int probe = dup(0);
    int full = open("/dev/full", O_WRONLY);
    assert_int_equal(dup2(full, probe - 1), probe - 1);
    int rc = cm_object_write(w, 0, "abc", 3, &err);
    close(full);
    close(probe);
    cm_object_abort(w);
    assert_int_equal(rc, CM_ENOSPC);
    assert_non_null(strstr(err.text, "c/0: "));
    cm_store_free(s);
}

static void test_left_over_names(void **state)
{
    (void)state;
    cm_store *s = open_root();
    cm_error err = {0};
    char mine[64];
    for (int i = 0; i < 3; i++) { /* names that a killed process with our number left */
        snprintf(mine, sizeof mine, ".chunkmill-%ld-%d.tmp", (long)getpid(), i);
        write_file(mine, "old");
    }
    write_file(".chunkmill-notes", "a user's");
    assert_int_equal(cm_store_put(s, "a", "new", 3, &err), CM_OK);
    assert_true(exists("a"));
    assert_int_equal(mkdir(path("e"), 0777), 0);
    assert_int_equal(mkdir(path("e/f"), 0777), 0);
    write_file("e/f/.chunkmill-1-1.tmp", "old");
    assert_int_equal(mkdir(path("outside"), 0777), 0);
    assert_int_equal(mkdir(path("outside/empty"), 0777), 0);
    assert_int_equal(mkdir(path("store"), 0777), 0);
    assert_int_equal(symlink("../outside", path("store/link")), 0);
    assert_int_equal(cm_store_prune(s, "store", &err), CM_OK);
    assert_true(exists("outside/empty"));
    assert_int_equal(cm_store_prune(s, "store/link", &err), CM_OK);
    assert_true(exists("outside/empty"));
    assert_int_equal(cm_store_prune(s, "", &err), CM_OK);
    assert_false(exists("e"));
    assert_false(exists(mine));
    assert_true(exists("a"));
    assert_true(exists(".chunkmill-notes"));
    assert_true(exists("store/link"));
    assert_int_equal(cm_store_prune(s, "nowhere", &err), CM_OK);
    cm_store_free(s);
}

static void test_sync(void **state)
{
    (void)state;
    cm_store *s = open_root();
    assert_int_equal(cm_store_put(s, "a", "x", 1, NULL), CM_OK);
    assert_int_equal(cm_store_sync(s, NULL), CM_OK);
    cm_store_free(s);
}

static void test_deep_key(void **state)
{
    (void)state;
    cm_store *s = open_root();
    char key[3901] = "";
    for (int i = 0; i < 3899; i++)
        key[i] = i % 2 ? '/' : 'a';
    cm_error err = {0};
    if (cm_store_put(s, key, "x", 1, &err) != CM_OK)
        fail_msg("%s", err.text);
    assert_int_equal(cm_store_size(s, key, NULL, &err), CM_OK);
    key[255] = key[257] = key[259] = 'b';
    memset(key, 'b', 300);
    assert_int_not_equal(cm_store_put(s, key, "x", 1, &err), CM_OK);
    cm_store_free(s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        TEST(test_open),
        TEST(test_key_through_a_file),
        TEST(test_odd_files),
        TEST(test_no_permission),
        TEST(test_failed_write),
        TEST(test_full_disk),
        TEST(test_left_over_names),
        TEST(test_sync),
        TEST(test_deep_key),
    };
    return cmocka_run_group_tests_name("store/dir", tests, NULL, NULL);
}
