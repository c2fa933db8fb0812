/* The ledger: lines of files, the last of each path, and a ledger that is not whole. */

#include <sys/stat.h>

#include "../fixtures/tell.h"
#include "beside_fixture.h"
#include "convert/beside/journal_line.h"
#include "convert/beside/ledger.h"

/* A list as `cm_ledger_add` takes it: "a 5 b 7", each a path and its bytes. */
static cm_json *list_of(const char *text)
{
    cm_json *list = cm_json_array();
    char path[32];
    unsigned nbytes;
    for (int used; sscanf(text, " %31s %u%n", path, &nbytes, &used) == 2; text += used) {
        const cm_ledger_entry entry = {.path = path, .nbytes = nbytes, .mtime_ns = 10 * nbytes};
        cm_json *j = NULL;
        OK(cm_ledger_json(&entry, &j, err));
        OK(cm_json_append(list, j, err));
    }
    return list;
}

static const char *say_ledger(const cm_beside *b, cm_buf *text)
{
    cm_ledger l;
    OK(cm_ledger_read(b, NULL, &l, err));
    tell_begin(text);
    for (size_t i = 0; i < l.n; i++) {
        tell(text, "%s%s %u", i > 0 ? " " : "", l.entry[i].path, (unsigned)l.entry[i].nbytes);
        assert_int_equal(l.entry[i].mtime_ns, 10 * l.entry[i].nbytes);
        assert_ptr_equal(cm_ledger_find(&l, l.entry[i].path), &l.entry[i]);
    }
    assert_null(cm_ledger_find(&l, "none"));
    cm_ledger_release(&l);
    assert_true(l.entry == NULL && l.n == 0);
    return (const char *)text->data;
}

/* ---- added ---- */

static const struct {
    const char *name;
    const char *added[3]; /* one after the other; NULL: nothing more */
    const char *ledger;
} ADDED[] = {
    {"nothing was ever", {NULL}, ""},
    {"no lines", {""}, ""},
    {"one", {"a 5"}, "a 5"},
    {"by their paths", {"b 2 a 1 c 3"}, "a 1 b 2 c 3"},
    {"more", {"b 2", "c 3", "a 1"}, "a 1 b 2 c 3"},
    {"one anew", {"a 1 b 2", "a 9"}, "a 9 b 2"},
    {"twice in one list: the last", {"a 1 a 2"}, "a 2"},
    {"and all of them anew", {"a 1 a 2 b 3", "a 4", "b 5"}, "a 4 b 5"},
    {"names that begin alike", {"a 1 ab 2 a/b 3"}, "a 1 a/b 3 ab 2"},
};

static void added(void **state)
{
    unsigned bad = 0;
    cm_buf text = {0};
    (void)state;
    for (size_t i = 0; i < COUNT(ADDED); i++) {
        made_beside m;
        made_beside_begin(&m);
        for (size_t k = 0; k < 3 && ADDED[i].added[k] != NULL; k++) {
            cm_json *list = list_of(ADDED[i].added[k]);
            OK(cm_ledger_add(&m.beside, list, err));
            cm_json_free(list);
        }
        tell_compare(ADDED[i].name, say_ledger(&m.beside, &text), ADDED[i].ledger, &bad);
        made_beside_end(&m);
    }
    cm_buf_release(&text);
    assert_int_equal(bad, 0);
    const cm_beside none = {.fd = -1};
    cm_ledger l;
    OK(cm_ledger_read(&none, NULL, &l, err)); /* of no folder */
    assert_int_equal(l.n, 0);
    cm_ledger_release(&l);
}

/* The same files every day let it not grow. */
static void it_does_not_grow(void **state)
{
    made_beside m;
    uint64_t first, nbytes;
    cm_json *list = list_of("a 1 b 2");
    (void)state;
    made_beside_begin(&m);
    OK(cm_ledger_add(&m.beside, list, err));
    OK(cm_store_size(m.beside.in, CM_LEDGER_NAME, &first, err));
    for (unsigned i = 0; i < 3; i++)
        OK(cm_ledger_add(&m.beside, list, err));
    OK(cm_store_size(m.beside.in, CM_LEDGER_NAME, &nbytes, err));
    assert_int_equal(nbytes, first);
    cm_json_free(list);
    made_beside_end(&m);
}

/* ---- written line by line ---- */

static void written(void **state)
{
    enum {
        N = 1000 /* more than is written at once */
    };
    made_beside m;
    cm_ledger_writer w;
    cm_ledger l;
    (void)state;
    made_beside_begin(&m);
    for (unsigned run = 0; run < 3; run++) {
        /* The second run fails, and changes nothing. */
        const unsigned n = run == 0 ? N : 5;
        OK(cm_ledger_begin(&m.beside, &w, err));
        for (unsigned i = 0; i < n; i++) {
            char path[64];
            snprintf(path, sizeof path, "/a/path/that/is/not/short/run%u/%04u", run, i);
            const cm_ledger_entry entry = {.path = path, .nbytes = i, .tag = "\"e\""};
            OK(cm_ledger_put(&w, &entry, err));
        }
        assert_int_equal(cm_ledger_end(&w, run == 1 ? CM_ECANCELED : CM_OK, NULL),
                         run == 1 ? CM_ECANCELED : CM_OK);
    }
    OK(cm_ledger_read(&m.beside, NULL, &l, err));
    assert_int_equal(l.n, N + 5);
    const cm_ledger_entry *e = cm_ledger_find(&l, "/a/path/that/is/not/short/run0/0999");
    assert_non_null(e);
    assert_int_equal(e->nbytes, 999);
    assert_string_equal(e->tag, "\"e\"");
    assert_null(cm_ledger_find(&l, "/a/path/that/is/not/short/run1/0001"));
    cm_ledger_release(&l);
    made_beside_end(&m);
}

/* ---- not whole ---- */

#define CUT                                                                                        \
    "the ledger is cut short or damaged; move it away, and files that are in the store are read "  \
    "again"

/* Of each byte that is missing or changed, and of each line. */
static void damaged(void **state)
{
    cm_beside b = {.path = (char *)(uintptr_t) "beside", .fd = -1};
    cm_buf whole = {0}, other = {0};
    cm_ledger l;
    cm_json *list = list_of("a 1 b 2 c 3");
    (void)state;
    OK(cm_store_open_memory(&b.in, err));
    OK(cm_ledger_add(&b, list, err));
    OK(cm_store_get(b.in, CM_LEDGER_NAME, 1 << 20, &whole, err));
    for (size_t at = 0; at < whole.nbytes; at++)
        for (unsigned kind = 0; kind < 2; kind++) {
            cm_error why = {0};
            other.nbytes = 0;
            OK(cm_buf_append(&other, whole.data, kind == 0 ? at : whole.nbytes, err));
            if (kind == 1)
                other.data[at] ^= 1;
            OK(cm_store_put(b.in, CM_LEDGER_NAME, other.data, other.nbytes, err));
            if (cm_ledger_read(&b, NULL, &l, &why) != CM_EFORMAT)
                fail_msg("%s at %zu: %s", kind == 0 ? "cut" : "changed", at, why.text);
            if (strstr(why.text, CUT) == NULL)
                fail_msg("at %zu: %s", at, why.text);
            assert_int_equal(l.n, 0);
            cm_ledger_release(&l);
            /* Nothing is added to it then. */
            if (at % 50 == 0)
                assert_int_equal(cm_ledger_add(&b, list, NULL), CM_EFORMAT);
        }
    cm_buf_release(&whole);
    cm_buf_release(&other);
    cm_json_free(list);
    cm_store_free(b.in);
}

/* Whole lines that are no ledger's. */
static void another_file(void **state)
{
    static const struct {
        const char *line[3], *error;
    } FILES[] = {
        {{"{\"chunkmill\":\"journal\",\"version\":2}"},
         "another version wrote the ledger; move it away, and files that are in the store are read "
         "again"},
        {{"{\"chunkmill\":\"ledger\",\"version\":99}", "{\"chunkmill\":\"ledger\",\"lines\":0}"},
         "another version wrote the ledger; move it away, and files that are in the store are read "
         "again"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(FILES); i++) {
        made_beside m;
        cm_buf text = {0};
        cm_ledger l;
        cm_error why = {0};
        made_beside_begin(&m);
        for (size_t k = 0; k < 3 && FILES[i].line[k] != NULL; k++)
            OK(cm_journal_line_append(&text, FILES[i].line[k], strlen(FILES[i].line[k]), err));
        OK(cm_store_put(m.beside.in, CM_LEDGER_NAME, text.data, text.nbytes, err));
        assert_int_equal(cm_ledger_read(&m.beside, NULL, &l, &why), CM_EFORMAT);
        if (strstr(why.text, FILES[i].error) == NULL)
            fail_msg("%s", why.text);
        cm_ledger_release(&l);
        cm_buf_release(&text);
        made_beside_end(&m);
    }
}

/* ---- files ---- */

static void looked_at(void **state)
{
    made_folder folder;
    char path[240], link[240], real[4096];
    cm_ledger_entry entry;
    cm_error why = {0};
    struct stat st;
    (void)state;
    made_folder_begin(&folder);
    snprintf(path, sizeof path, "%s/file", folder.path);
    snprintf(link, sizeof link, "%s/link", folder.path);
    FILE *f = fopen(path, "w");
    fputs("1234567", f);
    fclose(f);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(stat(path, &st), 0);
    OK(cm_ledger_look(link, &entry, err)); /* by its real path */
    assert_non_null(realpath(path, real));
    assert_string_equal(entry.path, real);
    assert_int_equal(entry.nbytes, 7);
    assert_int_equal(entry.mtime_ns % 1000000000, st.st_mtim.tv_nsec);
    assert_int_equal(entry.mtime_ns / 1000000000, st.st_mtim.tv_sec);
    free(entry.path);
    strcat(path, "-none");
    assert_int_equal(cm_ledger_look(path, &entry, &why), CM_ENOTFOUND);
    made_folder_end(&folder);
}

/* Where a file's elements end is kept with the dimension, and told of that one alone. */
static void ends(void **state)
{
    (void)state;
    static const cm_ledger_entry ENTRY[] = {
        {.path = (char *)(uintptr_t) "a", .along = "time", .end = 4},
        {.path = (char *)(uintptr_t) "b", .along = "x", .end = 7},
        {.path = (char *)(uintptr_t) "c"}};
    static const struct {
        const char *along;
        uint64_t end[3];
    } ROWS[] = {{"time", {4, 0, 0}}, {"x", {0, 7, 0}}, {"y", {0}}, {NULL, {0}}};
    made_beside m;
    cm_ledger_writer w;
    made_beside_begin(&m);
    OK(cm_ledger_begin(&m.beside, &w, err));
    for (size_t i = 0; i < 3; i++)
        OK(cm_ledger_put(&w, &ENTRY[i], err));
    OK(cm_ledger_end(&w, CM_OK, err));
    for (size_t r = 0; r < sizeof(ROWS) / sizeof(ROWS[0]); r++) {
        cm_ledger l;
        OK(cm_ledger_read(&m.beside, ROWS[r].along, &l, err));
        assert_int_equal(l.n, 3);
        for (size_t i = 0; i < 3; i++)
            assert_int_equal(l.entry[i].end, ROWS[r].end[i]);
        cm_ledger_release(&l);
    }
    made_beside_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(added),   cmocka_unit_test(it_does_not_grow), cmocka_unit_test(written),
        cmocka_unit_test(damaged), cmocka_unit_test(another_file),     cmocka_unit_test(looked_at),
        cmocka_unit_test(ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
