/*
 * A zip file as a store: one object is one entry, stored and not deflated, as in
 * zarr.storage.ZipStore.
 *
 * Format: APPNOTE.TXT 6.3.10 of PKWARE, sections 4.3 (records), 4.4 (fields) and 4.5.3 (ZIP64).  A
 * file that is read is untrusted: its central directory must lie where its end says, directly
 * before the end; entries must lie before it and not overlap; names are checked like any key;
 * sizes are those of the directory, and an entry whose own header has another name is refused when
 * it is read.
 * Of entries with one name the last counts, as for Python's zipfile: zarr-python writes metadata
 * again and again.
 */
#ifndef CM_STORE_ZIP_H
#define CM_STORE_ZIP_H

#include "store/store.h"

/* True if the name of PATH ends in ".zip"; slashes behind it do not count. */
bool cm_zip_is_name(const char *path);
/* True if PATH is a regular file that begins like a zip file, or has the name of one. */
bool cm_zip_is(const char *path);
/* The same of a regular file whose first bytes are HEAD. */
bool cm_zip_begins(const char *path, const void *head, size_t nbytes);

/* For reading: what lies below NODE ("": all of it) in the zip file PATH. */
int cm_store_open_zip(const char *path, const char *node, cm_store **out, cm_error *err);

/* A new zip file. */
typedef struct cm_zip_place {
    const char *path;   /* of the file, once it is complete; no symbolic link */
    const char *folder; /* on the same file system: holds the file until then */
    /* The file that stands at PATH and is replaced; 0, 0: none. */
    uint64_t device, inode;
} cm_zip_place;

/* Names in the folder begin like this; those of runs that were killed may be removed. */
#define CM_ZIP_TEMPORARY "zip-"

/*
 * For writing, by many threads; what was written can be read.  The file is absent, or the old one
 * stands there, until cm_store_complete.  CM_EEXIST then if another file stands there.
 */
int cm_store_create_zip(const cm_zip_place *place, cm_store **out, cm_error *err);

#endif
