/*
 * Parses a store, a file, or a part of one as users type it: "PATH", "PATH::NODE", "file:///PATH"
 * (base/fileurl.h), "s3://BUCKET/PREFIX", "https://HOST/PATH".  A path that exists literally wins.
 */
#ifndef CM_OPTIONS_STORE_PATH_H
#define CM_OPTIONS_STORE_PATH_H

#include <stdbool.h>

#include <chunkmill/error.h>
#include <chunkmill/net.h>

typedef struct cm_store_path {
    char *path; /* in the file system, or a URL behind a network */
    char *node; /* below it, without a '/' at either end; "": all of it */
    bool is_folder;
    /* A file behind a network that was fetched: PATH is its copy, gone with the release. */
    char *url;
    struct cm_copies *copies;
    struct cm_paged *paged;
} cm_store_path;

/* Takes TEXT apart; CM_EINVAL for storage that is not built.  Whatever is returned, release it. */
int cm_store_path_split(const char *text, cm_store_path *out, cm_error *err);
/* cm_store_path_split for an input that must exist, else CM_ENOTFOUND; sets is_folder. */
int cm_store_path_find(const char *text, cm_net *net, cm_store_path *out, cm_error *err);
/*
 * Where P is a file behind a network, fetches it into FOLDER (NULL: the net's) and lets P->path be
 * the copy.
 */
int cm_store_path_fetch(cm_store_path *p, cm_net *net, const char *folder, cm_error *err);
/* ERR tells of the file that was fetched, not of the copy. */
void cm_store_path_name(const cm_store_path *p, cm_error *err);
/* The path that TEXT means, or TEXT where it lies behind a network; to be freed. */
int cm_store_path_plain(const char *text, char **out, cm_error *err);
void cm_store_path_release(cm_store_path *p);

#endif
