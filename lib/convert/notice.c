/*
 * Warnings of output that differs from what a reader of the source might expect: nothing is left
 * behind or reinterpreted silently.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "convert/job.h"
#include "format/packing.h"
#include "format/zarr/conflict_text.h"
#include "format/zarr/dataset.h"

enum {
    MAX_TOLD = 10 /* of the same kind */
};

/* The nodes that a warning is about. */
typedef struct finding {
    uint64_t n;
    const char *first;
} finding;

static void find(finding *f, const char *path)
{
    if (f->n++ == 0)
        f->first = path[0] != '\0' ? path : "/";
}

/* ---- attributes ---- */

static bool is_finite(const cm_json *j)
{
    double number;
    bool all = true;
    if (cm_json_is(j, CM_JSON_DOUBLE))
        return cm_json_get_double(j, &number) && isfinite(number);
    for (size_t i = 0; all && cm_json_is(j, CM_JSON_ARRAY) && i < cm_json_length(j); i++)
        all = is_finite(cm_json_at(j, i));
    for (cm_json_iter it = cm_json_begin(j); all && cm_json_next(&it);)
        all = is_finite(it.value);
    return all;
}

static int notice_attributes(cm_job *job, cm_error *err)
{
    finding f = {0};
    for (size_t i = 0; i < job->source->ngroups; i++) {
        const cm_dataset_group *group = &job->source->group[i];
        if (cm_job_wants_group(job, group->path) && !is_finite(group->attrs))
            find(&f, group->path);
    }
    for (size_t i = 0; i < job->nvars; i++)
        if (!is_finite(job->var[i].source->attrs))
            find(&f, job->var[i].name);
    if (f.n == 0)
        return CM_OK;
    return cm_job_warn(job, err,
                       "%llu %s attributes that are NaN or infinite (%s%s), for "
                       "which JSON has no numbers: they become text",
                       (unsigned long long)f.n,
                       cm_of_count(f.n, "array or group has", "arrays and groups have"), f.first,
                       f.n > 1 ? ", ..." : "");
}

/* ---- fill values ---- */

static bool is_text(const cm_dtype *t)
{
    return t->kind == CM_KIND_BYTES || t->kind == CM_KIND_UTF32 || t->kind == CM_KIND_STRING ||
           t->kind == CM_KIND_VLEN_BYTES;
}

/*
 * xarray takes every fill value of version 2 for missing data.  In version 3 the attribute
 * _FillValue says so (translate.c), but of texts.
 */
static int notice_fill_values(cm_job *job, cm_error *err)
{
    finding f = {0};
    if (job->zarr_format == 2)
        return CM_OK;
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_zarr_meta *words = job->var[i].source->words;
        if (job->var[i].doc.keeps_words && words->zarr_format == 2 && words->has_fill &&
            words->has_dim_names && is_text(&words->dtype))
            find(&f, job->var[i].name);
    }
    if (f.n == 0)
        return CM_OK;
    return cm_job_warn(job, err,
                       "xarray takes the fill value of Zarr format 2 for missing data, and that of "
                       "format 3 for a value: it will show that of %llu %s (%s%s) as a value",
                       (unsigned long long)f.n, cm_of_count(f.n, "array", "arrays"), f.first,
                       f.n > 1 ? ", ..." : "");
}

/* ", NAME" behind those that LIST has; "..." for the first of more than MAX_TOLD. */
static int list_name(char **list, uint64_t n, const char *name, cm_error *err)
{
    if (n > MAX_TOLD)
        return CM_OK;
    char *longer = cm_asprintf(err, "%s%s%s", *list != NULL ? *list : "", *list != NULL ? ", " : "",
                               n == MAX_TOLD ? "..." : name);
    if (longer == NULL)
        return CM_ENOMEM;
    free(*list);
    *list = longer;
    return CM_OK;
}

/* xarray reads no _FillValue of characters in Zarr 3, and opens no store that has one. */
static int notice_characters(cm_job *job, cm_error *err)
{
    char *list = NULL;
    uint64_t n = 0;
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && job->zarr_format == 3 && i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        if (v->source->is_char && v->source->has_fill_value && v->source->words == NULL &&
            v->view.type.kind == CM_KIND_BYTES)
            rc = list_name(&list, n++, v->name, err);
    }
    if (rc == CM_OK && n > 0)
        rc = cm_job_warn(job, err,
                         "%llu variable%s of characters (%s): _FillValue is left out, which xarray "
                         "does not read of them in Zarr 3: texts equal to it are shown and not "
                         "missing; `char_mode` join or `zarr_format` 2 keep it",
                         (unsigned long long)n, n > 1 ? "s" : "", list);
    free(list);
    return rc;
}

/* ---- packed numbers ---- */

/* In float32, with attributes that it cannot hold: JSON's numbers are rounded to it first. */
static bool rounds_attributes(const cm_packing *p)
{
    return p->keeps_type && p->shown.nbytes == 4 &&
           ((double)(float)p->scale != p->scale || (double)(float)p->offset != p->offset);
}

static bool loses_type(const cm_packing *p)
{
    return !p->keeps_type && p->shown.nbytes == 4;
}

/*
 * xarray decodes to the type that the attributes of a file have.  A number of JSON has none, and
 * is a float64, or of the type of elements that keep theirs.
 */
static int warn_of_packed(cm_job *job, bool (*differs)(const cm_packing *p), const char *why,
                          cm_error *err)
{
    char *list = NULL;
    uint64_t n = 0;
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        const cm_packing p = cm_packing_of(v->source);
        if (p.packed && !v->view.conversion.unpack && cm_dtype_is_number(&p.type) && differs(&p))
            rc = list_name(&list, n++, v->name, err);
    }
    if (rc == CM_OK && n > 0)
        rc = cm_job_warn(
            job, err,
            "%llu packed variable%s (%s): %s, which differ in the 8th digit; `unpack` stores what "
            "it shows of the file",
            (unsigned long long)n, n > 1 ? "s" : "", list, why);
    free(list);
    return rc;
}

static int notice_packing(cm_job *job, cm_error *err)
{
    int rc = warn_of_packed(job, loses_type,
                            "scale_factor is float32, and a number of JSON has no type: xarray "
                            "shows float64 of the store and float32 of the file",
                            err);
    if (rc == CM_OK)
        rc = warn_of_packed(job, rounds_attributes,
                            "scale_factor or add_offset is float64, and a number of JSON has no "
                            "type: xarray rounds it to float32 and shows other numbers of the "
                            "store than of the file",
                            err);
    return rc;
}

/* ---- what is not in all metadata, or in none ---- */

/* True for what is meant: the arrays that were chosen, and groups where all are. */
static bool is_chosen(const cm_job *job, const char *path)
{
    for (size_t i = 0; i < job->nvars; i++)
        if (strcmp(job->var[i].source->name, path) == 0)
            return true;
    return job->options->variable.n == 0 && cm_dataset_find(job->source, path) == NULL;
}

/*
 * Nodes that only their folders tell of go over like the others; of what is said twice, one is
 * taken.
 */
int cm_job_notice_conflicts(cm_job *job, cm_error *err)
{
    if (job->source->kind != CM_DATASET_ZARR)
        return CM_OK;
    const cm_zarr_conflicts *conflicts = cm_zarr_dataset_conflicts(job->source);
    finding unlisted = {0};
    uint64_t told = 0;
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < conflicts->n; i++) {
        const cm_zarr_conflict *c = &conflicts->item[i];
        if (c->kind == CM_ZARR_REORDERED || !is_chosen(job, c->path))
            continue;
        if (c->kind == CM_ZARR_UNLISTED) {
            find(&unlisted, c->path);
        } else if (told++ < MAX_TOLD) {
            char *text = cm_conflict_text(c, job->source->zarr_format, err);
            rc = text == NULL ? CM_ENOMEM : cm_job_warn(job, err, "%s", text);
            free(text);
        }
    }
    if (rc == CM_OK && told > MAX_TOLD)
        rc = cm_job_warn(job, err,
                         "%llu more %s not agree with its consolidated metadata, by which it "
                         "is read",
                         (unsigned long long)(told - MAX_TOLD),
                         cm_of_count(told - MAX_TOLD, "document of the source does",
                                     "documents of the source do"));
    if (rc == CM_OK && unlisted.n > 0)
        rc = cm_job_warn(job, err,
                         "%llu %s missing from the source's consolidated metadata, by which "
                         "xarray reads it, and carried over all the same: %s%s",
                         (unsigned long long)unlisted.n,
                         cm_of_count(unlisted.n, "array or group is", "arrays and groups are"),
                         unlisted.first, unlisted.n > 1 ? ", ..." : "");
    return rc;
}

static int notice_foreign(cm_job *job, cm_error *err)
{
    const cm_zarr_tree *tree = cm_zarr_dataset_tree(job->source);
    if (tree->nforeign == 0 || job->options->variable.n > 0)
        return CM_OK;
    return cm_job_warn(
        job, err, "%llu %s of no array or group, and left behind: %s%s",
        (unsigned long long)tree->nforeign,
        cm_of_count(tree->nforeign, "file of the source is", "files of the source are"),
        tree->foreign, tree->nforeign > 1 ? ", ..." : "");
}

int cm_job_notice(cm_job *job, cm_error *err)
{
    int rc = notice_packing(job, err);
    if (rc == CM_OK)
        rc = notice_characters(job, err);
    if (rc == CM_OK)
        rc = cm_job_notice_growth(job, err);
    if (rc != CM_OK || job->source->kind != CM_DATASET_ZARR)
        return rc;
    rc = notice_attributes(job, err);
    if (rc == CM_OK)
        rc = notice_fill_values(job, err);
    if (rc == CM_OK)
        rc = cm_job_notice_conflicts(job, err);
    return rc == CM_OK ? notice_foreign(job, err) : rc;
}
