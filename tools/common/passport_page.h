/* The page of --report: a passport as one HTML file that needs nothing else. */
#ifndef CM_TOOLS_PASSPORT_PAGE_H
#define CM_TOOLS_PASSPORT_PAGE_H

#include <stdio.h>

#include <chunkmill/passport.h>
#include <chunkmill/transform.h>

#include "base/outfile.h"

/* Everything that stands on the page. */
typedef struct passport_facts {
    const cm_passport *passport;
    const char *tool;
    const char *source;                   /* NULL: TARGET was read as it lies */
    const char *target;                   /* the dataset that is described */
    const char *format;                   /* of the source, or of what was read; or NULL */
    const char *command;                  /* or NULL */
    const cm_transform_options *options;  /* of the conversion; or NULL, like: */
    const cm_transform_report *converted; /* it */
    const cm_census *census;              /* of the source, or of what was read; or NULL */
} passport_facts;

/* Writes and commits FILE, which was claimed as CM_KIND_PAGE. */
int passport_write(const passport_facts *facts, cm_outfile *file, cm_error *err);

/* ---- pieces --------------------------------------------------------------------------------- */

/* passport_strip.c: the statistics of each step. */
int passport_strip(const cm_passport *p, const cm_passport_variable *v, FILE *to, cm_error *err);
/* passport_maps.c: pictures of the first, middle and last step. */
int passport_maps(const cm_passport *p, const cm_passport_variable *v, FILE *to, cm_error *err);
/* passport_census.c: which chunks are there.  The tile is nothing where they were not counted. */
void passport_census_tile(const passport_facts *facts, FILE *to);
int passport_census(const passport_facts *facts, FILE *to, cm_error *err);
/* passport_tables.c. */
void passport_attributes(const passport_facts *facts, FILE *to);
void passport_variables(const passport_facts *facts, FILE *to);
void passport_layout(const passport_facts *facts, FILE *to);
void passport_verification(const passport_facts *facts, FILE *to);
void passport_readers(const passport_facts *facts, FILE *to);

#endif
