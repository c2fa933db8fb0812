#include "watch/trace.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/json.h"

enum {
    FLUSH_NBYTES = 64 * 1024
};

struct cm_trace {
    cm_outfile *file;
    uint64_t start_ns;
    pthread_mutex_t lock;
    bool any;
    cm_buf text;
    cm_error error; /* the first one */
};

int cm_trace_open(cm_outfile *file, cm_trace **out, cm_error *err)
{
    static const char head[] = "{" CM_MARK_TRACE "\"traceEvents\":[";
    *out = NULL;
    cm_trace *t = cm_calloc(1, sizeof(*t), err);
    if (t == NULL)
        return CM_ENOMEM;
    t->file = file;
    t->start_ns = cm_now_ns();
    int rc = cm_outfile_open(file, err);
    if (rc == CM_OK)
        rc = cm_buf_append(&t->text, head, sizeof(head) - 1, err);
    if (rc != CM_OK) {
        free(t);
        return rc;
    }
    pthread_mutex_init(&t->lock, NULL);
    *out = t;
    return CM_OK;
}

static void flush(cm_trace *t)
{
    if (t->error.status == CM_OK)
        cm_outfile_write(t->file, t->text.data, t->text.nbytes, &t->error);
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
    if (t->error.status == CM_OK)
        cm_outfile_commit(t->file, &t->error);
    int rc = t->error.status;
    if (rc != CM_OK && err != NULL)
        *err = t->error;
    pthread_mutex_destroy(&t->lock);
    cm_buf_release(&t->text);
    free(t);
    return rc;
}
