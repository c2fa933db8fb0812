/*
 * One suite that every kind of store passes.  Who includes it says which kinds there are, and
 * calls run_conformance.
 */
#ifndef TESTS_STORE_CONFORMANCE_H
#define TESTS_STORE_CONFORMANCE_H

#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit.h"
#include "store/io.h"
#include "store/walk.h"

typedef struct fixture {
    cm_store *store;   /* what is tested */
    cm_store *writer;  /* what it is filled through: itself, or what it lies over */
    void *more;        /* of the kind, released by its close */
    char folder[64];   /* "" for the store in memory */
    char reason[1024]; /* why this machine does not have STORE, which is NULL then */
} fixture;

typedef struct kind {
    const char *name;
    cm_io io;
    /* Fills STORE and WRITER; CM_EUNSUPPORTED where this machine has no such store. */
    int (*open)(fixture *f, const struct kind *k, cm_error *err);
    void (*close)(fixture *f); /* after both are freed; NULL: nothing to do */
    bool in_memory;
    /* Behind a network: replacing an object fails its readers; reads come in any order. */
    bool remote;
} kind;

typedef struct opened {
    fixture f;
    const kind *kind;
} opened;

static int open_store(void **state)
{
    const kind *k = *state;
    opened *o = calloc(1, sizeof *o);
    fixture *f = &o->f;
    cm_error err = {0};
    o->kind = k;
    *state = o;
    if (!k->in_memory) {
        strcpy(f->folder, "/tmp/cm-store-XXXXXX");
        if (!mkdtemp(f->folder))
            return -1;
    }
    int rc = k->open(f, k, &err);
    strcpy(f->reason, err.text);
    return rc == CM_EUNSUPPORTED ? 0 : rc;
}

static cm_store *store_of(void **state)
{
    const fixture *f = *state;
    if (!f->store) {
        print_message("%s\n", f->reason);
        skip();
    }
    return f->store;
}

static cm_store *writer_of(void **state)
{
    return ((const fixture *)*state)->writer;
}

static bool is_remote(void **state)
{
    return ((const opened *)*state)->kind->remote;
}

static int close_store(void **state)
{
    opened *o = *state;
    fixture *f = &o->f;
    if (f->store != f->writer)
        cm_store_free(f->store);
    cm_store_free(f->writer);
    if (o->kind->close)
        o->kind->close(f);
    if (f->folder[0]) {
        char command[200];
        snprintf(command, sizeof command, "rm -rf %s %s.cache", f->folder, f->folder);
        if (system(command) != 0)
            return -1;
    }
    free(o);
    return 0;
}

static void put_text(cm_store *s, const char *key, const char *text)
{
    cm_error err = {0};
    if (cm_store_put(s, key, text, strlen(text), &err) != CM_OK)
        fail_msg("put %s: %s", key, err.text);
}

static void assert_text(cm_store *s, const char *key, const char *text)
{
    cm_error err = {0};
    cm_buf buf = {0};
    if (cm_store_get(s, key, 1000, &buf, &err) != CM_OK)
        fail_msg("get %s: %s", key, err.text);
    assert_int_equal(buf.nbytes, strlen(text));
    if (buf.nbytes)
        assert_memory_equal(buf.data, text, buf.nbytes);
    cm_buf_release(&buf);
}

static void test_put_and_get(void **state)
{
    cm_store *s = store_of(state), *to = writer_of(state);
    cm_buf buf = {0};
    cm_error err = {0};
    assert_int_equal(cm_store_get(s, "a", 10, &buf, &err), CM_ENOTFOUND);
    assert_non_null(strstr(err.text, "a: no such object"));
    assert_int_equal(cm_store_size(s, "a", NULL, &err), CM_ENOTFOUND);

    put_text(to, "a", "first");
    put_text(to, "deep/er/and/deeper", "below");
    put_text(to, "empty", "");
    assert_text(s, "a", "first");
    assert_text(s, "deep/er/and/deeper", "below");
    assert_text(s, "empty", "");
    put_text(to, "a", "2nd");
    assert_text(s, "a", "2nd");

    uint64_t n = 0;
    assert_int_equal(cm_store_size(s, "a", &n, &err), CM_OK);
    assert_int_equal(n, 3);
    assert_int_equal(cm_store_size(s, "deep/er", NULL, &err), CM_ENOTFOUND);
    assert_int_equal(cm_store_get(s, "deep/er", 10, &buf, &err), CM_ENOTFOUND);
    assert_int_equal(cm_store_get(s, "a/under", 10, &buf, &err), CM_ENOTFOUND);

    assert_int_equal(cm_store_get(s, "a", 3, &buf, &err), CM_OK);
    assert_int_equal(cm_store_get(s, "a", 2, &buf, &err), CM_EFORMAT);
    cm_buf_release(&buf);
}

static void test_delete(void **state)
{
    cm_store *s = store_of(state), *to = writer_of(state);
    put_text(to, "x/y", "1");
    assert_int_equal(cm_store_delete(to, "x/y", NULL), CM_OK);
    assert_int_equal(cm_store_size(s, "x/y", NULL, NULL), CM_ENOTFOUND);
    assert_int_equal(cm_store_delete(to, "x/y", NULL), CM_OK);
    assert_int_equal(cm_store_delete(to, "never/was", NULL), CM_OK);
}

static void test_bad_keys(void **state)
{
    cm_store *s = store_of(state);
    static char long_key[5000];
    memset(long_key, 'k', sizeof long_key - 1);
    static const char *const bad[] = {"",          "/",   "/a",    "a/",    "a//b",
                                      ".",         "..",  "../a",  "a/..",  "a/.",
                                      "a/../../b", "./a", "a/./b", long_key};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cm_buf buf = {0};
        cm_error err = {0};
        cm_object_reader *r;
        cm_object_writer *w;
        bool link;
        assert_int_equal(cm_key_check(bad[i], &err), CM_EFORMAT);
        assert_int_equal(cm_store_put(s, bad[i], "x", 1, &err), CM_EFORMAT);
        assert_int_equal(cm_store_get(s, bad[i], 10, &buf, &err), CM_EFORMAT);
        assert_int_equal(cm_store_size(s, bad[i], NULL, &err), CM_EFORMAT);
        assert_int_equal(cm_store_delete(s, bad[i], &err), CM_EFORMAT);
        assert_int_equal(cm_object_open(s, bad[i], &r, &err), CM_EFORMAT);
        assert_int_equal(cm_object_create(s, bad[i], NULL, &w, &err), CM_EFORMAT);
        assert_int_equal(cm_store_is_link(s, bad[i], &link, &err), CM_EFORMAT);
        assert_true(err.text[0] != '\0');
    }
    static const char *const good[] = {"a", "...", "a/..b", ".zarray", "c/0/1", "\xc3\xa4 b"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_int_equal(cm_key_check(good[i], NULL), CM_OK);
}

static int join_names(void *context, const char *name, bool is_prefix, cm_error *err)
{
    (void)err;
    strcat(context, name);
    strcat(context, is_prefix ? "/ " : " ");
    return 0;
}

static int stop_at_once(void *context, const char *name, bool is_prefix, cm_error *err)
{
    (void)name, (void)is_prefix, (void)err;
    ++*(int *)context;
    return 77;
}

static void check_names(cm_store *s, const char *prefix, const char *wanted)
{
    char names[200] = "";
    assert_int_equal(cm_store_list(s, prefix, join_names, names, NULL), CM_OK);
    assert_string_equal(names, wanted);
}

/* The same whether the store is asked or what it holds is known. */
static void test_list(void **state)
{
    cm_store *s = store_of(state), *to = writer_of(state);
    bool any = true;
    check_names(s, "", "");
    assert_int_equal(cm_store_has_any(s, "", &any, NULL), CM_OK);
    assert_false(any);
    put_text(to, "b/2", "");
    put_text(to, "b/10", "");
    put_text(to, "b/c/x/y", "");
    put_text(to, "b/c-d/1", ""); /* '-' comes before '/' */
    put_text(to, "a", "");
    put_text(to, "bb/1", "");
    put_text(to, "b-c/1", "");
    cm_object_writer *w;
    assert_int_equal(cm_object_create(to, "b/unfinished", NULL, &w, NULL), CM_OK);
    for (int known = 0; known < 2; known++) {
        if (known)
            assert_int_equal(cm_store_cache_listing(s, NULL), CM_OK);
        check_names(s, "", "a b/ b-c/ bb/ ");
        check_names(s, "b", "10 2 c/ c-d/ ");
        check_names(s, "b/c", "x/ ");
        cm_error err = {0};
        char names[200] = "";
        assert_int_equal(cm_store_list(s, "nowhere", join_names, names, &err), CM_ENOTFOUND);
        assert_int_equal(cm_store_list(s, "../x", join_names, names, &err), CM_EFORMAT);
        int calls = 0;
        assert_int_equal(cm_store_list(s, "b", stop_at_once, &calls, &err), 77);
        assert_int_equal(calls, 1);
        assert_int_equal(cm_store_has_any(s, "b", &any, &err), CM_OK);
        assert_true(any);
        assert_int_equal(cm_store_has_any(s, "nowhere", &any, &err), CM_ENOTFOUND);
        assert_false(any);
    }
    cm_object_abort(w);
    put_text(to, "b/c/a", "");
    assert_int_equal(cm_store_delete(to, "b/10", NULL), CM_OK);
    check_names(s, "b", "2 c/ c-d/ ");
    check_names(s, "b/c", "a x/ ");
    cm_store_drop_listing(s);
}

static void test_read_ranges(void **state)
{
    cm_store *s = store_of(state), *to = writer_of(state);
    put_text(to, "o", "0123456789");
    cm_object_reader *r;
    cm_error err = {0};
    assert_int_equal(cm_object_open(s, "none", &r, &err), CM_ENOTFOUND);
    assert_int_equal(cm_object_open(s, "o", &r, &err), CM_OK);
    assert_int_equal(cm_object_nbytes(r), 10);
    static const struct {
        uint64_t offset;
        size_t nbytes;
        int rc;
    } row[] = {{0, 10, CM_OK},
               {3, 4, CM_OK},
               {9, 1, CM_OK},
               {10, 0, CM_OK},
               {10, 1, CM_EFORMAT},
               {0, 11, CM_EFORMAT},
               {11, 0, CM_EFORMAT},
               {UINT64_MAX, 1, CM_EFORMAT},
               {5, SIZE_MAX, CM_EFORMAT}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        char got[16] = "";
        assert_int_equal(cm_object_read(r, row[i].offset, got, row[i].nbytes, &err), row[i].rc);
        if (row[i].rc == CM_OK)
            assert_memory_equal(got, "0123456789" + row[i].offset, row[i].nbytes);
    }
    /* An open object stays what it was when the key is given to another. */
    put_text(to, "o", "other");
    char got[10];
    assert_int_equal(cm_object_read(r, 0, got, 10, &err), is_remote(state) ? CM_EIO : CM_OK);
    assert_int_equal(cm_object_changed(r), is_remote(state));
    if (!is_remote(state))
        assert_memory_equal(got, "0123456789", 10);
    cm_object_close(r);
    cm_object_close(NULL);
}

static void test_piecewise_write(void **state)
{
    cm_store *s = store_of(state), *to = writer_of(state);
    cm_object_writer *w;
    cm_error err = {0};
    assert_int_equal(cm_object_create(to, "new/shard", NULL, &w, &err), CM_OK);
    assert_int_equal(cm_object_write(w, 4, "efgh", 4, &err), CM_OK);
    assert_int_equal(cm_store_size(s, "new/shard", NULL, &err), CM_ENOTFOUND);
    assert_int_equal(cm_object_write(w, 0, "abcd", 4, &err), CM_OK);
    assert_int_equal(cm_object_commit(w, &err), CM_OK);
    assert_text(s, "new/shard", "abcdefgh");

    assert_int_equal(cm_object_create(to, "new/shard", NULL, &w, &err), CM_OK);
    assert_int_equal(cm_object_write(w, 0, "lost", 4, &err), CM_OK);
    cm_object_abort(w);
    assert_text(s, "new/shard", "abcdefgh");
    cm_object_abort(NULL);

    cm_store_counts c = cm_store_count(to);
    assert_int_equal(c.nput, 1);
    assert_int_equal(c.put_nbytes, 8);
    c = cm_store_count(s);
    assert_int_equal(c.nget, 1 + 1);
    assert_int_equal(c.get_nbytes, 8 + 8);
}

enum {
    NTHREADS = 4,
    NOBJECTS = 50,
    PIECE = 1000
};

typedef struct worker {
    cm_store *store;
    cm_object_writer *shared;
    int number;
    int failures;
    int turns; /* of a reader */
} worker;

static void *write_many(void *argument)
{
    worker *w = argument;
    uint8_t piece[PIECE];
    memset(piece, 'A' + w->number, sizeof piece);
    for (int i = 0; i < NOBJECTS; i++) {
        char key[32];
        snprintf(key, sizeof key, "t/%d/%d", i, w->number);
        w->failures += cm_store_put(w->store, key, piece, sizeof piece, NULL) != CM_OK;
        w->failures += cm_store_put(w->store, "t/same", piece, sizeof piece, NULL) != CM_OK;
        uint64_t at = (uint64_t)(i * NTHREADS + w->number) * PIECE;
        w->failures += cm_object_write(w->shared, at, piece, sizeof piece, NULL) != CM_OK;
    }
    return NULL;
}

static void test_concurrent_writers(void **state)
{
    cm_store *s = store_of(state), *to = writer_of(state);
    cm_object_writer *shared;
    assert_int_equal(cm_object_create(to, "shared", NULL, &shared, NULL), CM_OK);
    pthread_t thread[NTHREADS];
    worker w[NTHREADS];
    for (int t = 0; t < NTHREADS; t++) {
        w[t] = (worker){.store = to, .shared = shared, .number = t};
        assert_int_equal(pthread_create(&thread[t], NULL, write_many, &w[t]), 0);
    }
    for (int t = 0; t < NTHREADS; t++) {
        pthread_join(thread[t], NULL);
        assert_int_equal(w[t].failures, 0);
    }
    assert_int_equal(cm_object_commit(shared, NULL), CM_OK);

    cm_buf buf = {0};
    assert_int_equal(cm_store_get(s, "shared", UINT64_MAX, &buf, NULL), CM_OK);
    assert_int_equal(buf.nbytes, NTHREADS * NOBJECTS * PIECE);
    for (size_t i = 0; i < buf.nbytes; i++)
        assert_int_equal(buf.data[i], 'A' + (int)(i / PIECE % NTHREADS));
    /* Whoever came last, the object is whole. */
    assert_int_equal(cm_store_get(s, "t/same", UINT64_MAX, &buf, NULL), CM_OK);
    assert_int_equal(buf.nbytes, PIECE);
    for (size_t i = 1; i < PIECE; i++)
        assert_int_equal(buf.data[i], buf.data[0]);
    char names[2000] = "";
    assert_int_equal(cm_store_list(s, "t/7", join_names, names, NULL), CM_OK);
    assert_string_equal(names, "0 1 2 3 ");
    cm_buf_release(&buf);
}

static void test_buffer_limit(void **state)
{
    cm_store *s = store_of(state), *to = writer_of(state);
    put_text(to, "o", "0123456789");
    cm_buf buf;
    cm_buf_init(&buf, 4);
    assert_int_equal(cm_store_get(s, "o", 100, &buf, NULL), CM_EBUDGET);
    cm_buf_release(&buf);
}

/* ---- many at once ---- */

enum {
    NMANY = 150 /* more than go to the kernel together */
};

/* The bytes of object I: none, few, or more than a page; object NMANY is where ranges come from. */
static size_t make_object(int i, uint8_t *bytes)
{
    size_t nbytes = i < NMANY && i % 5 == 0 ? 0 : (size_t)i * 61;
    for (size_t k = 0; k < nbytes; k++)
        bytes[k] = (uint8_t)((size_t)i * 7 + k * 13 + k / 256);
    return nbytes;
}

static void check_many(cm_store *s, bool ordered, cm_object_reader *reader, cm_store_read *read,
                       cm_buf *buf)
{
    static char key[NMANY][16];
    uint8_t bytes[NMANY * 61];
    cm_error err = {0};
    for (int i = 0; i < NMANY; i++) {
        snprintf(key[i], sizeof key[i], "m/%d", i);
        read[i] = (cm_store_read){.key = key[i], .nbytes = UINT64_MAX, .max_nbytes = sizeof bytes};
        if (i % 3 == 1)
            read[i] = (cm_store_read){
                .reader = reader, .offset = (uint64_t)i, .nbytes = (uint64_t)i * 50};
    }
    uint64_t nrequests = 77;
    cm_store_counts before = cm_store_count(s);
    assert_false(cm_store_joins_reads(s));
    assert_int_equal(cm_store_count_requests(s, read, NMANY, &nrequests, &err), CM_OK);
    assert_int_equal(nrequests, 77 + NMANY);
    assert_int_equal(cm_store_count(s).nget, before.nget);
    if (cm_store_read_many(s, read, NMANY, buf, &nrequests, &err) != CM_OK)
        fail_msg("%s", err.text);
    assert_int_equal(nrequests, NMANY);
    size_t at = 0;
    uint64_t nabsent = 0;
    for (int i = 0; i < NMANY; i++) {
        bool absent = i % 3 != 1 && i % 7 == 0;
        size_t nbytes = make_object(i % 3 == 1 ? NMANY : i, bytes);
        const uint8_t *expected = bytes;
        if (i % 3 == 1) {
            expected += i;
            nbytes = (size_t)i * 50;
        }
        assert_int_equal(read[i].absent, absent);
        if (ordered)
            assert_int_equal(read[i].at, at);
        assert_int_equal(read[i].got_nbytes, absent ? 0 : nbytes);
        if (!absent && nbytes)
            assert_memory_equal(buf->data + read[i].at, expected, nbytes);
        at += read[i].got_nbytes;
        nabsent += absent;
    }
    assert_true(ordered ? buf->nbytes == at : buf->nbytes >= at);
    assert_int_equal(cm_store_count(s).nget - before.nget, NMANY - nabsent);
    assert_int_equal(cm_store_count(s).get_nbytes - before.get_nbytes, at);
}

static void test_read_many(void **state)
{
    cm_store *s = store_of(state), *to = writer_of(state);
    uint8_t bytes[NMANY * 61];
    char key[16];
    for (int i = 0; i < NMANY; i++) {
        snprintf(key, sizeof key, "m/%d", i);
        if (i % 7)
            assert_int_equal(cm_store_put(to, key, bytes, make_object(i, bytes), NULL), CM_OK);
    }
    cm_object_reader *reader;
    assert_int_equal(cm_store_put(to, "ranges", bytes, make_object(NMANY, bytes), NULL), CM_OK);
    assert_int_equal(cm_object_open(s, "ranges", &reader, NULL), CM_OK);
    cm_store_read read[NMANY];
    cm_buf buf = {0};
    check_many(s, !is_remote(state), reader, read, &buf);
    const uint8_t *data = buf.data;
    check_many(s, !is_remote(state), reader, read, &buf);
    assert_ptr_equal(buf.data, data); /* grown once, it is used again */

    /* Behind what is there. */
    uint64_t nrequests = 3;
    size_t before = buf.nbytes;
    read[0] = (cm_store_read){.reader = reader, .offset = 5, .nbytes = 5};
    assert_int_equal(cm_store_read_more(s, read, 1, &buf, &nrequests, NULL), CM_OK);
    assert_int_equal(nrequests, 4);
    assert_int_equal(read[0].at, before);
    assert_memory_equal(buf.data + before, bytes + 5, 5);
    cm_buf_release(&buf);
    cm_object_close(reader);
}

static void test_read_many_refuses(void **state)
{
    cm_store *s = store_of(state), *to = writer_of(state);
    put_text(to, "o", "0123456789");
    put_text(to, "f/o", "0123456789");
    cm_object_reader *reader;
    assert_int_equal(cm_object_open(s, "o", &reader, NULL), CM_OK);
    const struct {
        cm_store_read read;
        int rc;
    } row[] = {
        {{.key = "o", .nbytes = UINT64_MAX, .max_nbytes = 10}, CM_OK},
        {{.key = "o", .nbytes = UINT64_MAX, .max_nbytes = 9}, CM_EFORMAT},
        {{.key = "f", .nbytes = UINT64_MAX, .max_nbytes = 9}, CM_OK}, /* a folder: no object */
        {{.key = "../o", .nbytes = UINT64_MAX, .max_nbytes = 10}, CM_EFORMAT},
        {{.key = "o", .offset = 1, .nbytes = UINT64_MAX, .max_nbytes = 10}, CM_EINVAL},
        {{.key = "o", .nbytes = 10, .max_nbytes = 10}, CM_EINVAL},
        {{.reader = reader, .offset = 9, .nbytes = 2}, CM_EFORMAT},
        {{.reader = reader, .offset = 11, .nbytes = 0}, CM_EFORMAT},
        {{.reader = reader, .offset = 2, .nbytes = UINT64_MAX}, CM_EFORMAT},
    };
    cm_buf buf = {0};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        /* In the middle of others that are fine. */
        cm_store_read read[3] = {{.key = "o", .nbytes = UINT64_MAX, .max_nbytes = 10},
                                 row[i].read,
                                 {.key = "f/o", .nbytes = UINT64_MAX, .max_nbytes = 10}};
        uint64_t nrequests;
        cm_error err = {0};
        assert_int_equal(cm_store_read_many(s, read, 3, &buf, &nrequests, &err), row[i].rc);
        assert_true(row[i].rc == CM_OK || err.text[0] != '\0');
    }
    cm_buf_release(&buf);
    cm_buf_init(&buf, 15);
    cm_store_read twice[2] = {{.key = "o", .nbytes = UINT64_MAX, .max_nbytes = 10},
                              {.key = "o", .nbytes = UINT64_MAX, .max_nbytes = 10}};
    uint64_t nrequests;
    assert_int_equal(cm_store_read_many(s, twice, 2, &buf, &nrequests, NULL), CM_EBUDGET);
    cm_buf_release(&buf);
    cm_object_close(reader);
}

/* Slow servers answer some dozens of requests a second. */
static int turns_of(void **state)
{
    return is_remote(state) ? 5 : NOBJECTS;
}

static void *read_many_often(void *argument)
{
    worker *w = argument;
    char key[NTHREADS * 4][16];
    cm_store_read read[NTHREADS * 4];
    cm_buf buf = {0};
    for (int turn = 0; turn < w->turns; turn++) {
        for (int i = 0; i < NTHREADS * 4; i++) {
            snprintf(key[i], sizeof key[i], "r/%d", (turn + i) % NOBJECTS);
            read[i] = (cm_store_read){.key = key[i], .nbytes = UINT64_MAX, .max_nbytes = PIECE};
        }
        uint64_t nrequests;
        w->failures +=
            cm_store_read_many(w->store, read, NTHREADS * 4, &buf, &nrequests, NULL) != 0;
        for (int i = 0; i < NTHREADS * 4; i++)
            for (size_t k = 0; k < read[i].got_nbytes; k++)
                w->failures += buf.data[read[i].at + k] != 'A' + (turn + i) % NOBJECTS;
    }
    cm_buf_release(&buf);
    return NULL;
}

static void test_concurrent_readers(void **state)
{
    cm_store *s = store_of(state), *to = writer_of(state);
    for (int i = 0; i < NOBJECTS; i++) {
        uint8_t piece[PIECE];
        char key[16];
        memset(piece, 'A' + i, sizeof piece);
        snprintf(key, sizeof key, "r/%d", i);
        assert_int_equal(cm_store_put(to, key, piece, sizeof piece, NULL), CM_OK);
    }
    pthread_t thread[NTHREADS];
    worker w[NTHREADS];
    for (int t = 0; t < NTHREADS; t++) {
        w[t] = (worker){.store = s, .turns = turns_of(state)};
        assert_int_equal(pthread_create(&thread[t], NULL, read_many_often, &w[t]), 0);
    }
    for (int t = 0; t < NTHREADS; t++) {
        pthread_join(thread[t], NULL);
        assert_int_equal(w[t].failures, 0);
    }
}

/* A child goes on with a store that its parent had open, and both read. */
static void test_fork(void **state)
{
    cm_store *s = store_of(state), *to = writer_of(state);
    for (int i = 0; i < NOBJECTS; i++) {
        uint8_t piece[PIECE];
        char key[16];
        memset(piece, 'A' + i, sizeof piece);
        snprintf(key, sizeof key, "r/%d", i);
        assert_int_equal(cm_store_put(to, key, piece, sizeof piece, NULL), CM_OK);
    }
    worker w = {.store = s, .turns = turns_of(state)};
    read_many_often(&w);
    pid_t child = fork();
    read_many_often(&w);
    if (child == 0)
        _exit(w.failures != 0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(w.failures, 0);
}

#include "conformance_write.h"

static int run_conformance(const char *group, const kind *kinds, size_t nkinds)
{
    static const struct {
        const char *name;
        CMUnitTestFunction run;
    } suite[] = {
        {"put_and_get", test_put_and_get},
        {"delete", test_delete},
        {"bad_keys", test_bad_keys},
        {"list", test_list},
        {"read_ranges", test_read_ranges},
        {"piecewise_write", test_piecewise_write},
        {"concurrent_writers", test_concurrent_writers},
        {"buffer_limit", test_buffer_limit},
        {"read_many", test_read_many},
        {"read_many_refuses", test_read_many_refuses},
        {"concurrent_readers", test_concurrent_readers},
        {"fork", test_fork},
        {"put_if", test_put_if},
        {"sweep", test_sweep},
        {"a_long_listing", test_a_long_listing},
    };
    enum {
        MOST = 8,
        NTESTS = sizeof suite / sizeof *suite
    };
    static char name[MOST * NTESTS][64];
    static struct CMUnitTest tests[MOST * NTESTS];
    assert_true(nkinds <= MOST);
    for (size_t i = 0; i < nkinds * NTESTS; i++) {
        const kind *k = &kinds[i % nkinds];
        snprintf(name[i], sizeof name[i], "%s (%s)", suite[i / nkinds].name, k->name);
        tests[i] = (struct CMUnitTest){name[i], suite[i / nkinds].run, open_store, close_store,
                                       (void *)(uintptr_t)k};
    }
    return _cmocka_run_group_tests(group, tests, nkinds * NTESTS, NULL, NULL);
}

#endif
