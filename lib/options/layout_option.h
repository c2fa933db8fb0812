/* Resolves the values of --chunks and --shards for one array, for nc2zarr and rechunk alike. */
#ifndef CM_OPTIONS_LAYOUT_OPTION_H
#define CM_OPTIONS_LAYOUT_OPTION_H

#include "options/shape_option.h"
#include "options/varopt.h"

typedef enum cm_layout_kind {
    CM_LAYOUT_DEFAULT, /* no value */
    CM_LAYOUT_AUTO,    /* "auto", "auto:SIZE" */
    CM_LAYOUT_SOURCE,
    CM_LAYOUT_NONE,
    CM_LAYOUT_SHAPE
} cm_layout_kind;

/* An array as these options see it; all borrowed. */
typedef struct cm_layout_array {
    const char *noun; /* "variable", "array": for messages */
    const char *name;
    unsigned rank;
    const uint64_t *shape;
    char *const *dim_name;
    uint32_t itemsize;
    bool has_source; /* chunks of the source, in elements of the target: */
    uint64_t source[CM_MAX_RANK];
    /* Dimensions that grow, where a length may reach past the end; NULL: none. */
    const bool *grows;
} cm_layout_array;

cm_layout_kind cm_layout_kind_of(const char *value);
/* The size of "auto:SIZE"; *nbytes stays as it is for "auto". */
int cm_layout_auto(const char *option, const char *value, uint64_t *nbytes, cm_error *err);
/*
 * The lengths that a shape gives for A, 0 where it says nothing, clipped to the array but where it
 * grows.  One for all arrays
 * that does not fit this one is passed over, and *fits is false; one meant for it by
 * name (NAMED) is CM_EINVAL.
 */
int cm_layout_shape(const char *option, const char *value, bool named, const cm_layout_array *a,
                    uint64_t *length, bool *fits, cm_error *err);
/*
 * cm_layout_shape for --shards, as whole chunks of CHUNK; lengths that are not given are chosen for
 * TARGET bytes.  A length past the end that is not whole chunks becomes the whole dimension.
 */
int cm_layout_shards(const char *value, bool named, const cm_layout_array *a, const uint64_t *chunk,
                     uint64_t target, uint64_t *shard, bool *fits, cm_error *err);

/*
 * Whether CHUNK, of A, reaches so far past the end of dimension *PAST that a run would move mostly
 * what is not there yet: such a length only means "all".  *PADDED: bytes of the array, decoded,
 * with what is past its end.
 */
bool cm_layout_reaches_too_far(const cm_layout_array *a, const uint64_t *chunk, unsigned *past,
                               uint64_t *padded);

#define CM_WHOLE_COORDINATE (16 << 20) /* bytes; a longer coordinate is chunked like any variable */
/*
 * Elements of the one chunk that a growing coordinate of LENGTH elements, of NBYTES each (0: text),
 * gets, with room for years; 0: it would be too large.
 */
uint64_t cm_layout_room(uint64_t length, uint32_t nbytes);

/* Array I of those that are laid out. */
typedef cm_layout_array cm_layout_array_at(const void *context, size_t i);
/*
 * A name in a shape for all arrays that none of the N has, or a number of dimensions
 * that none has, is CM_EINVAL.  WORDS: "auto" and the like are no shapes.
 */
int cm_layout_check_general(const cm_varopts *opts, bool words, cm_layout_array_at *at,
                            const void *context, size_t n, cm_error *err);

#endif
