#include "archive/axes/ragged.h"

#include <stdio.h>
#include <string.h>

#include "archive/tables/described.h"

static cm_join_dim *dim_named(const cm_join_tables *tables, const char *name)
{
    const uint32_t at = name == NULL ? CM_JOIN_NONE : cm_join_dim_named(tables, name);
    return at == CM_JOIN_NONE ? NULL : &tables->dim[at];
}

/* Whether the files follow each other along A or B: no option names another dimension. */
static bool are_meant(const cm_join_input *in, const cm_join_tables *tables, const cm_join_dim *a,
                      const cm_join_dim *b)
{
    const char *along = in->options->along;
    for (size_t i = 0; i < tables->ndims; i++)
        if (tables->dim[i].one_each || tables->dim[i].made)
            return false;
    return in->nfiles > 1 &&
           (along == NULL || strcmp(along, a->name) == 0 || strcmp(along, b->name) == 0);
}

void cm_axis_find_ragged(const cm_join_input *in, cm_join_tables *tables)
{
    char buf[512];
    for (size_t i = 0; i < tables->nvars; i++) {
        const cm_join_var *v = &tables->var[i];
        const char *of = v->rank == 1 ? cm_join_text(v->like, "sample_dimension") : NULL;
        cm_join_dim *rows = of == NULL ? NULL : &tables->dim[v->dim[0]];
        cm_join_dim *samples =
            of == NULL ? NULL : dim_named(tables, cm_join_name(in, tables, of, buf, sizeof(buf)));
        if (samples == NULL || samples == rows || !are_meant(in, tables, rows, samples))
            continue;
        rows->ragged = true;
        samples->ragged = true;
    }
}

/* The first dimension of V's ATTRIBUTE, a list, that is joined; NULL: none. */
static const cm_join_dim *joined_of(const cm_join_input *in, const cm_join_tables *tables,
                                    const cm_join_var *v, const char *attribute)
{
    char word[512], buf[512];
    const char *text = cm_join_text(v->like, attribute);
    while (text != NULL && *text != '\0') {
        const size_t n = strcspn(text, " ");
        snprintf(word, sizeof(word), "%.*s", (int)n, text);
        const cm_join_dim *d = dim_named(tables, cm_join_name(in, tables, word, buf, sizeof(buf)));
        if (d != NULL && d->joined >= 0)
            return d;
        text += n + strspn(text + n, " ");
    }
    return NULL;
}

static int check_index(const cm_join_input *in, const cm_join_tables *tables,
                       cm_join_findings *findings, const cm_join_var *v, cm_error *err)
{
    static const char *const ATTRIBUTE[] = {"instance_dimension", "compress"};
    for (size_t i = 0; i < sizeof(ATTRIBUTE) / sizeof(ATTRIBUTE[0]); i++) {
        const cm_join_dim *d = joined_of(in, tables, v, ATTRIBUTE[i]);
        if (d != NULL &&
            cm_join_find(findings, CM_FINDING_INDEX, CM_WEIGHT_DECISION, false, v->name, v->first,
                         err,
                         "its values are places along %s of one file, by its attribute %s, and "
                         "%s is joined",
                         d->name, ATTRIBUTE[i], d->name) == NULL)
            return CM_ENOMEM;
    }
    return CM_OK;
}

int cm_axis_check_indices(const cm_join_input *in, const cm_join_tables *tables,
                          cm_join_findings *findings, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < tables->nvars; i++)
        if (tables->var[i].wanted)
            rc = check_index(in, tables, findings, &tables->var[i], err);
    return rc;
}
