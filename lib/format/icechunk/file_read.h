/* Reads a metadata file: as it is, or as a tree. */
#ifndef CM_FORMAT_ICECHUNK_FILE_READ_H
#define CM_FORMAT_ICECHUNK_FILE_READ_H

#include "format/icechunk/file_write.h"
#include "format/icechunk/schema.h"

typedef struct cm_ice_read {
    cm_buf stored; /* the file */
    cm_buf flat;   /* its flatbuffer, which the tree borrows from */
    unsigned version;
    cm_fb_tree tree;
} cm_ice_read;

/*
 * The flatbuffer in the object KEY becomes OUT.  CM_ENOTFOUND: there is no such object; CM_EFORMAT:
 * it is damaged, or of another kind; CM_EBUDGET: it takes more than a document of STORE may.
 */
int cm_ice_file_load(cm_store *store, const char *key, cm_ice_kind kind, cm_buf *out,
                     cm_error *err);
/* cm_ice_file_load as a tree, which is checked. */
int cm_ice_file_read(cm_store *store, const char *key, cm_ice_kind kind, const cm_fb_schema *schema,
                     cm_ice_read *out, cm_error *err);
/* cm_ice_file_read of a tree that is only looked at, as cm_fb_read_known reads it; no `stored`. */
int cm_ice_file_view(cm_store *store, const char *key, cm_ice_kind kind, const cm_fb_schema *schema,
                     cm_ice_read *out, cm_error *err);
void cm_ice_read_release(cm_ice_read *r); /* zeroed memory accepted */

#endif
