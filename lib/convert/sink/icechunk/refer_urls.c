#include "convert/sink/icechunk/refer_urls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/utf8.h"
#include "convert/source/inputs.h"
#include "store/open.h"

/* "file:///PATH", or a URL that the files will have. */
static int make_url(const cm_refer_files *f, const char *path, char **out, cm_error *err)
{
    cm_buf url = {0};
    char *name = NULL;
    int rc = cm_refer_files_name(f, path, &name, err);
    if (rc == CM_OK && strstr(name, "://") != NULL && !cm_utf8_is_valid(name, strlen(name)))
        rc = cm_fail(err, CM_EINVAL, "`base_url`: is not UTF-8");
    if (rc == CM_OK && strstr(name, "://") != NULL) {
        *out = name;
        return CM_OK;
    }
    if (rc == CM_OK)
        rc = cm_buf_append(&url, "file://", 7, err);
    if (rc == CM_OK)
        rc = cm_refer_escape(&url, name, err);
    if (rc == CM_OK && (*out = cm_asprintf(err, "%.*s", (int)url.nbytes, (char *)url.data)) == NULL)
        rc = CM_ENOMEM;
    cm_buf_release(&url);
    free(name);
    return rc;
}

/* Of files of this machine readers notice a later change; rounded up, as they compare. */
static uint32_t seconds(uint64_t ns)
{
    const uint64_t s = (ns + 999999999) / 1000000000;
    return s < UINT32_MAX ? (uint32_t)s : 0;
}

/* MTIME_NS is 0 where nobody knows it. */
static int add_url(cm_refer_urls *u, const cm_job *job, const char *path, uint64_t mtime_ns,
                   cm_error *err)
{
    struct cm_refer_url *item = cm_make_room(u->item, u->n, &u->capacity, sizeof(*item), 16);
    if (item == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for URLs");
    u->item = item;
    item += u->n;
    *item = (struct cm_refer_url){.path = path};
    if (job->options->base_url == NULL && !cm_refer_was_fetched(job))
        item->modified_s = seconds(mtime_ns);
    int rc = make_url(&u->files, path, &item->url, err);
    u->n += rc == CM_OK;
    return rc;
}

static int by_address(const void *a, const void *b)
{
    const uintptr_t x = (uintptr_t)((const struct cm_refer_url *)a)->path;
    const uintptr_t y = (uintptr_t)((const struct cm_refer_url *)b)->path;
    return (x > y) - (x < y);
}

static int list_urls(cm_refer_urls *u, const cm_job *job, cm_error *err)
{
    const cm_multi_spec *spec = cm_multi_spec_of(job->source);
    struct stat st;
    int rc = CM_OK;
    for (size_t i = 0; spec != NULL && rc == CM_OK && i < spec->nfiles; i++)
        if (spec->file[i].open == NULL) /* else it is the store that grows */
            rc = add_url(u, job, spec->file[i].path,
                         spec->file[i].copy == NULL ? spec->file[i].mtime_ns : 0, err);
    if (spec == NULL && stat(job->source->path, &st) != 0)
        return cm_fail_errno(err, errno, "%s", job->source->path);
    if (spec == NULL)
        rc = add_url(u, job, job->source->path,
                     (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec, err);
    if (u->n > 0)
        qsort(u->item, u->n, sizeof(u->item[0]), by_address);
    return rc;
}

int cm_refer_urls_find(const cm_refer_urls *u, const char *path, uint32_t *out, cm_error *err)
{
    const struct cm_refer_url key = {.path = path};
    const struct cm_refer_url *found = bsearch(&key, u->item, u->n, sizeof(key), by_address);
    if (found == NULL)
        return cm_fail(err, CM_EINTERNAL, "%s: is no input", path);
    *out = (uint32_t)(found - u->item);
    return CM_OK;
}

/* The paths of all inputs but a store that grows. */
static int list_paths(const cm_job *job, const char ***path, size_t *n, cm_error *err)
{
    const cm_multi_spec *spec = cm_multi_spec_of(job->source);
    size_t kept = 0;
    int rc = cm_job_inputs_paths(job, job->from.path, path, n, err);
    if (rc != CM_OK || spec == NULL)
        return rc;
    for (size_t i = 0; i < *n; i++)
        if (spec->file[i].open == NULL)
            (*path)[kept++] = (*path)[i];
    *n = kept;
    return CM_OK;
}

int cm_refer_urls_list(cm_refer_urls *u, const cm_job *job, cm_error *err)
{
    const char **path = NULL;
    size_t n = 0;
    int rc = list_paths(job, &path, &n, err);
    u->files.escapes = true;
    if (rc == CM_OK)
        rc = cm_refer_files_find(&u->files, job, path, n, err);
    if (rc == CM_OK)
        rc = list_urls(u, job, err);
    free(path);
    return rc;
}

int cm_refer_urls_prefix(const cm_refer_urls *u, char **out, cm_error *err)
{
    char *prefix = *out = cm_strdup(u->item[0].url, err);
    for (size_t i = 1; prefix != NULL && i < u->n; i++) {
        size_t same = 0;
        while (prefix[same] != '\0' && prefix[same] == u->item[i].url[same])
            same++;
        prefix[same] = '\0';
    }
    if (prefix == NULL)
        return CM_ENOMEM;
    const char *place = strstr(prefix, "://");
    if (place == NULL || strchr(place + 3, '/') == NULL)
        return cm_fail(err, CM_EINVAL,
                       "%s: lies on another server or in another bucket than other inputs, and one "
                       "container of virtual chunks has all of them",
                       u->item[u->n - 1].url);
    strrchr(prefix, '/')[1] = '\0';
    return CM_OK;
}

void cm_refer_urls_release(cm_refer_urls *u)
{
    for (size_t i = 0; i < u->n; i++)
        free(u->item[i].url);
    free(u->item);
    cm_refer_files_release(&u->files);
    *u = (cm_refer_urls){0};
}

int cm_refer_urls_check(const cm_transform_options *o, cm_error *err)
{
    if (strcmp(o->refer, "icechunk") != 0)
        return cm_fail(err, CM_EINVAL, "`refer` %s: not possible where a store is changed in place",
                       o->refer);
    if (cm_icechunk_path(o->target) == NULL)
        return cm_fail(err, CM_EINVAL,
                       "`refer` icechunk: the target is a repository, icechunk:PATH, not %s",
                       o->target);
    if (o->base_url != NULL && strstr(o->base_url, "://") == NULL)
        return cm_fail(err, CM_EINVAL, "`base_url` %s: is not a URL", o->base_url);
    if (o->verify == CM_VERIFY_FULL)
        return cm_fail(err, CM_EINVAL,
                       "`verify` full: references are compared once they are committed: `check`, "
                       "with `allow` for the place that they point to");
    return CM_OK;
}
