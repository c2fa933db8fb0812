#include "convert/sink/growth/append_source.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/number.h"
#include "convert/layout/codec_text.h"
#include "convert/select/rename.h"
#include "format/missing.h"
#include "format/multi/multi.h"

enum {
    SMALL_NBYTES = 1 << 20, /* that an array is compared for as a whole */
    BOX_NBYTES = 64 << 20   /* of one box of what is compared */
};

struct cm_append_source {
    cm_dataset *own;  /* the source */
    cm_dataset *base; /* the store as it was */
    cm_multi_spec spec;
    cm_multi_file file[2]; /* the store, the source */
    cm_multi_group root;
    cm_multi_var *var;
    cm_multi_part *part; /* two of each variable */
    cm_multi_check *check;
    cm_located *located; /* of each variable: of no place, but with a shape to read in */
    cm_form *form;
    cm_variable **from; /* the source's, of each variable */
    const char **warning;
    bool samples; /* some array is not compared whole */
};

/* ---- what must be the same ---- */

/* Attributes that make numbers of stored numbers, and say what those mean. */
static const char *const MEANING[] = {
    "units",         "calendar",      "scale_factor", "add_offset",  "_Unsigned",
    "standard_name", "cell_methods",  "flag_masks",   "flag_values", "flag_meanings",
    "positive",      "month_lengths", "leap_year",    NULL};

static bool masks_number(const cm_variable *v)
{
    return v->has_fill_value && !cm_missing_is_nan(&v->dtype, v->fill_value);
}

/*
 * NaN is missing whatever is said.  Arrays without names of dimensions are not xarray's, and what
 * is missing there was not translated to another version (translate.c): the content of absent
 * chunks is enough.
 */
static bool same_fill(const cm_variable *s, const cm_variable *t)
{
    if (masks_number(s) != masks_number(t))
        return !t->words->has_dim_names && s->fill != NULL && t->fill != NULL &&
               memcmp(s->fill, t->fill, t->dtype.nbytes) == 0;
    return !masks_number(t) || memcmp(s->fill_value, t->fill_value, t->dtype.nbytes) == 0;
}

static int check_meaning(const cm_variable *s, const cm_variable *t, cm_error *err)
{
    for (size_t i = 0; MEANING[i] != NULL; i++) {
        const char *name = MEANING[i];
        if (cm_json_has(s->attrs, name) != cm_json_has(t->attrs, name) ||
            !cm_json_equal(cm_json_member(s->attrs, name), cm_json_member(t->attrs, name)))
            return cm_fail(err, CM_EINVAL,
                           "variable %s: its %s is not that of the store; make the store anew",
                           t->name, name);
    }
    if (!same_fill(s, t))
        return cm_fail(err, CM_EINVAL,
                       "variable %s: its fill value, which readers take for missing, is not that "
                       "of the store; make the store anew",
                       t->name);
    return CM_OK;
}

static bool same_name(const char *a, const char *b)
{
    return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

/* *AXIS: that of T which grows; its rank: none. */
static int check_shape(const cm_job *job, const cm_variable *s, const cm_variable *t,
                       unsigned *axis, cm_error *err)
{
    const char *dimension = job->options->append->dimension;
    bool same = s->rank == t->rank;
    *axis = t->rank;
    for (unsigned j = 0; same && j < t->rank; j++) {
        same = same_name(cm_job_dim_name(job, s, j), t->dim_name[j]);
        if (*axis == t->rank && same_name(dimension, t->dim_name[j]))
            *axis = j;
    }
    if (!same)
        return cm_fail(err, CM_EINVAL, "variable %s: its dimensions are not those of the store",
                       t->name);
    for (unsigned j = 0; j < t->rank; j++) {
        if (s->shape[j] == t->shape[j] || (j == *axis && s->shape[j] > t->shape[j]))
            continue;
        if (j == *axis)
            return cm_fail(err, CM_EINVAL,
                           "variable %s: the source has %" PRIu64 " %s along %s, and the "
                           "store %" PRIu64 " already: a source that became shorter adds nothing",
                           t->name, s->shape[j], cm_of_count(s->shape[j], "element", "elements"),
                           dimension, t->shape[j]);
        return cm_fail(err, CM_EINVAL,
                       "variable %s: dimension %u has %" PRIu64 " %s, and %" PRIu64
                       " in the store, which grows along %s only",
                       t->name, j, s->shape[j], cm_of_count(s->shape[j], "element", "elements"),
                       t->shape[j], dimension);
    }
    return CM_OK;
}

static int check_same(const cm_job *job, const cm_variable *s, const cm_variable *t, unsigned *axis,
                      cm_error *err)
{
    char a[32], b[32];
    if (!cm_dtype_equal(&s->dtype, &t->dtype))
        return cm_fail(err, CM_EINVAL, "variable %s: its elements are %s, and %s in the store",
                       t->name, cm_dtype_name(&s->dtype, a, sizeof(a)),
                       cm_dtype_name(&t->dtype, b, sizeof(b)));
    int rc = check_shape(job, s, t, axis, err);
    return rc == CM_OK ? check_meaning(s, t, err) : rc;
}

/* ---- what is compared ---- */

/* Boxes in which chunks of both are read once, where they are not too large. */
static void choose_box(const cm_variable *s, const cm_variable *t, uint64_t *box)
{
    uint64_t nelem = 1, most = BOX_NBYTES / (t->dtype.nbytes > 0 ? t->dtype.nbytes : 64);
    for (unsigned j = 0; j < t->rank; j++) {
        uint64_t a = s->has_source_chunks ? s->source_chunk[j] : 1;
        uint64_t b = t->has_source_chunks ? t->source_chunk[j] : 1;
        box[j] = a > b ? a : b;
        box[j] = box[j] > t->shape[j] ? t->shape[j] : box[j];
        box[j] = box[j] > 0 ? box[j] : 1;
        nelem *= box[j];
    }
    while (nelem > most) {
        unsigned longest = 0;
        for (unsigned j = 1; j < t->rank; j++)
            longest = box[j] > box[longest] ? j : longest;
        if (box[longest] == 1)
            break;
        nelem = nelem / box[longest] * ((box[longest] + 1) / 2);
        box[longest] = (box[longest] + 1) / 2;
    }
}

static bool nbytes_of(const cm_variable *v, uint64_t *nbytes)
{
    *nbytes = v->dtype.nbytes > 0 ? v->dtype.nbytes : 64;
    for (unsigned j = 0; j < v->rank; j++)
        if (!cm_mul_u64(*nbytes, v->shape[j], nbytes))
            return false;
    return true;
}

/* Elements FIRST to END of variable I, which both have; T is that of the store. */
static void add_check(cm_append_source *a, size_t i, const cm_variable *t, const char *what,
                      uint64_t first, uint64_t end)
{
    const cm_multi_var *v = &a->var[i];
    cm_multi_check *c = &a->check[a->spec.nchecks++];
    *c = (cm_multi_check){.var = i, .what = what};
    for (uint32_t k = 0; k < 2; k++) {
        const cm_variable *of = k == 0 ? t : a->from[i];
        c->part[k] = (cm_multi_part){.file = k, .name = of->name, .located = &a->located[i]};
        if (v->naxes == 0)
            continue;
        c->part[k].origin[0] = c->part[k].first[0] = first;
        c->part[k].count[0] = end - first;
        c->part[k].length[0] = of->shape[v->axis[0]];
    }
}

static void choose_checks(cm_append_source *a, size_t i, const cm_variable *t, bool recheck)
{
    const cm_multi_var *v = &a->var[i];
    uint64_t nbytes, was = v->naxes > 0 ? t->shape[v->axis[0]] : 1;
    bool small = nbytes_of(t, &nbytes) && nbytes <= SMALL_NBYTES;
    if (was == 0)
        return;
    if (v->naxes == 0)
        add_check(a, i, t, "elements of a variable that does not grow", 0, 0);
    else if (recheck || t->is_coordinate || small)
        add_check(a, i, t, "elements that the store has already", 0, was);
    else
        add_check(a, i, t, "elements that the store has already", was - 1, was);
    a->samples = a->samples || (v->naxes > 0 && !recheck && !t->is_coordinate && !small);
}

/* ---- the joined dataset ---- */

static void add_parts(cm_append_source *a, size_t i, const cm_variable *s, const cm_variable *t)
{
    cm_multi_var *v = &a->var[i];
    v->part = &a->part[2 * i];
    for (uint32_t k = 0; k < 2; k++) {
        const cm_variable *of = k == 0 ? t : s;
        cm_multi_part *p = &a->part[2 * i + v->nparts];
        *p = (cm_multi_part){.file = k, .name = of->name};
        if (v->naxes == 0) {
            v->nparts = 1;
            return;
        }
        uint64_t was = t->shape[v->axis[0]];
        p->origin[0] = p->first[0] = k == 0 ? 0 : was;
        p->length[0] = of->shape[v->axis[0]];
        p->count[0] = p->length[0] - p->first[0];
        v->nparts += p->count[0] > 0;
    }
}

/* A joined array has room for the fill value of a number: of long texts it is NULs, or refused. */
static int set_fill(const cm_variable *t, cm_multi_var *v, cm_error *err)
{
    const size_t nbytes = t->dtype.nbytes;
    if (t->fill == NULL || cm_dtype_is_vlen(&t->dtype))
        return CM_OK;
    v->has_fill = nbytes <= sizeof(v->fill);
    if (v->has_fill)
        memcpy(v->fill, t->fill, nbytes);
    else if (t->fill[0] != 0 || memcmp(t->fill, t->fill + 1, nbytes - 1) != 0)
        return cm_fail(
            err, CM_EUNSUPPORTED,
            "variable %s: its fill value has %zu bytes, and a store grows with one of up "
            "to %zu",
            t->name, nbytes, sizeof(v->fill));
    return CM_OK;
}

static int add_variable(cm_append_source *a, const cm_job *job, const cm_job_var *jv,
                        cm_variable *t, cm_error *err)
{
    cm_variable *s = jv->source;
    const size_t i = a->spec.nvars;
    cm_multi_var *v = &a->var[i];
    unsigned axis = t->rank;
    int rc = check_same(job, s, t, &axis, err);
    if (rc != CM_OK)
        return rc;
    *v = (cm_multi_var){.name = t->name,
                        .dtype = t->dtype,
                        .rank = t->rank,
                        .attrs = t->attrs,
                        .is_char = t->is_char,
                        .is_coordinate = t->is_coordinate,
                        .has_fill_value = t->has_fill_value,
                        .fill_text = t->fill_text,
                        .unsupported = s->unsupported != NULL ? s->unsupported : t->unsupported,
                        .naxes = axis < t->rank,
                        .axis = {axis}};
    memcpy(v->shape, s->shape, sizeof(v->shape));
    memcpy(v->unlimited, s->unlimited, sizeof(v->unlimited));
    memcpy(v->fill_value, t->fill_value, sizeof(v->fill_value));
    if ((rc = set_fill(t, v, err)) != CM_OK)
        return rc;
    for (unsigned j = 0; j < t->rank; j++)
        v->dim_name[j] = t->dim_name[j];
    a->from[i] = s;
    a->form[i] = (cm_form){.kind = CM_LOCATED_NOT, .dtype = t->dtype, .rank = t->rank};
    choose_box(s, t, a->form[i].chunk);
    a->located[i] = (cm_located){.form = &a->form[i]};
    add_parts(a, i, s, t);
    a->spec.nvars++;
    if (v->unsupported == NULL)
        choose_checks(a, i, t, job->options->append->recheck);
    return CM_OK;
}

/* Arrays are read by many threads: all are prepared before. */
static int prepare_both(cm_append_source *a, const cm_job_var *jv, cm_variable *t, cm_error *err)
{
    int rc = cm_dataset_prepare(a->own, jv->source, err);
    if (rc == CM_EUNSUPPORTED)
        rc = CM_OK; /* told of where it is wanted */
    if (rc == CM_OK)
        rc = cm_dataset_prepare(a->base, t, err);
    return rc == CM_EUNSUPPORTED ? CM_OK : rc;
}

/*
 * An array that is not understood and does not grow is not compared; one that does is refused
 * where it is prepared.
 */
static bool is_left_alone(const cm_job *job, const cm_job_var *jv, const cm_variable *t)
{
    bool grows = false;
    for (unsigned j = 0; j < t->rank; j++)
        grows = grows || same_name(t->dim_name[j], job->options->append->dimension);
    return !grows && (jv->source->unsupported != NULL || t->unsupported != NULL);
}

static int add_all(cm_append_source *a, cm_job *job, cm_error *err)
{
    int rc = CM_OK;
    size_t kept = 0;
    for (size_t i = 0; i < job->nvars; i++) {
        cm_job_var *jv = &job->var[i];
        cm_variable *t = cm_dataset_find(a->base, jv->name);
        if (rc == CM_OK && t == NULL && *jv->name == '\0')
            rc = cm_fail(err, CM_EINVAL,
                         "the source is an array by itself, and the store is a group of arrays");
        else if (rc == CM_OK && t == NULL)
            rc = cm_fail(err, CM_EINVAL,
                         "variable %s: is not in the store to add to; `exclude` leaves it out",
                         jv->name);
        if (rc == CM_OK)
            rc = prepare_both(a, jv, t, err);
        if (rc == CM_OK && is_left_alone(job, jv, t)) {
            rc = cm_job_warn(job, err, "array %s is not compared with that of the store: %s",
                             jv->name, t->unsupported != NULL ? t->unsupported : "not understood");
            free(jv->name);
            continue;
        }
        if (rc == CM_OK)
            rc = add_variable(a, job, jv, t, err);
        job->var[kept++] = *jv;
    }
    job->nvars = kept;
    return rc;
}

static int check_coordinate(const cm_append_source *a, cm_job *job, cm_error *err)
{
    const char *dimension = job->options->append->dimension;
    for (size_t i = 0; i < a->spec.nvars; i++)
        if (a->var[i].is_coordinate && a->var[i].naxes > 0)
            return CM_OK;
    if (!a->samples)
        return CM_OK;
    return cm_job_warn(job, err,
                       "the source has no coordinate along %s: of the elements that the store has "
                       "already, the last step of each array is compared; `recheck` compares all",
                       dimension);
}

static int make_room(cm_append_source *a, size_t nvars, cm_error *err)
{
    a->var = cm_calloc(nvars + 1, sizeof(a->var[0]), err);
    a->part = cm_calloc(2 * nvars + 2, sizeof(a->part[0]), err);
    a->check = cm_calloc(nvars + 1, sizeof(a->check[0]), err);
    a->located = cm_calloc(nvars + 1, sizeof(a->located[0]), err);
    a->form = cm_calloc(nvars + 1, sizeof(a->form[0]), err);
    a->from = cm_calloc(nvars + 1, sizeof(a->from[0]), err);
    bool all = a->var != NULL && a->part != NULL && a->check != NULL && a->located != NULL &&
               a->form != NULL && a->from != NULL;
    return all ? CM_OK : CM_ENOMEM;
}

/* Takes the warnings that come when all variables of the source are prepared. */
static int take_warnings(cm_append_source *a, cm_error *err)
{
    size_t n = cm_dataset_nwarnings(a->own);
    if ((a->warning = cm_calloc(n + 1, sizeof(a->warning[0]), err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < n; i++)
        a->warning[i] = cm_dataset_warning_at(a->own, i);
    a->spec.warning = a->warning;
    a->spec.nwarnings = n;
    return CM_OK;
}

/* A file's stored bytes are read by its path: it is to be this one then. */
static void identify(cm_multi_file *f)
{
    struct stat st;
    if (stat(f->path, &st) != 0)
        return;
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    f->mtime_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
}

/* Its variables take the places of the source's. */
static int take_places(cm_append_source *a, cm_job *job, cm_error *err)
{
    const cm_dataset_options options = {.canceled = cm_monitor_cancels,
                                        .canceled_context = job->options->monitor,
                                        .net = job->options->net,
                                        .memory = job->options->memory};
    cm_dataset *joined;
    int rc = cm_multi_dataset_open(&a->spec, &options, &joined, err);
    if (rc != CM_OK)
        return rc;
    job->source = job->from.opened = joined;
    for (size_t i = 0; i < job->nvars; i++)
        job->var[i].source = &joined->var[i];
    return CM_OK;
}

int cm_append_source_join(cm_job *job, cm_error *err)
{
    const cm_append *append = job->options->append;
    const cm_dataset_options options = {.net = job->options->net};
    cm_append_source *a = cm_calloc(1, sizeof(*a), err);
    if (a == NULL)
        return CM_ENOMEM;
    job->from.grown = a;
    a->own = job->source;
    job->from.opened = NULL;
    int rc = cm_dataset_open(append->opens, "", &options, &a->base, err);
    if (rc == CM_OK && a->base->kind != CM_DATASET_ZARR)
        rc = cm_fail(err, CM_EINVAL, "is no Zarr store");
    if (rc != CM_OK) {
        cm_error_place(err, append->root);
        return rc;
    }
    a->file[0] = (cm_multi_file){.path = append->opens, .open = a->base};
    a->file[1] = (cm_multi_file){.path = a->own->path, .nbytes = a->own->nbytes, .open = a->own};
    identify(&a->file[1]);
    a->root = (cm_multi_group){.path = "", .attrs = a->base->group[0].attrs};
    rc = cm_job_notice_conflicts(job, err);
    if (rc == CM_OK)
        rc = make_room(a, job->nvars, err);
    if (rc == CM_OK)
        rc = add_all(a, job, err);
    a->spec.name = a->own->path;
    a->spec.format_name = a->own->format_name;
    a->spec.file = a->file;
    a->spec.nfiles = 2;
    a->spec.group = &a->root;
    a->spec.ngroups = 1;
    a->spec.var = a->var;
    a->spec.check = a->check;
    if (rc == CM_OK)
        rc = take_warnings(a, err);
    if (rc == CM_OK)
        rc = check_coordinate(a, job, err);
    if (rc == CM_OK)
        rc = take_places(a, job, err);
    job->zarr_format = job->report->zarr_format_after = a->base->zarr_format;
    return rc;
}

void cm_append_source_of(const cm_job *job, cm_job_var *v)
{
    if (job->from.grown == NULL)
        return;
    v->source = job->from.grown->from[v->source->index];
    v->dataset = job->from.grown->own;
}

int cm_append_source_layout(const cm_job *job, const cm_variable *v, cm_transform_variable *out,
                            cm_error *err)
{
    if (job->from.grown == NULL)
        return CM_OK;
    const cm_variable *s = job->from.grown->from[v->index];
    for (unsigned j = 0; j < s->rank; j++) {
        out->chunk_before[j] = s->has_source_chunks ? s->source_chunk[j] : 0;
        out->shard_before[j] = s->is_sharded ? s->source_shard[j] : 0;
    }
    free(out->codec_before);
    out->codec_before = s->words != NULL ? cm_codec_text(s->words, err) : NULL;
    return s->words != NULL && out->codec_before == NULL ? CM_ENOMEM : CM_OK;
}

void cm_append_source_free(cm_append_source *a)
{
    if (a == NULL)
        return;
    cm_dataset_close(a->base);
    cm_dataset_close(a->own);
    free(a->var);
    free(a->part);
    free(a->check);
    free(a->located);
    free(a->form);
    free(a->from);
    free(a->warning);
    free(a);
}
