/* Attributes in which a file's description of a variable differs from the first file's. */
#ifndef CM_ARCHIVE_TABLES_ATTRIBUTES_H
#define CM_ARCHIVE_TABLES_ATTRIBUTES_H

#include "archive/join.h"

typedef enum cm_attribute_use {
    CM_ATTRIBUTE_PACKING, /* decodes numbers */
    CM_ATTRIBUTE_MEANING, /* gives numbers their meaning */
    CM_ATTRIBUTE_OTHER,
    CM_ATTRIBUTE_USES
} cm_attribute_use;

typedef struct cm_differing {
    const char *first[CM_ATTRIBUTE_USES]; /* of the last pair; NULL: none.  Until attributes rest */
    cm_json *all[CM_ATTRIBUTE_USES];      /* of all pairs: an object, name -> null; NULL: none */
} cm_differing;

void cm_differing_release(cm_differing *d);

/*
 * Finds the attributes that A, which is the first, and B have with other values.  RECOUNTED: their
 * times are counted anew.
 */
int cm_attributes_compare(const cm_join_input *in, const cm_join_tables *tables,
                          const cm_described *a, const cm_described *b, bool recounted,
                          cm_differing *out, cm_error *err);

/* Removes members of KEPT, the joined attributes, that B lacks or has with other values. */
int cm_attributes_keep_common(const cm_join_input *in, cm_json *kept, const cm_json *b,
                              cm_error *err);

/*
 * The sentence of F, about one attribute in which files differ from FIRST, a path, becomes one
 * about all attributes of USE.
 */
int cm_attributes_tell_all(const cm_join_input *in, const cm_differing *d, cm_attribute_use use,
                           const char *first, cm_finding *f, cm_error *err);

/* Whether ATTRS pack numbers. */
bool cm_attributes_pack(const cm_json *attrs);

/* Leaves out the limits of valid numbers of AT, which are other numbers now; a note says WHY. */
int cm_attributes_drop_limits(const cm_join_input *in, const cm_join_tables *tables,
                              cm_join_findings *findings, uint32_t at, const char *why,
                              cm_error *err);

#endif
