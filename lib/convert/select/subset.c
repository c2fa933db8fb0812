/*
 * --subset: a part of the array along named dimensions, by index (START:STOP
 * and an optional STEP, as Python slices) or by coordinate value (FROM..TO, both
 * included; dates by the coordinate's own calendar).  Coordinate values are what
 * readers show: unpacked, and missing ones lie nowhere.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/path.h"
#include "convert/job.h"
#include "convert/select/subset.h"
#include "format/packing.h"
#include "model/calendar.h"
#include "options/store_path.h"
#include "options/varopt.h"

/* A subset of a dimension of one length. */
typedef struct slice {
    uint64_t start, step, count;
} slice;

typedef struct subset {
    const char *option; /* that TEXT is of */
    bool strict;        /* what lies outside the dimension is refused, and so are steps */
    const char *text;   /* as typed */
    char *dim;          /* points into a copy of it */
    char *range;
    bool by_value;
    bool used;
    const cm_variable *coordinate; /* the last one that was searched, and what was found */
    slice found;
} subset;

/* One side of START:STOP: empty is DEFAULT_VALUE, negative counts from the end. */
static int parse_index(const subset *s, const char *text, uint64_t length, uint64_t default_value,
                       uint64_t *out, cm_error *err)
{
    int64_t value;
    if (*text == '\0') {
        *out = default_value;
        return CM_OK;
    }
    if (cm_parse_i64(text, &value, NULL) != CM_OK)
        return cm_fail(err, CM_EINVAL, "%s %s: \"%s\" is not an integer", s->option, s->text, text);
    uint64_t distance = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    if (s->strict && distance > length)
        return cm_fail(err, CM_EINVAL, "%s %s: %s lies outside the %llu elements that there are",
                       s->option, s->text, text, (unsigned long long)length);
    distance = distance > length ? length : distance;
    *out = value < 0 ? length - distance : distance;
    return CM_OK;
}

static int slice_by_index(const subset *s, uint64_t length, slice *out, cm_error *err)
{
    char copy[128], *stop, *step;
    uint64_t hi = length;
    if (strlen(s->range) >= sizeof(copy))
        return cm_fail(err, CM_EINVAL, "%s %s: too long to be a range", s->option, s->text);
    memcpy(copy, s->range, strlen(s->range) + 1);
    out->step = 1;
    if ((stop = strchr(copy, ':')) == NULL)
        return cm_fail(err, CM_EINVAL, "%s %s: write START:STOP or FROM..TO after the '='",
                       s->option, s->text);
    *stop++ = '\0';
    if ((step = strchr(stop, ':')) != NULL && s->strict)
        return cm_fail(err, CM_EINVAL, "%s %s: has no step", s->option, s->text);
    if (step != NULL) {
        *step++ = '\0';
        if (cm_parse_u64(step, &out->step, NULL) != CM_OK || out->step == 0)
            return cm_fail(err, CM_EINVAL, "%s %s: the step must be a positive integer", s->option,
                           s->text);
    }
    int rc = parse_index(s, copy, length, 0, &out->start, err);
    if (rc == CM_OK)
        rc = parse_index(s, stop, length, length, &hi, err);
    if (rc != CM_OK)
        return rc;
    out->count = hi > out->start ? cm_div_ceil(hi - out->start, out->step) : 0;
    /* A single element has no step, however large: strides are products of it. */
    if (out->count <= 1)
        out->step = 1;
    if (out->count == 0 && length > 0)
        return cm_fail(err, CM_EINVAL, "%s %s: selects none of the dimension's %llu", s->option,
                       s->text, (unsigned long long)length);
    return CM_OK;
}

cm_variable *cm_coordinate_of(const cm_dataset *ds, const cm_variable *of, const char *dim,
                              uint64_t length)
{
    cm_variable *found = NULL;
    for (size_t i = 0; i < ds->nvars; i++) {
        cm_variable *c = &ds->var[i];
        const char *last = cm_path_last(c->name);
        if (!c->is_coordinate || c->unsupported != NULL || c->shape[0] != length ||
            strcmp(last, dim) != 0)
            continue;
        /* Finds the nearest coordinate: that of the deepest group around the variable. */
        if (strncmp(of->name, c->name, (size_t)(last - c->name)) != 0)
            continue;
        if (found == NULL || strlen(c->name) > strlen(found->name))
            found = c;
    }
    return found;
}

int cm_coordinate_read(cm_dataset *ds, const cm_variable *of, const char *dim, uint64_t n,
                       double **out, cm_error *err)
{
    cm_variable *c = cm_coordinate_of(ds, of, dim, n);
    *out = NULL;
    if (c == NULL || !cm_dtype_is_number(&c->dtype))
        return CM_OK;
    int rc = cm_dataset_prepare(ds, c, err);
    if (rc == CM_OK && (*out = cm_calloc((size_t)n + 1, sizeof(double), err)) == NULL)
        rc = CM_ENOMEM;
    return rc == CM_OK ? cm_packing_read(c, n, *out, err) : rc;
}

int cm_coordinate_read_texts(cm_dataset *ds, const cm_variable *of, const char *dim, uint64_t n,
                             cm_strings *out, bool *there, cm_error *err)
{
    cm_variable *c = cm_coordinate_of(ds, of, dim, n);
    const cm_box all = {.rank = 1, .shape = {n}};
    *there = false;
    if (c == NULL || c->dtype.kind != CM_KIND_STRING)
        return CM_OK;
    int rc = cm_dataset_prepare(ds, c, err);
    if (rc == CM_OK)
        rc = cm_strings_reset(out, (size_t)n, err);
    if (rc == CM_OK)
        rc = cm_dataset_read_strings(ds, c, &all, out, err);
    *there = rc == CM_OK;
    /* Of a codec that is not known, or longer than anybody wants. */
    return rc == CM_EUNSUPPORTED || rc == CM_EBUDGET ? CM_OK : rc;
}

static bool is_time(const cm_variable *c)
{
    const char *units = cm_json_text(cm_json_member(c->attrs, "units"), NULL);
    return units != NULL && cm_time_axis_is(units);
}

/* The bound as a number on the coordinate's axis; UPPER: a partial date means its last moment. */
static int parse_bound(const subset *s, const char *text, const cm_variable *c, bool upper,
                       double *out, cm_error *err)
{
    const char *units = cm_json_text(cm_json_member(c->attrs, "units"), NULL);
    const char *calendar = cm_json_text(cm_json_member(c->attrs, "calendar"), NULL);
    if (*text == '\0') {
        *out = upper ? INFINITY : -INFINITY;
        return CM_OK;
    }
    if (is_time(c)) {
        cm_time_axis axis;
        int rc = cm_time_axis_parse(units, calendar, &axis, err);
        if (rc == CM_OK)
            rc = cm_time_axis_bound(&axis, text, upper, out, err);
        if (rc != CM_OK)
            cm_error_prefix(err, "%s %s", s->option, s->text);
        return rc == CM_OK ? CM_OK : CM_EINVAL;
    }
    if (cm_parse_double(text, out, NULL) != CM_OK)
        return cm_fail(err, CM_EINVAL, "%s %s: \"%s\" is not a number", s->option, s->text, text);
    return CM_OK;
}

/* The elements seen so far lie between LO and HI, and must lie side by side. */
typedef struct search {
    const cm_variable *coordinate;
    cm_packing packing;
    double lo, hi;
    uint64_t first, end; /* elements first <= i < end; none: first == end */
    bool gap;
} search;

/*
 * A bound is written in decimals, which neither a float32 nor a packed number holds
 * exactly: 30.1 means the element that is shown so.  Dates are left alone, for a
 * partial one means its very last moment.
 */
static void widen(search *f)
{
    const cm_packing *p = &f->packing;
    bool whole = p->type.kind == CM_KIND_INT || p->type.kind == CM_KIND_UINT;
    if (is_time(f->coordinate))
        return;
    if (p->packed && whole) {
        /* A scale_factor that is a float32 is off by 0.004 of a step at the end of 16 bits. */
        f->lo -= fabs(p->scale) * 0.01;
        f->hi += fabs(p->scale) * 0.01;
    } else if (!p->packed && p->type.kind == CM_KIND_FLOAT && p->type.nbytes == 4) {
        /* The largest distance of a float32 from a number that rounds to it. */
        f->lo -= fabs(f->lo) * 0x1p-24;
        f->hi += fabs(f->hi) * 0x1p-24;
    }
}

static void search_block(search *f, const uint8_t *raw, uint64_t start, uint64_t n)
{
    const cm_packing *p = &f->packing;
    const cm_variable *c = f->coordinate;
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *element = raw + i * p->type.nbytes;
        double value = cm_element_to_double(&p->type, element);
        if (p->packed)
            value = value * p->scale + p->offset;
        if (!(value >= f->lo && value <= f->hi) ||
            (c->has_fill_value && memcmp(element, c->fill_value, p->type.nbytes) == 0))
            continue;
        if (f->first == f->end)
            f->first = f->end = start + i;
        f->gap |= f->end != start + i;
        f->end = start + i + 1;
    }
}

/* Block by block: a coordinate may be longer than the memory allows. */
static int search_coordinate(cm_dataset *ds, cm_variable *c, search *f, cm_error *err)
{
    enum {
        BLOCK = 64 * 1024,
        MAX_CHUNKS = 1024 /* HDF5 takes some KiB for each stored chunk that a read meets */
    };
    uint64_t n = c->shape[0], block = BLOCK;
    if (c->has_source_chunks && c->source_chunk[0] < BLOCK / MAX_CHUNKS)
        block = c->source_chunk[0] * MAX_CHUNKS;
    block = block < n ? block : n;
    uint8_t *raw = cm_calloc(block > 0 ? block : 1, c->dtype.nbytes, err);
    int rc = raw == NULL ? CM_ENOMEM : CM_OK;
    for (uint64_t start = 0; rc == CM_OK && start < n; start += block) {
        cm_box box = {.rank = 1, .start = {start}};
        box.shape[0] = n - start < block ? n - start : block;
        rc = cm_dataset_read(ds, c, &box, raw, err);
        if (rc == CM_OK)
            search_block(f, raw, start, box.shape[0]);
    }
    free(raw);
    return rc;
}

static int find_between(cm_dataset *ds, const subset *s, cm_variable *c, double lo, double hi,
                        slice *out, cm_error *err)
{
    search f = {.coordinate = c, .packing = cm_packing_of(c), .lo = lo, .hi = hi};
    widen(&f);
    int rc = search_coordinate(ds, c, &f, err);
    if (rc != CM_OK)
        return rc;
    if (f.first == f.end)
        return cm_fail(err, CM_EINVAL, "%s %s: no coordinate lies in that range", s->option,
                       s->text);
    if (f.gap)
        return cm_fail(err, CM_EINVAL,
                       "%s %s: the coordinates in that range do not lie side by side; "
                       "choose by index",
                       s->option, s->text);
    *out = (slice){.start = f.first, .step = 1, .count = f.end - f.first};
    return CM_OK;
}

static int slice_by_value(cm_dataset *ds, subset *s, const cm_variable *of, uint64_t length,
                          slice *out, cm_error *err)
{
    cm_variable *c = cm_coordinate_of(ds, of, s->dim, length);
    double lo, hi;
    if (c == NULL || (!cm_dtype_is_number(&c->dtype)))
        return cm_fail(err, CM_EINVAL, "%s %s: dimension %s has no numeric coordinate variable",
                       s->option, s->text, s->dim);
    /* Most variables have the same coordinate. */
    *out = s->found;
    if (c == s->coordinate)
        return CM_OK;
    char *copy = cm_strdup(s->range, err);
    if (copy == NULL)
        return CM_ENOMEM;
    char *dots = strstr(copy, "..");
    *dots = '\0';
    int rc = parse_bound(s, copy, c, false, &lo, err);
    if (rc == CM_OK)
        rc = parse_bound(s, dots + 2, c, true, &hi, err);
    /* A range of numbers may run the way that the coordinate does: lat=60..30. */
    if (rc == CM_OK && lo > hi && !is_time(c)) {
        double swap = lo;
        lo = hi;
        hi = swap;
    }
    if (rc == CM_OK)
        rc = find_between(ds, s, c, lo, hi, out, err);
    if (rc == CM_OK) {
        s->coordinate = c;
        s->found = *out;
    }
    free(copy);
    return rc;
}

static int apply(cm_dataset *ds, subset *s, const cm_variable *of, cm_view *out, cm_error *err)
{
    for (unsigned j = 0; j < out->rank; j++) {
        const char *dim = of->dim_name[j];
        slice cut;
        if (dim == NULL || strcmp(dim, s->dim) != 0)
            continue;
        s->used = true;
        uint64_t length = of->shape[j];
        int rc = s->by_value ? slice_by_value(ds, s, of, length, &cut, err)
                             : slice_by_index(s, length, &cut, err);
        if (rc != CM_OK)
            return rc;
        out->start[j] = cut.start;
        out->step[j] = cut.step;
        out->shape[j] = cut.count;
    }
    return CM_OK;
}

/* OUT points into *COPY, to be freed whatever is returned. */
static int parse(const char *option, const char *text, subset *out, char **copy, cm_error *err)
{
    *out = (subset){.option = option, .text = text};
    *copy = cm_strdup(text, err);
    if (*copy == NULL)
        return CM_ENOMEM;
    char *equals = cm_find_unescaped(*copy, '=');
    if (equals == NULL || equals == *copy || equals[1] == '\0')
        return cm_fail(err, CM_EINVAL, "%s %s: not of the form DIM=RANGE", option, text);
    *equals = '\0';
    out->dim = *copy;
    out->range = equals + 1;
    cm_unescape(out->dim);
    out->by_value = strstr(out->range, "..") != NULL;
    return CM_OK;
}

static int apply_text(cm_job *job, const char *text, cm_error *err)
{
    subset s;
    char *copy;
    int rc = parse("`subset`", text, &s, &copy, err);
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++)
        rc = apply(job->source, &s, job->var[i].source, &job->var[i].view, err);
    if (rc == CM_OK && !s.used && !cm_job_dim_elsewhere(job, s.dim))
        rc = cm_fail(err, CM_EINVAL, "%s %s: no chosen variable has a dimension %s", s.option, text,
                     s.dim);
    free(copy);
    return rc;
}

/* ---- a part of a store that is compared ---- */

/* Takes S to the elements of array T of the store. */
static int slice_of_store(cm_dataset *store, subset *s, const cm_variable *t, unsigned j,
                          slice *out, cm_error *err)
{
    cm_variable *c = s->by_value ? cm_coordinate_of(store, t, s->dim, t->shape[j]) : NULL;
    int rc = c != NULL && c->array == NULL ? cm_dataset_prepare(store, c, err) : CM_OK;
    if (rc != CM_OK)
        return rc;
    rc = s->by_value ? slice_by_value(store, s, t, t->shape[j], out, err)
                     : slice_by_index(s, t->shape[j], out, err);
    if (rc != CM_OK)
        return cm_error_prefix(err, "the store"), rc;
    return out->step == 1
               ? CM_OK
               : cm_fail(err, CM_EINVAL, "%s %s: a part of a store is compared without steps",
                         s->option, s->text);
}

/* V, whole or the part of it with the same coordinates, against a range of the longer T. */
static int apply_to_store(const cm_job *job, cm_dataset *store, subset *of_store, subset *s,
                          cm_job_var *v, const cm_variable *t, unsigned j, cm_error *err)
{
    slice there, here = {.step = 1, .count = v->source->shape[j]};
    int rc = slice_of_store(store, of_store, t, j, &there, err);
    if (rc == CM_OK && t->shape[j] == here.count)
        here = there;
    else if (rc == CM_OK && s->by_value)
        rc = slice_by_value(job->source, s, v->source, v->source->shape[j], &here, err);
    if (rc == CM_OK && here.count != there.count)
        rc = cm_fail(err, CM_EINVAL,
                     "%s %s: is %llu elements of the store along %s, and %llu of the input",
                     s->option, s->text, (unsigned long long)there.count, s->dim,
                     (unsigned long long)here.count);
    v->view.start[j] = here.start;
    v->view.step[j] = 1;
    v->view.shape[j] = here.count;
    v->window.at[j] = there.start;
    v->window.is_part = true;
    return rc;
}

/*
 * A range of a comparison.  Where the store has fewer elements than the input, it was made with
 * this range; where it has as many, the same part of both is compared; where it has more, it has
 * grown, and the range is the store's.
 */
static int apply_checked(cm_job *job, cm_dataset *store, const char *text, cm_error *err)
{
    subset s, of_store;
    char *copy, *other = NULL;
    int rc = parse("`subset`", text, &s, &copy, err);
    if (rc == CM_OK)
        rc = parse("`subset`", text, &of_store, &other, err);
    for (size_t i = 0; rc == CM_OK && i < job->nvars; i++) {
        cm_job_var *v = &job->var[i];
        cm_variable *t = cm_dataset_find(store, v->name);
        for (unsigned j = 0; rc == CM_OK && j < v->view.rank; j++) {
            const char *dim = v->source->dim_name[j];
            if (dim == NULL || strcmp(dim, s.dim) != 0)
                continue;
            if (t == NULL || j >= t->rank || t->shape[j] < v->source->shape[j]) {
                rc = apply(job->source, &s, v->source, &v->view, err);
            } else {
                s.used = true;
                rc = apply_to_store(job, store, &of_store, &s, v, t, j, err);
            }
        }
    }
    if (rc == CM_OK && !s.used && !cm_job_dim_elsewhere(job, s.dim))
        rc = cm_fail(err, CM_EINVAL, "%s %s: no chosen variable has a dimension %s", s.option, text,
                     s.dim);
    free(copy);
    free(other);
    return rc;
}

static int check_subset(cm_job *job, cm_error *err)
{
    const cm_texts *texts = &job->options->subset;
    const cm_dataset_options options = {.net = job->options->net};
    cm_dataset *store = NULL;
    cm_store_path at;
    int rc = cm_store_path_split(job->options->target, &at, err);
    if (rc == CM_OK)
        rc = cm_dataset_open(at.path, at.node, &options, &store, err);
    if (rc != CM_OK)
        cm_error_place(err, job->options->target);
    cm_store_path_release(&at);
    for (size_t i = 0; rc == CM_OK && i < texts->n; i++)
        rc = apply_checked(job, store, texts->text[i], err);
    cm_dataset_close(store);
    for (size_t i = 0; rc == CM_OK && i < job->nvars && job->options->certificate != NULL; i++)
        if (job->var[i].window.is_part)
            rc = cm_fail(err, CM_EINVAL, "`certificate`: it is about a whole store, not a part");
    return rc;
}

int cm_job_subset(cm_job *job, cm_error *err)
{
    const cm_texts *texts = &job->options->subset;
    if (job->terms.against != NULL && texts->n > 0)
        return check_subset(job, err);
    for (size_t i = 0; i < texts->n; i++) {
        int rc = apply_text(job, texts->text[i], err);
        if (rc != CM_OK)
            return rc;
    }
    return CM_OK;
}

/* The first element of V along dimension J at or behind element AT of the source. */
static uint64_t place_in_target(const cm_job_var *v, unsigned j, uint64_t at)
{
    const uint64_t n =
        at > v->view.start[j] ? cm_div_ceil(at - v->view.start[j], v->view.step[j]) : 0;
    return n < v->view.shape[j] ? n : v->view.shape[j];
}

int cm_job_range_of(cm_job *job, const char *option, const char *text, const cm_job_var *v,
                    cm_job_range *out, cm_error *err)
{
    subset s;
    char *copy;
    *out = (cm_job_range){0};
    int rc = parse(option, text, &s, &copy, err);
    if (rc == CM_OK && !s.by_value)
        rc = cm_fail(err, CM_EINVAL, "%s %s: not of the form DIM=FROM..TO", option, text);
    for (unsigned j = 0; rc == CM_OK && j < v->view.rank && !out->applies; j++) {
        const char *dim = v->source->dim_name[j];
        slice cut;
        if (dim == NULL || strcmp(dim, s.dim) != 0)
            continue;
        if ((rc = slice_by_value(job->source, &s, v->source, v->source->shape[j], &cut, err)) !=
            CM_OK)
            break;
        *out = (cm_job_range){.applies = true,
                              .dim = j,
                              .lo = place_in_target(v, j, cut.start),
                              .hi = place_in_target(v, j, cut.start + cut.count)};
        if (out->lo == out->hi)
            rc = cm_fail(err, CM_EINVAL, "%s %s: nothing that is written lies in that range",
                         option, text);
    }
    free(copy);
    return rc;
}

static int first_of(const cm_job *job, const subset *s, const cm_job_var **out, unsigned *axis,
                    cm_error *err)
{
    for (size_t i = 0; i < job->nvars; i++) {
        const cm_job_var *v = &job->var[i];
        *axis = cm_variable_dim(v->source, s->dim);
        if (*axis < v->view.rank) {
            *out = v;
            return CM_OK;
        }
    }
    return cm_fail(err, CM_EINVAL, "%s %s: no variable has a dimension %s", s->option, s->text,
                   s->dim);
}

int cm_job_find_range(cm_job *job, const char *option, const char *text, uint64_t *first,
                      uint64_t *end, cm_error *err)
{
    const cm_job_var *v = NULL;
    unsigned axis = 0;
    slice found = {0};
    subset s = {0};
    char *copy;
    int rc = parse(option, text, &s, &copy, err);
    if (rc == CM_OK)
        rc = first_of(job, &s, &v, &axis, err);
    if (rc == CM_OK) {
        s.strict = true;
        rc = s.by_value
                 ? slice_by_value(job->source, &s, v->source, v->source->shape[axis], &found, err)
                 : slice_by_index(&s, v->source->shape[axis], &found, err);
    }
    *first = found.start;
    *end = found.start + found.count;
    free(copy);
    return rc;
}
