#include "format/nc/preflight.h"

#include <stdlib.h>

#include "format/nc/file.h"
#include "format/nc/trial.h"

int cm_nc_open_and_ask(const char *path, bool reads, cm_nc_file **out, cm_error *err)
{
    int rc = cm_nc_open(path, &(cm_nc_options){0}, out, err);
    /*
     * The selection is not known here, so an error of one variable is reported when it is prepared.
     */
    for (size_t i = 0; rc == CM_OK && i < (*out)->nnodes; i++)
        cm_nc_var_try(&(*out)->node[i], reads);
    return rc;
}

static int open_and_end(void *context, cm_buf *record, cm_error *err)
{
    cm_nc_file *file = NULL;
    (void)record;
    int rc = cm_nc_open_and_ask(context, true, &file, err);
    cm_nc_close(file); /* as the parent will do */
    return rc;
}

int cm_nc_preflight(const char *path, const cm_dataset_options *options, cm_error *err)
{
    cm_trial_limits limits;
    cm_trial_fate fate;
    int rc = cm_nc_trial_begin(err);
    char *copy = rc == CM_OK ? cm_strdup(path, err) : NULL;
    if (copy == NULL)
        return rc == CM_OK ? CM_ENOMEM : rc;
    cm_nc_trial_limits(path, options->memory, options->canceled, options->canceled_context,
                       &limits);
    rc = cm_trial_run(open_and_end, copy, &limits, NULL, &fate, err);
    free(copy);
    return cm_nc_trial_judge(rc, path, &limits, &fate, err);
}
