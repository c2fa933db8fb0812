/* By which parts of their names, or folders, files may make several stores. */
#include <stdlib.h>
#include <string.h>

#include "archive/stores.h"
#include "archive/survey/wire.h"
#include "base/mem.h"
#include "base/path.h"

enum {
    MOST_STORES = 64, /* more are steps, and not things of several kinds */
    MOST_WORDS = 12   /* of a name, that are looked at */
};

typedef struct search {
    const cm_archive_options *options;
    cm_survey *survey;
    cm_store_pattern *found;
    cm_digest *stores; /* of each of these, which files go together */
    size_t n;
} search;

/* Which files go together, whatever the stores are called. */
static int digest_of(const cm_store_plan *plan, size_t n, cm_digest *out, cm_error *err)
{
    cm_buf b = {0};
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        rc = cm_buf_append(&b, &plan[i].nfiles, sizeof(plan[i].nfiles), err);
        if (rc == CM_OK)
            rc = cm_buf_append(&b, plan[i].file, plan[i].nfiles * sizeof(plan[i].file[0]), err);
    }
    *out = cm_wire_digest(b.data, b.nbytes);
    cm_buf_release(&b);
    return rc;
}

static bool is_new(const search *s, cm_digest stores)
{
    for (size_t i = 0; i < s->n; i++)
        if (cm_wire_same(s->stores[i], stores))
            return false;
    return true;
}

static int keep(search *s, const char *pattern, const cm_store_plan *plan, size_t n, cm_error *err)
{
    cm_digest stores;
    int rc = digest_of(plan, n, &stores, err);
    if (rc != CM_OK || !is_new(s, stores))
        return rc;
    if (CM_GROW(s->found, s->n, err) != CM_OK || CM_GROW(s->stores, s->n, err) != CM_OK)
        return CM_ENOMEM;
    char *text = cm_strdup(pattern, err);
    if (text == NULL)
        return CM_ENOMEM;
    s->stores[s->n] = stores;
    s->found[s->n++] = (cm_store_pattern){text, n};
    return CM_OK;
}

/* Takes PATTERN, and frees it, if it makes some stores, of a file or more each. */
static int take(search *s, char *pattern, cm_error *err)
{
    cm_archive_options options = *s->options;
    cm_store_plan *plan = NULL;
    size_t n = 0;
    cm_error why = {0};
    if (pattern == NULL)
        return CM_ENOMEM;
    options.store_per = pattern;
    int rc = cm_stores_plan(&options, s->survey, &plan, &n, &why);
    if (rc == CM_ENOMEM)
        *err = why;
    else if (rc != CM_OK)
        rc = CM_OK; /* it is no pattern of these names */
    else if (n > 1 && n <= MOST_STORES && n <= s->survey->nfiles)
        rc = keep(s, pattern, plan, n, err);
    cm_stores_free(plan, n);
    free(pattern);
    return rc;
}

/* The words of a name, between separators that stay with the word before. */
static size_t find_words(const char *name, const char *word[MOST_WORDS + 1])
{
    size_t n = 0;
    word[0] = name;
    for (const char *at = name; n < MOST_WORDS && *at != '\0'; at++)
        if (strchr("_-.", *at) != NULL || at[1] == '\0')
            word[++n] = at + 1;
    return n;
}

/* The word at K, behind the one before it or a separator alone, or else before another one. */
static int take_word(search *s, const char *const *word, size_t n, size_t k, cm_error *err)
{
    const int separator = k + 1 < n; /* of the word itself, which stays */
    const char *end = word[k + 1] - separator;
    const char *const before[] = {word[k > 0 ? k - 1 : 0], word[k] - (k > 0)};
    int rc = CM_OK;
    for (size_t i = 0; i < 2 && rc == CM_OK && k > 0; i++)
        rc = take(
            s, cm_asprintf(err, "%.*s*%.*s", (int)(word[k] - before[i]), before[i], separator, end),
            err);
    if (rc == CM_OK && k + 1 < n)
        rc = take(s, cm_asprintf(err, "*%.*s", (int)(word[k + 2] - end), end), err);
    return rc;
}

/* The folder behind each one of a path: "in/" and a "*" for its folders. */
static int take_folders(search *s, const char *path, cm_error *err)
{
    int rc = CM_OK;
    const char *before = NULL, *end;
    for (const char *at = path; rc == CM_OK && (end = strchr(at, '/')) != NULL; at = end + 1) {
        if (before != NULL)
            rc = take(s, cm_asprintf(err, "%.*s*/", (int)(at - before), before), err);
        before = at < end ? at : NULL;
    }
    return rc;
}

static int by_stores(const void *a, const void *b)
{
    const cm_store_pattern *x = a, *y = b;
    return (x->nstores > y->nstores) - (x->nstores < y->nstores);
}

int cm_store_patterns_find(const cm_archive_options *options, cm_survey *survey,
                           cm_store_pattern **out, size_t *n, cm_error *err)
{
    search s = {.options = options, .survey = survey};
    const char *word[MOST_WORDS + 1], *path = survey->nfiles > 0 ? survey->file[0].path : "";
    const char *name = cm_path_last(path);
    static const char MEANT[] = "%?*\\'"; /* in patterns, or by a shell */
    const size_t nwords = strpbrk(name, MEANT) == NULL ? find_words(name, word) : 0;
    int rc = take(&s, cm_strdup("{dir}", err), err);
    if (rc == CM_OK && strpbrk(path, MEANT) == NULL)
        rc = take_folders(&s, path, err);
    for (size_t k = 0; rc == CM_OK && k < nwords; k++)
        rc = take_word(&s, word, nwords, k, err);
    if (rc == CM_OK)
        rc = take(&s, cm_strdup("{variable}", err), err);
    if (s.n > 1)
        qsort(s.found, s.n, sizeof(s.found[0]), by_stores);
    free(s.stores);
    *out = s.found;
    *n = s.n;
    return rc;
}

void cm_store_patterns_free(cm_store_pattern *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(list[i].text);
    free(list);
}
