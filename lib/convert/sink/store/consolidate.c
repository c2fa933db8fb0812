#include <chunkmill/consolidate.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "convert/beside/lock.h"
#include "convert/beside/parts_files.h"
#include "convert/sink/growth/append_commit.h"
#include "convert/sink/store/output.h"
#include "format/zarr/consolidate.h"
#include "options/store_path.h"
#include "store/open.h"

typedef struct consolidation {
    const cm_consolidate_options *options;
    cm_store_path at;
    cm_beside beside;
    cm_lock *lock;
    cm_store *read;  /* as readers reach it */
    cm_store *write; /* through no link */
    cm_zarr_consolidated renewed;
} consolidation;

static int find_store(consolidation *c, cm_error *err)
{
    const char *store = c->options->store;
    struct stat st;
    const bool remote = cm_store_url_is_remote(store);
    const char *why = cm_store_url_read_only(store);
    if (why != NULL)
        return cm_fail(err, CM_EINVAL, "%s: %s", store, why);
    int rc = cm_store_path_split(store, &c->at, err);
    if (rc == CM_OK && *c->at.node != '\0')
        rc = cm_fail(err, CM_EINVAL, "%s: a store is consolidated as a whole, not a node in it",
                     store);
    if (rc != CM_OK || remote)
        return rc;
    bool there;
    rc = cm_path_stat(c->at.path, &st, &there, err);
    if (rc == CM_OK && !there)
        rc = cm_fail(err, CM_ENOTFOUND, "%s: there is no store", store);
    else if (rc == CM_OK && !S_ISDIR(st.st_mode))
        rc = cm_fail(err, CM_EINVAL, "%s: is not a folder", store);
    return rc;
}

/* Another run has documents of its own in mind. */
static int check_complete(consolidation *c, cm_error *err)
{
    bool begun;
    int rc = cm_output_is_begun(c->at.path, "", c->options->net, &begun, err);
    if (rc == CM_OK && begun)
        rc = cm_fail(err, CM_EEXIST, "is not complete; `resume` finishes it");
    if (rc == CM_OK)
        rc = cm_parts_check_none(&c->beside, false, err);
    if (rc == CM_OK && c->beside.in == NULL)
        rc = cm_beside_open(&c->beside, false, err);
    if (rc == CM_OK)
        rc = cm_commit_is_begun(&c->beside, &begun, err);
    if (rc == CM_OK && begun)
        rc = cm_fail(err, CM_EEXIST,
                     "an append was stopped while it renewed metadata; the same append again "
                     "finishes it");
    return rc;
}

/* Before anything is written: each is a file of the store itself, or not there. */
static int check_keys(const consolidation *c, cm_error *err)
{
    int rc = CM_OK;
    const bool links = !cm_store_is_remote(c->write);
    for (size_t i = 0; links && rc == CM_OK && i < c->renewed.n; i++) {
        const char *key = c->renewed.item[i].key;
        cm_entry_kind kind;
        rc = cm_store_kind(c->write, key, &kind, err);
        if (rc == CM_OK && kind != CM_ENTRY_FILE && kind != CM_ENTRY_NONE)
            rc = cm_fail(err, CM_EEXIST,
                         "%s: is not a regular file, or is reached through a symbolic link; "
                         "nothing is written there",
                         key);
    }
    return rc;
}

/* *SAME: the object KEY has TEXT, or is not there where TEXT is empty.  TAG is what it has now. */
static int compare_now(cm_store *store, const char *key, const cm_buf *text, cm_object_tag *tag,
                       bool *same, cm_error *err)
{
    cm_buf now = {0};
    *tag = (cm_object_tag){.age_s = -1};
    int rc = cm_store_get_tagged(store, key, CM_ZARR_MAX_META_NBYTES, &now, tag, err);
    if (rc == CM_ENOTFOUND)
        rc = CM_OK;
    *same = rc == CM_OK && cm_buf_equal(&now, text);
    cm_buf_release(&now);
    return rc;
}

/*
 * In place of the text that R was made from, and of nothing else, where a server can do that.  A
 * document that is another then may be ours: an answer was lost.
 */
static int put_over_network(cm_store *store, const cm_zarr_renewed *r, cm_error *err)
{
    cm_object_tag tag;
    bool same;
    int rc = compare_now(store, r->key, &r->was, &tag, &same, err);
    if (rc == CM_OK && same) {
        rc = cm_store_put_if(store, r->key, r->text.data, r->text.nbytes,
                             r->was.nbytes > 0 ? &tag : NULL, err);
        if (rc == CM_EUNSUPPORTED)
            rc = cm_store_put(store, r->key, r->text.data, r->text.nbytes, err);
        if (rc != CM_EEXIST)
            return rc;
        rc = compare_now(store, r->key, &r->text, &tag, &same, err);
    }
    if (rc == CM_OK && !same)
        rc = cm_fail(err, CM_EEXIST, "%s: somebody else changes it in the same moment", r->key);
    return rc;
}

static int put(cm_store *store, const cm_zarr_renewed *r, cm_error *err)
{
    return cm_store_is_remote(store)
               ? put_over_network(store, r, err)
               : cm_store_put(store, r->key, r->text.data, r->text.nbytes, err);
}

static int write_all(const consolidation *c, cm_consolidate_report *report, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < c->renewed.n; i++) {
        const cm_zarr_renewed *r = &c->renewed.item[i];
        if (r->same)
            continue;
        rc = put(c->write, r, err);
        report->nwritten += rc == CM_OK;
    }
    if (rc == CM_OK && c->options->durable)
        rc = cm_store_sync(c->write, err);
    return rc;
}

static int under_lock(consolidation *c, cm_consolidate_report *report, cm_error *err)
{
    int rc = check_complete(c, err);
    if (rc == CM_OK)
        rc = cm_zarr_consolidate(c->read, &c->renewed, err);
    if (rc != CM_OK)
        return rc;
    report->zarr_format = c->renewed.zarr_format;
    report->narrays = c->renewed.narrays;
    report->ngroups = c->renewed.ngroups;
    report->ndocuments = c->renewed.n;
    const cm_store_options output = {.output = true, .net = c->options->net};
    rc = cm_store_open(c->at.path, &output, &c->write, err);
    if (rc == CM_OK)
        rc = check_keys(c, err);
    return rc == CM_OK ? write_all(c, report, err) : rc;
}

/* Behind what is said of the lock already. */
static int note_left(const consolidation *c, cm_consolidate_report *report, cm_error *err)
{
    const char *stays = c->beside.stays;
    char *before = report->note;
    if (stays == NULL)
        return CM_OK;
    report->note =
        before == NULL ? cm_strdup(stays, err) : cm_asprintf(err, "%s; %s", before, stays);
    free(before);
    return report->note == NULL ? CM_ENOMEM : CM_OK;
}

int cm_consolidate(const cm_consolidate_options *options, cm_consolidate_report *report,
                   cm_error *err)
{
    consolidation c = {.options = options, .beside = {.fd = -1}};
    *report = (cm_consolidate_report){0};
    int rc = find_store(&c, err);
    if (rc == CM_OK)
        rc = cm_beside_find(c.at.path, options->net, &c.beside, err);
    if (rc == CM_OK)
        rc = cm_lock_peek(&c.beside, options->break_lock, err);
    if (rc == CM_OK)
        rc = cm_store_open(c.at.path, &(cm_store_options){.net = options->net}, &c.read, err);
    /* A folder that is no store, or cannot be read, gets no folder beside it. */
    if (rc == CM_OK && (rc = cm_zarr_consolidate(c.read, &c.renewed, err)) == CM_OK)
        cm_zarr_consolidated_release(&c.renewed);
    if (rc == CM_OK)
        rc = cm_lock_take(&c.beside, options->break_lock, &c.lock, &report->note, err);
    if (rc == CM_OK)
        rc = under_lock(&c, report, err);
    if (rc != CM_OK)
        cm_error_place(err, options->store);
    cm_zarr_consolidated_release(&c.renewed);
    cm_store_free(c.read);
    cm_store_free(c.write);
    cm_lock_release(c.lock, &c.beside);
    if (rc == CM_OK)
        rc = note_left(&c, report, err);
    cm_beside_release(&c.beside);
    cm_store_path_release(&c.at);
    return rc;
}

void cm_consolidate_report_release(cm_consolidate_report *report)
{
    free(report->note);
    *report = (cm_consolidate_report){0};
}
