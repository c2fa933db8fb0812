#include "archive/fields/statics.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "archive/axes/made.h"
#include "archive/axes/merge.h"
#include "archive/axes/propose.h"
#include "archive/tables/described.h"
#include "archive/tables/reading.h"
#include "base/number.h"

/* ---- what was asked for ---- */

bool cm_join_takes_first(cm_join_tables *tables, const cm_join_var *v)
{
    const char *text = cm_varopts_get(&tables->statics, v->name, true, NULL);
    return text != NULL && strcmp(text, "first") == 0;
}

bool cm_join_is_tolerant(const cm_join_input *in, const cm_join_tables *tables, uint32_t at)
{
    const cm_join_var *v = &tables->var[at];
    return in->options->tolerance > 0 && cm_dtype_is_number(&v->like->dtype) && !v->like->is_char &&
           !cm_join_counts_time(v->like) && cm_join_bounded_by(tables, v) == NULL &&
           (v->bounds_of != CM_JOIN_NONE || cm_join_is_coordinate(tables, at));
}

/* The variable whose values are places along a dimension of V; NULL: none. */
static const char *index_of(const cm_join_tables *tables, const cm_join_var *v)
{
    for (unsigned i = 0; i < v->rank; i++)
        if (tables->dim[v->dim[i]].indexed_by != NULL)
            return tables->dim[v->dim[i]].indexed_by;
    return NULL;
}

/* The joined dimension along which AT may be all that files have; CM_JOIN_NONE: none. */
static uint32_t promotion_dim(const cm_join_input *in, const cm_join_tables *tables,
                              const cm_join_axes *axes, uint32_t at)
{
    const cm_join_var *v = &tables->var[at];
    if (in->has_base || v->like->is_coordinate || v->widest != NULL || v->rank >= CM_MAX_RANK)
        return CM_JOIN_NONE;
    const uint32_t dim = cm_join_promotion_dim(in, tables, axes, v);
    return dim != CM_JOIN_NONE && cm_join_keeps_each_step(in, tables, at, dim) ? dim : CM_JOIN_NONE;
}

/* The survey does not have what is not repeated: each file must be one step. */
static bool can_promote(const cm_join_input *in, const cm_join_tables *tables,
                        const cm_join_axes *axes, uint32_t at)
{
    const cm_join_var *v = &tables->var[at];
    const uint32_t dim = promotion_dim(in, tables, axes, at);
    bool fine = dim != CM_JOIN_NONE;
    for (size_t i = 0; fine && i < v->nfiles; i++)
        fine = cm_file_count(tables->dim[dim].length[v->file[i]]) == 1;
    return fine;
}

void cm_join_settle_static(const cm_join_input *in, cm_join_tables *tables,
                           const cm_join_axes *axes, uint32_t at, cm_multi_check *check)
{
    const cm_join_var *v = &tables->var[at];
    check->may_differ = cm_join_takes_first(tables, v);
    check->tolerance = cm_join_is_tolerant(in, tables, at) ? in->options->tolerance : 0;
    check->what = "values without the joined dimension";
    const bool promotes = can_promote(in, tables, axes, at);
    if (index_of(tables, v) != NULL)
        check->decide = promotes ? "`promote` gives them that dimension"
                                 : "a variable of each file has places along its dimension "
                                   "(instance_dimension), and can be left out by `exclude`";
    else
        check->decide = promotes ? "`promote` gives them that dimension, `statics` VAR:first "
                                   "takes the first file's, `exclude` leaves them out"
                                 : "`statics` VAR:first takes the first file's, `exclude` leaves "
                                   "them out";
}

/* ---- values of the survey ---- */

bool cm_join_is_told(const cm_join_input *in, const cm_join_tables *tables,
                     const cm_surveyed_var *a, const cm_surveyed_var *b)
{
    char x[512], y[512];
    bool told = a->has_values && b->has_values && a->var->rank == b->var->rank &&
                a->var->is_char == b->var->is_char;
    for (unsigned i = 0; told && a->var != b->var && i < a->var->rank; i++)
        told = (a->var->is_char && i + 1 == a->var->rank) ||
               strcmp(cm_join_name(in, tables, a->var->dim[i], x, sizeof(x)),
                      cm_join_name(in, tables, b->var->dim[i], y, sizeof(y))) == 0;
    return told;
}

/* How files differ from the first that has a variable. */
typedef struct differences {
    size_t number;               /* of the finding, from 1; 0: there is none yet */
    cm_join_difference first;    /* in the first file that differs */
    uint64_t shape[CM_MAX_RANK]; /* of the variable in it */
    double most;
} differences;

/* How far values are apart, as the end of a sentence; "" where that is no number. */
static void tell_most(const cm_join_difference *d, double most, char *buf, size_t size)
{
    char number[40];
    buf[0] = '\0';
    if (isfinite(most))
        snprintf(buf, size, "; they differ by up to %s%s",
                 cm_format_double(most, number, sizeof(number)), d->is_time ? " s" : "");
}

static int tell(const cm_join_input *in, cm_join_findings *findings, const cm_join_var *v,
                const differences *f, const char *end, cm_error *err)
{
    char most[64], place[CM_MAX_RANK * 21];
    uint64_t at[CM_MAX_RANK], rest = f->first.element;
    cm_finding *found = &findings->report->finding[f->number - 1];
    const unsigned rank = v->like->rank - v->is_text;
    for (unsigned i = rank; i-- > 0; rest /= f->shape[i] > 0 ? f->shape[i] : 1)
        at[i] = f->shape[i] > 0 ? rest % f->shape[i] : 0;
    tell_most(&f->first, f->most, most, sizeof(most));
    free(found->text);
    found->apart = isfinite(f->most) ? f->most : 0;
    found->text =
        cm_asprintf(err, "its values are not those of %s: element %s is %s, and %s there%s%s",
                    in->file[v->first]->path, cm_coord_text(rank, at, place, sizeof(place)),
                    f->first.other, f->first.one, most, end);
    return found->text == NULL ? CM_ENOMEM : CM_OK;
}

static int add(const cm_join_tables *tables, cm_join_findings *findings, const cm_join_var *v,
               uint32_t file, const cm_join_difference *d, const cm_surveyed_var *s, bool decided,
               differences *f, cm_error *err)
{
    f->most = f->number == 0 || !(d->most <= f->most) ? d->most : f->most;
    if (f->number > 0)
        return cm_join_found_in(findings, &findings->report->finding[f->number - 1], file, err);
    f->first = *d;
    memcpy(f->shape, s->shape, sizeof(f->shape));
    const cm_finding_kind kind = index_of(tables, v) == NULL ? CM_FINDING_STATIC : CM_FINDING_INDEX;
    const cm_finding *found = cm_join_find(findings, kind, CM_WEIGHT_DECISION, decided, v->name,
                                           file, err, "its values differ");
    f->number = findings->report->nfindings;
    return found == NULL ? CM_ENOMEM : CM_OK;
}

/* The option that decides: that which drops least. */
static int propose(const cm_join_input *in, const cm_join_tables *tables, const cm_join_axes *axes,
                   cm_join_findings *findings, uint32_t at, const differences *f, cm_error *err)
{
    char number[40];
    cm_finding *found = &findings->report->finding[f->number - 1];
    found->promotes = promotion_dim(in, tables, axes, at) != CM_JOIN_NONE;
    int rc = cm_join_propose_promotion(in, tables, axes, at, found, err);
    if (rc != CM_OK || found->by != CM_DECIDER_OF_KIND || found->weight != CM_WEIGHT_DECISION)
        return rc;
    if (tables->var[at].bounds_of == CM_JOIN_NONE || f->first.is_time || !isfinite(f->most) ||
        !cm_join_is_blurred(tables, at, f->most))
        return CM_OK;
    found->by = CM_DECIDER_TOLERANCE;
    found->value = cm_strdup(cm_format_double(f->most, number, sizeof(number)), err);
    return found->value == NULL ? CM_ENOMEM : CM_OK;
}

static int end(const cm_join_input *in, const cm_join_tables *tables, const cm_join_axes *axes,
               cm_join_findings *findings, uint32_t at, const differences *f, bool decided,
               cm_error *err)
{
    const cm_join_var *v = &tables->var[at];
    if (f->number == 0)
        return CM_OK;
    const char *index = index_of(tables, v);
    char *rest = decided ? cm_strdup("; the first file's are taken", err)
                 : index != NULL
                     ? cm_asprintf(err, ", and %s of each file has places along it", index)
                     : cm_strdup("", err);
    int rc = rest == NULL ? CM_ENOMEM : tell(in, findings, v, f, rest, err);
    free(rest);
    if (rc == CM_OK && decided)
        rc = cm_join_irreversible(findings, err, "%s differs between files", v->name);
    return rc == CM_OK ? propose(in, tables, axes, findings, at, f, err) : rc;
}

/* ---- a variable ---- */

/* A coordinate whose values were compared already, with more patience. */
static bool is_compared(const cm_join_tables *tables, uint32_t at)
{
    const cm_join_var *v = &tables->var[at];
    return v->rank == 1 && tables->dim[v->dim[0]].var == at &&
           tables->dim[v->dim[0]].kind != CM_KEY_NONE;
}

static bool lies_on_finding(const cm_join_tables *tables, const cm_join_var *v)
{
    for (unsigned i = 0; i < v->rank; i++)
        if (tables->dim[v->dim[i]].apart)
            return true;
    return false;
}

/* Values that the survey does not have are compared while data move. */
static int check_later(const cm_join_input *in, cm_join_tables *tables, const cm_join_axes *axes,
                       cm_join_findings *findings, uint32_t at, uint32_t file,
                       cm_multi_check *settled, cm_field_sources *f, cm_error *err)
{
    const cm_join_var *v = &tables->var[at];
    uint64_t nbytes = v->dtype.nbytes;
    for (unsigned i = 0; i < v->rank; i++)
        nbytes *= cm_join_length(v, &tables->dim[v->dim[i]]);
    findings->report->nlater += nbytes;
    if (settled->what == NULL)
        cm_join_settle_static(in, tables, axes, at, settled);
    cm_multi_check check = *settled;
    check.part[0].file = tables->var[at].first;
    check.part[1].file = file;
    int rc = cm_field_sources_check(f, &check, err);
    return rc == CM_OK && check.tolerance > 0
               ? cm_join_irreversible(findings, err,
                                      "%s may differ between files, within the tolerance", v->name)
               : rc;
}

/* Strings, which a survey does not read, often tell files apart. */
static int tell_strings(cm_join_findings *findings, const cm_join_var *v, bool decided,
                        cm_error *err)
{
    if (!cm_dtype_is_vlen(&v->like->dtype) || decided)
        return CM_OK;
    return cm_join_find(findings, CM_FINDING_STATIC, CM_WEIGHT_NOTE, false, v->name, v->file[1],
                        err,
                        "its strings are compared only while data move: strings that differ from "
                        "the first file's stop the run") == NULL
               ? CM_ENOMEM
               : CM_OK;
}

int cm_join_check_static(const cm_join_input *in, cm_join_tables *tables, const cm_join_axes *axes,
                         cm_join_findings *findings, uint32_t at, cm_field_sources *f,
                         cm_error *err)
{
    const cm_join_var *v = &tables->var[at];
    const bool tolerant = cm_join_is_tolerant(in, tables, at),
               first_taken = cm_join_takes_first(tables, v);
    cm_surveyed_var first, other;
    differences refused = {0}, tolerated = {0};
    cm_multi_check settled = {.var = at}; /* of all files alike, once one of them needs it */
    int rc = CM_OK;
    if (v->nfiles < 2 || is_compared(tables, at) || v->like->unsupported != NULL ||
        lies_on_finding(tables, v) || !cm_join_record(in, tables, at, v->first, &first))
        return CM_OK;
    for (size_t i = 1; rc == CM_OK && i < v->nfiles; i++) {
        cm_join_difference d;
        const uint32_t file = v->file[i];
        if (!cm_join_record(in, tables, at, file, &other))
            continue;
        if (!cm_join_is_told(in, tables, &first, &other)) {
            rc = check_later(in, tables, axes, findings, at, file, &settled, f, err);
            continue;
        }
        if (cm_join_same_values(in, tables, at, v->first, &first, file, &other, &d))
            continue;
        const bool within = tolerant && d.most <= in->options->tolerance;
        rc = add(tables, findings, v, file, &d, &other, within || first_taken,
                 within ? &tolerated : &refused, err);
    }
    if (rc == CM_OK)
        rc = tell_strings(findings, v, first_taken, err);
    if (rc == CM_OK)
        rc = end(in, tables, axes, findings, at, &tolerated, true, err);
    return rc == CM_OK ? end(in, tables, axes, findings, at, &refused, first_taken, err) : rc;
}
