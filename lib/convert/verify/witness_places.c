/*
 * Where files lie along the joined dimensions: the values of a file's own coordinate are looked up
 * in that of the store.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "convert/verify/witness_impl.h"

static int add_run(cm_witness_runs *runs, const cm_witness_run *run, cm_error *err)
{
    int rc = CM_GROW(runs->item, runs->n, err);
    if (rc == CM_OK)
        runs->item[runs->n++] = *run;
    return rc;
}

/* ---- what the join says ---- */

static int by_file(const void *a, const void *b)
{
    const cm_witness_run *x = a, *y = b;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    return (x->first > y->first) - (x->first < y->first);
}

/* The parts that V has along D, of files that no variable before had. */
static int claim_parts(const cm_witnesses *w, cm_witness_dim *d, const cm_multi_var *v,
                       bool *served, cm_error *err)
{
    const size_t before = d->claim.n;
    const cm_multi_part *part = v->nparts > 0 ? v->part : v->said;
    const size_t n = v->nparts > 0 ? v->nparts : v->nsaid;
    unsigned k = 0;
    while (k < v->naxes && strcmp(v->dim_name[v->axis[k]], d->name) != 0)
        k++;
    if (v->nparts > 0 ? k == v->naxes : n == 0 || strcmp(v->dim_name[0], d->name) != 0)
        return CM_OK;
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        if (w->spec->paged != NULL)
            cm_paged_touch(w->spec->paged, &part[i], sizeof(part[i]));
        if (served[part[i].file])
            continue;
        rc = add_run(&d->claim,
                     &(cm_witness_run){.position = part[i].origin[k == v->naxes ? 0 : k],
                                       .first = part[i].first[k == v->naxes ? 0 : k],
                                       .count = part[i].count[k == v->naxes ? 0 : k],
                                       .stride = 1,
                                       .file = part[i].file},
                     err);
    }
    for (size_t i = before; i < d->claim.n; i++)
        served[d->claim.item[i].file] = true;
    return rc;
}

static int find_claims(const cm_witnesses *w, cm_witness_dim *d, cm_error *err)
{
    bool *served = cm_calloc(w->spec->nfiles + 1, sizeof(*served), err);
    int rc = served == NULL ? CM_ENOMEM : CM_OK;
    /* Of a coordinate it says where all files lie, also those whose steps others have. */
    if (rc == CM_OK && d->var != NULL)
        rc = claim_parts(w, d, d->var, served, err);
    for (size_t i = 0; rc == CM_OK && i < w->spec->nvars; i++)
        rc = claim_parts(w, d, &w->spec->var[i], served, err);
    free(served);
    if (d->claim.n > 0)
        qsort(d->claim.item, d->claim.n, sizeof(d->claim.item[0]), by_file);
    return rc;
}

/* Element AT of the joined dimension, in the store; UINT64_MAX: it is not there. */
static uint64_t in_store(const cm_witness_dim *d, uint64_t at)
{
    if (at < d->start || (at - d->start) % d->step != 0)
        return UINT64_MAX;
    at = d->at + (at - d->start) / d->step;
    return at < d->length ? at : UINT64_MAX;
}

/* Where the join puts element I of FILE. */
static uint64_t claimed(const cm_witness_dim *d, uint32_t file, uint64_t i)
{
    size_t lo = 0, hi = d->claim.n;
    while (lo < hi) { /* the last that begins at I or before */
        const size_t middle = lo + (hi - lo) / 2;
        const cm_witness_run *r = &d->claim.item[middle];
        if (r->file < file || (r->file == file && r->first <= i))
            lo = middle + 1;
        else
            hi = middle;
    }
    const cm_witness_run *r = lo > 0 ? &d->claim.item[lo - 1] : NULL;
    return r != NULL && r->file == file && i - r->first < r->count
               ? in_store(d, r->position + (i - r->first))
               : UINT64_MAX;
}

/* ---- the coordinate of the store ---- */

static void value_at(const cm_witness_dim *d, uint64_t i, cm_decoded *out)
{
    cm_decoded_read(&d->store, d->values.data + i * d->store.dtype.nbytes, out);
}

/* Missing ones come last. */
static int order_of(const cm_decoding *m, const cm_decoded *a, const cm_decoded *b)
{
    if (a->missing || b->missing)
        return a->missing - b->missing;
    if (m->is_time)
        return (a->ns > b->ns) - (a->ns < b->ns);
    return (a->number > b->number) - (a->number < b->number);
}

static int by_value(const void *a, const void *b, void *context)
{
    const cm_witness_dim *d = context;
    const uint64_t i = *(const uint64_t *)a, j = *(const uint64_t *)b;
    cm_decoded x, y;
    value_at(d, i, &x);
    value_at(d, j, &y);
    const int order = order_of(&d->store, &x, &y);
    return order != 0 ? order : (i > j) - (i < j);
}

static int sort_values(cm_witness_dim *d, cm_error *err)
{
    bool ascends = true, descends = true;
    cm_decoded last = {0}, next;
    for (uint64_t i = 0; i < d->nvalues; i++, last = next) {
        value_at(d, i, &next);
        const int order = i > 0 ? order_of(&d->store, &last, &next) : 0;
        ascends = ascends && (i == 0 || order < 0) && !next.missing;
        descends = descends && (i == 0 || order > 0) && !next.missing;
    }
    d->descends = descends && !ascends;
    if (ascends || descends)
        return CM_OK;
    if ((d->order = cm_calloc(d->nvalues + 1, sizeof(d->order[0]), err)) == NULL)
        return CM_ENOMEM;
    for (uint64_t i = 0; i < d->nvalues; i++)
        d->order[i] = i;
    qsort_r(d->order, d->nvalues, sizeof(d->order[0]), by_value, d);
    return CM_OK;
}

/* Number I of the values in their order. */
static uint64_t sorted(const cm_witness_dim *d, uint64_t i)
{
    return d->order != NULL ? d->order[i] : d->descends ? d->nvalues - 1 - i : i;
}

static bool is_at(const cm_witness_dim *d, const cm_decoding *file, const cm_decoded *value,
                  uint64_t at)
{
    cm_decoded there;
    if (at >= d->nvalues)
        return false;
    value_at(d, at, &there);
    return !value->missing &&
           cm_decoded_same(file, value, &d->store, &there, &(cm_decoding_leeway){0});
}

/*
 * Where VALUE lies in the store; UINT64_MAX: nowhere.  Of several places, GUESS, and the one before
 * or behind it where rounding hides which comes first.
 */
static uint64_t look_up(const cm_witness_dim *d, const cm_decoding *file, const cm_decoded *value,
                        uint64_t guess)
{
    uint64_t lo = 0, hi = d->nvalues;
    cm_decoded there;
    if (is_at(d, file, value, guess))
        return guess;
    while (lo < hi) {
        const uint64_t middle = lo + (hi - lo) / 2;
        value_at(d, sorted(d, middle), &there);
        if (order_of(&d->store, &there, value) < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    for (uint64_t i = lo > 0 ? lo - 1 : 0; i < d->nvalues && i <= lo + 1; i++)
        if (is_at(d, file, value, sorted(d, i)))
            return sorted(d, i);
    return UINT64_MAX;
}

static int read_coordinate(const cm_witnesses *w, cm_witness_dim *d, const cm_witness_var *var,
                           cm_error *err)
{
    cm_array *array = NULL;
    cm_codec_ctx *ctx = cm_codec_ctx_create(err);
    cm_box box = {.rank = 1, .shape = {d->length}};
    int rc = ctx == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK)
        rc = cm_zarr_array_open(w->tree, var->node, 0, &array, err);
    if (rc == CM_OK)
        rc = cm_buf_resize(&d->values, (size_t)d->length * var->node->meta.dtype.nbytes, err);
    if (rc == CM_OK && d->length > 0)
        rc = cm_array_read(array, ctx, &box, d->values.data, err);
    cm_array_free(array);
    cm_codec_ctx_free(ctx);
    d->store = var->store;
    /*
     * A coordinate that cannot be read is a difference; the comparison of its elements reports it.
     */
    d->nvalues = rc == CM_OK ? d->length : 0;
    if (rc == CM_EFORMAT || rc == CM_EIO)
        return CM_OK;
    return rc == CM_OK ? sort_values(d, err) : rc;
}

/* ---- the dimensions ---- */

static void add_dim(cm_witnesses *w, const char *name)
{
    for (unsigned i = 0; i < w->ndims; i++)
        if (strcmp(w->dim[i].name, name) == 0)
            return;
    if (w->ndims < CM_MULTI_MAX_AXES)
        w->dim[w->ndims++] = (cm_witness_dim){.name = name, .step = 1, .length = UINT64_MAX};
}

/* Of an array that grows several windows are written: what lies before one lies in it, too. */
static void begin_before(cm_witness_dim *d)
{
    const uint64_t before = d->start < d->at ? d->start : d->at;
    d->start -= before;
    d->at -= before;
}

/* How much of D the store has, by one of the variables that have it. */
static void find_length(const cm_witnesses *w, cm_witness_dim *d)
{
    for (size_t i = 0; i < w->spec->nvars; i++) {
        const cm_witness_var *v = &w->var[i];
        const cm_multi_var *of = v->of;
        for (unsigned j = 0; v->node != NULL && v->node->meta.rank == of->rank && j < of->rank;
             j++) {
            if (strcmp(of->dim_name[j], d->name) != 0)
                continue;
            d->length = v->node->meta.shape[j];
            if (v->job != NULL) {
                d->start = v->job->view.start[j];
                d->step = v->job->view.step[j];
                d->at = v->job->window.at[j];
                if ((w->job->terms.in_part || w->job->terms.grows) && v->job->window.is_part)
                    begin_before(d);
            }
            d->complete = d->length == of->shape[j];
            if (v->job != NULL)
                return;
        }
    }
}

static int make_dim(cm_witnesses *w, cm_witness_dim *d, cm_error *err)
{
    const cm_witness_var *coordinate = NULL;
    unsigned n = 0;
    find_length(w, d);
    for (size_t i = 0; i < w->spec->nvars; i++) {
        const cm_multi_var *of = w->var[i].of;
        if (!of->is_coordinate || strcmp(of->dim_name[0], d->name) != 0)
            continue;
        coordinate = &w->var[i];
        n++;
    }
    d->var = n == 1 ? coordinate->of : NULL;
    int rc = find_claims(w, d, err);
    bool looked_at = rc == CM_OK && d->var != NULL && !w->job->terms.in_part &&
                     coordinate->is_known && coordinate->store.is_number &&
                     coordinate->node->meta.shape[0] == d->length;
    return looked_at ? read_coordinate(w, d, coordinate, err) : rc;
}

int cm_witness_dims_make(cm_witnesses *w, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; i < w->spec->nvars; i++) {
        const cm_multi_var *v = &w->spec->var[i];
        for (unsigned k = 0; k < v->naxes; k++)
            add_dim(w, v->dim_name[v->axis[k]]);
        if (v->nsaid > 0)
            add_dim(w, v->dim_name[0]);
    }
    for (unsigned i = 0; rc == CM_OK && i < w->ndims; i++) {
        rc = make_dim(w, &w->dim[i], err);
        if (rc == CM_OK)
            w->dim[i].begin = cm_calloc(w->spec->nfiles + 1, sizeof(size_t), err);
        if (rc == CM_OK && w->dim[i].begin == NULL)
            rc = CM_ENOMEM;
    }
    return rc;
}

/* ---- one file ---- */

static int put(cm_witness_dim *d, uint32_t file, uint64_t element, uint64_t position, cm_error *err)
{
    cm_witness_run *last = d->run.n > d->begin[file] ? &d->run.item[d->run.n - 1] : NULL;
    if (last != NULL && last->count == 1 && position == last->position + 1)
        last->stride = element - last->first;
    if (last != NULL && position == last->position + last->count &&
        element == last->first + last->count * last->stride) {
        last->count++;
        return CM_OK;
    }
    return add_run(
        &d->run,
        &(cm_witness_run){
            .position = position, .first = element, .count = 1, .stride = 1, .file = file},
        err);
}

/* The coordinate along D that the file itself has; NULL: none. */
static cm_variable *coordinate_in(const cm_witnesses *w, const cm_witness_dim *d, cm_dataset *ds)
{
    char buf[512];
    if (ds == NULL || d->nvalues == 0 || d->var == NULL)
        return NULL;
    for (size_t i = 0; i < ds->nvars; i++) {
        cm_variable *v = &ds->var[i];
        if (v->rank > 1 || !cm_dtype_is_number(&v->dtype) || v->unsupported != NULL ||
            strcmp(cm_witness_name(w, v->name, buf, sizeof(buf)), d->var->name) != 0)
            continue;
        bool along = v->rank == 0 ||
                     (v->dim_name[0] != NULL &&
                      strcmp(cm_witness_name(w, v->dim_name[0], buf, sizeof(buf)), d->name) == 0);
        if (along)
            return v;
    }
    return NULL;
}

/*
 * Of a joined dimension that the store has a part of, which part that is was said in numbers of its
 * elements.
 */
static const char *misplaced(const cm_witness_dim *d, uint64_t claim, uint64_t at)
{
    if (at == UINT64_MAX)
        return d->complete || claim != UINT64_MAX ? "is not in the store" : NULL;
    return !d->complete && claim == UINT64_MAX ? "is in the store, and was not chosen" : NULL;
}

static int place_by_values(cm_witnesses *w, cm_witness_dim *d, uint32_t file, cm_dataset *ds,
                           cm_variable *v, cm_error *err)
{
    const uint64_t n = v->rank == 0 ? 1 : v->shape[0];
    cm_box box = {.rank = v->rank, .shape = {n}};
    cm_buf values = {0};
    cm_decoding m;
    cm_decoded value;
    char text[64];
    int rc = cm_witness_decoding_of(ds, v, &m, err);
    if (rc == CM_OK)
        rc = cm_buf_resize(&values, (size_t)n * v->dtype.nbytes, err);
    if (rc == CM_OK && n > 0)
        rc = cm_dataset_read(ds, v, &box, values.data, err);
    unsigned nlost = 0;
    for (uint64_t i = 0, last = UINT64_MAX - 1; rc == CM_OK && i < n; i++) {
        const uint8_t *p = values.data + i * v->dtype.nbytes;
        cm_decoded_read(&m, p, &value);
        const uint64_t claim = claimed(d, file, i);
        const uint64_t at = look_up(d, &m, &value, claim != UINT64_MAX ? claim : last + 1);
        const char *why = misplaced(d, claim, at);
        if (why != NULL && nlost++ == 0)
            rc = cm_job_differ(w->job, err, "%s: element %" PRIu64 " of %s, %s, %s", d->name, i,
                               w->spec->file[file].path,
                               cm_decoding_text(&m, p, text, sizeof(text)), why);
        if (rc == CM_OK && at != UINT64_MAX)
            rc = put(d, file, i, last = at, err);
    }
    cm_buf_release(&values);
    return rc;
}

static int place_as_claimed(cm_witness_dim *d, uint32_t file, cm_error *err)
{
    size_t lo = 0, hi = d->claim.n;
    int rc = CM_OK;
    while (lo < hi) {
        const size_t middle = lo + (hi - lo) / 2;
        if (d->claim.item[middle].file < file)
            lo = middle + 1;
        else
            hi = middle;
    }
    for (; rc == CM_OK && lo < d->claim.n && d->claim.item[lo].file == file; lo++) {
        const cm_witness_run *r = &d->claim.item[lo];
        for (uint64_t i = 0; rc == CM_OK && i < r->count; i++) {
            const uint64_t at = in_store(d, r->position + i);
            rc = at != UINT64_MAX ? put(d, file, r->first + i, at, err) : CM_OK;
        }
    }
    return rc;
}

int cm_witness_place(cm_witnesses *w, uint32_t file, cm_dataset *ds, cm_error *err)
{
    int rc = CM_OK;
    for (unsigned i = 0; rc == CM_OK && i < w->ndims; i++) {
        cm_witness_dim *d = &w->dim[i];
        cm_variable *v = coordinate_in(w, d, ds);
        d->begin[file] = d->run.n;
        rc = v != NULL ? place_by_values(w, d, file, ds, v, err) : place_as_claimed(d, file, err);
        d->begin[file + 1] = d->run.n;
        if (rc != CM_OK && ds != NULL)
            cm_error_place(err, ds->path);
    }
    return rc;
}

/* ---- all ---- */

static int by_position(const void *a, const void *b, void *context)
{
    const cm_witness_run *item = context;
    const cm_witness_run *x = &item[*(const size_t *)a], *y = &item[*(const size_t *)b];
    if (x->position != y->position)
        return x->position < y->position ? -1 : 1;
    return (x > y) - (x < y);
}

int cm_witness_places_sort(cm_witnesses *w, cm_error *err)
{
    for (unsigned k = 0; k < w->ndims; k++) {
        cm_witness_dim *d = &w->dim[k];
        if ((d->by_position = cm_calloc(d->run.n + 1, sizeof(size_t), err)) == NULL)
            return CM_ENOMEM;
        for (size_t i = 0; i < d->run.n; i++) {
            d->by_position[i] = i;
            d->longest = d->run.item[i].count > d->longest ? d->run.item[i].count : d->longest;
        }
        if (d->run.n > 0)
            qsort_r(d->by_position, d->run.n, sizeof(size_t), by_position, d->run.item);
    }
    return CM_OK;
}

void cm_witness_dims_release(cm_witnesses *w)
{
    for (unsigned i = 0; i < w->ndims; i++) {
        cm_witness_dim *d = &w->dim[i];
        cm_buf_release(&d->values);
        free(d->order);
        free(d->claim.item);
        free(d->run.item);
        free(d->begin);
        free(d->by_position);
    }
}
