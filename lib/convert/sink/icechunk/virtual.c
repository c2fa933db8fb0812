/*
 * References in a repository: chunks stay in the files, and a commit refers to them.  Small
 * variables, coordinates, and those that cannot be referred to are converted.
 */
#include <stdlib.h>
#include <string.h>

#include "convert/layout/refer.h"
#include "convert/sink/icechunk/refer_places.h"
#include "convert/sink/icechunk/repository.h"
#include "convert/sink/icechunk/writing.h"
#include "convert/sink/references/files.h"
#include "convert/source/inputs.h"
#include "store/net/url.h"

typedef struct referring {
    cm_ice_writing writing; /* first: that of the other sink */
    cm_refer_urls urls;
    cm_refer_places *places; /* one for each variable */
    size_t nplaces;
} referring;

/* ---- the place that readers are to allow ---- */

static int set_s3(cm_json *store, cm_error *err)
{
    static const char *const off[] = {"anonymous", "allow_http", "force_path_style",
                                      "requester_pays"};
    static const char *const none[] = {"region", "endpoint_url", "network_stream_timeout_seconds",
                                       "checksum_algorithm"};
    cm_json *s3 = cm_json_object();
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < 4; i++)
        rc = cm_json_set(s3, off[i], cm_json_bool(false), err);
    for (size_t i = 0; rc == CM_OK && i < 4; i++)
        rc = cm_json_set_null(s3, none[i], err);
    if (rc == CM_OK)
        return cm_json_set(store, "s3", s3, err);
    cm_json_free(s3);
    return rc;
}

/* The kind of storage behind PREFIX, in icechunk's words. */
static int describe_store(const char *prefix, const char *folder, cm_json **out, cm_error *err)
{
    *out = cm_json_object();
    if (strncmp(prefix, "file:", 5) == 0)
        return cm_json_set(*out, "local_file_system", cm_json_string(folder), err);
    if (cm_url_scheme(prefix) == CM_URL_HTTP)
        return cm_json_set(*out, "http", cm_json_object(), err);
    return set_s3(*out, err);
}

/* A configuration with one container of virtual chunks, all that lies below PREFIX. */
static int make_config(const char *prefix, const char *folder, cm_json **out, cm_error *err)
{
    cm_json *containers = cm_json_object(), *container = cm_json_object(), *store = NULL;
    *out = cm_json_object();
    int rc = cm_json_set_null(container, "name", err);
    if (rc == CM_OK)
        rc = cm_json_set(container, "url_prefix", cm_json_string(prefix), err);
    if (rc == CM_OK)
        rc = describe_store(prefix, folder, &store, err);
    if (rc == CM_OK)
        rc = cm_json_set(container, "store", store, err);
    else
        cm_json_free(store);
    if (rc == CM_OK)
        rc = cm_json_set(containers, prefix, container, err);
    else
        cm_json_free(container);
    if (rc == CM_OK)
        return cm_json_set(*out, "virtual_chunk_containers", containers, err);
    cm_json_free(containers);
    return rc;
}

static int set_config(referring *r, cm_job *job, cm_error *err)
{
    cm_repository *repo = &r->writing.repository;
    char *folder = NULL, *prefix = NULL;
    const char **path = NULL;
    size_t n = 0;
    int rc = cm_refer_urls_prefix(&r->urls, &prefix, err);
    if (rc == CM_OK)
        rc = cm_job_inputs_paths(job, job->from.path, &path, &n, err);
    if (rc == CM_OK && strncmp(prefix, "file:", 5) == 0)
        rc = cm_refer_folder(path, n, &folder, err);
    if (rc == CM_OK && !repo->base->there)
        rc = make_config(prefix, folder, &repo->config, err);
    if (rc == CM_OK && repo->base->there)
        rc = cm_job_note(job, err,
                         "readers allow virtual chunks below %s: the configuration of the "
                         "repository stays as it is",
                         prefix);
    free(path);
    free(prefix);
    free(folder);
    return rc;
}

/* ---- the sink ---- */

static int find_places(referring *r, cm_job *job, cm_error *err)
{
    int rc = CM_OK;
    if ((r->places = cm_calloc(job->nvars + 1, sizeof(r->places[0]), err)) == NULL)
        return CM_ENOMEM;
    r->nplaces = job->nvars;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        if (job->var[i].layout.refer != NULL)
            rc = cm_refer_places_create(&job->var[i], &r->urls, &r->places[i], err);
    return rc;
}

static int prepare(referring *r, cm_job *job, cm_error *err)
{
    int rc = cm_refer_urls_list(&r->urls, job, err);
    return rc == CM_OK ? find_places(r, job, err) : rc;
}

static int begin(cm_sink *s, cm_job *job, bool *moves, cm_error *err)
{
    referring *r = s->own = cm_calloc(1, sizeof(*r), err);
    int rc = r == NULL ? CM_ENOMEM : cm_sink_describe(job, NULL, err);
    if (rc == CM_OK)
        rc = cm_job_refer_fill(job, err);
    if (rc == CM_OK)
        rc = prepare(r, job, err);
    if (rc == CM_OK)
        rc = cm_ice_writing_begin(&r->writing, s, job, moves, err);
    return rc == CM_OK && *moves ? set_config(r, job, err) : rc;
}

static int commit(cm_sink *s, cm_job *job, cm_error *err)
{
    referring *r = s->own;
    cm_ice_places *places = cm_calloc(job->nvars + 1, sizeof(places[0]), err);
    if (places == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < job->nvars; i++)
        if (job->var[i].layout.refer != NULL)
            cm_refer_places_get(&r->places[i], &places[i]);
    int rc = cm_ice_writing_commit(&r->writing, s, job, places, err);
    free(places);
    return rc;
}

/* The plan alone; nothing is touched. */
static int foresee(cm_sink *s, cm_job *job, bool *moves, cm_error *err)
{
    cm_store *nowhere = NULL;
    (void)s;
    *moves = false;
    int rc = cm_sink_describe(job, NULL, err);
    if (rc == CM_OK)
        rc = cm_job_refer_fill(job, err);
    if (rc == CM_OK)
        rc = cm_store_open_memory(&nowhere, err);
    if (rc == CM_OK)
        rc = cm_job_plan(job, nowhere, err);
    if (rc == CM_OK)
        rc = cm_job_report(job, false, err);
    cm_job_release_writers(job);
    cm_store_free(nowhere);
    return rc;
}

static int leave(cm_sink *s, cm_job *job, int rc, cm_error *err)
{
    referring *r = s->own;
    (void)job;
    (void)err;
    s->own = NULL;
    if (r == NULL)
        return rc;
    cm_ice_writing_release(&r->writing);
    for (size_t i = 0; i < r->nplaces; i++)
        cm_refer_places_release(&r->places[i]);
    cm_refer_urls_release(&r->urls);
    free(r->places);
    free(r);
    return rc;
}

static int find(cm_sink *s, cm_job *job, cm_error *err)
{
    int rc = cm_refer_urls_check(s->options, err);
    return rc == CM_OK ? cm_repository_find(s, job, err) : rc;
}

const cm_sink_ops cm_sink_virtual = {.kind = CM_SINK_REFERS,
                                     .terms.unconsolidated = true,
                                     .find = find,
                                     .layout = cm_job_refer_layout,
                                     .begin = begin,
                                     .commit = commit,
                                     .withdraw = cm_ice_writing_withdraw,
                                     .leave = leave,
                                     .give_back = cm_sink_end_output};

const cm_sink_ops cm_sink_virtual_foreseen = {.kind = CM_SINK_REFERS,
                                              .terms = {.foreseen = true, .unconsolidated = true},
                                              .find = find,
                                              .layout = cm_job_refer_layout,
                                              .begin = foresee};
