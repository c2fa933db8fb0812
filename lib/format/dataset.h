/*
 * A dataset: an opened NetCDF file or Zarr hierarchy.
 *
 * Both are groups, variables, dimensions and attributes.  Jobs see this model and nothing below it;
 * the rules of a format (which attribute is a fill value, what an unwritten element is) are applied
 * while the dataset is opened.  A format's own metadata stay beside the model (`words`), for jobs
 * that promise to carry them over.
 *
 * A dataset belongs to one thread until its variables are prepared; after that reading may come
 * from any thread.
 */
#ifndef CM_FORMAT_DATASET_H
#define CM_FORMAT_DATASET_H

#include "format/array.h"
#include "format/zarr/meta.h"
#include "store/io.h"
#include "store/net.h"

typedef enum cm_dataset_kind {
    CM_DATASET_NETCDF,
    CM_DATASET_ZARR
} cm_dataset_kind;

typedef struct cm_variable {
    /* Known when the dataset is open; all borrowed from it. */
    const char *name; /* with its groups: "group/tas"; "" for a Zarr store that is one array */
    cm_dtype dtype;
    unsigned rank;
    uint64_t shape[CM_MAX_RANK];
    char *const *dim_name;   /* RANK of them; NULL: no name */
    const cm_json *attrs;    /* an object, without _FillValue */
    const char *unsupported; /* why its elements cannot be read; NULL: readable */
    bool is_char;            /* single characters */
    bool is_coordinate;      /* one dimension, named like itself */
    bool unlimited[CM_MAX_RANK];
    bool has_fill_value;    /* readers take FILL_VALUE for missing */
    uint8_t fill_value[16]; /* little-endian */
    /*
     * Sizes of the floating-point attributes scale_factor and add_offset; 0: no such attribute, or
     * of another type.
     */
    uint8_t scale_nbytes, offset_nbytes;
    const cm_zarr_meta *words; /* the Zarr array's document; NULL otherwise */

    /*
     * Variable with the text that this one was decoded from, beside it in the file; NULL: stored
     * itself.
     */
    const char *decoded_from;

    bool wanted; /* set by the caller: will be prepared, soon after others */

    /* Variables of a dataset laid over another one (overlay.h), set by the overlay: */
    bool is_made;  /* not in the dataset below */
    bool is_stack; /* a stack of variables along dimension CHANNEL */
    bool is_taken; /* merged into another variable; no longer one of its own */
    unsigned channel;

    /* Known when the variable is prepared. */
    cm_array *array;
    const uint8_t *fill;   /* value of unwritten elements; NULL: undefined */
    const char *fill_text; /* FILL of variable-length text */
    const char *access;    /* how its bytes are read, for people */
    const char *access_reason;
    bool located;           /* the place of every stored byte is known */
    bool has_source_chunks; /* stored in chunks of SOURCE_CHUNK */
    uint64_t source_chunk[CM_MAX_RANK];
    bool is_cut;     /* along some dimensions these are of several lengths, up to SOURCE_CHUNK */
    bool is_sharded; /* those chunks lie in shards of SOURCE_SHARD */
    uint64_t source_shard[CM_MAX_RANK];
    uint64_t stored_nbytes; /* 0 where it is not known */
    /* memory for caches while chunks are read: indices of shards, libraries' caches */
    size_t cache_nbytes;
    const cm_codec_spec *codecs; /* of a stored chunk, in encoding order; NULL: not known */
    size_t ncodecs;

    size_t index; /* in the dataset */
} cm_variable;

typedef struct cm_dataset_group {
    const char *path; /* "" for the root */
    cm_json *attrs;
    const cm_zarr_meta *words; /* of a Zarr group; NULL otherwise */
} cm_dataset_group;

typedef struct cm_dataset {
    const struct cm_dataset_ops *ops;
    struct cm_dataset *below; /* the dataset that this one is laid over, or NULL */
    cm_dataset_kind kind;
    char *path;              /* the file or store, for messages */
    const char *format_name; /* "NetCDF-4", "Zarr 3" */
    uint64_t nbytes;         /* of the file; 0 for a store */
    int zarr_format;         /* 0 for NetCDF */
    bool consolidated;       /* a Zarr store that was read from consolidated metadata */
    cm_variable *var;
    size_t nvars;
    cm_dataset_group *group; /* parents before children; 0 is the root */
    size_t ngroups;
} cm_dataset;

/*
 * The child process that opens a NetCDF or HDF5 file first, and reads what only libraries read:
 * they crash, loop or ask for all memory on some damaged files.
 */
typedef enum cm_dataset_guard {
    CM_GUARD_STAYS, /* stays until the file is closed, and reads for libraries */
    CM_GUARD_ENDS,  /* ends; a new one is started where libraries have to read elements */
    /* none now, the file was tried before; one is started where libraries have to read elements */
    CM_GUARD_NEEDED,
    CM_GUARD_NONE /* this process is such a child */
} cm_dataset_guard;

typedef struct cm_dataset_options {
    /* For each prepared Zarr array; 0: room for the indices of a few shards. */
    size_t index_cache_nbytes;
    cm_net *net; /* for stores behind a network; NULL: there is none */
    /* Asked while a file is opened in a child process first; NULL: never. */
    bool (*canceled)(void *context);
    void *canceled_context;
    cm_dataset_guard guard;
    /*
     * NetCDF: read everything through netCDF-C in this process, with its default caches, to measure
     * the library.
     */
    bool library;
    /*
     * NetCDF: open files without a library where possible, several times faster.  READ and
     * READ_STRINGS (cm_dataset_ops) must not be called then.
     */
    bool plain;
    /* NetCDF: CM_EUNSUPPORTED at once for a file that does not begin like one. */
    bool recognises;
    cm_io io; /* how elements are read; CM_EUNSUPPORTED where the format cannot */
    /* Zarr: trust consolidated metadata; do not walk the folders to compare. */
    bool quick;
    /* Zarr: documents are not kept as they were read; no copy of the dataset will be written. */
    bool reads_only;
    /* Zarr: the store, opened by the caller (a cache, a delay), borrowed; PATH is for messages. */
    cm_store *store;
    /* Memory that libraries may use for data of a file; 0: half of the available memory. */
    uint64_t memory;
} cm_dataset_options;

/*
 * Opens the NetCDF file PATH, or the Zarr store there below NODE ("": all of it).  NetCDF files are
 * opened whole: the caller finds NODE in them.  OPTIONS may be NULL.
 */
int cm_dataset_open(const char *path, const char *node, const cm_dataset_options *options,
                    cm_dataset **out, cm_error *err);
void cm_dataset_close(cm_dataset *ds); /* NULL accepted; closes arrays too */

cm_variable *cm_dataset_find(const cm_dataset *ds, const char *name); /* NULL: there is none */
/* The dimension of V with that name; its rank: it has none. */
unsigned cm_variable_dim(const cm_variable *v, const char *name);

/*
 * Makes VAR's array ready for reading; cheap when done before.  CM_EUNSUPPORTED where it
 * cannot be read.
 */
int cm_dataset_prepare(cm_dataset *ds, cm_variable *var, cm_error *err);
/* Frees what preparing VAR took, for callers that read many variables in turn. */
void cm_dataset_unprepare(cm_dataset *ds, cm_variable *var);

/* Sentences for users, "variable x: ...".  Complete when every wanted variable is prepared. */
size_t cm_dataset_nwarnings(const cm_dataset *ds);
const char *cm_dataset_warning_at(const cm_dataset *ds, size_t i);

/*
 * BOX of VAR as the verification reads it: through libnetcdf for NetCDF, never by this project's
 * own decoders.  Any thread.
 */
int cm_dataset_read(cm_dataset *ds, cm_variable *var, const cm_box *box, void *dst, cm_error *err);
int cm_dataset_read_strings(cm_dataset *ds, cm_variable *var, const cm_box *box, cm_strings *out,
                            cm_error *err);

/* DS, or the dataset that it is laid over. */
cm_dataset *cm_dataset_bottom(const cm_dataset *ds);

/* The store of a Zarr dataset, borrowed; NULL for NetCDF. */
cm_store *cm_dataset_store(const cm_dataset *ds);

#endif
