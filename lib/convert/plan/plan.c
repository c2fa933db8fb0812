/*
 * The routes of all variables within the memory (budget.h).
 *
 * Scratch is with the chunks that a worker has on their way while it goes on.
 *
 * Fewer workers leave more room for target chunks, and so for fewer bytes: the
 * number of workers is halved where that makes the whole quicker.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/number.h"
#include "convert/plan/plan.h"
#include "convert/plan/plan_option.h"
#include "convert/plan/plan_send.h"
#include "engine/buffers.h"
#include "engine/plan.h"

#include "convert/passport/job_passport.h"
#include "convert/plan/verify_memory.h"
#include "convert/statistics/statistics.h"
#include "plan/meetings.h"

enum {
    SAME_FOLDER_SPARE = 64 << 20, /* scratch leaves this much of a disk free */
    LEAST_STEP = 1 << 20,         /* to which the least memory is found */
    /*
     * Of a source that can be cut anywhere.  A larger piece would be a whole map of
     * ERA5 (4.15 MB), which meets all target chunks of its block at once; with less
     * the sweep finds an order that holds few.  Classic maps to 16x128x128: 103 MB
     * at the peak with 4 MiB, 36 MB with 1.
     */
    MAX_PIECE = 1 << 20,
    MIN_PIECE = 64 << 10,
    /*
     * For encoded chunks that come before others of their shard: threads that work side by side are
     * a few chunks apart.  Orders that differ from the grid's go to scratch instead.
     */
    EARLY_NBYTES = 8 << 20,
    EARLY_CHUNKS = 4 /* of a worker */
};

bool cm_job_has_transfer(const cm_job_var *v)
{
    return v->move.writer != NULL && !v->view.as_strings && !v->move.absent;
}

static bool has_chunks(const cm_job_var *v)
{
    return cm_job_has_transfer(v) && cm_zarr_writer_grid(v->move.writer)->nchunks > 0;
}

static bool is_sliceable(const cm_job_var *v)
{
    return cm_transfer_is_sliceable(&v->move.transfer);
}

/* Some target chunks reach past the array's end. */
static bool is_ragged(const cm_job_var *v)
{
    const cm_grid *grid = cm_zarr_writer_grid(v->move.writer);
    for (unsigned j = 0; j < grid->rank && !cm_grid_is_cut(grid); j++)
        if (grid->shape[j] % grid->chunk[j] != 0)
            return true;
    return false;
}

/*
 * Slots may be clipped, and pieces spilled, where whole chunks of the source go through
 * unchanged.
 */
static bool may_clip(const cm_job_var *v)
{
    return v->view.whole && !v->view.converts && v->source->array->chunked && is_ragged(v);
}

/* ---- sizes ---- */

/*
 * SPILLS: with the buffer in which records for scratch are put together; CLIPS: for clipped
 * slots.
 */
static void raise_need(const cm_job_var *v, size_t piece, bool spills, bool clips,
                       cm_worker_need *need)
{
    const cm_array *source = v->source->array;
    cm_transfer t = v->move.transfer;
    t.clips = clips;
    cm_transfer_worker_need(&t, piece, need);
    size_t record = spills && source->chunked ? cm_array_decoded_nbytes(source) : 0;
    need->spilled = record > need->spilled ? record : need->spilled;
}

static size_t worker_of(const cm_job_var *v, bool spills, bool clips)
{
    cm_worker_need need = {0};
    size_t piece = is_sliceable(v) ? v->plan.route.sweep.piece_nelem * v->source->dtype.nbytes : 0;
    raise_need(v, piece, spills, clips, &need);
    return cm_worker_need_nbytes(&need);
}

/* One worker for all variables, by what option O allows. */
static size_t worker_of_all(const cm_job *job, size_t free, cm_plan_option *o)
{
    cm_worker_need need = {0};
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        if (has_chunks(v))
            raise_need(v, o->piece_nbytes, o->may_spill, o->may_clip && may_clip(v), &need);
    }
    o->ahead = o->may_send ? cm_send_chunks(job, o->nthreads, &need, free) : 0;
    return cm_send_worker_nbytes(job, &need, o->ahead);
}

/* One worker for all variables, by the routes that were chosen. */
static size_t worker_as_planned(const cm_job *job)
{
    cm_worker_need need = {0};
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        size_t piece = v->plan.route.sweep.piece_nelem * v->source->dtype.nbytes;
        if (has_chunks(v))
            raise_need(v, is_sliceable(v) ? piece : 0, v->plan.routed && v->plan.route.spills,
                       v->plan.routed && v->plan.route.clips, &need);
    }
    return cm_send_worker_nbytes(job, &need, job->budget.ahead);
}

static size_t piece_for(size_t free, unsigned nthreads)
{
    size_t piece = free / (8 * (size_t)nthreads);
    return piece > MAX_PIECE ? MAX_PIECE : piece < MIN_PIECE ? MIN_PIECE : piece;
}

/* The least that any plan needs: one worker, one target chunk, one shard. */
static size_t least_to_move(const cm_job *job)
{
    cm_plan_option least = {.nthreads = 1, .piece_nbytes = MIN_PIECE};
    size_t target = 0;
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        if (!has_chunks(v))
            continue;
        size_t n = cm_transfer_slot_nbytes(&v->move.transfer) +
                   cm_zarr_writer_target(v->move.writer)->shard_nbytes;
        target = n > target ? n : target;
    }
    return worker_of_all(job, 0, &least) + target;
}

/* ---- routes ---- */

/*
 * Bytes of scratch that may be used: none where no file can be made, UINT64_MAX where the disk
 * does not say.
 */
static uint64_t scratch_available(const cm_job *job)
{
    struct statvfs fs;
    if (job->scratch.folder == NULL || access(job->scratch.folder, W_OK) != 0)
        return 0;
    if (statvfs(job->scratch.folder, &fs) != 0)
        return UINT64_MAX;
    uint64_t nbytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    return nbytes > SAME_FOLDER_SPARE ? nbytes - SAME_FOLDER_SPARE : 0;
}

static void fill_request(const cm_job *job, const cm_job_var *v, const cm_plan_option *o,
                         cm_route_request *r)
{
    const cm_grid *grid = cm_zarr_writer_grid(v->move.writer);
    const cm_array *source = v->source->array;
    const bool own = !job->terms.alike; /* depends on this machine's memory and CPUs */
    *r = (cm_route_request){.rank = grid->rank,
                            .itemsize = source->dtype.nbytes,
                            .rates = job->speed.planned,
                            .is_part = !v->view.whole,
                            .sliceable = is_sliceable(v),
                            .piece_nbytes = o->piece_nbytes,
                            .few_slots = job->options->defaults == CM_DEFAULTS_CHOOSE,
                            .may_spill = own && o->may_spill && source->chunked,
                            .may_clip = own && o->may_clip && may_clip(v),
                            .slot_nbytes = cm_transfer_slot_nbytes(&v->move.transfer),
                            .clip_spare = cm_buffers_nbytes(1) - 1,
                            .scratch_nbytes = scratch_available(job),
                            .canceled = cm_monitor_cancels,
                            .context = job->options->monitor};
    memcpy(r->shape, grid->shape, sizeof(r->shape));
    memcpy(r->target, grid->chunk, sizeof(r->target));
    memcpy(r->source, source->grid.chunk, sizeof(r->source));
    memcpy(r->start, v->view.start, sizeof(r->start));
    memcpy(r->step, v->view.step, sizeof(r->step));
    memcpy(r->whole, source->shape, sizeof(r->whole));
    memcpy(r->cuts, v->move.cuts, sizeof(r->cuts));
}

/*
 * A route in ROOM bytes for target chunks; *shards gets what shards in assembly hold of it.
 * False: no room.
 */
static int route_in(const cm_job *job, cm_job_var *v, size_t room, uint64_t memory,
                    const cm_plan_option *o, size_t *shards, bool *fits, cm_error *err)
{
    size_t shard = cm_zarr_writer_target(v->move.writer)->shard_nbytes;
    cm_route_request r;
    fill_request(job, v, o, &r);
    r.memory_nelem = memory / r.itemsize;
    *shards = 0;
    *fits = false;
    if (cm_monitor_canceled(job->options->monitor))
        return cm_fail(err, CM_ECANCELED, "stopped by request");
    for (int pass = 0; pass < 3; pass++) {
        if (*shards > room || room - *shards < r.slot_nbytes)
            return CM_OK;
        r.room_nbytes = room - *shards;
        int rc = cm_route_plan(&r, &v->plan.route, err);
        if (rc != CM_OK)
            return rc;
        uint64_t open =
            cm_transfer_open_shards(&v->move.transfer, &v->plan.route.tiled, o->nthreads);
        *fits = shard == 0 || open * shard <= *shards;
        if (*fits)
            break;
        *shards = open * shard;
    }
    v->plan.routed = *fits;
    return CM_OK;
}

/* The cost of a route beside others: bytes, where no rate is known. */
static double cost_of(const cm_job_var *v)
{
    const cm_route *r = &v->plan.route;
    return r->seconds > 0 ? r->seconds : (double)r->traffic * v->view.type.nbytes * 1e-9;
}

/* Decoding and encoding grow with the workers, storage does not. */
static void set_rates(cm_job *job, unsigned nthreads)
{
    cm_transform_report *r = job->report;
    if (job->speed.read <= 0)
        return;
    r->probe_read_rate = job->speed.read;
    r->probe_decode_rate = job->speed.decode * nthreads;
    r->probe_encode_rate = job->speed.encode * nthreads;
    r->probe_write_rate = job->speed.write;
    job->speed.planned.read = 1 / (1 / r->probe_read_rate + 1 / r->probe_decode_rate);
    job->speed.planned.write = 1 / (1 / r->probe_encode_rate + 1 / r->probe_write_rate);
    job->speed.planned.scratch = job->speed.scratch;
}

static void raise_shards(cm_job *job, const cm_job_var *v, size_t shards)
{
    const cm_target *t = cm_zarr_writer_target(v->move.writer);
    cm_budget *b = &job->budget;
    size_t sent = shards > 0 ? shards / t->shard_nbytes * t->sent_nbytes : 0;
    b->shards_nbytes = shards > b->shards_nbytes ? shards : b->shards_nbytes;
    b->sent_nbytes = sent > b->sent_nbytes ? sent : b->sent_nbytes;
}

/* Routes in FREE bytes by option O, whose cost is set. */
static int plan_with(cm_job *job, size_t free, cm_plan_option *o, bool *fits, cm_error *err)
{
    unsigned nthreads = o->nthreads;
    o->piece_nbytes = piece_for(free, nthreads);
    size_t worker = worker_of_all(job, free, o);
    set_rates(job, nthreads);
    o->cost = o->traffic = 0;
    *fits = free / nthreads >= worker;
    job->budget.slots_nbytes = job->budget.shards_nbytes = job->budget.sent_nbytes = 0;
    size_t room = *fits ? free - nthreads * worker : 0;
    for (size_t i = 0; *fits && i < job->nvars; i++) {
        cm_job_var *v = &job->var[i];
        size_t shards;
        if (!has_chunks(v))
            continue;
        int rc = route_in(job, v, room, free, o, &shards, fits, err);
        if (rc != CM_OK || !*fits)
            return rc;
        size_t want = v->plan.route.held_nbytes + nthreads * cm_send_slots_nbytes(v, o->ahead);
        want = want > room - shards ? room - shards : want;
        job->budget.slots_nbytes =
            want > job->budget.slots_nbytes ? want : job->budget.slots_nbytes;
        raise_shards(job, v, shards);
        o->cost += cost_of(v);
        o->traffic += (double)v->plan.route.traffic * v->source->dtype.nbytes;
    }
    if (job->speed.read <= 0)
        o->cost /= nthreads;
    job->budget.worker_nbytes = worker;
    job->budget.ahead = o->ahead;
    return CM_OK;
}

/* True when clipped target chunks might make a route read or write less. */
static bool clipping_may_help(const cm_job *job)
{
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        if (has_chunks(v) && may_clip(v) &&
            !(v->plan.routed &&
              v->plan.route.traffic <= cm_mul_sat(2, v->plan.route.nelem_written)))
            return true;
    }
    return false;
}

/*
 * With scratch files allowed the routes are judged by their bytes too; without
 * them only where those do not fit.
 */
static int try_option(cm_job *job, size_t free, unsigned nthreads, bool clip,
                      cm_plan_options *found, cm_error *err)
{
    bool fits = false;
    int rc = CM_OK;
    for (int spill = 1; spill >= 0 && !fits && rc == CM_OK; spill--) {
        cm_plan_option o = {
            .nthreads = nthreads, .may_spill = spill != 0, .may_clip = clip, .may_send = true};
        rc = plan_with(job, free, &o, &fits, err);
        if (rc == CM_OK && !fits && o.ahead > 0) {
            o.may_send = false;
            rc = plan_with(job, free, &o, &fits, err);
        }
        if (rc == CM_OK && fits && found->n < CM_PLAN_OPTIONS)
            found->item[found->n++] = o;
    }
    return rc;
}

static int plan_best(cm_job *job, size_t free, unsigned most, cm_error *err)
{
    cm_plan_options found = {.n = 0};
    bool fits;
    int rc = CM_OK;
    for (unsigned n = most; n > 0 && rc == CM_OK; n /= 2) {
        rc = try_option(job, free, n, false, &found, err);
        if (rc == CM_OK && clipping_may_help(job))
            rc = try_option(job, free, n, true, &found, err);
    }
    cm_plan_option *best = cm_plan_choose(&found, job->speed.read > 0);
    job->budget.nthreads = best != NULL ? best->nthreads : 0;
    if (best == NULL || rc != CM_OK)
        return rc;
    return plan_with(job, free, best, &fits, err);
}

/* ---- too little memory ---- */

static int fits_in(cm_job *job, size_t free, bool *fits, cm_error *err)
{
    cm_plan_options found = {.n = 0};
    int rc = try_option(job, free, 1, false, &found, err);
    if (rc == CM_OK && found.n == 0)
        rc = try_option(job, free, 1, true, &found, err);
    *fits = found.n > 0;
    return rc;
}

/*
 * The least of FREE for which there is a plan, to LEAST_STEP; shards that are open at once show
 * only in one.
 */
static int find_least(cm_job *job, size_t free, size_t *least, cm_error *err)
{
    size_t too_little = 0, floor = least_to_move(job), enough = free > floor ? free : floor;
    bool fits = false;
    int rc = fits_in(job, enough, &fits, err);
    while (rc == CM_OK && !fits && enough < SIZE_MAX / 2) {
        too_little = enough;
        enough *= 2;
        rc = fits_in(job, enough, &fits, err);
    }
    while (rc == CM_OK && too_little > 0 && enough - too_little > LEAST_STEP) {
        size_t middle = too_little + (enough - too_little) / 2;
        rc = fits_in(job, middle, &fits, err);
        *(fits ? &enough : &too_little) = middle;
    }
    *least = enough;
    return rc;
}

static int refuse(cm_job *job, cm_error *err)
{
    char limit[32], text[32];
    if (!job->budget.last_pieces) /* smaller ones are tried */
        return CM_EBUDGET;
    size_t move, verify = cm_job_least_to_verify(job);
    int rc = find_least(job, (size_t)cm_budget_free(&job->budget), &move, err);
    if (rc != CM_OK)
        return rc;
    return cm_fail(
        err, CM_EBUDGET,
        "not enough memory: the limit is %s, these chunks need at least %s%s; raise "
        "`memory` or choose smaller `chunks`",
        cm_format_size(job->budget.limit_nbytes, limit, sizeof(limit)),
        cm_format_size(job->budget.held_nbytes + (verify > move ? verify : move) + LEAST_STEP, text,
                       sizeof(text)),
        verify > move ? " for verification" : "");
}

/* ---- the plan ---- */

static void adopt(cm_job_var *v)
{
    cm_transfer *t = &v->move.transfer;
    if (!has_chunks(v))
        return;
    cm_transfer_adopt(t, &v->plan.route.sweep);
    t->clips = v->plan.route.clips;
    t->worker_nbytes = worker_of(v, v->plan.route.spills, v->plan.route.clips);
}

/* Probes with the array that costs most. */
static cm_job_var *largest(const cm_job *job)
{
    cm_job_var *found = NULL;
    double most = 0;
    for (size_t i = 0; i < job->nvars; i++) {
        cm_job_var *v = &job->var[i];
        if (!has_chunks(v) || v->doc.pass != CM_PASS_NOTHING || v->stored.presence.bit == NULL)
            continue;
        double nbytes = (double)v->source->array->grid.chunk_nelem *
                        (double)v->stored.presence.npresent * v->view.type.nbytes;
        if (nbytes > most) {
            most = nbytes;
            found = v;
        }
    }
    return found;
}

/* True when everything is read once and written once, by as many workers as were asked for. */
static bool is_least(const cm_job *job, unsigned nthreads)
{
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        if (has_chunks(v) && (v->plan.route.spills ||
                              v->plan.route.traffic > cm_mul_sat(2, v->plan.route.nelem_written)))
            return false;
    }
    return job->budget.nthreads == nthreads;
}

/*
 * Probes only where routes compete or the user wants to see rates: it takes up to a tenth of a
 * second.
 */
static int plan_with_probe(cm_job *job, size_t free, unsigned most, cm_error *err)
{
    cm_job_var *v = largest(job);
    int rc = plan_best(job, free, most, err);
    /* Parts run on other machines, whose speed is unknown here. */
    if (rc != CM_OK || v == NULL || job->terms.alike ||
        (is_least(job, most) && !job->terms.foreseen))
        return rc;
    rc = cm_job_probe(job, v, job->scratch.folder, err);
    return rc == CM_OK && job->speed.read > 0 ? plan_best(job, free, most, err) : rc;
}

static int check_scratch(cm_job *job, cm_error *err)
{
    uint64_t most = 0, free = scratch_available(job);
    char need[32], have[32];
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        uint64_t n = v->plan.routed ? v->plan.route.scratch_nelem * v->source->dtype.nbytes : 0;
        most = n > most ? n : most;
    }
    job->report->scratch_needed = most;
    if (most <= free)
        return CM_OK;
    return cm_fail(err, CM_ENOSPC, "%s: %s of scratch space are needed, and %s are free",
                   job->scratch.folder, cm_format_size(most, need, sizeof(need)),
                   cm_format_size(free, have, sizeof(have)));
}

static bool has_strings(const cm_job *job)
{
    for (size_t i = 0; i < job->nvars; i++)
        if (job->var[i].view.as_strings)
            return true;
    return false;
}

/* The memory that the process has, and will have beside buffers. */
static void count_held(cm_job *job)
{
    cm_budget *b = &job->budget;
    cm_budget_begin(b, job->options->memory);
    for (size_t i = 0; i < job->nvars; i++)
        b->held_nbytes += job->var[i].source->cache_nbytes;
    const cm_store *store = cm_dataset_store(job->source);
    b->held_nbytes += store != NULL ? cm_store_index_nbytes(store) : 0;
    b->held_nbytes += cm_statistics_nbytes(job) + cm_job_passport_nbytes(job);
}

static size_t least_of(uint64_t left, size_t want)
{
    return left < want ? (size_t)left : want;
}

static size_t wanted_for_early(const cm_job *job)
{
    size_t want = 0;
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_target *t = cm_zarr_writer_target(job->var[i].move.writer);
        if (t == NULL || t->shard_nbytes == 0)
            continue;
        size_t some = job->var[i].view.as_strings ? 0 : cm_chain_encoded_bound(t->chain);
        some *= EARLY_CHUNKS * job->budget.nthreads;
        want = some > want ? some : want;
        want = want > EARLY_NBYTES ? want : EARLY_NBYTES;
    }
    return want;
}

/* Divides the memory that the plan leaves among chunks that wait and chunks on their way. */
static void share_rest(cm_job *job)
{
    cm_budget *b = &job->budget;
    b->early_nbytes = b->ahead_nbytes = 0;
    uint64_t used = cm_budget_used(b, b->worker_nbytes);
    uint64_t left = b->limit_nbytes > used ? b->limit_nbytes - used : 0;
    b->early_nbytes = least_of(left, wanted_for_early(job));
    b->ahead_nbytes = least_of(left - b->early_nbytes, cm_send_ahead(job));
}

static int choose_routes(cm_job *job, unsigned most, cm_error *err)
{
    size_t free = (size_t)cm_budget_free(&job->budget);
    if (free == 0 || free < least_to_move(job) || free < cm_job_least_to_verify(job))
        return refuse(job, err);
    int rc = plan_with_probe(job, free, most, err);
    return rc == CM_OK && job->budget.nthreads == 0 ? refuse(job, err) : rc;
}

static int choose_pieces(cm_job *job, cm_store *store, unsigned most, cm_error *err)
{
    int rc = CM_EBUDGET;
    for (unsigned i = 0; rc == CM_EBUDGET && i < CM_STORE_PIECES; i++) {
        count_held(job);
        if (!cm_send_try(job, store, i))
            continue;
        rc = choose_routes(job, most, err);
        if (job->budget.last_pieces)
            break;
    }
    return rc;
}

int cm_job_plan(cm_job *job, cm_store *store, cm_error *err)
{
    int rc = CM_OK;
    if (job->scratch.early == NULL)
        rc = cm_early_create(&job->scratch.early, err);
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        rc = cm_job_prepare(job, &job->var[i], store, err);
    if (rc == CM_OK && !job->terms.grows)
        rc = cm_job_rehearse_metadata(job, err);
    if (rc != CM_OK)
        return rc;
    unsigned most = cm_send_threads(job, store);
    job->budget.request_nbytes = cm_store_request_nbytes(store);
    rc = choose_pieces(job, store, most, err);
    share_rest(job);
    if (rc == CM_OK)
        rc = cm_early_limit(job->scratch.early, job->budget.early_nbytes, job->scratch.folder, err);
    if (rc != CM_OK)
        return rc;
    cm_send_limit(job, store);
    /* The length of text is known only once it is read. */
    if (job->options->memory == 0 && !has_strings(job))
        job->budget.limit_nbytes = cm_budget_used(&job->budget, job->budget.worker_nbytes);
    job->report->memory_planned = cm_budget_used(&job->budget, worker_as_planned(job));
    for (size_t i = 0; i < job->nvars && rc == CM_OK; i++) {
        adopt(&job->var[i]);
        rc = cm_job_predict(job, &job->var[i], err);
    }
    if (rc == CM_OK && job->budget.nthreads < most)
        rc =
            cm_job_note(job, err, "%u of %u threads %s used, to stay below the memory limit",
                        job->budget.nthreads, most, cm_of_count(job->budget.nthreads, "is", "are"));
    return rc == CM_OK ? check_scratch(job, err) : rc;
}
