#include "format/nc/extent.h"

#include <string.h>

#include "model/copy.h"

bool cm_extent_clip(const cm_box *box, const uint64_t *extent, cm_box *out)
{
    cm_box all = {.rank = box->rank};
    memcpy(all.shape, extent, box->rank * sizeof *extent);
    if (cm_box_intersect(box, &all, out))
        return true;
    *out = *box;
    memset(out->shape, 0, sizeof out->shape);
    return false;
}

uint64_t cm_extent_place(const cm_box *box, const cm_box *part, uint64_t i)
{
    uint64_t place = 0, stride = 1;
    for (unsigned j = box->rank; j-- > 0;) {
        place += i % part->shape[j] * stride;
        i /= part->shape[j];
        stride *= box->shape[j];
    }
    return place;
}

void cm_extent_spread(const cm_box *box, const cm_box *part, size_t itemsize, const void *fill,
                      void *data)
{
    uint8_t *bytes = data;
    uint64_t nelem = cm_box_nelem(part), end = cm_box_nelem(box);
    uint64_t run = box->rank ? part->shape[box->rank - 1] : 1;
    /*
     * From the last run to the first: no run moves towards the start, so writing never reaches a
     * run that has yet to move.
     */
    for (uint64_t i = nelem; i > 0; i -= run) {
        uint64_t place = cm_extent_place(box, part, i - run);
        memmove(bytes + place * itemsize, bytes + (i - run) * itemsize, run * itemsize);
        cm_fill(bytes + (place + run) * itemsize, end - place - run, itemsize, fill);
        end = place;
    }
    cm_fill(bytes, end, itemsize, fill);
}
