/*
 * Which of several processes this one is, by the variables of whoever started it.
 *
 * Tasks of a step (srun, mpirun) are known by rank and count, and are taken for parts
 * of one job where nobody says otherwise.  Elements of an array (Slurm, PBS, SGE,
 * Kubernetes, AWS Batch, ...) have an index; they often do a job each, so they count
 * only where that was asked for.
 */
#ifndef CM_TOOLS_LAUNCHER_H
#define CM_TOOLS_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

#include <chunkmill/error.h>

typedef enum cm_launcher_kind {
    CM_LAUNCHER_NONE,
    CM_LAUNCHER_STEP,
    CM_LAUNCHER_ARRAY
} cm_launcher_kind;

typedef struct cm_launcher {
    cm_launcher_kind kind;
    const char *name;     /* "srun", "a Slurm array", ... */
    const char *variable; /* that has the index */
    uint64_t index;       /* of a step: the rank, from 0 */
    uint64_t count;       /* 0: not known */
    uint64_t first, step; /* of an array: the index of the first, and from one to the next */
    /*
     * Tasks that were asked for and not started, because a script runs outside of a
     * step; 0: none.
     */
    uint64_t idle_tasks;
} cm_launcher;

/*
 * Looks through GET, which is getenv but in tests.  ARRAYS: these count, too.  CM_EINVAL
 * where variables hold no numbers, or a step runs in an array and both would count.
 */
int cm_launcher_find(const char *(*get)(const char *name), bool arrays, cm_launcher *out,
                     cm_error *err);

/* The variables of the process itself. */
const char *cm_launcher_getenv(const char *name);

#endif
