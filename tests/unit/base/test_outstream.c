#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../unit.h"
#include "base/outfile.h"
#include "base/outstream.h"

enum {
    NWRITES = 3,
    LARGE = 1 << 20
};

/* A disk that is full once, for the second write. */
typedef struct disk {
    unsigned ncalls;
    char text[64];
} disk;

static int write_disk(void *context, const void *data, size_t nbytes)
{
    disk *d = context;
    if (d->ncalls++ == 1)
        return ENOSPC;
    strncat(d->text, data, nbytes);
    return 0;
}

static void test_the_first_error_is_kept_and_nothing_is_written_behind_it(void **state)
{
    (void)state;
    disk d = {0};
    cm_outstream s;
    assert_int_equal(cm_outstream_wrap(&s, write_disk, &d), 0);
    for (int i = 0; i < NWRITES; i++) {
        fprintf(s.file, "%d", i);
        assert_int_equal(cm_outstream_flush(&s), i == 0 ? 0 : ENOSPC);
        errno = EIO; /* of another call, between the write and the question */
    }
    assert_int_equal(cm_outstream_close(&s), ENOSPC);
    assert_int_equal(d.ncalls, 2);
    assert_string_equal(d.text, "0");
}

/* Whatever is left in the buffer when it is asked: nothing, some, all. */
static void test_a_full_disk_is_told_from_any_length(void **state)
{
    static const size_t lengths[] = {1, BUFSIZ - 1, BUFSIZ, BUFSIZ + 1, 3 * BUFSIZ};
    (void)state;
    char *text = calloc(1, 3 * BUFSIZ);
    assert_non_null(text);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        cm_outstream s;
        assert_int_equal(cm_outstream_open(&s, open("/dev/full", O_WRONLY)), 0);
        for (size_t j = 0; j < lengths[i]; j++)
            putc('x', s.file);
        errno = EIO;
        assert_int_equal(cm_outstream_close(&s), ENOSPC);
        cm_outfile f;
        cm_error err = {0};
        assert_int_equal(cm_outfile_claim(&f, "/dev/full", &CM_KIND_REFERENCES, NULL, false, &err),
                         CM_OK);
        assert_int_equal(cm_outfile_open(&f, &err), CM_OK);
        fwrite(text, 1, lengths[i], cm_outfile_stream(&f, &err));
        errno = EIO;
        assert_int_equal(cm_outfile_commit(&f, &err), CM_ENOSPC);
        assert_non_null(strstr(err.text, "No space left"));
        cm_outfile_release(&f);
    }
    free(text);
}

static void test_descriptors_are_closed_or_kept(void **state)
{
    (void)state;
    cm_outstream s;
    int fd = open("/dev/null", O_WRONLY);
    assert_int_equal(cm_outstream_borrow(&s, fd), 0);
    assert_int_equal(cm_outstream_close(&s), 0);
    assert_int_not_equal(fcntl(fd, F_GETFD), -1);
    assert_int_equal(cm_outstream_open(&s, fd), 0);
    assert_int_equal(cm_outstream_close(&s), 0);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void test_a_text_is_whole(void **state)
{
    (void)state;
    cm_outtext t;
    for (size_t n = 0; n < 3 * BUFSIZ; n = 2 * n + 1) {
        FILE *to = cm_outtext_open(&t);
        assert_non_null(to);
        for (size_t i = 0; i < n; i++)
            putc('x', to);
        char *text = cm_outtext_close(&t);
        assert_int_equal(strlen(text), n);
        free(text);
    }
}

static void test_a_text_is_not_cut_where_memory_ends(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* the limit is theirs, too */
#endif
    struct rlimit before, now;
    assert_int_equal(getrlimit(RLIMIT_DATA, &before), 0);
    char *line = calloc(1, LARGE);
    assert_non_null(line);
    memset(line, 'x', LARGE - 1);
    cm_outtext t;
    FILE *to = cm_outtext_open(&t);
    now = before;
    now.rlim_cur = (rlim_t)64 * LARGE;
    assert_int_equal(setrlimit(RLIMIT_DATA, &now), 0);
    for (int i = 0; i < 128; i++)
        fputs(line, to);
    char *text = cm_outtext_close(&t);
    assert_int_equal(setrlimit(RLIMIT_DATA, &before), 0);
    assert_null(text);
    free(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_first_error_is_kept_and_nothing_is_written_behind_it),
        cmocka_unit_test(test_a_full_disk_is_told_from_any_length),
        cmocka_unit_test(test_descriptors_are_closed_or_kept),
        cmocka_unit_test(test_a_text_is_whole),
        cmocka_unit_test(test_a_text_is_not_cut_where_memory_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
