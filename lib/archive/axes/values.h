/* Values that the join computes: coordinates along a joined dimension, re-based times. */
#ifndef CM_ARCHIVE_AXES_VALUES_H
#define CM_ARCHIVE_AXES_VALUES_H

#include "archive/axes/place.h"

/*
 * Chooses the units of times that files count from different dates; what cannot be re-based
 * is a finding.
 */
int cm_join_times(const cm_join_input *in, cm_join_tables *tables, cm_join_findings *findings,
                  cm_error *err);

/* A fill value for V, which has none: what no file has is missing to its readers too. */
int cm_join_make_fill(const cm_join_input *in, cm_join_findings *findings, cm_join_var *v,
                      cm_error *err);

/*
 * KEY of D, along which it rises, as an element of its coordinate: of a step that is filled, or
 * that an option says.
 */
int cm_join_put_key(const cm_join_input *in, const cm_join_tables *tables, const cm_join_dim *d,
                    int64_t key, uint8_t *dst, cm_error *err);

/* bounds.c: US as an element of TO, or the nearest that a floating-point type has. */
int cm_join_put_instant(const cm_time_coding *to, int64_t us, uint8_t *dst, cm_error *err);
/* The joined dimension with filled steps that AT has the bounds of; NULL: none. */
const cm_join_dim *cm_join_bounded(const cm_join_tables *tables, const cm_join_axes *axes,
                                   uint32_t at);
/* Whether the survey has the values of all files. */
bool cm_join_has_bounds(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                        const cm_placement *p);
/* Adds the bounds of steps that no file has to the values of AT, which has NELEM elements. */
int cm_join_fill_bounds(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                        const cm_join_dim *d, size_t nelem, cm_error *err);

/* Whether variable AT is given by its values, and makes them. */
int cm_join_give_values(const cm_join_input *in, cm_join_tables *tables, const cm_join_axes *axes,
                        cm_join_findings *findings, const cm_field_sources *f, uint32_t at,
                        cm_error *err);
/*
 * Elements that two files have, of a variable whose values were made: that they differ is a
 * finding, unless they may.  *NUMBER is that of the variable's finding, at first 0.
 */
int cm_join_check_given(const cm_join_input *in, const cm_join_tables *tables,
                        cm_join_findings *findings, const cm_field_sources *f,
                        const cm_multi_check *check, size_t *number, bool *differs, cm_error *err);

#endif
