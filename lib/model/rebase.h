/*
 * Moving times from one "UNIT since DATE" to another without moving an instant.
 *
 * Files of one archive may count time from different dates, in different units and types.  An
 * element means what cftime and xarray decode it to: the nearest microsecond, by 80-bit
 * arithmetic; a number one microsecond beside a whole second is rounded to that second.  An
 * element is re-based only if both decode the new number to the same microsecond.  That can
 * fail: a double in days holds 1/8 of a day, but not 1/24.
 *
 * A *choice* sees all numbers of all files once, in any order, and then names the unit and
 * the types that hold every one of them.  Variables that share the unit of another (bounds,
 * climatology) are its *members*: what one of them cannot hold changes the unit of all.
 *
 * All functions are pure and may run in any thread; a choice belongs to one at a time.
 */
#ifndef CM_MODEL_REBASE_H
#define CM_MODEL_REBASE_H

#include "model/calendar.h"
#include "model/dtype.h"

enum {
    CM_TIME_OTHERS = 5
};

/* How one variable of one file counts time. */
typedef struct cm_time_coding {
    cm_time_axis axis;
    cm_dtype dtype; /* int, uint, or float of 4 and 8 bytes */
    bool has_fill;
    uint8_t fill[8]; /* elements equal to it, and NaN, are missing; as stored */
    unsigned nothers;
    uint8_t other[CM_TIME_OTHERS][8]; /* so are elements equal to one of these */
} cm_time_coding;

/* The instant of an element. */
typedef struct cm_time_point {
    int64_t us; /* on the calendar's own day count, as cm_time_axis.origin_us */
    int32_t ns; /* 0 ... 999; only units of nanoseconds have them */
    bool missing;
} cm_time_point;

/* False when the instant is out of range (292,000 years). */
bool cm_time_coding_point(const cm_time_coding *coding, const void *element, cm_time_point *out);

/*
 * Can dates of both stand on one axis?  The same calendar; or standard and
 * proleptic_gregorian, which agree from 1582-10-15 on: elements before are then an error.
 */
bool cm_calendars_join(cm_calendar a, cm_calendar b);

/*
 * NELEM elements from SRC, counted as FROM, to DST, counted as TO.  An element that TO
 * cannot hold exactly, or whose number would be TO's fill value, is CM_EINVAL, a date on
 * which the calendars differ CM_EUNSUPPORTED; *BAD is then the index of the first, and what
 * stands in DST before it is right.  Missing elements become TO's fill value; without one,
 * NaN, and an error where TO's type has none.  On one and the same axis an element keeps
 * its number whatever it is.
 */
int cm_time_rebase(const cm_time_coding *from, const cm_time_coding *to, const void *src, void *dst,
                   uint64_t nelem, uint64_t *bad, cm_error *err);

/* ---- choosing what holds all --------------------------------------------------------------- */

enum {
    CM_TIME_MEMBERS = 4,
    CM_TIME_UNITS = 7 /* nanoseconds to days */
};

/* Observations of one member for a choice; private. */
typedef struct cm_time_seen {
    bool any;
    bool floats, needs_f64;  /* types of the files */
    uint32_t int_nbytes[2];  /* the widest signed, the widest unsigned */
    bool fits_f32, fits_f64; /* on the first axis */
    bool missing, has_fill;
    cm_dtype fill_dtype;
    uint8_t fill[8];
    int64_t low, high; /* integers on the first axis */
} cm_time_seen;

typedef struct cm_time_choice {
    cm_time_axis axis;
    bool fixed; /* the unit is the user's */
    bool whole_first;
    bool whole[CM_TIME_UNITS];
    unsigned finest; /* that occurs */
    bool any_lost;
    uint64_t lost; /* with ANY_LOST: the first file that the first axis and types cannot hold */
    cm_time_seen seen[CM_TIME_MEMBERS];
} cm_time_choice;

/*
 * FIRST is the axis of the first file, or the one that the user names, which is then FIXED:
 * only its types may change.
 */
void cm_time_choice_begin(cm_time_choice *choice, const cm_time_axis *first, bool fixed);

/*
 * NELEM numbers of MEMBER, 0 being the variable that has the units, from FILE, a number
 * that the caller knows.  Types, units and fill values count even where NELEM is 0; the
 * fill value of the first call is the one that is kept.
 * CM_EUNSUPPORTED: calendars that do not join, or dates on which they differ; CM_EINVAL: out
 * of range.  *BAD is then the index of the first element, NELEM when it is the file.
 */
int cm_time_choice_see(cm_time_choice *choice, unsigned member, const cm_time_coding *coding,
                       const void *values, uint64_t nelem, uint64_t file, uint64_t *bad,
                       cm_error *err);

typedef struct cm_time_chosen {
    bool same_unit; /* the first axis, and its text, hold */
    char units[256];
    cm_time_coding coding[CM_TIME_MEMBERS]; /* of members that were never seen: zero */
} cm_time_chosen;

/*
 * UNITS is the text of the first axis; what is chosen counts from the same date.  In this
 * order: the first unit, in the common type of the files or a wider one; int64 in the
 * finest unit that occurs; int64 in the next finer one that makes all numbers integers.
 * Integers stay within 2^53, as readers may decode them by way of a double.
 * CM_EUNSUPPORTED when nothing holds all.
 */
int cm_time_choice_end(const cm_time_choice *choice, const char *units, cm_time_chosen *out,
                       cm_error *err);

#endif
