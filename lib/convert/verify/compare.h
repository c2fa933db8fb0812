/*
 * Comparing one box of one variable: the file, read through libnetcdf, against
 * what a reader of the store gets.
 */
#ifndef CM_CONVERT_VERIFY_COMPARE_H
#define CM_CONVERT_VERIFY_COMPARE_H

#include "convert/job.h"
#include "model/digest.h"

/* One thread's buffers; zero-initialise but for ctx. */
typedef struct cm_compare_buffers {
    cm_codec_ctx *ctx;
    cm_buf dense, want, got;
    cm_strings want_text, got_text;
} cm_compare_buffers;

void cm_compare_buffers_release(cm_compare_buffers *b);

typedef struct cm_comparison {
    bool store_failed; /* the error that is returned is the store's, not the file's */
    uint64_t ndiffer;  /* elements of the box */
    uint64_t first;    /* index, in C order of the box, of the first that differs */
    char want[64];     /* that element in the file and in the store */
    char got[64];
    const char *file; /* one of many, which has WANT; or NULL */
} cm_comparison;

/*
 * BOX holds positions of V's target; DIGEST (or NULL) gets the file's elements added.
 * Where the store fails, both *out and *digest are filled all the same.
 */
int cm_compare_box(cm_job *job, cm_job_var *v, cm_array *array, const cm_box *box,
                   cm_compare_buffers *b, cm_digest *digest, cm_comparison *out, cm_error *err);

/* Warns that V, which was copied as objects, is not compared. */
int cm_compare_skip_copied(cm_job *job, const cm_job_var *v, cm_error *err);

/* Adds TEXTS, the elements of BOX of V, to DIGEST. */
void cm_compare_digest_texts(const cm_job_var *v, const cm_box *box, const cm_strings *texts,
                             cm_digest *digest);

#endif
