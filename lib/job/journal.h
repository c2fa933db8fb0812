/*
 * The journal of a conversion or rechunking that is under way: a file in the output's folder
 * that says what is being made, and which chunks were left out on purpose.
 *
 * Chunks and shards themselves appear whole or not at all, so those that are
 * there are done.  The first line is a JSON object, the fingerprint of source,
 * options and version; --resume refuses to go on under another one.  Each
 * further line, "VARIABLE CHUNK", is a chunk that holds only the fill value and
 * so has no object.  Metadata is written when all chunks are there; then the
 * journal is removed.
 */
#ifndef CM_JOB_JOURNAL_H
#define CM_JOB_JOURNAL_H

#include "base/json.h"
#include "format/zarr/writer.h"
#include "job/output.h"

typedef struct cm_journal cm_journal;

/* What is being made: its arrays, in an order that the same options give again. */
typedef struct cm_journal_item {
    const char *name;
    cm_zarr_writer *writer; /* NULL: not resumed chunk by chunk */
} cm_journal_item;

typedef struct cm_journal_list {
    cm_journal_item *item;
    size_t n;
} cm_journal_list;

/* True when FOLDER holds a journal. */
bool cm_journal_exists(const char *folder);
/* Removes it, if there is one: what it tells of is no longer there. */
void cm_journal_remove(const char *folder);

/* Begins one.  FINGERPRINT is an object, the LIST what the folder will hold.  MADE: the folder is ours. */
int cm_journal_begin(const char *folder, const cm_json *fingerprint, const cm_journal_list *list,
                     bool made, cm_journal **out, cm_error *err);

/*
 * Goes on with the one that is there: CM_EEXIST, saying what differs, when its
 * fingerprint is another.  Tells the writers of LIST which chunks are done;
 * *nchunks counts them.
 */
int cm_journal_resume(const char *folder, const cm_json *fingerprint, const cm_journal_list *list,
                      cm_journal **out, uint64_t *nchunks, cm_error *err);

/* Begins, or goes on where OUT's run was stopped; *nchunks are done already.  Errors name the folder. */
int cm_journal_open(const cm_output *out, const cm_json *fingerprint, const cm_journal_list *list,
                    cm_journal **journal, uint64_t *nchunks, cm_error *err);

/* Chunk CHUNK of item INDEX was left out.  Any thread. */
int cm_journal_skip(cm_journal *journal, size_t index, uint64_t chunk, cm_error *err);

/* Closes, and with DONE removes, the file.  NULL accepted. */
void cm_journal_close(cm_journal *journal, bool done);

/* Removes from FOLDER, whose run is given up, what its journal says is ours. */
int cm_journal_give_up(const char *folder, cm_store *store, cm_error *err);

#endif
