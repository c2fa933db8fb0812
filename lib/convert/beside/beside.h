/*
 * The folder OUTPUT.chunkmill beside an output, which holds its lock and journals
 * while a run is under way: readers of a store warn of foreign objects inside.
 */
#ifndef CM_CONVERT_BESIDE_BESIDE_H
#define CM_CONVERT_BESIDE_BESIDE_H

#include "base/stop.h"
#include "convert/beside/silence.h"
#include "store/net.h"
#include "store/store.h"

typedef struct cm_beside {
    char *shown;  /* the output's folder as the user named it; for messages */
    char *root;   /* the output's folder by its real path, which all its names share */
    char *path;   /* ROOT.chunkmill */
    cm_store *in; /* the folder; NULL: not there, or not opened */
    int fd;       /* of it; -1 behind a network */
    bool remote;  /* behind a network: ROOT and PATH are URLs */
    cm_net *net;
    cm_silence *silence; /* locks in it that have been looked at */
    cm_stop stop;        /* ends waiting for a lock; may be set after cm_beside_find */
    char *stays; /* the sentence about what was to be removed from it, and was not; or NULL */
} cm_beside;

/*
 * Of the store whose folder OUTPUT names, which may be a symbolic link: then beside
 * what it leads to.  CM_EEXIST: a link to nothing.  Touches nothing.  NET, which may be
 * NULL, reaches what lies behind a network.
 */
int cm_beside_find(const char *output, cm_net *net, cm_beside *out, cm_error *err);
/*
 * Opens the folder, with CREATE made first; without, B->in stays NULL where there is none.
 * Never through a link.
 */
int cm_beside_open(cm_beside *b, bool create, cm_error *err);
/* Closes it. */
void cm_beside_close(cm_beside *b);
/* Closes, and removes the folder if it is empty. */
void cm_beside_leave(cm_beside *b);
void cm_beside_release(cm_beside *b);
/*
 * The time, in seconds, by the clock that files in B, which is open and no bucket's, have theirs
 * of: that of its server, if there is one.  Only such times tell how old a file is, for the clock
 * of this machine may be another, and jump.  0: it cannot be asked.
 */
int64_t cm_beside_now(const cm_beside *b);
/* Seconds since NAME in B was written, by the clock of the place itself; -1: that is not known. */
int64_t cm_beside_age(const cm_beside *b, const char *name);
/* A name in B that no other process gives to what it is about to write. */
void cm_beside_temporary(char *name, size_t size);
/* CM_EEXIST: NAME in B, of which a run wants to make a file, is there and no regular one. */
int cm_beside_refuse(const cm_beside *b, const char *name, cm_error *err);
/*
 * Removes the file NAME of a run that has ended well enough to be left so: where that fails,
 * B->stays tells of it.
 */
void cm_beside_remove(cm_beside *b, const char *name);
/* NAME stays, for the reason WHY. */
void cm_beside_tell(cm_beside *b, const char *name, const cm_error *why);

#endif
