#include "job/fingerprint.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <chunkmill/version.h>

int cm_fingerprint_texts(cm_json *j, const char *option, const cm_texts *texts, cm_error *err)
{
    cm_json *list = cm_json_array();
    for (size_t i = 0; i < texts->n; i++) {
        if (cm_json_append(list, cm_json_string(texts->text[i]), err) != CM_OK) {
            cm_json_free(list);
            return CM_ENOMEM;
        }
    }
    return cm_json_set(j, option, list, err);
}

int cm_fingerprint_path(cm_json *j, const char *name, const char *path, cm_error *err)
{
    char *full = realpath(path, NULL);
    int rc = cm_json_set(j, name, cm_json_string(full == NULL ? path : full), err);
    free(full);
    return rc;
}

/* Every option that changes what is stored, and no other. */
static int set_options(cm_json *j, const cm_convert_options *o, cm_error *err)
{
    const struct {
        const char *name;
        const cm_texts *texts;
    } list[] = {
        {"--chunks", &o->chunks},     {"--shards", &o->shards},         {"--codec", &o->codec},
        {"--variable", &o->variable}, {"--exclude", &o->exclude},       {"--rename", &o->rename},
        {"--subset", &o->subset},     {"--dtype", &o->dtype},           {"--unpack", &o->unpack},
        {"--keepbits", &o->keepbits}, {"--fill-value", &o->fill_value},
    };
    int rc = cm_json_set(j, "--zarr-format", cm_json_i64(o->zarr_format), err);
    for (size_t i = 0; rc == CM_OK && i < sizeof(list) / sizeof(list[0]); i++)
        rc = cm_fingerprint_texts(j, list[i].name, list[i].texts, err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "--sample", cm_json_string(o->sample == NULL ? "" : o->sample), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "--char", cm_json_i64(o->char_mode), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "--skip-unsupported", cm_json_bool(o->skip_unsupported), err);
    return rc;
}

static int set_source(cm_json *j, const cm_job *job, const char *path, cm_error *err)
{
    struct stat st;
    if (stat(path, &st) != 0)
        return cm_fail_errno(err, errno, "%s", path);
    int64_t modified = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    int rc = cm_fingerprint_path(j, "input", path, err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "input's group", cm_json_string(job->group), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "input's size", cm_json_i64(st.st_size), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "input's time of change", cm_json_i64(modified), err);
    return rc;
}

int cm_fingerprint_conversion(const cm_job *job, const char *path, cm_json **out, cm_error *err)
{
    cm_json *j = cm_json_object();
    int rc = cm_json_set(j, "version", cm_json_string(cm_version()), err);
    if (rc == CM_OK)
        rc = set_source(j, job, path, err);
    if (rc == CM_OK)
        rc = set_options(j, job->options, err);
    if (rc == CM_OK)
        *out = j;
    else
        cm_json_free(j);
    return rc;
}
