/* Logs of accesses: lines that are right and wrong, and the reads that they mean for an array. */
#include <stdio.h>

#include "../unit.h"
#include "watch/access.h"
#include "watch/access_impl.h"

#define HEAD               "{\"chunkmill\":\"access\",\"version\":1,\"store\":\"s\",\"pid\":1}\n"
#define TIMES              "\"seconds\":1,\"pid\":1,\"thread\":1"
#define KEY(key, at, rest) "{\"key\":\"" key "\",\"nbytes\":10,\"time\":" at "," TIMES rest "}\n"
#define BOX(box, at, rest) "{\"array\":\"t\",\"box\":" box ",\"time\":" at "," TIMES rest "}\n"

static const uint64_t SHAPE[] = {10, 20}, CHUNK[] = {4, 10};
static const cm_access_array ARRAY = {"t", 2, SHAPE, CHUNK, NULL};

static int parse(const char *text, cm_access_log **out, cm_error *err)
{
    return cm_access_log_parse("log", text, strlen(text), out, err);
}

static void test_lines(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message; /* NULL: it is read */
    } rows[] = {
        {HEAD KEY("t/c/0/0", "1", ""), NULL},
        {KEY("t/c/0/0", "1", ""), NULL}, /* a log that was cut in two */
        {HEAD BOX("[[0,4],[0,10]]", "1", ""), NULL},
        {HEAD "\n" KEY("zarr.json", "1", ",\"range\":[0,null],\"new\":1"), NULL},
        {HEAD KEY("t/c/0/0", "1", "") "{\"key\":\"t/c", NULL}, /* still being written */
        {"{\"key\":\"a\",\"nbytes\":null,\"time\":1," TIMES "}\n", NULL},
        {"", "log: no read is recorded in it"},
        {HEAD, "log: no read is recorded in it"},
        {"x\n", "log, line 1: not a JSON object"},
        {HEAD "[]\n", "log, line 2: not a JSON object"},
        {HEAD "{}\n", "log, line 2: neither a request, nor a box, nor an array"},
        {"{\"chunkmill\":\"survey\"}\n", "log, line 1: this is not a log of chunkmill.record"},
        {"{\"chunkmill\":\"access\",\"version\":2}\n", "log, line 1: its version is not 1"},
        {"{\"key\":7,\"nbytes\":1,\"time\":1," TIMES "}\n",
         "log, line 1: \"key\" is not the name of an object"},
        {"{\"key\":\"a\\u0000b\",\"nbytes\":1,\"time\":1," TIMES "}\n",
         "log, line 1: \"key\" is not the name of an object"},
        {"{\"key\":\"a\",\"nbytes\":-1,\"time\":1," TIMES "}\n",
         "log, line 1: \"nbytes\" is not a number of bytes"},
        {"{\"key\":\"a\",\"time\":1," TIMES "}\n",
         "log, line 1: \"nbytes\" is not a number of bytes"},
        {"{\"key\":\"a\",\"nbytes\":1,\"time\":-1," TIMES "}\n",
         "log, line 1: \"time\" is not a time in seconds"},
        {"{\"key\":\"a\",\"nbytes\":1,\"time\":NaN," TIMES "}\n",
         "log, line 1: \"time\" is not a time in seconds"},
        {"{\"key\":\"a\",\"nbytes\":1,\"time\":1,\"seconds\":1e300}\n",
         "log, line 1: \"seconds\" is not a duration in seconds"},
        {"{\"key\":\"a\",\"nbytes\":1,\"time\":1,\"seconds\":1,\"pid\":\"x\"}\n",
         "log, line 1: \"pid\" is not an integer"},
        {BOX("[[4,0]]", "1", ""), "log, line 1: \"box\" is not a list of [first, end]"},
        {BOX("[[0,1,2]]", "1", ""), "log, line 1: \"box\" is not a list of [first, end]"},
        {BOX("{}", "1", ""), "log, line 1: \"box\" is not a list of [first, end]"},
        {BOX("[[-1,1]]", "1", ""), "log, line 1: \"box\" is not a list of [first, end]"},
        {"{\"array\":\"t\",\"shape\":[1,2],\"chunks\":[1]}\n",
         "log, line 1: \"shape\" and \"chunks\" are not lists of as many lengths"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        cm_access_log *log = NULL;
        cm_error err = {0};
        const int rc = parse(rows[i].text, &log, &err);
        if (rows[i].message == NULL)
            assert_int_equal(rc, CM_OK);
        else {
            assert_int_equal(rc, CM_EFORMAT);
            assert_string_equal(err.text, rows[i].message);
            assert_null(log);
        }
        cm_access_log_free(log);
    }
}

static void test_a_long_line_and_many_dimensions(void **state)
{
    (void)state;
    char *text = malloc(CM_ACCESS_LINE + 64);
    cm_access_log *log;
    cm_error err = {0};
    assert_non_null(text);
    memset(text, ' ', CM_ACCESS_LINE + 63);
    text[CM_ACCESS_LINE + 63] = '\0';
    assert_int_equal(parse(text, &log, &err), CM_EFORMAT);
    assert_string_equal(err.text, "log, line 1: it is longer than 65536 bytes");
    strcpy(text, "{\"array\":\"t\",\"time\":1," TIMES ",\"box\":[");
    for (unsigned j = 0; j <= CM_MAX_RANK; j++)
        strcat(text, j > 0 ? ",[0,1]" : "[0,1]");
    strcat(text, "]}\n");
    assert_int_equal(parse(text, &log, &err), CM_EFORMAT);
    free(text);
}

static void test_keys(void **state)
{
    (void)state;
    static const struct {
        const char *key, *name;
        unsigned rank;
        bool is_chunk;
    } rows[] = {
        {"t/c/1/2", "t", 2, true},
        {"t/1.2", "t", 2, true},
        {"t/1/2", "t", 2, true},
        {"t/c.1.2", "t", 2, true},
        {"c/1/2", "", 2, true},
        {"1.2", "", 2, true},
        {"g/t/c/1/2", "g/t", 2, true},
        {"t/c", "t", 0, true},
        {"t/0", "t", 0, true},
        {"t/zarr.json", "t", 2, false},
        {"t/.zarray", "t", 2, false},
        {"t/1", "t", 2, false},
        {"t/1/2/3", "t", 2, false},
        {"t", "t", 2, false},
        {"tt/1/2", "t", 2, false},
        {"t/c/1/", "t", 2, false},
        {"t/c/-1/2", "t", 2, false},
        {"", "t", 2, false},
        {"t/c/1/99999999999999999999", "t", 2, false},
        {"", "", 0, false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        uint64_t coord[CM_MAX_RANK] = {0};
        assert_int_equal(cm_access_key_coord(rows[i].key, rows[i].name, rows[i].rank, coord),
                         rows[i].is_chunk);
        if (rows[i].is_chunk && rows[i].rank == 2)
            assert_true(coord[0] == 1 && coord[1] == 2);
    }
}

/* "0+4 0+10, 4+2 10+5 | 2 at a time" */
static void describe(const cm_access_reads *r, char *buf, size_t size)
{
    size_t n = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < r->n; i++) {
        cm_box box;
        cm_access_box(r, i, &box);
        n += (size_t)snprintf(buf + n, size - n, "%s", i > 0 ? ", " : "");
        for (unsigned j = 0; j < box.rank; j++)
            n += (size_t)snprintf(buf + n, size - n, "%s%d+%d", j > 0 ? " " : "", (int)box.start[j],
                                  (int)box.shape[j]);
    }
    snprintf(buf + n, size - n, " | %u of %u", r->together, r->nprocesses);
}

static void test_reads(void **state)
{
    (void)state;
    static const struct {
        const char *text, *reads;
        bool wanted;
    } rows[] = {
        {BOX("[[0,4],[3,8]]", "1", ""), "0+4 3+5 | 1 of 1", true},
        /* By their beginning, whatever the order of lines. */
        {BOX("[[4,5],[0,1]]", "5", "") BOX("[[0,4],[3,8]]", "1", ""), "0+4 3+5, 4+1 0+1 | 1 of 1",
         true},
        {BOX("[[4,5],[0,1]]", "1.5", "") BOX("[[0,4],[3,8]]", "1", ""), "0+4 3+5, 4+1 0+1 | 2 of 1",
         true},
        /* Boxes of one selection are one read. */
        {BOX("[[4,5],[0,1]]", "1", ",\"read\":3") BOX("[[0,4],[3,8]]", "1", ",\"read\":3"),
         "4+1 0+1, 0+4 3+5 | 1 of 1", true},
        {"{\"array\":\"t\",\"box\":[[0,1],[0,1]],\"time\":1,\"seconds\":1,\"pid\":2}\n" BOX(
             "[[0,4],[3,8]]", "1", ""),
         "0+1 0+1, 0+4 3+5 | 2 of 2", true},
        /* Nothing was asked for, or of another array. */
        {BOX("[[4,4],[0,1]]", "1", "") KEY("t/zarr.json", "1", ""), " | 0 of 0", false},
        /* Where there are boxes, requests are not reads. */
        {KEY("t/c/0/0", "1", "") BOX("[[0,4],[3,8]]", "1", ""), "0+4 3+5 | 1 of 1", true},
        /* Chunks under way at once that fill a box; the last one is clipped. */
        {KEY("t/c/2/1", "1", ""), "8+2 10+10 | 1 of 1", false},
        {KEY("t/c/0/0", "1", "") KEY("t/c/0/1", "1.5", "") KEY("t/c/1/0", "1.5", "")
             KEY("t/c/1/1", "2", ""),
         "0+8 0+20 | 1 of 1", false},
        {KEY("t/c/0/0", "1", "") KEY("t/c/1/1", "1.5", ""), "0+4 0+10, 4+4 10+10 | 2 of 1", false},
        {KEY("t/c/0/0", "1", "") KEY("t/c/0/1", "3", ""), "0+4 0+10, 0+4 10+10 | 1 of 1", false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        cm_access_log *log;
        cm_access_reads reads;
        char text[256];
        assert_int_equal(parse(rows[i].text, &log, NULL), CM_OK);
        assert_int_equal(cm_access_reads_find(log, &ARRAY, &reads, NULL), CM_OK);
        describe(&reads, text, sizeof text);
        assert_string_equal(text, rows[i].reads);
        assert_int_equal(reads.wanted, rows[i].wanted);
        cm_access_reads_release(&reads);
        cm_access_log_free(log);
    }
}

static void test_stores_that_changed(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message; /* NULL: none */
        bool rechunked;
    } rows[] = {
        {"{\"array\":\"t\",\"shape\":[10,20],\"chunks\":[4,10]}\n" BOX("[[0,4],[3,8]]", "1", ""),
         NULL, false},
        {"{\"array\":\"t\",\"shape\":[10,20],\"chunks\":[1,20]}\n" BOX("[[0,4],[3,8]]", "1", ""),
         NULL, true},
        {"{\"array\":\"t\",\"shape\":[9,20],\"chunks\":[4,10]}\n" BOX("[[0,4],[3,8]]", "1", ""),
         "log, line 1: t had 9 elements along dimension 0 and has 10 now: the store changed since, "
         "or it is another one",
         false},
        {"{\"array\":\"t\",\"shape\":[9],\"chunks\":[4]}\n" BOX("[[0,4]]", "1", ""),
         "log, line 1: t had 1 dimensions and has 2 now: the store changed since, or it is another "
         "one",
         false},
        {BOX("[[0,11],[3,8]]", "1", ""),
         "log, line 1: t was read up to element 11 of dimension 0, and has 10 there now: the store "
         "changed since, or it is another one",
         false},
        {KEY("t/c/3/0", "1", ""),
         "log, line 1: the array has no chunk t/c/3/0 now: the store changed since, or it is "
         "another one",
         false},
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        cm_access_log *log;
        cm_access_reads reads;
        cm_error err = {0};
        assert_int_equal(parse(rows[i].text, &log, NULL), CM_OK);
        const int rc = cm_access_reads_find(log, &ARRAY, &reads, &err);
        assert_int_equal(rc, rows[i].message == NULL ? CM_OK : CM_EINVAL);
        if (rows[i].message != NULL)
            assert_string_equal(err.text, rows[i].message);
        assert_int_equal(reads.rechunked && rc == CM_OK, rows[i].rechunked);
        cm_access_reads_release(&reads);
        cm_access_log_free(log);
    }
}

static void test_requests_are_counted(void **state)
{
    (void)state;
    cm_access_log *log;
    cm_access_reads reads;
    const char *key;
    uint64_t nbytes;
    assert_int_equal(
        parse(HEAD KEY("zarr.json", "1", "") KEY("t/c/0/0", "1", "")
                  KEY("t/c/0/1", "2",
                      ",\"range\":[0,4]") "{\"key\":\"t/c/1/1\",\"nbytes\":null,\"time\":9," TIMES
                                          "}\n",
              &log, NULL),
        CM_OK);
    assert_int_equal(cm_access_log_requests(log), 4);
    assert_int_equal(cm_access_reads_find(log, &ARRAY, &reads, NULL), CM_OK);
    assert_int_equal(reads.nrequests, 3);
    assert_int_equal(reads.nmissing, 1);
    assert_int_equal(reads.stored_nbytes, 20);
    assert_true(cm_access_log_object(log, &ARRAY, 0, &key, &nbytes));
    assert_string_equal(key, "t/c/0/0");
    assert_int_equal(nbytes, 10);
    assert_false(cm_access_log_object(log, &ARRAY, 1, &key, &nbytes));
    cm_access_reads_release(&reads);
    cm_access_log_free(log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_a_long_line_and_many_dimensions),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_stores_that_changed),
        cmocka_unit_test(test_requests_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
