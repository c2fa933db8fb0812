/* The table of variables in the report. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <chunkmill/passport.h>

#include "base/number.h"
#include "base/sentences.h"
#include "convert/layout/codec_text.h"
#include "convert/layout/keep.h"
#include "convert/layout/rectilinear.h"
#include "convert/plan/part_cut.h"

/* The readers that do not open V: docs/readers.md. */
static const char *readers_of(const cm_job_var *v, int zarr_format)
{
    if (v->layout.rectilinear)
        return cm_job_rectilinear_readers;
    if (v->source->words != NULL && v->doc.keeps_words)
        return NULL;
    if (v->doc.pass != CM_PASS_NOTHING)
        return cm_job_kept_readers(v, zarr_format);
    if (v->view.as_strings)
        return zarr_format == 3
                   ? "zarr-python, xarray, zarrs, GDAL; not tensorstore"
                   : "zarr-python, xarray, zarrs; not tensorstore, not GDAL, not netCDF-C";
    if (v->view.type.kind == CM_KIND_BYTES)
        return zarr_format == 3 ? "zarr-python, xarray, GDAL; not tensorstore, not zarrs"
                                : "zarr-python, xarray, tensorstore, GDAL; not zarrs";
    return NULL;
}

/* ---- why this plan ---- */

static cm_plan_kind plan_of(const cm_job_var *v)
{
    static const cm_plan_kind plan[] = {[CM_ROUTE_SWEEP] = CM_PLAN_SWEEP,
                                        [CM_ROUTE_COLUMN] = CM_PLAN_COLUMN,
                                        [CM_ROUTE_SPILL] = CM_PLAN_SPILL,
                                        [CM_ROUTE_REREAD] = CM_PLAN_REREAD};
    if (v->stored.as_objects || v->doc.pass != CM_PASS_NOTHING)
        return CM_PLAN_COPY;
    return v->plan.routed ? plan[v->plan.route.kind] : CM_PLAN_SWEEP;
}

/* How the route moves the array. */
static char *route_way(const cm_job_var *v, cm_error *err)
{
    const cm_route *r = &v->plan.route;
    const double each = (double)r->chunk_reads / (double)r->sweep.source_chunks;
    const double reads = (double)r->nelem_read / (double)r->nelem_written;
    char size[32];
    switch (r->kind) {
    case CM_ROUTE_SWEEP:
        return cm_asprintf(err, "one pass that holds %llu target %s decodes every chunk once",
                           (unsigned long long)r->slots, cm_of_count(r->slots, "chunk", "chunks"));
    case CM_ROUTE_COLUMN:
        return cm_asprintf(err,
                           "the cross-section is swept in %llu %s; %.3g %s decoded for "
                           "each that there is",
                           (unsigned long long)r->sweep.total_blocks,
                           cm_of_count(r->sweep.total_blocks, "tile", "tiles"), each,
                           cm_of_mean(each, "chunk is", "chunks are"));
    case CM_ROUTE_SPILL:
        return cm_asprintf(
            err, "%s of the array go through scratch files",
            cm_format_size(r->nelem_spilled * v->source->dtype.nbytes, size, sizeof(size)));
    case CM_ROUTE_REREAD:
        return cm_asprintf(err, "the source is read %.3g %s", reads,
                           cm_of_mean(reads, "time", "times"));
    }
    return cm_strdup("", err);
}

/* The way, and why it was taken where there were others. */
static char *route_reason(const cm_job *job, const cm_job_var *v, cm_error *err)
{
    const cm_route *r = &v->plan.route;
    const unsigned n = job->budget.nthreads;
    char size[32], *way = route_way(v, err), *reason = way;
    if (way == NULL || r->kind == CM_ROUTE_SWEEP || r->least == 0)
        return way;
    if (r->traffic > r->least)
        reason = cm_asprintf(
            err, "%s; expected to be quicker here than to move %s, the fewest bytes", way,
            cm_format_size(r->least * v->source->dtype.nbytes, size, sizeof(size)));
    else
        reason = cm_asprintf(err,
                             "%s; with %u thread%s no other plan in this memory moves fewer "
                             "bytes",
                             way, n, cm_of_count(n, "", "s"));
    free(way);
    return reason;
}

static char *reason_of(const cm_job *job, const cm_job_var *v, cm_error *err)
{
    if (v->stored.as_objects)
        return cm_asprintf(err, "its objects are copied as they are, since %s",
                           v->source->unsupported);
    if (v->doc.pass != CM_PASS_NOTHING)
        return cm_strdup("chunks and codecs stay, so stored bytes pass through", err);
    if (v->view.as_strings)
        return cm_strdup("elements of variable length move chunk by chunk", err);
    return v->plan.routed ? route_reason(job, v, err) : cm_strdup("it has no elements", err);
}

/* ---- one variable ---- */

static int set_texts(const cm_job *job, const cm_job_var *v, cm_transform_variable *out,
                     cm_error *err)
{
    char text[64];
    const cm_variable *s = v->source;
    const char *readers = readers_of(v, job->zarr_format);
    out->name = cm_strdup(v->name, err);
    out->source = cm_strdup(s->name, err);
    out->type = cm_strdup(
        v->stored.as_objects ? "not known" : cm_dtype_name(&v->view.type, text, sizeof(text)), err);
    out->codec = s->words != NULL || v->layout.refer != NULL || v->window.is_part
                     ? cm_codec_text(&v->doc.meta, err)
                     : cm_strdup(cm_codec_choice_text(&v->layout.codec, text, sizeof(text)), err);
    out->access = s->access_reason == NULL
                      ? cm_strdup(s->access, err)
                      : cm_asprintf(err, "%s: %s", s->access, s->access_reason);
    out->plan_reason = reason_of(job, v, err);
    if (!out->name || !out->source || !out->type || !out->codec || !out->access ||
        !out->plan_reason)
        return CM_ENOMEM;
    if (s->words != NULL && (out->codec_before = cm_codec_text(s->words, err)) == NULL)
        return CM_ENOMEM;
    if (readers != NULL && (out->readers = cm_strdup(readers, err)) == NULL)
        return CM_ENOMEM;
    if (s->decoded_from != NULL && (out->decoded_from = cm_strdup(s->decoded_from, err)) == NULL)
        return CM_ENOMEM;
    return CM_OK;
}

static int set_layout(const cm_job_var *v, cm_transform_variable *out, cm_error *err)
{
    const cm_variable *s = v->source;
    const cm_zarr_meta *m = &v->doc.meta;
    const cm_shard_spec *shard = cm_zarr_sharding(m);
    out->rank = v->view.rank;
    out->rectilinear = cm_zarr_meta_is_cut(m);
    out->decoded_nbytes = v->view.type.nbytes;
    for (unsigned j = 0; j < v->view.rank; j++) {
        out->shape[j] = v->view.shape[j];
        out->chunk_before[j] = s->has_source_chunks && !s->is_made ? s->source_chunk[j] : 0;
        out->shard_before[j] = s->is_sharded ? s->source_shard[j] : 0;
        out->chunk[j] = shard != NULL ? shard->chunk[j] : m->chunk[j];
        out->shard[j] = shard != NULL ? m->chunk[j] : 0;
        out->shortest_chunk[j] = m->cuts[j] != NULL ? cm_cuts_shortest(m->cuts[j]) : out->chunk[j];
        out->shortest_chunk_before[j] = s->is_cut && s->words->cuts[j] != NULL
                                            ? cm_cuts_shortest(s->words->cuts[j])
                                            : out->chunk_before[j];
        out->order[j] = v->plan.routed ? v->plan.route.sweep.order[j] : j;
        out->unlimited[j] = s->unlimited[j];
        out->decoded_nbytes *= v->view.shape[j];
        if (m->dim_name[j] != NULL && (out->dim_name[j] = cm_strdup(m->dim_name[j], err)) == NULL)
            return CM_ENOMEM;
    }
    return CM_OK;
}

static void set_plan(const cm_job *job, const cm_job_var *v, cm_transform_variable *out)
{
    size_t itemsize = v->source->dtype.nbytes;
    out->plan = plan_of(v);
    out->passed_through = out->plan == CM_PLAN_COPY;
    out->planned = v->plan.counts;
    out->planned_nbytes = v->plan.counts.element_nbytes_read +
                          v->plan.counts.element_nbytes_written + 2 * v->plan.counts.scratch_nbytes;
    out->bound_nbytes = out->planned_nbytes;
    if (!v->plan.routed)
        return;
    out->memory_nbytes =
        v->plan.route.held_nbytes + job->budget.nthreads * v->move.transfer.worker_nbytes;
    /*
     * Absent chunks need not be read, nor chunks of several lengths as if all were the longest;
     * otherwise, the bound of the geometry.
     */
    bool gaps = v->stored.presence.bit == NULL || cm_job_is_cut(v) ||
                v->stored.presence.npresent < v->stored.presence.nchunks;
    uint64_t bound = v->plan.route.bound * itemsize;
    out->bound_nbytes = gaps && bound > out->planned_nbytes ? out->planned_nbytes : bound;
    out->planned_seconds = v->plan.route.seconds;
    if (v->source->array->chunked && v->plan.route.sweep.source_chunks > 0)
        out->decodes_per_chunk =
            (double)v->plan.route.sweep.total_pieces / (double)v->plan.route.sweep.source_chunks;
}

static void set_counts(const cm_job_var *v, bool written, cm_transform_variable *out)
{
    size_t itemsize = v->source->dtype.nbytes;
    out->nchunks_before = v->stored.presence.nchunks;
    out->source_nbytes = v->source->stored_nbytes;
    if (v->stored.presence.bit != NULL)
        out->missing_before = v->stored.presence.nchunks - v->stored.presence.npresent;
    if (v->stored.as_objects) {
        out->nobjects = written ? v->moved.ncopied : v->plan.counts.chunk_writes;
        out->counted.chunk_reads = out->counted.chunk_writes = v->moved.ncopied;
        out->stored_nbytes = out->source_nbytes = v->moved.copied_nbytes;
        return;
    }
    cm_zarr_written counts = cm_zarr_writer_counts(v->move.writer);
    const cm_grid *grid = cm_zarr_writer_grid(v->move.writer);
    out->nchunks = grid->nchunks;
    out->nobjects = written || v->move.absent ? counts.nobjects
                                              : cm_zarr_writer_outer_grid(v->move.writer)->nchunks;
    out->nskipped = v->move.absent ? grid->nchunks : counts.nskipped;
    if (!written)
        return;
    out->stored_nbytes = counts.nbytes;
    out->counted = (cm_plan_counts){.chunk_reads = v->moved.counts.fetched,
                                    .chunk_decodes = v->moved.counts.decoded,
                                    .chunk_writes = v->moved.counts.delivered,
                                    .element_nbytes_read = v->moved.counts.nelem_read * itemsize,
                                    .element_nbytes_written =
                                        v->moved.counts.nelem_written * v->view.type.nbytes,
                                    .scratch_nbytes = v->moved.counts.spilled};
}

static int describe(const cm_job *job, const cm_job_var *v, bool written,
                    cm_transform_variable *out, cm_error *err)
{
    int rc = set_texts(job, v, out, err);
    if (rc != CM_OK)
        return rc;
    set_plan(job, v, out);
    set_counts(v, written, out);
    return set_layout(v, out, err);
}

int cm_job_report(cm_job *job, bool written, cm_error *err)
{
    cm_transform_report *r = job->report;
    r->variable = cm_calloc(job->nvars > 0 ? job->nvars : 1, sizeof(r->variable[0]), err);
    if (r->variable == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < job->nvars; i++) {
        r->nvariables++;
        int rc = describe(job, &job->var[i], written, &r->variable[i], err);
        if (rc != CM_OK)
            return rc;
        r->decoded_nbytes += job->var[i].share.is_part ? cm_parts_nbytes(&job->var[i])
                                                       : r->variable[i].decoded_nbytes;
    }
    return CM_OK;
}

void cm_transform_variable_release(cm_transform_variable *v)
{
    free(v->name);
    free(v->source);
    free(v->type);
    free(v->codec_before);
    free(v->codec);
    free(v->access);
    free(v->digest);
    free(v->decoded_from);
    free(v->readers);
    free(v->plan_reason);
    for (unsigned j = 0; j < v->rank; j++)
        free(v->dim_name[j]);
    *v = (cm_transform_variable){0};
}

void cm_transform_report_release(cm_transform_report *r)
{
    for (size_t i = 0; i < r->nvariables; i++)
        cm_transform_variable_release(&r->variable[i]);
    free(r->variable);
    cm_census_release(&r->census);
    cm_sentences_free(r->warning, r->nwarnings);
    cm_sentences_free(r->note, r->nnotes);
    cm_sentences_free(r->skipped, r->nskipped);
    cm_sentences_free(r->difference, r->ndifferences);
    free(r->source_format);
    free(r->target);
    free(r->snapshot);
    free(r->statistics);
    cm_passport_free(r->passport);
    free(r->part.missing);
    free(r->append.dimension);
    free(r->replace.dimension);
    memset(r, 0, sizeof(*r));
}
