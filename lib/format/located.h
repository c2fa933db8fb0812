/*
 * Addresses of a variable's bytes in its file, so that no library is needed to read them.
 *
 * Made once, while the file is open (by the child process of a survey, or when a joined dataset is
 * prepared); after that elements are read by their addresses alone.  A plain structure: a record of
 * it may be kept in a file of this version of the program and mapped again, 16 bytes for each
 * chunk.
 */
#ifndef CM_FORMAT_LOCATED_H
#define CM_FORMAT_LOCATED_H

#include "format/dataset.h"
#include "format/nc/chunk_index.h"

typedef enum cm_located_kind {
    /* no addresses (text, compact data, unknown filters): the file is opened for each read */
    CM_LOCATED_NOT,
    CM_LOCATED_CHUNKS,   /* PLACE has one entry for each chunk */
    CM_LOCATED_SLAB,     /* in C order from BEGIN; the first dimension has a stride of its own */
    CM_LOCATED_UNWRITTEN /* nothing is stored: every element is the fill value */
} cm_located_kind;

/* How stored bytes become elements; similar files share one. */
typedef struct cm_form {
    cm_located_kind kind;
    cm_dtype dtype; /* as the file has it */
    unsigned rank;
    uint64_t chunk[CM_MAX_RANK]; /* CHUNKS; NOT: the chunks that its library reads, or 0 */
    const cm_codec_spec *codecs; /* CHUNKS: in encoding order; borrowed */
    size_t ncodecs;
    uint32_t swap; /* SLAB: the unit whose bytes are reversed in the file; 1: none */
    bool has_fill;
    uint8_t fill[16]; /* value of unwritten elements */
} cm_form;

typedef struct cm_located {
    const cm_form *form;
    /* CHUNKS: in the order of the file's grid; nbytes 0: not stored; mask: the codecs left out */
    const cm_chunk_place *place;
    uint64_t nplaces;
    uint64_t begin, row_stride; /* SLAB: bytes */
} cm_located;

/* True when both have the same content, so that one can be shared. */
bool cm_form_equal(const cm_form *a, const cm_form *b);
/* True when both decode bytes alike; fill values and compression levels may differ. */
bool cm_form_decodes_alike(const cm_form *a, const cm_form *b);
/* The same of lists of codecs. */
bool cm_codecs_decode_alike(const cm_codec_spec *a, size_t na, const cm_codec_spec *b, size_t nb);

/*
 * Finds the addresses of the prepared VAR of an open dataset.  Allocates everything OUT points to.
 * No addresses is CM_LOCATED_NOT, not an error.
 */
int cm_dataset_locate(cm_dataset *ds, cm_variable *var, cm_located *out, cm_error *err);
void cm_located_release(cm_located *located); /* of cm_dataset_locate; NULL accepted */

#endif
