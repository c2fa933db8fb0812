#include "outputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/path.h"
#include "options/store_path.h"
#include "run.h"
#include "say.h"
#include "store/open.h"

enum {
    MAX_OUTPUTS = 8
};

/* The paths that OUTPUTS mean: a part of a store stands for all of it. */
typedef struct places {
    const char **read;
    size_t nread;
    char *made;
} places;

static void release(places *p)
{
    for (size_t i = 0; i < p->nread; i++)
        free((char *)(uintptr_t)p->read[i]);
    free(p->read);
    free(p->made);
}

static int path_of(const char *text, char **out, cm_error *err)
{
    cm_store_path path;
    int rc = cm_store_path_split(text, &path, err);
    *out = path.path;
    path.path = NULL;
    cm_store_path_release(&path);
    return rc;
}

static int find_places(const cm_outputs *o, places *p, cm_error *err)
{
    *p = (places){.read = cm_calloc(o->read->n + 1, sizeof(char *), err)};
    int rc = p->read == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < o->read->n; i++) {
        char *path;
        rc = path_of(o->read->text[i], &path, err);
        p->read[p->nread++] = path;
    }
    if (rc == CM_OK && o->made != NULL)
        rc = path_of(o->made, &p->made, err);
    return rc;
}

static const cm_document_kind *kind_of(cm_makes makes)
{
    return makes == CM_MAKES_TRACE         ? &CM_KIND_TRACE
           : makes == CM_MAKES_CERTIFICATE ? &CM_KIND_CERTIFICATE
           : makes == CM_MAKES_CACHE       ? &CM_KIND_SURVEY
           : makes == CM_MAKES_PAGE        ? &CM_KIND_PAGE
                                           : &CM_KIND_PLOT;
}

static int say(const cm_tool *tool, int rc, bool replaceable, const cm_error *err)
{
    /* --overwrite permits only to replace a file that is not a document of ours. */
    cm_say(tool->name, "%s%s", err->text,
           rc != CM_EEXIST ? ""
           : replaceable   ? "; --overwrite replaces it"
                           : "; name another file");
    return cm_tool_exit_status(rc);
}

/*
 * The bytes of the ending by which NAME, of NBYTES, is a file of another format; 0: it has none.  A
 * store may be a zip file, REFERENCES may not.
 */
static size_t foreign_ending(const char *name, size_t nbytes, bool references)
{
    static const char *const ENDINGS[] = {".zip",   ".tar", ".tgz", ".grib",
                                          ".grib2", ".grb", ".grb2"};
    for (size_t i = references ? 0 : 1; i < sizeof(ENDINGS) / sizeof(ENDINGS[0]); i++) {
        const size_t n = strlen(ENDINGS[i]);
        if (nbytes > n && strncasecmp(name + nbytes - n, ENDINGS[i], n) == 0)
            return n;
    }
    return cm_path_netcdf_ending(name, nbytes);
}

/* A store called out.nc would pass for a file, and the user who types it expects one. */
static int check_name(const cm_tool *tool, const cm_outputs *o)
{
    const char *name = cm_path_last(o->made);
    const size_t nbytes = strlen(name), ending = foreign_ending(name, nbytes, o->references);
    struct stat st;
    const bool there = stat(o->made, &st) == 0;
    if (ending == 0 || (there && S_ISDIR(st.st_mode)))
        return CM_TOOL_RUN;
    const int stem = (int)(nbytes - ending);
    const bool has_ending = stem > 5 && strncmp(name + stem - 5, ".zarr", 5) == 0;
    return cm_run_refuse(tool, "%s: %s writes %s, not a %s file; name the output %.*s%s%s", o->made,
                         tool->name,
                         o->references ? "references, a JSON document" : "a Zarr store, a folder",
                         name + stem, stem, name,
                         o->references ? ".json"
                         : has_ending  ? ""
                                       : ".zarr",
                         there ? ", after all inputs" : "");
}

int cm_outputs_check(const cm_tool *tool, const void *values, const cm_outputs *outputs)
{
    if (outputs->made != NULL && check_name(tool, outputs) != CM_TOOL_RUN)
        return CM_EXIT_USAGE;
    places p;
    cm_error err = {0};
    cm_outfile file[MAX_OUTPUTS] = {0};
    size_t n = 0;
    bool replaceable = true;
    int rc = find_places(outputs, &p, &err);
    const cm_outfile_guard guard = {.read = p.read, .nread = p.nread, .made = p.made};
    for (const cm_option *o = tool->options; rc == CM_OK && o->name; o++) {
        const char *path = NULL;
        if (o->makes != CM_MAKES_NOTHING)
            memcpy(&path, (const char *)values + o->field.offset, sizeof path);
        if (path == NULL)
            continue;
        if (o->makes == CM_MAKES_FOLDER) {
            rc = cm_outfile_check_folder(path, &guard, &err);
            continue;
        }
        /* A cache is read too, and --overwrite is about what is only written. */
        replaceable = o->makes != CM_MAKES_CACHE;
        rc = n == MAX_OUTPUTS ? cm_fail(&err, CM_EINTERNAL, "%s: one output too many", path)
                              : cm_outfile_claim(&file[n++], path, kind_of(o->makes), &guard,
                                                 outputs->overwrite && replaceable, &err);
        for (size_t i = 0; rc == CM_OK && i + 1 < n; i++)
            if (!file[n - 1].in_place && file[i].real != NULL && file[n - 1].real != NULL &&
                strcmp(file[i].real, file[n - 1].real) == 0)
                rc = cm_fail(&err, CM_EINVAL, "%s: is named for two outputs", path);
    }
    for (size_t i = 0; i < n; i++)
        cm_outfile_release(&file[i]);
    release(&p);
    return rc == CM_OK ? CM_TOOL_RUN : say(tool, rc, replaceable, &err);
}

int cm_outputs_claim(const cm_tool *tool, const char *path, const cm_document_kind *kind,
                     const cm_outputs *outputs, cm_outfile *out)
{
    places p;
    cm_error err = {0};
    int rc = find_places(outputs, &p, &err);
    const cm_outfile_guard guard = {.read = p.read, .nread = p.nread, .made = p.made};
    if (rc == CM_OK)
        rc = cm_outfile_claim(out, path, kind, &guard, outputs->overwrite, &err);
    if (rc == CM_OK && out->in_place) /* a pipe that nobody reads is told before the work */
        rc = cm_outfile_open(out, &err);
    release(&p);
    return rc == CM_OK ? CM_TOOL_RUN : say(tool, rc, true, &err);
}

char *cm_outputs_free_name(const char *name, size_t n, const char *ending, unsigned from)
{
    char *path = NULL;
    struct stat st;
    for (unsigned i = from;; i++) {
        free(path);
        if ((i == 1 ? asprintf(&path, "%.*s%s", (int)n, name, ending)
                    : asprintf(&path, "%.*s-%u%s", (int)n, name, i, ending)) < 0)
            return NULL;
        if (cm_store_url_is_remote(path) || lstat(path, &st) != 0)
            return path;
    }
}
