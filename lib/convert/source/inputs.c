#include "convert/source/inputs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "convert/source/inputs_impl.h"
#include "model/digest.h"
#include "store/open.h"

const cm_multi_spec *cm_inputs_spec(const cm_job *job)
{
    return job->options->dataset != NULL ? cm_multi_spec_of(job->options->dataset) : NULL;
}

/* ---- the fingerprint ---- */

static int add_path(cm_json *j, const char *name, const char *path, cm_error *err)
{
    char *real = realpath(path, NULL);
    int rc = cm_json_set(j, name, cm_json_string(real != NULL ? real : path), err);
    free(real);
    return rc;
}

static int one_fingerprint(cm_json *j, const cm_job *job, cm_error *err)
{
    struct stat st;
    /* One that was fetched lies elsewhere, and has the time of what it is a copy of. */
    if (stat(job->source->path, &st) != 0)
        return cm_fail_errno(err, errno, "%s", job->from.path);
    int64_t modified = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    int rc = add_path(j, "input", job->from.path, err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "input's group", cm_json_string(job->from.group), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "input's size", cm_json_i64(st.st_size), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "input's time of change", cm_json_i64(modified), err);
    return rc;
}

/* However many there are, a digest is enough: which one changed is said when it is read. */
static void add_file(cm_digest *digest, uint64_t i, const cm_multi_file *f)
{
    /* The ETag of an object stands where a file has its time. */
    const uint64_t identity[] = {f->nbytes, f->copy != NULL ? f->ino : f->mtime_ns};
    if (f->open != NULL) /* a store that grows is written meanwhile */
        return;
    cm_digest_element(digest, 2 * i, f->path, strlen(f->path));
    cm_digest_element(digest, 2 * i + 1, identity, sizeof(identity));
}

/* A variable and how its parts become it, in numbers alone: pointers differ by the run. */
static void add_variable(cm_digest *digest, uint64_t i, const cm_multi_var *v)
{
    uint64_t fact[8 + CM_MAX_RANK] = {v->dtype.kind,     v->dtype.nbytes, v->rank,  v->naxes,
                                      v->has_fill_value, v->has_fill,     v->nparts};
    cm_digest one = {0};
    memcpy(fact + 8, v->shape, v->rank * sizeof(v->shape[0]));
    cm_digest_element(&one, 2 * i, v->name, strlen(v->name));
    cm_digest_element(&one, 2 * i + 1, fact, sizeof(fact));
    cm_digest_element(&one, i, v->fill_value, sizeof(v->fill_value));
    cm_digest_element(&one, i, v->fill, sizeof(v->fill));
    cm_digest_add(digest, &one);
}

static void add_how(cm_digest *digest, uint64_t var, const cm_multi_how *how)
{
    uint64_t fact[8 + CM_MAX_RANK] = {
        how->dtype.kind,    how->dtype.nbytes,          how->transposed,    how->lacks_axis[0],
        how->lacks_axis[1], how->unpacks + how->single, how->replaces_fill, how->time_from != NULL};
    double packing[2] = {how->scale, how->offset};
    for (unsigned j = 0; j < CM_MAX_RANK; j++)
        fact[8 + j] = how->repeats[j] ? CM_MAX_RANK : how->order[j];
    cm_digest_element(digest, var, fact, sizeof(fact));
    cm_digest_element(digest, var, packing, sizeof(packing));
    cm_digest_element(digest, var, how->fill, sizeof(how->fill));
    if (how->pads)
        cm_digest_element(digest, 3 * var, &how->width, sizeof(how->width));
    const cm_time_coding *coding[2] = {how->time_from, how->time_to};
    for (unsigned k = 0; k < 2 && coding[0] != NULL && coding[1] != NULL; k++) {
        const int64_t origin[3] = {coding[k]->axis.origin_us, coding[k]->axis.unit_us,
                                   coding[k]->axis.per_us};
        cm_digest_element(digest, 2 * var + k, origin, sizeof(origin));
    }
}

static void add_texts(cm_digest *digest, uint64_t var, const cm_strings *texts)
{
    for (size_t i = 0; i < texts->nelem; i++) {
        size_t nbytes;
        const char *text = cm_strings_get(texts, i, &nbytes);
        cm_digest_element(digest, var + i, text, nbytes);
    }
}

/* The elements of a part, whatever order the parts are in. */
static void add_part(cm_digest *digest, uint64_t var, const cm_multi_part *p)
{
    const uint64_t place[] = {var,         p->file,     p->origin[0], p->origin[1],
                              p->first[0], p->first[1], p->count[0],  p->count[1]};
    cm_digest one = {0};
    cm_digest_element(&one, var, place, sizeof(place));
    if (p->how != NULL)
        add_how(&one, var, p->how);
    cm_digest_add(digest, &one);
}

static int many_fingerprint(cm_json *j, const cm_multi_spec *spec, cm_error *err)
{
    cm_digest files = {0}, parts = {0};
    char text[33];
    for (size_t i = 0; i < spec->nfiles; i++)
        add_file(&files, i, cm_multi_file_at(spec, i));
    for (size_t i = 0; i < spec->nvars; i++) {
        const cm_multi_var *v = &spec->var[i];
        add_variable(&parts, i, v);
        for (size_t p = 0; p < v->nparts; p++)
            add_part(&parts, i, cm_multi_part_at(spec, v, p));
        if (v->texts != NULL)
            add_texts(&parts, i, v->texts);
        if (v->values == NULL)
            continue;
        cm_box box = {.rank = v->rank};
        memcpy(box.shape, v->shape, v->rank * sizeof(v->shape[0]));
        cm_digest_element(&parts, i, v->values, (size_t)cm_box_nelem(&box) * v->dtype.nbytes);
    }
    int rc = cm_json_set(j, "inputs", cm_json_u64(spec->nfiles), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "inputs' paths, sizes and times of change",
                         cm_json_string(cm_digest_text(&files, text)), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "where their elements go", cm_json_string(cm_digest_text(&parts, text)),
                         err);
    if (rc == CM_OK && spec->fingerprint != NULL)
        rc = cm_json_set(j, "how they were joined", cm_json_string(spec->fingerprint), err);
    return rc;
}

int cm_job_inputs_fingerprint(cm_json *j, const cm_job *job, cm_error *err)
{
    const cm_multi_spec *spec = cm_inputs_spec(job);
    return spec != NULL ? many_fingerprint(j, spec, err) : one_fingerprint(j, job, err);
}

/* ---- the certificate ---- */

cm_json *cm_job_time_json(time_t when)
{
    char text[32];
    struct tm utc;
    gmtime_r(&when, &utc);
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &utc);
    return cm_json_string(text);
}

/* PATH as it is called, and where it LIES: a store behind a network has no size of its own. */
static int input_json(const char *path, const char *lies, const char *format, cm_json **out,
                      cm_error *err)
{
    struct stat st = {0};
    bool remote = cm_store_url_is_remote(lies);
    if (!remote && stat(lies, &st) != 0)
        return cm_fail_errno(err, errno, "%s", path);
    cm_json *j = cm_json_object();
    int rc = cm_json_set(j, "path", cm_json_string(path), err);
    if (rc == CM_OK && format != NULL)
        rc = cm_json_set(j, "format", cm_json_string(format), err);
    if (rc == CM_OK && !remote)
        rc = cm_json_set(j, "bytes", cm_json_u64((uint64_t)st.st_size), err);
    if (rc == CM_OK && !remote)
        rc = cm_json_set(j, "modified", cm_job_time_json(st.st_mtime), err);
    if (rc == CM_OK)
        *out = j;
    else
        cm_json_free(j);
    return rc;
}

static int file_json(const cm_multi_file *f, cm_json **out, cm_error *err)
{
    int rc = input_json(f->path, f->path, NULL, out, err);
    if (rc != CM_OK || f->copy == NULL)
        return rc;
    const cm_object_stat *told = cm_copy_stat(f->copy);
    rc = cm_json_set(*out, "bytes", cm_json_u64(told->nbytes), err);
    if (rc == CM_OK && told->modified_s > 0)
        rc = cm_json_set(*out, "modified", cm_job_time_json((time_t)told->modified_s), err);
    return rc == CM_OK && told->tag[0] != '\0'
               ? cm_json_set(*out, "etag", cm_json_string(told->tag), err)
               : rc;
}

/* Notes where the store says less than file I, so that the file could be made again. */
static int add_left_out(cm_json *j, const cm_multi_spec *spec, uint32_t i, cm_error *err)
{
    cm_json *more = NULL;
    int rc = spec->left_out == NULL ? CM_OK : spec->left_out(spec->context, i, &more, err);
    return more == NULL ? rc : cm_json_set(j, "left_out", more, err);
}

int cm_job_inputs_json(const cm_job *job, const char *path, cm_json **out, cm_error *err)
{
    const cm_multi_spec *spec = cm_inputs_spec(job);
    if (spec == NULL)
        return input_json(path, job->source->path, job->report->source_format, out, err);
    cm_json *list = cm_json_array();
    char(*digest)[65] = NULL;
    int rc = cm_inputs_digest(job, CM_INPUTS_SHA256, 0, spec->nfiles, &digest, err);
    for (size_t i = 0; rc == CM_OK && i < spec->nfiles; i++) {
        cm_json *j = NULL;
        rc = file_json(cm_multi_file_at(spec, i), &j, err);
        if (rc == CM_OK)
            rc = cm_json_set(j, "sha256", cm_json_string(digest[i]), err);
        if (rc == CM_OK)
            rc = add_left_out(j, spec, (uint32_t)i, err);
        if (rc == CM_OK)
            rc = cm_json_append(list, j, err);
    }
    free(digest);
    if (rc == CM_OK)
        *out = list;
    else
        cm_json_free(list);
    return rc;
}

/* ---- paths ---- */

int cm_job_inputs_paths(const cm_job *job, const char *path, const char ***out, size_t *n,
                        cm_error *err)
{
    const cm_multi_spec *spec = cm_inputs_spec(job);
    *n = spec != NULL ? spec->nfiles : 1;
    if ((*out = cm_calloc(*n + 2, sizeof((*out)[0]), err)) == NULL)
        return CM_ENOMEM;
    (*out)[0] = path;
    for (size_t i = 0; spec != NULL && i < *n; i++)
        (*out)[i] = cm_multi_file_at(spec, i)->path;
    return CM_OK;
}

int cm_job_inputs_lie_in(const cm_job *job, const char *folder, bool *out, cm_error *err)
{
    const cm_multi_spec *spec = cm_inputs_spec(job);
    size_t length = strlen(folder);
    int rc = CM_OK;
    *out = false;
    for (size_t i = 0; spec != NULL && i < spec->nfiles && !*out && rc == CM_OK; i++) {
        const cm_multi_file *f = cm_multi_file_at(spec, i);
        if (f->open != NULL || f->copy != NULL)
            continue;
        char *real = NULL;
        rc = cm_path_real(f->path, &real, err);
        *out = real != NULL && strncmp(real, folder, length) == 0 &&
               (real[length] == '\0' || real[length] == '/');
        free(real);
    }
    return rc;
}
