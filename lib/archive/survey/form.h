/*
 * How stored bytes become elements, as a record says it: the same for every build of the
 * program.  Of codecs only what HDF5's filters have.
 */
#ifndef CM_ARCHIVE_SURVEY_FORM_H
#define CM_ARCHIVE_SURVEY_FORM_H

#include "archive/survey/wire.h"
#include "format/located.h"

/* Whether all of F can be said. */
bool cm_wire_can_put_form(const cm_form *f);
void cm_wire_put_form(cm_wire_out *w, const cm_form *f);
/* CM_EFORMAT: it is damaged.  To be freed. */
int cm_wire_get_form(cm_wire_in *w, cm_form **out, cm_error *err);
void cm_wire_free_form(cm_form *f); /* NULL accepted */

void cm_wire_put_dtype(cm_wire_out *w, const cm_dtype *t);
/* False where it is no type that files have. */
bool cm_wire_get_dtype(cm_wire_in *w, cm_dtype *out);

#endif
