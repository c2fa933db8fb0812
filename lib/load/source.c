/* Sources that workers read with; their arrays are opened in the process that reads. */
#include <stdlib.h>
#include <string.h>

#include "load/run.h"
#include "watch/monitor.h"

int cm_load_shared_open(const cm_load_options *options, const cm_load_setting *setting,
                        const cm_load_opening *opening, cm_load_shared *s, cm_error *err)
{
    memset(s, 0, sizeof *s);
    int rc = cm_load_data_open(options, setting, opening, &s->data, err);
    if (rc == CM_OK)
        rc = cm_load_space_make(options, setting, &s->data, &s->space, err);
    if (rc == CM_OK)
        rc = cm_load_levels_check(options, &s->data, err);
    if (rc != CM_OK)
        cm_load_shared_release(s);
    return rc;
}

void cm_load_shared_release(cm_load_shared *s)
{
    cm_load_space_release(&s->space);
    cm_load_data_release(&s->data);
    memset(s, 0, sizeof *s);
}

enum {
    URING_GROUP = 8 << 20 /* stored bytes asked for at once: many requests keep a disk busy */
};

size_t cm_load_group_nbytes(const cm_load_setting *setting)
{
    return setting->io == CM_IO_URING ? URING_GROUP : 0;
}

/* ---- arrays of this project or of libnetcdf ------------------------------------------------ */

typedef struct reading { /* of one process, shared by its workers */
    cm_load_shared shared;
    cm_chunk_cache *cache;
    cm_lookahead *ahead;
} reading;

static void free_reading(reading *r)
{
    if (r == NULL)
        return;
    cm_lookahead_free(r->ahead);
    cm_load_shared_release(&r->shared);
    cm_chunk_cache_free(r->cache);
    free(r);
}

static int open_arrays(void *context, cm_load_arrays *out, cm_error *err)
{
    const cm_load_origin *o = context;
    reading *r = cm_calloc(1, sizeof *r, err);
    if (r == NULL)
        return CM_ENOMEM;
    const cm_load_opening in = {o->store, o->delay, true, o->monitor};
    int rc = cm_load_shared_open(o->options, o->setting, &in, &r->shared, err);
    if (rc == CM_OK && o->options->cache_nbytes > 0)
        rc = cm_chunk_cache_create(o->options->cache_nbytes, o->setting->policy, &r->cache, err);
    if (rc == CM_OK && o->nahead > 0)
        rc = cm_lookahead_create(o->nahead, cm_load_group_nbytes(o->setting), &r->ahead, err);
    if (rc != CM_OK) {
        free_reading(r);
        return rc;
    }
    const cm_load_space *s = &r->shared.space;
    *out =
        (cm_load_arrays){.store = o->store,
                         .array = r->shared.data.array,
                         .narrays = r->shared.data.narrays,
                         .space = &s->space,
                         .part = s->part,
                         .feed = s->feed,
                         .part_nbytes = s->part_nbytes,
                         .nparts = s->nparts,
                         .fixed = s->fixed,
                         .nfixed = s->nfixed,
                         .blocks = o->blocks,
                         .cache = r->cache,
                         .ahead = r->ahead,
                         .when_begun = o->options->boxes != NULL,
                         .delay = o->options->cache_dir != NULL ? NULL : o->delay,
                         .disk_cache = o->options->cache_dir != NULL ? r->shared.data.store : NULL,
                         .group_nbytes = cm_load_group_nbytes(o->setting),
                         .library = o->setting->engine == CM_LOAD_NETCDF,
                         .handle = r};
    return CM_OK;
}

static void close_arrays(void *context, cm_load_arrays *arrays)
{
    (void)context;
    free_reading(arrays->handle);
}

static bool is_stopping(void *origin)
{
    return atomic_load(&((cm_load_origin *)origin)->stopping);
}

static int make_native(cm_load_origin *o, cm_load_source *out, cm_error *err)
{
    const cm_load_source_options options = {.opener = {o, open_arrays, close_arrays},
                                            .worker_threads = o->setting->worker_threads,
                                            .stop = {is_stopping, o}};
    return cm_load_source_create(&options, out, err);
}

/* ---- a program of the user ----------------------------------------------------------------- */

static bool is_canceled(void *context)
{
    const cm_load_origin *o = context;
    return o->monitor != NULL && cm_monitor_canceled(o->monitor);
}

static int make_exec(cm_load_origin *o, cm_load_source *out, cm_error *err)
{
    const cm_load_opening in = {o->store, NULL, true, o->monitor};
    int rc = cm_load_shared_open(o->options, o->setting, &in, &o->described, err);
    if (rc != CM_OK)
        return rc;
    const cm_load_space *s = &o->described.space;
    for (size_t p = 0; p < s->nparts; p++)
        o->variable[p] = o->described.data.array[s->part[p].array]->name;
    const cm_load_exec_options options = {.command = o->setting->command,
                                          .store = o->store,
                                          .batch = o->options->batch,
                                          .space = &s->space,
                                          .part = s->part,
                                          .variable = o->variable,
                                          .nparts = s->nparts,
                                          .canceled = is_canceled,
                                          .canceled_context = o,
                                          .processes = o->setting->mode == CM_POOL_PROCESSES};
    return cm_load_exec_create(&options, out, err);
}

int cm_load_origin_source(cm_load_origin *o, cm_load_source *out, cm_error *err)
{
    return (o->setting->engine == CM_LOAD_COMMAND ? make_exec : make_native)(o, out, err);
}

void cm_load_origin_release(cm_load_origin *o, cm_load_source *source)
{
    if (o->setting == NULL)
        return;
    if (o->setting->engine == CM_LOAD_COMMAND)
        cm_load_exec_release(source);
    else
        cm_load_source_release(source);
    cm_load_shared_release(&o->described);
}
