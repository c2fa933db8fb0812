/*
 * Arrays of a repository that grow, or of which steps are replaced: what one process that does so,
 * and one of several (part_grow.c), have in common.
 */
#ifndef CM_CONVERT_SINK_ICECHUNK_GROW_H
#define CM_CONVERT_SINK_ICECHUNK_GROW_H

#include "convert/sink/growth/append.h"
#include "convert/sink/icechunk/grow_refer.h"
#include "convert/sink/icechunk/writing.h"

typedef struct cm_ice_growing {
    cm_append_state append; /* first: steps of growth/append.h take it */
    cm_store *before;       /* the snapshot as a store */
    cm_grow_refer refer;    /* with the option of that name; else zeroed */
    char **relied;          /* cm_ice_grow_rely; or NULL */
    size_t nrelied;
} cm_ice_growing;

/* Icechunk names chunks by their indices, whatever a document says of keys. */
void cm_ice_grow_set_keys(cm_job *job);
/*
 * Lists the arrays that files were compared with and that do not change, coordinates above all: by
 * these it was found which steps are written where, so that nobody may have changed them meanwhile.
 */
int cm_ice_grow_rely(cm_ice_growing *g, const cm_job *job, cm_error *err);
/* The dimension, where arrays get longer; or NULL. */
const char *cm_ice_grow_dimension(const cm_ice_growing *g);
/* The session of W, with the documents of the snapshot and the arrays that change, in order. */
int cm_ice_grow_open(cm_ice_growing *g, cm_ice_writing *w, cm_sink *s, cm_error *err);
/* Chunks of these arrays that W did not write stay what they are. */
void cm_ice_grow_keep(const cm_ice_growing *g, cm_ice_writing *w);
/* Documents that cannot be changed are found before anything is written. */
int cm_ice_grow_try(const cm_ice_growing *g, cm_ice_writing *w, cm_error *err);
/* All files have their names, and documents tell of the arrays as they will be. */
int cm_ice_grow_complete(const cm_ice_growing *g, cm_ice_writing *w, cm_error *err);
/* Manifests, and the commit. */
int cm_ice_grow_publish(cm_ice_growing *g, cm_ice_writing *w, cm_sink *s, cm_job *job,
                        cm_error *err);
/* The path of array NAME of the group that grows, as a snapshot has it; to be freed. */
char *cm_ice_grow_path(const cm_ice_growing *g, const char *name, cm_error *err);
void cm_ice_grow_release(cm_ice_growing *g);

#endif
