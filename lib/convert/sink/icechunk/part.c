#include "convert/sink/icechunk/part.h"

#include <stdlib.h>
#include <string.h>

#include "convert/sink/icechunk/part_places.h"
#include "format/icechunk/key.h"
#include "format/icechunk/repo_write.h"
#include "format/icechunk/session.h"
#include "store/open.h"

/* ---- the plan ---- */

static int check(void *context, cm_error *err)
{
    cm_repository_part *p = context;
    int rc = cm_repository_check_place(&p->sink->out, err);
    if (rc == CM_OK && (rc = p->ops->check(p, p->tip, err)) != CM_OK)
        cm_error_place(err, p->sink->out.path);
    return rc;
}

static int describe(void *context, cm_json *plan, cm_error *err)
{
    const cm_repository_part *p = context;
    const char *branch = p->sink->options->branch;
    char base[CM_ICE_ID_TEXT + 1];
    cm_json *j = cm_json_object();
    cm_ice_id_letters(p->tip, base);
    int rc = cm_json_set(j, "branch", cm_json_string(branch != NULL ? branch : "main"), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "group", cm_json_string(p->sink->into.node), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "base", cm_json_string(base), err);
    if (rc == CM_OK)
        return cm_json_set(plan, CM_PARTS_COMMIT, j, err);
    cm_json_free(j);
    return rc;
}

static int compare(void *context, const cm_parts_plan *plan, cm_error *err)
{
    const cm_repository_part *p = context;
    const char *branch = p->sink->options->branch, *own = branch != NULL ? branch : "main";
    const bool same = strcmp(cm_repository_part_plan_text(plan, "branch"), own) == 0;
    if (!same || strcmp(cm_repository_part_plan_text(plan, "group"), p->sink->into.node) != 0)
        return cm_fail(err, CM_EEXIST, "is being made by another plan (the %s differs)",
                       same ? "group" : "branch");
    return p->ops->compare != NULL ? p->ops->compare(p, plan, err) : CM_OK;
}

/* The commit that was noted, in another repository than the one that is there. */
static int is_gone(void *context, const cm_parts_plan *plan, bool *gone, cm_error *err)
{
    const cm_repository_part *p = context;
    cm_json *note = NULL;
    cm_repository r = {0};
    cm_store *root = NULL;
    uint8_t id[CM_ICE_ID];
    *gone = false;
    int rc = cm_part_noted(&p->sink->out.beside, CM_PARTS_COMPLETE, plan->hash, &note, err);
    const char *text = cm_json_text(cm_json_member(note, CM_PARTS_SNAPSHOT), NULL);
    if (rc == CM_OK && text != NULL && cm_ice_id_parse(text, id)) {
        rc = cm_repository_part_look(p, &r, &root, err);
        *gone = rc == CM_OK && (!r.own.there || !cm_ice_repo_has(r.own.repo.tree.root, id));
    }
    cm_json_free(note);
    cm_ice_base_release(&r.own);
    cm_store_free(root);
    return rc;
}

/* With the lock, before another plan is published; the journal of a run that commits alone, too. */
static int clear(void *context, const cm_parts_plan *plan, cm_error *err)
{
    cm_repository_part *p = context;
    cm_repository r = {0};
    cm_json *head = NULL;
    cm_settled left;
    cm_repository_part_set_repository(p, &r);
    r.base = &r.own;
    int rc = cm_ice_base_open(p->root, r.branch, &r.own, err);
    if (rc == CM_OK)
        rc = cm_repository_give_up(&r, plan, err);
    if (rc == CM_OK)
        rc = cm_run_journal_look(&r.journal, r.beside, err);
    if (rc == CM_OK)
        rc = cm_repository_part_head(p, CM_REPOSITORY_PARTS, &head, err);
    if (rc == CM_OK)
        rc = cm_repository_settle(&r, p->job, head, p->sink->options->overwrite, &left, err);
    if (rc == CM_OK)
        rc = cm_repository_sweep(p->root, err);
    cm_json_free(head);
    cm_repository_release(&r);
    return rc;
}

/* ---- the part ---- */

static int open(void *context, cm_error *err)
{
    cm_repository_part *p = context;
    cm_output *out = &p->sink->out;
    const cm_store_options options = {.output = true, .create = true, .net = out->net};
    if (out->store != NULL)
        return CM_OK;
    int rc = p->root == NULL ? cm_store_open(out->root, &options, &p->root, err) : CM_OK;
    cm_repository_part_set_repository(p, &p->own.repository);
    if (rc == CM_OK)
        rc = p->ops->open(p, &p->own, err);
    out->store = p->own.session;
    return rc;
}

static cm_verdict judge_temporary(void *context, const char *below, cm_entry_kind kind)
{
    return kind == CM_ENTRY_TEMPORARY && cm_store_is_own_temporary(context, below) ? CM_REMOVE
                                                                                   : CM_KEEP;
}

/* A part that was stopped goes on with its chunks; what it counted of them is gone with it. */
static int take_up(cm_repository_part *p, bool *goes_on, cm_error *err)
{
    cm_run_journal *j = &p->own.repository.journal;
    const char *plan = cm_json_text(cm_json_member(j->head, "plan"), NULL);
    *goes_on = false;
    if (!j->there || plan == NULL || strcmp(plan, p->job->parts->plan.hash) != 0)
        return CM_OK;
    int rc = cm_run_journal_continue(j, err);
    *goes_on = rc == CM_OK && !p->sink->options->statistics;
    if (rc == CM_OK && !*goes_on) {
        rc = cm_run_journal_erase(j, p->root, err);
        cm_run_journal_close(j);
    }
    return rc;
}

static int begin_part(void *context, cm_error *err)
{
    cm_repository_part *p = context;
    cm_run_journal *j = &p->own.repository.journal;
    const uint64_t number = p->job->parts->number;
    cm_json *head = NULL;
    bool goes_on = false;
    cm_store_set_part(p->root, number + 1);
    int rc = cm_store_is_remote(p->root)
                 ? CM_OK
                 : cm_store_sweep(p->root, "chunks", judge_temporary, p->root, err);
    if (rc == CM_OK)
        rc = cm_run_journal_look_part(j, &p->sink->out.beside, number, err);
    if (rc == CM_OK)
        rc = take_up(p, &goes_on, err);
    if (rc == CM_OK && goes_on)
        return cm_ice_writing_resume(&p->own, p->job, err);
    if (rc == CM_OK)
        rc = cm_repository_part_head(p, "plan", &head, err);
    if (rc == CM_OK)
        rc = cm_run_journal_begin(j, head, p->job->scratch.folder, err);
    cm_json_free(head);
    return rc;
}

/* Files of tries that were stopped, which its chunks do not lie in. */
static int tidy(cm_repository_part *p, cm_error *err)
{
    cm_run_files stay = {0};
    uint8_t *chunk = NULL;
    int rc = cm_ice_session_files(p->own.session, &chunk, &stay.nchunks, err);
    stay.chunk = chunk;
    if (rc == CM_OK)
        rc = cm_lock_check(p->job->parts->own, &p->sink->out.beside, err);
    if (rc == CM_OK)
        rc = cm_run_journal_tidy(&p->own.repository.journal, p->root, &stay, err);
    free(chunk);
    return rc;
}

static int moved(void *context, cm_error *err)
{
    cm_repository_part *p = context;
    int rc = cm_ice_session_finish(p->own.session, err);
    if (rc == CM_OK)
        rc = tidy(p, err);
    if (rc == CM_OK)
        rc = cm_part_places_write(p->job, p->own.session, &p->own.repository, err);
    p->job->report->nobjects = cm_ice_session_nfiles(p->own.session);
    return rc;
}

static int see(void *context, uint64_t first, uint64_t n, cm_part_claim *out, cm_error *err)
{
    cm_repository_part *p = context;
    int rc = CM_OK;
    for (uint64_t k = 0; rc == CM_OK && k < n; k++)
        rc =
            cm_part_places_see(p->job, p->own.session, &p->own.repository, first + k, &out[k], err);
    return rc;
}

/* ---- all ---- */

static void closed(void *context)
{
    cm_repository_part *p = context;
    cm_repository_close(&p->all.repository);
}

/* A plan that was replaced tells nothing of what became of this one. */
static bool is_in(void *context)
{
    (void)context;
    return false;
}

static int finish(void *context, cm_job *job, cm_lock *lock, cm_error *err)
{
    (void)job; /* that which the part began with */
    return cm_repository_part_finish(context, lock, err);
}

static const cm_parts_chunks chunks = {.open = open,
                                       .compare = compare,
                                       .is_gone = is_gone,
                                       .clear = clear,
                                       .begin = begin_part,
                                       .moved = moved,
                                       .see = see,
                                       .closed = closed};

int cm_repository_part_begin(cm_repository_part *p, cm_sink *s, cm_job *job, bool *moves,
                             cm_error *err)
{
    p->sink = s;
    p->job = job;
    p->hooks = (cm_parts_hooks){.context = p,
                                .check = check,
                                .is_in = is_in,
                                .describe = describe,
                                .finish = finish,
                                .chunks = &chunks};
    int rc = cm_part_begin(job, &s->out, &p->hooks, moves, err);
    s->store = s->out.store;
    return rc;
}

void cm_repository_part_release(cm_repository_part *p)
{
    if (p->sink != NULL)
        p->sink->out.store = NULL; /* a session, which is released here */
    cm_ice_writing_release(&p->own);
    cm_ice_writing_release(&p->all);
    cm_store_free(p->root);
    cm_json_free(p->published);
}
