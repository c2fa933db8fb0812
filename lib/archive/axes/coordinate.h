/* The distinct coordinates of a dimension, and the keys that their values are compared as. */
#ifndef CM_ARCHIVE_AXES_COORDINATE_H
#define CM_ARCHIVE_AXES_COORDINATE_H

#include "archive/join.h"

/* Number I of the coordinates along D, which are going to be read or written, with their keys. */
cm_join_vec *cm_axis_vec_at(const cm_join_input *in, const cm_join_dim *d, size_t i);

/* The coordinates of FILE along D, which are going to be read; NULL: it has none. */
const cm_join_vec *cm_axis_vec(const cm_join_input *in, const cm_join_dim *d, uint32_t file);

/* How many runs of V begin before element AT of the joined dimension. */
size_t cm_axis_runs_before(const cm_join_vec *v, uint64_t at);

/* Fills in the coordinates of all dimensions that are not made by an option. */
int cm_axis_find_coordinates(const cm_join_input *in, cm_join_tables *tables,
                             cm_join_findings *findings, cm_error *err);

/*
 * Whether two of the NFILES FILEs have the same step of D, or one has it twice; with
 * GROUP, one for each, only files of the same count.  Files without a coordinate have no steps.
 * True where there is no memory to find out.
 */
bool cm_axis_shares_steps(const cm_join_input *in, const cm_join_dim *d, const uint32_t *file,
                          size_t nfiles, const cm_digest *group);

/* 1 where V rises, -1 where it falls, 2 where it does neither, 0 where it is one step or none. */
int cm_axis_direction(const cm_join_vec *v);

/*
 * Whether the coordinate of D counts the elements of each file, from 0 or from 1, and says nothing
 * of how files of the same variables follow each other, which nothing else tells either.
 */
bool cm_axis_is_index(const cm_join_input *in, const cm_join_tables *tables, const cm_join_dim *d);

/* The bits of a double, so that their order as integers is that of the numbers; and back. */
int64_t cm_key_of_real(double x);
double cm_key_real(int64_t key);

/* KEY of D as a user reads it: a date, a number, a text. */
char *cm_key_text(const cm_join_input *in, const cm_join_dim *d, int64_t key, char *buf,
                  size_t size);

#endif
