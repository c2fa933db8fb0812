#include "archive/survey/check.h"

#include "archive/survey/records.h"
#include "base/mem.h"

static int damaged(const cm_surveyed *f, cm_error *err)
{
    return cm_fail(err, CM_EFORMAT, "%s: its record in the survey is damaged", f->path);
}

/* The chunks of FORM's grid over SHAPE. */
static bool count_chunks(const cm_form *form, const uint64_t *shape, uint64_t *n)
{
    *n = 1;
    for (unsigned j = 0; j < form->rank; j++)
        if (!cm_mul_u64(*n, shape[j] / form->chunk[j] + (shape[j] % form->chunk[j] != 0), n))
            return false;
    return true;
}

static int check_located(const cm_survey *s, const cm_surveyed *f, const cm_surveyed_var *v,
                         cm_error *err)
{
    const cm_form *form;
    uint64_t n;
    int rc = cm_survey_form(s, v->form, &form, err);
    if (rc != CM_OK)
        return rc;
    if (form->rank != v->var->rank || !cm_dtype_equal(&form->dtype, &v->var->dtype))
        return damaged(f, err);
    if (form->kind != CM_LOCATED_CHUNKS)
        return v->located.nplaces == 0 ? CM_OK : damaged(f, err);
    return count_chunks(form, v->shape, &n) && n == v->located.nplaces ? CM_OK : damaged(f, err);
}

static int check_values(const cm_survey *s, const cm_surveyed *f, const cm_surveyed_var *v,
                        cm_error *err)
{
    uint64_t want = v->var->dtype.nbytes;
    size_t nbytes;
    bool good = !cm_dtype_is_vlen(&v->var->dtype);
    for (unsigned j = 0; good && j < v->var->rank; j++)
        good = cm_mul_u64(want, v->shape[j], &want);
    const void *values = cm_survey_values(s, v->values, &nbytes);
    return good && values != NULL && nbytes == want ? CM_OK : damaged(f, err);
}

static int check_groups(const cm_survey *s, const cm_surveyed *f, cm_error *err)
{
    size_t n = cm_surveyed_ngroups(f);
    if (n > (size_t)(f->end - f->record))
        return damaged(f, err);
    for (size_t i = 0; i < n; i++) {
        const char *path;
        cm_digest attrs;
        cm_json *json = NULL;
        int rc = cm_surveyed_group(s, f, i, &path, &attrs, err);
        if (rc == CM_OK)
            rc = cm_survey_json(s, attrs, &json, err);
        if (rc == CM_OK && !cm_json_is(json, CM_JSON_OBJECT))
            rc = damaged(f, err);
        cm_json_free(json);
        if (rc != CM_OK)
            return rc == CM_ENOMEM ? rc : damaged(f, err);
    }
    return n > 0 ? CM_OK : damaged(f, err);
}

int cm_surveyed_check(const cm_survey *s, const cm_surveyed *f, cm_error *err)
{
    if (f->status != CM_OK || f->skeleton == NULL)
        return damaged(f, err);
    int rc = check_groups(s, f, err);
    size_t n = 0;
    cm_surveyed_var v;
    cm_records_rest(s->records);
    cm_surveyed_iter it = cm_surveyed_begin(f);
    for (; rc == CM_OK && cm_surveyed_next(&it, &v); n++) {
        if (cm_described_attrs(v.var) == NULL)
            rc = damaged(f, err);
        if (rc == CM_OK && v.has_values)
            rc = check_values(s, f, &v, err);
        if (rc == CM_OK && v.is_located)
            rc = check_located(s, f, &v, err);
    }
    if (rc != CM_OK)
        return rc;
    return n == f->skeleton->nvars && !it.at.bad && it.at.at == it.at.end ? CM_OK : damaged(f, err);
}

int cm_surveyed_uses(const cm_survey *s, const cm_surveyed *f,
                     int (*each)(void *context, cm_digest digest, cm_error *err), void *context,
                     cm_error *err)
{
    cm_surveyed_var v;
    /* That of its skeleton stands right before what follows it. */
    cm_wire_in w = {f->record - sizeof(cm_digest), f->record, false};
    const cm_digest skeleton = cm_wire_get_digest(&w);
    int rc = each(context, skeleton, err);
    const cm_shared *k = cm_records_find(s->records, skeleton);
    if (rc == CM_OK && k == NULL)
        rc = damaged(f, err);
    if (rc == CM_OK) {
        const uint8_t *at = s->records->map + k->offset;
        w = (cm_wire_in){at, at + k->nbytes, false};
        (void)cm_wire_get_text(&w);
        uint32_t nvars = cm_wire_get_u32(&w);
        for (uint32_t i = 0; rc == CM_OK && i < nvars && !w.bad; i++)
            rc = each(context, cm_wire_get_digest(&w), err);
    }
    for (size_t i = 0; rc == CM_OK && i < cm_surveyed_ngroups(f); i++) {
        const char *path;
        cm_digest attrs;
        rc = cm_surveyed_group(s, f, i, &path, &attrs, err);
        if (rc == CM_OK)
            rc = each(context, attrs, err);
    }
    for (cm_surveyed_iter it = cm_surveyed_begin(f); rc == CM_OK && cm_surveyed_next(&it, &v);) {
        if (v.has_values)
            rc = each(context, v.values, err);
        if (rc == CM_OK && v.is_located)
            rc = each(context, v.form, err);
    }
    return rc;
}
