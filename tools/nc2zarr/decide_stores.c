/* When several stores are proposed in place of one, and of which stores that is true. */
#include <string.h>

#include "../common/repository.h"
#include "archive.h"

bool nc2zarr_may_make_stores(const archive_job *job)
{
    const cm_transform_options *o = &job->v->o;
    const char *output = job->typed.output;
    return job->asked.store_per == NULL && job->append == NULL && o->refer == NULL &&
           o->stack.n == 0 && o->report == NULL && o->trace == NULL && !o->check &&
           !job->options.part.on && (output == NULL || !cm_is_repository(output));
}

static const cm_archive_variable *find(const cm_archive_report *r, const char *name)
{
    for (size_t i = 0; i < r->nvariables; i++)
        if (strcmp(r->variable[i].name, name) == 0)
            return &r->variable[i];
    return NULL;
}

/* Whether D drops a list or a field that differs, as positions of another grid; one number may. */
static bool drops_field(const archive_job *job, const nc2zarr_decision *d)
{
    bool drops = false;
    for (size_t s = 0; s < job->nstores && strcmp(d->option.name, "static") == 0; s++)
        for (size_t k = 0; k < d->nvariables; k++) {
            const cm_archive_variable *v = find(job->survey[s], d->variable[k]);
            drops |= v != NULL && v->rank > (strcmp(v->type, "bytes1") == 0);
        }
    return drops;
}

bool nc2zarr_may_be_several(const archive_job *job, const nc2zarr_decisions *d)
{
    bool several = d->obstacle != NULL;
    for (size_t i = 0; i < d->n; i++)
        several |=
            d->of[i].shifts || drops_field(job, &d->of[i]) ||
            (d->of[i].kind == CM_FINDING_LENGTH && strcmp(d->of[i].option.name, "exclude") == 0);
    return several;
}

bool nc2zarr_keeps_all(const nc2zarr_decisions *d)
{
    static const char *const KEEPING[] = {"store-per", "along",   "new-dim", "promote", "rename",
                                          "packing",   "missing", "gaps",    "order",   "attrs",
                                          "bad-file",  "offline", NULL};
    bool keeps = d->obstacle == NULL && !d->cuts;
    for (size_t i = 0; i < d->n; i++)
        keeps = keeps && nc2zarr_is_one_of(&d->of[i].option, KEEPING);
    return keeps;
}

bool nc2zarr_makes_stores(const nc2zarr_decisions *d)
{
    return d->n > 0 && d->of[0].nstores > 0; /* that option is tried first */
}

static bool is_joined(const cm_archive_report *r, const char *dim)
{
    for (size_t i = 0; i < r->naxes; i++)
        if (strcmp(r->axis[i].name, dim) == 0)
            return true;
    return false;
}

/* Whether V lies along what is joined in R; where nothing is, a series may be any variable. */
static bool may_be_series(const cm_archive_report *r, const cm_archive_variable *v)
{
    bool along = r->naxes == 0;
    for (unsigned k = 0; k < v->rank; k++)
        along |= is_joined(r, v->dim_name[k]);
    return along;
}

/* The dimensions of the series of R: what else may be one has no more. */
static unsigned rank_of_series(const cm_archive_report *r)
{
    unsigned most = 0;
    for (size_t i = 0; i < r->nvariables; i++)
        if (may_be_series(r, &r->variable[i]) && r->variable[i].rank > most)
            most = r->variable[i].rank;
    return most;
}

/* Whether B has V, of A, too, of one shape but for what is joined; SINGLE: of any shape. */
static bool has_alike(const cm_archive_report *a, const cm_archive_variable *v,
                      const cm_archive_report *b, bool single)
{
    const cm_archive_variable *w = find(b, v->name);
    bool alike = w != NULL && (single || w->rank == v->rank);
    for (unsigned k = 0; alike && !single && k < v->rank; k++)
        alike = strcmp(v->dim_name[k], w->dim_name[k]) == 0 &&
                (v->shape[k] == w->shape[k] || is_joined(a, v->dim_name[k]));
    return alike;
}

/* Whether the store B has a series of A: beside it either may have others. */
static bool share_series(const cm_archive_report *a, const cm_archive_report *b, bool single)
{
    const unsigned rank = rank_of_series(a);
    bool shared = false;
    for (size_t i = 0; i < a->nvariables; i++)
        shared |= a->variable[i].rank >= rank && may_be_series(a, &a->variable[i]) &&
                  has_alike(a, &a->variable[i], b, single);
    return shared;
}

/* Whether A and B begin and end with the same steps, as stores of the same time do. */
static bool are_abreast(const cm_archive_report *a, const cm_archive_report *b)
{
    bool same = a->naxes > 0 && a->naxes == b->naxes;
    for (size_t i = 0; same && i < a->naxes; i++) {
        const cm_archive_axis *x = &a->axis[i], *y = &b->axis[i];
        same = x->first != NULL && y->first != NULL && strcmp(x->first, y->first) == 0 &&
               strcmp(x->last, y->last) == 0;
    }
    return same;
}

/* Whether R is joined along all that WHOLE is: else it may be a part of it along what it is not. */
static bool spans(const cm_archive_report *r, const cm_archive_report *whole)
{
    bool all = true;
    for (size_t i = 0; i < whole->naxes; i++)
        all = all && is_joined(r, whole->axis[i].name);
    return all;
}

bool nc2zarr_cuts_series(const archive_job *job, const cm_archive_report *const *report, size_t n)
{
    /* Where each is a file alone, nothing tells along what a series of them would be joined. */
    bool single = true;
    for (size_t i = 0; i < n; i++)
        single = single && report[i]->nfiles == 1;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++) {
            const cm_archive_report *a = report[i], *b = report[k];
            const bool abreast = !single && are_abreast(a, b) && spans(a, job->survey[0]);
            if (!abreast && (share_series(a, b, single) || share_series(b, a, single)))
                return true;
        }
    return false;
}
