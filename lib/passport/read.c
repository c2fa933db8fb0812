/* A store or file that is read once for its passport. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/number.h"
#include "base/sentences.h"
#include "digest/pairs.h"
#include "format/zarr/conflict_text.h"
#include "format/zarr/dataset.h"
#include "options/store_path.h"
#include "options/varopt.h"
#include "passport/draft.h"

enum {
    INDEX_CACHE = 4 << 20,
    REMOTE_THREADS = 16, /* behind a network */
    MEMORY = 1 << 30     /* where no limit is given */
};

typedef struct reading {
    cm_dataset *ds;
    cm_draft *draft;
    cm_variable **meant; /* variables below the node that was named, or those of VARIABLE there */
    size_t n;
    const char *node, *variable; /* VARIABLE "A,B", or NULL */
    unsigned nthreads;
    uint64_t memory;
    cm_monitor *monitor;
    char **warning;
    size_t nwarnings;
} reading;

static int warn(reading *r, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static int warn(reading *r, cm_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int rc = cm_sentences_add(&r->warning, &r->nwarnings, err, format, args);
    va_end(args);
    return rc;
}

static const char *label_of(const cm_variable *v)
{
    return v->name[0] != '\0' ? v->name : "/";
}

static bool is_meant(const reading *r, const char *name)
{
    const size_t n = strlen(r->node);
    return n == 0 || (strncmp(name, r->node, n) == 0 && (name[n] == '\0' || name[n] == '/'));
}

static int warn_of_conflicts(reading *r, cm_error *err)
{
    int rc = CM_OK;
    if (r->ds->kind != CM_DATASET_ZARR)
        return CM_OK;
    const cm_zarr_conflicts *conflicts = cm_zarr_dataset_conflicts(r->ds);
    for (size_t i = 0; rc == CM_OK && i < conflicts->n; i++) {
        const cm_zarr_conflict *c = &conflicts->item[i];
        if (c->kind == CM_ZARR_REORDERED || !is_meant(r, c->path))
            continue;
        char *text = cm_conflict_text(c, r->ds->zarr_format, err);
        rc = text == NULL ? CM_ENOMEM : warn(r, err, "%s", text);
        free(text);
    }
    return rc;
}

/* ---- what there is ---- */

static const cm_json *attributes_of(const reading *r)
{
    for (size_t i = 0; i < r->ds->ngroups; i++)
        if (strcmp(r->ds->group[i].path, r->node) == 0)
            return r->ds->group[i].attrs;
    return r->ds->ngroups > 0 ? r->ds->group[0].attrs : NULL;
}

static int choose(reading *r, cm_error *err)
{
    const size_t n = r->ds->nvars;
    const char **name = cm_calloc(n + 1, sizeof(*name), err);
    bool *chosen = cm_calloc(n + 1, sizeof(*chosen), err);
    r->meant = cm_calloc(n + 1, sizeof(cm_variable *), err);
    int rc = name != NULL && chosen != NULL && r->meant != NULL ? CM_OK : CM_ENOMEM;
    for (size_t i = 0; i < n && rc == CM_OK; i++) {
        name[i] = is_meant(r, r->ds->var[i].name) ? r->ds->var[i].name : NULL;
        chosen[i] = r->variable == NULL && name[i] != NULL;
    }
    if (rc == CM_OK && r->variable != NULL)
        rc = cm_names_choose("`variable`", r->variable, r->ds->path, name, n, chosen, err);
    for (size_t i = 0; i < n && rc == CM_OK; i++)
        if (chosen[i])
            r->meant[r->n++] = &r->ds->var[i];
    free(name);
    free(chosen);
    return rc;
}

static int describe(reading *r, cm_error *err)
{
    int rc = choose(r, err);
    if (rc != CM_OK)
        return rc;
    if (r->n == 0 && r->node[0] != '\0')
        return cm_fail(err, CM_ENOTFOUND, "has no array %s", r->node);
    rc = cm_draft_create(r->n, &r->draft, err);
    if (rc == CM_OK)
        rc = cm_draft_attributes(r->draft, attributes_of(r), err);
    for (size_t i = 0; i < r->n && rc == CM_OK; i++) {
        const cm_variable *v = r->meant[i];
        const cm_draft_source s = {.name = v->name,
                                   .type = v->dtype,
                                   .rank = v->rank,
                                   .shape = v->shape,
                                   .dim_name = v->dim_name,
                                   .attrs = v->attrs,
                                   .masked = v->has_fill_value ? v->fill_value : NULL,
                                   .is_other = v->unsupported != NULL || v->is_char ||
                                               cm_dtype_is_vlen(&v->dtype)};
        rc = cm_draft_describe(r->draft, i, &s, err);
    }
    if (rc == CM_OK)
        cm_draft_settle(r->draft);
    return rc;
}

/* ---- reading ---- */

/* Where the boxes of one array go. */
typedef struct sight {
    cm_draft *draft;
    size_t index;
} sight;

static void see(void *context, const cm_box *box, const uint8_t *elements)
{
    const sight *s = context;
    cm_draft_see(s->draft, s->index, box, box->shape, elements);
}

static int set_layout(const cm_variable *v, cm_passport_variable *to, cm_error *err)
{
    to->has_layout = true;
    to->nchunks = 1;
    to->decoded_nbytes = v->dtype.nbytes;
    to->stored_nbytes = v->stored_nbytes;
    for (unsigned j = 0; j < v->rank; j++) {
        to->chunk[j] = v->has_source_chunks ? v->source_chunk[j] : v->shape[j];
        to->shard[j] = v->is_sharded ? v->source_shard[j] : 0;
        if (to->chunk[j] > 0)
            to->nchunks *= (v->shape[j] + to->chunk[j] - 1) / to->chunk[j];
        to->decoded_nbytes *= v->shape[j];
    }
    cm_grid grid;
    if (v->is_cut && cm_zarr_meta_grid(v->words, &grid, NULL) == CM_OK)
        to->nchunks = grid.nchunks;
    return cm_codec_names(v->codecs, v->ncodecs, &to->codec, err);
}

/* Whether an error tells of one array, and not of this process or of storage as a whole. */
static bool is_of_array(const reading *r, int rc)
{
    const cm_store *store = cm_dataset_store(r->ds);
    return rc == CM_EFORMAT || rc == CM_EBUDGET ||
           (rc == CM_EIO && (store == NULL || !cm_store_is_remote(store)));
}

/* A page of the other arrays is worth having, and this one's says what is wrong. */
static int give_up(reading *r, size_t i, const cm_error *why, cm_error *err)
{
    int rc = cm_draft_give_up(r->draft, i, why->text, err);
    return rc != CM_OK
               ? rc
               : warn(r, err, "%s: was not read to its end: %s", label_of(r->meant[i]), why->text);
}

static int check_memory(const reading *r, const cm_array *a, cm_error *err)
{
    char needs[32];
    const uint64_t own = cm_pairs_digest_least(a);
    return own <= r->memory
               ? CM_OK
               : cm_fail(err, CM_EBUDGET, "its chunks may take %s of memory: more than `memory`",
                         cm_format_size(own, needs, sizeof(needs)));
}

static int read_array(reading *r, size_t i, cm_array *a, cm_error *err)
{
    sight s = {r->draft, i};
    char text[33];
    cm_error why = {0};
    bool counted;
    const uint64_t held = cm_peak_rss();
    const uint64_t memory = r->memory > 2 * held ? r->memory - held : r->memory / 2;
    cm_pair pair = {.want = a, .see = see, .see_context = &s};
    int rc = cm_draft_watch(r->draft, i, &counted, err);
    if (rc != CM_OK || !counted)
        return rc;
    rc = check_memory(r, a, &why);
    if (rc == CM_OK)
        rc = cm_pairs_run(&pair, 1, a->serial ? 1 : r->nthreads, memory, r->monitor, &why);
    cm_pair_release(&pair);
    if (is_of_array(r, rc))
        return give_up(r, i, &why, err);
    if (rc != CM_OK) {
        if (err != NULL)
            *err = why;
        return rc;
    }
    char **digest = &cm_draft_variable(r->draft, i)->digest;
    *digest = cm_strdup(cm_digest_text(&pair.digest, text), err);
    return *digest != NULL ? CM_OK : CM_ENOMEM;
}

static int read_variable(reading *r, size_t i, cm_error *err)
{
    cm_variable *v = r->meant[i];
    cm_error why = {0};
    int rc = cm_dataset_prepare(r->ds, v, &why);
    if (rc == CM_OK)
        rc = set_layout(v, cm_draft_variable(r->draft, i), err);
    else if (rc == CM_EUNSUPPORTED)
        return warn(r, err, "%s: was not read: %s", label_of(v), why.text);
    else
        return cm_fail(err, (cm_status)rc, "%s", why.text);
    if (rc == CM_OK)
        rc = read_array(r, i, v->array, err);
    cm_dataset_unprepare(r->ds, v);
    return rc;
}

static int read_all(reading *r, const char *path, cm_net *net, cm_error *err)
{
    const cm_dataset_options options = {.index_cache_nbytes = INDEX_CACHE,
                                        .net = net,
                                        .canceled = cm_monitor_cancels,
                                        .canceled_context = r->monitor,
                                        .memory = r->memory,
                                        .reads_only = true};
    int rc = cm_dataset_open(path, "", &options, &r->ds, err);
    if (rc == CM_OK)
        rc = warn_of_conflicts(r, err);
    if (rc == CM_OK)
        rc = describe(r, err);
    for (size_t i = 0; i < r->n && rc == CM_OK; i++)
        rc = read_variable(r, i, err);
    return rc;
}

int cm_passport_read(const char *path, const char *variable, cm_net *net, unsigned nthreads,
                     uint64_t memory, cm_monitor *monitor, cm_passport **out, cm_error *err)
{
    const uint64_t available = cm_memory_available() / 2;
    reading r = {.nthreads = nthreads > 0  ? nthreads
                             : net != NULL ? REMOTE_THREADS
                                           : cm_cpu_count(),
                 .memory = memory > 0           ? memory
                           : available < MEMORY ? available
                                                : MEMORY,
                 .monitor = monitor,
                 .variable = variable};
    cm_store_path at;
    *out = NULL;
    int rc = cm_store_path_find(path, net, &at, err);
    if (rc == CM_OK) {
        r.node = at.node;
        rc = read_all(&r, at.path, net, err);
        if (rc == CM_OK)
            rc = cm_draft_finish(r.draft, out, err);
        if (rc != CM_OK)
            cm_error_place(err, at.path);
    }
    if (rc == CM_OK) {
        (*out)->warning = r.warning;
        (*out)->nwarnings = r.nwarnings;
    } else {
        cm_sentences_free(r.warning, r.nwarnings);
        cm_store_path_name(&at, err);
    }
    cm_draft_free(r.draft);
    free(r.meant);
    cm_dataset_close(r.ds);
    cm_store_path_release(&at);
    return rc;
}
