#include "format/zarr/consolidate.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_place.h"
#include "base/path.h"
#include "base/utf8.h"
#include "format/zarr/tree.h"
#include "format/zarr/writer.h"
#include "store/dir.h"

#define MEMBER        "consolidated_metadata"
#define NOTHING_BELOW "{\"kind\": \"inline\", \"must_understand\": false, \"metadata\": {}}"

/* One node, with the text of its documents. */
typedef struct listed {
    const char *path; /* borrowed from the tree */
    bool is_group;
    bool has_own;         /* a group with a consolidated-metadata object of its own */
    cm_buf text;          /* zarr.json, .zarray or .zgroup */
    cm_buf attrs;         /* .zattrs; empty: none */
    cm_json_place at, in; /* places of the document in TEXT, and of .zattrs in ATTRS */
} listed;

typedef struct listing {
    cm_store *store;
    cm_zarr_tree tree;
    listed *node; /* in the order of the entries */
    size_t n;
} listing;

static void listing_release(listing *l)
{
    for (size_t i = 0; i < l->n; i++) {
        cm_buf_release(&l->node[i].text);
        cm_buf_release(&l->node[i].attrs);
    }
    free(l->node);
    cm_zarr_tree_release(&l->tree);
}

/* ---- documents ---- */

static char *key_of(const char *path, const char *name, cm_error *err)
{
    return cm_asprintf(err, "%s%s%s", path, *path != '\0' ? "/" : "", name);
}

/* Reads a document that is an object.  CM_ENOTFOUND: no document. */
static int read_text(cm_store *store, const char *key, cm_buf *out, cm_json_place *at,
                     cm_error *err)
{
    cm_json *j = NULL;
    int rc = cm_store_get(store, key, CM_ZARR_MAX_META_NBYTES, out, err);
    if (rc != CM_OK)
        return rc;
    rc = cm_json_parse(out->data, out->nbytes, &j, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "%s", key);
    /* Embedded, it would make all documents unreadable. */
    if (rc == CM_OK && !cm_utf8_is_valid(out->data, out->nbytes))
        rc = cm_fail(err, CM_EFORMAT, "%s: is not valid UTF-8", key);
    if (rc == CM_OK && (!cm_json_is(j, CM_JSON_OBJECT) || cm_json_length(j) == 0 ||
                        !cm_json_place_root((const char *)out->data, out->nbytes, at)))
        rc = cm_fail(err, CM_EFORMAT, "%s: is not a JSON object", key);
    cm_json_free(j);
    return rc;
}

/* Appends TEXT's object AT to OUT, with member NAME replaced, or added at its end. */
static int with_member(const char *text, cm_json_place at, const char *name, const char *value,
                       cm_buf *out, cm_error *err)
{
    cm_json_place found, last = at, ignored;
    size_t cursor = 0;
    cm_json_edit edit = {0};
    if (cm_json_place_member(text, at, name, &found)) {
        edit.at = found;
        edit.text = cm_strdup(value, err);
    } else {
        while (cm_json_place_next(text, at, &cursor, &ignored, &found))
            last = found;
        edit.at = (cm_json_place){last.end, last.end};
        edit.text = cm_asprintf(err, ",\n  \"%s\": %s", name, value);
    }
    /* Only white space surrounds the object, so drop it. */
    int rc = edit.text == NULL ? CM_ENOMEM : cm_json_edit_apply(text, at.end, &edit, 1, out, err);
    free(edit.text);
    return rc;
}

static int append_name(cm_buf *out, const char *name, cm_error *err)
{
    cm_json *j = cm_json_string(name);
    int rc = j == NULL ? cm_fail(err, CM_ENOMEM, "no memory for metadata")
                       : cm_json_write(j, false, out, err);
    cm_json_free(j);
    return rc == CM_OK ? cm_buf_append(out, ": ", 2, err) : rc;
}

/* ---- the nodes ---- */

static int read_v3(listing *l, listed *x, cm_error *err)
{
    cm_json_place own;
    char *key = key_of(x->path, "zarr.json", err);
    int rc = key == NULL ? CM_ENOMEM : read_text(l->store, key, &x->text, &x->at, err);
    const char *text = (const char *)x->text.data;
    x->has_own = rc == CM_OK && x->is_group && cm_json_place_member(text, x->at, MEMBER, &own) &&
                 text[own.begin] == '{';
    free(key);
    return rc;
}

static int read_v2(listing *l, listed *x, cm_error *err)
{
    char *key = key_of(x->path, x->is_group ? ".zgroup" : ".zarray", err);
    char *attrs = key_of(x->path, ".zattrs", err);
    int rc =
        key == NULL || attrs == NULL ? CM_ENOMEM : read_text(l->store, key, &x->text, &x->at, err);
    if (rc == CM_OK) {
        /* An empty object is usual there. */
        cm_json *j = NULL;
        rc = cm_zarr_get_json(l->store, x->path, ".zattrs", &j, err);
        if (rc == CM_OK && cm_json_is(j, CM_JSON_OBJECT) && cm_json_length(j) == 0)
            rc = cm_buf_append(&x->attrs, "{}", 2, err);
        else if (rc == CM_OK)
            rc = read_text(l->store, attrs, &x->attrs, &x->in, err);
        if (rc == CM_OK && cm_json_length(j) == 0)
            x->in = (cm_json_place){0, 2};
        cm_json_free(j);
        rc = rc == CM_ENOTFOUND ? CM_OK : rc;
    }
    free(key);
    free(attrs);
    return rc;
}

static int compare_listed(const void *a, const void *b)
{
    return cm_zarr_compare_entries(((const listed *)a)->path, ((const listed *)b)->path);
}

/*
 * A folder above nodes and without a document is listed as a group: zarr-python opens no store
 * whose consolidated metadata lack one.
 */
static int read_implied(const listing *l, listed *x, cm_error *err)
{
    int rc =
        cm_buf_printf(&x->text, err, "%s",
                      l->tree.zarr_format == 3 ? "{\"zarr_format\": 3, \"node_type\": \"group\"}"
                                               : "{\"zarr_format\": 2}");
    x->at = (cm_json_place){0, x->text.nbytes};
    return rc;
}

static int read_nodes(listing *l, cm_error *err)
{
    int rc = CM_OK;
    l->node = cm_calloc(l->tree.nnodes + 1, sizeof(*l->node), err);
    if (l->node == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < l->tree.nnodes; i++) {
        const cm_zarr_node *node = &l->tree.node[i];
        listed *x = &l->node[l->n++];
        *x = (listed){.path = node->path, .is_group = node->meta.is_group};
        if (!cm_utf8_is_valid(x->path, strlen(x->path)))
            return cm_fail(err, CM_EFORMAT, "%s: a name that is not valid UTF-8 cannot be listed",
                           x->path);
        if (node->implied)
            rc = read_implied(l, x, err);
        else
            rc = l->tree.zarr_format == 3 ? read_v3(l, x, err) : read_v2(l, x, err);
    }
    if (rc == CM_OK)
        qsort(l->node, l->n, sizeof(*l->node), compare_listed);
    return rc;
}

/* ---- making the texts ---- */

static bool is_below(const char *path, const char *group)
{
    size_t n = strlen(group);
    return n == 0 ? *path != '\0' : strncmp(path, group, n) == 0 && path[n] == '/';
}

/* Between two entries. */
static int append_comma(cm_buf *out, size_t *n, cm_error *err)
{
    return cm_buf_printf(out, err, "%s\n", (*n)++ > 0 ? "," : "");
}

/* Makes the value of consolidated_metadata of GROUP. */
static int make_inline(const listing *l, const listed *group, cm_buf *out, cm_error *err)
{
    size_t n = 0, skip = strlen(group->path) + (*group->path != '\0');
    int rc = cm_buf_printf(out, err, "%s",
                           "{\"kind\": \"inline\", \"must_understand\": false, \"metadata\": {");
    for (size_t i = 0; rc == CM_OK && i < l->n; i++) {
        const listed *x = &l->node[i];
        const char *text = (const char *)x->text.data;
        if (!is_below(x->path, group->path))
            continue;
        cm_buf entry = {0};
        size_t begin = x->at.begin;
        rc = append_comma(out, &n, err);
        if (rc == CM_OK)
            rc = append_name(out, x->path + skip, err);
        /* Nodes below a group are listed next to it, and not again in the group's entry. */
        if (rc == CM_OK && x->is_group)
            rc = with_member(text, x->at, MEMBER, NOTHING_BELOW, &entry, err);
        else if (rc == CM_OK)
            rc = cm_buf_append(&entry, text, x->at.end, err);
        if (rc == CM_OK)
            rc = cm_buf_append(out, entry.data + begin, entry.nbytes - begin, err);
        cm_buf_release(&entry);
    }
    return rc == CM_OK ? cm_buf_append(out, "}}", 3, err) : rc; /* including the NUL */
}

static int add_v3(const listing *l, const listed *group, cm_zarr_consolidated *out, cm_error *err)
{
    cm_buf value = {0};
    cm_zarr_renewed *r = &out->item[out->n++];
    int rc = (r->key = key_of(group->path, "zarr.json", err)) == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK)
        rc = make_inline(l, group, &value, err);
    if (rc == CM_OK)
        rc = with_member((const char *)group->text.data, group->at, MEMBER,
                         (const char *)value.data, &r->text, err);
    if (rc == CM_OK)
        rc = cm_buf_append(&r->text, "\n", 1, err);
    cm_buf_release(&value);
    if (rc == CM_OK)
        rc = cm_buf_append(&r->was, group->text.data, group->text.nbytes, err);
    return rc;
}

static int consolidate_v3(const listing *l, cm_zarr_consolidated *out, cm_error *err)
{
    int rc = CM_OK;
    /* Entries are sorted by depth, the root first: write in reverse. */
    for (size_t i = l->n; rc == CM_OK && i-- > 0;)
        if (l->node[i].is_group && (l->node[i].has_own || i == 0))
            rc = add_v3(l, &l->node[i], out, err);
    return rc;
}

static int append_v2(const listed *x, bool attrs, size_t *n, cm_buf *out, cm_error *err)
{
    const cm_buf *text = attrs ? &x->attrs : &x->text;
    cm_json_place at = attrs ? x->in : x->at;
    char *key = key_of(x->path, attrs ? ".zattrs" : x->is_group ? ".zgroup" : ".zarray", err);
    int rc = key == NULL ? CM_ENOMEM : append_comma(out, n, err);
    if (rc == CM_OK)
        rc = append_name(out, key, err);
    if (rc == CM_OK)
        rc = cm_buf_append(out, text->data + at.begin, at.end - at.begin, err);
    free(key);
    return rc;
}

/* Reads the present .zmetadata: refuses to replace one of another format, but not a damaged one. */
static int look_at_zmetadata(cm_store *store, cm_buf *text, cm_json_place *at, bool *keeps,
                             cm_error *err)
{
    cm_json *j = NULL;
    uint64_t format = 0;
    *keeps = false;
    int rc = cm_store_get(store, ".zmetadata", CM_ZARR_MAX_META_NBYTES, text, err);
    if (rc != CM_OK)
        return rc == CM_ENOTFOUND ? CM_OK : rc;
    if (cm_json_parse(text->data, text->nbytes, &j, NULL) != CM_OK)
        return CM_OK;
    if (cm_json_has(j, "record_size"))
        rc = cm_fail(err, CM_EUNSUPPORTED,
                     ".zmetadata belongs to references in Parquet files, which it would destroy");
    else if (cm_json_get_u64(cm_json_member(j, "zarr_consolidated_format"), &format) && format != 1)
        rc = cm_fail(err, CM_EUNSUPPORTED,
                     ".zmetadata is consolidated metadata of a format that is not known here");
    *keeps = rc == CM_OK && format == 1 && cm_utf8_is_valid(text->data, text->nbytes) &&
             cm_json_place_root((const char *)text->data, text->nbytes, at);
    cm_json_free(j);
    return rc;
}

static int consolidate_v2(const listing *l, cm_zarr_consolidated *out, cm_error *err)
{
    cm_buf value = {0};
    cm_json_place at;
    bool keeps;
    size_t n = 0;
    cm_zarr_renewed *r = &out->item[out->n++];
    int rc = (r->key = cm_strdup(".zmetadata", err)) == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK)
        rc = look_at_zmetadata(l->store, &r->was, &at, &keeps, err);
    if (rc == CM_OK)
        rc = cm_buf_append(&value, "{", 1, err);
    for (size_t i = 0; rc == CM_OK && i < l->n; i++) {
        if (l->node[i].attrs.nbytes > 0)
            rc = append_v2(&l->node[i], true, &n, &value, err);
        if (rc == CM_OK)
            rc = append_v2(&l->node[i], false, &n, &value, err);
    }
    if (rc == CM_OK)
        rc = cm_buf_append(&value, "}", 2, err); /* including the NUL */
    if (rc == CM_OK && keeps)
        rc = with_member((const char *)r->was.data, at, "metadata", (const char *)value.data,
                         &r->text, err);
    else if (rc == CM_OK)
        rc = cm_buf_printf(&r->text, err,
                           "{\n  \"metadata\": %s,\n  \"zarr_consolidated_format\": 1\n}",
                           (const char *)value.data);
    if (rc == CM_OK)
        rc = cm_buf_append(&r->text, "\n", 1, err);
    cm_buf_release(&value);
    return rc;
}

/* ---- consolidating ---- */

/*
 * Checks the result as readers parse it: every entry, and nothing else, as text that only a
 * tolerant parser accepts could turn its neighbours into.
 */
static int check_text(const cm_zarr_renewed *r, int format, size_t nbelow, cm_error *err)
{
    cm_json *j = NULL;
    int rc = cm_json_parse(r->text.data, r->text.nbytes, &j, err);
    const cm_json *at = format == 3 ? cm_json_member(j, MEMBER) : j;
    if (rc == CM_OK && cm_json_length(cm_json_member(at, "metadata")) != nbelow)
        rc = cm_fail(err, CM_EFORMAT, "a document of the store cannot be listed");
    if (rc != CM_OK)
        cm_error_prefix(err, "%s", r->key);
    cm_json_free(j);
    return rc;
}

static int check_all(const listing *l, const cm_zarr_consolidated *c, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < c->n; i++) {
        size_t nbelow = 0, length = strlen(c->item[i].key);
        size_t above = length > strlen("zarr.json") ? length - strlen("/zarr.json") : 0;
        for (size_t k = 0; k < l->n; k++) {
            const listed *x = &l->node[k];
            if (c->zarr_format == 2)
                nbelow += 1 + (x->attrs.nbytes > 0);
            else if (above == 0)
                nbelow += *x->path != '\0';
            else
                nbelow += strncmp(x->path, c->item[i].key, above) == 0 && x->path[above] == '/';
        }
        rc = check_text(&c->item[i], c->zarr_format, nbelow, err);
        c->item[i].same = cm_buf_equal(&c->item[i].text, &c->item[i].was);
    }
    return rc;
}

/* Finds the format from the root's document. */
static int find_format(cm_store *store, int *format, cm_error *err)
{
    static const char *const NAMES[] = {"zarr.json", ".zgroup", ".zarray"};
    *format = 0;
    for (size_t i = 0; *format == 0 && i < 3; i++) {
        int rc = cm_store_size(store, NAMES[i], NULL, err);
        if (rc == CM_OK)
            *format = i == 0 ? 3 : 2;
        else if (rc != CM_ENOTFOUND)
            return rc;
    }
    return *format != 0 ? CM_OK
                        : cm_fail(err, CM_EFORMAT,
                                  "no Zarr store: neither zarr.json, .zgroup nor .zarray is there");
}

/* ---- links ---- */

typedef struct links {
    listing *l;
    char *broken; /* the first that leads to nothing */
} links;

static int visit_nothing(void *context, const char *name, bool is_prefix, cm_error *err)
{
    (void)context, (void)name, (void)is_prefix, (void)err;
    return CM_OK;
}

static cm_verdict judge_link(void *context, const char *below, cm_entry_kind kind)
{
    links *k = context;
    cm_store *store = k->l->store;
    if (kind == CM_ENTRY_FOLDER) {
        const cm_zarr_node *node = cm_zarr_find(&k->l->tree, below);
        return node != NULL && !node->meta.is_group ? CM_KEEP : CM_ENTER;
    }
    /* Editors keep locks as links to nothing, ".#zarr.json". */
    const char *name = cm_path_last(below);
    const bool hidden = name[0] == '.' && strncmp(name, ".z", 2) != 0;
    if (kind == CM_ENTRY_OTHER && !hidden && k->broken == NULL &&
        cm_store_size(store, below, NULL, NULL) == CM_ENOTFOUND &&
        cm_store_list(store, below, visit_nothing, NULL, NULL) == CM_ENOTFOUND)
        k->broken = cm_strdup(below, NULL);
    return CM_KEEP;
}

/* A link to nothing, outside of arrays, may be a node that would not be listed. */
static int check_links(listing *l, cm_error *err)
{
    links k = {.l = l};
    int rc = cm_store_is_dir(l->store) ? cm_store_sweep(l->store, "", judge_link, &k, err) : CM_OK;
    if (rc == CM_OK && k.broken != NULL)
        rc = cm_fail(err, CM_ENOTFOUND,
                     "%s: is a symbolic link to nothing, so a node may be missing; remove it, or "
                     "bring back what it leads to",
                     k.broken);
    free(k.broken);
    return rc;
}

int cm_zarr_consolidate(cm_store *store, cm_zarr_consolidated *out, cm_error *err)
{
    listing l = {.store = store, .tree = {.store = store}};
    *out = (cm_zarr_consolidated){0};
    int rc = find_format(store, &l.tree.zarr_format, err);
    if (rc == CM_OK)
        rc = cm_zarr_tree_walk(&l.tree, NULL, NULL, err);
    if (rc == CM_OK)
        rc = check_links(&l, err);
    if (rc == CM_OK)
        rc = read_nodes(&l, err);
    if (rc == CM_OK && !(l.n > 0 && *l.node[0].path == '\0' && l.node[0].is_group))
        rc = cm_fail(err, CM_EINVAL, "is an array, which has no consolidated metadata");
    if (rc == CM_OK) {
        out->item = cm_calloc(l.n, sizeof(*out->item), err);
        rc = out->item == NULL ? CM_ENOMEM : CM_OK;
    }
    out->zarr_format = l.tree.zarr_format;
    for (size_t i = 0; i < l.n; i++)
        *(l.node[i].is_group ? &out->ngroups : &out->narrays) += 1;
    if (rc == CM_OK)
        rc = out->zarr_format == 3 ? consolidate_v3(&l, out, err) : consolidate_v2(&l, out, err);
    if (rc == CM_OK)
        rc = check_all(&l, out, err);
    listing_release(&l);
    if (rc != CM_OK)
        cm_zarr_consolidated_release(out);
    return rc;
}

void cm_zarr_consolidated_release(cm_zarr_consolidated *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->item[i].key);
        cm_buf_release(&c->item[i].text);
        cm_buf_release(&c->item[i].was);
    }
    free(c->item);
    *c = (cm_zarr_consolidated){0};
}
