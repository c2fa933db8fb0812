/* One suite that every kind of store passes. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "store/store.h"

typedef struct fixture {
    cm_store *store;
    char folder[64]; /* "" for the store in memory */
} fixture;

static int open_memory(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    return cm_store_open_memory(&f->store, NULL);
}

static int open_dir(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    *state = f;
    strcpy(f->folder, "/tmp/cm-store-XXXXXX");
    if (!mkdtemp(f->folder))
        return -1;
    return cm_store_open_dir(f->folder, true, &f->store, NULL);
}

static int close_store(void **state)
{
    fixture *f = *state;
    cm_store_free(f->store);
    if (f->folder[0]) {
        char command[128];
        snprintf(command, sizeof command, "rm -rf %s", f->folder);
        if (system(command) != 0)
            return -1;
    }
    free(f);
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
    cm_store *s = ((fixture *)*state)->store;
    cm_buf buf = {0};
    cm_error err = {0};
    assert_int_equal(cm_store_get(s, "a", 10, &buf, &err), CM_ENOTFOUND);
    assert_non_null(strstr(err.text, "a: no such object"));
    assert_int_equal(cm_store_size(s, "a", NULL, &err), CM_ENOTFOUND);

    put_text(s, "a", "first");
    put_text(s, "deep/er/and/deeper", "below");
    put_text(s, "empty", "");
    assert_text(s, "a", "first");
    assert_text(s, "deep/er/and/deeper", "below");
    assert_text(s, "empty", "");
    put_text(s, "a", "2nd");
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
    cm_store *s = ((fixture *)*state)->store;
    put_text(s, "x/y", "1");
    assert_int_equal(cm_store_delete(s, "x/y", NULL), CM_OK);
    assert_int_equal(cm_store_size(s, "x/y", NULL, NULL), CM_ENOTFOUND);
    assert_int_equal(cm_store_delete(s, "x/y", NULL), CM_OK);
    assert_int_equal(cm_store_delete(s, "never/was", NULL), CM_OK);
}

static void test_bad_keys(void **state)
{
    cm_store *s = ((fixture *)*state)->store;
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
        assert_int_equal(cm_object_create(s, bad[i], &w, &err), CM_EFORMAT);
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

static void test_list(void **state)
{
    cm_store *s = ((fixture *)*state)->store;
    char names[200] = "";
    assert_int_equal(cm_store_list(s, "", join_names, names, NULL), CM_OK);
    assert_string_equal(names, "");
    put_text(s, "b/2", "");
    put_text(s, "b/10", "");
    put_text(s, "b/c/x/y", "");
    put_text(s, "a", "");
    put_text(s, "bb/1", "");
    cm_object_writer *w;
    assert_int_equal(cm_object_create(s, "b/unfinished", &w, NULL), CM_OK);

    assert_int_equal(cm_store_list(s, "", join_names, names, NULL), CM_OK);
    assert_string_equal(names, "a b/ bb/ ");
    names[0] = '\0';
    assert_int_equal(cm_store_list(s, "b", join_names, names, NULL), CM_OK);
    assert_string_equal(names, "10 2 c/ ");
    names[0] = '\0';
    assert_int_equal(cm_store_list(s, "b/c", join_names, names, NULL), CM_OK);
    assert_string_equal(names, "x/ ");
    cm_object_abort(w);

    cm_error err = {0};
    assert_int_equal(cm_store_list(s, "nowhere", join_names, names, &err), CM_ENOTFOUND);
    assert_int_equal(cm_store_list(s, "../x", join_names, names, &err), CM_EFORMAT);
    int calls = 0;
    assert_int_equal(cm_store_list(s, "b", stop_at_once, &calls, &err), 77);
    assert_int_equal(calls, 1);
}

static void test_read_ranges(void **state)
{
    cm_store *s = ((fixture *)*state)->store;
    put_text(s, "o", "0123456789");
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
    put_text(s, "o", "other");
    char got[10];
    assert_int_equal(cm_object_read(r, 0, got, 10, &err), CM_OK);
    assert_memory_equal(got, "0123456789", 10);
    cm_object_close(r);
    cm_object_close(NULL);
}

static void test_piecewise_write(void **state)
{
    cm_store *s = ((fixture *)*state)->store;
    cm_object_writer *w;
    cm_error err = {0};
    assert_int_equal(cm_object_create(s, "new/shard", &w, &err), CM_OK);
    assert_int_equal(cm_object_write(w, 4, "efgh", 4, &err), CM_OK);
    assert_int_equal(cm_store_size(s, "new/shard", NULL, &err), CM_ENOTFOUND);
    assert_int_equal(cm_object_write(w, 0, "abcd", 4, &err), CM_OK);
    assert_int_equal(cm_object_commit(w, &err), CM_OK);
    assert_text(s, "new/shard", "abcdefgh");

    assert_int_equal(cm_object_create(s, "new/shard", &w, &err), CM_OK);
    assert_int_equal(cm_object_write(w, 0, "lost", 4, &err), CM_OK);
    cm_object_abort(w);
    assert_text(s, "new/shard", "abcdefgh");
    cm_object_abort(NULL);

    cm_store_counts c = cm_store_count(s);
    assert_int_equal(c.nput, 1);
    assert_int_equal(c.put_nbytes, 8);
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
    cm_store *s = ((fixture *)*state)->store;
    cm_object_writer *shared;
    assert_int_equal(cm_object_create(s, "shared", &shared, NULL), CM_OK);
    pthread_t thread[NTHREADS];
    worker w[NTHREADS];
    for (int t = 0; t < NTHREADS; t++) {
        w[t] = (worker){s, shared, t, 0};
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
    cm_store *s = ((fixture *)*state)->store;
    put_text(s, "o", "0123456789");
    cm_buf buf;
    cm_buf_init(&buf, 4);
    assert_int_equal(cm_store_get(s, "o", 100, &buf, NULL), CM_EBUDGET);
    cm_buf_release(&buf);
}

#define BOTH(test)                                                                                 \
    {#test " (memory)", test, open_memory, close_store, NULL},                                     \
    {                                                                                              \
#test " (folder)", test, open_dir, close_store, NULL                                       \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_put_and_get),        BOTH(test_delete),
        BOTH(test_bad_keys),           BOTH(test_list),
        BOTH(test_read_ranges),        BOTH(test_piecewise_write),
        BOTH(test_concurrent_writers), BOTH(test_buffer_limit),
    };
    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
