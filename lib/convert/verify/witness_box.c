/* Compares boxes of variables with a joined dimension with the files that lie in them. */
#include <stdio.h>
#include <string.h>

#include "convert/verify/witness_impl.h"

static bool has(const cm_witness_var *v, uint32_t file)
{
    return (v->has[file / 64] >> file % 64 & 1) != 0;
}

static cm_witness_var *var_of(const cm_witnesses *w, const cm_job_var *v)
{
    bool own = cm_job_is_own(v) && v->source->index < w->spec->nvars;
    cm_witness_var *var = own ? &w->var[v->source->index] : NULL;
    return var != NULL && var->is_known && var->njoined > 0 && var->nfiles > 0 ? var : NULL;
}

bool cm_witnesses_know(const cm_witnesses *w, const cm_job_var *v)
{
    const cm_witness_var *known = w != NULL ? var_of(w, v) : NULL;
    return known != NULL && !known->of->named;
}

typedef struct box_task {
    cm_witnesses *w;
    cm_witness_var *var;
    cm_witness_verdict verdict;
} box_task;

/* The elements of BOX along dimension J that RUN has; false: none. */
static bool cut_to_run(cm_box *box, unsigned j, const cm_witness_run *run)
{
    const uint64_t end = box->start[j] + box->shape[j], last = run->position + run->count;
    const uint64_t from = box->start[j] > run->position ? box->start[j] : run->position;
    const uint64_t to = end < last ? end : last;
    if (from >= to)
        return false;
    box->start[j] = from;
    box->shape[j] = to - from;
    return true;
}

/* FILE lies along the first joined dimension in RUN. */
static int judge_file(box_task *t, const cm_witness_run *run, cm_error *err)
{
    const cm_witness_var *var = t->var;
    cm_witness_view view = {0};
    cm_dataset *ds;
    size_t next = 0;
    char buf[512];
    cm_box part = *t->verdict.box;
    const cm_witness_dim *other = var->njoined == 2 ? &t->w->dim[var->dimension[1]] : NULL;
    if (!has(var, run->file) || !cut_to_run(&part, var->axis[0], run) ||
        (other != NULL && other->begin[run->file] == other->begin[run->file + 1]))
        return CM_OK;
    int rc = cm_multi_file_open(t->w->job->source, run->file, &ds, err);
    if (rc != CM_OK)
        return rc;
    bool found = false;
    for (size_t i = 0; i < ds->nvars && !found; i++)
        found = cm_witness_var_named(t->w, cm_witness_name(t->w, ds->var[i].name, buf, sizeof(buf)),
                                     &next) == var &&
                cm_witness_view_make(t->w, var, &ds->var[i], &view) == CM_WITNESS_FITS;
    if (!found)
        rc = cm_fail(err, CM_EFORMAT, "%s: there is no variable %s any more", ds->path,
                     var->of->name);
    view.ds = ds;
    view.file = run->file;
    if (rc == CM_OK)
        rc = cm_witness_decoding_of(ds, view.v, &view.meaning, err);
    const size_t first = other != NULL ? other->begin[run->file] : 0;
    const size_t end = other != NULL ? other->begin[run->file + 1] : 1;
    for (size_t i = first; rc == CM_OK && i < end; i++) {
        const cm_witness_run *runs[CM_MULTI_MAX_AXES] = {run, other != NULL ? &other->run.item[i]
                                                                            : NULL};
        cm_box own = part;
        if (other == NULL || cut_to_run(&own, var->axis[1], runs[1]))
            rc = cm_witness_judge(var, &view, runs, &own, &t->verdict, err);
    }
    cm_multi_file_close(t->w->job->source, run->file);
    return rc;
}

/* The first run, by position, that may meet what lies from POSITION on. */
static size_t first_run(const cm_witness_dim *d, uint64_t position)
{
    size_t lo = 0, hi = d->run.n;
    while (lo < hi) {
        const size_t middle = lo + (hi - lo) / 2;
        if (d->run.item[d->by_position[middle]].position + d->longest <= position)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

/* Files, or the store that grows, which comes last. */
static int judge_files(box_task *t, bool the_store, cm_error *err)
{
    const cm_witness_dim *d = &t->w->dim[t->var->dimension[0]];
    const cm_box *box = t->verdict.box;
    const unsigned axis = t->var->axis[0];
    int rc = CM_OK;
    for (size_t i = first_run(d, box->start[axis]); rc == CM_OK && i < d->run.n; i++) {
        const cm_witness_run *run = &d->run.item[d->by_position[i]];
        if (run->position >= box->start[axis] + box->shape[axis])
            break;
        if ((t->w->spec->file[run->file].open != NULL) == the_store)
            rc = judge_file(t, run, err);
    }
    return rc;
}

/* Elements that no file has must be missing, or have the value that options give. */
static bool is_hole(const cm_witness_var *v, const cm_witness_verdict *verdict, uint64_t i)
{
    const uint8_t *got = verdict->got + i * v->store.dtype.nbytes;
    cm_decoded x = {0};
    size_t nbytes;
    if (cm_witness_is_text(v)) {
        const char *text = cm_strings_get(verdict->got_text, (size_t)i, &nbytes);
        const char *fill = v->of->fill_text != NULL ? v->of->fill_text : "";
        return nbytes == strlen(fill) && memcmp(text, fill, nbytes) == 0;
    }
    if (v->store.is_number)
        cm_decoded_read(&v->store, got, &x);
    return x.missing || !v->of->has_fill || v->leeway.is_cast ||
           memcmp(got, v->of->fill, v->store.dtype.nbytes) == 0;
}

static void conclude(const box_task *t, uint64_t nelem, cm_comparison *out)
{
    const cm_witness_verdict *verdict = &t->verdict;
    /* Steps that no file has and that were added have a coordinate. */
    const bool holes = !t->w->spec->fills_gaps || t->var->of->values == NULL;
    for (uint64_t i = nelem; i-- > 0;) {
        const uint8_t m = verdict->mark[i];
        if (m == CM_MARK_SAME || (m == CM_MARK_NONE && (!holes || is_hole(t->var, verdict, i))))
            continue;
        out->ndiffer++;
        out->first = i;
    }
    if (out->ndiffer == 0)
        return;
    const bool known = verdict->found && verdict->first == out->first;
    const bool nobody = verdict->mark[out->first] == CM_MARK_NONE;
    snprintf(out->want, sizeof(out->want), "%s",
             known    ? verdict->want
             : nobody ? "what no file has"
                      : "what files have");
    out->file = known ? t->w->spec->file[verdict->file].path : NULL;
    (void)cm_witness_got(t->var, verdict, out->first, out->got, sizeof(out->got));
}

static int read_store(const box_task *t, cm_array *array, cm_compare_buffers *b, cm_error *err)
{
    if (cm_witness_is_text(t->var))
        return cm_array_read_strings(array, t->verdict.box, &b->got_text, err);
    return cm_array_read(array, b->ctx, t->verdict.box, b->got.data, err);
}

int cm_witness_box(cm_witnesses *w, cm_job_var *v, cm_array *array, const cm_box *box,
                   cm_compare_buffers *b, cm_digest *digest, cm_comparison *out, cm_error *err)
{
    cm_box there = *box;
    const uint64_t nelem = cm_box_nelem(box);
    *out = (cm_comparison){0};
    for (unsigned j = 0; j < v->view.rank; j++)
        there.start[j] += v->window.at[j];
    box_task t = {.w = w, .var = var_of(w, v)};
    int rc = cm_buf_resize(&b->got, (size_t)nelem * v->view.type.nbytes, err);
    if (rc == CM_OK)
        rc = cm_buf_resize(&b->want, (size_t)nelem, err);
    if (rc != CM_OK)
        return rc;
    t.verdict =
        (cm_witness_verdict){.box = &there,
                             .got = b->got.data,
                             .got_text = &b->got_text,
                             .mark = b->want.data,
                             /* Neighbours along a joined dimension that it lacks: one was taken. */
                             .any = w->spec->any_overlap || t.var->of->first_static,
                             .raw = &b->dense,
                             .raw_text = &b->want_text};
    rc = read_store(&t, array, b, err);
    out->store_failed = rc != CM_OK;
    if (rc != CM_OK)
        return rc;
    if (digest != NULL && cm_witness_is_text(t.var))
        cm_compare_digest_texts(v, box, &b->got_text, digest);
    else if (digest != NULL)
        cm_digest_box(digest, v->view.shape, box, b->got.data, v->view.type.nbytes);
    memset(t.verdict.mark, CM_MARK_NONE, (size_t)nelem);
    rc = judge_files(&t, false, err);
    t.verdict.only_unmarked = w->spec->base_yields;
    if (rc == CM_OK)
        rc = judge_files(&t, true, err);
    if (rc == CM_OK)
        conclude(&t, nelem, out);
    return rc;
}
