/* A listing of objects: the names below a prefix, found by their keys. */

#include <stdio.h>

#include "../fixtures/ok.h"
#include "convert/source/listing.h"
#include "store/impl.h"

/* A store that lists N objects, by name, of which object I has I % 7 + 1 bytes. */
typedef struct listed {
    cm_store base; /* first */
    const char (*key)[16];
    size_t n;
} listed;

static int list_below(cm_store *store, const char *prefix, cm_store_visit_object *visit,
                      void *context, cm_error *err)
{
    const listed *l = (const listed *)store;
    const size_t n = strlen(prefix);
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < l->n; i++) {
        const cm_object_stat told = {.nbytes = i % 7 + 1};
        if (n == 0 || (strncmp(l->key[i], prefix, n) == 0 && l->key[i][n] == '/'))
            rc = visit(context, l->key[i] + n + (n > 0), &told, err);
    }
    return rc;
}

static const cm_store_ops LISTS = {.list_below = list_below};
static const char KEYS[][16] = {"v/c/0",       "v/c/1",  "v/c/10", "v/c/2",
                                "v/zarr.json", "vv/c/0", "w/c/0"};

static void found(void **state)
{
    static const struct {
        const char *name;
        int nbytes; /* -1: there is none */
    } NAMES[] = {
        {"c/0", 1},  {"c/1", 2},    {"c/10", 3},  {"c/2", 4},         {"zarr.json", 5},
        {"c/3", -1}, {"c", -1},     {"", -1},     {"c/", -1},         {"c/100", -1},
        {"zzz", -1}, {"v/c/0", -1}, {"zarr", -1}, {"zarr.json2", -1},
    };
    listed store = {.base.ops = &LISTS, .key = KEYS, .n = COUNT(KEYS)};
    cm_listing list;
    uint64_t nbytes;
    (void)state;
    OK(cm_listing_read(&store.base, "v", NULL, &list, err));
    assert_true(list.read);
    assert_int_equal(list.n, 5);
    for (size_t i = 0; i < COUNT(NAMES); i++) {
        const int is = cm_listing_find(&list, NAMES[i].name, &nbytes);
        if (is != (NAMES[i].nbytes < 0 ? CM_ENOTFOUND : CM_OK) ||
            (is == CM_OK && nbytes != (uint64_t)NAMES[i].nbytes))
            fail_msg("%s: %d, %u bytes", NAMES[i].name, is, (unsigned)nbytes);
    }
    cm_listing_release(&list);
    assert_false(list.read);
    assert_int_equal(cm_listing_find(&list, "c/0", &nbytes), CM_ENOTFOUND); /* of nothing */
}

/* Many names, of which each is found and none between them. */
static void many(void **state)
{
    enum {
        N = 3000
    };
    static char key[N][16];
    cm_listing list;
    uint64_t nbytes;
    char name[16];
    (void)state;
    for (unsigned i = 0; i < N; i++)
        snprintf(key[i], sizeof key[i], "c/%05u", 2 * i);
    listed store = {.base.ops = &LISTS, .key = (const char(*)[16])key, .n = N};
    OK(cm_listing_read(&store.base, "", NULL, &list, err));
    assert_int_equal(list.n, N);
    for (unsigned i = 0; i < 2 * N; i++) {
        snprintf(name, sizeof name, "c/%05u", i);
        assert_int_equal(cm_listing_find(&list, name, &nbytes), i % 2 == 0 ? CM_OK : CM_ENOTFOUND);
        if (i % 2 == 0)
            assert_int_equal(nbytes, i / 2 % 7 + 1);
    }
    cm_listing_release(&list);
}

static bool at_once(void *context)
{
    (void)context;
    return true;
}

static void a_stop(void **state)
{
    const cm_stop stop = {at_once, NULL};
    listed store = {.base.ops = &LISTS, .key = KEYS, .n = COUNT(KEYS)};
    cm_listing list;
    cm_error why = {0};
    (void)state;
    OK(cm_listing_read(&store.base, "none", &stop, &list, err)); /* nothing is there to stop */
    cm_listing_release(&list);
    assert_int_equal(cm_listing_read(&store.base, "w", &stop, &list, &why), CM_ECANCELED);
    assert_false(list.read);
    cm_listing_release(&list);
}

/* A store whose folders would have to be walked has no such listing. */
static void no_listing(void **state)
{
    cm_store *memory;
    cm_listing list;
    cm_error why = {0};
    (void)state;
    OK(cm_store_open_memory(&memory, err));
    assert_int_equal(cm_listing_read(memory, "", NULL, &list, &why), CM_EUNSUPPORTED);
    assert_false(list.read);
    cm_listing_release(&list);
    cm_store_free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(found), cmocka_unit_test(many),
                                       cmocka_unit_test(a_stop), cmocka_unit_test(no_listing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
