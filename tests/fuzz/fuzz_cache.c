/*
 * A folder of a cache on disk that holds what others left there: whatever it is, the cache
 * gives the objects of the slow store and nothing else, and files that are not its own stay.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fuzz.h"
#include "store/io.h"

enum {
    NOBJECTS = 3,
    MAX_OPERATIONS = 12
};

static const char *const keys[NOBJECTS] = {"a", "b/c", "empty"};
static char base[64], slow_path[80], cache_path[80];
static cm_store *slow;

static void remove_all(void)
{
    char command[160];
    if (slow != NULL)
        cm_store_free(slow);
    snprintf(command, sizeof command, "rm -rf '%s'", base);
    (void)!system(command);
}

static void object_bytes(size_t i, uint8_t *data, size_t *nbytes)
{
    *nbytes = i == 2 ? 0 : 100 + 300 * i;
    for (size_t k = 0; k < *nbytes; k++)
        data[k] = (uint8_t)(k * (i + 3));
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    struct stat st;
    uint8_t data[1024];
    size_t n;
    (void)argc;
    (void)argv;
    snprintf(base, sizeof base, "%s/fuzz-cache-XXXXXX",
             stat("/dev/shm", &st) == 0 ? "/dev/shm" : "/tmp");
    REQUIRE(mkdtemp(base) != NULL);
    snprintf(slow_path, sizeof slow_path, "%s/slow", base);
    snprintf(cache_path, sizeof cache_path, "%s/cache", base);
    REQUIRE(cm_store_open_dir(slow_path, true, &slow, NULL) == CM_OK);
    for (size_t i = 0; i < NOBJECTS; i++) {
        object_bytes(i, data, &n);
        REQUIRE(cm_store_put(slow, keys[i], data, n, NULL) == CM_OK);
    }
    atexit(remove_all);
    return 0;
}

static int cache_fd;

static void put_file(const char *name, const uint8_t *data, size_t nbytes)
{
    int fd = openat(cache_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) {
        REQUIRE(pwrite(fd, data, nbytes, 0) == (ssize_t)nbytes);
        close(fd);
    }
}

/* Changes bytes of each file that the cache has in its folders. */
static void damage(uint64_t at, uint8_t value, uint64_t length)
{
    DIR *top = opendir(cache_path);
    REQUIRE(top != NULL);
    for (struct dirent *e; (e = readdir(top));) {
        if (strlen(e->d_name) != 2 || e->d_name[0] == '.')
            continue;
        int sub = openat(cache_fd, e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = sub >= 0 ? fdopendir(sub) : NULL;
        for (struct dirent *f; d && (f = readdir(d));) {
            int fd = f->d_name[0] != '.' ? openat(sub, f->d_name, O_WRONLY | O_CLOEXEC) : -1;
            if (fd >= 0 && length > 0)
                REQUIRE(ftruncate(fd, (off_t)(length % 1024)) == 0);
            else if (fd >= 0)
                REQUIRE(pwrite(fd, &value, 1, (off_t)(at % 600)) == 1);
            if (fd >= 0)
                close(fd);
        }
        if (d)
            closedir(d);
    }
    closedir(top);
}

static void check_object(cm_store *cache, size_t i)
{
    uint8_t want[1024];
    size_t n;
    cm_buf got = {0};
    cm_error err;
    object_bytes(i, want, &n);
    REQUIRE(cm_store_get(cache, keys[i], 1 << 20, &got, &err) == CM_OK);
    REQUIRE(got.nbytes == n && (n == 0 || memcmp(got.data, want, n) == 0));
    cm_object_reader *reader;
    if (n > 50 && cm_object_open(cache, keys[i], &reader, &err) == CM_OK) {
        uint8_t part[20];
        REQUIRE(cm_object_nbytes(reader) == n);
        REQUIRE(cm_object_read(reader, 30, part, sizeof part, &err) == CM_OK);
        REQUIRE(memcmp(part, want + 30, sizeof part) == 0);
        cm_object_close(reader);
    }
    cm_buf_release(&got);
}

static void empty_folder(int parent, const char *name)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (unlinkat(fd, e->d_name, 0) != 0)
            empty_folder(fd, e->d_name);
    }
    if (d)
        closedir(d);
    (void)unlinkat(parent, name, AT_REMOVEDIR);
}

static bool is_foreign_there(void)
{
    char text[8] = {0};
    int fd = openat(cache_fd, "tmp-notes.txt", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text);
    close(fd);
    return n == 4 && memcmp(text, "mine", 4) == 0;
}

static void use(cm_store *cache, fuzz_input *in)
{
    for (size_t k = 0; k < MAX_OPERATIONS && in->nbytes > 0; k++) {
        const uint8_t what = (uint8_t)fuzz_number(in, 1);
        if (what % 4 == 3) {
            const uint64_t at = fuzz_number(in, 2), length = fuzz_number(in, 1);
            damage(at, what, length);
        } else {
            check_object(cache, what % 4 % NOBJECTS);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    fuzz_input in = {data, nbytes};
    cm_store *cache;
    cm_error err;
    const uint64_t most = 200 + 16 * fuzz_number(&in, 1);
    const size_t nstate = fuzz_number(&in, 1) % 40;
    const unsigned beside = (unsigned)fuzz_number(&in, 1);
    const bool is_cache = !(beside & 2);
    REQUIRE(mkdir(cache_path, 0700) == 0);
    cache_fd = open(cache_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(cache_fd >= 0);
    put_file("tmp-notes.txt", (const uint8_t *)"mine", 4);
    if (nstate > 0 && nstate <= in.nbytes) {
        put_file("state", in.data, nstate);
        in.data += nstate;
        in.nbytes -= nstate;
    }
    if (beside & 1)
        put_file("tmp-1-2", data, nbytes);
    if (is_cache)
        put_file("lock", NULL, 0);
    if (cm_store_open_disk_cache(slow, cache_path, most, &cache, &err) == CM_OK) {
        use(cache, &in);
        cm_store_free(cache);
    } else {
        /* A folder of other files may be refused; one that has been a cache only for its state. */
        REQUIRE(!is_cache || nstate > 0);
    }
    REQUIRE(is_foreign_there());
    close(cache_fd);
    int parent = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(parent >= 0);
    empty_folder(parent, "cache");
    close(parent);
    return 0;
}
