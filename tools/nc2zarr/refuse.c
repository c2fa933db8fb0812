/* Refuses options of nc2zarr's contract that this build does not implement yet. */
#include "nc2zarr.h"

#include <string.h>
#include <sys/stat.h>

#include "../common/growth.h"
#include "../common/repository.h"
#include "../common/run.h"
#include "archive/survey/inputs.h"
#include "options/store_path.h"
#include "store/open.h"

/* The name of what is made of a store would be the store's own. */
static bool is_store(const char *input)
{
    cm_store_path at;
    struct stat st;
    cm_error err = {0};
    bool folder = cm_store_path_split(input, &at, &err) == CM_OK;
    if (folder && cm_store_url_is_remote(at.path))
        folder = !cm_store_url_is_file(at.path);
    else if (folder)
        folder = stat(at.path, &st) == 0 && S_ISDIR(st.st_mode);
    cm_store_path_release(&at);
    return folder;
}

/* A store, or a node in one. */
static bool names_store(const char *input)
{
    cm_store_path at;
    cm_error err = {0};
    bool store = is_store(input) && cm_store_path_split(input, &at, &err) == CM_OK;
    if (store) {
        store = cm_input_is_store(at.path) || *at.node != '\0';
        cm_store_path_release(&at);
    }
    return store;
}

/* Options that say what a new store is like, or make coordinates that one that is there has not. */
static int refuse_append(const nc2zarr_values *v, const cm_common_options *common,
                         const cm_texts *paths)
{
    const char *output = paths->n > 1 ? paths->text[paths->n - 1] : NULL;
    const char *asked = v->append ? "append" : "replace";
    if (!v->append && !v->replace)
        return CM_TOOL_RUN;
    if (v->append && v->replace)
        return cm_tool_usage_error(&NC2ZARR, "--replace: not with --append");
    if (v->o.refer && v->replace && cm_is_repository(output))
        return cm_tool_usage_error(&NC2ZARR, "--virtual: not with --replace, which converts steps; "
                                             "they lie beside references");
    if (v->o.refer && strcmp(v->o.refer, "icechunk") == 0 && output && !cm_is_repository(output))
        return cm_tool_usage_error(&NC2ZARR, "--virtual icechunk: %s is not icechunk:PATH", output);
    if (v->o.refer && strcmp(v->o.refer, "json") == 0)
        return cm_tool_usage_error(&NC2ZARR,
                                   "--%s: --virtual writes OUT.json anew each time; "
                                   "name all files that it is to refer to",
                                   asked);
    return cm_growth_refuse(&NC2ZARR, common, asked, &v->o, true);
}

int nc2zarr_refuse(const nc2zarr_values *v, const cm_common_options *common, const cm_texts *paths)
{
    int status = cm_run_refuse_overflow(&NC2ZARR, common);
    if (status == CM_TOOL_RUN)
        status = refuse_append(v, common, paths);
    if (status != CM_TOOL_RUN)
        return status;
    if ((v->recheck || v->append_rest) && !v->append)
        return cm_tool_usage_error(&NC2ZARR, "--%s: only with --append",
                                   v->recheck ? "recheck" : "append-rest");
    if (v->o.refer && strcmp(v->o.refer, "json") == 0 &&
        cm_tool_given(&NC2ZARR, common, "zarr-format") && v->o.zarr_format != 2)
        return cm_tool_usage_error(&NC2ZARR, "--zarr-format 3: references are of Zarr format 2");
    if (v->o.refer && paths->n == 1)
        return cm_tool_usage_error(&NC2ZARR, "--virtual: name OUT.json too");
    if ((v->append || v->replace) && paths->n < 2)
        return cm_tool_usage_error(&NC2ZARR, "--%s: name the files and the store",
                                   v->append ? "append" : "replace");
    if (v->o.report && (v->survey || v->a.store_per))
        return cm_tool_usage_error(
            &NC2ZARR, v->survey ? "--report: --survey reads no data"
                                : "--report: is of one store, and --store-per makes many; "
                                  "chunkcalc --report describes each");
    if (paths->n == 0)
        return cm_tool_usage_error(&NC2ZARR, "no input file");
    if (v->survey && v->o.check)
        return cm_tool_usage_error(&NC2ZARR, "--survey and --check exclude each other");
    if (v->o.check && v->o.dry_run)
        return cm_tool_usage_error(
            &NC2ZARR, "--dry-run and --check exclude each other; --check writes nothing");
    const char *last = paths->n > 1 ? paths->text[paths->n - 1] : NULL;
    if (cm_is_repository(last) && v->a.store_per)
        return cm_tool_usage_error(&NC2ZARR, "--store-per: makes stores, not a repository");
    if (v->o.base_url && !v->o.refer)
        return cm_tool_usage_error(&NC2ZARR, "--base-url needs --virtual");
    if (v->o.check && paths->n == 1)
        return cm_tool_usage_error(&NC2ZARR, "--check compares INPUT with OUTPUT; name both");
    for (size_t i = 0; i + 1 < paths->n || i == 0; i++)
        if (strcmp(paths->text[i], "-") == 0)
            return cm_tool_usage_error(&NC2ZARR,
                                       "-: is not a file; @- reads paths from standard input");
    if (paths->n == 1 && !v->survey && v->a.store_per)
        return cm_tool_usage_error(&NC2ZARR, "--store-per: name the output folder too");
    if (paths->n == 1 && !v->survey && paths->text[0][0] == '@')
        return cm_tool_usage_error(&NC2ZARR, "%s: is a list; name the output too", paths->text[0]);
    if (paths->n == 1 && !v->survey && cm_input_is_many(paths->text[0]) &&
        !is_store(paths->text[0]))
        return cm_tool_usage_error(&NC2ZARR, "%s: is a pattern; name the output too",
                                   paths->text[0]);
    if (paths->n == 1 && !v->survey && names_store(paths->text[0]))
        return cm_tool_usage_error(&NC2ZARR, "%s: is a store; name the output too", paths->text[0]);
    return cm_run_refuse_remote(&NC2ZARR, paths);
}
