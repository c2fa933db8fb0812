/*
 * How an array is cut into the boxes that a verification compares.
 *
 * A sample compares a few boxes, each where one source chunk and one output chunk meet.  A whole
 * comparison takes boxes that are closed under both kinds of chunks where the memory allows, so
 * that neither is decoded more often than need be, and several chunks at once where they are
 * small.
 */
#ifndef CM_CONVERT_VERIFY_VERIFY_BOXES_H
#define CM_CONVERT_VERIFY_VERIFY_BOXES_H

#include "convert/job.h"

typedef struct cm_verify_area {
    const cm_job_var *var;
    const cm_grid *target; /* chunks of the array in the store */
    cm_box area;           /* what is compared of the variable */
} cm_verify_area;

/* Of an element in the source, as estimated for a text. */
size_t cm_verify_itemsize(const cm_job_var *v);

/* True where a sample compares all of A: it is small, in few chunks and in few files. */
bool cm_verify_is_small(const cm_verify_area *a);

/* The SHAPE of its boxes, each of which takes SHARE bytes at most, if that can be. */
void cm_verify_box_shape(const cm_verify_area *a, bool sample, double share, uint64_t *shape);

/* The number of the I-th of N boxes that a sample takes of NBOXES: the first, the last, and
 * others in between, the same every time. */
uint64_t cm_verify_box_number(uint64_t nboxes, uint64_t n, uint64_t i);

#endif
