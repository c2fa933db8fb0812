/* Sentences about a census, for terminals and pages alike. */
#ifndef CM_TOOLS_CENSUS_TEXT_H
#define CM_TOOLS_CENSUS_TEXT_H

#include <stddef.h>

#include <chunkmill/census.h>

enum {
    CENSUS_TEXT = 1024 /* room for a sentence */
};

/* "/" for a store that is one array. */
const char *census_array_name(const cm_census_array *a);
/* Chunks left out by their writer are no holes. */
bool census_array_has_holes(const cm_census_array *a);
/* "3 of 16 chunks are absent, read as fill (1/0/0, 1/0/1, ...)" and why the first one is a hole. */
void census_hole_text(const cm_census_array *a, cm_census_hole kind, char *text, size_t size);
/*
 * "All 345 chunks of 7 arrays are there, and decoded; 12 were left out: all fill; 1 array was not
 * counted."
 */
void census_sum_text(const cm_census *c, char *text, size_t size);
/* Chunks of a repository in its manifests, or OUTSIDE of it; false: there are none. */
bool census_place_text(const cm_census_places *p, bool outside, char *text, size_t size);

#endif
