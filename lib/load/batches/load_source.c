#include "load/batches/load_source.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/team.h"
#include "load/batches/cut.h"
#include "load/batches/expected.h"
#include "store/io.h"

enum {
    /*
     * Batches that take turns in more memory than this have left all caches when they are read.
     * Writing a chunk of 1 MiB and reading it once took 109 us through the caches and 165 past them
     * with 64 MiB in turn, 154 and 136 with 96 MiB, 207 and 132 with 128 MiB and more.
     */
    NEAR_NBYTES = 96 << 20
};

/* State that all workers of a source share. */
typedef struct source {
    cm_load_source_options options;
    cm_expecting expecting;
    pthread_mutex_t lock; /* guards the rest */
    pid_t pid;            /* of the process that opened `arrays` */
    unsigned users;       /* workers of that process that read them */
    cm_load_arrays arrays;
    cm_disk_cache_counts disk; /* that were told already */
} source;

/* One thread of a worker. */
typedef struct hand {
    cm_reader *reader;
    cm_load_counts counts; /* of the task */
    int status;
    cm_error err;
} hand;

/* One worker. */
typedef struct worker {
    source *source;
    cm_load_arrays own; /* where each worker opens for itself */
    cm_disk_cache_counts own_disk;
    cm_load_arrays *arrays; /* what it reads; NULL: not open */
    cm_team *team;
    hand *hand;
    unsigned nhands;
    uint8_t **fixed; /* the parts that are read once */

    size_t reach; /* end of the part of the arena written so far */

    /* The task. */
    const cm_load_task *task;
    cm_lookahead_list *ahead; /* NULL: threads request chunks when they want them */
    uint8_t *arena;
    _Atomic uint64_t next; /* part of a sample */
} worker;

size_t cm_load_offset(const size_t *part_nbytes, size_t nbatch, size_t p, size_t place)
{
    size_t before = 0;
    for (size_t i = 0; i < p; i++)
        before += part_nbytes[i];
    return nbatch * before + (place > 0 ? place * part_nbytes[p] : 0);
}

/* ---- opening ---- */

/* A signed integer may be taken for an unsigned one: CF's _Unsigned. */
static bool can_be_taken_for(const cm_dtype *stored, const cm_dtype *taken)
{
    cm_dtype as_signed = *taken;
    if (taken->kind == CM_KIND_UINT && stored->kind == CM_KIND_INT)
        as_signed.kind = CM_KIND_INT;
    return cm_dtype_equal(&as_signed, stored);
}

static int check_part(const cm_load_arrays *in, const cm_sample_part *part, const cm_feed *feed,
                      cm_error *err)
{
    if (part->array >= in->narrays)
        return cm_fail(err, CM_EINVAL, "a part of the sample is of array %u of %zu", part->array,
                       in->narrays);
    const cm_array *a = in->array[part->array];
    bool fits = part->rank == a->rank;
    for (unsigned j = 0; fits && j < a->rank; j++)
        fits = part->shape[j] == a->shape[j];
    if (!fits)
        return cm_fail(err, CM_EINVAL,
                       "array %s: its shape has changed since the samples were planned", a->name);
    if (cm_dtype_is_vlen(&a->dtype))
        return cm_fail(err, CM_EUNSUPPORTED, "array %s: its elements have no fixed size", a->name);
    if (feed != NULL && !can_be_taken_for(&a->dtype, &feed->src))
        return cm_fail(err, CM_EINVAL, "array %s: is converted from a type that it does not have",
                       a->name);
    return CM_OK;
}

static int check_arrays(const cm_load_arrays *in, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; i < in->nparts && rc == CM_OK; i++)
        rc = check_part(in, &in->part[i], in->feed != NULL ? &in->feed[i] : NULL, err);
    for (size_t i = 0; i < in->nfixed && rc == CM_OK; i++)
        rc = check_part(in, &in->fixed[i], NULL, err);
    return rc;
}

static void close_arrays(source *s, cm_load_arrays *arrays)
{
    cm_expecting_close(&s->expecting, arrays);
    if (s->options.opener.close != NULL)
        s->options.opener.close(s->options.opener.context, arrays);
    *arrays = (cm_load_arrays){0};
}

static int open_arrays(source *s, cm_load_arrays *out, cm_error *err)
{
    *out = (cm_load_arrays){0};
    int rc = s->options.opener.open(s->options.opener.context, out, err);
    if (rc == CM_OK && (rc = check_arrays(out, err)) != CM_OK)
        close_arrays(s, out);
    return rc;
}

static cm_disk_cache_counts disk_counts(const cm_load_arrays *in)
{
    return in->disk_cache != NULL ? cm_store_disk_cache_counts(in->disk_cache)
                                  : (cm_disk_cache_counts){0};
}

/* Arrays that the workers of this process share; the first worker opens them. */
static int join_arrays(source *s, cm_load_arrays **out, cm_error *err)
{
    int rc = CM_OK;
    pthread_mutex_lock(&s->lock);
    if (s->pid != getpid())
        s->users = 0; /* the parent's: its files are not ours to close */
    if (s->users == 0)
        rc = open_arrays(s, &s->arrays, err);
    if (rc == CM_OK && s->users == 0)
        s->disk = disk_counts(&s->arrays);
    if (rc == CM_OK) {
        s->pid = getpid();
        s->users++;
        *out = &s->arrays;
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static void leave_arrays(worker *w)
{
    source *s = w->source;
    if (w->arrays == NULL)
        return;
    if (w->arrays == &w->own) {
        close_arrays(s, &w->own);
        return;
    }
    pthread_mutex_lock(&s->lock);
    if (--s->users == 0)
        close_arrays(s, &s->arrays);
    pthread_mutex_unlock(&s->lock);
}

/* Reads the parts that are the same in every sample once, as a training does. */
static int read_fixed(worker *w, cm_error *err)
{
    const cm_load_arrays *in = w->arrays;
    cm_load_counts counts = {0};
    int rc = CM_OK;
    if (in->nfixed == 0)
        return CM_OK;
    if ((w->fixed = cm_calloc(in->nfixed, sizeof(uint8_t *), err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < in->nfixed && rc == CM_OK; i++) {
        cm_array *a = in->array[in->fixed[i].array];
        cm_box box = {.rank = a->rank};
        uint64_t nelem, nbytes;
        memcpy(box.shape, a->shape, sizeof(box.shape));
        if (!cm_product_u64(a->rank, a->shape, &nelem) ||
            !cm_mul_u64(nelem, a->dtype.nbytes, &nbytes))
            return cm_fail(err, CM_EBUDGET, "array %s: is too large to be held", a->name);
        if ((w->fixed[i] = cm_calloc(nbytes + 1, 1, err)) == NULL)
            return CM_ENOMEM;
        rc = cm_reader_box(w->hand[0].reader, a, &box, NULL, w->fixed[i], &counts, err);
    }
    return rc;
}

static void close_worker(void *state)
{
    worker *w = state;
    if (w == NULL)
        return;
    cm_team_free(w->team);
    for (unsigned i = 0; i < w->nhands; i++)
        cm_reader_free(w->hand[i].reader);
    for (size_t i = 0; w->fixed != NULL && i < w->arrays->nfixed; i++)
        free(w->fixed[i]);
    leave_arrays(w);
    free(w->fixed);
    free(w->hand);
    free(w);
}

static int fill_worker(worker *w, cm_error *err)
{
    source *s = w->source;
    const unsigned n = s->options.worker_threads;
    int rc;
    if (s->options.each_worker) {
        if ((rc = open_arrays(s, &w->own, err)) == CM_OK) {
            w->arrays = &w->own;
            w->own_disk = disk_counts(&w->own);
        }
    } else
        rc = join_arrays(s, &w->arrays, err);
    if (rc != CM_OK)
        return rc;
    if ((w->hand = cm_calloc(n, sizeof(hand), err)) == NULL)
        return CM_ENOMEM;
    cm_reader_options options = {.cache = w->arrays->cache,
                                 .delay = w->arrays->delay,
                                 .library = w->arrays->library,
                                 .store = w->arrays->store,
                                 .group_nbytes = w->arrays->group_nbytes};
    for (; w->nhands < n && rc == CM_OK; w->nhands += rc == CM_OK)
        rc = cm_reader_create(&options, &w->hand[w->nhands].reader, err);
    if (rc == CM_OK)
        rc = cm_team_create(n, &w->team, err);
    return rc == CM_OK ? read_fixed(w, err) : rc;
}

static int open_worker(void *context, unsigned index, void **state, cm_error *err)
{
    (void)index;
    worker *w = cm_calloc(1, sizeof(*w), err);
    if (w == NULL)
        return CM_ENOMEM;
    w->source = context;
    int rc = fill_worker(w, err);
    if (rc != CM_OK) {
        close_worker(w);
        return rc;
    }
    *state = w;
    return CM_OK;
}

/* ---- tasks ---- */

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

static void expect(void *context, const cm_load_task *task)
{
    source *s = context;
    pthread_mutex_lock(&s->lock);
    const bool open = s->users > 0 && s->pid == getpid();
    pthread_mutex_unlock(&s->lock);
    if (open && s->arrays.ahead != NULL && task->kind != CM_LOAD_CUT)
        cm_expecting_add(&s->expecting, &s->arrays, task, box_ahead);
}

static void forget(void *context, const cm_load_task *task)
{
    cm_expecting_drop(&((source *)context)->expecting, task);
}

/* One thread's share of a batch: the next part of a sample, until none is left. */
static void read_parts(void *context, unsigned index)
{
    worker *w = context;
    hand *h = &w->hand[index];
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
static void look_far(worker *w, size_t end)
{
    w->reach = end > w->reach ? end : w->reach;
    for (unsigned i = 0; i < w->nhands; i++)
        cm_reader_far(w->hand[i].reader, w->reach > NEAR_NBYTES);
}

static int load_batch(worker *w, cm_load_result *result, cm_error *err)
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

static int load_chunk(worker *w, cm_load_result *result, cm_error *err)
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
static int cut_part(worker *w, const cm_load_piece *piece, const cm_box *sample, size_t part,
                    cm_load_counts *counts, cm_error *err)
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

static int load_cut(worker *w, cm_load_result *result, cm_error *err)
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

/* Adds the disk cache's hits, misses and evictions since they were last counted. */
static void count_disk(worker *w, cm_load_counts *counts)
{
    const bool own = w->arrays == &w->own;
    cm_disk_cache_counts *told = own ? &w->own_disk : &w->source->disk;
    pthread_mutex_lock(&w->source->lock);
    const cm_disk_cache_counts now = disk_counts(w->arrays);
    counts->disk_hits += now.hits - told->hits;
    counts->disk_misses += now.misses - told->misses;
    counts->disk_evictions += now.evictions - told->evictions;
    *told = now;
    pthread_mutex_unlock(&w->source->lock);
}

static int load(void *state, const cm_load_task *task, uint8_t *arena, cm_load_result *result,
                cm_error *err)
{
    worker *w = state;
    w->task = task;
    w->arena = arena;
    int rc = task->kind == CM_LOAD_CHUNK ? load_chunk(w, result, err)
             : task->kind == CM_LOAD_CUT ? load_cut(w, result, err)
                                         : load_batch(w, result, err);
    count_disk(w, &result->counts);
    return rc;
}

/* ---- the source ---- */

int cm_load_source_create(const cm_load_source_options *options, cm_load_source *out, cm_error *err)
{
    if (options->worker_threads < 1 || options->worker_threads > CM_LOAD_MAX_THREADS)
        return cm_fail(err, CM_EINVAL, "a worker has between 1 and %d threads",
                       CM_LOAD_MAX_THREADS);
    source *s = cm_calloc(1, sizeof(*s), err);
    if (s == NULL)
        return CM_ENOMEM;
    s->options = *options;
    cm_expecting_init(&s->expecting);
    pthread_mutex_init(&s->lock, NULL);
    *out = (cm_load_source){.context = s,
                            .open = open_worker,
                            .expect = expect,
                            .forget = forget,
                            .load = load,
                            .close = close_worker};
    return CM_OK;
}

void cm_load_source_release(cm_load_source *source_)
{
    source *s = source_->context;
    if (s != NULL) {
        cm_expecting_release(&s->expecting);
        pthread_mutex_destroy(&s->lock);
    }
    free(s);
    *source_ = (cm_load_source){0};
}
