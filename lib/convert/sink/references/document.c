/*
 * The document of references: {"version": 1, ..., "refs": {KEY: TEXT | [URL, OFFSET, LENGTH]}}.
 *
 * It is written as it is made, so that a million chunks take no memory.  Its keys are those of a
 * Zarr 2 store: readers of references know that format best.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base64.h"
#include "base/clock.h"
#include "base/fileurl.h"
#include "base/marks.h"
#include "base/number.h"
#include "base/path.h"
#include "base/utf8.h"
#include "convert/layout/refer.h"
#include "convert/sink/references/files.h"
#include "convert/sink/sink.h"
#include "convert/source/inputs.h"
#include "format/multi/multi.h"
#include "store/net/url.h"
#include "store/open.h"
#include "watch/monitor.h"

typedef struct writing {
    cm_job *job;
    cm_store *store; /* what stands in the document */
    cm_outfile file;
    FILE *to; /* its stream */
    bool any; /* a reference was written: a comma comes before the next */
    cm_refer_files files;
    cm_buf text;        /* of a string in JSON */
    cm_buf object;      /* of the store in memory */
    const char *url_of; /* whose URL is */
    char *url;          /* in JSON, with quotes */
} writing;

/* ---- texts ---- */

/* TEXT as a string of JSON, in w->text, with a NUL. */
static int quote(writing *w, const char *text, size_t nbytes, cm_error *err)
{
    cm_json *j = cm_json_string_n(text, nbytes);
    if (j == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for references");
    w->text.nbytes = 0;
    int rc = cm_json_write(j, false, &w->text, err);
    if (rc == CM_OK)
        rc = cm_buf_append(&w->text, "", 1, err);
    cm_json_free(j);
    return rc;
}

static void begin_reference(writing *w)
{
    fputs(w->any ? ",\n" : "\n", w->to);
    w->any = true;
}

/* ---- what stands in the document ---- */

/* A document of metadata is legible text, and a chunk base64, whatever its bytes are. */
static int write_object(writing *w, const char *key, cm_error *err)
{
    int rc = cm_store_get(w->store, key, UINT64_MAX, &w->object, err);
    if (rc == CM_OK)
        rc = quote(w, key, strlen(key), err);
    if (rc != CM_OK)
        return rc;
    begin_reference(w);
    fprintf(w->to, "%s: ", (char *)w->text.data);
    if (cm_path_last(key)[0] == '.') {
        rc = quote(w, (const char *)w->object.data, w->object.nbytes, err);
        if (rc == CM_OK)
            fputs((char *)w->text.data, w->to);
        return rc;
    }
    char *text = cm_base64_encode(w->object.data, w->object.nbytes, err);
    if (text == NULL)
        return CM_ENOMEM;
    fprintf(w->to, "\"base64:%s\"", text);
    free(text);
    w->job->report->ninline++;
    return CM_OK;
}

typedef struct below {
    writing *w;
    const char *prefix;
} below;

static int visit(void *context, const char *name, bool is_prefix, cm_error *err)
{
    const below *b = context;
    char *key = cm_asprintf(err, "%s%s%s", b->prefix, *b->prefix != '\0' ? "/" : "", name);
    if (key == NULL)
        return CM_ENOMEM;
    below deeper = {b->w, key};
    int rc = is_prefix ? cm_store_list(b->w->store, key, visit, &deeper, err)
                       : write_object(b->w, key, err);
    free(key);
    return rc;
}

/* ---- where files are ---- */

/* The URL of PATH as a string of JSON, in w->url: an absolute path where there is no base. */
static int find_url(writing *w, const char *path, cm_error *err)
{
    if (w->url_of == path)
        return CM_OK;
    char *text;
    int rc = cm_refer_files_name(&w->files, path, &text, err);
    if (rc == CM_OK && !cm_utf8_is_valid(text, strlen(text)))
        rc = cm_fail(err, CM_EUNSUPPORTED, "%s: its name is not UTF-8, which references must be",
                     path);
    if (rc == CM_OK)
        rc = quote(w, text, strlen(text), err);
    free(text);
    if (rc != CM_OK)
        return rc;
    free(w->url);
    w->url = cm_strdup((char *)w->text.data, err);
    w->url_of = w->url != NULL ? path : NULL;
    return w->url != NULL ? CM_OK : CM_ENOMEM;
}

/* ---- references ---- */

/* Where chunk COORD of the part lies; false: nothing is stored. */
static bool find_place(const cm_job_var *v, const cm_refer_part *p, const uint64_t *coord,
                       uint64_t *offset, uint64_t *nbytes)
{
    const cm_located *l = p->located;
    if (l->form->kind == CM_LOCATED_UNWRITTEN)
        return false;
    if (l->form->kind == CM_LOCATED_SLAB) {
        *nbytes = v->view.type.nbytes;
        for (unsigned j = 0; j < v->view.rank; j++)
            *nbytes *= v->layout.chunk[j];
        *offset = l->begin;
        if (v->view.rank > 0)
            *offset += (p->first[0] + coord[0] * v->layout.chunk[0]) * l->row_stride;
        return true;
    }
    uint64_t number = 0;
    for (unsigned j = 0; j < v->view.rank; j++)
        number = number * cm_div_ceil(p->length[j], v->layout.chunk[j]) +
                 p->first[j] / v->layout.chunk[j] + coord[j];
    *offset = l->place[number].address;
    *nbytes = l->place[number].nbytes;
    return *nbytes > 0;
}

/* "0.1.2" of the variable, "0" of a scalar. */
static void write_number(const writing *w, const cm_job_var *v, const cm_refer_part *p,
                         const uint64_t *coord)
{
    for (unsigned j = 0; j < v->view.rank; j++)
        fprintf(w->to, "%s%llu", j > 0 ? "." : "",
                (unsigned long long)(p->origin[j] / v->layout.chunk[j] + coord[j]));
    if (v->view.rank == 0)
        fputc('0', w->to);
}

/* NAME is v's in JSON, without its last quote. */
static int write_part(writing *w, const cm_job_var *v, const cm_refer_part *p, const char *name,
                      cm_error *err)
{
    uint64_t coord[CM_MAX_RANK] = {0}, count[CM_MAX_RANK], offset, nbytes;
    int rc = find_url(w, p->path, err);
    if (rc != CM_OK)
        return rc;
    for (unsigned j = 0; j < v->view.rank; j++)
        count[j] = cm_div_ceil(p->count[j], v->layout.chunk[j]);
    for (unsigned j = v->view.rank; j-- > 0;)
        if (count[j] == 0)
            return CM_OK;
    for (bool more = true; more;) {
        if (find_place(v, p, coord, &offset, &nbytes)) {
            begin_reference(w);
            fprintf(w->to, "%s%s", name, *name != '"' || name[1] != '\0' ? "/" : "");
            write_number(w, v, p, coord);
            fprintf(w->to, "\": [%s, %llu, %llu]", w->url, (unsigned long long)offset,
                    (unsigned long long)nbytes);
            w->job->report->nreferences++;
        }
        more = false;
        for (unsigned j = v->view.rank; j-- > 0 && !more;) {
            more = ++coord[j] < count[j];
            if (!more)
                coord[j] = 0;
        }
    }
    return cm_outfile_check(&w->file, err);
}

static int write_variable(writing *w, const cm_job_var *v, cm_error *err)
{
    int rc = quote(w, v->name, strlen(v->name), err);
    char *name = rc == CM_OK ? cm_strdup((char *)w->text.data, err) : NULL;
    if (name == NULL)
        return CM_ENOMEM;
    name[strlen(name) - 1] = '\0';
    for (size_t i = 0; i < v->layout.refer->nparts && rc == CM_OK; i++) {
        if (cm_monitor_canceled(w->job->options->monitor))
            rc = cm_fail(err, CM_ECANCELED, "stopped by request");
        if (rc == CM_OK)
            rc = write_part(w, v, &v->layout.refer->part[i], name, err);
    }
    free(name);
    return rc;
}

/* ---- all of it ---- */

static int plan_store(writing *w, cm_error *err)
{
    int rc = cm_store_open_memory(&w->store, err);
    if (rc == CM_OK)
        rc = cm_job_plan(w->job, w->store, err);
    return rc == CM_OK ? cm_job_report(w->job, false, err) : rc;
}

static int write_state(writing *w, const char *path, uint64_t nbytes, uint64_t mtime_ns, bool *any,
                       cm_error *err)
{
    int rc = find_url(w, path, err);
    if (rc == CM_OK)
        fprintf(w->to, "%s[%s, %llu, %llu]", *any ? ",\n" : ",\n\"files\":[\n", w->url,
                (unsigned long long)nbytes, (unsigned long long)mtime_ns);
    *any = true;
    return rc;
}

/*
 * Size and modification time of each file of this machine, so that a later change is noticed.
 * Other readers skip this member; GDAL takes every object beside "refs" for more of them, so it is
 * a list.
 */
static int write_states(writing *w, cm_error *err)
{
    const cm_multi_spec *spec = cm_multi_spec_of(w->job->source);
    struct stat st;
    bool any = false;
    int rc = CM_OK;
    if (w->job->options->base_url != NULL || cm_refer_was_fetched(w->job))
        return CM_OK;
    for (size_t i = 0; spec != NULL && rc == CM_OK && i < spec->nfiles; i++)
        if (spec->file[i].copy == NULL)
            rc = write_state(w, spec->file[i].path, spec->file[i].nbytes, spec->file[i].mtime_ns,
                             &any, err);
    if (spec == NULL && stat(w->job->from.path, &st) == 0)
        rc = write_state(w, w->job->from.path, (uint64_t)st.st_size,
                         (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec,
                         &any, err);
    if (any)
        fputs("\n]", w->to);
    return rc;
}

static int write_document(writing *w, cm_error *err)
{
    below root = {w, ""};
    fputs("{" CM_MARK_REFERENCES, w->to);
    int rc = cm_store_list(w->store, "", visit, &root, err);
    for (size_t i = 0; rc == CM_OK && i < w->job->nvars; i++)
        if (w->job->var[i].layout.refer != NULL)
            rc = write_variable(w, &w->job->var[i], err);
    fputs("\n}", w->to);
    if (rc == CM_OK)
        rc = write_states(w, err);
    fputs("}\n", w->to);
    return rc;
}

static int write_file(writing *w, cm_error *err)
{
    int rc = cm_outfile_open(&w->file, err);
    if (rc == CM_OK && (w->to = cm_outfile_stream(&w->file, err)) == NULL)
        rc = CM_ENOMEM;
    if (rc != CM_OK)
        return rc;
    rc = write_document(w, err);
    return rc == CM_OK ? cm_outfile_commit(&w->file, err) : rc;
}

/* A pipe that nobody reads is waited for until a signal ends the run. */
static bool is_canceled(void *monitor)
{
    return cm_monitor_canceled(monitor);
}

static int claim(cm_job *job, cm_outfile *file, const cm_outfile_guard *guard, cm_error *err)
{
    const char *target = job->options->target;
    int rc =
        cm_outfile_claim(file, target, &CM_KIND_REFERENCES, guard, job->options->overwrite, err);
    if (rc == CM_EEXIST && !job->options->overwrite)
        cm_error_suffix(err, "; `overwrite` replaces it");
    if (rc != CM_OK)
        cm_error_place(err, target); /* no fault of the file that is read */
    return rc;
}

/* ---- as a sink ---- */

/* Plans the job into a store in memory; the output file is not touched yet. */
static int prepare(cm_sink *s, cm_job *job, cm_error *err)
{
    const char **path = NULL;
    size_t n = 0;
    int rc = cm_sink_describe(job, NULL, err);
    writing *w = rc == CM_OK ? s->own = cm_calloc(1, sizeof(*w), err) : NULL;
    if (w == NULL)
        return rc == CM_OK ? CM_ENOMEM : rc;
    w->job = job;
    w->file.fd = -1;
    rc = cm_job_inputs_paths(job, job->from.path, &path, &n, err);
    const cm_outfile_guard guard = {
        .read = path, .nread = n, .canceled = is_canceled, .context = job->options->monitor};
    if (rc == CM_OK)
        rc = cm_refer_files_find(&w->files, job, path, n, err);
    if (rc == CM_OK)
        rc = cm_job_refer_fill(job, err);
    if (rc == CM_OK && job->options->target != NULL)
        rc = claim(job, &w->file, &guard, err);
    if (rc == CM_OK)
        rc = plan_store(w, err);
    s->store = w->store;
    free(path);
    return rc;
}

static int begin(cm_sink *s, cm_job *job, bool *moves, cm_error *err)
{
    (void)moves;
    return prepare(s, job, err);
}

static int foresee(cm_sink *s, cm_job *job, bool *moves, cm_error *err)
{
    *moves = false;
    return prepare(s, job, err);
}

/* Objects that the document itself holds are already converted, in a store in memory. */
static int commit(cm_sink *s, cm_job *job, cm_error *err)
{
    int rc = cm_job_write_metadata(job, s->store, err);
    if (rc == CM_OK)
        rc = write_file(s->own, err);
    job->report->written = rc == CM_OK;
    return rc;
}

/* Compares the references, read as any store is, with the files as libnetcdf reads them. */
static int verify(cm_sink *s, cm_job *job, cm_error *err)
{
    const char *target = job->options->target;
    const cm_store_options options = {
        .net = job->options->net, .trusted = true, .memory = job->options->memory};
    cm_store *store = NULL;
    const uint64_t start = cm_now_ns();
    (void)s;
    /* Where the files will be elsewhere, they cannot be read from here. */
    if (job->options->base_url != NULL)
        return CM_OK;
    int rc = cm_store_open(target, &options, &store, err);
    if (rc == CM_OK)
        rc = cm_job_verify(job, store, err);
    rc = cm_sink_verified(job, rc, start, target, err);
    cm_store_free(store);
    return rc;
}

static int leave(cm_sink *s, cm_job *job, int rc, cm_error *err)
{
    writing *w = s->own;
    (void)job;
    (void)err;
    s->own = NULL;
    if (w == NULL)
        return rc;
    cm_store_free(w->store);
    cm_outfile_release(&w->file);
    cm_buf_release(&w->text);
    cm_buf_release(&w->object);
    cm_refer_files_release(&w->files);
    free(w->url);
    free(w);
    return rc;
}

/* Readers of references know format 2 best. */
static int find(cm_sink *s, cm_job *job, cm_error *err)
{
    cm_transform_options *o = s->options;
    (void)job;
    if (cm_store_url_is_remote(o->target))
        return cm_fail(err, CM_EINVAL, "%s: references can only be written to a local file",
                       o->target);
    if (o->base_url != NULL && strstr(o->base_url, "://") == NULL)
        return cm_fail(err, CM_EINVAL, "`base_url` %s: is not a URL", o->base_url);
    if (strcmp(o->refer, "json") != 0)
        return cm_fail(err, CM_EINVAL, "`refer` %s: references are written as json", o->refer);
    o->zarr_format = 2;
    return CM_OK;
}

const cm_sink_ops cm_sink_references = {.kind = CM_SINK_REFERS,
                                        .find = find,
                                        .layout = cm_job_refer_layout,
                                        .begin = begin,
                                        .commit = commit,
                                        .verify = verify,
                                        .leave = leave};

const cm_sink_ops cm_sink_references_foreseen = {.kind = CM_SINK_REFERS,
                                                 .terms.foreseen = true,
                                                 .find = find,
                                                 .layout = cm_job_refer_layout,
                                                 .begin = foresee,
                                                 .leave = leave};
