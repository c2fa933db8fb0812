/* Dimensions that options make: what those of names, attributes and variables share. */
#ifndef CM_ARCHIVE_AXES_MADE_H
#define CM_ARCHIVE_AXES_MADE_H

#include "archive/join.h"
#include "model/name_pattern.h"

/*
 * The dimension NAME, of which each file will be one step; in *OUT.  *THERE: files have it, one
 * element long and without a coordinate.
 */
int cm_join_new_dim_named(const cm_join_input *in, cm_join_tables *tables, const char *name,
                          bool *there, uint32_t *out, cm_error *err);
/*
 * Whether variable AT gets DIM: fields do, and not what describes coordinates; and what differs
 * between files.  THERE: files have the dimension, and fields that have not do without.
 */
bool cm_join_gets_dim(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                      uint32_t dim, bool there);
void cm_join_give_dim(cm_join_var *v, uint32_t dim);

/*
 * promote.c: the joined dimension that V would get: of two, one along which each of its files has
 * steps of its own.  CM_JOIN_NONE: there is none.
 */
uint32_t cm_join_promotion_dim(const cm_join_input *in, const cm_join_tables *tables,
                               const cm_join_axes *axes, const cm_join_var *v);
/*
 * Whether AT, repeated for each step that its files have along DIM, stays what each file says: none
 * that differ share a step.  Values that the survey does not have may differ.
 */
bool cm_join_keeps_each_step(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                             uint32_t dim);

/* The dimension that OPTION makes of names or of a global attribute. */
int cm_join_made_dim(const cm_join_input *in, cm_join_tables *tables, cm_join_axes *axes,
                     const char *option, cm_error *err);

/* The global attribute NAME of FILE as text, which is to be freed. */
int cm_join_read_attribute(const cm_join_input *in, uint32_t file, const char *name, char **out,
                           cm_error *err);
/* The same of the text and of the instant in PATH, by its name. */
int cm_join_read_name(const cm_name_pattern *p, const char *path, char **out, cm_error *err);
int cm_join_read_name_time(const cm_name_pattern *p, cm_calendar calendar, const char *path,
                           int64_t *us, cm_error *err);

/* scalar.c: the dimension NAME of the values that OPTION says. */
int cm_join_scalar_dim(const cm_join_input *in, cm_join_tables *tables, const char *option,
                       const char *name, cm_error *err);

/*
 * said.c: the dimension NAME of a store that grows: each file is one step of it, by OPTION.
 * OF_SCALAR: files have the coordinate as a variable.
 */
int cm_join_said_dim(const cm_join_input *in, cm_join_tables *tables, const char *option,
                     const char *name, bool of_scalar, cm_error *err);
/* The keys of the files whose step along D its option says. */
int cm_join_said_keys(const cm_join_input *in, const cm_join_tables *tables, cm_join_dim *d,
                      cm_error *err);

#endif
