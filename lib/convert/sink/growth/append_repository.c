#include "convert/sink/growth/append_repository.h"

#include <stdlib.h>
#include <string.h>

#include "convert/beside/parts_files.h"
#include "format/icechunk/key.h"
#include "format/icechunk/repo_write.h"

int cm_append_begin_repository(cm_append *a, const cm_append_options *o, const char *node,
                               cm_error *err)
{
    if (*node != '\0' && cm_key_check(node, err) != CM_OK)
        return CM_EINVAL;
    if (cm_ice_branch_check(o->branch, err) != CM_OK)
        return CM_EINVAL;
    if ((a->repository = cm_calloc(1, sizeof(*a->repository), err)) == NULL)
        return CM_ENOMEM;
    a->repository->branch = cm_strdup(o->branch != NULL ? o->branch : "main", err);
    a->repository->node = cm_strdup(node, err);
    return a->repository->branch == NULL || a->repository->node == NULL ? CM_ENOMEM : CM_OK;
}

/* NAME in PLAN of a commit; "": it says nothing. */
static const char *text_of(const cm_parts_plan *plan, const char *name)
{
    const cm_json *commit = cm_json_member(plan->json, CM_PARTS_COMMIT);
    const char *text = cm_json_text(cm_json_member(commit, name), NULL);
    return text != NULL ? text : "";
}

/* *BEGUN: parts have a plan that is not complete, and began with the snapshot ID. */
static int look_at_plan(cm_append *a, bool *begun, uint8_t id[CM_ICE_ID], cm_error *err)
{
    const cm_append_repository *r = a->repository;
    cm_parts_plan plan = {0};
    int rc = a->beside.in == NULL ? cm_beside_open(&a->beside, false, err) : CM_OK;
    if (rc == CM_OK)
        rc = cm_parts_plan_read(&a->beside, &plan, err);
    *begun = plan.json != NULL && !plan.complete &&
             strcmp(text_of(&plan, "branch"), r->branch) == 0 &&
             strcmp(text_of(&plan, "group"), r->node) == 0 &&
             cm_ice_id_parse(text_of(&plan, "base"), id);
    cm_parts_plan_release(&plan);
    return rc;
}

/* The tip of the branch; for parts that have a plan, what it was when that was made. */
static int open_base(cm_append *a, cm_error *err)
{
    cm_append_repository *r = a->repository;
    uint8_t id[CM_ICE_ID];
    bool begun = false;
    int rc = a->part ? look_at_plan(a, &begun, id, err) : CM_OK;
    if (rc == CM_OK)
        rc = begun ? cm_ice_base_open_at(a->store, r->branch, id, &r->base, err)
                   : cm_ice_base_open(a->store, r->branch, &r->base, err);
    /* One that expired stays until it is collected, but no reader opens it. */
    if (rc == CM_OK && begun && !cm_ice_repo_has(r->base.repo.tree.root, id))
        rc = cm_fail(err, CM_EEXIST, "the snapshot that parts began with has expired");
    if (rc == CM_EEXIST)
        cm_error_suffix(err, "; a run by one process with `break_lock` gives these parts up");
    return rc;
}

int cm_append_check_repository(cm_append *a, cm_error *err)
{
    uint8_t id[CM_ICE_ID];
    bool begun = false;
    int rc = a->part ? look_at_plan(a, &begun, id, err) : CM_OK;
    if (rc == CM_OK && begun && memcmp(id, a->repository->base.tip, CM_ICE_ID) != 0)
        rc = cm_fail(err, CM_EEXIST,
                     "%s: other parts began with another snapshot of the branch; start again",
                     a->root);
    return rc;
}

int cm_append_read_repository(cm_append *a, cm_error *err)
{
    cm_append_repository *r = a->repository;
    char id[CM_ICE_ID_TEXT + 1];
    int rc = open_base(a, err);
    if (rc == CM_OK && !r->base.there)
        rc = cm_fail(err, CM_ENOTFOUND,
                     "is not an Icechunk repository; leave out `append` to make one");
    if (rc != CM_OK)
        return rc;
    cm_ice_id_letters(r->base.tip, id);
    free(a->opens);
    a->opens =
        cm_asprintf(err, "icechunk:%s@%s%s%s", a->root, id, *r->node != '\0' ? "::" : "", r->node);
    return a->opens == NULL ? CM_ENOMEM : CM_OK;
}

int cm_append_take_repository(cm_sink *s, cm_error *err)
{
    cm_transform_options *o = s->options;
    int rc = cm_ice_text_check("`message`", o->message, err);
    if (rc != CM_OK)
        return rc;
    s->into.root = cm_strdup(o->append->root, err);
    s->into.node = cm_strdup(o->append->repository->node, err);
    s->into.folder = cm_strdup(o->append->root, err);
    if (s->into.root == NULL || s->into.node == NULL || s->into.folder == NULL)
        return CM_ENOMEM;
    o->target = s->target = s->into.folder;
    s->into.zarr_format = 3;
    return CM_OK;
}

void cm_append_end_repository(cm_append *a)
{
    if (a->repository == NULL)
        return;
    cm_ice_base_release(&a->repository->base);
    free(a->repository->branch);
    free(a->repository->node);
    free(a->repository);
    a->repository = NULL;
}
