#include "passport_run.h"

#include "passport_page.h"

int passport_claim(const cm_transform_options *options, cm_outfile *file, cm_error *err)
{
    const cm_outfile_guard guard = {
        .read = &options->source, .nread = options->source != NULL, .made = options->target};
    *file = (cm_outfile){.fd = -1};
    if (options->report == NULL)
        return CM_OK;
    int rc =
        cm_outfile_claim(file, options->report, &CM_KIND_PAGE, &guard, options->overwrite, err);
    /* A pipe that nobody reads is told before the work. */
    return rc == CM_OK && file->in_place ? cm_outfile_open(file, err) : rc;
}

int passport_finish(const cm_tool *tool, const cm_transform_options *options,
                    const cm_transform_report *report, cm_outfile *file, int rc, cm_error *err)
{
    cm_error why = {0};
    if (options->report == NULL || (rc != CM_OK && rc != CM_EDIFFER))
        return rc;
    if (report->passport == NULL)
        return cm_fail(err, CM_EEXIST,
                       "%s: is complete, so nothing was read that a report could describe; "
                       "chunkcalc --report FILE.html describes it",
                       report->target != NULL ? report->target : options->target);
    const passport_facts facts = {.passport = report->passport,
                                  .tool = tool->name,
                                  .source = options->source,
                                  .target = report->target,
                                  .format = report->source_format,
                                  .command = options->command,
                                  .options = options,
                                  .converted = report,
                                  .census = report->has_census ? &report->census : NULL};
    if (passport_write(&facts, file, &why) == CM_OK)
        return rc;
    *err = why;
    cm_error_suffix(err, "; the target is complete, but has no report");
    return err->status;
}

/* ---- the document ---- */

static cm_json *finding_json(cm_document *doc, const cm_passport_finding *f)
{
    cm_json *o = cm_json_object();
    cm_document_text(doc, o, "kind", f->kind);
    cm_document_text(doc, o, "variable", f->variable);
    cm_document_known_u64(doc, o, "first", f->first, f->has_steps);
    cm_document_known_u64(doc, o, "last", f->last, f->has_steps);
    cm_document_text(doc, o, "from", f->from);
    cm_document_text(doc, o, "to", f->to);
    cm_document_double(doc, o, "value", f->value, f->value == f->value);
    cm_document_double(doc, o, "expected", f->expected, f->expected == f->expected);
    cm_document_text(doc, o, "sentence", f->sentence);
    return o;
}

static cm_json *variable_json(cm_document *doc, const cm_passport_variable *v)
{
    const bool any = v->all.count > 0;
    cm_json *o = cm_json_object();
    cm_document_text(doc, o, "name", v->name);
    cm_document_text(doc, o, "steps_along", v->is_counted ? v->dim_name[v->step_dim] : NULL);
    cm_document_u64(doc, o, "steps", v->nsteps);
    cm_document_u64(doc, o, "count", v->all.count);
    cm_document_u64(doc, o, "missing", v->all.missing);
    cm_document_double(doc, o, "min", v->all.min, any);
    cm_document_double(doc, o, "mean", v->all.mean, any);
    cm_document_double(doc, o, "max", v->all.max, any);
    cm_document_double(doc, o, "std", v->all.std, any);
    return o;
}

static cm_json *unread_json(cm_document *doc, const cm_passport_variable *v)
{
    cm_json *o = cm_json_object();
    cm_document_text(doc, o, "name", v->name);
    cm_document_text(doc, o, "why", v->unread);
    return o;
}

void passport_document(cm_document *doc, cm_json *o, const char *path, const cm_passport *p)
{
    cm_json *r = cm_document_object(doc, o, "report", p != NULL);
    if (r == NULL)
        return;
    cm_json *findings = cm_json_array(), *variables = cm_json_array(), *unread = cm_json_array();
    for (size_t i = 0; i < p->nfindings; i++)
        cm_document_append(doc, findings, finding_json(doc, &p->finding[i]));
    for (size_t i = 0; i < p->nvariables; i++)
        if (p->variable[i].is_counted)
            cm_document_append(doc, variables, variable_json(doc, &p->variable[i]));
        else if (p->variable[i].unread != NULL)
            cm_document_append(doc, unread, unread_json(doc, &p->variable[i]));
    cm_document_text(doc, r, "path", path);
    cm_document_text(doc, r, "from", p->first_time);
    cm_document_text(doc, r, "to", p->last_time);
    cm_document_double(doc, r, "seconds", p->seconds, true);
    cm_document_put(doc, r, "findings", findings);
    cm_document_u64(doc, r, "left_out", p->nleft_out);
    cm_document_put(doc, r, "variables", variables);
    if (cm_json_length(unread) > 0)
        cm_document_put(doc, r, "unread", unread);
    else
        cm_json_free(unread);
}
