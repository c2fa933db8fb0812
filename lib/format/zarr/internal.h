/* Shared by the files of this folder: conversion between JSON and the structs of metadata. */
#ifndef CM_FORMAT_ZARR_INTERNAL_H
#define CM_FORMAT_ZARR_INTERNAL_H

#include "base/base64.h"
#include "format/zarr/meta.h"

enum {
    /* A single element; numpy's and HDF5's fixed-length types are far smaller. */
    CM_ZARR_MAX_ITEM_NBYTES = 1 << 20
};

/* ---- data types ---- */

/* "int16", {"name": "r16"}, {"name": "numpy.datetime64", "configuration": {...}}, ... */
int cm_zarr_dtype_from_v3(const cm_json *j, cm_dtype *out, bool *raw_bits, cm_error *err);
int cm_zarr_dtype_to_v3(const cm_dtype *t, bool raw_bits, cm_json **out, cm_error *err);

/*
 * "<i2", "|S12", ">M8[ns]", "float64" (in codecs), ...; but not "|O", which is defined by the
 * filters.
 */
int cm_zarr_dtype_from_v2(const char *text, cm_dtype *out, bool *big_endian, cm_error *err);
/* BUF of 48 bytes suffices. */
int cm_zarr_dtype_to_v2(const cm_dtype *t, bool big_endian, char *buf, size_t size, cm_error *err);

/* ---- fill values ---- */

/* One element of a fixed-length type into DST (t->nbytes). */
int cm_zarr_element_from_json(const cm_json *j, const cm_dtype *t, uint8_t *dst, cm_error *err);
/*
 * The fill value of any type: *fill (fixed length) or *text (variable length), on the heap.
 * CM_EUNSUPPORTED: not a fill value.
 */
int cm_zarr_fill_from_json(const cm_json *j, const cm_dtype *t, uint8_t **fill, char **text,
                           cm_error *err);
int cm_zarr_element_to_json(const cm_dtype *t, const uint8_t *element, int zarr_format,
                            cm_json **out, cm_error *err);
int cm_zarr_fill_to_json(const cm_dtype *t, const uint8_t *fill, const char *text, int zarr_format,
                         cm_json **out, cm_error *err);

/* ---- codecs ---- */

/* A growing list of specs. */
typedef struct cm_spec_list {
    cm_codec_spec *spec;
    size_t n;
} cm_spec_list;

int cm_spec_list_add(cm_spec_list *list, const cm_codec_spec *spec, cm_error *err);

/* The input of a codec; it changes along a chain. */
typedef struct cm_codec_scene {
    cm_dtype type; /* of the elements, or of those that were turned into bytes */
    unsigned rank;
    bool is_bytes; /* after an array->bytes codec */
} cm_codec_scene;

/* Updates SCENE to SPEC's output. */
void cm_codec_scene_pass(cm_codec_scene *scene, const cm_codec_spec *spec);

/* delta, fixedscaleoffset, quantize and astype give elements in a byte order of their own. */
bool cm_codec_sets_byte_order(cm_codec_id id);
/*
 * These codecs view their input as their own `dtype`: CM_EUNSUPPORTED if SPEC's byte order is not
 * BIG_ENDIAN, that of its input.
 */
int cm_codec_check_byte_order(const cm_codec_spec *spec, bool big_endian, cm_error *err);

/*
 * Parses a codec of numcodecs, called "id" by v2 and "numcodecs.ID" by v3.  CONFIG has the keys of
 * its get_config().  CM_EUNSUPPORTED names an unknown codec.
 */
int cm_numcodec_parse(const char *id, const cm_json *config, const cm_codec_scene *scene,
                      cm_codec_spec *out, cm_error *err);
/*
 * Gives the id, and adds the configuration's keys to OBJECT; CM_EUNSUPPORTED when numcodecs has no
 * such codec.
 */
int cm_numcodec_format(const cm_codec_spec *spec, cm_json *object, const char **id, cm_error *err);
/* CM_EFORMAT: KEY of a configuration. */
int cm_codec_key_wrong(const char *key, cm_error *err);
const char *cm_numcodec_id(cm_codec_id id); /* NULL: numcodecs has none */

int cm_zarr_codecs_from_v3(const cm_json *list, const cm_dtype *type, unsigned rank,
                           cm_codec_spec **out, size_t *n, cm_error *err);
int cm_zarr_codecs_to_v3(const cm_codec_spec *specs, size_t n, const cm_dtype *type, unsigned rank,
                         cm_json **out, cm_error *err);
/*
 * CM_EUNSUPPORTED for codecs of v2 that zarr-python does not read in v3: its codec `bytes` has no
 * byte order where the array's own elements have one byte (BytesCodec.evolve_from_array_spec).
 */
int cm_zarr_codecs_check_v3(const cm_codec_spec *specs, size_t n, const cm_dtype *type,
                            cm_error *err);

/*
 * Convert the members order, filters and compressor, and the dtype's byte order, to one chain, and
 * back.
 */
int cm_zarr_codecs_from_v2(const cm_json *zarray, const cm_dtype *type, bool big_endian,
                           unsigned rank, cm_codec_spec **out, size_t *n, cm_error *err);
typedef struct cm_v2_codecs {
    bool order_f;
    bool big_endian;
    cm_json *filters;    /* NULL: null */
    cm_json *compressor; /* NULL: null */
} cm_v2_codecs;
int cm_zarr_codecs_to_v2(const cm_codec_spec *specs, size_t n, const cm_dtype *type, unsigned rank,
                         cm_v2_codecs *out, cm_error *err);

/* cast_value and scale_offset; their configurations depend on the array's type. */
int cm_cast_value_parse(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                        cm_error *err);
int cm_cast_value_format(const cm_codec_spec *spec, const cm_codec_scene *scene, cm_json *object,
                         cm_error *err);
int cm_scale_offset_parse(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                          cm_error *err);
int cm_scale_offset_format(const cm_codec_spec *spec, const cm_codec_scene *scene, cm_json *object,
                           cm_error *err);

/* ---- chunk grids ---- */

/* Reads the chunk_grid of document J into META, which has its shape. */
int cm_zarr_grid_from_v3(const cm_json *j, cm_zarr_meta *meta, cm_error *err);
cm_json *cm_zarr_grid_to_v3(const cm_zarr_meta *meta); /* NULL: no memory */

/* ---- shared by both formats ---- */

/* Checks META's chunk, of CHUNK_RANK dimensions, against its shape. */
int cm_zarr_check_grid(cm_zarr_meta *meta, unsigned chunk_rank, const char *what, cm_error *err);
/* Reads a list of meta->rank names and nulls into dim_name. */
int cm_zarr_read_dim_names(const cm_json *names, cm_zarr_meta *out, cm_error *err);
int cm_zarr_dim_names(const cm_zarr_meta *meta, cm_json **out, cm_error *err);
/* Finishes reading J with status RC: keeps or releases the content of OUT. */
int cm_zarr_keep_raw(int rc, const cm_json *j, cm_zarr_meta *out, cm_error *err);

/* ---- helpers ---- */

/* Reads a list of RANK numbers, each at least AT_LEAST, into OUT.  WHAT is for the message. */
int cm_zarr_read_lengths(const cm_json *list, const char *what, uint64_t at_least, unsigned *rank,
                         uint64_t *out, cm_error *err);
cm_json *cm_zarr_lengths(unsigned rank, const uint64_t *length);
/* cm_json_set that always takes VALUE and keeps the first failure in *rc. */
void cm_zarr_set(int *rc, cm_json *object, const char *name, cm_json *value, cm_error *err);
/*
 * {"name": NAME, "configuration": CONFIG}; takes CONFIG, which may be NULL (no such member).  NULL:
 * no memory.
 */
cm_json *cm_zarr_named_json(const char *name, cm_json *config);
/* Parses {"name": NAME, "configuration": CONFIG}, or a bare string; *config may be NULL. */
int cm_zarr_named(const cm_json *j, const char *what, const char **name, const cm_json **config,
                  cm_error *err);

#endif
