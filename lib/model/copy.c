#include "model/copy.h"

#include <stdlib.h>
#include <string.h>

void cm_strides_c(unsigned rank, const uint64_t *shape, size_t itemsize, int64_t *stride)
{
    int64_t step = (int64_t)itemsize;
    for (unsigned j = rank; j-- > 0;) {
        stride[j] = step;
        step *= (int64_t)shape[j];
    }
}

/* ---- the shape of the loops ----------------------------------------------------------------- */

typedef struct axis {
    uint64_t length;
    int64_t dst, src; /* byte strides */
} axis;

/* A copy as nested loops, outermost first, around items of ITEMSIZE contiguous bytes. */
typedef struct loops {
    unsigned rank;
    size_t itemsize;
    axis axis[CM_MAX_RANK];
} loops;

static uint64_t magnitude(int64_t stride)
{
    return stride < 0 ? -(uint64_t)stride : (uint64_t)stride;
}

/* True when A belongs outside of B: the destination is walked in its own order where that is
   possible, since a store to a line that is not complete costs more than a load. */
static bool is_outer(const axis *a, const axis *b)
{
    const uint64_t da = magnitude(a->dst), db = magnitude(b->dst);
    return da != db ? da > db : magnitude(a->src) > magnitude(b->src);
}

/* Collects the axes that are longer than 1, ordered; false when there is nothing to copy. */
static bool collect(loops *l, unsigned rank, const uint64_t *shape, size_t itemsize,
                    const int64_t *dst_stride, const int64_t *src_stride)
{
    l->rank = 0;
    l->itemsize = itemsize;
    for (unsigned j = 0; j < rank; j++) {
        if (shape[j] == 0)
            return false;
        if (shape[j] == 1)
            continue;
        const axis a = {shape[j], dst_stride[j], src_stride[j]};
        unsigned at = l->rank++;
        for (; at > 0 && is_outer(&a, &l->axis[at - 1]); at--)
            l->axis[at] = l->axis[at - 1];
        l->axis[at] = a;
    }
    return itemsize > 0;
}

/* Joins neighbours that one stride walks in both arrays. */
static void merge(loops *l)
{
    unsigned kept = 0;
    for (unsigned j = 1; j < l->rank; j++) {
        axis *outer = &l->axis[kept];
        const axis *inner = &l->axis[j];
        if (outer->dst == inner->dst * (int64_t)inner->length &&
            outer->src == inner->src * (int64_t)inner->length)
            *outer = (axis){outer->length * inner->length, inner->dst, inner->src};
        else
            l->axis[++kept] = *inner;
    }
    if (l->rank)
        l->rank = kept + 1;
}

/* An innermost axis that lies contiguous in both arrays becomes part of the item. */
static void absorb(loops *l)
{
    if (l->rank == 0)
        return;
    const axis *last = &l->axis[l->rank - 1];
    if (last->dst == (int64_t)l->itemsize && last->src == (int64_t)l->itemsize) {
        l->itemsize *= last->length;
        l->rank--;
    }
}

/* Puts the axis that the source walks fastest next to the innermost one, for blocking. */
static void pair_fastest(loops *l)
{
    unsigned fastest = l->rank - 1;
    for (unsigned j = 0; j < l->rank; j++) {
        if (magnitude(l->axis[j].src) < magnitude(l->axis[fastest].src))
            fastest = j;
    }
    if (fastest + 2 >= l->rank)
        return;
    const axis a = l->axis[fastest];
    memmove(&l->axis[fastest], &l->axis[fastest + 1], (l->rank - 2 - fastest) * sizeof a);
    l->axis[l->rank - 2] = a;
}

/* ---- kernels -------------------------------------------------------------------------------- */

typedef struct plane {
    axis outer, inner;
    size_t itemsize;
} plane;

typedef void copy_plane(const plane *p, uint8_t *dst, const uint8_t *src);

/* The compiler turns each into moves of that width; memcpy keeps unaligned data defined. */
#define PLANE_KERNEL(name, nbytes)                                                                 \
    static void name(const plane *p, uint8_t *dst, const uint8_t *src)                             \
    {                                                                                              \
        for (uint64_t i = 0; i < p->outer.length; i++) {                                           \
            uint8_t *d = dst + (int64_t)i * p->outer.dst;                                          \
            const uint8_t *s = src + (int64_t)i * p->outer.src;                                    \
            for (uint64_t j = 0; j < p->inner.length; j++) {                                       \
                memcpy(d, s, nbytes);                                                              \
                d += p->inner.dst;                                                                 \
                s += p->inner.src;                                                                 \
            }                                                                                      \
        }                                                                                          \
    }

PLANE_KERNEL(plane_1, 1)
PLANE_KERNEL(plane_2, 2)
PLANE_KERNEL(plane_4, 4)
PLANE_KERNEL(plane_8, 8)
PLANE_KERNEL(plane_16, 16)
PLANE_KERNEL(plane_any, p->itemsize)

static copy_plane *kernel_of(size_t itemsize)
{
    switch (itemsize) {
    case 1:
        return plane_1;
    case 2:
        return plane_2;
    case 4:
        return plane_4;
    case 8:
        return plane_8;
    case 16:
        return plane_16;
    default:
        return plane_any;
    }
}

/*
 * Tile by tile, so that lines of both arrays stay in the first-level cache until they are used
 * up.
 */
static void copy_blocked(const plane *p, copy_plane *kernel, uint8_t *dst, const uint8_t *src)
{
    enum {
        TILE = 32
    };
    plane tile = *p;
    for (uint64_t i = 0; i < p->outer.length; i += TILE) {
        tile.outer.length = p->outer.length - i < TILE ? p->outer.length - i : TILE;
        for (uint64_t j = 0; j < p->inner.length; j += TILE) {
            tile.inner.length = p->inner.length - j < TILE ? p->inner.length - j : TILE;
            kernel(&tile, dst + (int64_t)i * p->outer.dst + (int64_t)j * p->inner.dst,
                   src + (int64_t)i * p->outer.src + (int64_t)j * p->inner.src);
        }
    }
}

/* Steps DST and SRC to the next position of the N outer axes; false after the last. */
static bool step(const loops *l, unsigned n, uint64_t *at, uint8_t **dst, const uint8_t **src)
{
    for (unsigned j = n; j-- > 0;) {
        const axis *a = &l->axis[j];
        if (++at[j] < a->length) {
            *dst += a->dst;
            *src += a->src;
            return true;
        }
        at[j] = 0;
        *dst -= (int64_t)(a->length - 1) * a->dst;
        *src -= (int64_t)(a->length - 1) * a->src;
    }
    return false;
}

void cm_copy_nd(unsigned rank, const uint64_t *shape, size_t itemsize, void *dst,
                const int64_t *dst_stride, const void *src, const int64_t *src_stride)
{
    loops l;
    if (!collect(&l, rank, shape, itemsize, dst_stride, src_stride))
        return;
    merge(&l);
    absorb(&l);
    if (l.rank == 0) {
        memcpy(dst, src, l.itemsize);
        return;
    }
    pair_fastest(&l);

    plane p = {.outer = {1, 0, 0}, .inner = l.axis[l.rank - 1], .itemsize = l.itemsize};
    if (l.rank > 1)
        p.outer = l.axis[l.rank - 2];
    const bool crossed = l.rank > 1 && magnitude(p.outer.src) < magnitude(p.inner.src);
    copy_plane *kernel = kernel_of(l.itemsize);
    const unsigned nouter = l.rank > 2 ? l.rank - 2 : 0;
    uint64_t at[CM_MAX_RANK] = {0};
    uint8_t *d = dst;
    const uint8_t *s = src;
    do {
        if (crossed)
            copy_blocked(&p, kernel, d, s);
        else
            kernel(&p, d, s);
    } while (step(&l, nouter, at, &d, &s));
}

/* ---- filling -------------------------------------------------------------------------------- */

void cm_fill(void *dst, uint64_t nelem, size_t itemsize, const void *value)
{
    uint8_t *d = dst;
    const uint8_t *v = value;
    const size_t nbytes = nelem * itemsize;
    if (nbytes == 0)
        return;
    if (v == NULL || itemsize == 1 || !memcmp(v, v + 1, itemsize - 1)) {
        memset(d, v == NULL ? 0 : v[0], nbytes);
        return;
    }
    /* Double the filled part while it is small, then copy it from the first-level cache. */
    const size_t most = 4096 / itemsize * itemsize;
    size_t filled = itemsize;
    memcpy(d, v, itemsize);
    while (filled < nbytes) {
        size_t n = most && filled > most ? most : filled;
        n = n < nbytes - filled ? n : nbytes - filled;
        memcpy(d + filled, d, n);
        filled += n;
    }
}

void cm_fill_nd(unsigned rank, const uint64_t *shape, size_t itemsize, void *dst,
                const int64_t *dst_stride, const void *value)
{
    static const int64_t NO_STRIDE[CM_MAX_RANK];
    loops l;
    if (!collect(&l, rank, shape, itemsize, dst_stride, NO_STRIDE))
        return;
    merge(&l);
    axis row = {1, (int64_t)itemsize, 0};
    unsigned nouter = l.rank;
    if (l.rank && l.axis[l.rank - 1].dst == (int64_t)itemsize)
        row = l.axis[--nouter];
    uint64_t at[CM_MAX_RANK] = {0};
    uint8_t *d = dst;
    const uint8_t *unused = dst;
    do
        cm_fill(d, row.length, itemsize, value);
    while (step(&l, nouter, at, &d, &unused));
}

bool cm_all_equal(const void *data, uint64_t nelem, size_t itemsize, const void *value)
{
    const uint8_t *d = data;
    if (nelem == 0 || itemsize == 0)
        return true;
    /* If the first is VALUE and each equals the one before it, all are. */
    return !memcmp(d, value, itemsize) && !memcmp(d, d + itemsize, (nelem - 1) * itemsize);
}
