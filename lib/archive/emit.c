#include "archive/emit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "archive/axes/coordinate.h"
#include "archive/axes/merge.h"
#include "archive/fields/statics.h"
#include "archive/planted.h"
#include "archive/tables/described.h"
#include "archive/tables/fills.h"
#include "base/number.h"
#include "model/convert.h"

/* ---- how a file's elements become the variable's ---- */

typedef struct hows {
    const cm_described *last; /* like files stand in a row */
    uint64_t length;          /* of texts */
    const cm_multi_how *how;
} hows;

static double number_of(const cm_described *d, const char *name, double otherwise)
{
    double x;
    return cm_json_get_double(cm_json_member(cm_described_attrs(d), name), &x) ? x : otherwise;
}

/* The number of the joined dimension that is dimension I of V, among those of V. */
static unsigned axis_of(const cm_join_tables *tables, const cm_join_var *v, unsigned i)
{
    unsigned n = 0;
    for (unsigned k = 0; k < i; k++)
        n += tables->dim[v->dim[k]].joined >= 0;
    return n;
}

static void set_order(const cm_join_input *in, const cm_join_tables *tables, const cm_join_var *v,
                      const cm_described *d, cm_multi_how *how)
{
    char buf[512];
    bool used[CM_MAX_RANK] = {false};
    unsigned next = 0;
    how->transposed = false;
    for (unsigned i = v->nlacking; i < v->rank; i++) {
        unsigned k = 0;
        while (k < d->rank &&
               (used[k] || strcmp(tables->dim[v->dim[i]].name,
                                  cm_join_name(in, tables, d->dim[k], buf, sizeof(buf))) != 0))
            k++;
        if (k == d->rank && v->is_text && i + 1 == v->rank)
            k = d->rank - 1;
        if (k == d->rank && v->widest == NULL)
            return;
        const cm_join_dim *dim = &tables->dim[v->dim[i]];
        if (k == d->rank && dim->joined >= 0) {
            how->lacks_axis[axis_of(tables, v, i)] = true;
            how->transposed |= !dim->one_each; /* repeated for each step of the file */
            continue;
        }
        how->repeats[i] = k == d->rank;
        how->transposed |= how->repeats[i] || k != next;
        if (how->repeats[i])
            continue;
        next++;
        used[k] = true;
        how->order[i] = k;
    }
    /* The joined dimensions that the file lacks come first, in the order of the variable's axes. */
    for (unsigned i = 0; i < v->nlacking && i < CM_MULTI_MAX_AXES; i++)
        how->lacks_axis[i] = true;
}

static bool is_nan(const cm_join_var *v)
{
    return v->dtype.kind == CM_KIND_FLOAT && isnan(cm_element_to_double(&v->dtype, v->fill_value));
}

/* NULL in *OUT where the elements of D are taken as they are.  LENGTH: of its texts. */
static int make_how(const cm_join_input *in, const cm_join_tables *tables, const cm_join_var *v,
                    const cm_described *d, uint64_t length, cm_emitted *e, const cm_multi_how **out,
                    cm_error *err)
{
    bool plain = cm_dtype_equal(&d->dtype, &v->dtype);
    cm_multi_how how = {.dtype = d->dtype,
                        .scale = 1,
                        .exact = v->exact && !plain,
                        .keeps_fill = in->has_base,
                        .pads = v->is_text &&
                                length < cm_join_length(v, &tables->dim[v->dim[v->rank - 1]]),
                        .width = length};
    *out = NULL;
    set_order(in, tables, v, d, &how);
    if (d->has_fill_value && v->has_fill_value && d->dtype.nbytes <= sizeof(how.fill) &&
        (!plain || memcmp(d->fill_value, v->fill_value, d->dtype.nbytes) != 0)) {
        how.replaces_fill = true;
        memcpy(how.fill, d->fill_value, d->dtype.nbytes);
    }
    /* Only a store that grows lacks one that a file has. */
    if (d->has_fill_value && !v->has_fill_value && cm_dtype_is_number(&d->dtype)) {
        how.refuses_fill = true;
        memcpy(how.fill, d->fill_value, d->dtype.nbytes);
    }
    /* NaN in the data and NaN for missing have the same meaning. */
    if (!d->has_fill_value && v->has_fill_value && !is_nan(v) &&
        (v->made_fill || (v->kinds & UINT32_C(1) << CM_FINDING_FILL) != 0))
        how.checks_fill = true;
    /* In a store they are. */
    if (v->unpacked && !(in->has_base && d == v->like)) {
        how.unpacks = true;
        how.other_sign = cm_join_has_other_sign(d);
        how.scale = number_of(d, "scale_factor", 1);
        how.offset = number_of(d, "add_offset", 0);
        how.single = !v->in_double && cm_join_unpacked(d).nbytes == 4;
    }
    if (plain && !how.transposed && !how.replaces_fill && !how.unpacks && !how.checks_fill &&
        !how.refuses_fill && !how.pads && !how.lacks_axis[0] && !how.lacks_axis[1])
        return CM_OK;
    if (CM_GROW(e->how, e->nhows, err) != CM_OK ||
        (e->how[e->nhows] = cm_calloc(1, sizeof(how), err)) == NULL)
        return CM_ENOMEM;
    *e->how[e->nhows] = how;
    *out = e->how[e->nhows++];
    return CM_OK;
}

static int set_how(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                   cm_emitted *e, hows *h, cm_multi_part *part, cm_error *err)
{
    const cm_described *d = cm_join_described(in, tables, at, part->file);
    const uint64_t length =
        tables->var[at].is_text ? cm_join_text_length(in, tables, at, part->file) : 0;
    int rc = CM_OK;
    if (d != h->last || length != h->length) {
        h->last = d;
        h->length = length;
        cm_survey_rest(in->survey);
        rc = make_how(in, tables, &tables->var[at], d, length, e, &h->how, err);
    }
    part->how = h->how;
    part->name = strcmp(d->name, tables->var[at].name) != 0 ? d->name : NULL;
    return rc;
}

/* ---- a variable ---- */

/* Where the chunks lie by the record; NULL: the file is opened. */
static int set_located(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                       cm_multi_part *part, cm_located *out, cm_error *err)
{
    cm_surveyed_var s;
    if (!cm_join_record(in, tables, at, part->file, &s) || !s.is_located)
        return CM_OK;
    *out = s.located;
    part->located = out;
    return cm_survey_form(in->survey, s.form, &out->form, err);
}

/* It is going to be read or written. */
static cm_located *touch_located(const cm_join_input *in, cm_located *located)
{
    cm_paged_touch(in->survey->paged, located, sizeof(*located));
    return located;
}

/*
 * Short lists of places are kept apart from the records: data that move would otherwise read
 * all the rest of these too.  Long ones stay where they are.
 */
static int gather_places(const cm_join_input *in, cm_located *located, size_t n, cm_error *err)
{
    enum {
        SHORT = 64
    };
    size_t total = 0, at = 0;
    for (size_t i = 0; i < n; i++)
        total += touch_located(in, &located[i])->nplaces <= SHORT ? located[i].nplaces : 0;
    cm_chunk_place *list = cm_join_alloc(in, total, sizeof(*list), err);
    if (list == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        cm_located *l = touch_located(in, &located[i]);
        if (l->place == NULL || l->nplaces > SHORT)
            continue;
        cm_survey_touch(in->survey);
        cm_paged_touch(in->survey->paged, list + at, l->nplaces * sizeof(*list));
        memcpy(list + at, l->place, l->nplaces * sizeof(*list));
        l->place = list + at;
        at += l->nplaces;
    }
    return CM_OK;
}

/* It is going to be read or written. */
static const cm_multi_part *touch_part(const cm_join_input *in, const cm_multi_part *part)
{
    cm_paged_touch(in->survey->paged, part, sizeof(*part));
    return part;
}

/* The last of N parts of V, or its only one. */
static void plant(const cm_join_var *v, const cm_placement *p, size_t n, cm_multi_part *part)
{
    if ((cm_join_planted & CM_PLANTED_STATIC) != 0 && p == NULL)
        part[0].file = v->file[v->nfiles - 1];
    if ((cm_join_planted & CM_PLANTED_PLACE) == 0 || p == NULL || part[n - 1].count[0] < 2)
        return;
    part[n - 1].first[0]++;
    part[n - 1].count[0]--;
}

static int set_parts(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                     const cm_field_source *field, cm_emitted *e, cm_multi_var *out, cm_error *err)
{
    const cm_placement *p = field->place;
    size_t n = p == NULL ? 1 : p->nparts;
    hows h = {0};
    cm_multi_part *part = cm_join_alloc(in, n, sizeof(*part), err);
    if (part == NULL)
        return CM_ENOMEM;
    if (p == NULL)
        part[0].file = field->file;
    cm_located *located = cm_join_alloc(in, n, sizeof(*located), err);
    if (located == NULL)
        return CM_ENOMEM;
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        if (p != NULL)
            part[i] = *touch_part(in, &p->part[i]);
        (void)touch_part(in, &part[i]);
        if (cm_join_planted != 0 && i + 1 == n)
            plant(&tables->var[at], p, n, part);
        rc = set_how(in, tables, at, e, &h, &part[i], err);
        if (rc == CM_OK)
            rc = set_located(in, tables, at, &part[i], touch_located(in, &located[i]), err);
    }
    out->part = part;
    out->nparts = n;
    return rc == CM_OK ? gather_places(in, located, n, err) : rc;
}

static int set_axes(const cm_join_tables *tables, const cm_join_var *v,
                    const cm_field_source *field, cm_multi_var *out)
{
    const cm_placement *p = field->place;
    out->naxes = p == NULL ? 0 : p->naxes;
    for (unsigned a = 0; a < out->naxes; a++)
        for (unsigned i = 0; i < v->rank; i++)
            if (tables->dim[v->dim[i]].joined == (int)p->axis[a])
                out->axis[a] = i;
    return CM_OK;
}

static void set_fill(const cm_join_var *v, cm_multi_var *out)
{
    out->has_fill_value = v->has_fill_value;
    memcpy(out->fill_value, v->fill_value, sizeof(out->fill_value));
    out->has_fill = v->like->has_fill && cm_dtype_equal(&v->like->dtype, &v->dtype);
    memcpy(out->fill, v->like->fill, sizeof(out->fill));
    /* Elements of no file hold the variable's fill value, whatever unwritten ones of a file are. */
    if (v->has_fill_value && memcmp(v->fill_value, out->fill, v->dtype.nbytes) != 0)
        out->has_fill = false;
    if (!out->has_fill && v->has_fill_value) {
        out->has_fill = true;
        memcpy(out->fill, v->fill_value, sizeof(out->fill));
    }
    out->fill_text = v->like->fill_text;
}

/* The runs of all files along D. */
static size_t list_runs(const cm_join_input *in, const cm_join_var *v, const cm_join_dim *d,
                        cm_multi_part *out)
{
    size_t n = 0;
    for (size_t i = 0; i < v->nfiles; i++) {
        const cm_join_vec *vec = cm_axis_vec(in, d, v->file[i]);
        for (size_t k = 0; vec != NULL && k < vec->nruns; k++, n++) {
            if (out == NULL)
                continue;
            (void)touch_part(in, &out[n]);
            out[n] = (cm_multi_part){.file = v->file[i],
                                     .origin = {vec->run[k].origin},
                                     .first = {vec->run[k].first},
                                     .count = {vec->run[k].count}};
        }
    }
    return n;
}

/* The files that give the values of V; for a coordinate, all that have it. */
static int set_said(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                    const cm_placement *p, cm_multi_var *out, cm_error *err)
{
    const cm_join_var *v = &tables->var[at];
    const cm_join_dim *d = v->rank > 0 ? &tables->dim[v->dim[0]] : NULL;
    bool coordinate = v->rank == 1 && d->joined >= 0 && d->var == at && !d->substitute;
    if (d == NULL || d->joined < 0 || (!coordinate && (p == NULL || p->naxes != 1)))
        return CM_OK;
    size_t n = coordinate ? list_runs(in, v, d, NULL) : p->nparts;
    cm_multi_part *said = cm_join_alloc(in, n, sizeof(*said), err);
    if (said == NULL)
        return CM_ENOMEM;
    if (coordinate)
        (void)list_runs(in, v, d, said);
    else
        cm_paged_copy(in->survey->paged, said, p->part, n * sizeof(*said));
    for (size_t i = 0; i < n; i++) {
        (void)touch_part(in, &said[i]);
        const cm_described *own = cm_join_described(in, tables, at, said[i].file);
        said[i].name = own != NULL && strcmp(own->name, v->name) != 0 ? own->name : NULL;
    }
    out->said = said;
    out->nsaid = n;
    out->named = coordinate && d->said_by != NULL;
    return CM_OK;
}

static int emit_variable(const cm_join_input *in, cm_join_tables *tables,
                         cm_join_findings *findings, const cm_field_sources *f, uint32_t at,
                         cm_emitted *e, cm_multi_var *out, cm_error *err)
{
    cm_join_var *v = &tables->var[at];
    bool placed = !v->given && f->of[at].place != NULL;
    int rc = CM_OK;
    if (placed && f->of[at].place->nholes > 0)
        rc = cm_join_make_fill(in, findings, v, err);
    if (rc != CM_OK)
        return rc;
    *out = (cm_multi_var){.name = v->name,
                          .dtype = v->dtype,
                          .rank = v->rank,
                          .attrs = v->attrs,
                          .is_char = v->like->is_char,
                          .first_static = cm_join_takes_first(tables, v),
                          .tolerance =
                              cm_join_is_tolerant(in, tables, at) ? in->options->tolerance : 0,
                          .scale_nbytes = v->like->scale_nbytes,
                          .offset_nbytes = v->like->offset_nbytes,
                          .unsupported = v->like->unsupported,
                          .decoded_from = v->like->decoded_from};
    for (unsigned i = 0; i < v->rank; i++) {
        const cm_join_dim *d = &tables->dim[v->dim[i]];
        out->dim_name[i] = d->name;
        out->shape[i] = cm_join_length(v, d);
        out->unlimited[i] = d->unlimited || d->joined >= 0;
    }
    out->is_coordinate = v->rank == 1 && strcmp(out->dim_name[0], v->name) == 0;
    set_fill(v, out);
    if (v->given) {
        out->values = v->values;
        out->texts = cm_dtype_is_vlen(&v->dtype) ? &v->texts : NULL;
        return v->made == NULL ? set_said(in, tables, at, f->of[at].place, out, err) : CM_OK;
    }
    rc = set_axes(tables, v, &f->of[at], out);
    return rc == CM_OK ? set_parts(in, tables, at, &f->of[at], e, out, err) : rc;
}

/* ---- all ---- */

static int emit_files(const cm_join_input *in, cm_emitted *e, cm_error *err)
{
    if ((e->file = cm_join_alloc(in, in->nfiles, sizeof(e->file[0]), err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < in->nfiles; i++) {
        const cm_surveyed *f = in->file[i];
        cm_survey_touch(in->survey);
        cm_paged_touch(in->survey->paged, f, sizeof(*f));
        cm_paged_touch(in->survey->paged, &e->file[i], sizeof(e->file[i]));
        e->file[i] = (cm_multi_file){.path = f->path,
                                     .dev = f->dev,
                                     .ino = f->ino,
                                     .nbytes = f->nbytes,
                                     .mtime_ns = f->mtime_ns,
                                     .copy = f->copy};
    }
    return CM_OK;
}

/* A digest of the files and of all decisions. */
static int set_fingerprint(const cm_join_input *in, const cm_join_tables *tables, cm_emitted *e,
                           const cm_multi_spec *s, cm_error *err)
{
    cm_digest sum = {0};
    cm_buf text = {0};
    uint64_t n = 0;
    int rc = CM_OK;
    for (size_t i = 0; i < s->nfiles; i++) {
        const cm_multi_file *f = &s->file[i];
        cm_survey_touch(in->survey);
        /* Another node that mounts the same disk may number the device, and files, otherwise. */
        const uint64_t id[2] = {f->nbytes, in->file[i]->is_base ? 0 : f->mtime_ns};
        /* A repository that grows is named with the snapshot that it has now. */
        const char *path = in->file[i]->is_base ? "" : f->path;
        cm_digest_element(&sum, n++, path, strlen(path));
        cm_digest_element(&sum, n++, id, sizeof(id));
    }
    for (size_t i = 0; rc == CM_OK && i < s->nvars; i++) {
        const cm_multi_var *v = &s->var[i];
        text.nbytes = 0;
        rc = cm_json_write(v->attrs, false, &text, err);
        cm_digest_element(&sum, n++, v->name, strlen(v->name));
        cm_digest_element(&sum, n++, text.data, text.nbytes);
        cm_digest_element(&sum, n++, v->shape, v->rank * sizeof(v->shape[0]));
        for (size_t k = 0; k < v->nparts; k++) {
            const cm_multi_part *p = &v->part[k];
            (void)touch_part(in, p);
            const uint64_t place[7] = {p->file,     p->origin[0], p->origin[1], p->first[0],
                                       p->first[1], p->count[0],  p->count[1]};
            cm_digest_element(&sum, n++, place, sizeof(place));
            if (p->how != NULL)
                cm_digest_element(&sum, n++, &p->how->dtype.nbytes, sizeof(p->how->dtype.nbytes));
            if (p->how != NULL && p->how->pads)
                cm_digest_element(&sum, n++, &p->how->width, sizeof(p->how->width));
        }
    }
    for (size_t i = 0; i < tables->nvars; i++)
        if (tables->var[i].values != NULL)
            cm_digest_element(&sum, n++, tables->var[i].values, tables->var[i].values_nbytes);
    cm_buf_release(&text);
    cm_digest_text(&sum, e->fingerprint);
    return rc;
}

static int emit_all(cm_join *j, cm_field_sources *f, cm_emitted *e, cm_error *err)
{
    cm_multi_spec *s = &j->spec;
    int rc = emit_files(&j->in, e, err);
    e->var = cm_calloc(j->tables.nvars + 1, sizeof(e->var[0]), err);
    e->number = cm_calloc(j->tables.nvars + 1, sizeof(e->number[0]), err);
    if (e->var == NULL || e->number == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < j->tables.nvars; i++) {
        e->number[i] = CM_JOIN_NONE;
        if (!j->tables.var[i].wanted)
            continue;
        e->number[i] = (uint32_t)s->nvars;
        /* Values that the join makes have the fill value of the whole. */
        rc = cm_join_settle_fill(&j->in, &j->tables, (uint32_t)i, f->of[i].place != NULL, err);
        if (rc == CM_OK)
            rc = cm_join_give_values(&j->in, &j->tables, &j->axes, &j->findings, f, (uint32_t)i,
                                     err);
        if (rc == CM_OK)
            rc = emit_variable(&j->in, &j->tables, &j->findings, f, (uint32_t)i, e,
                               &e->var[s->nvars++], err);
    }
    s->var = e->var;
    s->name = j->findings.report->name;
    s->format_name = j->in.file[j->in.has_base && j->in.nfiles > 1]->skeleton->format;
    s->file = e->file;
    s->nfiles = j->in.nfiles;
    return rc;
}

/* Notes that elements of variable AT are dropped: those of one of several files are kept. */
static void note_dropped(cm_join *j, const cm_field_sources *f, uint32_t at)
{
    cm_archive_report *r = j->findings.report;
    if (f->of[at].place == NULL)
        return;
    for (size_t i = 0; i < r->nvariables; i++)
        r->variable[i].drops |= strcmp(r->variable[i].name, j->tables.var[at].name) == 0;
}

/*
 * Parts of checks are described like those of variables and numbered as in the spec.  Static fields
 * are all compared with one file, whose part stands once.
 */
static int emit_checks(cm_join *j, cm_field_sources *f, cm_emitted *e, cm_error *err)
{
    cm_located *located = cm_join_alloc(&j->in, 2 * f->nchecks, sizeof(*located), err);
    int rc = located == NULL ? CM_ENOMEM : CM_OK;
    uint32_t var = CM_JOIN_NONE, given = CM_JOIN_NONE;
    hows h[2] = {{0}};
    size_t kept = 0, number = 0; /* of the finding about GIVEN */
    bool differs = false;
    for (size_t i = 0; rc == CM_OK && i < f->nchecks; i++) {
        cm_multi_check *c = &f->check[i];
        const uint32_t at = (uint32_t)c->var;
        if (j->tables.var[at].given) {
            number = at == given ? number : 0;
            given = at;
            rc =
                cm_join_check_given(&j->in, &j->tables, &j->findings, f, c, &number, &differs, err);
            if (rc == CM_OK && differs && c->may_differ)
                note_dropped(j, f, at);
            continue;
        }
        if (at != var) {
            memset(h, 0, sizeof(h));
            if (c->may_differ)
                note_dropped(j, f, at);
        }
        const cm_multi_part *last = at == var ? f->check[kept - 1].part : NULL;
        for (unsigned k = 0; rc == CM_OK && k < 2; k++) {
            cm_multi_part *p = &c->part[k];
            rc = set_how(&j->in, &j->tables, at, e, &h[k], p, err);
            if (last != NULL && last[k].file == p->file)
                p->located = last[k].located;
            else if (rc == CM_OK)
                rc = set_located(&j->in, &j->tables, at, p, &located[2 * kept + k], err);
        }
        var = at;
        c->var = e->number[at];
        f->check[kept++] = *c;
    }
    f->nchecks = kept;
    j->spec.check = f->check;
    j->spec.nchecks = kept;
    return rc == CM_OK ? gather_places(&j->in, located, 2 * kept, err) : rc;
}

static const char *known_as(const void *context, const char *name, char *buf, size_t size)
{
    const cm_join *j = context;
    return cm_join_name(&j->in, &j->tables, name, buf, size);
}

int cm_join_emit(cm_join *j, cm_error *err)
{
    cm_field_sources *f = j->fields;
    int rc = j->axes.refused ? CM_OK
                             : cm_join_fields(&j->in, &j->tables, &j->axes, &j->findings, f, err);
    if (rc == CM_OK)
        rc = cm_join_groups(&j->in, &j->findings, j->emitted, err);
    if (rc != CM_OK || j->findings.report->ndecisions > 0 || j->in.nfiles == 0)
        return rc;
    cm_emitted *e = j->emitted;
    rc = emit_all(j, f, e, err);
    if (rc == CM_OK)
        rc = emit_checks(j, f, e, err);
    cm_multi_spec *s = &j->spec;
    s->group = e->group;
    s->ngroups = e->ngroups;
    s->warning = (const char *const *)j->findings.warning;
    s->nwarnings = j->findings.nwarnings;
    s->irreversible = j->findings.irreversible;
    s->left_out = cm_join_left_out;
    s->known_as = known_as;
    s->context = j;
    s->any_overlap = j->in.options->overlap != CM_OVERLAP_ERROR;
    s->fills_gaps = j->in.options->gaps == CM_GAPS_FILL;
    s->base_yields = j->in.options->base_yields;
    s->tolerance = j->in.options->tolerance;
    if (rc == CM_OK)
        rc = set_fingerprint(&j->in, &j->tables, e, s, err);
    s->paged = j->in.survey->paged;
    s->fingerprint = e->fingerprint;
    j->whole = rc == CM_OK && j->findings.report->ndecisions == 0;
    return rc;
}

void cm_emitted_free(cm_emitted *e)
{
    if (e == NULL)
        return;
    for (size_t i = 0; i < e->nhows; i++)
        free(e->how[i]);
    for (size_t i = 0; i < e->ngroups; i++) {
        free((char *)(uintptr_t)e->group[i].path);
        cm_json_free((cm_json *)(uintptr_t)e->group[i].attrs);
    }
    free(e->group);
    free(e->var);
    free(e->how);
    free(e->number);
    free(e);
}
