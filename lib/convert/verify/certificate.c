/*
 * --certificate: what was compared, with which result, so that someone may
 * delete the originals on the strength of it.
 */
#include <stdio.h>
#include <stdlib.h>

#include <chunkmill/version.h>

#include "convert/source/inputs.h"

static cm_json *texts(char *const *text, size_t n, cm_error *err)
{
    cm_json *list = cm_json_array();
    for (size_t i = 0; i < n; i++) {
        if (cm_json_append(list, cm_json_string(text[i]), err) != CM_OK) {
            cm_json_free(list);
            return NULL;
        }
    }
    return list;
}

/* A joined dataset as a whole; its files are listed beside it. */
static cm_json *whole_json(const cm_job *job, cm_error *err)
{
    const cm_transform_report *r = job->report;
    cm_json *j = cm_json_object();
    int rc = cm_json_set(j, "path", cm_json_string(job->from.path), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "format", cm_json_string(r->source_format), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "files", cm_json_u64(r->nfiles), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "bytes", cm_json_u64(r->source_nbytes), err);
    if (rc == CM_OK)
        return j;
    cm_json_free(j);
    return NULL;
}

static cm_json *variable_json(const cm_transform_variable *v, cm_error *err)
{
    cm_json *j = cm_json_object(), *shape = cm_json_array();
    uint64_t nelem = 1;
    int rc = CM_OK;
    for (unsigned k = 0; rc == CM_OK && k < v->rank; k++) {
        nelem *= v->shape[k];
        rc = cm_json_append(shape, cm_json_u64(v->shape[k]), err);
    }
    if (rc == CM_OK)
        rc = cm_json_set(j, "name", cm_json_string(v->source), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "array", cm_json_string(v->name), err);
    if (rc == CM_OK && v->decoded_from != NULL)
        rc = cm_json_set(j, "decoded_from", cm_json_string(v->decoded_from), err);
    if (rc == CM_OK)
        rc = cm_json_set(j, "type", cm_json_string(v->type), err);
    if (rc == CM_OK) {
        rc = cm_json_set(j, "shape", shape, err);
        shape = NULL;
    }
    if (rc == CM_OK)
        rc = cm_json_set(j, "elements", cm_json_u64(nelem), err);
    if (rc == CM_OK && v->digest != NULL)
        rc = cm_json_set(j, "digest", cm_json_string(v->digest), err);
    cm_json_free(shape);
    if (rc == CM_OK)
        return j;
    cm_json_free(j);
    return NULL;
}

/* Reasons why the originals cannot be restored from the store; empty: they can. */
static cm_json *losses(const cm_job *job, cm_error *err)
{
    const cm_transform_options *o = job->options;
    const cm_transform_report *r = job->report;
    const struct {
        bool lost;
        const char *why;
    } row[] = {
        {r->ndifferences > 0, job->source->kind == CM_DATASET_ZARR
                                  ? "the store differs from the source"
                                  : "the store differs from the file"},
        {cm_multi_spec_of(job->source) != NULL && !job->evidence.witnessed && r->ndifferences == 0,
         "the files were not held against the store"},
        {r->nskipped > 0, "variables of types that Zarr lacks were left out"},
        {job->from.group[0] != '\0', "only one group was converted"},
        {o->variable.n > 0 || o->exclude.n > 0, "only some variables were chosen"},
        {o->stack.n > 0, "variables were stacked into one array"},
        {o->merge_along.n > 0,
         "of a dimension only the first element that is not missing was kept"},
        {o->subset.n > 0, "only a part of the dimensions was chosen"},
        {o->dtype.n > 0, "types were changed"},
        {o->overflow == CM_OVERFLOW_SATURATE,
         "numbers out of range were made the nearest in range"},
        {o->unpack.n > 0, "scale and offset were applied"},
        {o->keepbits.n > 0, "values were rounded"},
        {o->rename.n > 0, "names were changed"},
        {o->fill_value.n > 0, "the value of unwritten elements was changed"},
        {o->char_mode != CM_CHAR_KEEP, "character variables were changed"},
        {job->evidence.inputs_differ,
         "files differ where they have the same elements; one of them is stored"},
    };
    bool repaired = job->evidence.repaired;
    for (size_t i = 0; i < job->nvars; i++)
        repaired |= job->var[i].moved.repaired;
    cm_json *list = cm_json_array();
    int rc = CM_OK;
    if (repaired)
        rc = cm_json_append(list, cm_json_string("text that is not UTF-8 has become U+FFFD"), err);
    for (size_t i = 0; rc == CM_OK && i < sizeof(row) / sizeof(row[0]); i++)
        if (row[i].lost)
            rc = cm_json_append(list, cm_json_string(row[i].why), err);
    const cm_multi_spec *spec = cm_multi_spec_of(job->source);
    if (rc == CM_OK && spec != NULL && spec->irreversible != NULL)
        rc = cm_json_append(list, cm_json_string(spec->irreversible), err);
    for (size_t i = 0; rc == CM_OK && i < cm_dataset_nwarnings(job->source); i++)
        rc = cm_json_append(list, cm_json_string(cm_dataset_warning_at(job->source, i)), err);
    if (rc == CM_OK)
        return list;
    cm_json_free(list);
    return NULL;
}

static int fill_certificate(const cm_job *job, const char *path, cm_json *j, cm_error *err)
{
    const cm_transform_report *r = job->report;
    char versions[256];
    cm_json *variables = cm_json_array(), *why = losses(job, err);
    bool reproducible = why != NULL && cm_json_length(why) == 0, joined = r->nfiles > 0;
    cm_json *input = joined ? whole_json(job, err) : NULL, *inputs = NULL;
    int rc = why == NULL || (joined && input == NULL) ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK)
        rc = cm_job_inputs_json(job, path, joined ? &inputs : &input, err);
    for (size_t i = 0; rc == CM_OK && i < r->nvariables; i++)
        rc = cm_json_append(variables, variable_json(&r->variable[i], err), err);
    const struct {
        const char *name;
        cm_json *value;
    } row[] = {
        {"schema", cm_json_string(CM_MARK_CERTIFICATE)},
        {"made", cm_job_time_json(time(NULL))},
        {"command", cm_json_string(job->options->command == NULL ? "" : job->options->command)},
        {"version", cm_json_string(cm_version())},
        {"libraries", cm_json_string(cm_library_versions(versions, sizeof(versions)))},
        {"input", input},
        {"inputs", inputs},
        {"output", cm_json_string(r->target)},
        {"elements_compared", cm_json_u64(r->nverified)},
        {"variables", variables},
        {"differences", texts(r->difference, r->ndifferences, err)},
        {"left_out", texts(r->skipped, r->nskipped, err)},
        {"reproducible", cm_json_bool(reproducible)},
        {"not_reproducible_because", why},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        if (row[i].value == NULL && rc == CM_OK && row[i].value == inputs)
            continue;
        int set = rc == CM_OK ? cm_json_set(j, row[i].name, row[i].value, err) : rc;
        if (rc != CM_OK)
            cm_json_free(row[i].value);
        rc = set;
    }
    if (rc == CM_OK && r->snapshot != NULL)
        rc = cm_json_set(j, "snapshot", cm_json_string(r->snapshot), err);
    return rc;
}

int cm_job_certify(const cm_job *job, const char *path, cm_outfile *file, cm_error *err)
{
    cm_json *j = cm_json_object();
    cm_buf text = {0};
    int rc = fill_certificate(job, path, j, err);
    if (rc == CM_OK)
        rc = cm_json_write(j, true, &text, err);
    if (rc == CM_OK)
        rc = cm_buf_append(&text, "\n", 1, err);
    if (rc == CM_OK)
        rc = cm_outfile_open(file, err);
    if (rc == CM_OK)
        rc = cm_outfile_write(file, text.data, text.nbytes, err);
    /* Someone may delete originals on the strength of it. */
    file->sync = true;
    if (rc == CM_OK)
        rc = cm_outfile_commit(file, err);
    cm_buf_release(&text);
    cm_json_free(j);
    return rc;
}
