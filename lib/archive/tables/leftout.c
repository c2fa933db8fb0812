/* Collects attributes of files that the joined dataset lacks or has with other values. */
#include <stdlib.h>
#include <string.h>

#include "archive/emit.h"
#include "model/convert.h"

/* Sets member NAME of TO to the members of OWN that KEPT lacks or has with other values. */
static int add_attributes(cm_json *to, const char *name, const cm_json *own, const cm_json *kept,
                          cm_error *err)
{
    cm_json *o = cm_json_object();
    int rc = o == NULL ? cm_fail(err, CM_ENOMEM, "no memory for attributes") : CM_OK;
    for (cm_json_iter it = cm_json_begin(own); rc == CM_OK && cm_json_next(&it);)
        if (!cm_json_has(kept, it.name) || !cm_json_equal(it.value, cm_json_member(kept, it.name)))
            rc = cm_json_set(o, it.name, cm_json_copy(it.value), err);
    if (rc == CM_OK && cm_json_length(o) > 0)
        return cm_json_set(to, name, o, err);
    cm_json_free(o);
    return rc;
}

static int add_groups(const cm_join_input *in, const cm_emitted *emitted, uint32_t file,
                      cm_json *to, cm_error *err)
{
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < cm_surveyed_ngroups(in->file[file]); i++) {
        const char *path;
        cm_digest digest;
        cm_json *own = NULL;
        const cm_json *kept = NULL;
        rc = cm_surveyed_group(in->survey, in->file[file], i, &path, &digest, err);
        if (rc == CM_OK)
            rc = cm_survey_json(in->survey, digest, &own, err);
        for (size_t g = 0; rc == CM_OK && g < emitted->ngroups; g++)
            if (strcmp(emitted->group[g].path, path) == 0)
                kept = emitted->group[g].attrs;
        char *name = rc == CM_OK ? cm_asprintf(err, "/%s", path) : NULL;
        if (rc == CM_OK)
            rc = name == NULL ? CM_ENOMEM : add_attributes(to, name, own, kept, err);
        free(name);
        cm_json_free(own);
    }
    return rc;
}

/* The type and the fill value of D, where those of V are others. */
static int add_coding(const cm_join_var *v, const cm_described *d, cm_json *types, cm_json *fills,
                      cm_error *err)
{
    char text[64];
    int rc = CM_OK;
    bool same = cm_dtype_equal(&v->dtype, &d->dtype);
    if (!same)
        rc = cm_json_set(types, d->name,
                         cm_json_string(cm_dtype_name(&d->dtype, text, sizeof(text))), err);
    if (rc != CM_OK || !d->has_fill_value || !cm_dtype_is_number(&d->dtype) ||
        (same && v->has_fill_value && memcmp(v->fill_value, d->fill_value, d->dtype.nbytes) == 0))
        return rc;
    cm_element_text(&d->dtype, d->fill_value, text, sizeof(text));
    return cm_json_set(fills, d->name, cm_json_string(text), err);
}

/* How long the texts of V, which are filled up, are in FILE. */
static int add_length(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                      uint32_t file, const char *name, cm_json *lengths, cm_error *err)
{
    const cm_join_var *v = &tables->var[at];
    if (!v->is_text)
        return CM_OK;
    const uint64_t n = cm_join_text_length(in, tables, at, file);
    return n == cm_join_length(v, &tables->dim[v->dim[v->rank - 1]])
               ? CM_OK
               : cm_json_set(lengths, name, cm_json_u64(n), err);
}

typedef struct lists {
    cm_json *attributes, *types, *fills, *lengths;
} lists;

static int add_variables(const cm_join_input *in, const cm_join_tables *tables, uint32_t file,
                         lists *l, cm_error *err)
{
    const cm_skeleton *k = cm_join_skeleton(in, file);
    int rc = CM_OK;
    for (size_t i = 0; rc == CM_OK && i < k->nvars; i++) {
        const cm_described *d = k->var[i];
        const uint32_t at = tables->to_var[k->index][i];
        const cm_join_var *v = &tables->var[at];
        if (!v->wanted)
            continue;
        cm_survey_rest(in->survey);
        rc = add_attributes(l->attributes, d->name, cm_described_attrs(d), v->attrs, err);
        if (rc == CM_OK)
            rc = add_coding(v, d, l->types, l->fills, err);
        if (rc == CM_OK)
            rc = add_length(in, tables, at, file, d->name, l->lengths, err);
    }
    return rc == CM_OK ? cm_survey_failed(in->survey, err) : rc;
}

/* Takes VALUE; an empty one is dropped. */
static int put(cm_json *to, const char *name, cm_json *value, int rc, cm_error *err)
{
    if (rc == CM_OK && cm_json_length(value) > 0)
        return cm_json_set(to, name, value, err);
    cm_json_free(value);
    return rc;
}

int cm_join_left_out(const void *join, uint32_t file, cm_json **out, cm_error *err)
{
    const cm_join *j = join;
    lists l = {cm_json_object(), cm_json_object(), cm_json_object(), cm_json_object()};
    cm_json *o = cm_json_object();
    *out = NULL;
    int rc =
        l.attributes == NULL || l.types == NULL || l.fills == NULL || l.lengths == NULL || o == NULL
            ? cm_fail(err, CM_ENOMEM, "no memory for attributes")
            : add_groups(&j->in, j->emitted, file, l.attributes, err);
    if (rc == CM_OK)
        rc = add_variables(&j->in, &j->tables, file, &l, err);
    rc = put(o, "attributes", l.attributes, rc, err);
    rc = put(o, "types", l.types, rc, err);
    rc = put(o, "fill_values", l.fills, rc, err);
    rc = put(o, "text_lengths", l.lengths, rc, err);
    if (rc == CM_OK && cm_json_length(o) > 0)
        *out = o;
    else
        cm_json_free(o);
    return rc;
}
