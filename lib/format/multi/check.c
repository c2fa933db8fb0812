/* Compares two files that must hold the same elements: static fields, and overlapping steps. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "format/multi/internal.h"
#include "model/convert.h"

enum {
    CHECK_NBYTES = 4 << 20 /* of each file at once, or one chunk, which is then decoded */
};

static cm_multi_piece piece_of(const cm_multi_array *a, const cm_multi_part *part)
{
    cm_multi_piece p = {.array = a, .part = part, .located = part->located};
    if (p.located != NULL && p.located->form->kind == CM_LOCATED_CHUNKS)
        p.chain = cm_multi_chain_for(a, p.located->form);
    return p;
}

/* Boxes of whole chunks of the first file, about CHECK_NBYTES each. */
static int cut(const cm_multi_array *a, const cm_multi_part *part, const cm_box *box, cm_grid *out,
               cm_error *err)
{
    const cm_multi_var *v = a->var;
    const cm_form *form = part->located != NULL ? part->located->form : NULL;
    uint64_t length[CM_MAX_RANK];
    uint64_t room = CHECK_NBYTES / (v->dtype.nbytes > 0 ? v->dtype.nbytes : 64);
    for (unsigned j = v->rank; j-- > 0;) {
        unsigned dim, rank;
        uint64_t chunk = 1;
        if (form != NULL && cm_multi_dim_in(a, part, j, &dim, &rank) && form->chunk[dim] > 0)
            chunk = form->chunk[dim];
        length[j] = room < box->shape[j] ? room - room % chunk : box->shape[j];
        if (length[j] < chunk)
            length[j] = chunk;
        room = room / length[j] > 0 ? room / length[j] : 1;
    }
    return cm_grid_init(out, v->rank, box->shape, length, err);
}

static void note_first(const cm_box *box, uint64_t i, cm_multi_clash *out)
{
    for (unsigned j = box->rank; j-- > 0;) {
        out->first[j] = box->start[j] + i % box->shape[j];
        i /= box->shape[j];
    }
}

static bool is_missing(const cm_multi_var *v, const uint8_t *element, double number)
{
    return isnan(number) ||
           (v->has_fill_value && memcmp(element, v->fill_value, v->dtype.nbytes) == 0);
}

/*
 * Whether elements are equal; *APART is the difference of numbers, infinite if one is not a number.
 */
static bool is_same(const cm_multi_var *v, double tolerance, const uint8_t *x, const uint8_t *y,
                    double *apart)
{
    const cm_dtype *t = &v->dtype;
    *apart = 0;
    if (memcmp(x, y, t->nbytes) == 0)
        return true;
    *apart = INFINITY;
    if (!cm_dtype_is_number(t))
        return false;
    const double a = cm_element_to_double(t, x), b = cm_element_to_double(t, y);
    const bool missing = is_missing(v, x, a);
    if (missing && is_missing(v, y, b)) /* missing in both, however it is encoded */
        return true;
    *apart = missing || is_missing(v, y, b) ? INFINITY : a == b ? 0 : fabs(a - b);
    return tolerance > 0 && *apart <= tolerance;
}

static void compare(const cm_multi_var *v, const cm_box *box, double tolerance, const uint8_t *a,
                    const uint8_t *b, cm_multi_clash *out)
{
    size_t itemsize = v->dtype.nbytes;
    uint64_t nelem = cm_box_nelem(box);
    if (memcmp(a, b, (size_t)nelem * itemsize) == 0)
        return;
    for (uint64_t i = 0; i < nelem; i++) {
        const uint8_t *x = a + i * itemsize, *y = b + i * itemsize;
        double apart;
        if (is_same(v, tolerance, x, y, &apart))
            continue;
        out->most = apart > out->most ? apart : out->most;
        if (out->ndiffering++ > 0)
            continue;
        note_first(box, i, out);
        cm_element_text(&v->dtype, x, out->value[0], sizeof(out->value[0]));
        cm_element_text(&v->dtype, y, out->value[1], sizeof(out->value[1]));
    }
}

/* PART's share of BOX, which is given in the joined array at the place of the first part. */
static cm_box box_of(const cm_multi_array *a, const cm_multi_check *check, unsigned which,
                     const cm_box *box)
{
    cm_box there = *box;
    for (unsigned i = 0; i < a->var->naxes; i++)
        there.start[a->var->axis[i]] += check->part[which].origin[i] - check->part[0].origin[i];
    return there;
}

static int read_one(const cm_multi_array *a, const cm_multi_check *check, unsigned which,
                    const cm_box *box, cm_multi_scratch *s, cm_error *err)
{
    const cm_multi_part *part = &check->part[which];
    cm_multi_piece p = piece_of(a, part);
    cm_box there = box_of(a, check, which, box);
    bool kept = which == 0 && s->kept == a->var && s->kept_file == part->file &&
                cm_box_equal(&s->kept_box, &there);
    if (kept)
        return CM_OK;
    s->kept = which == 0 ? NULL : s->kept;
    int rc = cm_buf_resize(&s->check[which], (size_t)cm_box_nelem(box) * a->var->dtype.nbytes, err);
    if (rc == CM_OK)
        rc = cm_multi_piece_read(&p, s, &there, s->check[which].data, err);
    if (rc == CM_OK && which == 0) {
        s->kept = a->var;
        s->kept_file = part->file;
        s->kept_box = there;
    }
    return rc;
}

static int compare_strings(const cm_multi_array *a, const cm_multi_check *check, const cm_box *box,
                           cm_multi_clash *out, cm_error *err)
{
    cm_strings text[2];
    int rc = CM_OK;
    for (unsigned k = 0; k < 2; k++)
        cm_strings_init(&text[k], 0);
    for (unsigned k = 0; rc == CM_OK && k < 2; k++) {
        cm_multi_piece p = piece_of(a, &check->part[k]);
        cm_box there = box_of(a, check, k, box);
        rc = cm_multi_piece_read_strings(&p, &there, &text[k], err);
    }
    for (uint64_t i = 0; rc == CM_OK && i < cm_box_nelem(box); i++) {
        size_t n[2];
        const char *x = cm_strings_get(&text[0], (size_t)i, &n[0]);
        const char *y = cm_strings_get(&text[1], (size_t)i, &n[1]);
        if ((n[0] == n[1] && memcmp(x, y, n[0]) == 0) || out->ndiffering++ > 0)
            continue;
        note_first(box, i, out);
        snprintf(out->value[0], sizeof(out->value[0]), "\"%.*s\"", (int)(n[0] > 40 ? 40 : n[0]), x);
        snprintf(out->value[1], sizeof(out->value[1]), "\"%.*s\"", (int)(n[1] > 40 ? 40 : n[1]), y);
    }
    cm_strings_release(&text[0]);
    cm_strings_release(&text[1]);
    return rc;
}

/* ---- stored bytes ---- */

/* True when the part is its whole file, in one piece, unconverted. */
static bool is_whole(const cm_multi_array *a, const cm_multi_part *part)
{
    for (unsigned i = 0; i < a->var->naxes; i++)
        if (part->first[i] != 0 || part->count[i] != part->length[i])
            return false;
    return part->how == NULL && part->located != NULL &&
           part->located->form->kind == CM_LOCATED_CHUNKS;
}

static int same_chunk(const cm_multi_array *a, const cm_multi_check *check, uint64_t n,
                      cm_multi_scratch *s, bool *same, cm_error *err)
{
    const cm_located *l[2] = {check->part[0].located, check->part[1].located};
    const cm_chunk_place *x = &l[0]->place[n], *y = &l[1]->place[n];
    cm_fetch fetched;
    int rc = CM_OK;
    *same = x->nbytes == y->nbytes && x->mask == y->mask && x->nbytes <= CHECK_NBYTES &&
            (x->nbytes > 0 || cm_form_equal(l[0]->form, l[1]->form));
    for (unsigned k = 0; rc == CM_OK && *same && x->nbytes > 0 && k < 2; k++)
        rc = cm_multi_fetch(a, &check->part[k], l[k], n, &s->stored[k], &fetched, err);
    if (rc == CM_OK && *same && x->nbytes > 0)
        *same = memcmp(s->stored[0].data, s->stored[1].data, x->nbytes) == 0;
    return rc;
}

/*
 * Files of a series mostly store a static field as the same bytes: equal bytes with equal decoders
 * need no decoding.  The conversion finds out whether the bytes are sound.
 */
static int same_bytes(const cm_multi_array *a, const cm_multi_check *check, cm_multi_scratch *s,
                      bool *same, cm_error *err)
{
    const cm_multi_part *x = &check->part[0], *y = &check->part[1];
    *same = is_whole(a, x) && is_whole(a, y) && x->located->nplaces == y->located->nplaces &&
            cm_form_decodes_alike(x->located->form, y->located->form);
    int rc = CM_OK;
    for (uint64_t n = 0; rc == CM_OK && *same && n < x->located->nplaces; n++)
        rc = same_chunk(a, check, n, s, same, err);
    return rc;
}

/* ---- all of a check ---- */

static int compare_pieces(const cm_multi_array *a, const cm_multi_check *check, const cm_box *whole,
                          cm_multi_scratch *s, cm_multi_clash *out, cm_error *err)
{
    cm_grid grid;
    int rc = cut(a, &check->part[0], whole, &grid, err);
    for (uint64_t i = 0; rc == CM_OK && i < grid.nchunks; i++) {
        uint64_t coord[CM_MAX_RANK];
        cm_box box;
        cm_grid_coord(&grid, i, coord);
        cm_grid_box(&grid, coord, &box);
        for (unsigned j = 0; j < box.rank; j++)
            box.start[j] += whole->start[j];
        if (cm_dtype_is_vlen(&a->var->dtype)) {
            rc = compare_strings(a, check, &box, out, err);
            continue;
        }
        for (unsigned k = 0; rc == CM_OK && k < 2; k++)
            rc = read_one(a, check, k, &box, s, err);
        if (rc == CM_OK)
            compare(a->var, &box, check->tolerance, s->check[0].data, s->check[1].data, out);
    }
    return rc;
}

int cm_multi_check_run(cm_dataset *ds, size_t i, cm_multi_clash *out, cm_error *err)
{
    cm_multi_dataset *d = (cm_multi_dataset *)cm_dataset_bottom(ds);
    const cm_multi_check *check = &d->spec->check[i];
    const cm_multi_array *a = &d->array[check->var];
    cm_box whole;
    memset(out, 0, sizeof(*out));
    for (unsigned k = 0; k < 2; k++)
        if (check->part[k].file >= d->spec->nfiles ||
            memcmp(check->part[0].count, check->part[k].count,
                   a->var->naxes * sizeof(check->part[0].count[0])) != 0)
            return cm_fail(err, CM_EINVAL,
                           "variable %s: the elements to be compared differ in number",
                           a->var->name);
    for (unsigned k = 0; k < 2; k++) {
        const cm_multi_part *part = &check->part[k];
        if (part->located != NULL && cm_multi_check_located(a, part, part->located, err) != CM_OK)
            return CM_EFORMAT;
    }
    cm_multi_part_box(a, &check->part[0], &whole);
    if (cm_box_nelem(&whole) == 0)
        return CM_OK;
    cm_multi_scratch *s = cm_multi_scratch_take(d, err);
    if (s == NULL)
        return CM_ENOMEM;
    bool same = false;
    int rc = same_bytes(a, check, s, &same, err);
    if (rc == CM_OK && !same)
        rc = compare_pieces(a, check, &whole, s, out, err);
    cm_multi_scratch_give(d, s);
    return rc;
}
