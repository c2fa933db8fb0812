/*
 * `stack`: several variables of equal shape, and levels of them, become one array with a
 * dimension of channels and their labels.
 *
 * stack_text.c reads what was asked for, stack_shape.c finds the variables and their
 * dimensions, stack_values.c decides type, packing and fill value, stack_attrs.c the attributes;
 * stack.c puts all together.
 */
#ifndef CM_CONVERT_STACK_STACK_H
#define CM_CONVERT_STACK_STACK_H

#include "convert/job.h"
#include "format/multi/multi.h"

enum {
    CM_STACK_MOST_CHANNELS = 65536
};

/* ---- the text ---- */

/* "z", "z@level" or "z@level=500/850". */
typedef struct cm_stack_item {
    char *name;
    char *dim;     /* whose elements become channels; NULL: none */
    double *value; /* of the dimension's coordinate, those that are taken; NULL: all */
    size_t nvalues;
} cm_stack_item;

typedef struct cm_stack_text {
    const char *text; /* as it was typed */
    char *name;       /* of the array */
    cm_stack_item *item;
    size_t nitems;
} cm_stack_text;

int cm_stack_text_parse(const char *text, cm_stack_text *out, cm_error *err);
void cm_stack_text_release(cm_stack_text *t);

/* ---- what it means ---- */

typedef struct cm_stack_member {
    const cm_stack_item *item;
    cm_variable *var; /* of the source */
    unsigned level;   /* the dimension of VAR that ITEM names; without one VAR's rank */
    bool unpacks;
    cm_dtype dtype;   /* of its values, unpacked or not */
    bool has_missing; /* one stored element is missing: */
    uint8_t missing[16];
    uint64_t *index;    /* of the levels that are taken; NULL without such a dimension */
    double *coordinate; /* of each; NULL: the dimension has none of numbers */
    size_t nchannels;   /* it gives */
    cm_multi_how how;   /* how its elements become the array's */
    bool converts;      /* HOW is needed */
    cm_form form;       /* how it is read: boxes of this chunk */
    cm_located located; /* nowhere, in FORM */
} cm_stack_member;

typedef struct cm_stack {
    cm_stack_text text;
    cm_stack_member *member;
    size_t nmembers;
    size_t nchannels;
    char *path;       /* of the array in the source, with its groups */
    char *dim;        /* of the channels */
    char *label_path; /* of their labels */
    unsigned channel; /* which dimension they are */
    cm_strings label;
    cm_json *attrs, *label_attrs;
    bool keeps_missing;  /* missing_value is one attribute of all */
    bool unpacked_later; /* all are packed alike, and the array is unpacked like any variable */
    cm_multi_part *part;
    size_t nparts;
} cm_stack;

/* stack.c: the path of NAME in the job's source. */
char *cm_stack_path(const cm_job *job, const char *name, cm_error *err);
bool cm_stack_same_name(const char *a, const char *b); /* of dimensions; NULL: it has none */

/* stack_shape.c.  Member I as its item says. */
int cm_stack_find_member(const cm_job *job, cm_stack *s, size_t i, cm_error *err);
int cm_stack_find_levels(cm_job *job, cm_stack *s, cm_stack_member *m, cm_error *err);
/* Rank, shape and names of the array, and how each member's dimensions lie in it. */
int cm_stack_set_dimensions(cm_job *job, cm_stack *s, cm_multi_var *out, cm_error *err);

/* stack_values.c, in this order; the last when the members are prepared. */
int cm_stack_choose_values(const cm_job *job, cm_stack *s, cm_error *err);
int cm_stack_choose_type(const cm_job *job, cm_stack *s, cm_multi_var *out, cm_error *err);
int cm_stack_check_missing(cm_stack *s, const cm_multi_var *out, cm_error *err);
int cm_stack_choose_fill(const cm_job *job, cm_stack *s, cm_multi_var *out, cm_error *err);

/* stack_attrs.c: the attributes of S's array and of its labels. */
int cm_stack_describe(cm_stack *s, cm_error *err);

/* All of them, and the dataset that they make of the job's source. */
typedef struct cm_stacks {
    cm_dataset *below;
    cm_stack *stack;
    size_t n;
    cm_multi_file file;
    cm_multi_group group;
    cm_multi_var *var; /* the array and the labels of each */
    cm_multi_spec spec;
} cm_stacks;

/*
 * The job's source becomes one that has the arrays of `stack`, and whose variables that these
 * are made of are marked.  Nothing where none is asked for.
 */
int cm_job_stack(cm_job *job, const cm_dataset_options *options, cm_error *err);
/* Checks that all are chosen, and tells what they are made of; after the selection. */
int cm_job_tell_stacks(cm_job *job, cm_error *err);
/* Closes that dataset; the job's source is again what it was. */
void cm_job_unstack(cm_job *job);

#endif
