#include "load/batches/load_source.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "load/batches/load_source_impl.h"

/* ---- arrays ---- */

static bool is_integer(const cm_dtype *t)
{
    return t->kind == CM_KIND_INT || t->kind == CM_KIND_UINT;
}

/* An integer may be taken for one of the other sign: _Unsigned of CF, "true" or "false". */
static bool can_be_taken_for(const cm_dtype *stored, const cm_dtype *taken)
{
    cm_dtype as_stored = *taken;
    if (is_integer(taken) && is_integer(stored))
        as_stored.kind = stored->kind;
    return cm_dtype_equal(&as_stored, stored);
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

static void close_arrays(cm_load_sharing *s, cm_load_arrays *arrays)
{
    cm_expecting_close(&s->expecting, arrays);
    if (s->options.opener.close != NULL)
        s->options.opener.close(s->options.opener.context, arrays);
    *arrays = (cm_load_arrays){0};
}

static int open_arrays(cm_load_sharing *s, cm_load_arrays *out, cm_error *err)
{
    *out = (cm_load_arrays){0};
    int rc = s->options.opener.open(s->options.opener.context, out, err);
    if (rc == CM_OK && (rc = check_arrays(out, err)) != CM_OK)
        close_arrays(s, out);
    return rc;
}

/* Arrays that the workers of this process share; the first worker opens them. */
static int join_arrays(cm_load_sharing *s, cm_load_arrays **out, cm_error *err)
{
    int rc = CM_OK;
    pthread_mutex_lock(&s->lock);
    if (s->pid != getpid())
        s->users = 0; /* the parent's: its files are not ours to close */
    if (s->users == 0)
        rc = open_arrays(s, &s->arrays, err);
    if (rc == CM_OK && s->users == 0)
        s->disk = cm_load_disk_counts(&s->arrays);
    if (rc == CM_OK) {
        s->pid = getpid();
        s->users++;
        *out = &s->arrays;
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

static void leave_arrays(cm_load_worker *w)
{
    cm_load_sharing *s = w->source;
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
static int read_fixed(cm_load_worker *w, cm_error *err)
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
    cm_load_worker *w = state;
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

static int fill_worker(cm_load_worker *w, cm_error *err)
{
    cm_load_sharing *s = w->source;
    const unsigned n = s->options.worker_threads;
    int rc;
    if (s->options.each_worker) {
        if ((rc = open_arrays(s, &w->own, err)) == CM_OK) {
            w->arrays = &w->own;
            w->own_disk = cm_load_disk_counts(&w->own);
        }
    } else
        rc = join_arrays(s, &w->arrays, err);
    if (rc != CM_OK)
        return rc;
    if ((w->hand = cm_calloc(n, sizeof(cm_load_hand), err)) == NULL)
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
    cm_load_worker *w = cm_calloc(1, sizeof(*w), err);
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

/* ---- the source ---- */

int cm_load_source_create(const cm_load_source_options *options, cm_load_source *out, cm_error *err)
{
    if (options->worker_threads < 1 || options->worker_threads > CM_LOAD_MAX_THREADS)
        return cm_fail(err, CM_EINVAL, "a worker has between 1 and %d threads",
                       CM_LOAD_MAX_THREADS);
    cm_load_sharing *s = cm_calloc(1, sizeof(*s), err);
    if (s == NULL)
        return CM_ENOMEM;
    s->options = *options;
    cm_expecting_init(&s->expecting);
    pthread_mutex_init(&s->lock, NULL);
    *out = (cm_load_source){.context = s,
                            .open = open_worker,
                            .expect = cm_load_expect,
                            .forget = cm_load_forget,
                            .load = cm_load_task_run,
                            .close = close_worker};
    return CM_OK;
}

void cm_load_source_release(cm_load_source *source_)
{
    cm_load_sharing *s = source_->context;
    if (s != NULL) {
        cm_expecting_release(&s->expecting);
        pthread_mutex_destroy(&s->lock);
    }
    free(s);
    *source_ = (cm_load_source){0};
}
