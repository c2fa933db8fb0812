/* Finds dimensions that files name differently, by their coordinates. */
#include <stdlib.h>
#include <string.h>

#include "archive/join.h"
#include "archive/tables/described.h"
#include "archive/tables/reading.h"

/* The coordinate of dimension AT; NULL: it has none of its own name. */
static const cm_join_var *coordinate_of(const cm_join_tables *tables, uint32_t at)
{
    uint32_t var = cm_join_var_named(tables, tables->dim[at].name);
    if (var == CM_JOIN_NONE)
        return NULL;
    const cm_join_var *v = &tables->var[var];
    return v->wanted && v->rank == 1 && v->dim[0] == at ? v : NULL;
}

/* Whether the first files that have A and B say the same values. */
static bool has_same_values(const cm_join_input *in, const cm_join_tables *tables, uint32_t a,
                            uint32_t b)
{
    cm_surveyed_var x, y;
    const uint32_t in_a = tables->var[a].first, in_b = tables->var[b].first;
    return cm_join_record(in, tables, a, in_a, &x) && x.has_values &&
           cm_join_record(in, tables, b, in_b, &y) && y.has_values &&
           cm_wire_same(cm_join_meaning(in, tables, a, in_a, &x),
                        cm_join_meaning(in, tables, b, in_b, &y));
}

/*
 * Whether the coordinates have one standard_name, or lack it and both count time, or both the same
 * degrees: staggered grids have others.
 */
static bool means_same(const cm_join_input *in, const cm_join_tables *tables, const cm_join_var *v,
                       const cm_join_var *w)
{
    const char *x = cm_join_text(v->like, "standard_name");
    const char *y = cm_join_text(w->like, "standard_name");
    if (x != NULL && y != NULL)
        return strcmp(x, y) == 0;
    const char degrees = cm_join_degrees(v->like);
    if (degrees != '\0' && degrees == cm_join_degrees(w->like))
        return has_same_values(in, tables, (uint32_t)(v - tables->var),
                               (uint32_t)(w - tables->var));
    return strcmp(x != NULL   ? x
                  : y != NULL ? y
                              : "time",
                  "time") == 0 &&
           cm_join_counts_time(v->like) && cm_join_counts_time(w->like);
}

/* Whether no file has both, and their coordinates have the same meaning. */
static bool is_same(const cm_join_input *in, const cm_join_tables *tables, uint32_t a, uint32_t b)
{
    const cm_join_var *v = coordinate_of(tables, a), *w = coordinate_of(tables, b);
    if (v == NULL || w == NULL || v->first >= w->first)
        return false;
    bool same = means_same(in, tables, v, w);
    for (size_t f = 0; same && f < in->nfiles; f++)
        same = !cm_file_has(tables->dim[a].length[f]) || !cm_file_has(tables->dim[b].length[f]);
    return same;
}

int cm_join_tell_renamed(const cm_join_input *in, cm_join_findings *findings, const cm_join_var *v,
                         const cm_join_var *w, cm_error *err)
{
    cm_finding *f = cm_join_find(findings, CM_FINDING_NAME, CM_WEIGHT_DECISION, false, w->name,
                                 w->first, err, "by its %s it is %s in %s",
                                 cm_join_text(v->like, "standard_name") != NULL &&
                                         cm_join_text(w->like, "standard_name") != NULL
                                     ? "standard_name"
                                     : "units",
                                 v->name, in->file[v->first]->path);
    if (f == NULL || (f->other = cm_strdup(v->name, err)) == NULL)
        return CM_ENOMEM;
    int rc = CM_OK;
    for (size_t i = 1; rc == CM_OK && i < w->nfiles; i++)
        rc = cm_join_found_in(findings, f, w->file[i], err);
    return rc;
}

int cm_join_renamed(const cm_join_input *in, cm_join_tables *tables, cm_join_axes *axes,
                    cm_join_findings *findings, cm_error *err)
{
    int rc = CM_OK;
    for (uint32_t a = 0; rc == CM_OK && a < tables->ndims; a++)
        for (uint32_t b = 0; rc == CM_OK && b < tables->ndims; b++) {
            if (a == b || tables->dim[a].same_as != CM_JOIN_NONE ||
                tables->dim[b].same_as != CM_JOIN_NONE || !is_same(in, tables, a, b))
                continue;
            tables->dim[b].same_as = a;
            axes->refused = true;
            rc = cm_join_tell_renamed(in, findings, coordinate_of(tables, a),
                                      coordinate_of(tables, b), err);
        }
    return rc;
}
