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

bool nc2zarr_may_be_several(const nc2zarr_decisions *d)
{
    bool several = d->obstacle != NULL;
    for (size_t i = 0; i < d->n; i++)
        several |= d->of[i].shifts || (d->of[i].kind == CM_FINDING_LENGTH &&
                                       strcmp(d->of[i].option.name, "exclude") == 0);
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

static const cm_archive_variable *find(const cm_archive_report *r, const char *name)
{
    for (size_t i = 0; i < r->nvariables; i++)
        if (strcmp(r->variable[i].name, name) == 0)
            return &r->variable[i];
    return NULL;
}

/* Whether the stores A and B have the same variables, of one shape but for what is joined. */
static bool are_alike(const cm_archive_report *a, const cm_archive_report *b)
{
    bool alike = a->nvariables == b->nvariables && a->naxes == b->naxes;
    for (size_t i = 0; alike && i < a->nvariables; i++) {
        const cm_archive_variable *v = &a->variable[i], *w = find(b, v->name);
        alike = w != NULL && w->rank == v->rank;
        for (unsigned k = 0; alike && k < v->rank; k++)
            alike = strcmp(v->dim_name[k], w->dim_name[k]) == 0 &&
                    (v->shape[k] == w->shape[k] || is_joined(a, v->dim_name[k]));
    }
    return alike;
}

/* Whether A and B begin and end with the same steps, as stores of the same time do. */
static bool are_abreast(const cm_archive_report *a, const cm_archive_report *b)
{
    bool same = a->naxes > 0;
    for (size_t i = 0; same && i < a->naxes; i++) {
        const cm_archive_axis *x = &a->axis[i], *y = &b->axis[i];
        same = x->first != NULL && y->first != NULL && strcmp(x->first, y->first) == 0 &&
               strcmp(x->last, y->last) == 0;
    }
    return same;
}

bool nc2zarr_cuts_series(const cm_archive_report *const *report, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (are_alike(report[i], report[k]) && !are_abreast(report[i], report[k]))
                return true;
    return false;
}
