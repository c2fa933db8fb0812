/* Scalar variables whose values become the steps of a dimension: which `new_dim` asks for. */
#ifndef CM_ARCHIVE_TABLES_SCALARS_H
#define CM_ARCHIVE_TABLES_SCALARS_H

#include "archive/join.h"

/* Finds which of `new_dim` take the values of a scalar variable, by its name in the files. */
int cm_join_find_scalars(const cm_join_input *in, cm_join_tables *tables, cm_error *err);
/* "NAME=@VARIABLE": where VARIABLE begins; NULL: another pattern. */
const char *cm_join_scalar_in(const char *option);
/* The name that NAME, of a file, has in the store: the dimension's, where it is such a variable. */
const char *cm_join_scalar_name(const cm_join_input *in, const cm_join_tables *tables,
                                const char *name, char *buf, size_t size);
/* Whether NAME is such a variable, as it is called in the store. */
bool cm_join_is_step(const cm_join_input *in, const cm_join_tables *tables, const char *name);

#endif
