/* A group or a dataset of a plain file, from its object header. */
#ifndef CM_FORMAT_NC_PLAIN_OBJECT_H
#define CM_FORMAT_NC_PLAIN_OBJECT_H

#include "format/nc/attribute.h"
#include "format/nc/h5_message.h"

enum {
    CM_PLAIN_FILTERS = 8 /* per dataset; a dataset with more is left to HDF5 */
};

typedef struct cm_plain_object {
    cm_h5_link link;
    cm_h5_attribute *attribute; /* in the order of creation */
    size_t nattributes;
    /* A dataset: */
    cm_h5_space space;
    bool is_scale; /* a dimension scale */
    bool is_bare;  /* a dimension without a variable */
    int dim;       /* is_scale: its dimension number */
    /* Dimension numbers of other datasets, and of scales of several dimensions. */
    int id[CM_MAX_RANK];
    cm_h5_type type;
    cm_h5_fill_message fill;
    cm_h5_layout layout;
    cm_h5_filter filter[CM_PLAIN_FILTERS];
    size_t nfilters;
} cm_plain_object;

/* Status codes as in h5_bytes.h.  O's link must be set; HEADER is scratch space. */
int cm_plain_dataset_read(cm_h5_bytes *b, cm_h5_header *header, cm_plain_object *o);
/* Reads the root group at ADDRESS; its links come in the order of creation. */
int cm_plain_root_read(cm_h5_bytes *b, cm_h5_header *header, uint64_t address,
                       cm_plain_object *root, cm_plain_object **links, size_t *nlinks);
void cm_plain_object_release(cm_plain_object *o);

/* NULL: no attribute of that name. */
const cm_h5_attribute *cm_plain_attribute(const cm_plain_object *o, const char *name);

/* Adds O's attributes, except those internal to netCDF-C and HDF5, by the rules of nc.h. */
int cm_plain_attributes_read(cm_h5_bytes *b, const cm_plain_object *o, cm_nc_file *file,
                             cm_nc_node *node, const char *where, cm_json **out, cm_error *err);
/* The NetCDF type of a numeric dtype. */
nc_type cm_plain_type(const cm_dtype *t);

#endif
