/* Converts attributes, however they were read, by the rules of nc.h. */
#ifndef CM_FORMAT_NC_ATTRIBUTE_H
#define CM_FORMAT_NC_ATTRIBUTE_H

#include "format/nc/file.h"
#include "format/nc/types.h"

typedef struct cm_nc_attribute {
    const char *name;
    size_t nelem;
    cm_nc_type type;
} cm_nc_attribute;

/* The owner of attributes, and how their values are read. */
typedef struct cm_nc_attributes {
    cm_nc_file *file;
    cm_nc_node *node; /* NULL: a group */
    const char *where;
    cm_json *attrs;
    /*
     * The nelem > 0 values of A: numbers and characters, or pointers to text of NC_STRING (NULL:
     * ""), which FREE_TEXT frees.
     */
    int (*read)(void *context, const cm_nc_attribute *a, void *out, cm_error *err);
    void (*free_text)(size_t n, char **text);
    void *context;
    cm_error *err;
} cm_nc_attributes;

/* Adds A to the attributes, or to the node's fill value and packing, or warns. */
int cm_nc_attribute_add(const cm_nc_attributes *to, const cm_nc_attribute *a);
/* After the last one: what several of them say together of missing elements. */
int cm_nc_attributes_settle(const cm_nc_attributes *to);

#endif
