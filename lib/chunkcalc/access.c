/*
 * Reads of a log, grouped by their shape: each group is one way of reading, weighed by how many
 * reads it has.  More shapes than the optimiser takes end in one last group of all sorts.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/number.h"
#include "chunkcalc/access_dataset.h"
#include "chunkcalc/chunkcalc.h"

enum {
    MOST_PLACES = 2048, /* that the search looks at, of each dimension of all groups together */
    LEAST_PLACES = 64   /* of one group */
};

typedef struct group {
    size_t first, n; /* in `order` */
    double nelem;    /* of all its boxes */
} group;

struct cm_calc_access {
    cm_access_log *log;
    cm_access_reads reads;
    size_t *order; /* reads, group after group */
    group of[CM_MAX_READS];
    size_t ngroups;
    cm_touch_place *place[CM_MAX_READS][CM_MAX_RANK];
};

void cm_calc_access_free(struct cm_calc_access *a)
{
    if (a == NULL)
        return;
    for (size_t i = 0; i < CM_MAX_READS; i++)
        for (unsigned j = 0; j < CM_MAX_RANK; j++)
            free(a->place[i][j]);
    free(a->order);
    cm_access_reads_release(&a->reads);
    cm_access_log_free(a->log);
    free(a);
}

/* ---- the log ------------------------------------------------------------------------------- */

static int say_changes(cm_calc *c, const cm_variable *v, const cm_dataset *ds, cm_error *err)
{
    const struct cm_calc_access *a = c->access;
    const char *log = c->options->access;
    cm_store *store = cm_dataset_store(ds);
    cm_access_array array;
    char text[512] = "";
    int rc = CM_OK;
    enum {
        COMPARED = 16
    };

    if (a->reads.rechunked)
        return cm_calc_note(c, err, "%s: %s had other chunks when it was recorded", log,
                            cm_calc_label(v->name));
    if (store != NULL && cm_access_array_of(v, &array))
        rc = cm_access_compare(a->log, &array, store, COMPARED, text, sizeof text, err);
    if (rc == CM_OK && text[0] != '\0')
        rc =
            cm_calc_warn(c, err, "%s: %s: the store changed since the log was recorded", log, text);
    if (rc == CM_OK && !a->reads.wanted)
        rc = cm_calc_note(c, err,
                          "%s says which chunks were read, not which of their elements were "
                          "wanted: smaller chunks may suit better than it can tell",
                          log);
    return rc;
}

int cm_calc_access_open(cm_calc *c, const cm_dataset *ds, const char **name, cm_error *err)
{
    cm_variable *v;
    c->access = cm_calloc(1, sizeof *c->access, err);
    if (c->access == NULL)
        return CM_ENOMEM;
    int rc = cm_access_log_open(c->options->access, &c->access->log, err);
    if (rc == CM_OK)
        rc = cm_access_choose(c->access->log, ds, c->options->variable, &v, &c->access->reads, err);
    if (rc != CM_OK)
        return rc;
    const cm_access_reads *r = &c->access->reads;
    const unsigned cpus = cm_cpu_count();
    c->report->access = (cm_chunkcalc_access){
        .reads = r->n,
        .together = r->together,
        .processes = r->nprocesses,
        .streams = r->together < cpus ? r->together : cpus,
        .seconds = r->seconds,
        .requests = r->nrequests,
        .stored_nbytes = r->stored_nbytes,
        .wanted = r->wanted,
    };
    *name = v->name;
    return say_changes(c, v, ds, err);
}

/* ---- groups -------------------------------------------------------------------------------- */

static int compare_shapes(const void *x, const void *y, void *context)
{
    const cm_access_reads *r = context;
    const size_t a = *(const size_t *)x, b = *(const size_t *)y;
    const uint64_t *p = &r->box[a * 2 * r->rank + r->rank], *q = &r->box[b * 2 * r->rank + r->rank];
    for (unsigned j = 0; j < r->rank; j++)
        if (p[j] != q[j])
            return p[j] < q[j] ? -1 : 1;
    return (a > b) - (a < b);
}

static bool same_shape(const cm_access_reads *r, size_t a, size_t b)
{
    return memcmp(&r->box[a * 2 * r->rank + r->rank], &r->box[b * 2 * r->rank + r->rank],
                  r->rank * sizeof *r->box) == 0;
}

static double nelem_of(const cm_access_reads *r, size_t i)
{
    double nelem = 1;
    for (unsigned j = 0; j < r->rank; j++)
        nelem *= (double)r->box[i * 2 * r->rank + r->rank + j];
    return nelem;
}

static int by_elements(const void *x, const void *y)
{
    const group *a = x, *b = y;
    if (a->nelem != b->nelem)
        return a->nelem > b->nelem ? -1 : 1;
    return (a->first > b->first) - (a->first < b->first);
}

/* All groups of one shape, those that read most first, into *OUT. */
static int find_groups(struct cm_calc_access *a, group **out, size_t *n, cm_error *err)
{
    const cm_access_reads *r = &a->reads;
    group *g = cm_calloc(r->n, sizeof *g, err);
    a->order = cm_calloc(r->n, sizeof *a->order, err);
    *out = g;
    *n = 0;
    if (g == NULL || a->order == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < r->n; i++)
        a->order[i] = i;
    qsort_r(a->order, r->n, sizeof *a->order, compare_shapes, (void *)r);
    for (size_t i = 0; i < r->n; i++) {
        if (i == 0 || !same_shape(r, a->order[i - 1], a->order[i]))
            g[(*n)++].first = i;
        g[*n - 1].n++;
        g[*n - 1].nelem += nelem_of(r, a->order[i]);
    }
    qsort(g, *n, sizeof *g, by_elements);
    return CM_OK;
}

/* The groups of the calculation: the first ones, and the others as one. */
static int make_groups(struct cm_calc_access *a, cm_error *err)
{
    group *all;
    size_t n, at = 0;
    int rc = find_groups(a, &all, &n, err);
    size_t *order = rc == CM_OK ? cm_calloc(a->reads.n, sizeof *order, err) : NULL;
    if (order == NULL) {
        free(all);
        return CM_ENOMEM;
    }
    for (size_t i = 0; i < n; i++) {
        const size_t to = i < CM_MAX_READS ? i : CM_MAX_READS - 1;
        if (i == to)
            a->of[to].first = at;
        a->of[to].n += all[i].n;
        a->of[to].nelem += all[i].nelem;
        a->ngroups = to + 1;
        memcpy(&order[at], &a->order[all[i].first], all[i].n * sizeof *order);
        at += all[i].n;
    }
    free(all);
    free(a->order);
    a->order = order;
    return CM_OK;
}

/* ---- where reads lie ----------------------------------------------------------------------- */

static int compare_places(const void *x, const void *y)
{
    const cm_touch_place *a = x, *b = y;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return (a->count > b->count) - (a->count < b->count);
}

/* Equal places become one; of more than MOST every so many stand for those beside them. */
static size_t merge_places(cm_touch_place *p, size_t n, size_t most)
{
    size_t kept = 0;
    qsort(p, n, sizeof *p, compare_places);
    for (size_t i = 0; i < n; i++)
        if (kept > 0 && compare_places(&p[kept - 1], &p[i]) == 0)
            p[kept - 1].weight += p[i].weight;
        else
            p[kept++] = p[i];
    if (kept <= most)
        return kept;
    for (size_t i = 0; i < most; i++) {
        const size_t from = i * kept / most, to = (i + 1) * kept / most;
        uint64_t weight = 0;
        for (size_t k = from; k < to; k++)
            weight += p[k].weight;
        p[i] = p[from + (to - from) / 2]; /* never before I */
        p[i].weight = weight;
    }
    return most;
}

static int place_group(cm_calc *c, size_t g, cm_error *err)
{
    struct cm_calc_access *a = c->access;
    const cm_access_reads *r = &a->reads;
    const group *of = &a->of[g];
    const size_t most = cm_max_u64(MOST_PLACES / a->ngroups, LEAST_PLACES);
    for (unsigned j = 0; j < r->rank; j++) {
        cm_touch_place *p = cm_calloc(of->n, sizeof *p, err);
        if (p == NULL)
            return CM_ENOMEM;
        a->place[g][j] = p;
        for (size_t i = 0; i < of->n; i++) {
            const uint64_t *box = &r->box[a->order[of->first + i] * 2 * r->rank];
            p[i] = (cm_touch_place){.first = box[j], .count = box[r->rank + j], .weight = 1};
        }
        c->reads[g].place[j] = p;
        c->reads[g].nplaces[j] = merge_places(p, of->n, most);
    }
    return CM_OK;
}

/* A read as long as the longest of the group, for what asks for one shape. */
static int describe_group(cm_calc *c, size_t g, cm_error *err)
{
    const struct cm_calc_access *a = c->access;
    const cm_access_reads *r = &a->reads;
    const group *of = &a->of[g];
    cm_chunkcalc_read *read = &c->report->read[g];
    for (unsigned j = 0; j < r->rank; j++) {
        for (size_t i = 0; i < of->n; i++)
            read->sample[j] = cm_max_u64(
                read->sample[j], r->box[a->order[of->first + i] * 2 * r->rank + r->rank + j]);
        read->step[j] = 1;
        c->reads[g].sample[j] = read->sample[j];
        c->reads[g].step[j] = 1;
    }
    read->weight = c->reads[g].weight = (double)of->n;
    read->nbytes = of->nelem / (double)of->n * (double)c->report->itemsize;
    read->text = cm_calc_shape_text(c, read->sample, err);
    if (read->text == NULL)
        return CM_ENOMEM;
    c->report->nreads++;
    return CM_OK;
}

int cm_calc_access_reads(cm_calc *c, cm_error *err)
{
    struct cm_calc_access *a = c->access;
    int rc = make_groups(a, err);
    if (rc == CM_OK)
        c->report->read = cm_calloc(a->ngroups + 1, sizeof *c->report->read, err);
    if (c->report->read == NULL)
        return CM_ENOMEM;
    for (size_t g = 0; g < a->ngroups && rc == CM_OK; g++) {
        rc = describe_group(c, g, err);
        if (rc == CM_OK)
            rc = place_group(c, g, err);
    }
    return rc;
}

/* ---- what they meet ------------------------------------------------------------------------ */

static int by_size(const void *x, const void *y)
{
    const uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

/* Of N values, which it sorts. */
static cm_touch_stat stat_of(uint64_t *value, size_t n)
{
    cm_touch_stat s = {0};
    qsort(value, n, sizeof *value, by_size);
    for (size_t i = 0; i < n; i++)
        s.mean += (double)value[i] / (double)n;
    s.min = value[0];
    s.max = value[n - 1];
    s.p50 = value[(n - 1) / 2];
    s.p95 = value[(n * 95 + 99) / 100 - 1];
    return s;
}

/* Chunks of GRID that box I meets, and the elements that they have together. */
static uint64_t met_of(const cm_access_reads *r, size_t i, const cm_grid *grid, uint64_t *nelem)
{
    uint64_t first[CM_MAX_RANK], count[CM_MAX_RANK], n = 1;
    cm_box box = {.rank = r->rank};
    memcpy(box.start, &r->box[i * 2 * r->rank], r->rank * sizeof box.start[0]);
    memcpy(box.shape, &r->box[i * 2 * r->rank + r->rank], r->rank * sizeof box.shape[0]);
    cm_grid_cover(grid, &box, first, count);
    for (unsigned j = 0; j < r->rank; j++)
        n *= count[j];
    *nelem = cm_grid_stored_nelem(grid, first, count);
    return n;
}

static uint64_t met(const cm_access_reads *r, size_t i, const uint64_t *length)
{
    const uint64_t *box = &r->box[i * 2 * r->rank];
    uint64_t n = 1;
    for (unsigned j = 0; j < r->rank; j++) {
        const uint64_t last = box[j] + box[r->rank + j] - 1;
        if (!cm_mul_u64(n, last / length[j] - box[j] / length[j] + 1, &n))
            n = UINT64_MAX;
    }
    return n;
}

int cm_calc_access_touch(const cm_calc *c, size_t read, const cm_chunkcalc_layout *l,
                         cm_touch_stats *out, cm_error *err)
{
    const struct cm_calc_access *a = c->access;
    const group *of = &a->of[read];
    cm_grid grid, objects;
    const bool cut = cm_calc_cut_grids(c, l, &grid, &objects);
    uint64_t *chunks = cm_calloc(of->n, 4 * sizeof *chunks, err);
    if (chunks == NULL)
        return CM_ENOMEM;
    uint64_t *shards = chunks + of->n, *bytes = shards + of->n, *requests = bytes + of->n;
    for (size_t i = 0; i < of->n; i++) {
        const size_t box = a->order[of->first + i];
        uint64_t nelem, in_shards;
        chunks[i] = cut ? met_of(&a->reads, box, &grid, &nelem) : met(&a->reads, box, l->chunk);
        shards[i] = !l->sharded ? 0
                    : cut       ? met_of(&a->reads, box, &objects, &in_shards)
                                : met(&a->reads, box, l->shard);
        if (!(cut ? cm_mul_u64(nelem, c->report->itemsize, &bytes[i])
                  : cm_mul_u64(chunks[i], l->chunk_nbytes, &bytes[i])))
            bytes[i] = UINT64_MAX;
        requests[i] = chunks[i] <= UINT64_MAX - shards[i] ? chunks[i] + shards[i] : UINT64_MAX;
    }
    *out = (cm_touch_stats){.chunks = stat_of(chunks, of->n),
                            .shards = stat_of(shards, of->n),
                            .bytes = stat_of(bytes, of->n),
                            .requests = stat_of(requests, of->n)};
    out->runs = out->chunks.mean;
    free(chunks);
    return CM_OK;
}
