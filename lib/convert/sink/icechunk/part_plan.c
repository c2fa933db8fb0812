/* The repository that parts write into, and what their plan says of it. */
#include "convert/sink/icechunk/part.h"

#include <string.h>

#include "store/open.h"

void cm_repository_part_set_repository(const cm_repository_part *p, cm_repository *r)
{
    const cm_transform_options *o = p->sink->options;
    *r = (cm_repository){.branch = o->branch != NULL ? o->branch : "main",
                         .path = p->sink->out.path,
                         .beside = &p->sink->out.beside,
                         .root = p->root,
                         .counts = true,
                         .grows = p->ops->grows,
                         .in_parts = true};
}

int cm_repository_part_look(const cm_repository_part *p, cm_repository *r, cm_store **root,
                            cm_error *err)
{
    const cm_output *out = &p->sink->out;
    const cm_store_options options = {.output = true, .net = out->net};
    cm_place there;
    *root = NULL;
    cm_repository_part_set_repository(p, r);
    int rc = cm_store_probe(out->root, &options, &there, err);
    if (rc == CM_OK)
        rc = there == CM_PLACE_NOTHING ? cm_store_open_memory(root, err)
                                       : cm_store_open(out->root, &options, root, err);
    r->root = *root;
    r->base = &r->own;
    return rc == CM_OK ? cm_ice_base_open(*root, r->branch, &r->own, err) : rc;
}

const char *cm_repository_part_plan_text(const cm_parts_plan *plan, const char *name)
{
    const cm_json *commit = cm_json_member(plan->json, CM_PARTS_COMMIT);
    const char *text = cm_json_text(cm_json_member(commit, name), NULL);
    return text != NULL ? text : "";
}

int cm_repository_part_head(const cm_repository_part *p, const char *name, cm_json **out,
                            cm_error *err)
{
    *out = cm_json_object();
    return cm_json_set(*out, name, cm_json_string(p->job->parts->plan.hash), err);
}
