/*
 * What a bucket holds below a prefix, listed once: while nobody else writes there, what is looked
 * for need not be asked for again.
 */
#ifndef CM_STORE_NET_S3_KNOWN_H
#define CM_STORE_NET_S3_KNOWN_H

#include "store/net/remote.h"

typedef struct cm_s3_known cm_s3_known;

/* Lists STORE, which is a bucket's, and the uploads in it that nobody finished. */
int cm_s3_known_create(cm_store *store, cm_s3_known **out, cm_error *err);
void cm_s3_known_free(cm_s3_known *k); /* NULL accepted */

/* One thread at a time, as all below. */
bool cm_s3_known_has(const cm_s3_known *k, const char *key);
int cm_s3_known_add(cm_s3_known *k, const char *key, cm_error *err);
void cm_s3_known_remove(cm_s3_known *k, const char *key);

/* The same as cm_store_list; the names of temporaries are shown, as a bucket has none. */
int cm_s3_known_list(const cm_s3_known *k, const char *prefix, cm_store_visit *visit, void *context,
                     cm_error *err);
/* Every key below PREFIX, from there; what is told of it was not kept. */
int cm_s3_known_below(const cm_s3_known *k, const char *prefix, cm_store_see *see, void *context,
                      cm_error *err);

/* Each upload below PREFIX. */
int cm_s3_known_uploads(const cm_s3_known *k, const char *prefix, cm_s3_see_upload *see,
                        void *context, cm_error *err);

#endif
