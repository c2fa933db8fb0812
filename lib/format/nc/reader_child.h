/* The child's side of reader.h: its requests and replies. */
#ifndef CM_FORMAT_NC_READER_CHILD_H
#define CM_FORMAT_NC_READER_CHILD_H

#include "format/nc/file.h"

typedef enum cm_nc_wish {
    CM_NC_WISH_BOX,     /* the elements of BOX */
    CM_NC_WISH_TEXT,    /* of strings: their lengths (8 bytes each), then their bytes */
    CM_NC_WISH_CHUNK,   /* the stored bytes of chunk NUMBER */
    CM_NC_WISH_LENGTHS, /* the stored lengths of COUNT chunks from NUMBER on */
    CM_NC_WISH_CLOSE    /* close the file, then end */
} cm_nc_wish;

typedef struct cm_nc_request {
    cm_nc_wish wish;
    size_t node;
    uint64_t number, count;
    cm_box box;
} cm_nc_request;

/* A cm_error follows if STATUS is not CM_OK; the data requested lie in the shared memory. */
typedef struct cm_nc_reply {
    int status;
    uint64_t nbytes;
    cm_fetch fetch; /* CM_NC_WISH_CHUNK */
} cm_nc_reply;

/* State of the child; the parent gives it PATH and MEMORY, a file that both map. */
typedef struct cm_nc_child {
    const char *path;
    int memory;
    uint64_t most;  /* bytes for data */
    unsigned cpu_s; /* for each request */
    cm_nc_file *file;
    uint8_t *map;
    size_t mapped;
} cm_nc_child;

/* For cm_trial_keep: RECORD becomes the struct stat of the opened file. */
int cm_nc_child_open(void *child, cm_buf *record, cm_error *err);
void cm_nc_child_serve(void *child, int fd);

#endif
