#include "transformed.h"

void cm_transform_put_verification(cm_document *doc, cm_json *o,
                                   const cm_transform_options *options,
                                   const cm_transform_report *r)
{
    static const char *const MODE[] = {"none", "sample", "full"};
    cm_json *v = cm_json_object();
    cm_verify mode = options->check ? CM_VERIFY_FULL : options->verify;
    cm_document_text(doc, v, "mode", MODE[options->dry_run ? CM_VERIFY_NONE : mode]);
    cm_document_u64(doc, v, "nelements", r->nverified);
    const bool ran = !options->dry_run && mode != CM_VERIFY_NONE;
    cm_document_bool(doc, v, "complete", ran && !r->unverified && !r->not_compared);
    cm_document_double(doc, v, "seconds", r->verify_seconds, true);
    cm_document_texts(doc, v, "differences", r->difference, r->ndifferences);
    cm_document_put(doc, o, "verification", v);
}

void cm_transform_put_memory(cm_document *doc, cm_json *o, const cm_transform_report *r)
{
    cm_json *memory = cm_json_object();
    cm_document_u64(doc, memory, "limit_nbytes", r->memory_limit);
    cm_document_u64(doc, memory, "planned_nbytes", r->memory_planned);
    cm_document_u64(doc, memory, "peak_nbytes", r->memory_peak);
    cm_document_put(doc, o, "memory", memory);
}

void cm_transform_put_stages(cm_document *doc, cm_json *o, const cm_transform_report *r)
{
    cm_json *stages = cm_json_array();
    for (size_t i = 0; i < r->nstages; i++) {
        cm_json *s = cm_json_object();
        cm_document_text(doc, s, "name", r->stage[i].name);
        cm_document_double(doc, s, "seconds", r->stage[i].seconds, true);
        cm_document_u64(doc, s, "calls", r->stage[i].calls);
        cm_document_append(doc, stages, s);
    }
    cm_document_put(doc, o, "stages", stages);
}

void cm_transform_put_inodes(cm_document *doc, cm_json *o, const cm_transform_report *r)
{
    const cm_transform_inodes *n = &r->inodes;
    cm_json *inodes;
    if (!n->many && !n->short_of)
        return;
    inodes = cm_document_object(doc, o, "inodes", true);
    if (inodes == NULL)
        return;
    cm_document_u64(doc, inodes, "files", n->nfiles);
    cm_document_u64(doc, inodes, "folders", n->nfolders);
    cm_document_u64(doc, inodes, "files_in_shards", n->nin_shards);
    cm_document_known_u64(doc, inodes, "free", n->nfree, n->knows_free);
}
