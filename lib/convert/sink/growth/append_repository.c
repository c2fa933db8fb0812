#include "convert/sink/growth/append_repository.h"

#include <stdlib.h>

#include "format/icechunk/key.h"

int cm_append_begin_repository(cm_append *a, const cm_append_options *o, const char *node,
                               cm_error *err)
{
    if (*node != '\0' && cm_key_check(node, err) != CM_OK)
        return CM_EINVAL;
    if (cm_ice_branch_check(o->branch, err) != CM_OK)
        return CM_EINVAL;
    if (o->part)
        return cm_fail(err, CM_EINVAL, "%s: `append` and `part`: one process adds to a repository",
                       o->store);
    if ((a->repository = cm_calloc(1, sizeof(*a->repository), err)) == NULL)
        return CM_ENOMEM;
    a->repository->branch = cm_strdup(o->branch != NULL ? o->branch : "main", err);
    a->repository->node = cm_strdup(node, err);
    return a->repository->branch == NULL || a->repository->node == NULL ? CM_ENOMEM : CM_OK;
}

int cm_append_read_repository(cm_append *a, cm_error *err)
{
    cm_append_repository *r = a->repository;
    char id[CM_ICE_ID_TEXT + 1];
    int rc = cm_ice_base_open(a->store, r->branch, &r->base, err);
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
