/*
 * Other dimensions that files may be joined along, where no coordinate says along which, and the
 * dimension that was found drops data or joins nothing.
 */
#include <stdlib.h>
#include <string.h>

#include "archive.h"
#include "base/mem.h"
#include "base/path.h"

/* Whether a variable of R other than a coordinate has the dimension E and lacks NAME. */
static bool lies_without(const cm_archive_report *r, const char *e, const char *name)
{
    for (size_t i = 0; i < r->nvariables; i++) {
        const cm_archive_variable *v = &r->variable[i];
        const bool coordinate = v->rank == 1 && strcmp(cm_path_last(v->name), e) == 0;
        if (!coordinate && nc2zarr_has_dim(v, e) && !nc2zarr_has_dim(v, name))
            return true;
    }
    return false;
}

/*
 * Whether V, of R, lies along NAME first, but for dimensions of one element that JOINED does not
 * join and that nothing has without it.
 */
static bool is_led_by(const cm_archive_report *r, const cm_archive_variable *v, const char *name,
                      const cm_archive_report *joined)
{
    /* The last of characters is the length of texts. */
    const unsigned rank = v->rank - (v->rank > 0 && strcmp(v->type, "bytes1") == 0);
    for (unsigned k = 0; k < rank; k++) {
        const char *e = v->dim_name[k];
        bool before = v->shape[k] == 1 && !lies_without(r, e, name);
        for (size_t i = 0; i < joined->naxes; i++)
            before &= strcmp(e, joined->axis[i].name) != 0;
        if (strcmp(e, name) == 0 || !before)
            return strcmp(e, name) == 0;
    }
    return false;
}

/* Whether most of the data of R lie along NAME first. */
static bool leads_most(const cm_archive_report *r, const cm_archive_report *joined,
                       const char *name)
{
    uint64_t led = 0, others = 0;
    for (size_t i = 0; i < r->nvariables; i++)
        *(is_led_by(r, &r->variable[i], name, joined) ? &led : &others) +=
            nc2zarr_nbytes_in_files(r, &r->variable[i]);
    return led > others;
}

static bool has_coordinate(const cm_archive_report *r, const char *name)
{
    for (size_t i = 0; i < r->nvariables; i++)
        if (strcmp(r->variable[i].name, name) == 0 && r->variable[i].rank == 1 &&
            strcmp(r->variable[i].dim_name[0], name) == 0)
            return true;
    return false;
}

/* Dimensions that may lead, each once: there are few, and many variables. */
typedef struct candidates {
    const char **name;
    size_t n;
} candidates;

static int add(candidates *c, const char *name, cm_error *err)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->name[i], name) == 0)
            return CM_OK;
    if (CM_GROW(c->name, c->n, err) != CM_OK)
        return CM_ENOMEM;
    c->name[c->n++] = name;
    return CM_OK;
}

static int take(nc2zarr_decisions *d, const cm_archive_report *r, const cm_archive_report *joined,
                const candidates *c, cm_error *err)
{
    for (size_t i = 0; i < c->n && d->nrivals < NC2ZARR_RIVALS; i++) {
        /* Tiles have their coordinates along any dimension. */
        const bool tiled = d->obstacle != NULL && has_coordinate(r, c->name[i]);
        if (!tiled && !leads_most(r, joined, c->name[i]))
            continue;
        if ((d->rival[d->nrivals] = cm_strdup(c->name[i], err)) == NULL)
            return CM_ENOMEM;
        d->nrivals++;
    }
    return CM_OK;
}

/* Whether an option of D drops or repeats NAME, which differs between files. */
static bool differs(const nc2zarr_decisions *d, const char *name)
{
    for (size_t i = 0; i < d->n; i++)
        for (size_t k = 0; k < d->of[i].nvariables; k++)
            if (d->of[i].kind == CM_FINDING_STATIC && strcmp(d->of[i].variable[k], name) == 0)
                return true;
    return false;
}

/* Whether another dimension than that which was found may be joined; HELPLESS: no option helps. */
static bool may_have_rivals(const archive_job *job, bool helpless)
{
    bool fine = job->nstores == 1 && job->asked.along == NULL && job->asked.new_dim.n == 0 &&
                job->asked.store_per == NULL && job->append == NULL;
    for (size_t k = 0; fine && !helpless && k < job->survey[0]->naxes; k++)
        fine = job->survey[0]->axis[k].first == NULL; /* a coordinate says it */
    return fine;
}

int nc2zarr_find_rivals(nc2zarr_decisions *d, const archive_job *job,
                        const cm_archive_report *joined, cm_error *err)
{
    candidates c = {0};
    int rc = CM_OK;
    if (!may_have_rivals(job, d->obstacle != NULL))
        return CM_OK;
    /* Options have not given it other dimensions. */
    const cm_archive_report *r = job->survey[0];
    for (size_t i = 0; rc == CM_OK && i < joined->nfindings; i++)
        if ((joined->finding[i].kind == CM_FINDING_LENGTH ||
             joined->finding[i].kind == CM_FINDING_COORDINATE) &&
            joined->finding[i].variable != NULL)
            rc = add(&c, joined->finding[i].variable, err);
    for (size_t i = 0; rc == CM_OK && i < r->nvariables; i++) {
        const cm_archive_variable *v = &r->variable[i];
        for (unsigned k = 0; rc == CM_OK && k < v->rank && differs(d, v->name); k++)
            rc = add(&c, v->dim_name[k], err);
    }
    if (rc == CM_OK)
        rc = take(d, r, joined, &c, err);
    free(c.name);
    return rc;
}

/* Bytes that values take which are repeated, since they differ between files. */
static uint64_t repeated(const nc2zarr_decisions *d)
{
    uint64_t n = 0;
    for (size_t i = 0; i < d->n; i++)
        n += d->of[i].kind == CM_FINDING_STATIC ? d->of[i].nadded : 0;
    return n;
}

/* With those of which only data tell: a dimension is not chosen where they may stop the run. */
static uint64_t lost(const nc2zarr_decisions *d)
{
    uint64_t n = d->nlater;
    for (size_t i = 0; i < d->n; i++)
        n += d->of[i].nlost;
    return n;
}

/*
 * Whether it joins the files at all, and keeps most of the data; CERTAIN: with no step in two of
 * them, whose data may differ.
 */
static bool joins(const nc2zarr_decisions *d, bool certain)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->of[i].kind == CM_FINDING_OVERLAP || strcmp(d->of[i].option.name, "new-dim") == 0)
            return false;
    return d->obstacle == NULL && !(certain && d->compares) && d->nbytes > lost(d);
}

bool nc2zarr_is_better(const nc2zarr_decisions *rival, const nc2zarr_decisions *best)
{
    if (best->obstacle != NULL)
        return joins(rival, false);
    if (!joins(rival, true))
        return false;
    return lost(rival) != lost(best) ? lost(rival) < lost(best) : repeated(rival) < repeated(best);
}
