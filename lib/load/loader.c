/* The loader of a training: chunkmill/loader.h over a run of one rank. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "load/loader_impl.h"
#include "options/store_path.h"
#include "plan/meetings.h"
#include "store/open.h"

const char *cm_loader_version(void)
{
    return CM_VERSION;
}

/* ---- opening and closing ------------------------------------------------------------------- */

static uint64_t other_nbytes(void *loader)
{
    const cm_loader *l = loader;
    const cm_load_run *run = &l->run;
    const uint64_t each = run->batch * (sizeof(uint64_t) * (1 + CM_LOADER_MAX_DIMS));
    const bool is_host = run->setting.uses_device && strcmp(run->options->device, "host") == 0;
    const unsigned slots = run->setting.workers * run->setting.prefetch + run->held;
    const unsigned buffers = run->setting.uses_device ? l->held + 1 : 0;
    const uint64_t staged = is_host ? cm_mul_sat(run->batch_nbytes, buffers) : 0;
    return cm_add_sat(cm_add_sat(cm_mul_sat(each, slots + buffers), staged), l->lingering_nbytes);
}

/* A variable that does not follow the sample is the same in each: no loader is needed for it. */
static int check_parts(const cm_load_run *run, cm_error *err)
{
    const cm_load_space *s = &run->shared.space;
    if (s->nfixed > 0)
        return cm_fail(err, CM_EINVAL,
                       "%s: variable %s has no dimension of the sample: it is the same for all of "
                       "them, so read it once without the loader",
                       run->shared.data.path,
                       cm_load_array_name(run->shared.data.array[s->fixed[0].array]));
    if (s->space.order == CM_ORDER_ALL)
        for (unsigned d = 0; d < s->space.rank; d++)
            if (s->space.length[d] % s->space.sample[d] != 0)
                return cm_fail(err, CM_EINVAL,
                               "%s: order all: the samples at the edge of dimension %s are smaller "
                               "than the others, and a batch has one shape",
                               run->shared.data.path,
                               s->dim_name[d] != NULL ? s->dim_name[d] : "without a name");
    return CM_OK;
}

static bool needs_net(const char *path)
{
    return path != NULL && cm_store_url_needs_net(path);
}

/* Network access for a store at a URL, or a document of references, which may point to URLs. */
static int open_net(cm_loader *l, const cm_loader_options *given, cm_error *err)
{
    const cm_net_settings settings = {
        .variable = given->environment, .anonymous = given->anonymous, .allow = l->allow};
    cm_store_path at = {0};
    int rc = cm_store_path_split(l->store, &at, err);
    if (rc == CM_OK && (needs_net(at.path) || needs_net(given->normalize)))
        rc = cm_net_create(&settings, &l->options.net, err);
    cm_store_path_release(&at);
    return rc;
}

static int read_normals(cm_loader *l, const char *path, cm_error *err)
{
    if (path == NULL)
        return CM_OK;
    if (!l->options.unpack || !l->options.fill_to_nan)
        return cm_fail(
            err, CM_EINVAL,
            "normalize: needs `unpack` and `fill_to_nan`: statistics are of decoded values");
    int rc = cm_load_normals_read(path, l->options.net, &l->normals, err);
    l->options.normal = l->normals.of;
    l->options.nnormals = l->normals.n;
    return rc;
}

/* The run that makes batches, all of it. */
static int start(cm_loader *l, cm_error *err)
{
    cm_load_run *run = &l->run;
    int rc = check_parts(run, err);
    if (rc == CM_OK && l->options.rank == 0) /* told once */
        rc = cm_load_count_holes(run, err);
    if (rc == CM_OK)
        rc = cm_census_line(&run->census, &l->holes, err);
    if (rc == CM_OK)
        rc = cm_load_memory(run, err);
    if (rc == CM_OK)
        rc = cm_load_start_workers(run, err);
    if (rc == CM_OK)
        rc = cm_loader_hold_create(l, &l->hold, err);
    if (rc != CM_OK)
        return rc;
    l->fingerprint = cm_loader_fingerprint(run);
    const cm_device *device = l->hold->device.device;
    snprintf(l->device, sizeof l->device, "%s",
             device != NULL ? cm_device_get_info(device)->text : "none");
    return CM_OK;
}

static int open_run(cm_loader *l, bool describe_only, cm_error *err)
{
    cm_load_run *run = &l->run;
    run->options = &l->options;
    run->store = l->store;
    run->nsharing = 1;
    run->apart = true;
    run->owner = l;
    run->other_nbytes = other_nbytes;
    int rc = cm_load_open(run, err);
    if (rc == CM_OK)
        rc = cm_loader_about_create(l, &l->about, err);
    return rc == CM_OK && !describe_only ? start(l, err) : rc;
}

int cm_loader_open(const char *store, const cm_loader_options *options, cm_loader **out,
                   cm_error *err)
{
    return cm_loader_open_with(store, options, NULL, out, err);
}

int cm_loader_open_with(const char *store, const cm_loader_options *options,
                        const cm_device_hooks *hooks, cm_loader **out, cm_error *err)
{
    cm_loader_options known;
    cm_loader *l = cm_calloc(1, sizeof *l, err);
    *out = NULL;
    if (l == NULL)
        return CM_ENOMEM;
    l->pid = getpid();
    pthread_mutex_init(&l->lock, NULL);
    int rc = store != NULL ? CM_OK : cm_fail(err, CM_EINVAL, "no store");
    if (rc == CM_OK && (l->store = cm_strdup(store, err)) == NULL)
        rc = CM_ENOMEM;
    if (rc == CM_OK)
        rc = cm_loader_options_take(l, options, &known, err);
    l->options.device_hooks = hooks;
    if (rc == CM_OK)
        rc = open_net(l, &known, err);
    if (rc == CM_OK)
        rc = read_normals(l, known.normalize, err);
    if (rc == CM_OK)
        rc = open_run(l, known.describe_only, err);
    if (rc != CM_OK)
        cm_loader_close(l);
    else
        *out = l;
    return rc;
}

void cm_loader_close(cm_loader *l)
{
    if (l == NULL || l->pid != getpid())
        return;
    cm_net_abandon(l->options.net);
    if (l->hold != NULL)
        cm_loader_hold_detach(l->hold);
    cm_load_close(&l->run);
    cm_net_free(l->options.net);
    cm_loader_hold_unref(l->hold);
    cm_loader_about_unref(l->about);
    cm_loader_options_release(l);
    pthread_mutex_destroy(&l->lock);
    free(l->holes);
    free(l->store);
    free(l);
}

/* ---- calls --------------------------------------------------------------------------------- */

/* Each call of a loader begins here; `leave` ends it. */
static int enter(cm_loader *l, cm_error *err)
{
    if (l == NULL)
        return cm_fail(err, CM_EINVAL, "no loader");
    if (l->pid != getpid())
        return cm_fail(err, CM_EINVAL,
                       "%s: this loader is of process %d, which forked this one: its workers are "
                       "not here; open a loader after the fork",
                       l->store, (int)l->pid);
    pthread_mutex_lock(&l->lock);
    return CM_OK;
}

static int leave(cm_loader *l, int rc)
{
    pthread_mutex_unlock(&l->lock);
    return rc;
}

int cm_loader_describe(cm_loader *l, cm_loader_info *info, cm_error *err)
{
    int rc = enter(l, err);
    if (rc != CM_OK)
        return rc;
    const cm_load_run *run = &l->run;
    const cm_loader_info all = {.size = info->size,
                                .nsamples = run->shared.space.nsamples,
                                .nbatches = run->rank[0].share.nbatches,
                                .batch_nbytes = run->batch_nbytes,
                                .dim = l->about->dim,
                                .ndims = l->about->ndims,
                                .variable = l->about->variable,
                                .nvariables = l->about->nvariables,
                                .workers = run->setting.workers,
                                .worker_threads = run->setting.worker_threads,
                                .slots = run->nslots,
                                .memory_nbytes = run->memory_planned,
                                .window = run->setting.planned ? run->shape.window : 0,
                                .device = l->device};
    memcpy(info, &all, info->size < sizeof all ? info->size : sizeof all);
    return leave(l, CM_OK);
}

/*
 * Memory for blocks of SHAPE, which a loader with other memory had chosen; batches that are held
 * keep theirs.
 */
static int refit(cm_loader *l, const cm_load_shape *shape, cm_error *err)
{
    cm_load_run *run = &l->run;
    const bool lingers = cm_loader_hold_count(l->hold) > 0;
    cm_loader_hold_detach(l->hold);
    l->lingering_nbytes = lingers ? cm_loader_hold_nbytes(l->hold) : 0;
    cm_loader_hold_unref(l->hold);
    l->hold = NULL;
    run->shape = *shape;
    int rc = cm_load_memory(run, err);
    if (rc == CM_OK)
        rc = cm_load_start_workers(run, err);
    return rc == CM_OK ? cm_loader_hold_create(l, &l->hold, err) : rc;
}

static int begin(cm_loader *l, uint64_t epoch, uint64_t batch, cm_error *err)
{
    cm_load_rank *r = &l->run.rank[0];
    l->begin_ns = cm_now_ns();
    l->epoch = epoch;
    l->next = batch;
    l->begun = false;
    if (l->hold == NULL)
        return cm_fail(err, CM_EBUDGET, "%s: the loader has no memory: open it again", l->store);
    int rc = cm_load_begin(r, epoch, batch);
    l->begun = rc == CM_OK;
    if (rc != CM_OK && err != NULL)
        *err = r->err;
    return rc;
}

int cm_loader_begin(cm_loader *l, uint64_t epoch, cm_error *err)
{
    int rc = enter(l, err);
    return rc == CM_OK ? leave(l, begin(l, epoch, 0, err)) : rc;
}

static bool is_late(void *deadline_ns)
{
    return cm_now_ns() >= *(const uint64_t *)deadline_ns;
}

static void count(cm_loader *l, const cm_load_batch *made, bool failed, uint64_t wait_ns)
{
    cm_loader_stats *s = &l->stats;
    const cm_load_counts *c = &made->counts;
    s->failed_batches += failed;
    s->batches += !failed;
    s->samples += failed ? 0 : made->nsamples;
    s->nbytes += failed ? 0 : made->nsamples * l->run.shared.space.sample_nbytes;
    s->wait_ns += wait_ns;
    s->max_wait_ns = wait_ns > s->max_wait_ns ? wait_ns : s->max_wait_ns;
    s->chunks += c->chunks;
    s->decoded += c->decoded;
    s->requests += c->requests;
    s->stored_nbytes += c->stored_nbytes;
    s->decoded_nbytes += c->decoded_nbytes;
    s->missing_chunks += c->missing_chunks;
    s->cache_hits += c->cache_hits;
    s->cache_misses += c->cache_misses;
    s->storage_ns += c->stage_ns[CM_LOAD_STORAGE];
    s->decode_ns += c->stage_ns[CM_LOAD_DECODE];
    s->assemble_ns += c->stage_ns[CM_LOAD_ASSEMBLE];
    s->convert_ns += c->stage_ns[CM_LOAD_CONVERT];
}

static int refuse_more(const cm_loader *l, cm_error *err)
{
    return cm_fail(err, CM_EINVAL,
                   "%s: all %u batches that there is memory for are held: none can be made until "
                   "one is released",
                   l->store, l->hold->nbatches);
}

/* The next one, for cm_loader_hold_batch with TAKEN, which is NULL without a device. */
static int next(cm_loader *l, uint32_t timeout_ms, cm_batch *taken, cm_batch **out, cm_error *err)
{
    cm_load_rank *r = &l->run.rank[0];
    cm_load_batch made;
    bool more;
    const uint64_t start_ns = cm_now_ns();
    uint64_t deadline_ns = start_ns + timeout_ms * UINT64_C(1000000);
    int rc = cm_load_next(r, timeout_ms == CM_LOADER_FOR_EVER ? NULL : is_late, &deadline_ns, &made,
                          &more);
    if (rc != CM_OK || !more)
        l->stats.wait_ns += cm_now_ns() - start_ns;
    if (rc == CM_EINVAL)
        return refuse_more(l, err);
    if (rc != CM_OK) {
        if (err != NULL)
            *err = r->err;
        return rc;
    }
    if (!more)
        return CM_OK;
    l->next++;
    if (made.status != CM_OK) {
        cm_load_release(r, &made);
        rc = cm_fail(err, (cm_status)made.status, "%s", made.error);
    } else
        rc = cm_loader_hold_batch(l->hold, taken, &made, l->epoch, out, err);
    count(l, &made, rc != CM_OK, cm_now_ns() - start_ns);
    return rc;
}

static int next_of_epoch(cm_loader *l, uint32_t timeout_ms, cm_batch **out, cm_error *err)
{
    cm_batch *taken = NULL;
    if (!l->begun)
        return cm_fail(err, CM_EINVAL, "%s: no epoch was begun", l->store);
    if (l->run.setting.uses_device && (taken = cm_loader_hold_take(l->hold)) == NULL)
        return refuse_more(l, err);
    const int rc = next(l, timeout_ms, taken, out, err);
    if (taken != NULL && *out == NULL)
        cm_loader_hold_untake(taken);
    return rc;
}

int cm_loader_next(cm_loader *l, uint32_t timeout_ms, cm_batch **out, cm_error *err)
{
    *out = NULL;
    int rc = enter(l, err);
    return rc == CM_OK ? leave(l, next_of_epoch(l, timeout_ms, out, err)) : rc;
}

int cm_loader_next_described(cm_loader *l, uint32_t timeout_ms, cm_batch **out, cm_batch_info *info,
                             cm_error *err)
{
    const int rc = cm_loader_next(l, timeout_ms, out, err);
    if (rc == CM_OK && *out != NULL)
        cm_loader_hold_describe(*out, info);
    return rc;
}

/* ---- positions ----------------------------------------------------------------------------- */

static int save(cm_loader *l, const cm_batch *batch, cm_loader_position *out, cm_error *err)
{
    cm_batch_info info = {.size = sizeof(info), .epoch = l->epoch, .number = l->next};
    if (batch != NULL && (batch->hold != l->hold || cm_batch_check(batch, NULL) != CM_OK))
        return cm_fail(err, CM_EINVAL, "%s: the batch is not of this loader", l->store);
    if (batch != NULL)
        cm_loader_hold_describe(batch, &info);
    const cm_loader_place place = {.fingerprint = l->fingerprint,
                                   .epoch = info.epoch,
                                   .batch = info.number,
                                   .shape = l->run.shape};
    cm_loader_place_write(&place, out);
    return CM_OK;
}

int cm_loader_save(cm_loader *l, cm_loader_position *out, cm_error *err)
{
    int rc = enter(l, err);
    return rc == CM_OK ? leave(l, save(l, NULL, out, err)) : rc;
}

int cm_loader_save_before(cm_loader *l, const cm_batch *batch, cm_loader_position *out,
                          cm_error *err)
{
    int rc = enter(l, err);
    return rc == CM_OK ? leave(l, save(l, batch, out, err)) : rc;
}

static bool is_same_shape(const cm_load_shape *a, const cm_load_shape *b)
{
    return a->window == b->window && memcmp(a->grown, b->grown, sizeof a->grown) == 0;
}

static int restore(cm_loader *l, const cm_loader_position *position, cm_error *err)
{
    cm_loader_place place;
    int rc = cm_loader_place_read(position, &place, err);
    if (rc == CM_OK && place.fingerprint != l->fingerprint)
        rc = cm_fail(err, CM_EINVAL,
                     "%s: the position was saved by a loader with other samples, lengths of "
                     "dimensions, order, seed, batch, rank or world size",
                     l->store);
    if (rc == CM_OK && place.batch > l->run.rank[0].share.nbatches)
        rc = cm_fail(err, CM_EINVAL, "%s: the position is beyond the epoch", l->store);
    if (rc != CM_OK)
        return rc;
    if (l->run.setting.planned && l->hold != NULL && !is_same_shape(&place.shape, &l->run.shape))
        rc = refit(l, &place.shape, err);
    if (rc != CM_OK)
        return rc;
    return begin(l, place.epoch, place.batch, err);
}

int cm_loader_restore(cm_loader *l, const cm_loader_position *position, cm_error *err)
{
    int rc = enter(l, err);
    return rc == CM_OK ? leave(l, restore(l, position, err)) : rc;
}

/* ---- numbers ------------------------------------------------------------------------------- */

int cm_loader_get_stats(cm_loader *l, cm_loader_stats *out, cm_error *err)
{
    int rc = enter(l, err);
    if (rc != CM_OK)
        return rc;
    cm_loader_stats all = l->stats;
    all.size = out->size;
    all.epoch = l->epoch;
    all.batch = l->next;
    all.since_begin_ns = l->begun ? cm_now_ns() - l->begin_ns : 0;
    all.slots = l->run.nslots;
    if (l->hold != NULL) {
        all.held = cm_loader_hold_count(l->hold);
        cm_batcher_in_flight(l->run.rank[0].batcher, &all.underway, &all.ready);
    }
    memcpy(out, &all, out->size < sizeof all ? out->size : sizeof all);
    return leave(l, CM_OK);
}
