/* One part of a store, as a sink. */
#include "convert/sink/part/parts.h"
#include "convert/sink/sink.h"

/* A store that several processes make is looked at when there is a plan. */
static int find(cm_sink *s, cm_job *job, cm_error *err)
{
    const cm_transform_options *o = s->options;
    (void)job;
    int rc = cm_sink_find_into(s, err);
    if (rc == CM_OK)
        rc = cm_sink_take_format(s, err);
    if (rc == CM_OK && *s->into.node != '\0')
        rc = cm_fail(err, CM_EINVAL, "%s: several processes make a store, not a node in one",
                     o->target);
    const cm_output_request request = {.root = s->into.root,
                                       .node = s->into.node,
                                       .overwrite = o->overwrite,
                                       .break_lock = o->break_lock,
                                       .net = o->net,
                                       .monitor = o->monitor};
    return rc == CM_OK ? cm_output_find(&request, &s->out, err) : rc;
}

static int begin(cm_sink *s, cm_job *job, bool *moves, cm_error *err)
{
    int rc = cm_sink_describe(job, NULL, err);
    if (rc == CM_OK)
        rc = cm_part_begin(job, &s->out, NULL, moves, err);
    s->store = s->out.store;
    return rc;
}

const cm_sink_ops cm_sink_part = {.find = find,
                                  .layout = cm_job_layout,
                                  .begin = begin,
                                  .commit = cm_part_commit,
                                  .withdraw = cm_part_withdraw,
                                  .give_back = cm_sink_end_output};
