/*
 * Computes the elements a part must have become, independently of its conversion: elements as a
 * library reads them, the packing, fill value and dimensions that the file itself names, and plain
 * arithmetic, element by element.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "format/missing.h"
#include "format/multi/internal.h"
#include "format/packing.h"
#include "model/convert.h"

/* ---- numbers ---- */

typedef struct number {
    bool is_float;
    int64_t i; /* the bits of unsigned ones */
    bool is_unsigned;
    double x;
} number;

static bool load(const cm_dtype *t, bool other_sign, const uint8_t *p, number *out)
{
    float f;
    uint64_t bits = 0;
    *out = (number){.is_float = t->kind == CM_KIND_FLOAT};
    if (out->is_float && t->nbytes == 4) {
        memcpy(&f, p, sizeof(f));
        out->x = (double)f;
    } else if (out->is_float && t->nbytes == 8) {
        memcpy(&out->x, p, sizeof(out->x));
    } else if ((t->kind == CM_KIND_INT || t->kind == CM_KIND_UINT) && t->nbytes <= 8) {
        unsigned unused = 64 - 8 * t->nbytes;
        memcpy(&bits, p, t->nbytes);
        out->is_unsigned = (t->kind == CM_KIND_UINT) != other_sign;
        out->i = out->is_unsigned ? (int64_t)bits : (int64_t)(bits << unused) >> unused;
        out->x = out->is_unsigned ? (double)bits : (double)out->i;
    } else {
        return false;
    }
    return true;
}

/* Stores X if it is an integer in the range of T, and not a negative zero. */
static bool to_integer(const cm_dtype *t, double x, uint8_t *p)
{
    const bool has_sign = t->kind == CM_KIND_INT;
    const double end = ldexp(1, (int)(8 * t->nbytes) - has_sign);
    if (x != trunc(x) || x >= end || x < (has_sign ? -end : 0) || (x == 0 && signbit(x)))
        return false;
    const uint64_t bits = x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x;
    memcpy(p, &bits, t->nbytes);
    return true;
}

static bool store(const cm_dtype *t, const number *n, uint8_t *p)
{
    float f = (float)n->x;
    if (n->is_float && (t->kind == CM_KIND_INT || t->kind == CM_KIND_UINT))
        return to_integer(t, n->x, p);
    if (t->kind == CM_KIND_FLOAT && t->nbytes == 4)
        memcpy(p, &f, sizeof(f));
    else if (t->kind == CM_KIND_FLOAT && t->nbytes == 8)
        memcpy(p, &n->x, sizeof(n->x));
    else if (!n->is_float && (t->kind == CM_KIND_INT || t->kind == CM_KIND_UINT))
        memcpy(p, &n->i, t->nbytes); /* little-endian: the low bytes */
    else
        return false;
    return true;
}

/* ---- what the file says ---- */

typedef struct meaning {
    const cm_variable *in; /* of the file */
    const cm_multi_var *var;
    bool packed, other_sign; /* true where the joined variable is not */
    bool single;             /* and computed in float32 */
    double scale, offset;
    bool has_fill;
    uint8_t fill[16];
} meaning;

static double attribute(const cm_json *attrs, const char *name, double otherwise)
{
    double x;
    return cm_json_get_double(cm_json_member(attrs, name), &x) ? x : otherwise;
}

/*
 * Whether the joined variable is packed by the same numbers: a factor of 1 and an offset of 0 are
 * spelled out in one place, and left out in another.
 */
static bool stays_packed(const meaning *m)
{
    const cm_json *attrs = m->var->attrs;
    return (cm_json_has(attrs, "scale_factor") || cm_json_has(attrs, "add_offset")) &&
           m->scale == attribute(attrs, "scale_factor", 1) &&
           m->offset == attribute(attrs, "add_offset", 0);
}

static bool goes(const meaning *m, const char *name)
{
    return cm_json_has(m->in->attrs, name) && !cm_json_has(m->var->attrs, name);
}

/* The one element that missing_value names. */
static bool missing_value(const cm_variable *v, uint8_t *out)
{
    cm_missing list;
    if (!cm_missing_list(&v->dtype, v->attrs, NULL, &list) || list.n == 0)
        return false;
    memcpy(out, list.element[0], sizeof(list.element[0]));
    return true;
}

static meaning read_meaning(const cm_multi_array *a, const cm_multi_how *how, const cm_variable *v)
{
    meaning m = {.in = v, .var = a->var, .has_fill = v->has_fill_value};
    const char *sign = cm_json_text(cm_json_member(v->attrs, "_Unsigned"), NULL);
    m.scale = attribute(v->attrs, "scale_factor", 1);
    m.offset = attribute(v->attrs, "add_offset", 0);
    m.packed = (goes(&m, "scale_factor") || goes(&m, "add_offset")) && !stays_packed(&m);
    m.other_sign = sign != NULL && goes(&m, "_Unsigned") &&
                   strcmp(sign, v->dtype.kind == CM_KIND_INT ? "true" : "false") == 0;
    /* Single precision applies unless the joined variable has another type. */
    m.single = m.packed && how != NULL && how->single && cm_packing_of(v).shown.nbytes == 4;
    memcpy(m.fill, v->fill_value, sizeof(m.fill));
    if (!m.has_fill && how != NULL && how->replaces_fill)
        m.has_fill = missing_value(v, m.fill);
    return m;
}

/*
 * Bit-equal fill values are always missing.  If the join changes the fill value or the type, floats
 * equal to it (NaN included) are missing, too.
 */
static bool is_fill(const meaning *m, const uint8_t *raw)
{
    const cm_dtype *t = &m->in->dtype;
    number a, b;
    if (memcmp(raw, m->fill, t->nbytes) == 0)
        return true;
    const bool stays =
        cm_dtype_equal(t, &m->var->dtype) && memcmp(m->fill, m->var->fill_value, t->nbytes) == 0;
    return !stays && t->kind == CM_KIND_FLOAT && load(t, false, raw, &a) &&
           load(t, false, m->fill, &b) && (a.x == b.x || (isnan(a.x) && isnan(b.x)));
}

static bool put(const meaning *m, const uint8_t *raw, uint8_t *dst)
{
    const cm_multi_var *v = m->var;
    number n;
    if (m->has_fill && v->has_fill_value && is_fill(m, raw)) {
        memcpy(dst, v->fill_value, v->dtype.nbytes);
        return true;
    }
    if (!m->packed && cm_dtype_equal(&m->in->dtype, &v->dtype)) {
        memcpy(dst, raw, v->dtype.nbytes);
        return true;
    }
    if (!load(&m->in->dtype, m->other_sign, raw, &n))
        return false;
    if (m->single) {
        float x = (float)n.x;
        x = (float)((double)x * m->scale);
        x = (float)((double)x + m->offset);
        n.x = (double)x;
        n.is_float = true;
    } else if (m->packed) {
        n.x = n.x * m->scale;
        n.x = n.x + m->offset;
        n.is_float = true;
    }
    return store(&v->dtype, &n, dst);
}

/* ---- where elements lie ---- */

/*
 * Whether the file has dimension J of the variable: found by name or, if it is renamed, as the part
 * says.
 */
static bool dim_in_file(const cm_multi_array *a, const cm_multi_part *part, const cm_variable *v,
                        unsigned j, unsigned *out)
{
    unsigned rank, found = 0, as_said;
    bool has = cm_multi_dim_in(a, part, j, &as_said, &rank);
    for (unsigned i = 0; i < v->rank; i++)
        if (v->dim_name[i] != NULL && a->var->dim_name[j] != NULL &&
            strcmp(v->dim_name[i], a->var->dim_name[j]) == 0) {
            *out = i;
            found++;
        }
    if (found != 1)
        *out = as_said;
    return has;
}

static void place(const cm_multi_array *a, const cm_multi_part *part, const cm_variable *v,
                  const cm_box *box, cm_box *there, uint64_t *stride)
{
    unsigned dim[CM_MAX_RANK];
    bool has[CM_MAX_RANK];
    uint64_t own[CM_MAX_RANK];
    *there = (cm_box){.rank = v->rank};
    for (unsigned j = 0; j < box->rank; j++) {
        has[j] = dim_in_file(a, part, v, j, &dim[j]);
        if (!has[j])
            continue;
        there->start[dim[j]] = box->start[j];
        there->shape[dim[j]] = box->shape[j];
        for (unsigned i = 0; i < a->var->naxes; i++)
            if (a->var->axis[i] == j)
                there->start[dim[j]] = box->start[j] - part->origin[i] + part->first[i];
    }
    for (unsigned i = v->rank, n = 1; i-- > 0;) {
        own[i] = n == 1 ? 1 : own[i + 1] * there->shape[i + 1];
        n = 2;
    }
    for (unsigned j = 0; j < box->rank; j++)
        stride[j] = has[j] ? own[dim[j]] : 0;
}

/* How much of BOX's last dimension the file has; the rest is filled with NULs. */
static uint64_t width_in(const cm_multi_array *a, const cm_multi_part *part, const cm_variable *v,
                         const cm_box *box)
{
    unsigned dim;
    if (!a->var->is_char || box->rank == 0 || !dim_in_file(a, part, v, box->rank - 1, &dim))
        return UINT64_MAX;
    for (unsigned i = 0; i < a->var->naxes; i++)
        if (a->var->axis[i] + 1 == box->rank)
            return UINT64_MAX;
    const uint64_t begin = box->start[box->rank - 1], n = v->shape[dim];
    return n > begin ? n - begin : 0;
}

static int put_all(const cm_multi_array *a, const cm_multi_how *how, const cm_variable *v,
                   const cm_box *box, uint64_t width, const uint64_t *stride, const uint8_t *raw,
                   uint8_t *dst, cm_error *err)
{
    const meaning m = read_meaning(a, how, v);
    const uint64_t nelem = cm_box_nelem(box);
    for (uint64_t i = 0; i < nelem; i++) {
        uint64_t at = 0, rest = i;
        if (box->rank > 0 && i % box->shape[box->rank - 1] >= width) {
            memset(dst + i * a->var->dtype.nbytes, 0, a->var->dtype.nbytes);
            continue;
        }
        for (unsigned j = box->rank; j-- > 0;) {
            at += rest % box->shape[j] * stride[j];
            rest /= box->shape[j];
        }
        if (!put(&m, raw + at * v->dtype.nbytes, dst + i * a->var->dtype.nbytes))
            return cm_fail(err, CM_EUNSUPPORTED, "variable %s: its conversion cannot be verified",
                           a->var->name);
    }
    return CM_OK;
}

int cm_multi_expect(const cm_multi_piece *p, cm_multi_scratch *scratch, const cm_box *box,
                    void *dst, cm_error *err)
{
    cm_multi_files *files = p->array->owner->files;
    cm_dataset *ds;
    cm_variable *v;
    cm_box there, own = *box;
    uint64_t stride[CM_MAX_RANK], width = 0;
    int rc = cm_multi_files_open(files, p->part->file, &ds, err);
    if (rc != CM_OK)
        return rc;
    rc = cm_multi_find_variable(p->array, p->part, ds, &v, err);
    if (rc == CM_OK) {
        width = width_in(p->array, p->part, v, box);
        if (box->rank > 0 && width < box->shape[box->rank - 1])
            own.shape[box->rank - 1] = width;
        place(p->array, p->part, v, &own, &there, stride);
        rc = cm_buf_resize(&scratch->raw, (size_t)cm_box_nelem(&there) * v->dtype.nbytes, err);
    }
    if (rc == CM_OK && cm_box_nelem(&there) > 0)
        rc = cm_dataset_read(ds, v, &there, scratch->raw.data, err);
    if (rc == CM_OK)
        rc = put_all(p->array, p->part->how, v, box, width, stride, scratch->raw.data, dst, err);
    if (rc != CM_OK)
        cm_error_place(err, ds->path);
    cm_multi_files_close(files, p->part->file);
    return rc;
}

/* ---- elements computed by the join ---- */

static const char *text_of(const cm_variable *v, const char *name)
{
    return v == NULL ? NULL : cm_json_text(cm_json_member(v->attrs, name), NULL);
}

/* The coordinate that has V as its bounds; NULL: none. */
static const cm_variable *parent_of(const cm_dataset *ds, const cm_variable *v)
{
    for (size_t i = 0; i < ds->nvars; i++) {
        const char *bounds = text_of(&ds->var[i], "bounds");
        const char *climatology = text_of(&ds->var[i], "climatology");
        if ((bounds != NULL && strcmp(bounds, v->name) == 0) ||
            (climatology != NULL && strcmp(climatology, v->name) == 0))
            return &ds->var[i];
    }
    return NULL;
}

static int copy_attrs(const cm_variable *v, cm_json **out, cm_error *err)
{
    cm_json_free(*out);
    *out = v != NULL ? cm_json_copy(v->attrs) : NULL;
    return v == NULL || v->attrs == NULL || *out != NULL
               ? CM_OK
               : cm_fail(err, CM_ENOMEM, "no memory for attributes");
}

void cm_multi_said_release(cm_multi_said *said)
{
    cm_buf_release(&said->values);
    cm_json_free(said->attrs);
    cm_json_free(said->parent);
    *said = (cm_multi_said){0};
}

/* Whether the file has VAR's two dimensions in reverse order. */
static bool is_turned(const cm_variable *v, const cm_multi_var *var)
{
    return v->rank == 2 && var->rank == 2 && v->dim_name[1] != NULL &&
           strcmp(v->dim_name[0], var->dim_name[0]) != 0 &&
           strcmp(v->dim_name[1], var->dim_name[0]) == 0;
}

/* Transposes ROWS by COLUMNS elements. */
static int turn(cm_multi_said *out, uint64_t rows, uint64_t columns, cm_error *err)
{
    const size_t size = out->dtype.nbytes, all = (size_t)out->nelem * size;
    uint8_t *copy = cm_calloc(all + 1, 1, err);
    if (copy == NULL)
        return CM_ENOMEM;
    for (uint64_t r = 0; r < rows; r++)
        for (uint64_t c = 0; c < columns; c++)
            memcpy(copy + (c * rows + r) * size, out->values.data + (r * columns + c) * size, size);
    if (all > 0)
        memcpy(out->values.data, copy, all);
    free(copy);
    return CM_OK;
}

static int read_rows(cm_dataset *ds, cm_variable *v, const cm_multi_var *var, uint64_t first,
                     uint64_t count, cm_multi_said *out, cm_error *err)
{
    cm_box box = {.rank = v->rank};
    memcpy(box.shape, v->shape, v->rank * sizeof(v->shape[0]));
    out->dtype = v->dtype;
    out->repeats = v->rank < var->rank;
    const unsigned axis = is_turned(v, var) ? 1 : 0;
    if (!out->repeats && v->rank > 0) {
        if (first > v->shape[axis] || count > v->shape[axis] - first)
            return cm_fail(err, CM_EFORMAT, "%s: variable %s: is not as it was surveyed", ds->path,
                           v->name);
        box.start[axis] = first;
        box.shape[axis] = count;
    }
    out->nelem = cm_box_nelem(&box);
    out->has_fill = v->has_fill_value;
    memcpy(out->fill, v->fill_value, sizeof(out->fill));
    int rc = cm_buf_resize(&out->values, (size_t)out->nelem * v->dtype.nbytes, err);
    if (rc == CM_OK && out->nelem > 0)
        rc = cm_dataset_read(ds, v, &box, out->values.data, err);
    return rc == CM_OK && axis == 1 ? turn(out, box.shape[0], box.shape[1], err) : rc;
}

int cm_multi_said_read(cm_dataset *joined, const cm_multi_var *var, const cm_multi_part *part,
                       uint64_t first, uint64_t count, cm_multi_said *out, cm_error *err)
{
    cm_multi_dataset *d = (cm_multi_dataset *)cm_dataset_bottom(joined);
    const char *name = part->name != NULL ? part->name : var->name;
    cm_dataset *ds;
    int rc = cm_multi_files_open(d->files, part->file, &ds, err);
    if (rc != CM_OK)
        return rc;
    cm_variable *v = cm_dataset_find(ds, name);
    if (v == NULL) {
        rc = cm_fail(err, CM_EFORMAT, "%s: there is no variable %s any more", ds->path, name);
    } else {
        rc = copy_attrs(v, &out->attrs, err);
        if (rc == CM_OK)
            rc = copy_attrs(parent_of(ds, v), &out->parent, err);
        if (rc == CM_OK)
            rc = read_rows(ds, v, var, first, count, out, err);
    }
    cm_multi_files_close(d->files, part->file);
    return rc;
}
