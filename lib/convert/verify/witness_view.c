/* One variable of one file beside that of the store. */
#include <stdio.h>
#include <string.h>

#include "convert/verify/witness_impl.h"
#include "format/zarr/dataset.h"
#include "model/copy.h"

const char *cm_witness_name(const cm_witnesses *w, const char *name, char *buf, size_t size)
{
    return w->spec->known_as == NULL ? name : w->spec->known_as(w->spec->context, name, buf, size);
}

/* ---- meanings ---- */

static bool bounds_name(const cm_json *attrs, const char *name)
{
    const char *bounds = cm_json_text(cm_json_member(attrs, "bounds"), NULL);
    const char *climatology = cm_json_text(cm_json_member(attrs, "climatology"), NULL);
    return (bounds != NULL && strcmp(bounds, name) == 0) ||
           (climatology != NULL && strcmp(climatology, name) == 0);
}

int cm_witness_decoding_of(const cm_dataset *ds, const cm_variable *v, cm_decoding *out,
                           cm_error *err)
{
    cm_decoding_of of = {
        .dtype = v->dtype, .attrs = v->attrs, .fill = v->has_fill_value ? v->fill_value : NULL};
    for (size_t i = 0; v->rank > 0 && !cm_json_has(v->attrs, "units") && i < ds->nvars; i++)
        if (bounds_name(ds->var[i].attrs, v->name))
            of.parent = ds->var[i].attrs;
    int rc = cm_decoding_read(&of, out, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "variable %s", v->name);
    return rc;
}

int cm_witness_decoding_in(const cm_witnesses *w, const cm_witness_var *var, cm_decoding *out,
                           cm_error *err)
{
    uint8_t fill[8];
    const cm_zarr_meta *meta = &var->node->meta;
    cm_decoding_of of = {.dtype = meta->dtype,
                         .attrs = meta->attrs,
                         .fill = cm_zarr_missing(meta, fill) ? fill : NULL};
    const char *name = var->node->path;
    for (size_t i = 0; meta->rank > 0 && !cm_json_has(meta->attrs, "units") && i < w->tree->nnodes;
         i++)
        if (bounds_name(w->tree->node[i].meta.attrs, name))
            of.parent = w->tree->node[i].meta.attrs;
    /* A part that adds to a store describes what it writes alone. */
    for (size_t i = 0; w->job->terms.in_part && of.parent == NULL && i < w->spec->nvars; i++)
        if (meta->rank > 0 && bounds_name(w->spec->var[i].attrs, var->of->name))
            of.parent = w->spec->var[i].attrs;
    int rc = cm_decoding_read(&of, out, err);
    if (rc != CM_OK)
        cm_error_prefix(err, "variable %s", name);
    return rc;
}

/* ---- dimensions ---- */

/*
 * Dimensions that have other names in the file, as many on both sides, are in the same order.  If
 * more are left in the store, the match is unknown.
 */
static cm_witness_match match_rest(const cm_witness_var *var, const cm_variable *v, bool *used,
                                   cm_witness_view *out)
{
    unsigned left = 0, lacking = 0;
    for (unsigned k = 0; k < v->rank; k++)
        left += !used[k];
    for (unsigned j = 0; j < var->of->rank; j++)
        lacking += out->dim[j] < 0;
    if (left == 0 || left != lacking)
        return left == 0        ? CM_WITNESS_FITS
               : left > lacking ? CM_WITNESS_HAS_MORE
                                : CM_WITNESS_UNKNOWN;
    for (unsigned j = 0, k = 0; j < var->of->rank; j++) {
        if (out->dim[j] >= 0)
            continue;
        while (used[k])
            k++;
        used[k] = true;
        out->dim[j] = (int)k;
    }
    return CM_WITNESS_FITS;
}

cm_witness_match cm_witness_view_make(const cm_witnesses *w, const cm_witness_var *var,
                                      cm_variable *v, cm_witness_view *out)
{
    const cm_multi_var *of = var->of;
    bool used[CM_MAX_RANK] = {false};
    char buf[512];
    *out = (cm_witness_view){.v = v};
    for (unsigned j = 0; j < of->rank; j++) {
        out->dim[j] = -1;
        for (unsigned k = 0; k < v->rank && out->dim[j] < 0; k++) {
            if (used[k] || v->dim_name[k] == NULL ||
                strcmp(cm_witness_name(w, v->dim_name[k], buf, sizeof(buf)), of->dim_name[j]) != 0)
                continue;
            used[k] = true;
            out->dim[j] = (int)k;
        }
    }
    return match_rest(var, v, used, out);
}

/* ---- elements ---- */

/* Where PART lies in the file, and in the elements that are read of it. */
typedef struct reading {
    cm_box file;                  /* of the file's variable */
    uint64_t stride[CM_MAX_RANK]; /* of the store's dimensions, in elements that are read */
    uint64_t width;               /* elements of a row that the file has: texts may be shorter */
    uint8_t *data;
} reading;

static unsigned joined_at(const cm_witness_var *var, unsigned j)
{
    unsigned i = 0;
    while (i < var->njoined && var->axis[i] != j)
        i++;
    return i;
}

/* The first element of PART along dimension J of the store, in the file, and the step there. */
static uint64_t first_in_file(const cm_witness_var *var, const cm_witness_run *const *run,
                              const cm_box *part, unsigned j, uint64_t *step)
{
    const unsigned i = joined_at(var, j);
    if (i < var->njoined) {
        *step = run[i]->stride;
        return run[i]->first + (part->start[j] - run[i]->position) * run[i]->stride;
    }
    const cm_job_var *v = var->job;
    *step = v != NULL ? v->view.step[j] : 1;
    return v != NULL ? v->view.start[j] + (part->start[j] - v->window.at[j]) * v->view.step[j]
                     : part->start[j];
}

static void plan_reading(const cm_witness_var *var, const cm_witness_view *view,
                         const cm_witness_run *const *run, const cm_box *part, reading *out)
{
    const cm_variable *v = view->v;
    uint64_t step[CM_MAX_RANK], stride[CM_MAX_RANK];
    *out = (reading){.file = {.rank = v->rank}};
    out->width = part->rank > 0 ? part->shape[part->rank - 1] : 1;
    for (unsigned k = 0; k < v->rank; k++)
        out->file.shape[k] = 1;
    for (unsigned j = 0; j < part->rank; j++) {
        if (view->dim[j] < 0)
            continue;
        const unsigned k = (unsigned)view->dim[j];
        uint64_t count = part->shape[j];
        out->file.start[k] = first_in_file(var, run, part, j, &step[j]);
        if (j + 1 == part->rank && v->is_char) {
            const uint64_t start = out->file.start[k], length = v->shape[k];
            const uint64_t rest = start < length ? (length - start - 1) / step[j] + 1 : 0;
            out->width = count = count < rest ? count : rest;
            out->file.start[k] = rest > 0 ? start : 0;
        }
        out->file.shape[k] = count == 0 ? 0 : (count - 1) * step[j] + 1;
    }
    for (unsigned k = v->rank; k-- > 0;)
        stride[k] = k + 1 == v->rank ? 1 : stride[k + 1] * out->file.shape[k + 1];
    for (unsigned j = 0; j < part->rank; j++)
        out->stride[j] = view->dim[j] < 0 ? 0 : stride[view->dim[j]] * step[j];
}

static int read_file(const cm_witness_view *view, const cm_witness_verdict *verdict, reading *r,
                     cm_error *err)
{
    cm_buf *raw = verdict->raw;
    const cm_variable *v = view->v;
    bool inside = true;
    for (unsigned k = 0; k < v->rank; k++)
        inside = inside && r->file.start[k] <= v->shape[k] &&
                 r->file.shape[k] <= v->shape[k] - r->file.start[k];
    if (!inside)
        return cm_fail(err, CM_EFORMAT, "%s: variable %s: is not as it was looked at before",
                       view->ds->path, v->name);
    const uint64_t nelem = cm_box_nelem(&r->file);
    int rc = cm_buf_resize(raw, (size_t)nelem * v->dtype.nbytes, err);
    if (rc == CM_OK && cm_dtype_is_vlen(&v->dtype))
        rc = cm_dataset_read_strings(view->ds, view->v, &r->file, verdict->raw_text, err);
    else if (rc == CM_OK && nelem > 0)
        rc = cm_dataset_read(view->ds, view->v, &r->file, raw->data, err);
    r->data = raw->data;
    if (rc != CM_OK)
        cm_error_place(err, view->ds->path);
    return rc;
}

/* ---- judging ---- */

typedef struct judge {
    const cm_witness_var *var;
    const cm_witness_view *view;
    cm_witness_verdict *verdict;
    bool bits; /* elements that are there, and mean the same, are the same bytes */
    bool alike;
} judge;

static bool is_same(const judge *g, const uint8_t *want, const uint8_t *got)
{
    const cm_decoding *file = &g->view->meaning, *store = &g->var->store;
    cm_decoded a, b;
    if (g->alike && memcmp(want, got, store->dtype.nbytes) == 0)
        return true;
    if (!file->is_number || !store->is_number)
        return false;
    cm_decoded_read(file, want, &a);
    cm_decoded_read(store, got, &b);
    if (g->bits)
        return a.missing && b.missing; /* a step of several files may be missing in several ways */
    return cm_decoded_same(file, &a, store, &b, &g->var->leeway);
}

static char *quoted(const cm_strings *texts, uint64_t i, char *buf, size_t size)
{
    size_t nbytes;
    const char *text = cm_strings_get(texts, (size_t)i, &nbytes);
    snprintf(buf, size, "\"%.*s\"", (int)(nbytes > 40 ? 40 : nbytes), text);
    return buf;
}

static bool same_text(const cm_witness_verdict *verdict, uint64_t want, uint64_t got)
{
    size_t n, m;
    const char *a = cm_strings_get(verdict->raw_text, (size_t)want, &n);
    const char *b = cm_strings_get(verdict->got_text, (size_t)got, &m);
    return n == m && (n == 0 || memcmp(a, b, n) == 0);
}

/* True where element I of the box is the first that is known to differ. */
static bool mark(const judge *g, uint64_t i, bool same)
{
    cm_witness_verdict *out = g->verdict;
    uint8_t *m = &out->mark[i];
    if (out->only_unmarked && *m != CM_MARK_NONE)
        return false;
    if (same && (*m == CM_MARK_NONE || out->any))
        *m = CM_MARK_SAME;
    if (same || (*m == CM_MARK_SAME && out->any))
        return false;
    *m = CM_MARK_DIFFERENT;
    if (out->found && out->first <= i)
        return false;
    out->found = true;
    out->first = i;
    out->file = g->view->file;
    return true;
}

/* A row of texts, COUNT of them: number FROM of what was read on, number AT of the box on. */
static void judge_texts(const judge *g, uint64_t from, uint64_t stride, uint64_t at, uint64_t count)
{
    cm_witness_verdict *out = g->verdict;
    for (uint64_t i = 0; i < count; i++)
        if (mark(g, at + i, same_text(out, from + i * stride, at + i)))
            (void)quoted(out->raw_text, from + i * stride, out->want, sizeof(out->want));
}

/* A row of numbers or characters; FROM, STRIDE, AT and COUNT as in judge_texts. */
static void judge_row(const judge *g, const reading *r, uint64_t from, uint64_t stride, uint64_t at,
                      uint64_t count)
{
    static const uint8_t NUL[16] = {0};
    cm_witness_verdict *out = g->verdict;
    const size_t size = g->var->store.dtype.nbytes, own = g->view->meaning.dtype.nbytes;
    const uint8_t *got = out->got + at * size, *want = r->data + from * own;
    const bool row = g->alike && stride == 1 && r->width >= count &&
                     memcmp(want, got, (size_t)count * size) == 0;
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *element = i < r->width ? want + i * stride * own : NUL;
        if (mark(g, at + i, row || is_same(g, element, got + i * size)))
            cm_decoding_text(&g->view->meaning, element, out->want, sizeof(out->want));
    }
}

bool cm_witness_is_text(const cm_witness_var *var)
{
    return cm_dtype_is_vlen(&var->store.dtype);
}

char *cm_witness_got(const cm_witness_var *var, const cm_witness_verdict *verdict, uint64_t i,
                     char *buf, size_t size)
{
    return cm_witness_is_text(var)
               ? quoted(verdict->got_text, i, buf, size)
               : cm_decoding_text(&var->store, verdict->got + i * var->store.dtype.nbytes, buf,
                                  size);
}

static void judge_all(const judge *g, const reading *r, const cm_box *part)
{
    const cm_box *box = g->verdict->box;
    const unsigned rank = part->rank, last = rank > 0 ? rank - 1 : 0;
    const uint64_t count = rank > 0 ? part->shape[last] : 1, nrows = cm_box_nelem(part) / count;
    for (uint64_t row = 0; row < nrows; row++) {
        uint64_t rest = row, from = 0, at = 0, stride = 1;
        uint64_t coord[CM_MAX_RANK] = {0};
        for (unsigned j = last; j-- > 0;) {
            coord[j] = rest % part->shape[j];
            rest /= part->shape[j];
            from += coord[j] * r->stride[j];
        }
        for (unsigned j = rank; j-- > 0;) {
            at += (part->start[j] - box->start[j] + coord[j]) * stride;
            stride *= box->shape[j];
        }
        const uint64_t step = rank > 0 ? r->stride[last] : 1;
        if (cm_witness_is_text(g->var))
            judge_texts(g, from, step, at, count);
        else
            judge_row(g, r, from, step, at, count);
    }
}

int cm_witness_judge(const cm_witness_var *var, const cm_witness_view *view,
                     const cm_witness_run *const *run, const cm_box *part,
                     cm_witness_verdict *verdict, cm_error *err)
{
    reading r;
    judge g = {.var = var, .view = view, .verdict = verdict};
    if (cm_box_nelem(part) == 0)
        return CM_OK;
    g.alike = cm_decoding_alike(&view->meaning, &var->store);
    /* Elements that a join computes may be missing by other bytes. */
    g.bits = g.alike && var->of->values == NULL && var->leeway.tolerance == 0;
    plan_reading(var, view, run, part, &r);
    int rc = read_file(view, verdict, &r, err);
    if (rc == CM_OK)
        judge_all(&g, &r, part);
    return rc;
}
