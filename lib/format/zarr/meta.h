/*
 * Zarr metadata, v3 and v2, between JSON and structs.
 *
 * Reading is tolerant of what real writers do (bare NaN, "<i1", "|i4", "filters":
 * [], unknown members that are objects with must_understand false); writing is
 * strict and the same every time.  Metadata is hostile until checked: rank, zero
 * chunk lengths, overflowing sizes and names that leave their folder are
 * CM_EFORMAT.
 */
#ifndef CM_FORMAT_ZARR_META_H
#define CM_FORMAT_ZARR_META_H

#include "base/json.h"
#include "codec/codec.h"
#include "model/box.h"

enum {
    /* A document of metadata that is larger is hostile: a quarter of a million nodes fit. */
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
    uint64_t chunk[CM_MAX_RANK]; /* of the outermost grid: the shard where there are shards */
    char *dim_name[CM_MAX_RANK]; /* v3 dimension_names, v2 _ARRAY_DIMENSIONS; NULL where none */
    bool has_dim_names;
    bool has_fill;         /* v2: fill_value is not null; v3: always true */
    uint8_t *fill;         /* dtype.nbytes bytes; NULL for variable-length types */
    char *fill_text;       /* variable-length types */
    char separator;        /* '/' or '.' */
    bool key_v2;           /* v3 arrays with chunk_key_encoding "v2" */
    cm_codec_spec *codecs; /* in encoding order; v2: order, filters, bytes, compressor */
    size_t ncodecs;
    bool raw_bits; /* v3: a RAW type is named r<N>, not raw_bytes */

    cm_json
        *raw; /* the zarr.json or .zarray that was read, without consolidated metadata; or NULL */
    bool verbatim; /* to be written as RAW has it, because it is not understood */
} cm_zarr_meta;

void cm_zarr_meta_release(cm_zarr_meta *meta); /* zeroed memory is fine */
/* The shards of META, where they are its whole chain; NULL: none, or inside other codecs. */
const cm_shard_spec *cm_zarr_sharding(const cm_zarr_meta *meta);
int cm_zarr_meta_copy(const cm_zarr_meta *meta, cm_zarr_meta *out, cm_error *err);

/*
 * Makes META one of ZARR_FORMAT, with that format's usual chunk keys.
 * CM_EUNSUPPORTED when the format cannot express its type or codecs; META is
 * then as it was.
 */
int cm_zarr_meta_set_format(cm_zarr_meta *meta, int zarr_format, cm_error *err);

/*
 * Readers.  CM_EFORMAT: broken; nothing is in *OUT.  CM_EUNSUPPORTED: a type,
 * codec, chunk grid or extension that is not known; *OUT then holds what was
 * understood (to be released), RAW always and `verbatim` set, so that the node
 * can be listed and carried over.
 */
/* One zarr.json, array or group.  Consolidated metadata of a group is in J still; see open.h. */
int cm_zarr_meta_from_v3(const cm_json *j, cm_zarr_meta *out, cm_error *err);
/* .zarray or .zgroup, and .zattrs (NULL when absent). */
int cm_zarr_meta_from_v2(const cm_json *j, const cm_json *attrs, cm_zarr_meta *out, cm_error *err);

/*
 * Writers; META's zarr_format must be the one in the name.  A V2 `has_fill` of
 * false is null; v3 must have a value and gets zero or "".
 */
/* A complete zarr.json, without consolidated metadata. */
int cm_zarr_meta_to_v3(const cm_zarr_meta *meta, cm_json **out, cm_error *err);
/* .zarray or .zgroup into *OUT and .zattrs into *ATTRS (NULL when there is nothing to say). */
int cm_zarr_meta_to_v2(const cm_zarr_meta *meta, cm_json **out, cm_json **attrs, cm_error *err);

/*
 * *OUT: readers of the metadata get META's fill value bit for bit, so that chunks
 * of nothing else may be left out.  JSON has one NaN in v2; v3 has the bits of any
 * other, but readers that compute with them (zarr-python) do not keep them all.
 */
int cm_zarr_fill_survives(const cm_zarr_meta *meta, bool *out, cm_error *err);

/* The attribute in which version 2 has the names of dimensions, by xarray's convention. */
#define CM_ZARR_V2_DIMENSIONS "_ARRAY_DIMENSIONS"

/*
 * "c/1/2", "1.2", "c", "0": the key of chunk COORD relative to its array.  BUF of
 * CM_CHUNK_KEY_SIZE suffices.
 */
#define CM_CHUNK_KEY_SIZE (CM_MAX_RANK * 21 + 2)
char *cm_zarr_chunk_key(const cm_zarr_meta *meta, const uint64_t *coord, char *buf, size_t size);

/*
 * A node name that may be written: not empty, no '/', not only dots, not "__..." (allowed,
 * *warn set), not "zarr.json" or ".z...", at most 255 bytes, UTF-8.
 */
int cm_zarr_name_check(const char *name, bool *warn, cm_error *err);

#endif
