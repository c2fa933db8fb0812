#include "chunkcalc/access_dataset.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "format/zarr/meta.h"

bool cm_access_array_of(const cm_variable *v, cm_access_array *out)
{
    if (v->words == NULL || v->words->rank != v->rank)
        return false;
    *out = (cm_access_array){.name = v->name,
                             .rank = v->rank,
                             .shape = v->shape,
                             .chunk = v->words->chunk,
                             .cuts = v->words->cuts};
    return true;
}

static bool is_candidate(const cm_variable *v, const char *name)
{
    return v->unsupported == NULL && !cm_dtype_is_vlen(&v->dtype) && v->dtype.nbytes > 0 &&
           (name == NULL || strcmp(v->name, name) == 0);
}

static int none(const cm_access_log *log, const cm_dataset *ds, const char *name, cm_error *err)
{
    if (ds->zarr_format == 0)
        return cm_fail(err, CM_EINVAL, "%s: not a Zarr store, and %s is a log of one", ds->path,
                       cm_access_log_name(log));
    if (name != NULL)
        return cm_fail(err, CM_EINVAL, "%s: has no reads of the variable %s of %s",
                       cm_access_log_name(log), name, ds->path);
    return cm_fail(err, CM_EINVAL,
                   "%s: has no reads of an array of %s: it was recorded from another store, or "
                   "the store changed since",
                   cm_access_log_name(log), ds->path);
}

int cm_access_choose(const cm_access_log *log, const cm_dataset *ds, const char *name,
                     cm_variable **out, cm_access_reads *reads, cm_error *err)
{
    double most = 0;
    *out = NULL;
    *reads = (cm_access_reads){0};
    for (size_t i = 0; i < ds->nvars; i++) {
        cm_variable *v = &ds->var[i];
        cm_access_array array;
        cm_access_reads found;
        if (!is_candidate(v, name) || !cm_access_array_of(v, &array))
            continue;
        int rc = cm_access_reads_find(log, &array, &found, err);
        const double nbytes = (double)found.nelem * v->dtype.nbytes;
        if (rc != CM_OK || nbytes <= most) {
            cm_access_reads_release(&found);
            if (rc != CM_OK) {
                cm_error_prefix(err, "%s", ds->path);
                return rc;
            }
            continue;
        }
        most = nbytes;
        cm_access_reads_release(reads);
        *reads = found;
        *out = v;
    }
    return *out != NULL ? CM_OK : none(log, ds, name, err);
}

int cm_access_compare(const cm_access_log *log, const cm_access_array *array, cm_store *store,
                      unsigned most, char *buf, size_t size, cm_error *err)
{
    const char *key;
    uint64_t then, n = 0, now;
    buf[0] = '\0';
    while (cm_access_log_object(log, array, n, &key, &then) && n < UINT32_MAX)
        n = n == 0 ? 1 : n * 2;
    const uint64_t step = n / 2 / most > 0 ? n / 2 / most : 1; /* at least half are there */
    for (uint64_t i = 0; i < most && cm_access_log_object(log, array, i * step, &key, &then); i++) {
        cm_error inner = {0};
        int rc = cm_store_size(store, key, &now, &inner);
        if (rc == CM_ENOTFOUND) {
            snprintf(buf, size, "%s is not there any more", key);
            return CM_OK;
        }
        if (rc != CM_OK)
            return cm_fail(err, rc, "%s", inner.text);
        if (now != then) {
            snprintf(buf, size, "%s had %" PRIu64 " bytes and has %" PRIu64 " now", key, then, now);
            return CM_OK;
        }
    }
    return CM_OK;
}
