/* The inside of reader.h, shared by reader.c, which asks the child, and reader_start.c. */
#ifndef CM_FORMAT_NC_READER_IMPL_H
#define CM_FORMAT_NC_READER_IMPL_H

#include <pthread.h>

#include "base/trial.h"
#include "format/nc/reader.h"

enum {
    CM_NC_MANY_LENGTHS = 1024 /* chunks per request */
};

/* The lengths of a block of chunks. */
typedef struct cm_nc_lengths {
    const cm_nc_node *node; /* NULL: none */
    uint64_t block;
    uint64_t nbytes[CM_NC_MANY_LENGTHS];
} cm_nc_lengths;

struct cm_nc_reader {
    cm_trial_child child;
    cm_trial_limits limits;
    char *path;
    struct stat opened;
    uint64_t most; /* the child's memory for data */
    int memory;    /* a file mapped by both; the child extends it */
    const uint8_t *map;
    size_t mapped;
    pthread_mutex_t lock;   /* guards everything; held during a request */
    cm_error failure;       /* why the child ended */
    cm_nc_lengths *lengths; /* by block; NULL: none yet */
};

/* Ends the child. */
void cm_nc_reader_release(cm_nc_reader *r);

#endif
