/*
 * Verifies the values that a join computes: coordinates along a joined dimension, times counted
 * from another date, bounds.  Both sides are decoded, each by its own attributes.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "convert/plan/part_cut.h"
#include "convert/verify/compare.h"
#include "convert/verify/decoding.h"
#include "convert/verify/verify_said.h"
#include "format/multi/multi.h"
#include "model/convert.h"

enum {
    SAMPLE_PARTS = 3,
    ROWS = 4096 /* of one part at once */
};

/* ---- a variable ---- */

typedef struct said_check {
    cm_job *job;
    cm_job_var *var;
    cm_array *array; /* of the store */
    const cm_multi_var *of;
    cm_decoding store;
    cm_compare_buffers *buffers;
    cm_multi_said said;
} said_check;

static int tell(said_check *c, const cm_multi_part *part, uint64_t row, const uint8_t *want,
                const cm_decoding *file, const uint8_t *got, cm_error *err)
{
    char a[48], b[48];
    const cm_multi_spec *spec = cm_multi_spec_of(c->job->source);
    cm_element_text(&file->dtype, want, a, sizeof(a));
    cm_element_text(&c->store.dtype, got, b, sizeof(b));
    return cm_job_differ(c->job, err, "%s: row %" PRIu64 ": %s (%s) of %s became %s", c->var->name,
                         row, a, file->units != NULL ? file->units : "no units",
                         spec->file[part->file].path, b);
}

/* The element WANT of a file is GOT in the store. */
static bool is_same(const said_check *c, const cm_decoding *file, const uint8_t *want,
                    const uint8_t *got)
{
    static const cm_decoding_leeway NONE = {0};
    cm_decoded a, b;
    cm_decoded_read(file, want, &a);
    cm_decoded_read(&c->store, got, &b);
    return cm_decoded_same(file, &a, &c->store, &b, &NONE);
}

/* COUNT rows of the store from ROW on, every STEP-th of the joined array, from JOINED on. */
static int compare_rows(said_check *c, const cm_multi_part *part, uint64_t row, uint64_t count,
                        uint64_t joined, cm_error *err)
{
    const cm_job_var *v = c->var;
    const uint64_t step = v->view.step[0], first = part->first[0] + (joined - part->origin[0]);
    cm_box box = {.rank = v->view.rank};
    memcpy(box.shape, v->view.shape, v->view.rank * sizeof(v->view.shape[0]));
    memcpy(box.start, v->window.at,
           v->view.rank * sizeof(v->window.at[0])); /* where a window of an array begins */
    box.start[0] += row;
    box.shape[0] = count;
    const uint64_t nelem = cm_box_nelem(&box), width = nelem / count;
    int rc = cm_multi_said_read(c->job->source, c->of, part, first, (count - 1) * step + 1,
                                &c->said, err);
    if (rc == CM_OK)
        rc = cm_buf_resize(&c->buffers->got, (size_t)nelem * v->view.type.nbytes, err);
    if (rc == CM_OK)
        rc = cm_array_read(c->array, c->buffers->ctx, &box, c->buffers->got.data, err);
    cm_decoding file;
    const cm_decoding_of said = {.dtype = c->said.dtype,
                                 .attrs = c->said.attrs,
                                 .parent = c->said.parent,
                                 .fill = c->said.has_fill ? c->said.fill : NULL};
    if (rc == CM_OK)
        rc = cm_decoding_read(&said, &file, err);
    if (rc != CM_OK)
        return rc;
    for (uint64_t i = 0; i < nelem; i++) {
        uint64_t k = c->said.repeats ? i % width : i / width * step * width + i % width;
        const uint8_t *got = c->buffers->got.data + i * v->view.type.nbytes;
        const uint8_t *want = c->said.values.data + k * c->said.dtype.nbytes;
        if (k < c->said.nelem && is_same(c, &file, want, got))
            continue;
        return tell(c, part, v->window.at[0] + row + i / width, want, &file, got, err);
    }
    return CM_OK;
}

/* Compares the rows of PART that are among ROWS of the store. */
static int compare_part(said_check *c, const cm_multi_part *part, cm_range rows, cm_error *err)
{
    const cm_job_var *v = c->var;
    const uint64_t start = v->view.start[0], step = v->view.step[0];
    const uint64_t from = part->origin[0], to = part->origin[0] + part->count[0];
    uint64_t row = cm_max_u64(from <= start ? 0 : (from - start + step - 1) / step, rows.lo);
    int rc = CM_OK;
    while (rc == CM_OK && row < rows.hi && start + row * step < to) {
        uint64_t most = (to - 1 - (start + row * step)) / step + 1;
        most = cm_min_u64(cm_min_u64(most, rows.hi - row), ROWS);
        rc = compare_rows(c, part, row, most, start + row * step, err);
        row += most;
    }
    return rc;
}

/* Only the first dimension may be a part of the joined one: the others are read whole. */
static bool can_compare(const cm_job_var *v, const cm_multi_var *of)
{
    for (unsigned j = 1; j < v->view.rank; j++)
        if (v->view.start[j] != 0 || v->view.step[j] != 1 || v->view.shape[j] != of->shape[j])
            return false;
    return v->view.rank > 0 && !v->view.converts && !v->view.as_strings && !v->stored.as_objects &&
           cm_dtype_is_number(&of->dtype);
}

/*
 * In all whole rows that this process makes: of a store in parts others make the rest, and may not
 * have begun.
 */
static int compare_own(said_check *c, const cm_multi_part *part, cm_error *err)
{
    cm_box area[CM_PART_MAX_BOXES];
    const cm_job_var *v = c->var;
    const unsigned n = cm_parts_areas(v, area);
    int rc = CM_OK;
    for (unsigned i = 0; i < n && rc == CM_OK; i++) {
        bool whole = true;
        for (unsigned j = 1; j < v->view.rank; j++)
            whole = whole && area[i].shape[j] == v->view.shape[j];
        if (whole)
            rc = compare_part(
                c, part, (cm_range){area[i].start[0], area[i].start[0] + area[i].shape[0]}, err);
    }
    return rc;
}

/* The name of VAR in the store; of one that this run does not write, its source's. */
static const char *name_of(const cm_job *job, const cm_variable *source)
{
    for (size_t i = 0; i < job->nvars; i++)
        if (job->var[i].source == source)
            return job->var[i].name;
    return source->name;
}

/*
 * The attributes that the store has for OF, or, PARENT, for the coordinate whose bounds it is.  The
 * tree of a part that adds to a store has what it writes alone.
 */
static const cm_json *attrs_in_store(const cm_zarr_tree *tree, const cm_job *job,
                                     const cm_multi_var *of, bool parent)
{
    for (size_t i = 0; i < job->source->nvars; i++) {
        const cm_multi_var *var = cm_multi_var_of(&job->source->var[i]);
        const cm_zarr_node *node = cm_zarr_find(tree, name_of(job, &job->source->var[i]));
        if (var == NULL || (node == NULL && !job->terms.in_part))
            continue;
        const char *bounds = cm_json_text(cm_json_member(var->attrs, "bounds"), NULL);
        if (bounds == NULL)
            bounds = cm_json_text(cm_json_member(var->attrs, "climatology"), NULL);
        if (parent ? bounds != NULL && strcmp(bounds, of->name) == 0 : var == of)
            return node != NULL ? node->meta.attrs : var->attrs;
    }
    return NULL;
}

int cm_job_verify_said(cm_job *job, cm_job_var *v, const cm_zarr_tree *tree, cm_array *array,
                       bool full, cm_error *err)
{
    cm_compare_buffers buffers = {0};
    const cm_multi_var *of = cm_multi_var_of(v->source);
    said_check c = {.job = job, .var = v, .array = array, .of = of, .buffers = &buffers};
    if (of == NULL || of->values == NULL || of->nsaid == 0 || !can_compare(v, of))
        return CM_OK;
    const cm_decoding_of stored = {.dtype = v->view.type,
                                   .attrs = attrs_in_store(tree, job, of, false),
                                   .parent = attrs_in_store(tree, job, of, true),
                                   .fill = of->has_fill_value ? of->fill_value : NULL};
    int rc = cm_decoding_read(&stored, &c.store, err);
    if (rc == CM_OK && (buffers.ctx = cm_codec_ctx_create(err)) == NULL)
        rc = CM_ENOMEM;
    const size_t n = full || of->nsaid < SAMPLE_PARTS ? of->nsaid : SAMPLE_PARTS;
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        size_t at = n == of->nsaid ? i : i * (of->nsaid - 1) / (n - 1);
        rc = cm_monitor_canceled(job->options->monitor)
                 ? cm_fail(err, CM_ECANCELED, "stopped by request")
                 : compare_own(&c, &of->said[at], err);
    }
    cm_multi_said_release(&c.said);
    cm_compare_buffers_release(&buffers);
    return rc;
}
