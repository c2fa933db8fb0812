#include "format/icechunk/manifest_ranges.h"

#include <stdlib.h>

/*
 * The dimension that is cut into ranges, and how many of its indices each has: all dimensions
 * behind it are whole, and of those in front of it there is one index at a time.
 */
static unsigned cut(unsigned rank, const uint64_t *shape, uint64_t *step)
{
    uint64_t behind = 1;
    for (unsigned j = rank; j-- > 0;) {
        if (behind * shape[j] > CM_ICE_MANIFEST_REFS) {
            *step = CM_ICE_MANIFEST_REFS / behind;
            return j;
        }
        behind *= shape[j];
    }
    *step = rank > 0 ? shape[0] : 1;
    return 0;
}

/* The range of dimension D from chunk FIRST on. */
static void set_range(cm_ice_range *r, unsigned rank, const uint64_t *shape, unsigned d,
                      uint64_t step, uint64_t first)
{
    uint64_t behind = 1, left = first;
    for (unsigned j = d + 1; j < rank; j++) {
        behind *= shape[j];
        r->extent.first[j] = 0;
        r->extent.end[j] = (uint32_t)shape[j];
    }
    left /= behind;
    for (unsigned j = d + 1; j-- > 0 && rank > 0;) {
        uint64_t at = left % shape[j], end = at + (j == d ? step : 1);
        left /= shape[j];
        r->extent.first[j] = (uint32_t)at;
        r->extent.end[j] = (uint32_t)(end < shape[j] ? end : shape[j]);
    }
    r->first = first;
    r->n = rank > 0 ? (size_t)((r->extent.end[d] - r->extent.first[d]) * behind) : 1;
}

int cm_ice_ranges_make(cm_ice_ranges *r, unsigned rank, const uint64_t *shape, cm_error *err)
{
    uint64_t step, nchunks = 1;
    const unsigned d = cut(rank, shape, &step);
    r->rank = rank;
    for (unsigned j = 0; j < rank; j++)
        nchunks *= shape[j];
    for (uint64_t first = 0; first < nchunks; first += r->item[r->n - 1].n) {
        cm_ice_range *item = cm_make_room(r->item, r->n, &r->capacity, sizeof(item[0]), 16);
        if (item == NULL)
            return cm_fail(err, CM_ENOMEM, "no memory for manifests");
        r->item = item;
        item[r->n] = (cm_ice_range){.dirty = true};
        set_range(&item[r->n++], rank, shape, d, step, first);
    }
    return CM_OK;
}

/* Marks the ranges that EXTENT meets, if one of them is dirty; whether that is new of any. */
static bool mark(cm_ice_ranges *r, const cm_ice_extent *extent)
{
    bool more = false;
    if (!cm_ice_ranges_meet(r, extent))
        return false;
    for (size_t i = 0; i < r->n; i++) {
        if (r->item[i].dirty || !cm_ice_extents_meet(extent, &r->item[i].extent, r->rank))
            continue;
        r->item[i].dirty = more = true;
    }
    return more;
}

int cm_ice_ranges_spread(cm_ice_ranges *r, const cm_fb_table *was, cm_error *err)
{
    bool more = true;
    while (more) {
        more = false;
        for (size_t i = 0; i < cm_ice_node_nmanifests(was); i++) {
            const uint8_t *id;
            cm_ice_extent extent;
            int rc = cm_ice_node_manifest(was, i, r->rank, &id, &extent, err);
            if (rc != CM_OK)
                return rc;
            more |= mark(r, &extent);
        }
    }
    return CM_OK;
}

bool cm_ice_ranges_meet(const cm_ice_ranges *r, const cm_ice_extent *extent)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->item[i].dirty && cm_ice_extents_meet(extent, &r->item[i].extent, r->rank))
            return true;
    return false;
}

void cm_ice_ranges_release(cm_ice_ranges *r)
{
    free(r->item);
    *r = (cm_ice_ranges){0};
}
