/* Every way in which a pool can have workers. */
#ifndef TESTS_EXEC_POOL_KINDS_H
#define TESTS_EXEC_POOL_KINDS_H

#include "load/workers/pool.h"

typedef struct kind {
    const char *name;
    cm_pool_mode mode;
    cm_pool_start start;
} kind;

static const kind kinds[] = {{"sync", CM_POOL_SYNC, 0},
                             {"threads", CM_POOL_THREADS, 0},
                             {"fork", CM_POOL_PROCESSES, CM_START_FORK},
                             {"spawn", CM_POOL_PROCESSES, CM_START_SPAWN},
                             {"forkserver", CM_POOL_PROCESSES, CM_START_FORKSERVER}};

enum {
    NKINDS = sizeof(kinds) / sizeof(kinds[0]),
    THREADS = 1,
    FORK = 2 /* the first of those with processes */
};

#endif
