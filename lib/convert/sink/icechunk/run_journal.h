/*
 * The journal of a run that writes into a repository, in the folder beside it (beside.h):
 *
 *     icechunk         the fingerprint of the run: another one does not go on with its chunks
 *     icechunk-chunks  where each chunk is (format/icechunk/records.h)
 *     icechunk-small   bytes of small chunks
 *     icechunk-files   the ids of all files that the run made
 *
 * A repository refers to none of these files before the commit; the id of a snapshot is noted once
 * more right before that, so that the next run can ask the repository whether the commit was made.
 * Of a bucket the files have no names, and a run that was stopped begins again.
 *
 * Each of several processes that write parts of one commit has a journal of its own, in the files
 * part-K.journal, part-K.chunks, part-K.small and part-K.files (beside/parts_files.h), and whoever
 * commits what they wrote the same with "part-commit".
 */
#ifndef CM_CONVERT_SINK_ICECHUNK_RUN_JOURNAL_H
#define CM_CONVERT_SINK_ICECHUNK_RUN_JOURNAL_H

#include "base/json.h"
#include "convert/beside/beside.h"
#include "format/icechunk/records.h"

#define CM_RUN_PUBLISHED 'r' /* the kind of an entry: this snapshot was about to be published */

/* That of the snapshot that every repository begins with, which goes where none was made. */
#define CM_RUN_INITIAL 'i'

enum {
    CM_RUN_NFILES = 4 /* head, chunks, small, files */
};

typedef struct cm_run_journal {
    cm_beside *beside; /* borrowed; open */
    char name[CM_RUN_NFILES][40];
    cm_json *head; /* of the journal that is there; NULL: none, or not whole */
    bool there;
    bool named; /* the files have names */
    int fd[3];  /* chunks, small, files; -1: not open */
    cm_ice_records records;
} cm_run_journal;

/* Whether there is a journal in B, which may not be open. */
bool cm_run_journal_is_there(const cm_beside *b);
/* Reads the head of the one that is there.  J is to be closed in any case. */
int cm_run_journal_look(cm_run_journal *j, cm_beside *b, cm_error *err);
/* The same of the journal of part NUMBER. */
int cm_run_journal_look_part(cm_run_journal *j, cm_beside *b, uint64_t number, cm_error *err);
int cm_run_journal_look_commit(cm_run_journal *j, cm_beside *b, cm_error *err);
/* Opens the files of the one that is there, */
int cm_run_journal_continue(cm_run_journal *j, cm_error *err);
/* or begins one; SCRATCH: the folder for files without a name. */
int cm_run_journal_begin(cm_run_journal *j, const cm_json *head, const char *scratch,
                         cm_error *err);
/*
 * The ids of snapshots that were about to be published: calls VISIT with each until it returns
 * true, and returns that.  *N: of those that were met, an entry that cannot be read among them,
 * which may be one.
 */
bool cm_run_journal_snapshots(const cm_run_journal *j, size_t *n,
                              bool (*visit)(void *context, const uint8_t *id), void *context);
/* Removes the files of the run from ROOT: the caller knows that nothing refers to them. */
int cm_run_journal_erase(const cm_run_journal *j, cm_store *root, cm_error *err);
/* Files that stay; lists of ids are sorted. */
typedef struct cm_run_files {
    const uint8_t *chunk, *manifest;
    size_t nchunks, nmanifests;
    const uint8_t *snapshot; /* NULL: none */
} cm_run_files;

/* After the commit of a run that went on: removes all files of the run but those that STAY. */
int cm_run_journal_tidy(const cm_run_journal *j, cm_store *root, const cm_run_files *stay,
                        cm_error *err);
/* The run has ended: its journal goes. */
void cm_run_journal_remove(cm_run_journal *j);
void cm_run_journal_close(cm_run_journal *j);

#endif
