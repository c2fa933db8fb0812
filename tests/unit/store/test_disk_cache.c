/* A cache on disk: what it keeps, what it lets go, and what it survives. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../unit.h"
#include "store/cache_copy.h"
#include "store/checksum.h"
#include "store/io.h"

#define OK(call)                                                                                   \
    do {                                                                                           \
        if ((call) != CM_OK)                                                                       \
            fail_msg("%s: %s", #call, err.text);                                                   \
    } while (0)

typedef struct fixture {
    char top[64], slow_path[80], path[80];
    cm_store *slow, *cache;
} fixture;

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    strcpy(f->top, "/tmp/cm-cache-XXXXXX");
    if (!mkdtemp(f->top))
        return -1;
    snprintf(f->slow_path, sizeof f->slow_path, "%s/slow", f->top);
    snprintf(f->path, sizeof f->path, "%s/cache", f->top);
    return cm_store_open_dir(f->slow_path, true, &f->slow, NULL);
}

static int tear_down(void **state)
{
    fixture *f = *state;
    cm_store_free(f->cache);
    cm_store_free(f->slow);
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", f->top);
    free(f);
    return system(command) == 0 ? 0 : -1;
}

/* The cache closed, if it was open, and opened with room for NBYTES. */
static cm_store *open_cache(fixture *f, uint64_t nbytes)
{
    cm_error err = {0};
    cm_store_free(f->cache);
    f->cache = NULL;
    OK(cm_store_open_disk_cache(f->slow, f->path, nbytes, &f->cache, &err));
    return f->cache;
}

static uint8_t byte_at(const char *key, size_t k)
{
    return (uint8_t)(key[strlen(key) - 1] * 31 + k * 7 + k / 251);
}

static void put_object(fixture *f, const char *key, size_t nbytes)
{
    cm_error err = {0};
    uint8_t *bytes = malloc(nbytes + 1);
    for (size_t k = 0; k < nbytes; k++)
        bytes[k] = byte_at(key, k);
    OK(cm_store_put(f->slow, key, bytes, nbytes, &err));
    free(bytes);
}

static bool is_right(const char *key, size_t offset, const uint8_t *bytes, size_t nbytes)
{
    for (size_t k = 0; k < nbytes; k++)
        if (bytes[k] != byte_at(key, offset + k))
            return false;
    return true;
}

static void assert_object(cm_store *s, const char *key, size_t nbytes)
{
    cm_error err = {0};
    cm_buf buf = {0};
    OK(cm_store_get(s, key, nbytes, &buf, &err));
    assert_int_equal(buf.nbytes, nbytes);
    assert_true(is_right(key, 0, buf.data, nbytes));
    cm_buf_release(&buf);
}

static void assert_counts(cm_store *s, uint64_t hits, uint64_t misses)
{
    cm_disk_cache_counts c = cm_store_disk_cache_counts(s);
    if (c.hits != hits || c.misses != misses)
        fail_msg("%d hits, %d misses", (int)c.hits, (int)c.misses);
}

/*
 * Bytes of all files of the cache but its lock and state; *NFILES may be NULL, PATH gets the
 * last one.
 */
static uint64_t count_files(const fixture *f, int *nfiles, char *path)
{
    uint64_t nbytes = 0;
    int n = 0;
    char command[200], line[300];
    snprintf(command, sizeof command, "find %s -type f -printf '%%s %%p\\n' 2>/dev/null", f->path);
    FILE *p = popen(command, "r");
    while (fgets(line, sizeof line, p)) {
        unsigned long long size;
        char name[200];
        if (sscanf(line, "%llu %199s", &size, name) != 2 || strstr(name, "/lock") ||
            strstr(name, "/state"))
            continue;
        nbytes += size;
        n++;
        if (path)
            strcpy(path, name);
    }
    pclose(p);
    if (nfiles)
        *nfiles = n;
    return nbytes;
}

static void test_hits(void **state)
{
    fixture *f = *state;
    cm_error err = {0};
    cm_buf buf = {0};
    put_object(f, "a/x", 1000);
    put_object(f, "a/y", 200000);
    put_object(f, "empty", 0);
    cm_store *s = open_cache(f, 1 << 20);
    for (int turn = 0; turn < 3; turn++) {
        assert_object(s, "a/x", 1000);
        assert_object(s, "a/y", 200000);
        assert_object(s, "empty", 0);
        assert_counts(s, 3 * (uint64_t)turn, 3);
    }
    s = open_cache(f, 1 << 20); /* another process finds it */
    assert_object(s, "a/x", 1000);
    assert_counts(s, 1, 0);
    /* The source decides: what is gone is gone, what is new is read anew, same size or not. */
    put_object(f, "a/x", 999);
    assert_object(s, "a/x", 999);
    assert_counts(s, 1, 1);
    static uint8_t fives[200000];
    memset(fives, 5, sizeof fives);
    OK(cm_store_put(f->slow, "a/y", fives, sizeof fives, &err));
    OK(cm_store_get(s, "a/y", 200000, &buf, &err));
    assert_int_equal(buf.data[77], 5);
    assert_counts(s, 1, 2);
    OK(cm_store_delete(f->slow, "a/x", &err));
    assert_int_equal(cm_store_get(s, "a/x", 1000, &buf, &err), CM_ENOTFOUND);
    assert_int_equal(cm_store_get(s, "a/y", 199999, &buf, &err), CM_EFORMAT);
    assert_int_equal(cm_store_put(s, "b", "x", 1, &err), CM_EINVAL);
    assert_non_null(strstr(err.text, "only read from"));
    assert_int_equal(cm_store_delete(s, "a/y", &err), CM_EINVAL);
    assert_int_equal(cm_store_sync(s, &err), CM_EINVAL);
    assert_int_equal(cm_store_sweep(s, "", NULL, NULL, &err), CM_EINVAL);
    cm_object_writer *w;
    assert_int_equal(cm_object_create(s, "b", NULL, &w, &err), CM_EINVAL);
    assert_int_equal(cm_store_disk_cache_counts(f->slow).hits, 0);
    cm_buf_release(&buf);
    cm_store *memory, *none;
    OK(cm_store_open_memory(&memory, &err));
    assert_int_equal(cm_store_open_disk_cache(memory, f->path, 1 << 20, &none, &err),
                     CM_EUNSUPPORTED);
    cm_store_free(memory);
    char below[100];
    snprintf(below, sizeof below, "%s/a/y", f->slow_path);
    assert_int_not_equal(cm_store_open_disk_cache(f->slow, below, 1 << 20, &none, &err), CM_OK);
    assert_non_null(strstr(err.text, below));
}

static void test_bad_ranges_and_good(void **state)
{
    fixture *f = *state;
    enum {
        SIZE = 5 * CM_CACHE_BLOCK + 1234
    };
    cm_error err = {0};
    put_object(f, "shard", SIZE);
    static const struct {
        uint64_t offset;
        size_t nbytes;
    } row[] = {{0, 1},
               {CM_CACHE_BLOCK - 1, 2},
               {CM_CACHE_BLOCK, CM_CACHE_BLOCK},
               {10, 3 * CM_CACHE_BLOCK},
               {SIZE - 1, 1},
               {5 * CM_CACHE_BLOCK, 1234},
               {0, SIZE},
               {SIZE, 0}};
    uint8_t *got = malloc(SIZE);
    for (int turn = 0; turn < 3; turn++) { /* copied, found, and found with another reader open */
        cm_store *s = turn == 2 ? f->cache : open_cache(f, 1 << 20);
        cm_object_reader *r, *other;
        OK(cm_object_open(s, "shard", &r, &err));
        OK(cm_object_open(s, "shard", &other, &err));
        assert_int_equal(cm_object_nbytes(r), SIZE);
        for (size_t again = 0; again < 2; again++) { /* checked, and known to be good */
            for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
                memset(got, 0, row[i].nbytes);
                OK(cm_object_read(r, row[i].offset, got, row[i].nbytes, &err));
                assert_true(is_right("shard", (size_t)row[i].offset, got, row[i].nbytes));
            }
        }
        cm_object_close(other);
        cm_object_close(r);
    }
    assert_counts(f->cache, 4, 0);
    free(got);
}

typedef struct damage {
    const char *name;
    int at;  /* -1: in the middle of the bytes; else from the start of the file */
    int cut; /* of the end; negative: so much longer */
} damage;

static const damage damages[] = {
    {"a byte of the object", -1, 0},
    {"magic", 0, 0},
    {"its checksum", 9, 0},
    {"size", 16, 0},
    {"time", 25, 0},
    {"a checksum", 130, 0},
    {"cut", 1 << 30, 1},
    {"half", 1 << 30, 100000},
    {"nothing left", 1 << 30, 1 << 30},
    {"longer", 1 << 30, -10},
};

static void damage_file(const fixture *f, const damage *d)
{
    char path[200];
    int n;
    uint64_t size = count_files(f, &n, path);
    assert_int_equal(n, 1);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    uint64_t at = d->at < 0 ? size - 60000 : (uint64_t)d->at;
    uint8_t byte;
    if (at < size && pread(fd, &byte, 1, (off_t)at) == 1) {
        byte ^= 0x10;
        assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    }
    if (d->cut)
        assert_int_equal(ftruncate(fd, d->cut > (int)size ? 0 : (off_t)((int)size - d->cut)), 0);
    close(fd);
}

static void test_damage(void **state)
{
    fixture *f = *state;
    enum {
        SIZE = 200000
    };
    cm_error err = {0};
    put_object(f, "x", SIZE);
    uint8_t *got = malloc(SIZE);
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        const damage *d = &damages[i];
        cm_store *s = open_cache(f, 1 << 20);
        assert_object(s, "x", SIZE);
        damage_file(f, d);
        s = open_cache(f, 1 << 20);
        assert_object(s, "x", SIZE); /* read anew ... */
        cm_disk_cache_counts c = cm_store_disk_cache_counts(s);
        if (c.misses != 1)
            fail_msg("%s was not noticed", d->name);
        assert_object(s, "x", SIZE); /* ... and copied again */
        assert_counts(s, 1, 1);

        damage_file(f, d);
        s = open_cache(f, 1 << 20);
        cm_object_reader *r;
        OK(cm_object_open(s, "x", &r, &err));
        OK(cm_object_read(r, 0, got, SIZE, &err));
        assert_true(is_right("x", 0, got, SIZE));
        OK(cm_object_read(r, 150000, got, 10, &err));
        assert_true(is_right("x", 150000, got, 10));
        if (cm_store_disk_cache_counts(s).misses != 1)
            fail_msg("%s was not noticed", d->name);
        cm_object_close(r);
    }
    /* Damage while a copy is open, and the source has changed since: no mixture of two objects. */
    cm_store *s = open_cache(f, 1 << 20);
    cm_object_reader *r;
    OK(cm_object_open(s, "x", &r, &err));
    damage_file(f, &damages[0]);
    put_object(f, "x", SIZE);
    assert_int_equal(cm_object_read(r, 0, got, SIZE, &err), CM_EFORMAT);
    assert_non_null(strstr(err.text, "x: changed while it was read"));
    cm_object_close(r);
    free(got);
}

static void wait_a_little(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 30 * 1000 * 1000}, NULL);
}

static void test_bound(void **state)
{
    fixture *f = *state;
    enum {
        ROOM = 10 * 1200
    };
    char key[20];
    for (int i = 0; i < 26; i++) {
        snprintf(key, sizeof key, "k/%c", 'a' + i);
        put_object(f, key, 1000); /* and a head of less than 200 */
    }
    put_object(f, "huge", 2 * ROOM);
    cm_store *s = open_cache(f, ROOM);
    for (int i = 0; i < 26; i++) {
        snprintf(key, sizeof key, "k/%c", 'a' + i);
        assert_object(s, key, 1000);
        wait_a_little();
        assert_object(s, "k/a", 1000); /* used all the time */
        assert_true(count_files(f, NULL, NULL) <= ROOM);
    }
    assert_counts(s, 26, 26);
    assert_true(cm_store_disk_cache_counts(s).evictions >= 26 - 12);
    assert_object(s, "k/z", 1000);
    assert_object(s, "k/a", 1000);
    assert_counts(s, 28, 26);
    assert_object(s, "k/b", 1000);
    assert_counts(s, 28, 27); /* long gone */

    int before, after;
    count_files(f, &before, NULL);
    for (int turn = 0; turn < 2;
         turn++) { /* too large: read past the cache, and nothing has to go */
        cm_error err = {0};
        cm_object_reader *r;
        uint8_t got[100];
        assert_object(s, "huge", 2 * ROOM);
        OK(cm_object_open(s, "huge", &r, &err));
        OK(cm_object_read(r, 300, got, sizeof got, &err));
        assert_true(is_right("huge", 300, got, sizeof got));
        cm_object_close(r);
    }
    count_files(f, &after, NULL);
    assert_int_equal(before, after);
    assert_counts(s, 28, 31);
    open_cache(f, ROOM / 2); /* with less room than there was */
    assert_true(count_files(f, NULL, NULL) <= ROOM / 2);
    open_cache(f, 0);
    assert_object(f->cache, "k/a", 1000);
    assert_int_equal(count_files(f, NULL, NULL), 0);
}

static void test_lost_state(void **state)
{
    fixture *f = *state;
    static const char *const make[] = {"rm -f %s/state", "echo garbage garbage garbage > %s/state",
                                       "truncate -s 10 %s/state", "rm -rf %s/*"};
    char key[20], command[200];
    for (int i = 0; i < 20; i++) {
        snprintf(key, sizeof key, "k/%c", 'a' + i);
        put_object(f, key, 1000);
    }
    for (size_t m = 0; m < sizeof make / sizeof *make; m++) {
        for (int open_again = 0; open_again < 2; open_again++) {
            cm_store *s = open_cache(f, 6 * 1200);
            for (int i = 0; i < 20; i++) {
                snprintf(key, sizeof key, "k/%c", 'a' + i);
                assert_object(s, key, 1000);
                if (i == 10) {
                    snprintf(command, sizeof command, make[m], f->path);
                    assert_int_equal(system(command), 0);
                    if (open_again)
                        s = open_cache(f, 6 * 1200);
                }
            }
            assert_true(count_files(f, NULL, NULL) <= 6 * 1200);
            int n;
            count_files(f, &n, NULL);
            assert_true(n > 0);
        }
    }
}

/* A folder that is not the cache's alone: files of others stay, however little room there is. */
static void test_files_of_others(void **state)
{
    fixture *f = *state;
    static const char *const others[] = {"10/0",
                                         "ab/letter.txt",
                                         "ab/0123456789abcdef0123456789abc",
                                         "ab/0123456789abcdef0123456789abcde",
                                         "ab/0123456789ABCDEF0123456789abcd",
                                         "tmp-notes",
                                         "tmp-12",
                                         "tmp-12-",
                                         "tmp-12-3.txt"};
    char command[200], path[160], key[20];
    open_cache(f, 3 * 1200);
    snprintf(command, sizeof command, "mkdir -p %s/10 %s/ab", f->path, f->path);
    assert_int_equal(system(command), 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(command, sizeof command, "echo mine > %s/%s", f->path, others[i]);
        assert_int_equal(system(command), 0);
    }
    cm_store *s = open_cache(f, 3 * 1200);
    for (int i = 0; i < 20; i++) {
        snprintf(key, sizeof key, "k/%c", 'a' + i);
        put_object(f, key, 1000);
        assert_object(s, key, 1000);
    }
    assert_true(cm_store_disk_cache_counts(s).evictions > 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(path, sizeof path, "%s/%s", f->path, others[i]);
        if (access(path, F_OK) != 0)
            fail_msg("%s is gone", others[i]);
    }
    cm_error err = {0};
    cm_store *refused;
    snprintf(command, sizeof command, "echo a file that belongs to somebody else > %s/state",
             f->path);
    assert_int_equal(system(command), 0);
    assert_int_equal(cm_store_open_disk_cache(f->slow, f->path, 1 << 20, &refused, &err),
                     CM_EINVAL);
    assert_non_null(strstr(err.text, f->path));
    /* A folder that is neither empty nor a cache does not become one. */
    snprintf(command, sizeof command, "rm %s/state %s/lock", f->path, f->path);
    assert_int_equal(system(command), 0);
    assert_int_equal(cm_store_open_disk_cache(f->slow, f->path, 1 << 20, &refused, &err),
                     CM_EINVAL);
    assert_non_null(strstr(err.text, "other files"));
}

enum {
    NKEYS = 40,
    SHARED_ROOM = 300000
};

/* Reads at random until it is killed or has done it N times; the number of wrong answers. */
static int hammer(fixture *f, unsigned seed, int n)
{
    cm_store *s;
    cm_buf buf = {0};
    int wrong = 0;
    if (cm_store_open_disk_cache(f->slow, f->path, SHARED_ROOM, &s, NULL) != CM_OK)
        return 1;
    for (int i = 0; i < n; i++) {
        char key[20];
        int k = rand_r(&seed) % NKEYS;
        snprintf(key, sizeof key, "k/%c", 'A' + k);
        size_t nbytes = (size_t)k * 1500;
        if (i % 3) {
            wrong += cm_store_get(s, key, nbytes, &buf, NULL) != CM_OK || buf.nbytes != nbytes ||
                     !is_right(key, 0, buf.data, nbytes);
        } else {
            cm_object_reader *r;
            wrong += cm_object_open(s, key, &r, NULL) != CM_OK;
            if (cm_buf_resize(&buf, nbytes, NULL) ||
                cm_object_read(r, nbytes / 3, buf.data, nbytes / 2, NULL) ||
                !is_right(key, nbytes / 3, buf.data, nbytes / 2))
                wrong++;
            cm_object_close(r);
        }
    }
    cm_buf_release(&buf);
    cm_store_free(s);
    return wrong;
}

static pid_t start_hammer(fixture *f, unsigned seed, int n)
{
    pid_t child = fork();
    if (child == 0)
        _exit(hammer(f, seed, n) != 0);
    return child;
}

static void test_shared(void **state)
{
    fixture *f = *state;
    char key[20];
    for (int k = 0; k < NKEYS; k++) {
        snprintf(key, sizeof key, "k/%c", 'A' + k);
        put_object(f, key, (size_t)k * 1500);
    }
    for (unsigned turn = 0; turn < 6; turn++) {
        pid_t steady = start_hammer(f, turn, 500), doomed = start_hammer(f, 100 + turn, 1 << 30);
        nanosleep(&(struct timespec){.tv_nsec = (20 + 13 * (long)turn) * 1000000}, NULL);
        int status, steady_status;
        kill(steady, SIGSTOP); /* files that move could be counted twice */
        kill(doomed, SIGSTOP);
        waitpid(doomed, &status, WUNTRACED);
        waitpid(steady, &steady_status, WUNTRACED);
        bool is_bounded = count_files(f, NULL, NULL) <= SHARED_ROOM;
        kill(doomed, SIGKILL);
        kill(steady, SIGCONT);
        assert_int_equal(waitpid(doomed, &status, 0), doomed);
        assert_true(WIFSIGNALED(status));
        if (WIFSTOPPED(steady_status)) /* else it was done before */
            assert_int_equal(waitpid(steady, &steady_status, 0), steady);
        assert_int_equal(steady_status, 0);
        assert_true(is_bounded);
        assert_true(count_files(f, NULL, NULL) <= SHARED_ROOM);
    }
    assert_int_equal(hammer(f, 7, 200), 0);
    /* Files of killed processes were removed when the cache was opened again. */
    char command[200];
    snprintf(command, sizeof command, "! ls %s | grep -q tmp-", f->path);
    assert_int_equal(system(command), 0);
}

static void *hammer_thread(void *argument)
{
    fixture *f = argument;
    cm_buf buf = {0};
    intptr_t wrong = 0;
    for (int i = 0; i < 300; i++) {
        char key[20];
        snprintf(key, sizeof key, "k/%c", 'A' + i * 7 % NKEYS);
        size_t nbytes = (size_t)(i * 7 % NKEYS) * 1500;
        wrong += cm_store_get(f->cache, key, nbytes, &buf, NULL) != CM_OK ||
                 !is_right(key, 0, buf.data, nbytes);
    }
    cm_buf_release(&buf);
    return (void *)wrong;
}

static void test_threads(void **state)
{
    fixture *f = *state;
    char key[20];
    for (int k = 0; k < NKEYS; k++) {
        snprintf(key, sizeof key, "k/%c", 'A' + k);
        put_object(f, key, (size_t)k * 1500);
    }
    open_cache(f, SHARED_ROOM);
    pthread_t thread[4];
    for (int t = 0; t < 4; t++)
        assert_int_equal(pthread_create(&thread[t], NULL, hammer_thread, f), 0);
    for (int t = 0; t < 4; t++) {
        void *wrong;
        pthread_join(thread[t], &wrong);
        assert_null(wrong);
    }
    cm_disk_cache_counts c = cm_store_disk_cache_counts(f->cache);
    assert_int_equal(c.hits + c.misses, 4 * 300);
    assert_true(count_files(f, NULL, NULL) <= SHARED_ROOM);
}

static void test_checksum(void **state)
{
    (void)state;
    uint8_t data[100] = {0};
    uint64_t seen[200];
    size_t n = 0;
    for (size_t nbytes = 0; nbytes <= sizeof data; nbytes++) /* zeros of every length differ */
        seen[n++] = cm_checksum64(data, nbytes, 0);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            assert_true(seen[i] != seen[k]);
    for (size_t k = 0; k < sizeof data; k++)
        data[k] = (uint8_t)(k * 37);
    uint64_t good = cm_checksum64(data, sizeof data, 3);
    assert_true(good != cm_checksum64(data, sizeof data, 4));
    for (size_t bit = 0; bit < 8 * sizeof data; bit++) {
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_true(cm_checksum64(data, sizeof data, 3) != good);
        data[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_true(cm_checksum64(data, sizeof data, 3) == good);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_hits),
        TEST(test_bad_ranges_and_good),
        TEST(test_damage),
        TEST(test_bound),
        TEST(test_lost_state),
        TEST(test_shared),
        TEST(test_files_of_others),
        TEST(test_threads),
        cmocka_unit_test(test_checksum),
    };
    return cmocka_run_group_tests_name("disk_cache", tests, NULL, NULL);
}
