/* Internals of the public loader (chunkmill/loader.h), shared by its files alone. */
#ifndef CM_LOAD_LOADER_IMPL_H
#define CM_LOAD_LOADER_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include <chunkmill/loader.h>

#include "load/run.h"

typedef struct cm_loader_hold cm_loader_hold;

enum {
    CM_LOADER_STREAMS =
        4 /* of other libraries that read one batch; for more the device is waited for */
};

/* Where a batch lies that was copied to a device; guarded by the hold's lock. */
typedef struct cm_loader_buffer {
    cm_device_memory *memory; /* NULL: the batch lies in its slot */
    bool taken;               /* a batch lies in it that is not given back, or is on its way */
    struct {
        int64_t handle;
        cm_stream *stream;
        cm_event *done; /* recorded when the batch was given back */
    } reader[CM_LOADER_STREAMS];
    unsigned nreaders;
    bool unknown_reader;
} cm_loader_buffer;

/* Device to which batches are copied, and the objects that copying needs. */
typedef struct cm_loader_device {
    cm_device *device; /* NULL: there is none */
    cm_stream *copying;
    cm_event *copied;
    void *locked; /* the slots, page-locked; or NULL */
    size_t locked_nbytes;
} cm_loader_device;

/* Description of the opened run, kept as long as the loader or a batch exists. */
typedef struct cm_loader_about {
    atomic_uint refs;
    cm_loader_dim *dim;
    size_t ndims;
    char **attributes; /* of the coordinates of each dimension, as JSON; or NULL */
    uint8_t **missing; /* of each dimension, a byte for each coordinate; or NULL */
    cm_loader_variable *variable;
    size_t nvariables;
    int64_t *stride; /* of each variable's tensor, elements; as far apart as cm_batch.shape */
} cm_loader_about;

/* One for each slot, or for each buffer of a device. */
struct cm_batch {
    cm_loader_hold *hold;
    atomic_uint refs; /* the caller's handle and each exported tensor; 0: the slot is not taken */
    cm_load_batch made;
    uint64_t epoch;
    uint64_t *sample;
    int64_t *index;    /* behind the samples, in their memory */
    cm_tensor *tensor; /* of each part */
    int64_t *shape;    /* of each part, CM_LOADER_MAX_DIMS + 1 apart */
    cm_loader_buffer buffer;
};

/* State that outlives the loader while batches are held. */
struct cm_loader_hold {
    atomic_uint refs; /* the loader, and each batch that is held */
    pid_t pid;
    pthread_mutex_t lock; /* guards `rank`, `device` and the buffers */
    cm_load_rank *rank;   /* NULL: the loader was closed */
    cm_arena arena;
    cm_loader_device device;
    unsigned nbatches; /* slots, or buffers of the device */
    cm_batch *batch;
    cm_loader_about *about;
    uint64_t batch_samples;
};

struct cm_loader {
    pid_t pid;
    pthread_mutex_t lock; /* calls come one at a time */
    char *store;
    cm_load_options options;
    char **text; /* of the options */
    cm_load_range *range;
    cm_load_normals normals;
    cm_texts allow; /* what documents of references may point to, too */
    size_t ntexts;
    unsigned held; /* batches that the caller holds when it asks for the next one */
    char device[24];
    cm_load_run run;
    cm_loader_about *about;
    cm_loader_hold *hold;
    uint64_t lingering_nbytes; /* of batches held from before the memory was laid out anew */
    uint64_t fingerprint;      /* of what decides which samples come when */
    uint64_t epoch, next;      /* the next batch */
    bool begun;
    uint64_t begin_ns;
    cm_loader_stats stats; /* as far as they are counted here */
    char *holes;           /* the line about them, or NULL */
};

/* ---- loader_options.c ---- */

/* Fills l->options, with copies of all texts; KNOWN gets OPTIONS completed by defaults. */
int cm_loader_options_take(cm_loader *l, const cm_loader_options *options, cm_loader_options *known,
                           cm_error *err);
void cm_loader_options_release(cm_loader *l);

/* ---- loader_hold.c ---- */

/* Makes the hold of l->run, which has started; takes over its arena. */
int cm_loader_hold_create(cm_loader *l, cm_loader_hold **out, cm_error *err);
/* Detaches the hold from a loader that closes: batches are not given back to it any more. */
void cm_loader_hold_detach(cm_loader_hold *hold);
void cm_loader_hold_unref(cm_loader_hold *hold); /* NULL accepted */
/* With a device: takes a free batch for cm_loader_hold_batch; NULL: none is free. */
cm_batch *cm_loader_hold_take(cm_loader_hold *hold);
/*
 * A batch of MADE with one reference: that of its slot, or TAKEN, to whose buffer it is copied;
 * the slot is then given back, also after an error.
 */
int cm_loader_hold_batch(cm_loader_hold *hold, cm_batch *taken, const cm_load_batch *made,
                         uint64_t epoch, cm_batch **out, cm_error *err);
/* Undoes cm_loader_hold_take. */
void cm_loader_hold_untake(cm_batch *taken);
uint64_t cm_loader_hold_nbytes(const cm_loader_hold *hold); /* of this machine's memory */
void cm_loader_hold_describe(const cm_batch *batch, cm_batch_info *info); /* of this process */
void cm_batch_ref(cm_batch *batch);
/* CM_EINVAL: BATCH is NULL or belongs to another process. */
int cm_batch_check(const cm_batch *batch, cm_error *err);
unsigned cm_loader_hold_count(const cm_loader_hold *hold); /* batches that are held */

/* ---- loader_device.c: the hold's lock is held, but while it is opened and closed ---- */

/* The run's device with a buffer for each batch; page-locks the slots where that is asked for. */
int cm_loader_device_open(cm_loader_hold *hold, const cm_load_run *run, cm_error *err);
/* Unlocks the slots' pages, when nothing is copied any more. */
void cm_loader_device_unlock(cm_loader_device *device);
/* Closes the device after the readers of its buffers; zeroed memory is fine. */
void cm_loader_device_close(cm_loader_hold *hold);
/* Copies MADE to B's buffer, once all readers of the buffer's last batch are done. */
int cm_loader_device_copy(cm_batch *b, const cm_load_batch *made, cm_error *err);
int cm_loader_device_reads(cm_batch *b, int64_t stream, cm_error *err);
/* B is given back, while its readers may be at work. */
void cm_loader_device_leave(cm_batch *b);

/* ---- dlpack.c: the deleters of what it exports; NULL accepted ---- */

void cm_loader_delete_versioned(struct DLManagedTensorVersioned *self);
void cm_loader_delete_legacy(struct DLManagedTensor *self);

/* ---- loader.c ---- */

/* cm_loader_open for tests. */
int cm_loader_open_with(const char *store, const cm_loader_options *options,
                        const cm_device_hooks *hooks, cm_loader **out, cm_error *err);

/* ---- loader_about.c ---- */

/* Of the opened run, with the coordinates of its dimensions. */
int cm_loader_about_create(cm_loader *l, cm_loader_about **out, cm_error *err);
cm_loader_about *cm_loader_about_ref(cm_loader_about *about);
void cm_loader_about_unref(cm_loader_about *about); /* NULL accepted */

/* ---- loader_position.c ---- */
uint64_t cm_loader_fingerprint(const cm_load_run *run);

typedef struct cm_loader_place {
    uint64_t fingerprint, epoch, batch;
    cm_load_shape shape;
} cm_loader_place;
void cm_loader_place_write(const cm_loader_place *place, cm_loader_position *out);
int cm_loader_place_read(const cm_loader_position *position, cm_loader_place *out, cm_error *err);

#endif
