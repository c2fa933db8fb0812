/*
 * A listing of the keys in a bucket below a prefix, cached so that no server need be asked while
 * nobody else writes there.
 */
#ifndef CM_STORE_NET_S3_KNOWN_H
#define CM_STORE_NET_S3_KNOWN_H

#include "store/net/remote.h"

typedef struct cm_s3_known cm_s3_known;

cm_s3_known *cm_s3_known_create(cm_error *err); /* empty */
void cm_s3_known_free(cm_s3_known *k);          /* NULL accepted */

/* One thread at a time, here and below. */
/* False where nothing is known (K NULL). */
bool cm_s3_known_lacks(const cm_s3_known *k, const char *key);
/* Keys in the order of bytes cost least. */
int cm_s3_known_add(cm_s3_known *k, const char *key, cm_error *err);
int cm_s3_known_add_upload(cm_s3_known *k, const char *key, const char *id, cm_error *err);
void cm_s3_known_remove(cm_s3_known *k, const char *key);

/* cm_store_list from the listing, temporary names included, as a bucket has none. */
int cm_s3_known_list(const cm_s3_known *k, const char *prefix, cm_store_visit *visit, void *context,
                     cm_error *err);
/* Every key below PREFIX, relative to it; sizes and tags are not kept. */
int cm_s3_known_below(const cm_s3_known *k, const char *prefix, cm_store_visit_object *visit,
                      void *context, cm_error *err);

/* Each unfinished upload below PREFIX. */
int cm_s3_known_uploads(const cm_s3_known *k, const char *prefix, cm_s3_visit_upload *visit,
                        void *context, cm_error *err);

#endif
