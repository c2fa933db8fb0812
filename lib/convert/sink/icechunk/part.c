/*
 * A part of a commit, which several processes make (sink/part/parts.h).  Each writes chunks into
 * the repository, and leaves beside it where they lie; whoever finds that all have done so makes
 * one commit of them.  Until then the repository refers to nothing of it.
 */
#include <stdlib.h>
#include <string.h>

#include "convert/sink/icechunk/part_places.h"
#include "convert/sink/part/parts_counted.h"
#include "format/icechunk/key.h"
#include "format/icechunk/repo_write.h"
#include "format/icechunk/session.h"
#include "options/store_path.h"
#include "store/open.h"

#define REFUSED "part-commit.refused" /* names the tip that was not what the parts began with */

#define PUBLISHED "part-commit.published" /* names the snapshots that were about to be so */

typedef struct part {
    cm_ice_writing own; /* of the part */
    cm_ice_writing all; /* of the commit */
    cm_parts_hooks hooks;
    cm_sink *sink;
    cm_job *job;
    cm_store *root;
    uint8_t tip[CM_ICE_ID]; /* of the branch, before the plan is published */
    cm_json *published;     /* an array; of processes that were killed, too */
} part;

static void set_repository(const part *p, cm_repository *r)
{
    const cm_transform_options *o = p->sink->options;
    *r = (cm_repository){.branch = o->branch != NULL ? o->branch : "main",
                         .path = p->sink->out.path,
                         .beside = &p->sink->out.beside,
                         .root = p->root,
                         .counts = true,
                         .in_parts = true};
}

/* ---- the plan ---- */

/* Opens the branch, for a look.  What is not there yet is like an empty store. */
static int open_base(const part *p, cm_repository *r, cm_store **root, cm_error *err)
{
    const cm_output *out = &p->sink->out;
    const cm_store_options options = {.output = true, .net = out->net};
    cm_place there;
    *root = NULL;
    set_repository(p, r);
    int rc = cm_store_probe(out->root, &options, &there, err);
    if (rc == CM_OK)
        rc = there == CM_PLACE_NOTHING ? cm_store_open_memory(root, err)
                                       : cm_store_open(out->root, &options, root, err);
    r->root = *root;
    r->base = &r->own;
    return rc == CM_OK ? cm_ice_base_open(*root, r->branch, &r->own, err) : rc;
}

static int check(void *context, cm_error *err)
{
    part *p = context;
    cm_repository r = {0};
    cm_store *root = NULL;
    int rc = cm_repository_check_place(&p->sink->out, err);
    if (rc == CM_OK)
        rc = open_base(p, &r, &root, err);
    if (rc == CM_OK)
        rc = cm_repository_check(&r, p->sink, p->job, err);
    if (rc == CM_OK)
        memcpy(p->tip, r.own.tip, CM_ICE_ID);
    else
        cm_error_place(err, p->sink->out.path);
    cm_ice_base_release(&r.own);
    cm_store_free(root);
    return rc;
}

static int describe(void *context, cm_json *plan, cm_error *err)
{
    const part *p = context;
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

static const char *text_of(const cm_json *plan, const char *name)
{
    const char *text =
        cm_json_text(cm_json_member(cm_json_member(plan, CM_PARTS_COMMIT), name), NULL);
    return text != NULL ? text : "";
}

static int compare(void *context, const cm_json *plan, cm_error *err)
{
    const part *p = context;
    const char *branch = p->sink->options->branch;
    const bool same = strcmp(text_of(plan, "branch"), branch != NULL ? branch : "main") == 0;
    if (same && strcmp(text_of(plan, "group"), p->sink->into.node) == 0)
        return CM_OK;
    return cm_fail(err, CM_EEXIST, "is being made by another plan (the %s differs)",
                   same ? "group" : "branch");
}

/* The commit that was noted, in another repository than the one that is there. */
static bool is_gone(void *context, const cm_parts_plan *plan)
{
    const part *p = context;
    cm_json *note = NULL;
    cm_repository r = {0};
    cm_store *root = NULL;
    uint8_t id[CM_ICE_ID];
    bool gone = false;
    int rc = cm_part_noted(&p->sink->out.beside, CM_PARTS_COMPLETE, plan->hash, &note, NULL);
    const char *text = cm_json_text(cm_json_member(note, CM_PARTS_SNAPSHOT), NULL);
    if (rc == CM_OK && text != NULL && cm_ice_id_parse(text, id) &&
        open_base(p, &r, &root, NULL) == CM_OK)
        gone = !r.own.there || !cm_ice_repo_has(r.own.repo.tree.root, id);
    cm_json_free(note);
    cm_ice_base_release(&r.own);
    cm_store_free(root);
    return gone;
}

static int make_head(const part *p, const char *name, cm_json **out, cm_error *err)
{
    *out = cm_json_object();
    return cm_json_set(*out, name, cm_json_string(p->job->parts->plan.hash), err);
}

/* With the lock, before another plan is published; the journal of a run that commits alone, too. */
static int clear(void *context, const cm_parts_plan *plan, cm_error *err)
{
    part *p = context;
    cm_repository r = {0};
    cm_json *head = NULL;
    cm_settled left;
    set_repository(p, &r);
    r.base = &r.own;
    int rc = cm_ice_base_open(p->root, r.branch, &r.own, err);
    if (rc == CM_OK)
        rc = cm_repository_give_up(&r, plan, err);
    if (rc == CM_OK)
        rc = cm_run_journal_look(&r.journal, r.beside, err);
    if (rc == CM_OK)
        rc = make_head(p, CM_REPOSITORY_PARTS, &head, err);
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
    part *p = context;
    cm_output *out = &p->sink->out;
    const cm_store_options options = {.output = true, .create = true, .net = out->net};
    if (out->store != NULL)
        return CM_OK;
    int rc = p->root == NULL ? cm_store_open(out->root, &options, &p->root, err) : CM_OK;
    set_repository(p, &p->own.repository);
    if (rc == CM_OK)
        rc = cm_ice_writing_open(&p->own, p->sink, p->job, err);
    out->store = p->own.session;
    return rc;
}

static cm_verdict judge_temporary(void *context, const char *below, cm_entry_kind kind)
{
    return kind == CM_ENTRY_TEMPORARY && cm_store_is_own_temporary(context, below) ? CM_REMOVE
                                                                                   : CM_KEEP;
}

/* A part that was stopped goes on with its chunks; what it counted of them is gone with it. */
static int take_up(part *p, bool *goes_on, cm_error *err)
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
    part *p = context;
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
        rc = make_head(p, "plan", &head, err);
    if (rc == CM_OK)
        rc = cm_run_journal_begin(j, head, p->job->scratch, err);
    cm_json_free(head);
    return rc;
}

/* Files of tries that were stopped, which its chunks do not lie in. */
static int tidy(part *p, cm_error *err)
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
    part *p = context;
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
    part *p = context;
    int rc = CM_OK;
    for (uint64_t k = 0; rc == CM_OK && k < n; k++)
        rc =
            cm_part_places_see(p->job, p->own.session, &p->own.repository, first + k, &out[k], err);
    return rc;
}

/* ---- the commit ---- */

static int read_published(part *p, cm_error *err)
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
static bool is_published(const part *p, const cm_ice_base *base, uint8_t id[CM_ICE_ID])
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
    part *p = context;
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
static int begin_commit(part *p, bool *done, cm_error *err)
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
        rc = make_head(p, CM_REPOSITORY_PARTS, &head, err);
    if (rc == CM_OK)
        rc = cm_repository_settle(r, p->job, head, true, &left, err);
    if (rc == CM_OK)
        rc = cm_run_journal_begin(&r->journal, head, p->job->scratch, err);
    r->begun = rc == CM_OK;
    cm_json_free(head);
    return rc;
}

/* A request of a process that was killed may have been served after this one looked. */
static bool is_late(const part *p, cm_repository *r)
{
    cm_ice_base now;
    if (!r->refused || cm_ice_base_open(r->root, r->branch, &now, NULL) != CM_OK)
        return false;
    const bool is = is_published(p, &now, r->committed);
    cm_ice_base_release(&now);
    return is;
}

static int commit_all(part *p, cm_error *err)
{
    cm_store *own = p->sink->store;
    int rc = cm_ice_writing_open(&p->all, p->sink, p->job, err);
    p->sink->store = own;
    if (rc == CM_OK)
        rc = cm_part_places_take(p->job, p->all.session, &p->all.repository, err);
    if (rc == CM_OK && p->sink->options->statistics)
        rc = cm_parts_counted_join(p->job, &p->sink->out.beside, err);
    if (rc == CM_OK)
        rc = cm_ice_writing_complete(&p->all, p->sink, p->job, err);
    return rc == CM_OK ? cm_ice_writing_publish(&p->all, p->sink, p->job, NULL, err) : rc;
}

/*
 * The base is what was at the tip when the plan was made; or, where the user has been told of a
 * commit that came between, and wants all that is there replaced, that commit.
 */
static int open_begun(const part *p, cm_repository *r, cm_error *err)
{
    const cm_parts_plan *plan = &p->job->parts->plan;
    const char *text = text_of(plan->json, "base");
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

/* Others have committed meanwhile; what the parts wrote stays. */
static void note_refusal(const part *p, const cm_repository *r, cm_error *err)
{
    char tip[CM_ICE_ID_TEXT + 1];
    cm_json *note = cm_json_object();
    cm_ice_id_letters(r->tried, tip);
    if (cm_json_set(note, "tip", cm_json_string(tip), NULL) != CM_OK) {
        cm_json_free(note);
        return;
    }
    if (cm_part_note(r->beside, REFUSED, p->job->parts->plan.hash, note, NULL) == CM_OK)
        cm_error_suffix(err, "; nothing was committed; with `overwrite` the same command does it");
}

/* With the lock of the repository, and where every part is done. */
static int finish(void *context, cm_job *job, cm_lock *lock, cm_error *err)
{
    part *p = context;
    cm_repository *r = &p->all.repository;
    bool done = false;
    set_repository(p, r);
    r->lock = lock;
    r->base = &r->own;
    int rc = open_begun(p, r, err);
    if (rc == CM_OK)
        rc = cm_repository_sweep(r->root, err);
    if (rc == CM_OK)
        rc = begin_commit(p, &done, err);
    if (rc == CM_OK)
        rc = done ? cm_repository_tell(r, job, err) : commit_all(p, err);
    if (rc == CM_OK)
        return rc;
    cm_error_place(err, r->path);
    cm_repository_withdraw(r, job, false, err);
    if (is_late(p, r))
        return cm_repository_tell(r, job, err);
    if (r->refused)
        note_refusal(p, r, err);
    return rc;
}

static void closed(void *context)
{
    part *p = context;
    cm_repository_close(&p->all.repository);
}

/* A plan that was replaced tells nothing of what became of this one. */
static bool is_in(void *context)
{
    (void)context;
    return false;
}

/* ---- the sink ---- */

static bool is_same_place(const char *a, const char *b)
{
    char *real[2] = {realpath(a, NULL), realpath(b, NULL)};
    const bool same =
        real[0] != NULL && real[1] != NULL ? strcmp(real[0], real[1]) == 0 : strcmp(a, b) == 0;
    free(real[0]);
    free(real[1]);
    return same;
}

/* A branch of the repository that is written moves with the commit: parts read one snapshot. */
static int check_source(const cm_sink *s, cm_error *err)
{
    const char *repository = cm_icechunk_path(s->options->source);
    cm_store_path of = {0};
    uint8_t id[CM_ICE_ID];
    if (repository == NULL)
        return CM_OK;
    int rc = cm_store_path_split(repository, &of, err);
    char *at = rc == CM_OK ? strrchr(of.path, '@') : NULL;
    const bool pinned = at != NULL && (strncmp(at, "@tag:", 5) == 0 || cm_ice_id_parse(at + 1, id));
    const bool whole = rc == CM_OK && is_same_place(of.path, s->out.root);
    if (at != NULL)
        *at = '\0';
    if (rc == CM_OK && !pinned && (whole || is_same_place(of.path, s->out.root)))
        rc = cm_fail(err, CM_EINVAL,
                     "`part`: %s is written, too; name the snapshot that all parts read, "
                     "icechunk:PATH@SNAPSHOT",
                     s->options->source);
    cm_store_path_release(&of);
    return rc;
}

static int find(cm_sink *s, cm_job *job, cm_error *err)
{
    int rc = cm_repository_find_part(s, job, err);
    return rc == CM_OK ? check_source(s, err) : rc;
}

static const cm_parts_chunks chunks = {.open = open,
                                       .compare = compare,
                                       .is_gone = is_gone,
                                       .clear = clear,
                                       .begin = begin_part,
                                       .moved = moved,
                                       .see = see,
                                       .closed = closed};

static int begin(cm_sink *s, cm_job *job, bool *moves, cm_error *err)
{
    part *p = s->own = cm_calloc(1, sizeof(*p), err);
    if (p == NULL)
        return CM_ENOMEM;
    p->sink = s;
    p->job = job;
    p->hooks = (cm_parts_hooks){.context = p,
                                .check = check,
                                .is_in = is_in,
                                .describe = describe,
                                .finish = finish,
                                .chunks = &chunks};
    int rc = cm_sink_describe(job, NULL, err);
    if (rc == CM_OK)
        rc = cm_ice_writing_check(job, err);
    if (rc == CM_OK)
        rc = cm_part_begin(job, &s->out, &p->hooks, moves, err);
    s->store = s->out.store;
    return rc;
}

static int leave(cm_sink *s, cm_job *job, int rc, cm_error *err)
{
    part *p = s->own;
    (void)job;
    (void)err;
    s->own = NULL;
    s->out.store = NULL; /* a session, which is released here */
    if (p == NULL)
        return rc;
    cm_ice_writing_release(&p->own);
    cm_ice_writing_release(&p->all);
    cm_store_free(p->root);
    cm_json_free(p->published);
    free(p);
    return rc;
}

const cm_sink_ops cm_sink_icechunk_part = {.kind = CM_SINK_COMMITS,
                                           .terms.unconsolidated = true,
                                           .find = find,
                                           .layout = cm_job_layout,
                                           .begin = begin,
                                           .commit = cm_part_commit,
                                           .withdraw = cm_part_withdraw,
                                           .leave = leave,
                                           .give_back = cm_sink_end_output};
