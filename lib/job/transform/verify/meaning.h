/*
 * What stored elements mean to a reader, decoded for verification alone: a join decodes with other
 * code.  The rules are xarray's: _Unsigned, then _FillValue and missing_value (one or several),
 * then scale_factor and add_offset, then times of any unit and calendar as instants.
 *
 * Only the reading of a date is shared with a join (model/calendar.h).
 */
#ifndef CM_JOB_VERIFY_MEANING_H
#define CM_JOB_VERIFY_MEANING_H

#include "base/json.h"
#include "model/calendar.h"
#include "model/dtype.h"

enum {
    CM_MEANING_MISSING = 64 /* values that stand for missing ones */
};

typedef struct cm_meaning {
    cm_dtype dtype;
    bool is_number;   /* else elements are compared as bytes */
    bool is_unsigned; /* of integers, by their type or by _Unsigned */
    bool is_packed, is_time;
    double scale, offset;
    cm_time_axis axis;
    const char *units; /* borrowed from attributes; NULL: none */
    unsigned nmissing;
    long double missing[CM_MEANING_MISSING];
} cm_meaning;

/* What is said of a variable, by a file or by a store. */
typedef struct cm_meaning_of {
    cm_dtype dtype;
    const cm_json *attrs;
    const cm_json *parent; /* attributes of the coordinate whose bounds it is; or NULL */
    const uint8_t *fill;   /* readers take it for missing; NULL: none */
} cm_meaning_of;

/* CM_EUNSUPPORTED where more values stand for missing ones than are looked at. */
int cm_meaning_read(const cm_meaning_of *of, cm_meaning *out, cm_error *err);

/* One element. */
typedef struct cm_meant {
    bool missing;
    bool rounded;       /* it was computed in floating point */
    long double number; /* exact, but for unpacking, which is in double precision */
    float single;       /* of packed ones, each step rounded to float32 */
    __int128 ns;        /* of a time, on the calendar's own day count */
} cm_meant;

void cm_meant_read(const cm_meaning *m, const uint8_t *p, cm_meant *out);

/*
 * A, of a file, is what the store shows as B: both missing, the same number, the same instant.
 * Unpacked numbers may be rounded to single precision, computed instants by 3 microseconds, and
 * numbers may lie TOLERANCE apart.
 */
bool cm_meant_same(const cm_meaning *file, const cm_meant *a, const cm_meaning *store,
                   const cm_meant *b, double tolerance);

/* Equal bits mean the same to readers of both, and only equal bits do. */
bool cm_meaning_alike(const cm_meaning *a, const cm_meaning *b);

/* Why no element of the one can be what one of the other is; NULL: it can. */
const char *cm_meaning_clash(const cm_meaning *file, const cm_meaning *store);

/* Element P for people: "missing", a date, a number. */
char *cm_meaning_text(const cm_meaning *m, const uint8_t *p, char *buf, size_t size);

#endif
