/*
 * A dataset: what was opened, whatever it was.
 *
 * A NetCDF file and a Zarr hierarchy are both groups, variables, dimensions and
 * attributes.  Jobs see this model and nothing below it; the rules of a format
 * (which attribute is a fill value, what an unwritten element is) are applied
 * while the dataset is opened.  What a format says in words of its own stays
 * beside the model (`words`), for jobs that promise to carry it over.
 *
 * A dataset belongs to one thread until its variables are prepared; after that
 * reading may come from any thread.
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
    char *const *dim_name;   /* RANK of them; NULL where there is no name */
    const cm_json *attrs;    /* an object, without _FillValue */
    const char *unsupported; /* why its elements cannot be read; NULL: they can */
    bool is_char;            /* single characters */
    bool is_coordinate;      /* one dimension, named like itself */
    bool unlimited[CM_MAX_RANK];
    bool has_fill_value;    /* readers take FILL_VALUE for missing */
    uint8_t fill_value[16]; /* little-endian */
    /* Of the floating-point attributes scale_factor and add_offset; 0: they are none. */
    uint8_t scale_nbytes, offset_nbytes;
    const cm_zarr_meta *words; /* of a Zarr array as its document has it; NULL otherwise */

    /* The file has it as text alone, in the variable of this name beside it; NULL: it has it. */
    const char *decoded_from;

    bool wanted; /* set by the caller: it will be prepared, soon after others are */

    /* Of a dataset that is laid over another one (overlay.h), set by who made it: */
    bool is_made;  /* the format below does not have it */
    bool is_stack; /* made of variables that lie side by side along dimension CHANNEL */
    bool is_taken; /* its elements are a stack's now: it is none of its own */
    unsigned channel;

    /* Known when the variable is prepared. */
    cm_array *array;
    const uint8_t *fill;   /* what unwritten elements are; NULL: undefined */
    const char *fill_text; /* the same of variable-length text */
    const char *access;    /* how its bytes are reached, for people */
    const char *access_reason;
    bool located;           /* where every stored byte lies is known */
    bool has_source_chunks; /* stored in chunks of SOURCE_CHUNK */
    uint64_t source_chunk[CM_MAX_RANK];
    bool is_sharded; /* those chunks lie in shards of SOURCE_SHARD */
    uint64_t source_shard[CM_MAX_RANK];
    uint64_t stored_nbytes; /* 0 where it is not known */
    size_t cache_nbytes;    /* that reading its chunks keeps: indices of shards, libraries' own */
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
    struct cm_dataset *below; /* the dataset that this one is laid over; NULL: it is none such */
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
 * Which child process a NetCDF or HDF5 file is opened in first, and what libraries read there:
 * they crash, loop or ask for all memory on some damaged files.
 */
typedef enum cm_dataset_guard {
    CM_GUARD_STAYS,  /* one that stays until the file is closed, and reads what libraries read */
    CM_GUARD_ENDS,   /* one that ends; another is made where libraries have to read elements */
    CM_GUARD_NEEDED, /* it was tried before: one is made where libraries have to read elements */
    CM_GUARD_NONE    /* this process is such a child */
} cm_dataset_guard;

typedef struct cm_dataset_options {
    /* Of each Zarr array that is prepared; 0: room for the indices of a few shards. */
    size_t index_cache_nbytes;
    cm_net *net; /* for stores behind a network; NULL: there is none */
    /* Asked while a file is opened in a child process first; NULL: never. */
    bool (*canceled)(void *context);
    void *canceled_context;
    cm_dataset_guard guard;
    /*
     * NetCDF: all elements through netCDF-C in this process, with the caches that it has by
     * default: what measures the library.
     */
    bool library;
    /*
     * NetCDF: files that need no library are opened without one, several times faster.  READ and
     * READ_STRINGS (cm_dataset_ops) may then not be asked for.
     */
    bool plain;
    cm_io io; /* how elements are read; CM_EUNSUPPORTED where a format cannot */
    /* Zarr: consolidated metadata are believed; the folders are not walked to compare them. */
    bool quick;
    /* Zarr: the store, opened by the caller (a cache, a delay), borrowed; PATH is for messages. */
    cm_store *store;
    /* Bytes that libraries may take for data of a file; 0: half of what is there. */
    uint64_t memory;
} cm_dataset_options;

/*
 * Opens the NetCDF file PATH, or the Zarr store there below NODE ("" for all of
 * it).  A NODE in a NetCDF file is the caller's to find: all of a file is opened.
 * OPTIONS may be NULL.
 */
int cm_dataset_open(const char *path, const char *node, const cm_dataset_options *options,
                    cm_dataset **out, cm_error *err);
void cm_dataset_close(cm_dataset *ds); /* NULL accepted; closes arrays too */

/*
 * Makes VAR's array ready for reading; cheap when done before.  CM_EUNSUPPORTED where it
 * cannot be read.
 */
int cm_dataset_prepare(cm_dataset *ds, cm_variable *var, cm_error *err);
/* Gives back what preparing VAR took, where many are read one after the other. */
void cm_dataset_unprepare(cm_dataset *ds, cm_variable *var);

/*
 * Sentences a user should know of, "variable x: ...": complete when every wanted variable is
 * prepared.
 */
size_t cm_dataset_nwarnings(const cm_dataset *ds);
const char *cm_dataset_warning_at(const cm_dataset *ds, size_t i);

/*
 * BOX of VAR by the reader to verify with: libnetcdf where the source is NetCDF,
 * so never this project's own decoders there; any thread.
 */
int cm_dataset_read(cm_dataset *ds, cm_variable *var, const cm_box *box, void *dst, cm_error *err);
int cm_dataset_read_strings(cm_dataset *ds, cm_variable *var, const cm_box *box, cm_strings *out,
                            cm_error *err);

/* DS, or the dataset that it is laid over. */
cm_dataset *cm_dataset_bottom(const cm_dataset *ds);

/* The store of a Zarr dataset, borrowed; NULL for NetCDF. */
cm_store *cm_dataset_store(const cm_dataset *ds);

#endif
