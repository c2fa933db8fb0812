/* Where samples lie, and what each array gives to them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "load/run.h"
#include "options/shape_option.h"

/* ---- dimensions ---------------------------------------------------------------------------- */

/* Dimensions without a name are the same where they stand at the same place. */
static bool same_dim(const char *a, unsigned at_a, const char *b, unsigned at_b)
{
    if (a == NULL || b == NULL)
        return a == NULL && b == NULL && at_a == at_b;
    return strcmp(a, b) == 0;
}

static int find_dim(const cm_load_space *s, const char *name, unsigned place)
{
    for (unsigned j = 0; j < s->space.rank; j++)
        if (same_dim(s->dim_name[j], j, name, place))
            return (int)j;
    return -1;
}

/* Adds A's dimensions that are not there yet. */
static int add_dims(cm_load_space *s, const cm_array *a, cm_error *err)
{
    for (unsigned d = 0; d < a->rank; d++) {
        const int at = find_dim(s, a->dim_name[d], d);
        if (at >= 0 && s->dim_length[at] != a->shape[d])
            return cm_fail(err, CM_EINVAL,
                           "variable %s has %" PRIu64 " %s along %s, another one %" PRIu64
                           ": they cannot be read as one sample",
                           cm_load_array_name(a), a->shape[d],
                           cm_of_count(a->shape[d], "element", "elements"),
                           a->dim_name[d] != NULL ? a->dim_name[d] : "a dimension without a name",
                           s->dim_length[at]);
        if (at >= 0)
            continue;
        const unsigned j = s->space.rank;
        if (j == CM_MAX_RANK)
            return cm_fail(err, CM_EINVAL, "the variables have more than %d dimensions together",
                           CM_MAX_RANK);
        if (a->dim_name[d] != NULL && (s->dim_name[j] = cm_strdup(a->dim_name[d], err)) == NULL)
            return CM_ENOMEM;
        s->dim_length[j] = s->space.length[j] = a->shape[d];
        s->space.chunk[j] = a->chunked ? a->grid.chunk[d] : a->shape[d];
        s->space.cuts[j] = a->grid.cuts[d];
        if (s->space.chunk[j] == 0)
            s->space.chunk[j] = 1;
        s->space.rank = j + 1;
    }
    return CM_OK;
}

/* Returns RC; an error's sentence gets the store and the sample in front. */
static int for_sample(int rc, const cm_load_options *o, const cm_load_data *d, cm_error *err)
{
    if (rc == CM_EINVAL && o->sample != NULL)
        cm_error_prefix(err, "%s: `sample` %s", d->path, o->sample);
    return rc;
}

/* The first variable with most dimensions gives their order. */
static const cm_array *leader(const cm_load_data *d)
{
    const cm_array *best = d->array[0];
    for (size_t i = 1; i < d->narrays; i++)
        if (d->array[i]->rank > best->rank)
            best = d->array[i];
    return best;
}

/* Lags count along `time`, as a split cuts, or along the first dimension where there is none. */
static void choose_lagged(cm_load_space *s)
{
    const int time = find_dim(s, "time", CM_MAX_RANK);
    s->space.lagged = time > 0 ? (unsigned)time : 0;
}

/* Lag 0 lies in the array, though no variable may have it. */
static void find_reach(const cm_load_setting *setting, cm_load_space *s)
{
    s->space.reach = s->behind = setting->behind;
    for (unsigned k = 0; k < setting->nlags; k++)
        s->space.reach = cm_max_u64(s->space.reach, (uint64_t)setting->lag[k] + setting->behind);
}

static int join_dims(const cm_load_options *o, cm_load_space *s, const cm_load_data *d,
                     cm_error *err)
{
    int rc = for_sample(add_dims(s, leader(d), err), o, d, err);
    for (size_t i = 0; i < d->narrays && rc == CM_OK; i++)
        rc = for_sample(add_dims(s, d->array[i], err), o, d, err);
    choose_lagged(s);
    for (unsigned j = 0; j < s->space.rank && rc == CM_OK; j++)
        if (s->space.length[j] == 0)
            rc = cm_fail(err, CM_EINVAL, "%s: %s%s has no elements: nothing can be read", d->path,
                         s->dim_name[j] != NULL ? "dimension " : "",
                         s->dim_name[j] != NULL ? s->dim_name[j] : "a dimension without a name");
    return rc;
}

/* ---- ranges -------------------------------------------------------------------------------- */

static int set_range(cm_load_space *s, const cm_load_range *r, cm_error *err)
{
    const int j = r->dim != NULL ? find_dim(s, r->dim, CM_MAX_RANK) : -1;
    if (j < 0)
        return cm_fail(err, CM_EINVAL, "subset: no chosen variable has a dimension %s",
                       r->dim != NULL ? r->dim : "without a name");
    const uint64_t length = s->dim_length[j];
    if (s->space.length[j] != length || s->space.origin[j] != 0)
        return cm_fail(err, CM_EINVAL, "subset: dimension %s is there twice", r->dim);
    if (r->count == 0 || r->count > length || r->first > length - r->count)
        return cm_fail(err, CM_EINVAL,
                       "subset: %" PRIu64 " %s from %" PRIu64
                       " on %s not in dimension %s, which has %" PRIu64,
                       r->count, cm_of_count(r->count, "element", "elements"), r->first,
                       cm_of_count(r->count, "is", "are"), r->dim, length);
    s->space.origin[j] = r->first;
    s->space.length[j] = r->count;
    return CM_OK;
}

static int set_ranges(const cm_load_options *o, const cm_load_data *d, cm_load_space *s,
                      cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; i < o->nranges && rc == CM_OK; i++)
        rc = set_range(s, &o->range[i], err);
    if (rc != CM_OK)
        cm_error_prefix(err, "%s", d->path);
    return rc;
}

/* ---- the sample's shape -------------------------------------------------------------------- */

static int unknown_dim(const cm_load_space *s, const char *text, const char *name, cm_error *err)
{
    char known[512] = "";
    size_t n = 0;
    for (unsigned j = 0; j < s->space.rank && n < sizeof known; j++)
        if (s->dim_name[j] != NULL)
            n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", n > 0 ? ", " : "",
                                  s->dim_name[j]);
    if (n == 0)
        return cm_fail(err, CM_EINVAL, "`sample` %s: the dimensions have no names, only an order",
                       text);
    return cm_fail(err, CM_EINVAL,
                   "`sample` %s: no chosen variable has a dimension %s; there are %s", text, name,
                   known);
}

/* NAMED gets which dimensions the option says something about. */
static int apply_sample(cm_load_space *s, const cm_array *first, const char *text, bool *named,
                        cm_error *err)
{
    cm_shape_option o;
    if (strcmp(text, "full") == 0) { /* as it stands already */
        for (unsigned j = 0; j < s->space.rank; j++)
            named[j] = true;
        return CM_OK;
    }
    int rc = cm_shape_option_parse(text, &o, err);
    if (rc != CM_OK) {
        cm_error_prefix(err, "`sample`");
        return rc;
    }
    if (!o.by_name && o.n != first->rank)
        rc = cm_fail(err, CM_EINVAL, "`sample` %s: %u length%s for the %u dimension%s of %s", text,
                     o.n, cm_of_count(o.n, "", "s"), first->rank, cm_of_count(first->rank, "", "s"),
                     cm_load_array_name(first));
    for (unsigned i = 0; i < o.n && rc == CM_OK; i++) {
        const int j = o.by_name ? find_dim(s, o.item[i].name, CM_MAX_RANK) : (int)i;
        if (j < 0) {
            rc = unknown_dim(s, text, o.item[i].name, err);
            break;
        }
        named[j] = true;
        s->space.sample[j] = o.item[i].length != 0 ? o.item[i].length : s->space.length[j];
    }
    cm_shape_option_release(&o);
    return rc;
}

/* Maps and series say themselves what they take of a dimension. */
static int check_extents(const cm_load_options *o, const cm_load_space *s, const bool *named,
                         cm_error *err)
{
    const bool is_map = s->space.order == CM_ORDER_MAP;
    if (o->sample == NULL || (!is_map && s->space.order != CM_ORDER_SERIES))
        return CM_OK;
    for (unsigned j = 0; j < s->space.rank; j++) {
        const uint64_t reach = j == s->space.lagged ? s->space.reach : 0;
        const uint64_t length = s->space.length[j] - cm_min_u64(reach, s->space.length[j]);
        const uint64_t takes = (j == 0) == is_map ? 1 : length;
        if (named[j] && s->space.sample[j] != takes)
            return cm_fail(err, CM_EINVAL,
                           "`sample` %s: `order` %s takes %" PRIu64
                           " of dimension %s; leave it out",
                           o->sample, is_map ? "map" : "series", takes,
                           s->dim_name[j] != NULL ? s->dim_name[j] : "without a name");
    }
    return CM_OK;
}

/* A dimension that is not named is read whole, as chunkcalc has it. */
static int shape_sample(const cm_load_options *o, cm_load_space *s, const cm_array *first,
                        bool *named, cm_error *err)
{
    const cm_order order = s->space.order;
    const bool implied = order == CM_ORDER_CHUNKS || order == CM_ORDER_ALL ||
                         order == CM_ORDER_MAP || order == CM_ORDER_SERIES ||
                         order == CM_ORDER_LIST;
    if (o->sample == NULL && !implied && s->space.rank > 0)
        return cm_fail(
            err, CM_EINVAL,
            "no `sample`: set the shape that training reads at once, for example `sample` %s=64",
            s->dim_name[s->space.rank - 1] != NULL ? s->dim_name[s->space.rank - 1] : "lon");
    const bool by_chunk = o->sample == NULL && (order == CM_ORDER_CHUNKS || order == CM_ORDER_ALL);
    s->space.whole_chunks = by_chunk && !o->one_shape && o->nranges == 0;
    for (unsigned j = 0; j < s->space.rank; j++) {
        named[j] = o->sample == NULL;
        s->space.sample[j] = s->space.length[j];
        if (by_chunk && s->space.chunk[j] < s->space.length[j])
            s->space.sample[j] = s->space.chunk[j];
    }
    int rc = o->sample != NULL ? apply_sample(s, first, o->sample, named, err) : CM_OK;
    if (rc == CM_OK)
        rc = check_extents(o, s, named, err);
    for (unsigned j = 0; j < s->space.rank && rc == CM_OK; j++) {
        const bool moves = order == CM_ORDER_MAP ? j == 0 : j != 0;
        if ((order == CM_ORDER_MAP || order == CM_ORDER_SERIES) && moves &&
            (o->sample == NULL || !named[j]))
            s->space.sample[j] = 1;
        if (order == CM_ORDER_CHUNKS && s->space.sample[j] > s->space.length[j])
            s->space.sample[j] = s->space.length[j];
        named[j] = named[j] || order == CM_ORDER_MAP || order == CM_ORDER_SERIES;
    }
    return rc;
}

/* Elements that the longest of the listed boxes takes of each dimension. */
static int list_boxes(const cm_load_options *o, cm_load_space *s, const cm_array *first,
                      cm_error *err)
{
    const cm_load_boxes *b = o->boxes;
    if (b == NULL)
        return CM_OK;
    if (b->rank != first->rank || s->space.rank != first->rank)
        return cm_fail(err, CM_EINVAL, "variable %s: recorded reads have %u dimensions, it has %u",
                       cm_load_array_name(first), b->rank, s->space.rank);
    s->space.list = b->box;
    s->space.nlisted = b->n;
    return cm_sample_space_init(&s->space, s->dim_name, err);
}

/* ---- parts --------------------------------------------------------------------------------- */

static cm_sample_part part_of(const cm_load_space *s, const cm_array *a, unsigned number)
{
    cm_sample_part p = {.array = number, .rank = a->rank, .lagged = s->space.lagged};
    for (unsigned d = 0; d < a->rank; d++) {
        p.axis[d] = find_dim(s, a->dim_name[d], d);
        p.shape[d] = a->shape[d];
    }
    return p;
}

static bool has_named_dim(const cm_sample_part *p, const bool *named)
{
    for (unsigned d = 0; d < p->rank; d++)
        if (p->axis[d] >= 0 && named[p->axis[d]])
            return true;
    return false;
}

static bool has_lagged_dim(const cm_load_space *s, const cm_sample_part *p)
{
    for (unsigned d = 0; d < p->rank; d++)
        if (p->axis[d] == (int)s->space.lagged)
            return true;
    return false;
}

static int add_part(cm_load_space *s, const cm_sample_part *p, int64_t lag, const cm_feed *feed,
                    cm_error *err)
{
    if (s->nparts == CM_LOAD_MAX_PARTS)
        return cm_fail(err, CM_EINVAL, "variables times lags are more than %d", CM_LOAD_MAX_PARTS);
    s->part[s->nparts] = *p;
    s->lag[s->nparts] = lag;
    s->feed[s->nparts++] = *feed;
    return CM_OK;
}

/* By the sample's shape, which lags may have shortened. */
static int size_part(cm_load_space *s, size_t i, cm_error *err)
{
    const cm_sample_part *p = &s->part[i];
    uint64_t nelem = 1;
    size_t nbytes;
    for (unsigned d = 0; d < p->rank; d++)
        if (!cm_mul_u64(nelem, p->axis[d] >= 0 ? s->space.sample[p->axis[d]] : p->shape[d], &nelem))
            return cm_fail(err, CM_EINVAL, "it has too many elements");
    if (!cm_mul_size(nelem, cm_feed_nbytes(&s->feed[i]), &nbytes) ||
        !cm_add_size(s->sample_nbytes, nbytes, &s->sample_nbytes) ||
        s->sample_nbytes > (size_t)1 << 46)
        return cm_fail(err, CM_EINVAL, "it has too many bytes");
    s->part_nelem[i] = nelem;
    s->part_nbytes[i] = nbytes;
    return CM_OK;
}

static int add_parts(const cm_load_options *o, const cm_load_setting *setting,
                     const cm_load_data *d, const bool *named, cm_load_space *s, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; i < d->narrays && rc == CM_OK; i++) {
        const cm_array *a = d->array[i];
        cm_sample_part p = part_of(s, a, (unsigned)i);
        cm_feed feed;
        if (!has_named_dim(&p, named) && s->space.rank > 0) {
            /* No place of it depends on the sample: taken whole, once. */
            for (unsigned k = 0; k < p.rank; k++)
                p.axis[k] = -1;
            s->fixed[s->nfixed++] = p;
            continue;
        }
        rc = for_sample(cm_load_feed_make(o, setting, d, d->variable[i], &feed, err), o, d, err);
        const bool lags = has_lagged_dim(s, &p);
        for (unsigned k = 0; k < (lags ? setting->nlags : 1) && rc == CM_OK; k++) {
            const int64_t lag = lags ? setting->lag[k] : 0;
            p.lag = lags ? (uint64_t)lag + setting->behind : 0;
            rc = for_sample(add_part(s, &p, lag, &feed, err), o, d, err);
        }
    }
    if (rc == CM_OK && s->nparts == 0)
        rc = cm_fail(err, CM_EINVAL, "`sample` %s: no chosen variable has one of its dimensions",
                     o->sample);
    return rc;
}

/*
 * Larger elements first: a batch lies part after part, and so each begins at a multiple of the
 * size of its elements.
 */
static void align_parts(cm_load_space *s)
{
    for (size_t i = 1; i < s->nparts; i++)
        for (size_t k = i; k > 0 && cm_feed_nbytes(&s->feed[k - 1]) < cm_feed_nbytes(&s->feed[k]);
             k--) {
            const cm_sample_part part = s->part[k];
            const cm_feed feed = s->feed[k];
            const size_t nbytes = s->part_nbytes[k];
            const uint64_t nelem = s->part_nelem[k];
            const int64_t lag = s->lag[k];
            s->lag[k] = s->lag[k - 1];
            s->lag[k - 1] = lag;
            s->part[k] = s->part[k - 1];
            s->feed[k] = s->feed[k - 1];
            s->part_nbytes[k] = s->part_nbytes[k - 1];
            s->part_nelem[k] = s->part_nelem[k - 1];
            s->part[k - 1] = part;
            s->feed[k - 1] = feed;
            s->part_nbytes[k - 1] = nbytes;
            s->part_nelem[k - 1] = nelem;
        }
}

/* ---- all of it ----------------------------------------------------------------------------- */

/* Samples of an epoch: those asked for, as far as there are so many. */
static int count_samples(const cm_load_options *o, const cm_load_setting *setting, cm_load_space *s,
                         cm_error *err)
{
    const uint64_t world = o->world_size > 1 ? o->world_size : setting->ranks;
    uint64_t wanted;
    s->nsamples = s->space.nsamples;
    if (o->batches != 0 && cm_mul_u64(o->batches, o->batch, &wanted) &&
        cm_mul_u64(wanted, world, &wanted) && wanted < s->nsamples)
        s->nsamples = wanted;
    if (s->nsamples < world)
        return cm_fail(err, CM_EINVAL, "%" PRIu64 " %s too few for %" PRIu64 " ranks", s->nsamples,
                       cm_of_count(s->nsamples, "sample is", "samples are"), world);
    return CM_OK;
}

int cm_load_space_make(const cm_load_options *o, const cm_load_setting *setting,
                       const cm_load_data *d, cm_load_space *s, cm_error *err)
{
    bool named[CM_MAX_RANK] = {false};
    memset(s, 0, sizeof *s);
    s->space.order = setting->order;
    s->space.parameter = setting->parameter;
    s->space.seed = o->seed;
    find_reach(setting, s);
    int rc = join_dims(o, s, d, err);
    if (rc == CM_OK)
        rc = set_ranges(o, d, s, err);
    if (rc == CM_OK)
        rc = shape_sample(o, s, leader(d), named, err);
    if (rc == CM_OK)
        rc = list_boxes(o, s, leader(d), err);
    if (rc == CM_OK)
        rc = add_parts(o, setting, d, named, s, err);
    s->space.by_number = setting->planned;
    if (setting->planned) /* blocks are made of steps of one length */
        s->space.whole_chunks = false;
    if (rc == CM_OK)
        rc = for_sample(cm_sample_space_init(&s->space, s->dim_name, err), o, d, err);
    for (size_t i = 0; i < s->nparts && rc == CM_OK; i++)
        rc = for_sample(size_part(s, i, err), o, d, err);
    if (rc == CM_OK)
        align_parts(s);
    if (rc == CM_OK)
        rc = count_samples(o, setting, s, err);
    if (rc != CM_OK)
        cm_load_space_release(s);
    return rc;
}

void cm_load_space_release(cm_load_space *s)
{
    for (unsigned j = 0; j < CM_MAX_RANK; j++)
        free(s->dim_name[j]);
    memset(s, 0, sizeof *s);
}
