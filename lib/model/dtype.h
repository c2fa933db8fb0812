/*
 * Element types: what NetCDF, HDF5, Zarr v2 and Zarr v3 have in common.
 *
 * In memory every element is little-endian, packed, in C order; the byte order
 * of stored data belongs to the codec chain, never to the type.
 */
#ifndef CM_MODEL_DTYPE_H
#define CM_MODEL_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

enum {
    CM_MAX_RANK = 32
};

typedef enum cm_kind {
    CM_KIND_BOOL = 1, /* one byte, 0 or 1 */
    CM_KIND_INT,      /* 1, 2, 4, 8 bytes, two's complement */
    CM_KIND_UINT,     /* 1, 2, 4, 8 bytes */
    CM_KIND_FLOAT,    /* 2, 4, 8 bytes, IEEE 754 */
    CM_KIND_COMPLEX,  /* 8, 16 bytes, real then imaginary */
    CM_KIND_BYTES,    /* fixed length, padded with NUL: v2 |S<n>, v3 null_terminated_bytes */
    CM_KIND_RAW,      /* fixed length, opaque: v2 |V<n>, v3 r<bits> and raw_bytes */
    CM_KIND_UTF32,    /* fixed length, 4 bytes a character: v2 <U<n>, v3 fixed_length_utf32 */
    CM_KIND_DATETIME, /* int64 count of unit since 1970, v2 <M8[unit], v3 numpy.datetime64 */
    CM_KIND_TIMEDELTA,
    CM_KIND_STRING,    /* variable-length UTF-8 */
    CM_KIND_VLEN_BYTES /* variable-length bytes */
} cm_kind;

typedef struct cm_dtype {
    cm_kind kind;
    uint32_t nbytes;       /* of one element; 0 when variable-length */
    char unit[12];         /* datetime and timedelta: "s", "ms", "D", "generic", ...; else "" */
    uint32_t scale_factor; /* datetime and timedelta: units a tick, else 0 */
} cm_dtype;

cm_dtype cm_dtype_make(cm_kind kind, uint32_t nbytes);
bool cm_dtype_equal(const cm_dtype *a, const cm_dtype *b);
bool cm_dtype_is_vlen(const cm_dtype *t);
bool cm_dtype_is_number(const cm_dtype *t); /* int, uint, float */

/* The unit in which byte order matters: 4 for complex64 and UTF-32, 1 for bytes and raw. */
uint32_t cm_dtype_swap_nbytes(const cm_dtype *t);

/*
 * "int16", "float32", "bool", "bytes12", "string", ...: for people and for options; BUF of 32
 * bytes suffices.
 */
char *cm_dtype_name(const cm_dtype *t, char *buf, size_t size);
/*
 * The inverse for bool, int8 .. uint64, float16 .. float64, complex64, complex128, string;
 * numpy's short forms (f4, <i2) too.
 */
int cm_dtype_parse(const char *text, cm_dtype *out, cm_error *err);

#endif
