/*
 * The plan that parts share: the fingerprint of source and options, the layout, and how
 * heavy each variable is.  Where it is cut follows from that (plan/parts.h).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/number.h"
#include "convert/sink/part/parts.h"
#include "convert/sink/store/fingerprint.h"
#include "model/digest.h"

/* ---- the layout ---- */

static int add_document(cm_digest *digest, uint64_t number, const cm_json *j, cm_error *err)
{
    cm_buf text = {0};
    int rc = cm_json_write(j, false, &text, err);
    cm_digest_element(digest, number, text.data, text.nbytes);
    cm_buf_release(&text);
    return rc;
}

/* A digest of the documents of all arrays: the same layout has the same. */
static int digest_layout(const cm_job *job, char text[33], cm_error *err)
{
    cm_digest digest = {0};
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        cm_json *doc = NULL, *attrs = NULL;
        cm_digest_element(&digest, 3 * i, v->name, strlen(v->name));
        if (v->window.is_part)
            cm_digest_element(&digest, 3 * i, v->window.at, sizeof(v->window.at));
        if (v->doc.meta.verbatim)
            doc = cm_json_copy(v->doc.meta.raw);
        else if (v->doc.meta.zarr_format == 3)
            rc = cm_zarr_meta_to_v3(&v->doc.meta, &doc, err);
        else
            rc = cm_zarr_meta_to_v2(&v->doc.meta, &doc, &attrs, err);
        if (rc == CM_OK)
            rc = add_document(&digest, 3 * i + 1, doc, err);
        if (rc == CM_OK)
            rc = add_document(&digest, 3 * i + 2, attrs, err);
        cm_json_free(doc);
        cm_json_free(attrs);
    }
    cm_digest_text(&digest, text);
    return rc;
}

/* ---- making one ---- */

/* Bytes that the source stores of V, or would. */
static uint64_t weight_of(const cm_job_var *v)
{
    uint64_t nbytes = v->source->dtype.nbytes, objects = 1;
    for (unsigned j = 0; j < v->view.rank; j++)
        nbytes = nbytes > UINT64_MAX / 4 / (v->view.shape[j] + 1) ? UINT64_MAX / 8
                                                                  : nbytes * v->view.shape[j];
    if (v->source->stored_nbytes > 0 && v->view.whole)
        nbytes = v->source->stored_nbytes;
    /* An object without bytes is work, too. */
    for (unsigned j = 0; j < v->doc.meta.rank; j++)
        objects *= v->doc.meta.chunk[j] > 0 ? v->doc.meta.shape[j] / v->doc.meta.chunk[j] + 1 : 1;
    return nbytes + objects;
}

static int add_weight(cm_json *list, const cm_job_var *v, cm_error *err)
{
    cm_json *j = cm_json_object();
    int rc = cm_json_set(j, "name", cm_json_string(v->name), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "nbytes", cm_json_u64(weight_of(v)), err);
    if (rc == CM_OK)
        return cm_json_append(list, j, err);
    cm_json_free(j);
    return rc;
}

/* The members that tell this plan from another of the same job. */
static int set_maker(cm_json *j, const cm_part_choice *part, cm_error *err)
{
    char host[256] = "", made[64];
    struct timespec now;
    if (gethostname(host, sizeof(host) - 1) != 0)
        host[0] = '\0';
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(made, sizeof(made), "%lld.%09ld", (long long)now.tv_sec, now.tv_nsec);
    char *folder = getcwd(NULL, 0);
    int rc = cm_json_set(j, "made", cm_json_string(made), err);
    if (rc == CM_OK && folder != NULL)
        rc = cm_json_set(j, "folder", cm_json_string(folder), err);
    free(folder);
    if (rc == CM_OK && part->launcher != NULL)
        rc = cm_json_set(j, "launcher", cm_json_string(part->launcher), err);
    if (rc == CM_OK && part->command != NULL)
        rc = cm_json_set(j, "command", cm_json_string(part->command), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "host", cm_json_string(host), err);
    return rc == CM_OK ? cm_json_set(j, "process", cm_json_i64(getpid()), err) : rc;
}

int cm_parts_propose(const cm_job *job, cm_json **out, cm_error *err)
{
    const cm_part_choice *part = &job->options->part;
    char layout[33];
    cm_json *j = cm_json_object(), *weights = cm_json_array(), *fingerprint = NULL;
    int rc = cm_json_set(j, "chunkmill plan", cm_json_i64(1), err);
    *out = NULL;
    if (rc == CM_OK && part->nparts == 0)
        rc = cm_fail(err, CM_EINVAL,
                     "no plan is there yet, and the number of parts is not known; `nparts` "
                     "says it");
    if (rc == CM_OK)
        rc = cm_json_set(j, "parts", cm_json_u64(part->nparts), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "first index", cm_json_u64(part->by_index ? part->first : 1), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "step", cm_json_u64(part->by_index ? part->step : 1), err);
    if (rc == CM_OK)
        rc = set_maker(j, part, err);
    if (rc == CM_OK)
        rc = cm_fingerprint(job, &fingerprint, err);
    if (rc == CM_OK) {
        rc = cm_json_set(j, "fingerprint", fingerprint, err);
        fingerprint = NULL;
    }
    if (rc == CM_OK)
        rc = digest_layout(job, layout, err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "layout", cm_json_string(layout), err);
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        rc = add_weight(weights, &job->var[i], err);
    if (rc == CM_OK) {
        rc = cm_json_set(j, "variables", weights, err);
        weights = NULL;
    }
    cm_json_free(weights);
    cm_json_free(fingerprint);
    if (rc == CM_OK)
        *out = j;
    else
        cm_json_free(j);
    return rc;
}

/* ---- comparing with one ---- */

static int refuse(const char *what, cm_error *err)
{
    return cm_fail(err, CM_EEXIST, "is being made by another plan (%s %s)", what,
                   strncmp(what, "inputs", 6) == 0 ? "differ" : "differs");
}

static int compare_fingerprint(const cm_json *was, const cm_json *is, cm_error *err)
{
    uint64_t before, now;
    const char *other = cm_journal_other(was, is, &before, &now);
    if (other == NULL || before == now)
        return other == NULL ? CM_OK : refuse(other, err);
    const uint64_t n = before > now ? before - now : now - before;
    return cm_fail(err, CM_EEXIST,
                   "is being made by a plan of %" PRIu64 " %s %s than there are now", n,
                   cm_of_count(n, "input", "inputs"), before > now ? "more" : "fewer");
}

const cm_json *cm_parts_weights(const cm_parts_plan *plan)
{
    return cm_json_member(plan->json, "variables");
}

int cm_parts_compare(const cm_job *job, const cm_parts_plan *plan, cm_error *err)
{
    const cm_part_choice *part = &job->options->part;
    const cm_json *was = cm_json_member(plan->json, "fingerprint");
    const char *layout = cm_json_text(cm_json_member(plan->json, "layout"), NULL);
    char own[33];
    cm_json *is = NULL;
    int rc = cm_fingerprint(job, &is, err);
    if (rc == CM_OK)
        rc = compare_fingerprint(was, is, err);
    cm_json_free(is);
    if (rc == CM_OK)
        rc = digest_layout(job, own, err);
    if (rc == CM_OK && (layout == NULL || strcmp(layout, own) != 0 ||
                        cm_json_length(cm_json_member(plan->json, "variables")) != job->nvars))
        rc = refuse("the layout", err);
    if (rc == CM_OK && !part->by_index && part->nparts != 0 && part->nparts != plan->nparts)
        rc = cm_fail(err, CM_EEXIST, "is being made in %" PRIu64 " %s, not in %" PRIu64,
                     plan->nparts, cm_of_count(plan->nparts, "part", "parts"), part->nparts);
    return rc;
}

int cm_parts_number(const cm_job *job, const cm_parts_plan *plan, uint64_t *number, cm_error *err)
{
    const cm_part_choice *part = &job->options->part;
    uint64_t off = part->index - plan->first;
    *number = part->number;
    if (!part->by_index)
        return part->number < plan->nparts
                   ? CM_OK
                   : cm_fail(err, CM_EINVAL, "there is no part %" PRIu64 " of %" PRIu64,
                             part->number + 1, plan->nparts);
    *number = off / plan->step;
    if (part->index >= plan->first && off % plan->step == 0 && *number < plan->nparts)
        return CM_OK;
    return cm_fail(
        err, CM_EINVAL,
        "index %" PRIu64 " is not one of the plan's: %" PRIu64 " to %" PRIu64 " by %" PRIu64,
        part->index, plan->first, plan->first + (plan->nparts - 1) * plan->step, plan->step);
}
