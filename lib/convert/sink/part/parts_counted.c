#include "convert/sink/part/parts_counted.h"

#include <inttypes.h>
#include <stdlib.h>

#include "convert/statistics/statistics.h"
#include "model/digest.h"

static const uint64_t MAX_NBYTES = (uint64_t)1 << 30;

static int add_variable(cm_json *list, const cm_job_var *v, cm_error *err)
{
    cm_buf text = {0};
    cm_json *of = cm_json_object();
    int rc = cm_statistics_tell(v, &text, err);
    if (rc == CM_OK)
        rc = cm_json_set(of, "name", cm_json_string(v->name), err);
    if (rc == CM_OK)
        rc = cm_json_set(of, "counted", cm_json_string((const char *)text.data), err);
    if (rc == CM_OK) {
        rc = cm_json_append(list, of, err);
        of = NULL;
    }
    cm_json_free(of);
    cm_buf_release(&text);
    return rc;
}

int cm_part_counted_write(const cm_job *job, const cm_beside *b, cm_error *err)
{
    cm_json *note = cm_json_object(), *list = cm_json_array();
    char *name = cm_part_file(job->parts->number, CM_PART_COUNTED, err);
    int rc = name == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        if (job->var[i].statistics != NULL)
            rc = add_variable(list, &job->var[i], err);
    if (rc == CM_OK) {
        rc = cm_json_set(note, "variables", list, err);
        list = NULL;
    }
    if (rc == CM_OK) {
        rc = cm_part_note(b, name, job->parts->plan.hash, note, err);
        note = NULL;
    }
    /* It is on the disk before the part says that it is done. */
    if (rc == CM_OK)
        rc = cm_store_sync(b->in, err);
    cm_json_free(list);
    cm_json_free(note);
    free(name);
    return rc;
}

int cm_part_counted_digest(const cm_beside *b, uint64_t number, char digest[33], cm_error *err)
{
    cm_buf text = {0};
    cm_digest sum = {0};
    char *name = cm_part_file(number, CM_PART_COUNTED, err);
    digest[0] = '\0';
    int rc = name == NULL ? CM_ENOMEM : cm_store_get(b->in, name, MAX_NBYTES, &text, err);
    if (rc == CM_OK) {
        cm_digest_element(&sum, 0, text.data, text.nbytes);
        cm_digest_text(&sum, digest);
    }
    cm_buf_release(&text);
    free(name);
    return rc == CM_ENOTFOUND ? CM_OK : rc;
}

/* The tallies of part NUMBER for each variable, in the job's order. */
static int hear_part(cm_job *job, const cm_beside *b, uint64_t number, cm_error *err)
{
    cm_json *note = NULL;
    char *name = cm_part_file(number, CM_PART_COUNTED, err);
    int rc = name == NULL ? CM_ENOMEM : cm_part_noted(b, name, job->parts->plan.hash, &note, err);
    const cm_json *list = cm_json_member(note, "variables");
    size_t k = 0;
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        cm_job_var *v = &job->var[i];
        size_t nbytes = 0;
        if (v->statistics == NULL)
            continue;
        const char *text = cm_json_text(cm_json_member(cm_json_at(list, k++), "counted"), &nbytes);
        rc = text != NULL
                 ? cm_statistics_hear(v, text, nbytes, err)
                 : cm_fail(err, CM_EFORMAT,
                           "what part %" PRIu64 " counted is damaged; run it again", number + 1);
    }
    cm_json_free(note);
    free(name);
    return rc;
}

int cm_parts_counted_join(cm_job *job, const cm_beside *b, cm_error *err)
{
    int rc = CM_OK;
    /* Whoever finishes may have moved nothing. */
    for (size_t i = 0; i < job->nvars; i++)
        if (job->var[i].statistics != NULL)
            job->var[i].move.absent = cm_job_is_absent(&job->var[i]);
    for (uint64_t k = 0; rc == CM_OK && k < job->parts->plan.nparts; k++)
        rc = hear_part(job, b, k, err);
    return rc;
}
