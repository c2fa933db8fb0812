/* Compares attributes of variables: which decode numbers, which give meaning, which may go. */
#include "archive/tables/attributes.h"

#include <stdlib.h>
#include <string.h>

#include "archive/tables/described.h"

static const char *const PACKING[] = {"scale_factor", "add_offset", "_Unsigned", NULL};
static const char *const MEANING[] = {"standard_name",
                                      "cell_methods",
                                      "grid_mapping",
                                      "flag_values",
                                      "flag_meanings",
                                      "flag_masks",
                                      "positive",
                                      "axis",
                                      "formula_terms",
                                      "bounds",
                                      "climatology",
                                      "coordinates",
                                      "valid_min",
                                      "valid_max",
                                      "valid_range",
                                      "month_lengths",
                                      "leap_year",
                                      "_Encoding",
                                      NULL};
/* In a store, "coordinates" lists its writer's choice of them and decodes no numbers. */
static const char *const OF_WRITERS[] = {"bounds",    "climatology", "coordinates", "valid_min",
                                         "valid_max", "valid_range", NULL};
/* Readers take numbers outside for missing. */
static const char *const LIMITS[] = {"valid_min", "valid_max", "valid_range", NULL};
static const char *const NONE[] = {NULL};
/* Members with findings of their own. */
static const char *const TOLD_ELSEWHERE[] = {"units", "calendar", "missing_value", NULL};

static bool is_one_of(const char *const *list, const char *name)
{
    for (size_t i = 0; list[i] != NULL; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return false;
}

static bool is_ordinary(const char *name)
{
    return !is_one_of(PACKING, name) && !is_one_of(MEANING, name) &&
           !is_one_of(TOLD_ELSEWHERE, name);
}

/* ---- values ---- */

static bool equal_numbers(const cm_json *a, const cm_json *b)
{
    double x, y;
    return cm_json_get_double(a, &x) && cm_json_get_double(b, &y) && x == y;
}

/* Numbers of two types may be equal, and lists of them. */
static bool same_numbers(const cm_json *a, const cm_json *b)
{
    const size_t n = cm_json_is(a, CM_JSON_ARRAY) ? cm_json_length(a) : 0;
    bool equal = n > 0 && cm_json_is(b, CM_JSON_ARRAY) && cm_json_length(b) == n;
    for (size_t i = 0; equal && i < n; i++)
        equal = equal_numbers(cm_json_at(a, i), cm_json_at(b, i));
    return equal || equal_numbers(a, b);
}

/* Whether VALUE packs into the numbers that are stored, as none does. */
static bool packs_nothing(const cm_json *value, const char *name)
{
    double x;
    const bool scale = strcmp(name, "scale_factor") == 0;
    return (scale || strcmp(name, "add_offset") == 0) &&
           (value == NULL || (cm_json_get_double(value, &x) && x == (scale ? 1 : 0)));
}

static bool same(const cm_json *a, const cm_json *b, const char *name)
{
    const cm_json *x = cm_json_member(a, name), *y = cm_json_member(b, name);
    return cm_join_same_member(a, b, name) || same_numbers(x, y) ||
           (packs_nothing(x, name) && packs_nothing(y, name));
}

static bool packs_otherwise(const cm_json *x, const cm_json *y)
{
    for (size_t i = 0; PACKING[i] != NULL; i++)
        if (!same(x, y, PACKING[i]))
            return true;
    return false;
}

bool cm_join_packs_otherwise(const cm_described *a, const cm_described *b)
{
    return packs_otherwise(cm_described_attrs(a), cm_described_attrs(b));
}

bool cm_attributes_pack(const cm_json *attrs)
{
    for (size_t i = 0; PACKING[i] != NULL; i++)
        if (cm_json_has(attrs, PACKING[i]))
            return true;
    return false;
}

/* Compares two lists of variables, under their final names. */
static bool same_reworded(const cm_join_input *in, const cm_join_tables *tables, const cm_json *a,
                          const cm_json *b, const char *name)
{
    const char *x = cm_json_text(cm_json_member(a, name), NULL);
    const char *y = cm_json_text(cm_json_member(b, name), NULL);
    if (in->options->rename.n == 0 || x == NULL || y == NULL)
        return false;
    char *p = cm_join_reword(in, tables, x, NULL), *q = cm_join_reword(in, tables, y, NULL);
    bool equal = p != NULL && q != NULL && strcmp(p, q) == 0;
    free(p);
    free(q);
    return equal;
}

/* ---- what differs ---- */

void cm_differing_release(cm_differing *d)
{
    for (unsigned i = 0; i < CM_ATTRIBUTE_USES; i++)
        cm_json_free(d->all[i]);
    *d = (cm_differing){0};
}

static int add(cm_differing *d, cm_attribute_use use, const char *name, cm_error *err)
{
    if (d->first[use] == NULL)
        d->first[use] = name;
    if (d->all[use] == NULL && (d->all[use] = cm_json_object()) == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for attributes");
    return cm_json_has(d->all[use], name) ? CM_OK : cm_json_set_null(d->all[use], name, err);
}

/* Adds those of LIST, but for those of EXCEPT, in which X and Y differ. */
static int add_listed(cm_differing *d, cm_attribute_use use, const char *const *list,
                      const char *const *except, const cm_json *x, const cm_json *y, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && list[i] != NULL; i++)
        if (!is_one_of(except, list[i]) && !same(x, y, list[i]))
            rc = add(d, use, list[i], err);
    return rc;
}

static int add_meaning(const cm_join_input *in, const cm_join_tables *tables, cm_differing *d,
                       const char *const *except, const cm_json *x, const cm_json *y, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && MEANING[i] != NULL; i++)
        if (!is_one_of(except, MEANING[i]) && !same(x, y, MEANING[i]) &&
            !same_reworded(in, tables, x, y, MEANING[i]))
            rc = add(d, CM_ATTRIBUTE_MEANING, MEANING[i], err);
    return rc;
}

/* Adds members of X, all or the ordinary ones, that Y lacks or has with other values. */
static int add_members(cm_differing *d, cm_attribute_use use, bool all, const cm_json *x,
                       const cm_json *y, cm_error *err)
{
    int rc = CM_OK;
    for (cm_json_iter it = cm_json_begin(x); rc == CM_OK && cm_json_next(&it);)
        if ((all || is_ordinary(it.name)) && !same(x, y, it.name))
            rc = add(d, use, it.name, err);
    return rc;
}

/* A store keeps what it has: adds attributes of it, A, that FILE contradicts, and limits of A. */
static int add_contradicted(cm_differing *d, const cm_json *a, const cm_json *file, cm_error *err)
{
    int rc = CM_OK;
    for (cm_json_iter it = cm_json_begin(a); rc == CM_OK && cm_json_next(&it);)
        if (!same(a, file, it.name) &&
            (is_one_of(LIMITS, it.name) || (is_ordinary(it.name) && cm_json_has(file, it.name))))
            rc = add(d, CM_ATTRIBUTE_OTHER, it.name, err);
    return rc;
}

/* A grid mapping's information lies in its attributes alone. */
static bool is_mapping(const cm_json *x, const cm_json *y)
{
    return cm_json_has(x, "grid_mapping_name") || cm_json_has(y, "grid_mapping_name");
}

int cm_attributes_compare(const cm_join_input *in, const cm_join_tables *tables,
                          const cm_described *a, const cm_described *b, bool recounted,
                          cm_differing *out, cm_error *err)
{
    const cm_json *x = cm_described_attrs(a), *y = cm_described_attrs(b);
    memset(out->first, 0, sizeof(out->first));
    int rc = add_listed(out, CM_ATTRIBUTE_PACKING, PACKING, NONE, x, y, err);
    /* Limits of numbers that are packed or counted in two ways cannot be compared, and go. */
    const bool other_numbers = recounted || out->first[CM_ATTRIBUTE_PACKING] != NULL;
    const char *const *except = in->has_base ? OF_WRITERS : other_numbers ? LIMITS : NONE;
    if (rc == CM_OK)
        rc = add_meaning(in, tables, out, except, x, y, err);
    const bool mapping = is_mapping(x, y);
    if (rc == CM_OK && in->has_base && !mapping)
        return add_contradicted(out, x, y, err);
    const cm_attribute_use use = mapping ? CM_ATTRIBUTE_MEANING : CM_ATTRIBUTE_OTHER;
    if (rc == CM_OK)
        rc = add_members(out, use, mapping, x, y, err);
    return rc == CM_OK ? add_members(out, use, mapping, y, x, err) : rc;
}

static bool goes(const cm_join_input *in, const char *name)
{
    return in->options->first_attrs ? is_one_of(LIMITS, name) : is_ordinary(name);
}

int cm_attributes_keep_common(const cm_join_input *in, cm_json *kept, const cm_json *b,
                              cm_error *err)
{
    const char **gone = cm_calloc(cm_json_length(kept) + 1, sizeof(*gone), err);
    size_t n = 0;
    if (gone == NULL)
        return CM_ENOMEM;
    for (cm_json_iter it = cm_json_begin(kept); cm_json_next(&it);)
        if (goes(in, it.name) && !same(kept, b, it.name))
            gone[n++] = it.name;
    for (size_t i = 0; i < n; i++)
        cm_json_remove(kept, gone[i]);
    free(gone);
    return CM_OK;
}

/* ---- sentences ---- */

/* "A, B and C" of NAMES behind the first SKIPPED; LIMITS: of limits alone.  Returns how many. */
static size_t list_names(const cm_json *names, size_t skipped, bool limits, cm_buf *out,
                         cm_error *err)
{
    const char *last = NULL;
    size_t n = 0, at = 0;
    int rc = CM_OK;
    for (cm_json_iter it = cm_json_begin(names); rc == CM_OK && cm_json_next(&it);) {
        if (at++ < skipped || (limits && !is_one_of(LIMITS, it.name)))
            continue;
        if (last != NULL)
            rc = cm_buf_printf(out, err, "%s%s", n > 1 ? ", " : "", last);
        last = it.name;
        n++;
    }
    if (rc == CM_OK && last != NULL)
        rc = cm_buf_printf(out, err, "%s%s", n > 1 ? " and " : "", last);
    return rc == CM_OK ? n : 0;
}

/* All attributes that are not those of FIRST, which are left out or, of a store, stay. */
static char *tell_others(const cm_join_input *in, const cm_json *names, const char *first,
                         cm_error *err)
{
    cm_buf list = {0}, limits = {0};
    const size_t n = list_names(names, 0, false, &list, err);
    const size_t limited = in->has_base ? list_names(names, 0, true, &limits, err) : 0;
    char *text = n == 0 ? NULL
                        : cm_asprintf(err, "the attribute%s %.*s %s not th%s of %s%s%s%.*s%s",
                                      n > 1 ? "s" : "", (int)list.nbytes, (const char *)list.data,
                                      n > 1 ? "are" : "is", n > 1 ? "ose" : "at",
                                      in->has_base ? "the store" : first,
                                      in->has_base ? ", which keeps its own" : ", and left out",
                                      limited > 0 ? "; readers take what lies outside " : "",
                                      (int)limits.nbytes, (const char *)limits.data,
                                      limited > 0 ? " for missing" : "");
    cm_buf_release(&list);
    cm_buf_release(&limits);
    return text;
}

/* The sentence TOLD, of the first of NAMES, with the others and what becomes of limits. */
static char *tell_more(const cm_join_input *in, const cm_json *names, const char *told,
                       cm_error *err)
{
    cm_buf list = {0}, limits = {0};
    const size_t n = list_names(names, 1, false, &list, err);
    const size_t limited = in->options->first_attrs ? list_names(names, 0, true, &limits, err) : 0;
    char *text = cm_asprintf(err, "%s%s%.*s%s%s%.*s%s", told, n > 0 ? "; " : "", (int)list.nbytes,
                             (const char *)list.data,
                             n == 0  ? ""
                             : n > 1 ? " differ too"
                                     : " differs too",
                             limited > 0 ? "; " : "", (int)limits.nbytes, (const char *)limits.data,
                             limited == 0  ? ""
                             : limited > 1 ? " are left out: readers take what lies outside for "
                                             "missing"
                                           : " is left out: readers take what lies outside for "
                                             "missing");
    cm_buf_release(&list);
    cm_buf_release(&limits);
    return text;
}

int cm_attributes_tell_all(const cm_join_input *in, const cm_differing *d, cm_attribute_use use,
                           const char *first, cm_finding *f, cm_error *err)
{
    char *text = use == CM_ATTRIBUTE_OTHER ? tell_others(in, d->all[use], first, err)
                                           : tell_more(in, d->all[use], f->text, err);
    if (text == NULL)
        return CM_ENOMEM;
    free(f->text);
    f->text = text;
    for (size_t i = 0; LIMITS[i] != NULL; i++)
        f->limits |= cm_json_has(d->all[use], LIMITS[i]);
    if (f->limits && use == CM_ATTRIBUTE_OTHER)
        f->weight = CM_WEIGHT_WARNING;
    return CM_OK;
}

/* The limits of AT in any file, to ALL, and not any more to the joined variable. */
static int drop_limits(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                       cm_differing *all, uint32_t *file, cm_error *err)
{
    const cm_join_var *v = &tables->var[at];
    const cm_described *last = NULL;
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < v->nfiles; i++) {
        const cm_described *d = cm_join_described(in, tables, at, v->file[i]);
        if (d == last)
            continue;
        last = d;
        cm_survey_rest(in->survey);
        if (all->all[CM_ATTRIBUTE_OTHER] == NULL)
            *file = v->file[i];
        for (size_t k = 0; rc == CM_OK && LIMITS[k] != NULL; k++)
            if (cm_json_has(cm_described_attrs(d), LIMITS[k]))
                rc = add(all, CM_ATTRIBUTE_OTHER, LIMITS[k], err);
    }
    for (size_t k = 0; LIMITS[k] != NULL; k++)
        cm_json_remove(v->attrs, LIMITS[k]);
    return rc;
}

int cm_attributes_drop_limits(const cm_join_input *in, const cm_join_tables *tables,
                              cm_join_findings *findings, uint32_t at, const char *why,
                              cm_error *err)
{
    cm_differing all = {0};
    cm_buf list = {0};
    uint32_t file = 0;
    int rc = drop_limits(in, tables, at, &all, &file, err);
    const size_t n = list_names(all.all[CM_ATTRIBUTE_OTHER], 0, true, &list, err);
    if (rc == CM_OK && n > 0 &&
        cm_join_find(findings, CM_FINDING_ATTRIBUTE, CM_WEIGHT_NOTE, false, tables->var[at].name,
                     file, err, "the attribute%s %.*s %s left out, since %s", n > 1 ? "s" : "",
                     (int)list.nbytes, (const char *)list.data, n > 1 ? "are" : "is", why) == NULL)
        rc = CM_ENOMEM;
    cm_buf_release(&list);
    cm_differing_release(&all);
    return rc;
}
