/* The report of a join: what was joined, along what, and how. */
#include <stdlib.h>
#include <string.h>

#include "archive/axes/coordinate.h"
#include "archive/axes/coverage.h"
#include "archive/axes/merge.h"
#include "archive/join.h"
#include "archive/tables/described.h"
#include "base/number.h"

/* "2000 files in archive": the folder that holds them all; and what all their names begin with. */
static char *name_of(const cm_join_input *in, const cm_join_findings *findings, cm_error *err)
{
    size_t base = in->has_base && in->nfiles > 1, nfiles = in->nfiles - base;
    const char *first = in->file[base]->path;
    size_t n = strlen(first);
    if (nfiles == 1) {
        const char *slash = strrchr(first, '/');
        findings->report->begins =
            cm_asprintf(err, "%.*s", slash == NULL ? 0 : (int)(slash + 1 - first), first);
        return findings->report->begins == NULL ? NULL : cm_strdup(first, err);
    }
    for (size_t i = base + 1; i < in->nfiles; i++) {
        const char *path = cm_join_file(in, i)->path;
        size_t k = 0;
        while (k < n && path[k] == first[k])
            k++;
        n = k;
    }
    if ((findings->report->begins = cm_asprintf(err, "%.*s", (int)n, first)) == NULL)
        return NULL;
    while (n > 0 && first[n - 1] != '/')
        n--;
    if (n > 1)
        n--;
    return n == 0 ? cm_asprintf(err, "%zu %s", nfiles, cm_of_count(nfiles, "file", "files"))
                  : cm_asprintf(err, "%zu %s in %.*s", nfiles, cm_of_count(nfiles, "file", "files"),
                                (int)n, first);
}

static int describe_axis(const cm_join_input *in, const cm_join_tables *tables,
                         const cm_join_axes *axes, cm_join_findings *findings, unsigned i,
                         cm_error *err)
{
    const cm_join_dim *d = &tables->dim[axes->axis[i]];
    cm_archive_axis *a = &findings->report->axis[i];
    char text[64];
    a->length = d->n;
    for (size_t k = 0; k < d->nvecs; k++)
        a->nparts += cm_axis_vec_at(in, d, k)->nruns;
    if ((a->name = cm_strdup(d->name, err)) == NULL)
        return CM_ENOMEM;
    findings->report->naxes = i + 1;
    if (d->kind == CM_KEY_NONE || !cm_axis_has_steps(tables, axes, d))
        return CM_OK;
    a->first = cm_strdup(cm_key_text(in, d, d->key[0], text, sizeof(text)), err);
    a->last = cm_strdup(cm_key_text(in, d, d->key[d->n - 1], text, sizeof(text)), err);
    return a->first == NULL || a->last == NULL ? CM_ENOMEM : CM_OK;
}

static unsigned narrowest(const cm_join_input *in, const cm_join_tables *tables, uint32_t at)
{
    unsigned least = 0;
    for (size_t i = 0; i < tables->var[at].nfiles; i++) {
        const cm_described *d = cm_join_described(in, tables, at, tables->var[at].file[i]);
        if (least == 0 || d->dtype.nbytes < least)
            least = d->dtype.nbytes;
    }
    return least;
}

static int describe_variables(const cm_join_input *in, const cm_join_tables *tables,
                              cm_join_findings *findings, cm_error *err)
{
    char type[32];
    cm_archive_report *r = findings->report;
    if ((r->variable = cm_calloc(tables->nvars + 1, sizeof(r->variable[0]), err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < tables->nvars; i++) {
        const cm_join_var *v = &tables->var[i];
        if (!v->wanted)
            continue;
        cm_archive_variable *out = &r->variable[r->nvariables++];
        out->name = cm_strdup(v->name, err);
        out->type = cm_strdup(cm_dtype_name(&v->dtype, type, sizeof(type)), err);
        out->nfiles = v->nfiles;
        out->narrowest = narrowest(in, tables, (uint32_t)i);
        if (out->name == NULL || out->type == NULL)
            return CM_ENOMEM;
        for (unsigned k = 0; k < v->rank && k < 32; k++) {
            const cm_join_dim *d = &tables->dim[v->dim[k]];
            out->shape[k] = cm_join_length(v, d);
            if ((out->dim_name[k] = cm_strdup(d->name, err)) == NULL)
                return CM_ENOMEM;
            out->rank = k + 1;
        }
    }
    return CM_OK;
}

int cm_join_report(const cm_join_input *in, const cm_join_tables *tables, const cm_join_axes *axes,
                   cm_join_findings *findings, cm_error *err)
{
    cm_archive_report *r = findings->report;
    int rc = (r->name = name_of(in, findings, err)) == NULL ? CM_ENOMEM : CM_OK;
    for (unsigned i = 0; rc == CM_OK && i < axes->naxes; i++) {
        rc = describe_axis(in, tables, axes, findings, i, err);
        if (rc == CM_OK)
            rc = cm_join_cover(in, tables, axes, i, &r->axis[i], err);
    }
    if (rc == CM_OK && !tables->refused) /* else they have no shapes */
        rc = describe_variables(in, tables, findings, err);
    if (rc != CM_OK)
        return rc;
    if (in->nfiles < 2 && !tables->refused)
        r->how = cm_strdup("one file", err);
    else if (tables->refused || (axes->naxes == 0 && axes->refused))
        r->how = cm_asprintf(err, "not joined");
    else if (axes->naxes == 0)
        r->how = cm_asprintf(err, "merged: each file has variables of its own");
    else if (axes->naxes == 1)
        r->how = cm_asprintf(err, "joined along %s", r->axis[0].name);
    else
        r->how = cm_asprintf(err, "joined along %s and %s", r->axis[0].name, r->axis[1].name);
    return r->how == NULL ? CM_ENOMEM : CM_OK;
}

void cm_report_release(cm_archive_report *r)
{
    for (unsigned i = 0; i < 2; i++) {
        free(r->axis[i].name);
        free(r->axis[i].first);
        free(r->axis[i].last);
        free(r->axis[i].step);
        cm_coverage_release(&r->axis[i]);
    }
    for (size_t i = 0; i < r->nvariables; i++) {
        for (unsigned k = 0; k < r->variable[i].rank; k++)
            free(r->variable[i].dim_name[k]);
        free(r->variable[i].name);
        free(r->variable[i].type);
    }
    for (size_t i = 0; i < r->nfindings; i++) {
        free(r->finding[i].variable);
        free(r->finding[i].file);
        free(r->finding[i].last);
        free(r->finding[i].text);
        free(r->finding[i].other);
        free(r->finding[i].value);
    }
    free(r->variable);
    free(r->finding);
    free(r->name);
    free(r->begins);
    free(r->store);
    free(r->how);
}
