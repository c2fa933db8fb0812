#include "archive/axes/merge.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "archive/axes/coordinate.h"
#include "archive/axes/groups.h"
#include "archive/axes/place.h"
#include "archive/axes/propose.h"
#include "base/number.h"

typedef struct order {
    size_t *rank; /* of files */
    const cm_join_dim *dim;
} order;

static int by_first_key(const void *a, const void *b, void *context)
{
    const cm_join_dim *d = ((const order *)context)->dim;
    const cm_join_vec *x = &d->vec[*(const uint32_t *)a], *y = &d->vec[*(const uint32_t *)b];
    if (x->key[0] != y->key[0])
        return x->key[0] < y->key[0] ? -1 : 1;
    /* The longer first, so that what follows lies in it. */
    return (x->n < y->n) - (x->n > y->n);
}

static int by_rank(const void *a, const void *b, void *context)
{
    const order *o = context;
    const cm_join_vec *vec = o->dim->vec;
    return cm_join_by_rank(&vec[*(const uint32_t *)a].file, &vec[*(const uint32_t *)b].file,
                           o->rank);
}

bool cm_axis_in_order(const cm_join_input *in, const cm_join_dim *d)
{
    return d->kind == CM_KEY_NONE ||
           (in->options->order != CM_ORDER_COORDINATE && in->options->overlap == CM_OVERLAP_ERROR);
}

bool cm_axis_has_steps(const cm_join_tables *tables, const cm_join_axes *axes, const cm_join_dim *d)
{
    const uint32_t kinds = d->var == CM_JOIN_NONE ? 0 : tables->var[d->var].kinds;
    return !axes->refused && d->n > 0 && (kinds >> CM_FINDING_CALENDAR & 1) == 0;
}

/*
 * The distinct coordinates that have elements, in the order in which they are joined.  Mostly
 * their files stand in it: then lists of all files are read once, from their begin to their end.
 */
static uint32_t *sorted(const cm_join_input *in, const cm_join_dim *d, size_t *n, cm_error *err)
{
    uint32_t *list = cm_calloc(d->nvecs + 1, sizeof(*list), err);
    int (*compare)(const void *, const void *, void *) =
        cm_axis_in_order(in, d) ? by_rank : by_first_key;
    order o = {in->rank, d};
    bool done = true;
    *n = 0;
    for (size_t i = 0; list != NULL && i < d->nvecs; i++) {
        const cm_join_vec *v = cm_axis_vec_at(in, d, i);
        if (v->same != i || v->n == 0)
            continue;
        list[*n] = (uint32_t)i;
        done = done && (*n == 0 || compare(&list[*n - 1], &list[*n], &o) <= 0);
        ++*n;
    }
    if (!done)
        qsort_r(list, *n, sizeof(*list), compare, &o);
    return list;
}

/* ---- what cannot be joined ---- */

static bool ascends(const cm_join_vec *v)
{
    for (uint64_t i = 1; i < v->n; i++)
        if (v->key[i] <= v->key[i - 1])
            return false;
    return true;
}

static bool descends(const cm_join_vec *v)
{
    for (uint64_t i = 1; i < v->n; i++)
        if (v->key[i] >= v->key[i - 1])
            return false;
    return true;
}

/* V, of FILE, has an element that is missing, or no values where other files have some. */
static int tell_absent(cm_join_findings *findings, const cm_join_dim *d, const cm_join_vec *v,
                       uint32_t file, cm_error *err)
{
    const cm_finding *f =
        v->key == NULL
            ? cm_join_find(findings, CM_FINDING_COORDINATE, CM_WEIGHT_DECISION, false, d->name,
                           file, err,
                           "its %" PRIu64 " %s no coordinate, which other files have, and "
                           "so no place",
                           v->n, cm_of_count(v->n, "step has", "steps have"))
            : cm_join_find(findings, CM_FINDING_COORDINATE, CM_WEIGHT_DECISION, false, d->name,
                           file, err, "element %" PRIu64 " %s, so that its step has no place",
                           v->bad - 1, v->why);
    return f == NULL ? CM_ENOMEM : CM_OK;
}

/* False, with a finding, where elements have no place. */
static int check_present(const cm_join_input *in, cm_join_findings *findings, const cm_join_dim *d,
                         bool *fine, cm_error *err)
{
    size_t number = 0;
    int rc = CM_OK;
    for (uint32_t i = 0; rc == CM_OK && i < in->nfiles; i++) {
        const cm_join_vec *v = d->at[i] == CM_JOIN_NONE ? NULL : cm_axis_vec_at(in, d, d->at[i]);
        /* A coordinate found equal to another has that one's places. */
        if (v == NULL || (v->key != NULL ? v->bad == 0 : v->n == 0 || v->same != d->at[i]))
            continue;
        *fine = false;
        rc = number > 0 ? cm_join_found_in(findings, &findings->report->finding[number - 1], i, err)
                        : tell_absent(findings, d, v, i, err);
        number = number > 0 ? number : findings->report->nfindings;
    }
    return rc;
}

/* The element that stands on the wrong side of the one before. */
static uint64_t turn_of(const cm_join_vec *v)
{
    bool down = v->n > 1 && v->key[1] < v->key[0];
    uint64_t i = 1;
    while (i + 1 < v->n && v->key[i] != v->key[i - 1] && (v->key[i] < v->key[i - 1]) == down)
        i++;
    return i;
}

/* Times of records, which say little of their order, leave the files whole. */
static int propose_names(const cm_join_input *in, cm_finding *f, cm_error *err)
{
    if (in->has_base)
        return CM_OK;
    f->by = CM_DECIDER_ORDER;
    f->value = cm_strdup("name", err);
    return f->value != NULL ? CM_OK : CM_ENOMEM;
}

static int tell_direction(const cm_join_input *in, cm_join_findings *findings, const cm_join_dim *d,
                          const cm_join_vec *v, cm_error *err)
{
    char here[48], before[48];
    cm_finding *f;
    if (descends(v)) {
        f = cm_join_find(findings, CM_FINDING_DIRECTION, CM_WEIGHT_DECISION, false, d->name,
                         v->file, err,
                         "its values run the other way than those of the files before");
    } else {
        uint64_t i = turn_of(v);
        f = cm_join_find(
            findings, CM_FINDING_COORDINATE, CM_WEIGHT_DECISION, false, d->name, v->file, err,
            "its values neither rise nor fall throughout: element %" PRIu64 " is %s, behind %s", i,
            cm_key_text(in, d, v->key[i], here, sizeof(here)),
            cm_key_text(in, d, v->key[i - 1], before, sizeof(before)));
        if (f != NULL && d->kind == CM_KEY_TIME)
            return propose_names(in, f, err);
    }
    return f == NULL ? CM_ENOMEM : CM_OK;
}

/* False, with a finding, where an axis turns or runs the other way. */
static int check_directions(const cm_join_input *in, cm_join_findings *findings,
                            const cm_join_dim *d, bool *fine, cm_error *err)
{
    *fine = true;
    for (size_t i = 0; i < d->nvecs; i++) {
        const cm_join_vec *v = cm_axis_vec_at(in, d, i);
        if (v->key == NULL || v->same != i || ascends(v))
            continue;
        *fine = false;
        return tell_direction(in, findings, d, v, err);
    }
    return CM_OK;
}

/* The step KEY, of a file, lies within V, and is none of its elements. */
typedef struct between {
    const cm_join_vec *v; /* NULL: none does */
    int64_t key;
    uint32_t file;
} between;

static int find_interleaved(const cm_join_input *in, const cm_join_tables *tables,
                            const cm_join_axes *axes, cm_join_findings *findings,
                            const cm_join_dim *d, const between *b, cm_error *err)
{
    const cm_join_vec *v = b->v;
    const uint32_t other = b->file;
    char here[48], first[48], last[48];
    uint32_t later = v->file > other ? v->file : other;
    cm_finding_kind kind = d->kind == CM_KEY_TIME ? CM_FINDING_INTERLEAVED : CM_FINDING_COORDINATE;
    cm_finding *f = cm_join_find(
        findings, kind, CM_WEIGHT_DECISION, false, d->name, later, err,
        "%s in %s lies between %s and %s in %s, which has no such step",
        cm_key_text(in, d, b->key, here, sizeof(here)), in->file[other]->path,
        cm_key_text(in, d, v->key[0], first, sizeof(first)),
        cm_key_text(in, d, v->key[v->n - 1], last, sizeof(last)), in->file[v->file]->path);
    if (f == NULL)
        return CM_ENOMEM;
    /* Times of records of several platforms are no coordinate of theirs. */
    if (d->substitute)
        return propose_names(in, f, err);
    f->value = cm_join_propose_apart(in, tables, axes, &f->by);
    return CM_OK;
}

/* ---- joining ---- */

/* The first position in KEY, sorted, that is not below WANTED. */
static uint64_t bisect(const int64_t *key, uint64_t n, int64_t wanted)
{
    uint64_t low = 0, high = n;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (key[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

typedef struct merging {
    const cm_join_input *in;
    cm_join_dim *d;
    uint32_t *owner; /* of each element, the vec that brought it; both in paged memory */
    uint64_t capacity;
    between first; /* where coordinates interleave */
} merging;

/* V has more elements than any join may have places: a damaged file, or one that stores few. */
static int tell_too_long(const merging *m, const cm_join_vec *v, cm_error *err)
{
    const uint64_t limit = cm_place_limit(m->in);
    return cm_fail(err, CM_EUNSUPPORTED,
                   "%s: has %" PRIu64 " %s along %s, and %" PRIu64
                   " are before it; no more than %" PRIu64 " are joined%s",
                   m->in->file[v->file]->path, v->n, cm_of_count(v->n, "element", "elements"),
                   m->d->name, m->d->n, limit,
                   limit < cm_place_limit(NULL) ? "; raise `memory`" : "");
}

/* Room for COUNT elements of V. */
static int reserve(merging *m, const cm_join_vec *v, uint64_t count, cm_error *err)
{
    size_t n;
    if (!cm_add_size((size_t)m->d->n, (size_t)count, &n) || n > cm_place_limit(m->in))
        return tell_too_long(m, v, err);
    if (n <= m->capacity)
        return CM_OK;
    uint64_t capacity = m->capacity * 2 > n ? m->capacity * 2 : n;
    int64_t *key = cm_join_alloc(m->in, (size_t)capacity, sizeof(*key), err);
    uint32_t *owner = cm_join_alloc(m->in, (size_t)capacity, sizeof(*owner), err);
    if (key == NULL || owner == NULL)
        return CM_ENOMEM;
    cm_paged_copy(m->in->survey->paged, key, m->d->key, m->d->n * sizeof(*key));
    cm_paged_copy(m->in->survey->paged, owner, m->owner, m->d->n * sizeof(*owner));
    m->d->key = key;
    m->owner = owner;
    m->capacity = capacity;
    return CM_OK;
}

/*
 * Merges V into the axis: where both overlap, from V's first step to the end of either, they must
 * have the same steps.
 */
static int merge_vec(merging *m, uint32_t at, cm_error *err)
{
    cm_join_dim *d = m->d;
    const cm_join_vec *v = cm_axis_vec_at(m->in, d, at);
    uint64_t i = bisect(d->key, d->n, v->key[0]), k = 0;
    int rc = reserve(m, v, v->n, err);
    if (rc != CM_OK)
        return rc;
    for (; i < d->n && k < v->n; i++, k++) {
        if (d->key[i] == v->key[k])
            continue;
        const cm_join_vec *other = &d->vec[m->owner[i]];
        m->first = d->key[i] < v->key[k] ? (between){v, d->key[i], other->file}
                                         : (between){other, v->key[k], v->file};
        return CM_OK;
    }
    cm_paged_touch(m->in->survey->paged, &d->key[d->n], (v->n - k) * sizeof(d->key[0]));
    cm_paged_touch(m->in->survey->paged, &m->owner[d->n], (v->n - k) * sizeof(m->owner[0]));
    for (; k < v->n; k++) {
        d->key[d->n] = v->key[k];
        m->owner[d->n++] = at;
    }
    return CM_OK;
}

/* The axis gets the steps of V that it lacks, wherever they lie. */
static int unite(merging *m, uint32_t at, cm_error *err)
{
    cm_join_dim *d = m->d;
    const cm_join_vec *v = cm_axis_vec_at(m->in, d, at);
    const uint64_t begin = bisect(d->key, d->n, v->key[0]);
    uint64_t i = begin, k = v->n, nnew = 0;
    for (uint64_t e = 0; e < v->n; e++) {
        while (i < d->n && d->key[i] < v->key[e])
            i++;
        nnew += i == d->n || d->key[i] != v->key[e];
    }
    int rc = reserve(m, v, nnew, err);
    if (rc != CM_OK || nnew == 0)
        return rc;
    cm_paged_touch(m->in->survey->paged, &d->key[begin], (d->n - begin + nnew) * sizeof(d->key[0]));
    i = d->n;
    for (uint64_t to = d->n + nnew; to > i;) {
        if (i > begin && d->key[i - 1] > v->key[k - 1]) {
            d->key[--to] = d->key[--i];
            continue;
        }
        i -= i > begin && d->key[i - 1] == v->key[k - 1];
        d->key[--to] = v->key[--k];
    }
    d->n += nnew;
    return CM_OK;
}

/* In the order of files: steps follow each other as they come. */
static int append_vec(merging *m, uint32_t at, cm_error *err)
{
    cm_join_dim *d = m->d;
    cm_join_vec *v = cm_axis_vec_at(m->in, d, at);
    int rc = reserve(m, v, v->n, err);
    if (rc != CM_OK)
        return rc;
    cm_paged_touch(m->in->survey->paged, &d->key[d->n], v->n * sizeof(d->key[0]));
    for (uint64_t k = 0; k < v->n; k++)
        d->key[d->n + k] = v->key != NULL ? v->key[k] : (int64_t)(d->n + k);
    if ((v->run = cm_join_alloc(m->in, 1, sizeof(*v->run), err)) == NULL)
        return CM_ENOMEM;
    v->run[0] = (cm_join_run){d->n, 0, v->n};
    v->nruns = 1;
    d->n += v->n;
    return CM_OK;
}

typedef struct placed_key {
    int64_t key;
    uint32_t vec;
} placed_key;

static int by_key(const void *a, const void *b)
{
    const placed_key *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->vec > y->vec) - (x->vec < y->vec);
}

/* Joined in the order of files, a step of two files would appear twice: a finding. */
static int find_repeated(const cm_join_input *in, cm_join_axes *axes, cm_join_findings *findings,
                         cm_join_dim *d, const uint32_t *list, size_t n, cm_error *err)
{
    placed_key *row = cm_calloc((size_t)d->n + 1, sizeof(*row), err);
    uint64_t at = 0, nrepeated = 0, first = 0;
    char text[48];
    if (row == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const cm_join_vec *v = cm_axis_vec_at(in, d, list[i]);
        for (uint64_t k = 0; k < v->n; k++)
            row[at++] = (placed_key){v->key[k], list[i]};
    }
    qsort(row, (size_t)at, sizeof(*row), by_key);
    for (uint64_t i = 1; i < at; i++)
        if (row[i].key == row[i - 1].key && row[i].vec != row[i - 1].vec && nrepeated++ == 0)
            first = i;
    int rc = CM_OK;
    if (nrepeated > 0) {
        uint32_t a = d->vec[row[first - 1].vec].file, b = d->vec[row[first].vec].file;
        axes->refused = true;
        rc = cm_join_find(findings, CM_FINDING_OVERLAP, CM_WEIGHT_DECISION, false, d->name,
                          a > b ? a : b, err,
                          "%" PRIu64 " step%s in more than one file, the first %s (%s has it too), "
                          "and would be there twice in this order",
                          nrepeated, cm_of_count(nrepeated, " is", "s are"),
                          cm_key_text(in, d, row[first].key, text, sizeof(text)),
                          in->file[a > b ? b : a]->path) == NULL
                 ? CM_ENOMEM
                 : CM_OK;
    }
    free(row);
    return rc;
}

/* Where the elements of V lie. */
static int find_runs_of(const cm_join_input *in, const cm_join_dim *d, cm_join_vec *v,
                        cm_error *err)
{
    size_t capacity = 0;
    for (uint64_t k = 0; k < v->n;) {
        uint64_t i = bisect(d->key, d->n, v->key[k]), begin = k, origin = i;
        while (k < v->n && i < d->n && d->key[i] == v->key[k]) {
            k++;
            i++;
        }
        if (k == begin)
            return cm_fail(err, CM_EINTERNAL, "a step of %s is lost", d->name);
        if (v->nruns == capacity) {
            capacity = capacity > 0 ? capacity * 2 : 1;
            cm_join_run *more = cm_join_alloc(in, capacity, sizeof(*more), err);
            if (more == NULL)
                return CM_ENOMEM;
            if (v->nruns > 0)
                memcpy(more, v->run, v->nruns * sizeof(*more));
            v->run = more;
        }
        v->run[v->nruns++] = (cm_join_run){origin, begin, k - begin};
    }
    return CM_OK;
}

/* Each file without a coordinate is a piece of its own. */
static int split_by_file(const cm_join_input *in, cm_join_dim *d, cm_error *err)
{
    cm_join_vec *vec = cm_join_alloc(in, in->nfiles, sizeof(*vec), err);
    if (vec == NULL)
        return CM_ENOMEM;
    size_t n = 0;
    for (size_t f = 0; f < in->nfiles; f++) {
        if (d->at[f] == CM_JOIN_NONE)
            continue;
        vec[n] = (cm_join_vec){
            .n = cm_file_count(d->length[f]), .file = (uint32_t)f, .same = (uint32_t)n};
        d->at[f] = (uint32_t)n++;
    }
    d->vec = vec;
    d->nvecs = n;
    return CM_OK;
}

int cm_axis_find_runs(const cm_join_input *in, cm_join_dim *d, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < d->nvecs; i++) {
        cm_join_vec *v = cm_axis_vec_at(in, d, i);
        v->run = NULL;
        v->nruns = 0;
        if (v->key != NULL && v->same == i)
            rc = find_runs_of(in, d, v, err);
    }
    return rc;
}

/* The N coordinates of LIST, of which none may lie between the steps of another. */
static int merge_list(merging *m, const uint32_t *list, size_t n, cm_error *err)
{
    int rc = CM_OK;
    m->d->n = 0;
    for (size_t i = 0; rc == CM_OK && m->first.v == NULL && i < n; i++)
        rc = merge_vec(m, list[i], err);
    return rc;
}

/*
 * Coordinates of LIST interleave: the axis has the steps of all, if those of no group do.  Steps of
 * files that would give the same elements may not.
 */
static int merge_groups(merging *m, const cm_join_tables *tables, const cm_join_axes *axes,
                        const uint32_t *list, size_t n, cm_error *err)
{
    cm_axis_groups groups = {0};
    int rc = cm_axis_group(m->in, tables, axes, m->d, list, n, &groups, err);
    if (rc == CM_OK && groups.n > 1)
        m->first.v = NULL;
    for (size_t g = 0; rc == CM_OK && m->first.v == NULL && g < groups.n; g++)
        rc =
            merge_list(m, groups.vec + groups.begin[g], groups.begin[g + 1] - groups.begin[g], err);
    m->d->n = m->first.v == NULL ? 0 : m->d->n;
    for (size_t i = 0; rc == CM_OK && m->first.v == NULL && i < n; i++)
        rc = unite(m, list[i], err);
    cm_axis_groups_release(&groups);
    return rc;
}

static int append_list(merging *m, const uint32_t *list, size_t n, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < n; i++)
        rc = append_vec(m, list[i], err);
    return rc;
}

static int merge_all(merging *m, const cm_join_tables *tables, cm_join_axes *axes,
                     cm_join_findings *findings, const uint32_t *list, size_t n, cm_error *err)
{
    int rc = merge_list(m, list, n, err);
    if (rc == CM_OK && m->first.v != NULL)
        rc = merge_groups(m, tables, axes, list, n, err);
    if (rc != CM_OK || m->first.v == NULL)
        return rc == CM_OK ? cm_axis_find_runs(m->in, m->d, err) : rc;
    axes->refused = true;
    return find_interleaved(m->in, tables, axes, findings, m->d, &m->first, err);
}

int cm_axis_join(const cm_join_input *in, const cm_join_tables *tables, cm_join_axes *axes,
                 cm_join_findings *findings, cm_join_dim *d, cm_error *err)
{
    merging m = {.in = in, .d = d};
    size_t n = 0;
    bool fine = true;
    bool by_file = d->kind == CM_KEY_NONE;
    bool in_order = cm_axis_in_order(in, d);
    int rc = by_file ? split_by_file(in, d, err) : CM_OK;
    if (rc == CM_OK && !by_file)
        rc = check_present(in, findings, d, &fine, err);
    if (rc == CM_OK && fine && !in_order)
        rc = check_directions(in, findings, d, &fine, err);
    if (rc != CM_OK || !fine) {
        axes->refused |= !fine;
        return rc;
    }
    uint32_t *list = sorted(in, d, &n, err);
    if (list == NULL)
        rc = CM_ENOMEM;
    if (rc == CM_OK)
        rc = in_order ? append_list(&m, list, n, err)
                      : merge_all(&m, tables, axes, findings, list, n, err);
    if (rc == CM_OK && in_order && !by_file)
        rc = find_repeated(in, axes, findings, d, list, n, err);
    free(list);
    return rc;
}
