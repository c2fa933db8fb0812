/* Whether a record that was kept can be one of a file. */
#ifndef CM_ARCHIVE_SURVEY_CHECK_H
#define CM_ARCHIVE_SURVEY_CHECK_H

#include "archive/survey/survey.h"

/*
 * CM_EFORMAT unless all that F's record names is there, of the size it must have, and parses.
 * F was read from mapped records.
 */
int cm_surveyed_check(const cm_survey *s, const cm_surveyed *f, cm_error *err);

/* Calls EACH with every digest that F's record names, those of its variables included. */
int cm_surveyed_uses(const cm_survey *s, const cm_surveyed *f,
                     int (*each)(void *context, cm_digest digest, cm_error *err), void *context,
                     cm_error *err);

#endif
