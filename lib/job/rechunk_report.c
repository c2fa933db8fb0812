/* The report of a rechunking: sentences collected on the way, and the table of arrays. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "job/rechunk.h"
#include "job/sentences.h"

CM_DEFINE_SENTENCE(cm_re_warn, cm_re_job, warning, nwarnings)
CM_DEFINE_SENTENCE(cm_re_note, cm_re_job, note, nnotes)
CM_DEFINE_SENTENCE(cm_re_differ, cm_re_job, difference, ndifferences)

/* ---- codecs ---- */

static void spec_text(const cm_codec_spec *c, char *buf, size_t size)
{
    static const char *const shuffles[] = {"noshuffle", "shuffle", "bitshuffle"};
    switch (c->id) {
    case CM_CODEC_BLOSC:
        snprintf(buf, size, "blosc:%s:%d:%s", c->blosc.cname, c->level,
                 shuffles[c->blosc.shuffle % 3]);
        break;
    case CM_CODEC_ZSTD:
    case CM_CODEC_GZIP:
    case CM_CODEC_ZLIB:
    case CM_CODEC_BZ2:
        snprintf(buf, size, "%s:%d", cm_codec_name(c->id), c->level);
        break;
    default:
        snprintf(buf, size, "%s", cm_codec_name(c->id));
    }
}

char *cm_re_codec_text(const cm_zarr_meta *m, cm_error *err)
{
    const cm_shard_spec *shard = cm_re_sharding(m);
    const cm_codec_spec *spec = shard != NULL ? shard->codecs : m->codecs;
    size_t n = shard != NULL ? shard->ncodecs : m->ncodecs;
    char one[64];
    char *text = cm_strdup("", err);
    for (size_t i = 0; text != NULL && i < n; i++) {
        bool plain = spec[i].id == CM_CODEC_VLEN_UTF8 || spec[i].id == CM_CODEC_VLEN_BYTES ||
                     (spec[i].id == CM_CODEC_BYTES && !spec[i].big_endian);
        if (plain)
            continue;
        spec_text(&spec[i], one, sizeof(one));
        if (spec[i].id == CM_CODEC_BYTES)
            snprintf(one, sizeof(one), "bytes:big");
        char *longer = cm_asprintf(err, "%s%s%s", text, *text ? "+" : "", one);
        free(text);
        text = longer;
    }
    if (text != NULL && *text == '\0') {
        free(text);
        text = cm_strdup(m->verbatim ? "not known" : "none", err);
    }
    return text;
}

/* ---- why this plan ---- */

static cm_rechunk_plan plan_of(const cm_re_array *a)
{
    static const cm_rechunk_plan plan[] = {[CM_ROUTE_SWEEP] = CM_RECHUNK_SWEEP,
                                           [CM_ROUTE_COLUMN] = CM_RECHUNK_COLUMN,
                                           [CM_ROUTE_SPILL] = CM_RECHUNK_SPILL,
                                           [CM_ROUTE_REREAD] = CM_RECHUNK_REREAD};
    if (a->how == CM_RE_OBJECTS || a->passes)
        return CM_RECHUNK_COPY;
    return a->routed ? plan[a->route.kind] : CM_RECHUNK_SWEEP;
}

static char *reason_of(const cm_re_array *a, cm_error *err)
{
    const cm_route *r = &a->route;
    char size[32];
    size_t itemsize = a->meta.dtype.nbytes;
    if (a->how == CM_RE_OBJECTS)
        return cm_asprintf(err, "its objects are copied as they are, since %s",
                           a->node->unsupported != NULL ? a->node->unsupported
                                                        : "it is not understood");
    if (a->passes)
        return cm_strdup("chunks and codecs stay, so stored bytes pass through", err);
    if (a->how == CM_RE_STRINGS)
        return cm_strdup("elements of variable length move chunk by chunk", err);
    if (!a->routed)
        return cm_strdup("it has no elements", err);
    switch (r->kind) {
    case CM_ROUTE_SWEEP:
        return cm_asprintf(err, "one pass that holds %llu target chunks decodes every chunk once",
                           (unsigned long long)r->slots);
    case CM_ROUTE_COLUMN:
        return cm_asprintf(err,
                           "the cross-section is swept in %llu tiles; %.3g chunks are decoded for "
                           "each that there is",
                           (unsigned long long)r->sweep.total_blocks,
                           (double)r->chunk_reads / (double)r->sweep.source_chunks);
    case CM_ROUTE_SPILL:
        return cm_asprintf(
            err, "%s of the array go through scratch files, which is less than reading again",
            cm_format_size(r->nelem_spilled * itemsize, size, sizeof(size)));
    case CM_ROUTE_REREAD:
        return cm_asprintf(err, "reading %.3g times costs less than scratch files",
                           (double)r->nelem_read / (double)r->nelem_written);
    }
    return cm_strdup("", err);
}

/* ---- one array ---- */

static int set_layout(const cm_re_array *a, cm_rechunk_array *out, cm_error *err)
{
    const cm_zarr_meta *was = &a->node->meta, *is = &a->meta;
    const cm_shard_spec *shard_was = cm_re_sharding(was), *shard_is = cm_re_sharding(is);
    out->rank = is->rank;
    out->decoded_nbytes = is->dtype.nbytes;
    for (unsigned j = 0; j < is->rank; j++) {
        out->shape[j] = is->shape[j];
        out->chunk_before[j] = shard_was != NULL ? shard_was->chunk[j] : was->chunk[j];
        out->chunk_after[j] = shard_is != NULL ? shard_is->chunk[j] : is->chunk[j];
        out->shard_before[j] = shard_was != NULL ? was->chunk[j] : 0;
        out->shard_after[j] = shard_is != NULL ? is->chunk[j] : 0;
        out->order[j] = a->routed ? a->route.sweep.order[j] : j;
        out->decoded_nbytes *= is->shape[j];
        if (is->dim_name[j] != NULL && (out->dim_name[j] = cm_strdup(is->dim_name[j], err)) == NULL)
            return CM_ENOMEM;
    }
    return CM_OK;
}

static void set_plan(const cm_re_job *job, const cm_re_array *a, cm_rechunk_array *out)
{
    size_t itemsize = a->meta.dtype.nbytes;
    out->plan = plan_of(a);
    out->planned = a->planned;
    out->planned_nbytes = a->planned.element_nbytes_read + a->planned.element_nbytes_written +
                          2 * a->planned.scratch_nbytes;
    out->bound_nbytes = out->planned_nbytes;
    if (!a->routed)
        return;
    out->memory_nbytes = a->route.held_nbytes + job->nthreads * a->transfer.worker_nbytes;
    /* What is absent need not be read; without gaps, the bound of the geometry. */
    bool gaps = a->presence.bit == NULL || a->presence.npresent < a->presence.nchunks;
    uint64_t bound = a->route.bound * itemsize;
    out->bound_nbytes = gaps && bound > out->planned_nbytes ? out->planned_nbytes : bound;
    out->planned_seconds = a->route.seconds;
}

static void set_counts(const cm_re_array *a, bool written, cm_rechunk_array *out)
{
    size_t itemsize = a->meta.dtype.nbytes;
    out->nchunks_before = a->presence.nchunks;
    out->stored_before = a->presence.nbytes;
    if (a->presence.bit != NULL)
        out->missing_before = a->presence.nchunks - a->presence.npresent;
    if (a->how == CM_RE_OBJECTS) {
        out->objects_after = a->ncopied;
        out->stored_after = a->copied_nbytes;
        out->stored_before = a->copied_nbytes;
        return;
    }
    cm_zarr_written counts = cm_zarr_writer_counts(a->writer);
    out->nchunks_after = cm_zarr_writer_grid(a->writer)->nchunks;
    out->objects_after = written ? counts.nobjects : cm_zarr_writer_outer_grid(a->writer)->nchunks;
    out->nskipped = counts.nskipped;
    if (!written)
        return;
    out->stored_after = counts.nbytes;
    out->counted = (cm_rechunk_counts){.chunk_reads = a->counts.fetched,
                                       .chunk_decodes = a->counts.decoded,
                                       .chunk_writes = a->counts.delivered,
                                       .element_nbytes_read = a->counts.nelem_read * itemsize,
                                       .element_nbytes_written = a->counts.nelem_written * itemsize,
                                       .scratch_nbytes = a->counts.spilled};
}

static int describe(const cm_re_job *job, const cm_re_array *a, bool written, cm_rechunk_array *out,
                    cm_error *err)
{
    char text[64];
    out->name = cm_strdup(a->node->path, err);
    out->type = cm_strdup(
        a->how == CM_RE_OBJECTS ? "not known" : cm_dtype_name(&a->meta.dtype, text, sizeof(text)),
        err);
    out->codec_before = cm_re_codec_text(&a->node->meta, err);
    out->codec_after = cm_re_codec_text(&a->meta, err);
    out->plan_reason = reason_of(a, err);
    if (!out->name || !out->type || !out->codec_before || !out->codec_after || !out->plan_reason)
        return CM_ENOMEM;
    set_plan(job, a, out);
    set_counts(a, written, out);
    return set_layout(a, out, err);
}

int cm_re_report(cm_re_job *job, bool written, cm_error *err)
{
    cm_rechunk_report *r = job->report;
    r->array = cm_calloc(job->narrays > 0 ? job->narrays : 1, sizeof(r->array[0]), err);
    if (r->array == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < job->narrays; i++) {
        r->narrays++;
        int rc = describe(job, &job->array[i], written, &r->array[i], err);
        if (rc != CM_OK)
            return rc;
        r->decoded_nbytes += r->array[i].decoded_nbytes;
    }
    return CM_OK;
}

void cm_rechunk_report_release(cm_rechunk_report *r)
{
    for (size_t i = 0; i < r->narrays; i++) {
        cm_rechunk_array *a = &r->array[i];
        free(a->name);
        free(a->type);
        free(a->codec_before);
        free(a->codec_after);
        free(a->plan_reason);
        free(a->digest);
        for (unsigned j = 0; j < a->rank; j++)
            free(a->dim_name[j]);
    }
    free(r->array);
    free(r->target);
    cm_sentences_free(r->warning, r->nwarnings);
    cm_sentences_free(r->note, r->nnotes);
    cm_sentences_free(r->difference, r->ndifferences);
    memset(r, 0, sizeof(*r));
}
