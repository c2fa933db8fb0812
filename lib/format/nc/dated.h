/*
 * Coordinates from dates stored as text: WRF writes Times(Time, DateStrLen), "2000-01-24_12:00:00",
 * and no coordinate.
 *
 * The dataset gets a variable Time beside the texts, in exact seconds.  The unit is the same in all
 * files, so that joining them needs no conversion.  No variable is added where the file has a Time
 * of its own, or where any text is not a date of the standard calendar.
 */
#ifndef CM_FORMAT_NC_DATED_H
#define CM_FORMAT_NC_DATED_H

#include "format/nc/nc.h"

typedef struct cm_nc_dated {
    cm_nc_var var;    /* the coordinate; its elements are: */
    int64_t *second;  /* since 1970 */
    cm_nc_var *texts; /* its source */
} cm_nc_dated;

/* Whether V is a variable like WRF's Times whose coordinate is missing in FILE. */
bool cm_nc_dated_is(cm_nc_file *file, const cm_nc_var *v);

/*
 * Makes the coordinate from the characters TEXT, all of TEXTS; *OUT is NULL if they are not all
 * dates.  TEXTS must outlive it.
 */
int cm_nc_dated_create(cm_nc_var *texts, const char *text, cm_nc_dated **out, cm_error *err);
void cm_nc_dated_free(cm_nc_dated *d); /* NULL accepted */

/*
 * BOX of D for verification: from the characters TEXT of these rows as a library reads them,
 * without the code that made the coordinate.
 */
int cm_nc_dated_expect(const cm_nc_dated *d, const cm_box *box, const char *text, int64_t *dst,
                       cm_error *err);

#endif
