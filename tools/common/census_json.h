#ifndef CM_TOOLS_CENSUS_JSON_H
#define CM_TOOLS_CENSUS_JSON_H

#include <chunkmill/census.h>

#include "document.h"

/* Member NAME of OBJECT: the census, or null where CENSUS is NULL. */
void cm_document_census(cm_document *d, cm_json *object, const char *name, const cm_census *census);

#endif
