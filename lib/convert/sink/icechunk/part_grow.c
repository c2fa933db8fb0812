/*
 * A part of a commit to arrays that grow, or of which steps are replaced.  Every chunk that is
 * written is one part's, those that the old end cuts and coordinates too: nobody sees any of them
 * before the commit.  The snapshot that the plan names is what all parts read, and add to.
 */
#include <stdlib.h>
#include <string.h>

#include "convert/sink/growth/append_repository.h"
#include "convert/sink/icechunk/grow.h"
#include "convert/sink/icechunk/part.h"
#include "convert/sink/part/parts_claim.h"
#include "format/icechunk/key.h"

typedef struct grow_part {
    cm_ice_growing all;      /* first, as its own first member is */
    cm_repository_part part; /* without a sink: nothing is to be added */
} grow_part;

/* ---- what parts began with ---- */

static cm_ice_base *base_of(const cm_repository_part *p)
{
    return &p->job->options->append->repository->base;
}

static bool is_tip(const cm_repository_part *p, const char *letters)
{
    uint8_t id[CM_ICE_ID];
    return letters != NULL && cm_ice_id_parse(letters, id) &&
           memcmp(id, base_of(p)->tip, CM_ICE_ID) == 0;
}

/* Whether this process began with what the parts of PLAN began with, or committed. */
static bool is_of_plan(const cm_repository_part *p, const cm_parts_plan *plan)
{
    cm_json *note = NULL;
    bool is = is_tip(p, cm_repository_part_plan_text(plan, "base"));
    if (!is && plan->complete &&
        cm_part_noted(&p->sink->out.beside, CM_PARTS_COMPLETE, plan->hash, &note, NULL) == CM_OK)
        is = is_tip(p, cm_json_text(cm_json_member(note, CM_PARTS_SNAPSHOT), NULL));
    cm_json_free(note);
    return is;
}

static int compare(const cm_repository_part *p, const cm_parts_plan *plan, cm_error *err)
{
    return is_of_plan(p, plan)
               ? CM_OK
               : cm_fail(err, CM_EEXIST, "is being made by another plan (the snapshot differs)");
}

/* Nobody has changed these arrays, or those that they go by, since they were looked at. */
static int check_arrays(grow_part *g, const cm_repository *now, cm_error *err)
{
    const cm_append_state *a = &g->all.append;
    cm_ice_new_node *node = cm_calloc(a->ngrown + 1, sizeof(node[0]), err);
    int rc = node == NULL ? CM_ENOMEM : cm_ice_grow_rely(&g->all, g->part.job, err);
    for (size_t i = 0; rc == CM_OK && i < a->ngrown; i++) {
        char *path = cm_ice_grow_path(&g->all, a->grown[i].growth.path, err);
        node[i] = (cm_ice_new_node){.path = path, .is_array = true, .updates = true};
        rc = path == NULL ? CM_ENOMEM : CM_OK;
    }
    const cm_ice_change change = {.node = node,
                                  .n = a->ngrown,
                                  .relied = g->all.relied,
                                  .nrelied = g->all.nrelied,
                                  .grows = cm_ice_grow_dimension(&g->all)};
    if (rc == CM_OK)
        rc = cm_ice_snapshot_check(now->own.snapshot.tree.root,
                                   base_of(&g->part)->snapshot.tree.root, &change, err);
    if (rc == CM_EEXIST)
        cm_error_suffix(err, "; start again");
    for (size_t i = 0; node != NULL && i < a->ngrown; i++)
        free((void *)node[i].path);
    free(node);
    return rc;
}

static int check(cm_repository_part *p, uint8_t tip[CM_ICE_ID], cm_error *err)
{
    cm_repository now = {0};
    cm_store *root = NULL;
    int rc = cm_append_check(p->job->options->append, err);
    if (rc == CM_OK)
        rc = cm_repository_part_look(p, &now, &root, err);
    if (rc == CM_OK)
        rc = check_arrays(p->of, &now, err);
    memcpy(tip, base_of(p)->tip, CM_ICE_ID);
    cm_ice_base_release(&now.own);
    cm_store_free(root);
    return rc;
}

/* ---- the part, and the commit ---- */

static int open(cm_repository_part *p, cm_ice_writing *w, cm_error *err)
{
    grow_part *g = p->of;
    if (w->repository.base == NULL) /* the part's own */
        w->repository.base = base_of(p);
    int rc = cm_ice_grow_open(&g->all, w, p->sink, err);
    return rc == CM_OK ? cm_ice_grow_try(&g->all, w, err) : rc;
}

/* Not in the part's own session: there, what it did not write is not there, and is still made. */
static int complete(cm_repository_part *p, cm_ice_writing *w, cm_error *err)
{
    grow_part *g = p->of;
    cm_ice_grow_keep(&g->all, w);
    return cm_ice_grow_complete(&g->all, w, err);
}

static int publish(cm_repository_part *p, cm_ice_writing *w, cm_error *err)
{
    grow_part *g = p->of;
    return cm_ice_grow_publish(&g->all, w, p->sink, p->job, err);
}

static const cm_repository_part_ops ops = {.grows = true,
                                           .check = check,
                                           .compare = compare,
                                           .open = open,
                                           .complete = complete,
                                           .publish = publish};

/* ---- the sink ---- */

static int begin_part(grow_part *g, cm_sink *s, cm_job *job, bool *moves, cm_error *err)
{
    const cm_output_request request = {.root = s->into.root,
                                       .node = "",
                                       .break_lock = job->options->break_lock,
                                       .net = job->options->net,
                                       .monitor = job->options->monitor};
    cm_ice_grow_set_keys(job);
    g->part.ops = &ops;
    g->part.of = g;
    int rc = cm_output_find(&request, &s->out, err);
    return rc == CM_OK ? cm_repository_part_begin(&g->part, s, job, moves, err) : rc;
}

static int begin(cm_sink *s, cm_job *job, bool *moves, cm_error *err)
{
    grow_part *g = s->own = cm_calloc(1, sizeof(*g), err);
    *moves = false;
    int rc = g == NULL ? CM_ENOMEM : cm_append_prepare_into(&g->all.append, job, err);
    return rc == CM_OK && job->nvars > 0 ? begin_part(g, s, job, moves, err) : rc;
}

static int commit(cm_sink *s, cm_job *job, cm_error *err)
{
    const grow_part *g = s->own;
    if (g->part.sink != NULL)
        return cm_part_commit(s, job, err);
    job->report->written = true;
    return CM_OK;
}

static int leave(cm_sink *s, cm_job *job, int rc, cm_error *err)
{
    grow_part *g = s->own;
    if (g != NULL && (rc == CM_OK || rc == CM_EDIFFER)) {
        cm_error why = {0};
        const int told = cm_append_tell_change(job, &g->all.append, &why);
        if (rc == CM_OK && told != CM_OK)
            rc = cm_fail(err, told, "%s", why.text);
    }
    if (g != NULL) {
        cm_repository_part_release(&g->part);
        cm_ice_grow_release(&g->all);
    }
    return cm_append_leave(s, job, rc, err);
}

static const char *give_back(cm_sink *s)
{
    const char *stays = cm_sink_end_output(s), *others = cm_append_end_output(s);
    return stays != NULL ? stays : others;
}

const cm_sink_ops cm_sink_icechunk_growth_part = {.kind = CM_SINK_GROWS,
                                                  .terms = {.grows = true, .unconsolidated = true},
                                                  .find = cm_append_find,
                                                  .join = cm_append_join,
                                                  .begin = begin,
                                                  .commit = commit,
                                                  .withdraw = cm_part_withdraw,
                                                  .leave = leave,
                                                  .give_back = give_back};
