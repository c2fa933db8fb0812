/*
 * The journal of a conversion or rechunking that is under way: a file in the folder
 * beside the output that says what is being made, and which chunks were left out on
 * purpose.
 *
 * Lines of text, each "CHECKSUM PAYLOAD": eight hexadecimal digits, the CRC-32C of
 * the payload.  The first payload is a JSON object, the head: the fingerprint of
 * source, options and version (--resume refuses to go on under another one), the
 * phase, and for each array the names that its chunks can have.  Each further
 * payload, "ITEM CHUNK", is a chunk that holds only the fill value and so has no
 * object.  Reading ends with the first line that is not whole: what a full disk or
 * a crash cut counts for nothing, and is gone when a run goes on.
 *
 * Chunks and shards that are there are proven by reading them (adopt.h).  Metadata
 * is written when all chunks are there; then the journal is removed.
 *
 * The head is no proof of ownership.  What it says of arrays only tells which names
 * are those of chunks, so that a run that is given up leaves none behind.
 */
#ifndef CM_CONVERT_BESIDE_JOURNAL_H
#define CM_CONVERT_BESIDE_JOURNAL_H

#include "base/json.h"
#include "convert/beside/beside.h"
#include "format/zarr/writer.h"

typedef struct cm_journal cm_journal;

/* The nodes that are made: arrays, in an order that the same options give again; then groups. */
typedef struct cm_made_node {
    const char *path;
    const cm_zarr_meta *meta; /* NULL: a group */
    cm_zarr_writer *writer;   /* NULL: not resumed chunk by chunk */
    /* Is shown the elements of each chunk that is kept (NULL: fill values), if it is not NULL. */
    int (*see)(void *context, uint64_t chunk, const uint8_t *elements, cm_error *err);
    void *see_context;
} cm_made_node;

typedef struct cm_made {
    cm_made_node *node;
    size_t n;
} cm_made;

typedef enum cm_journal_phase {
    CM_JOURNAL_NONE,
    CM_JOURNAL_DAMAGED,   /* there, but its head is not whole */
    CM_JOURNAL_PREPARING, /* what was there before is being removed */
    CM_JOURNAL_WRITING    /* chunks are written, and can be kept */
} cm_journal_phase;

/* The name of the journal of an output, or of the node NODE in it. */
char *cm_journal_name(const char *node, cm_error *err);
/* CM_JOURNAL_NONE, too, where B is not opened.  Errors are those of the file system. */
int cm_journal_look(const cm_beside *b, const char *name, cm_journal_phase *out, cm_error *err);
/* A copy of member KEY of the head, its fingerprint's among them; NULL: there is none. */
int cm_journal_member(const cm_beside *b, const char *name, const char *key, cm_json **out,
                      cm_error *err);

/*
 * Says that the chunks of MADE, of the arrays in STORE (NULL: there is none) and of
 * what an earlier journal tells are to go; before anything else is touched, so that a
 * run that is killed while it empties a store leaves no chunks that nobody knows.
 */
int cm_journal_prepare(const cm_beside *b, const char *name, const cm_made *made, cm_store *store,
                       cm_error *err);
/* Removes from STORE the chunks of the arrays that the journal tells of. */
int cm_journal_erase(const cm_beside *b, const char *name, cm_store *store, cm_error *err);

/* Begins one for what FINGERPRINT, an object, and MADE describe. */
int cm_journal_begin(const cm_beside *b, const char *name, const cm_json *fingerprint,
                     const cm_made *made, cm_journal **out, cm_error *err);
/*
 * The first member in which fingerprints differ; NULL: none does.  Where that is the number of
 * inputs, how many there were and are; else the same number.
 */
const char *cm_journal_other(const cm_json *was, const cm_json *is, uint64_t *before,
                             uint64_t *now);
/* Fails where cm_journal_resume would, and changes nothing. */
int cm_journal_check(const cm_beside *b, const char *name, const cm_json *fingerprint,
                     cm_error *err);
/*
 * Goes on with the one that is there: CM_EEXIST, saying what differs, when its
 * fingerprint is another.  Tells the writers of MADE, by up to NTHREADS threads
 * within MEMORY, which chunks of STORE are done; *nchunks counts them.
 */
int cm_journal_resume(const cm_beside *b, const char *name, const cm_json *fingerprint,
                      const cm_made *made, cm_store *store, unsigned nthreads, uint64_t memory,
                      cm_journal **out, uint64_t *nchunks, cm_error *err);

/*
 * Chunk CHUNK of item INDEX was left out.  Any thread.  NULL: a run without a journal, as one that
 * adds to a store.
 */
int cm_journal_skip(cm_journal *journal, size_t index, uint64_t chunk, cm_error *err);
/* Closes the file.  NULL accepted. */
void cm_journal_close(cm_journal *journal);

#endif
