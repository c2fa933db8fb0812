/* Shared by the files of the source of batches, for them alone. */
#ifndef CM_LOAD_BATCHES_LOAD_SOURCE_IMPL_H
#define CM_LOAD_BATCHES_LOAD_SOURCE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/team.h"
#include "load/batches/expected.h"
#include "load/batches/load_source.h"
#include "store/io.h"

/* State that all workers of a source share. */
typedef struct cm_load_sharing {
    cm_load_source_options options;
    cm_expecting expecting;
    pthread_mutex_t lock; /* guards the rest */
    pid_t pid;            /* of the process that opened `arrays` */
    unsigned users;       /* workers of that process that read them */
    cm_load_arrays arrays;
    cm_disk_cache_counts disk; /* that were told already */
} cm_load_sharing;

/* One thread of a worker. */
typedef struct cm_load_hand {
    cm_reader *reader;
    cm_load_counts counts; /* of the task */
    int status;
    cm_error err;
} cm_load_hand;

/* One worker. */
typedef struct cm_load_worker {
    cm_load_sharing *source;
    cm_load_arrays own; /* where each worker opens for itself */
    cm_disk_cache_counts own_disk;
    cm_load_arrays *arrays; /* what it reads; NULL: not open */
    cm_team *team;
    cm_load_hand *hand;
    unsigned nhands;
    uint8_t **fixed; /* the parts that are read once */

    size_t reach; /* end of the part of the arena written so far */

    /* The task. */
    const cm_load_task *task;
    cm_lookahead_list *ahead; /* NULL: threads request chunks when they want them */
    uint8_t *arena;
    _Atomic uint64_t next; /* part of a sample */
} cm_load_worker;

/* ---- assemble.c ---- */

cm_disk_cache_counts cm_load_disk_counts(const cm_load_arrays *in);

/* Functions of a cm_load_source. */
void cm_load_expect(void *context, const cm_load_task *task);
void cm_load_forget(void *context, const cm_load_task *task);
int cm_load_task_run(void *state, const cm_load_task *task, uint8_t *arena, cm_load_result *result,
                     cm_error *err);

#endif
