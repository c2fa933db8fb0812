/*
 * The step of a coordinate, and the gaps between its values.
 *
 * Times are instants in microseconds on a calendar's own day count (cm_time_point), in ascending
 * order.  A step is a fixed length, or a number of calendar months, where all values lie equally
 * far from the beginning, the end or the middle of their month.  The step is the smallest distance
 * that occurs, if at least half of all distances have it and the others are multiples.  Otherwise
 * the coordinate has no step, and no gaps.
 *
 * All functions are pure and may run in any thread.
 */
#ifndef CM_MODEL_STEP_H
#define CM_MODEL_STEP_H

#include "model/calendar.h"

typedef enum cm_time_step_kind {
    CM_TIME_STEP_NONE,
    CM_TIME_STEP_FIXED,
    CM_TIME_STEP_MONTHS
} cm_time_step_kind;

typedef enum cm_time_step_phase {
    CM_PHASE_UNKNOWN, /* steps can be counted, but their dates cannot be told */
    CM_PHASE_BEGIN,   /* so long behind the beginning of the month */
    CM_PHASE_END,     /* so long before the beginning of the next */
    CM_PHASE_MIDDLE   /* half way between both */
} cm_time_step_phase;

typedef struct cm_time_step {
    cm_time_step_kind kind;
    cm_calendar calendar;
    int64_t us;     /* FIXED */
    int64_t months; /* MONTHS */
    cm_time_step_phase phase;
    int64_t phase_us;
} cm_time_step;

/*
 * The step of N instants; false when there is none.  Instants may be off by a millisecond,
 * as floating-point times are.
 */
bool cm_time_step_infer(cm_calendar calendar, const int64_t *us, uint64_t n, cm_time_step *out);

/* How many instants are missing between neighbours; 0 when B is not some steps behind A. */
uint64_t cm_time_step_missing(const cm_time_step *step, int64_t a_us, int64_t b_us);

/* The instant N steps behind A; false when that cannot be told. */
bool cm_time_step_add(const cm_time_step *step, int64_t a_us, uint64_t n, int64_t *out);

/*
 * The instant as far behind A as TO_US is behind FROM_US: so long, or so many calendar months
 * at the same distance from the beginning or the end of its month, whichever is nearer.
 */
bool cm_time_step_move(const cm_time_step *step, int64_t from_us, int64_t to_us, int64_t a_us,
                       int64_t *out);

/* "1 day", "6 hours", "1 month", "12 months", "2.5 seconds".  48 bytes suffice. */
char *cm_time_step_text(const cm_time_step *step, char *buf, size_t size);

/* Steps of numbers that are not times, to one part in a million of the step. */
bool cm_number_step_infer(const double *values, uint64_t n, double *out);
uint64_t cm_number_step_missing(double step, double a, double b);
/* The step of ascending integers, exactly; all their differences are multiples of it. */
bool cm_integer_step_infer(const int64_t *values, uint64_t n, uint64_t *out);

#endif
