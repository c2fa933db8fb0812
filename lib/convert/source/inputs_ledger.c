/* The files that a job reads, as lines of the ledger. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "convert/beside/ledger.h"
#include "convert/source/inputs.h"
#include "convert/source/inputs_impl.h"

/* Files that a job reads, as the ledger of a store keeps them. */
typedef struct taken {
    const cm_multi_spec *spec;
    bool *left;        /* those that are not listed: an append has to read them */
    const char *along; /* the dimension that joins them, if it is one; or NULL */
    uint64_t *end;     /* of each file along it */
} taken;

static int look_at(const taken *t, size_t i, const char *digest, cm_ledger_entry *out,
                   cm_error *err)
{
    const cm_multi_file *f = cm_multi_file_at(t->spec, i);
    *out = (cm_ledger_entry){.nbytes = f->nbytes, .mtime_ns = f->mtime_ns};
    if (t->along != NULL) {
        out->along = t->along;
        out->end = t->end[i];
    }
    if (f->copy != NULL) {
        cm_copy_tag(f->copy, out->tag);
        if ((out->path = cm_strdup(f->path, err)) == NULL)
            return CM_ENOMEM;
    } else if ((out->path = realpath(f->path, NULL)) == NULL)
        return cm_fail_errno(err, errno, "%s", f->path);
    memcpy(out->xxh128, digest, sizeof(out->xxh128)); /* shorter than it may be */
    return CM_OK;
}

static int add_entry(const taken *t, size_t i, const char *digest, cm_json *list, cm_error *err)
{
    cm_json *j = NULL;
    cm_ledger_entry entry;
    int rc = look_at(t, i, digest, &entry, err);
    if (rc == CM_OK)
        rc = cm_ledger_json(&entry, &j, err);
    free(entry.path);
    return rc == CM_OK ? cm_json_append(list, j, err) : rc;
}

static int add_line(const taken *t, size_t i, const char *digest, cm_ledger_writer *ledger,
                    cm_error *err)
{
    cm_ledger_entry entry;
    int rc = look_at(t, i, digest, &entry, err);
    if (rc == CM_OK)
        rc = cm_ledger_put(ledger, &entry, err);
    free(entry.path);
    return rc;
}

static bool is_listed(const taken *t, size_t i)
{
    return cm_multi_file_at(t->spec, i)->open == NULL && !t->left[i];
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

/* ---- which files are taken whole ---- */

/* Files that give elements of DIMENSION from END on are held back. */
static void leave_held(taken *t, const char *dimension, uint64_t end)
{
    for (size_t i = 0; i < t->spec->nvars; i++) {
        const cm_multi_var *v = &t->spec->var[i];
        for (unsigned k = 0; k < v->naxes; k++)
            for (size_t p = 0; strcmp(v->dim_name[v->axis[k]], dimension) == 0 && p < v->nparts;
                 p++) {
                const cm_multi_part *part = cm_multi_part_at(t->spec, v, p);
                if (part->origin[k] + part->count[k] > end)
                    t->left[part->file] = true;
            }
    }
}

/* Of steps that several files have, and that differ, only those of one are stored. */
static void leave_overlapped(taken *t)
{
    for (size_t i = 0; i < t->spec->nchecks; i++) {
        const cm_multi_check *c = &t->spec->check[i];
        if (c->may_differ && t->spec->var[c->var].naxes > 0)
            t->left[c->part[1].file] = true;
    }
}

/*
 * Files that go on where a subset ends may be asked for later.  Whatever it leaves out before that
 * is not wanted: of such files nothing is missing.
 */
static void leave_beyond(taken *t, const cm_multi_var *v, const cm_view *view)
{
    for (unsigned k = 0; k < v->naxes; k++) {
        const unsigned j = v->axis[k];
        const uint64_t end = view->start[j] + view->step[j] * view->shape[j];
        for (size_t p = 0; j < view->rank && p < v->nparts; p++) {
            const cm_multi_part *part = cm_multi_part_at(t->spec, v, p);
            if (part->origin[k] + part->count[k] > end)
                t->left[part->file] = true;
        }
    }
}

static void leave_all(taken *t)
{
    memset(t->left, true, t->spec->nfiles * sizeof(t->left[0]));
}

static void leave_subset(taken *t, const cm_job *job)
{
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        if (v->view.whole)
            continue;
        const cm_multi_var *of = v->dataset == NULL ? cm_multi_var_of(v->source) : NULL;
        if (of != NULL)
            leave_beyond(t, of, &v->view);
        else /* of several variables: which files they are of is not known here */
            leave_all(t);
    }
}

/* ---- where they end ---- */

static const char *only_axis(const cm_multi_spec *spec)
{
    const char *name = NULL;
    for (size_t i = 0; i < spec->nvars; i++)
        for (unsigned k = 0; k < spec->var[i].naxes; k++) {
            const char *other = spec->var[i].dim_name[spec->var[i].axis[k]];
            if (name != NULL && (other == NULL || strcmp(name, other) != 0))
                return NULL;
            name = other;
        }
    return name;
}

static void find_ends(taken *t)
{
    for (size_t i = 0; i < t->spec->nvars; i++) {
        const cm_multi_var *v = &t->spec->var[i];
        for (size_t p = 0; v->naxes == 1 && p < v->nparts; p++) {
            const cm_multi_part *part = cm_multi_part_at(t->spec, v, p);
            const uint64_t end = part->origin[0] + part->count[0];
            t->end[part->file] = end > t->end[part->file] ? end : t->end[part->file];
        }
    }
}

static void release(taken *t)
{
    free(t->left);
    free(t->end);
}

/* T is to be released, whatever is returned. */
static int find_taken(const cm_job *job, const cm_multi_spec *spec, taken *t, cm_error *err)
{
    *t = (taken){.spec = spec,
                 .left = cm_calloc(spec->nfiles + 1, sizeof(t->left[0]), err),
                 .end = cm_calloc(spec->nfiles + 1, sizeof(t->end[0]), err)};
    if (t->left == NULL || t->end == NULL)
        return CM_ENOMEM;
    if (job->evidence.inputs_differ)
        leave_overlapped(t);
    if (job->options->subset.n > 0) {
        leave_subset(t, job);
        return CM_OK; /* and places in the store are others */
    }
    t->along = only_axis(spec);
    find_ends(t);
    return CM_OK;
}

/* ---- the ledger ---- */

/* Of N files from FIRST on; empty where they are not IN_MEMORY. */
static int ledger_digests(const cm_job *job, size_t first, size_t n, bool in_memory,
                          char (**out)[65], cm_error *err)
{
    if (in_memory)
        return cm_inputs_digest(job, CM_INPUTS_XXH128, first, n, out, err);
    *out = cm_calloc(n + 1, sizeof((*out)[0]), err);
    return *out == NULL ? CM_ENOMEM : CM_OK;
}

static int add_lines(const cm_job *job, const taken *t, size_t first, size_t n, bool in_memory,
                     cm_ledger_writer *ledger, cm_error *err)
{
    char(*digest)[65] = NULL;
    int rc = ledger_digests(job, first, n, in_memory, &digest, err);
    for (size_t i = 0; rc == CM_OK && i < n; i++)
        if (is_listed(t, first + i))
            rc = add_line(t, first + i, digest[i], ledger, err);
    free(digest);
    return rc;
}

int cm_job_inputs_ledger_lines(const cm_job *job, cm_ledger_writer *ledger, cm_error *err)
{
    enum {
        FILES_AT_ONCE = 1024
    };
    const cm_multi_spec *spec = cm_inputs_spec(job);
    taken t;
    if (spec == NULL)
        return CM_OK;
    int rc = find_taken(job, spec, &t, err);
    const bool in_memory = is_in_memory(spec);
    for (size_t i = 0, n; rc == CM_OK && i < spec->nfiles; i += n) {
        n = spec->nfiles - i < FILES_AT_ONCE ? spec->nfiles - i : FILES_AT_ONCE;
        rc = add_lines(job, &t, i, n, in_memory, ledger, err);
    }
    release(&t);
    return rc;
}

int cm_job_inputs_ledger(const cm_job *job, const char *dimension, uint64_t end, cm_json **out,
                         cm_error *err)
{
    const cm_multi_spec *spec = cm_inputs_spec(job);
    char(*digest)[65] = NULL;
    taken t;
    *out = cm_json_array();
    int rc = *out == NULL ? cm_fail(err, CM_ENOMEM, "no memory for the ledger") : CM_OK;
    if (rc != CM_OK || spec == NULL)
        return rc;
    rc = find_taken(job, spec, &t, err);
    if (rc == CM_OK && dimension != NULL)
        leave_held(&t, dimension, end);
    if (rc == CM_OK)
        rc = ledger_digests(job, 0, spec->nfiles, is_in_memory(spec), &digest, err);
    for (size_t i = 0; rc == CM_OK && i < spec->nfiles; i++)
        if (is_listed(&t, i))
            rc = add_entry(&t, i, digest[i], *out, err);
    release(&t);
    free(digest);
    return rc;
}
