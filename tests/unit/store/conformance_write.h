/* Of the suite: writing in one step, listing and removing.  conformance.h includes it. */
#ifndef TESTS_STORE_CONFORMANCE_WRITE_H
#define TESTS_STORE_CONFORMANCE_WRITE_H

/* ---- in one step ---- */

static void test_put_if(void **state)
{
    cm_store *s = store_of(state), *to = writer_of(state);
    cm_buf buf = {0};
    cm_object_tag old = {0}, now = {0};
    cm_error err = {0};
    int rc = cm_store_put_if(to, "one", "first", 5, NULL, &err);
    if (rc == CM_EUNSUPPORTED) {
        /* Then nothing was put, whatever the condition. */
        assert_int_equal(cm_store_size(s, "one", NULL, NULL), CM_ENOTFOUND);
        put_text(to, "one", "first");
        assert_int_equal(cm_store_put_if(to, "one", "2nd", 3, NULL, &err), CM_EUNSUPPORTED);
        assert_text(s, "one", "first");
        return;
    }
    assert_int_equal(rc, CM_OK);
    assert_int_equal(cm_store_put_if(to, "one", "second", 6, NULL, &err), CM_EEXIST);
    assert_text(s, "one", "first");
    assert_int_equal(cm_store_get_tagged(to, "one", 100, &buf, &old, &err), CM_OK);
    assert_int_equal(buf.nbytes, 5);
    assert_true(old.text[0] != '\0' && old.age_s >= 0 && old.age_s < 600);
    assert_int_equal(cm_store_put_if(to, "one", "second", 6, &old, &err), CM_OK);
    assert_text(s, "one", "second");
    assert_int_equal(cm_store_put_if(to, "one", "third", 5, &old, &err), CM_EEXIST);
    assert_text(s, "one", "second");
    assert_int_equal(cm_store_get_tagged(to, "one", 100, &buf, &now, &err), CM_OK);
    assert_string_not_equal(now.text, old.text);
    assert_int_equal(cm_store_delete(to, "one", NULL), CM_OK);
    assert_int_equal(cm_store_put_if(to, "one", "fourth", 6, &now, &err), CM_EEXIST);
    assert_int_equal(cm_store_get_tagged(to, "one", 100, &buf, &now, &err), CM_ENOTFOUND);
    cm_buf_release(&buf);
}

/* ---- listing and removing what lies below ---- */

static int join_sizes(void *context, const char *below, const cm_object_stat *told, cm_error *err)
{
    char *text = context;
    (void)err;
    sprintf(text + strlen(text), "%s=%d ", below, (int)told->nbytes);
    return 0;
}

static int count_walked(void *context, const char *below, uint64_t nbytes, cm_error *err)
{
    static const char *const expected[] = {"b/c/y", "kept/z", "stays", "x"};
    unsigned *seen = context;
    (void)err;
    assert_true(nbytes == 5 || nbytes == CM_WALK_NO_SIZE);
    for (unsigned i = 0; i < 4; i++)
        if (strcmp(below, expected[i]) == 0) {
            assert_int_equal(*seen >> i & 1, 0); /* each once */
            *seen |= 1U << i;
            return strcmp(below, "stays") == 0 && *seen >> 8 != 0 ? 77 : 0;
        }
    fail_msg("%s is not below a", below);
    return 0;
}

/* Every object once, nothing below what is not there, and a visit that stops it. */
static void check_walk(cm_store *s)
{
    unsigned seen = 0, stops = 1U << 8, none = 0;
    int rc = cm_store_walk(s, "a", count_walked, &seen, NULL);
    assert_int_equal(rc, CM_OK);
    assert_int_equal(seen, 15);
    assert_int_equal(cm_store_walk(s, "a", count_walked, &stops, NULL), 77);
    assert_int_equal(cm_store_walk(s, "nothing/there", count_walked, &none, NULL), CM_OK);
    assert_int_equal(none, 0);
    assert_int_equal(cm_store_walk(s, "a/..", count_walked, &none, NULL), CM_EFORMAT);
}

/* Keeps the folder "kept" and what is named "stays". */
static cm_verdict judge(void *context, const char *below, cm_entry_kind entry)
{
    const char *slash = strrchr(below, '/'), *name = slash != NULL ? slash + 1 : below;
    char *seen = context;
    if (*below == '\0')
        return CM_KEEP;
    if (entry == CM_ENTRY_FILE)
        strcat(strcat(seen, below), " ");
    if (entry == CM_ENTRY_FOLDER)
        return strcmp(name, "kept") == 0 ? CM_KEEP : CM_ENTER;
    return strcmp(name, "stays") == 0 ? CM_KEEP : CM_REMOVE;
}

static void test_sweep(void **state)
{
    cm_store *s = store_of(state), *to = writer_of(state);
    static const char *const keys[] = {"a/x", "a/stays", "a/b/c/y", "a/kept/z", "ab/w", "v"};
    char seen[400] = "";
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        put_text(to, keys[i], "12345");
    int rc = cm_store_list_below(s, "a", join_sizes, seen, NULL);
    if (rc != CM_EUNSUPPORTED) {
        assert_int_equal(rc, CM_OK);
        assert_string_equal(seen, "b/c/y=5 kept/z=5 stays=5 x=5 ");
    }
    check_walk(s);
    seen[0] = '\0';
    assert_int_equal(cm_store_sweep(to, "a", judge, seen, NULL), CM_OK);
    assert_null(strstr(seen, "kept/z"));
    assert_non_null(strstr(seen, "b/c/y "));
    static const bool left[] = {false, true, false, true, true, true};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        assert_int_equal(cm_store_size(s, keys[i], NULL, NULL), left[i] ? CM_OK : CM_ENOTFOUND);
}

/* More than a page of a listing. */
static void test_a_long_listing(void **state)
{
    cm_store *s = store_of(state), *to = writer_of(state);
    enum {
        N = 1100
    };
    static char names[N * 8];
    for (int i = 0; i < N; i++) {
        char key[32];
        snprintf(key, sizeof key, "l/%04d", i);
        assert_int_equal(cm_store_put(to, key, "", 0, NULL), CM_OK);
    }
    names[0] = '\0';
    assert_int_equal(cm_store_list(s, "l", join_names, names, NULL), CM_OK);
    assert_int_equal(strlen(names), N * 5);
    for (int i = 0; i < N; i++)
        assert_int_equal(atoi(names + (size_t)i * 5), i);
}

#endif
