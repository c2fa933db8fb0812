/* Sorting numbers with what belongs to them, in linear time. */
#ifndef CM_PLAN_RADIX_H
#define CM_PLAN_RADIX_H

#include <stddef.h>
#include <stdint.h>

#include <chunkmill/error.h>

typedef struct cm_keyed {
    uint64_t key;
    uint64_t value;
} cm_keyed;

/* Ascending keys; equal ones stay in their order.  Takes as much memory again while it sorts. */
int cm_radix_sort(cm_keyed *item, size_t n, cm_error *err);

#endif
