#ifndef CM_FORMAT_NC_LOCATE_H
#define CM_FORMAT_NC_LOCATE_H

#include "format/located.h"
#include "format/nc/nc.h"

/* As cm_dataset_locate; VAR is prepared. */
int cm_nc_var_locate(cm_nc_var *var, cm_located *out, cm_error *err);

#endif
