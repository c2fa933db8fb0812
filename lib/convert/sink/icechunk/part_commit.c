/* The end of parts of a commit: one process makes the commit of all that they wrote. */
#include "convert/sink/icechunk/part.h"

#include <string.h>

#include "convert/sink/icechunk/part_places.h"
#include "format/icechunk/key.h"
#include "format/icechunk/repo_write.h"

#define REFUSED "part-commit.refused" /* names the tip that was not what the parts began with */

#define PUBLISHED "part-commit.published" /* names the snapshots that were about to be so */

/* ---- snapshots that were about to be published ---- */

static int read_published(cm_repository_part *p, cm_error *err)
{
    cm_json *note = NULL;
    int rc = cm_part_noted(&p->sink->out.beside, PUBLISHED, p->job->parts->plan.hash, &note, err);
    const cm_json *list = cm_json_member(note, "snapshots");
    cm_json_free(p->published);
    p->published = list != NULL ? cm_json_copy(list) : cm_json_array();
    cm_json_free(note);
    return rc;
}

/* Whether one of these snapshots is in the repository as BASE has it: *ID. */
static bool is_published(const cm_repository_part *p, const cm_ice_base *base,
                         uint8_t id[CM_ICE_ID])
{
    for (size_t i = 0; base->there && i < cm_json_length(p->published); i++) {
        const char *text = cm_json_text(cm_json_at(p->published, i), NULL);
        if (text != NULL && cm_ice_id_parse(text, id) && cm_ice_repo_has(base->repo.tree.root, id))
            return true;
    }
    return false;
}

/* The note is there before the snapshot can be: in a bucket it is all that the next process has. */
static int note_published(void *context, const uint8_t id[CM_ICE_ID], cm_error *err)
{
    cm_repository_part *p = context;
    char text[CM_ICE_ID_TEXT + 1];
    cm_ice_id_letters(id, text);
    int rc = cm_json_append(p->published, cm_json_string(text), err);
    cm_json *note = cm_json_object();
    if (rc == CM_OK)
        rc = cm_json_set(note, "snapshots", cm_json_copy(p->published), err);
    if (rc == CM_OK)
        return cm_part_note(&p->sink->out.beside, PUBLISHED, p->job->parts->plan.hash, note, err);
    cm_json_free(note);
    return rc;
}

/* *DONE: a process that was killed before it noted so has committed.  Else the journal begins. */
static int begin_commit(cm_repository_part *p, bool *done, cm_error *err)
{
    cm_repository *r = &p->all.repository;
    cm_json *head = NULL;
    cm_settled left;
    int rc = read_published(p, err);
    *done = rc == CM_OK && is_published(p, &r->own, r->committed);
    if (rc != CM_OK || *done)
        return rc;
    r->publishing = note_published;
    r->context = p;
    rc = cm_run_journal_look_commit(&r->journal, r->beside, err);
    if (rc == CM_OK)
        rc = cm_repository_part_head(p, CM_REPOSITORY_PARTS, &head, err);
    if (rc == CM_OK)
        rc = cm_repository_settle(r, p->job, head, true, &left, err);
    if (rc == CM_OK)
        rc = cm_run_journal_begin(&r->journal, head, p->job->scratch.folder, err);
    r->begun = rc == CM_OK;
    cm_json_free(head);
    return rc;
}

/* A request of a process that was killed may have been served after this one looked. */
static bool is_late(const cm_repository_part *p, cm_repository *r)
{
    cm_ice_base now;
    if (!r->refused || cm_ice_base_open(r->root, r->branch, &now, NULL) != CM_OK)
        return false;
    const bool is = is_published(p, &now, r->committed);
    cm_ice_base_release(&now);
    return is;
}

static int commit_all(cm_repository_part *p, cm_error *err)
{
    cm_ice_writing *w = &p->all;
    cm_store *own = p->sink->store;
    int rc = p->ops->open(p, w, err);
    p->sink->store = own;
    if (rc == CM_OK)
        rc = cm_part_places_take(p->job, w->session, &w->repository, err);
    if (rc == CM_OK)
        rc = p->ops->complete(p, w, err);
    return rc == CM_OK ? p->ops->publish(p, w, err) : rc;
}

/*
 * The base is what was at the tip when the plan was made; or, where the user has been told of a
 * commit that came between, and wants all that is there replaced, that commit.
 */
static int open_begun(const cm_repository_part *p, cm_repository *r, cm_error *err)
{
    const cm_parts_plan *plan = &p->job->parts->plan;
    const char *text = cm_repository_part_plan_text(plan, "base");
    cm_json *note = NULL;
    uint8_t id[CM_ICE_ID];
    int rc = CM_OK;
    if (p->sink->options->overwrite)
        rc = cm_part_noted(r->beside, REFUSED, plan->hash, &note, err);
    if (rc == CM_OK && note != NULL)
        text = cm_json_text(cm_json_member(note, "tip"), NULL);
    if (rc == CM_OK && (text == NULL || !cm_ice_id_parse(text, id)))
        rc = cm_fail(err, CM_EFORMAT, "the plan of the parts does not name a snapshot");
    if (rc == CM_OK)
        rc = cm_ice_base_open(r->root, r->branch, &r->own, err);
    if (rc == CM_OK) {
        memcpy(r->tried, r->own.tip, CM_ICE_ID);
        cm_ice_base_release(&r->own);
        rc = cm_ice_base_open_at(r->root, r->branch, id, &r->own, err);
        r->refused = rc == CM_EEXIST;
    }
    cm_json_free(note);
    return rc;
}

/* Others have committed meanwhile: what the parts wrote stays, until the user decides. */
static int note_refusal(const cm_repository_part *p, const cm_repository *r, cm_error *err)
{
    char tip[CM_ICE_ID_TEXT + 1];
    cm_json *note = cm_json_object();
    cm_ice_id_letters(r->tried, tip);
    int rc = cm_json_set(note, "tip", cm_json_string(tip), NULL);
    if (rc != CM_OK)
        cm_json_free(note);
    else
        rc = cm_part_note(r->beside, REFUSED, p->job->parts->plan.hash, note, NULL);
    if (rc == CM_OK)
        cm_error_suffix(err, "; nothing was committed; with `overwrite` the same command does it");
    return rc;
}

/* The same of arrays that grow: the chunks are of the arrays as they were, and never fit again. */
static int give_up(const cm_repository_part *p, cm_repository *r, cm_error *err)
{
    int rc = cm_repository_give_up(r, &p->job->parts->plan, NULL);
    if (rc == CM_OK)
        rc = cm_parts_forget(r->beside, NULL);
    if (rc == CM_OK)
        cm_error_suffix(err, "; nothing was committed, and this plan has ended: run all parts "
                             "again, which begin with what is there now");
    return rc;
}

int cm_repository_part_finish(cm_repository_part *p, cm_lock *lock, cm_error *err)
{
    cm_repository *r = &p->all.repository;
    bool done = false;
    cm_repository_part_set_repository(p, r);
    r->lock = lock;
    r->base = &r->own;
    int rc = open_begun(p, r, err);
    if (rc == CM_OK)
        rc = cm_repository_sweep(r->root, err);
    if (rc == CM_OK)
        rc = begin_commit(p, &done, err);
    if (rc == CM_OK)
        rc = done ? cm_repository_tell(r, p->job, err) : commit_all(p, err);
    if (rc == CM_OK)
        return rc;
    cm_error_place(err, r->path);
    cm_repository_withdraw(r, p->job, false, err);
    if (is_late(p, r))
        return cm_repository_tell(r, p->job, err);
    if (r->refused)
        (void)(p->ops->grows ? give_up(p, r, err) : note_refusal(p, r, err));
    return rc;
}
