/* Values that readers take for missing, of a variable as it is stored: xarray's rules. */
#ifndef CM_FORMAT_MISSING_H
#define CM_FORMAT_MISSING_H

#include "base/json.h"
#include "model/tally.h"

/*
 * The stored element of TYPE that _FillValue in ATTRS names; false: there is none.  With _Unsigned
 * its number may have the sign that is stored or the one that is read.
 */
bool cm_missing_fill(const cm_json *attrs, const cm_dtype *type, uint8_t *out);

/* Whether ELEMENT of TYPE is NaN or NaT, which are missing whatever metadata say. */
bool cm_missing_is_nan(const cm_dtype *type, const uint8_t *element);

/*
 * The stored element of TYPE that the number VALUE of missing_value names; false: no element equals
 * it.  It is compared exactly, after _Unsigned in ATTRS has made another number of the element.
 */
bool cm_missing_number(const cm_json *value, const cm_json *attrs, const cm_dtype *type,
                       uint8_t *out);

enum {
    CM_MISSING_MOST = CM_TALLY_MAX_FILLS
};

/* Stored elements that are missing, each once. */
typedef struct cm_missing {
    unsigned n;
    uint8_t element[CM_MISSING_MOST][16];
} cm_missing;

/*
 * Lists the missing values of elements of TYPE with the attributes ATTRS: FILL first (or NULL),
 * the fill value of the format where readers mask that, or what was _FillValue; then _FillValue
 * and missing_value.  False: there are more, and OUT is not to be used.
 */
bool cm_missing_list(const cm_dtype *type, const cm_json *attrs, const uint8_t *fill,
                     cm_missing *out);

/* Lets missing_value in ATTRS name VALUE, too, which is taken over: it may become a list. */
int cm_missing_name(cm_json *attrs, cm_json *value, cm_error *err);

/* How elements are counted by that list. */
bool cm_missing_rule(const cm_dtype *type, const cm_json *attrs, const uint8_t *fill,
                     cm_tally_rule *rule);

#endif
