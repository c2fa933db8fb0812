#include "convert/statistics/statistics.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "convert/select/rename.h"
#include "convert/select/subset.h"
#include "convert/statistics/statistics_impl.h"
#include "format/attr_value.h"
#include "format/missing.h"
#include "format/zarr/dataset.h"
#include "model/copy.h"

enum {
    BLOCK = CM_STATISTICS_BLOCK
};

/* ---- what is counted of a variable ---- */

static const char *text_of(const cm_json *attrs, const char *name)
{
    const char *text = cm_json_text(cm_json_member(attrs, name), NULL);
    return text != NULL ? text : "";
}

/* By the CF conventions, and by names where a dimension has no coordinate that says it. */
static bool is_vertical(cm_job *job, const cm_job_var *v, unsigned j)
{
    static const char *const NAMES[] = {
        "level",  "levels",   "lev",    "plev",  "pressure",    "pressure_level", "isobaricInhPa",
        "hybrid", "altitude", "height", "depth", "model_level", "isobaric"};
    const char *dim = v->source->dim_name[j];
    if (v->source->is_stack)
        return j == v->source->channel;
    if (dim == NULL)
        return false;
    for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
        if (strcasecmp(dim, NAMES[i]) == 0)
            return true;
    const cm_variable *c = cm_coordinate_of(job->source, v->source, dim, v->source->shape[j]);
    const cm_json *attrs = c != NULL ? c->attrs : NULL;
    const char *axis = text_of(attrs, "axis");
    return strcasecmp(axis, "z") == 0 || cm_json_has(attrs, "positive");
}

/* The values that xarray masks: the attributes', and the fill_value of version 2. */
static int find_rule(const cm_job_var *v, cm_tally_rule *rule, cm_error *err)
{
    const cm_zarr_meta *m = &v->doc.meta;
    uint8_t fill[8];
    return cm_missing_rule(&v->view.type, m->attrs, cm_zarr_missing(m, fill) ? fill : NULL, rule)
               ? CM_OK
               : cm_fail(
                     err, CM_EUNSUPPORTED,
                     "variable %s: more than %d values stand for missing ones, and `statistics` "
                     "cannot count it",
                     v->name, CM_TALLY_MAX_FILLS);
}

static int set_range(cm_job *job, cm_job_var *v, cm_statistics *s, bool *used, cm_error *err)
{
    for (unsigned j = 0; j < v->view.rank; j++)
        s->range.shape[j] = v->view.shape[j];
    s->range.rank = v->view.rank;
    for (size_t i = 0; i < job->options->statistics_range.n; i++) {
        cm_job_range r;
        int rc = cm_job_range_of(job, "`statistics_range`", job->options->statistics_range.text[i],
                                 v, &r, err);
        if (rc != CM_OK)
            return rc;
        if (!r.applies)
            continue;
        used[i] = true;
        s->range.start[r.dim] = r.lo;
        s->range.shape[r.dim] = r.hi - r.lo;
    }
    return CM_OK;
}

static bool is_counted(const cm_job_var *v)
{
    return !v->stored.as_objects && !v->view.as_strings && !v->source->is_coordinate &&
           !v->source->is_char && cm_tally_takes(&v->view.type) && v->view.rank > 0;
}

/* The dimension whose places are counted each by itself; -1: none.  *BY: it was asked for. */
static int find_level(cm_job *job, const cm_job_var *v, bool *by)
{
    const char *asked = job->options->statistics_by;
    for (unsigned j = 0; asked != NULL && j < v->view.rank && v->view.rank > 1; j++) {
        const char *dim = cm_job_dim_name(job, v->source, j);
        *by = *by || (dim != NULL && strcmp(dim, asked) == 0);
        if (dim != NULL && strcmp(dim, asked) == 0)
            return (int)j;
    }
    for (unsigned j = 0; j < v->view.rank && v->view.rank > 1; j++)
        if (is_vertical(job, v, j))
            return (int)j;
    return -1;
}

/* USED: which ranges were, and behind them the dimension that was asked for. */
static int add_variable(cm_job *job, cm_job_var *v, bool *used, cm_error *err)
{
    if (!is_counted(v))
        return CM_OK;
    cm_statistics *s = cm_calloc(1, sizeof(*s), err);
    if (s == NULL)
        return CM_ENOMEM;
    v->statistics = s;
    pthread_mutex_init(&s->lock, NULL);
    s->level = find_level(job, v, &used[job->options->statistics_range.n]);
    s->nlevels = s->level >= 0 ? v->view.shape[s->level] : 1;
    const int rc = find_rule(v, &s->rule, err);
    return rc == CM_OK ? set_range(job, v, s, used, err) : rc;
}

int cm_statistics_prepare(cm_job *job, const char *target, cm_error *err)
{
    const cm_texts *ranges = &job->options->statistics_range;
    bool *used = cm_calloc(ranges->n + 1, sizeof(*used), err);
    int rc = used == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK && target != NULL)
        rc = cm_statistics_check_place(job, target, err);
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        rc = add_variable(job, &job->var[i], used, err);
    for (size_t i = 0; rc == CM_OK && i < ranges->n; i++)
        if (!used[i])
            rc = cm_fail(err, CM_EINVAL,
                         "`statistics_range` %s: no variable that is counted has that dimension",
                         ranges->text[i]);
    const char *by = job->options->statistics_by;
    if (rc == CM_OK && by != NULL && !used[ranges->n])
        rc = cm_fail(err, CM_EINVAL,
                     "`statistics_by` %s: no variable that is counted has that dimension and "
                     "another",
                     by);
    free(used);
    return rc;
}

/* ---- chunks ---- */

/* Chunks at the same place of all dimensions but the level's have one number. */
static uint64_t place_of(const cm_statistics *s, const cm_grid *grid, const uint64_t *coord)
{
    uint64_t place = 0;
    for (unsigned j = 0; j < grid->rank; j++)
        if ((int)j != s->level)
            place = place * grid->count[j] + coord[j];
    return place;
}

uint64_t cm_statistics_block_length(const cm_statistics *s, uint64_t block)
{
    const uint64_t rest = s->nplaces - block * BLOCK;
    return rest < BLOCK ? rest : BLOCK;
}

static void free_leaves(cm_statistics_block *b)
{
    free(b->leaf);
    free(b->there);
    b->leaf = NULL;
    b->there = NULL;
}

/* The tally of LEVEL in the chunk at PLACE. */
static int keep(cm_statistics *s, uint64_t level, uint64_t place, const cm_tally *t, cm_error *err)
{
    const uint64_t number = place / BLOCK, n = cm_statistics_block_length(s, number);
    cm_statistics_block *b = &s->block[level * s->nblocks + number];
    int rc = CM_OK;
    pthread_mutex_lock(&s->lock);
    if (b->leaf == NULL && b->left > 0) {
        b->leaf = cm_calloc(n, sizeof(*b->leaf), err);
        b->there = b->leaf != NULL ? cm_calloc(n, sizeof(*b->there), err) : NULL;
    }
    if (b->left > 0 && b->there == NULL)
        rc = CM_ENOMEM;
    else if (b->left == 0 || b->there[place % BLOCK])
        rc = cm_fail(err, CM_EINTERNAL, "a chunk was counted twice");
    if (rc == CM_OK) {
        b->leaf[place % BLOCK] = *t;
        b->there[place % BLOCK] = true;
        if (--b->left == 0) {
            b->sum = cm_tally_tree(b->leaf, n);
            free_leaves(b);
        }
    }
    pthread_mutex_unlock(&s->lock);
    return rc;
}

/* One level of a chunk: runs of elements that lie side by side. */
typedef struct runs {
    const cm_grid *grid;
    cm_box box;    /* counted elements, from the chunk's origin; one level of it */
    unsigned last; /* dimensions from here on are one run */
    uint64_t nelem;
    int64_t stride[CM_MAX_RANK]; /* bytes */
} runs;

static void plan_runs(runs *r, size_t itemsize)
{
    const cm_grid *grid = r->grid;
    cm_strides_c(grid->rank, grid->chunk, itemsize, r->stride);
    r->last = grid->rank - 1;
    r->nelem = r->box.shape[r->last];
    while (r->last > 0 && r->box.shape[r->last] == grid->chunk[r->last]) {
        r->last--;
        r->nelem *= r->box.shape[r->last];
    }
}

static void sum_runs(const runs *r, const cm_tally_rule *rule, const uint8_t *data,
                     cm_tally_sum *sum)
{
    uint64_t at[CM_MAX_RANK] = {0};
    for (;;) {
        const uint8_t *from = data;
        for (unsigned j = 0; j < r->grid->rank; j++)
            from += (int64_t)(r->box.start[j] + (j < r->last ? at[j] : 0)) * r->stride[j];
        cm_tally_run(sum, rule, from, r->nelem);
        unsigned j = r->last;
        while (j-- > 0) {
            if (++at[j] < r->box.shape[j])
                break;
            at[j] = 0;
        }
        if (j == UINT_MAX)
            return;
    }
}

static cm_tally tally_runs(const runs *r, const cm_tally_rule *rule, const uint8_t *data)
{
    cm_tally out;
    cm_tally_sum sum;
    cm_tally_begin(&sum, NULL);
    sum_runs(r, rule, data, &sum);
    if (cm_tally_end(&sum, &out))
        return out;
    const double mean = out.mean + out.rest;
    cm_tally_begin(&sum, &mean);
    sum_runs(r, rule, data, &sum);
    (void)cm_tally_end(&sum, &out);
    return out;
}

/* The part of chunk COORD that is counted, from the chunk's origin; false: none. */
static bool counted_part(const cm_statistics *s, const cm_grid *grid, const uint64_t *coord,
                         cm_box *out)
{
    cm_box chunk;
    cm_grid_box(grid, coord, &chunk);
    *out = chunk;
    for (unsigned j = 0; j < grid->rank; j++) {
        const uint64_t lo = s->range.start[j], hi = lo + s->range.shape[j];
        const uint64_t from = chunk.start[j] > lo ? chunk.start[j] : lo;
        const uint64_t to =
            chunk.start[j] + chunk.shape[j] < hi ? chunk.start[j] + chunk.shape[j] : hi;
        if (from >= to)
            return false;
        out->start[j] = from - chunk.start[j];
        out->shape[j] = to - from;
    }
    return true;
}

static int see_chunk(void *context, uint64_t number, const uint8_t *data, cm_error *err)
{
    cm_job_var *v = context;
    cm_statistics *s = v->statistics;
    const uint64_t begin = cm_now_ns();
    const cm_grid *all = cm_zarr_writer_grid(v->move.writer);
    cm_grid own;
    uint64_t coord[CM_MAX_RANK], first = 0, n = 1;
    cm_box chunk, part;
    cm_grid_coord(all, number, coord);
    runs r = {.grid = cm_grid_around(all, coord, &own)};
    cm_grid_box(r.grid, coord, &chunk);
    if (s->level >= 0) {
        first = chunk.start[s->level];
        n = chunk.shape[s->level];
    }
    const bool any = counted_part(s, r.grid, coord, &part);
    int rc = CM_OK;
    for (uint64_t k = 0; k < n && rc == CM_OK; k++) {
        cm_tally t = cm_tally_empty();
        r.box = part;
        bool counts = any;
        if (s->level >= 0 && any) {
            counts = k >= part.start[s->level] && k - part.start[s->level] < part.shape[s->level];
            r.box.start[s->level] = k;
            r.box.shape[s->level] = 1;
        }
        if (counts && data == NULL)
            t = cm_tally_of_one(&s->rule, v->doc.meta.fill, cm_box_nelem(&r.box));
        if (counts && data != NULL) {
            plan_runs(&r, v->view.type.nbytes);
            t = tally_runs(&r, &s->rule, data);
        }
        rc = keep(s, first + k, place_of(s, r.grid, coord), &t, err);
    }
    atomic_fetch_add(&s->ns, cm_now_ns() - begin);
    return rc;
}

int cm_statistics_measure(cm_job_var *v, cm_error *err)
{
    cm_statistics *s = v->statistics;
    cm_grid grid;
    int rc = cm_zarr_meta_grid(&v->doc.meta, &grid, err);
    s->nplaces = 1;
    for (unsigned j = 0; rc == CM_OK && j < grid.rank; j++)
        if ((int)j != s->level)
            s->nplaces *= grid.count[j];
    s->nblocks = s->nplaces > 0 ? (s->nplaces + BLOCK - 1) / BLOCK : 0;
    return rc;
}

static void reset(cm_statistics *s)
{
    for (uint64_t i = 0; s->block != NULL && i < s->nblocks * s->nlevels; i++)
        free_leaves(&s->block[i]);
    free(s->block);
    s->block = NULL;
}

int cm_statistics_watch(cm_job_var *v, cm_error *err)
{
    cm_statistics *s = v->statistics;
    int rc = cm_statistics_measure(v, err);
    if (rc != CM_OK)
        return rc;
    reset(s);
    s->block = cm_calloc(s->nblocks * s->nlevels + 1, sizeof(s->block[0]), err);
    if (s->block == NULL)
        return CM_ENOMEM;
    for (uint64_t i = 0; i < s->nblocks * s->nlevels; i++)
        s->block[i].left = (uint32_t)cm_statistics_block_length(s, i % s->nblocks);
    v->move.transfer.see = see_chunk;
    v->move.transfer.see_context = v;
    return CM_OK;
}

uint64_t cm_statistics_nbytes(const cm_job *job)
{
    uint64_t total = 0;
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_statistics *s = job->var[i].statistics;
        if (s != NULL)
            total += s->nlevels * (s->nplaces * (sizeof(cm_tally) + sizeof(bool)) +
                                   s->nblocks * sizeof(cm_statistics_block));
    }
    return total;
}

/* Of a variable that the source stores nothing of, no chunk came by. */
static cm_tally of_nothing(const cm_job_var *v)
{
    const cm_statistics *s = v->statistics;
    uint64_t nelem = cm_box_nelem(&s->range);
    if (s->level >= 0 && s->range.shape[s->level] > 0)
        nelem /= s->range.shape[s->level];
    return cm_tally_of_one(&s->rule, v->doc.meta.fill, nelem);
}

int cm_statistics_level(const cm_job_var *v, uint64_t level, cm_tally *out, cm_error *err)
{
    const cm_statistics *s = v->statistics;
    const cm_statistics_block *b = s->block != NULL ? &s->block[level * s->nblocks] : NULL;
    double scale = 1, offset = 0;
    const uint64_t from = s->level >= 0 ? s->range.start[s->level] : 0;
    const uint64_t n = s->level >= 0 ? s->range.shape[s->level] : 1;
    *out = cm_tally_empty();
    if (s->heard && !v->move.absent) {
        int rc = cm_statistics_join(v, level, out, err);
        if (rc != CM_OK)
            return rc;
    }
    if (v->move.absent && level >= from && level - from < n)
        *out = of_nothing(v);
    if (!v->move.absent && !s->heard) {
        cm_tally *sum = cm_calloc(s->nblocks + 1, sizeof(*sum), err);
        if (sum == NULL)
            return CM_ENOMEM;
        for (uint64_t i = 0; i < s->nblocks; i++) {
            if (b[i].left > 0) {
                free(sum);
                return cm_fail(err, CM_EINTERNAL, "variable %s: a chunk was not counted", v->name);
            }
            sum[i] = b[i].sum;
        }
        *out = cm_tally_tree(sum, s->nblocks);
        free(sum);
    }
    (void)cm_attr_number(cm_json_member(v->doc.meta.attrs, "scale_factor"), &scale);
    (void)cm_attr_number(cm_json_member(v->doc.meta.attrs, "add_offset"), &offset);
    if (scale != 1 || offset != 0)
        *out = cm_tally_unpacked(out, scale, offset);
    return CM_OK;
}

void cm_statistics_free(cm_statistics *s)
{
    if (s == NULL)
        return;
    reset(s);
    free(s->node);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
