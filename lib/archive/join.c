#include "archive/join.h"

#include <stdlib.h>
#include <string.h>

#include "archive/axes/axis.h"
#include "archive/axes/coverage.h"
#include "archive/emit.h"
#include "archive/fields/fields.h"

/* ---- files that cannot be read ---- */

static int find_unreadable(cm_join *j, const cm_surveyed *f, cm_error *err)
{
    const cm_archive_options *o = j->options;
    cm_finding_kind kind = f->offline ? CM_FINDING_OFFLINE : CM_FINDING_UNREADABLE;
    bool decided = f->offline ? o->skip_offline : o->skip_bad;
    const char *text = f->offline ? "a tape system has moved it away" : f->why;
    size_t n = strlen(f->path);
    /* An error of the file itself begins with its name. */
    if (!f->offline && strncmp(text, f->path, n) == 0 && strncmp(text + n, ": ", 2) == 0)
        text += n + 2;
    cm_finding *found = cm_join_find(j, kind, CM_WEIGHT_DECISION, decided, NULL, CM_JOIN_NONE, err,
                                     "%s%s", text, decided ? "; it is left out" : "");
    if (found == NULL || (found->file = cm_strdup(f->path, err)) == NULL ||
        (found->last = cm_strdup(f->path, err)) == NULL)
        return CM_ENOMEM;
    found->nfiles = 1;
    j->report->nskipped++;
    return decided ? cm_join_irreversible(j, err, "%s was left out", f->path) : CM_OK;
}

static int take_files(cm_join *j, const uint32_t *file, size_t n, cm_error *err)
{
    int rc = CM_OK;
    j->file = cm_join_alloc(j, n, sizeof(j->file[0]), err);
    j->rank = cm_join_alloc(j, n, sizeof(j->rank[0]), err);
    if (j->file == NULL || j->rank == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        cm_surveyed *f = cm_survey_file(j->survey, file[i]);
        j->has_base |= f->is_base;
        j->report->nfiles += !f->is_base;
        j->report->nbytes += f->nbytes;
        if (f->is_base && f->status != CM_OK) {
            rc = cm_fail(err, f->status, "%s", f->why);
            cm_error_place(err, f->path);
            return rc;
        }
        if (f->offline || f->status != CM_OK) {
            rc = find_unreadable(j, f, err);
            continue;
        }
        j->rank[j->nfiles] = j->options->order == CM_ORDER_GIVEN ? f->given : j->nfiles;
        j->file[j->nfiles++] = f;
    }
    if (rc == CM_OK && j->nfiles == 0 && j->report->ndecisions == 0)
        return cm_fail(err, CM_ENOTFOUND, "no file is left to be joined");
    return rc;
}

/* ---- in order ---- */

/* Of several stores each has variables of its own. */
static int check_statics(cm_join *j, cm_error *err)
{
    for (size_t i = 0; i < j->nvars; i++)
        (void)cm_varopts_get(&j->statics, j->var[i].name, true, NULL);
    return j->only == NULL && j->options->store_per == NULL
               ? cm_varopts_check_used(&j->statics, err)
               : CM_OK;
}

static int join(cm_join *j, cm_error *err)
{
    int rc = cm_join_names(j, err);
    if (rc == CM_OK)
        rc = check_statics(j, err);
    if (rc == CM_OK)
        rc = cm_join_renamed(j, err);
    if (rc == CM_OK)
        cm_join_find_bounds(j);
    if (rc == CM_OK)
        cm_join_widen(j);
    if (rc == CM_OK)
        rc = cm_join_texts(j, err);
    if (rc == CM_OK)
        rc = cm_join_compare(j, err);
    if (rc == CM_OK)
        rc = cm_join_unpack(j, err);
    if (rc == CM_OK)
        rc = cm_join_layouts(j, err);
    if (rc == CM_OK)
        rc = cm_join_new_dims(j, err);
    if (rc == CM_OK)
        rc = cm_join_axes(j, err);
    if (rc == CM_OK && j->has_base)
        rc = cm_join_check_base(j, err);
    if (rc == CM_OK)
        rc = cm_join_lacking(j, err);
    if (rc == CM_OK)
        rc = cm_join_promote(j, err);
    if (rc == CM_OK)
        rc = cm_join_file_attrs(j, err);
    if (rc == CM_OK)
        rc = cm_join_times(j, err);
    cm_paged_let_go(j->survey->paged); /* what was read of files without being touched */
    if (rc == CM_OK)
        rc = cm_join_report(j, err);
    if (rc == CM_OK)
        rc = cm_join_emit(j, err);
    return rc == CM_OK ? cm_survey_failed(j->survey, err) : rc;
}

static int parse_statics(cm_join *j, cm_error *err)
{
    static const char *const WORDS[] = {"first", "error", NULL};
    int rc = cm_varopts_parse("`statics`", &j->options->statics, WORDS, &j->statics, err);
    for (size_t i = 0; rc == CM_OK && i < j->statics.n; i++)
        if (strcmp(j->statics.item[i].value, "first") != 0 &&
            strcmp(j->statics.item[i].value, "error") != 0)
            rc = cm_fail(err, CM_EINVAL, "`statics` %s: must be first or error, or VAR:first",
                         j->statics.item[i].value);
    return rc;
}

static int create(const cm_archive_options *options, cm_survey *survey, cm_archive_report *report,
                  cm_join **out, cm_error *err)
{
    cm_join *j = *out = cm_calloc(1, sizeof(*j), err);
    if (j == NULL)
        return CM_ENOMEM;
    j->options = options;
    j->survey = survey;
    j->report = report;
    j->fields = cm_calloc(1, sizeof(*j->fields), err);
    j->emitted = cm_calloc(1, sizeof(*j->emitted), err);
    if (j->fields == NULL || j->emitted == NULL)
        return CM_ENOMEM;
    int rc = cm_varopts_parse("`dtype`", &options->dtype, NULL, &j->dtype, err);
    if (rc == CM_OK)
        rc = cm_varopts_parse("`fill_value`", &options->fill_value, NULL, &j->fill, err);
    return rc == CM_OK ? parse_statics(j, err) : rc;
}

int cm_join_create(const cm_archive_options *options, cm_survey *survey, const uint32_t *file,
                   size_t nfiles, const cm_texts *only, cm_archive_report *report, cm_join **out,
                   cm_error *err)
{
    int rc = create(options, survey, report, out, err);
    if (rc != CM_OK)
        return rc;
    (*out)->only = only;
    if (only != NULL)
        rc = cm_join_irreversible(*out, err, "other variables of the files are in other stores");
    if (rc == CM_OK)
        rc = take_files(*out, file, nfiles, err);
    return rc == CM_OK && (*out)->nfiles > 0 ? join(*out, err) : rc;
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
    if (rc == CM_OK && (*out)->nfiles > 0)
        rc = cm_join_names(*out, err);
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
    for (size_t i = 0; i < j->nvars; i++) {
        free(j->var[i].name);
        free(j->var[i].made);
        cm_strings_release(&j->var[i].texts);
        cm_json_free(j->var[i].attrs);
    }
    for (size_t i = 0; i < j->ndims; i++)
        free_dim(&j->dim[i], j->nfiles);
    for (size_t i = 0; i < j->nwarnings; i++)
        free(j->warning[i]);
    free(j->warning);
    cm_varopts_release(&j->dtype);
    cm_varopts_release(&j->fill);
    cm_varopts_release(&j->statics);
    free(j->renames);
    free(j->scalar);
    free(j->irreversible);
    free(j->apart);
    free(j->twice);
    free(j->var);
    free(j->dim);
    free(j);
}
