/* One task: what a worker does around the source's load. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "load/workers/pool_impl.h"

void cm_load_counts_add(cm_load_counts *to, const cm_load_counts *more)
{
    /* All members have one type, so a loop covers those that will be added. */
    enum {
        N = sizeof(cm_load_counts) / sizeof(uint64_t)
    };
    _Static_assert(sizeof(cm_load_counts) == N * sizeof(uint64_t), "counts are uint64_t alone");
    uint64_t sum[N], add[N];
    memcpy(sum, to, sizeof(sum));
    memcpy(add, more, sizeof(add));
    for (size_t i = 0; i < N; i++)
        sum[i] += add[i];
    memcpy(to, sum, sizeof(sum));
}

void cm_load_result_fail(cm_load_result *result, uint64_t id, int status, const char *text)
{
    if (text[0] == '\0')
        text = "the loader failed and gave no reason";
    /* Truncates the end: a sentence begins with the names. */
    size_t n = strnlen(text, sizeof(result->error) - 1);
    memcpy(result->error, text, n);
    result->error[n] = '\0';
    result->id = id;
    result->status = status;
}

/* Resident bytes of this process: the second number of statm, in pages; 0: not known. */
static uint64_t resident_nbytes(int statm_fd)
{
    char text[128];
    ssize_t n = statm_fd < 0 ? -1 : pread(statm_fd, text, sizeof(text) - 1, 0);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    const char *second = strchr(text, ' ');
    return second == NULL ? 0 : strtoull(second, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

int cm_pool_runner_open(cm_pool_runner *r, cm_error *err)
{
    r->state = NULL;
    r->statm_fd = -1;
    int rc = r->source->open(r->source->context, r->worker, &r->state, err);
    if (rc != CM_OK)
        return rc;
    r->statm_fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    return CM_OK;
}

void cm_pool_runner_load(cm_pool_runner *r, const cm_load_task *task, cm_load_result *result)
{
    cm_error err = {0};
    memset(result, 0, sizeof(*result));
    result->begin_ns = cm_now_ns();
    uint64_t cpu_ns = cm_thread_cpu_ns();
    int status = r->source->load(r->state, task, r->arena, result, &err);
    if (result->counts.cpu_ns == 0)
        result->counts.cpu_ns = cm_thread_cpu_ns() - cpu_ns;
    result->id = task->id;
    result->worker = r->worker;
    result->deaths = 0;
    result->status = CM_OK;
    if (status != CM_OK)
        cm_load_result_fail(result, task->id, status, err.text);
    result->rss_nbytes = resident_nbytes(r->statm_fd);
    result->end_ns = cm_now_ns();
}

void cm_pool_runner_close(cm_pool_runner *r)
{
    if (r->source->close != NULL)
        r->source->close(r->state);
    if (r->statm_fd >= 0)
        close(r->statm_fd);
    r->state = NULL;
    r->statm_fd = -1;
}
