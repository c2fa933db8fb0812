/*
 * Dates that a file has as text alone: WRF writes Times(Time, DateStrLen), "2000-01-24_12:00:00",
 * and no coordinate.
 *
 * From such texts the dataset gets a variable Time, in seconds that are exact, beside them. The
 * unit is the same in all files, so that nothing has to be counted from another date when they
 * are joined. Where the file has a Time of its own, or any text is no date of the standard
 * calendar, there is none.
 */
#ifndef CM_FORMAT_NC_DATED_H
#define CM_FORMAT_NC_DATED_H

#include "format/nc/nc.h"

typedef struct cm_nc_dated {
    cm_nc_var var;    /* the coordinate; its elements are: */
    int64_t *second;  /* since 1970 */
    cm_nc_var *texts; /* that it is decoded from */
} cm_nc_dated;

/* Whether V is a variable like WRF's Times, and its coordinate is not in FILE. */
bool cm_nc_dated_is(cm_nc_file *file, const cm_nc_var *v);

/*
 * The coordinate that the characters TEXT, all of TEXTS, say; NULL in *OUT: they are not all
 * dates. TEXTS lives as long as it.
 */
int cm_nc_dated_create(cm_nc_var *texts, const char *text, cm_nc_dated **out, cm_error *err);
void cm_nc_dated_free(cm_nc_dated *d); /* NULL accepted */

/*
 * BOX of D for verification: from the characters TEXT of these rows as a library reads them, and
 * without the code that made the coordinate.
 */
int cm_nc_dated_expect(const cm_nc_dated *d, const cm_box *box, const char *text, int64_t *dst,
                       cm_error *err);

#endif
