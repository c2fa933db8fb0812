/*
 * The meaning of stored elements: a number, an instant, or nothing.
 *
 * Two files may store one thing as different numbers, and different things as one number: they
 * count from other dates, pack otherwise, or call another number missing.  So stored elements are
 * copied and converted, but never compared or sorted: their meanings are.  A cm_reading says how
 * the elements of one variable of one file are read; it makes a cm_meaning of each.
 *
 * The rules are those by which xarray decodes (2026.9, CFMaskCoder, CFScaleOffsetCoder and
 * CFDatetimeCoder), in this order: elements equal to _FillValue or missing_value, and NaN, are
 * missing; _Unsigned changes the sign of the type; scale_factor and add_offset make a number in
 * the type that cm_packing_shown names; "UNIT since DATE" makes an instant of it.
 *
 * All functions are pure and may run in any thread.
 */
#ifndef CM_MODEL_MEANING_H
#define CM_MODEL_MEANING_H

#include "model/calendar.h"
#include "model/dtype.h"

enum {
    CM_READING_MISSING = 6
};

typedef struct cm_reading {
    cm_dtype dtype; /* as stored, little-endian; a number of at most 8 bytes */
    cm_kind kind;   /* of its integers as read: another sign than stored, by _Unsigned */
    unsigned nmissing;
    uint8_t missing[CM_READING_MISSING][8]; /* stored elements that mean nothing; NaN always does */
    bool packed, single; /* element x scale + offset, in double or, if SINGLE, in float32 */
    double scale, offset;
    bool is_time;
    cm_time_axis axis;
} cm_reading;

typedef enum cm_meaning_kind {
    CM_MEANS_NOTHING,
    CM_MEANS_INTEGER,
    CM_MEANS_REAL,
    CM_MEANS_INSTANT,
    CM_MEANS_UNKNOWN /* an instant out of range: equal to no other */
} cm_meaning_kind;

typedef struct cm_meaning {
    cm_meaning_kind kind;
    int64_t us;      /* INSTANT: on the calendar's own day count */
    int32_t ns;      /* and 0 ... 999 beyond that */
    int64_t integer; /* INTEGER; of unsigned ones above INT64_MAX the bits, and ABOVE */
    bool above;
    double real; /* REAL */
} cm_meaning;

/* Adds VALUE, an attribute's number, to what is missing, if the type has exactly that number. */
void cm_reading_add_missing(cm_reading *r, double value);
bool cm_reading_is_missing(const cm_reading *r, const void *stored);

void cm_reading_means(const cm_reading *r, const void *stored, cm_meaning *out);

/* One number, of whatever type; zeros of different signs differ, as their bits do. */
bool cm_meaning_equal(const cm_meaning *a, const cm_meaning *b);

/* How far apart: numbers as they are, instants in seconds; infinite if they are not comparable. */
double cm_meaning_distance(const cm_meaning *a, const cm_meaning *b);

/* The first of N elements that does not mean the same by A and by B; N: all do. */
uint64_t cm_meanings_differ(const cm_reading *a, const void *x, const cm_reading *b, const void *y,
                            uint64_t n);

/* As a double; NaN: it is no number. */
double cm_meaning_number(const cm_meaning *m);

/* For messages, cut where BUF is full. */
char *cm_meaning_text(const cm_reading *r, const cm_meaning *m, char *buf, size_t size);

/*
 * The stored element that means NUMBER, by a reading that makes no instants of them: of packed
 * ones that which unpacks to exactly it.  False: there is none.
 */
bool cm_reading_store_number(const cm_reading *r, double number, void *out);

#endif
