/* --consolidate: one call of the library, and what it found. */
#include <chunkmill/consolidate.h>

#include "../common/remote.h"
#include "../common/say.h"
#include "base/number.h"
#include "nc2zarr.h"

static int print_json(const char *store, const cm_consolidate_report *r, const cm_error *failure,
                      cm_error *err)
{
    cm_document doc = {CM_OK, err};
    cm_json *o = cm_json_object();
    cm_document_head(&doc, o, "nc2zarr-consolidate/1",
                     failure           ? "failed"
                     : r->nwritten > 0 ? "renewed"
                                       : "unchanged",
                     failure);
    cm_document_text(&doc, o, "store", store);
    cm_document_known_u64(&doc, o, "zarr_format", (uint64_t)r->zarr_format, r->zarr_format != 0);
    cm_document_u64(&doc, o, "arrays", r->narrays);
    cm_document_u64(&doc, o, "groups", r->ngroups);
    cm_document_u64(&doc, o, "documents", r->ndocuments);
    cm_document_u64(&doc, o, "written", r->nwritten);
    return cm_document_print(&doc, o, stdout);
}

static void print_text(const char *store, const cm_consolidate_report *r)
{
    cm_print_clean(store, stdout);
    cm_print(stdout, ": consolidated metadata %s %zu array%s and %zu group%s",
             r->nwritten > 0 ? "now list" : "listed already", r->narrays,
             cm_of_count(r->narrays, "", "s"), r->ngroups, cm_of_count(r->ngroups, "", "s"));
    if (r->nwritten > 1)
        cm_print(stdout, "; %zu documents were renewed", r->nwritten);
    puts("");
}

static int run(const nc2zarr_values *v, const cm_texts *paths, cm_net **net,
               cm_consolidate_report *report, cm_error *err)
{
    int status = cm_remote_open(&v->net, paths, NULL, NULL, net, err);
    const cm_consolidate_options options = {.store = paths->text[0],
                                            .break_lock = v->o.break_lock,
                                            .durable = v->o.durable,
                                            .net = *net};
    return status == CM_OK ? cm_consolidate(&options, report, err) : status;
}

int nc2zarr_consolidate(const nc2zarr_values *v, const cm_common_options *common,
                        const cm_texts *paths)
{
    static const char *const ALLOWED[] = {"consolidate", "break-lock", "durable",  "anonymous",
                                          "concurrency", "timeout",    "checksum", NULL};
    cm_consolidate_report report = {0};
    cm_net *net = NULL;
    cm_error err = {0}, print_err = {0};
    int refused = cm_tool_refuse_others(&NC2ZARR, common, ALLOWED);
    if (refused != CM_TOOL_RUN)
        return refused;
    if (paths->n != 1)
        return cm_tool_usage_error(&NC2ZARR, "--consolidate renews one store; name it alone");
    int status = run(v, paths, &net, &report, &err);
    int exit_status = cm_tool_exit_status(status);
    if (report.note && common->verbosity >= 0)
        cm_say(NC2ZARR.name, "%s", report.note);
    if (common->json &&
        print_json(paths->text[0], &report, status == CM_OK ? NULL : &err, &print_err) != CM_OK) {
        cm_say(NC2ZARR.name, "%s", print_err.text);
        exit_status = CM_EXIT_FAILED;
    }
    if (status != CM_OK)
        cm_say(NC2ZARR.name, "%s", err.text);
    else if (!common->json && common->verbosity >= 0)
        print_text(paths->text[0], &report);
    cm_consolidate_report_release(&report);
    cm_remote_say(&NC2ZARR, net, common);
    cm_net_free(net);
    return exit_status;
}
