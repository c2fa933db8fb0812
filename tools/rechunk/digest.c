/* `rechunk --digest STORE...`: a digest for each array, whatever its layout. */
#include <chunkmill/digest.h>
#include <stdlib.h>
#include <string.h>

#include "../common/document.h"
#include "../common/print.h"
#include "../common/remote.h"
#include "../common/run.h"
#include "../common/say.h"
#include "base/mem.h"
#include "rechunk.h"

typedef struct entry {
    char *store, *name, *type;
    char *digest;     /* NULL: */
    char *undigested; /* why there is none */
    uint64_t nelem;
} entry;

typedef struct digests {
    const cm_texts *paths;
    const cm_common_options *common;
    cm_monitor *monitor;
    cm_net *net;
    entry *entry;
    size_t n, capacity;
    const char *store; /* the one that is read now */
    char **warning;
    size_t nwarnings, warning_capacity;
} digests;

static int no_memory(const digests *d, cm_error *err)
{
    return cm_fail(err, CM_ENOMEM, "%s: no memory for another digest", d->store);
}

static int warn(digests *d, const char *sentence, cm_error *err)
{
    char *text = NULL;
    if (asprintf(&text, "%s: %s", d->store, sentence) < 0)
        return no_memory(d, err);
    char **grown =
        cm_make_room(d->warning, d->nwarnings, &d->warning_capacity, sizeof(d->warning[0]), 16);
    if (!grown) {
        free(text);
        return no_memory(d, err);
    }
    d->warning = grown;
    grown[d->nwarnings++] = text;
    return CM_OK;
}

static int take(void *context, const cm_digest_row *row, cm_error *err)
{
    digests *d = context;
    if (row->warning)
        return warn(d, row->warning, err);
    entry *grown = cm_make_room(d->entry, d->n, &d->capacity, sizeof(*grown), 16);
    if (!grown)
        return no_memory(d, err);
    d->entry = grown;
    const char *text = row->digest ? row->digest : row->undigested;
    entry *e = &d->entry[d->n++];
    *e = (entry){.store = strdup(d->store),
                 .name = strdup(row->name[0] ? row->name : "/"),
                 .type = strdup(row->type),
                 .nelem = row->nelem};
    *(row->digest ? &e->digest : &e->undigested) = strdup(text);
    if (!e->store || !e->name || !e->type || !(e->digest || e->undigested))
        return no_memory(d, err);
    return CM_OK;
}

static void release(digests *d)
{
    for (size_t i = 0; i < d->n; i++) {
        free(d->entry[i].store);
        free(d->entry[i].name);
        free(d->entry[i].type);
        free(d->entry[i].digest);
        free(d->entry[i].undigested);
    }
    free(d->entry);
    for (size_t i = 0; i < d->nwarnings; i++)
        free(d->warning[i]);
    free(d->warning);
}

/* Warnings, and arrays without a digest: on standard error, apart from the digests. */
static void say_remarks(const digests *d)
{
    for (size_t i = 0; i < d->nwarnings; i++)
        cm_say(RECHUNK.name, "warning: %s", d->warning[i]);
    for (size_t i = 0; i < d->n; i++)
        if (d->entry[i].undigested)
            cm_say(RECHUNK.name, "warning: %s: %s: not digested: %s", d->entry[i].store,
                   d->entry[i].name, d->entry[i].undigested);
}

static bool has_undigested(const digests *d)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->entry[i].undigested)
            return true;
    return false;
}

static int digest_stores(void *context, cm_error *err)
{
    digests *d = context;
    int status = CM_OK;
    for (size_t i = 0; i < d->paths->n && status == CM_OK; i++) {
        d->store = d->paths->text[i];
        status = cm_digest_store(d->store, d->net, d->common->nthreads, d->common->memory,
                                 d->monitor, take, d, err);
    }
    return status;
}

/* "DIGEST  NAME  TYPE", under a line "STORE:" each where there are several. */
static void print_text(const digests *d)
{
    for (size_t s = 0; s < d->paths->n; s++) {
        cm_table t = {.ncolumns = 3};
        if (d->paths->n > 1) {
            cm_print_clean(d->paths->text[s], stdout);
            puts(":");
        }
        for (size_t i = 0; i < d->n; i++) {
            if (strcmp(d->entry[i].store, d->paths->text[s]) != 0)
                continue;
            cm_table_cell(&t, "%s", d->entry[i].digest ? d->entry[i].digest : "not digested");
            cm_table_cell(&t, "%s", d->entry[i].name);
            cm_table_cell(&t, "%s", d->entry[i].type);
        }
        if (!cm_table_print(&t, d->paths->n > 1 ? 2 : 0, stdout))
            cm_say(RECHUNK.name, "no memory for the table of digests");
        cm_table_release(&t);
    }
}

static int print_json(const digests *d, const cm_error *failure, cm_error *err)
{
    cm_document doc = {CM_OK, err};
    cm_json *o = cm_json_object(), *rows = cm_json_array(), *warnings = cm_json_array();
    bool canceled = failure && failure->status == CM_ECANCELED;
    cm_document_head(&doc, o, "rechunk-digest/1",
                     !failure   ? "done"
                     : canceled ? "canceled"
                                : "failed",
                     failure);
    for (size_t i = 0; i < d->n; i++) {
        cm_json *row = cm_json_object();
        cm_document_text(&doc, row, "store", d->entry[i].store);
        cm_document_text(&doc, row, "name", d->entry[i].name);
        cm_document_text(&doc, row, "type", d->entry[i].type);
        cm_document_u64(&doc, row, "nelements", d->entry[i].nelem);
        cm_document_text(&doc, row, "digest", d->entry[i].digest);
        cm_document_text(&doc, row, "not_digested", d->entry[i].undigested);
        cm_document_append(&doc, rows, row);
    }
    for (size_t i = 0; i < d->nwarnings; i++)
        cm_document_append(&doc, warnings, cm_json_string(d->warning[i]));
    cm_document_put(&doc, o, "digests", rows);
    cm_document_put(&doc, o, "warnings", warnings);
    return cm_document_print(&doc, o, stdout);
}

int rechunk_digest(const cm_net_settings *net, const cm_common_options *common,
                   const cm_texts *paths)
{
    static const char *const ALLOWED[] = {"digest",     "anonymous", "concurrency", "timeout",
                                          "absent-403", "allow",     "checksum",    NULL};
    int refused = cm_tool_refuse_others(&RECHUNK, common, ALLOWED);
    if (refused != CM_TOOL_RUN)
        return refused;
    if (paths->n == 0)
        return cm_tool_usage_error(&RECHUNK, "no store");
    cm_error err = {0}, print_err = {0};
    digests d = {.paths = paths, .common = common, .monitor = cm_monitor_create(&err)};
    int status =
        d.monitor ? cm_remote_open(net, paths, NULL, d.monitor, &d.net, &err) : (int)err.status;
    if (status == CM_OK)
        status = cm_run(&RECHUNK, common, d.monitor, digest_stores, &d, &err);
    int printed = CM_OK;
    if (common->json)
        printed = print_json(&d, status == CM_OK ? NULL : &err, &print_err);
    else if (status == CM_OK)
        print_text(&d);
    say_remarks(&d);
    const char *store = d.store ? d.store : paths->text[0];
    if (cm_run_stopped(status))
        cm_run_say_stopped(&RECHUNK, store, &(cm_run_state){.untouched = true});
    else if (status != CM_OK)
        cm_say(RECHUNK.name, "%s", err.text);
    if (printed != CM_OK)
        cm_say(RECHUNK.name, "%s", print_err.text);
    cm_remote_say(&RECHUNK, d.net, common);
    cm_net_free(d.net);
    /* A list that lacks an array must not pass for the proof of a whole store. */
    const int found = has_undigested(&d) ? CM_EDIFFER : CM_OK;
    release(&d);
    cm_monitor_free(d.monitor);
    cm_run_end(status);
    return cm_tool_exit_status(status != CM_OK ? status : printed != CM_OK ? printed : found);
}
