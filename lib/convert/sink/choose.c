/* Which sink a job has: the only place where all of them are known. */
#include "convert/sink/sink.h"

#include "convert/statistics/statistics.h"

/* Which sink the options name: the first row that is true. */
void cm_sink_choose(cm_sink *s, cm_transform_options *options)
{
    const cm_transform_options *o = options;
    const bool grows = o->append != NULL, refers = o->refer != NULL;
    const struct {
        bool named;
        const cm_sink_ops *ops;
    } row[] = {
        {o->check, &cm_sink_compared},
        {grows && o->dry_run, &cm_sink_growth_foreseen},
        {grows && o->part.on, &cm_sink_growth_part},
        {grows, &cm_sink_growth},
        {refers && o->dry_run, &cm_sink_references_foreseen},
        {refers, &cm_sink_references},
        {o->dry_run, &cm_sink_nothing},
        {o->part.on, &cm_sink_part},
        {true, &cm_sink_store},
    };
    size_t i = 0;
    while (!row[i].named)
        i++;
    *s = (cm_sink){.ops = row[i].ops, .options = options, .target = o->target};
}

cm_terms cm_terms_of(const cm_transform_options *o)
{
    return (cm_terms){.alike = o->part.on, .foreseen = o->dry_run, .grows = o->append != NULL};
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

int cm_sink_finished(cm_sink *s, cm_job *job, bool *works, cm_error *err)
{
    cm_output_tidy(&s->out);
    int rc = s->options->statistics ? check_counted(&s->out, err) : CM_OK;
    *works = s->options->verify == CM_VERIFY_FULL;
    if (rc != CM_OK || !*works)
        return rc;
    s->ops = &cm_sink_compared;
    return s->ops->find(s, job, err);
}
