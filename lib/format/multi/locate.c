/*
 * Finds the addresses of all parts of a variable: from the specification or, where it has none, by
 * opening the files in turn.
 */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "format/multi/internal.h"

enum {
    MOST_FORMS = UINT16_MAX
};

const cm_located *cm_multi_located(const cm_multi_array *a, size_t p)
{
    const cm_located *given = cm_multi_part_of(a, p)->located;
    if (given == NULL)
        return &a->located[p];
    cm_paged_touch(a->owner->paged, given, sizeof(*given));
    return given;
}

const cm_multi_form *cm_multi_form_of(const cm_multi_array *a, size_t p)
{
    if (a->nforms == 1) /* the usual case: saves reading a list */
        return a->form;
    cm_paged_touch(a->owner->paged, &a->form_of[p], sizeof(a->form_of[p]));
    return &a->form[a->form_of[p]];
}

/* ---- forms ---- */

/* Gives F the decoder of an equivalent form, or a new one. */
static int give_chain(cm_multi_array *a, cm_multi_form *f, cm_error *err)
{
    const cm_form *form = f->form;
    if (form->kind != CM_LOCATED_CHUNKS)
        return CM_OK;
    f->chain = (cm_chain *)(uintptr_t)cm_multi_chain_for(a, form);
    if (f->chain != NULL)
        return CM_OK;
    cm_error why;
    int rc = cm_chain_create(form->codecs, form->ncodecs, &form->dtype, form->rank, form->chunk,
                             &f->chain, &why);
    f->own_chain = rc == CM_OK;
    /* Leave it to the libraries if there is no decoder. */
    return rc == CM_ENOMEM ? cm_fail(err, rc, "%s", why.text) : CM_OK;
}

const cm_chain *cm_multi_chain_for(const cm_multi_array *a, const cm_form *form)
{
    for (unsigned i = 0; i < a->nforms; i++)
        if (a->form[i].chain != NULL && cm_form_decodes_alike(a->form[i].form, form))
            return a->form[i].chain;
    return NULL;
}

/* Finds or adds the form; a new one belongs to the array if OWN. */
static int intern(cm_multi_array *a, const cm_form *form, bool own, uint16_t *out, cm_error *err)
{
    for (unsigned i = a->nforms; i-- > 0;) {
        if (a->form[i].form == form || cm_form_equal(a->form[i].form, form)) {
            *out = (uint16_t)i;
            return CM_OK;
        }
    }
    if (a->nforms == MOST_FORMS)
        return cm_fail(err, CM_EUNSUPPORTED, "variable %s: its files store it in more than %d ways",
                       a->var->name, MOST_FORMS);
    if (CM_GROW(a->form, a->nforms, err) != CM_OK)
        return CM_ENOMEM;
    cm_multi_form f = {.form = form, .own_form = own};
    int rc = give_chain(a, &f, err);
    *out = (uint16_t)a->nforms;
    a->form[a->nforms++] = f;
    return rc;
}

/* ---- parts ---- */

/* Keeps the addresses found for part P, sharing equal forms. */
static int keep_form(cm_multi_array *a, size_t p, cm_error *err)
{
    cm_located *l = &a->located[p];
    unsigned before = a->nforms;
    int rc = intern(a, l->form, true, &a->form_of[p], err);
    if (a->nforms > before)
        return rc;
    if (rc != CM_OK) {
        cm_located_release(l);
        return rc;
    }
    cm_located found = {.form = l->form};
    cm_located_release(&found);
    l->form = a->form[a->form_of[p]].form;
    return CM_OK;
}

static int locate_in(cm_multi_array *a, size_t p, cm_dataset *ds, cm_error *err)
{
    cm_variable *v;
    int rc = cm_multi_find_variable(a, cm_multi_part_of(a, p), ds, &v, err);
    if (rc == CM_OK)
        rc = cm_dataset_locate(ds, v, &a->located[p], err);
    return rc == CM_OK ? keep_form(a, p, err) : rc;
}

/*
 * Locates other variables while the file is open.  Their errors are ignored here: they recur when
 * the variable itself is prepared.
 */
static void locate_others(cm_multi_array *a, uint32_t file, cm_dataset *ds)
{
    cm_multi_dataset *d = a->owner;
    for (size_t i = 0; i < d->spec->nvars; i++) {
        cm_multi_array *other = &d->array[i];
        uint32_t p = other->part_in != NULL ? other->part_in[file] : 0;
        if (other != a && p > 0 && other->located[p - 1].form == NULL)
            (void)locate_in(other, p - 1, ds, NULL);
    }
}

/* Opens the part's file. */
static int locate_part(cm_multi_array *a, size_t p, cm_error *err)
{
    uint32_t file = cm_multi_part_of(a, p)->file;
    cm_multi_files *files = a->owner->files;
    cm_dataset *ds;
    int rc = cm_multi_files_open(files, file, &ds, err);
    if (rc != CM_OK)
        return rc;
    rc = locate_in(a, p, ds, err);
    if (rc == CM_OK)
        locate_others(a, file, ds);
    else
        cm_error_place(err, ds->path);
    cm_multi_files_close(files, file);
    return rc;
}

int cm_multi_check_located(const cm_multi_array *a, const cm_multi_part *part, const cm_located *l,
                           cm_error *err)
{
    const cm_multi_var *v = a->var;
    const cm_dtype *dtype = part->how != NULL ? &part->how->dtype : &v->dtype;
    bool good = l->form != NULL && cm_dtype_equal(&l->form->dtype, dtype);
    uint64_t n = 1;
    for (unsigned j = 0; good && j < v->rank; j++) {
        unsigned dim, rank;
        if (!cm_multi_dim_in(a, part, j, &dim, &rank))
            continue;
        good = dim < l->form->rank && rank == l->form->rank;
        if (good && l->form->kind == CM_LOCATED_CHUNKS)
            good =
                l->form->chunk[dim] > 0 &&
                cm_mul_u64(n, cm_div_ceil(cm_multi_length_in(a, part, j), l->form->chunk[dim]), &n);
    }
    if (good && l->form->kind == CM_LOCATED_CHUNKS)
        good = l->nplaces == n && (n == 0 || l->place != NULL);
    if (good)
        return CM_OK;
    return cm_fail(err, CM_EFORMAT, "%s: variable %s: its addresses do not match its shape",
                   a->owner->spec->file[part->file].path, cm_multi_name_in(a, part));
}

static bool all_given(const cm_multi_array *a)
{
    for (size_t p = 0; p < a->var->nparts; p++)
        if (cm_multi_part_of(a, p)->located == NULL)
            return false;
    return true;
}

/* Allocates the results and the index of parts by file. */
static int begin(cm_multi_array *a, cm_error *err)
{
    const cm_multi_var *v = a->var;
    if (a->form_of != NULL)
        return CM_OK;
    a->form_of = cm_paged_calloc(a->owner->paged, v->nparts, sizeof(a->form_of[0]), err);
    if (a->form_of == NULL)
        return CM_ENOMEM;
    if (all_given(a))
        return CM_OK;
    a->located = cm_calloc(v->nparts + 1, sizeof(a->located[0]), err);
    a->part_in = cm_calloc(a->owner->spec->nfiles + 1, sizeof(a->part_in[0]), err);
    for (size_t p = 0; a->part_in != NULL && p < v->nparts; p++)
        a->part_in[v->part[p].file] = v->part[p].located == NULL ? (uint32_t)p + 1 : 0;
    return a->located == NULL || a->part_in == NULL ? CM_ENOMEM : CM_OK;
}

/* Prepares all variables that will be needed, so that each file is opened once. */
static int begin_all(cm_multi_array *a, cm_error *err)
{
    cm_multi_dataset *d = a->owner;
    int rc = begin(a, err);
    for (size_t i = 0; rc == CM_OK && a->located != NULL && i < d->spec->nvars; i++) {
        const cm_multi_var *v = &d->spec->var[i];
        if (d->base.var[i].wanted && v->nparts > 0 && v->unsupported == NULL &&
            !cm_dtype_is_vlen(&v->dtype))
            rc = begin(&d->array[i], err);
    }
    return rc;
}

int cm_multi_locate(cm_multi_array *a, cm_error *err)
{
    const cm_multi_var *v = a->var;
    int rc = begin_all(a, err);
    for (size_t p = 0; rc == CM_OK && p < v->nparts; p++) {
        const cm_located *given = cm_multi_part_of(a, p)->located;
        const cm_dataset_options *o = &a->owner->options;
        if (o->canceled != NULL && o->canceled(o->canceled_context))
            return cm_fail(err, CM_ECANCELED, "stopped by request");
        if (given == NULL) {
            if (a->located[p].form == NULL)
                rc = locate_part(a, p, err);
        } else if (given->form == NULL) {
            rc = cm_fail(err, CM_EINVAL, "variable %s: a part without a form", v->name);
        } else {
            rc = intern(a, given->form, false, &a->form_of[p], err);
        }
        if (rc == CM_OK)
            rc = cm_multi_check_located(a, &v->part[p], cm_multi_located(a, p), err);
    }
    free(a->part_in);
    a->part_in = NULL;
    return rc;
}

int cm_multi_part_located(cm_dataset *ds, const cm_variable *var, size_t i, const cm_located **out,
                          cm_error *err)
{
    const cm_multi_array *a = &((cm_multi_dataset *)cm_dataset_bottom(ds))->array[var->index];
    if (!a->prepared || a->form_of == NULL || i >= a->var->nparts)
        return cm_fail(err, CM_EINVAL, "variable %s: it has no such part", var->name);
    *out = cm_multi_located(a, i);
    return CM_OK;
}

void cm_multi_locate_release(cm_multi_array *a)
{
    for (size_t p = 0; a->located != NULL && p < a->var->nparts; p++)
        free((void *)(uintptr_t)a->located[p].place);
    for (unsigned i = 0; i < a->nforms; i++) {
        cm_located own = {.form = a->form[i].own_form ? a->form[i].form : NULL};
        cm_located_release(&own);
        if (a->form[i].own_chain)
            cm_chain_free(a->form[i].chain);
    }
    free(a->located);
    free(a->part_in);
    free(a->form);
}
