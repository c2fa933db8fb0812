#include "convert/sink/part/parts_status.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "convert/sink/part/parts_counted.h"
#include "options/store_path.h"
#include "store/open.h"

/* ---- one part ---- */

static void read_bytes(const cm_json *note, cm_part_status *out)
{
    (void)cm_json_get_u64(cm_json_member(note, "done_nbytes"), &out->done_nbytes);
    (void)cm_json_get_u64(cm_json_member(note, "total_nbytes"), &out->total_nbytes);
}

static int look_for_holder(const cm_beside *b, const char *name, cm_part_status *out, cm_error *err)
{
    cm_lock_holder who;
    int rc = cm_lock_glance(b, name, &who, err);
    if (rc != CM_OK || !who.there)
        return rc;
    out->state = who.state == CM_LOCK_FREE ? CM_PART_STALE : CM_PART_RUNNING;
    out->silent_s = who.silent_s > 0 ? who.silent_s : 0;
    out->who = cm_strdup(who.who, err);
    return out->who == NULL ? CM_ENOMEM : CM_OK;
}

static int look_for_journal(const cm_beside *b, const char *name, cm_part_status *out,
                            cm_error *err)
{
    int rc = cm_store_size(b->in, name, NULL, err);
    out->begun = rc == CM_OK;
    return rc == CM_ENOTFOUND ? CM_OK : rc;
}

static int look_at_part(const cm_beside *b, const cm_parts_plan *plan, uint64_t number,
                        cm_part_status *out, cm_error *err)
{
    static const char *const WHAT[] = {"done", "lock", "progress", "journal"};
    char *name[4];
    cm_json *note = NULL;
    int rc = CM_OK;
    for (size_t i = 0; i < 4; i++)
        if ((name[i] = cm_part_file(number, WHAT[i], err)) == NULL)
            rc = CM_ENOMEM;
    if (rc == CM_OK)
        rc = cm_part_noted(b, name[0], plan->hash, &note, err);
    if (note != NULL)
        out->state = CM_PART_DONE;
    else if (rc == CM_OK)
        rc = look_for_holder(b, name[1], out, err);
    if (rc == CM_OK && note == NULL)
        rc = look_for_journal(b, name[3], out, err);
    if (rc == CM_OK && note == NULL)
        rc = cm_part_noted(b, name[2], plan->hash, &note, err);
    read_bytes(note, out);
    cm_json_free(note);
    for (size_t i = 0; i < 4; i++)
        free(name[i]);
    return rc;
}

/* ---- all ---- */

static int copy_text(const cm_json *j, const char *name, char **out, cm_error *err)
{
    const char *text = cm_json_text(cm_json_member(j, name), NULL);
    *out = text == NULL ? NULL : cm_strdup(text, err);
    return text != NULL && *out == NULL ? CM_ENOMEM : CM_OK;
}

static void release_parts(cm_parts_report *r)
{
    for (uint64_t k = 0; r->part != NULL && k < r->nparts; k++)
        free(r->part[k].who);
    free(r->part);
    r->part = NULL;
}

/* Whoever completed the store meanwhile removes the files that were looked at. */
static int look_at_end(const cm_beside *b, const cm_parts_plan *plan, cm_parts_report *out,
                       cm_error *err)
{
    cm_json *complete = NULL;
    int rc = cm_part_noted(b, CM_PARTS_COMPLETE, plan->hash, &complete, err);
    if (rc == CM_OK && complete != NULL) {
        release_parts(out);
        memset(out->count, 0, sizeof(out->count));
        out->count[CM_PART_DONE] = plan->nparts;
        out->complete = true;
    }
    cm_json_free(complete);
    return rc;
}

int cm_parts_look(const cm_beside *b, const cm_parts_plan *plan, cm_parts_report *out,
                  cm_error *err)
{
    *out = (cm_parts_report){.nparts = plan->nparts,
                             .complete = plan->complete,
                             .first = plan->first,
                             .step = plan->step};
    int rc = copy_text(plan->json, "launcher", &out->launcher, err);
    if (rc == CM_OK)
        rc = copy_text(plan->json, "command", &out->command, err);
    if (rc == CM_OK)
        rc = copy_text(plan->json, "folder", &out->folder, err);
    if (rc != CM_OK || plan->complete) {
        out->count[CM_PART_DONE] = plan->complete ? plan->nparts : 0;
        return rc;
    }
    if ((out->part = cm_calloc(plan->nparts, sizeof(out->part[0]), err)) == NULL)
        return CM_ENOMEM;
    for (uint64_t k = 0; rc == CM_OK && k < plan->nparts; k++) {
        rc = look_at_part(b, plan, k, &out->part[k], err);
        out->count[out->part[k].state]++;
    }
    return rc == CM_OK ? look_at_end(b, plan, out, err) : rc;
}

void cm_parts_report_release(cm_parts_report *r)
{
    release_parts(r);
    free(r->launcher);
    free(r->command);
    free(r->folder);
    *r = (cm_parts_report){0};
}

static int is_still(const cm_beside *b, const cm_parts_plan *plan, bool *out, cm_error *err)
{
    cm_parts_plan now;
    int rc = cm_parts_plan_read(b, &now, err);
    *out = rc == CM_OK && strcmp(now.hash, plan->hash) == 0;
    cm_parts_plan_release(&now);
    return rc;
}

/* The folder, or URL, that parts write into: of a repository all of it. */
static int find_target(const char *target, char **out, cm_error *err)
{
    const char *repository = cm_icechunk_path(target);
    cm_store_path at = {0};
    *out = NULL;
    if (repository == NULL)
        return cm_store_path_plain(target, out, err);
    int rc = cm_store_path_split(repository, &at, err);
    if (rc == CM_OK) {
        *out = at.path;
        at.path = NULL;
    }
    cm_store_path_release(&at);
    return rc;
}

int cm_parts_status(const char *target, cm_net *net, cm_parts_report *out, cm_error *err)
{
    cm_beside beside = {.fd = -1};
    cm_parts_plan plan = {0};
    char *path = NULL;
    *out = (cm_parts_report){0};
    int rc = find_target(target, &path, err);
    if (rc == CM_OK)
        rc = cm_beside_find(path, net, &beside, err);
    /* Until all that was looked at is of one plan. */
    for (bool same = false; rc == CM_OK && !same;) {
        rc = cm_beside_open(&beside, false, err);
        if (rc == CM_OK)
            rc = cm_parts_plan_read(&beside, &plan, err);
        if (rc == CM_OK && plan.json == NULL)
            rc = cm_fail(err, CM_ENOTFOUND, "%s: was not begun in parts", target);
        cm_parts_report_release(out);
        if (rc == CM_OK)
            rc = cm_parts_look(&beside, &plan, out, err);
        if (rc == CM_OK)
            rc = is_still(&beside, &plan, &same, err);
        cm_parts_plan_release(&plan);
    }
    cm_beside_release(&beside);
    free(path);
    return rc;
}

/* ---- numbers for people ---- */

/* Adds the numbers FIRST to LAST, from 0. */
static int add_range(cm_buf *list, uint64_t first, uint64_t last, cm_error *err)
{
    const char *comma = list->nbytes > 0 ? "," : "";
    if (first == last)
        return cm_buf_printf(list, err, "%s%" PRIu64, comma, first + 1);
    return cm_buf_printf(list, err, "%s%" PRIu64 "-%" PRIu64, comma, first + 1, last + 1);
}

char *cm_parts_list(const cm_parts_report *r, unsigned states, cm_error *err)
{
    cm_buf list = {0};
    uint64_t first = UINT64_MAX;
    int rc = CM_OK;
    for (uint64_t k = 0; rc == CM_OK && r->part != NULL && k <= r->nparts; k++) {
        bool is = k < r->nparts && (states >> r->part[k].state & 1) != 0;
        if (is && first == UINT64_MAX)
            first = k;
        if (!is && first != UINT64_MAX) {
            rc = add_range(&list, first, k - 1, err);
            first = UINT64_MAX;
        }
    }
    if (rc == CM_OK)
        rc = cm_buf_append(&list, "", 1, err);
    if (rc == CM_OK)
        return (char *)list.data;
    cm_buf_release(&list);
    return NULL;
}

/* ---- the end ---- */

static bool ends_with(const char *name, const char *what)
{
    size_t n = strlen(name), k = strlen(what);
    return n >= k && strcmp(name + n - k, what) == 0;
}

typedef struct ended {
    const cm_beside *beside;
    bool commits; /* parts of a commit, which are not made again */
} ended;

static ended ended_in(const cm_beside *b)
{
    cm_parts_plan plan;
    ended e = {.beside = b};
    if (cm_parts_plan_read(b, &plan, NULL) == CM_OK)
        e.commits = cm_json_has(plan.json, CM_PARTS_COMMIT);
    cm_parts_plan_release(&plan);
    return e;
}

/*
 * Tallies that parts of a store counted stay.  A leftover lock is of a process that was killed when
 * its part was done.
 */
static cm_verdict judge_part(void *context, const char *below, cm_entry_kind kind)
{
    const ended *e = context;
    cm_lock_holder who;
    if (kind != CM_ENTRY_FILE || strncmp(below, "part-", 5) != 0 ||
        (!e->commits && ends_with(below, "." CM_PART_COUNTED)))
        return CM_KEEP;
    if (!ends_with(below, ".lock"))
        return CM_REMOVE;
    bool left = cm_lock_look(e->beside, below, &who, NULL) == CM_OK && who.state == CM_LOCK_FREE;
    return left ? CM_REMOVE : CM_KEEP;
}

int cm_parts_abort_uploads(cm_store *store, cm_error *err)
{
    return cm_store_is_remote(store) ? cm_store_sweep_temporaries(store, "", true, err) : CM_OK;
}

/* The findings of one look, and where they were made. */
typedef struct looking {
    ended of;
    cm_left left;
    uint64_t nfiles;
    char first[64]; /* of the files */
} looking;

static cm_verdict judge_left(void *context, const char *below, cm_entry_kind kind)
{
    looking *l = context;
    cm_left is = CM_LEFT_NOTHING;
    if (judge_part(&l->of, below, kind) == CM_REMOVE) {
        is = CM_LEFT_FILES;
        if (l->nfiles++ == 0)
            snprintf(l->first, sizeof(l->first), "%s", below);
    } else if (kind == CM_ENTRY_TEMPORARY ||
               (kind == CM_ENTRY_FILE && strcmp(below, CM_LOCK_OUTPUT) == 0))
        is = CM_LEFT_OTHER;
    l->left = is > l->left ? is : l->left;
    return CM_KEEP;
}

cm_left cm_parts_left(const cm_beside *b)
{
    looking l = {.left = CM_LEFT_NOTHING};
    if (b->in != NULL)
        l.of = ended_in(b);
    if (b->in == NULL || cm_store_sweep(b->in, "", judge_left, &l, NULL) != CM_OK)
        return CM_LEFT_NOTHING;
    return l.left;
}

/* Whoever else tidies may have been there first: what counts is what is there now. */
static void tell_left(cm_beside *b, const cm_error *why)
{
    char text[128];
    looking l = {.of = ended_in(b)};
    if (cm_store_sweep(b->in, "", judge_left, &l, NULL) != CM_OK || l.nfiles == 0)
        return;
    snprintf(text, sizeof(text), "%s", l.first);
    if (l.nfiles > 1)
        snprintf(text, sizeof(text), "%s and %" PRIu64 " %s of parts", l.first, l.nfiles - 1,
                 cm_of_count(l.nfiles - 1, "other file", "other files"));
    cm_beside_tell(b, text, why);
}

void cm_parts_tidy(cm_beside *b)
{
    cm_error why = {0};
    if (b->in == NULL)
        return;
    ended e = ended_in(b);
    /* A part that ends while another tidies removes its own lock itself. */
    if (cm_store_sweep(b->in, "", judge_part, &e, &why) != CM_OK)
        tell_left(b, &why);
    cm_store_sweep_temporaries(b->in, "", false, NULL);
}
