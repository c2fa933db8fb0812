/* The journal of a run that writes into a repository: found, gone on with, tidied, removed. */

#include <sys/stat.h>

#include "../fixtures/tell.h"
#include "beside_fixture.h"
#include "convert/sink/icechunk/run_journal.h"
#include "format/icechunk/key.h"

static const char *const FILES[] = {"icechunk", "icechunk-chunks", "icechunk-small",
                                    "icechunk-files"};

static void make_id(uint8_t id[CM_ICE_ID], uint8_t n)
{
    memset(id, n, CM_ICE_ID);
}

static void name_file(cm_run_journal *j, char kind, uint8_t n)
{
    uint8_t id[CM_ICE_ID];
    make_id(id, n);
    OK(cm_ice_records_name(&j->records, kind, id, err));
}

/* ---- its files ---- */

static void begun_and_continued(void **state)
{
    made_beside m;
    cm_run_journal j;
    uint8_t id[CM_ICE_ID], named[CM_ICE_ID];
    char kind;
    cm_json *head = made_json("{'chunks': '4x4'}"), *other = made_json("{'chunks': '2x2'}");
    (void)state;
    made_beside_begin(&m);
    assert_false(cm_run_journal_is_there(&m.beside));
    OK(cm_run_journal_look(&j, &m.beside, err));
    assert_true(!j.there && j.head == NULL && j.named);
    OK(cm_run_journal_begin(&j, head, "/tmp", err));
    name_file(&j, 'c', 7);
    cm_run_journal_close(&j);
    for (size_t i = 0; i < COUNT(FILES); i++)
        assert_true(beside_has(&m.beside, FILES[i]));
    assert_true(cm_run_journal_is_there(&m.beside));

    OK(cm_run_journal_look(&j, &m.beside, err));
    assert_true(j.there && cm_json_equal(j.head, head));
    OK(cm_run_journal_continue(&j, err));
    make_id(id, 7);
    assert_true(cm_ice_records_named(&j.records, 0, &kind, named));
    assert_int_equal(kind, 'c');
    assert_memory_equal(named, id, CM_ICE_ID);
    assert_false(cm_ice_records_named(&j.records, 1, &kind, named));
    cm_run_journal_close(&j);

    OK(cm_run_journal_look(&j, &m.beside, err));
    OK(cm_run_journal_begin(&j, other, "/tmp", err)); /* anew: nothing is known of the other's */
    assert_false(cm_ice_records_named(&j.records, 0, &kind, named));
    cm_run_journal_close(&j);
    OK(cm_run_journal_look(&j, &m.beside, err));
    assert_true(cm_json_equal(j.head, other));
    cm_run_journal_remove(&j);
    cm_run_journal_close(&j);
    for (size_t i = 0; i < COUNT(FILES); i++)
        assert_false(beside_has(&m.beside, FILES[i]));
    assert_null(m.beside.stays);
    cm_json_free(head);
    cm_json_free(other);
    made_beside_end(&m);
}

/* A head that is not whole is there all the same; a folder that is not there has none. */
static void heads(void **state)
{
    made_beside m;
    cm_run_journal j;
    cm_beside none = {.fd = -1};
    (void)state;
    made_beside_begin(&m);
    beside_put(&m.beside, "icechunk", "{\"chunks\":");
    assert_true(cm_run_journal_is_there(&m.beside));
    OK(cm_run_journal_look(&j, &m.beside, err));
    assert_true(j.there && j.head == NULL);
    cm_run_journal_close(&j);
    assert_false(cm_run_journal_is_there(&none));
    OK(cm_run_journal_look(&j, &none, err));
    assert_false(j.there);
    cm_run_journal_close(&j);
    made_beside_end(&m);
}

/* Nothing is written through a link. */
static void a_link(void **state)
{
    made_beside m;
    cm_run_journal j;
    char path[260], target[260];
    cm_error why = {0};
    struct stat st;
    cm_json *head = cm_json_object();
    (void)state;
    made_beside_begin(&m);
    snprintf(path, sizeof path, "%s/icechunk-small", m.beside.path);
    snprintf(target, sizeof target, "%s/victim", m.folder.path);
    assert_int_equal(symlink(target, path), 0);
    OK(cm_run_journal_look(&j, &m.beside, err));
    assert_int_equal(cm_run_journal_begin(&j, head, "/tmp", &why), CM_EEXIST);
    assert_int_not_equal(stat(target, &st), 0);
    cm_run_journal_close(&j);
    cm_json_free(head);
    made_beside_end(&m);
}

/* Behind a network nothing has a name. */
static void without_names(void **state)
{
    made_beside m;
    cm_run_journal j;
    uint8_t id[CM_ICE_ID];
    char kind;
    cm_json *head = cm_json_object();
    (void)state;
    made_beside_begin(&m);
    m.beside.remote = true;
    OK(cm_run_journal_look(&j, &m.beside, err));
    assert_false(j.named);
    OK(cm_run_journal_begin(&j, head, "/tmp", err));
    name_file(&j, 'm', 1);
    assert_true(cm_ice_records_named(&j.records, 0, &kind, id));
    for (size_t i = 0; i < COUNT(FILES); i++)
        assert_false(beside_has(&m.beside, FILES[i]));
    cm_run_journal_remove(&j);
    cm_run_journal_close(&j);
    m.beside.remote = false;
    cm_json_free(head);
    made_beside_end(&m);
}

/* ---- the run's files ---- */

/* Entries of kind and number, each with its file in the repository. */
static const struct {
    char kind;
    uint8_t number;
    const char *folder;
} ENTRIES[] = {{'c', 1, "chunks"},    {'c', 2, "chunks"},    {'m', 3, "manifests"},
               {'m', 4, "manifests"}, {'s', 5, "snapshots"}, {'s', 6, "snapshots"},
               {'r', 6, NULL},        {'i', 7, "snapshots"}};

static void file_key(const char *folder, uint8_t number, char key[CM_ICE_KEY_SIZE])
{
    uint8_t id[CM_ICE_ID];
    make_id(id, number);
    cm_ice_key(folder, id, key);
}

static void begin_run(made_beside *m, cm_run_journal *j, cm_store **root)
{
    char key[CM_ICE_KEY_SIZE];
    cm_json *head = cm_json_object();
    made_beside_begin(m);
    OK(cm_run_journal_look(j, &m->beside, err));
    OK(cm_run_journal_begin(j, head, "/tmp", err));
    cm_json_free(head);
    OK(cm_store_open_memory(root, err));
    for (size_t i = 0; i < COUNT(ENTRIES); i++) {
        name_file(j, ENTRIES[i].kind, ENTRIES[i].number);
        if (ENTRIES[i].folder == NULL)
            continue;
        file_key(ENTRIES[i].folder, ENTRIES[i].number, key);
        OK(cm_store_put(*root, key, "x", 1, err));
        if (strcmp(ENTRIES[i].folder, "snapshots") == 0) {
            file_key("transactions", ENTRIES[i].number, key);
            OK(cm_store_put(*root, key, "x", 1, err));
        }
    }
    file_key("chunks", 99, key); /* another run's */
    OK(cm_store_put(*root, key, "x", 1, err));
}

/* "c1 c2 m3": the files that are left; a transaction log goes and stays with its snapshot. */
static const char *say_left(cm_store *root, cm_buf *text)
{
    char key[CM_ICE_KEY_SIZE];
    tell_begin(text);
    for (size_t i = 0; i < COUNT(ENTRIES); i++) {
        if (ENTRIES[i].folder == NULL)
            continue;
        file_key(ENTRIES[i].folder, ENTRIES[i].number, key);
        const bool there = cm_store_size(root, key, NULL, NULL) == CM_OK;
        if (there)
            tell(text, "%s%c%u", text->nbytes > 0 ? " " : "", ENTRIES[i].kind, ENTRIES[i].number);
        if (strcmp(ENTRIES[i].folder, "snapshots") != 0)
            continue;
        file_key("transactions", ENTRIES[i].number, key);
        assert_int_equal(cm_store_size(root, key, NULL, NULL) == CM_OK, there);
    }
    file_key("chunks", 99, key);
    assert_int_equal(cm_store_size(root, key, NULL, NULL), CM_OK);
    return (const char *)text->data;
}

static void tidied(void **state)
{
    static const struct {
        const char *name;
        bool repository;                    /* there is one */
        unsigned chunk, manifest, snapshot; /* that stay; 0: none */
        const char *left;
    } ROWS[] = {
        {"all go", false, 0, 0, 0, ""},
        {"the first snapshot of a repository stays", true, 0, 0, 0, "i7"},
        {"a chunk", true, 2, 0, 0, "c2 i7"},
        {"a manifest", true, 0, 3, 0, "m3 i7"},
        {"a snapshot", true, 0, 0, 6, "s6 i7"},
        {"one of each", true, 1, 4, 5, "c1 m4 s5 i7"},
        {"the number of another kind", true, 3, 1, 2, "i7"},
    };
    unsigned bad = 0;
    cm_buf text = {0};
    (void)state;
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        made_beside m;
        cm_run_journal j;
        cm_store *root;
        uint8_t id[3][CM_ICE_ID];
        make_id(id[0], (uint8_t)ROWS[i].chunk);
        make_id(id[1], (uint8_t)ROWS[i].manifest);
        make_id(id[2], (uint8_t)ROWS[i].snapshot);
        const cm_run_files stay = {.chunk = id[0],
                                   .nchunks = ROWS[i].chunk > 0,
                                   .manifest = id[1],
                                   .nmanifests = ROWS[i].manifest > 0,
                                   .snapshot = ROWS[i].snapshot > 0 ? id[2] : NULL};
        begin_run(&m, &j, &root);
        if (ROWS[i].repository)
            OK(cm_store_put(root, "repo", "x", 1, err));
        OK(cm_run_journal_tidy(&j, root, &stay, err));
        tell_compare(ROWS[i].name, say_left(root, &text), ROWS[i].left, &bad);
        OK(cm_run_journal_erase(&j, root, err)); /* and again, of which some is gone */
        tell_compare(ROWS[i].name, say_left(root, &text), ROWS[i].repository ? "i7" : "", &bad);
        cm_store_free(root);
        cm_run_journal_close(&j);
        made_beside_end(&m);
    }
    cm_buf_release(&text);
    assert_int_equal(bad, 0);
}

/* Of several that stay the list is sorted. */
static void several_stay(void **state)
{
    made_beside m;
    cm_run_journal j;
    cm_store *root;
    uint8_t list[3 * CM_ICE_ID];
    cm_buf text = {0};
    (void)state;
    for (uint8_t k = 0; k < 3; k++)
        make_id(list + k * CM_ICE_ID, k);
    begin_run(&m, &j, &root);
    OK(cm_run_journal_tidy(&j, root, &(cm_run_files){.chunk = list, .nchunks = 3}, err));
    assert_string_equal(say_left(root, &text), "c1 c2");
    cm_buf_release(&text);
    cm_store_free(root);
    cm_run_journal_close(&j);
    made_beside_end(&m);
}

/* ---- snapshots ---- */

typedef struct seen {
    uint8_t wanted;
    unsigned n;
} seen;

static bool is_wanted(void *context, const uint8_t *id)
{
    seen *s = context;
    s->n++;
    return id[0] == s->wanted;
}

static void published(void **state)
{
    static const struct {
        uint8_t wanted;
        bool found;
        size_t n;
    } ROWS[] = {{6, true, 1}, {8, true, 2}, {9, true, 3}, {5, false, 3}};
    made_beside m;
    cm_run_journal j;
    cm_store *root;
    (void)state;
    begin_run(&m, &j, &root);
    name_file(&j, CM_RUN_PUBLISHED, 8);
    name_file(&j, 's', 9);
    name_file(&j, CM_RUN_PUBLISHED, 9);
    for (size_t i = 0; i < COUNT(ROWS); i++) {
        seen s = {.wanted = ROWS[i].wanted};
        size_t n;
        assert_int_equal(cm_run_journal_snapshots(&j, &n, is_wanted, &s), ROWS[i].found);
        assert_int_equal(n, ROWS[i].n);
        assert_int_equal(s.n, ROWS[i].n);
    }
    cm_store_free(root);
    cm_run_journal_close(&j);
    made_beside_end(&m);
}

/* An entry that is damaged, or cannot be read, may be a snapshot's; one never written is none. */
static void unreadable_entries(void **state)
{
    made_beside m;
    cm_run_journal j;
    cm_store *root;
    seen s = {.wanted = 5};
    size_t n;
    const uint8_t damage[] = {0xff, 0xff};
    (void)state;
    begin_run(&m, &j, &root);
    cm_run_journal_snapshots(&j, &n, is_wanted, &s);
    const size_t before = n;
    atomic_fetch_add(&j.records.nfiles, 1); /* a hole */
    name_file(&j, 'c', 3);
    cm_run_journal_snapshots(&j, &n, is_wanted, &s);
    assert_int_equal(n, before);
    assert_int_equal(pwrite(j.records.files, damage, 2, 2), 2);
    assert_false(cm_run_journal_snapshots(&j, &n, is_wanted, &s));
    assert_int_equal(n, before + 1);
    const int files = j.records.files;
    j.records.files = -1; /* no read succeeds */
    assert_false(cm_run_journal_snapshots(&j, &n, is_wanted, &s));
    assert_int_equal(n, atomic_load(&j.records.nfiles));
    j.records.files = files;
    cm_store_free(root);
    cm_run_journal_close(&j);
    made_beside_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(begun_and_continued),
                                       cmocka_unit_test(heads),
                                       cmocka_unit_test(a_link),
                                       cmocka_unit_test(without_names),
                                       cmocka_unit_test(tidied),
                                       cmocka_unit_test(several_stay),
                                       cmocka_unit_test(published),
                                       cmocka_unit_test(unreadable_entries)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
