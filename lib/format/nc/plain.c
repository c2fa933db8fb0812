#include "format/nc/plain.h"

#include <stdlib.h>
#include <string.h>

#include "format/nc/h5_heap.h"
#include "format/nc/node.h"
#include "format/nc/plain_object.h"

enum {
    SMALL_NBYTES = 128 << 10, /* up to here a file is read at once */
    MOST_DIMENSIONS = 1 << 16
};

static const char non_coordinate[] = "_nc4_non_coord_";

typedef struct plain {
    cm_nc_file *file;
    cm_h5_bytes bytes;
    cm_h5_header header;
    cm_plain_object root;
    cm_plain_object *object; /* the datasets linked from the root */
    size_t n;
    int ndims; /* one more than the highest dimension number */
    cm_error *err;
} plain;

int cm_nc_plain_load(cm_nc_file *file, cm_error *err)
{
    size_t nbytes = (size_t)file->source.nbytes;
    if (nbytes > SMALL_NBYTES)
        return CM_OK;
    file->image = malloc(nbytes);
    if (file->image == NULL)
        return cm_fail(err, CM_ENOMEM, "no memory for a file of %zu bytes", nbytes);
    int rc = cm_source_read(&file->source, 0, file->image, nbytes, err);
    if (rc != CM_OK)
        return rc;
    const int fd = file->source.fd;
    file->source = cm_source_of_memory(file->image, nbytes);
    file->source.fd = fd; /* closed with the file */
    file->data = file->source;
    return CM_OK;
}

/* ---- the root ---- */

/* Finds the root's object header; the superblock was checked before. */
static int find_root(plain *p, uint64_t *address)
{
    const cm_h5_super *s = &p->file->super;
    const uint8_t *b;
    unsigned o = s->offset_nbytes;
    bool is_new = s->version >= 2;
    uint64_t begin = is_new ? 12 : s->version == 1 ? 28 : 24;
    uint64_t nbytes = begin + 4 * o + (is_new ? 4 : 2 * o + 8);
    if (s->base != 0 || s->writing || s->end != p->file->source.nbytes)
        return CM_EUNSUPPORTED;
    int rc = cm_h5_bytes_get(&p->bytes, 0, nbytes, &b);
    if (rc != CM_OK)
        return rc;
    cm_h5_cursor c = {b + begin, b + nbytes, false};
    uint64_t base = cm_h5_take_place(&c, o), extension = cm_h5_take_place(&c, o);
    (void)cm_h5_take(&c, o); /* end of the file */
    if (base != 0 || extension != CM_H5_UNDEFINED)
        return CM_EUNSUPPORTED;
    if (is_new) {
        *address = cm_h5_take_place(&c, o);
        bool good =
            b[11] == 0 && cm_load_le32(b + nbytes - 4) == cm_h5_checksum(b, (size_t)nbytes - 4);
        return good ? CM_OK : CM_EUNSUPPORTED;
    }
    /* Versions of other structures, a driver, and the root's symbol table entry. */
    uint64_t driver = cm_h5_take_place(&c, o);
    (void)cm_h5_take(&c, o);
    *address = cm_h5_take_place(&c, o);
    bool good = b[9] == 0 && b[10] == 0 && b[12] == 0 && cm_load_le32(b + 20) == 0 &&
                driver == CM_H5_UNDEFINED && cm_h5_take_number(&c, 4) == 0 && !c.bad;
    return good ? CM_OK : CM_EUNSUPPORTED;
}

static int read_objects(plain *p)
{
    uint64_t root;
    int rc = find_root(p, &root);
    if (rc == CM_OK)
        rc = cm_plain_root_read(&p->bytes, &p->header, root, &p->root, &p->object, &p->n);
    for (size_t i = 0; rc == CM_OK && i < p->n; i++)
        rc = cm_plain_dataset_read(&p->bytes, &p->header, &p->object[i]);
    /* netCDF-C records who wrote the file, and expects that to be text. */
    const cm_h5_attribute *by = rc == CM_OK ? cm_plain_attribute(&p->root, "_NCProperties") : NULL;
    if (by != NULL && (by->type.class != CM_H5_CLASS_TEXT || by->rank != 0))
        rc = CM_EUNSUPPORTED;
    return rc;
}

/* ---- dimensions ---- */

/*
 * The name without the prefix of a variable that is named like a dimension and is not its
 * coordinate.
 */
static const char *bare_name(const cm_plain_object *o)
{
    size_t n = sizeof(non_coordinate) - 1;
    bool prefixed = strncmp(o->link.name, non_coordinate, n) == 0 && o->link.name[n] != '\0';
    return prefixed ? o->link.name + n : o->link.name;
}

/* netCDF-C numbers dimensions in the order found, unless they carry numbers. */
static int number_dimensions(plain *p)
{
    for (size_t i = 0; i < p->n; i++) {
        cm_plain_object *o = &p->object[i];
        if (!o->is_scale)
            continue;
        if (bare_name(o) != o->link.name)
            return CM_EUNSUPPORTED;
        const cm_h5_attribute *a = cm_plain_attribute(o, "_Netcdf4Dimid");
        int64_t number = p->ndims;
        if (a != NULL) {
            if (a->type.class != CM_H5_CLASS_NUMBER || a->type.dtype.kind != CM_KIND_INT ||
                a->type.nbytes != 4 || a->type.big_endian || a->nelem != 1)
                return CM_EUNSUPPORTED;
            number = (int32_t)cm_load_le32(a->data);
        }
        if (number < 0 || number >= MOST_DIMENSIONS)
            return CM_EUNSUPPORTED;
        for (size_t k = 0; k < i; k++)
            if (p->object[k].is_scale && p->object[k].dim == number)
                return CM_EUNSUPPORTED;
        o->dim = (int)number;
        if (number >= p->ndims)
            p->ndims = (int)number + 1;
    }
    return CM_OK;
}

static const cm_plain_object *dimension_at(const plain *p, uint64_t header)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->object[i].is_scale && p->object[i].link.address == header)
            return &p->object[i];
    return NULL;
}

static bool is_dimension(const plain *p, int number)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->object[i].is_scale && p->object[i].dim == number)
            return true;
    return false;
}

/* The numbers of O's dimensions, as netCDF-C recorded them. */
static int read_coordinates(const plain *p, const cm_h5_attribute *a, cm_plain_object *o)
{
    if (a->type.class != CM_H5_CLASS_NUMBER || a->type.dtype.kind != CM_KIND_INT ||
        a->type.nbytes != 4 || a->type.big_endian || a->rank != 1 || a->nelem != o->space.rank)
        return CM_EUNSUPPORTED;
    for (unsigned j = 0; j < o->space.rank; j++) {
        o->id[j] = (int)cm_load_le32(a->data + 4 * (size_t)j);
        if (!is_dimension(p, o->id[j]))
            return CM_EUNSUPPORTED;
    }
    return CM_OK;
}

/* The scale of each dimension of O; if the numbers are KNOWN, checks them. */
static int read_scales(plain *p, const cm_h5_attribute *a, bool known, cm_plain_object *o)
{
    unsigned w = p->bytes.offset_nbytes;
    if (a->type.class != CM_H5_CLASS_VLEN_REFERENCE || a->type.nbytes != 4 + w + 4 ||
        a->rank != 1 || a->nelem != o->space.rank)
        return CM_EUNSUPPORTED;
    cm_h5_cursor c = {a->data, a->data + a->nelem * a->type.nbytes, false};
    for (unsigned j = 0; j < o->space.rank; j++) {
        const uint8_t *reference;
        uint64_t nbytes, length = cm_h5_take_number(&c, 4);
        uint64_t address = cm_h5_take_place(&c, w), index = cm_h5_take_number(&c, 4);
        if (length != 1)
            return CM_EUNSUPPORTED;
        int rc = cm_h5_global_find(&p->bytes, address, index, &reference, &nbytes);
        if (rc != CM_OK)
            return rc;
        const cm_plain_object *scale =
            nbytes == w ? dimension_at(p, cm_h5_load(reference, w)) : NULL;
        if (scale == NULL || (known && o->id[j] != scale->dim))
            return CM_EUNSUPPORTED;
        o->id[j] = scale->dim;
    }
    return CM_OK;
}

static int find_dimensions(plain *p, cm_plain_object *o)
{
    const cm_h5_attribute *numbers = cm_plain_attribute(o, "_Netcdf4Coordinates");
    const cm_h5_attribute *scales = cm_plain_attribute(o, "DIMENSION_LIST");
    unsigned rank = o->space.rank;
    if (o->is_bare)
        return CM_OK;
    if (o->space.null)
        return CM_EUNSUPPORTED;
    int rc = numbers != NULL ? read_coordinates(p, numbers, o) : CM_OK;
    if (rc != CM_OK)
        return rc;
    if (o->is_scale && rank == 1) {
        o->id[0] = o->dim;
        return CM_OK;
    }
    if (scales != NULL)
        return rank > 0 ? read_scales(p, scales, numbers != NULL, o) : CM_EUNSUPPORTED;
    /* netCDF-C would make up a dimension. */
    return numbers != NULL || rank == 0 ? CM_OK : CM_EUNSUPPORTED;
}

/* An unlimited dimension is as long as the longest variable along it. */
static uint64_t length_of(const plain *p, const cm_plain_object *scale)
{
    uint64_t length = 0;
    if (scale->space.most[0] != UINT64_MAX)
        return scale->space.extent[0];
    for (size_t i = 0; i < p->n; i++) {
        const cm_plain_object *o = &p->object[i];
        for (unsigned j = 0; !o->is_bare && j < o->space.rank; j++)
            if (o->id[j] == scale->dim && o->space.extent[j] > length)
                length = o->space.extent[j];
    }
    return length;
}

static int by_number(const void *a, const void *b)
{
    const cm_plain_object *const *x = a, *const *y = b;
    return ((*x)->dim > (*y)->dim) - ((*x)->dim < (*y)->dim);
}

/* Sets the group's dimensions, by their numbers. */
static int set_dimensions(plain *p, cm_nc_group *group)
{
    const cm_plain_object **scale = cm_calloc(p->n + 1, sizeof(*scale), p->err);
    group->dim = cm_calloc(p->n + 1, sizeof(*group->dim), p->err);
    size_t n = 0;
    for (size_t i = 0; scale != NULL && i < p->n; i++)
        if (p->object[i].is_scale)
            scale[n++] = &p->object[i];
    int rc = scale == NULL || group->dim == NULL ? CM_ENOMEM : CM_OK;
    if (rc == CM_OK && n > 0)
        qsort(scale, n, sizeof(*scale), by_number);
    for (size_t i = 0; rc == CM_OK && i < n; i++) {
        cm_nc_dim *d = &group->dim[i];
        *d = (cm_nc_dim){.name = cm_strdup(scale[i]->link.name, p->err),
                         .length = length_of(p, scale[i]),
                         .unlimited = scale[i]->space.most[0] == UINT64_MAX};
        group->ndims += d->name != NULL;
        rc = d->name == NULL ? CM_ENOMEM : cm_nc_dim_remember(p->file, scale[i]->dim, d, p->err);
    }
    free(scale);
    return rc;
}

static int set_group(plain *p)
{
    cm_nc_file *file = p->file;
    if ((file->group = cm_calloc(1, sizeof(*file->group), p->err)) == NULL)
        return CM_ENOMEM;
    file->ngroups = 1;
    if ((file->group->path = cm_strdup("", p->err)) == NULL)
        return CM_ENOMEM;
    int rc = set_dimensions(p, file->group);
    if (rc == CM_OK)
        rc = cm_plain_attributes_read(&p->bytes, &p->root, file, NULL, "group /",
                                      &file->group->attrs, p->err);
    return rc;
}

/* ---- variables ---- */

/* Converts the dataset's own fill value to its form in memory. */
static int set_fill(const cm_plain_object *o, cm_h5_dataset *d)
{
    const cm_h5_fill_message *fill = &o->fill;
    size_t n = o->type.nbytes;
    d->fill = !fill->defined || fill->never ? CM_H5_FILL_UNDEFINED
              : fill->value != NULL         ? CM_H5_FILL_VALUE
                                            : CM_H5_FILL_ZERO;
    if (fill->value == NULL)
        return CM_OK;
    if (fill->nbytes != n)
        return CM_EUNSUPPORTED;
    for (size_t i = 0; i < n; i++)
        d->fill_value[i] = fill->value[o->type.big_endian ? n - 1 - i : i];
    return CM_OK;
}

static int set_layout(const cm_plain_object *o, cm_nc_node *node)
{
    cm_h5_dataset *d = &node->dataset;
    const cm_h5_layout *l = &o->layout;
    uint64_t nbytes;
    d->layout = l->chunked ? H5D_CHUNKED : H5D_CONTIGUOUS;
    node->place = l->address;
    if (!l->chunked) {
        bool whole = cm_mul_u64(o->space.nelem, o->type.nbytes, &nbytes) && l->nbytes == nbytes;
        return whole && o->nfilters == 0 ? CM_OK : CM_EUNSUPPORTED;
    }
    if (l->rank != o->space.rank || l->itemsize != o->type.nbytes)
        return CM_EUNSUPPORTED;
    memcpy(d->chunk, l->chunk, l->rank * sizeof(d->chunk[0]));
    return CM_OK;
}

/* netCDF-C refuses a variable whose deflate filter has not exactly one parameter, from 0 to 9. */
static int set_codecs(const cm_plain_object *o, const cm_dtype *type, cm_h5_dataset *d)
{
    for (size_t i = 0; i < o->nfilters; i++) {
        const cm_h5_filter *f = &o->filter[i];
        bool odd = f->id == H5Z_FILTER_SZIP ||
                   (f->id == H5Z_FILTER_DEFLATE && (f->nvalues != 1 || f->value[0] > 9));
        if (odd)
            return CM_EUNSUPPORTED;
    }
    return d->layout == H5D_CHUNKED ? cm_h5_pipeline_of(o->filter, o->nfilters, type, d->big_endian,
                                                        &d->codec, &d->ncodecs, NULL)
                                    : CM_OK;
}

static int set_dataset(const cm_plain_object *o, cm_nc_node *node)
{
    cm_h5_dataset *d = &node->dataset;
    const cm_dtype *type = &node->var.array.dtype;
    d->rank = o->space.rank;
    memcpy(d->extent, o->space.extent, d->rank * sizeof(d->extent[0]));
    memcpy(d->most, o->space.most, d->rank * sizeof(d->most[0]));
    d->header = o->link.address;
    d->plain = true;
    d->big_endian = o->type.big_endian;
    int rc = set_layout(o, node);
    if (rc == CM_OK)
        rc = set_fill(o, d);
    if (rc == CM_OK)
        rc = set_codecs(o, type, d);
    d->known = true;
    return rc;
}

static int set_variable(plain *p, const cm_plain_object *o)
{
    cm_nc_file *file = p->file;
    cm_nc_node *node = &file->node[file->nnodes++];
    cm_nc_var *v = &node->var;
    cm_array *a = &v->array;
    node->file = file;
    node->ncid = node->varid = -1;
    node->locked_dataset = -1;
    /* Of text types, only single characters. */
    if (o->type.class != CM_H5_CLASS_NUMBER &&
        (o->type.class != CM_H5_CLASS_TEXT || o->type.nbytes != 1))
        return CM_EUNSUPPORTED;
    a->place = file->path;
    a->dtype = o->type.dtype;
    v->is_char = o->type.class == CM_H5_CLASS_TEXT;
    if ((a->name = cm_strdup(bare_name(o), p->err)) == NULL)
        return CM_ENOMEM;
    int rc = set_dataset(o, node);
    if (rc == CM_OK)
        rc = cm_nc_node_shape(node, o->id, (int)o->space.rank, p->err);
    if (rc == CM_OK)
        rc = cm_nc_node_match(node, p->err);
    if (rc != CM_OK)
        return rc;
    v->is_coordinate = cm_nc_node_is_coordinate(node);
    char *where = cm_asprintf(p->err, "variable %s", a->name);
    rc = where == NULL
             ? CM_ENOMEM
             : cm_plain_attributes_read(&p->bytes, o, file, node, where, &a->attrs, p->err);
    free(where);
    if (rc != CM_OK)
        return rc;
    node->has_nc_fill = true;
    if (o->fill.value != NULL)
        memcpy(node->nc_fill, node->dataset.fill_value, a->dtype.nbytes);
    else
        node->has_nc_fill = cm_nc_default_fill(cm_plain_type(&a->dtype), node->nc_fill);
    return cm_nc_node_fill(node, p->err);
}

static int set_variables(plain *p)
{
    cm_nc_file *file = p->file;
    int rc = CM_OK;
    if ((file->node = cm_calloc(p->n + 1, sizeof(*file->node), p->err)) == NULL)
        return CM_ENOMEM;
    for (size_t i = 0; rc == CM_OK && i < p->n; i++)
        if (!p->object[i].is_bare)
            rc = set_variable(p, &p->object[i]);
    for (size_t i = 0; rc == CM_OK && i < file->nnodes; i++)
        rc = cm_nc_var_prepare(file, &file->node[i].var, p->err);
    return rc;
}

static bool names_differ(const plain *p)
{
    for (size_t i = 1; i < p->n; i++)
        for (size_t k = 0; k < i; k++)
            if (!p->object[i].is_bare && !p->object[k].is_bare &&
                strcmp(bare_name(&p->object[i]), bare_name(&p->object[k])) == 0)
                return false;
    return true;
}

static int read_plain(plain *p)
{
    int rc = read_objects(p);
    if (rc == CM_OK)
        rc = names_differ(p) ? number_dimensions(p) : CM_EUNSUPPORTED;
    for (size_t i = 0; rc == CM_OK && i < p->n; i++)
        rc = find_dimensions(p, &p->object[i]);
    if (rc == CM_OK)
        rc = set_group(p);
    if (rc == CM_OK)
        rc = set_variables(p);
    if (rc != CM_OK)
        return rc;
    const char *name =
        cm_plain_attribute(&p->root, "_nc3_strict") != NULL ? "NetCDF-4 classic model" : "NetCDF-4";
    snprintf(p->file->format_name, sizeof(p->file->format_name), "%s", name);
    return CM_OK;
}

int cm_nc_plain_read(cm_nc_file *file, cm_error *err)
{
    plain p = {.file = file, .bytes = cm_h5_bytes_of(&file->source, &file->super), .err = err};
    file->plain = true;
    int rc = read_plain(&p);
    for (size_t i = 0; i < p.n; i++)
        cm_plain_object_release(&p.object[i]);
    free(p.object);
    cm_plain_object_release(&p.root);
    cm_h5_header_release(&p.header);
    cm_h5_bytes_release(&p.bytes);
    /* The libraries find any fault again, and report it. */
    return rc == CM_OK || rc == CM_ENOMEM ? rc : CM_EUNSUPPORTED;
}
