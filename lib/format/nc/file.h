/* The inside of an open NetCDF or HDF5 file, shared by the files of this folder. */
#ifndef CM_FORMAT_NC_FILE_H
#define CM_FORMAT_NC_FILE_H

#include <sys/stat.h>

#include "format/nc/chunk_index.h"
#include "format/nc/classic_header.h"
#include "format/nc/forgotten.h"
#include "format/nc/h5_dataset.h"
#include "format/nc/h5_super.h"
#include "format/nc/nc.h"
#include "format/nc/slab.h"

typedef struct cm_nc_reader cm_nc_reader;

typedef struct cm_nc_node { /* a variable */
    cm_nc_var var;          /* first, so that a cm_nc_var or its cm_array leads here */
    cm_nc_file *file;
    int ncid; /* its group */
    int varid;
    bool hdf5_only;        /* not known to netCDF-C: no ncid, no varid */
    char *h5_path;         /* HDF5 files */
    cm_h5_dataset dataset; /* HDF5 files */
    uint8_t nc_fill[16];   /* netCDF's fill, for elements past the records of an HDF5 dataset */
    bool has_nc_fill;
    uint8_t odd_fill[16];   /* a _FillValue that the variable's type cannot hold, of */
    cm_dtype odd_fill_type; /* this type; of no bytes: there is none */
    char *unreadable; /* why the file's reader failed to read it; guarded by the reader's lock */
    bool prepared;
    cm_chunk_index index;
    hid_t locked_dataset; /* CM_NC_CHUNK_LOCKED; -1 otherwise */
    uint64_t place;       /* plain files: address of the elements, or of the chunk index */
    cm_slab slab;
} cm_nc_node;

typedef struct cm_nc_dim_info { /* by netCDF-C's dimension id */
    char *name;                 /* borrowed from its group */
    uint64_t length;
    bool unlimited;
} cm_nc_dim_info;

struct cm_nc_file {
    char *path; /* as the user gave it; for messages */
    char format_name[32];
    bool library_only;
    bool library_caches;
    bool plain;         /* opened without a library; none may be called (plain.h) */
    uint8_t *image;     /* all bytes of a small file, read at once; NULL: none */
    cm_source source;   /* the file, opened by us; its size when it was opened */
    cm_source data;     /* SOURCE, or the file with O_DIRECT, for reading elements */
    struct stat opened; /* the file, when SOURCE was opened */
    cm_direct *direct;  /* NULL: elements come through the page cache */
    /* A child process that reads for the libraries (reader.h); NULL: they are called here. */
    cm_nc_reader *reader;
    bool (*canceled)(void *context); /* asked while chunks are located, or NULL */
    void *context;
    int ncid;
    hid_t h5; /* -1: not an HDF5 file */
    cm_nc_forgotten forgotten;
    cm_h5_super super;
    cm_classic_header classic; /* version 0: not a classic file */
    cm_nc_group *group;
    int *group_ncid;
    size_t ngroups;
    cm_nc_dim_info *dim;
    size_t ndims;
    cm_nc_node *node;
    size_t nnodes;
    char **warning;
    size_t nwarnings;
};

/* Remembers a warning; the arguments are a complete sentence. */
int cm_nc_warn(cm_nc_file *file, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * The attributes of VARID (NC_GLOBAL: of the group NCID) by the rules of nc.h;
 * NODE is NULL for groups, and gets its _FillValue otherwise.  WHERE names the
 * owner in warnings, H5_PATH is the object in an HDF5 file (NULL otherwise).  The
 * caller holds the lock.
 */
int cm_nc_attributes_read(cm_nc_file *file, int ncid, int varid, cm_nc_node *node,
                          const char *where, const char *h5_path, cm_json **out, cm_error *err);

/* The hierarchy: groups, dimensions, then all variables.  The caller holds the lock. */
int cm_nc_groups_read(cm_nc_file *file, cm_error *err);
/* netCDF-C numbers dimensions through the whole file. */
int cm_nc_dim_remember(cm_nc_file *file, int id, const cm_nc_dim *dim, cm_error *err);
int cm_nc_variables_read(cm_nc_file *file, cm_error *err);

/*
 * Fails where netCDF-C would not return: groups that contain themselves.  The caller holds the
 * lock.
 */
int cm_h5_check_groups(hid_t file, cm_error *err);

/*
 * Calls VISIT for each link of group number GROUP, in any order, until one call returns less than
 * 0.  If HDF5 fails, the walk ends without an error.  The caller holds the lock.
 */
int cm_h5_walk_links(const cm_nc_file *file, size_t group, H5L_iterate_t visit, void *context,
                     cm_error *err);

typedef struct cm_nc_hazard {
    char *name;         /* of the link; the caller frees it */
    const char *reason; /* NULL: none */
} cm_nc_hazard;

/*
 * Finds the variables of group number GROUP whose inquiry would overrun netCDF-C's memory: HAZARD
 * has one entry for each of its NVARS variables.  The caller holds the lock.
 */
int cm_h5_find_hazards(const cm_nc_file *file, size_t group, int nvars, cm_nc_hazard *hazard,
                       cm_error *err);
/* Finds why netCDF-C fails to inquire VARID: an attribute that it does not read; or nothing. */
int cm_h5_explain(const cm_nc_file *file, size_t group, int nvars, int varid, cm_nc_hazard *hazard,
                  cm_error *err);

/*
 * Adds the datasets that netCDF-C skipped: booleans and enumerations are read through HDF5, all
 * others are unsupported.  The caller holds the lock.
 */
int cm_h5_add_unseen(cm_nc_file *file, cm_error *err);

/*
 * Adds the attributes of OBJECT to ATTRS through HDF5; warns of those left out.  The caller holds
 * the lock.
 */
int cm_h5_attributes_read(cm_nc_file *file, hid_t object, const char *where, cm_json *attrs,
                          cm_error *err);

/* True for attributes that netCDF-C and HDF5 use internally. */
bool cm_nc_attribute_is_hidden(const char *name, bool is_scale);

/* The three ways to an array's bytes; each sets ops, chunked, serial. */
void cm_nc_use_library(cm_nc_node *node);
void cm_nc_use_chunks(cm_nc_node *node);
/*
 * Stored bytes of chunk NUMBER in HDF5, 0: none; for CM_NC_CHUNK_LOCKED.  The caller holds no lock.
 */
uint64_t cm_nc_chunk_nbytes(cm_nc_node *node, uint64_t number);

bool cm_nc_is_same_file(const struct stat *a, const struct stat *b);

/*
 * Makes the calls of netCDF-C and HDF5 that preparing NODE and, with READS, reading it will make;
 * run in a child that may crash on them.
 */
void cm_nc_var_try(cm_nc_node *node, bool reads);

/* The codecs that chunk NUMBER skipped, from its filter mask in HDF5. */
uint32_t cm_nc_chunk_skip(const cm_nc_node *node, uint64_t number, uint32_t mask);

/*
 * Fills the chunk index of a node with a chunked dataset.  CM_EUNSUPPORTED with the reason in WHY
 * if that is not possible; other codes are errors.  The caller holds the lock.
 */
int cm_nc_chunks_locate(cm_nc_node *node, const cm_grid *grid, cm_error *why);

#endif
