/*
 * The memory of objects on their way into a bucket: the pieces in which long ones are sent.
 *
 * A writer may always hold the pieces that it needs to go on; what makes sending fast, pieces that
 * are on their way while the next are filled, comes from a bound that all writers of a store share.
 */
#ifndef CM_STORE_NET_S3_MEMORY_H
#define CM_STORE_NET_S3_MEMORY_H

#include <pthread.h>

#include "store/store.h"

/* How an object is held: as a whole up to two pieces, else so many at a time. */
typedef struct cm_s3_form {
    size_t piece_nbytes; /* addresses */
    size_t full_nbytes;  /* that a piece has in memory */
    unsigned npieces;    /* that are needed */
    size_t nbytes;       /* that these take, with their requests */
} cm_s3_form;

typedef struct cm_s3_memory {
    pthread_mutex_t lock; /* of all below, and of all writers */
    pthread_cond_t changed;
    size_t piece_nbytes, ahead_nbytes, most_nbytes;
    size_t needed_nbytes; /* by the writers that have begun */
    size_t extra_nbytes;  /* held beyond that */
    unsigned nwriters, nending;
    /* Pieces for the next writer of that form: memory that is new is dearer than a copy. */
    struct cm_s3_idle *idle;
    cm_s3_form idle_form;
} cm_s3_memory;

void cm_s3_memory_init(cm_s3_memory *p);
void cm_s3_memory_release(cm_s3_memory *p);
void cm_s3_memory_set(cm_s3_memory *p, const cm_store_sending *sending);

cm_s3_form cm_s3_form_of(const cm_s3_memory *p, const cm_object_form *form);
cm_s3_form cm_s3_form_of_scratch(const cm_s3_memory *p, uint64_t most_nbytes);
size_t cm_s3_memory_need(const cm_s3_memory *p, const cm_object_form *form);
/* One piece with its request. */
size_t cm_s3_memory_piece(const cm_s3_memory *p);

/* All below with the lock held. */

/*
 * A writer begins, and ends.  False where there is no room for it, as more are being written than
 * were planned; it waits for those that are ending.
 */
bool cm_s3_memory_enter(cm_s3_memory *p, const cm_s3_form *form);
void cm_s3_memory_leave(cm_s3_memory *p, const cm_s3_form *form);

/* A piece of FORM; EXTRA: beyond what its writer needs. */
bool cm_s3_memory_has_room(const cm_s3_memory *p, const cm_s3_form *form);
uint8_t *cm_s3_memory_take(cm_s3_memory *p, const cm_s3_form *form, bool extra, cm_error *err);
void cm_s3_memory_give(cm_s3_memory *p, uint8_t *piece, const cm_s3_form *form, bool extra);

#endif
