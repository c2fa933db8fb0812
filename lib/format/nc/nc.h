/*
 * Opens NetCDF (classic CDF-1, 2, 5; NetCDF-4) and HDF5 files that netCDF-C opens.
 *
 * netCDF-C gives names, dimensions, types and attributes; HDF5, or arithmetic on the classic
 * header, gives the addresses of the bytes and their filters.  Only this folder calls netCDF-C or
 * HDF5, and never two calls at once: one lock of the process guards both libraries (they share
 * HDF5).
 */
#ifndef CM_FORMAT_NC_NC_H
#define CM_FORMAT_NC_NC_H

#include "format/array.h"
#include "store/io.h"

typedef struct cm_nc_file cm_nc_file;

typedef enum cm_nc_access { /* how an array's bytes are read; for -v and for tests */
    CM_NC_CHUNK_INDEX,      /* stored chunks at addresses known beforehand, decoded by the caller */
    /* stored chunks through H5Dread_chunk under the lock, decoded by the caller */
    CM_NC_CHUNK_LOCKED,
    CM_NC_ARITHMETIC, /* boxes by pread at computed offsets */
    CM_NC_LIBRARY     /* boxes through netCDF-C under the lock */
} cm_nc_access;

/* A variable: an array and its NetCDF properties. */
typedef struct cm_nc_var {
    cm_array array; /* first; attrs without _FillValue, by the rules of attributes below */
    cm_nc_access access;
    char *access_reason; /* why CM_NC_LIBRARY or CM_NC_CHUNK_LOCKED; NULL otherwise */
    /*
     * Why it cannot be converted ("compound type obs_t"): ops must not be called.  NULL: it can be.
     */
    char *unsupported;
    bool is_char;                        /* NC_CHAR: dtype is BYTES of 1 */
    uint8_t scale_nbytes, offset_nbytes; /* as of cm_variable */
    /* A _FillValue attribute, converted to the variable's type, or a missing_value NaN for it. */
    bool has_fill_value;
    uint8_t fill_value[16]; /* little-endian; also the HDF5 fill when set through nc_def_var_fill */
    bool is_coordinate;     /* one dimension, named like itself */
    bool unlimited[CM_MAX_RANK];
    uint64_t stored_nbytes; /* on disk if known; else 0 */
    bool has_source_chunks; /* array.grid is the grid of stored chunks */
    uint64_t source_chunk[CM_MAX_RANK];
    const char *decoded_from; /* as of cm_variable */
} cm_nc_var;

typedef struct cm_nc_dim {
    char *name;
    uint64_t length;
    bool unlimited;
} cm_nc_dim;

typedef struct cm_nc_group {
    char *path; /* "" for the root */
    cm_json *attrs;
    cm_nc_dim *dim; /* defined in this group */
    size_t ndims;
} cm_nc_group;

typedef struct cm_nc_options {
    /* Read every array through netCDF-C: the independent reader for verification. */
    bool library_only;
    /*
     * Open files without a library if this project's readers understand them fully: several times
     * faster.  Others are opened by the libraries.  cm_nc_read_library must not be called.
     */
    bool plain;
    /* CM_EUNSUPPORTED, before all else, unless the first bytes are those of NetCDF or HDF5. */
    bool recognises;
    bool library_caches; /* keep the default chunk caches of netCDF-C and HDF5; false: no caches */
    /*
     * PREAD or DIRECT, others are CM_EUNSUPPORTED.  With DIRECT preparing a variable that is read
     * through a library is CM_EUNSUPPORTED; metadata do not use DIRECT.
     */
    cm_io io;
} cm_nc_options;

/*
 * Opens PATH read-only and reads all metadata.  Errors are one sentence: missing, a folder, empty,
 * no permission, not NetCDF, truncated (NAME: the header promises N bytes, the file has M).
 */
int cm_nc_open(const char *path, const cm_nc_options *options, cm_nc_file **out, cm_error *err);
void cm_nc_close(cm_nc_file *file); /* NULL accepted; closes arrays too */

const char *
cm_nc_format_name(const cm_nc_file *file); /* "NetCDF-4", "NetCDF classic (CDF-2)", ... */
uint64_t cm_nc_file_nbytes(const cm_nc_file *file);
size_t cm_nc_ngroups(const cm_nc_file *file); /* parents before children; 0 is the root */
const cm_nc_group *cm_nc_group_at(const cm_nc_file *file, size_t i);
size_t cm_nc_nvars(const cm_nc_file *file); /* all groups, in file order */
cm_nc_var *cm_nc_var_at(cm_nc_file *file, size_t i);
/*
 * Warnings for users: attributes dropped because of their type, a _FillValue converted, names.  One
 * sentence each, "variable x: ...".
 */
size_t cm_nc_nwarnings(const cm_nc_file *file);
const char *cm_nc_warning_at(const cm_nc_file *file, size_t i);

/*
 * Reads the chunk index or prepares the arithmetic of VAR, filling in its grid, chain, access and
 * ops; cheap when done before.  Not done by cm_nc_open, so that variables that are not selected
 * cost nothing.
 */
int cm_nc_var_prepare(cm_nc_file *file, cm_nc_var *var, cm_error *err);

/*
 * The codecs of VAR's stored chunks, in encoding order, borrowed; NULL if VAR is not prepared, or
 * not read chunk by chunk.
 */
const cm_codec_spec *cm_nc_var_codecs(const cm_nc_var *var, size_t *n);

/*
 * Reads BOX of VAR through libnetcdf for verification, whatever its access.  Elements past the end
 * of an HDF5 dataset are set here, and strings of fixed length come from HDF5, because netCDF-C
 * does both wrongly.  Locks.
 */
int cm_nc_read_library(cm_nc_file *file, cm_nc_var *var, const cm_box *box, void *dst,
                       cm_error *err);
int cm_nc_read_library_strings(cm_nc_file *file, cm_nc_var *var, const cm_box *box, cm_strings *out,
                               cm_error *err);

/* Maximum size of netCDF-C's chunk cache of VAR; 0: no cache. */
size_t cm_nc_var_cache_nbytes(const cm_nc_file *file, const cm_nc_var *var);

/* Versions such as "4.9.0" and "1.10.8". */
const char *cm_nc_netcdf_version(void);
void cm_nc_hdf5_version(char *buf, size_t size);

#endif
