#include "archive/axes/ragged.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "archive/tables/described.h"
#include "base/number.h"
#include "base/path.h"
#include "model/convert.h"

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

static int tie(const cm_join_input *in, const cm_join_var *v, cm_join_dim *rows,
               cm_join_dim *samples, cm_error *err)
{
    if (in->has_base)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "%s counts the samples of rows (sample_dimension), so that %s and %s grow "
                       "together, and a store grows along one dimension: convert all files anew",
                       v->name, rows->name, samples->name);
    rows->ragged = true;
    samples->ragged = true;
    return CM_OK;
}

/* The dimension that V's ATTRIBUTE names; NULL: none. */
static cm_join_dim *named_by(const cm_join_input *in, const cm_join_tables *tables,
                             const cm_join_var *v, const char *attribute)
{
    char buf[512];
    const char *name = cm_join_text(v->like, attribute);
    return name == NULL ? NULL
                        : dim_named(tables, cm_join_name(in, tables, name, buf, sizeof(buf)));
}

int cm_axis_find_ragged(const cm_join_input *in, cm_join_tables *tables, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < tables->nvars; i++) {
        const cm_join_var *v = &tables->var[i];
        cm_join_dim *samples = v->rank == 1 ? named_by(in, tables, v, "sample_dimension") : NULL;
        cm_join_dim *rows = samples == NULL ? NULL : &tables->dim[v->dim[0]];
        if (rows != samples && are_meant(in, tables, rows, samples))
            rc = tie(in, v, rows, samples, err);
        cm_join_dim *instances = named_by(in, tables, v, "instance_dimension");
        if (v->wanted && instances != NULL)
            instances->indexed_by = v->name;
    }
    return rc;
}

/* The next name of the list *TEXT, as it is here, in BUF or elsewhere; NULL: none is left. */
static const char *next_name(const cm_join_input *in, const cm_join_tables *tables,
                             const char **text, char *buf, size_t size)
{
    char word[512];
    const char *name = NULL;
    while (name == NULL && *text != NULL && **text != '\0') {
        const size_t n = strcspn(*text, " ");
        snprintf(word, sizeof(word), "%.*s", (int)n, *text);
        name = cm_join_name(in, tables, word, buf, size);
        *text += n + strspn(*text + n, " ");
    }
    return name;
}

/* The first dimension of V's ATTRIBUTE, a list, that is joined; NULL: none. */
static const cm_join_dim *joined_of(const cm_join_input *in, const cm_join_tables *tables,
                                    const cm_join_var *v, const char *attribute)
{
    char buf[512];
    const char *text = cm_join_text(v->like, attribute), *name;
    while ((name = next_name(in, tables, &text, buf, sizeof(buf))) != NULL) {
        const cm_join_dim *d = dim_named(tables, name);
        if (d != NULL && d->joined >= 0)
            return d;
    }
    return NULL;
}

static cm_finding *tell_index(cm_join_findings *findings, const cm_join_var *v,
                              const cm_join_dim *d, const char *by, cm_error *err)
{
    return cm_join_find(findings, CM_FINDING_INDEX, CM_WEIGHT_DECISION, false, v->name, v->first,
                        err, "its values are places along %s of one file (%s), and %s is joined",
                        d->name, by, d->name);
}

/* The joined dimension along which V has places, by its name alone (CfRadial 1.5); or NULL. */
static const cm_join_dim *rays_of(const cm_join_tables *tables, const cm_join_var *v)
{
    static const char *const NAME[][2] = {{"sweep_start_ray_index", "time"},
                                          {"sweep_end_ray_index", "time"},
                                          {"ray_start_index", "n_points"}};
    for (size_t i = 0; i < sizeof(NAME) / sizeof(NAME[0]); i++)
        if (strcmp(cm_path_last(v->name), NAME[i][0]) == 0) {
            const cm_join_dim *d = dim_named(tables, NAME[i][1]);
            return d != NULL && d->joined >= 0 ? d : NULL;
        }
    return NULL;
}

static int check_rays(const cm_join_tables *tables, cm_join_findings *findings,
                      const cm_join_var *v, cm_error *err)
{
    const cm_join_dim *rays = rays_of(tables, v);
    cm_finding *f = rays != NULL ? tell_index(findings, v, rays, "CfRadial", err) : NULL;
    if (f == NULL)
        return rays != NULL ? CM_ENOMEM : CM_OK;
    f->by = CM_DECIDER_EXCLUDE; /* rays have their own times and angles */
    f->value = cm_strdup(v->name, err);
    return f->value != NULL ? CM_OK : CM_ENOMEM;
}

/* A variable that ATTRIBUTE of V, a list, names and that lies along a joined dimension; or NULL. */
static const cm_join_var *joined_part(const cm_join_input *in, const cm_join_tables *tables,
                                      const cm_join_var *v, const char *attribute)
{
    char buf[512];
    const char *text = cm_join_text(v->like, attribute), *name;
    while ((name = next_name(in, tables, &text, buf, sizeof(buf))) != NULL) {
        const uint32_t at = cm_join_var_named(tables, name);
        const cm_join_var *part = at == CM_JOIN_NONE ? NULL : &tables->var[at];
        for (unsigned i = 0; part != NULL && part->wanted && i < part->rank; i++)
            if (tables->dim[part->dim[i]].joined >= 0)
                return part;
    }
    return NULL;
}

/*
 * Geometries (CF 7.5): counts of nodes, which lie along a dimension of their own, say which are
 * whose.  Without counts each node is a point of its instance, and goes with it.
 */
static int check_geometry(const cm_join_input *in, const cm_join_tables *tables,
                          cm_join_findings *findings, const cm_join_var *v, cm_error *err)
{
    static const char *const ATTRIBUTE[] = {"node_count", "node_coordinates", "part_node_count",
                                            "interior_ring"};
    const cm_join_var *part = NULL;
    if (cm_join_text(v->like, "node_count") == NULL || in->nfiles < 2)
        return CM_OK;
    for (size_t i = 0; part == NULL && i < sizeof(ATTRIBUTE) / sizeof(ATTRIBUTE[0]); i++)
        part = joined_part(in, tables, v, ATTRIBUTE[i]);
    return part == NULL ? CM_OK
           : cm_join_find(findings, CM_FINDING_INDEX, CM_WEIGHT_DECISION, false, part->name,
                          part->first, err,
                          "it belongs to the nodes of %s, which are counted within one file, "
                          "and lies along a dimension that is joined",
                          v->name) == NULL
               ? CM_ENOMEM
               : CM_OK;
}

static int check_index(const cm_join_input *in, const cm_join_tables *tables,
                       cm_join_findings *findings, const cm_join_var *v, cm_error *err)
{
    static const char *const ATTRIBUTE[] = {"instance_dimension", "compress"};
    for (size_t i = 0; i < sizeof(ATTRIBUTE) / sizeof(ATTRIBUTE[0]); i++) {
        const cm_join_dim *d = joined_of(in, tables, v, ATTRIBUTE[i]);
        if (d != NULL && tell_index(findings, v, d, ATTRIBUTE[i], err) == NULL)
            return CM_ENOMEM;
    }
    int rc = check_rays(tables, findings, v, err);
    return rc == CM_OK ? check_geometry(in, tables, findings, v, err) : rc;
}

/* The sum of the rows of V in FILE; false: the file, or the survey of it, does not have them. */
static bool sum_rows(const cm_join_input *in, const cm_join_tables *tables, const cm_join_var *v,
                     uint32_t file, double *sum)
{
    cm_surveyed_var s;
    size_t nbytes;
    if (!cm_join_record(in, tables, (uint32_t)(v - tables->var), file, &s) || !s.has_values ||
        !cm_dtype_is_number(&s.var->dtype))
        return false;
    const uint8_t *values = cm_survey_values(in->survey, s.values, &nbytes);
    const size_t size = s.var->dtype.nbytes;
    *sum = 0;
    for (size_t i = 0; i + size <= nbytes; i += size)
        *sum += cm_element_to_double(&s.var->dtype, values + i);
    return true;
}

static cm_finding *tell_rows(cm_join_findings *findings, const cm_join_var *v, uint32_t file,
                             const cm_join_dim *samples, bool known, double sum, cm_error *err)
{
    static const char *const SO = "rows of other files would begin elsewhere";
    const uint64_t n = cm_file_count(samples->length[file]);
    return known
               ? cm_join_find(findings, CM_FINDING_INDEX, CM_WEIGHT_DECISION, false, v->name, file,
                              err, "its rows have %.0f samples, and %s has %" PRIu64 " %s: %s", sum,
                              samples->name, n, cm_of_count(n, "element", "elements"), SO)
               : cm_join_find(findings, CM_FINDING_INDEX, CM_WEIGHT_DECISION, false, v->name, file,
                              err,
                              "%s has %" PRIu64 " %s, and which rows have them is not "
                              "known: %s",
                              samples->name, n, cm_of_count(n, "element", "elements"), SO);
}

/* Samples that belong to no row, as padding, would move the rows of all files behind. */
static int check_rows(const cm_join_input *in, const cm_join_tables *tables,
                      cm_join_findings *findings, const cm_join_var *v, cm_error *err)
{
    const cm_join_dim *samples = named_by(in, tables, v, "sample_dimension");
    for (uint32_t i = 0; samples != NULL && samples->ragged && i < in->nfiles; i++) {
        const uint64_t n = cm_file_count(samples->length[i]);
        double sum = 0;
        const bool known = sum_rows(in, tables, v, i, &sum);
        if (sum != (double)n || (n > 0 && !known))
            return tell_rows(findings, v, i, samples, known, sum, err) == NULL ? CM_ENOMEM : CM_OK;
    }
    return CM_OK;
}

/* Without what lies along its dimension, nothing says that places are the same in all files. */
static int check_instances(const cm_join_input *in, const cm_join_tables *tables,
                           cm_join_findings *findings, const cm_join_var *v, cm_error *err)
{
    const cm_join_dim *d = named_by(in, tables, v, "instance_dimension");
    if (d == NULL || in->nfiles < 2 || d->joined >= 0 || cm_join_is_used(tables, d))
        return CM_OK;
    return cm_join_find(findings, CM_FINDING_INDEX, CM_WEIGHT_DECISION, false, v->name, v->first,
                        err,
                        "its values are places along %s of one file (instance_dimension), and no "
                        "variable that says what lies there is chosen",
                        d->name) == NULL
               ? CM_ENOMEM
               : CM_OK;
}

int cm_axis_check_indices(const cm_join_input *in, const cm_join_tables *tables,
                          cm_join_findings *findings, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < tables->nvars; i++)
        if (tables->var[i].wanted)
            rc = check_index(in, tables, findings, &tables->var[i], err);
    for (size_t i = 0; rc == CM_OK && i < tables->nvars; i++)
        if (tables->var[i].wanted)
            rc = check_rows(in, tables, findings, &tables->var[i], err);
    for (size_t i = 0; rc == CM_OK && i < tables->nvars; i++)
        if (tables->var[i].wanted)
            rc = check_instances(in, tables, findings, &tables->var[i], err);
    return rc;
}
