/*
 * Stored elements as a reader sees them, decoded for verification alone: a join decodes with other
 * code.  The rules are xarray's: _Unsigned, then _FillValue and missing_value (one or several),
 * then scale_factor and add_offset, then times of any unit and calendar as instants.
 *
 * Only the reading of a date is shared with a join (model/calendar.h).
 */
#ifndef CM_CONVERT_VERIFY_DECODING_H
#define CM_CONVERT_VERIFY_DECODING_H

#include "base/json.h"
#include "model/calendar.h"
#include "model/dtype.h"

enum {
    CM_DECODING_MISSING = 64 /* values that stand for missing ones */
};

typedef struct cm_decoding {
    cm_dtype dtype;
    bool is_number;   /* else elements are compared as bytes */
    bool is_unsigned; /* of integers, by their type or by _Unsigned */
    bool is_packed, is_time;
    double scale, offset;
    cm_time_axis axis;
    const char *units; /* borrowed from attributes; NULL: none */
    unsigned nmissing;
    long double missing[CM_DECODING_MISSING];
} cm_decoding;

/* The attributes that decode a variable, of a file or of a store. */
typedef struct cm_decoding_of {
    cm_dtype dtype;
    const cm_json *attrs;
    const cm_json *parent; /* attributes of the coordinate whose bounds it is; or NULL */
    const uint8_t *fill;   /* readers take it for missing; NULL: none */
} cm_decoding_of;

/* CM_EUNSUPPORTED where more values stand for missing ones than are looked at. */
int cm_decoding_read(const cm_decoding_of *of, cm_decoding *out, cm_error *err);

/* One element. */
typedef struct cm_decoded {
    bool missing;
    bool rounded;       /* it was computed in floating point */
    long double number; /* exact, but for unpacking, which is in double precision */
    float single;       /* of packed ones, each step rounded to float32 */
    __int128 ns;        /* of a time, on the calendar's own day count */
} cm_decoded;

void cm_decoded_read(const cm_decoding *m, const uint8_t *p, cm_decoded *out);

/* The decision about numbers that are not the same. */
typedef struct cm_decoding_leeway {
    double tolerance; /* how far apart they may lie */
    bool is_cast;     /* those of the store were rounded to its type */
} cm_decoding_leeway;

/*
 * A, of a file, is what the store shows as B: both missing, the same number, the same instant.
 * Unpacked numbers may be rounded to single precision, and computed instants by 3 microseconds.
 */
bool cm_decoded_same(const cm_decoding *file, const cm_decoded *a, const cm_decoding *store,
                     const cm_decoded *b, const cm_decoding_leeway *leeway);

/* True when readers decode A and B alike, so that equal bits, and only these, are equal values. */
bool cm_decoding_alike(const cm_decoding *a, const cm_decoding *b);

/* Why no element of one can equal an element of the other; NULL: some can. */
const char *cm_decoding_clash(const cm_decoding *file, const cm_decoding *store);

/* Element P for people: "missing", a date, a number. */
char *cm_decoding_text(const cm_decoding *m, const uint8_t *p, char *buf, size_t size);

#endif
