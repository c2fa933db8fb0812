/* The costs of options: by how much a store grows, and what it does not get. */
#include <stdlib.h>
#include <string.h>

#include "archive.h"
#include "base/mem.h"
#include "convert/stack/stack.h"
#include "model/dtype.h"

static const cm_archive_variable *variable_named(const cm_archive_report *const *report, size_t n,
                                                 const char *name)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < report[i]->nvariables; k++)
            if (strcmp(report[i]->variable[k].name, name) == 0)
                return &report[i]->variable[k];
    return NULL;
}

/* Bytes of an element of TYPE; of texts, which have no length, those of a reference. */
static uint64_t element_nbytes(const char *type)
{
    cm_dtype t;
    cm_error err = {0};
    if (strncmp(type, "bytes", 5) == 0)
        return strtoul(type + 5, NULL, 10);
    return cm_dtype_parse(type, &t, &err) == CM_OK && !cm_dtype_is_vlen(&t) ? t.nbytes : 8;
}

static uint64_t nbytes_of(const cm_archive_variable *v)
{
    uint64_t n = element_nbytes(v->type);
    for (unsigned i = 0; i < v->rank; i++)
        n *= v->shape[i];
    return n;
}

/* Steps of the joined dimension that no file has of NAME, of *ALL. */
static uint64_t steps_without(const cm_archive_report *const *report, size_t n, const char *name,
                              uint64_t *all)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < report[i]->naxes; k++)
            for (size_t c = 0; c < report[i]->axis[k].ncoverages; c++) {
                const cm_coverage *cover = &report[i]->axis[k].coverage[c];
                uint64_t none = 0;
                bool covers = false;
                for (size_t v = 0; v < cover->nvariables; v++)
                    covers |= strcmp(cover->variable[v], name) == 0;
                if (!covers)
                    continue;
                *all = 0;
                for (size_t s = 0; s < cover->nspans; s++) {
                    *all += cover->span[s].nsteps;
                    none += cover->span[s].nfiles == 0 ? cover->span[s].nsteps : 0;
                }
                return none;
            }
    return 0;
}

bool nc2zarr_has_dim(const cm_archive_variable *v, const char *name)
{
    for (unsigned k = 0; k < v->rank; k++)
        if (strcmp(v->dim_name[k], name) == 0)
            return true;
    return false;
}

/* Bytes that the files of R have of V, which lies along DIM, of which they have N elements. */
static uint64_t nbytes_along(const cm_archive_variable *v, const char *dim, uint64_t n)
{
    n *= element_nbytes(v->type);
    for (unsigned i = 0; i < v->rank; i++)
        n *= strcmp(v->dim_name[i], dim) == 0 ? 1 : v->shape[i];
    return n;
}

uint64_t nc2zarr_nbytes_in_files(const cm_archive_report *r, const cm_archive_variable *v)
{
    for (size_t i = 0; i < r->naxes; i++)
        if (nc2zarr_has_dim(v, r->axis[i].name))
            return nbytes_of(v);
    return nbytes_of(v) * v->nfiles;
}

void nc2zarr_count_lost(nc2zarr_decision *d, const cm_archive_report *r, const char *name,
                        const cm_finding *f)
{
    for (size_t i = 0; i < r->nvariables; i++) {
        const cm_archive_variable *v = &r->variable[i];
        if (strcmp(v->name, name) != 0)
            continue;
        if (strcmp(d->option.name, "static") == 0)
            d->nlost += nbytes_of(v) * f->nfiles;
        if (strcmp(d->option.name, "exclude") == 0)
            d->nlost += f->kind == CM_FINDING_LENGTH ? nbytes_along(v, f->variable, f->nelements)
                                                     : nc2zarr_nbytes_in_files(r, v);
    }
}

static int count_variable(nc2zarr_decision *d, size_t number, const archive_job *job,
                          const cm_archive_report *const *report, size_t n, cm_error *err)
{
    const char *name = d->variable[number];
    const cm_archive_variable *was = variable_named(job->survey, job->nstores, name);
    const cm_archive_variable *is = variable_named(report, n, name);
    if (was == NULL || is == NULL)
        return CM_OK;
    if (d->type[0] == NULL && ((d->type[0] = cm_strdup(was->type, err)) == NULL ||
                               (d->type[1] = cm_strdup(is->type, err)) == NULL))
        return CM_ENOMEM;
    const uint64_t now = nbytes_of(is), own = element_nbytes(is->type);
    const uint64_t before = was->narrowest;
    if (strcmp(d->option.name, "packing") == 0 && own > before) {
        d->nadded += now / own * (own - before);
        d->widens |= before != element_nbytes(was->type);
    }
    if (strcmp(d->option.name, "promote") == 0 && now > nbytes_of(was))
        d->nadded += now - nbytes_of(was);
    if (strcmp(d->option.name, "missing") == 0) {
        nc2zarr_share *s = &d->share[number];
        s->nfilled = steps_without(report, n, name, &s->nsteps);
        d->nfilled = s->nfilled > d->nfilled ? s->nfilled : d->nfilled;
    }
    return CM_OK;
}

/* Finds out which decisions are about a variable that STACK, "NAME=A,B@DIM", is made of. */
static int mark_stack(nc2zarr_decisions *d, const char *stack, cm_error *err)
{
    cm_stack_text text;
    int rc = cm_stack_text_parse(stack, &text, err);
    for (size_t i = 0; rc == CM_OK && i < d->n; i++)
        for (size_t k = 0; k < d->of[i].nvariables; k++)
            for (size_t m = 0; m < text.nitems; m++)
                d->of[i].of_stack |= strcmp(d->of[i].variable[k], text.item[m].name) == 0;
    cm_stack_text_release(&text);
    return rc;
}

int nc2zarr_count_costs(nc2zarr_decisions *d, const archive_job *job,
                        const cm_archive_report *const *report, size_t n, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < report[i]->nvariables; k++)
            d->nbytes += nbytes_of(&report[i]->variable[k]);
    for (size_t i = 0; i < n; i++)
        d->nlater += report[i]->nlater;
    for (size_t i = 0; i < n; i++)
        d->ordered |= report[i]->naxes > 0 && report[i]->axis[0].first != NULL;
    for (size_t i = 0; rc == CM_OK && i < d->n; i++)
        for (size_t k = 0; rc == CM_OK && k < d->of[i].nvariables; k++)
            rc = count_variable(&d->of[i], k, job, report, n, err);
    for (size_t i = 0; rc == CM_OK && i < job->options.stack.n; i++)
        rc = mark_stack(d, job->options.stack.text[i], err);
    return rc;
}
