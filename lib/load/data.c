/* A store and the arrays of it that are read, opened by one process. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/path.h"
#include "format/icechunk/read_store.h"
#include "load/reader/delayed_store.h"
#include "load/run.h"
#include "options/store_path.h"
#include "options/varopt.h"
#include "store/open.h"
#include "watch/monitor.h"

/* Refuses files behind a network: each process that reads would fetch its own copy. */
static int refuse_remote_file(const char *text, cm_error *err)
{
    cm_store_path at;
    int rc = cm_store_path_split(text, &at, err);
    if (rc == CM_OK && cm_store_url_is_remote(at.path) && cm_store_url_is_file(at.path))
        rc = cm_fail(err, CM_EINVAL,
                     "%s: reading a NetCDF file behind a network for training is not built yet; "
                     "convert it, or copy it here",
                     at.path);
    cm_store_path_release(&at);
    return rc;
}

/* ---- which arrays -------------------------------------------------------------------------- */

/* False: not below the node that was named. */
static bool is_below(const cm_load_data *d, const cm_variable *v)
{
    const size_t n = strlen(d->node);
    return n == 0 ||
           (strncmp(v->name, d->node, n) == 0 && (v->name[n] == '\0' || v->name[n] == '/'));
}

static bool is_readable(const cm_variable *v)
{
    return v->unsupported == NULL && !cm_dtype_is_vlen(&v->dtype) && v->dtype.nbytes > 0;
}

static int prepare(cm_load_data *d, cm_variable *v, cm_error *err)
{
    int rc = cm_dataset_prepare(d->ds, v, err);
    if (rc != CM_OK && !d->is_nc)
        cm_error_place(err, d->path);
    return rc;
}

static int open_array(cm_load_data *d, cm_variable *v, cm_error *err)
{
    int rc = prepare(d, v, err);
    if (rc != CM_OK)
        return rc;
    d->variable[d->narrays] = v;
    d->array[d->narrays++] = v->array;
    return CM_OK;
}

static double nbytes_of(const cm_variable *v)
{
    double nbytes = v->dtype.nbytes;
    for (unsigned d = 0; d < v->rank; d++)
        nbytes *= (double)v->shape[d];
    return nbytes;
}

/* Places along a dimension come last, however many there are. */
static bool exceeds(const cm_variable *v, const cm_variable *other)
{
    if (v->is_coordinate != other->is_coordinate)
        return other->is_coordinate;
    return nbytes_of(v) > nbytes_of(other);
}

static int open_largest(cm_load_data *d, cm_error *err)
{
    cm_variable *best = NULL;
    for (size_t i = 0; i < d->ds->nvars; i++) {
        cm_variable *v = &d->ds->var[i];
        if (is_below(d, v) && is_readable(v) && (best == NULL || exceeds(v, best)))
            best = v;
    }
    if (best == NULL)
        return cm_fail(err, CM_EINVAL,
                       "%s%s%s: no array has elements of a fixed size, so nothing to "
                       "read for training",
                       d->path, d->node[0] != '\0' ? "::" : "", d->node);
    return open_array(d, best, err);
}

static bool is_open(const cm_load_data *d, const cm_variable *v)
{
    for (size_t i = 0; i < d->narrays; i++)
        if (d->variable[i] == v)
            return true;
    return false;
}

/* One name or glob, which must match something that can be read. */
static int open_named(void *context, char *pattern, cm_error *err)
{
    cm_load_data *d = context;
    bool matched = false;
    const char *why = NULL;
    for (size_t i = 0; i < d->ds->nvars; i++) {
        cm_variable *v = &d->ds->var[i];
        if (!is_below(d, v) || !cm_name_matches(pattern, v->name))
            continue;
        if (!is_readable(v)) {
            why = v->unsupported != NULL ? v->unsupported : "its elements have no fixed size";
            continue;
        }
        matched = true;
        if (is_open(d, v))
            continue;
        if (d->narrays == CM_LOAD_MAX_PARTS)
            return cm_fail(err, CM_EINVAL, "more than %d variables", CM_LOAD_MAX_PARTS);
        int rc = open_array(d, v, err);
        if (rc != CM_OK)
            return rc;
    }
    if (matched)
        return CM_OK;
    if (why != NULL)
        return cm_fail(err, CM_EUNSUPPORTED, "%s: variable %s cannot be read for training: %s",
                       d->path, pattern, why);
    return cm_fail(err, CM_EINVAL, "`variables` %s: %s has no such array", pattern, d->path);
}

static int open_arrays(const cm_load_options *o, cm_load_data *d, cm_error *err)
{
    d->array = cm_calloc(CM_LOAD_MAX_PARTS, sizeof *d->array, err);
    d->variable = cm_calloc(CM_LOAD_MAX_PARTS, sizeof *d->variable, err);
    if (d->array == NULL || d->variable == NULL)
        return CM_ENOMEM;
    if (o->variables.n == 0)
        return open_largest(d, err);
    int rc = CM_OK;
    for (size_t i = 0; i < o->variables.n && rc == CM_OK; i++)
        rc = cm_split(o->variables.text[i], ',', open_named, d, err);
    return rc;
}

/* ---- stores -------------------------------------------------------------------------------- */

static int open_disk_cache(const cm_load_options *o, cm_delay *delay, cm_load_data *d,
                           cm_error *err)
{
    uint64_t nbytes = o->cache_dir_nbytes;
    struct statvfs fs;
    if (mkdir(o->cache_dir, 0777) != 0 && errno != EEXIST)
        return cm_fail_errno(err, errno, "`cache_dir` %s: cannot be made", o->cache_dir);
    if (nbytes == 0) {
        if (statvfs(o->cache_dir, &fs) != 0)
            return cm_fail_errno(err, errno, "`cache_dir` %s: cannot be looked at", o->cache_dir);
        nbytes = (uint64_t)fs.f_bavail * fs.f_frsize / 2;
    }
    int rc = delay != NULL ? cm_store_open_delayed(d->slow, delay, &d->delayed, err) : CM_OK;
    if (rc != CM_OK)
        return rc;
    return cm_store_open_disk_cache(delay != NULL ? d->delayed : d->slow, o->cache_dir, nbytes,
                                    &d->store, err);
}

static int open_store(const cm_load_options *o, const cm_load_setting *s, cm_delay *delay,
                      cm_load_data *d, cm_error *err)
{
    if (s->engine == CM_LOAD_NETCDF)
        return cm_fail(err, CM_EINVAL,
                       "%s: `engine` netcdf reads NetCDF files; this is a Zarr store", d->path);
    const cm_store_options options = {
        .io = s->io, .net = o->net, .memory = o->memory, .index_nbytes = s->index_nbytes};
    int rc = cm_ice_store_open(d->path, &options, &d->slow, err);
    d->store = d->slow;
    return rc == CM_OK && o->cache_dir != NULL ? open_disk_cache(o, delay, d, err) : rc;
}

static int open_dataset(const cm_load_options *o, const cm_load_setting *s,
                        const cm_load_opening *in, cm_load_data *d, cm_error *err)
{
    int rc = CM_OK;
    if (!d->is_nc)
        rc = open_store(o, s, in->delay, d, err);
    else if (o->cache_dir != NULL)
        rc = cm_fail(err, CM_EUNSUPPORTED,
                     "%s: `cache_dir` keeps objects of a Zarr store, not parts of a file", d->path);
    const cm_dataset_options options = {.index_cache_nbytes = s->index_nbytes,
                                        .net = o->net,
                                        .canceled = cm_monitor_cancels,
                                        .canceled_context = in->monitor,
                                        .guard = in->tried ? CM_GUARD_NEEDED : CM_GUARD_ENDS,
                                        .library = s->engine == CM_LOAD_NETCDF,
                                        .io = s->io,
                                        .quick = true,
                                        .reads_only = true,
                                        .store = d->store,
                                        .memory = o->memory};
    return rc == CM_OK ? cm_dataset_open(d->path, "", &options, &d->ds, err) : rc;
}

static void close_stores(cm_load_data *d)
{
    if (d->store != d->slow)
        cm_store_free(d->store);
    cm_store_free(d->delayed);
    cm_store_free(d->slow);
    d->store = d->delayed = d->slow = NULL;
}

/* open_dataset of what is there, behind a network a repository, too. */
static int open_found(const cm_load_options *o, const cm_load_setting *s, const cm_load_opening *in,
                      cm_load_data *d, cm_error *err)
{
    int rc = open_dataset(o, s, in, d, err);
    char *repository = d->slow != NULL ? cm_ice_repository_at(rc, d->path, d->slow) : NULL;
    if (repository == NULL)
        return rc;
    close_stores(d);
    free(d->path);
    d->path = repository;
    return open_dataset(o, s, in, d, err);
}

/* ---- whether it is still there ------------------------------------------------------------- */

static bool has_key(cm_load_data *d, const char *key)
{
    return cm_store_size(d->slow, key, NULL, NULL) == CM_OK;
}

/* Its own document, or the root's where that is all there is. */
static int find_witness(cm_load_data *d, const cm_array *a, char **out, cm_error *err)
{
    static const char *const document[] = {"zarr.json", ".zarray", ".zmetadata", ".zgroup"};
    for (unsigned i = 0; i < 8 && *out == NULL; i++) {
        const bool own = i < 4;
        char *key = cm_asprintf(err, "%s%s%s", own ? a->name : "",
                                own && a->name[0] != '\0' ? "/" : "", document[i % 4]);
        if (key == NULL)
            return CM_ENOMEM;
        if (has_key(d, key))
            *out = key;
        else
            free(key);
    }
    return CM_OK;
}

static int find_witnesses(cm_load_data *d, cm_error *err)
{
    int rc = CM_OK;
    d->witness = cm_calloc(d->narrays + 1, sizeof *d->witness, err);
    if (d->witness == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < d->narrays && rc == CM_OK && !d->is_nc; i++)
        rc = find_witness(d, d->array[i], &d->witness[i], err);
    return rc;
}

int cm_load_data_check(cm_load_data *d, cm_error *err)
{
    for (size_t i = 0; i < d->narrays; i++) {
        cm_error inner;
        if (d->witness[i] == NULL ||
            cm_store_size(d->slow, d->witness[i], NULL, &inner) != CM_ENOTFOUND)
            continue;
        return cm_fail(err, CM_EIO,
                       "%s: variable %s: its metadata are not there any more: the store was "
                       "removed or replaced while it was read",
                       d->path, cm_load_array_name(d->array[i]));
    }
    return CM_OK;
}

/* ---- all of it ----------------------------------------------------------------------------- */

static int locate(const char *text, cm_net *net, cm_load_data *d, cm_error *err)
{
    cm_store_path at = {0};
    int rc = refuse_remote_file(text, err);
    if (rc == CM_OK)
        rc = cm_store_path_find(text, net, &at, err);
    d->path = at.path;
    d->node = at.node;
    d->is_nc = !at.is_folder;
    return rc;
}

int cm_load_data_open(const cm_load_options *o, const cm_load_setting *s, const cm_load_opening *in,
                      cm_load_data *d, cm_error *err)
{
    memset(d, 0, sizeof *d);
    int rc = locate(in->store, o->net, d, err);
    if (rc == CM_OK)
        rc = open_found(o, s, in, d, err);
    if (rc == CM_OK)
        rc = open_arrays(o, d, err);
    if (rc == CM_OK)
        rc = find_witnesses(d, err);
    if (rc != CM_OK)
        cm_load_data_release(d);
    return rc;
}

void cm_load_data_release(cm_load_data *d)
{
    for (size_t i = 0; d->witness != NULL && i < d->narrays; i++)
        free(d->witness[i]);
    free(d->witness);
    cm_dataset_close(d->ds);
    close_stores(d);
    free(d->array);
    free(d->variable);
    free(d->path);
    free(d->node);
    memset(d, 0, sizeof *d);
}

const char *cm_load_array_name(const cm_array *a)
{
    return a->name[0] != '\0' ? a->name : "/";
}

static int find_variable(cm_load_data *d, const char *name, cm_variable **out, cm_error *err)
{
    *out = NULL;
    for (size_t i = 0; i < d->ds->nvars; i++) {
        cm_variable *v = &d->ds->var[i];
        if (!is_below(d, v) || strcmp(v->name, name) != 0 || v->unsupported != NULL)
            continue;
        int rc = prepare(d, v, err);
        *out = rc == CM_OK ? v : NULL;
        return rc;
    }
    return CM_OK;
}

int cm_load_data_find_coordinate(cm_load_data *d, const cm_array *has, const char *dim,
                                 cm_variable **out, cm_error *err)
{
    const int group = (int)(cm_path_last(has->name) - has->name);
    char *name = cm_asprintf(err, "%.*s%s", group, has->name, dim);
    *out = NULL;
    int rc = name != NULL ? find_variable(d, name, out, err) : CM_ENOMEM;
    free(name);
    return rc;
}

void cm_load_data_leave(cm_load_data *d, cm_variable *v)
{
    if (v != NULL && !is_open(d, v))
        cm_dataset_unprepare(d->ds, v);
}
