/*
 * The files of a joined dataset as witnesses of the store that was made of them.
 *
 * Nothing of the join is believed but how things are called.  Each file is opened, by libraries,
 * and what its own attributes make of its elements (decoding.h) must be what the attributes of the
 * store make of those that lie at the same coordinates:
 *
 *   - Along a joined dimension the file's coordinate is decoded, and its values are looked up in
 *     the decoded coordinate of the store.  Where there is none (files in their order, steps made
 *     of names), and in one part of several, whose coordinate another one may not have written
 *     yet, an element lies where the join says.
 *   - Any other dimension has the same length in the file and in the joined dataset.
 *   - Fields without a joined dimension are the same in all files; where `static` decides, that
 *     is the first file that has them.  A file that lacks a joined dimension gives its one value
 *     to each of its steps.
 *   - A step that several files have is the same in all of them; where `overlap` decides, that
 *     of any.  What no file has is missing.
 *
 * The comparison of what the join says (compare.h, verify_said.h) stays for what a file's elements
 * cannot be held against: numbers that a conversion rounds to fewer bits, saturates or makes
 * float16, times that it casts, characters that become texts or numbers, stacked variables, what is
 * made of names and attributes of files, and several dimensions that have other names in a file
 * and may lack there.
 */
#ifndef CM_CONVERT_VERIFY_WITNESS_H
#define CM_CONVERT_VERIFY_WITNESS_H

#include "convert/verify/compare.h"

typedef struct cm_witnesses cm_witnesses;

/*
 * Looks at every file of JOB's joined dataset and at TREE, the store: lengths, coordinates, fields
 * without a joined dimension.  Differences are told.  SHARE: bytes of elements that are compared at
 * once.  NULL in *OUT where the source is none that files were joined to.
 */
int cm_witnesses_open(cm_job *job, const cm_zarr_tree *tree, double share, cm_witnesses **out,
                      cm_error *err);
void cm_witnesses_free(cm_witnesses *w); /* NULL accepted */

/* Whether V, which has a joined dimension, is compared by cm_witness_box. */
bool cm_witnesses_know(const cm_witnesses *w, const cm_job_var *v);

/*
 * As cm_compare_box: BOX of V, whose array in the store is ARRAY; any thread.  DIGEST gets the
 * store's elements.
 */
int cm_witness_box(cm_witnesses *w, cm_job_var *v, cm_array *array, const cm_box *box,
                   cm_compare_buffers *b, cm_digest *digest, cm_comparison *out, cm_error *err);

#endif
