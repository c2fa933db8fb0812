/*
 * Decodes messages of object headers: types, shapes, fill values, layouts, attributes, links.
 *
 * Source: "HDF5 File Format Specification" version 3.0, IV.A.2.
 */
#ifndef CM_FORMAT_NC_H5_MESSAGE_H
#define CM_FORMAT_NC_H5_MESSAGE_H

#include "format/nc/h5_header.h"
#include "format/nc/h5_object.h"
#include "format/nc/h5_pipeline.h"
#include "model/dtype.h"

typedef enum cm_h5_class {
    CM_H5_CLASS_NUMBER,    /* see dtype and big_endian */
    CM_H5_CLASS_TEXT,      /* strings of nbytes */
    CM_H5_CLASS_VLEN_TEXT, /* strings of variable length */
    CM_H5_CLASS_VLEN_REFERENCE,
    CM_H5_CLASS_COMPOUND, /* its members are not decoded */
} cm_h5_class;

typedef struct cm_h5_type {
    cm_h5_class class;
    cm_dtype dtype;
    bool big_endian;
    uint32_t nbytes;  /* of an element in the file */
    bool ends_in_nul; /* CM_H5_CLASS_TEXT: or may end in one, as in C */
} cm_h5_type;

typedef struct cm_h5_space {
    bool null; /* no elements, and no shape */
    unsigned rank;
    uint64_t extent[CM_MAX_RANK];
    uint64_t most[CM_MAX_RANK]; /* UINT64_MAX: without limit */
    uint64_t nelem;
} cm_h5_space;

typedef struct cm_h5_attribute {
    const char *name;
    uint64_t order;
    cm_h5_type type;
    unsigned rank;
    uint64_t nelem;
    const uint8_t *data; /* nelem * type.nbytes */
} cm_h5_attribute;

typedef struct cm_h5_fill_message {
    bool defined;         /* a value, or the default of zeros */
    bool never;           /* neither written nor returned */
    const uint8_t *value; /* NULL: the default */
    uint32_t nbytes;
} cm_h5_fill_message;

typedef struct cm_h5_layout {
    bool chunked;     /* else contiguous */
    uint64_t address; /* CM_H5_UNDEFINED: no data */
    uint64_t nbytes;  /* contiguous */
    unsigned rank;
    uint64_t chunk[CM_MAX_RANK];
    uint32_t itemsize; /* chunked: of the layout */
} cm_h5_layout;

typedef struct cm_h5_link {
    char *name; /* owned */
    uint64_t order;
    uint64_t address; /* of the object header */
} cm_h5_link;

/* Storage for links or attributes that do not fit into an object header. */
typedef struct cm_h5_dense {
    bool ordered;          /* the order of their creation is tracked */
    uint64_t heap;         /* CM_H5_UNDEFINED: all are in the header */
    uint64_t tree;         /* by name */
    uint64_t ordered_tree; /* by creation; CM_H5_UNDEFINED: there is none */
} cm_h5_dense;

/* Status codes as in h5_bytes.h; B knows the widths. */
int cm_h5_type_decode(const uint8_t *p, size_t nbytes, cm_h5_type *out);
int cm_h5_space_decode(const cm_h5_bytes *b, const uint8_t *p, size_t nbytes, cm_h5_space *out);
int cm_h5_attribute_decode(const cm_h5_bytes *b, const uint8_t *p, size_t nbytes,
                           cm_h5_attribute *out);
int cm_h5_fill_decode(const uint8_t *p, size_t nbytes, cm_h5_fill_message *out);
int cm_h5_layout_decode(const cm_h5_bytes *b, const uint8_t *p, size_t nbytes, cm_h5_layout *out);
int cm_h5_filters_decode(const uint8_t *p, size_t nbytes, cm_h5_filter *out, size_t most,
                         size_t *n);
int cm_h5_link_decode(const cm_h5_bytes *b, const uint8_t *p, size_t nbytes, cm_h5_link *out);
/* LINKS: decodes the link info message; else the attribute info message. */
int cm_h5_dense_decode(const cm_h5_bytes *b, bool links, const uint8_t *p, size_t nbytes,
                       cm_h5_dense *out);

#endif
