/*
 * Opens a store by a path or URL that a user types: the one place that decides on the kind of
 * store.
 */
#ifndef CM_STORE_OPEN_H
#define CM_STORE_OPEN_H

#include "store/io.h"
#include "store/net.h"

typedef struct cm_store_options {
    bool output;     /* for writing: symbolic links below are not followed */
    bool create;     /* make it if it is missing */
    cm_io io;        /* how a folder's objects are read; not for an output */
    cm_net *net;     /* for stores behind a network; NULL: none allowed */
    bool trusted;    /* written by this run: references may point anywhere */
    uint64_t memory; /* the user's limit, half of which documents may take; 0: none */
    /* Limit for indices of where objects lie; 0: an eighth of MEMORY, within bounds. */
    size_t index_nbytes;
} cm_store_options;

/*
 * Opens URL: a path, "file://PATH", "s3://BUCKET/PREFIX", "gs://BUCKET/PREFIX", "http://..." or
 * "https://...".  A zip file is a store, and so is a file of references, and a name in ".json"
 * behind a network; after it may follow '/' and a node in it.  OPTIONS may be NULL: read an
 * existing store.  CM_ENOTFOUND and CM_EFORMAT are faults of the place, CM_EINVAL: this kind of
 * store is not available.
 */
int cm_store_open(const char *url, const cm_store_options *options, cm_store **out, cm_error *err);

typedef enum cm_place {
    CM_PLACE_NOTHING,
    CM_PLACE_FILE,  /* a file or object: NetCDF, if anything */
    CM_PLACE_FOLDER /* can be opened as a store */
} cm_place;

/*
 * Determines what exists at URL; an error if that cannot be found out.  Behind a network an input's
 * name decides between file and store, without a request; an output is looked up.
 */
int cm_store_probe(const char *url, const cm_store_options *options, cm_place *out, cm_error *err);

/* The first bytes of the file "repo" of an Icechunk repository: "ICE", an ice cube, "CHUNK". */
#define CM_ICECHUNK_MAGIC                                                                          \
    "ICE\xf0\x9f\xa7\x8a"                                                                          \
    "CHUNK"
#define CM_ICECHUNK_MAIN "refs/branch.main/ref.json" /* a file of all those of format 1 */

/* Whether the folder PATH is an Icechunk repository. */
bool cm_icechunk_is_folder(const char *path);
/*
 * CM_EINVAL where PATH is that of a repository and a version of it, which nothing is written into;
 * CM_OK, too, where that cannot be told.
 */
int cm_icechunk_check_branch(const char *path, cm_error *err);
/* The text behind "icechunk:", if TEXT begins with that; else, or for NULL, NULL. */
const char *cm_icechunk_path(const char *text);
/* True if URL is behind a network: it is not a path, and nothing can be made beside it. */
bool cm_store_url_is_remote(const char *url);

/* Why nothing is written to URL, a sentence after its name; NULL: something may be. */
const char *cm_store_url_read_only(const char *url);

/* Behind a network: true if the name is that of a NetCDF or HDF5 file. */
bool cm_store_url_is_file(const char *url);

/*
 * True if reading URL may need a network: it is behind one, or is a document of references or a
 * repository, which may point to one.
 */
bool cm_store_url_needs_net(const char *url);

#endif
