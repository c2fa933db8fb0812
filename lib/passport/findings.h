/*
 * Findings: steps whose numbers are out of line with those around them.
 *
 * Rules are cautious, because a report that cries wolf is not read: a step is compared with the
 * spread of all steps, never with a fixed limit, and a rule that would name many steps of a
 * variable names none, for then that is what the data are like.
 */
#ifndef CM_PASSPORT_FINDINGS_H
#define CM_PASSPORT_FINDINGS_H

#include <chunkmill/passport.h>

#include "model/calendar.h"

typedef struct cm_findings {
    cm_passport_finding *item;
    size_t n, capacity;
    uint64_t left_out; /* beyond the most that are kept of one variable and kind */
} cm_findings;

/* One variable, as numbers. */
typedef struct cm_series {
    const char *name;
    bool is_time;    /* steps follow each other in time */
    bool is_float;   /* stored as floats; else as integers */
    unsigned nbytes; /* of a stored element */
    bool is_packed;
    uint64_t together; /* steps in one of N */
    size_t n;
    const cm_passport_step *step;
    const uint64_t *hash; /* of the field; equal fields have equal ones */
    /* Samples of each step's field, NX * NY * NZ of them, the last dimension first. */
    const double *sample;
    unsigned nx, ny, nz;
    uint64_t columns; /* of the array, along the dimension of NX */
    const char *y_name, *x_name;
    bool has_low, has_high; /* the attributes say which values are valid */
    double low, high;
} cm_series;

/* Adds what S shows. */
int cm_find_in_series(const cm_series *s, cm_findings *out, cm_error *err);
/* Adds what is wrong with the N values of the time coordinate NAME. */
int cm_find_in_times(const char *name, const double *value, size_t n, cm_findings *out,
                     cm_error *err);
/* Adds what is wrong with a latitude or longitude, whose values should rise or fall. */
int cm_find_in_positions(const char *name, const double *value, size_t n, bool may_wrap,
                         cm_findings *out, cm_error *err);

/* F's kind, steps and numbers; its texts are copied.  Few of a kind are kept. */
int cm_findings_add(cm_findings *out, const char *variable, const cm_passport_finding *f,
                    cm_error *err, const char *format, ...) __attribute__((format(printf, 5, 6)));
void cm_findings_release(cm_findings *f);

#endif
