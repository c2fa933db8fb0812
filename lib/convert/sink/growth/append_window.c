/*
 * The part of each array that is written: rows of whole chunks along the dimension that grows,
 * those behind the old end and those of the old dataset that new elements touch.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "convert/sink/growth/append_repair.h"
#include "convert/sink/growth/append_source.h"
#include "format/multi/multi.h"

/* Elements of the old dataset, or rows of chunks, from FIRST to END. */
typedef struct range {
    uint64_t first, end;
} range;

typedef struct ranges {
    range *item;
    size_t n, capacity;
} ranges;

static int add_range(ranges *r, uint64_t first, uint64_t end, cm_error *err)
{
    if (r->n == r->capacity) {
        size_t capacity = r->capacity > 0 ? r->capacity * 2 : 16;
        range *more = realloc(r->item, capacity * sizeof(*more));
        if (more == NULL)
            return cm_fail(err, CM_ENOMEM, "no memory for the parts of a dimension");
        r->item = more;
        r->capacity = capacity;
    }
    r->item[r->n++] = (range){first, end};
    return CM_OK;
}

static int by_first(const void *a, const void *b)
{
    const range *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

/* Sorted, and those that meet are one. */
static void merge(ranges *r)
{
    size_t kept = 0;
    if (r->n > 0)
        qsort(r->item, r->n, sizeof(r->item[0]), by_first);
    for (size_t i = 0; i < r->n; i++) {
        if (kept > 0 && r->item[i].first <= r->item[kept - 1].end) {
            range *last = &r->item[kept - 1];
            last->end = r->item[i].end > last->end ? r->item[i].end : last->end;
        } else {
            r->item[kept++] = r->item[i];
        }
    }
    r->n = kept;
}

/* ---- the store and the source ---- */

static bool axis_of(const cm_variable *v, const char *dimension, unsigned *axis)
{
    *axis = cm_variable_dim(v, dimension);
    return *axis < v->rank;
}

static cm_job_var *job_var_of(cm_job *job, const char *name)
{
    for (size_t i = 0; i < job->nvars; i++)
        if (strcmp(job->var[i].name, name) == 0)
            return &job->var[i];
    return NULL;
}

/* New elements go into T as they are. */
static int check_fits(const cm_job_var *v, const cm_variable *t, unsigned axis, cm_error *err)
{
    char a[32], b[32];
    if (!cm_dtype_equal(&v->view.type, &t->dtype))
        return cm_fail(err, CM_EINVAL,
                       "variable %s: its elements would be %s, and are %s in the "
                       "store",
                       t->name, cm_dtype_name(&v->view.type, a, sizeof(a)),
                       cm_dtype_name(&t->dtype, b, sizeof(b)));
    bool same = v->view.rank == t->rank;
    for (unsigned j = 0; same && j < t->rank; j++)
        same = j == axis ? v->view.shape[j] >= t->shape[j] : v->view.shape[j] == t->shape[j];
    if (!same)
        return cm_fail(err, CM_EINVAL, "variable %s: its shape is not that of the store", t->name);
    if (v->view.converts || v->view.join)
        return cm_fail(err, CM_EINVAL, "variable %s: an append cannot change values", t->name);
    return CM_OK;
}

/* All arrays along the dimension have one length, in the store and in the source. */
static int check_length(cm_append_state *s, const cm_variable *t, const cm_job_var *v,
                        unsigned axis, cm_error *err)
{
    if (s->ngrown == 0) {
        s->was = t->shape[axis];
        s->length = v->view.shape[axis] - s->nheld;
        return CM_OK;
    }
    if (t->shape[axis] != s->was)
        return cm_fail(err, CM_EFORMAT,
                       "array %s: has %" PRIu64 " elements along %s, and other arrays %" PRIu64,
                       t->name, t->shape[axis], s->append->dimension, s->was);
    if (v->view.shape[axis] - s->nheld != s->length)
        return cm_fail(err, CM_EINVAL,
                       "variable %s: has %" PRIu64 " elements along %s, and others %" PRIu64,
                       t->name, v->view.shape[axis], s->append->dimension, s->length);
    return CM_OK;
}

static int check_all_known(const cm_job *job, const cm_append_state *s, cm_error *err)
{
    for (size_t i = 0; i < job->nvars; i++)
        if (cm_dataset_find(s->target, job->var[i].name) == NULL)
            return cm_fail(err, CM_EINVAL,
                           "variable %s: is not in the store to add to; `exclude` leaves it out",
                           job->var[i].name);
    return CM_OK;
}

/* ---- what is touched of the old dataset ---- */

/* Elements along the dimension that files give and the store has too. */
static int find_touched(const cm_job *job, const cm_append_state *s, ranges *out, cm_error *err)
{
    const cm_multi_spec *spec = cm_multi_spec_of(job->source);
    int rc = CM_OK;
    for (size_t i = 0; spec != NULL && rc == CM_OK && i < spec->nvars; i++) {
        const cm_multi_var *v = &spec->var[i];
        for (unsigned k = 0; k < v->naxes; k++) {
            if (strcmp(v->dim_name[v->axis[k]], s->append->dimension) != 0)
                continue;
            for (size_t p = 0; rc == CM_OK && p < v->nparts; p++) {
                const cm_multi_part *part = &v->part[p];
                uint64_t end = part->origin[k] + part->count[k];
                if (spec->file[part->file].open == NULL && part->origin[k] < s->was)
                    rc = add_range(out, part->origin[k], end < s->was ? end : s->was, err);
            }
        }
    }
    merge(out);
    return rc;
}

/* The rows of T's chunks that begin before the old end and do not stay as they are. */
static int rows_within(const cm_append_state *s, const cm_variable *t, unsigned axis,
                       const ranges *touched, ranges *out, cm_error *err)
{
    uint64_t chunk = t->words->chunk[axis];
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && !t->is_coordinate && i < touched->n; i++)
        rc = add_range(out, touched->item[i].first / chunk, (touched->item[i].end - 1) / chunk + 1,
                       err);
    if (rc == CM_OK && s->length > s->was && s->was % chunk != 0)
        rc = add_range(out, s->was / chunk, s->was / chunk + 1, err);
    merge(out);
    return rc;
}

/* ---- windows ---- */

typedef struct making {
    cm_job *job;
    cm_append_state *s;
    cm_job_var *var; /* the windows */
    size_t n, capacity;
} making;

static int describe(cm_job_var *w, const cm_variable *t, const cm_growth *g, cm_error *err)
{
    const cm_shard_spec *shard = cm_zarr_sharding(t->words);
    int rc = cm_zarr_meta_copy(t->words, &w->doc.meta, err);
    if (rc != CM_OK)
        return rc;
    memcpy(w->doc.meta.shape, w->view.shape, sizeof(w->doc.meta.shape));
    cm_repair_apply(g, &w->doc.meta);
    w->layout.sharded = shard != NULL;
    memcpy(w->layout.chunk, shard != NULL ? shard->chunk : w->doc.meta.chunk,
           sizeof(w->layout.chunk));
    memcpy(w->layout.shard, w->doc.meta.chunk, sizeof(w->layout.shard));
    w->doc.pass = CM_PASS_NOTHING;
    w->doc.keeps_words = true;
    return w->view.as_strings ? CM_OK
                              : cm_zarr_fill_survives(&w->doc.meta, &w->doc.fill_survives, err);
}

/* Rows FIRST to END of the chunks of V, which is array T of the store and grows by G. */
static int add_window(making *m, const cm_job_var *v, const cm_variable *t, const cm_growth *g,
                      range rows, unsigned phase, cm_error *err)
{
    const unsigned axis = g->axis;
    uint64_t chunk = g->chunk > 0 ? g->chunk : t->words->chunk[axis];
    uint64_t begin = rows.first * chunk, end = rows.end * chunk;
    if (m->n == m->capacity) {
        size_t capacity = m->capacity > 0 ? m->capacity * 2 : 16;
        cm_job_var *more = realloc(m->var, capacity * sizeof(*more));
        if (more == NULL)
            return cm_fail(err, CM_ENOMEM, "no memory for the chunks to be written");
        m->var = more;
        m->capacity = capacity;
    }
    cm_job_var *w = &m->var[m->n];
    memcpy(w, v, sizeof(*w));
    end = end < m->s->length ? end : m->s->length;
    w->name = cm_strdup(v->name, err);
    w->doc.meta = (cm_zarr_meta){0};
    /* Nothing of the store lies in such a window. */
    if (phase == CM_PHASE_BEYOND)
        cm_append_source_of(m->job, w);
    w->window.is_part = true;
    w->window.is_beyond = phase == CM_PHASE_BEYOND || g->chunk > 0;
    w->view.whole = false;
    w->window.phase = t->is_coordinate ? CM_PHASE_LABELS : phase;
    w->view.start[axis] = begin;
    w->view.shape[axis] = end - begin;
    w->window.at[axis] = begin;
    w->window.first_object[axis] = rows.first;
    m->n++;
    return w->name == NULL ? CM_ENOMEM : describe(w, t, g, err);
}

static int make_windows(making *m, const cm_job_var *v, const cm_variable *t, const cm_growth *g,
                        const ranges *touched, cm_error *err)
{
    cm_append_state *s = m->s;
    const unsigned axis = g->axis;
    uint64_t chunk = t->words->chunk[axis];
    uint64_t behind = s->was / chunk + (s->was % chunk != 0);
    uint64_t nrows = s->length / chunk + (s->length % chunk != 0);
    ranges within = {0};
    /* All of it, under names of its own. */
    if (g->chunk > 0)
        return add_window(m, v, t, g, (range){0, 1}, CM_PHASE_LABELS, err);
    int rc = rows_within(s, t, axis, touched, &within, err);
    if (rc == CM_OK && behind < nrows)
        rc = add_window(m, v, t, g, (range){behind, nrows}, CM_PHASE_BEYOND, err);
    for (size_t i = 0; rc == CM_OK && i < within.n; i++)
        rc = add_window(m, v, t, g, within.item[i], CM_PHASE_WITHIN, err);
    free(within.item);
    return rc;
}

static int grow_array(making *m, const cm_variable *t, const ranges *touched, cm_error *err)
{
    cm_append_state *s = m->s;
    cm_grown *g = &s->grown[s->ngrown];
    unsigned axis;
    if (!axis_of(t, s->append->dimension, &axis))
        return CM_OK;
    cm_job_var *v = job_var_of(m->job, t->name);
    if (t->unsupported != NULL || t->words == NULL || t->words->verbatim)
        return cm_fail(err, CM_EUNSUPPORTED, "array %s: cannot grow: %s", t->name,
                       t->unsupported != NULL ? t->unsupported : "it is not understood");
    if (cm_zarr_meta_is_cut(t->words))
        return cm_fail(err, CM_EUNSUPPORTED,
                       "array %s: cannot grow: its %s differ in length (a rectilinear chunk grid); "
                       "rechunk makes a store with a regular one",
                       t->name, t->is_sharded ? "shards" : "chunks");
    if (v == NULL)
        return cm_fail(err, CM_EINVAL,
                       "array %s: has the dimension %s, and is not among the variables that are "
                       "added",
                       t->name, s->append->dimension);
    int rc = check_fits(v, t, axis, err);
    if (rc == CM_OK)
        rc = check_length(s, t, v, axis, err);
    if (rc != CM_OK)
        return rc;
    *g = (cm_grown){.growth = {.path = t->name,
                               .axis = axis,
                               .was = s->was,
                               .length = s->length,
                               .in_place = s->was == s->length},
                    .first = m->n,
                    .source = v->source};
    s->ngrown++;
    if (s->append->replace != NULL)
        rc = cm_replace_check_given(m->job, s, v->source, err);
    if (rc == CM_OK)
        rc = cm_repair_choose(m->job, s, t, &g->growth, err);
    if (rc == CM_OK)
        rc = make_windows(m, v, t, &g->growth, touched, err);
    g->nwindows = m->n - g->first;
    return rc;
}

/* The length before anything is known of arrays: what files touch is counted by it. */
static int find_length(cm_append_state *s, cm_error *err)
{
    unsigned axis;
    for (size_t i = 0; i < s->target->nvars; i++)
        if (axis_of(&s->target->var[i], s->append->dimension, &axis)) {
            s->was = s->target->var[i].shape[axis];
            return CM_OK;
        }
    return cm_fail(err, CM_EINVAL, "no array of the store has the dimension %s",
                   s->append->dimension);
}

/*
 * The length at which the last chunk, or shard, of every array is full: one for all of them.
 * Coordinates do not count, whose chunks have room.
 */
static int hold_back(const cm_job *job, cm_append_state *s, cm_error *err)
{
    uint64_t unit = 1, length = 0;
    for (size_t i = 0; i < s->target->nvars; i++) {
        const cm_variable *t = &s->target->var[i];
        unsigned axis;
        const cm_job_var *v = job_var_of((cm_job *)(uintptr_t)job, t->name);
        if (v == NULL || t->words == NULL || !axis_of(t, s->append->dimension, &axis))
            continue;
        length = v->view.shape[axis];
        uint64_t chunk = t->words->chunk[axis];
        if (!t->is_coordinate && !cm_mul_u64(unit, chunk / cm_gcd_u64(unit, chunk), &unit))
            return cm_fail(err, CM_EUNSUPPORTED, "chunks of no common length along %s",
                           s->append->dimension);
    }
    s->nheld = length - s->was < length % unit ? length - s->was : length % unit;
    return CM_OK;
}

int cm_append_make_windows(cm_job *job, cm_append_state *s, cm_error *err)
{
    making m = {.job = job, .s = s};
    ranges touched = {0};
    int rc = check_all_known(job, s, err);
    if (rc == CM_OK)
        rc = find_length(s, err);
    if (rc == CM_OK && s->append->hold)
        rc = hold_back(job, s, err);
    if (rc == CM_OK && s->append->replace != NULL)
        rc = cm_replace_find_range(job, s, err);
    if (rc == CM_OK)
        rc = find_touched(job, s, &touched, err);
    s->grown = cm_calloc(s->target->nvars + 1, sizeof(s->grown[0]), err);
    if (rc == CM_OK && s->grown == NULL)
        rc = CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < s->target->nvars; i++)
        rc = grow_array(&m, &s->target->var[i], &touched, err);
    free(touched.item);
    /* From here on the job is its windows. */
    for (size_t i = 0; i < job->nvars; i++) {
        cm_zarr_meta_release(&job->var[i].doc.meta);
        cm_presence_release(&job->var[i].stored.presence);
        free(job->var[i].name);
    }
    free(job->var);
    job->var = m.var;
    job->nvars = m.n;
    return rc;
}

/* ---- what a run that was killed left ---- */

static int remove_rows(const cm_append_state *s, const cm_grown *g, range rows, cm_error *err)
{
    const cm_variable *t = cm_dataset_find(s->target, g->growth.path);
    uint64_t origin[CM_MAX_RANK] = {0};
    cm_zarr_meta meta = {0};
    cm_zarr_writer *writer = NULL;
    int rc = cm_zarr_meta_copy(t->words, &meta, err);
    meta.shape[g->growth.axis] = (rows.end - rows.first) * meta.chunk[g->growth.axis];
    origin[g->growth.axis] = rows.first;
    if (rc == CM_OK)
        rc = cm_zarr_writer_create(s->append->store, t->name, &meta, &writer, err);
    if (rc == CM_OK) {
        cm_zarr_writer_shift(writer, origin);
        rc = cm_zarr_writer_remove_all(writer, err);
    }
    cm_zarr_writer_free(writer);
    cm_zarr_meta_release(&meta);
    return rc;
}

int cm_append_remove_reach(const cm_append_state *s, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < s->ngrown && s->append->reach > s->length; i++) {
        const cm_grown *g = &s->grown[i];
        uint64_t chunk = cm_dataset_find(s->target, g->growth.path)->words->chunk[g->growth.axis];
        const range rows = {(s->length - 1) / chunk + 1, (s->append->reach - 1) / chunk + 1};
        if (s->length > 0 && rows.first < rows.end)
            rc = remove_rows(s, g, rows, err);
    }
    return rc;
}

void cm_append_state_release(cm_append_state *s)
{
    cm_dataset_close(s->target);
    free(s->grown);
    *s = (cm_append_state){0};
}
