/* What nc2zarr's contract names and this build does not do yet. */
#include "nc2zarr.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "../common/run.h"
#include "job/common/store_path.h"
#include "store/open.h"

/* Whether the folder at PATH is a Zarr group or array, and not one that holds files. */
static bool is_zarr(const char *path)
{
    static const char *const DOCUMENT[] = {"zarr.json", ".zgroup", ".zarray", ".zmetadata"};
    char name[PATH_MAX];
    struct stat st;
    for (size_t i = 0; i < sizeof(DOCUMENT) / sizeof(DOCUMENT[0]); i++) {
        int n = snprintf(name, sizeof(name), "%s/%s", path, DOCUMENT[i]);
        if (n > 0 && (size_t)n < sizeof(name) && stat(name, &st) == 0)
            return true;
    }
    return false;
}

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

/* Inputs of an archive.  What exists under its literal name is a file, whatever the name holds. */
static int refuse_input(const char *path)
{
    struct stat st;
    bool exists = stat(path, &st) == 0;
    if (strcmp(path, "-") == 0)
        return cm_run_refuse(&NC2ZARR,
                             "reading names from standard input is not built yet; name one file");
    if (exists && S_ISDIR(st.st_mode) && !is_zarr(path))
        return cm_run_refuse(
            &NC2ZARR,
            "%s: is a folder and no Zarr store; converting folders is not built yet, "
            "name one file",
            path);
    if (!exists && path[0] == '@')
        return cm_run_refuse(&NC2ZARR, "%s: lists of inputs are not built yet; name one file",
                             path);
    const char *bracket = strchr(path, '[');
    if (!exists && (strpbrk(path, "*?") || (bracket && strchr(bracket, ']'))))
        return cm_run_refuse(&NC2ZARR, "%s: patterns are not built yet; name one file", path);
    return CM_TOOL_RUN;
}

int nc2zarr_refuse(const nc2zarr_values *v, const cm_common_options *common, const cm_texts *paths)
{
    if (v->o.refer && cm_tool_given(&NC2ZARR, common, "zarr-format") && v->o.zarr_format != 2)
        return cm_tool_usage_error(&NC2ZARR, "--zarr-format 3: references are of Zarr format 2");
    if (v->o.refer && paths->n == 1)
        return cm_tool_usage_error(&NC2ZARR, "--virtual: name OUT.json too");
    if (v->append)
        return cm_run_refuse(&NC2ZARR, "--append is not built yet");
    if (paths->n == 0)
        return cm_tool_usage_error(&NC2ZARR, "no input file");
    if (v->o.check && paths->n == 1)
        return cm_tool_usage_error(&NC2ZARR, "--check compares INPUT with OUTPUT; name both");
    for (size_t i = 0; i + 1 < paths->n || i == 0; i++) {
        int status = refuse_input(paths->text[i]);
        if (status != CM_TOOL_RUN)
            return status;
    }
    if (paths->n == 1 && is_store(paths->text[0]))
        return cm_tool_usage_error(&NC2ZARR, "%s: is a store; name the output too", paths->text[0]);
    if (paths->n > 2)
        return cm_run_refuse(&NC2ZARR,
                             "several inputs are not built yet; name one file and one output");
    return cm_run_refuse_remote(&NC2ZARR, paths);
}
