/* Tasks of a worker: a batch, a chunk, or samples cut out of chunks. */
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "load/batches/cut.h"
#include "load/batches/load_source_impl.h"

enum {
    /*
     * Batches that take turns in more memory than this have left all caches when they are read.
     * Writing a chunk of 1 MiB and reading it once took 109 us through the caches and 165 past them
     * with 64 MiB in turn, 154 and 136 with 96 MiB, 207 and 132 with 128 MiB and more.
     */
    NEAR_NBYTES = 96 << 20
};

size_t cm_load_offset(const size_t *part_nbytes, size_t nbatch, size_t p, size_t place)
{
    size_t before = 0;
    for (size_t i = 0; i < p; i++)
        before += part_nbytes[i];
    return nbatch * before + (place > 0 ? place * part_nbytes[p] : 0);
}

static const cm_feed *feed_of(const cm_load_arrays *in, size_t part)
{
    return in->feed != NULL ? &in->feed[part] : NULL;
}

/* Bytes of an element of PART, as delivered. */
static size_t element_nbytes(const cm_load_arrays *in, size_t part)
{
    const cm_feed *feed = feed_of(in, part);
    return feed != NULL ? cm_feed_nbytes(feed) : in->array[in->part[part].array]->dtype.nbytes;
}

/* Box that PART takes of SAMPLE, and its bytes as fed: at most those of a whole sample. */
static int share_of(const cm_load_arrays *in, const cm_box *sample, size_t part, cm_box *box,
                    size_t *nbytes, cm_error *err)
{
    const cm_array *a = in->array[in->part[part].array];
    *nbytes = 0;
    cm_sample_part_box(&in->part[part], sample, box);
    const uint64_t nelem = cm_box_nelem(box), each = element_nbytes(in, part);
    if (nelem > in->part_nbytes[part] / each)
        return cm_fail(err, CM_EINTERNAL, "array %s: a sample is larger than its place", a->name);
    *nbytes = nelem * each;
    return CM_OK;
}

/* As share_of, for sample number I of EPOCH. */
static int place_part(const cm_load_arrays *in, uint64_t epoch, uint64_t i, size_t part,
                      cm_box *box, size_t *nbytes, cm_error *err)
{
    cm_box sample;
    cm_sample_at(in->space, epoch, i, &sample);
    return share_of(in, &sample, part, box, nbytes, err);
}

/* Zeroes the rest of the place at DST, behind a clipped sample of NBYTES. */
static void clear_rest(const cm_load_arrays *in, size_t part, uint8_t *dst, size_t nbytes)
{
    memset(dst + nbytes, 0, in->part_nbytes[part] - nbytes);
}

/* Box I of an expected task: part I of the batch's samples, or its chunk. */
static bool box_ahead(void *context, uint64_t i, cm_array **array, cm_box *box)
{
    const cm_expected *x = context;
    const cm_load_arrays *in = x->arrays;
    const size_t part = i % in->nparts;
    size_t nbytes;
    if (x->task->kind == CM_LOAD_CHUNK) {
        *array = in->array[x->task->array];
        cm_grid_chunk_box(&(*array)->grid, x->task->number, box);
        return true;
    }
    *array = in->array[in->part[part].array];
    return place_part(in, x->task->epoch, x->task->piece[i / in->nparts].sample, part, box, &nbytes,
                      NULL) == CM_OK;
}

void cm_load_expect(void *context, const cm_load_task *task)
{
    cm_load_sharing *s = context;
    pthread_mutex_lock(&s->lock);
    const bool open = s->users > 0 && s->pid == getpid();
    pthread_mutex_unlock(&s->lock);
    if (open && s->arrays.ahead != NULL && !s->arrays.when_begun && task->kind != CM_LOAD_CUT)
        cm_expecting_add(&s->expecting, &s->arrays, task, box_ahead);
}

void cm_load_forget(void *context, const cm_load_task *task)
{
    cm_expecting_drop(&((cm_load_sharing *)context)->expecting, task);
}

/* One thread's share of a batch: the next part of a sample, until none is left. */
static void read_parts(void *context, unsigned index)
{
    cm_load_worker *w = context;
    cm_load_hand *h = &w->hand[index];
    const cm_load_arrays *in = w->arrays;
    const cm_load_task *task = w->task;
    const uint64_t n = (uint64_t)task->npieces * in->nparts;
    const uint64_t cpu_ns = cm_thread_cpu_ns();
    cm_error err;
    h->status = CM_OK;
    memset(&h->counts, 0, sizeof(h->counts));
    for (uint64_t i; (i = atomic_fetch_add(&w->next, 1)) < n;) {
        const cm_load_piece *piece = &task->piece[i / in->nparts];
        const size_t part = i % in->nparts;
        uint8_t *dst = w->arena + task->offset +
                       cm_load_offset(in->part_nbytes, task->nbatch, part, piece->place);
        cm_box box;
        size_t nbytes;
        int rc = cm_stop_check(&w->source->options.stop, &err);
        if (rc == CM_OK)
            rc = place_part(in, task->epoch, piece->sample, part, &box, &nbytes, &err);
        if (rc == CM_OK)
            clear_rest(in, part, dst, nbytes);
        cm_reader_lookahead(h->reader, w->ahead, i);
        if (rc == CM_OK)
            rc = cm_reader_box(h->reader, in->array[in->part[part].array], &box, feed_of(in, part),
                               dst, &h->counts, &err);
        if (rc != CM_OK && h->status == CM_OK) {
            h->status = rc;
            h->err = err;
        }
    }
    cm_reader_lookahead(h->reader, NULL, 0);
    h->counts.cpu_ns = cm_thread_cpu_ns() - cpu_ns;
}

/* Notes a write up to END of the arena.  All memory that was ever used takes its turn again. */
static void look_far(cm_load_worker *w, size_t end)
{
    w->reach = end > w->reach ? end : w->reach;
    for (unsigned i = 0; i < w->nhands; i++)
        cm_reader_far(w->hand[i].reader, w->reach > NEAR_NBYTES);
}

static int load_batch(cm_load_worker *w, cm_load_result *result, cm_error *err)
{
    const cm_load_arrays *in = w->arrays;
    const cm_load_task *task = w->task;
    cm_expecting *e = &w->source->expecting;
    cm_expected *x = in->ahead != NULL ? cm_expecting_take(e, in, task, box_ahead) : NULL;
    int rc = CM_OK;
    result->nbytes = cm_load_offset(in->part_nbytes, task->nbatch, in->nparts, 0);
    look_far(w, task->offset + result->nbytes);
    atomic_store(&w->next, 0);
    w->ahead = x != NULL ? x->list : NULL;
    cm_team_run(w->team, read_parts, w);
    cm_expecting_done(e, x);
    for (unsigned i = 0; i < w->nhands; i++) {
        cm_load_counts_add(&result->counts, &w->hand[i].counts);
        if (rc == CM_OK && (rc = w->hand[i].status) != CM_OK && err != NULL)
            *err = w->hand[i].err;
    }
    return rc;
}

static int check_chunk(const cm_load_arrays *in, const cm_load_task *task, cm_error *err)
{
    if (task->array >= in->narrays || task->npieces != 1 || task->piece[0].part >= in->nparts ||
        in->part[task->piece[0].part].array != task->array ||
        task->number >= in->array[task->array]->grid.nchunks)
        return cm_fail(err, CM_EINTERNAL, "no chunk %llu of array %u",
                       (unsigned long long)task->number, task->array);
    return CM_OK;
}

static int load_chunk(cm_load_worker *w, cm_load_result *result, cm_error *err)
{
    const cm_load_arrays *in = w->arrays;
    const cm_load_task *task = w->task;
    const uint64_t cpu_ns = cm_thread_cpu_ns();
    cm_load_counts *counts = &result->counts;
    cm_expecting *e = &w->source->expecting;
    int rc = cm_stop_check(&w->source->options.stop, err);
    if (rc == CM_OK)
        rc = check_chunk(in, task, err);
    if (rc != CM_OK)
        return rc;
    cm_array *a = in->array[task->array];
    look_far(w, task->offset + a->grid.chunk_nelem * element_nbytes(in, task->piece[0].part));
    cm_expected *x = in->ahead != NULL ? cm_expecting_take(e, in, task, box_ahead) : NULL;
    cm_reader_lookahead(w->hand[0].reader, x != NULL ? x->list : NULL, 0);
    rc = cm_reader_chunk(w->hand[0].reader, a, task->number, feed_of(in, task->piece[0].part),
                         w->arena + task->offset, counts, err);
    cm_reader_lookahead(w->hand[0].reader, NULL, 0);
    cm_expecting_done(e, x);
    w->arena[task->piece[0].offset] = counts->missing_chunks > 0;
    counts->logical_nbytes = counts->missing_nbytes = 0; /* those of samples count */
    counts->cpu_ns += cm_thread_cpu_ns() - cpu_ns;
    return rc;
}

/* Part PART of the sample of PIECE. */
static int cut_part(cm_load_worker *w, const cm_load_piece *piece, const cm_box *sample,
                    size_t part, cm_load_counts *counts, cm_error *err)
{
    const cm_load_arrays *in = w->arrays;
    cm_array *a = in->array[in->part[part].array];
    uint8_t *dst = w->arena + w->task->offset +
                   cm_load_offset(in->part_nbytes, w->task->nbatch, part, piece->place);
    cm_box box;
    size_t nbytes;
    int rc = share_of(in, sample, part, &box, &nbytes, err);
    if (rc != CM_OK)
        return rc;
    clear_rest(in, part, dst, nbytes);
    if (in->blocks->strip_of[part] == CM_BLOCK_NO_STRIP)
        return cm_reader_box(w->hand[0].reader, a, &box, feed_of(in, part), dst, counts, err);
    const cm_cut cut = {.blocks = in->blocks,
                        .strip = in->blocks->strip_of[part],
                        .itemsize = element_nbytes(in, part),
                        .stored_itemsize = a->dtype.nbytes,
                        .frame = w->arena + piece->offset};
    cm_cut_box(&cut, sample, &box, dst, counts);
    return CM_OK;
}

static int load_cut(cm_load_worker *w, cm_load_result *result, cm_error *err)
{
    const cm_load_arrays *in = w->arrays;
    const cm_load_task *task = w->task;
    const uint64_t cpu_ns = cm_thread_cpu_ns(), begin_ns = cm_now_ns();
    cm_load_counts *counts = &result->counts;
    int rc = in->blocks != NULL ? CM_OK : cm_fail(err, CM_EINTERNAL, "no blocks to cut from");
    for (uint32_t i = 0; i < task->npieces && rc == CM_OK; i++) {
        cm_box sample;
        cm_sample_at(in->space, task->epoch, task->piece[i].sample, &sample);
        for (size_t part = 0; part < in->nparts && rc == CM_OK; part++)
            rc = cut_part(w, &task->piece[i], &sample, part, counts, err);
    }
    counts->stage_ns[CM_LOAD_ASSEMBLE] += cm_now_ns() - begin_ns;
    counts->stage_calls[CM_LOAD_ASSEMBLE]++;
    counts->cpu_ns += cm_thread_cpu_ns() - cpu_ns;
    return rc;
}

cm_disk_cache_counts cm_load_disk_counts(const cm_load_arrays *in)
{
    return in->disk_cache != NULL ? cm_store_disk_cache_counts(in->disk_cache)
                                  : (cm_disk_cache_counts){0};
}

/*
 * Adds what the disk cache did since it was last counted.  The reader counted requests that it
 * answered, too: those that storage had are the cache's to tell.
 */
static void count_disk(cm_load_worker *w, cm_load_counts *counts)
{
    if (w->arrays->disk_cache == NULL)
        return;
    const bool own = w->arrays == &w->own;
    cm_disk_cache_counts *told = own ? &w->own_disk : &w->source->disk;
    pthread_mutex_lock(&w->source->lock);
    const cm_disk_cache_counts now = cm_load_disk_counts(w->arrays);
    counts->disk_hits += now.hits - told->hits;
    counts->disk_misses += now.misses - told->misses;
    counts->disk_evictions += now.evictions - told->evictions;
    counts->disk_nbytes += now.nbytes - told->nbytes;
    counts->requests = now.requests - told->requests;
    counts->stored_nbytes = now.stored_nbytes - told->stored_nbytes;
    *told = now;
    pthread_mutex_unlock(&w->source->lock);
}

int cm_load_task_run(void *state, const cm_load_task *task, uint8_t *arena, cm_load_result *result,
                     cm_error *err)
{
    cm_load_worker *w = state;
    w->task = task;
    w->arena = arena;
    int rc = task->kind == CM_LOAD_CHUNK ? load_chunk(w, result, err)
             : task->kind == CM_LOAD_CUT ? load_cut(w, result, err)
                                         : load_batch(w, result, err);
    count_disk(w, &result->counts);
    return rc;
}
