/*
 * Opening a store by what a user types: a path or a URL.  The one place that decides which kind
 * of store a text means.
 */
#ifndef CM_STORE_OPEN_H
#define CM_STORE_OPEN_H

#include "store/io.h"
#include "store/net.h"

typedef struct cm_store_options {
    bool output;  /* what a run writes into: nothing below is reached through a link */
    bool create;  /* make it where it is missing */
    cm_io io;     /* how a folder's objects are read; not for an output */
    cm_net *net;  /* for what lies behind a network; NULL: there is none */
    bool trusted; /* this run wrote it: references may point anywhere */
} cm_store_options;

/*
 * Opens URL: a path, "file://PATH", "s3://BUCKET/PREFIX", "http://..." or "https://...".  A file
 * of references is a store too, and so is what has a name in ".json" behind a network; what follows
 * it, after a '/', is a node in it.
 * OPTIONS may be NULL: read what is there.  CM_ENOTFOUND and CM_EFORMAT say what is wrong
 * with the place, CM_EINVAL that no store of this kind can be had.
 */
int cm_store_open(const char *url, const cm_store_options *options, cm_store **out, cm_error *err);

typedef enum cm_place {
    CM_PLACE_NOTHING,
    CM_PLACE_FILE,  /* one file or object: NetCDF, if anything */
    CM_PLACE_FOLDER /* what may be opened as a store */
} cm_place;

/*
 * What is there now.  An error: that it cannot be found out.  Behind a network the name tells
 * a file from a store, and nothing is asked for; an output is asked for.
 */
int cm_store_look(const char *url, const cm_store_options *options, cm_place *out, cm_error *err);

/* True where URL lies behind a network: it is no path, and nothing may be made beside it. */
bool cm_store_url_is_remote(const char *url);

/* Behind a network: true where the name is that of a NetCDF or HDF5 file. */
bool cm_store_url_is_file(const char *url);

/*
 * True where reading URL may need a network: it lies behind one, or is a document of references,
 * which may point to one.
 */
bool cm_store_url_needs_net(const char *url);

/* The place of NODE, a well-formed key or "", in the store URL; to be freed. */
char *cm_store_join(const char *url, const char *node, cm_error *err);

#endif
