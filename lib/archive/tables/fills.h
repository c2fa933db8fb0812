/* One fill value for a variable whose files have several, or another type than it. */
#ifndef CM_ARCHIVE_TABLES_FILLS_H
#define CM_ARCHIVE_TABLES_FILLS_H

#include "archive/join.h"

/* libnetcdf's fill value for integers never written, and NaN; false: the type has none. */
bool cm_join_default_fill(const cm_dtype *type, uint8_t *out);

/* The fill value of variable AT in its type; PLACED: files without one are beside others. */
int cm_join_settle_fill(const cm_join_input *in, cm_join_tables *tables, uint32_t at, bool placed,
                        cm_error *err);

#endif
