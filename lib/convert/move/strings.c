/*
 * Arrays of variable-length elements, chunk by chunk.  How long the text of a
 * chunk is shows only when it is read: one thread moves the first, and from
 * that follows for how many threads there is memory.  Where a thread's part is
 * too small for a chunk fewer threads go on; what is too long for one is refused.
 */
#include <pthread.h>
#include <string.h>

#include "base/threads.h"
#include "convert/job.h"
#include "plan/meetings.h"

enum {
    /*
     * Of the memory one in so many parts is used: codecs unpack too, and buffers move as they
     * grow.
     */
    SPARE = 2,
    LEAST_TEXT = 4 << 20 /* of each of several threads */
};

/* One thread's. */
typedef struct mover {
    cm_codec_ctx *ctx;
    cm_buf stored;      /* a source chunk */
    cm_strings decoded; /* the same; target chunks of one source chunk often follow each other */
    uint64_t holds;     /* its number; UINT64_MAX: none */
    bool present;       /* it is stored; else its elements are the fill value */
    cm_strings read;    /* a target chunk, as far as it lies in the array */
    cm_strings padded;  /* the same, whole */
    cm_buf bytes;       /* the same, encoded */
    size_t budget;      /* for all of these */
} mover;

/* All threads'. */
typedef struct work {
    cm_job *job;
    cm_job_var *var;
    size_t budget; /* of one thread */
    uint64_t end;  /* chunks before this one are moved */
    _Atomic uint64_t next;
    pthread_mutex_t lock; /* guards the error */
    cm_error error;
} work;

static size_t held_by(const mover *m)
{
    return m->stored.capacity + m->bytes.capacity + cm_strings_memory(&m->decoded) +
           cm_strings_memory(&m->read) + cm_strings_memory(&m->padded);
}

/* Lets BUF, one of M's, grow into the memory that the others leave. */
static cm_buf *grant(const mover *m, cm_buf *buf)
{
    size_t held = held_by(m), room = m->budget > held ? m->budget - held : 0;
    buf->max_nbytes = buf->capacity + room + 1;
    return buf;
}

/* The places of NELEM elements come out of the budget first. */
static int reset(const mover *m, cm_strings *s, uint64_t nelem, cm_error *err)
{
    size_t held = held_by(m) - s->capacity * sizeof(s->ref[0]);
    if (nelem > (m->budget > held ? m->budget - held : 0) / sizeof(s->ref[0]))
        return cm_fail(err, CM_EBUDGET, "%llu elements are too many for the memory",
                       (unsigned long long)nelem);
    int rc = cm_strings_reset(s, nelem, err);
    grant(m, &s->arena);
    return rc;
}

static void release(mover *m)
{
    cm_buf_release(&m->stored);
    cm_strings_release(&m->decoded);
    cm_strings_release(&m->read);
    cm_strings_release(&m->padded);
    cm_buf_release(&m->bytes);
    m->holds = UINT64_MAX;
}

/* True when every element is the fill value, so that the chunk need not be there. */
static bool is_empty(const cm_job_var *v, const cm_strings *text)
{
    const char *fill = v->doc.meta.fill_text != NULL ? v->doc.meta.fill_text : "";
    size_t length = strlen(fill);
    for (size_t i = 0; v->doc.meta.has_fill && i < text->nelem; i++) {
        size_t nbytes;
        const char *p = cm_strings_get(text, i, &nbytes);
        if (nbytes != length || (length > 0 && memcmp(p, fill, length) != 0))
            return false;
    }
    return v->doc.meta.has_fill;
}

static int skip(cm_job_var *v, uint64_t number, cm_error *err)
{
    int rc = cm_zarr_writer_skip(v->move.writer, number, err);
    if (rc == CM_OK && (rc = cm_journal_skip(v->journal, v->index, number, err)) != CM_OK)
        cm_error_place(err, v->output);
    return rc;
}

/* ---- reading ---- */

/* Source chunk COORD, unless M has it. */
static int load_chunk(cm_job_var *v, const uint64_t *coord, mover *m, cm_error *err)
{
    cm_array *source = v->source->array;
    uint64_t number = cm_grid_number(&source->grid, coord);
    const uint64_t nelem = cm_grid_chunk_nelem(&source->grid, coord);
    cm_fetch fetch = {0};
    if (m->holds == number)
        return CM_OK;
    m->holds = UINT64_MAX;
    int rc = source->ops->fetch(source, number, grant(m, &m->stored), &fetch, err);
    if (rc != CM_OK)
        return rc;
    if (fetch.present)
        rc = reset(m, &m->decoded, nelem, err);
    if (rc == CM_OK && fetch.present)
        rc = cm_chain_decode_strings(cm_array_chain(source, fetch.chain), m->ctx, m->stored.data,
                                     m->stored.nbytes, &m->decoded, err);
    if (rc == CM_OK && fetch.present && m->decoded.nelem != nelem)
        rc = cm_fail(err, CM_EFORMAT, "has %zu elements instead of %llu", m->decoded.nelem,
                     (unsigned long long)nelem);
    if (rc != CM_OK) {
        cm_grid_explain(&source->grid, number, "array", v->name, err);
        cm_error_place(err, source->place);
        return rc;
    }
    m->present = fetch.present;
    m->holds = number;
    return CM_OK;
}

/* Copies what the chunk that M holds, at COORD, has of BOX. */
static int scatter(const cm_array *source, const uint64_t *coord, const cm_box *box, mover *m,
                   cm_error *err)
{
    const char *fill = source->fill_text != NULL ? source->fill_text : "";
    uint64_t at[CM_MAX_RANK] = {0}, shape[CM_MAX_RANK];
    cm_box covered, part;
    int rc = CM_OK;
    cm_grid_box(&source->grid, coord, &covered);
    cm_grid_chunk_shape(&source->grid, coord, shape);
    if (!cm_box_intersect(&covered, box, &part))
        return CM_OK;
    for (uint64_t k = cm_box_nelem(&part); rc == CM_OK && k > 0; k--) {
        uint64_t from = 0, to = 0;
        for (unsigned j = 0; j < source->rank; j++) {
            uint64_t index = part.start[j] + at[j];
            from = from * shape[j] + (index - covered.start[j]);
            to = to * box->shape[j] + (index - box->start[j]);
        }
        size_t nbytes = strlen(fill);
        const char *text = m->present ? cm_strings_get(&m->decoded, from, &nbytes) : fill;
        rc = cm_strings_set(&m->read, to, text, nbytes, err);
        for (unsigned j = source->rank; j-- > 0 && ++at[j] == part.shape[j];)
            at[j] = 0;
    }
    return rc;
}

static int read_box(cm_job_var *v, const cm_box *box, mover *m, cm_error *err)
{
    const cm_grid *grid = &v->source->array->grid;
    uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK], coord[CM_MAX_RANK], left = 1;
    int rc = reset(m, &m->read, cm_box_nelem(box), err);
    cm_grid_cover(grid, box, first, count);
    memcpy(coord, first, sizeof(coord));
    for (unsigned j = 0; j < grid->rank; j++)
        left *= count[j];
    for (; rc == CM_OK && left > 0; left--) {
        rc = load_chunk(v, coord, m, err);
        grant(m, &m->read.arena);
        if (rc == CM_OK)
            rc = scatter(v->source->array, coord, box, m, err);
        for (unsigned j = grid->rank; j-- > 0 && ++coord[j] == first[j] + count[j];)
            coord[j] = first[j];
    }
    return rc;
}

/* ---- writing ---- */

/* Chunks of a store are decoded here, one after the other; everything else comes by boxes. */
static int read_text(cm_job *job, cm_job_var *v, const cm_box *box, mover *m, cm_error *err)
{
    if (v->view.whole && !v->view.join && v->source->array->chunked)
        return read_box(v, box, m, err);
    int rc = reset(m, &m->read, cm_box_nelem(box), err);
    return rc == CM_OK ? cm_job_read_strings(job, v, box, false, &m->read, err) : rc;
}

static int encode(const cm_job_var *v, const uint64_t *coord, const cm_strings *whole, mover *m,
                  cm_error *err)
{
    char text[CM_MAX_RANK * 21];
    int rc = cm_chain_encode_strings(cm_zarr_writer_chain(v->move.writer), m->ctx, whole,
                                     grant(m, &m->bytes), err);
    /* Readers and writers say where; an encoder cannot. */
    if (rc != CM_OK && rc != CM_EBUDGET)
        cm_error_prefix(
            err, "variable %s: chunk %s", cm_job_name(v),
            cm_target_chunk_text(cm_zarr_writer_target(v->move.writer), coord, text, sizeof(text)));
    return rc;
}

static int recode_chunk(cm_job *job, cm_job_var *v, uint64_t number, const uint64_t *coord,
                        const cm_box *box, mover *m, cm_error *err)
{
    const cm_grid *grid = cm_zarr_writer_grid(v->move.writer);
    int rc = read_text(job, v, box, m, err);
    if (rc == CM_OK && v->doc.keeps_words && is_empty(v, &m->read))
        return skip(v, number, err);
    if (rc == CM_OK && cm_grid_is_edge(grid, coord))
        rc = reset(m, &m->padded, grid->chunk_nelem, err);
    if (rc == CM_OK && cm_grid_is_edge(grid, coord))
        rc = cm_strings_pad(grid, box, &m->read, &m->padded, err);
    if (rc == CM_OK)
        rc = encode(v, coord, cm_grid_is_edge(grid, coord) ? &m->padded : &m->read, m, err);
    return rc == CM_OK
               ? cm_zarr_writer_put(v->move.writer, number, m->bytes.data, m->bytes.nbytes, err)
               : rc;
}

static int pass_chunk(cm_job *job, cm_job_var *v, uint64_t number, const uint64_t *coord,
                      const cm_box *box, mover *m, cm_error *err)
{
    cm_fetch fetch = {0};
    int rc =
        v->source->array->ops->fetch(v->source->array, number, grant(m, &m->bytes), &fetch, err);
    if (rc == CM_OK && !fetch.present)
        return v->doc.fill_stays ? skip(v, number, err)
                                 : recode_chunk(job, v, number, coord, box, m, err);
    if (rc == CM_OK)
        rc = cm_zarr_writer_put(v->move.writer, number, m->bytes.data, m->bytes.nbytes, err);
    return rc;
}

static int move_chunk(cm_job *job, cm_job_var *v, uint64_t number, mover *m, cm_error *err)
{
    const cm_grid *grid = cm_zarr_writer_grid(v->move.writer);
    uint64_t coord[CM_MAX_RANK];
    char text[CM_MAX_RANK * 21];
    cm_box box;
    cm_grid_coord(grid, number, coord);
    cm_grid_box(grid, coord, &box);
    cm_monitor_at(job->options->monitor, v->name, number, "writing");
    int rc = CM_EBUDGET;
    /* Tries again with buffers that earlier chunks did not enlarge. */
    for (int attempt = 0; attempt < 2 && rc == CM_EBUDGET; attempt++) {
        if (attempt > 0)
            release(m);
        rc = v->doc.pass != CM_PASS_NOTHING ? pass_chunk(job, v, number, coord, &box, m, err)
                                            : recode_chunk(job, v, number, coord, &box, m, err);
    }
    if (rc == CM_OK)
        atomic_fetch_add(&v->moved.counts.delivered, 1);
    if (rc == CM_EBUDGET)
        cm_fail(
            err, CM_EBUDGET,
            "%s %s: chunk %s of the target: its text and that of the source chunks do not "
            "fit the memory; give more with `memory`, or choose smaller `chunks`",
            cm_job_noun(job), cm_job_name(v),
            cm_target_chunk_text(cm_zarr_writer_target(v->move.writer), coord, text, sizeof(text)));
    return rc;
}

/* The next chunk that is not done. */
static bool take(work *w, uint64_t *number)
{
    do
        *number = atomic_fetch_add(&w->next, 1);
    while (*number < w->end && cm_zarr_writer_is_delivered(w->var->move.writer, *number));
    return *number < w->end;
}

static void fail(work *w, const cm_error *err)
{
    pthread_mutex_lock(&w->lock);
    if (w->error.status == CM_OK)
        w->error = *err;
    pthread_mutex_unlock(&w->lock);
    atomic_store(&w->next, w->end);
}

static void note_text(work *w, const mover *m)
{
    size_t one = cm_strings_memory(&m->decoded), other = cm_strings_memory(&m->read);
    if (cm_strings_memory(&m->padded) > other)
        other = cm_strings_memory(&m->padded);
    size_t most = one > other ? one : other;
    pthread_mutex_lock(&w->lock);
    if (most > w->job->budget.text_nbytes)
        w->job->budget.text_nbytes = most;
    pthread_mutex_unlock(&w->lock);
}

static void worker_main(void *context, unsigned index)
{
    work *w = context;
    mover m = {.holds = UINT64_MAX, .budget = w->budget};
    cm_error err = {0};
    uint64_t number;
    (void)index;
    int rc = (m.ctx = cm_codec_ctx_create(&err)) == NULL ? CM_ENOMEM : CM_OK;
    while (rc == CM_OK && take(w, &number)) {
        if (cm_monitor_canceled(w->job->options->monitor))
            rc = cm_fail(&err, CM_ECANCELED, "stopped by request");
        else
            rc = move_chunk(w->job, w->var, number, &m, &err);
    }
    if (rc != CM_OK)
        fail(w, &err);
    note_text(w, &m);
    cm_codec_ctx_free(m.ctx);
    release(&m);
}

/* As many threads as were asked for, if each has room for twice what the first chunk took. */
static unsigned choose_threads(const cm_job *job, const cm_job_var *v, size_t room)
{
    uint64_t nchunks = cm_zarr_writer_grid(v->move.writer)->nchunks;
    uint64_t least = cm_add_sat(LEAST_TEXT, cm_mul_sat(2, job->budget.text_nbytes));
    unsigned n = cm_job_threads(job);
    if (nchunks < n)
        n = (unsigned)nchunks;
    while (n > 1 && room / n < least)
        n--;
    return n > 1 ? n : 1;
}

static int run(work *w, unsigned nthreads, size_t room, uint64_t end)
{
    w->budget = room / nthreads;
    w->end = end;
    w->error = (cm_error){0};
    atomic_store(&w->next, 0);
    cm_threads_run(nthreads, worker_main, w);
    return (int)w->error.status;
}

int cm_job_move_strings(cm_job *job, cm_job_var *v, cm_error *err)
{
    work w = {.job = job, .var = v};
    uint64_t nchunks = cm_zarr_writer_grid(v->move.writer)->nchunks;
    size_t shards = cm_zarr_writer_target(v->move.writer)->shard_nbytes;
    size_t room = (size_t)(job->budget.limit_nbytes - job->budget.held_nbytes) / SPARE;
    room = room > 2 * shards ? room - shards : room / 2;
    pthread_mutex_init(&w.lock, NULL);
    int rc = run(&w, 1, room, nchunks < 1 ? nchunks : 1);
    unsigned nthreads = choose_threads(job, v, room);
    for (bool again = rc == CM_OK; again; nthreads = (nthreads + 1) / 2) {
        rc = run(&w, nthreads, room, nchunks);
        again = rc == CM_EBUDGET && nthreads > 1;
    }
    pthread_mutex_destroy(&w.lock);
    if (rc != CM_OK && err != NULL)
        *err = w.error;
    return rc;
}
