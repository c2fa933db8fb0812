/*
 * Copies objects behind a network to local files, because libhdf5 and libnetcdf read no others.
 *
 * An object is fetched when it is first taken, and the copy is kept until its room is needed, so
 * that taking the object again need not fetch it again.  The copy must be the object described by
 * cm_object_stat: an object that changed since is an error.
 *
 * Copies lie in a folder of their own, which is removed with the last of them; if this process is
 * killed, by a child process, and if both are killed, by the next process that makes such a folder.
 */
#ifndef CM_STORE_COPIES_H
#define CM_STORE_COPIES_H

#include "base/paged.h"
#include "store/net.h"

typedef struct cm_copies cm_copies;
/* One object, and its copy if there is one. */
typedef struct cm_copy cm_copy;

enum {
    CM_COPY_PATH_SIZE = 4200
};

/*
 * Copies go to a new folder inside FOLDER, made at the first fetch; together they take at most
 * MAX_NBYTES (0: half of the free space at that time), exceeded only by a single larger object, or
 * by those in use at once.  The list of objects is kept in PAGED.  All are borrowed.
 */
int cm_copies_create(cm_net *net, const char *folder, uint64_t max_nbytes, cm_paged *paged,
                     cm_copies **out, cm_error *err);
/* No copy may be in use.  NULL accepted. */
void cm_copies_free(cm_copies *c);

/* Makes the folder; call it before starting child processes that read copies. */
int cm_copies_prepare(cm_copies *c, cm_error *err);

/* With STOP, threads that wait for room give up with CM_ECANCELED from now on. */
void cm_copies_stop(cm_copies *c, bool stop);

/* URL must outlive C.  Fetches nothing.  One thread at a time. */
int cm_copies_add(cm_copies *c, const char *url, const cm_object_stat *told, cm_copy **out,
                  cm_error *err);
/* Identifies the object: size, ETag, or else its time of change. */
const cm_object_stat *cm_copy_stat(const cm_copy *copy);
/* The ETag, or else the time of change as text; "" if the server tells neither. */
void cm_copy_tag(const cm_copy *copy, char tag[136]);
/* Whether the server tells either: otherwise objects of the same length cannot be told apart. */
bool cm_copy_is_marked(const cm_copy *copy);
/* A number for the ETag, or the time of change; not 0. */
uint64_t cm_copy_mark(const cm_copy *copy);

typedef enum cm_copy_when {
    CM_COPY_NOW,     /* even beyond the limit */
    CM_COPY_IF_ROOM, /* unless copies in use take all the room */
    /* Only fetches, unless copies in use, or fetched ahead and not used yet, fill the room. */
    CM_COPY_AHEAD
} cm_copy_when;

/*
 * Waits for room for the copy and reserves it; take it next, with CM_COPY_NOW.  A caller that waits
 * for several in turn gets the first of them first.
 */
int cm_copy_await(cm_copy *copy, cm_error *err);

/*
 * Copies the object to a file, *path, until it is given back as often as it was taken; any thread.
 * *taken is false if there is no room.  CM_EFORMAT if the object changed, CM_EUNSUPPORTED if it is
 * gone or may not be read, CM_EIO if the server does not answer.  Errors name it.
 */
int cm_copy_take(cm_copy *copy, cm_copy_when when, bool *taken, char path[CM_COPY_PATH_SIZE],
                 cm_error *err);
void cm_copy_give(cm_copy *copy);
/* Asks for the size, time and tag of the object URL, by one request; CM_ENOTFOUND when absent. */
int cm_copy_stat_url(cm_net *net, const char *url, cm_object_stat *out, cm_error *err);
/* The path of a copy that is taken; works in child processes too. */
int cm_copy_path(const cm_copy *copy, char path[CM_COPY_PATH_SIZE], cm_error *err);
/* Bytes that it and the other copies may take together. */
uint64_t cm_copy_room(cm_copy *copy);
/* Whether taking it needs no request now. */
bool cm_copy_is_here(cm_copy *copy);

/* Makes a message about the copy at PATH name the object instead. */
void cm_copy_name(const cm_copy *copy, const char *path, cm_error *err);

#endif
