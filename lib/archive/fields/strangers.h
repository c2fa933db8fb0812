/* Files that would add steps to a store that grows, and to none of its fields an element. */
#ifndef CM_ARCHIVE_FIELDS_STRANGERS_H
#define CM_ARCHIVE_FIELDS_STRANGERS_H

#include "archive/axes/place.h"

/*
 * OUT, one for each file: whether the store has none of its fields, and no file gives any where it
 * lies.  One finding about all of them, whose `other` is what `rename` might be given.  OTHER has
 * for each variable the one that it is by another name, or CM_JOIN_NONE.
 */
int cm_join_find_strangers(const cm_join_input *in, const cm_join_tables *tables,
                           const cm_join_axes *axes, cm_join_findings *findings,
                           const cm_field_sources *f, const uint32_t *other, bool *out,
                           cm_error *err);

#endif
