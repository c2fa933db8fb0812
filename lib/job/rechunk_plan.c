/*
 * The routes of all arrays within the memory.
 *
 *     limit = what the process holds already + reserve
 *           + workers x scratch + target chunks in flight + shards in assembly
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
#include "exec/engine/buffers.h"
#include "job/budget.h"
#include "job/rechunk.h"
#include "plan/meetings.h"

enum {
    SAME_FOLDER_SPARE = 64 << 20, /* scratch leaves this much of a disk free */
    LEAST_STEP = 1 << 20          /* to which the least memory is found */
};

static bool has_chunks(const cm_re_array *a)
{
    return a->how == CM_RE_ELEMENTS && cm_zarr_writer_grid(a->writer)->nchunks > 0;
}

/* Some target chunks reach past the array's end. */
static bool is_ragged(const cm_re_array *a)
{
    const cm_grid *grid = cm_zarr_writer_grid(a->writer);
    for (unsigned j = 0; j < grid->rank; j++)
        if (grid->shape[j] % grid->chunk[j] != 0)
            return true;
    return false;
}

/* ---- sizes ---- */

/* What a plan may do, and with how many workers. */
typedef struct option {
    unsigned nthreads;
    bool may_spill, may_clip;
    double cost;
} option;

/* SPILLS: with the buffer in which records for scratch are put together; CLIPS: for clipped slots. */
static void raise_need(const cm_re_array *a, bool spills, bool clips, cm_worker_need *need)
{
    cm_transfer t = a->transfer;
    t.clips = clips;
    cm_transfer_worker_need(&t, 0, need);
    size_t record = spills ? cm_chain_decoded_nbytes(a->source->chain) : 0;
    need->spilled = record > need->spilled ? record : need->spilled;
}

static size_t worker_of(const cm_re_array *a, bool spills, bool clips)
{
    cm_worker_need need = {0};
    raise_need(a, spills, clips, &need);
    return cm_worker_need_nbytes(&need);
}

/* One worker for all arrays, by what option O allows or, where it is NULL, by their routes. */
static size_t worker_of_all(const cm_re_job *job, const option *o)
{
    cm_worker_need need = {0};
    for (size_t i = 0; i < job->narrays; i++) {
        const cm_re_array *a = &job->array[i];
        if (!has_chunks(a))
            continue;
        if (o != NULL)
            raise_need(a, o->may_spill, o->may_clip && is_ragged(a), &need);
        else
            raise_need(a, a->routed && a->route.spills, a->routed && a->route.clips, &need);
    }
    return cm_worker_need_nbytes(&need) + CM_BUDGET_PER_THREAD;
}

/* A chunk as stored and as decoded, and its elements: what the digest of an array takes. */
static size_t digest_nbytes(const cm_chain *chain)
{
    return 2 * cm_chain_decoded_nbytes(chain) + cm_chain_decode_memory(chain) +
           cm_chain_encoded_bound(chain);
}

/* The least that any plan needs: one worker, one target chunk, one shard; or verifying in full. */
static size_t least_room(const cm_re_job *job)
{
    option least = {.nthreads = 1};
    size_t target = 0, digest = 0;
    for (size_t i = 0; i < job->narrays; i++) {
        const cm_re_array *a = &job->array[i];
        if (!has_chunks(a))
            continue;
        size_t n = cm_transfer_slot_nbytes(&a->transfer) + cm_zarr_writer_shard_memory(a->writer);
        size_t before = digest_nbytes(a->source->chain);
        size_t after = digest_nbytes(cm_zarr_writer_chain(a->writer));
        target = n > target ? n : target;
        digest = before > digest ? before : digest;
        digest = after > digest ? after : digest;
    }
    size_t move = worker_of_all(job, &least) + target;
    bool verifies = job->options->verify == CM_VERIFY_FULL && !job->options->dry_run;
    digest += CM_BUDGET_PER_THREAD;
    return verifies && digest > move ? digest : move;
}

/* ---- routes ---- */

/* Bytes of scratch that may be used: none where no file can be made, UINT64_MAX where the disk does not say. */
static uint64_t scratch_available(const cm_re_job *job)
{
    struct statvfs fs;
    if (access(job->scratch, W_OK) != 0)
        return 0;
    if (statvfs(job->scratch, &fs) != 0)
        return UINT64_MAX;
    uint64_t nbytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    return nbytes > SAME_FOLDER_SPARE ? nbytes - SAME_FOLDER_SPARE : 0;
}

static void fill_request(const cm_re_job *job, const cm_re_array *a, cm_route_request *r)
{
    const cm_grid *grid = cm_zarr_writer_grid(a->writer);
    *r = (cm_route_request){
        .rank = grid->rank, .itemsize = a->meta.dtype.nbytes, .rates = job->rates};
    memcpy(r->shape, grid->shape, sizeof(r->shape));
    memcpy(r->target, grid->chunk, sizeof(r->target));
    memcpy(r->source, a->source->grid.chunk, sizeof(r->source));
}

/* A route in ROOM bytes for target chunks; *shards gets what shards in assembly hold of it.  False: no room. */
static int route_in(const cm_re_job *job, cm_re_array *a, size_t room, uint64_t memory,
                    const option *o, size_t *shards, bool *fits, cm_error *err)
{
    size_t slot = cm_transfer_slot_nbytes(&a->transfer);
    size_t shard = cm_zarr_writer_shard_memory(a->writer);
    cm_route_request r;
    fill_request(job, a, &r);
    r.may_spill = o->may_spill;
    r.may_clip = o->may_clip;
    r.slot_nbytes = slot;
    r.clip_spare = cm_buffers_nbytes(1) - 1;
    r.scratch_nbytes = scratch_available(job);
    r.memory_nelem = memory / r.itemsize;
    *shards = 0;
    *fits = false;
    for (int pass = 0; pass < 3; pass++) {
        if (*shards > room || room - *shards < slot)
            return CM_OK;
        r.room_nbytes = room - *shards;
        int rc = cm_route_plan(&r, &a->route, err);
        if (rc != CM_OK)
            return rc;
        uint64_t open = cm_transfer_open_shards(&a->transfer, &a->route.tiled, o->nthreads);
        *fits = shard == 0 || open * shard <= *shards;
        if (*fits)
            break;
        *shards = open * shard;
    }
    a->routed = *fits;
    return CM_OK;
}

/* What a route costs beside others: bytes, where no rate is known. */
static double cost_of(const cm_re_array *a)
{
    const cm_route *r = &a->route;
    return r->seconds > 0 ? r->seconds : (double)r->traffic * a->meta.dtype.nbytes * 1e-9;
}

/* Decoding and encoding grow with the workers, storage does not. */
static void set_rates(cm_re_job *job, unsigned nthreads)
{
    cm_rechunk_report *r = job->report;
    if (job->probed.read <= 0)
        return;
    r->probe_read_rate = job->probed.read;
    r->probe_decode_rate = job->probed.decode * nthreads;
    r->probe_encode_rate = job->probed.encode * nthreads;
    r->probe_write_rate = job->probed.write;
    job->rates.read = 1 / (1 / r->probe_read_rate + 1 / r->probe_decode_rate);
    job->rates.write = 1 / (1 / r->probe_encode_rate + 1 / r->probe_write_rate);
    job->rates.scratch = job->probed.scratch;
}

/* Routes in FREE bytes by option O, whose cost is set. */
static int plan_with(cm_re_job *job, size_t free, option *o, bool *fits, cm_error *err)
{
    unsigned nthreads = o->nthreads;
    size_t worker = worker_of_all(job, o);
    set_rates(job, nthreads);
    o->cost = 0;
    *fits = free / nthreads >= worker;
    job->slots_nbytes = 0;
    size_t room = *fits ? free - nthreads * worker : 0;
    for (size_t i = 0; *fits && i < job->narrays; i++) {
        cm_re_array *a = &job->array[i];
        size_t shards;
        if (!has_chunks(a))
            continue;
        int rc = route_in(job, a, room, free, o, &shards, fits, err);
        if (rc != CM_OK || !*fits)
            return rc;
        /* One more for each worker, so that one can fill while another empties. */
        size_t want = a->route.held_nbytes + nthreads * cm_transfer_slot_nbytes(&a->transfer);
        want = want > room - shards ? room - shards : want;
        job->slots_nbytes = want > job->slots_nbytes ? want : job->slots_nbytes;
        o->cost += cost_of(a);
    }
    if (job->probed.read <= 0)
        o->cost /= nthreads;
    job->worker_nbytes = worker;
    return CM_OK;
}

/* True when clipped target chunks might make a route read or write less. */
static bool clipping_may_help(const cm_re_job *job)
{
    for (size_t i = 0; i < job->narrays; i++) {
        const cm_re_array *a = &job->array[i];
        if (has_chunks(a) && is_ragged(a) &&
            !(a->routed && a->route.traffic <= cm_mul_sat(2, a->route.nelem_written)))
            return true;
    }
    return false;
}

/*
 * With scratch files allowed the routes are judged by their bytes too; without
 * them only where those do not fit.
 */
static int try_option(cm_re_job *job, size_t free, unsigned nthreads, bool may_clip, option *best,
                      cm_error *err)
{
    bool fits = false;
    int rc = CM_OK;
    for (int spill = 1; spill >= 0 && !fits && rc == CM_OK; spill--) {
        option o = {nthreads, spill != 0, may_clip, 0};
        rc = plan_with(job, free, &o, &fits, err);
        if (rc == CM_OK && fits && (best->nthreads == 0 || o.cost < best->cost))
            *best = o;
    }
    return rc;
}

static int plan_best(cm_re_job *job, size_t free, unsigned most, cm_error *err)
{
    option best = {0};
    bool fits;
    int rc = CM_OK;
    for (unsigned n = most; n > 0 && rc == CM_OK; n /= 2) {
        rc = try_option(job, free, n, false, &best, err);
        if (rc == CM_OK && clipping_may_help(job))
            rc = try_option(job, free, n, true, &best, err);
    }
    job->nthreads = best.nthreads;
    if (best.nthreads == 0 || rc != CM_OK)
        return rc;
    return plan_with(job, free, &best, &fits, err);
}

/* ---- too little memory ---- */

static int fits_in(cm_re_job *job, size_t free, bool *fits, cm_error *err)
{
    option best = {0};
    int rc = try_option(job, free, 1, false, &best, err);
    if (rc == CM_OK && best.nthreads == 0)
        rc = try_option(job, free, 1, true, &best, err);
    *fits = best.nthreads != 0;
    return rc;
}

/* The least of FREE for which there is a plan, to LEAST_STEP; shards that are open at once show only in one. */
static int find_least(cm_re_job *job, size_t free, size_t *least, cm_error *err)
{
    size_t too_little = 0, enough = free > least_room(job) ? free : least_room(job);
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

static int refuse(cm_re_job *job, size_t held, cm_error *err)
{
    char limit[32], text[32];
    size_t least;
    int rc = find_least(job, job->memory_limit > held ? (size_t)job->memory_limit - held : 0,
                        &least, err);
    if (rc != CM_OK)
        return rc;
    return cm_fail(err, CM_EBUDGET,
                   "%s of memory do not suffice: these chunks need at least %s; give more with "
                   "--memory, or choose smaller --chunks",
                   cm_format_size(job->memory_limit, limit, sizeof(limit)),
                   cm_format_size(held + least + LEAST_STEP, text, sizeof(text)));
}

/* ---- what the engine will count ---- */

static bool is_present(const cm_re_array *a, uint64_t number)
{
    return a->presence.bit == NULL || (a->presence.bit[number / 64] >> number % 64 & 1) != 0;
}

/* Pieces whose chunk is absent are neither read nor spilled; they are counted one by one. */
static void predict_with_gaps(cm_re_array *a)
{
    const cm_sweep *s = &a->route.sweep;
    const cm_grid *grid = &a->source->grid;
    size_t itemsize = a->meta.dtype.nbytes;
    cm_rechunk_counts *p = &a->planned;
    cm_sweep_cursor c;
    for (cm_sweep_begin(s, 0, &c); !c.done; cm_sweep_next(s, &c)) {
        cm_box box;
        uint64_t spilled = 1, resident = 1;
        if (!is_present(a, cm_grid_number(grid, c.piece)))
            continue;
        cm_grid_box(grid, c.piece, &box);
        p->chunk_reads++;
        p->element_nbytes_read += cm_box_nelem(&box) * itemsize;
        for (unsigned j = 0; j < s->rank; j++) {
            cm_range span = cm_axis_piece_span(&s->axis[j], c.span[j], c.piece[j]);
            uint64_t end = c.span[j].lo + a->route.tile[j] * s->axis[j].target;
            spilled *= span.hi - span.lo;
            resident *= span.lo >= end ? 0 : (span.hi < end ? span.hi : end) - span.lo;
        }
        if (a->route.spills)
            p->scratch_nbytes += (spilled - resident) * itemsize;
    }
}

static void predict(cm_re_array *a)
{
    cm_rechunk_counts *p = &a->planned;
    const cm_route *r = &a->route;
    uint64_t nelem = 1;
    memset(p, 0, sizeof(*p));
    for (unsigned j = 0; j < a->node->meta.rank; j++)
        nelem *= a->node->meta.shape[j];
    if (a->how == CM_RE_OBJECTS || nelem == 0)
        return;
    p->chunk_writes = cm_zarr_writer_grid(a->writer)->nchunks;
    p->element_nbytes_written = nelem * a->meta.dtype.nbytes;
    if (a->how != CM_RE_ELEMENTS)
        return;
    if (a->presence.bit != NULL && a->presence.npresent < a->presence.nchunks) {
        predict_with_gaps(a);
    } else {
        p->chunk_reads = r->chunk_reads;
        p->element_nbytes_read = r->nelem_read * a->meta.dtype.nbytes;
        p->scratch_nbytes = r->nelem_spilled * a->meta.dtype.nbytes;
    }
    p->chunk_decodes = a->passes ? 0 : p->chunk_reads;
}

/* ---- the plan ---- */

static void adopt(cm_re_array *a)
{
    cm_transfer *t = &a->transfer;
    if (!has_chunks(a))
        return;
    t->sweep = a->route.sweep;
    t->clips = a->route.clips;
    t->slot_nbytes = cm_transfer_slot_nbytes(t);
    t->worker_nbytes = worker_of(a, a->route.spills, a->route.clips);
    t->may_be_absent = a->presence.bit != NULL && a->presence.npresent < a->presence.nchunks;
}

/* The array that costs most is the one worth probing for. */
static cm_re_array *largest(const cm_re_job *job)
{
    cm_re_array *found = NULL;
    double most = 0;
    for (size_t i = 0; i < job->narrays; i++) {
        cm_re_array *a = &job->array[i];
        if (!has_chunks(a) || a->passes)
            continue;
        double nbytes = (double)a->source->grid.chunk_nelem * (double)a->presence.npresent *
                        a->meta.dtype.nbytes;
        if (nbytes > most) {
            most = nbytes;
            found = a;
        }
    }
    return found;
}

/* True when every array is read once and written once, by as many workers as were asked for. */
static bool is_least(const cm_re_job *job, unsigned nthreads)
{
    for (size_t i = 0; i < job->narrays; i++) {
        const cm_re_array *a = &job->array[i];
        if (has_chunks(a) &&
            (a->route.spills || a->route.traffic > cm_mul_sat(2, a->route.nelem_written)))
            return false;
    }
    return job->nthreads == nthreads;
}

/* Probing takes up to a tenth of a second, alone: it is done where there is something to weigh, or to be shown. */
static int plan_with_probe(cm_re_job *job, size_t free, unsigned most, cm_error *err)
{
    cm_re_array *a = largest(job);
    int rc = plan_best(job, free, most, err);
    if (rc != CM_OK || a == NULL || (is_least(job, most) && !job->options->dry_run))
        return rc;
    rc = cm_re_probe(job, a, job->scratch, err);
    return rc == CM_OK && job->probed.read > 0 ? plan_best(job, free, most, err) : rc;
}

static int check_scratch(cm_re_job *job, cm_error *err)
{
    uint64_t most = 0, free = scratch_available(job);
    char need[32], have[32];
    for (size_t i = 0; i < job->narrays; i++) {
        const cm_re_array *a = &job->array[i];
        uint64_t n = a->routed ? a->route.scratch_nelem * a->meta.dtype.nbytes : 0;
        most = n > most ? n : most;
    }
    job->report->scratch_needed = most;
    if (most <= free)
        return CM_OK;
    return cm_fail(err, CM_ENOSPC, "%s: %s of scratch space are needed, and %s are free",
                   job->scratch, cm_format_size(most, need, sizeof(need)),
                   cm_format_size(free, have, sizeof(have)));
}

static bool has_strings(const cm_re_job *job)
{
    for (size_t i = 0; i < job->narrays; i++)
        if (job->array[i].how == CM_RE_STRINGS)
            return true;
    return false;
}

unsigned cm_re_threads(const cm_rechunk_options *options)
{
    return options->nthreads > 0 ? options->nthreads : cm_cpu_count();
}

int cm_re_plan(cm_re_job *job, cm_store *store, cm_error *err)
{
    const cm_rechunk_options *o = job->options;
    unsigned most = cm_re_threads(o);
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < job->narrays; i++)
        rc = cm_re_prepare(&job->array[i], store, err);
    if (rc == CM_OK)
        rc = cm_re_rehearse_metadata(job, err);
    if (rc != CM_OK)
        return rc;
    size_t resident = (size_t)cm_peak_rss(), held = resident + CM_BUDGET_RESERVE;
    for (size_t i = 0; i < job->narrays; i++)
        held += job->array[i].cache_nbytes;
    job->memory_limit = o->memory > 0 ? o->memory : cm_memory_available() / 2 + resident;
    if (job->memory_limit <= held)
        return refuse(job, held, err);
    job->held_nbytes = held;
    size_t free = (size_t)(job->memory_limit - held);
    if (free < least_room(job))
        return refuse(job, held, err);
    rc = plan_with_probe(job, free, most, err);
    if (rc != CM_OK)
        return rc;
    if (job->nthreads == 0)
        return refuse(job, held, err);
    /* How much text there is shows only when it is read. */
    if (o->memory == 0 && !has_strings(job))
        job->memory_limit = held + job->nthreads * job->worker_nbytes + job->slots_nbytes;
    job->report->memory_planned =
        held + job->nthreads * worker_of_all(job, NULL) + job->slots_nbytes;
    for (size_t i = 0; i < job->narrays; i++) {
        adopt(&job->array[i]);
        predict(&job->array[i]);
    }
    if (job->nthreads < most)
        rc = cm_re_note(job, err, "%u of %u threads are used, to stay below the memory limit",
                        job->nthreads, most);
    return rc == CM_OK ? check_scratch(job, err) : rc;
}
