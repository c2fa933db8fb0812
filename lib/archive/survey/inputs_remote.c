/* Inputs behind a network: objects by their names, and those that a bucket lists. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "archive/survey/ahead.h"
#include "archive/survey/inputs_impl.h"
#include "base/path.h"
#include "base/threads.h"
#include "options/glob.h"
#include "store/net/url.h"
#include "store/open.h"

enum {
    ASK_TOGETHER = 16
};

static int check_net(const cm_inputs *in, const char *text, cm_error *err)
{
    return in->net != NULL
               ? CM_OK
               : cm_fail(err, CM_EINVAL, "%s: only folders and files are read here", text);
}

/* ITEM, of which TOLD is known, can be fetched. */
static int give_copy(cm_inputs *in, cm_input *item, const cm_object_stat *told, cm_error *err)
{
    int rc = in->copies != NULL ? CM_OK
                                : cm_copies_create(in->net, in->scratch, in->max_nbytes, in->paged,
                                                   &in->copies, err);
    return rc == CM_OK ? cm_copies_add(in->copies, item->path, told, &item->copy, err) : rc;
}

/* ---- listings ---- */

typedef struct search {
    cm_inputs *in;
    const char *pattern; /* of keys; NULL: everything that ends like NetCDF */
    bool deep;           /* below the folders that the pattern names */
    char *bucket;        /* "s3://BUCKET/" */
    char *folder;        /* that all of them lie in: "" or "a/b/" */
    bool literal;        /* the pattern is the name of an object */
    cm_buf stores;       /* folders that hold documents of Zarr, each with its NUL */
    size_t nstores;
    const char **store; /* the same, sorted */
    cm_buf key;
} search;

static bool is_hidden(const char *below)
{
    return below[0] == '.' || strstr(below, "/.") != NULL;
}

/* A Zarr store has documents; its chunks are no inputs. */
static int note_store(search *s, const char *below, cm_error *err)
{
    static const char *const DOCUMENT[] = {"zarr.json", ".zgroup", ".zarray", ".zmetadata"};
    const char *name = cm_path_last(below);
    bool is_document = false;
    for (size_t i = 0; i < sizeof(DOCUMENT) / sizeof(DOCUMENT[0]); i++)
        is_document = is_document || strcmp(name, DOCUMENT[i]) == 0;
    if (!is_document)
        return CM_OK;
    s->nstores++;
    int rc = cm_buf_append(&s->stores, below, (size_t)(name - below), err);
    return rc == CM_OK ? cm_buf_append(&s->stores, "", 1, err) : rc;
}

/* A folder that the pattern matches is searched as one that is named. */
static bool lies_in_match(const search *s, char *key)
{
    bool found = false;
    for (char *at = strchr(key + strlen(s->folder), '/'); at != NULL && !found;
         at = strchr(at + 1, '/')) {
        *at = '\0';
        found = cm_glob_matches(s->pattern, key);
        *at = '/';
    }
    return found;
}

static bool is_wanted(const search *s, char *key)
{
    if (s->pattern == NULL)
        return cm_input_is_netcdf(key);
    return cm_glob_matches(s->pattern, key) ||
           (!s->deep && cm_input_is_netcdf(key) && lies_in_match(s, key));
}

static bool is_avoided(const cm_inputs *in, const char *path)
{
    size_t n = in->avoid != NULL ? strlen(in->avoid) : 0;
    while (n > 0 && in->avoid[n - 1] == '/')
        n--;
    return n > 0 && strncmp(path, in->avoid, n) == 0 && path[n] == '/';
}

static int add_object(search *s, const char *key, const cm_object_stat *told, cm_error *err)
{
    cm_input *item;
    char *path = cm_asprintf(err, "%s%s", s->bucket, key);
    if (path == NULL)
        return CM_ENOMEM;
    int rc = CM_OK;
    if (!is_avoided(s->in, path)) {
        rc = cm_inputs_add(s->in, path, &item, err);
        if (rc == CM_OK)
            rc = give_copy(s->in, item, told, err);
    }
    free(path);
    return rc;
}

static int see(void *context, const char *below, const cm_object_stat *told, cm_error *err)
{
    search *s = context;
    s->key.nbytes = 0;
    int rc = note_store(s, below, err);
    if (rc == CM_OK)
        rc = cm_buf_printf(&s->key, err, "%s%s", s->folder, below);
    if (rc == CM_OK)
        rc = cm_buf_append(&s->key, "", 1, err);
    if (rc != CM_OK)
        return rc;
    char *key = (char *)s->key.data;
    if (s->pattern != NULL && strcmp(key, s->pattern) == 0) {
        s->literal = true;
        return add_object(s, key, told, err);
    }
    return !is_hidden(below) && is_wanted(s, key) ? add_object(s, key, told, err) : CM_OK;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int sort_stores(search *s, cm_error *err)
{
    if ((s->store = cm_calloc(s->nstores + 1, sizeof(s->store[0]), err)) == NULL)
        return CM_ENOMEM;
    const char *at = (const char *)s->stores.data;
    for (size_t i = 0; i < s->nstores; i++, at += strlen(at) + 1)
        s->store[i] = at;
    if (s->nstores > 0)
        qsort(s->store, s->nstores, sizeof(s->store[0]), by_text);
    return CM_OK;
}

/* PATH lies in a store, which the folder that was named is not taken for. */
static bool lies_in_store(const search *s, const char *path)
{
    char text[2048];
    const char *below = path + strlen(s->bucket) + strlen(s->folder);
    for (const char *at = strchr(below, '/'); at != NULL; at = strchr(at + 1, '/')) {
        const char *folder = text;
        size_t n = (size_t)(at + 1 - below);
        if (n >= sizeof(text))
            return false;
        memcpy(text, below, n);
        text[n] = '\0';
        if (s->nstores > 0 &&
            bsearch(&folder, s->store, s->nstores, sizeof(s->store[0]), by_text) != NULL)
            return true;
    }
    return false;
}

/* Of what was added since there were FIRST: an object of just that name is all that is meant. */
static void drop_others(const search *s, size_t first)
{
    cm_inputs *in = s->in;
    size_t kept = first;
    for (size_t i = first; i < in->n; i++) {
        const char *key = in->item[i].path + strlen(s->bucket);
        bool stays = s->literal ? strcmp(key, s->pattern) == 0
                                : s->nstores == 0 || !lies_in_store(s, in->item[i].path);
        if (stays)
            in->item[kept++] = in->item[i];
    }
    in->n = kept;
}

static int read_listing(search *s, size_t first, cm_error *err)
{
    cm_store *store = NULL;
    char *url = cm_asprintf(err, "%s%s", s->bucket, s->folder);
    int rc = url == NULL ? CM_ENOMEM : cm_store_open_remote(url, s->in->net, &store, err);
    if (rc == CM_OK)
        rc = cm_store_list_below(store, "", see, s, err);
    if (rc != CM_OK && store != NULL)
        cm_error_place(err, cm_store_name(store));
    if (rc == CM_OK)
        rc = sort_stores(s, err);
    if (rc == CM_OK && s->pattern == NULL && s->nstores > 0 && s->store[0][0] == '\0')
        rc = cm_fail(err, CM_EINVAL,
                     "%s: is a Zarr store; only files are joined, or added to a store", url);
    if (rc == CM_OK)
        drop_others(s, first);
    cm_store_free(store);
    free(url);
    return rc;
}

/* The part of PATTERN that is none, up to its last '/'. */
static size_t fixed_length(const char *pattern)
{
    size_t n = strcspn(pattern, "*?[");
    while (n > 0 && pattern[n - 1] != '/')
        n--;
    return n;
}

/* KEY is a pattern, or a folder, of the bucket in TEXT. */
static int find_in_bucket(cm_inputs *in, const char *text, bool is_pattern, cm_error *err)
{
    size_t first = in->n;
    const char *bucket = text + strlen("s3://"), *slash = strchr(bucket, '/');
    size_t nbucket = slash != NULL ? (size_t)(slash - bucket) : strlen(bucket);
    const char *key = slash != NULL ? slash + 1 : "";
    if (strcspn(bucket, "*?[") < nbucket)
        return cm_fail(err, CM_EINVAL, "%s: the name of a bucket cannot be a pattern", text);
    size_t n = is_pattern ? fixed_length(key) : strlen(key);
    bool closed = n == 0 || key[n - 1] == '/';
    search s = {.in = in,
                .pattern = is_pattern ? key : NULL,
                .deep = is_pattern && strstr(key, "**") != NULL,
                .bucket = cm_asprintf(err, "%.*s/", (int)(bucket + nbucket - text), text),
                .folder = cm_asprintf(err, "%.*s%s", (int)n, key, closed ? "" : "/")};
    int rc = s.bucket == NULL || s.folder == NULL ? CM_ENOMEM : read_listing(&s, first, err);
    free(s.bucket);
    free(s.folder);
    free(s.store);
    cm_buf_release(&s.stores);
    cm_buf_release(&s.key);
    if (rc != CM_OK || in->n > first)
        return rc;
    if (is_pattern)
        return cm_fail(err, CM_ENOTFOUND, "%s: no object matches the pattern", text);
    return cm_fail(err, CM_ENOTFOUND, "%s: holds no object whose name ends in " CM_INPUT_ENDINGS,
                   text);
}

int cm_inputs_find_remote(cm_inputs *in, const char *text, bool from_list, cm_error *err)
{
    const bool bucket = cm_url_kind_of(text) == CM_URL_S3;
    const size_t n = strlen(text);
    cm_url parts;
    cm_input *item;
    int rc = check_net(in, text, err);
    if (rc == CM_OK && bucket && cm_input_is_pattern(text))
        return find_in_bucket(in, text, true, err);
    if (rc == CM_OK && bucket &&
        (text[n - 1] == '/' || strchr(text + strlen("s3://"), '/') == NULL))
        return find_in_bucket(in, text, false, err);
    if (rc == CM_OK && (text[n - 1] == '/' || strchr(text, '*') != NULL))
        return cm_fail(err, CM_EINVAL,
                       "%s: a web server does not list its files; name each of them, or give a "
                       "list of them",
                       text);
    if (rc == CM_OK) {
        rc = cm_url_parse(text, &parts, err);
        cm_url_release(&parts);
    }
    if (rc == CM_OK)
        rc = cm_inputs_add(in, text, &item, err);
    if (rc == CM_OK) {
        item->remote = true;
        item->from_list = from_list;
    }
    return rc;
}

/* ---- objects by their names ---- */

typedef struct asking {
    cm_inputs *in;
    size_t n;
    struct answer {
        size_t item;
        cm_object_stat told;
        cm_error err;
    } * answer;
    _Atomic size_t next;
} asking;

static void ask(void *context, unsigned worker)
{
    asking *a = context;
    (void)worker;
    for (size_t i; (i = atomic_fetch_add(&a->next, 1)) < a->n;) {
        struct answer *r = &a->answer[i];
        (void)cm_copy_stat_url(a->in->net, a->in->item[r->item].path, &r->told, &r->err);
    }
}

/* An object that cannot be asked about has a record that says so, as a file has. */
static int note_failure(cm_inputs *in, cm_input *item, const cm_error *why, cm_error *err)
{
    item->status = why->status;
    item->why = cm_paged_calloc(in->paged, strlen(why->text) + 1, 1, err);
    if (item->why == NULL)
        return CM_ENOMEM;
    strcpy(item->why, why->text);
    return CM_OK;
}

/* Where an object that was named is not there, the name may be that of a folder. */
static int find_as_folder(cm_inputs *in, size_t i, const cm_error *why, bool *found, cm_error *err)
{
    char *text = cm_strdup(in->item[i].path, err);
    int rc = CM_ENOTFOUND;
    if (text == NULL)
        return CM_ENOMEM;
    if (cm_url_kind_of(text) == CM_URL_S3 && !cm_input_is_netcdf(text))
        rc = find_in_bucket(in, text, false, err);
    *found = rc == CM_OK;
    if (rc == CM_ENOTFOUND && err != NULL)
        *err = *why;
    free(text);
    return rc;
}

static int take_answer(cm_inputs *in, struct answer *r, bool all_failed, bool *is_folder,
                       cm_error *err)
{
    cm_input *item = &in->item[r->item];
    *is_folder = false;
    item->remote = false;
    if (r->err.status == CM_OK)
        return give_copy(in, item, &r->told, err);
    if (r->err.status == CM_ENOTFOUND && !item->from_list)
        return find_as_folder(in, r->item, &r->err, is_folder, err);
    if (r->err.status == CM_ECANCELED || r->err.status == CM_ENOMEM || r->err.passes ||
        (all_failed && r->err.status != CM_ENOTFOUND)) {
        cm_ahead_advise(&r->err);
        if (err != NULL)
            *err = r->err;
        return r->err.status;
    }
    return note_failure(in, item, &r->err, err);
}

/* As many as there is room for in memory at once. */
static int look_at_some(cm_inputs *in, asking *a, cm_error *err)
{
    size_t nfailed = 0;
    int rc = CM_OK;
    atomic_store(&a->next, 0);
    cm_threads_run(a->n < ASK_TOGETHER ? (unsigned)a->n : ASK_TOGETHER, ask, a);
    for (size_t i = 0; i < a->n; i++)
        nfailed += a->answer[i].err.status != CM_OK;
    for (size_t i = 0; rc == CM_OK && i < a->n; i++) {
        bool is_folder;
        rc = take_answer(in, &a->answer[i], nfailed == a->n, &is_folder, err);
        in->item[a->answer[i].item].folder = is_folder;
    }
    return rc;
}

int cm_inputs_look(cm_inputs *in, cm_error *err)
{
    enum {
        AT_ONCE = 4096
    };
    int rc = CM_OK;
    size_t named = 0, kept = 0;
    for (size_t i = 0; i < in->n; i++)
        named += in->item[i].remote;
    if (named == 0)
        return CM_OK;
    asking a = {.in = in,
                .answer = cm_calloc(named < AT_ONCE ? named : AT_ONCE, sizeof(a.answer[0]), err)};
    if (a.answer == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < in->n;) {
        memset(a.answer, 0, (named < AT_ONCE ? named : AT_ONCE) * sizeof(a.answer[0]));
        for (a.n = 0; i < in->n && a.n < AT_ONCE; i++)
            if (in->item[i].remote)
                a.answer[a.n++].item = i;
        if (a.n > 0)
            rc = look_at_some(in, &a, err);
    }
    free(a.answer);
    for (size_t i = 0; rc == CM_OK && i < in->n; i++)
        if (!in->item[i].folder)
            in->item[kept++] = in->item[i];
    in->n = rc == CM_OK ? kept : in->n;
    return rc;
}
