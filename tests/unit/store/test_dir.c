/* Faults that only a folder on a real file system can have. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "store/store.h"
#include "store/walk.h"

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
    assert_int_equal(cm_store_delete(s, "folder", &err), CM_OK);
    assert_true(exists("folder"));
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
    static const struct {
        const char *name;
        cm_entry_kind kind;
    } row[] = {{"link", CM_ENTRY_OTHER},   {"fifo", CM_ENTRY_OTHER},  {"real", CM_ENTRY_FILE},
               {"nothing", CM_ENTRY_NONE}, {"real/x", CM_ENTRY_NONE}, {"loop", CM_ENTRY_OTHER},
               {"link/x", CM_ENTRY_OTHER}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        cm_entry_kind kind;
        assert_int_equal(cm_store_kind(s, row[i].name, &kind, &err), CM_OK);
        if (kind != row[i].kind)
            fail_msg("%s: %d", row[i].name, kind);
    }
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

/* A file size limit stands in for a full disk: the write stops short, fails, and leaves nothing. */
static void check_failed_write(bool unread, size_t nbytes)
{
    static char data[100000];
    cm_store *s = open_root();
    cm_error err = {0};
    struct rlimit old, small = {4096, RLIM_INFINITY};
    cm_store_set_unread(s, unread);
    assert_true(nbytes <= sizeof data);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = cm_store_put(s, "a/big", data, nbytes, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(rc, CM_EIO);
    assert_non_null(strstr(err.text, "a/big: "));
    assert_int_equal(rmdir(path("a")), 0); /* nothing was left in it */
    cm_store_free(s);
}

static void test_failed_write(void **state)
{
    (void)state;
    check_failed_write(false, 100000);
}

/* Objects of a store that nobody reads yet are put under their own names: the same as ever. */
static void test_unread_store(void **state)
{
    (void)state;
    static char data[70000];
    cm_store *s = open_root();
    cm_error err = {0};
    cm_buf buf = {0};
    memset(data, 'x', sizeof data);
    write_file("here", "old");
    assert_int_equal(symlink("here", path("link")), 0);
    cm_store_set_unread(s, true);
    for (int round = 0; round < 2; round++) { /* new, and replaced */
        assert_int_equal(cm_store_put(s, "a/b/c", data, 1000, &err), CM_OK);
        assert_int_equal(cm_store_put(s, "a/b/empty", "", 0, &err), CM_OK);
        assert_int_equal(cm_store_put(s, "here", data, 10, &err), CM_OK);
        assert_int_equal(cm_store_put(s, "long", data, sizeof data, &err), CM_OK);
    }
    assert_int_equal(cm_store_get(s, "a/b/c", 1 << 20, &buf, &err), CM_OK);
    assert_int_equal(buf.nbytes, 1000);
    assert_int_equal(cm_store_get(s, "here", 1 << 20, &buf, &err), CM_OK);
    assert_int_equal(buf.nbytes, 10);
    assert_int_equal(cm_store_get(s, "long", 1 << 20, &buf, &err), CM_OK);
    assert_int_equal(buf.nbytes, sizeof data);
    assert_int_equal(cm_store_put(s, "link", data, 10, &err), CM_EEXIST);
    assert_int_equal(cm_store_put(s, "a/b", data, 10, &err), CM_EEXIST);
    assert_int_equal(cm_store_put(s, "link/x", data, 10, &err), CM_EEXIST);
    cm_buf_release(&buf);
    cm_store_free(s);
}

/* Nor under the name that it had taken at once. */
static void test_failed_write_of_unread_store(void **state)
{
    (void)state;
    check_failed_write(true, 50000);
    check_failed_write(true, 100000);
}

static char taken[256]; /* a path */

/* Another run breaks the lock, and puts its own object there, while ours is being written. */
static void put_another(int number)
{
    const int was = errno;
    (void)number;
    (void)unlink(taken);
    const int fd = open(taken, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (write(fd, "another's", 9) != 9)
        _exit(1);
    close(fd);
    errno = was;
}

/* The object that is there by then is another's, and stays. */
static void test_failed_write_over_another(void **state)
{
    (void)state;
    static char data[100000];
    cm_store *s = open_root();
    cm_error err = {0};
    cm_buf buf = {0};
    struct rlimit old, small = {4096, RLIM_INFINITY};
    cm_store_set_unread(s, true);
    snprintf(taken, sizeof taken, "%s", path("a/big"));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    void (*handler)(int) = signal(SIGXFSZ, put_another);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int rc = cm_store_put(s, "a/big", data, sizeof data, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(rc, CM_EIO);
    assert_int_equal(cm_store_get(s, "a/big", 100, &buf, &err), CM_OK);
    assert_int_equal(buf.nbytes, 9);
    cm_buf_release(&buf);
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
    assert_int_equal(cm_object_create(s, "c/0", NULL, &w, &err), CM_OK);
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
    assert_int_equal(cm_store_put(s, "a", "new", 3, &err), CM_OK);
    assert_true(exists("a"));
    cm_store_free(s);
}

/* ---- links and other strange things in an output ---- */

/* "store" with a file, a folder, links to both outside, and a FIFO; "outside" beside it. */
static cm_store *make_strange(void)
{
    cm_store *s;
    cm_error err = {0};
    assert_int_equal(mkdir(path("outside"), 0777), 0);
    write_file("outside/file", "precious");
    assert_int_equal(mkdir(path("outside/empty"), 0777), 0);
    assert_int_equal(mkdir(path("store"), 0777), 0);
    assert_int_equal(mkdir(path("store/folder"), 0777), 0);
    write_file("store/file", "old");
    write_file("store/folder/file", "old");
    assert_int_equal(symlink("../outside", path("store/way")), 0);
    assert_int_equal(symlink("../outside/file", path("store/alias")), 0);
    assert_int_equal(symlink("../outside/new", path("store/dangling")), 0);
    assert_int_equal(symlink("../../outside", path("store/folder/way")), 0);
    assert_int_equal(mkfifo(path("store/fifo"), 0666), 0);
    if (cm_store_open_output(path("store"), false, &s, &err) != CM_OK)
        fail_msg("%s", err.text);
    return s;
}

static void assert_outside_untouched(void)
{
    char text[16] = "";
    FILE *f = fopen(path("outside/file"), "r");
    assert_non_null(f);
    assert_non_null(fgets(text, sizeof text, f));
    fclose(f);
    assert_string_equal(text, "precious");
    assert_true(exists("outside/empty"));
    assert_false(exists("outside/new"));
    assert_false(exists("outside/0"));
}

static void test_nothing_is_written_through_links(void **state)
{
    (void)state;
    static const char *const through[] = {"way/0",        "way/file",       "way/a/b",
                                          "folder/way/0", "folder/way/a/0", "dangling/0",
                                          "dangling/a/0"};
    static const char *const in_place[] = {"alias", "dangling", "fifo", "way", "folder"};
    cm_store *s = make_strange();
    cm_error err = {0};
    cm_buf buf = {0};
    cm_store *below;
    for (size_t i = 0; i < sizeof through / sizeof *through; i++) {
        assert_int_equal(cm_store_put(s, through[i], "x", 1, &err), CM_EEXIST);
        assert_non_null(strstr(err.text, "symbolic link"));
        assert_int_equal(cm_store_delete(s, through[i], &err), CM_EEXIST);
        assert_int_not_equal(cm_store_get(s, through[i], 99, &buf, &err), CM_OK);
        assert_int_not_equal(cm_store_size(s, through[i], NULL, &err), CM_OK);
        assert_outside_untouched();
    }
    for (size_t i = 0; i < sizeof in_place / sizeof *in_place; i++) {
        cm_object_writer *w;
        assert_int_equal(cm_store_put(s, in_place[i], "x", 1, &err), CM_EEXIST);
        assert_int_equal(cm_object_create(s, in_place[i], NULL, &w, &err), CM_OK);
        assert_int_equal(cm_object_write(w, 0, "x", 1, &err), CM_OK);
        assert_int_equal(cm_object_commit(w, &err), CM_EEXIST);
        assert_int_not_equal(cm_store_get(s, in_place[i], 99, &buf, &err), CM_OK);
        assert_int_equal(cm_store_delete(s, in_place[i], &err),
                         strcmp(in_place[i], "folder") == 0 ? CM_OK : CM_EEXIST);
        assert_true(exists("store/folder/file"));
        assert_outside_untouched();
    }
    assert_int_equal(cm_store_open_below(s, "way", true, &below, &err), CM_EEXIST);
    assert_int_equal(cm_store_open_below(s, "way/new", true, &below, &err), CM_EEXIST);
    assert_int_equal(cm_store_open_below(s, "alias", true, &below, &err), CM_EEXIST);
    assert_int_equal(cm_store_open_below(s, "nothing", false, &below, &err), CM_ENOTFOUND);
    assert_int_equal(cm_store_open_below(s, "made/deep", true, &below, &err), CM_OK);
    assert_int_equal(cm_store_put(below, "0", "x", 1, &err), CM_OK);
    assert_true(exists("store/made/deep/0"));
    cm_store_free(below);
    assert_outside_untouched();
    cm_buf_release(&buf);
    cm_store_free(s);
}

/* Another name of the same file keeps what it had. */
static int join_walked(void *context, const char *below, uint64_t nbytes, cm_error *err)
{
    (void)nbytes;
    (void)err;
    strcat(strcat(context, below), " ");
    return 0;
}

/* Links to folders are followed where reading follows them, and never around in a circle. */
static void test_walk_and_links(void **state)
{
    (void)state;
    cm_store_free(make_strange());
    assert_int_equal(symlink("..", path("outside/back")), 0);
    write_file("outside/.chunkmill-1-2.tmp", "");
    cm_store *input, *output;
    static const struct {
        const char *name;
        bool in_input, in_output;
    } row[] = {{"file ", true, true},
               {"folder/file ", true, true},
               {"alias ", true, true},
               {"dangling ", true, true},
               {"fifo ", true, true},
               {"way/file ", true, false},
               {"folder/way/file ", true, false},
               {"way/.chunkmill-1-2.tmp ", true, false},
               {"way/back/store/file ", false, false}};
    char seen[2][4000] = {" ", " "};
    assert_int_equal(cm_store_open_dir(path("store"), false, &input, NULL), CM_OK);
    assert_int_equal(cm_store_open_output(path("store"), false, &output, NULL), CM_OK);
    assert_int_equal(cm_store_walk(input, "", join_walked, seen[0], NULL), CM_OK);
    assert_int_equal(cm_store_walk(output, "", join_walked, seen[1], NULL), CM_OK);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char name[80];
        snprintf(name, sizeof name, " %s", row[i].name);
        if ((strstr(seen[0], name) != NULL) != row[i].in_input ||
            (strstr(seen[1], name) != NULL) != row[i].in_output)
            fail_msg("%s: %s; %s", name, seen[0], seen[1]);
    }
    cm_store_free(input);
    cm_store_free(output);
}

static void test_hard_links(void **state)
{
    (void)state;
    cm_store *s = open_root();
    cm_error err = {0};
    cm_buf buf = {0};
    write_file("mine", "precious");
    char from[256];
    strcpy(from, path("mine"));
    assert_int_equal(link(from, path("0.0")), 0);
    assert_int_equal(cm_store_put(s, "0.0", "chunk", 5, &err), CM_OK);
    assert_int_equal(cm_store_get(s, "mine", 99, &buf, &err), CM_OK);
    assert_int_equal(buf.nbytes, 8);
    assert_int_equal(cm_store_get(s, "0.0", 99, &buf, &err), CM_OK);
    assert_int_equal(buf.nbytes, 5);
    cm_buf_release(&buf);
    cm_store_free(s);
}

/* ---- sweeping ---- */

typedef struct asked {
    char text[2000]; /* "file f, folder d/, ..." */
    cm_verdict file, temporary, folder, other;
} asked;

static cm_verdict judge(void *context, const char *below, cm_entry_kind kind)
{
    asked *a = context;
    static const char *const sign[] = {"?", "", "~", "/", "@"};
    size_t n = strlen(a->text);
    snprintf(a->text + n, sizeof a->text - n, "%s%s ", below, sign[kind]);
    return kind == CM_ENTRY_FILE        ? a->file
           : kind == CM_ENTRY_TEMPORARY ? a->temporary
           : kind == CM_ENTRY_FOLDER    ? a->folder
                                        : a->other;
}

static void test_sweep(void **state)
{
    (void)state;
    cm_store *s = make_strange();
    cm_error err = {0};
    write_file("store/folder/.chunkmill-1-1.tmp", "left");
    assert_int_equal(mkdir(path("store/folder/.chunkmill-1-2.tmp"), 0777), 0);

    asked nothing = {.folder = CM_ENTER};
    assert_int_equal(cm_store_sweep(s, "", judge, &nothing, &err), CM_OK);
    assert_string_equal(nothing.text,
                        "alias@ dangling@ fifo@ file folder/ folder/.chunkmill-1-1.tmp~ "
                        "folder/.chunkmill-1-2.tmp/ folder/file folder/way@ way@ ");
    asked shallow = {.folder = CM_KEEP};
    assert_int_equal(cm_store_sweep(s, "folder", judge, &shallow, &err), CM_OK);
    assert_string_equal(shallow.text, ".chunkmill-1-1.tmp~ .chunkmill-1-2.tmp/ file way@ / ");
    assert_true(exists("store/folder/.chunkmill-1-2.tmp"));

    asked temporaries = {.folder = CM_REMOVE, .temporary = CM_REMOVE};
    assert_int_equal(cm_store_sweep(s, "folder", judge, &temporaries, &err), CM_OK);
    assert_false(exists("store/folder/.chunkmill-1-1.tmp"));
    assert_false(exists("store/folder/.chunkmill-1-2.tmp")); /* a folder, and empty */
    assert_true(exists("store/folder/file"));

    asked all = {.file = CM_REMOVE, .folder = CM_REMOVE, .other = CM_REMOVE};
    static const char *const nowhere[] = {"way", "folder/way", "way/empty", "file", "fifo", "none"};
    for (size_t i = 0; i < sizeof nowhere / sizeof *nowhere; i++)
        assert_int_equal(cm_store_sweep(s, nowhere[i], judge, &all, &err), CM_OK);
    assert_outside_untouched();
    assert_int_equal(cm_store_sweep(s, "", judge, &all, &err), CM_OK);
    assert_outside_untouched();
    assert_false(exists("store/file") || exists("store/folder/file"));
    assert_true(exists("store/alias") && exists("store/dangling") && exists("store/fifo"));
    assert_true(exists("store/folder/way") && exists("store/way"));

    assert_int_equal(unlink(path("store/folder/way")), 0);
    assert_int_equal(cm_store_sweep(s, "folder", judge, &all, &err), CM_OK);
    assert_false(exists("store/folder"));
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

/* ---- others in the same folders ---- */

static atomic_bool over;

/* As a run that ends or begins: an empty folder goes as soon as it is seen. */
static void *remove_empty(void *context)
{
    static const char *const NAME[] = {"s/a/b/c", "s/a/b", "s/a", "s"};
    char name[4][128];
    (void)context;
    for (size_t i = 0; i < COUNT(NAME); i++)
        snprintf(name[i], sizeof name[i], "%s/%s", root, NAME[i]);
    /* One that never pauses wins on a CPU of its own, however often a folder is made again. */
    const struct timespec pause = {.tv_nsec = 20000};
    for (; !over; nanosleep(&pause, NULL))
        for (size_t i = 0; i < COUNT(NAME); i++)
            (void)rmdir(name[i]);
    return NULL;
}

static void test_folders_that_vanish_are_made_again(void **state)
{
    (void)state;
    enum {
        ROUNDS = 100
    };
    pthread_t remover;
    char name[128];
    snprintf(name, sizeof name, "%s/s/a", root);
    over = false;
    assert_int_equal(pthread_create(&remover, NULL, remove_empty, NULL), 0);
    for (int i = 0; i < ROUNDS; i++) {
        cm_store *s, *below;
        cm_error err = {0};
        assert_int_equal(cm_store_open_dir(name, true, &s, &err), CM_OK);
        cm_store_free(s);
        s = open_root();
        assert_int_equal(cm_store_put(s, "s/a/b/c/x", "x", 1, &err), CM_OK);
        assert_int_equal(cm_store_delete(s, "s/a/b/c/x", &err), CM_OK);
        assert_int_equal(cm_store_open_below(s, "s/a/b", true, &below, &err), CM_OK);
        cm_store_free(below);
        cm_store_free(s);
    }
    over = true;
    pthread_join(remover, NULL);
}

/* A store whose folder somebody removed is an error, and no endless loop. */
static void test_removed_root_is_told(void **state)
{
    (void)state;
    cm_store *s = open_root();
    cm_error err = {0};
    assert_int_equal(rmdir(root), 0);
    assert_int_equal(cm_store_put(s, "a/b", "x", 1, &err), CM_ENOTFOUND);
    cm_store_free(s);
    assert_int_equal(mkdir(root, 0777), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)
    const struct CMUnitTest tests[] = {
        TEST(test_folders_that_vanish_are_made_again),
        TEST(test_removed_root_is_told),
        TEST(test_open),
        TEST(test_key_through_a_file),
        TEST(test_odd_files),
        TEST(test_no_permission),
        TEST(test_failed_write),
        TEST(test_unread_store),
        TEST(test_failed_write_over_another),
        TEST(test_failed_write_of_unread_store),
        TEST(test_full_disk),
        TEST(test_left_over_names),
        TEST(test_nothing_is_written_through_links),
        TEST(test_walk_and_links),
        TEST(test_hard_links),
        TEST(test_sweep),
        TEST(test_sync),
        TEST(test_deep_key),
    };
    return cmocka_run_group_tests_name("store/dir", tests, NULL, NULL);
}
