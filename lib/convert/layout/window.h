/* A part of the target's array that alone is written, or compared. */
#ifndef CM_CONVERT_LAYOUT_WINDOW_H
#define CM_CONVERT_LAYOUT_WINDOW_H

#include "model/box.h"

typedef struct cm_window {
    bool is_part;                /* false: all of the array, and the rest is 0 */
    bool is_beyond;              /* none of its objects was the old dataset's */
    unsigned phase;              /* windows of a lower one are written before */
    uint64_t at[CM_MAX_RANK];    /* its first element in the array */
    uint64_t whole[CM_MAX_RANK]; /* the shape that the array will have */
    uint64_t first_object[CM_MAX_RANK];
} cm_window;

#endif
