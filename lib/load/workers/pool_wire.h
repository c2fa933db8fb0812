/*
 * What a pool and its processes say to each other over a stream socket.  Both
 * ends are the same program, so structs travel as they are; the hello's size
 * and version are checked all the same, because SPAWN begins a file by name.
 */
#ifndef CM_LOAD_WORKERS_POOL_WIRE_H
#define CM_LOAD_WORKERS_POOL_WIRE_H

#include "base/fd.h"
#include "load/workers/pool.h"

enum {
    CM_POOL_WIRE_VERSION = 1,
    CM_POOL_AS_WORKER = 1,
    CM_POOL_AS_SERVER = 2
};

/* The first message to a process that was begun anew; the setup's bytes follow. */
typedef struct cm_pool_hello {
    uint32_t nbytes; /* sizeof(cm_pool_hello) + sizeof(cm_load_result) */
    uint32_t version;
    uint32_t role;
    uint32_t worker;
    int64_t parent; /* pid of who must live; 0: not checked */
    uint64_t setup_nbytes;
    uint64_t arena_nbytes; /* its file comes along */
    uint64_t max_pieces;
    uint64_t worker_memory;
} cm_pool_hello;

/* The first message back: open, or why not. */
typedef struct cm_pool_ready {
    int32_t status;
    char text[1024];
} cm_pool_ready;

/* To a fork server and back. */
typedef struct cm_pool_request {
    int64_t pid;      /* to reap; 0: fork a worker for the socket that comes along */
    uint32_t kill_it; /* before it is reaped */
    uint32_t unused;
} cm_pool_request;

typedef struct cm_pool_reply {
    int64_t pid;    /* forked or reaped; 0: not ended yet; -1: failed */
    int32_t status; /* of waitpid */
    int32_t errnum; /* of fork or waitpid */
} cm_pool_reply;

/* A connected pair of stream sockets, closed at exec. */
int cm_wire_pair(int fd[2], cm_error *err);

/* cm_fd_send and cm_fd_recv with a file descriptor beside the first byte; -1 for none. */
bool cm_wire_send_fd(int fd, const void *data, size_t nbytes, int passed);
bool cm_wire_recv_fd(int fd, void *data, size_t nbytes, int *passed);

#endif
