/*
 * Many files as one dataset.
 *
 * A specification, made elsewhere, says which files belong together and where the elements of each
 * go; nothing here guesses.  A joined variable is an array like any other: chunked where all its
 * files share chunk boundaries, else read in boxes.
 *
 * Files are opened when they are read, up to a share of the process's limit.  Reading a file that
 * changed since its identity was taken is an error with its name.
 */
#ifndef CM_FORMAT_MULTI_MULTI_H
#define CM_FORMAT_MULTI_MULTI_H

#include "base/paged.h"
#include "base/sha256.h"
#include "base/xxh128.h"
#include "format/located.h"
#include "model/rebase.h"
#include "store/copies.h"

enum {
    CM_MULTI_MAX_AXES = 2, /* joined dimensions of a variable */
    CM_MULTI_DIGESTS = CM_SHA256_LANES
};

typedef struct cm_multi_file {
    const char *path;
    uint64_t dev, ino, nbytes, mtime_ns; /* at the time of the survey */
    /*
     * Or an open Zarr store, borrowed: any thread reads its arrays, and it may grow meanwhile, as
     * long as elements that are read keep their values.
     */
    cm_dataset *open;
    /* Or an object behind a network, copied while it is read; PATH is its URL. */
    cm_copy *copy;
} cm_multi_file;

/* One file's share of one variable. */
typedef struct cm_multi_part {
    uint32_t file;
    /* Along the variable's joined axes, in the order of cm_multi_var.axis. */
    uint64_t origin[CM_MULTI_MAX_AXES]; /* of its first element in the joined array */
    uint64_t first[CM_MULTI_MAX_AXES];  /* the same element in the file */
    uint64_t count[CM_MULTI_MAX_AXES];  /* how many; an empty part is left out */
    uint64_t length[CM_MULTI_MAX_AXES]; /* of the dimension in the file, >= first + count */
    const char *name;                   /* of the variable in this file; NULL: the variable's */
    const cm_located *located;          /* NULL: found when the variable is prepared */
    const struct cm_multi_how *how;     /* NULL: elements are taken unchanged */
} cm_multi_part;

/* Converts a part's elements to those of the variable; shared by similar files.  In this order: */
typedef struct cm_multi_how {
    cm_dtype dtype; /* in the file; the variable's type, or one that it widens, or else: */
    bool exact;     /* an element that the variable's type cannot hold exactly is an error */
    /* Dimension i of the variable is dimension order[i] of the file; only where TRANSPOSED. */
    bool transposed;
    unsigned order[CM_MAX_RANK];
    /*
     * The file lacks joined dimension i (of cm_multi_var.axis), and is one step of it, or where
     * TRANSPOSED gives each of its steps the same.
     */
    bool lacks_axis[CM_MULTI_MAX_AXES];
    /*
     * The file lacks dimension i of the variable, which is not joined: its elements are repeated
     * along it.  Only where TRANSPOSED.
     */
    bool repeats[CM_MAX_RANK];
    /*
     * The variable's last dimension is the length of texts: the file's texts are WIDTH characters
     * long, no longer than the variable's, and are padded with NULs.
     */
    bool pads;
    uint64_t width;
    bool unpacks;    /* stored x scale + offset, in double; fill values stay fill values */
    bool single;     /* rounds each step of that to float32 */
    bool other_sign; /* _Unsigned: reinterprets integers with the other sign, before unpacking */
    double scale, offset;
    /*
     * Replaces the file's fill value (in the file's type) by the variable's.  A data element equal
     * to the variable's fill value is an error.
     */
    bool replaces_fill;
    uint8_t fill[16];
    bool checks_fill; /* the same check for a file without a fill value */
    bool keeps_fill;  /* no option chooses another fill value: the store has it already */
    /*
     * The file's FILL is missing, but the variable has no fill value: such an element is an error.
     */
    bool refuses_fill;
    /* Converts times between units, instead of the above.  NULL: does not. */
    const cm_time_coding *time_from, *time_to;
} cm_multi_how;

typedef struct cm_multi_var {
    const char *name; /* with its groups */
    cm_dtype dtype;
    unsigned rank;
    uint64_t shape[CM_MAX_RANK];
    const char *dim_name[CM_MAX_RANK];
    bool unlimited[CM_MAX_RANK];
    const cm_json *attrs; /* without _FillValue */
    bool is_char, is_coordinate;
    uint8_t scale_nbytes, offset_nbytes; /* as of cm_variable */
    bool has_fill_value;                 /* readers take FILL_VALUE for missing */
    uint8_t fill_value[16];
    bool has_fill; /* the value of holes and unwritten elements; else undefined */
    uint8_t fill[16];
    const char *fill_text;    /* the same of strings; NULL: "" */
    const char *unsupported;  /* why its elements cannot be read; NULL: readable */
    const char *decoded_from; /* as of cm_variable */
    /* Decided: a variable without a joined dimension is the first file's. */
    bool first_static;
    double tolerance; /* decided: tolerated difference between files */

    unsigned naxes; /* 0: a single part */
    unsigned axis[CM_MULTI_MAX_AXES];
    /* Sorted by origin, without overlaps; the rest is fill. */
    const cm_multi_part *part;
    size_t nparts;
    /* Or the elements themselves: re-based time, coordinates from file names. */
    const void *values;      /* little-endian, in C order; NULL: there are parts */
    const cm_strings *texts; /* the same of strings */
    /* The files that VALUES came from, along the first dimension, for verification. */
    const cm_multi_part *said;
    size_t nsaid;
    bool named; /* and others: the names or attributes of these say it */
} cm_multi_var;

/*
 * Two files that must hold the same elements: static fields, overlapping steps.  Checked while data
 * move.
 */
typedef struct cm_multi_check {
    size_t var;
    cm_multi_part part[2]; /* of the variable: equal counts; the joined array takes the first */
    /*
     * Differing elements are counted and reported but do not stop the run: the first part was
     * chosen.
     */
    bool may_differ;
    double tolerance;   /* numbers this close count as equal */
    const char *what;   /* for messages: "overlapping steps" */
    const char *decide; /* ends the message: the settings that decide; or NULL */
} cm_multi_check;

typedef struct cm_multi_group {
    const char *path; /* "" for the root, which comes first */
    const cm_json *attrs;
} cm_multi_group;

/* Everything is borrowed by the dataset made of it. */
typedef struct cm_multi_spec {
    const char *name;        /* of the whole, for messages: "2000 files in archive/" */
    const char *format_name; /* "NetCDF-4"; NULL: "NetCDF" */
    const cm_multi_file *file;
    size_t nfiles;
    const cm_multi_group *group;
    size_t ngroups;
    const cm_multi_var *var;
    size_t nvars;
    const cm_multi_check *check;
    size_t nchecks;
    const char *const *warning; /* sentences for the user */
    size_t nwarnings;
    /* Why the inputs could not be recreated from the dataset; NULL: they could. */
    const char *irreversible;
    /*
     * Metadata of file FILE that the dataset lacks or has with another value: an object of
     * "attributes" (of groups, "/" being the root, and of variables), "types", "fill_values" and
     * "text_lengths"; NULL: none.  The caller frees it.  The function is NULL where this is not
     * known.
     */
    int (*left_out)(const void *context, uint32_t file, cm_json **out, cm_error *err);
    /* The dataset's name for the dimension or variable NAME of a file; NULL: unchanged. */
    const char *(*known_as)(const void *context, const char *name, char *buf, size_t size);
    const void *context; /* for both functions */
    /* The user's decisions, for verification. */
    bool any_overlap;        /* a step of several files is taken from one of them */
    bool fills_gaps;         /* steps that no file has are included */
    bool base_yields;        /* an open store gives only elements that no other file has */
    double tolerance;        /* for comparing coordinates */
    const char *fingerprint; /* of all decisions, for resumed runs; or NULL */
    /* Holds the lists of files, parts and addresses, and those made later; or NULL. */
    cm_paged *paged;
} cm_multi_spec;

/* File I of SPEC, marked as used (cm_paged_touch). */
static inline const cm_multi_file *cm_multi_file_at(const cm_multi_spec *spec, size_t i)
{
    const cm_multi_file *f = &spec->file[i];
    if (spec->paged != NULL) {
        cm_paged_touch(spec->paged, f, sizeof(*f));
        cm_paged_touch(spec->paged, f->path, 1);
    }
    return f;
}

/* Part I of V, marked as used. */
static inline const cm_multi_part *cm_multi_part_at(const cm_multi_spec *spec,
                                                    const cm_multi_var *v, size_t i)
{
    if (spec->paged != NULL)
        cm_paged_touch(spec->paged, &v->part[i], sizeof(v->part[i]));
    return &v->part[i];
}

/*
 * Opens the dataset of SPEC.  Kind CM_DATASET_NETCDF.  Its files were tried in a child process
 * before; that is not repeated.
 */
int cm_multi_dataset_open(const cm_multi_spec *spec, const cm_dataset_options *options,
                          cm_dataset **out, cm_error *err);

typedef struct cm_multi_clash {
    uint64_t ndiffering;         /* elements */
    uint64_t first[CM_MAX_RANK]; /* of them, in the variable */
    char value[2][48];           /* the values in the two files */
    double most;                 /* the largest difference; infinite: some are not numbers */
} cm_multi_clash;

/*
 * Runs check I of the dataset's specification, whose variable is prepared; any thread.  A
 * difference is not an error: OUT counts the differing elements.
 */
int cm_multi_check_run(cm_dataset *ds, size_t i, cm_multi_clash *out, cm_error *err);

/* CM_EFORMAT with the name of the first file of a joined dataset that changed since the survey. */
int cm_multi_unchanged(cm_dataset *ds, cm_error *err);

/*
 * The SHA-256 of N <= CM_MULTI_DIGESTS files of a joined dataset from FIRST on, as 64 hexadecimal
 * digits each; "" for a store.  Any thread.  Hashing several at once is faster.
 */
int cm_multi_file_sha256(cm_dataset *ds, uint32_t first, unsigned n, char (*text)[65],
                         cm_error *err);
/* The XXH3 of one file, several times as fast; "" for a store.  Any thread. */
int cm_multi_file_xxh128(cm_dataset *ds, uint32_t file, char text[CM_XXH128_TEXT], cm_error *err);

/* The specification of a variable of a joined dataset; NULL: of another kind of dataset. */
const cm_multi_var *cm_multi_var_of(const cm_variable *var);

/* Addresses of part I of VAR, which is prepared and has parts; borrowed from the dataset. */
int cm_multi_part_located(cm_dataset *ds, const cm_variable *var, size_t i, const cm_located **out,
                          cm_error *err);

/* The file's own values of elements that a join has computed. */
typedef struct cm_multi_said {
    cm_dtype dtype;
    cm_buf values;  /* as the library reads them; kept between calls */
    uint64_t nelem; /* rows of the file, one after the other */
    bool repeats;   /* one row, repeated for each step of the file */
    bool has_fill;
    uint8_t fill[16];
    cm_json *attrs, *parent; /* its own, and of the coordinate whose bounds it is; or NULL */
} cm_multi_said;

void cm_multi_said_release(cm_multi_said *said);

/*
 * Opens file I of a joined dataset by a library, for this thread alone until it is given back; a
 * thread has one at a time.
 */
int cm_multi_file_open(cm_dataset *joined, uint32_t i, cm_dataset **out, cm_error *err);
void cm_multi_file_close(cm_dataset *joined, uint32_t i);

/* Reads COUNT rows from FIRST on, from the file that PART of VAR.said names; any thread. */
int cm_multi_said_read(cm_dataset *joined, const cm_multi_var *var, const cm_multi_part *part,
                       uint64_t first, uint64_t count, cm_multi_said *out, cm_error *err);

/*
 * Into how many stretches the files of a joined dataset are parted, so that those of one stay open,
 * and copies of objects are kept, while one variable after the other is read; 1 where all are, and
 * of another kind of dataset.
 */
uint64_t cm_multi_stretches(const cm_dataset *ds);

/* The specification of a joined dataset; NULL: of another kind of dataset. */
const cm_multi_spec *cm_multi_spec_of(const cm_dataset *ds);

#endif
