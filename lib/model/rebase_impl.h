/* Shared by re-basing (rebase.c) and the choice of an axis (rebase_choice.c). */
#ifndef CM_MODEL_REBASE_IMPL_H
#define CM_MODEL_REBASE_IMPL_H

#include "model/rebase.h"

/* CM_EUNSUPPORTED for a date on which FROM's calendar and TO differ. */
int cm_time_check_date(const cm_time_coding *from, cm_calendar to, const cm_time_point *point,
                       cm_error *err);

/* The integer that is the instant on the axis TO; false when there is none. */
bool cm_time_integer(const cm_time_axis *to, const cm_time_point *point, int64_t *out);
bool cm_time_exact_in_double(int64_t value);
bool cm_time_int_fits(const cm_dtype *t, int64_t value);
/* The double that means on TO what ELEMENT, whose instant is POINT, means on FROM's axis. */
bool cm_time_double(const cm_time_coding *from, const void *element, const cm_time_point *point,
                    const cm_time_axis *to, double *out);

#endif
