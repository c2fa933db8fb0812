/* Every way in which a pool can have workers. */
#ifndef TESTS_EXEC_POOL_KINDS_H
#define TESTS_EXEC_POOL_KINDS_H

#include "load/workers/pool.h"

typedef struct kind {
    const char *name;
    cm_pool_mode mode;
} kind;

static const kind kinds[] = {
    {"sync", CM_POOL_SYNC}, {"threads", CM_POOL_THREADS}, {"fork", CM_POOL_PROCESSES}};

enum {
    NKINDS = sizeof(kinds) / sizeof(kinds[0]),
    THREADS = 1,
    FORK = 2
};

#endif
