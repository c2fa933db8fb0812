#include "convert/sink/references/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fileurl.h"
#include "base/number.h"
#include "convert/layout/refer.h"
#include "store/net/url.h"
#include "store/open.h"

/* The folder of all N PATHs, absolute and without links, with its '/'. */
int cm_refer_folder(const char *const *path, size_t n, char **out, cm_error *err)
{
    *out = NULL;
    for (size_t i = 0; i < n; i++) {
        char *real = realpath(path[i], NULL);
        if (real == NULL)
            return cm_fail_errno(err, errno, "%s", path[i]);
        if (*out == NULL) {
            *out = real;
        } else {
            size_t same = 0;
            while (real[same] != '\0' && real[same] == (*out)[same])
                same++;
            (*out)[same] = '\0';
            free(real);
        }
        strrchr(*out, '/')[1] = '\0';
    }
    return CM_OK;
}

/* Characters that may stand in a URL as they are (RFC 3986); all others become %XX. */
int cm_refer_escape(cm_buf *out, const char *path, cm_error *err)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789-._~/!$&'()*+,;=:@";
    int rc = CM_OK;
    for (; *path != '\0' && rc == CM_OK; path++)
        rc = strchr(plain, *path) != NULL
                 ? cm_buf_append(out, path, 1, err)
                 : cm_buf_printf(out, err, "%%%02X", (unsigned)(unsigned char)*path);
    return rc;
}

/* Whether the only input came over a network: then the open file is a temporary copy. */
bool cm_refer_was_fetched(const cm_job *job)
{
    return job->options->dataset == NULL && cm_store_url_is_remote(job->from.path);
}

/* By the base URL; a bucket's keys are not escaped, URLs are.  REST is the path below it. */
static int place_at_base(const cm_refer_files *f, const char *rest, char **out, cm_error *err)
{
    const char *base = f->job->options->base_url;
    size_t n = strlen(base);
    cm_buf url;
    cm_buf_init(&url, 0);
    while (n > 0 && base[n - 1] == '/')
        n--;
    int rc = cm_buf_printf(&url, err, "%.*s/", (int)n, base);
    if (rc == CM_OK)
        rc = f->escapes || cm_url_scheme(base) == CM_URL_HTTP
                 ? cm_refer_escape(&url, rest, err)
                 : cm_buf_append(&url, rest, strlen(rest), err);
    if (rc == CM_OK)
        *out = cm_asprintf(err, "%.*s", (int)url.nbytes, (char *)url.data);
    cm_buf_release(&url);
    return rc != CM_OK ? rc : *out == NULL ? CM_ENOMEM : CM_OK;
}

/* The name of the object at URL, of which the input is a copy. */
static int name_object(const cm_refer_files *f, const char *url, char **out, cm_error *err)
{
    const bool is_web = cm_url_scheme(url) == CM_URL_HTTP;
    cm_buf text = {0};
    if (f->job->options->base_url != NULL) {
        char *name = cm_strdup(strrchr(url, '/') + 1, err);
        if (name != NULL && is_web)
            cm_url_decode(name);
        int rc = name == NULL ? CM_ENOMEM : place_at_base(f, name, out, err);
        free(name);
        return rc;
    }
    /* A web address is escaped as it is typed. */
    int rc = f->escapes && !is_web ? cm_refer_escape(&text, url, err)
                                   : cm_buf_append(&text, url, strlen(url), err);
    if (rc == CM_OK)
        *out = cm_asprintf(err, "%.*s", (int)text.nbytes, (char *)text.data);
    cm_buf_release(&text);
    return rc != CM_OK ? rc : *out == NULL ? CM_ENOMEM : CM_OK;
}

/* The name of the file at PATH in references; to be freed. */
int cm_refer_files_name(const cm_refer_files *f, const char *path, char **out, cm_error *err)
{
    const bool at_base = f->job->options->base_url != NULL;
    *out = NULL;
    if (cm_refer_was_fetched(f->job))
        return name_object(f, f->job->from.path, out, err);
    if (f->job->options->dataset != NULL && cm_store_url_is_remote(path))
        return name_object(f, path, out, err);
    char *real = realpath(path, NULL);
    if (real == NULL)
        return cm_fail_errno(err, errno, "%s", path);
    int rc = CM_OK;
    if (at_base)
        rc = place_at_base(f, real + strlen(f->folder), out, err);
    else
        *out = real;
    if (at_base)
        free(real);
    return rc;
}

/* The folder of those of the N PATHs that are files of this machine. */
static int find_folder(const char *const *path, size_t n, char **out, cm_error *err)
{
    const char **local = cm_calloc(n + 1, sizeof(local[0]), err);
    size_t nlocal = 0;
    if (local == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (!cm_store_url_is_remote(path[i]))
            local[nlocal++] = path[i];
    int rc = cm_refer_folder(local, nlocal, out, err);
    free(local);
    return rc;
}

int cm_refer_files_find(cm_refer_files *f, const cm_job *job, const char *const *path, size_t n,
                        cm_error *err)
{
    f->job = job;
    return job->options->base_url != NULL && !cm_refer_was_fetched(job)
               ? find_folder(path, n, &f->folder, err)
               : CM_OK;
}

void cm_refer_files_release(cm_refer_files *f)
{
    free(f->folder);
    f->folder = NULL;
}

/* ---- fill values ---- */

/*
 * A chunk that is not stored has no reference, and readers give the fill value for it: that must
 * be what the file's readers see there.
 */
static int settle_fill(cm_job *job, cm_job_var *v, cm_error *err)
{
    cm_zarr_meta *m = &v->doc.meta;
    const uint8_t *fill = v->source->fill;
    if (v->layout.refer == NULL || v->layout.refer->nmissing == 0 || v->doc.fill_stays)
        return CM_OK;
    if (m->has_fill && m->fill != NULL && fill != NULL &&
        memcmp(m->fill, fill, v->view.type.nbytes) == 0)
        return CM_OK;
    if (m->has_fill)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "%s %s: %llu of its chunks %s not stored, and what it holds is not the "
                       "value that is missing: references cannot say that; convert it, or leave it "
                       "out with `exclude`",
                       cm_job_noun(job), cm_job_name(v),
                       (unsigned long long)v->layout.refer->nmissing,
                       cm_of_count(v->layout.refer->nmissing, "is", "are"));
    if (m->fill == NULL && (m->fill = cm_calloc(1, v->view.type.nbytes, err)) == NULL)
        return CM_ENOMEM;
    if (fill != NULL)
        memcpy(m->fill, fill, v->view.type.nbytes);
    m->has_fill = true;
    return cm_job_warn(job, err,
                       "%s %s: %llu of its chunks %s not stored; the value there becomes the fill "
                       "value, which xarray shows as missing",
                       cm_job_noun(job), cm_job_name(v),
                       (unsigned long long)v->layout.refer->nmissing,
                       cm_of_count(v->layout.refer->nmissing, "is", "are"));
}

int cm_job_refer_fill(cm_job *job, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        rc = settle_fill(job, &job->var[i], err);
    return rc;
}
