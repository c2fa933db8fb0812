/*
 * Zarr metadata, v3 and v2, between JSON and structs.
 *
 * Reading is tolerant of real writers (bare NaN, "<i1", "|i4", "filters": [], unknown members that
 * are objects with must_understand false); writing is strict and deterministic.  Metadata is
 * hostile until checked: rank, zero chunk lengths, overflowing sizes and names that leave their
 * folder are CM_EFORMAT.
 */
#ifndef CM_FORMAT_ZARR_META_H
#define CM_FORMAT_ZARR_META_H

#include "base/json.h"
#include "codec/codec.h"
#include "model/box.h"

enum {
    /* Larger documents are refused as hostile: this fits a quarter of a million nodes. */
    CM_ZARR_MAX_META_NBYTES = 64 << 20
};

typedef struct cm_zarr_meta {
    int zarr_format; /* 2 or 3 */
    bool is_group;
    cm_json *attrs; /* an object, never NULL; v2 without _ARRAY_DIMENSIONS */

    /* arrays only */
    cm_dtype dtype;
    unsigned rank;
    uint64_t shape[CM_MAX_RANK];
    uint64_t chunk[CM_MAX_RANK]; /* of the outermost grid: the shard if there are shards */
    /*
     * v3: dimensions of a rectilinear grid along which chunks differ in length, owned; there
     * `chunk` is the longest.  NULL: all have the length `chunk`.
     */
    cm_cuts *cuts[CM_MAX_RANK];
    char *dim_name[CM_MAX_RANK]; /* v3 dimension_names, v2 _ARRAY_DIMENSIONS; NULL: no name */
    bool has_dim_names;
    bool has_fill;         /* v2: fill_value is not null; v3: always true */
    uint8_t *fill;         /* dtype.nbytes bytes; NULL for variable-length types */
    char *fill_text;       /* variable-length types */
    char separator;        /* '/' or '.' */
    bool key_v2;           /* v3 arrays with chunk_key_encoding "v2" */
    cm_codec_spec *codecs; /* in encoding order; v2: order, filters, bytes, compressor */
    size_t ncodecs;
    bool raw_bits; /* v3: a RAW type is named r<N>, not raw_bytes */

    /*
     * The zarr.json or .zarray as read, without consolidated metadata; or NULL.  Copies share it,
     * so that nobody changes it.
     */
    cm_json *raw;
    bool verbatim; /* write RAW: this library does not understand it */
} cm_zarr_meta;

void cm_zarr_meta_release(cm_zarr_meta *meta); /* zeroed memory is fine */
/* META's shards if sharding is its whole chain; NULL: no shards, or inside other codecs. */
const cm_shard_spec *cm_zarr_sharding(const cm_zarr_meta *meta);
/* True when chunks (or shards) differ in length along a dimension: the grid is rectilinear. */
bool cm_zarr_meta_is_cut(const cm_zarr_meta *meta);
/*
 * True when the document of META, which may be of any grid, lists the length of each chunk along
 * DIM: a longer array needs more of them, also where they are all the same.
 */
bool cm_zarr_meta_lists(const cm_zarr_meta *meta, unsigned dim);
/* The lengths of CUTS as a rectilinear grid lists them, with runs; NULL: no memory. */
cm_json *cm_zarr_lengths_to_v3(const cm_cuts *cuts);
/* Makes META's grid regular. */
void cm_zarr_meta_drop_cuts(cm_zarr_meta *meta);
/* META's grid of objects: shards, or the chunks themselves.  It borrows META's cuts. */
int cm_zarr_meta_outer_grid(const cm_zarr_meta *meta, cm_grid *out, cm_error *err);
/* META's grid of chunks: inner chunks if there are shards. */
int cm_zarr_meta_grid(const cm_zarr_meta *meta, cm_grid *out, cm_error *err);
int cm_zarr_meta_copy(const cm_zarr_meta *meta, cm_zarr_meta *out, cm_error *err);

/*
 * Converts META to ZARR_FORMAT, with that format's usual chunk keys.  CM_EUNSUPPORTED when the
 * format cannot express its type or codecs; META is then unchanged.
 */
int cm_zarr_meta_set_format(cm_zarr_meta *meta, int zarr_format, cm_error *err);

/*
 * Readers.  CM_EFORMAT: broken; *OUT is empty.  CM_EUNSUPPORTED: an unknown type, codec, chunk grid
 * or extension; *OUT then holds the rest (to be released), with RAW and `verbatim` set, so that the
 * node can be listed and carried over.
 */
/* One zarr.json, array or group.  A group's consolidated metadata stay in J; see open.h. */
int cm_zarr_meta_from_v3(const cm_json *j, cm_zarr_meta *out, cm_error *err);
/* .zarray or .zgroup, and .zattrs (NULL when absent). */
int cm_zarr_meta_from_v2(const cm_json *j, const cm_json *attrs, cm_zarr_meta *out, cm_error *err);

/*
 * Writers; META's zarr_format must be the one in the name.  A V2 `has_fill` of
 * false is null; v3 must have a value and gets zero or "".
 */
/* A complete zarr.json, without consolidated metadata. */
int cm_zarr_meta_to_v3(const cm_zarr_meta *meta, cm_json **out, cm_error *err);
/* .zarray or .zgroup into *OUT and .zattrs into *ATTRS (NULL: no attributes). */
int cm_zarr_meta_to_v2(const cm_zarr_meta *meta, cm_json **out, cm_json **attrs, cm_error *err);

/*
 * *OUT: readers get META's fill value bit for bit, so that chunks of nothing else may be left out.
 * v2 can express one NaN; v3 has the bits of any other, but readers that compute with them
 * (zarr-python) do not keep them all.
 */
int cm_zarr_fill_survives(const cm_zarr_meta *meta, bool *out, cm_error *err);

/* Version 2 stores the names of dimensions in this attribute, by xarray's convention. */
#define CM_ZARR_V2_DIMENSIONS "_ARRAY_DIMENSIONS"

/*
 * "c/1/2", "1.2", "c", "0": the key of chunk COORD relative to its array, in BUF of
 * CM_CHUNK_KEY_SIZE.
 */
#define CM_CHUNK_KEY_SIZE (CM_MAX_RANK * 21 + 2)
char *cm_zarr_chunk_key(const cm_zarr_meta *meta, const uint64_t *coord, char *buf, size_t size);

/*
 * Checks a node name for writing: not empty, no '/', not only dots, not "__..." (allowed, *warn
 * set), not "zarr.json" or ".z...", at most 255 bytes, UTF-8.
 */
int cm_zarr_name_check(const char *name, bool *warn, cm_error *err);

#endif
