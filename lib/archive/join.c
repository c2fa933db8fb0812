#include "archive/join.h"

#include <stdlib.h>
#include <string.h>

#include "archive/axes/coverage.h"
#include "archive/axes/merge.h"
#include "archive/emit.h"
#include "archive/fields/fields.h"

/* ---- files that cannot be read ---- */

static int find_unreadable(cm_join *j, const cm_surveyed *f, cm_error *err)
{
    const cm_archive_options *o = j->in.options;
    cm_finding_kind kind = f->offline ? CM_FINDING_OFFLINE : CM_FINDING_UNREADABLE;
    bool decided = f->offline ? o->skip_offline : o->skip_bad;
    const char *text = f->offline ? "a tape system has moved it away" : f->why;
    size_t n = strlen(f->path);
    /* An error of the file itself begins with its name. */
    if (!f->offline && strncmp(text, f->path, n) == 0 && strncmp(text + n, ": ", 2) == 0)
        text += n + 2;
    cm_finding *found =
        cm_join_find(&j->findings, kind, CM_WEIGHT_DECISION, decided, NULL, CM_JOIN_NONE, err,
                     "%s%s", text, decided ? "; it is left out" : "");
    if (found == NULL || (found->file = cm_strdup(f->path, err)) == NULL ||
        (found->last = cm_strdup(f->path, err)) == NULL)
        return CM_ENOMEM;
    found->nfiles = 1;
    j->findings.report->nskipped++;
    return decided ? cm_join_irreversible(&j->findings, err, "%s was left out", f->path) : CM_OK;
}

static int take_files(cm_join *j, const uint32_t *file, size_t n, cm_error *err)
{
    int rc = CM_OK;
    j->in.file = cm_join_alloc(&j->in, n, sizeof(j->in.file[0]), err);
    j->in.rank = cm_join_alloc(&j->in, n, sizeof(j->in.rank[0]), err);
    if (j->in.file == NULL || j->in.rank == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        cm_surveyed *f = cm_survey_file(j->in.survey, file[i]);
        j->in.has_base |= f->is_base;
        j->findings.report->nfiles += !f->is_base;
        j->findings.report->nbytes += f->nbytes;
        if (f->is_base && f->status != CM_OK) {
            rc = cm_fail(err, f->status, "%s", f->why);
            cm_error_place(err, f->path);
            return rc;
        }
        if (f->offline || f->status != CM_OK) {
            rc = find_unreadable(j, f, err);
            continue;
        }
        j->in.rank[j->in.nfiles] = j->in.options->order == CM_ORDER_GIVEN ? f->given : j->in.nfiles;
        j->in.file[j->in.nfiles++] = f;
    }
    if (rc == CM_OK && j->in.nfiles == 0 && j->findings.report->ndecisions == 0)
        return cm_fail(err, CM_ENOTFOUND, "no file is left to be joined");
    return rc;
}

/* ---- in order ---- */

/* Of several stores each has variables of its own. */
static int check_statics(cm_join *j, cm_error *err)
{
    for (size_t i = 0; i < j->tables.nvars; i++)
        (void)cm_varopts_get(&j->tables.statics, j->tables.var[i].name, true, NULL);
    /* A store without new files has only those that were not left out. */
    const bool alone = j->in.has_base && j->in.nfiles < 2;
    return j->in.only == NULL && j->in.options->store_per == NULL && !alone
               ? cm_varopts_check_used(&j->tables.statics, err)
               : CM_OK;
}

static int join(cm_join *j, cm_error *err)
{
    int rc = cm_join_names(&j->in, &j->tables, &j->findings, err);
    if (rc == CM_OK && j->tables.refused)
        return cm_join_report(&j->in, &j->tables, &j->axes, &j->findings, err);
    if (rc == CM_OK)
        rc = check_statics(j, err);
    if (rc == CM_OK)
        rc = cm_join_renamed(&j->in, &j->tables, &j->axes, &j->findings, err);
    if (rc == CM_OK)
        cm_join_find_bounds(&j->tables);
    if (rc == CM_OK)
        cm_join_widen(&j->in, &j->tables);
    if (rc == CM_OK)
        rc = cm_join_texts(&j->in, &j->tables, &j->findings, err);
    if (rc == CM_OK)
        rc = cm_join_compare(&j->in, &j->tables, &j->findings, err);
    if (rc == CM_OK)
        rc = cm_join_unpack(&j->in, &j->tables, &j->findings, err);
    if (rc == CM_OK)
        rc = cm_join_layouts(&j->in, &j->tables, &j->findings, err);
    if (rc == CM_OK)
        rc = cm_join_new_dims(&j->in, &j->tables, &j->axes, err);
    if (rc == CM_OK)
        rc = cm_join_find_axes(&j->in, &j->tables, &j->axes, &j->findings, err);
    if (rc == CM_OK && j->in.has_base)
        rc = cm_join_check_base(&j->in, &j->tables, &j->axes, &j->findings, err);
    if (rc == CM_OK)
        rc = cm_join_lacking(&j->in, &j->tables, &j->findings, err);
    if (rc == CM_OK)
        rc = cm_join_promote(&j->in, &j->tables, &j->axes, &j->findings, err);
    if (rc == CM_OK)
        rc = cm_join_file_attrs(&j->in, &j->tables, &j->axes, err);
    if (rc == CM_OK)
        rc = cm_join_times(&j->in, &j->tables, &j->findings, err);
    cm_paged_let_go(j->in.survey->paged); /* what was read of files without being touched */
    if (rc == CM_OK)
        rc = cm_join_report(&j->in, &j->tables, &j->axes, &j->findings, err);
    if (rc == CM_OK)
        rc = cm_join_emit(j, err);
    return rc == CM_OK ? cm_survey_failed(j->in.survey, err) : rc;
}

static int parse_statics(cm_join *j, cm_error *err)
{
    static const char *const WORDS[] = {"first", "error", NULL};
    int rc = cm_varopts_parse("`statics`", &j->in.options->statics, WORDS, &j->tables.statics, err);
    for (size_t i = 0; rc == CM_OK && i < j->tables.statics.n; i++)
        if (strcmp(j->tables.statics.item[i].value, "first") != 0 &&
            strcmp(j->tables.statics.item[i].value, "error") != 0)
            rc = cm_fail(err, CM_EINVAL, "`statics` %s: must be first or error, or VAR:first",
                         j->tables.statics.item[i].value);
    return rc;
}

static int create(const cm_archive_options *options, cm_survey *survey, cm_archive_report *report,
                  cm_join **out, cm_error *err)
{
    cm_join *j = *out = cm_calloc(1, sizeof(*j), err);
    if (j == NULL)
        return CM_ENOMEM;
    j->in.options = options;
    j->in.survey = survey;
    j->findings = (cm_join_findings){.in = &j->in, .report = report};
    j->fields = cm_calloc(1, sizeof(*j->fields), err);
    j->emitted = cm_calloc(1, sizeof(*j->emitted), err);
    if (j->fields == NULL || j->emitted == NULL)
        return CM_ENOMEM;
    int rc = cm_varopts_parse("`dtype`", &options->dtype, NULL, &j->tables.dtype, err);
    if (rc == CM_OK)
        rc = cm_varopts_parse("`fill_value`", &options->fill_value, NULL, &j->tables.fill, err);
    return rc == CM_OK ? parse_statics(j, err) : rc;
}

int cm_join_create(const cm_archive_options *options, cm_survey *survey, const uint32_t *file,
                   size_t nfiles, const cm_texts *only, cm_archive_report *report, cm_join **out,
                   cm_error *err)
{
    int rc = create(options, survey, report, out, err);
    if (rc != CM_OK)
        return rc;
    (*out)->in.only = only;
    if (only != NULL)
        rc = cm_join_irreversible(&(*out)->findings, err,
                                  "other variables of the files are in other stores");
    if (rc == CM_OK)
        rc = take_files(*out, file, nfiles, err);
    return rc == CM_OK && (*out)->in.nfiles > 0 ? join(*out, err) : rc;
}

int cm_join_create_names(const cm_archive_options *options, cm_survey *survey,
                         cm_archive_report *report, cm_join **out, cm_error *err)
{
    uint32_t *file = cm_calloc(survey->nfiles + 1, sizeof(*file), err);
    int rc = create(options, survey, report, out, err);
    if (rc == CM_OK && file == NULL)
        rc = CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < survey->nfiles; i++)
        file[i] = (uint32_t)i;
    if (rc == CM_OK)
        rc = take_files(*out, file, survey->nfiles, err);
    if (rc == CM_OK && (*out)->in.nfiles > 0)
        rc = cm_join_names(&(*out)->in, &(*out)->tables, &(*out)->findings, err);
    free(file);
    return rc;
}

static void free_dim(cm_join_dim *d, size_t nfiles)
{
    for (size_t i = 0; d->said != NULL && i < nfiles; i++)
        free(d->said[i]);
    free(d->said);
    free(d->name);
    free(d->gap);
}

void cm_join_free(cm_join *j)
{
    if (j == NULL)
        return;
    cm_emitted_free(j->emitted);
    if (j->fields != NULL)
        cm_field_sources_release(j->fields);
    free(j->fields);
    for (size_t i = 0; i < j->tables.nvars; i++) {
        free(j->tables.var[i].name);
        free(j->tables.var[i].made);
        cm_strings_release(&j->tables.var[i].texts);
        cm_json_free(j->tables.var[i].attrs);
    }
    for (size_t i = 0; i < j->tables.ndims; i++)
        free_dim(&j->tables.dim[i], j->in.nfiles);
    for (size_t i = 0; i < j->findings.nwarnings; i++)
        free(j->findings.warning[i]);
    free(j->findings.warning);
    cm_varopts_release(&j->tables.dtype);
    cm_varopts_release(&j->tables.fill);
    cm_varopts_release(&j->tables.statics);
    free(j->tables.renames);
    free(j->tables.scalar);
    free(j->findings.irreversible);
    free(j->tables.var);
    free(j->tables.dim);
    free(j);
}
