/* Texts as characters: their last dimension is the length, which may differ between files. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "archive/tables/described.h"

/* The findings, before anything is decided. */
typedef struct texts {
    const cm_join_input *in;
    cm_join_tables *tables;
    const cm_skeleton **skeleton; /* the distinct ones */
    size_t nskeletons;
    bool *dim; /* by dimension: nothing but the length of texts */
} texts;

static uint32_t dim_of(const cm_join_input *in, const cm_join_tables *tables, const cm_described *d,
                       unsigned k)
{
    char buf[512];
    return cm_join_dim_named(tables, cm_join_name(in, tables, d->dim[k], buf, sizeof(buf)));
}

uint64_t cm_join_text_length(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                             uint32_t file)
{
    cm_surveyed_var s;
    return cm_join_record(in, tables, at, file, &s) && s.var->rank > 0 ? s.shape[s.var->rank - 1]
                                                                       : 0;
}

/* ---- which they are ---- */

static bool has_texts(const cm_join_tables *tables)
{
    for (size_t i = 0; i < tables->nvars; i++)
        if (tables->var[i].wanted && tables->var[i].like->is_char && tables->var[i].like->rank > 0)
            return true;
    return false;
}

static int list_skeletons(texts *t, cm_error *err)
{
    bool *seen = cm_calloc(t->in->survey->nskeletons + 1, sizeof(*seen), err);
    t->skeleton = cm_calloc(t->in->survey->nskeletons + 1, sizeof(t->skeleton[0]), err);
    for (size_t i = 0; seen != NULL && t->skeleton != NULL && i < t->in->nfiles; i++) {
        const cm_skeleton *k = cm_join_skeleton(t->in, (uint32_t)i);
        if (!seen[k->index])
            t->skeleton[t->nskeletons++] = k;
        seen[k->index] = true;
    }
    bool whole = seen != NULL && t->skeleton != NULL;
    free(seen);
    return whole ? CM_OK : CM_ENOMEM;
}

/* An unlimited dimension of single characters may be the joined one. */
static bool may_be_length(const cm_described *d, unsigned k)
{
    return d->is_char && k + 1 == d->rank && (d->rank > 1 || !d->unlimited[k]);
}

/* Dimensions that are the last of characters wherever they are used, and have no coordinate. */
static int find_dims(texts *t, cm_error *err)
{
    const char *along = t->in->options->along;
    if ((t->dim = cm_calloc(t->tables->ndims + 1, sizeof(t->dim[0]), err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; i < t->tables->ndims; i++)
        t->dim[i] = t->tables->dim[i].same_as == CM_JOIN_NONE &&
                    (along == NULL || strcmp(along, t->tables->dim[i].name) != 0);
    for (size_t s = 0; s < t->nskeletons; s++)
        for (size_t i = 0; i < t->skeleton[s]->nvars; i++) {
            const cm_described *d = t->skeleton[s]->var[i];
            if (!t->tables->var[t->tables->to_var[t->skeleton[s]->index][i]].wanted)
                continue;
            for (unsigned k = 0; k < d->rank; k++)
                if (!may_be_length(d, k) || d->is_coordinate)
                    t->dim[dim_of(t->in, t->tables, d, k)] = false;
        }
    return CM_OK;
}

/* Variables that are texts in all files; false: a dimension of theirs belongs to others too. */
static bool find_vars(const texts *t)
{
    for (size_t i = 0; i < t->tables->nvars; i++)
        t->tables->var[i].is_text = t->tables->var[i].wanted && t->tables->var[i].like->is_char;
    for (size_t s = 0; s < t->nskeletons; s++)
        for (size_t i = 0; i < t->skeleton[s]->nvars; i++) {
            const cm_described *d = t->skeleton[s]->var[i];
            cm_join_var *v = &t->tables->var[t->tables->to_var[t->skeleton[s]->index][i]];
            v->is_text = v->is_text && d->is_char && d->rank > 0 &&
                         t->dim[dim_of(t->in, t->tables, d, d->rank - 1)];
        }
    bool alone = true;
    for (size_t s = 0; s < t->nskeletons; s++)
        for (size_t i = 0; i < t->skeleton[s]->nvars; i++) {
            const cm_described *d = t->skeleton[s]->var[i];
            const cm_join_var *v = &t->tables->var[t->tables->to_var[t->skeleton[s]->index][i]];
            bool *dim = v->wanted && !v->is_text && d->rank > 0
                            ? &t->dim[dim_of(t->in, t->tables, d, d->rank - 1)]
                            : NULL;
            alone = alone && (dim == NULL || !*dim);
            if (dim != NULL)
                *dim = false;
        }
    return alone;
}

/* ---- how long they are ---- */

static void note_length(cm_join_tables *tables, uint32_t dim, uint64_t length)
{
    cm_join_dim *d = &tables->dim[dim];
    d->is_text = true;
    d->n = length > d->n ? length : d->n;
}

static void find_lengths(const cm_join_input *in, cm_join_tables *tables, uint32_t at)
{
    const cm_join_var *v = &tables->var[at];
    const cm_described *last = NULL;
    uint32_t dim = CM_JOIN_NONE;
    for (size_t i = 0; i < v->nfiles; i++) {
        const cm_described *d = cm_join_described(in, tables, at, v->file[i]);
        if (d != last)
            dim = dim_of(in, tables, d, d->rank - 1);
        last = d;
        note_length(tables, dim, cm_join_text_length(in, tables, at, v->file[i]));
    }
}

/* A store keeps the lengths that it has. */
static void keep_lengths(const cm_join_input *in, cm_join_tables *tables)
{
    for (size_t i = 0; in->has_base && i < tables->ndims; i++)
        if (tables->dim[i].is_text && cm_file_has(tables->dim[i].length[0]))
            tables->dim[i].n = cm_file_count(tables->dim[i].length[0]);
}

/* Of the dimensions that the texts have in files V gets the longest; a store keeps its own. */
static void choose_dim(const cm_join_input *in, cm_join_tables *tables, uint32_t at)
{
    cm_join_var *v = &tables->var[at];
    const cm_described *last = v->like;
    if (in->has_base && v->first == 0)
        return;
    for (size_t i = 0; i < v->nfiles; i++) {
        const cm_described *d = cm_join_described(in, tables, at, v->file[i]);
        if (d == last)
            continue;
        last = d;
        const uint32_t dim = dim_of(in, tables, d, d->rank - 1);
        if (tables->dim[dim].n > tables->dim[v->dim[v->rank - 1]].n)
            v->dim[v->rank - 1] = dim;
    }
}

/* ---- findings ---- */

static int tell_length(const cm_join_input *in, const cm_join_tables *tables,
                       cm_join_findings *findings, const cm_join_var *v, uint64_t own,
                       uint64_t first, uint32_t file, cm_error *err)
{
    const char *path = in->file[v->first]->path;
    const uint64_t n = cm_join_length(v, &tables->dim[v->dim[v->rank - 1]]);
    if (own > n)
        return cm_join_find(findings, CM_FINDING_TYPE, CM_WEIGHT_DECISION, false, v->name, file,
                            err,
                            "its texts are %" PRIu64 " characters long, and %" PRIu64
                            " in the store, which keeps that length",
                            own, first) == NULL
                   ? CM_ENOMEM
                   : CM_OK;
    cm_finding *f =
        cm_join_find(findings, CM_FINDING_TYPE, CM_WEIGHT_NOTE, false, v->name, file, err,
                     "its texts are %" PRIu64 " characters long, and %" PRIu64
                     " in %s; they are filled up with NULs to %" PRIu64,
                     own, first, path, n);
    if (f == NULL)
        return CM_ENOMEM;
    f->by = CM_DECIDER_CHAR;
    f->value = in->has_base ? NULL : cm_strdup("join", err);
    return f->value == NULL && !in->has_base ? CM_ENOMEM : CM_OK;
}

static int tell_name(const cm_join_input *in, cm_join_findings *findings, const cm_join_var *v,
                     const char *name, uint32_t file, cm_error *err)
{
    return cm_join_find(findings, CM_FINDING_DIMENSIONS, CM_WEIGHT_NOTE, false, v->name, file, err,
                        "the length of its texts is called %s, and %s in %s", name,
                        v->like->dim[v->like->rank - 1], in->file[v->first]->path) == NULL
               ? CM_ENOMEM
               : CM_OK;
}

/* Adds FILE to finding NUMBER, from 1; 0: makes the finding. */
typedef struct told {
    size_t longer, other, name;
} told;

static int tell(const cm_join_input *in, const cm_join_tables *tables, cm_join_findings *findings,
                const cm_join_var *v, const cm_described *d, uint64_t own, uint64_t first,
                uint32_t file, told *t, cm_error *err)
{
    const char *name = d->dim[d->rank - 1];
    const bool refused = own > cm_join_length(v, &tables->dim[v->dim[v->rank - 1]]);
    size_t *number = own == first ? &t->name : refused ? &t->longer : &t->other;
    if (own == first && strcmp(name, v->like->dim[v->like->rank - 1]) == 0)
        return CM_OK;
    if (*number > 0)
        return cm_join_found_in(findings, &findings->report->finding[*number - 1], file, err);
    int rc = own == first ? tell_name(in, findings, v, name, file, err)
                          : tell_length(in, tables, findings, v, own, first, file, err);
    *number = findings->report->nfindings;
    return rc;
}

static int find_others(const cm_join_input *in, const cm_join_tables *tables,
                       cm_join_findings *findings, uint32_t at, cm_error *err)
{
    const cm_join_var *v = &tables->var[at];
    const uint64_t first = cm_join_text_length(in, tables, at, v->first);
    told t = {0};
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < v->nfiles; i++)
        rc = tell(in, tables, findings, v, cm_join_described(in, tables, at, v->file[i]),
                  cm_join_text_length(in, tables, at, v->file[i]), first, v->file[i], &t, err);
    return rc;
}

int cm_join_texts(const cm_join_input *in, cm_join_tables *tables, cm_join_findings *findings,
                  cm_error *err)
{
    texts t = {.in = in, .tables = tables};
    if (!has_texts(tables))
        return CM_OK;
    int rc = list_skeletons(&t, err);
    if (rc == CM_OK)
        rc = find_dims(&t, err);
    while (rc == CM_OK && !find_vars(&t)) {
    }
    free(t.skeleton);
    free(t.dim);
    for (uint32_t i = 0; rc == CM_OK && i < tables->nvars; i++)
        if (tables->var[i].is_text)
            find_lengths(in, tables, i);
    keep_lengths(in, tables);
    for (uint32_t i = 0; rc == CM_OK && i < tables->nvars; i++)
        if (tables->var[i].is_text)
            choose_dim(in, tables, i);
    for (uint32_t i = 0; rc == CM_OK && i < tables->nvars; i++)
        if (tables->var[i].is_text)
            rc = find_others(in, tables, findings, i, err);
    return rc;
}
