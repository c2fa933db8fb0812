/* --survey --json: what a survey found as one document, described by tools/schema/nc2zarr.json. */
#include "../common/document.h"
#include "decide.h"
#include "nc2zarr.h"

static cm_json *coverage_json(cm_document *doc, const cm_coverage *c)
{
    cm_json *o = cm_json_object(), *spans = cm_json_array();
    cm_document_names(doc, o, "variables", (unsigned)c->nvariables, c->variable);
    for (size_t i = 0; i < c->nspans; i++) {
        cm_json *span = cm_json_object();
        cm_document_u64(doc, span, "files", c->span[i].nfiles);
        cm_document_u64(doc, span, "steps", c->span[i].nsteps);
        cm_document_text(doc, span, "first", c->span[i].first);
        cm_document_text(doc, span, "last", c->span[i].last);
        cm_document_append(doc, spans, span);
    }
    cm_document_put(doc, o, "spans", spans);
    return o;
}

static cm_json *axis_json(cm_document *doc, const cm_archive_axis *a)
{
    cm_json *o = cm_json_object();
    cm_document_text(doc, o, "name", a->name);
    cm_document_u64(doc, o, "length", a->length);
    cm_document_text(doc, o, "first", a->first);
    cm_document_text(doc, o, "last", a->last);
    cm_document_text(doc, o, "step", a->step);
    cm_document_u64(doc, o, "parts", a->nparts);
    cm_document_u64(doc, o, "missing", a->nmissing);
    cm_document_u64(doc, o, "repeated", a->nrepeated);
    cm_json *coverage = cm_json_array();
    for (size_t i = 0; i < a->ncoverages; i++)
        cm_document_append(doc, coverage, coverage_json(doc, &a->coverage[i]));
    cm_document_put(doc, o, "coverage", coverage);
    return o;
}

static cm_json *variable_json(cm_document *doc, const cm_archive_variable *v)
{
    cm_json *o = cm_json_object();
    cm_document_text(doc, o, "name", v->name);
    cm_document_text(doc, o, "type", v->type);
    cm_document_names(doc, o, "dimensions", v->rank, v->dim_name);
    cm_document_shape(doc, o, "shape", v->rank, v->shape, true);
    cm_document_u64(doc, o, "files", v->nfiles);
    return o;
}

static cm_json *finding_json(cm_document *doc, const cm_finding *f, const nc2zarr_decisions *d)
{
    static const char *const WEIGHT[] = {"note", "warning", "decision"};
    char buf[600];
    const char *option = nc2zarr_takes(d, f) ? nc2zarr_option_for(f, buf, sizeof(buf)) : "";
    cm_json *o = cm_json_object();
    cm_document_text(doc, o, "kind", cm_finding_name(f->kind));
    cm_document_text(doc, o, "weight", WEIGHT[f->weight]);
    cm_document_bool(doc, o, "decided", f->decided);
    cm_document_text(doc, o, "variable", f->variable);
    cm_document_text(doc, o, "file", f->file);
    cm_document_text(doc, o, "last", f->last);
    cm_document_u64(doc, o, "files", f->nfiles);
    cm_document_text(doc, o, "option", *option ? option : NULL);
    cm_document_text(doc, o, "text", f->text);
    return o;
}

void nc2zarr_put_left_out(cm_document *doc, cm_json *o, const cm_archive *archive, size_t i)
{
    cm_json *list = cm_json_array();
    const char *path = "";
    for (size_t file = 0; doc->status == CM_OK && archive && path; file++) {
        cm_json *own;
        doc->status = cm_archive_left_out(archive, i, file, &path, &own, doc->err);
        if (!own)
            continue;
        cm_document_text(doc, own, "file", path);
        cm_document_append(doc, list, own);
    }
    cm_document_put(doc, o, "file_attributes", list);
}

/* The members that one store and the only store have alike. */
static void put_report(cm_document *doc, cm_json *o, const cm_archive *archive, size_t number,
                       const cm_archive_report *r, const nc2zarr_decisions *d)
{
    cm_json *axes = cm_json_array(), *variables = cm_json_array(), *findings = cm_json_array();
    for (size_t i = 0; i < r->naxes; i++)
        cm_document_append(doc, axes, axis_json(doc, &r->axis[i]));
    for (size_t i = 0; i < r->nvariables; i++)
        cm_document_append(doc, variables, variable_json(doc, &r->variable[i]));
    for (size_t i = 0; i < r->nfindings; i++)
        cm_document_append(doc, findings, finding_json(doc, &r->finding[i], d));
    cm_document_u64(doc, o, "files", r->nfiles);
    cm_document_u64(doc, o, "left_out", r->nskipped);
    cm_document_u64(doc, o, "bytes", r->nbytes);
    cm_document_text(doc, o, "how", r->how);
    cm_document_put(doc, o, "axes", axes);
    cm_document_put(doc, o, "variables", variables);
    cm_document_put(doc, o, "findings", findings);
    nc2zarr_put_left_out(doc, o, archive, number);
    cm_document_u64(doc, o, "decisions", r->ndecisions);
}

int nc2zarr_print_survey_json(const cm_archive *archive, const cm_archive_report *const *report,
                              size_t n, const nc2zarr_decisions *d, const cm_error *failure,
                              cm_error *err)
{
    cm_document doc = {CM_OK, err};
    cm_json *o = cm_json_object();
    static const cm_archive_report NONE;
    size_t ndecisions = 0;
    for (size_t i = 0; i < n; i++)
        ndecisions += report[i] ? report[i]->ndecisions : 0;
    cm_document_head(&doc, o, "nc2zarr-survey/1",
                     failure          ? failure->status == CM_ECANCELED ? "canceled" : "failed"
                     : ndecisions > 0 ? "undecided"
                                      : "surveyed",
                     failure);
    const cm_archive_report *first = n > 0 && report[0] ? report[0] : &NONE;
    cm_document_u64(&doc, o, "opened", first->nlooked);
    cm_document_double(&doc, o, "seconds", first->seconds, true);
    if (first->store == NULL) {
        put_report(&doc, o, archive, 0, first, d);
    } else {
        cm_json *stores = cm_json_array();
        for (size_t i = 0; i < n; i++) {
            cm_json *s = cm_json_object();
            cm_document_text(&doc, s, "store", report[i]->store);
            put_report(&doc, s, archive, i, report[i], d);
            cm_document_append(&doc, stores, s);
        }
        cm_document_put(&doc, o, "stores", stores);
        cm_document_u64(&doc, o, "decisions", ndecisions);
    }
    cm_document_text(&doc, o, "command", d->line);
    return cm_document_print(&doc, o, stdout);
}
