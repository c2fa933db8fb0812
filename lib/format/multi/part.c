/*
 * Reads one file's share: stored bytes by address, or elements in the available way, converted to
 * those of the variable.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "format/multi/internal.h"
#include "format/nc/slab.h"
#include "model/convert.h"
#include "model/copy.h"

cm_multi_piece cm_multi_piece_of(const cm_multi_array *a, size_t p, bool by_library)
{
    cm_multi_piece piece = {.array = a, .part = cm_multi_part_of(a, p), .by_library = by_library};
    if (a->form_of == NULL) /* strings have no addresses */
        return piece;
    piece.located = cm_multi_located(a, p);
    piece.chain = cm_multi_form_of(a, p)->chain;
    return piece;
}

/* ---- stored bytes ---- */

/* Puts "FILE: variable X, chunk N", N in the file, before the message. */
static void explain(const cm_multi_array *a, const cm_multi_part *part, uint64_t number,
                    cm_error *err)
{
    cm_error_prefix(err, "variable %s, chunk number %" PRIu64, cm_multi_name_in(a, part), number);
    cm_error_place(err, cm_multi_path_of(a, part));
}

static int fetch_from(const cm_source *source, const cm_chunk_place *place, cm_buf *buf,
                      cm_error *err)
{
    if (place->address > source->nbytes || place->nbytes > source->nbytes - place->address)
        return cm_fail(err, CM_EFORMAT,
                       "%" PRIu32 " bytes are said to lie at %" PRIu64
                       ", but the file ends at %" PRIu64,
                       place->nbytes, place->address, source->nbytes);
    int rc = cm_buf_resize(buf, place->nbytes, err);
    return rc == CM_OK ? cm_source_read(source, place->address, buf->data, place->nbytes, err) : rc;
}

int cm_multi_fetch(const cm_multi_array *a, const cm_multi_part *part, const cm_located *located,
                   uint64_t number, cm_buf *buf, cm_fetch *out, cm_error *err)
{
    const cm_chunk_place *place = &located->place[number];
    cm_source source;
    *out = (cm_fetch){0};
    if (place->nbytes == 0)
        return CM_OK;
    uint64_t start = cm_now_ns();
    int rc = cm_multi_files_take(a->owner->files, part->file, &source, err);
    if (rc != CM_OK)
        return rc;
    rc = fetch_from(&source, place, buf, err);
    cm_multi_files_give(a->owner->files, part->file);
    *out = (cm_fetch){.present = true,
                      .skip = place->mask,
                      .io_ns = cm_now_ns() - start,
                      .nrequests = 1,
                      .nbytes = place->nbytes};
    if (rc != CM_OK)
        explain(a, part, number, err);
    return rc;
}

/* The variable of one file, as a chunked array. */
typedef struct file_array {
    cm_array base;
    const cm_multi_piece *piece;
} file_array;

static int fetch_of_file(cm_array *a, uint64_t number, cm_buf *buf, cm_fetch *out, cm_error *err)
{
    const cm_multi_piece *p = ((file_array *)a)->piece;
    return cm_multi_fetch(p->array, p->part, p->located, number, buf, out, err);
}

static int read_chunks(const cm_multi_piece *p, const cm_multi_view *in, cm_multi_scratch *scratch,
                       const cm_box *box, void *dst, cm_error *err)
{
    static const cm_array_ops ops = {.fetch = fetch_of_file};
    const cm_form *form = p->located->form;
    file_array f = {.piece = p};
    f.base = (cm_array){.ops = &ops,
                        .name = (char *)(uintptr_t)cm_multi_name_in(p->array, p->part),
                        .place = cm_multi_path_of(p->array, p->part),
                        .dtype = form->dtype,
                        .rank = in->rank,
                        .fill = form->has_fill ? (uint8_t *)(uintptr_t)form->fill : NULL,
                        .chunked = true,
                        .chain = (cm_chain *)(uintptr_t)p->chain};
    memcpy(f.base.shape, in->shape, sizeof(f.base.shape));
    int rc = cm_grid_init(&f.base.grid, in->rank, in->shape, form->chunk, err);
    return rc == CM_OK ? cm_array_read(&f.base, scratch->ctx, box, dst, err) : rc;
}

static int read_slab(const cm_multi_piece *p, const cm_multi_view *in, const cm_box *box, void *dst,
                     cm_error *err)
{
    const cm_located *l = p->located;
    const cm_multi_files *files = p->array->owner->files;
    cm_slab slab = {.begin = l->begin,
                    .row_stride = l->row_stride,
                    .itemsize = l->form->dtype.nbytes,
                    .swap = l->form->swap};
    int rc =
        cm_multi_files_take((cm_multi_files *)(uintptr_t)files, p->part->file, &slab.source, err);
    if (rc != CM_OK)
        return rc;
    rc = cm_slab_read(&slab, in->shape, box, dst, err);
    cm_multi_files_give((cm_multi_files *)(uintptr_t)files, p->part->file);
    if (rc != CM_OK) {
        cm_error_prefix(err, "variable %s", cm_multi_name_in(p->array, p->part));
        cm_error_place(err, cm_multi_path_of(p->array, p->part));
    }
    return rc;
}

/* ---- by libraries ---- */

/* Opens the file, reads BOX or its texts, and gives the file back. */
static int read_by_library(const cm_multi_piece *p, cm_multi_scratch *scratch, const cm_box *box,
                           void *dst, cm_strings *text, cm_error *err)
{
    cm_multi_files *files = p->array->owner->files;
    cm_dataset *ds;
    cm_variable *v;
    int rc = cm_multi_files_open(files, p->part->file, &ds, err);
    if (rc != CM_OK)
        return rc;
    rc = cm_multi_find_variable(p->array, p->part, ds, &v, err);
    if (rc == CM_OK && text != NULL)
        rc = p->by_library ? cm_dataset_read_strings(ds, v, box, text, err)
                           : cm_array_read_strings(v->array, box, text, err);
    else if (rc == CM_OK)
        rc = p->by_library ? cm_dataset_read(ds, v, box, dst, err)
                           : cm_array_read(v->array, scratch->ctx, box, dst, err);
    if (rc != CM_OK)
        cm_error_place(err, ds->path);
    cm_multi_files_close(files, p->part->file);
    return rc;
}

/* Reads elements of the file, in its own order and type. */
static int read_file(const cm_multi_piece *p, const cm_multi_view *in, cm_multi_scratch *scratch,
                     const cm_box *box, void *dst, cm_error *err)
{
    if (p->by_library || p->located == NULL)
        return read_by_library(p, scratch, box, dst, NULL, err);
    const cm_form *form = p->located->form;
    switch (form->kind) {
    case CM_LOCATED_CHUNKS:
        if (p->chain != NULL)
            return read_chunks(p, in, scratch, box, dst, err);
        break;
    case CM_LOCATED_SLAB:
        return read_slab(p, in, box, dst, err);
    case CM_LOCATED_UNWRITTEN:
        cm_fill(dst, cm_box_nelem(box), form->dtype.nbytes, form->has_fill ? form->fill : NULL);
        return CM_OK;
    case CM_LOCATED_NOT:
        break;
    }
    return read_by_library(p, scratch, box, dst, NULL, err);
}

/* ---- the variable's elements ---- */

/* Coordinates of element I of BOX in the joined array. */
static char *element_text(const cm_box *box, uint64_t i, char *text, size_t size)
{
    uint64_t at[CM_MAX_RANK];
    for (unsigned j = box->rank; j-- > 0;) {
        at[j] = box->start[j] + i % box->shape[j];
        i /= box->shape[j];
    }
    return cm_coord_text(box->rank, at, text, size);
}

/* Like the conversion: every NaN, and both zeros, compare as equal. */
static bool is_missing(const cm_dtype *t, const uint8_t *element, const uint8_t *fill)
{
    if (memcmp(element, fill, t->nbytes) == 0)
        return true;
    const double x = cm_element_to_double(t, element), y = cm_element_to_double(t, fill);
    return t->kind == CM_KIND_FLOAT && (x == y || (isnan(x) && isnan(y)));
}

/* Fails if an element is missing in the file: the variable has no fill value for it. */
static int refuse_fill(const cm_multi_piece *p, const cm_box *box, const uint8_t *from,
                       uint64_t nelem, cm_error *err)
{
    const cm_multi_how *how = p->part->how;
    uint64_t i = 0;
    if (how->dtype.kind == CM_KIND_FLOAT && p->array->var->dtype.kind == CM_KIND_FLOAT &&
        isnan(cm_element_to_double(&how->dtype, how->fill))) /* NaN is always missing */
        return CM_OK;
    while (i < nelem && !is_missing(&how->dtype, from + i * how->dtype.nbytes, how->fill))
        i++;
    if (i == nelem)
        return CM_OK;
    char text[CM_MAX_RANK * 21];
    cm_fail(err, CM_EFORMAT,
            "variable %s: element %s is missing, and the store has no _FillValue that says so",
            p->array->var->name, element_text(box, i, text, sizeof(text)));
    cm_error_place(err, cm_multi_path_of(p->array, p->part));
    return CM_EFORMAT;
}

/* Fails if a data element equals the variable's fill value: it would become missing. */
static int check_fill(const cm_multi_piece *p, const cm_box *box, const uint8_t *from,
                      const uint8_t *to, uint64_t nelem, cm_error *err)
{
    const cm_multi_var *v = p->array->var;
    const cm_multi_how *how = p->part->how;
    size_t small = how->dtype.nbytes, large = v->dtype.nbytes;
    uint8_t other[16];
    if (v->dtype.kind == CM_KIND_FLOAT &&
        isnan(cm_element_to_double(&v->dtype, v->fill_value))) /* NaN is always missing */
        return CM_OK;
    cm_element_twin(&v->dtype, v->fill_value, other);
    for (uint64_t i = 0; i < nelem; i++) {
        const uint8_t *element = to + i * large;
        if ((memcmp(element, v->fill_value, large) != 0 && memcmp(element, other, large) != 0) ||
            (how->replaces_fill && is_missing(&how->dtype, from + i * small, how->fill)))
            continue;
        char text[CM_MAX_RANK * 21];
        cm_fail(err, CM_EFORMAT,
                "variable %s: element %s is data, but equals the fill value that the store has",
                v->name, element_text(box, i, text, sizeof(text)));
        if (!how->keeps_fill)
            cm_error_suffix(err, "; choose another with `fill_value` %s:X", v->name);
        cm_error_place(err, cm_multi_path_of(p->array, p->part));
        return CM_EFORMAT;
    }
    return CM_OK;
}

static bool changes_values(const cm_multi_array *a, const cm_multi_how *how)
{
    return how->unpacks || how->replaces_fill || how->checks_fill || how->refuses_fill ||
           how->time_from != NULL || !cm_dtype_equal(&how->dtype, &a->var->dtype);
}

bool cm_multi_converts(const cm_multi_array *a, const cm_multi_part *part)
{
    const cm_multi_how *how = part->how;
    if (how == NULL)
        return false;
    bool lacks = false;
    for (unsigned i = 0; i < a->var->naxes; i++)
        lacks = lacks || how->lacks_axis[i];
    return lacks || how->transposed || how->pads || changes_values(a, how);
}

/* Reorders elements from the file's dimensions to the variable's. */
static void transpose(const cm_multi_array *a, const cm_multi_view *in, const cm_box *box,
                      size_t itemsize, const void *src, void *dst)
{
    uint64_t shape[CM_MAX_RANK] = {0};
    int64_t in_file[CM_MAX_RANK], from[CM_MAX_RANK], to[CM_MAX_RANK];
    for (unsigned j = 0; j < a->var->rank; j++)
        if (in->has[j])
            shape[in->dim[j]] = box->shape[j];
    cm_strides_c(in->rank, shape, itemsize, in_file);
    cm_strides_c(a->var->rank, box->shape, itemsize, to);
    for (unsigned j = 0; j < a->var->rank; j++)
        from[j] = in->has[j] ? in_file[in->dim[j]] : 0;
    cm_copy_nd(a->var->rank, box->shape, itemsize, dst, to, src, from);
}

/*
 * Explains why element BAD of BOX, in SRC, could not be converted (RC), by what the file holds, not
 * by options.
 */
static int explain_element(const cm_multi_piece *p, const cm_box *box, const uint8_t *src, int rc,
                           uint64_t bad, cm_error *err)
{
    const cm_multi_var *v = p->array->var;
    const cm_multi_how *how = p->part->how;
    char text[CM_MAX_RANK * 21], number[64], type[32];
    if (rc == CM_EINVAL && how->exact && bad < cm_box_nelem(box)) {
        cm_element_text(&how->dtype, src + bad * how->dtype.nbytes, number, sizeof(number));
        cm_fail(err, CM_EFORMAT, "%s does not fit %s", number,
                cm_dtype_name(&v->dtype, type, sizeof(type)));
    }
    if (bad < cm_box_nelem(box))
        cm_error_prefix(err, "element %s", element_text(box, bad, text, sizeof(text)));
    cm_error_prefix(err, "variable %s", v->name);
    cm_error_place(err, cm_multi_path_of(p->array, p->part));
    return rc == CM_EINVAL ? CM_EFORMAT : rc;
}

static int convert(const cm_multi_piece *p, const cm_box *box, void *dst, const void *src,
                   cm_error *err)
{
    const cm_multi_var *v = p->array->var;
    const cm_multi_how *how = p->part->how;
    cm_conversion c = {.src = how->dtype,
                       .dst = v->dtype,
                       .unpack = how->unpacks,
                       .single = how->single,
                       .scale = how->scale,
                       .offset = how->offset,
                       .exact = how->exact,
                       .nnodata = how->replaces_fill};
    if (how->other_sign)
        c.src.kind = c.src.kind == CM_KIND_UINT ? CM_KIND_INT : CM_KIND_UINT;
    memcpy(c.nodata[0].src, how->fill, sizeof(c.nodata[0].src));
    memcpy(c.nodata[0].dst, v->fill_value, sizeof(c.nodata[0].dst));
    uint64_t nelem = cm_box_nelem(box), bad = nelem;
    int rc = CM_OK;
    if (how->time_from != NULL)
        rc = cm_time_rebase(how->time_from, how->time_to, src, dst, nelem, &bad, err);
    else if (cm_conversion_is_identity(&c))
        memcpy(dst, src, nelem * v->dtype.nbytes);
    else
        rc = cm_conversion_run(&c, dst, src, nelem, &bad, err);
    if (rc != CM_OK)
        return explain_element(p, box, src, rc, bad, err);
    if (how->refuses_fill)
        return refuse_fill(p, box, src, nelem, err);
    return how->replaces_fill || how->checks_fill ? check_fill(p, box, src, dst, nelem, err)
                                                  : CM_OK;
}

/* Reads BOX, which lies wholly in the file. */
static int read_piece(const cm_multi_piece *p, cm_multi_scratch *scratch, const cm_box *box,
                      void *dst, cm_error *err)
{
    const cm_multi_array *a = p->array;
    const cm_multi_how *how = p->part->how;
    cm_multi_view in;
    cm_box there;
    cm_multi_view_part(a, p->part, &in);
    cm_multi_box_in_file(a, &in, box, &there);
    if (how == NULL)
        return read_file(p, &in, scratch, &there, dst, err);
    size_t nbytes = (size_t)cm_box_nelem(box) * how->dtype.nbytes;
    bool values = changes_values(a, how);
    if (!values && !how->transposed)
        return read_file(p, &in, scratch, &there, dst, err);
    /* The second half holds the elements in the variable's order. */
    int rc = cm_buf_resize(&scratch->raw, how->transposed && values ? 2 * nbytes : nbytes, err);
    if (rc == CM_OK)
        rc = read_file(p, &in, scratch, &there, scratch->raw.data, err);
    if (rc != CM_OK)
        return rc;
    const uint8_t *ordered = scratch->raw.data;
    if (how->transposed) {
        void *to = values ? scratch->raw.data + nbytes : dst;
        transpose(a, &in, box, how->dtype.nbytes, ordered, to);
        ordered = to;
    }
    return values ? convert(p, box, dst, ordered, err) : CM_OK;
}

/* Reads texts shorter than the variable's, padded with NULs. */
static int read_padded(const cm_multi_piece *p, cm_multi_scratch *scratch, const cm_box *box,
                       void *dst, cm_error *err)
{
    const unsigned last = box->rank - 1;
    const uint64_t width = p->part->how->width, begin = box->start[last], n = box->shape[last];
    const size_t itemsize = p->array->var->dtype.nbytes, to = (size_t)n * itemsize;
    cm_box texts = *box;
    texts.shape[last] = begin >= width ? 0 : width - begin < n ? width - begin : n;
    if (texts.shape[last] == n)
        return read_piece(p, scratch, box, dst, err);
    memset(dst, 0, (size_t)cm_box_nelem(box) * itemsize);
    if (texts.shape[last] == 0)
        return CM_OK;
    const size_t from = (size_t)texts.shape[last] * itemsize;
    const uint64_t rows = cm_box_nelem(&texts) / texts.shape[last];
    int rc = cm_buf_resize(&scratch->texts, (size_t)rows * from, err);
    if (rc == CM_OK)
        rc = read_piece(p, scratch, &texts, scratch->texts.data, err);
    for (uint64_t i = 0; rc == CM_OK && i < rows; i++)
        memcpy((uint8_t *)dst + i * to, scratch->texts.data + i * from, from);
    return rc;
}

int cm_multi_piece_read(const cm_multi_piece *p, cm_multi_scratch *scratch, const cm_box *box,
                        void *dst, cm_error *err)
{
    const cm_multi_how *how = p->part->how;
    /* Verification must not use the converter under test. */
    if (p->by_library && how != NULL && how->time_from == NULL)
        return cm_multi_expect(p, scratch, box, dst, err);
    return how != NULL && how->pads ? read_padded(p, scratch, box, dst, err)
                                    : read_piece(p, scratch, box, dst, err);
}

int cm_multi_piece_read_strings(const cm_multi_piece *p, const cm_box *box, cm_strings *out,
                                cm_error *err)
{
    cm_multi_view in;
    cm_box there;
    cm_multi_view_part(p->array, p->part, &in);
    cm_multi_box_in_file(p->array, &in, box, &there);
    if (p->part->how != NULL && p->part->how->transposed)
        return cm_fail(err, CM_EUNSUPPORTED,
                       "variable %s: strings whose dimensions have another order",
                       p->array->var->name);
    return read_by_library(p, NULL, &there, NULL, out, err);
}
