#include "plan/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* A cut is moved to the end of a row where that moves it by less than this part of a share. */
enum {
    ROUNDING = 64
};

/* All bytes together: sums and differences of two of them fit 64 bits. */
#define MAX_NBYTES ((uint64_t)INT64_MAX / 4)

uint64_t cm_part_nobjects(const cm_part_item *item)
{
    uint64_t n = 1;
    for (unsigned j = 0; j < item->rank; j++)
        n *= item->count[j];
    return n;
}

/* ---- bytes and objects ---- */

static uint64_t part_of(uint64_t whole, uint64_t i, uint64_t n)
{
    return (uint64_t)((unsigned __int128)whole * i / n);
}

/* Bytes below object AT. */
static uint64_t bytes_below(const cm_part_item *item, uint64_t nobjects, uint64_t at)
{
    if (at >= nobjects)
        return item->nbytes;
    if (item->below == NULL)
        return part_of(item->nbytes, at, nobjects);
    size_t lo = 0, hi = item->nbelow; /* segments that begin at or before AT */
    while (hi - lo > 1) {
        size_t middle = lo + (hi - lo) / 2;
        if (part_of(nobjects, middle, item->nbelow) <= at)
            lo = middle;
        else
            hi = middle;
    }
    uint64_t from = part_of(nobjects, lo, item->nbelow);
    uint64_t to = part_of(nobjects, lo + 1, item->nbelow);
    uint64_t of = item->below[lo + 1] - item->below[lo];
    return item->below[lo] + (to > from ? part_of(of, at - from, to - from) : 0);
}

/* The object, a multiple of GRAIN or the end, below which lie most nearly NBYTES. */
static uint64_t object_at(const cm_part_item *item, uint64_t nobjects, uint64_t grain,
                          uint64_t nbytes)
{
    uint64_t lo = 0, hi = (nobjects - 1) / grain + 1; /* in grains; LO's bytes are not more */
    while (hi - lo > 1) {
        uint64_t middle = lo + (hi - lo) / 2;
        if (bytes_below(item, nobjects, middle * grain) <= nbytes)
            lo = middle;
        else
            hi = middle;
    }
    uint64_t low = lo * grain, high = hi > nobjects / grain ? nobjects : hi * grain;
    uint64_t below = bytes_below(item, nobjects, low), above = bytes_below(item, nobjects, high);
    return above <= nbytes || above - nbytes < nbytes - below ? high : low;
}

/* ---- cutting ---- */

/* An item, and what one of its objects weighs. */
typedef struct weighed {
    const cm_part_item *item;
    uint64_t nobjects;
    uint64_t each;
    size_t index;
} weighed;

static int heavier_first(const void *a, const void *b)
{
    const weighed *x = a, *y = b;
    if (x->each != y->each)
        return x->each > y->each ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static weighed weigh(const cm_part_item *item, size_t index)
{
    weighed w = {.item = item, .index = index, .nobjects = cm_part_nobjects(item)};
    if (w.nobjects > 0)
        w.each = item->whole ? item->nbytes : item->nbytes / w.nobjects;
    return w;
}

/* Objects between places where a cut may be: whole rows while a share has many of them. */
static uint64_t grain_of(const weighed *w, uint64_t share_nbytes)
{
    const cm_part_item *item = w->item;
    uint64_t most = share_nbytes / ROUNDING / (w->each > 0 ? w->each : 1), grain = 1;
    if (item->whole)
        return w->nobjects;
    for (unsigned j = item->rank; j-- > 1;) {
        if (grain * item->count[j] > most)
            return grain;
        grain *= item->count[j];
    }
    if (item->rank > 0 && item->grain > 1 && item->grain < item->count[0] &&
        item->grain <= most / grain)
        grain *= item->grain;
    return grain;
}

/*
 * The cuts of W.  OFF[k] is by how many bytes the parts below cut k have too much of
 * the items before it, and then of W too.
 */
static void cut_one(const weighed *w, uint64_t nparts, uint64_t part, size_t many, uint64_t grain,
                    int64_t *off, cm_part_run *out)
{
    uint64_t last = 0;
    for (size_t i = 0; i < many; i++)
        out[i] = (cm_part_run){0, w->nobjects};
    for (uint64_t k = 1; k < nparts; k++) {
        uint64_t ideal = part_of(w->item->nbytes, k, nparts), at = 0;
        int64_t want = (int64_t)ideal - off[k];
        if (want >= (int64_t)w->item->nbytes)
            at = w->nobjects;
        else if (want > 0)
            at = object_at(w->item, w->nobjects, grain, (uint64_t)want);
        last = at > last ? at : last;
        off[k] += (int64_t)bytes_below(w->item, w->nobjects, last) - (int64_t)ideal;
        if (k >= part && k - part < many)
            out[k - part].first = last;
        if (k > part && k - part <= many)
            out[k - part - 1].end = last;
    }
}

int cm_part_cut(const cm_part_item *item, size_t n, uint64_t nparts, uint64_t part, size_t many,
                cm_part_run *out, cm_error *err)
{
    if (nparts == 0 || part >= nparts || many > nparts - part)
        return cm_fail(err, CM_EINTERNAL, "there is no part %llu of %llu", (unsigned long long)part,
                       (unsigned long long)nparts);
    weighed *list = cm_calloc(n + 1, sizeof(list[0]), err);
    int64_t *off = cm_calloc(nparts, sizeof(off[0]), err);
    int rc = list == NULL || off == NULL ? CM_ENOMEM : CM_OK;
    uint64_t total = 0;
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        list[i] = weigh(&item[i], i);
        if (item[i].nbytes > MAX_NBYTES - total)
            rc = cm_fail(err, CM_EINVAL, "the source has more bytes than can be counted");
        else
            total += item[i].nbytes;
    }
    if (rc == CM_OK)
        qsort(list, n, sizeof(list[0]), heavier_first);
    for (size_t i = 0; rc == CM_OK && i < n; i++)
        if (list[i].nobjects > 0)
            cut_one(&list[i], nparts, part, many, grain_of(&list[i], total / nparts), off,
                    &out[list[i].index * many]);
        else
            memset(&out[list[i].index * many], 0, many * sizeof(out[0]));
    free(list);
    free(off);
    return rc;
}

/* ---- boxes ---- */

unsigned cm_part_boxes(const uint64_t *count, unsigned rank, cm_part_run share,
                       cm_box box[CM_PART_MAX_BOXES])
{
    unsigned n = 0;
    for (uint64_t at = share.first; at < share.end;) {
        cm_box *b = &box[n++];
        uint64_t rest = at, stride = 1, taken = 1;
        unsigned j = rank;
        *b = (cm_box){.rank = rank};
        for (unsigned i = rank; i-- > 0; rest /= count[i]) {
            b->start[i] = rest % count[i];
            b->shape[i] = 1;
        }
        /* The outermost dimension along which whole rows can be taken from here. */
        while (j > 0) {
            uint64_t row = stride * count[j - 1];
            b->shape[j - 1] = count[j - 1] - b->start[j - 1];
            if ((share.end - at) / stride < b->shape[j - 1])
                b->shape[j - 1] = (share.end - at) / stride;
            taken = stride * b->shape[j - 1];
            if (b->shape[j - 1] < count[j - 1] || (share.end - at) / row < 2)
                break;
            stride = row;
            j--;
        }
        at += taken;
    }
    return n;
}
