/* Opens a store to add to it: its lock, and the files that it has already. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/number.h"
#include "convert/beside/parts_files.h"
#include "convert/sink/growth/append_parts.h"
#include "convert/sink/growth/append_repair.h"
#include "convert/sink/growth/append_repository.h"
#include "convert/sink/store/output.h"
#include "options/store_path.h"
#include "options/varopt.h"
#include "store/open.h"
#include "watch/monitor.h"

enum {
    MAX_FREE = 200 /* looks at a lock that is free and cannot be had */
};

static int find_store(const cm_append_options *o, cm_append *a, cm_error *err)
{
    const cm_store_options options = {.output = true, .net = o->net};
    cm_store_path at = {0};
    cm_place there = CM_PLACE_NOTHING;
    const char *repository = cm_icechunk_path(o->store);
    int rc = cm_store_path_split(repository != NULL ? repository : o->store, &at, err);
    if (rc == CM_OK && *at.node != '\0' && repository == NULL)
        rc = cm_fail(err, CM_EINVAL, "%s: a store grows as a whole, not a node in it", o->store);
    if (rc == CM_OK && repository == NULL && !cm_store_url_is_remote(at.path) &&
        cm_icechunk_is_folder(at.path))
        rc = cm_fail(err, CM_EINVAL, "%s: is an Icechunk repository; name it icechunk:%s", o->store,
                     o->store);
    if (rc == CM_OK && repository != NULL)
        rc = cm_append_begin_repository(a, o, at.node, err);
    if (rc == CM_OK)
        rc = cm_store_probe(at.path, &options, &there, err);
    if (rc == CM_OK && there == CM_PLACE_NOTHING && repository != NULL)
        rc = cm_icechunk_check_branch(at.path, err);
    if (rc == CM_OK && there == CM_PLACE_NOTHING)
        rc = cm_fail(err, CM_ENOTFOUND, "%s: there is no store to %s to make it", o->store,
                     o->replace != NULL ? "change; leave out `replace`"
                                        : "add to; leave out `append`");
    else if (rc == CM_OK && there != CM_PLACE_FOLDER)
        rc = cm_fail(err, CM_EINVAL, "%s: is not a folder", o->store);
    if (rc == CM_OK) {
        a->root = cm_strdup(at.path, err);
        a->opens = cm_strdup(at.path, err);
        rc = a->root == NULL || a->opens == NULL ? CM_ENOMEM : CM_OK;
    }
    cm_store_path_release(&at);
    return rc;
}

/* A plan of parts that add, none of which runs, is judged with the lock. */
static int check_parts(cm_append *a, const cm_append_options *o, cm_error *err)
{
    cm_parts_plan plan = {0};
    int rc = cm_beside_open(&a->beside, false, err);
    if (rc == CM_OK)
        rc = cm_parts_plan_read(&a->beside, &plan, err);
    const bool adds = cm_json_has(plan.json, CM_PARTS_ADD);
    const bool commits = cm_json_has(plan.json, CM_PARTS_COMMIT) && o->break_lock;
    cm_parts_plan_release(&plan);
    return rc == CM_OK ? cm_parts_check_none(&a->beside, !a->look && (adds || commits), err) : rc;
}

/* Others of the parts hold it for moments. */
static int take_lock(cm_append *a, const cm_append_options *o, char **note, cm_error *err)
{
    const cm_lock_request request = {
        .name = CM_LOCK_OUTPUT, .of_part = true, .breaks = o->break_lock};
    const struct timespec pause = {.tv_nsec = 50000000};
    if (!a->part)
        return cm_lock_take(&a->beside, o->break_lock, &a->lock, note, err);
    for (unsigned nfree = 0;;) {
        cm_lock_holder who;
        int rc = cm_lock_take_as(&a->beside, &request, &a->lock, note, err);
        if (rc != CM_EEXIST || cm_lock_look(&a->beside, CM_LOCK_OUTPUT, &who, NULL) != CM_OK)
            return rc;
        nfree = who.state == CM_LOCK_FREE ? nfree + 1 : 0;
        if (who.state == CM_LOCK_OF_RUN || nfree > MAX_FREE)
            return rc;
        nanosleep(&pause, NULL);
    }
}

/* Nothing is added to what is not complete. */
static int check_complete(cm_append *a, const cm_append_options *o, cm_error *err)
{
    bool begun;
    int rc = cm_output_is_begun(a->root, "", o->net, &begun, err);
    if (rc == CM_OK && begun)
        rc = cm_fail(err, CM_EEXIST, "%s: is not complete; `resume` finishes it", a->root);
    return rc == CM_OK && !a->part ? check_parts(a, o, err) : rc;
}

static int take_up(cm_append *a, char **note, cm_error *err)
{
    bool begun;
    int rc = cm_commit_is_begun(&a->beside, &begun, err);
    if (rc != CM_OK || !begun)
        return rc;
    if (a->look)
        return cm_fail(err, CM_EEXIST,
                       "%s: a run was stopped while it renewed metadata or the ledger; the next "
                       "one that writes finishes it",
                       a->root);
    rc = cm_commit_finish(a->store, &a->beside, err);
    char *said = rc == CM_OK
                     ? cm_asprintf(err, "%s: a run that was stopped was finished%s%s", a->root,
                                   *note != NULL ? "; " : "", *note != NULL ? *note : "")
                     : NULL;
    if (rc == CM_OK && said == NULL)
        rc = CM_ENOMEM;
    if (rc == CM_OK) {
        free(*note);
        *note = said;
    }
    return rc;
}

/* Along which dimension; of a replacement that is what its range begins with. */
static int take_options(cm_append *a, const cm_append_options *o, cm_error *err)
{
    const char *text = o->replace != NULL ? o->replace : o->dimension;
    a->recheck = o->recheck || o->replace != NULL;
    a->look = o->look;
    a->part = o->part && !o->look;
    if (o->part && o->replace != NULL && cm_icechunk_path(o->store) == NULL)
        return cm_fail(err, CM_EINVAL,
                       "`replace` and `part`: one process replaces steps of a store");
    a->hold = o->hold;
    a->overlaps = o->overlaps;
    a->beside.fd = -1;
    if (o->replace != NULL && (a->replace = cm_strdup(o->replace, err)) == NULL)
        return CM_ENOMEM;
    if ((a->dimension = cm_strdup(text, err)) == NULL)
        return CM_ENOMEM;
    if (o->replace == NULL)
        return CM_OK;
    char *equals = cm_find_unescaped(a->dimension, '=');
    if (equals == NULL || equals == a->dimension || equals[1] == '\0')
        return cm_fail(err, CM_EINVAL, "`replace` %s: not of the form DIM=RANGE", o->replace);
    *equals = '\0';
    cm_unescape(a->dimension);
    return CM_OK;
}

/* Nothing but a run that rewrites at least its elements goes on with one that was stopped. */
static int check_stopped(const cm_append *a, cm_error *err)
{
    const cm_stopped *was = &a->stopped;
    const bool rewrites = a->replace != NULL || a->overlaps;
    if (was->dimension == NULL || (rewrites && strcmp(was->dimension, a->dimension) == 0))
        return CM_OK;
    return cm_rewrite_refuse(a, err);
}

/* Removes the remains of runs that were stopped or killed; nobody else is at the store. */
static int settle(cm_append *a, const cm_append_options *o, char **note, cm_error *err)
{
    bool busy = false;
    int rc = take_up(a, note, err);
    if (rc == CM_OK && !a->look)
        rc = cm_append_settle_parts(a, o->break_lock && !a->part, &busy, err);
    /*
     * A part that began meanwhile looks at the store's lock after it took its own.  Parts of a
     * commit are given up by the one that is made instead.
     */
    const bool gives_up = a->repository != NULL && o->break_lock;
    if (rc == CM_OK && !a->look && !a->part)
        rc = cm_parts_check_none(&a->beside, gives_up, err);
    return rc == CM_OK && !busy ? cm_append_sweep(a, err) : rc;
}

int cm_append_open(const cm_append_options *o, cm_append **out, char **note, cm_error *err)
{
    cm_append *a = cm_calloc(1, sizeof(*a), err);
    *out = NULL;
    *note = NULL;
    if (a == NULL)
        return CM_ENOMEM;
    int rc = take_options(a, o, err);
    if (rc == CM_OK)
        rc = find_store(o, a, err);
    if (rc == CM_OK)
        rc = cm_beside_find(a->root, o->net, &a->beside, err);
    a->beside.stop = (cm_stop){cm_monitor_cancels, o->monitor};
    if (rc == CM_OK && !a->part)
        rc = cm_lock_peek(&a->beside, o->break_lock, err);
    if (rc == CM_OK)
        rc = check_complete(a, o, err);
    if (rc == CM_OK && !a->look)
        rc = take_lock(a, o, note, err);
    if (rc == CM_OK && a->beside.in == NULL)
        rc = cm_beside_open(&a->beside, false, err);
    if (rc == CM_OK)
        rc = cm_store_open(a->root, &(cm_store_options){.output = true, .net = o->net}, &a->store,
                           err);
    if (rc == CM_OK)
        rc = settle(a, o, note, err);
    if (rc == CM_OK && a->repository != NULL)
        rc = cm_append_read_repository(a, err);
    if (rc == CM_OK)
        rc = cm_ledger_read(&a->beside, a->dimension, &a->ledger, err);
    if (rc == CM_OK && (a->part || a->look || a->ledger.n > 0))
        rc = cm_append_note_length(a, err);
    if (rc == CM_OK)
        rc = cm_rewrite_read_note(a, err);
    if (rc == CM_OK)
        rc = cm_repair_read_note(a, err);
    if (rc == CM_OK)
        rc = check_stopped(a, err);
    if (a->part) {
        cm_lock_release(a->lock, &a->beside);
        a->lock = NULL;
    }
    if (rc == CM_OK) {
        *out = a;
        return rc;
    }
    if (a->root != NULL)
        cm_error_place(err, a->root);
    cm_append_close(a);
    free(*note);
    *note = NULL;
    return rc;
}

const char *cm_append_store(const cm_append *a)
{
    return a->opens;
}

const char *cm_append_dimension(const cm_append *a)
{
    return a->dimension;
}

size_t cm_append_nlisted(const cm_append *a)
{
    return a->nlisted;
}

/* A file of another time may be what it was: copied, or touched. */
static int is_same(const cm_ledger_entry *was, const cm_ledger_entry *now, bool *same,
                   cm_error *err)
{
    *same = was->nbytes == now->nbytes && was->mtime_ns == now->mtime_ns;
    return *same || was->nbytes != now->nbytes ? CM_OK : cm_ledger_holds(was, now->path, same, err);
}

int cm_append_listed(void *context, const char *path, uint64_t nbytes, const char *tag, bool *out,
                     cm_error *err)
{
    cm_append *a = context;
    cm_ledger_entry now = {0};
    bool same = false;
    *out = false;
    if (a->ledger.n == 0 || a->recheck)
        return CM_OK;
    /* A store that is not there is refused where it is opened. */
    if (tag == NULL && cm_ledger_look(path, &now, NULL) != CM_OK)
        return CM_OK;
    const cm_ledger_entry *was = cm_ledger_find(&a->ledger, tag != NULL ? path : now.path);
    int rc = CM_OK;
    if (was != NULL && tag != NULL && tag[0] == '\0' && was->nbytes == nbytes)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "%s: the server tells neither an ETag nor when it was changed, so it may "
                       "have changed since it was taken into the store; `recheck` compares it with "
                       "what the store has",
                       path);
    if (was != NULL && tag != NULL)
        same = was->nbytes == nbytes && strcmp(was->tag, tag) == 0;
    else if (was != NULL)
        rc = is_same(was, &now, &same, err);
    if (rc == CM_OK && was != NULL && !same)
        rc = cm_fail(err, CM_EFORMAT,
                     "%s: has changed since it was taken into the store; `recheck` compares it "
                     "with what the store has",
                     path);
    /* Of a store that is shorter now some of them are gone: they are read like new ones. */
    *out = rc == CM_OK && was != NULL && was->end <= a->ends;
    a->nlisted += *out;
    free(now.path);
    return rc;
}

void cm_append_give_back(cm_append *a)
{
    cm_store_free(a->store);
    a->store = NULL;
    cm_lock_release(a->lock, &a->beside);
    a->lock = NULL;
}

void cm_append_close(cm_append *a)
{
    if (a == NULL)
        return;
    cm_append_give_back(a);
    cm_ledger_release(&a->ledger);
    cm_beside_release(&a->beside);
    cm_json_free(a->left);
    free(a->stopped.dimension);
    cm_buf_release(&a->stopped.arrays);
    free(a->stopped.given);
    free(a->replace);
    free(a->dimension);
    cm_append_end_repository(a);
    free(a->opens);
    free(a->root);
    free(a);
}
