#include "format/multi/grow.h"

#include "base/mem.h"
#include "base/number.h"

void cm_multi_pieces_grow(unsigned rank, const bool *joined, const uint64_t *longest,
                          uint32_t itemsize, uint64_t most, uint64_t *chunk)
{
    uint64_t nbytes = itemsize > 0 ? itemsize : 1;
    for (unsigned j = 0; j < rank; j++)
        if (!cm_mul_u64(nbytes, joined[j] ? longest[j] : chunk[j], &nbytes))
            return;
    for (unsigned j = rank; j-- > 0;) {
        if (nbytes == 0 || joined[j] || longest[j] <= chunk[j])
            continue;
        uint64_t times = cm_div_ceil(longest[j], chunk[j]), fits = most / nbytes;
        times = times < fits ? times : fits;
        if (times > 1) {
            nbytes *= times;
            chunk[j] *= times;
        }
    }
}
