/* Coordinates, and ranges of them. */
#ifndef CM_CONVERT_SELECT_SUBSET_H
#define CM_CONVERT_SELECT_SUBSET_H

#include "convert/job.h"

/* The variable of DS that OF's dimension DIM of LENGTH has its coordinates from; NULL: none. */
cm_variable *cm_coordinate_of(const cm_dataset *ds, const cm_variable *of, const char *dim,
                              uint64_t length);

/*
 * All N values of the coordinate that OF's dimension DIM has, unpacked; NULL in *OUT: it has none
 * of numbers.
 */
int cm_coordinate_read(cm_dataset *ds, const cm_variable *of, const char *dim, uint64_t n,
                       double **out, cm_error *err);
/* The same, of texts, into OUT, which is empty and limits what they take: *THERE: it has such. */
int cm_coordinate_read_texts(cm_dataset *ds, const cm_variable *of, const char *dim, uint64_t n,
                             cm_strings *out, bool *there, cm_error *err);

typedef struct cm_job_range {
    bool applies; /* the variable has the dimension */
    unsigned dim;
    uint64_t lo, hi; /* elements lo <= i < hi of the target */
} cm_job_range;

/* The elements of V that TEXT, "DIM=FROM..TO" of OPTION, names by their coordinates. */
int cm_job_range_of(cm_job *job, const char *option, const char *text, const cm_job_var *v,
                    cm_job_range *out, cm_error *err);

#endif
