/* Dimensions that files call differently: by their coordinates they are one. */
#include <stdlib.h>
#include <string.h>

#include "archive/join.h"
#include "archive/tables/described.h"

/* The coordinate of dimension AT; NULL: it has none of its own name. */
static const cm_join_var *coordinate_of(const cm_join *j, uint32_t at)
{
    uint32_t var = cm_join_var_named(j, j->dim[at].name);
    if (var == CM_JOIN_NONE)
        return NULL;
    const cm_join_var *v = &j->var[var];
    return v->wanted && v->rank == 1 && v->dim[0] == at ? v : NULL;
}

/* Whether the coordinates have one standard_name, or lack it and both count time. */
static bool means_same(const cm_join_var *v, const cm_join_var *w)
{
    const char *x = cm_join_text(v->like, "standard_name");
    const char *y = cm_join_text(w->like, "standard_name");
    if (x != NULL && y != NULL)
        return strcmp(x, y) == 0;
    return strcmp(x != NULL   ? x
                  : y != NULL ? y
                              : "time",
                  "time") == 0 &&
           cm_join_counts_time(v->like) && cm_join_counts_time(w->like);
}

/* Whether no file has both, and the coordinates mean one thing. */
static bool is_same(const cm_join *j, uint32_t a, uint32_t b)
{
    const cm_join_var *v = coordinate_of(j, a), *w = coordinate_of(j, b);
    if (v == NULL || w == NULL || v->first >= w->first)
        return false;
    bool same = means_same(v, w);
    for (size_t f = 0; same && f < j->nfiles; f++)
        same = !cm_file_has(j->dim[a].length[f]) || !cm_file_has(j->dim[b].length[f]);
    return same;
}

int cm_join_tell_renamed(cm_join *j, const cm_join_var *v, const cm_join_var *w, cm_error *err)
{
    cm_finding *f = cm_join_find(j, CM_FINDING_NAME, CM_WEIGHT_DECISION, false, w->name, w->first,
                                 err, "by its %s it is %s in %s",
                                 cm_join_text(v->like, "standard_name") != NULL &&
                                         cm_join_text(w->like, "standard_name") != NULL
                                     ? "standard_name"
                                     : "units",
                                 v->name, j->file[v->first]->path);
    if (f == NULL || (f->other = cm_strdup(v->name, err)) == NULL)
        return CM_ENOMEM;
    int rc = CM_OK;
    for (size_t i = 1; rc == CM_OK && i < w->nfiles; i++)
        rc = cm_join_found_in(j, f, w->file[i], err);
    return rc;
}

int cm_join_renamed(cm_join *j, cm_error *err)
{
    int rc = CM_OK;
    for (uint32_t a = 0; rc == CM_OK && a < j->ndims; a++)
        for (uint32_t b = 0; rc == CM_OK && b < j->ndims; b++) {
            if (a == b || j->dim[a].same_as != CM_JOIN_NONE || j->dim[b].same_as != CM_JOIN_NONE ||
                !is_same(j, a, b))
                continue;
            j->dim[b].same_as = a;
            j->refused = true;
            rc = cm_join_tell_renamed(j, coordinate_of(j, a), coordinate_of(j, b), err);
        }
    return rc;
}
