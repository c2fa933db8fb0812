/*
 * Objects behind a network as files of this machine: libhdf5 and libnetcdf read no others.
 *
 * An object is fetched when it is first taken and stays until the room is needed, so that who takes
 * it again need not fetch it again.  What is taken is what was told of it: an object that changed
 * since is an error.
 *
 * Copies lie in a folder of their own, which goes with the last of them; a child process removes
 * it where this process is killed, and whoever makes such a folder next where both are.
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
 * In a folder of FOLDER that is made when something is fetched; together at most MAX_NBYTES (0:
 * half of what is free there then), more only where a single object, or those that are in use at
 * once, are larger.  What is known of each object lies in PAGED.  All are borrowed.
 */
int cm_copies_create(cm_net *net, const char *folder, uint64_t max_nbytes, cm_paged *paged,
                     cm_copies **out, cm_error *err);
/* Nothing is taken any more.  NULL accepted. */
void cm_copies_free(cm_copies *c);

/* Makes the folder: before child processes that read copies are made. */
int cm_copies_prepare(cm_copies *c, cm_error *err);

/* Who waits for room gives up with CM_ECANCELED from now on. */
void cm_copies_stop(cm_copies *c, bool stop);

/* URL is borrowed for as long as C lives.  Fetches nothing.  One thread at a time. */
int cm_copies_add(cm_copies *c, const char *url, const cm_told *told, cm_copy **out, cm_error *err);
/* What tells the object from others of its name: size, ETag, else time of change. */
const cm_told *cm_copy_told(const cm_copy *copy);
/* The ETag, or the time of change in words where there is none. */
void cm_copy_tag(const cm_copy *copy, char tag[136]);
/* One number for the ETag, or the time of change; not 0. */
uint64_t cm_copy_mark(const cm_copy *copy);

typedef enum cm_copy_when {
    CM_COPY_NOW,     /* whatever room there is */
    CM_COPY_IF_ROOM, /* unless copies that are in use have all of it */
    /* It only comes, and is not taken, unless copies that were not used yet have the room, too. */
    CM_COPY_AHEAD
} cm_copy_when;

/*
 * Waits until there is room for the copy, which is kept for it; it is to be taken next, with
 * CM_COPY_NOW.  Who asks for several in turn has the first of them first.
 */
int cm_copy_await(cm_copy *copy, cm_error *err);

/*
 * The object becomes a file, *path, until it is given back as often as it was taken; any thread.
 * *taken: false where there is no room.  CM_EFORMAT where the object is another by now,
 * CM_EUNSUPPORTED where it is gone, or may not be read; CM_EIO where the server does not answer.
 * Errors name it.
 */
int cm_copy_take(cm_copy *copy, cm_copy_when when, bool *taken, char path[CM_COPY_PATH_SIZE],
                 cm_error *err);
void cm_copy_give(cm_copy *copy);
/* What is told of the object URL, by one request; CM_ENOTFOUND when absent. */
int cm_copy_look(cm_net *net, const char *url, cm_told *out, cm_error *err);
/* Where a copy that is taken lies; in a child process too. */
int cm_copy_path(const cm_copy *copy, char path[CM_COPY_PATH_SIZE], cm_error *err);
/* Whether taking it needs no request now. */
bool cm_copy_is_here(cm_copy *copy);

/* Lets a message about a copy of COPY's, which lies at PATH, name the object. */
void cm_copy_name(const cm_copy *copy, const char *path, cm_error *err);

#endif
