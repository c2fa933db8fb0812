/* The other side of reader.h: what the child is asked, and how it answers. */
#ifndef CM_FORMAT_NC_READER_CHILD_H
#define CM_FORMAT_NC_READER_CHILD_H

#include "format/nc/file.h"

typedef enum cm_nc_wish {
    CM_NC_WISH_BOX,     /* the elements of BOX */
    CM_NC_WISH_TEXT,    /* of strings: their lengths (8 bytes each), then their bytes */
    CM_NC_WISH_CHUNK,   /* the stored bytes of chunk NUMBER */
    CM_NC_WISH_LENGTHS, /* how many bytes are stored of COUNT chunks from NUMBER on */
    CM_NC_WISH_CLOSE    /* the file is closed; then the child ends */
} cm_nc_wish;

typedef struct cm_nc_request {
    cm_nc_wish wish;
    size_t node;
    uint64_t number, count;
    cm_box box;
} cm_nc_request;

/* A cm_error follows where STATUS is not CM_OK; what was asked for lies in the shared memory. */
typedef struct cm_nc_reply {
    int status;
    uint64_t nbytes;
    cm_fetch fetch; /* CM_NC_WISH_CHUNK */
} cm_nc_reply;

/* The child's; PATH and MEMORY, a file that both sides map, are given to it. */
typedef struct cm_nc_child {
    const char *path;
    int memory;
    uint64_t most;  /* bytes for data */
    unsigned cpu_s; /* for each request */
    cm_nc_file *file;
    uint8_t *map;
    size_t mapped;
} cm_nc_child;

/* For cm_trial_keep: RECORD becomes the struct stat of the file that was opened. */
int cm_nc_child_open(void *child, cm_buf *record, cm_error *err);
void cm_nc_child_serve(void *child, int fd);

#endif
