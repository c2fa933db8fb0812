/* Variables that have more dimensions in some files than in others. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "archive/axes/propose.h"
#include "archive/fields/fields.h"
#include "archive/tables/described.h"
#include "options/varopt.h"

/* Whether dimension AT is one of D. */
static bool has_dim(const cm_join_input *in, const cm_join_tables *tables, const cm_described *d,
                    uint32_t at)
{
    char buf[512];
    for (unsigned i = 0; i < d->rank; i++)
        if (cm_join_dim_named(tables, cm_join_name(in, tables, d->dim[i], buf, sizeof(buf))) == at)
            return true;
    return false;
}

/* The first description of V with the most dimensions, if its files have different ones. */
static const cm_described *find_widest(const cm_join_input *in, const cm_join_tables *tables,
                                       uint32_t at)
{
    const cm_join_var *v = &tables->var[at];
    const cm_described *widest = v->like, *last = v->like;
    bool differ = false;
    for (size_t i = 0; i < v->nfiles; i++) {
        const cm_described *d = cm_join_described(in, tables, at, v->file[i]);
        if (d == last)
            continue;
        last = d;
        differ |= d->rank != v->like->rank;
        if (d->rank > widest->rank)
            widest = d;
    }
    return differ ? widest : NULL;
}

/* Whether all dimensions of D are dimensions of WIDE. */
static bool lies_in(const cm_join_input *in, const cm_join_tables *tables, const cm_described *d,
                    const cm_described *wide)
{
    char buf[512];
    for (unsigned i = 0; i < d->rank; i++)
        if (!has_dim(
                in, tables, wide,
                cm_join_dim_named(tables, cm_join_name(in, tables, d->dim[i], buf, sizeof(buf)))))
            return false;
    return true;
}

/* Whether one of TEXTS is "NAME=...". */
static bool is_named(const cm_texts *texts, const char *name)
{
    const size_t n = strlen(name);
    for (size_t i = 0; i < texts->n; i++)
        if (strncmp(texts->text[i], name, n) == 0 && texts->text[i][n] == '=')
            return true;
    return false;
}

/* Whether an option says where files lie along NAME, which a store that grows has. */
static bool is_said(const cm_join_input *in, const char *name)
{
    return in->has_base && is_named(&in->options->new_dim, name);
}

/* Strings are not repeated: D may lack what an option says, and no more. */
static bool is_step(const cm_join_input *in, const cm_join_tables *tables, const cm_described *d,
                    const cm_described *wide)
{
    char buf[512];
    for (unsigned i = 0; i < wide->rank; i++) {
        const char *name = cm_join_name(in, tables, wide->dim[i], buf, sizeof(buf));
        if (!is_said(in, name) && !has_dim(in, tables, d, cm_join_dim_named(tables, name)))
            return false;
    }
    return true;
}

static void widen(const cm_join_input *in, cm_join_tables *tables, uint32_t at)
{
    char buf[512];
    cm_join_var *v = &tables->var[at];
    const cm_described *wide = find_widest(in, tables, at);
    const bool repeats = !cm_dtype_is_vlen(&v->like->dtype);
    if (wide == NULL || wide->rank > CM_MAX_RANK)
        return;
    for (size_t i = 0; i < v->nfiles; i++) {
        const cm_described *d = cm_join_described(in, tables, at, v->file[i]);
        if (!lies_in(in, tables, d, wide) || !(repeats || is_step(in, tables, d, wide)))
            return;
    }
    v->widest = wide;
    v->rank = wide->rank;
    for (unsigned i = 0; i < wide->rank; i++)
        v->dim[i] =
            cm_join_dim_named(tables, cm_join_name(in, tables, wide->dim[i], buf, sizeof(buf)));
}

void cm_join_widen(const cm_join_input *in, cm_join_tables *tables)
{
    for (uint32_t i = 0; i < tables->nvars; i++)
        if (tables->var[i].wanted)
            widen(in, tables, i);
}

typedef struct question {
    const char *name;
    bool matches;
} question;

static int match(void *context, char *pattern, cm_error *err)
{
    question *q = context;
    (void)err;
    q->matches |= cm_name_matches(pattern, q->name);
    return CM_OK;
}

static bool is_promoted(const cm_join_input *in, const cm_join_var *v)
{
    question q = {.name = v->name};
    for (size_t i = 0; i < in->options->promote.n; i++)
        (void)cm_split(in->options->promote.text[i], ',', match, &q, NULL);
    return q.matches;
}

bool cm_join_is_merged(const cm_join_input *in, const cm_join_dim *d)
{
    return is_named(&in->options->merge_along, d->name);
}

/* Of a store that has it along D, options say to which steps the values of FILE belong. */
static bool has_steps(const cm_join_input *in, const cm_join_var *v, const cm_join_dim *d,
                      uint32_t file)
{
    return in->has_base && d->joined >= 0 && cm_file_has(d->length[file]) &&
           (d->one_each || is_promoted(in, v));
}

/* A dimension of V that D, of FILE, lacks; a joined one, where there is one. */
static const cm_join_dim *lacking(const cm_join_input *in, const cm_join_tables *tables,
                                  const cm_join_var *v, const cm_described *d, uint32_t file)
{
    const cm_join_dim *found = NULL;
    for (unsigned i = v->nlacking; i < v->rank; i++)
        if (!has_dim(in, tables, d, v->dim[i]) &&
            !has_steps(in, v, &tables->dim[v->dim[i]], file) &&
            (found == NULL || tables->dim[v->dim[i]].joined >= 0))
            found = &tables->dim[v->dim[i]];
    return found;
}

/* Whether FILE has a number of the name of D, which says what step it is to a store that grows. */
static bool says_step(const cm_join_input *in, const cm_join_tables *tables, const cm_join_dim *d,
                      uint32_t file)
{
    const uint32_t at = cm_join_var_named(tables, d->name);
    const cm_described *own = at == CM_JOIN_NONE ? NULL : cm_join_described(in, tables, at, file);
    return own != NULL && own->rank == 0 && cm_dtype_is_number(&own->dtype) &&
           in->options->new_dim.n == 0;
}

/*
 * "expver=1,5", with which `merge_along` makes one field of final and provisional data; *OUT stays
 * NULL where D is another dimension, which has no such halves.
 */
static int name_halves(const cm_join_dim *d, char **out, cm_error *err)
{
    cm_buf text = {0};
    const cm_join_vec *v = NULL;
    for (size_t i = 0; v == NULL && i < d->nvecs; i++)
        v = d->vec[i].key != NULL && d->vec[i].n > 1 ? &d->vec[i] : NULL;
    if (strcmp(d->name, "expver") != 0 || d->kind != CM_KEY_INTEGER || v == NULL)
        return CM_OK;
    /* Final data have the smallest number, whichever way a file counts. */
    int rc = cm_buf_printf(&text, err, "%s", d->name);
    for (uint64_t i = 0; rc == CM_OK && i < v->n; i++)
        rc = cm_buf_printf(&text, err, "%c%" PRId64, i == 0 ? '=' : ',',
                           d->descending ? ~v->key[v->n - 1 - i] : v->key[i]);
    if (rc == CM_OK &&
        (*out = cm_asprintf(err, "%.*s", (int)text.nbytes, (const char *)text.data)) == NULL)
        rc = CM_ENOMEM;
    cm_buf_release(&text);
    return rc;
}

/* The only number of FILE that is a time, in *OUT; how many there are. */
static unsigned find_times(const cm_join_input *in, const cm_join_tables *tables, uint32_t file,
                           const char **out)
{
    unsigned n = 0;
    for (uint32_t at = 0; at < tables->nvars; at++) {
        const cm_described *own = cm_join_described(in, tables, at, file);
        if (own == NULL || own->rank != 0 || !cm_join_counts_time(own))
            continue;
        *out = tables->var[at].name;
        n++;
    }
    return n;
}

/*
 * By the number of a file that is added to a store that says its step, or else is a time, or by the
 * dates in the names of those that have no time.
 */
static int propose_step(const cm_join_input *in, const cm_join_tables *tables, const cm_join_dim *d,
                        uint32_t file, cm_finding *f, cm_error *err)
{
    char pattern[CM_MOST_PROPOSED];
    const char *time = NULL;
    const bool asks = d->kind == CM_KEY_TIME && in->options->new_dim.n == 0;
    const unsigned ntimes = asks ? find_times(in, tables, file, &time) : 0;
    if (says_step(in, tables, d, file))
        f->value = cm_asprintf(err, "%s=@%s", d->name, d->name);
    else if (ntimes == 1)
        f->value = cm_asprintf(err, "%s=@%s", d->name, time);
    else if (asks && ntimes == 0 && cm_join_find_dates(in, pattern))
        f->value = cm_asprintf(err, "%s=%s", d->name, pattern);
    else
        return CM_OK;
    f->by = CM_DECIDER_NEW_DIM;
    return f->value != NULL ? CM_OK : CM_ENOMEM;
}

static int propose(const cm_join_input *in, const cm_join_tables *tables, const cm_join_var *v,
                   const cm_join_dim *d, uint32_t file, cm_finding *f, cm_error *err)
{
    if (in->has_base && !in->file[file]->is_base)
        return propose_step(in, tables, d, file, f, err);
    if (name_halves(d, in->has_base ? &f->value : &f->other, err) != CM_OK)
        return CM_ENOMEM;
    if (in->has_base) { /* which stays as it is */
        f->by = f->value != NULL ? CM_DECIDER_MERGE_ALONG : f->by;
        return CM_OK;
    }
    f->by = CM_DECIDER_PROMOTE;
    f->value = cm_strdup(v->name, err);
    return f->value != NULL ? CM_OK : CM_ENOMEM;
}

static int tell(const cm_join_input *in, const cm_join_tables *tables, cm_join_findings *findings,
                const cm_join_var *v, const cm_join_dim *d, uint32_t file, cm_error *err)
{
    bool merged = d->joined < 0 && cm_join_is_merged(in, d);
    bool decided = merged || (d->joined < 0 && is_promoted(in, v));
    uint32_t with = v->first;
    for (size_t i = 0; i < v->nfiles; i++)
        if (cm_file_has(d->length[v->file[i]])) {
            with = v->file[i];
            break;
        }
    cm_finding *f = cm_join_find(findings, CM_FINDING_DIMENSIONS, CM_WEIGHT_DECISION, decided,
                                 v->name, file, err, "it has no dimension %s here, and one in %s%s",
                                 d->name, in->file[with]->path,
                                 merged    ? "; its values stand for all along it"
                                 : decided ? "; its values are repeated along it"
                                           : "");
    if (f == NULL)
        return CM_ENOMEM;
    return d->joined < 0 || in->has_base ? propose(in, tables, v, d, file, f, err) : CM_OK;
}

static int find_lacking(const cm_join_input *in, const cm_join_tables *tables,
                        cm_join_findings *findings, uint32_t at, cm_error *err)
{
    const cm_join_var *v = &tables->var[at];
    const cm_described *last = NULL;
    const cm_join_dim *lacks = NULL;
    size_t number = 0;
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < v->nfiles; i++) {
        const cm_described *d = cm_join_described(in, tables, at, v->file[i]);
        if (d != last || in->has_base)
            lacks = lacking(in, tables, v, d, v->file[i]);
        last = d;
        if (lacks == NULL)
            continue;
        if (number > 0) {
            rc =
                cm_join_found_in(findings, &findings->report->finding[number - 1], v->file[i], err);
            continue;
        }
        rc = tell(in, tables, findings, v, lacks, v->file[i], err);
        number = findings->report->nfindings;
    }
    return rc;
}

int cm_join_lacking(const cm_join_input *in, const cm_join_tables *tables,
                    cm_join_findings *findings, cm_error *err)
{
    int rc = CM_OK;
    for (uint32_t i = 0; rc == CM_OK && i < tables->nvars; i++)
        if (tables->var[i].wanted && tables->var[i].widest != NULL)
            rc = find_lacking(in, tables, findings, i, err);
    return rc;
}

bool cm_join_has_dims(const cm_join_tables *tables, const cm_join_var *v, uint32_t file)
{
    for (unsigned i = 0; i < v->rank; i++)
        if (!cm_file_has(tables->dim[v->dim[i]].length[file]))
            return false;
    return true;
}
