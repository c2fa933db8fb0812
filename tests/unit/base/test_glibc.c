/* Linux's functions, glibc's or those of base/glibc.c. */
#include "base/glibc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../unit.h"

static void test_rename_keeps_what_is_there(void **state)
{
    (void)state;
    char folder[] = "/tmp/chunkmill-glibc-XXXXXX";
    assert_non_null(mkdtemp(folder));
    const int at = open(folder, O_RDONLY | O_DIRECTORY);
    for (const char *name = "ab"; *name; name++) {
        const char file[] = {*name, '\0'};
        const int fd = openat(at, file, O_CREAT | O_WRONLY, 0600);
        assert_int_equal(write(fd, name, 1), 1);
        close(fd);
    }
    assert_int_equal(renameat2(at, "a", at, "b", RENAME_NOREPLACE), -1);
    if (errno != EINVAL) { /* a file system that does not know it */
        char byte = 0;
        assert_int_equal(errno, EEXIST);
        assert_int_equal(renameat2(at, "a", at, "b", RENAME_EXCHANGE), 0);
        const int fd = openat(at, "a", O_RDONLY);
        assert_int_equal(read(fd, &byte, 1), 1);
        close(fd);
        assert_int_equal(byte, 'b');
    }
    assert_int_equal(unlinkat(at, "a", 0) + unlinkat(at, "b", 0), 0);
    close(at);
    assert_int_equal(rmdir(folder), 0);
}

static void test_memory_as_a_file(void **state)
{
    (void)state;
    const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 4096), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    assert_int_equal(ftruncate(fd, 0), -1);
    close(fd);
}

static void test_random_bytes(void **state)
{
    (void)state;
    unsigned char a[16] = {0}, b[16] = {0};
    assert_int_equal(getrandom(a, sizeof a, 0), sizeof a);
    assert_int_equal(getrandom(b, sizeof b, 0), sizeof b);
    assert_memory_not_equal(a, b, sizeof a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rename_keeps_what_is_there),
        cmocka_unit_test(test_memory_as_a_file),
        cmocka_unit_test(test_random_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
