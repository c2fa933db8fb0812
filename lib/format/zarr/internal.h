/* What the files of this folder share: pieces of metadata between JSON and structs. */
#ifndef CM_FORMAT_ZARR_INTERNAL_H
#define CM_FORMAT_ZARR_INTERNAL_H

#include "base/base64.h"
#include "format/zarr/meta.h"

enum {
    /* One element; numpy's and HDF5's fixed-length types stay far below. */
    CM_ZARR_MAX_ITEM_NBYTES = 1 << 20
};

/* ---- data types ---- */

/* "int16", {"name": "r16"}, {"name": "numpy.datetime64", "configuration": {...}}, ... */
int cm_zarr_dtype_from_v3(const cm_json *j, cm_dtype *out, bool *raw_bits, cm_error *err);
int cm_zarr_dtype_to_v3(const cm_dtype *t, bool raw_bits, cm_json **out, cm_error *err);

/*
 * "<i2", "|S12", ">M8[ns]", "float64" (as codecs have it), ...; not "|O", whose meaning is in
 * the filters.
 */
int cm_zarr_dtype_from_v2(const char *text, cm_dtype *out, bool *big_endian, cm_error *err);
/* BUF of 48 bytes suffices. */
int cm_zarr_dtype_to_v2(const cm_dtype *t, bool big_endian, char *buf, size_t size, cm_error *err);

/* ---- fill values ---- */

/* One element of a fixed-length type into DST (t->nbytes). */
int cm_zarr_element_from_json(const cm_json *j, const cm_dtype *t, uint8_t *dst, cm_error *err);
/*
 * The fill value of any type: *fill (fixed length) or *text (variable length), on the heap.
 * CM_EUNSUPPORTED: it is none.
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

/* What a codec sees; it changes on the way along a chain. */
typedef struct cm_codec_scene {
    cm_dtype type; /* of the elements, or what they were when turned into bytes */
    unsigned rank;
    bool is_bytes; /* an array->bytes codec has been met */
} cm_codec_scene;

/* SCENE as it is behind SPEC. */
void cm_codec_scene_pass(cm_codec_scene *scene, const cm_codec_spec *spec);

/* delta, fixedscaleoffset, quantize and astype hand elements on in their own byte order. */
bool cm_codec_sets_byte_order(cm_codec_id id);
/*
 * Such a codec views its input as its own `dtype`: CM_EUNSUPPORTED where SPEC's is
 * of another byte order than BIG_ENDIAN, that of the elements which reach it.
 */
int cm_codec_check_byte_order(const cm_codec_spec *spec, bool big_endian, cm_error *err);

/*
 * numcodecs' codecs, which v2 names by "id" and v3 as "numcodecs.ID".  CONFIG
 * holds the keys of their get_config().  CM_EUNSUPPORTED names a codec that is
 * not known.
 */
int cm_numcodec_parse(const char *id, const cm_json *config, const cm_codec_scene *scene,
                      cm_codec_spec *out, cm_error *err);
/*
 * The id, and the configuration's keys added to OBJECT; CM_EUNSUPPORTED when numcodecs has no
 * such codec.
 */
int cm_numcodec_format(const cm_codec_spec *spec, cm_json *object, const char **id, cm_error *err);
const char *cm_numcodec_id(cm_codec_id id); /* NULL: numcodecs has none */

int cm_zarr_codecs_from_v3(const cm_json *list, const cm_dtype *type, unsigned rank,
                           cm_codec_spec **out, size_t *n, cm_error *err);
int cm_zarr_codecs_to_v3(const cm_codec_spec *specs, size_t n, const cm_dtype *type, unsigned rank,
                         cm_json **out, cm_error *err);

/* The members order, filters, compressor and the dtype's byte order become one chain, and back. */
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

/* cast_value and scale_offset, whose configuration depends on the array's type. */
int cm_cast_value_parse(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                        cm_error *err);
int cm_cast_value_format(const cm_codec_spec *spec, const cm_codec_scene *scene, cm_json *object,
                         cm_error *err);
int cm_scale_offset_parse(const cm_json *config, const cm_codec_scene *scene, cm_codec_spec *out,
                          cm_error *err);
int cm_scale_offset_format(const cm_codec_spec *spec, const cm_codec_scene *scene, cm_json *object,
                           cm_error *err);

/* ---- what both formats share ---- */

/* Checks META's chunk, of CHUNK_RANK dimensions, against its shape. */
int cm_zarr_check_grid(cm_zarr_meta *meta, unsigned chunk_rank, const char *what, cm_error *err);
/* A list of meta->rank names and nulls into dim_name. */
int cm_zarr_read_dim_names(const cm_json *names, cm_zarr_meta *out, cm_error *err);
int cm_zarr_dim_names(const cm_zarr_meta *meta, cm_json **out, cm_error *err);
/* The end of reading J with the answer RC: keeps or releases what is in OUT. */
int cm_zarr_keep_raw(int rc, const cm_json *j, cm_zarr_meta *out, cm_error *err);

/* ---- small things ---- */

/*
 * A list of RANK numbers into OUT; AT_LEAST is the smallest that is allowed.  WHAT is for the
 * message.
 */
int cm_zarr_read_lengths(const cm_json *list, const char *what, uint64_t at_least, unsigned *rank,
                         uint64_t *out, cm_error *err);
cm_json *cm_zarr_lengths(unsigned rank, const uint64_t *length);
/* cm_json_set that does its work in any case and keeps the first failure in *rc. */
void cm_zarr_set(int *rc, cm_json *object, const char *name, cm_json *value, cm_error *err);
/*
 * {"name": NAME, "configuration": CONFIG}, taking CONFIG; without it where CONFIG is NULL.
 * NULL: no memory.
 */
cm_json *cm_zarr_named_json(const char *name, cm_json *config);
/* {"name": NAME, "configuration": CONFIG}, or a bare string; *config may be NULL. */
int cm_zarr_named(const cm_json *j, const char *what, const char **name, const cm_json **config,
                  cm_error *err);

#endif
