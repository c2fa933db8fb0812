#include "archive/axes/groups.h"

#include <stdlib.h>
#include <string.h>

#include "archive/axes/coordinate.h"
#include "archive/tables/described.h"

/* A file, as it is sorted. */
typedef struct member {
    uint32_t fields; /* a variable that stands for all that its files share, */
    uint32_t there;  /* its place along the other joined dimension */
    uint32_t place;  /* of its coordinate in the list */
} member;

static int by_group(const void *a, const void *b)
{
    const member *x = a, *y = b;
    if (x->fields != y->fields)
        return x->fields < y->fields ? -1 : 1;
    if (x->there != y->there)
        return x->there < y->there ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* ---- variables that files share ---- */

/* Whether two files that have AT along D may give the same elements of it. */
static bool is_field(const cm_join_tables *tables, const cm_join_dim *d, uint32_t at)
{
    const cm_join_var *v = &tables->var[at];
    bool has = false;
    for (unsigned i = 0; i < v->rank; i++)
        has |= &tables->dim[v->dim[i]] == d;
    return has && v->wanted && v->made == NULL && d->var != at && !cm_join_is_auxiliary(tables, at);
}

static uint32_t stands_for(uint32_t *parent, uint32_t at)
{
    while (parent[at] != at)
        at = parent[at] = parent[parent[at]];
    return at;
}

/* The first field of FILE along D, with which all of its others are one; CM_JOIN_NONE: none. */
static uint32_t unite_fields(const cm_join_input *in, const cm_join_tables *tables, const bool *is,
                             uint32_t *parent, uint32_t file)
{
    const cm_skeleton *k = cm_join_skeleton(in, file);
    uint32_t first = CM_JOIN_NONE;
    for (size_t i = 0; i < k->nvars; i++) {
        const uint32_t at = tables->to_var[k->index][i];
        if (at == CM_JOIN_NONE || !is[at])
            continue;
        if (first == CM_JOIN_NONE)
            first = at;
        parent[stands_for(parent, at)] = stands_for(parent, first);
    }
    return first;
}

/* ---- groups ---- */

/* The vec of FILE along the joined dimension that is not D; CM_JOIN_NONE: there is none. */
static uint32_t place_of(const cm_join_input *in, const cm_join_tables *tables,
                         const cm_join_axes *axes, const cm_join_dim *d, uint32_t file)
{
    for (unsigned i = 0; i < axes->naxes; i++) {
        const cm_join_dim *other = &tables->dim[axes->axis[i]];
        const cm_join_vec *v = other == d ? NULL : cm_axis_vec(in, other, file);
        if (v != NULL)
            return (uint32_t)(v - other->vec);
    }
    return CM_JOIN_NONE;
}

/* The files that have one of the coordinates, in any order. */
static int list_members(const cm_join_input *in, const cm_join_tables *tables,
                        const cm_join_axes *axes, const cm_join_dim *d, const uint32_t *place,
                        member *out, size_t *n, cm_error *err)
{
    uint32_t *parent = cm_calloc(tables->nvars + 1, sizeof(*parent), err);
    bool *is = cm_calloc(tables->nvars + 1, sizeof(*is), err);
    for (uint32_t i = 0; parent != NULL && is != NULL && i < tables->nvars; i++) {
        parent[i] = i;
        is[i] = is_field(tables, d, i);
    }
    for (uint32_t i = 0; parent != NULL && is != NULL && i < in->nfiles; i++) {
        const cm_join_vec *v = cm_axis_vec(in, d, i);
        if (v == NULL || place[v - d->vec] == CM_JOIN_NONE)
            continue;
        out[(*n)++] = (member){.fields = unite_fields(in, tables, is, parent, i),
                               .there = place_of(in, tables, axes, d, i),
                               .place = place[v - d->vec]};
    }
    for (size_t i = 0; i < *n; i++)
        if (out[i].fields != CM_JOIN_NONE)
            out[i].fields = stands_for(parent, out[i].fields);
    const int rc = parent == NULL || is == NULL ? CM_ENOMEM : CM_OK;
    free(parent);
    free(is);
    return rc;
}

static void put_groups(const member *m, size_t n, const uint32_t *list, cm_axis_groups *out)
{
    size_t nvecs = 0;
    for (size_t i = 0; i < n; i++) {
        const bool begins =
            i == 0 || m[i].fields != m[i - 1].fields || m[i].there != m[i - 1].there;
        if (begins)
            out->begin[out->n++] = nvecs;
        if (begins || m[i].place != m[i - 1].place)
            out->vec[nvecs++] = list[m[i].place];
    }
    out->begin[out->n] = nvecs;
}

int cm_axis_group(const cm_join_input *in, const cm_join_tables *tables, const cm_join_axes *axes,
                  const cm_join_dim *d, const uint32_t *list, size_t nlist, cm_axis_groups *out,
                  cm_error *err)
{
    size_t n = 0;
    member *m = cm_calloc(in->nfiles + 1, sizeof(*m), err);
    uint32_t *place = cm_calloc(d->nvecs + 1, sizeof(*place), err);
    *out = (cm_axis_groups){.vec = cm_calloc(in->nfiles + 1, sizeof(*out->vec), err),
                            .begin = cm_calloc(in->nfiles + 1, sizeof(*out->begin), err)};
    int rc =
        m == NULL || place == NULL || out->vec == NULL || out->begin == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK) {
        memset(place, 0xff, (d->nvecs + 1) * sizeof(*place));
        for (size_t i = 0; i < nlist; i++)
            place[list[i]] = (uint32_t)i;
        rc = list_members(in, tables, axes, d, place, m, &n, err);
    }
    if (rc == CM_OK) {
        qsort(m, n, sizeof(*m), by_group);
        put_groups(m, n, list, out);
    }
    free(m);
    free(place);
    return rc;
}

void cm_axis_groups_release(cm_axis_groups *g)
{
    free(g->vec);
    free(g->begin);
    *g = (cm_axis_groups){0};
}
