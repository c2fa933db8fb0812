#include "format/nc/plain_object.h"

#include <stdlib.h>
#include <string.h>

#include "format/nc/h5_heap.h"
#include "format/nc/h5_tree2.h"

enum {
    FIRST_ITEMS = 8, /* initial capacity for links or attributes */
    MOST_LINKS = 4096,
    MOST_ATTRIBUTES = 4096
};

/* ---- links and attributes in a heap ---- */

typedef struct dense {
    cm_h5_heap heap;
    int (*add)(void *to, uint64_t order, const uint8_t *p, size_t nbytes);
    const char *(*last)(const void *to); /* name of the item last added */
    void *to;
    bool links;
    size_t n, nordered;
} dense;

/*
 * A link's record: checksum of the name, then the heap ID; an attribute's has them in reverse
 * order.
 */
static int visit_dense(void *context, const uint8_t *record)
{
    enum {
        CONSTANT = 1,
        NOT_SHARED = 4
    };
    dense *d = context;
    const uint8_t *p, *id = record + (d->links ? 4 : 0), *rest = id + d->heap.id_nbytes;
    size_t nbytes;
    if (!d->links && (rest[0] & ~(unsigned)(CONSTANT | NOT_SHARED)) != 0)
        return CM_EUNSUPPORTED;
    int rc = cm_h5_heap_find(&d->heap, id, &p, &nbytes);
    d->n++;
    if (rc == CM_OK)
        rc = d->add(d->to, d->links ? 0 : cm_load_le32(rest + 1), p, nbytes);
    /* Libraries look names up by these checksums, so check them. */
    const char *name = rc == CM_OK ? d->last(d->to) : NULL;
    const uint32_t sum = cm_load_le32(d->links ? record : rest + 1 + 4);
    return rc == CM_OK && cm_h5_checksum(name, strlen(name)) != sum ? CM_EUNSUPPORTED : rc;
}

static int count_ordered(void *context, const uint8_t *record)
{
    (void)record;
    ((dense *)context)->nordered++;
    return CM_OK;
}

/*
 * Walks the tree by name; libraries use the other tree, which must exist and have the same length.
 */
static int read_dense(cm_h5_bytes *b, const cm_h5_dense *at, dense *d)
{
    enum {
        LINK_ID = 7,
        ATTRIBUTE_ID = 8
    };
    int rc = cm_h5_heap_open(b, at->heap, &d->heap);
    if (rc != CM_OK)
        return rc;
    unsigned id = d->heap.id_nbytes;
    if (id != (d->links ? LINK_ID : ATTRIBUTE_ID))
        return CM_EUNSUPPORTED;
    rc = cm_h5_tree2_walk(b, at->tree, d->links ? CM_H5_TREE2_LINKS : CM_H5_TREE2_ATTRIBUTES,
                          d->links ? 4 + id : id + 1 + 4 + 4, visit_dense, d);
    if (rc != CM_OK || at->ordered_tree == CM_H5_UNDEFINED)
        return rc;
    rc = cm_h5_tree2_walk(b, at->ordered_tree,
                          d->links ? CM_H5_TREE2_LINKS_IN_ORDER : CM_H5_TREE2_ATTRIBUTES_IN_ORDER,
                          d->links ? 8 + id : id + 1 + 4, count_ordered, d);
    return rc == CM_OK && d->nordered != d->n ? CM_EUNSUPPORTED : rc;
}

/* ---- attributes ---- */

typedef struct attributes {
    cm_h5_bytes *bytes;
    cm_plain_object *object;
    size_t capacity;
} attributes;

static int add_attribute(void *context, uint64_t order, const uint8_t *p, size_t nbytes)
{
    attributes *to = context;
    cm_plain_object *o = to->object;
    cm_h5_attribute *attribute =
        cm_make_room(o->attribute, o->nattributes, &to->capacity, sizeof(*attribute), FIRST_ITEMS);
    if (attribute == NULL)
        return CM_ENOMEM;
    o->attribute = attribute;
    if (o->nattributes == MOST_ATTRIBUTES)
        return CM_EUNSUPPORTED;
    cm_h5_attribute *a = &o->attribute[o->nattributes];
    int rc = cm_h5_attribute_decode(to->bytes, p, nbytes, a);
    a->order = order;
    o->nattributes += rc == CM_OK;
    return rc;
}

static const char *last_attribute(const void *context)
{
    const cm_plain_object *o = ((const attributes *)context)->object;
    return o->attribute[o->nattributes - 1].name;
}

static int by_attribute_order(const void *a, const void *b)
{
    uint64_t x = ((const cm_h5_attribute *)a)->order, y = ((const cm_h5_attribute *)b)->order;
    return (x > y) - (x < y);
}

/* Reads attributes from the header H or, if INFO says so, from a heap. */
static int read_attributes(cm_h5_bytes *b, const cm_h5_header *h, const cm_h5_message *info,
                           cm_plain_object *o)
{
    cm_h5_dense at = {.ordered = h->ordered, .heap = CM_H5_UNDEFINED};
    attributes to = {.bytes = b, .object = o};
    int rc = info != NULL ? cm_h5_dense_decode(b, false, info->data, info->nbytes, &at) : CM_OK;
    for (size_t i = 0; rc == CM_OK && i < h->nmessages; i++)
        if (h->message[i].type == CM_H5_MESSAGE_ATTRIBUTE)
            rc = add_attribute(&to, h->message[i].order, h->message[i].data, h->message[i].nbytes);
    if (rc != CM_OK || !at.ordered || !h->ordered)
        return rc != CM_OK ? rc : CM_EUNSUPPORTED;
    if (at.heap != CM_H5_UNDEFINED && o->nattributes > 0)
        return CM_EUNSUPPORTED;
    if (at.heap != CM_H5_UNDEFINED)
        rc = read_dense(b, &at, &(dense){.add = add_attribute, .last = last_attribute, .to = &to});
    if (rc != CM_OK || o->nattributes == 0)
        return rc;
    qsort(o->attribute, o->nattributes, sizeof(o->attribute[0]), by_attribute_order);
    for (size_t i = 1; i < o->nattributes; i++)
        if (o->attribute[i].order == o->attribute[i - 1].order)
            return CM_EUNSUPPORTED;
    return CM_OK;
}

const cm_h5_attribute *cm_plain_attribute(const cm_plain_object *o, const char *name)
{
    for (size_t i = 0; i < o->nattributes; i++)
        if (strcmp(o->attribute[i].name, name) == 0)
            return &o->attribute[i];
    return NULL;
}

/* ---- the root ---- */

typedef struct links {
    cm_h5_bytes *bytes;
    cm_plain_object *object;
    size_t n, capacity;
} links;

static int add_link(void *context, uint64_t order, const uint8_t *p, size_t nbytes)
{
    links *to = context;
    (void)order; /* taken from the link itself */
    cm_plain_object *object =
        cm_make_room(to->object, to->n, &to->capacity, sizeof(*object), FIRST_ITEMS);
    if (object == NULL)
        return CM_ENOMEM;
    to->object = object;
    if (to->n == MOST_LINKS)
        return CM_EUNSUPPORTED;
    cm_plain_object *o = &to->object[to->n];
    memset(o, 0, sizeof(*o));
    int rc = cm_h5_link_decode(to->bytes, p, nbytes, &o->link);
    to->n += rc == CM_OK;
    return rc;
}

static const char *last_link(const void *context)
{
    const links *to = context;
    return to->object[to->n - 1].link.name;
}

static int by_link_order(const void *a, const void *b)
{
    uint64_t x = ((const cm_plain_object *)a)->link.order;
    uint64_t y = ((const cm_plain_object *)b)->link.order;
    return (x > y) - (x < y);
}

/* Whether places, orders and names are all distinct. */
static bool are_distinct(const cm_plain_object *o, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t k = 0; k < i; k++)
            if (o[i].link.order == o[k].link.order || o[i].link.address == o[k].link.address ||
                strcmp(o[i].link.name, o[k].link.name) == 0)
                return false;
    return true;
}

static int read_links(cm_h5_bytes *b, const cm_h5_header *h, const cm_h5_message *info, links *to)
{
    cm_h5_dense at;
    int rc = cm_h5_dense_decode(b, true, info->data, info->nbytes, &at);
    for (size_t i = 0; rc == CM_OK && i < h->nmessages; i++)
        if (h->message[i].type == CM_H5_MESSAGE_LINK)
            rc = add_link(to, 0, h->message[i].data, h->message[i].nbytes);
    if (rc != CM_OK)
        return rc;
    if (!at.ordered || (at.heap != CM_H5_UNDEFINED && to->n > 0))
        return CM_EUNSUPPORTED;
    if (at.heap != CM_H5_UNDEFINED)
        rc = read_dense(b, &at,
                        &(dense){.add = add_link, .last = last_link, .to = to, .links = true});
    if (rc != CM_OK || to->n == 0)
        return rc;
    qsort(to->object, to->n, sizeof(to->object[0]), by_link_order);
    return are_distinct(to->object, to->n) ? CM_OK : CM_EUNSUPPORTED;
}

/* Stores M in the SLOT of its type; false: there is none, or it is taken. */
static bool put_message(const cm_h5_message **slot, const unsigned *type, size_t n,
                        const cm_h5_message *m)
{
    for (size_t i = 0; i < n; i++) {
        if (type[i] != m->type)
            continue;
        bool free_slot = slot[i] == NULL;
        slot[i] = m;
        return free_slot;
    }
    return false;
}

int cm_plain_root_read(cm_h5_bytes *b, cm_h5_header *header, uint64_t address,
                       cm_plain_object *root, cm_plain_object **out, size_t *nlinks)
{
    enum {
        LINKS,
        ATTRIBUTES,
        GROUP,
        NSLOTS
    };
    static const unsigned type[NSLOTS] = {CM_H5_MESSAGE_LINK_INFO, CM_H5_MESSAGE_ATTRIBUTE_INFO,
                                          CM_H5_MESSAGE_GROUP_INFO};
    const cm_h5_message *slot[NSLOTS] = {0};
    int rc = cm_h5_header_read(b, address, header);
    for (size_t i = 0; rc == CM_OK && i < header->nmessages; i++) {
        const cm_h5_message *m = &header->message[i];
        if (m->type != CM_H5_MESSAGE_LINK && m->type != CM_H5_MESSAGE_ATTRIBUTE &&
            !put_message(slot, type, NSLOTS, m))
            rc = CM_EUNSUPPORTED;
    }
    if (rc == CM_OK && slot[LINKS] == NULL)
        rc = CM_EUNSUPPORTED;
    /* Version 0, and empty. */
    const cm_h5_message *group = slot[GROUP];
    if (rc == CM_OK && group != NULL &&
        (group->nbytes < 2 || group->data[0] != 0 || group->data[1] != 0))
        rc = CM_EUNSUPPORTED;
    if (rc == CM_OK)
        rc = read_attributes(b, header, slot[ATTRIBUTES], root);
    links to = {.bytes = b};
    if (rc == CM_OK)
        rc = read_links(b, header, slot[LINKS], &to);
    *out = to.object;
    *nlinks = to.n;
    return rc;
}

/* ---- a dataset ---- */

/* True for one of HDF5's own attributes with exactly this text. */
static bool is_mark(const cm_h5_attribute *a)
{
    static const char scale[] = "DIMENSION_SCALE";
    return a->type.class == CM_H5_CLASS_TEXT && a->type.ends_in_nul && a->rank == 0 &&
           a->nelem == 1 && a->type.nbytes == sizeof(scale) &&
           memcmp(a->data, scale, sizeof(scale)) == 0;
}

/* By the HDF5 Dimension Scale Specification, and netCDF-C's NAME for a scale without a variable. */
static int find_scale(cm_plain_object *o)
{
    static const char bare[] = "This is a netCDF dimension but not a netCDF variable.";
    const cm_h5_attribute *class = cm_plain_attribute(o, "CLASS");
    const cm_h5_attribute *name = cm_plain_attribute(o, "NAME");
    o->is_scale = class != NULL;
    if (!o->is_scale)
        return name == NULL ? CM_OK : CM_EUNSUPPORTED;
    const cm_h5_attribute *list = cm_plain_attribute(o, "REFERENCE_LIST");
    if (list != NULL && list->type.class != CM_H5_CLASS_COMPOUND)
        return CM_EUNSUPPORTED;
    if (!is_mark(class) || o->space.null || o->space.rank == 0 ||
        cm_plain_attribute(o, "DIMENSION_LIST") != NULL)
        return CM_EUNSUPPORTED;
    if (name == NULL)
        return CM_OK;
    if (name->type.class != CM_H5_CLASS_TEXT || name->rank != 0 || name->nelem != 1)
        return CM_EUNSUPPORTED;
    o->is_bare =
        name->type.nbytes >= sizeof(bare) - 1 && memcmp(name->data, bare, sizeof(bare) - 1) == 0;
    /* Some writers truncate the text, and not all versions recognise it then. */
    bool doubtful = !o->is_bare && name->type.nbytes >= sizeof(bare) - 2 &&
                    memcmp(name->data, bare, sizeof(bare) - 2) == 0;
    return doubtful ? CM_EUNSUPPORTED : CM_OK;
}

/* HDF5 writes a fill value twice so that older versions can read it. */
static bool is_same_fill(const cm_h5_message *old, const cm_h5_fill_message *fill)
{
    return old->nbytes >= 4 && cm_load_le32(old->data) == fill->nbytes &&
           old->nbytes - 4 >= fill->nbytes && fill->nbytes > 0 &&
           memcmp(old->data + 4, fill->value, fill->nbytes) == 0;
}

enum {
    SPACE,
    TYPE,
    FILL,
    LAYOUT,
    FILTERS,
    OLD_FILL,
    ATTRIBUTES,
    NDATASET
};

static int read_stored(cm_h5_bytes *b, const cm_h5_message *const *slot, cm_plain_object *o)
{
    const cm_h5_message *filters = slot[FILTERS], *old = slot[OLD_FILL];
    int rc = cm_h5_type_decode(slot[TYPE]->data, slot[TYPE]->nbytes, &o->type);
    if (rc == CM_OK)
        rc = cm_h5_fill_decode(slot[FILL]->data, slot[FILL]->nbytes, &o->fill);
    if (rc == CM_OK)
        rc = cm_h5_layout_decode(b, slot[LAYOUT]->data, slot[LAYOUT]->nbytes, &o->layout);
    if (rc == CM_OK && filters != NULL)
        rc = cm_h5_filters_decode(filters->data, filters->nbytes, o->filter, CM_PLAIN_FILTERS,
                                  &o->nfilters);
    if (rc == CM_OK && old != NULL && !is_same_fill(old, &o->fill))
        rc = CM_EUNSUPPORTED;
    uint64_t nbytes = o->type.nbytes;
    for (unsigned j = 0; rc == CM_OK && j < o->space.rank; j++)
        if (!cm_mul_u64(nbytes, o->space.extent[j] > 0 ? o->space.extent[j] : 1, &nbytes) ||
            nbytes > INT64_MAX)
            rc = CM_EUNSUPPORTED;
    return rc;
}

int cm_plain_dataset_read(cm_h5_bytes *b, cm_h5_header *header, cm_plain_object *o)
{
    static const unsigned type[NDATASET] = {[SPACE] = CM_H5_MESSAGE_DATASPACE,
                                            [TYPE] = CM_H5_MESSAGE_DATATYPE,
                                            [FILL] = CM_H5_MESSAGE_FILL,
                                            [LAYOUT] = CM_H5_MESSAGE_LAYOUT,
                                            [FILTERS] = CM_H5_MESSAGE_FILTERS,
                                            [OLD_FILL] = CM_H5_MESSAGE_OLD_FILL,
                                            [ATTRIBUTES] = CM_H5_MESSAGE_ATTRIBUTE_INFO};
    const cm_h5_message *slot[NDATASET] = {0};
    int rc = cm_h5_header_read(b, o->link.address, header);
    for (size_t i = 0; rc == CM_OK && i < header->nmessages; i++) {
        const cm_h5_message *m = &header->message[i];
        if (m->type != CM_H5_MESSAGE_ATTRIBUTE && !put_message(slot, type, NDATASET, m))
            rc = CM_EUNSUPPORTED;
    }
    for (unsigned i = SPACE; rc == CM_OK && i <= LAYOUT; i++)
        if (slot[i] == NULL)
            rc = CM_EUNSUPPORTED;
    if (rc == CM_OK)
        rc = cm_h5_space_decode(b, slot[SPACE]->data, slot[SPACE]->nbytes, &o->space);
    if (rc == CM_OK)
        rc = read_attributes(b, header, slot[ATTRIBUTES], o);
    if (rc == CM_OK)
        rc = find_scale(o);
    if (rc == CM_OK)
        rc = read_stored(b, slot, o);
    return rc;
}

void cm_plain_object_release(cm_plain_object *o)
{
    free(o->link.name);
    free(o->attribute);
    *o = (cm_plain_object){0};
}

/* ---- attributes shown to users ---- */

nc_type cm_plain_type(const cm_dtype *t)
{
    static const nc_type integer[] = {[1] = NC_BYTE, [2] = NC_SHORT, [4] = NC_INT, [8] = NC_INT64};
    static const nc_type natural[] = {
        [1] = NC_UBYTE, [2] = NC_USHORT, [4] = NC_UINT, [8] = NC_UINT64};
    switch (t->kind) {
    case CM_KIND_INT:
        return integer[t->nbytes];
    case CM_KIND_UINT:
        return natural[t->nbytes];
    case CM_KIND_FLOAT:
        return t->nbytes == 4 ? NC_FLOAT : NC_DOUBLE;
    case CM_KIND_BYTES:
        return NC_CHAR;
    default:
        return NC_STRING;
    }
}

typedef struct values {
    cm_h5_bytes *bytes;
    const cm_h5_attribute *attribute;
} values;

static void free_text(size_t n, char **text)
{
    for (size_t i = 0; i < n; i++)
        free(text[i]);
}

/* Each string has its length, and its place in a global heap. */
static int read_text(cm_h5_bytes *b, const cm_h5_attribute *a, char **out)
{
    unsigned o = b->offset_nbytes;
    cm_h5_cursor c = {a->data, a->data + a->nelem * a->type.nbytes, false};
    int rc = a->type.nbytes == 4 + o + 4 ? CM_OK : CM_EUNSUPPORTED;
    for (uint64_t i = 0; rc == CM_OK && i < a->nelem; i++) {
        const uint8_t *p;
        uint64_t nbytes, length = cm_h5_take_number(&c, 4);
        uint64_t address = cm_h5_take_place(&c, o), index = cm_h5_take_number(&c, 4);
        if (address == 0 && length == 0)
            continue;
        rc = cm_h5_global_find(b, address, index, &p, &nbytes);
        if (rc == CM_OK && nbytes != length)
            rc = CM_EUNSUPPORTED;
        if (rc == CM_OK && (out[i] = strndup((const char *)p, (size_t)length)) == NULL)
            rc = CM_ENOMEM;
    }
    if (rc != CM_OK)
        free_text((size_t)a->nelem, out);
    return rc;
}

static int read_values(void *context, const cm_nc_attribute *shown, void *out, cm_error *err)
{
    const values *v = context;
    const cm_h5_attribute *a = v->attribute;
    (void)err;
    if (a->type.class == CM_H5_CLASS_VLEN_TEXT)
        return read_text(v->bytes, a, out);
    memcpy(out, a->data, (size_t)a->nelem * a->type.nbytes);
    uint8_t *bytes = out;
    size_t n = a->type.nbytes;
    for (size_t i = 0; a->type.big_endian && i < shown->nelem; i++, bytes += n)
        for (size_t k = 0; k < n / 2; k++) {
            uint8_t byte = bytes[k];
            bytes[k] = bytes[n - 1 - k];
            bytes[n - 1 - k] = byte;
        }
    return CM_OK;
}

/* Shows A as netCDF-C does: fixed-length text as characters, and at most one dimension. */
static int show(const cm_h5_attribute *a, cm_nc_attribute *out)
{
    enum {
        MOST_TEXTS = 4096
    };
    const cm_h5_type *t = &a->type;
    bool text = t->class == CM_H5_CLASS_TEXT, strings = t->class == CM_H5_CLASS_VLEN_TEXT;
    if ((t->class != CM_H5_CLASS_NUMBER && !text && !strings) || a->rank > !text ||
        (strings && a->nelem > MOST_TEXTS))
        return CM_EUNSUPPORTED;
    out->name = a->name;
    out->nelem = (size_t)(text ? a->nelem * t->nbytes : a->nelem);
    out->type.dtype = text ? cm_dtype_make(CM_KIND_BYTES, 1) : t->dtype;
    out->type.base = cm_plain_type(&out->type.dtype);
    out->type.is_enum = false;
    out->type.nmembers = 0;
    out->type.unsupported[0] = '\0';
    return CM_OK;
}

/* True unless the name has a leading underscore that some version of netCDF-C may reserve. */
static bool is_usual(const char *name)
{
    static const char coordinate[] = "_Coordinate";
    return name[0] != '_' || strcmp(name, "_FillValue") == 0 || strcmp(name, "_Unsigned") == 0 ||
           strncmp(name, coordinate, sizeof(coordinate) - 1) == 0;
}

static bool is_own(const cm_plain_object *o, const char *name)
{
    return cm_nc_attribute_is_hidden(name, o->is_scale);
}

int cm_plain_attributes_read(cm_h5_bytes *b, const cm_plain_object *o, cm_nc_file *file,
                             cm_nc_node *node, const char *where, cm_json **out, cm_error *err)
{
    values v = {.bytes = b};
    cm_nc_attributes to = {.file = file,
                           .node = node,
                           .where = where,
                           .attrs = cm_json_object(),
                           .read = read_values,
                           .free_text = free_text,
                           .context = &v,
                           .err = err};
    int rc = to.attrs == NULL ? CM_ENOMEM : CM_OK;
    bool has_fill = false;
    for (size_t i = 0; rc == CM_OK && i < o->nattributes; i++) {
        cm_nc_attribute a;
        v.attribute = &o->attribute[i];
        const char *name = v.attribute->name;
        if (is_own(o, name))
            continue;
        bool is_fill = strcmp(name, "_FillValue") == 0;
        bool again = cm_json_has(to.attrs, name) || (is_fill && has_fill);
        bool reserved = strcmp(name, "CLASS") == 0 || strcmp(name, "NAME") == 0;
        has_fill = has_fill || is_fill;
        rc = again || reserved || !is_usual(name) ? CM_EUNSUPPORTED : show(v.attribute, &a);
        if (rc == CM_OK)
            rc = cm_nc_attribute_add(&to, &a);
    }
    if (rc == CM_OK)
        rc = cm_nc_attributes_settle(&to);
    if (rc != CM_OK) {
        cm_json_free(to.attrs);
        return rc;
    }
    *out = to.attrs;
    return CM_OK;
}
