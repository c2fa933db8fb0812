#ifndef CM_TOOLS_CHUNKCALC_REPORT_CENSUS_H
#define CM_TOOLS_CHUNKCALC_REPORT_CENSUS_H

#include <chunkmill/census.h>

/* On standard output.  ALL: strips of arrays without holes, too. */
void chunkcalc_print_census(const cm_census *census, bool all);

#endif
