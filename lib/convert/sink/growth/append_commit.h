/*
 * The moment in which a store grows: its documents of metadata, changed in an order in which the
 * last rename shows the new dataset to readers of consolidated metadata.
 *
 * Before the first document changes, all of them are noted in one file beside the store, with
 * what they replace.  A run that finds that file goes on with it, so that a kill anywhere leaves
 * the old dataset or the new one; the ledger's lines are part of it.
 */
#ifndef CM_CONVERT_SINK_GROWTH_APPEND_COMMIT_H
#define CM_CONVERT_SINK_GROWTH_APPEND_COMMIT_H

#include "base/json.h"
#include "convert/beside/beside.h"
#include "model/cuts.h"

#define CM_REWRITE_NOTE "append-replaces" /* append.h; the commit removes it */
#define CM_COMMIT_NAME  "append"

/* An array whose document changes. */
typedef struct cm_growth {
    const char *path; /* of the array in the store */
    unsigned axis;
    uint64_t was, length;
    bool in_place; /* its length stays: nothing is written */
    const cm_cuts
        *cuts; /* lengths of all chunks along the axis, where the grid lists them; or NULL */
    /* A coordinate that gets other chunks and other names for them: v3 only; 0: it does not. */
    uint64_t chunk;
    char separator;
} cm_growth;

typedef struct cm_commit {
    cm_json *record;
    size_t nobjects;
} cm_commit;

/*
 * Prepares the new documents of STORE, of ZARR_FORMAT.  LEDGER, which may be NULL, is what the
 * ledger gets; borrowed.  Nothing is written.
 */
int cm_commit_make(cm_store *store, int zarr_format, const cm_growth *growth, size_t n,
                   const cm_json *ledger, cm_commit *out, cm_error *err);
/* Notes it, applies it, removes the note.  DURABLE: each step is on the disk before the next. */
int cm_commit_run(const cm_commit *commit, cm_store *store, const cm_beside *beside, bool durable,
                  cm_error *err);
void cm_commit_release(cm_commit *commit);

/* Whether one that was stopped is noted. */
int cm_commit_is_begun(const cm_beside *beside, bool *out, cm_error *err);
/*
 * Finishes it.  CM_EFORMAT, naming the document, where one is neither what it was nor what it was
 * to become: somebody else has changed the store meanwhile.
 */
int cm_commit_finish(cm_store *store, const cm_beside *beside, cm_error *err);

#endif
