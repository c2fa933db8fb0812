/*
 * A group or a dataset of a plain file: what its object header says.
 */
#ifndef CM_FORMAT_NC_PLAIN_OBJECT_H
#define CM_FORMAT_NC_PLAIN_OBJECT_H

#include "format/nc/attribute.h"
#include "format/nc/h5_message.h"

enum {
    CM_PLAIN_FILTERS = 8 /* of one dataset; more are left to HDF5 */
};

typedef struct cm_plain_object {
    cm_h5_link link;
    cm_h5_attribute *attribute; /* as they were created */
    size_t nattributes;
    /* A dataset: */
    cm_h5_space space;
    bool is_scale;       /* of a dimension */
    bool is_bare;        /* a dimension that has no variable */
    int dim;             /* is_scale: number of that dimension */
    int id[CM_MAX_RANK]; /* else, and of a scale of several dimensions: of its dimensions */
    cm_h5_type type;
    cm_h5_fill_message fill;
    cm_h5_layout layout;
    cm_h5_filter filter[CM_PLAIN_FILTERS];
    size_t nfilters;
} cm_plain_object;

/* Statuses as those of h5_bytes.h; O's link is known, HEADER is used for reading. */
int cm_plain_dataset_read(cm_h5_bytes *b, cm_h5_header *header, cm_plain_object *o);
/* The root, at ADDRESS; its links in the order in which they were created. */
int cm_plain_root_read(cm_h5_bytes *b, cm_h5_header *header, uint64_t address,
                       cm_plain_object *root, cm_plain_object **links, size_t *nlinks);
void cm_plain_object_release(cm_plain_object *o);

/* NULL: there is none of that name. */
const cm_h5_attribute *cm_plain_attribute(const cm_plain_object *o, const char *name);

/* Of O's attributes those that are none of netCDF-C's and HDF5's own, by the rules of nc.h. */
int cm_plain_attributes_read(cm_h5_bytes *b, const cm_plain_object *o, cm_nc_file *file,
                             cm_nc_node *node, const char *where, cm_json **out, cm_error *err);
/* netCDF's type of a number. */
nc_type cm_plain_type(const cm_dtype *t);

#endif
