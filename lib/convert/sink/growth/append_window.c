/*
 * The part of each array that is written: rows of whole chunks along the dimension that grows,
 * those behind the old end and those of the old dataset that new elements touch.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "convert/sink/growth/append_files.h"
#include "convert/sink/growth/append_lengths.h"
#include "convert/sink/growth/append_repair.h"
#include "convert/sink/growth/append_source.h"
#include "format/multi/multi.h"

typedef struct ranges {
    cm_row_range *item;
    size_t n;
} ranges;

static int add_range(ranges *r, uint64_t first, uint64_t end, cm_error *err)
{
    int rc = CM_GROW(r->item, r->n, err);
    if (rc == CM_OK)
        r->item[r->n++] = (cm_row_range){first, end};
    return rc;
}

static int by_first(const void *a, const void *b)
{
    const cm_row_range *x = a, *y = b;
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
            cm_row_range *last = &r->item[kept - 1];
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
                       "array %s: has %" PRIu64 " %s along %s, and other arrays %" PRIu64, t->name,
                       t->shape[axis], cm_of_count(t->shape[axis], "element", "elements"),
                       s->append->dimension, s->was);
    if (v->view.shape[axis] - s->nheld != s->length)
        return cm_fail(err, CM_EINVAL,
                       "variable %s: has %" PRIu64 " %s along %s, and others %" PRIu64, t->name,
                       v->view.shape[axis], cm_of_count(v->view.shape[axis], "element", "elements"),
                       s->append->dimension, s->length);
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
static int rows_within(const cm_append_state *s, const cm_variable *t, const cm_rows *rows,
                       const ranges *touched, ranges *out, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && !t->is_coordinate && i < touched->n; i++)
        rc = add_range(out, cm_rows_find(rows, touched->item[i].first),
                       cm_rows_find(rows, touched->item[i].end - 1) + 1, err);
    if (rc == CM_OK && s->length > s->was && cm_rows_first(rows, rows->nbefore) > s->was)
        rc = add_range(out, rows->nbefore - 1, rows->nbefore, err);
    merge(out);
    return rc;
}

/* ---- windows ---- */

typedef struct making {
    cm_job *job;
    cm_append_state *s;
    cm_job_var *var; /* the windows */
    size_t n;
} making;

/* ROW: the first of W. */
static int describe(cm_job_var *w, const cm_variable *t, const cm_grown *g, uint64_t row,
                    cm_error *err)
{
    const cm_shard_spec *shard = cm_zarr_sharding(t->words);
    int rc = cm_zarr_meta_copy(t->words, &w->doc.meta, err);
    w->doc.pass = CM_PASS_NOTHING;
    if (rc == CM_OK && g->rows.listed && g->growth.chunk == 0)
        rc = cm_append_set_lengths(g, row, w, err);
    if (rc != CM_OK)
        return rc;
    memcpy(w->doc.meta.shape, w->view.shape, sizeof(w->doc.meta.shape));
    cm_repair_apply(&g->growth, &w->doc.meta);
    w->layout.sharded = shard != NULL;
    memcpy(w->layout.chunk, shard != NULL ? shard->chunk : w->doc.meta.chunk,
           sizeof(w->layout.chunk));
    memcpy(w->layout.shard, w->doc.meta.chunk, sizeof(w->layout.shard));
    w->doc.keeps_words = true;
    return w->view.as_strings ? CM_OK
                              : cm_zarr_fill_survives(&w->doc.meta, &w->doc.fill_survives, err);
}

/* New elements by themselves: the files' chunks are the array's. */
static void read_files(const making *m, const cm_grown *g, cm_job_var *w)
{
    w->source = g->files;
    w->dataset = cm_append_files_dataset(m->s->files);
    w->view.start[g->growth.axis] = 0;
    w->view.whole = true;
}

/* Rows FIRST to END of the chunks of V, which is array T of the store and grows by G. */
static int add_window(making *m, const cm_job_var *v, const cm_variable *t, const cm_grown *g,
                      cm_row_range rows, unsigned phase, cm_error *err)
{
    const unsigned axis = g->growth.axis;
    const bool repairs = g->growth.chunk > 0;
    uint64_t begin = repairs ? 0 : cm_rows_first(&g->rows, rows.first);
    uint64_t end = repairs ? m->s->length : cm_rows_first(&g->rows, rows.end);
    if (CM_GROW(m->var, m->n, err) != CM_OK)
        return CM_ENOMEM;
    cm_job_var *w = &m->var[m->n];
    memcpy(w, v, sizeof(*w));
    end = end < m->s->length ? end : m->s->length;
    w->name = cm_strdup(v->name, err);
    w->doc.meta = (cm_zarr_meta){0};
    w->window.is_part = true;
    w->window.is_beyond = phase == CM_PHASE_BEYOND || repairs;
    w->view.whole = false;
    w->window.phase = t->is_coordinate ? CM_PHASE_LABELS : phase;
    memcpy(w->window.whole, w->view.shape, sizeof(w->window.whole));
    w->window.whole[axis] = m->s->length;
    w->view.start[axis] = begin;
    w->view.shape[axis] = end - begin;
    w->window.at[axis] = begin;
    w->window.first_object[axis] = rows.first;
    /* Nothing of the store lies in such a window. */
    if (phase == CM_PHASE_BEYOND && g->files != NULL)
        read_files(m, g, w);
    else if (phase == CM_PHASE_BEYOND)
        cm_append_source_of(m->job, w);
    m->n++;
    return w->name == NULL ? CM_ENOMEM : describe(w, t, g, rows.first, err);
}

/* Windows of ROWS: of several lengths, one for each run of the same, if they are made anew. */
static int add_rows(making *m, const cm_job_var *v, const cm_variable *t, const cm_grown *g,
                    cm_row_range rows, unsigned phase, cm_error *err)
{
    const bool stay = phase == CM_PHASE_BEYOND && g->files != NULL;
    int rc = CM_OK;
    for (uint64_t k = rows.first, end; rc == CM_OK && k < rows.end; k = end) {
        end = stay ? rows.end : cm_rows_alike(&g->rows, k, rows.end);
        rc = add_window(m, v, t, g, (cm_row_range){k, end}, phase, err);
    }
    return rc;
}

static int make_windows(making *m, const cm_job_var *v, const cm_variable *t, const cm_grown *g,
                        const ranges *touched, cm_error *err)
{
    const cm_row_range beyond = {g->rows.nbefore, g->rows.n};
    ranges within = {0};
    /* All of it, under names of its own. */
    if (g->growth.chunk > 0)
        return add_window(m, v, t, g, (cm_row_range){0, 1}, CM_PHASE_LABELS, err);
    int rc = rows_within(m->s, t, &g->rows, touched, &within, err);
    if (rc == CM_OK)
        rc = add_rows(m, v, t, g, beyond, CM_PHASE_BEYOND, err);
    for (size_t i = 0; rc == CM_OK && i < within.n; i++)
        rc = add_rows(m, v, t, g, within.item[i], CM_PHASE_WITHIN, err);
    free(within.item);
    return rc;
}

/* Limits of grids with chunks of several lengths. */
static int check_grid(const making *m, const cm_variable *t, unsigned axis, cm_error *err)
{
    const bool lists = cm_zarr_meta_lists(t->words, axis), is_cut = cm_zarr_meta_is_cut(t->words);
    if (!lists && !is_cut)
        return CM_OK;
    if (t->is_sharded || m->s->append->repository != NULL)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "array %s: cannot grow: its %s differ in length (a rectilinear chunk grid); "
                       "rechunk makes a store with a regular one",
                       t->name, t->is_sharded ? "shards" : "chunks");
    for (unsigned j = 0; j < t->rank; j++)
        if (j != axis && t->words->cuts[j] != NULL)
            return cm_fail(err, CM_EUNSUPPORTED,
                           "array %s: cannot grow: its chunks differ in length along %s (a "
                           "rectilinear chunk grid), and may along %s alone; rechunk makes a store "
                           "with a regular one",
                           t->name, t->dim_name[j] != NULL ? t->dim_name[j] : "another dimension",
                           m->s->append->dimension);
    if (m->job->options->part.on)
        return cm_fail(err, CM_EINVAL,
                       "`part`: array %s has a rectilinear chunk grid, to which one process adds",
                       t->name);
    return CM_OK;
}

static int grow_array(making *m, const cm_variable *t, const ranges *touched, cm_error *err)
{
    cm_append_state *s = m->s;
    cm_grown *g = &s->grown[s->ngrown];
    unsigned axis;
    if (!axis_of(t, s->append->dimension, &axis))
        return CM_OK;
    cm_job_var *v = job_var_of(m->job, t->name);
    if (v == NULL && s->append->replace != NULL)
        return cm_rewrite_leave(s->append, t->name, err);
    if (t->unsupported != NULL || t->words == NULL || t->words->verbatim)
        return cm_fail(err, CM_EUNSUPPORTED, "array %s: cannot grow: %s", t->name,
                       t->unsupported != NULL ? t->unsupported : "it is not understood");
    if (v == NULL)
        return cm_fail(err, CM_EINVAL,
                       "array %s: has the dimension %s, and is not among the variables that are "
                       "added; all arrays along it grow together",
                       t->name, s->append->dimension);
    int rc = check_grid(m, t, axis, err);
    if (rc == CM_OK)
        rc = check_fits(v, t, axis, err);
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
        rc = cm_append_choose_rows(m->job, s, v, t, g, err);
    if (rc == CM_OK)
        rc = cm_repair_choose(m->job, s, t, &g->growth, err);
    if (rc == CM_OK)
        rc = make_windows(m, v, t, g, touched, err);
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
        /* A chunk of its own is as long as what it takes. */
        if (cm_zarr_meta_lists(t->words, axis))
            continue;
        bool fills = !t->is_coordinate;
        int rc = fills && s->fills != NULL ? s->fills(s, t, &fills, err) : CM_OK;
        if (rc != CM_OK)
            return rc;
        if (fills && !cm_mul_u64(unit, chunk / cm_gcd_u64(unit, chunk), &unit))
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
    if (rc == CM_OK && s->append->replace == NULL && touched.n > 0) {
        s->first = touched.item[0].first;
        s->end = touched.item[touched.n - 1].end;
    }
    if (rc == CM_OK && s->append->replace == NULL)
        rc = cm_rewrite_check_given(job, s, err);
    free(touched.item);
    /* From here on the job is its windows. */
    cm_append_drop_vars(job);
    free(job->var);
    job->var = m.var;
    job->nvars = m.n;
    return rc;
}

void cm_append_drop_vars(cm_job *job)
{
    for (size_t i = 0; i < job->nvars; i++) {
        cm_zarr_meta_release(&job->var[i].doc.meta);
        cm_presence_release(&job->var[i].stored.presence);
        free(job->var[i].name);
    }
    job->nvars = 0;
}

void cm_append_state_release(cm_append_state *s)
{
    cm_append_files_free(s->files);
    for (size_t i = 0; i < s->ngrown; i++)
        cm_rows_release(&s->grown[i].rows);
    cm_dataset_close(s->target);
    free(s->grown);
    *s = (cm_append_state){0};
}
