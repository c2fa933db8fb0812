/* Inside the witnesses: what is known of dimensions, variables and files. */
#ifndef CM_CONVERT_VERIFY_WITNESS_IMPL_H
#define CM_CONVERT_VERIFY_WITNESS_IMPL_H

#include "convert/verify/decoding.h"
#include "convert/verify/witness.h"
#include "format/multi/multi.h"

/* Elements of a file, every STRIDE-th from FIRST on, that lie side by side from POSITION on. */
typedef struct cm_witness_run {
    uint64_t position, first, count, stride;
    uint32_t file;
} cm_witness_run;

typedef struct cm_witness_runs {
    cm_witness_run *item; /* by file */
    size_t n;
} cm_witness_runs;

typedef struct cm_witness_dim {
    const char *name;
    const cm_multi_var *var; /* its coordinate; NULL: it has none */
    uint64_t length;         /* in the store */
    bool complete;           /* and the store has all of it */
    uint64_t start, step;    /* of the joined dimension, which the store has from AT on */
    uint64_t at;
    cm_decoding store; /* of the coordinate in the store, whose elements are */
    cm_buf values;     /* empty: they are not looked at */
    uint64_t nvalues;
    uint64_t *order; /* sorted; NULL: they ascend or */
    bool descends;
    cm_witness_runs claim; /* what the join says, in elements of the joined dimension */
    cm_witness_runs run;   /* what was found, in elements of the store */
    size_t *begin;         /* of each file's runs, and of the end */
    size_t *by_position;
    uint64_t longest; /* run */
} cm_witness_dim;

typedef struct cm_witness_var {
    const cm_multi_var *of;
    const cm_job_var *job; /* one of it; NULL: this run does not write it */
    const cm_zarr_node *node;
    cm_decoding store;
    bool is_known; /* its elements are compared */
    unsigned njoined;
    unsigned axis[CM_MULTI_MAX_AXES];      /* its joined dimensions */
    unsigned dimension[CM_MULTI_MAX_AXES]; /* as numbered in cm_witnesses */
    cm_decoding_leeway leeway;
    uint64_t *has; /* a bit for each file */
    size_t nfiles;
    cm_array *array; /* of one without a joined dimension */
    cm_buf kept;     /* all its elements, where they are few */
    unsigned told;
} cm_witness_var;

struct cm_witnesses {
    cm_job *job;
    const cm_multi_spec *spec;
    const cm_zarr_tree *tree;
    double share;
    cm_witness_dim dim[CM_MULTI_MAX_AXES];
    unsigned ndims;
    cm_witness_var *var; /* one for each of the specification */
};

/* A variable of a file, as it stands to one of the store. */
typedef struct cm_witness_view {
    cm_dataset *ds;
    cm_variable *v;
    uint32_t file;
    int dim[CM_MAX_RANK]; /* of the file, for each of the store; -1: it lacks it */
    cm_decoding meaning;
} cm_witness_view;

/* How the elements of one box came out. */
enum {
    CM_MARK_NONE, /* no file has it */
    CM_MARK_SAME,
    CM_MARK_DIFFERENT
};

typedef struct cm_witness_verdict {
    const cm_box *box;  /* of the store; */
    const uint8_t *got; /* its elements, or */
    const cm_strings *got_text;
    uint8_t *mark;      /* of each */
    bool any;           /* one file that has an element suffices */
    bool only_unmarked; /* what another file has is not looked at */
    cm_buf *raw;        /* for elements of files, or */
    cm_strings *raw_text;
    uint64_t first; /* element that differs; */
    char want[64];  /* what the file has there */
    uint32_t file;
    bool found;
} cm_witness_verdict;

/*
 * witness.c: the variable that NAME is; NULL: none.  Looked for from *NEXT on, for files have their
 * variables mostly in one order.
 */
cm_witness_var *cm_witness_var_named(const cm_witnesses *w, const char *name, size_t *next);

/* witness_places.c */
int cm_witness_dims_make(cm_witnesses *w, cm_error *err);
/*
 * Where FILE lies along all joined dimensions, by its coordinates where it is open as DS, else as
 * the join says; files come in their order.
 */
int cm_witness_place(cm_witnesses *w, uint32_t file, cm_dataset *ds, cm_error *err);
int cm_witness_places_sort(cm_witnesses *w, cm_error *err);
void cm_witness_dims_release(cm_witnesses *w);

/* The element of number I of the store's box, for people. */
char *cm_witness_got(const cm_witness_var *var, const cm_witness_verdict *verdict, uint64_t i,
                     char *buf, size_t size);
bool cm_witness_is_text(const cm_witness_var *var);

/* witness_view.c */
/* The name of the joined dataset for NAME of a file. */
const char *cm_witness_name(const cm_witnesses *w, const char *name, char *buf, size_t size);
int cm_witness_decoding_of(const cm_dataset *ds, const cm_variable *v, cm_decoding *out,
                           cm_error *err);
int cm_witness_decoding_in(const cm_witnesses *w, const cm_witness_var *var, cm_decoding *out,
                           cm_error *err);
/* How the dimensions that a file has stand to those of the store. */
typedef enum cm_witness_match {
    CM_WITNESS_FITS,
    CM_WITNESS_HAS_MORE,
    CM_WITNESS_UNKNOWN
} cm_witness_match;

cm_witness_match cm_witness_view_make(const cm_witnesses *w, const cm_witness_var *var,
                                      cm_variable *v, cm_witness_view *out);
/*
 * Judges PART of the verdict's box, which lies along the joined dimensions of VAR in RUN.
 */
int cm_witness_judge(const cm_witness_var *var, const cm_witness_view *view,
                     const cm_witness_run *const *run, const cm_box *part,
                     cm_witness_verdict *verdict, cm_error *err);

#endif
