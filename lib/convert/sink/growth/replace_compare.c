/*
 * Changes that a replacement makes: compares elements of the store with those of the files before
 * anything is written.  In a resumed run, the part that was written before has its new elements
 * already.  Old elements that cannot be read, as of a file that was delivered again, need not be:
 * whole chunks are replaced without them, and their changes stay uncounted.
 */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/threads.h"
#include "convert/sink/growth/append.h"
#include "format/packing.h"
#include "model/convert.h"

enum {
    MAX_NBYTES = 32 << 20, /* of a box of one thread, twice */
    MIN_NBYTES = 1 << 16,
    TEXT_NBYTES = 64 /* that an element of text is taken for */
};

typedef struct comparing {
    cm_job *job;
    cm_append_state *s;
    cm_grown *grown;
    cm_variable *target;
    cm_packing packing;
    cm_box all; /* what is replaced of the array */
    uint64_t shape[CM_MAX_RANK], count[CM_MAX_RANK], nboxes;
    _Atomic uint64_t next;
    pthread_mutex_t lock; /* guards grown and: */
    cm_error error;
    uint64_t unread; /* the first box of the store that could not be read; NBOXES: none */
    cm_error why;
} comparing;

/* ---- boxes ---- */

static uint64_t least_of(const cm_variable *t, unsigned j)
{
    const cm_shard_spec *shard = cm_zarr_sharding(t->words);
    return shard != NULL ? shard->chunk[j] : t->words->chunk[j];
}

/* Whole cross-sections where they fit; else halves of the longest side, chunks before elements. */
static void cut(comparing *c, size_t itemsize, uint64_t most)
{
    const unsigned axis = c->grown->growth.axis;
    const cm_box *all = &c->all;
    memcpy(c->shape, all->shape, sizeof(c->shape));
    for (;;) {
        cm_box box = {.rank = all->rank};
        unsigned longest = axis;
        bool above = c->shape[axis] > least_of(c->target, axis);
        memcpy(box.shape, c->shape, sizeof(box.shape));
        if (cm_box_nelem(&box) <= most / itemsize || cm_box_nelem(&box) == 1)
            break;
        for (unsigned j = 0; !above && j < all->rank; j++)
            longest = c->shape[j] > c->shape[longest] ? j : longest;
        c->shape[longest] = (c->shape[longest] + 1) / 2;
    }
    c->nboxes = 1;
    for (unsigned j = 0; j < all->rank; j++) {
        c->count[j] = cm_div_ceil(all->shape[j], c->shape[j]);
        c->nboxes *= c->count[j];
    }
}

static cm_box box_at(const comparing *c, uint64_t i)
{
    cm_box box = {.rank = c->all.rank};
    for (unsigned j = box.rank; j-- > 0;) {
        uint64_t at = i % c->count[j] * c->shape[j], left = c->all.shape[j] - at;
        i /= c->count[j];
        box.start[j] = c->all.start[j] + at;
        box.shape[j] = left < c->shape[j] ? left : c->shape[j];
    }
    return box;
}

/* ---- elements ---- */

typedef struct found {
    uint64_t nchanged;
    double largest;
    bool unread; /* the last error is of reading the store */
} found;

static bool is_fill(const cm_variable *v, const uint8_t *element)
{
    return v->has_fill_value && memcmp(element, v->fill_value, v->dtype.nbytes) == 0;
}

/* By how much; NaN where one of them is no number.  Integers of eight bytes exceed a double. */
static double change_of(const comparing *c, const uint8_t *was, const uint8_t *now)
{
    const cm_dtype *type = &c->packing.type;
    if (!cm_dtype_is_number(type) || is_fill(c->target, was) || is_fill(c->target, now))
        return NAN;
    double by = cm_element_to_double(type, now) - cm_element_to_double(type, was);
    if (type->nbytes == 8 && type->kind != CM_KIND_FLOAT) {
        uint64_t a, b;
        memcpy(&a, was, sizeof(a));
        memcpy(&b, now, sizeof(b));
        bool less = type->kind == CM_KIND_INT ? (int64_t)a < (int64_t)b : a < b;
        by = (double)(less ? b - a : a - b);
    }
    by = fabs(c->packing.packed ? by * c->packing.scale : by);
    return isfinite(by) ? by : NAN;
}

static int compare_numbers(comparing *c, const cm_box *box, cm_buf *was, cm_buf *now, found *f,
                           cm_error *err)
{
    size_t itemsize = c->target->dtype.nbytes;
    uint64_t nelem = cm_box_nelem(box);
    int rc = cm_buf_resize(was, nelem * itemsize, err);
    if (rc == CM_OK)
        rc = cm_buf_resize(now, nelem * itemsize, err);
    if (rc == CM_OK) {
        rc = cm_dataset_read(c->s->target, c->target, box, was->data, err);
        f->unread = rc != CM_OK;
    }
    if (rc == CM_OK)
        rc = cm_dataset_read(c->job->source, c->grown->source, box, now->data, err);
    if (rc != CM_OK || memcmp(was->data, now->data, nelem * itemsize) == 0)
        return rc;
    for (uint64_t i = 0; i < nelem; i++) {
        const uint8_t *a = was->data + i * itemsize, *b = now->data + i * itemsize;
        if (memcmp(a, b, itemsize) == 0)
            continue;
        f->nchanged++;
        f->largest = fmax(f->largest, change_of(c, a, b));
    }
    return rc;
}

static int compare_strings(comparing *c, const cm_box *box, cm_strings *was, cm_strings *now,
                           found *f, cm_error *err)
{
    int rc = cm_dataset_read_strings(c->s->target, c->target, box, was, err);
    f->unread = rc != CM_OK;
    if (rc == CM_OK)
        rc = cm_dataset_read_strings(c->job->source, c->grown->source, box, now, err);
    for (uint64_t i = 0; rc == CM_OK && i < cm_box_nelem(box); i++) {
        size_t nwas, nnow;
        const char *a = cm_strings_get(was, i, &nwas), *b = cm_strings_get(now, i, &nnow);
        f->nchanged += nwas != nnow || (nwas > 0 && memcmp(a, b, nwas) != 0);
    }
    return rc;
}

static int compare_box(comparing *c, uint64_t i, cm_buf *numbers, cm_strings *texts, found *f,
                       cm_error *err)
{
    const cm_box box = box_at(c, i);
    if (cm_monitor_canceled(c->job->options->monitor))
        return cm_fail(err, CM_ECANCELED, "stopped by request");
    return c->target->dtype.kind >= CM_KIND_STRING
               ? compare_strings(c, &box, &texts[0], &texts[1], f, err)
               : compare_numbers(c, &box, &numbers[0], &numbers[1], f, err);
}

/* Box I, at which a worker ends: its error, or why the array's changes are not counted. */
static void note_end(comparing *c, uint64_t i, const found *f, const cm_error *err)
{
    if (f->unread && err->status == CM_EFORMAT) {
        c->why = i < c->unread ? *err : c->why;
        c->unread = i < c->unread ? i : c->unread;
    } else if (c->error.status == CM_OK) {
        c->error = *err;
    }
    atomic_store(&c->next, c->nboxes);
}

static void worker_main(void *context, unsigned index)
{
    comparing *c = context;
    cm_buf numbers[2] = {{0}, {0}};
    cm_strings texts[2] = {{0}, {0}};
    cm_error err = {0};
    found f = {.largest = NAN};
    uint64_t i = 0;
    int rc = CM_OK;
    (void)index;
    while (rc == CM_OK && (i = atomic_fetch_add(&c->next, 1)) < c->nboxes)
        rc = compare_box(c, i, numbers, texts, &f, &err);
    pthread_mutex_lock(&c->lock);
    c->grown->nchanged += f.nchanged;
    c->grown->largest = fmax(c->grown->largest, f.largest);
    if (rc != CM_OK)
        note_end(c, i, &f, &err);
    pthread_mutex_unlock(&c->lock);
    for (int k = 0; k < 2; k++) {
        cm_buf_release(&numbers[k]);
        cm_strings_release(&texts[k]);
    }
}

/*
 * Nobody needs what cannot be read where all chunks of the array are replaced as a whole.  Others
 * would be read while data move, when the store is half changed.
 */
static int settle_unread(comparing *c, cm_error *err)
{
    const cm_grown *g = c->grown;
    uint64_t first = c->s->first, end = c->s->end;
    if (c->unread == c->nboxes)
        return CM_OK;
    for (size_t i = 0; i < g->nwindows; i++) {
        const cm_view *w = &c->job->var[g->first + i].view;
        const uint64_t start = w->start[g->growth.axis], n = w->shape[g->growth.axis];
        first = start < first ? start : first;
        end = start + n > end ? start + n : end;
    }
    c->grown->unread = first == c->s->first && end == c->s->end;
    if (c->grown->unread)
        return cm_job_warn(c->job, err, "array %s: changes are not counted: %s", c->target->name,
                           c->why.text);
    if (err != NULL)
        *err = c->why;
    cm_error_suffix(err, "; `replace` %s=%" PRIu64 ":%" PRIu64 ", of whole chunks, reads none",
                    c->s->append->dimension, first, end);
    return (int)c->why.status;
}

static int compare_array(comparing *c, cm_error *err)
{
    const cm_variable *t = c->target;
    unsigned n = cm_job_threads(c->job), axis = c->grown->growth.axis;
    uint64_t most = c->job->budget.limit_nbytes / 8 / (n > 0 ? n : 1);
    most = most > MAX_NBYTES ? MAX_NBYTES : most < MIN_NBYTES ? MIN_NBYTES : most;
    c->all.rank = t->rank;
    memcpy(c->all.shape, t->shape, sizeof(c->all.shape));
    c->all.start[axis] = c->s->first;
    c->all.shape[axis] = c->s->end - c->s->first;
    c->packing = cm_packing_of(t);
    if (cm_box_nelem(&c->all) == 0)
        return CM_OK;
    cut(c, t->dtype.kind >= CM_KIND_STRING ? TEXT_NBYTES : t->dtype.nbytes, most);
    c->unread = c->nboxes;
    cm_threads_run(n < c->nboxes ? n : (unsigned)c->nboxes, worker_main, c);
    if (c->error.status != CM_OK && err != NULL)
        *err = c->error;
    return c->error.status == CM_OK ? settle_unread(c, err) : (int)c->error.status;
}

static int compare_one(cm_job *job, cm_append_state *s, cm_grown *g, cm_variable *t, cm_error *err)
{
    comparing c = {.job = job, .s = s, .grown = g, .target = t};
    g->largest = NAN;
    int rc = cm_dataset_prepare(s->target, t, err);
    pthread_mutex_init(&c.lock, NULL);
    if (rc == CM_OK)
        rc = compare_array(&c, err);
    pthread_mutex_destroy(&c.lock);
    cm_dataset_unprepare(s->target, t);
    return rc;
}

int cm_replace_compare(cm_job *job, cm_append_state *s, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < s->ngrown; i++) {
        cm_variable *t = cm_dataset_find(s->target, s->grown[i].growth.path);
        if (t != NULL)
            rc = compare_one(job, s, &s->grown[i], t, err);
    }
    s->compared = rc == CM_OK;
    return rc;
}
