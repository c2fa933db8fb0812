/* The options of a training's loader, as the run takes them. */
#include <stdlib.h>
#include <string.h>

#include "load/loader_impl.h"

enum {
    MAX_HELD = 4096 /* on a device, which has a buffer for each */
};

void cm_loader_options_init(cm_loader_options *options, size_t size)
{
    const cm_loader_options all = {.size = size,
                                   .version = CM_LOADER_VERSION,
                                   .batch = 32,
                                   .world_size = 1,
                                   .prefetch = 2,
                                   .held = 2};
    memcpy(options, &all, size < sizeof all ? size : sizeof all);
    if (size > sizeof all) /* a newer caller's */
        memset((char *)options + sizeof all, 0, size - sizeof all);
}

/* Options that a caller of an older interface does not know keep the values of init. */
static int take_known(const cm_loader_options *given, cm_loader_options *out, cm_error *err)
{
    cm_loader_options_init(out, sizeof *out);
    if (given == NULL)
        return CM_OK;
    if (given->size < offsetof(cm_loader_options, variable) || given->version == 0)
        return cm_fail(err, CM_EINVAL,
                       "the options of the loader were not made by cm_loader_options_init");
    const size_t known = given->size < sizeof *out ? given->size : sizeof *out;
    for (size_t i = known; i < given->size; i++)
        if (((const char *)given)[i] != 0)
            return cm_fail(err, CM_EUNSUPPORTED,
                           "an option of the loader is newer than this library (%s)",
                           cm_loader_version());
    memcpy(out, given, known);
    return CM_OK;
}

/* A copy of TEXT that lives as long as the loader. */
static int keep(cm_loader *l, const char *text, const char **out, cm_error *err)
{
    *out = NULL;
    if (text == NULL)
        return CM_OK;
    char *copy = cm_strdup(text, err);
    if (copy == NULL)
        return CM_ENOMEM;
    l->text[l->ntexts++] = copy;
    *out = copy;
    return CM_OK;
}

static int keep_list(cm_loader *l, const char *const *text, size_t n, const char *noun,
                     cm_texts *out, cm_error *err)
{
    const char **copy = cm_calloc(n + 1, sizeof *copy, err);
    int rc = copy != NULL ? CM_OK : CM_ENOMEM;
    *out = (cm_texts){copy, n};
    for (size_t i = 0; i < n && rc == CM_OK; i++)
        rc = text[i] != NULL ? keep(l, text[i], &copy[i], err)
                             : cm_fail(err, CM_EINVAL, "%s has no name", noun);
    return rc;
}

static int keep_ranges(cm_loader *l, const cm_loader_options *o, cm_error *err)
{
    int rc = CM_OK;
    l->range = cm_calloc(o->nranges + 1, sizeof *l->range, err);
    if (l->range == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < o->nranges && rc == CM_OK; i++) {
        l->range[i] = (cm_load_range){.first = o->range[i].first, .count = o->range[i].count};
        rc = keep(l, o->range[i].dim, &l->range[i].dim, err);
    }
    l->options.range = l->range;
    l->options.nranges = o->nranges;
    return rc;
}

static int keep_texts(cm_loader *l, const cm_loader_options *o, cm_error *err)
{
    cm_load_options *to = &l->options;
    const struct {
        const char *from;
        const char **to;
    } rows[] = {{o->sample, &to->sample},
                {o->lags, &to->lags},
                {o->order, &to->order},
                {o->loader, &to->loader},
                {o->cast, &to->cast},
                {o->io, &to->io},
                {o->cache_policy, &to->cache_policy},
                {o->cache_dir, &to->cache_dir},
                {o->device, &to->device},
                {o->staging, &to->staging}};
    const size_t nrows = sizeof rows / sizeof *rows;
    l->text = cm_calloc(nrows + o->nvariables + o->nallow + o->nranges, sizeof *l->text, err);
    int rc = l->text != NULL ? CM_OK : CM_ENOMEM;
    for (size_t i = 0; i < nrows && rc == CM_OK; i++)
        rc = keep(l, rows[i].from, rows[i].to, err);
    if (rc == CM_OK)
        rc = keep_list(l, o->variable, o->nvariables, "a variable", &to->variables, err);
    if (rc == CM_OK)
        rc = keep_list(l, o->allow, o->nallow, "what is allowed", &l->allow, err);
    return rc == CM_OK ? keep_ranges(l, o, err) : rc;
}

/* Where the caller says nothing: as the CPUs are shared by the ranks of this machine. */
static void choose_workers(cm_load_options *to, unsigned local_ranks)
{
    if (to->workers == 0 && local_ranks > 1)
        to->workers = cm_load_advise(0, local_ranks, to->reserve).workers;
}

int cm_loader_options_take(cm_loader *l, const cm_loader_options *given, cm_loader_options *known,
                           cm_error *err)
{
    cm_load_options *to = &l->options;
    int rc = take_known(given, known, err);
    if (rc != CM_OK)
        return rc;
    const cm_loader_options o = *known;
    cm_load_options_init(to);
    to->one_shape = true;
    to->batch = o.batch;
    to->batches = o.batches;
    to->drop_last = o.drop_last;
    to->seed = o.seed;
    to->world_size = o.world_size;
    to->rank = o.rank;
    to->window = o.window;
    to->workers = o.workers;
    to->worker_threads = o.worker_threads;
    to->prefetch = o.prefetch;
    to->mode = o.sync ? "sync" : "threads";
    to->memory = o.memory;
    to->unpack = o.unpack;
    to->fill_to_nan = o.fill_to_nan;
    to->cache_nbytes = o.cache_nbytes;
    to->cache_dir_nbytes = o.cache_dir_nbytes;
    if (o.held == 0)
        return cm_fail(err, CM_EINVAL, "held: a caller holds at least one batch");
    /* With a device a batch is in its slot until it is copied, and held there. */
    const bool uses_device = o.device != NULL && strcmp(o.device, "none") != 0;
    if (uses_device && o.held > MAX_HELD)
        return cm_fail(err, CM_EINVAL, "held: a device has %d batches at most", MAX_HELD);
    l->held = o.held;
    l->run.held = uses_device ? 1 : o.held;
    l->run.kept = uses_device ? 0 : o.held;
    if (!o.sync)
        choose_workers(to, o.local_ranks);
    return keep_texts(l, &o, err);
}

void cm_loader_options_release(cm_loader *l)
{
    for (size_t i = 0; i < l->ntexts; i++)
        free(l->text[i]);
    free(l->text);
    free((void *)l->options.variables.text);
    free((void *)l->allow.text);
    free(l->range);
    cm_load_normals_release(&l->normals);
}
