/*
 * Memory of objects being written to a bucket: the pieces in which long ones are sent.
 *
 * A writer may always hold the pieces that it needs to make progress; further pieces, sent while
 * the next are filled, come from a limit that all writers of a store share.
 */
#ifndef CM_STORE_NET_S3_MEMORY_H
#define CM_STORE_NET_S3_MEMORY_H

#include <pthread.h>

#include "store/store.h"

/* How an object is held: whole up to two pieces, otherwise so many pieces at a time. */
typedef struct cm_s3_form {
    size_t piece_nbytes; /* of address space */
    size_t full_nbytes;  /* of memory in a full piece */
    unsigned npieces;    /* needed at a time */
    size_t nbytes;       /* memory for these, with their requests */
} cm_s3_form;

typedef struct cm_s3_memory {
    pthread_mutex_t lock; /* guards the rest, and all writers */
    pthread_cond_t changed;
    size_t piece_nbytes, ahead_nbytes, most_nbytes;
    size_t needed_nbytes; /* by active writers */
    size_t extra_nbytes;  /* held beyond that */
    unsigned nwriters, nending;
    /* Kept for the next writer of that form: fresh memory costs more than a copy. */
    struct cm_s3_idle *idle;
    cm_s3_form idle_form;
} cm_s3_memory;

void cm_s3_memory_init(cm_s3_memory *p);
void cm_s3_memory_release(cm_s3_memory *p);
void cm_s3_memory_set(cm_s3_memory *p, const cm_store_limits *sending);

cm_s3_form cm_s3_form_of(const cm_s3_memory *p, const cm_object_form *form);
cm_s3_form cm_s3_form_of_scratch(const cm_s3_memory *p, uint64_t most_nbytes);
size_t cm_s3_memory_need(const cm_s3_memory *p, const cm_object_form *form);
/* One piece with its request. */
size_t cm_s3_memory_piece(const cm_s3_memory *p);

/* All below with the lock held. */

/*
 * A writer begins, and ends.  False if there is no room, as more objects are written than planned;
 * waits for writers that are ending.
 */
bool cm_s3_memory_enter(cm_s3_memory *p, const cm_s3_form *form);
void cm_s3_memory_leave(cm_s3_memory *p, const cm_s3_form *form);

/*
 * Whether a piece may be taken beyond those a writer needs; cm_s3_memory_take with EXTRA counts it
 * so.
 */
bool cm_s3_memory_has_room(const cm_s3_memory *p, const cm_s3_form *form);
uint8_t *cm_s3_memory_take(cm_s3_memory *p, const cm_s3_form *form, bool extra, cm_error *err);
void cm_s3_memory_give(cm_s3_memory *p, uint8_t *piece, const cm_s3_form *form, bool extra);

#endif
