#include "convert/verify/witness.h"
#include "base/number.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "convert/plan/part_cut.h"
#include "convert/plan/verify_memory.h"
#include "convert/verify/witness_impl.h"

enum {
    MAX_TOLD = 4,           /* differences of one variable that lengths and fields make */
    KEPT_NBYTES = 256 << 10 /* of a field without a joined dimension, for the next file */
};

/* ---- the variables ---- */

static const cm_job_var *job_var_of(const cm_job *job, size_t index)
{
    for (size_t i = 0; i < job->nvars; i++)
        if (cm_job_is_own(&job->var[i]) && job->var[i].source->index == index)
            return &job->var[i];
    return NULL;
}

/* A conversion whose results follow from the numbers alone. */
static bool is_cast(const cm_job_var *v)
{
    const cm_conversion *c = &v->view.conversion;
    return v->view.converts && c->keepbits == 0 && !c->saturate &&
           (c->dst.kind != CM_KIND_FLOAT || c->dst.nbytes >= 4);
}

/* The elements that the store has follow from those of the joined dataset. */
static bool is_comparable(const cm_witness_var *v)
{
    const cm_job_var *job = v->job;
    const cm_zarr_meta *meta = v->node != NULL ? &v->node->meta : NULL;
    if (meta == NULL || meta->is_group || meta->rank != v->of->rank ||
        v->node->unsupported != NULL || meta->dtype.nbytes > 16 ||
        !cm_dtype_equal(&meta->dtype, job != NULL ? &job->view.type : &v->of->dtype))
        return false;
    if (job != NULL &&
        (job->stored.as_objects || job->view.join || (job->view.converts && !is_cast(job))))
        return false;
    return cm_dtype_is_vlen(&meta->dtype) == cm_dtype_is_vlen(&v->of->dtype) &&
           cm_dtype_is_number(&meta->dtype) == cm_dtype_is_number(&v->of->dtype);
}

static int make_var(cm_witnesses *w, size_t i, cm_error *err)
{
    const cm_variable *source = &w->job->source->var[i];
    cm_witness_var *v = &w->var[i];
    *v = (cm_witness_var){.of = &w->spec->var[i], .job = job_var_of(w->job, i)};
    v->has = cm_calloc(w->spec->nfiles / 64 + 1, sizeof(v->has[0]), err);
    if (v->has == NULL)
        return CM_ENOMEM;
    /* One that this run does not write is in a store that grows by its own name. */
    if (v->job != NULL || (w->job->terms.grows && !source->is_taken))
        v->node = cm_zarr_find(w->tree, v->job != NULL ? v->job->name : v->of->name);
    v->is_known = is_comparable(v);
    v->leeway.tolerance = v->of->is_coordinate ? w->spec->tolerance : v->of->tolerance;
    v->leeway.is_cast = v->job != NULL && v->job->view.converts;
    int rc = v->is_known ? cm_witness_decoding_in(w, v, &v->store, err) : CM_OK;
    /* Of an instant more is lost than its number says. */
    v->is_known = v->is_known && !(v->store.is_time && v->leeway.is_cast);
    return rc;
}

static void find_joined(const cm_witnesses *w, cm_witness_var *v)
{
    for (unsigned j = 0; j < v->of->rank; j++)
        for (unsigned k = 0; k < w->ndims; k++) {
            if (strcmp(w->dim[k].name, v->of->dim_name[j]) != 0 || v->njoined == CM_MULTI_MAX_AXES)
                continue;
            v->axis[v->njoined] = j;
            v->dimension[v->njoined++] = k;
        }
}

cm_witness_var *cm_witness_var_named(const cm_witnesses *w, const char *name, size_t *next)
{
    for (size_t n = 0; n < w->spec->nvars; n++) {
        const size_t i = (*next + n) % w->spec->nvars;
        if (strcmp(w->var[i].of->name, name) != 0)
            continue;
        *next = i + 1;
        return &w->var[i];
    }
    return NULL;
}

/* ---- what a file says of itself ---- */

static bool may_tell(cm_witness_var *v)
{
    return v->told++ < MAX_TOLD;
}

static int check_lengths(cm_witnesses *w, cm_witness_var *v, const cm_witness_view *view,
                         bool *alike, cm_error *err)
{
    const cm_multi_var *of = v->of;
    int rc = CM_OK;
    *alike = true;
    for (unsigned j = 0; j < of->rank; j++) {
        bool joined = false;
        for (unsigned i = 0; i < v->njoined; i++)
            joined = joined || v->axis[i] == j;
        if (joined || view->dim[j] < 0)
            continue;
        const uint64_t n = view->v->shape[view->dim[j]];
        /* Texts may be shorter. */
        if (n == of->shape[j] || (of->is_char && j + 1 == of->rank && n < of->shape[j]))
            continue;
        *alike = false;
        if (rc == CM_OK && may_tell(v))
            rc = cm_job_differ(
                w->job, err, "%s: %s has %" PRIu64 " %s along %s, and the store %" PRIu64, of->name,
                w->spec->file[view->file].path, n, cm_of_count(n, "element", "elements"),
                of->dim_name[j], of->shape[j]);
    }
    return rc;
}

static int check_meaning(cm_witnesses *w, cm_witness_var *v, const cm_witness_view *view,
                         cm_error *err)
{
    const char *clash = cm_decoding_clash(&view->meaning, &v->store);
    return clash != NULL && may_tell(v) ? cm_job_differ(w->job, err, "%s: %s: %s", v->of->name,
                                                        w->spec->file[view->file].path, clash)
                                        : CM_OK;
}

/* ---- the store by itself ---- */

static size_t group_length(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash != NULL ? (size_t)(slash - name) : 0;
}

static bool same_group(const cm_multi_var *a, const cm_multi_var *b)
{
    const size_t n = group_length(a->name);
    return n == group_length(b->name) && strncmp(a->name, b->name, n) == 0;
}

/* Of texts the same name may have several lengths. */
static bool is_length(const cm_multi_var *v, unsigned j)
{
    return v->is_char && j + 1 == v->rank;
}

/* The first variable of V's group that has its dimension J, which the store gives a length. */
static const cm_witness_var *first_with(const cm_witnesses *w, const cm_witness_var *v, unsigned j,
                                        unsigned *axis)
{
    for (const cm_witness_var *u = w->var; u < v; u++)
        for (unsigned k = 0; u->is_known && same_group(u->of, v->of) && k < u->of->rank; k++) {
            *axis = k;
            if (!is_length(u->of, k) && strcmp(u->of->dim_name[k], v->of->dim_name[j]) == 0)
                return u;
        }
    return NULL;
}

/* No reader opens a store in which a dimension has two lengths. */
static int check_store(cm_witnesses *w, cm_error *err)
{
    int rc = CM_OK;
    for (cm_witness_var *v = w->var; v < w->var + w->spec->nvars; v++)
        for (unsigned j = 0; rc == CM_OK && v->is_known && j < v->of->rank; j++) {
            unsigned k = 0;
            const cm_witness_var *u = is_length(v->of, j) ? NULL : first_with(w, v, j, &k);
            const uint64_t n = v->node->meta.shape[j];
            if (u != NULL && u->node->meta.shape[k] != n && may_tell(v))
                rc = cm_job_differ(w->job, err,
                                   "%s: has %" PRIu64 " %s along %s, and %s has %" PRIu64,
                                   v->of->name, n, cm_of_count(n, "element", "elements"),
                                   v->of->dim_name[j], u->of->name, u->node->meta.shape[k]);
        }
    return rc;
}

/* ---- fields without a joined dimension ---- */

static int open_array(const cm_witnesses *w, cm_witness_var *v, cm_error *err)
{
    return v->array != NULL ? CM_OK : cm_zarr_array_open(w->tree, v->node, 0, &v->array, err);
}

/* Elements BOX of the store; kept for the next file where they are all, and few. */
static int read_store(cm_witnesses *w, cm_witness_var *v, const cm_box *box, bool whole,
                      cm_compare_buffers *b, const uint8_t **out, cm_error *err)
{
    const size_t nbytes = (size_t)cm_box_nelem(box) * v->store.dtype.nbytes;
    const bool keep = whole && nbytes <= KEPT_NBYTES;
    cm_buf *room = keep ? &v->kept : &b->got;
    *out = v->kept.data;
    if (keep && v->kept.nbytes == nbytes && nbytes > 0)
        return CM_OK;
    int rc = open_array(w, v, err);
    if (rc == CM_OK && cm_witness_is_text(v))
        return cm_array_read_strings(v->array, box, &b->got_text, err);
    if (rc == CM_OK)
        rc = cm_buf_resize(room, nbytes, err);
    if (rc == CM_OK && nbytes > 0)
        rc = cm_array_read(v->array, b->ctx, box, room->data, err);
    if (rc != CM_OK && keep)
        cm_buf_release(room);
    *out = room->data;
    return rc;
}

static int tell_field(cm_witnesses *w, cm_witness_var *v, const cm_witness_verdict *verdict,
                      cm_error *err)
{
    char text[CM_MAX_RANK * 21], got[64];
    uint64_t at[CM_MAX_RANK], rest = verdict->first;
    if (!verdict->found || !may_tell(v))
        return CM_OK;
    for (unsigned j = verdict->box->rank; j-- > 0;) {
        at[j] = verdict->box->start[j] + rest % verdict->box->shape[j];
        rest /= verdict->box->shape[j];
    }
    (void)cm_witness_got(v, verdict, verdict->first, got, sizeof(got));
    return cm_job_differ(w->job, err, "%s: element %s: %s became %s, and comes from %s",
                         v->of->name, cm_coord_text(verdict->box->rank, at, text, sizeof(text)),
                         verdict->want, got, w->spec->file[verdict->file].path);
}

static int compare_field_box(cm_witnesses *w, cm_witness_var *v, const cm_witness_view *view,
                             const cm_box *box, bool whole, cm_compare_buffers *b, cm_error *err)
{
    const uint64_t nelem = cm_box_nelem(box);
    cm_witness_verdict verdict = {
        .box = box, .raw = &b->dense, .raw_text = &b->want_text, .got_text = &b->got_text};
    int rc = read_store(w, v, box, whole, b, &verdict.got, err);
    /* The comparison of boxes reports a store that cannot be read. */
    if (rc == CM_EFORMAT || rc == CM_EIO)
        return CM_OK;
    if (rc == CM_OK)
        rc = cm_buf_resize(&b->want, (size_t)nelem, err);
    if (rc != CM_OK)
        return rc;
    memset(b->want.data, CM_MARK_NONE, (size_t)nelem);
    verdict.mark = b->want.data;
    rc = cm_witness_judge(v, view, NULL, box, &verdict, err);
    return rc == CM_OK ? tell_field(w, v, &verdict, err) : rc;
}

/* AREA in slabs along its first dimensions, each of which takes a share at most. */
static int compare_field_area(cm_witnesses *w, cm_witness_var *v, const cm_witness_view *view,
                              const cm_box *area, cm_compare_buffers *b, cm_error *err)
{
    cm_box box = *area;
    const double size = cm_witness_is_text(v)
                            ? 2.0 * CM_STRING_ESTIMATE
                            : 2.0 * v->store.dtype.nbytes + view->meaning.dtype.nbytes + 1;
    bool whole = true;
    for (unsigned j = 0; j < box.rank; j++)
        whole = whole && box.start[j] == 0 && box.shape[j] == v->node->meta.shape[j];
    for (unsigned j = 0; j < box.rank; j++)
        while (box.shape[j] > 1 && (double)cm_box_nelem(&box) * size > w->share) {
            box.shape[j] = (box.shape[j] + 1) / 2;
            whole = false;
        }
    cm_grid grid;
    int rc = cm_grid_init(&grid, area->rank, area->shape, box.shape, err);
    for (uint64_t i = 0; rc == CM_OK && i < grid.nchunks; i++) {
        uint64_t coord[CM_MAX_RANK];
        cm_grid_coord(&grid, i, coord);
        cm_grid_box(&grid, coord, &box);
        for (unsigned j = 0; j < box.rank; j++)
            box.start[j] += area->start[j];
        rc = compare_field_box(w, v, view, &box, whole, b, err);
    }
    return rc;
}

/* All that the store has of V, or this part's share: of a variable that it does not make, none. */
static unsigned areas_of(const cm_witnesses *w, const cm_witness_var *v,
                         cm_box area[CM_PART_MAX_BOXES])
{
    if (w->job->terms.in_part)
        return v->job != NULL ? cm_parts_areas(v->job, area) : 0;
    area[0] = (cm_box){.rank = v->of->rank};
    memcpy(area[0].shape, v->node->meta.shape, sizeof(area[0].shape));
    return 1;
}

static int compare_field(cm_witnesses *w, cm_witness_var *v, const cm_witness_view *view,
                         cm_compare_buffers *b, cm_error *err)
{
    cm_box area[CM_PART_MAX_BOXES];
    const unsigned n = areas_of(w, v, area);
    /* The fields of a store that grows are what they are compared with. */
    if (w->spec->file[view->file].open != NULL || (v->of->first_static && v->nfiles > 1))
        return CM_OK;
    int rc = CM_OK;
    for (unsigned i = 0; rc == CM_OK && i < n; i++)
        if (cm_box_nelem(&area[i]) > 0)
            rc = compare_field_area(w, v, view, &area[i], b, err);
    return rc;
}

/* ---- the files ---- */

static bool has_all_dims(const cm_witness_var *v, const cm_witness_view *view)
{
    for (unsigned j = 0; j < v->of->rank; j++)
        if (view->dim[j] < 0)
            return false;
    return true;
}

static int look_at_var(cm_witnesses *w, cm_witness_var *v, cm_variable *in, cm_dataset *ds,
                       uint32_t file, cm_compare_buffers *b, cm_error *err)
{
    cm_witness_view view;
    bool alike;
    if (!v->is_known || in->unsupported != NULL ||
        cm_dtype_is_vlen(&in->dtype) != cm_witness_is_text(v))
        return CM_OK;
    const cm_witness_match match = cm_witness_view_make(w, v, in, &view);
    if (match == CM_WITNESS_HAS_MORE)
        return may_tell(v)
                   ? cm_job_differ(w->job, err, "%s: %s has dimensions that the store lacks",
                                   v->of->name, w->spec->file[file].path)
                   : CM_OK;
    if (match == CM_WITNESS_UNKNOWN) {
        v->is_known = false;
        return CM_OK;
    }
    view.ds = ds;
    view.file = file;
    int rc = cm_witness_decoding_of(ds, in, &view.meaning, err);
    if (rc == CM_OK && w->spec->file[file].open != NULL)
        rc = cm_dataset_prepare(ds, in, err);
    if (rc == CM_OK)
        rc = check_lengths(w, v, &view, &alike, err);
    if (rc == CM_OK)
        rc = check_meaning(w, v, &view, err);
    if (rc != CM_OK || !alike)
        return rc;
    v->has[file / 64] |= UINT64_C(1) << file % 64;
    v->nfiles += v->njoined > 0 || has_all_dims(v, &view);
    return v->njoined == 0 ? compare_field(w, v, &view, b, err) : CM_OK;
}

/* Whether FILE gives something to BOX of JOB, which is V, along its first joined dimension. */
static bool lies_in(const cm_witnesses *w, const cm_witness_var *v, const cm_job_var *job,
                    uint32_t file, const cm_box *box)
{
    const cm_witness_dim *d = &w->dim[v->dimension[0]];
    const uint64_t start = box->start[v->axis[0]] + job->window.at[v->axis[0]];
    const uint64_t end = start + box->shape[v->axis[0]];
    for (size_t i = d->begin[file]; i < d->begin[file + 1]; i++)
        if (d->run.item[i].position < end && start < d->run.item[i].position + d->run.item[i].count)
            return true;
    return false;
}

/* A part checks the files that it takes elements from, and all files for fields that must agree. */
static bool is_asked(const cm_witnesses *w, uint32_t file)
{
    cm_box area[CM_PART_MAX_BOXES];
    if (!w->job->terms.in_part)
        return true;
    for (size_t i = 0; i < w->job->nvars; i++) {
        const cm_job_var *job = &w->job->var[i];
        const cm_witness_var *v = cm_job_is_own(job) ? &w->var[job->source->index] : NULL;
        const unsigned n = v != NULL && v->is_known ? cm_parts_areas(job, area) : 0;
        for (unsigned k = 0; k < n; k++)
            if (v->njoined == 0 || lies_in(w, v, job, file, &area[k]))
                return true;
    }
    return false;
}

static int look_at_file(cm_witnesses *w, uint32_t file, cm_compare_buffers *b, cm_error *err)
{
    cm_dataset *ds;
    size_t next = 0;
    char buf[512];
    int rc = w->job->terms.in_part ? cm_witness_place(w, file, NULL, err) : CM_OK;
    if (rc != CM_OK || !is_asked(w, file))
        return rc;
    rc = cm_multi_file_open(w->job->source, file, &ds, err);
    if (rc != CM_OK)
        return rc;
    if (!w->job->terms.in_part)
        rc = cm_witness_place(w, file, ds, err);
    for (size_t i = 0; rc == CM_OK && i < ds->nvars; i++) {
        const char *name = cm_witness_name(w, ds->var[i].name, buf, sizeof(buf));
        cm_witness_var *v = cm_witness_var_named(w, name, &next);
        rc = v != NULL ? look_at_var(w, v, &ds->var[i], ds, file, b, err) : CM_OK;
    }
    if (rc != CM_OK)
        cm_error_place(err, ds->path);
    cm_multi_file_close(w->job->source, file);
    return rc;
}

static int look_at_files(cm_witnesses *w, cm_error *err)
{
    cm_compare_buffers b = {0};
    int rc = (b.ctx = cm_codec_ctx_create(err)) == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < w->spec->nfiles; i++) {
        (void)cm_multi_file_at(w->spec, i);
        rc = cm_monitor_canceled(w->job->options->monitor)
                 ? cm_fail(err, CM_ECANCELED, "stopped by request")
                 : look_at_file(w, (uint32_t)i, &b, err);
    }
    cm_compare_buffers_release(&b);
    for (size_t i = 0; i < w->spec->nvars; i++) {
        cm_array_free(w->var[i].array);
        cm_buf_release(&w->var[i].kept);
        w->var[i].array = NULL;
    }
    return rc;
}

int cm_witnesses_open(cm_job *job, const cm_zarr_tree *tree, double share, cm_witnesses **out,
                      cm_error *err)
{
    const cm_multi_spec *spec = cm_multi_spec_of(job->source);
    *out = NULL;
    if (spec == NULL || job->from.grown != NULL || spec->nvars == 0)
        return CM_OK;
    cm_witnesses *w = cm_calloc(1, sizeof(*w), err);
    if (w == NULL)
        return CM_ENOMEM;
    *w = (cm_witnesses){.job = job, .spec = spec, .tree = tree, .share = share};
    int rc = (w->var = cm_calloc(spec->nvars, sizeof(w->var[0]), err)) == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < spec->nvars; i++)
        rc = make_var(w, i, err);
    if (rc == CM_OK)
        rc = cm_witness_dims_make(w, err);
    for (size_t i = 0; rc == CM_OK && i < spec->nvars; i++)
        find_joined(w, &w->var[i]);
    if (rc == CM_OK)
        rc = check_store(w, err);
    if (rc == CM_OK)
        rc = look_at_files(w, err);
    if (rc == CM_OK)
        rc = cm_witness_places_sort(w, err);
    if (rc != CM_OK) {
        cm_witnesses_free(w);
        return rc;
    }
    *out = w;
    return CM_OK;
}

void cm_witnesses_free(cm_witnesses *w)
{
    if (w == NULL)
        return;
    for (size_t i = 0; w->var != NULL && i < w->spec->nvars; i++) {
        free(w->var[i].has);
        cm_array_free(w->var[i].array);
        cm_buf_release(&w->var[i].kept);
    }
    cm_witness_dims_release(w);
    free(w->var);
    free(w);
}
