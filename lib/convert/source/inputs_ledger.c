/* The files that a job reads, as lines of the ledger. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "convert/beside/ledger.h"
#include "convert/source/inputs.h"
#include "convert/source/inputs_impl.h"

static int look_at(const cm_multi_file *f, const char *digest, cm_ledger_entry *out, cm_error *err)
{
    *out = (cm_ledger_entry){.nbytes = f->nbytes, .mtime_ns = f->mtime_ns};
    if (f->copy != NULL) {
        cm_copy_tag(f->copy, out->tag);
        if ((out->path = cm_strdup(f->path, err)) == NULL)
            return CM_ENOMEM;
    } else if ((out->path = realpath(f->path, NULL)) == NULL)
        return cm_fail_errno(err, errno, "%s", f->path);
    memcpy(out->xxh128, digest, sizeof(out->xxh128)); /* shorter than it may be */
    return CM_OK;
}

static int add_entry(const cm_multi_file *f, const char *digest, cm_json *list, cm_error *err)
{
    cm_json *j = NULL;
    cm_ledger_entry entry;
    int rc = look_at(f, digest, &entry, err);
    if (rc == CM_OK)
        rc = cm_ledger_json(&entry, &j, err);
    free(entry.path);
    return rc == CM_OK ? cm_json_append(list, j, err) : rc;
}

static int add_line(const cm_multi_file *f, const char *digest, cm_ledger_writer *ledger,
                    cm_error *err)
{
    cm_ledger_entry entry;
    int rc = look_at(f, digest, &entry, err);
    if (rc == CM_OK)
        rc = cm_ledger_put(ledger, &entry, err);
    free(entry.path);
    return rc;
}

/*
 * Digests are made of what was just read, while memory still has it: reading an archive from its
 * storage a second time is not worth one.
 */
static bool is_in_memory(const cm_multi_spec *spec)
{
    uint64_t nbytes = 0;
    for (size_t i = 0; i < spec->nfiles; i++) {
        const cm_multi_file *f = cm_multi_file_at(spec, i);
        if (f->copy != NULL && !cm_copy_is_here(f->copy))
            return false;
        nbytes += f->open == NULL ? f->nbytes : 0;
    }
    return nbytes < cm_memory_available() / 2;
}

/* Marks in LEFT the files that give elements of DIMENSION from END on. */
static void find_held(const cm_multi_spec *spec, const char *dimension, uint64_t end, bool *left)
{
    for (size_t i = 0; i < spec->nvars; i++) {
        const cm_multi_var *v = &spec->var[i];
        for (unsigned k = 0; k < v->naxes; k++)
            for (size_t p = 0; strcmp(v->dim_name[v->axis[k]], dimension) == 0 && p < v->nparts;
                 p++) {
                const cm_multi_part *part = cm_multi_part_at(spec, v, p);
                if (part->origin[k] + part->count[k] > end)
                    left[part->file] = true;
            }
    }
}

/* Of N files from FIRST on; empty where none is TAKEN. */
static int ledger_digests(const cm_job *job, size_t first, size_t n, bool taken, char (**out)[65],
                          cm_error *err)
{
    if (taken)
        return cm_inputs_digest(job, CM_INPUTS_XXH128, first, n, out, err);
    *out = cm_calloc(n + 1, sizeof((*out)[0]), err);
    return *out == NULL ? CM_ENOMEM : CM_OK;
}

static int add_lines(const cm_job *job, const cm_multi_spec *spec, size_t first, size_t n,
                     bool taken, cm_ledger_writer *ledger, cm_error *err)
{
    char(*digest)[65] = NULL;
    int rc = ledger_digests(job, first, n, taken, &digest, err);
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        const cm_multi_file *f = cm_multi_file_at(spec, first + i);
        if (f->open == NULL)
            rc = add_line(f, digest[i], ledger, err);
    }
    free(digest);
    return rc;
}

int cm_job_inputs_ledger_lines(const cm_job *job, cm_ledger_writer *ledger, cm_error *err)
{
    enum {
        FILES_AT_ONCE = 1024
    };
    const cm_multi_spec *spec = cm_inputs_spec(job);
    int rc = CM_OK;
    if (spec == NULL)
        return CM_OK;
    const bool taken = is_in_memory(spec);
    for (size_t i = 0, n; rc == CM_OK && i < spec->nfiles; i += n) {
        n = spec->nfiles - i < FILES_AT_ONCE ? spec->nfiles - i : FILES_AT_ONCE;
        rc = add_lines(job, spec, i, n, taken, ledger, err);
    }
    return rc;
}

int cm_job_inputs_ledger(const cm_job *job, const char *dimension, uint64_t end, cm_json **out,
                         cm_error *err)
{
    const cm_multi_spec *spec = cm_inputs_spec(job);
    char(*digest)[65] = NULL;
    *out = cm_json_array();
    int rc = *out == NULL ? cm_fail(err, CM_ENOMEM, "no memory for the ledger") : CM_OK;
    if (rc != CM_OK || spec == NULL)
        return rc;
    bool *left = cm_calloc(spec->nfiles + 1, sizeof(left[0]), err);
    if (left == NULL)
        return CM_ENOMEM;
    if (dimension != NULL)
        find_held(spec, dimension, end, left);
    rc = ledger_digests(job, 0, spec->nfiles, is_in_memory(spec), &digest, err);
    for (size_t i = 0; rc == CM_OK && i < spec->nfiles; i++) {
        const cm_multi_file *f = cm_multi_file_at(spec, i);
        if (f->open == NULL && !left[i])
            rc = add_entry(f, digest[i], *out, err);
    }
    free(left);
    free(digest);
    return rc;
}
