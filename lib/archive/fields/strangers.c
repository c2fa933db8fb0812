#include "archive/fields/strangers.h"

#include <stdlib.h>
#include <string.h>

#include "archive/axes/coordinate.h"
#include "archive/tables/described.h"
#include "base/mem.h"

enum {
    NAMES_SHOWN = 6
};

typedef struct search {
    const cm_join_input *in;
    const cm_join_tables *tables;
    const cm_join_axes *axes;
    const cm_field_sources *f;
    const uint32_t *other;
} search;

static bool has(const search *s, uint32_t at, uint32_t file)
{
    return s->tables->var[at].made == NULL && cm_join_described(s->in, s->tables, at, file) != NULL;
}

/* Whether AT lies along the dimension that the store grows along, and is no coordinate. */
static bool is_field(const search *s, uint32_t at)
{
    const cm_join_var *v = &s->tables->var[at];
    bool along = false;
    for (unsigned i = 0; i < v->rank; i++) {
        const cm_join_dim *d = &s->tables->dim[v->dim[i]];
        along |= d->joined >= 0 && strcmp(d->name, s->in->options->along) == 0;
    }
    return along && !s->f->of[at].auxiliary;
}

/* Whether AT is a field of the store to which files add. */
static bool is_stored(const search *s, uint32_t at)
{
    return s->tables->var[at].wanted && s->f->of[at].place != NULL && has(s, at, 0) &&
           is_field(s, at);
}

/* Whether AT is a field of FILE alone. */
static bool is_strange(const search *s, uint32_t at, uint32_t file)
{
    return has(s, at, file) && !has(s, at, 0) && is_field(s, at);
}

/* ---- which files ---- */

/* Whether FILE has fields, and the store none of them. */
static bool has_only_strange(const search *s, uint32_t file)
{
    bool strange = false, stored = false;
    for (uint32_t i = 0; i < s->tables->nvars && !stored; i++) {
        strange |= is_strange(s, i, file);
        stored = has(s, i, file) && (is_stored(s, i) || s->other[i] != CM_JOIN_NONE);
    }
    return strange && !stored;
}

/* Whether no file gives a field of the store where FILE lies; of steps that it has, none at all. */
static bool is_alone(const search *s, uint32_t file)
{
    bool any = false, alone = true;
    for (uint32_t i = 0; i < s->tables->nvars && alone; i++) {
        if (!is_stored(s, i))
            continue;
        any = true;
        alone = s->in->options->base_yields
                    ? s->tables->var[i].nfiles == 1
                    : cm_place_is_open(s->in, s->tables, s->axes, s->f->of[i].place, file);
    }
    return any && alone;
}

/* ---- how they are named ---- */

static bool same_text(const cm_join_var *v, const cm_join_var *w, const char *attribute)
{
    const char *x = cm_join_text(v->like, attribute), *y = cm_join_text(w->like, attribute);
    return x == NULL || y == NULL ? x == y : strcmp(x, y) == 0;
}

static bool same_dims(const cm_join_var *v, const cm_join_var *w)
{
    return v->rank == w->rank && memcmp(v->dim, w->dim, v->rank * sizeof(v->dim[0])) == 0;
}

/* 0: V and W have other dimensions or units; 2: long names are the same, too. */
static unsigned likeness(const cm_join_var *v, const cm_join_var *w)
{
    if (!same_dims(v, w) || !same_text(v, w, "units"))
        return 0;
    return cm_join_text(v->like, "long_name") != NULL && same_text(v, w, "long_name") ? 2 : 1;
}

/* The field that is most like AT: one of FILE for one of the store, and back; or CM_JOIN_NONE. */
static uint32_t most_alike(const search *s, uint32_t at, uint32_t file, bool of_store)
{
    uint32_t found = CM_JOIN_NONE;
    unsigned most = 0;
    for (uint32_t i = 0; i < s->tables->nvars; i++) {
        if (of_store ? !is_stored(s, i) : !is_strange(s, i, file))
            continue;
        const unsigned like = likeness(&s->tables->var[at], &s->tables->var[i]);
        if (like > 0 && like == most)
            found = CM_JOIN_NONE; /* nothing tells which */
        if (like > most) {
            most = like;
            found = i;
        }
    }
    return found;
}

/* Whether a field of FILE may be one of the store's by its dimensions. */
static bool may_be_renamed(const search *s, uint32_t file)
{
    for (uint32_t i = 0; i < s->tables->nvars; i++)
        for (uint32_t k = 0; is_stored(s, i) && k < s->tables->nvars; k++)
            if (is_strange(s, k, file) && same_dims(&s->tables->var[i], &s->tables->var[k]))
                return true;
    return false;
}

/* "VAR_2T=t2m,VAR_TP=tp": pairs of FILE's fields and the store's that are most like each other. */
static char *pairs_of(const search *s, uint32_t file, cm_error *err)
{
    cm_buf out = {0};
    int rc = cm_buf_printf(&out, err, "%s", "");
    for (uint32_t i = 0; rc == CM_OK && i < s->tables->nvars; i++) {
        const uint32_t own = is_stored(s, i) ? most_alike(s, i, file, false) : CM_JOIN_NONE;
        if (own != CM_JOIN_NONE && most_alike(s, own, file, true) == i)
            rc = cm_buf_printf(&out, err, "%s%s=%s", out.nbytes > 0 ? "," : "",
                               s->tables->var[own].name, s->tables->var[i].name);
    }
    char *text = rc == CM_OK ? cm_asprintf(err, "%.*s", (int)out.nbytes, (char *)out.data) : NULL;
    cm_buf_release(&out);
    return text;
}

/* ---- stacks ---- */

/* Whether labels of one of V's dimensions say that it is made of NAME, as `stack` writes them. */
static bool is_stack_of(const search *s, const cm_join_var *v, const char *name)
{
    for (unsigned i = 0; i < v->rank; i++) {
        const uint32_t at = cm_join_var_named(s->tables, s->tables->dim[v->dim[i]].name);
        if (at == CM_JOIN_NONE || !has(s, at, 0))
            continue;
        const cm_json *of = cm_json_member(
            cm_described_attrs(cm_join_described(s->in, s->tables, at, 0)), "variable");
        for (size_t k = 0; k < cm_json_length(of); k++) {
            const char *text = cm_json_text(cm_json_at(of, k), NULL);
            if (text != NULL && strcmp(text, name) == 0)
                return true;
        }
    }
    return false;
}

/* The field of the store that fields of FILE were stacked to; or CM_JOIN_NONE. */
static uint32_t stack_of(const search *s, uint32_t file)
{
    for (uint32_t i = 0; i < s->tables->nvars; i++)
        for (uint32_t k = 0; is_stored(s, i) && k < s->tables->nvars; k++)
            if (is_strange(s, k, file) &&
                is_stack_of(s, &s->tables->var[i], s->tables->var[k].name))
                return i;
    return CM_JOIN_NONE;
}

/* ---- the finding ---- */

/* "t2m, tp and 3 more": the store's fields, or those of FILE. */
static char *names_of(const search *s, uint32_t file, bool of_store, cm_error *err)
{
    cm_buf out = {0};
    size_t n = 0;
    int rc = CM_OK;
    for (uint32_t i = 0; rc == CM_OK && i < s->tables->nvars; i++)
        if ((of_store ? is_stored(s, i) : is_strange(s, i, file)) && n++ < NAMES_SHOWN)
            rc = cm_buf_printf(&out, err, "%s%s", n > 1 ? ", " : "", s->tables->var[i].name);
    if (rc == CM_OK && n > NAMES_SHOWN)
        rc = cm_buf_printf(&out, err, " and %zu more", n - NAMES_SHOWN);
    char *text = rc == CM_OK ? cm_asprintf(err, "%.*s", (int)out.nbytes, (char *)out.data) : NULL;
    cm_buf_release(&out);
    return text;
}

static cm_finding *tell(const search *s, cm_join_findings *findings, uint32_t file, cm_error *err)
{
    char *stored = names_of(s, file, true, err), *own = names_of(s, file, false, err);
    const uint32_t stack = stack_of(s, file);
    const bool stacked = stack != CM_JOIN_NONE;
    cm_finding *f = NULL;
    if (stored != NULL && own != NULL)
        f = cm_join_find(findings, CM_FINDING_MISSING, CM_WEIGHT_DECISION, false, NULL, file, err,
                         "it has %s, and the store %s: %s%s%s%s", own, stored,
                         s->in->options->base_yields ? "nothing of it would be replaced"
                                                     : "its steps would hold only fill values",
                         stacked ? "; " : "", stacked ? s->tables->var[stack].name : "",
                         stacked ? " is a stack, to which no files are added: convert all again"
                                 : "");
    free(stored);
    free(own);
    if (f == NULL)
        return NULL;
    f->by = CM_DECIDER_RENAME;
    if (!stacked && may_be_renamed(s, file) && (f->other = pairs_of(s, file, err)) == NULL)
        return NULL;
    return f;
}

int cm_join_find_strangers(const cm_join_input *in, const cm_join_tables *tables,
                           const cm_join_axes *axes, cm_join_findings *findings,
                           const cm_field_sources *f, const uint32_t *other, bool *out,
                           cm_error *err)
{
    const search s = {in, tables, axes, f, other};
    size_t number = 0; /* of the finding, from 1 */
    int rc = CM_OK;
    if (!in->has_base || in->options->along == NULL)
        return CM_OK;
    for (uint32_t i = 1; rc == CM_OK && i < in->nfiles; i++) {
        if (!(out[i] = has_only_strange(&s, i) && is_alone(&s, i)))
            continue;
        if (number > 0)
            rc = cm_join_found_in(findings, &findings->report->finding[number - 1], i, err);
        else if (tell(&s, findings, i, err) == NULL)
            rc = CM_ENOMEM;
        else
            number = findings->report->nfindings;
    }
    return rc;
}
