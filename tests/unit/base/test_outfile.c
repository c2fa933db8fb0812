#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../unit.h"
#include "base/outfile.h"

#define OURS   "{" CM_MARK_TRACE "\"traceEvents\":[]}"
#define THEIRS "years of work"

static char folder[] = "/tmp/chunkmill-XXXXXX";

static const char *in(const char *name)
{
    static char path[16][128];
    static unsigned next;
    char *p = path[next++ % 16];
    snprintf(p, sizeof path[0], "%s/%s", folder, name);
    return p;
}

static void put(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void holds(const char *path, const char *text)
{
    char got[256] = "";
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    got[fread(got, 1, sizeof got - 1, f)] = '\0';
    fclose(f);
    assert_string_equal(got, text);
}

static unsigned nfiles(void)
{
    char command[128], text[32] = "";
    snprintf(command, sizeof command, "ls -A %s | wc -l", folder);
    FILE *p = popen(command, "r");
    assert_non_null(fgets(text, sizeof text, p));
    pclose(p);
    return (unsigned)atoi(text);
}

static int claim(cm_outfile *f, const char *path, bool overwrite)
{
    return cm_outfile_claim(f, path, &CM_KIND_TRACE, NULL, overwrite, NULL);
}

static int write_ours(cm_outfile *f)
{
    return cm_outfile_open(f, NULL) == CM_OK ? cm_outfile_write(f, OURS, strlen(OURS), NULL)
                                             : CM_EIO;
}

static void test_what_comes_between_is_not_lost(void **state)
{
    static const struct {
        const char *before, *between; /* what has the name, NULL: nothing */
        bool overwrite, kept;
    } rows[] = {
        {NULL, NULL, false, false},  {NULL, OURS, false, false},    {NULL, THEIRS, false, true},
        {NULL, THEIRS, true, false}, {OURS, OURS, false, false},    {OURS, THEIRS, false, true},
        {OURS, NULL, false, false},  {THEIRS, THEIRS, true, false}, {THEIRS, NULL, true, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *path = in("t.json");
        cm_outfile f;
        unlink(path);
        if (rows[i].before != NULL)
            put(path, rows[i].before);
        assert_int_equal(claim(&f, path, rows[i].overwrite), CM_OK);
        assert_int_equal(write_ours(&f), CM_OK);
        unlink(path);
        if (rows[i].between != NULL)
            put(path, rows[i].between);
        int rc = cm_outfile_commit(&f, NULL);
        cm_outfile_release(&f);
        if ((rc == CM_EEXIST) != rows[i].kept || (rc != CM_OK) != rows[i].kept)
            fail_msg("row %zu: %d", i, rc);
        holds(path, rows[i].kept ? rows[i].between : OURS);
        assert_int_equal(nfiles(), 1);
        unlink(path);
    }
}

/* The same inode gets other contents, and the name another kind of thing. */
static void test_what_changes_between(void **state)
{
    const char *path = in("t.json");
    cm_outfile f;
    (void)state;
    put(path, OURS);
    assert_int_equal(claim(&f, path, false), CM_OK);
    assert_int_equal(write_ours(&f), CM_OK);
    put(path, THEIRS);
    assert_int_equal(cm_outfile_commit(&f, NULL), CM_EEXIST);
    cm_outfile_release(&f);
    holds(path, THEIRS);

    put(path, OURS);
    assert_int_equal(claim(&f, path, true), CM_OK);
    assert_int_equal(write_ours(&f), CM_OK);
    unlink(path);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(cm_outfile_commit(&f, NULL), CM_EINVAL);
    cm_outfile_release(&f);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(nfiles(), 0);
}

static void test_nothing_is_left_of_what_is_not_committed(void **state)
{
    const char *path = in("t.json");
    cm_outfile f;
    (void)state;
    put(path, OURS "x");
    assert_int_equal(claim(&f, path, false), CM_OK);
    assert_int_equal(write_ours(&f), CM_OK);
    cm_outfile_release(&f);
    cm_outfile_release(&f);
    holds(path, OURS "x");
    assert_int_equal(nfiles(), 1);
    unlink(path);
}

static void test_guards(void **state)
{
    const char *store = in("in.zarr"), *file = in("in.nc");
    assert_int_equal(mkdir(store, 0777), 0);
    put(file, THEIRS);
    const char *const read[] = {strdup(store), strdup(file), "/no/such/input"};
    char made[128];
    snprintf(made, sizeof made, "%s/a/b/out.zarr", folder);
    const cm_outfile_guard guard = {.read = read, .nread = 3, .made = made};
    const struct {
        const char *path;
        int status;
    } rows[] = {
        {folder, CM_OK},    {read[0], CM_EINVAL}, {read[1], CM_EINVAL}, {made, CM_EINVAL},
        {in("a/b"), CM_OK}, {in("a"), CM_OK},     {in("b"), CM_OK},     {in("in.zarr2"), CM_OK},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (cm_outfile_check_folder(rows[i].path, &guard, NULL) != rows[i].status)
            fail_msg("%s", rows[i].path);
    char inside[160];
    snprintf(inside, sizeof inside, "%s/x/y/", read[0]);
    assert_int_equal(cm_outfile_check_folder(inside, &guard, NULL), CM_EINVAL);
    snprintf(inside, sizeof inside, "%s/x", made);
    assert_int_equal(cm_outfile_check_folder(inside, &guard, NULL), CM_EINVAL);
    cm_outfile f; /* a file may not stand where the store's parent will be made */
    assert_int_equal(cm_outfile_claim(&f, in("a"), &CM_KIND_TRACE, &guard, true, NULL), CM_EINVAL);
    cm_outfile_release(&f);
    unlink(read[1]);
    rmdir(read[0]);
    free((char *)(uintptr_t)read[0]);
    free((char *)(uintptr_t)read[1]);
}

static void test_marks(void **state)
{
    static const struct {
        const cm_document_kind *kind;
        const char *text;
        bool ours;
    } rows[] = {
        {&CM_KIND_TRACE, OURS, true},
        {&CM_KIND_TRACE, "", false},
        {&CM_KIND_TRACE, "{\"traceEvents\":[]}", false},
        {&CM_KIND_TRACE, "{\"otherData\":{\"schema\":\"chunkmill-trace-1\"}", false},
        {&CM_KIND_CERTIFICATE, "{\n  \"schema\": \"chunkmill-certificate-1\",\n", true},
        {&CM_KIND_CERTIFICATE, "{\"schema\":\"chunkmill-certificate-12\",", false},
        {&CM_KIND_CERTIFICATE, OURS, false},
        {&CM_KIND_REPORT, "{\n \"schema\": \"readbench/1\"", true},
        {&CM_KIND_REPORT, "{\"schema\":\"rechunk/1\"", false},
        {&CM_KIND_PLOT, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg ", false},
        {&CM_KIND_PLOT,
         "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- made by Chunkmill -->\n<svg ", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].kind->is_ours((const uint8_t *)rows[i].text, strlen(rows[i].text)) !=
            rows[i].ours)
            fail_msg("%s", rows[i].text);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_comes_between_is_not_lost),
        cmocka_unit_test(test_what_changes_between),
        cmocka_unit_test(test_nothing_is_left_of_what_is_not_committed),
        cmocka_unit_test(test_guards),
        cmocka_unit_test(test_marks),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
