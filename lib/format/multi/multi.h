/*
 * Many files as one dataset.
 *
 * What belongs together, and where each file's elements go, is decided elsewhere and said
 * here as a specification; nothing here guesses.  A joined variable is an array like any
 * other: chunked where all its files are cut on chunk boundaries alike, else in boxes.
 *
 * Files are opened when they are read, as many at once as the process may have open; of a
 * file that has changed since its identity was taken, reading is an error with its name.
 */
#ifndef CM_FORMAT_MULTI_MULTI_H
#define CM_FORMAT_MULTI_MULTI_H

#include "base/paged.h"
#include "base/sha256.h"
#include "format/located.h"
#include "model/rebase.h"
#include "store/copies.h"

enum {
    CM_MULTI_MAX_AXES = 2, /* joined dimensions of a variable */
    CM_MULTI_DIGESTS = CM_SHA256_LANES
};

typedef struct cm_multi_file {
    const char *path;
    uint64_t dev, ino, nbytes, mtime_ns; /* when it was surveyed */
    /*
     * Or a Zarr store that is open, borrowed: its arrays are read by any thread, and it may grow
     * meanwhile, as long as the elements that are read stay what they are.
     */
    cm_dataset *open;
    /* Or an object behind a network, whose copy is taken while it is read; PATH is its URL. */
    cm_copy *copy;
} cm_multi_file;

/* What one file gives to one variable. */
typedef struct cm_multi_part {
    uint32_t file;
    /* Along the variable's joined axes, in the order of cm_multi_var.axis. */
    uint64_t origin[CM_MULTI_MAX_AXES]; /* of its first element in the joined array */
    uint64_t first[CM_MULTI_MAX_AXES];  /* the same element in the file */
    uint64_t count[CM_MULTI_MAX_AXES];  /* how many; an empty part is left out */
    uint64_t length[CM_MULTI_MAX_AXES]; /* of the dimension in the file, >= first + count */
    const char *name;                   /* of the variable in this file; NULL: the variable's */
    const cm_located *located;          /* NULL: found when the variable is prepared */
    const struct cm_multi_how *how;     /* NULL: its elements are taken as they are */
} cm_multi_part;

/* How a part's elements become those of the variable; like files share one.  In this order: */
typedef struct cm_multi_how {
    cm_dtype dtype; /* in the file; equal to the variable's, or a type that it widens, or else: */
    bool exact;     /* an element that the variable's type does not hold exactly stops the run */
    /* Dimension i of the variable is dimension order[i] of the file; only where TRANSPOSED. */
    bool transposed;
    unsigned order[CM_MAX_RANK];
    /* The file lacks joined dimension i (of cm_multi_var.axis): it is one step there. */
    bool lacks_axis[CM_MULTI_MAX_AXES];
    /* The file lacks dimension i of the variable, which is not joined: its elements are the same
     * all along it.  Only where TRANSPOSED. */
    bool repeats[CM_MAX_RANK];
    /* The variable's last dimension is the length of texts: those of the file are WIDTH
     * characters long, no more than the variable's, and NULs follow them. */
    bool pads;
    uint64_t width;
    bool unpacks;    /* stored x scale + offset, in double; its fill value stays fill */
    bool single;     /* each step of that is rounded to float32 */
    bool other_sign; /* _Unsigned: the integers are taken for those of the other sign before */
    double scale, offset;
    /*
     * The file's own fill value (in its own type) becomes the variable's.  An element that
     * was data and equals the variable's stops the run.
     */
    bool replaces_fill;
    uint8_t fill[16];
    bool checks_fill; /* the same check of a file without a fill value */
    /* FILL of the file is missing, and the variable has no fill value: such an element stops it. */
    bool refuses_fill;
    /* Times are moved from one unit to the other; instead of the above.  NULL: they are not. */
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
    bool has_fill; /* what holes are, and what was never written; else undefined */
    uint8_t fill[16];
    const char *fill_text;    /* the same of strings; NULL: "" */
    const char *unsupported;  /* why its elements cannot be read; NULL: they can */
    const char *decoded_from; /* as of cm_variable */
    bool first_static;        /* decided: without a joined dimension it is the first file's */
    double tolerance;         /* decided: by which elements of files may differ */

    unsigned naxes; /* 0: one part gives all of it */
    unsigned axis[CM_MULTI_MAX_AXES];
    /* Sorted by origin, without overlaps; what no part covers is fill. */
    const cm_multi_part *part;
    size_t nparts;
    /* Or the elements themselves: re-based time, coordinates made of file names. */
    const void *values;      /* little-endian, in C order; NULL: there are parts */
    const cm_strings *texts; /* the same of strings */
    /* Of VALUES along the first dimension: which file says them, for those who verify it. */
    const cm_multi_part *said;
    size_t nsaid;
} cm_multi_var;

/*
 * Two files that must say the same of the same elements: static fields, overlapping steps.
 * Checked by the run while data move.
 */
typedef struct cm_multi_check {
    size_t var;
    cm_multi_part part[2]; /* of the variable: equal counts; the first is what the array has */
    /*
     * Differing elements are counted and reported, and do not stop the run; then the first
     * is what was decided for.
     */
    bool may_differ;
    double tolerance;   /* numbers that differ by no more are the same */
    const char *what;   /* "overlapping steps": stands in a message */
    const char *decide; /* ends it: the settings that decide; or NULL */
} cm_multi_check;

typedef struct cm_multi_group {
    const char *path; /* "" for the root, which is the first */
    const cm_json *attrs;
} cm_multi_group;

/* Borrowed, all of it, by the dataset that is made of it. */
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
    const char *const *warning; /* sentences a user should read */
    size_t nwarnings;
    /* Why the inputs could not be made again from the dataset; NULL: they could. */
    const char *irreversible;
    /*
     * What file FILE says that the dataset does not say alike: an object of "attributes" (of
     * groups, "/" being the root, and of variables), "types", "fill_values" and "text_lengths";
     * NULL: nothing.  To be freed.  NULL: it is not known.
     */
    int (*left_out)(const void *context, uint32_t file, cm_json **out, cm_error *err);
    /* By which name a dimension or variable NAME of a file is known here; NULL: by its own. */
    const char *(*known_as)(const void *context, const char *name, char *buf, size_t size);
    const void *context; /* of both */
    /* The user's decisions, for verification. */
    bool any_overlap;        /* a step that several files have is that of one of them */
    bool fills_gaps;         /* steps that no file has are there */
    bool base_yields;        /* a store that is open gives what no other file gives */
    double tolerance;        /* by which coordinates may differ */
    const char *fingerprint; /* of everything that was decided, for runs that go on; or NULL */
    /* What the lists of files, parts and places lie in, and what is found of them will; or NULL. */
    cm_paged *paged;
} cm_multi_spec;

/* File I of SPEC is going to be looked at. */
static inline const cm_multi_file *cm_multi_file_at(const cm_multi_spec *spec, size_t i)
{
    const cm_multi_file *f = &spec->file[i];
    if (spec->paged != NULL) {
        cm_paged_touch(spec->paged, f, sizeof(*f));
        cm_paged_touch(spec->paged, f->path, 1);
    }
    return f;
}

/* So is part I of its variable V. */
static inline const cm_multi_part *cm_multi_part_at(const cm_multi_spec *spec,
                                                    const cm_multi_var *v, size_t i)
{
    if (spec->paged != NULL)
        cm_paged_touch(spec->paged, &v->part[i], sizeof(v->part[i]));
    return &v->part[i];
}

/*
 * The dataset that SPEC says.  Its files were opened in a child process before: that is not
 * done again.  Kind CM_DATASET_NETCDF.
 */
int cm_multi_dataset_open(const cm_multi_spec *spec, const cm_dataset_options *options,
                          cm_dataset **out, cm_error *err);

typedef struct cm_multi_clash {
    uint64_t ndiffering;         /* elements */
    uint64_t first[CM_MAX_RANK]; /* of them, in the variable */
    char value[2][48];           /* what the two files have there */
    double most;                 /* the largest difference; infinite: some are not numbers */
} cm_multi_clash;

/*
 * Makes check number I of the dataset's specification, whose variable is prepared; any thread.
 * Two files that differ are no error: OUT says how many elements do.
 */
int cm_multi_check_run(cm_dataset *ds, size_t i, cm_multi_clash *out, cm_error *err);

/* CM_EFORMAT with the name of the first file of a joined dataset that is not as it was surveyed. */
int cm_multi_unchanged(cm_dataset *ds, cm_error *err);

/*
 * The SHA-256 of N <= CM_MULTI_DIGESTS files of a joined dataset from FIRST on, 64 hexadecimal
 * digits each, and "" of a store; any thread.  So many at once take less time.
 */
int cm_multi_file_digests(cm_dataset *ds, uint32_t first, unsigned n, char (*text)[65],
                          cm_error *err);

/* What is said of a variable of a joined dataset; NULL: it is one of another. */
const cm_multi_var *cm_multi_var_of(const cm_variable *var);

/*
 * Where part I of VAR, which is prepared and has parts, lies in its file; borrowed from the
 * dataset.
 */
int cm_multi_part_located(cm_dataset *ds, const cm_variable *var, size_t i, const cm_located **out,
                          cm_error *err);

/* What a file says of elements that a join has computed. */
typedef struct cm_multi_said {
    cm_dtype dtype;
    cm_buf values;  /* as the library reads them; kept between calls */
    uint64_t nelem; /* rows of the file, one after the other */
    bool repeats;   /* the file has one row, for each of its steps */
    bool has_fill;
    uint8_t fill[16];
    char units[256], calendar[64]; /* its own, or of the coordinate whose bounds it is; or "" */
} cm_multi_said;

/*
 * File I of a joined dataset as a library reads it, for this thread alone until it is given back; a
 * thread has one at a time.
 */
int cm_multi_file_open(cm_dataset *joined, uint32_t i, cm_dataset **out, cm_error *err);
void cm_multi_file_close(cm_dataset *joined, uint32_t i);

/* COUNT rows from FIRST on, of the file that PART of VAR.said names; any thread. */
int cm_multi_said_read(cm_dataset *joined, const cm_multi_var *var, const cm_multi_part *part,
                       uint64_t first, uint64_t count, cm_multi_said *out, cm_error *err);

/* The specification of a joined dataset; NULL: it is another. */
const cm_multi_spec *cm_multi_spec_of(const cm_dataset *ds);

#endif
