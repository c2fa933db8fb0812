/*
 * A set of digests, each with a number: what was met before.
 */
#ifndef CM_ARCHIVE_SURVEY_KNOWN_H
#define CM_ARCHIVE_SURVEY_KNOWN_H

#include "model/digest.h"

typedef struct cm_known_entry {
    cm_digest digest;
    uint64_t value; /* + 1; 0: the entry is free */
} cm_known_entry;

/* Zero-initialise.  32 bytes an entry at most. */
typedef struct cm_known {
    cm_known_entry *entry;
    size_t capacity, n;
} cm_known;

/* False when DIGEST is not there. */
bool cm_known_find(const cm_known *k, cm_digest digest, uint64_t *value);
/* DIGEST is not there yet. */
int cm_known_add(cm_known *k, cm_digest digest, uint64_t value, cm_error *err);
void cm_known_release(cm_known *k);

#endif
