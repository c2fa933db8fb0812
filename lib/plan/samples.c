#include "plan/samples.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/number.h"
#include "plan/shuffle.h"

#define MAX_SAMPLES (UINT64_C(1) << 62)

bool cm_sample_starts_anywhere(cm_order order)
{
    return order == CM_ORDER_RANDOM || order == CM_ORDER_MAP || order == CM_ORDER_SERIES;
}

/* Elements along dimension J at which a sample without lags may lie. */
static uint64_t usable(const cm_sample_space *s, unsigned j)
{
    return s->length[j] - (j == s->lagged ? s->reach : 0);
}

static const char *dimension_text(unsigned j, char *const *name, char *buf, size_t size)
{
    if (name != NULL && name[j] != NULL)
        return name[j];
    snprintf(buf, size, "%u", j);
    return buf;
}

static int check_order(const cm_sample_space *s, cm_error *err)
{
    if (s->rank > CM_MAX_RANK)
        return cm_fail(err, CM_EINVAL, "%u dimensions, at most %d are handled", s->rank,
                       CM_MAX_RANK);
    if (s->rank == 0 && s->reach != 0)
        return cm_fail(err, CM_EINVAL, "lags need a dimension, there is none");
    if (s->rank == 0 && (s->order == CM_ORDER_MAP || s->order == CM_ORDER_SERIES))
        return cm_fail(err, CM_EINVAL, "the order %s needs a dimension, there is none",
                       s->order == CM_ORDER_MAP ? "map" : "series");
    if (s->parameter == 0 && s->order == CM_ORDER_STRIDED)
        return cm_fail(err, CM_EINVAL, "the order strided needs a stride of at least 1");
    if (s->parameter == 0 && s->order == CM_ORDER_BLOCK_SHUFFLE)
        return cm_fail(err, CM_EINVAL, "the order block-shuffle needs runs of at least 1");
    return CM_OK;
}

/* Maps and series have the extents that their names say. */
static void set_extents(cm_sample_space *s)
{
    if (s->order != CM_ORDER_MAP && s->order != CM_ORDER_SERIES)
        return;
    for (unsigned j = 0; j < s->rank; j++)
        s->sample[j] = (j == 0) == (s->order == CM_ORDER_MAP) ? 1 : usable(s, j);
}

static int check_dimension(const cm_sample_space *s, unsigned j, char *const *name, cm_error *err)
{
    char number[16];
    const uint64_t reach = j == s->lagged ? s->reach : 0;
    const char *text = dimension_text(j, name, number, sizeof(number));

    if (s->length[j] == 0)
        return cm_fail(err, CM_EINVAL, "dimension %s has no elements", text);
    if (s->sample[j] == 0)
        return cm_fail(err, CM_EINVAL, "the sample takes no elements of dimension %s", text);
    if (s->order == CM_ORDER_CHUNKS && s->chunk[j] == 0)
        return cm_fail(err, CM_EINVAL, "dimension %s has no chunks", text);
    if (s->sample[j] <= s->length[j] && s->sample[j] <= s->length[j] - reach)
        return CM_OK;
    if (reach != 0)
        return cm_fail(err, CM_EINVAL,
                       "a sample of %" PRIu64 " and lags that span %" PRIu64
                       " do not fit dimension %s, which has %" PRIu64,
                       s->sample[j], reach, text, s->length[j]);
    return cm_fail(err, CM_EINVAL,
                   "a sample of %" PRIu64 " does not fit dimension %s, which has %" PRIu64,
                   s->sample[j], text, s->length[j]);
}

/* The chunks whose lengths samples have along J; NULL: they have one length. */
static const cm_cuts *followed(const cm_sample_space *s, unsigned j)
{
    return s->whole_chunks ? s->cuts[j] : NULL;
}

static uint64_t count_places(const cm_sample_space *s, unsigned j)
{
    if (followed(s, j) != NULL)
        return s->cuts[j]->n;
    if (cm_sample_starts_anywhere(s->order))
        return usable(s, j) - s->sample[j] + 1;
    if (s->order == CM_ORDER_ALL)
        return cm_div_ceil(usable(s, j), s->sample[j]);
    return usable(s, j) / s->sample[j];
}

/* Boxes that lie in the array. */
static int init_list(cm_sample_space *s, char *const *name, cm_error *err)
{
    char number[16];
    if (s->reach != 0)
        return cm_fail(err, CM_EINVAL, "listed samples have no lags");
    if (s->nlisted == 0 || s->nlisted > MAX_SAMPLES)
        return cm_fail(err, CM_EINVAL, "no sample is listed");
    for (unsigned j = 0; j < s->rank; j++)
        s->sample[j] = 0;
    for (uint64_t i = 0; i < s->nlisted; i++)
        for (unsigned j = 0; j < s->rank; j++) {
            const uint64_t *box = &s->list[i * 2 * s->rank];
            const uint64_t start = box[j], count = box[s->rank + j];
            if (count == 0 || count > s->length[j] || start > s->length[j] - count)
                return cm_fail(err, CM_EINVAL,
                               "read %" PRIu64 " takes %" PRIu64 " elements from %" PRIu64
                               " on of dimension %s, which has %" PRIu64,
                               i, count, start, dimension_text(j, name, number, sizeof(number)),
                               s->length[j]);
            s->sample[j] = cm_max_u64(s->sample[j], count);
        }
    s->nsamples = s->nlisted;
    return CM_OK;
}

int cm_sample_space_init(cm_sample_space *space, char *const *name, cm_error *err)
{
    int rc = check_order(space, err);
    char number[16];

    if (rc != CM_OK)
        return rc;
    if (space->order == CM_ORDER_LIST)
        return init_list(space, name, err);
    const uint64_t length = space->rank > 0 ? space->length[space->lagged] : 0;
    if (length != 0 && space->reach >= length)
        return cm_fail(err, CM_EINVAL,
                       "lags that span %" PRIu64 " do not fit dimension %s, which has %" PRIu64,
                       space->reach, dimension_text(space->lagged, name, number, sizeof(number)),
                       length);
    if (space->reach != 0)
        space->whole_chunks = false;
    if (length != 0)
        set_extents(space);
    for (unsigned j = 0; j < space->rank; j++) {
        rc = check_dimension(space, j, name, err);
        if (rc != CM_OK)
            return rc;
        space->count[j] = count_places(space, j);
    }
    if (!cm_product_u64(space->rank, space->count, &space->nsamples) ||
        space->nsamples > MAX_SAMPLES)
        return cm_fail(err, CM_EINVAL,
                       "more than 2^62 different samples: a larger sample, or an order of samples "
                       "side by side, has fewer");
    return CM_OK;
}

/* ---- orders: from the number in the epoch to the number in C order ---- */

/* 0, N, 2N, ..., then 1, N + 1, ...: the first TOTAL mod N of these series have one more. */
static uint64_t strided(uint64_t total, uint64_t stride, uint64_t i)
{
    const uint64_t each = total / stride, longer = total % stride;
    const uint64_t in_longer = longer * (each + 1);

    if (i < in_longer)
        return i / (each + 1) + i % (each + 1) * stride;
    i -= in_longer;
    return longer + i / each + i % each * stride;
}

/* A run that is short, the last in C order, is put anywhere between the others. */
static uint64_t block_shuffled(const cm_sample_space *s, uint64_t epoch, uint64_t i)
{
    const uint64_t length = s->parameter;
    const uint64_t nfull = s->nsamples / length, rest = s->nsamples % length;
    const uint64_t short_at =
        length * cm_below(cm_shuffle_key(s->seed, epoch, CM_SHUFFLE_SHORT_RUN), nfull + 1);
    const uint64_t within_key = cm_shuffle_key(s->seed, epoch, CM_SHUFFLE_WITHIN_RUNS);

    if (rest != 0 && i >= short_at) {
        if (i - short_at < rest)
            return nfull * length + cm_permute(rest, cm_mix64(within_key + nfull), i - short_at);
        i -= rest;
    }
    const uint64_t run =
        cm_permute(nfull, cm_shuffle_key(s->seed, epoch, CM_SHUFFLE_RUNS), i / length);
    return run * length + cm_permute(length, cm_mix64(within_key + run), i % length);
}

/* The places along J whose first element lies in the same chunk as that of place X. */
static void places_of_chunk(const cm_sample_space *s, unsigned j, uint64_t x, uint64_t *first,
                            uint64_t *n)
{
    if (followed(s, j) != NULL) {
        *first = x;
        *n = 1;
        return;
    }
    const uint64_t origin = s->origin[j], at = origin + x * s->sample[j];
    const cm_cuts *cuts = s->cuts[j];
    const uint64_t k = cuts != NULL ? cm_cuts_find(cuts, at) : at / s->chunk[j];
    const uint64_t start = cuts != NULL ? cm_cuts_first(cuts, k) : k * s->chunk[j];
    const uint64_t chunk = cuts != NULL ? cm_cuts_end(cuts, k) - start : s->chunk[j];
    uint64_t end = s->count[j];

    *first = start > origin ? cm_div_ceil(start - origin, s->sample[j]) : 0;
    if (origin + s->length[j] - start > chunk &&
        cm_div_ceil(start + chunk - origin, s->sample[j]) < end)
        end = cm_div_ceil(start + chunk - origin, s->sample[j]);
    *n = end - *first;
}

/*
 * Chunk after chunk.  Before chunk (c0, c1, ...) come all places of chunks below
 * c0, then within c0 all of chunks below c1, ...: as each of these numbers is a
 * multiple of what follows, a division finds a place of the right chunk.
 */
static uint64_t chunk_after_chunk(const cm_sample_space *s, uint64_t i)
{
    uint64_t first[CM_MAX_RANK], n[CM_MAX_RANK], number = 0, scale = 1;
    uint64_t rest = s->nsamples, chosen = 1;

    for (unsigned j = 0; j < s->rank; j++) {
        rest /= s->count[j];
        places_of_chunk(s, j, i / (chosen * rest), &first[j], &n[j]);
        i -= first[j] * chosen * rest;
        chosen *= n[j];
    }
    for (unsigned j = s->rank; j-- > 0; scale *= s->count[j]) {
        number += (first[j] + i % n[j]) * scale;
        i /= n[j];
    }
    return number;
}

uint64_t cm_sample_number(const cm_sample_space *space, uint64_t epoch, uint64_t i)
{
    if (space->by_number)
        return i;
    switch (space->order) {
    case CM_ORDER_RANDOM:
    case CM_ORDER_MAP:
    case CM_ORDER_SERIES:
        return cm_permute(space->nsamples, cm_shuffle_key(space->seed, epoch, CM_SHUFFLE_SAMPLES),
                          i);
    case CM_ORDER_STRIDED:
        return strided(space->nsamples, space->parameter, i);
    case CM_ORDER_BLOCK_SHUFFLE:
        return block_shuffled(space, epoch, i);
    case CM_ORDER_CHUNKS:
        return chunk_after_chunk(space, i);
    case CM_ORDER_SEQUENTIAL:
    case CM_ORDER_ALL:
    case CM_ORDER_LIST:
        break;
    }
    return i;
}

static void listed(const cm_sample_space *space, uint64_t i, cm_box *out)
{
    const uint64_t *box = &space->list[i * 2 * space->rank];
    out->rank = space->rank;
    for (unsigned j = 0; j < space->rank; j++) {
        out->start[j] = box[j];
        out->shape[j] = box[space->rank + j];
    }
}

void cm_sample_at(const cm_sample_space *space, uint64_t epoch, uint64_t i, cm_box *out)
{
    if (space->order == CM_ORDER_LIST) {
        listed(space, i, out);
        return;
    }
    const bool anywhere = cm_sample_starts_anywhere(space->order);
    uint64_t number = cm_sample_number(space, epoch, i);

    out->rank = space->rank;
    for (unsigned j = space->rank; j-- > 0;) {
        const uint64_t place = number % space->count[j];
        number /= space->count[j];
        const cm_cuts *cuts = followed(space, j);
        if (cuts != NULL) {
            out->start[j] = cm_cuts_first(cuts, place);
            out->shape[j] = cm_cuts_end(cuts, place) - out->start[j];
            continue;
        }
        const uint64_t at = anywhere ? place : place * space->sample[j];
        out->start[j] = space->origin[j] + at;
        /* Never less than `sample` but with CM_ORDER_ALL. */
        const uint64_t left = usable(space, j) - at;
        out->shape[j] = left < space->sample[j] ? left : space->sample[j];
    }
}

void cm_sample_part_box(const cm_sample_part *part, const cm_box *sample, cm_box *out)
{
    out->rank = part->rank;
    for (unsigned d = 0; d < part->rank; d++) {
        const int j = part->axis[d];
        out->start[d] =
            j < 0 ? 0 : sample->start[j] + ((unsigned)j == part->lagged ? part->lag : 0);
        out->shape[d] = j < 0 ? part->shape[d] : sample->shape[j];
    }
}
