/*
 * Virtual chunks: ranges of files and objects that are not the repository's.
 *
 * A repository is untrusted: nothing is read but from places that the user allows, and a file that
 * changed since the reference was made is an error.
 */
#ifndef CM_FORMAT_ICECHUNK_OUTSIDE_H
#define CM_FORMAT_ICECHUNK_OUTSIDE_H

#include "format/icechunk/manifest_read.h"
#include "store/net.h"

typedef struct cm_ice_outside cm_ice_outside;

/* NET may be NULL: then nothing is allowed. */
int cm_ice_outside_create(cm_store *root, cm_net *net, cm_ice_outside **out, cm_error *err);
void cm_ice_outside_free(cm_ice_outside *o); /* NULL accepted */

/* Where a virtual chunk lies. */
typedef struct cm_ice_spot {
    cm_store *store; /* of its server or bucket, or of all files of this machine */
    bool is_net;
    char *key;
    char *shown; /* its path or URL */
} cm_ice_spot;

/*
 * Where CHUNK of M, one OUTSIDE, lies; may be called by many threads.  CM_EUNSUPPORTED: it is not
 * allowed.  Release OUT, but for its store.
 */
int cm_ice_outside_find(cm_ice_outside *o, const cm_ice_manifest_view *m, const cm_ice_chunk *chunk,
                        cm_ice_spot *out, cm_error *err);
void cm_ice_spot_release(cm_ice_spot *spot);

#endif
