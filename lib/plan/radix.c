#include "plan/radix.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    DIGIT_BITS = 11, /* the counters stay in the first-level cache, 64 bits take 6 passes */
    NVALUES = 1 << DIGIT_BITS
};

static size_t digit(uint64_t key, unsigned shift)
{
    return (key >> shift) & (NVALUES - 1);
}

int cm_radix_sort(cm_keyed *item, size_t n, cm_error *err)
{
    cm_keyed *from = item, *to, *scratch;
    uint64_t differing = 0;

    for (size_t i = 1; i < n; i++)
        differing |= item[i].key ^ item[0].key;
    if (differing == 0)
        return CM_OK;
    scratch = to = cm_calloc(n, sizeof(*scratch), err);
    if (scratch == NULL)
        return CM_ENOMEM;
    for (unsigned shift = 0; shift < 64; shift += DIGIT_BITS) {
        size_t next[NVALUES] = {0}, sum = 0;
        if (digit(differing, shift) == 0)
            continue;
        for (size_t i = 0; i < n; i++)
            next[digit(from[i].key, shift)]++;
        for (size_t v = 0; v < NVALUES; v++) {
            const size_t count = next[v];
            next[v] = sum;
            sum += count;
        }
        for (size_t i = 0; i < n; i++)
            to[next[digit(from[i].key, shift)]++] = from[i];
        cm_keyed *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != item)
        memcpy(item, from, n * sizeof(*item));
    free(scratch);
    return CM_OK;
}
