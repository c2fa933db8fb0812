/* Nodes of a commit: documents of a store, the groups above, and what changes of a snapshot. */

#include "../fixtures/tell.h"
#include "convert/sink/icechunk/node_list.h"
#include "format/icechunk/snapshot_write.h"

#define GROUP "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{}}"
#define NOTED "{\"zarr_format\":3,\"node_type\":\"group\",\"attributes\":{\"a\":1}}"
#define ARRAY                                                                                      \
    "{\"zarr_format\":3,\"node_type\":\"array\",\"shape\":[4],\"data_type\":\"int8\","             \
    "\"chunk_grid\":{\"name\":\"regular\",\"configuration\":{\"chunk_shape\":[2]}},"               \
    "\"chunk_key_encoding\":{\"name\":\"default\"},\"fill_value\":0,"                              \
    "\"codecs\":[{\"name\":\"bytes\"}],\"attributes\":{}}"

enum {
    MOST_DOCUMENTS = 5
};

typedef struct made_document {
    const char *key, *text;
} made_document;

static cm_store *store_of(const made_document *document)
{
    cm_store *store;
    OK(cm_store_open_memory(&store, err));
    for (; document->key != NULL; document++)
        OK(cm_store_put(store, document->key, document->text, strlen(document->text), err));
    return store;
}

/* "/ implied, /a array": the nodes in their order. */
static void say_nodes(cm_buf *text, const cm_node_list *list)
{
    tell_begin(text);
    for (size_t i = 0; i < list->n; i++)
        tell(text, "%s%s%s%s%s", i > 0 ? ", " : "", list->node[i].path,
             list->node[i].is_array ? " array" : "", list->node[i].implied ? " implied" : "",
             list->node[i].updates ? " updates" : "");
}

static const struct {
    const char *name, *above;
    made_document document[MOST_DOCUMENTS];
    const char *nodes, *error;
} MADE[] = {
    {"a group alone", "", {{"zarr.json", GROUP}}, "/", NULL},
    {"an array alone", "", {{"zarr.json", ARRAY}}, "/ array", NULL},
    {"arrays, by their paths",
     "",
     {{"zarr.json", GROUP}, {"b/zarr.json", ARRAY}, {"a/zarr.json", ARRAY}},
     "/, /a array, /b array",
     NULL},
    {"deeper ones, beside chunks that are no nodes",
     "",
     {{"zarr.json", GROUP}, {"g/zarr.json", GROUP}, {"g/v/zarr.json", ARRAY}, {"g/v/c/0", "xx"}},
     "/, /g, /g/v array",
     NULL},
    {"a name that sorts before a slash",
     "",
     {{"zarr.json", GROUP},
      {"a/zarr.json", GROUP},
      {"a/b/zarr.json", ARRAY},
      {"a-b/zarr.json", ARRAY}},
     "/, /a, /a-b array, /a/b array",
     NULL},
    {"below a group",
     "g",
     {{"zarr.json", GROUP}, {"v/zarr.json", ARRAY}},
     "/ implied, /g, /g/v array",
     NULL},
    {"below two",
     "g/of/it",
     {{"zarr.json", ARRAY}},
     "/ implied, /g implied, /g/of implied, /g/of/it array",
     NULL},
    {"no node",
     "",
     {{"zarr.json", "[]"}},
     NULL,
     "/: its zarr.json is not one that Icechunk can hold"},
    {"no document at all", "", {{"a/other.json", GROUP}}, "", NULL},
};

static void made(void **state)
{
    unsigned bad = 0;
    cm_buf text = {0};
    (void)state;
    for (size_t i = 0; i < COUNT(MADE); i++) {
        cm_store *store = store_of(MADE[i].document);
        cm_node_list list;
        cm_error why = {0};
        const int rc = cm_node_list_make(&list, store, MADE[i].above, &why);
        tell_compare(MADE[i].name, rc == CM_OK ? "" : why.text,
                     MADE[i].error != NULL ? MADE[i].error : "", &bad);
        say_nodes(&text, &list);
        tell_compare(MADE[i].name, (const char *)text.data, MADE[i].nodes, &bad);
        assert_null(cm_node_list_find(&list, "", "none"));
        /* Each has an id of its own. */
        for (size_t k = 1; rc == CM_OK && k < list.n; k++)
            assert_memory_not_equal(list.node[k - 1].id, list.node[k].id, CM_ICE_NODE_ID);
        cm_node_list_release(&list);
        assert_true(list.node == NULL && list.n == 0);
        cm_node_list_release(&list);
        cm_store_free(store);
    }
    cm_buf_release(&text);
    assert_int_equal(bad, 0);
}

/* ---- by name ---- */

static void found(void **state)
{
    static const made_document DOCUMENTS[] = {
        {"zarr.json", GROUP}, {"v/zarr.json", ARRAY}, {"w/zarr.json", ARRAY}, {NULL, NULL}};
    static const struct {
        const char *above, *name, *path; /* NULL: there is none */
    } NAMES[] = {
        {"g", "v", "/g/v"}, {"g", "w", "/g/w"}, {"g", "", "/g"},  {"", "", "/"},
        {"", "g", "/g"},    {"", "v", NULL},    {"g", "x", NULL}, {"g/v", "c", NULL},
    };
    cm_store *store = store_of(DOCUMENTS);
    cm_node_list list;
    (void)state;
    OK(cm_node_list_make(&list, store, "g", err));
    for (size_t i = 0; i < COUNT(NAMES); i++) {
        const cm_ice_new_node *node = cm_node_list_find(&list, NAMES[i].above, NAMES[i].name);
        if ((node == NULL) != (NAMES[i].path == NULL) ||
            (node != NULL && strcmp(node->path, NAMES[i].path) != 0))
            fail_msg("%s/%s", NAMES[i].above, NAMES[i].name);
    }
    cm_node_list_release(&list);
    cm_store_free(store);
}

/* ---- changes ---- */

/* A snapshot of nodes, sorted by their paths, of which node I has an id of bytes I + 1. */
typedef struct made_snapshot {
    cm_fb_table *snapshot, *item[MOST_DOCUMENTS];
    uint8_t id[MOST_DOCUMENTS][CM_ICE_NODE_ID];
} made_snapshot;

static cm_fb_table *make_table(void)
{
    return calloc(1, sizeof(cm_fb_table) + 16 * sizeof(cm_fb_value));
}

static void make_snapshot(made_snapshot *s, const made_document *node)
{
    size_t n = 0;
    for (; n < MOST_DOCUMENTS && node[n].key != NULL; n++) {
        s->item[n] = make_table();
        memset(s->id[n], (int)n + 1, CM_ICE_NODE_ID);
        s->item[n]->value[CM_ICE_NODE_NODE_ID].bytes = s->id[n];
        s->item[n]->value[CM_ICE_NODE_PATH] =
            (cm_fb_value){.there = true, .bytes = node[n].key, .n = strlen(node[n].key)};
        s->item[n]->value[CM_ICE_NODE_DOCUMENT] =
            (cm_fb_value){.there = true, .bytes = node[n].text, .n = strlen(node[n].text)};
    }
    s->snapshot = make_table();
    s->snapshot->value[CM_ICE_SNAPSHOT_NODES] =
        (cm_fb_value){.there = true, .item = s->item, .n = n};
}

static void release_snapshot(made_snapshot *s)
{
    for (size_t i = 0; i < MOST_DOCUMENTS; i++)
        free(s->item[i]);
    free(s->snapshot);
    *s = (made_snapshot){0};
}

static const struct {
    const char *name, *above;
    made_document was[MOST_DOCUMENTS], now[MOST_DOCUMENTS];
    const char *updated; /* a node whose chunks change; NULL: none */
    const char *nodes;
} CHANGES[] = {
    {"nothing",
     "",
     {{"/", GROUP}, {"/v", ARRAY}},
     {{"zarr.json", GROUP}, {"v/zarr.json", ARRAY}},
     NULL,
     ""},
    {"a document",
     "",
     {{"/", GROUP}, {"/v", ARRAY}},
     {{"zarr.json", NOTED}, {"v/zarr.json", ARRAY}},
     NULL,
     "/ updates"},
    {"a document that goes on",
     "",
     {{"/", GROUP}, {"/v", ARRAY "\n"}},
     {{"zarr.json", GROUP}, {"v/zarr.json", ARRAY}},
     NULL,
     "/v array updates"},
    {"chunks",
     "",
     {{"/", GROUP}, {"/v", ARRAY}},
     {{"zarr.json", GROUP}, {"v/zarr.json", ARRAY}},
     "v",
     "/v array updates"},
    {"a node that is new",
     "",
     {{"/", GROUP}},
     {{"zarr.json", GROUP}, {"v/zarr.json", ARRAY}},
     NULL,
     "/v array"},
    {"groups above, which have notes of their own",
     "g",
     {{"/", NOTED}, {"/g", NOTED}},
     {{"zarr.json", NOTED}, {"v/zarr.json", ARRAY}},
     NULL,
     "/g/v array"},
    {"and of which one is new",
     "g/of",
     {{"/", NOTED}},
     {{"zarr.json", GROUP}},
     NULL,
     "/g implied, /g/of"},
};

static void changes(void **state)
{
    unsigned bad = 0;
    cm_buf text = {0};
    (void)state;
    for (size_t i = 0; i < COUNT(CHANGES); i++) {
        cm_store *store = store_of(CHANGES[i].now);
        made_snapshot s = {0};
        cm_node_list list;
        make_snapshot(&s, CHANGES[i].was);
        OK(cm_node_list_make(&list, store, CHANGES[i].above, err));
        if (CHANGES[i].updated != NULL)
            cm_node_list_find(&list, CHANGES[i].above, CHANGES[i].updated)->updates = true;
        cm_node_list_keep_changes(&list, s.snapshot);
        say_nodes(&text, &list);
        tell_compare(CHANGES[i].name, (const char *)text.data, CHANGES[i].nodes, &bad);
        for (size_t k = 0; k < list.n; k++) {
            const cm_fb_table *was = cm_ice_snapshot_find(s.snapshot, list.node[k].path);
            assert_int_equal(was != NULL, list.node[k].updates);
            if (was != NULL) /* it keeps its id */
                assert_memory_equal(list.node[k].id, was->value[CM_ICE_NODE_NODE_ID].bytes,
                                    CM_ICE_NODE_ID);
        }
        cm_node_list_release(&list);
        release_snapshot(&s);
        cm_store_free(store);
    }
    cm_buf_release(&text);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(made), cmocka_unit_test(found),
                                       cmocka_unit_test(changes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
