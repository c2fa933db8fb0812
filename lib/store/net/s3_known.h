/*
 * A listing of the keys in a bucket below a prefix, cached so that no server need be asked while
 * nobody else writes there.
 */
#ifndef CM_STORE_NET_S3_KNOWN_H
#define CM_STORE_NET_S3_KNOWN_H

#include "store/net/remote.h"

typedef struct cm_s3_known cm_s3_known;

/* Lists STORE, a bucket's, with its unfinished uploads. */
int cm_s3_known_create(cm_store *store, cm_s3_known **out, cm_error *err);
void cm_s3_known_free(cm_s3_known *k); /* NULL accepted */

/* One thread at a time, here and below. */
bool cm_s3_known_has(const cm_s3_known *k, const char *key);
int cm_s3_known_add(cm_s3_known *k, const char *key, cm_error *err);
void cm_s3_known_remove(cm_s3_known *k, const char *key);

/* cm_store_list from the listing, temporary names included, as a bucket has none. */
int cm_s3_known_list(const cm_s3_known *k, const char *prefix, cm_store_visit *visit, void *context,
                     cm_error *err);
/* Every key below PREFIX, relative to it; sizes and tags are not kept. */
int cm_s3_known_below(const cm_s3_known *k, const char *prefix, cm_store_visit_object *see,
                      void *context, cm_error *err);

/* Each unfinished upload below PREFIX. */
int cm_s3_known_uploads(const cm_s3_known *k, const char *prefix, cm_s3_visit_upload *see,
                        void *context, cm_error *err);

#endif
