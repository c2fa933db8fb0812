/* The least traffic that any way of moving an array within a memory has. */
#include "base/number.h"
#include "plan/meetings.h"
#include "plan/rechunk.h"

enum {
    MAX_RAGGED = 12 /* dimensions whose last box counts in the bound: 4096 sums */
};

/* The boxes along one dimension: COUNT of LENGTH and, where REST > 0, one of that. */
typedef struct boxes {
    uint64_t length, count, rest;
} boxes;

static bool boxes_along(const cm_route_request *r, unsigned j, boxes *out)
{
    uint64_t n = r->shape[j], s = cm_min_u64(r->source[j], n), t = cm_min_u64(r->target[j], n);
    uint64_t longer = s > t ? s : t, shorter = s > t ? t : s;
    *out = (boxes){.length = longer, .count = n / longer, .rest = n % longer};
    return longer == n || longer % shorter == 0;
}

uint64_t cm_route_bound(const cm_route_request *r)
{
    boxes along[CM_MAX_RANK];
    unsigned ragged[MAX_RAGGED], nragged = 0;
    uint64_t total = 1, extra = 0;
    bool nested = true;
    for (unsigned j = 0; j < r->rank; j++) {
        total *= r->shape[j];
        nested = boxes_along(r, j, &along[j]) && nested;
        if (along[j].rest > 0 && nragged < MAX_RAGGED)
            ragged[nragged++] = j;
    }
    total = cm_mul_sat(2, total);
    if (!nested)
        return total;
    for (unsigned which = 0; which < 1u << nragged; which++) {
        uint64_t count = 1, volume = 1;
        for (unsigned j = 0; j < r->rank; j++)
            volume = cm_mul_sat(volume, along[j].length);
        for (unsigned j = 0, k = 0; j < r->rank; j++) {
            bool is_ragged = k < nragged && ragged[k] == j;
            bool rest = is_ragged && (which >> k & 1) != 0;
            k += is_ragged;
            if (rest)
                volume = volume / along[j].length * along[j].rest;
            else
                count = cm_mul_sat(count, along[j].count);
        }
        if (volume > r->memory_nelem)
            extra = cm_add_sat(extra, cm_mul_sat(count, 2 * (volume - r->memory_nelem)));
    }
    return cm_add_sat(total, extra);
}
