/*
 * A manifest as it is read: its flatbuffer in memory, in which references are found by search.
 *
 * All of it is checked when it is read, so that what is found in it is sound: arrays are sorted by
 * their node, references by their index, as the format says, and ranges do not overflow.
 */
#ifndef CM_FORMAT_ICECHUNK_MANIFEST_READ_H
#define CM_FORMAT_ICECHUNK_MANIFEST_READ_H

#include "codec/zstd_reader.h"
#include "format/icechunk/file_read.h"
#include "format/icechunk/flat_read.h"
#include "format/icechunk/places.h"

typedef struct cm_ice_manifest_view {
    cm_buf flat;
    cm_flatbuf_list arrays; /* offsets, sorted by node */
    cm_zstd_dict *dict;     /* of locations; NULL: there is none */
} cm_ice_manifest_view;

/* The references of one array in a manifest. */
typedef struct cm_ice_refs {
    const cm_ice_manifest_view *manifest;
    cm_flatbuf_list list; /* offsets, sorted by index */
    unsigned rank;        /* of all indices */
} cm_ice_refs;

/* Texts are borrowed from the manifest. */
typedef struct cm_ice_text {
    const char *bytes;
    size_t n;
} cm_ice_text;

typedef struct cm_ice_chunk {
    cm_ice_where where; /* never NOWHERE */
    uint64_t offset, nbytes;
    const uint8_t *id;    /* IN_FILE */
    const uint8_t *bytes; /* INLINE */
    /* OUTSIDE: */
    cm_ice_text location;
    bool is_compressed;  /* the location, by the manifest's dictionary */
    cm_ice_text etag;    /* N 0: none */
    uint32_t modified_s; /* 0: none */
} cm_ice_chunk;

enum {
    CM_ICE_MAX_URL = 16 << 10 /* bytes of a location */
};

/* CM_EFORMAT: it is damaged, or missing.  CM_EBUDGET: it does not fit half of the memory. */
int cm_ice_manifest_read(cm_store *root, const uint8_t id[CM_ICE_ID], cm_ice_manifest_view *out,
                         cm_error *err);
void cm_ice_manifest_release(cm_ice_manifest_view *m); /* zeroed memory accepted */

/* The references of NODE; there may be none. */
cm_ice_refs cm_ice_manifest_refs(const cm_ice_manifest_view *m, const uint8_t node[CM_ICE_NODE_ID]);
/* Reference K < refs->list.n, and its index, refs->rank numbers. */
cm_ice_chunk cm_ice_refs_at(const cm_ice_refs *refs, size_t k);
void cm_ice_refs_index(const cm_ice_refs *refs, size_t k, uint32_t *index);
/*
 * The location of CHUNK of M, one OUTSIDE, as it was before it was compressed; ROOM has
 * CM_ICE_MAX_URL bytes, which OUT may borrow.
 */
int cm_ice_chunk_location(const cm_ice_manifest_view *m, const cm_ice_chunk *chunk, char *room,
                          cm_ice_text *out, cm_error *err);
/*
 * The first reference whose index is not less than INDEX in its first N dimensions; AFTER: that is
 * greater in these.
 */
size_t cm_ice_refs_bound(const cm_ice_refs *refs, const uint32_t *index, unsigned n, bool after);
/* False: there is none. */
bool cm_ice_refs_find(const cm_ice_refs *refs, const uint32_t *index, cm_ice_chunk *out);

#endif
