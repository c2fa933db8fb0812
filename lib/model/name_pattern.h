/*
 * Reads a file's place from its name: "time=%Y%m%d_%H", "member=r*i1p1".
 *
 * Dates use the letters of strptime: %Y %y %m %b %B %d %j %H %M %S %f and %%.  Numbers have their
 * full width (four digits for %Y, three for %j, else two); a two-digit number may have one digit
 * if no digit follows, and %f takes up to six digits of a fraction.  `*` stands for any text and
 * `?` for one character, neither for '/'.
 *
 * The pattern may match anywhere in the name.  A match in which a number touches another digit
 * counts only if there is no other match.  A `*` that stands for a value matches as little as it
 * can, but at either end of the pattern a whole word (up to '_' or '.').  Two matches that mean
 * different things are an error.
 *
 * A pattern with '/' is matched against the whole path, any other against its last part.
 * All functions are pure and may run in any thread.
 */
#ifndef CM_MODEL_NAME_PATTERN_H
#define CM_MODEL_NAME_PATTERN_H

#include "model/calendar.h"

typedef enum cm_pattern_kind {
    CM_PATTERN_TIME,      /* holds % */
    CM_PATTERN_TEXT,      /* holds * */
    CM_PATTERN_ATTRIBUTE, /* "@NAME": an attribute of the file */
} cm_pattern_kind;

typedef struct cm_name_pattern {
    cm_pattern_kind kind;
    char dim[256];
    char text[512]; /* of ATTRIBUTE: its name */
} cm_name_pattern;

/* "NAME=PATTERN".  CM_EINVAL: not such a text, no year among the letters, no `*`. */
int cm_name_pattern_parse(const char *option, cm_name_pattern *out, cm_error *err);

/*
 * The instant that PATH names, in microseconds on the calendar's own day count; what the
 * pattern leaves out is the first it can be.  CM_ENOTFOUND: PATH does not match; CM_EINVAL:
 * it matches at two places that differ.
 */
int cm_name_pattern_time(const cm_name_pattern *pattern, cm_calendar calendar, const char *path,
                         int64_t *us, cm_error *err);

/*
 * The text in PATH for the `*` of the pattern; with several `*`, the whole match.  Of several
 * matches the shortest.  Errors as above.
 */
int cm_name_pattern_value(const cm_name_pattern *pattern, const char *path, const char **value,
                          size_t *nvalue, cm_error *err);

#endif
