/* State that the rules for one series share. */
#ifndef CM_PASSPORT_LOOK_H
#define CM_PASSPORT_LOOK_H

#include "passport/findings.h"

typedef struct cm_look {
    const cm_series *s;
    cm_findings *out;
    bool *skip; /* steps that are explained, or have no values */
    size_t *at; /* those that are left, in order */
    size_t nat;
    double *work;  /* room for as many numbers as there are steps, twice */
    double *value; /* a sorted sample of all values */
    size_t nvalues;
} cm_look;

/* Fills `at` with what is not skipped. */
void cm_look_again(cm_look *l);
void cm_sort(double *value, size_t n);
/* Of N sorted values, the one that the share Q lies below; NaN of none. */
double cm_quantile(const double *sorted, size_t n, double q);
/* At most one in ten steps may be named. */
size_t cm_look_most(size_t n);
/*
 * Of the N numbers in VALUE, the least of those that stand out: few, above LEAST, far above the
 * rest, which lie close together.  INFINITY: none does.  SORTED has room for N.
 */
double cm_look_outstanding(const double *value, size_t n, double least, double *sorted);
/* Calls cm_findings_add with the steps FIRST to LAST of the series. */
int cm_look_add(const cm_look *l, const char *kind, size_t first, size_t last, double value,
                double expected, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 8, 9)));

/* The rules, in this order: each marks what it explains. */
int cm_look_missing(cm_look *l, bool *nothing, cm_error *err); /* look_missing.c */
int cm_look_extremes(cm_look *l, cm_error *err);               /* look_extremes.c */
int cm_look_constant(cm_look *l, cm_error *err);               /* look_constant.c */
int cm_look_repeated(cm_look *l, cm_error *err);               /* look_repeated.c */
int cm_look_jumps(cm_look *l, cm_error *err);                  /* look_jumps.c */
int cm_look_turned(cm_look *l, cm_error *err);                 /* look_turned.c */
int cm_look_precision(cm_look *l, cm_error *err);              /* look_precision.c */

#endif
