#include "convert/sink/rules.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "store/open.h"
#include "store/zip.h"

/* ---- the table ---- */

enum {
    GROWS = CM_SINK_GROWS,
    REFERS = CM_SINK_REFERS,
    COMMITS = CM_SINK_COMMITS,
    COMPARES = CM_SINK_COMPARES
};

#define TEXTS(name)  CM_SINK_TEXTS, offsetof(cm_transform_options, name)
#define TEXT(name)   CM_SINK_TEXT, offsetof(cm_transform_options, name)
#define FLAG(name)   CM_SINK_FLAG, offsetof(cm_transform_options, name)
#define CHOICE(name) CM_SINK_CHOICE, offsetof(cm_transform_options, name)

static const char LAYOUT[] = "a store that is changed in place keeps its layout";
static const char OTHER[] = "not possible where a store is changed in place";
static const char VALUES[] = "a source is added as it is; make another store of it with this "
                             "option first, and add from that one";
static const char FILE_VALUES[] = /* VALUES, where files are added */
    "files are added as they are, to a store that keeps its dimensions and types";
static const char FILE_UNPACKED[] = "leave it out; where the store is unpacked and files are not, "
                                    "the command that adds them is shown";
static const char POINT[] = "references point to the files' own bytes and cannot change them";
static const char UNREAD[] = "references are made without reading the data";
static const char UNWRITTEN[] = "nothing is written";
static const char BEHIND[] = "the branch to compare stands in the path: icechunk:PATH@BRANCH";
static const char AS_IT_IS[] = ", which keeps what a store is made of";
static const char ONE[] = ", which changes one store; name that store, and its files";
static const char SURVEYS[] = ", which surveys the files before it adds them";
static const char AGAIN[] = "; the same command again completes one that was stopped";

const cm_sink_rule cm_sink_rules[] = {
    {"`statistics`", FLAG(statistics),
     .why = {[GROWS] = OTHER, [REFERS] = UNREAD, [COMPARES] = UNWRITTEN}},
    {"`report`", TEXT(report), .why = {[GROWS] = OTHER, [REFERS] = UNREAD, [COMPARES] = UNWRITTEN}},
    {"`chunks`", TEXTS(chunks), .why = {[GROWS] = LAYOUT, [REFERS] = POINT}},
    {"`shards`", TEXTS(shards), .why = {[GROWS] = LAYOUT, [REFERS] = POINT}},
    {"`codec`", TEXTS(codec), .why = {[GROWS] = LAYOUT, [REFERS] = POINT}},
    {"`grid`", CHOICE(grid),
     .why = {[GROWS] = LAYOUT,
             [REFERS] = POINT,
             [COMMITS] = "a repository counts chunks of one length along a dimension"}},
    {"`sample`", TEXT(sample), .why = {[GROWS] = LAYOUT, [REFERS] = POINT}},
    {"`dtype`", TEXTS(dtype), .why = {[GROWS] = VALUES, [REFERS] = POINT}},
    {"`unpack`", TEXTS(unpack), .why = {[GROWS] = VALUES, [REFERS] = POINT}},
    {"`keepbits`", TEXTS(keepbits), .why = {[GROWS] = VALUES, [REFERS] = POINT}},
    {"`subset`", TEXTS(subset), .why = {[GROWS] = VALUES, [REFERS] = POINT}},
    {"`fill_value`", TEXTS(fill_value), .why = {[GROWS] = LAYOUT, [REFERS] = POINT}},
    {"`stack`", TEXTS(stack), .why = {[GROWS] = VALUES, [REFERS] = POINT}},
    {"`merge_along`", TEXTS(merge_along), .why = {[REFERS] = POINT}},
    {"`overwrite`", FLAG(overwrite), .why = {[GROWS] = OTHER}},
    {"`no_consolidate`", FLAG(no_consolidate), .why = {[GROWS] = LAYOUT}},
    {"`resume`", FLAG(resume), .why = {[REFERS] = POINT}},
    {"`check`", FLAG(check), .why = {[GROWS] = OTHER, [REFERS] = POINT}},
    {"`certificate`", TEXT(certificate), .why = {[GROWS] = OTHER, [REFERS] = POINT}},
    {"`branch`", TEXT(branch), .why = {[COMPARES] = BEHIND}},
    {"`message`", TEXT(message), .why = {[COMPARES] = UNWRITTEN}},
    {"`part`", FLAG(part.on), .why = {[REFERS] = POINT}},
    {"`skip_unsupported`", FLAG(skip_unsupported), .of = CM_SINK_ONE, .why = {[GROWS] = OTHER}},
    {.option = "zarr-format", .typed = AS_IT_IS},
    {.option = "along", .of = CM_SINK_FILES, .typed = AS_IT_IS},
    {.option = "store-per", .of = CM_SINK_FILES, .typed = ONE},
    {.option = "file-attr", .of = CM_SINK_FILES, .typed = AS_IT_IS},
    {.option = "survey", .of = CM_SINK_FILES, .typed = SURVEYS},
    {.option = "stack", .of = CM_SINK_FILES, .typed = AS_IT_IS},
    {.option = "resume", .typed = AGAIN},
    {0},
};

static bool is_set(const cm_sink_rule *r, const cm_transform_options *o)
{
    const void *at = (const char *)o + r->at;
    switch (r->field) {
    case CM_SINK_TEXTS:
        return ((const cm_texts *)at)->n > 0;
    case CM_SINK_TEXT:
        return *(const char *const *)at != NULL;
    case CM_SINK_CHOICE:
        return *(const cm_grid_choice *)at != CM_GRID_REGULAR;
    case CM_SINK_FLAG:
        return *(const bool *)at;
    case CM_SINK_NO_FIELD:
        break;
    }
    return false;
}

bool cm_sink_rule_is_of(const cm_sink_rule *r, bool files)
{
    return r->of == CM_SINK_ANY || (r->of == CM_SINK_FILES) == files;
}

/* Why R's option leaves a sink of KIND no choice, of FILES or of one source; NULL: it does. */
static const char *find_why(const cm_sink_rule *r, cm_sink_kind kind, bool files)
{
    const char *why = cm_sink_rule_is_of(r, files) ? r->why[kind] : NULL;
    if (why != VALUES || !files)
        return why;
    return strcmp(r->setting, "`unpack`") == 0 ? FILE_UNPACKED : FILE_VALUES;
}

/* ---- what is set ---- */

int cm_sink_check_rules(const cm_transform_options *o, cm_sink_kind kind, bool files, cm_error *err)
{
    for (const cm_sink_rule *r = cm_sink_rules; r->setting != NULL; r++) {
        const char *why = find_why(r, kind, files);
        if (why != NULL && is_set(r, o))
            return cm_fail(err, CM_EINVAL,
                           kind == CM_SINK_COMPARES ? "%s and `check`: %s" : "%s: %s", r->setting,
                           why);
    }
    return CM_OK;
}

/* Refuses combinations of options that no sink accepts. */
static int check_combinations(const cm_transform_options *o, cm_error *err)
{
    if ((o->source == NULL && o->dataset == NULL) || (o->target == NULL && !o->dry_run))
        return cm_fail(err, CM_EINVAL, "a source and a target are needed");
    if (o->resume && o->overwrite)
        return cm_fail(err, CM_EINVAL, "`resume` and `overwrite` exclude each other");
    const bool proves = o->certificate != NULL && !o->check;
    if (proves && o->part.on)
        return cm_fail(err, CM_EINVAL,
                       "a certificate is about a whole store: `check` makes one when all parts are "
                       "done");
    if (proves && o->verify != CM_VERIFY_FULL)
        return cm_fail(err, CM_EINVAL, "`certificate` needs `verify` full, or `check`");
    if (o->report != NULL && o->dry_run)
        return cm_fail(err, CM_EINVAL, "`report` needs the data, and `dry_run` reads none");
    if (o->report != NULL && o->part.on)
        return cm_fail(err, CM_EINVAL,
                       "`report` is about a whole store: make it of the store when all parts are "
                       "done");
    if (o->statistics_range.n > 0 && !o->statistics)
        return cm_fail(err, CM_EINVAL, "`statistics_range` needs `statistics`");
    if (o->statistics_by != NULL && !o->statistics)
        return cm_fail(err, CM_EINVAL, "`statistics_by` needs `statistics`");
    if (o->append != NULL && o->refer != NULL && cm_icechunk_path(o->target) == NULL)
        return cm_fail(err, CM_EINVAL, "`refer`: only a repository grows by references");
    if (o->append != NULL && o->refer != NULL && o->part.on)
        return cm_fail(err, CM_EINVAL, "`refer` and `part`: one process adds references");
    if (o->append != NULL && o->refer != NULL && o->merge_along.n > 0)
        return cm_fail(err, CM_EINVAL, "`merge_along`: %s", POINT);
    if ((o->branch != NULL || o->message != NULL || o->object_nbytes != 0) &&
        cm_icechunk_path(o->target) == NULL)
        return cm_fail(
            err, CM_EINVAL,
            "`branch`, `message` and `object_nbytes` are of a repository: icechunk:PATH");
    if (o->grid == CM_GRID_RECTILINEAR && o->zarr_format == 2)
        return cm_fail(err, CM_EINVAL, "`grid` rectilinear: Zarr format 2 has no such grid");
    if (o->zarr_format != 0 && o->zarr_format != 2 && o->zarr_format != 3)
        return cm_fail(err, CM_EINVAL, "the Zarr format must be 2 or 3, not %d", o->zarr_format);
    return CM_OK;
}

/* A zip file is written once, from beginning to end, by one process, on this machine. */
static int check_zip(const cm_transform_options *o, cm_sink_kind kind, cm_error *err)
{
    const char *target = o->target != NULL ? o->target : "";
    const char *node = strstr(target, "::");
    char *path = cm_asprintf(err, "%.*s",
                             (int)(node != NULL ? node - target : (long)strlen(target)), target);
    if (path == NULL)
        return CM_ENOMEM;
    const bool is_zip = cm_zip_is_name(path), remote = cm_store_url_is_remote(path);
    free(path);
    if (!is_zip || kind == CM_SINK_COMPARES || kind == CM_SINK_REFERS)
        return CM_OK;
    if (remote)
        return cm_fail(err, CM_EINVAL,
                       "%s: a zip file is written on this machine; make it here, and copy it",
                       target);
    if (node != NULL)
        return cm_fail(err, CM_EINVAL,
                       "%s: nothing is added to a zip file; it is written once, as a whole",
                       target);
    if (kind == CM_SINK_GROWS)
        return cm_fail(err, CM_EINVAL,
                       "%s: a zip file does not grow; it is written once, as a whole", target);
    if (o->resume)
        return cm_fail(err, CM_EINVAL,
                       "`resume`: %s is a zip file, complete or absent; there is nothing to go on "
                       "with",
                       target);
    if (o->part.on)
        return cm_fail(err, CM_EINVAL, "`part`: %s is a zip file, which one process writes",
                       target);
    return CM_OK;
}

int cm_sink_check_options(const cm_transform_options *o, cm_sink_kind kind, cm_error *err)
{
    int rc = check_combinations(o, err);
    if (rc == CM_OK)
        rc = check_zip(o, kind, err);
    return rc == CM_OK ? cm_sink_check_rules(o, kind, o->dataset != NULL, err) : rc;
}
