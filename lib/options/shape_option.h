/*
 * Shapes as people type them: "time=24,lat=64,lon=full" or "24x64x-1".
 */
#ifndef CM_OPTIONS_SHAPE_OPTION_H
#define CM_OPTIONS_SHAPE_OPTION_H

#include "model/box.h"

typedef struct cm_shape_item {
    char *name;      /* NULL: by position */
    uint64_t length; /* 0: full */
    bool as_source;  /* the length of the source's chunk */
} cm_shape_item;

typedef struct cm_shape_option {
    char *text; /* as typed, for messages */
    cm_shape_item item[CM_MAX_RANK];
    unsigned n;
    bool by_name;
} cm_shape_option;

/*
 * CM_EINVAL with a sentence for zero, negative and overlong numbers, names given twice, empty
 * parts, more than CM_MAX_RANK of them.
 */
int cm_shape_option_parse(const char *text, cm_shape_option *out, cm_error *err);
/* cm_shape_option_parse for chunks, whose lengths may also be "source" (or "same"). */
int cm_shape_option_parse_chunks(const char *text, cm_shape_option *out, cm_error *err);
void cm_shape_option_release(cm_shape_option *option);

/*
 * True when the shape can be meant for such a variable: its rank, or at least one of its names,
 * is there.
 */
bool cm_shape_option_fits(const cm_shape_option *option, unsigned rank, char *const *dim_name);

/*
 * LENGTH gets RANK entries: what is asked for, clipped to SHAPE (and at least
 * 1), or 0 where nothing is, or SOURCE (NULL: there are none) has no chunks to follow.
 */
void cm_shape_option_apply(const cm_shape_option *option, unsigned rank, const uint64_t *shape,
                           char *const *dim_name, const uint64_t *source, uint64_t *length);

#endif
