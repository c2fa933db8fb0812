/* The description of a variable by one file, and references between variables. */
#ifndef CM_ARCHIVE_TABLES_DESCRIBED_H
#define CM_ARCHIVE_TABLES_DESCRIBED_H

#include "archive/join.h"

/* The description of variable AT in FILE; NULL: the file has none. */
const cm_described *cm_join_described(const cm_join_input *in, const cm_join_tables *tables,
                                      uint32_t at, uint32_t file);
/* The record of variable AT in FILE; false: the file has none. */
bool cm_join_record(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                    uint32_t file, cm_surveyed_var *out);

/* Whether the attribute NAME is the same in A and B; a null says no more than nothing. */
bool cm_join_same_member(const cm_json *a, const cm_json *b, const char *name);

/* The text of ATTRIBUTE; NULL: D has none, or it is no text. */
const char *cm_join_text(const cm_described *d, const char *attribute);
/* Whether its units count time from a date. */
bool cm_join_counts_time(const cm_described *d);
/* 'n' or 'e' where its units are degrees north or east; '\0': they are others. */
char cm_join_degrees(const cm_described *d);
/* Whether V is a latitude or what a grid has in its place; by its name where no attribute tells. */
bool cm_join_is_northing(const cm_join_var *v);
/* Whether _Unsigned has D's integers read with the other sign. */
bool cm_join_has_other_sign(const cm_described *d);
/* The type that the packed numbers of D are decoded to. */
cm_dtype cm_join_unpacked(const cm_described *d);

/* Whether other variables name AT in their attributes, as bounds or coordinates. */
bool cm_join_is_auxiliary(const cm_join_tables *tables, uint32_t at);

/* Whether a chosen variable has D. */
bool cm_join_is_used(const cm_join_tables *tables, const cm_join_dim *d);

/* Whether other variables name AT as one of their coordinates. */
bool cm_join_is_coordinate(const cm_join_tables *tables, uint32_t at);

#endif
