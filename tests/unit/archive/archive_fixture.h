/*
 * Files of an archive as tables in memory, joined, and what became of them as text.
 *
 * A row of a test is a table of files, the options, and lines of text: those of `told_axes`,
 * `told_variable` and `told_findings`.
 */
#ifndef TESTS_JOB_ARCHIVE_FIXTURE_H
#define TESTS_JOB_ARCHIVE_FIXTURE_H

#include "../fixtures/made_dataset.h"
#include "../fixtures/tell.h"
#include "archive/axes/coordinate.h"
#include "archive/axes/merge.h"
#include "archive/emit.h"
#include "archive/survey/look.h"
#include "archive/survey/records.h"

enum {
    JOINED_FILES = 8
};

typedef struct joined {
    cm_survey survey;
    cm_archive_report report;
    cm_archive_options options;
    cm_join *join;
    int status; /* of the join; OK also where files need a decision */
    cm_error error;
    cm_buf text; /* the last that was told */
} joined;

static inline void joined_survey(joined *a, const made_file *file, size_t n)
{
    cm_looker l = {0};
    cm_spot spot[JOINED_FILES] = {0};
    size_t number = 0;
    a->survey.paged = cm_paged_create(NULL, NULL);
    a->survey.file = cm_paged_calloc(a->survey.paged, n + 1, sizeof(cm_surveyed), NULL);
    a->survey.nfiles = n;
    OK(cm_records_create(NULL, a->survey.paged, &a->survey.records, err));
    for (size_t i = 0; i < n; i++) {
        cm_dataset *ds = made_open(&file[i]);
        a->survey.file[i] = (cm_surveyed){.path = file[i].path,
                                          .given = n - 1 - i, /* as if they were given backwards */
                                          .is_base = a->options.base != NULL && i == 0};
        OK(cm_look_at(&l, ds, i, err));
        cm_dataset_close(ds);
    }
    cm_frame f;
    for (size_t at = 0; at < l.out.nbytes; at += sizeof f + f.nbytes) {
        memcpy(&f, l.out.data + at, sizeof f);
        cm_spot s = {.nbytes = f.nbytes};
        OK(cm_records_append(a->survey.records, &f, l.out.data + at + sizeof f, &s.offset, err));
        if (f.kind == CM_FRAME_FILE)
            spot[number++] = s;
    }
    assert_int_equal(number, n);
    OK(cm_records_map(a->survey.records, err));
    for (size_t i = 0; i < n; i++)
        OK(cm_surveyed_read(&a->survey, &a->survey.file[i], &spot[i], err));
    cm_looker_release(&l);
}

/* FILE, which ends with one without a name, as OPTIONS (NULL: the defaults) join them. */
static inline void joined_make(joined *a, const made_file *file, const cm_archive_options *options)
{
    uint32_t number[JOINED_FILES];
    size_t n = 0;
    *a = (joined){0};
    if (options != NULL)
        a->options = *options;
    for (; n < JOINED_FILES && file[n].path != NULL; n++)
        number[n] = (uint32_t)n;
    joined_survey(a, file, n);
    a->status =
        cm_join_create(&a->options, &a->survey, number, n, NULL, &a->report, &a->join, &a->error);
}

static inline void joined_release(joined *a)
{
    cm_join_free(a->join);
    cm_report_release(&a->report);
    cm_survey_release(&a->survey);
    cm_buf_release(&a->text);
}

/* ---- as text ---- */

/* "t: 0 1 2 | a 0+2>0 b 1+2>1": the coordinates, then first + count > place of each file. */
static inline const char *told_axes(joined *a)
{
    char text[64];
    const cm_join *j = a->join;
    tell_begin(&a->text);
    for (unsigned i = 0; i < j->axes.naxes; i++) {
        const cm_join_dim *d = &j->tables.dim[j->axes.axis[i]];
        tell(&a->text, "%s%s:", i > 0 ? "; " : "", d->name);
        if (d->key == NULL)
            tell(&a->text, " %u steps", (unsigned)d->n);
        for (uint64_t k = 0; d->key != NULL && k < d->n; k++)
            tell(&a->text, " %s", cm_key_text(&j->in, d, d->key[k], text, sizeof text));
        tell(&a->text, " |");
        for (uint32_t f = 0; f < j->in.nfiles; f++) {
            const cm_join_vec *v = cm_axis_vec(&j->in, d, f);
            for (size_t r = 0; v != NULL && r < v->nruns; r++)
                tell(&a->text, " %s %u+%u>%u", j->in.file[f]->path, (unsigned)v->run[r].first,
                     (unsigned)v->run[r].count, (unsigned)v->run[r].origin);
        }
    }
    return (const char *)a->text.data;
}

/* The variable of the specification; NULL: there is none. */
static inline const cm_multi_var *joined_variable(const joined *a, const char *name)
{
    for (size_t i = 0; i < a->join->spec.nvars; i++)
        if (strcmp(a->join->spec.var[i].name, name) == 0)
            return &a->join->spec.var[i];
    return NULL;
}

static inline void told_elements(joined *a, const cm_multi_var *v)
{
    char text[64];
    uint64_t n = 1;
    for (unsigned k = 0; k < v->rank; k++)
        n *= v->shape[k];
    tell(&a->text, " =");
    for (uint64_t i = 0; v->is_char && i < n; i++) {
        const char c = ((const char *)v->values)[i];
        tell(&a->text, "%s%c", i == 0 ? " " : "", c == '\0' ? '.' : c);
    }
    for (uint64_t i = 0; !v->is_char && i < n; i++)
        tell(
            &a->text, " %s",
            made_text(&v->dtype, (const char *)v->values + i * v->dtype.nbytes, text, sizeof text));
}

/* How elements of a file become those of the variable. */
static inline void told_how(joined *a, const cm_multi_var *v, const cm_multi_how *how)
{
    char text[64];
    if (how == NULL)
        return;
    if (!cm_dtype_equal(&how->dtype, &v->dtype))
        tell(&a->text, " from %s", cm_dtype_name(&how->dtype, text, sizeof text));
    if (how->exact)
        tell(&a->text, " exactly");
    for (unsigned k = 0; how->transposed && k < v->rank; k++)
        tell(&a->text, k == 0 ? " order %u" : ",%u", how->order[k]);
    if (how->lacks_axis[0] || how->lacks_axis[1])
        tell(&a->text, " lacks %u", how->lacks_axis[0] ? 0u : 1u);
    for (unsigned k = 0; k < v->rank; k++)
        if (how->repeats[k])
            tell(&a->text, " repeats %u", k);
    if (how->pads)
        tell(&a->text, " width %u", (unsigned)how->width);
    if (how->unpacks)
        tell(&a->text, " x%g+%g", how->scale, how->offset);
    if (how->other_sign)
        tell(&a->text, " other sign");
    if (how->replaces_fill)
        tell(&a->text, " fill %s", made_text(&how->dtype, how->fill, text, sizeof text));
    if (how->checks_fill)
        tell(&a->text, " checks fill");
    if (how->refuses_fill)
        tell(&a->text, " refuses fill");
}

static inline void told_attrs(joined *a, const cm_json *attrs)
{
    cm_buf text = {0};
    if (cm_json_length(attrs) == 0)
        return;
    OK(cm_json_write(attrs, false, &text, err));
    for (size_t i = 0; i < text.nbytes; i++)
        if (text.data[i] == '"')
            text.data[i] = '\'';
    tell(&a->text, " %.*s", (int)text.nbytes, (const char *)text.data);
    cm_buf_release(&text);
}

/* "v: float32 t=4 y=2 fill -999 | a 0+2>0 b 0+2>2 from int16": the specification of NAME. */
static inline const char *told_variable(joined *a, const char *name)
{
    char text[64];
    const cm_multi_var *v = joined_variable(a, name);
    tell_begin(&a->text);
    if (v == NULL) {
        tell(&a->text, "%s: none", name);
        return (const char *)a->text.data;
    }
    tell(&a->text, "%s: %s", name,
         v->is_char ? "char" : cm_dtype_name(&v->dtype, text, sizeof text));
    for (unsigned k = 0; k < v->rank; k++)
        tell(&a->text, " %s%s=%u", v->dim_name[k], v->unlimited[k] ? "*" : "",
             (unsigned)v->shape[k]);
    if (v->has_fill_value)
        tell(&a->text, " fill %s", made_text(&v->dtype, v->fill_value, text, sizeof text));
    if (v->values != NULL)
        told_elements(a, v);
    for (size_t i = 0; v->texts != NULL && i < v->texts->nelem; i++) {
        size_t n;
        const char *one = cm_strings_get(v->texts, i, &n);
        tell(&a->text, "%s %.*s", i == 0 ? " =" : "", (int)n, one);
    }
    told_attrs(a, v->attrs);
    tell(&a->text, " |");
    for (size_t i = 0; i < v->nparts; i++) {
        const cm_multi_part *p = &v->part[i];
        tell(&a->text, " %s", a->join->spec.file[p->file].path);
        if (p->name != NULL)
            tell(&a->text, ":%s", p->name);
        for (unsigned k = 0; k < v->naxes; k++)
            tell(&a->text, " %u+%u>%u", (unsigned)p->first[k], (unsigned)p->count[k],
                 (unsigned)p->origin[k]);
        told_how(a, v, p->how);
    }
    return (const char *)a->text.data;
}

/* "decision static v b: its values differ; note ...": WEIGHT KIND VARIABLE FILE[ to LAST]: TEXT. */
static inline const char *told_findings(joined *a)
{
    static const char *const WEIGHT[] = {"note", "warning", "decision"};
    tell_begin(&a->text);
    for (size_t i = 0; i < a->report.nfindings; i++) {
        const cm_finding *f = &a->report.finding[i];
        tell(&a->text, "%s%s %s", i > 0 ? "\n" : "", WEIGHT[f->weight], cm_finding_name(f->kind));
        if (f->variable != NULL)
            tell(&a->text, " %s", f->variable);
        if (f->file != NULL)
            tell(&a->text, " %s", f->file);
        if (f->nfiles > 1)
            tell(&a->text, " to %s", f->last);
        tell(&a->text, ": %s", f->text);
    }
    return (const char *)a->text.data;
}

/* The values that two files must have alike are compared while data move: "v a b; ...". */
static inline const char *told_checks(joined *a)
{
    tell_begin(&a->text);
    for (size_t i = 0; i < a->join->spec.nchecks; i++) {
        const cm_multi_check *c = &a->join->spec.check[i];
        const cm_multi_var *v = &a->join->spec.var[c->var];
        tell(&a->text, "%s%s", i > 0 ? "; " : "", v->name);
        for (unsigned k = 0; k < 2; k++) {
            tell(&a->text, " %s", a->join->spec.file[c->part[k].file].path);
            for (unsigned x = 0; x < v->naxes; x++)
                tell(&a->text, " %u+%u>%u", (unsigned)c->part[k].first[x],
                     (unsigned)c->part[k].count[x], (unsigned)c->part[k].origin[x]);
        }
        if (c->may_differ)
            tell(&a->text, " may differ");
        if (c->tolerance > 0)
            tell(&a->text, " within %g", c->tolerance);
    }
    return (const char *)a->text.data;
}

/* ---- rows ---- */

/* The only step of a file, number N. */
#define STEP(n)                                                                                    \
    {                                                                                              \
        "t", "int32", "t*=1", .values = #n                                                         \
    }

typedef struct joined_row {
    const char *name;
    made_file file[JOINED_FILES]; /* the last has no name */
    cm_archive_options options;
    /* As the functions above tell it; NULL: it is not asked for. */
    const char *axes, *findings, *checks, *variable[3];
    const char *error; /* the sentence of what fails; NULL: nothing does */
} joined_row;

static inline void joined_try(const joined_row *row, size_t n)
{
    unsigned bad = 0;
    for (; n-- > 0; row++) {
        joined a;
        joined_make(&a, row->file, &row->options);
        tell_compare(row->name, a.status == CM_OK ? "" : a.error.text,
                     row->error != NULL ? row->error : "", &bad);
        tell_compare(row->name, told_axes(&a), row->axes, &bad);
        tell_compare(row->name, told_findings(&a), row->findings, &bad);
        tell_compare(row->name, told_checks(&a), row->checks, &bad);
        for (unsigned i = 0; i < COUNT(row->variable) && row->variable[i] != NULL; i++) {
            char name[64] = "";
            sscanf(row->variable[i], "%63[^:]", name);
            tell_compare(row->name, told_variable(&a, name), row->variable[i], &bad);
        }
        joined_release(&a);
    }
    assert_int_equal(bad, 0);
}

#endif
