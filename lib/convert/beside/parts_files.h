/*
 * Files that several processes that make one store leave in the folder beside it:
 *
 *     plan             what is made, in how many parts: one line, written once
 *     part-K.lock      who makes part K now
 *     part-K.progress  how far that is
 *     part-K.journal   what a part that is run again goes on from
 *     part-K.chunks, .small, .files  the journal of one that writes into a repository, and
 *     part-K.places    where its chunks lie there (format/icechunk/parcel.h)
 *     part-K.statistics  what it counted, where that was asked for (parts_counted.h)
 *     part-K.done      the part is on the disk: names the plan and what was made
 *     complete         the store has its metadata: names the plan and what each part made
 *
 * K counts from 1.  A file that names another plan counts as absent or is refused.
 */
#ifndef CM_CONVERT_BESIDE_PARTS_FILES_H
#define CM_CONVERT_BESIDE_PARTS_FILES_H

#include "base/json.h"
#include "convert/beside/lock.h"

#define CM_PARTS_COMPLETE "complete"
#define CM_PARTS_ADD      "append" /* member of the plan of parts that add to a store */
#define CM_PARTS_COMMIT   "commit" /* of parts of one commit to a repository */

/* A plan that was read. */
typedef struct cm_parts_plan {
    cm_json *json; /* NULL: there is none */
    char hash[33]; /* of its bytes */
    uint64_t nparts;
    uint64_t first, step; /* a launcher's index of part 1, and from one part to the next */
    bool complete;        /* and all of it is done */
} cm_parts_plan;

/* B is open, or there is no folder.  CM_EFORMAT: a plan that cannot be read. */
int cm_parts_plan_read(const cm_beside *b, cm_parts_plan *out, cm_error *err);
void cm_parts_plan_release(cm_parts_plan *plan);
/*
 * Gives JSON, a plan, its name in one step: false in *published where another was first.
 */
int cm_parts_plan_publish(const cm_beside *b, const cm_json *json, bool *published, cm_error *err);

/* "part-3.done" for part NUMBER 2 and WHAT "done". */
char *cm_part_file(uint64_t number, const char *what, cm_error *err);
/* Whether NAME is one of the files above. */
bool cm_parts_is_file(const char *name);
/*
 * Removes all of them: a store that another run changes is not what its parts made, and none of
 * them, run again, may put that back.  With the output's lock.
 */
int cm_parts_forget(const cm_beside *b, cm_error *err);

/* Writes the document NAME, which says that HASH's plan is meant; MORE (or NULL) is taken. */
int cm_part_note(const cm_beside *b, const char *name, const char *hash, cm_json *more,
                 cm_error *err);
/* The document NAME where it is about HASH's plan; else NULL in *out. */
int cm_part_noted(const cm_beside *b, const char *name, const char *hash, cm_json **out,
                  cm_error *err);

/*
 * CM_EEXIST where parts make the store of B, which opens for this: they run, or have not
 * come to an end and OVERWRITE is false.
 */
int cm_parts_check_none(cm_beside *b, bool overwrite, cm_error *err);
/* Parts whose locks are held now; *who is the first's. */
int cm_parts_running(const cm_beside *b, uint64_t *n, cm_lock_holder *who, cm_error *err);

#endif
