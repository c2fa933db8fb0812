#include "exec/watch/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"

enum {
    FLUSH_NBYTES = 64 * 1024
};

struct cm_trace {
    int fd;
    char *path;
    uint64_t start_ns;
    pthread_mutex_t lock;
    bool any;
    cm_buf text;
    cm_error error; /* the first one */
};

int cm_trace_open(const char *path, cm_trace **out, cm_error *err)
{
    cm_trace *t = cm_calloc(1, sizeof(*t), err);
    if (t == NULL)
        return CM_ENOMEM;
    t->path = cm_strdup(path, err);
    t->fd = t->path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (t->fd < 0) {
        int rc = t->path == NULL ? CM_ENOMEM
                                 : cm_fail_errno(err, errno, "cannot write the trace %s", path);
        free(t->path);
        free(t);
        return rc;
    }
    t->start_ns = cm_now_ns();
    pthread_mutex_init(&t->lock, NULL);
    if (cm_buf_append(&t->text, "{\"traceEvents\":[", 16, &t->error) != CM_OK) {
        *out = NULL;
        return cm_trace_close(t, err);
    }
    *out = t;
    return CM_OK;
}

static void flush(cm_trace *t)
{
    size_t done = 0;
    while (done < t->text.nbytes && t->error.status == CM_OK) {
        ssize_t n = write(t->fd, t->text.data + done, t->text.nbytes - done);
        if (n >= 0)
            done += (size_t)n;
        else if (errno != EINTR)
            cm_fail_errno(&t->error, errno, "cannot write the trace %s", t->path);
    }
    t->text.nbytes = 0;
}

void cm_trace_event(cm_trace *t, unsigned worker, const char *stage, const char *name,
                    uint64_t chunk, uint64_t start_ns, uint64_t end_ns)
{
    if (t == NULL)
        return;
    pthread_mutex_lock(&t->lock);
    cm_json *quoted = cm_json_string(name);
    if (t->error.status == CM_OK) {
        cm_buf_printf(&t->text, &t->error, "%s\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"name\":\"%s\"",
                      t->any ? "," : "", worker, stage);
        cm_buf_printf(&t->text, &t->error, ",\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"array\":",
                      (double)(start_ns - t->start_ns) / 1e3, (double)(end_ns - start_ns) / 1e3);
        cm_json_write(quoted, false, &t->text, &t->error);
        cm_buf_printf(&t->text, &t->error, ",\"chunk\":%llu}}", (unsigned long long)chunk);
    }
    t->any = true;
    cm_json_free(quoted);
    if (t->text.nbytes >= FLUSH_NBYTES)
        flush(t);
    pthread_mutex_unlock(&t->lock);
}

int cm_trace_close(cm_trace *t, cm_error *err)
{
    if (t == NULL)
        return CM_OK;
    if (t->error.status == CM_OK)
        cm_buf_printf(&t->text, &t->error, "\n],\"displayTimeUnit\":\"ms\"}\n");
    flush(t);
    if (close(t->fd) != 0 && t->error.status == CM_OK)
        cm_fail_errno(&t->error, errno, "cannot write the trace %s", t->path);
    int rc = t->error.status;
    if (rc != CM_OK && err != NULL)
        *err = t->error;
    pthread_mutex_destroy(&t->lock);
    cm_buf_release(&t->text);
    free(t->path);
    free(t);
    return rc;
}
