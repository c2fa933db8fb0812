/* Which sink a job has: the only place where all of them are known. */
#include "convert/sink/sink.h"

#include <string.h>

#include "convert/statistics/statistics.h"
#include "store/open.h"

static const cm_sink_ops *choose(const cm_transform_options *o)
{
    const bool foreseen = o->dry_run, part = o->part.on;
    const bool commits = !o->check && cm_icechunk_path(o->target) != NULL;
    if (o->append != NULL && commits)
        return foreseen ? &cm_sink_icechunk_growth_foreseen
               : part   ? &cm_sink_icechunk_growth_part
                        : &cm_sink_icechunk_growth;
    if (o->append != NULL)
        return foreseen ? &cm_sink_growth_foreseen : part ? &cm_sink_growth_part : &cm_sink_growth;
    if (o->refer != NULL && strcmp(o->refer, "icechunk") == 0)
        return foreseen ? &cm_sink_virtual_foreseen : &cm_sink_virtual;
    if (commits)
        return foreseen ? &cm_sink_icechunk_foreseen
               : part   ? &cm_sink_icechunk_part
                        : &cm_sink_icechunk;
    if (o->refer != NULL)
        return foreseen ? &cm_sink_references_foreseen : &cm_sink_references;
    if (o->check)
        return &cm_sink_compared;
    return foreseen ? &cm_sink_nothing : part ? &cm_sink_part : &cm_sink_store;
}

void cm_sink_choose(cm_sink *s, cm_transform_options *options, cm_terms *terms)
{
    *s = (cm_sink){.ops = choose(options), .options = options, .target = options->target};
    *terms = s->ops->terms;
    terms->alike = options->part.on;
}

/* A store that is complete is not read again to be counted. */
static int check_counted(const cm_output *out, cm_error *err)
{
    bool there;
    int rc = cm_statistics_are_there(out->path, out->beside.net, &there, err);
    return rc == CM_OK && !there
               ? cm_fail(err, CM_EEXIST,
                         "%s: is complete, and has no statistics; `overwrite` makes both",
                         out->path)
               : rc;
}

int cm_sink_finished(cm_sink *s, cm_job *job, cm_error *err)
{
    if (!s->options->dry_run)
        cm_output_tidy(&s->out);
    int rc = s->options->statistics ? check_counted(&s->out, err) : CM_OK;
    if (rc != CM_OK)
        return rc;
    if (s->options->dry_run) /* which reads no data */
        s->options->verify = CM_VERIFY_NONE;
    /* It may be the store of another source, or have another layout. */
    s->ops = &cm_sink_compared;
    return s->ops->find(s, job, err);
}
