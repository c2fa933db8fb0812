/* The report: sentences collected on the way, and the table of variables. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/keep.h"
#include "job/sentences.h"

CM_DEFINE_SENTENCE(cm_job_warn, cm_job, warning, nwarnings)
CM_DEFINE_SENTENCE(cm_job_note, cm_job, note, nnotes)
CM_DEFINE_SENTENCE(cm_job_skip, cm_job, skipped, nskipped)
CM_DEFINE_SENTENCE(cm_job_differ, cm_job, difference, ndifferences)

/* Who does not open it: semantics.md and the reader matrix. */
static const char *readers_of(const cm_job_var *v, int zarr_format)
{
    if (v->pass != CM_PASS_NOTHING)
        return cm_job_kept_readers(v, zarr_format);
    if (v->as_strings)
        return zarr_format == 3 ? "zarr-python, xarray, zarrs, GDAL; not tensorstore"
                                : "zarr-python, xarray, zarrs, GDAL; not tensorstore, not netCDF-C";
    if (v->type.kind == CM_KIND_BYTES)
        return zarr_format == 3 ? "zarr-python, xarray, GDAL; not tensorstore, not zarrs"
                                : "zarr-python, xarray, tensorstore, GDAL; not zarrs";
    return NULL;
}

static double decodes_per_chunk(const cm_job *job, const cm_job_var *v)
{
    for (size_t i = 0; i < job->ntransfers; i++) {
        const cm_transfer *t = &job->transfer[i];
        if (t->target == v->writer && t->source->chunked && t->sweep.source_chunks > 0)
            return (double)t->sweep.total_pieces / (double)t->sweep.source_chunks;
    }
    return 0;
}

static uint64_t memory_of(const cm_job *job, const cm_job_var *v)
{
    for (size_t i = 0; i < job->ntransfers; i++) {
        const cm_transfer *t = &job->transfer[i];
        if (t->target == v->writer)
            return t->sweep.slots * t->slot_nbytes + job->nthreads * t->worker_nbytes;
    }
    return 0;
}

static int describe(const cm_job *job, cm_job_var *v, bool written, cm_convert_variable *out,
                    cm_error *err)
{
    char text[64];
    const cm_grid *grid = cm_zarr_writer_grid(v->writer);
    const char *readers = readers_of(v, job->options->zarr_format);
    out->name = cm_strdup(v->name, err);
    out->source = cm_strdup(v->source->name, err);
    out->type = cm_strdup(cm_dtype_name(&v->type, text, sizeof(text)), err);
    out->codec = cm_strdup(cm_codec_choice_text(&v->codec, text, sizeof(text)), err);
    out->access = v->source->access_reason == NULL
                      ? cm_strdup(v->source->access, err)
                      : cm_asprintf(err, "%s: %s", v->source->access, v->source->access_reason);
    if (!out->name || !out->source || !out->type || !out->codec || !out->access)
        return CM_ENOMEM;
    if (readers != NULL && (out->readers = cm_strdup(readers, err)) == NULL)
        return CM_ENOMEM;
    out->rank = v->rank;
    uint64_t nelem = 1;
    for (unsigned j = 0; j < v->rank; j++) {
        out->shape[j] = v->shape[j];
        out->chunk[j] = v->chunk[j];
        out->shard[j] = v->sharded ? v->shard[j] : 0;
        out->unlimited[j] = v->source->unlimited[j];
        nelem *= v->shape[j];
        if (v->meta.dim_name[j] != NULL &&
            (out->dim_name[j] = cm_strdup(v->meta.dim_name[j], err)) == NULL)
            return CM_ENOMEM;
    }
    cm_zarr_written counts = cm_zarr_writer_counts(v->writer);
    out->nchunks = grid->nchunks;
    out->nobjects =
        written || v->absent ? counts.nobjects : cm_zarr_writer_outer_grid(v->writer)->nchunks;
    out->nskipped = v->absent ? grid->nchunks : counts.nskipped;
    out->source_nbytes = v->source->stored_nbytes;
    out->decoded_nbytes = nelem * v->type.nbytes;
    if (written)
        out->stored_nbytes = counts.nbytes;
    out->memory_nbytes = memory_of(job, v);
    out->passed_through = v->pass != CM_PASS_NOTHING;
    out->decodes_per_chunk = decodes_per_chunk(job, v);
    return CM_OK;
}

int cm_job_report(cm_job *job, bool written, cm_error *err)
{
    cm_convert_report *r = job->report;
    r->variable = cm_calloc(job->nvars > 0 ? job->nvars : 1, sizeof(r->variable[0]), err);
    if (r->variable == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < job->nvars; i++) {
        r->nvariables++;
        int rc = describe(job, &job->var[i], written, &r->variable[i], err);
        if (rc != CM_OK)
            return rc;
        r->decoded_nbytes += r->variable[i].decoded_nbytes;
        if (r->variable[i].memory_nbytes > r->memory_planned)
            r->memory_planned = r->variable[i].memory_nbytes;
    }
    return CM_OK;
}

void cm_convert_report_release(cm_convert_report *r)
{
    for (size_t i = 0; i < r->nvariables; i++) {
        cm_convert_variable *v = &r->variable[i];
        free(v->name);
        free(v->source);
        free(v->type);
        free(v->codec);
        free(v->access);
        free(v->digest);
        free(v->readers);
        for (unsigned j = 0; j < v->rank; j++)
            free(v->dim_name[j]);
    }
    free(r->variable);
    cm_sentences_free(r->warning, r->nwarnings);
    cm_sentences_free(r->note, r->nnotes);
    cm_sentences_free(r->skipped, r->nskipped);
    cm_sentences_free(r->difference, r->ndifferences);
    free(r->input_format);
    free(r->output);
    memset(r, 0, sizeof(*r));
}
