/*
 * Joins that are wrong on purpose: tests plant them, to see verification find them by itself.
 * Programs plant none.
 */
#ifndef CM_ARCHIVE_PLANTED_H
#define CM_ARCHIVE_PLANTED_H

enum {
    CM_PLANTED_LENGTH = 1,  /* a dimension has no elements in one file, and some in another */
    CM_PLANTED_RAW = 2,     /* fields of several units or fill values are compared as stored */
    CM_PLANTED_PACKED = 4,  /* what the survey holds itself stays packed where others unpack */
    CM_PLANTED_MISSING = 8, /* times that are re-based do not heed their missing_value */
    CM_PLANTED_PLACE = 16,  /* the last file's data lie one step before their coordinate */
    CM_PLANTED_STATIC = 32  /* fields without a joined dimension are the last file's */
};

extern unsigned cm_join_planted;

#endif
