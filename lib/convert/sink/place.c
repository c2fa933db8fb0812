/*
 * Where a target lies: apart from what is read, and in a store or not.
 */
#include "base/path.h"
#include "convert/sink/sink.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "convert/source/inputs.h"
#include "store/open.h"

char *cm_sink_folder_above(const char *path, cm_error *err)
{
    struct stat st;
    char *folder = cm_strdup(path, err);
    while (folder != NULL) {
        size_t n = strlen(folder);
        while (n > 1 && folder[n - 1] == '/')
            folder[--n] = '\0';
        char *slash = strrchr(folder, '/');
        if (slash == NULL)
            strcpy(folder, ".");
        else
            slash[slash == folder] = '\0';
        if (stat(folder, &st) == 0 || strcmp(folder, ".") == 0 || strcmp(folder, "/") == 0)
            break;
    }
    return folder;
}

static bool is_inside(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    return strncmp(path, folder, n) == 0 && (path[n] == '\0' || path[n] == '/');
}

/*
 * The target is neither the source, nor in it, nor around it: overwriting would take the source
 * away.
 */
int cm_sink_check_apart(const cm_sink *s, const cm_job *job, cm_error *err)
{
    const char *target = s->target;
    if (target == NULL)
        return CM_OK;
    if (cm_store_url_is_remote(target)) {
        bool clash = !s->among_sources &&
                     (is_inside(target, job->source->path) || is_inside(job->source->path, target));
        return clash ? cm_fail(err, CM_EINVAL, "%s: is the source, or lies in it or around it",
                               target)
                     : CM_OK;
    }
    char *source = NULL, *there = NULL;
    bool lies = false;
    int rc = s->among_sources ? CM_OK : cm_path_real(job->source->path, &source, err);
    if (rc == CM_OK)
        rc = cm_path_real(target, &there, err);
    if (rc == CM_OK && there == NULL) {
        char *above = cm_sink_folder_above(target, err);
        rc = above == NULL ? CM_ENOMEM : cm_path_real(above, &there, err);
        free(above);
        /* A target that is not there yet can only lie in the source. */
        if (source != NULL && there != NULL && is_inside(there, source))
            rc = cm_fail(err, CM_EINVAL, "%s: lies inside the source", target);
    } else if (source != NULL && there != NULL &&
               (is_inside(there, source) || is_inside(source, there))) {
        rc = cm_fail(err, CM_EINVAL, "%s: is the source, or lies in it or around it", target);
    } else if (rc == CM_OK) {
        rc = cm_job_inputs_lie_in(job, there, &lies, err);
        if (lies)
            rc = cm_fail(err, CM_EINVAL, "%s: an input lies in it", target);
    }
    if (rc != CM_OK)
        cm_error_place(err, target);
    free(source);
    free(there);
    return rc;
}

int cm_sink_find_into(cm_sink *s, cm_error *err)
{
    cm_transform_options *o = s->options;
    if (o->target == NULL)
        return CM_OK;
    if (o->statistics && strstr(o->target, "::") != NULL)
        return cm_fail(err, CM_EINVAL, "%s: `statistics` are of a store, not of a node in one",
                       o->target);
    const char *why = cm_store_url_read_only(o->target);
    if (why != NULL)
        return cm_fail(err, CM_EINVAL, "%s: %s", o->target, why);
    int rc = cm_into_find(o->target, o->net, &s->into, err);
    o->target = s->target = s->into.folder;
    return rc;
}

int cm_sink_take_format(cm_sink *s, cm_error *err)
{
    cm_transform_options *o = s->options;
    const cm_into *into = &s->into;
    if (into->zarr_format != 0 && o->zarr_format != 0 && o->zarr_format != into->zarr_format)
        return cm_fail(err, CM_EINVAL, "`zarr_format` %d: %s is of Zarr format %d", o->zarr_format,
                       into->root, into->zarr_format);
    if (into->zarr_format != 0)
        o->zarr_format = into->zarr_format;
    return CM_OK;
}
