#include "archive/axes/coverage.h"

#include <stdlib.h>
#include <string.h>

#include "archive/axes/coordinate.h"
#include "archive/axes/merge.h"
#include "archive/tables/described.h"
#include "base/mem.h"

enum {
    MANY = 2 /* files that have a step: so many or more */
};

/* ---- how many files have a step ---- */

typedef struct counter {
    const cm_join_input *in;
    const cm_join_tables *tables;
    const cm_join_dim *d;
    const cm_join_dim *other; /* the other joined dimension of the variable; or NULL */
    uint8_t *most;            /* of each step: files that have it, wherever on OTHER most do */
    uint8_t *now;             /* the same at one place of OTHER */
} counter;

/* A file, and where it lies on the other dimension. */
typedef struct placed {
    uint32_t file, there;
} placed;

static int by_place(const void *a, const void *b)
{
    const placed *x = a, *y = b;
    return x->there != y->there ? (x->there > y->there) - (x->there < y->there)
                                : (x->file > y->file) - (x->file < y->file);
}

static void count_file(const counter *c, uint32_t file)
{
    const cm_join_vec *v = cm_axis_vec(c->in, c->d, file);
    for (size_t r = 0; v != NULL && r < v->nruns; r++)
        for (uint64_t i = v->run[r].origin; i < v->run[r].origin + v->run[r].count; i++)
            c->now[i] += c->now[i] < MANY;
}

/* Into MOST; files of another member are no overlap. */
static int count(const counter *c, const cm_join_var *v, cm_error *err)
{
    placed *list = cm_calloc(v->nfiles + 1, sizeof(*list), err);
    if (list == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < v->nfiles; i++) {
        const cm_join_vec *there =
            c->other == NULL ? NULL : cm_axis_vec(c->in, c->other, v->file[i]);
        list[i] = (placed){v->file[i], there == NULL ? 0 : (uint32_t)(there - c->other->vec)};
    }
    qsort(list, v->nfiles, sizeof(*list), by_place);
    memset(c->most, 0, c->d->n);
    for (size_t i = 0; i < v->nfiles;) {
        size_t begin = i;
        memset(c->now, 0, c->d->n);
        for (; i < v->nfiles && list[i].there == list[begin].there; i++)
            count_file(c, list[i].file);
        for (uint64_t k = 0; k < c->d->n; k++)
            c->most[k] = c->now[k] > c->most[k] ? c->now[k] : c->most[k];
    }
    free(list);
    return CM_OK;
}

/* ---- spans ---- */

typedef struct builder {
    const cm_join_input *in;
    const cm_join_tables *tables;
    const cm_join_dim *d;
    cm_coverage *out;
} builder;

static char *text_of(const builder *b, int64_t key, cm_error *err)
{
    char text[64];
    return cm_strdup(cm_key_text(b->in, b->d, key, text, sizeof(text)), err);
}

/* N steps more, from FIRST to LAST where that is TOLD. */
static int add(builder *b, unsigned nfiles, uint64_t n, bool told, int64_t first, int64_t last,
               cm_error *err)
{
    cm_coverage *out = b->out;
    cm_covered *at = out->nspans > 0 ? &out->span[out->nspans - 1] : NULL;
    if (at == NULL || at->nfiles != nfiles) {
        if (CM_GROW(out->span, out->nspans, err) != CM_OK)
            return CM_ENOMEM;
        at = &out->span[out->nspans++];
        *at = (cm_covered){.nfiles = nfiles};
        if (told && (at->first = text_of(b, first, err)) == NULL)
            return CM_ENOMEM;
    }
    at->nsteps += n;
    free(at->last);
    at->last = NULL;
    return told && (at->last = text_of(b, last, err)) == NULL ? CM_ENOMEM : CM_OK;
}

/* Steps from FIRST on that as many files have. */
static uint64_t alike(const counter *c, uint64_t first, uint64_t end)
{
    uint64_t i = first + 1;
    while (i < end && c->most[i] == c->most[first])
        i++;
    return i - first;
}

static int find_spans(const counter *c, cm_coverage *out, cm_error *err)
{
    const cm_join_dim *d = c->d;
    builder b = {.in = c->in, .tables = c->tables, .d = d, .out = out};
    bool told = d->kind != CM_KEY_NONE;
    size_t g = 0;
    int rc = CM_OK;
    for (uint64_t i = 0; rc == CM_OK && i < d->n;) {
        uint64_t end = g < d->ngaps ? d->gap[g].after + 1 : d->n, n = alike(c, i, end);
        rc = add(&b, c->most[i], n, told, told ? d->key[i] : 0, told ? d->key[i + n - 1] : 0, err);
        i += n;
        if (rc == CM_OK && i == end && g < d->ngaps) {
            const cm_join_gap *gap = &d->gap[g++];
            rc = add(&b, 0, gap->n, gap->told, gap->first, gap->last, err);
        }
    }
    return rc;
}

/* ---- variables ---- */

static bool same_spans(const cm_coverage *a, const cm_coverage *b)
{
    if (a->nspans != b->nspans)
        return false;
    for (size_t i = 0; i < a->nspans; i++)
        if (a->span[i].nsteps != b->span[i].nsteps || a->span[i].nfiles != b->span[i].nfiles)
            return false;
    return true;
}

static void release(cm_coverage *c)
{
    for (size_t i = 0; i < c->nvariables; i++)
        free(c->variable[i]);
    for (size_t i = 0; i < c->nspans; i++) {
        free(c->span[i].first);
        free(c->span[i].last);
    }
    free(c->variable);
    free(c->span);
    *c = (cm_coverage){0};
}

static int name(cm_coverage *c, const char *variable, cm_error *err)
{
    if (CM_GROW(c->variable, c->nvariables, err) != CM_OK ||
        (c->variable[c->nvariables] = cm_strdup(variable, err)) == NULL)
        return CM_ENOMEM;
    c->nvariables++;
    return CM_OK;
}

/* Whether V has joined dimension NUMBER; *OTHER is the other one that it has. */
static bool has_axis(const cm_join_tables *tables, const cm_join_var *v, unsigned number,
                     const cm_join_dim **other)
{
    bool has = false;
    *other = NULL;
    for (unsigned i = 0; i < v->rank; i++) {
        const cm_join_dim *d = &tables->dim[v->dim[i]];
        has |= d->joined == (int)number;
        if (d->joined >= 0 && d->joined != (int)number)
            *other = d;
    }
    return has;
}

static bool same_files(const cm_join_var *a, const cm_join_var *b)
{
    return a->nfiles == b->nfiles && memcmp(a->file, b->file, a->nfiles * sizeof(*a->file)) == 0;
}

/* The row for variable AT: one that is there, or a new one. */
static int cover(counter *c, uint32_t at, uint32_t *like, cm_archive_axis *report, cm_error *err)
{
    const cm_join_var *var = c->tables->var, *v = &var[at];
    cm_coverage *row = report->coverage;
    for (size_t i = 0; i < report->ncoverages; i++) {
        const cm_join_dim *other;
        (void)has_axis(c->tables, &var[like[i]], (unsigned)c->d->joined, &other);
        if (other == c->other && same_files(v, &var[like[i]]))
            return name(&row[i], v->name, err);
    }
    cm_coverage made = {0};
    int rc = count(c, v, err);
    if (rc == CM_OK)
        rc = find_spans(c, &made, err);
    for (size_t i = 0; rc == CM_OK && i < report->ncoverages; i++)
        if (same_spans(&made, &row[i])) {
            release(&made);
            return name(&row[i], v->name, err);
        }
    if (rc == CM_OK)
        rc = name(&made, v->name, err);
    if (rc == CM_OK)
        rc = CM_GROW(report->coverage, report->ncoverages, err);
    if (rc != CM_OK) {
        release(&made);
        return rc;
    }
    like[report->ncoverages] = at;
    report->coverage[report->ncoverages++] = made;
    return CM_OK;
}

int cm_join_cover(const cm_join_input *in, const cm_join_tables *tables, const cm_join_axes *axes,
                  unsigned number, cm_archive_axis *report, cm_error *err)
{
    const cm_join_dim *d = &tables->dim[axes->axis[number]];
    if (!cm_axis_has_steps(tables, axes, d))
        return CM_OK;
    counter c = {.in = in, .tables = tables, .d = d};
    uint32_t *like = cm_calloc(tables->nvars + 1, sizeof(*like), err);
    c.most = like == NULL ? NULL : cm_calloc(d->n, 1, err);
    c.now = c.most == NULL ? NULL : cm_calloc(d->n, 1, err);
    int rc = c.now == NULL ? CM_ENOMEM : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < tables->nvars; i++) {
        const cm_join_var *v = &tables->var[i];
        /* A coordinate lies in files of any variable, which is no overlap. */
        if (v->wanted && v->made == NULL && has_axis(tables, v, number, &c.other) && d->var != i &&
            !cm_join_is_auxiliary(tables, (uint32_t)i))
            rc = cover(&c, (uint32_t)i, like, report, err);
    }
    free(c.now);
    free(c.most);
    free(like);
    return rc;
}

void cm_coverage_release(cm_archive_axis *report)
{
    for (size_t i = 0; i < report->ncoverages; i++)
        release(&report->coverage[i]);
    free(report->coverage);
}
