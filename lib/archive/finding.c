#include <stdio.h>
#include <stdlib.h>

#include "archive/axes/coverage.h"
#include "archive/join.h"
#include "base/sentences.h"

const char *cm_finding_name(cm_finding_kind kind)
{
    static const char *const NAME[CM_FINDING_KINDS] = {
        [CM_FINDING_UNREADABLE] = "unreadable",
        [CM_FINDING_OFFLINE] = "offline",
        [CM_FINDING_UNITS] = "units",
        [CM_FINDING_TIME_UNITS] = "time-units",
        [CM_FINDING_CALENDAR] = "calendar",
        [CM_FINDING_PACKING] = "packing",
        [CM_FINDING_TYPE] = "type",
        [CM_FINDING_FILL] = "fill-value",
        [CM_FINDING_MISSING] = "missing",
        [CM_FINDING_STATIC] = "static",
        [CM_FINDING_COORDINATE] = "coordinate",
        [CM_FINDING_OVERLAP] = "overlap",
        [CM_FINDING_GAP] = "gap",
        [CM_FINDING_INTERLEAVED] = "interleaved",
        [CM_FINDING_MEANING] = "meaning",
        [CM_FINDING_MISSING_VALUE] = "missing-value",
        [CM_FINDING_ATTRIBUTE] = "attribute",
        [CM_FINDING_ORDER] = "dimension-order",
        [CM_FINDING_DIRECTION] = "direction",
        [CM_FINDING_NAME] = "name",
        [CM_FINDING_LAYOUT] = "layout",
        [CM_FINDING_DIMENSIONS] = "dimensions",
        [CM_FINDING_LENGTH] = "length",
        [CM_FINDING_ALONG] = "along",
        [CM_FINDING_HOLES] = "holes",
        [CM_FINDING_REPEATED] = "repeated",
        [CM_FINDING_NEW_DIMENSION] = "new-dimension",
        [CM_FINDING_NEW_VARIABLE] = "new-variable",
        [CM_FINDING_INDEX] = "index",
    };
    return (unsigned)kind < CM_FINDING_KINDS ? NAME[kind] : "";
}

static const char *path_of(const cm_join_findings *findings, uint32_t file)
{
    return file == CM_JOIN_NONE ? NULL : findings->in->file[file]->path;
}

cm_finding *cm_join_find(cm_join_findings *findings, cm_finding_kind kind, cm_finding_weight weight,
                         bool decided, const char *variable, uint32_t file, cm_error *err,
                         const char *format, ...)
{
    cm_archive_report *r = findings->report;
    if (CM_GROW(r->finding, r->nfindings, err) != CM_OK)
        return NULL;
    cm_finding *f = &r->finding[r->nfindings];
    *f = (cm_finding){.kind = kind,
                      .weight = weight,
                      .decided = decided,
                      .of_store = findings->in->has_base,
                      .nfiles = 1};
    if (decided && weight == CM_WEIGHT_DECISION)
        f->weight = CM_WEIGHT_WARNING;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&f->text, format, args);
    va_end(args);
    if (n < 0)
        f->text = NULL;
    const char *path = path_of(findings, file);
    if (path == NULL)
        f->nfiles = 0;
    bool whole =
        f->text != NULL && (variable == NULL || (f->variable = cm_strdup(variable, err)) != NULL) &&
        (path == NULL ||
         ((f->file = cm_strdup(path, err)) != NULL && (f->last = cm_strdup(path, err)) != NULL));
    r->nfindings++;
    if (!whole) {
        (void)cm_fail(err, CM_ENOMEM, "no memory for the findings of a survey");
        return NULL;
    }
    r->ndecisions += f->weight == CM_WEIGHT_DECISION;
    return f;
}

int cm_join_found_in(cm_join_findings *findings, cm_finding *f, uint32_t file, cm_error *err)
{
    char *last = cm_strdup(path_of(findings, file), err);
    if (last == NULL)
        return CM_ENOMEM;
    free(f->last);
    f->last = last;
    f->nfiles++;
    return CM_OK;
}

int cm_join_irreversible(cm_join_findings *findings, cm_error *err, const char *format, ...)
{
    va_list args;
    if (findings->irreversible != NULL)
        return CM_OK;
    va_start(args, format);
    int n = vasprintf(&findings->irreversible, format, args);
    va_end(args);
    if (n >= 0)
        return CM_OK;
    findings->irreversible = NULL;
    return cm_fail(err, CM_ENOMEM, "no memory for a sentence");
}

int cm_join_warn(cm_join_findings *findings, cm_error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int rc = cm_sentences_add(&findings->warning, &findings->nwarnings, err, format, args);
    va_end(args);
    return rc;
}
