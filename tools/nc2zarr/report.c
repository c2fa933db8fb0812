/* How a conversion ends: warnings and the error, the document or the summary. */
#include "../common/run.h"
#include "../common/say.h"
#include "../common/summary.h"
#include "nc2zarr.h"

static int print_document(const cm_transform_options *options, const cm_transform_report *r,
                          const nc2zarr_of *of, const nc2zarr_typed *typed, const cm_error *failure,
                          cm_error *err)
{
    cm_document doc = {CM_OK, err};
    cm_json *own = nc2zarr_document(&doc, options, r, of, typed, failure);
    if (of == NULL || of->stores == NULL)
        return cm_document_print(&doc, own, stdout);
    cm_json *o = cm_json_object();
    cm_document_text(&doc, o, "store", of->name);
    cm_document_put(&doc, o, "conversion", own);
    cm_document_append(&doc, of->stores, o);
    return doc.status;
}

/* A summary is of a target that was made: a repository has no commit of one that differs. */
static bool is_shown(int status, const cm_transform_options *options, const cm_transform_report *r)
{
    return status == CM_OK || r->written || options->check;
}

/* Another comparison lacks the same filter, and meets the same damage. */
static const char *how_to_verify(int status)
{
    switch (status) {
    case CM_EUNSUPPORTED:
        return "";
    case CM_EFORMAT:
        return "; nc2zarr --check compares both once they can be read";
    default:
        return "; nc2zarr --check compares it with the input";
    }
}

int nc2zarr_report(int status, const cm_transform_options *asked, const cm_transform_report *r,
                   const cm_common_options *common, const nc2zarr_typed *typed,
                   const nc2zarr_of *of, const cm_error *err)
{
    /* A store that was complete is compared, when that was asked for, as --check does. */
    cm_transform_options shown = *asked;
    const cm_transform_options *options = &shown;
    shown.check = asked->check || (r->finished && asked->verify == CM_VERIFY_FULL);
    bool whole = status == CM_OK || status == CM_EDIFFER;
    int exit_status = cm_tool_exit_status(status);
    /* On standard error, so that results stay alone on standard output. */
    if (whole)
        cm_summary_say(&NC2ZARR, common, r);
    if (common->json) {
        cm_error print_err = {0};
        if (print_document(options, r, of, typed, status == CM_OK ? NULL : err, &print_err) !=
            CM_OK) {
            cm_say(NC2ZARR.name, "%s", print_err.text);
            exit_status = CM_EXIT_FAILED;
        }
    } else if (whole && is_shown(status, options, r) && common->verbosity >= 0 &&
               (!r->finished || options->check)) {
        nc2zarr_print_summary(options, r, of != NULL ? of->survey : NULL, common, typed);
    }
    if (r->finished && whole && common->verbosity >= 0)
        cm_say(NC2ZARR.name, "%s: the store is complete, nothing to resume%s", asked->target,
               options->check ? "" : "; --check compares it with its input");
    cm_run_state state = {.untouched = options->check || options->dry_run,
                          .complete = r->written,
                          .resumable = r->resumable,
                          .overwrite = options->overwrite,
                          .part = options->part.on};
    if (cm_run_stopped(status))
        cm_run_say_stopped(&NC2ZARR, options->target, &state);
    else if (status != CM_OK)
        cm_say(NC2ZARR.name, "%s%s", err->text, r->unverified ? how_to_verify(status) : "");
    return exit_status;
}
