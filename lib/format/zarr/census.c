/* The listing of a census: each key is a chunk, a document of a node, or foreign. */
#include "format/census.h"

#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "format/icechunk/read_store.h"
#include "format/zarr/census_tally.h"
#include "format/zarr/dataset.h"
#include "format/zarr/foreign_key.h"
#include "store/walk.h"

typedef struct listing {
    cm_dataset *ds;
    const cm_census_options *options;
    cm_census *out;
    cm_census_tally *tally; /* one for each array, by path */
    size_t n;
    const char *prefix;    /* that is listed; "" for all */
    cm_census_tally *last; /* the array of the key before */
    char *key;             /* room for a key below the root */
    size_t room;
} listing;

/* ---- arrays -------------------------------------------------------------------------------- */

static bool is_below(const char *name, const char *node)
{
    const size_t n = strlen(node);
    return n == 0 || (strncmp(name, node, n) == 0 && (name[n] == '\0' || name[n] == '/'));
}

static int compare_paths(const void *a, const void *b)
{
    const cm_variable *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int begin(listing *l, cm_variable **var, size_t n, cm_error *err)
{
    l->out->array = cm_calloc(n + 1, sizeof(*l->out->array), err);
    l->tally = cm_calloc(n + 1, sizeof(*l->tally), err);
    if (l->out->array == NULL || l->tally == NULL)
        return CM_ENOMEM;
    qsort(var, n, sizeof(var[0]), compare_paths);
    int rc = CM_OK;
    for (size_t i = 0; i < n && rc == CM_OK; i++) {
        cm_census_array *a = &l->out->array[l->out->narrays++];
        a->name = cm_strdup(var[i]->name, err);
        rc = a->name != NULL ? cm_census_tally_init(&l->tally[l->n++], var[i], a, err) : CM_ENOMEM;
    }
    return rc;
}

/* The array that PATH, of NBYTES, is; or NULL. */
static cm_census_tally *find_array(const listing *l, const char *path, size_t nbytes)
{
    size_t lo = 0, hi = l->n;
    while (lo < hi) {
        const size_t mid = lo + (hi - lo) / 2;
        const int order = cm_key_order(l->tally[mid].path, path, nbytes);
        if (order == 0)
            return &l->tally[mid];
        if (order < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* The array that KEY lies below; *below is the rest of the key.  NULL: none. */
static cm_census_tally *array_above(listing *l, const char *key, const char **below)
{
    const size_t n = l->last != NULL ? strlen(l->last->path) : 0;
    if (l->last != NULL && n > 0 && strncmp(key, l->last->path, n) == 0 && key[n] == '/') {
        *below = key + n + 1;
        return l->last;
    }
    *below = key;
    if (l->n > 0 && l->tally[0].path[0] == '\0') /* the store is one array */
        return &l->tally[0];
    for (const char *p = key; (p = strchr(p, '/')) != NULL; p++) {
        cm_census_tally *t = find_array(l, key, (size_t)(p - key));
        if (t != NULL) {
            *below = p + 1;
            return l->last = t;
        }
    }
    return NULL;
}

/* ---- keys ---------------------------------------------------------------------------------- */

static int compare_foreign(const void *a, const void *b)
{
    const cm_census_foreign *x = a, *y = b;
    return strcmp(x->key, y->key);
}

/* Keeps the first by key, so that every listing names the same. */
static int add_foreign(listing *l, const char *key, const char *why, cm_error *err)
{
    cm_census *c = l->out;
    c->nforeign++;
    if (c->foreign == NULL &&
        (c->foreign = cm_calloc(CM_CENSUS_NAMED + 1, sizeof(*c->foreign), err)) == NULL)
        return CM_ENOMEM;
    if (c->nnamed == CM_CENSUS_NAMED && strcmp(key, c->foreign[c->nnamed - 1].key) >= 0)
        return CM_OK;
    c->foreign[c->nnamed] = (cm_census_foreign){cm_strdup(key, err), why};
    if (c->foreign[c->nnamed].key == NULL)
        return CM_ENOMEM;
    c->nnamed++;
    qsort(c->foreign, c->nnamed, sizeof(c->foreign[0]), compare_foreign);
    if (c->nnamed > CM_CENSUS_NAMED)
        free(c->foreign[--c->nnamed].key);
    return CM_OK;
}

static void see_chunk(listing *l, cm_census_tally *t, const uint64_t *coord, uint64_t nbytes)
{
    const bool judges = nbytes != CM_WALK_NO_SIZE && l->options->depth == CM_CENSUS_SIZES;
    const uint64_t number = cm_grid_number(&t->names.grid, coord);
    const bool again = cm_census_tally_saw(t, number);
    cm_census_tally_see(t, coord);
    if (judges && !t->sharded && !again) {
        t->sized = true;
        (void)cm_census_tally_size(t, number, nbytes);
    }
}

static int see_key(listing *l, const char *key, uint64_t nbytes, cm_error *err)
{
    uint64_t coord[CM_MAX_RANK];
    const char *below = key, *why;
    const size_t n = strlen(key);
    if (n > 0 && key[n - 1] == '/')
        return CM_OK; /* what some clients put for a folder */
    cm_census_tally *t = array_above(l, key, &below);
    if (t == NULL) {
        why = cm_foreign_node_key(cm_zarr_dataset_tree(l->ds), key);
        return why == NULL || !l->out->whole ? CM_OK : add_foreign(l, key, why, err);
    }
    if (t->out->unclear != NULL || cm_zarr_is_document(below))
        return CM_OK;
    if (cm_chunk_name_parse(&t->names, below, coord) == CM_CHUNK_NAME_CHUNK) {
        see_chunk(l, t, coord, nbytes);
        return CM_OK;
    }
    return l->out->whole ? add_foreign(l, key, cm_foreign_chunk_key(&t->names, below), err) : CM_OK;
}

static int visit(void *context, const char *below, uint64_t nbytes, cm_error *err)
{
    listing *l = context;
    const size_t n = strlen(l->prefix), all = n + strlen(below) + 2;
    int rc = cm_stop_check(l->options->stop, err);
    if (rc != CM_OK || n == 0)
        return rc != CM_OK ? rc : see_key(l, below, nbytes, err);
    if (all > l->room) {
        char *grown = realloc(l->key, 2 * all);
        if (grown == NULL)
            return cm_fail(err, CM_ENOMEM, "no memory for a key");
        l->key = grown;
        l->room = 2 * all;
    }
    memcpy(l->key, l->prefix, n);
    l->key[n] = '/';
    memcpy(l->key + n + 1, below, all - n - 1);
    return see_key(l, l->key, nbytes, err);
}

static int list(listing *l, const char *prefix, cm_error *err)
{
    cm_error why = {0};
    l->prefix = prefix;
    int rc = cm_store_walk(cm_dataset_store(l->ds), prefix, visit, l, &why);
    if (rc == CM_EUNSUPPORTED) {
        free(l->out->unlisted);
        l->out->unlisted = cm_strdup(why.text, err);
        return l->out->unlisted != NULL ? CM_OK : CM_ENOMEM;
    }
    if (rc != CM_OK && err != NULL)
        *err = why;
    return rc;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static int finish(listing *l, cm_error *err)
{
    cm_census *c = l->out;
    int rc = CM_OK;
    c->sized = l->options->depth >= CM_CENSUS_SIZES;
    c->decoded = l->options->depth == CM_CENSUS_DECODE;
    for (size_t i = 0; i < l->n && rc == CM_OK; i++) {
        rc = cm_census_examine(l->ds, &l->tally[i], l->options, err);
        if (rc == CM_OK)
            rc = cm_census_tally_finish(&l->tally[i], err);
        if (rc != CM_OK && rc != CM_ECANCELED)
            cm_error_place(err, cm_store_name(cm_dataset_store(l->ds)));
    }
    return rc;
}

static void release(listing *l)
{
    for (size_t i = 0; i < l->n; i++)
        cm_census_tally_release(&l->tally[i]);
    free(l->tally);
    free(l->key);
}

/* Nothing is counted where nothing was listed. */
static int end(listing *l, int rc, cm_error *err)
{
    if (rc == CM_OK && l->out->unlisted != NULL) {
        char *why = l->out->unlisted;
        l->out->unlisted = NULL;
        cm_census_release(l->out);
        l->out->unlisted = why;
    } else if (rc == CM_OK) {
        rc = finish(l, err);
    }
    release(l);
    return rc;
}

/* How many chunks of a repository lie elsewhere than in its files of chunks. */
static int count_places(cm_dataset *ds, const char *node, cm_census_places *out, cm_error *err)
{
    cm_ice_counts counts;
    cm_store *store = cm_dataset_store(ds);
    if (!cm_ice_store_is(store))
        return CM_OK;
    int rc = cm_ice_store_count(store, node, &counts, err);
    *out = (cm_census_places){true, counts.ninline, counts.noutside};
    return rc;
}

int cm_census_of_store(cm_dataset *ds, const char *node, const cm_census_options *options,
                       cm_census *out, cm_error *err)
{
    listing l = {.ds = ds, .options = options, .out = out};
    cm_variable **var = cm_calloc(ds->nvars + 1, sizeof(*var), err);
    size_t n = 0;
    *out = (cm_census){.whole = true};
    if (var == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < ds->nvars; i++)
        if (is_below(ds->var[i].name, node))
            var[n++] = &ds->var[i];
    int rc = begin(&l, var, n, err);
    free(var);
    if (rc == CM_OK)
        rc = list(&l, node, err);
    if (rc == CM_OK)
        rc = count_places(ds, node, &out->places, err);
    return end(&l, rc, err);
}

/* *MANY: T has more objects than are to be asked for over a network. */
static int refuse_many(listing *l, cm_census_tally *t, bool *many, cm_error *err)
{
    const uint64_t most = l->options->most_remote;
    *many = most > 0 && t->names.grid.nchunks > most && t->out->unclear == NULL &&
            cm_store_is_remote(cm_dataset_store(l->ds));
    if (!*many)
        return CM_OK;
    t->out->unclear = cm_strdup("it has too many objects for a listing over a network", err);
    return t->out->unclear != NULL ? CM_OK : CM_ENOMEM;
}

int cm_census_of_arrays(cm_dataset *ds, cm_variable *const *var, size_t n,
                        const cm_census_options *options, cm_census *out, cm_error *err)
{
    listing l = {.ds = ds, .options = options, .out = out};
    cm_variable **sorted = cm_calloc(n + 1, sizeof(*sorted), err);
    size_t nsorted = 0;
    *out = (cm_census){0};
    if (sorted == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (var[i]->words != NULL)
            sorted[nsorted++] = var[i];
    int rc = begin(&l, sorted, nsorted, err);
    for (size_t i = 0; i < l.n && rc == CM_OK && out->unlisted == NULL; i++) {
        bool many = false;
        rc = refuse_many(&l, &l.tally[i], &many, err);
        if (rc == CM_OK && !many)
            rc = list(&l, l.tally[i].path, err);
    }
    free(sorted);
    return end(&l, rc, err);
}
