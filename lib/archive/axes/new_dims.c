/* Which of the files of this folder makes a dimension that an option asks for. */
#include <stdio.h>
#include <string.h>

#include "archive/axes/made.h"

int cm_join_new_dims(const cm_join_input *in, cm_join_tables *tables, cm_join_axes *axes,
                     cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = in->options->new_dim.n; rc == CM_OK && i-- > 0;) {
        const char *option = in->options->new_dim.text[i];
        char name[256];
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(option, "="), option);
        rc = tables->scalar[i] ? cm_join_scalar_dim(in, tables, option, name, err)
             : in->has_base    ? cm_join_said_dim(in, tables, option, name, false, err)
                               : cm_join_made_dim(in, tables, axes, option, err);
    }
    return rc;
}
