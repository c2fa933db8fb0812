/* --store-per: many stores of one survey, each made and committed by itself. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../common/document.h"
#include "../common/run.h"
#include "../common/say.h"
#include "archive.h"
#include "archive/survey/inputs.h"
#include "base/fileurl.h"
#include "base/mem.h"
#include "store/open.h"

/* The folders that PATH, a file, lies in. */
static int make_folders(const char *path, cm_error *err)
{
    char *copy = cm_strdup(path, err);
    int rc = copy == NULL ? CM_ENOMEM : CM_OK;
    for (char *slash = copy == NULL ? NULL : strchr(copy + 1, '/'); rc == CM_OK && slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(copy, 0777) != 0 && errno != EEXIST)
            rc = cm_fail_errno(err, errno, "%s", copy);
        *slash = '/';
    }
    free(copy);
    return rc;
}

static char *below(const char *folder, const char *name, const char *ending, cm_error *err)
{
    size_t n = strlen(folder);
    return cm_asprintf(err, "%s%s%s%s", folder, n > 0 && folder[n - 1] == '/' ? "" : "/", name,
                       ending);
}

static bool is_there(const char *path)
{
    struct stat st;
    const char *plain = path;
    bool is_url;
    return !cm_store_url_is_remote(path) &&
           cm_fileurl_strip(path, &plain, &is_url, NULL) == CM_OK && lstat(plain, &st) == 0;
}

int nc2zarr_check_grown(const nc2zarr_values *v, const char *output)
{
    const char *folder = output;
    bool is_url;
    if (v->append == NULL && v->replace == NULL)
        return CM_TOOL_RUN;
    if (cm_store_url_is_remote(output) ||
        cm_fileurl_strip(output, &folder, &is_url, NULL) != CM_OK || cm_input_is_store(folder))
        return CM_TOOL_RUN;
    DIR *dir = opendir(folder);
    int status = CM_TOOL_RUN;
    for (struct dirent *e; dir != NULL && status == CM_TOOL_RUN && (e = readdir(dir)) != NULL;) {
        char *path = below(folder, e->d_name, "", NULL);
        const size_t n = strlen(e->d_name);
        if (path != NULL && n > 5 && strcmp(e->d_name + n - 5, ".zarr") == 0 &&
            cm_input_is_store(path))
            status = cm_run_refuse(&NC2ZARR,
                                   "%s: is a folder of stores; name one of them, as %s, and the "
                                   "files that belong to it",
                                   output, path);
        free(path);
    }
    if (dir != NULL)
        closedir(dir);
    return status;
}

int nc2zarr_check_stores(const nc2zarr_values *v, const char *output, const cm_outputs *outputs)
{
    nc2zarr_values values = *v;
    struct stat st;
    /* A folder of certificates: each is claimed when it is made. */
    values.o.certificate = NULL;
    if (*v->a.store_per == '\0')
        return cm_run_refuse(&NC2ZARR, "--store-per: must be {dir}, {variable}, or a part of the "
                                       "files' names with *");
    if (v->o.trace != NULL)
        return cm_run_refuse(&NC2ZARR, "--trace: is of one store; --store-per makes several");
    if (v->part.part != NULL || v->part.nparts > 0)
        return cm_run_refuse(&NC2ZARR, "--part: is of one store; --store-per makes several");
    if (!v->survey && cm_input_is_store(output))
        return cm_run_refuse(&NC2ZARR, "%s: is a store; --store-per makes stores in a folder",
                             output);
    if (v->o.certificate != NULL && stat(v->o.certificate, &st) == 0 && !S_ISDIR(st.st_mode))
        return cm_run_refuse(&NC2ZARR,
                             "--certificate %s: is a file; with --store-per it is a folder",
                             v->o.certificate);
    return cm_outputs_check(&NC2ZARR, &values, outputs);
}

/* Before anything is written: none of them may be there. */
static int check_absent(const archive_job *job, const char *folder, const char *ending,
                        cm_error *err)
{
    const cm_transform_options *o = &job->v->o;
    int rc = CM_OK;
    if (o->overwrite || o->resume || o->check || o->refer != NULL)
        return CM_OK;
    for (size_t i = 0; rc == CM_OK && i < job->nstores; i++) {
        char *path = below(folder, job->survey[i]->store, ending, err);
        if (path == NULL)
            return CM_ENOMEM;
        if (is_there(path))
            rc = cm_fail(err, CM_EEXIST,
                         "%s: exists; --resume makes the missing stores, --overwrite replaces it",
                         path);
        free(path);
    }
    return rc;
}

/* The variables of all stores: an option for one of them is applied where it is. */
static cm_other_variable *list_variables(const archive_job *job, size_t *n, cm_error *err)
{
    size_t all = 0;
    for (size_t i = 0; i < job->nstores; i++)
        all += job->survey[i]->nvariables;
    cm_other_variable *list = cm_calloc(all + 1, sizeof(*list), err);
    *n = 0;
    for (size_t i = 0; list != NULL && i < job->nstores; i++)
        for (size_t k = 0; k < job->survey[i]->nvariables; k++) {
            const cm_archive_variable *v = &job->survey[i]->variable[k];
            list[(*n)++] = (cm_other_variable){v->name, v->rank, v->dim_name};
        }
    return list;
}

/* One store; its document goes into STORES.  Returns the exit status. */
static int convert_one(archive_job *job, const char *folder, const char *ending, cm_json *stores,
                       int *status)
{
    const cm_archive_report *survey = job->survey[job->store];
    const char *certificates = job->v->o.certificate;
    cm_error err = {0};
    char *target = below(folder, survey->store, ending, &err), *certificate = NULL;
    int rc = target == NULL ? CM_ENOMEM : CM_OK;
    job->report = (cm_transform_report){0};
    if (rc == CM_OK && certificates != NULL) {
        certificate = below(certificates, survey->store, ".json", &err);
        rc = certificate == NULL ? CM_ENOMEM : make_folders(certificate, &err);
    }
    if (rc == CM_OK && job->v->o.refer != NULL && !job->v->o.dry_run)
        rc = make_folders(target, &err);
    job->options.target = target;
    job->options.certificate = certificate;
    if (rc == CM_OK)
        rc = cm_run(&NC2ZARR, job->common, job->asked.monitor, nc2zarr_convert_store, job, &err);
    job->options.source = survey->name; /* for people */
    nc2zarr_say_findings(survey, job->common);
    const nc2zarr_of of = {job->archive, survey, job->store, survey->store, stores};
    int exit_status =
        nc2zarr_report(rc, &job->options, &job->report, job->common, &job->typed, &of, &err);
    cm_transform_report_release(&job->report);
    job->report = (cm_transform_report){0};
    free(certificate);
    free(target);
    *status = rc;
    return exit_status;
}

static int print_documents(cm_json *stores, int status, int exit_status)
{
    cm_error err = {0};
    cm_document doc = {CM_OK, &err};
    cm_json *o = cm_json_object();
    cm_document_head(&doc, o, "nc2zarr-stores/1",
                     exit_status == CM_EXIT_DONE     ? "done"
                     : exit_status == CM_EXIT_DIFFER ? "differs"
                     : status == CM_ECANCELED        ? "canceled"
                                                     : "failed",
                     NULL);
    cm_document_put(&doc, o, "stores", stores);
    if (cm_document_print(&doc, o, stdout) == CM_OK)
        return exit_status;
    cm_say(NC2ZARR.name, "%s", err.text);
    return CM_EXIT_FAILED;
}

int nc2zarr_convert_stores(archive_job *job, int *status)
{
    const char *folder = job->options.target;
    const char *ending = job->v->o.refer != NULL ? ".json" : ".zarr";
    cm_json *stores = cm_json_array();
    cm_error err = {0};
    int exit_status = CM_EXIT_DONE;
    *status = check_absent(job, folder, ending, &err);
    if (*status != CM_OK) {
        cm_say(NC2ZARR.name, "%s", err.text);
        cm_json_free(stores);
        return cm_tool_exit_status(*status);
    }
    /* The join has chosen: a name that it took is of another store. */
    if (strcmp(job->asked.store_per, "{variable}") == 0)
        job->options.variable = job->options.exclude = (cm_texts){0};
    cm_other_variable *others = list_variables(job, &job->options.nothers, &err);
    if (others == NULL) {
        *status = CM_ENOMEM;
        cm_say(NC2ZARR.name, "%s", err.text);
        cm_json_free(stores);
        return cm_tool_exit_status(*status);
    }
    job->options.other = others;
    size_t done = 0;
    for (job->store = 0; job->store < job->nstores; job->store++) {
        int own = convert_one(job, folder, ending, stores, status);
        exit_status = own != CM_EXIT_DONE ? own : exit_status;
        if (*status != CM_OK && *status != CM_EDIFFER)
            break;
        done++;
    }
    free(others);
    job->options.other = NULL;
    job->options.nothers = 0;
    job->options.target = folder;
    if (done < job->nstores && done > 0 && !job->v->o.dry_run && !job->v->o.check)
        cm_say(NC2ZARR.name, "%zu of %zu stores are complete", done, job->nstores);
    if (job->common->json)
        return print_documents(stores, *status, exit_status);
    cm_json_free(stores);
    return exit_status;
}
