/* What the files of the public loader (chunkmill/loader.h) share; for them alone. */
#ifndef CM_JOB_LOADER_LOADER_IMPL_H
#define CM_JOB_LOADER_LOADER_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include <chunkmill/loader.h>

#include "job/loader/run.h"

typedef struct cm_loader_hold cm_loader_hold;

/* What was opened, for as long as the loader or a batch is there. */
typedef struct cm_loader_about {
    atomic_uint refs;
    cm_loader_dim *dim;
    size_t ndims;
    cm_loader_variable *variable;
    size_t nvariables;
    int64_t *stride; /* of each variable's tensor, elements; as far apart as cm_batch.shape */
} cm_loader_about;

/* One for each slot. */
struct cm_batch {
    cm_loader_hold *hold;
    atomic_uint refs; /* the caller's handle and each exported tensor; 0: the slot is not taken */
    cm_load_batch made;
    uint64_t epoch;
    uint64_t *sample;
    int64_t *index;
    cm_tensor *tensor; /* of each part */
    int64_t *shape;    /* of each part, CM_LOADER_MAX_DIMS + 1 apart */
};

/* What outlives the loader while batches are held. */
struct cm_loader_hold {
    atomic_uint refs; /* the loader, and each batch that is held */
    pid_t pid;
    pthread_mutex_t lock; /* guards `rank` */
    cm_load_rank *rank;   /* NULL: the loader was closed */
    cm_arena arena;
    unsigned nslots;
    cm_batch *batch;
    cm_loader_about *about;
    uint64_t batch_samples;
};

struct cm_loader {
    pid_t pid;
    pthread_mutex_t lock; /* calls come one at a time */
    char *store;
    cm_readbench_options options;
    char **text; /* of the options */
    size_t ntexts;
    cm_load_run run;
    cm_loader_about *about;
    cm_loader_hold *hold;
    uint64_t lingering_nbytes; /* of batches held from before the memory was laid out anew */
    uint64_t fingerprint;      /* of what decides which samples come when */
    uint64_t epoch, next;      /* the next batch */
    bool begun;
    uint64_t begin_ns;
    cm_loader_stats stats; /* as far as they are counted here */
};

/* ---- loader_options.c ---- */

/* Into l->options, with copies of all texts; KNOWN is what was given, completed. */
int cm_loader_options_take(cm_loader *l, const cm_loader_options *options, cm_loader_options *known,
                           cm_error *err);
void cm_loader_options_release(cm_loader *l);

/* ---- loader_hold.c ---- */

/* Of the run l->run, which has started; takes its arena. */
int cm_loader_hold_create(cm_loader *l, cm_loader_hold **out, cm_error *err);
/* The loader is closed: nothing is given back to it any more. */
void cm_loader_hold_detach(cm_loader_hold *hold);
void cm_loader_hold_unref(cm_loader_hold *hold); /* NULL accepted */
/* The batch of MADE's slot, with one reference. */
cm_batch *cm_loader_hold_batch(cm_loader_hold *hold, const cm_load_batch *made, uint64_t epoch);
void cm_batch_ref(cm_batch *batch);
/* CM_EINVAL: there is none, or it is another process's. */
int cm_batch_check(const cm_batch *batch, cm_error *err);
unsigned cm_loader_hold_count(const cm_loader_hold *hold); /* batches that are held */

/* ---- loader_about.c ---- */

/* Of the opened run, with the coordinates of its dimensions. */
int cm_loader_about_create(cm_loader *l, cm_loader_about **out, cm_error *err);
cm_loader_about *cm_loader_about_ref(cm_loader_about *about);
void cm_loader_about_unref(cm_loader_about *about); /* NULL accepted */

/* ---- loader_position.c ---- */
uint64_t cm_loader_fingerprint(const cm_load_run *run);

typedef struct cm_loader_place {
    uint64_t fingerprint, epoch, batch, window, max_stash;
} cm_loader_place;
void cm_loader_place_write(const cm_loader_place *place, cm_loader_position *out);
int cm_loader_place_read(const cm_loader_position *position, cm_loader_place *out, cm_error *err);

#endif
