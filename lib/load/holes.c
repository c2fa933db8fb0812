/* The census of the variables that are read: by a listing of each, before its first batch. */
#include "format/census.h"
#include "load/run.h"
#include "watch/monitor.h"

enum {
    MOST_LISTED = 1 << 20 /* behind a network: a thousand requests */
};

int cm_load_count_holes(cm_load_run *l, cm_error *err)
{
    cm_load_data *d = &l->shared.data;
    const cm_stop stop = {cm_monitor_cancels, l->monitor};
    const cm_census_options options = {
        .depth = CM_CENSUS_NAMES, .most_remote = MOST_LISTED, .stop = &stop};
    cm_census_release(&l->census);
    if (d->is_nc)
        return CM_OK;
    int rc = cm_census_of_arrays(d->ds, d->variable, d->narrays, &options, &l->census, err);
    if (rc != CM_OK && rc != CM_ECANCELED && rc != CM_ENOMEM)
        cm_error_place(err, d->path);
    return rc;
}
