/*
 * From what files hold to one dataset, step by step.
 *
 *     names -> renamed -> texts -> compare -> axes -> place -> times -> emit
 *
 * Each is a file of this folder, and takes of a join what it needs: the input, the tables of
 * variables and dimensions, the axes, the findings.  Files are numbered by name; a disagreement
 * becomes a finding, and the steps go on as far as they can, so that one survey tells all of them.
 * Lists of files, of their coordinates and their parts lie in the survey's paged memory, and live
 * as long as the survey.
 */
#ifndef CM_ARCHIVE_JOIN_H
#define CM_ARCHIVE_JOIN_H

#include <chunkmill/archive.h>

#include "archive/survey/survey.h"
#include "format/multi/multi.h"
#include "model/rebase.h"
#include "model/step.h"
#include "options/varopt.h"

#define CM_JOIN_NONE UINT32_MAX

/* The kind of key that a coordinate is compared by; the order of keys is that of its values. */
typedef enum cm_key_kind {
    CM_KEY_NONE, /* no values: a place in the order of files */
    CM_KEY_TIME, /* microseconds on the calendar's own day count */
    CM_KEY_INTEGER,
    CM_KEY_REAL, /* the bits of a double, in its order */
    CM_KEY_TEXT  /* place in the sorted list of all texts */
} cm_key_kind;

/* Consecutive elements of a file that are consecutive in the joined dimension. */
typedef struct cm_join_run {
    uint64_t origin, first, count;
} cm_join_run;

/* A distinct coordinate of a dimension. */
typedef struct cm_join_vec {
    const cm_described *like; /* of the variable; NULL: there is none */
    cm_digest values;
    uint64_t n;
    uint32_t file;   /* the first that has it */
    uint32_t same;   /* the first vec with the same keys; its own number where that is it */
    int64_t *key;    /* ascending, whatever the direction; NULL: none */
    uint64_t bad;    /* the first element that has no place, from 1; 0: none */
    const char *why; /* "is missing" */
    cm_join_run *run;
    size_t nruns;
} cm_join_vec;

/* How many elements one file has of a dimension, or that it lacks it: no number stands for that. */
typedef struct cm_file_length {
    uint64_t plus_one;
} cm_file_length;

static inline cm_file_length cm_file_length_make(uint64_t n)
{
    return (cm_file_length){n + 1};
}

static inline bool cm_file_has(cm_file_length length)
{
    return length.plus_one > 0;
}

/* 0 where the file lacks the dimension. */
static inline uint64_t cm_file_count(cm_file_length length)
{
    return length.plus_one > 0 ? length.plus_one - 1 : 0;
}

/* Steps that no file has and that stay out. */
typedef struct cm_join_gap {
    uint64_t after, n; /* N steps behind element AFTER */
    bool told;
    int64_t first, last; /* keys of them, where TOLD */
} cm_join_gap;

typedef struct cm_join_dim {
    char *name;
    bool unlimited;
    cm_file_length *length; /* of each file */
    uint32_t *at;           /* vec of each file */
    cm_join_vec *vec;
    size_t nvecs;
    uint32_t same_as; /* the dimension that it is by its coordinate's meaning; or CM_JOIN_NONE */
    uint32_t var;     /* its coordinate, or what stands for one; CM_JOIN_NONE */
    bool substitute;  /* that is not named like the dimension */
    cm_key_kind kind;
    bool descending;
    cm_time_axis axis; /* CM_KEY_TIME: of the first file */
    bool differs;      /* files have different coordinates */
    int joined;        /* which of the joined dimensions; -1: none */
    int64_t *key;      /* of the joined dimension; in paged memory */
    uint64_t n;
    uint64_t nfilled;  /* steps that no file has and that were added */
    cm_time_step step; /* with them, of CM_KEY_TIME */
    cm_join_gap *gap;
    size_t ngaps;
    bool apart;             /* its coordinates are a finding: what lies on them is not compared */
    bool made;              /* by an option: files say no coordinate of it */
    bool one_each;          /* by an option: each file is one step of it */
    const char *said_by;    /* that option, where a store which grows has the coordinate; or NULL */
    bool in_order;          /* files follow each other along it, whatever its coordinate */
    bool ragged;            /* files follow each other along it as along others (ragged.h) */
    const char *indexed_by; /* a variable whose values are places along it; or NULL */
    bool is_text;           /* the length of texts; N is that of the longest */
    char **said;            /* MADE, of CM_KEY_TEXT: what each file says; owned */
} cm_join_dim;

typedef struct cm_join_var {
    char *name;
    const cm_described *like; /* that of the first file */
    uint32_t first;
    uint32_t *file; /* that hold it, ascending */
    size_t nfiles;
    bool wanted;
    bool decoded; /* from text, in some files (cm_described.decoded_from), */
    bool ignored; /* and not in all of them: it is nobody's then */
    unsigned rank;
    uint32_t dim[CM_MAX_RANK];
    cm_dtype dtype; /* that holds those of all files; */
    bool exact;     /* or was asked for, as none does: each element must fit it */
    cm_json *attrs; /* those that files agree on */
    bool has_fill_value;
    uint8_t fill_value[16];
    bool made_fill;     /* that is of no file: data must not equal it */
    uint32_t kinds;     /* of disagreement, a bit for each cm_finding_kind */
    bool given;         /* VALUES are its elements */
    bool promoted;      /* GIVEN: each file's value, repeated for each of the file's steps */
    uint32_t bounds_of; /* the variable whose bounds or climatology it is; CM_JOIN_NONE */
    bool rebased;       /* its units follow those that were chosen */
    cm_time_coding coding;
    bool unpacked;
    bool in_double;             /* for a type that is asked for */
    bool is_text;               /* its last dimension is the length of texts */
    unsigned nlacking;          /* of its first dimensions, which its files lack */
    const cm_described *widest; /* that has all of the others; NULL: files lack no others */
    void *values;
    size_t values_nbytes;
    cm_strings texts;   /* of a variable of strings that is given */
    cm_described *made; /* LIKE, where no file has the variable; owned */
} cm_join_var;

/* The input of all steps, the same for each: what is asked for, and the files. */
typedef struct cm_join_input {
    const cm_archive_options *options;
    const cm_texts *only; /* or NULL */
    cm_survey *survey;
    cm_surveyed **file; /* those of this store that could be read, by name */
    size_t nfiles;
    size_t *rank;  /* of each file, its place where order matters */
    bool has_base; /* file 0 is the store that grows: what it has stays as it is */
} cm_join_input;

/* Variables and dimensions of all files: names.c makes them, later steps fill them in. */
typedef struct cm_join_tables {
    bool *renames; /* each pair of --rename that joins names; others are for the conversion */
    bool *scalar;  /* each of --new-dim that takes the values of a scalar variable */
    cm_varopts dtype, fill, statics; /* those of the options */
    cm_join_var *var;
    size_t nvars;
    cm_join_dim *dim;
    size_t ndims;
    uint32_t **to_var; /* for each skeleton: position -> var; CM_JOIN_NONE: not wanted */
    cm_digest *names;  /* for each skeleton: of the names of its variables, in any order */
    uint32_t **to_pos; /* and back */
    bool refused;      /* a dimension has several lengths in one file: no step goes on */
} cm_join_tables;

/* The dimensions that are joined. */
typedef struct cm_join_axes {
    uint32_t axis[CM_MULTI_MAX_AXES]; /* dims */
    unsigned naxes;
    bool refused; /* an axis cannot be joined, so that nothing is placed on it */
} cm_join_axes;

/* Findings of all steps, for the user to decide or to know. */
typedef struct cm_join_findings {
    const cm_join_input *in;
    cm_archive_report *report;
    char *irreversible; /* why the originals cannot be made again; or NULL */
    char **warning;
    size_t nwarnings;
} cm_join_findings;

typedef struct cm_join {
    cm_join_input in;
    cm_join_tables tables;
    cm_join_axes axes;
    cm_join_findings findings;
    struct cm_field_sources *fields;
    struct cm_emitted *emitted;
    cm_multi_spec spec;
    bool whole; /* SPEC can be opened */
} cm_join;

/* COUNT zeroed elements that live as long as the survey. */
void *cm_join_alloc(const cm_join_input *in, size_t count, size_t size, cm_error *err);

/* FILE, which is going to be read, with its path. */
const cm_surveyed *cm_join_file(const cm_join_input *in, size_t file);
/* For qsort_r: numbers of files (uint32_t) by their RANK, a size_t of each. */
int cm_join_by_rank(const void *a, const void *b, void *rank);
/* The variables of FILE. */
const cm_skeleton *cm_join_skeleton(const cm_join_input *in, uint32_t file);

/* The length of V along D: of the whole, or of the files that have it. */
uint64_t cm_join_length(const cm_join_var *v, const cm_join_dim *d);

/* A finding; CM_WEIGHT_DECISION counts, unless DECIDED.  The sentence is about VARIABLE. */
cm_finding *cm_join_find(cm_join_findings *findings, cm_finding_kind kind, cm_finding_weight weight,
                         bool decided, const char *variable, uint32_t file, cm_error *err,
                         const char *format, ...) __attribute__((format(printf, 8, 9)));
/* FILE is one more that F concerns. */
int cm_join_found_in(cm_join_findings *findings, cm_finding *f, uint32_t file, cm_error *err);
/* Notes why the originals cannot be restored from the store; the first reason stays. */
int cm_join_irreversible(cm_join_findings *findings, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int cm_join_warn(cm_join_findings *findings, cm_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * names.c: the tables of variables and dimensions.  A dimension whose lengths differ within a file
 * is a finding; then nothing can be joined.
 */
int cm_join_names(const cm_join_input *in, cm_join_tables *tables, cm_join_findings *findings,
                  cm_error *err);
int cm_join_add_dim(const cm_join_input *in, cm_join_tables *tables, const char *name,
                    uint32_t *out, cm_error *err);
/* A variable along dimension DIM that no file has: wanted, and given. */
int cm_join_make_var(cm_join_tables *tables, const char *name, uint32_t dim, cm_dtype dtype,
                     uint32_t *out, cm_error *err);
uint32_t cm_join_dim_named(const cm_join_tables *tables, const char *name);
uint32_t cm_join_var_named(const cm_join_tables *tables, const char *name);
/* The name by which NAME, of a file, is known here: that of --rename where it is OLD. */
const char *cm_join_name(const cm_join_input *in, const cm_join_tables *tables, const char *name,
                         char *buf, size_t size);

/* Chooses what chosen variables need: coordinates, and variables that their attributes name. */
void cm_join_want_needed(cm_join_tables *tables);

/*
 * cm_join_name for each word of TEXT, a list of variables; the caller frees it.  NULL: no memory.
 */
char *cm_join_reword(const cm_join_input *in, const cm_join_tables *tables, const char *text,
                     cm_error *err);

/* renamed.c: dimensions that files name differently: a finding. */
int cm_join_renamed(const cm_join_input *in, cm_join_tables *tables, cm_join_axes *axes,
                    cm_join_findings *findings, cm_error *err);
/* A finding: by its standard_name W, in the files that hold it, is V. */
int cm_join_tell_renamed(const cm_join_input *in, cm_join_findings *findings, const cm_join_var *v,
                         const cm_join_var *w, cm_error *err);

/*
 * repeat.c: variables that have more dimensions in some files than in others get those of the
 * file that has most, and files that lack one that is not joined are findings.
 */
void cm_join_widen(const cm_join_input *in, cm_join_tables *tables);
int cm_join_lacking(const cm_join_input *in, const cm_join_tables *tables,
                    cm_join_findings *findings, cm_error *err);
/* Whether the conversion drops D, so that a file without it lacks nothing. */
bool cm_join_is_merged(const cm_join_input *in, const cm_join_dim *d);
/* Whether FILE has all dimensions of V. */
bool cm_join_has_dims(const cm_join_tables *tables, const cm_join_var *v, uint32_t file);

/*
 * texts.c: characters whose last dimension is the length of texts, and nothing else.  Where files
 * have other lengths, or other names of that dimension, texts are filled up with NULs.
 */
int cm_join_texts(const cm_join_input *in, cm_join_tables *tables, cm_join_findings *findings,
                  cm_error *err);
/* How long texts of AT, which is one of them, are in FILE. */
uint64_t cm_join_text_length(const cm_join_input *in, const cm_join_tables *tables, uint32_t at,
                             uint32_t file);

/* compare.c: descriptions, and attributes of groups. */
int cm_join_compare(const cm_join_input *in, cm_join_tables *tables, cm_join_findings *findings,
                    cm_error *err);
/* types.c: the type of variable AT that holds those of all files, before a finding says which. */
void cm_join_widen_types(const cm_join_input *in, cm_join_tables *tables, uint32_t at);
/* The type that the user asks for V; false: none, or none that numbers have. */
bool cm_join_asked_type(cm_join_tables *tables, const cm_join_var *v, cm_dtype *out);
/* Whether no decision is needed about D's type, which is not V's. */
bool cm_join_type_is_settled(const cm_join_input *in, const cm_join_tables *tables, cm_join_var *v,
                             const cm_described *d);
/* FILE has V with another type, D's. */
cm_finding *cm_join_find_type(const cm_join_input *in, const cm_join_tables *tables,
                              cm_join_findings *findings, cm_join_var *v, const cm_described *d,
                              uint32_t file, cm_error *err);
/* layouts.c: codecs, for `strict`. */
int cm_join_layouts(const cm_join_input *in, const cm_join_tables *tables,
                    cm_join_findings *findings, cm_error *err);
/* unpack.c: the type, fill value and attributes of variables that are unpacked, if asked for. */
int cm_join_unpack(const cm_join_input *in, cm_join_tables *tables, cm_join_findings *findings,
                   cm_error *err);
/* Sets `bounds_of` of all variables. */
void cm_join_find_bounds(cm_join_tables *tables);
/* The variable that counts time and whose bounds are V; NULL: none. */
cm_join_var *cm_join_bounded_by(const cm_join_tables *tables, const cm_join_var *v);
/* attributes.c: whether scale_factor, add_offset or _Unsigned of A and B differ. */
bool cm_join_packs_otherwise(const cm_described *a, const cm_described *b);

/* sort_keys.c */
int cm_join_keys(const cm_join_input *in, const cm_join_tables *tables, cm_join_dim *d,
                 cm_error *err);

/* new_dims.c, made.c, promote.c: dimensions and coordinates that options make of what files say. */
int cm_join_new_dims(const cm_join_input *in, cm_join_tables *tables, cm_join_axes *axes,
                     cm_error *err);
int cm_join_promote(const cm_join_input *in, cm_join_tables *tables, const cm_join_axes *axes,
                    cm_join_findings *findings, cm_error *err);
int cm_join_file_attrs(const cm_join_input *in, cm_join_tables *tables, const cm_join_axes *axes,
                       cm_error *err);

/* axes.c: which dimensions are joined, and their coordinates. */
int cm_join_find_axes(const cm_join_input *in, cm_join_tables *tables, cm_join_axes *axes,
                      cm_join_findings *findings, cm_error *err);

/* base.c: whether the store that grows stays as it is. */
int cm_join_check_base(const cm_join_input *in, const cm_join_tables *tables, cm_join_axes *axes,
                       cm_join_findings *findings, cm_error *err);

/* emit.c */
int cm_join_emit(cm_join *j, cm_error *err);

/* ONLY: exact names of variables, chosen instead of those that OPTIONS name; or NULL. */
int cm_join_create(const cm_archive_options *options, cm_survey *survey, const uint32_t *file,
                   size_t nfiles, const cm_texts *only, cm_archive_report *report, cm_join **out,
                   cm_error *err);
/* The tables of variables and dimensions of all files, and nothing more. */
int cm_join_create_names(const cm_archive_options *options, cm_survey *survey,
                         cm_archive_report *report, cm_join **out, cm_error *err);
void cm_join_free(cm_join *j);
/* report.c: what was joined, along what, and how; after the last step. */
int cm_join_report(const cm_join_input *in, const cm_join_tables *tables, const cm_join_axes *axes,
                   cm_join_findings *findings, cm_error *err);
void cm_report_release(cm_archive_report *r);

#endif
