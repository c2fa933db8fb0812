/*
 * Internals of the pool, shared by its files alone.
 *
 * One lock guards all lists.  A *member* is a worker as the pool sees it: a thread
 * that does the work, or one that looks after a process that does.  Jobs wait in
 * their member's queue, go to the member that takes them, and end in the list of
 * their client's results; then they are kept for the next submit.
 */
#ifndef CM_LOAD_WORKERS_POOL_IMPL_H
#define CM_LOAD_WORKERS_POOL_IMPL_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "base/fd.h"
#include "load/workers/pool.h"

typedef struct cm_pool_job {
    struct cm_pool_job *next;
    unsigned client;
    unsigned deaths;
    size_t capacity; /* pieces */
    cm_load_result result;
    cm_load_task *task; /* behind the job, in the same block */
} cm_pool_job;

typedef struct cm_pool_jobs {
    cm_pool_job *first, *last;
} cm_pool_jobs;

void cm_pool_jobs_append(cm_pool_jobs *list, cm_pool_job *job);
cm_pool_job *cm_pool_jobs_take(cm_pool_jobs *list); /* NULL: empty */

typedef struct cm_pool_member {
    struct cm_pool *pool;
    unsigned number;
    pthread_t thread;
    bool has_thread;
    pthread_cond_t wake; /* threads */
    int wake_fd;         /* processes: an eventfd; -1: none */
    cm_pool_jobs queue;
    cm_pool_worker_info info;
    /* Of the thread that looks after a process; others close FD in a forked child. */
    int fd; /* -1: no process */
    pid_t pid;
    cm_pool_jobs sent; /* to the process, in this order */
    unsigned nsent;
} cm_pool_member;

typedef struct cm_pool_client {
    pthread_cond_t came;
    cm_pool_jobs results;
    cm_pool_jobs queue;   /* CM_POOL_SYNC */
    unsigned outstanding; /* jobs whose result was not received */
    unsigned nresults;    /* of these, made */
    unsigned nbatches;    /* of these, of batches and cuts */
    unsigned wanted;      /* results of chunks that are worth waking the client for */
} cm_pool_client;

static inline bool cm_pool_client_has_enough(const cm_pool_client *c)
{
    return c->nbatches > 0 || c->nresults >= c->wanted || c->nresults == c->outstanding;
}

/* Caller of load: a thread, a process, or the client itself. */
typedef struct cm_pool_runner {
    const cm_load_source *source;
    uint8_t *arena;
    unsigned worker;
    void *state;
    int statm_fd;
} cm_pool_runner;

struct cm_pool {
    cm_pool_options options;
    cm_load_source source;
    cm_arena *arena;
    pthread_mutex_t lock;
    pthread_cond_t started;
    cm_pool_member *member; /* nworkers, none with CM_POOL_SYNC */
    cm_pool_client *client;
    cm_pool_jobs idle;
    unsigned nready, nfailed; /* members */
    cm_error error;           /* the first of those that failed */
    atomic_bool stop;
    uint64_t stop_ns;
    /* CM_POOL_SYNC: one at a time. */
    pthread_mutex_t sync_lock;
    cm_pool_runner sync;
    /*
     * Processes are begun one at a time, so that a child knows which sockets it inherits, and
     * after the threads of all members.
     */
    pthread_mutex_t start_lock;
};

/* ---- pool.c ---- */

/* Until the threads of all members are begun; what each of them calls first. */
void cm_pool_member_wait(cm_pool_member *m);
/* The member has opened its source, or failed to. */
void cm_pool_member_ready(cm_pool_member *m, int status, const cm_error *err);
/* The next job of M's queue; NULL: none now. */
cm_pool_job *cm_pool_member_take(cm_pool_member *m);
/* Wakes M for a job, or to stop; call with the lock held. */
void cm_pool_member_wake(cm_pool_member *m);
/* Forgets JOB, which is in no list and which nobody will load. */
void cm_pool_forget(cm_pool *pool, cm_pool_job *job);
/* Gives JOB, whose result is made, to its client. */
void cm_pool_deliver(cm_pool *pool, cm_pool_job *job);

/* ---- pool_run.c ---- */

int cm_pool_runner_open(cm_pool_runner *r, cm_error *err);
void cm_pool_runner_load(cm_pool_runner *r, const cm_load_task *task, cm_load_result *result);
void cm_pool_runner_close(cm_pool_runner *r);
void cm_load_result_fail(cm_load_result *result, uint64_t id, int status, const char *text);

/* ---- pool_threads.c, pool_process.c: the life of a member ---- */

void *cm_pool_thread_main(void *member);
void *cm_pool_process_main(void *member);

static inline uint64_t cm_pool_grace_ns(const cm_pool *pool)
{
    return pool->options.grace_ns > 0 ? pool->options.grace_ns : CM_POOL_GRACE_NS;
}

/* ---- pool_start.c ---- */

/* Begins M's process and waits until it is ready.  DIED: it ended before it was. */
int cm_pool_process_start(cm_pool_member *m, bool *died, cm_error *err);
/*
 * True when M's process has ended: it is reaped, its socket closed, and TEXT says
 * how it ended ("was killed by signal 9 (Killed)").  With KILL_IT it is killed first.
 */
bool cm_pool_process_reap(cm_pool_member *m, bool kill_it, char *text, size_t size);
/* Lets M's process close its source and end until LAST_NS; then it is killed.  It is reaped. */
void cm_pool_process_end(cm_pool_member *m, uint64_t last_ns);

/* ---- pool_serve.c: in the process ---- */

/* Its first message: open, or why not.  Tasks and results travel as they are. */
typedef struct cm_pool_ready {
    int32_t status;
    char text[1024];
} cm_pool_ready;

/* Opens the source, says so over FD, and does the tasks that come until the other end closes it. */
void cm_pool_work(int fd, const cm_load_source *source, uint8_t *arena, unsigned worker,
                  size_t max_pieces, uint64_t memory);
/* The first steps of a process that PARENT has just forked for a worker. */
void cm_pool_become_worker(pid_t parent);

#endif
