#include "watch/monitor.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

struct cm_monitor {
    atomic_bool canceled;
    _Atomic uint64_t done_nbytes;
    _Atomic uint64_t changed_ns;
    pthread_mutex_t lock; /* guards what follows */
    cm_phase phase;
    uint64_t phase_start_ns;
    uint64_t total_nbytes;
    char name[192]; /* "": nothing to tell */
    const char *stage;
    uint64_t chunk;
    uint64_t nparts, parts_done, all_done_nbytes, all_total_nbytes;
};

cm_monitor *cm_monitor_create(cm_error *err)
{
    cm_monitor *m = cm_calloc(1, sizeof(*m), err);
    if (m == NULL)
        return NULL;
    pthread_mutex_init(&m->lock, NULL);
    m->phase_start_ns = cm_now_ns();
    atomic_store(&m->changed_ns, m->phase_start_ns);
    return m;
}

void cm_monitor_free(cm_monitor *m)
{
    if (m == NULL)
        return;
    pthread_mutex_destroy(&m->lock);
    free(m);
}

void cm_monitor_cancel(cm_monitor *m)
{
    atomic_store(&m->canceled, true);
}

bool cm_monitor_canceled(const cm_monitor *m)
{
    return m != NULL && atomic_load_explicit(&m->canceled, memory_order_relaxed);
}

bool cm_monitor_cancels(void *m)
{
    return cm_monitor_canceled(m);
}

void cm_monitor_phase(cm_monitor *m, cm_phase phase, uint64_t total_nbytes)
{
    if (m == NULL)
        return;
    pthread_mutex_lock(&m->lock);
    m->phase = phase;
    m->phase_start_ns = cm_now_ns();
    m->total_nbytes = total_nbytes;
    m->name[0] = '\0';
    atomic_store(&m->done_nbytes, 0);
    atomic_store(&m->changed_ns, m->phase_start_ns);
    pthread_mutex_unlock(&m->lock);
}

void cm_monitor_add(cm_monitor *m, uint64_t nbytes)
{
    if (m == NULL)
        return;
    atomic_fetch_add_explicit(&m->done_nbytes, nbytes, memory_order_relaxed);
    atomic_store_explicit(&m->changed_ns, cm_now_ns(), memory_order_relaxed);
}

void cm_monitor_parts(cm_monitor *m, uint64_t nparts, uint64_t done, uint64_t done_nbytes,
                      uint64_t total_nbytes)
{
    if (m == NULL)
        return;
    pthread_mutex_lock(&m->lock);
    m->nparts = nparts;
    m->parts_done = done;
    m->all_done_nbytes = done_nbytes;
    m->all_total_nbytes = total_nbytes;
    pthread_mutex_unlock(&m->lock);
}

void cm_monitor_at(cm_monitor *m, const char *name, uint64_t chunk, const char *stage)
{
    /*
     * A snapshot shows one worker's doing; one that finds the lock taken need not be that
     * worker.
     */
    if (m == NULL || pthread_mutex_trylock(&m->lock) != 0)
        return;
    strncpy(m->name, name, sizeof(m->name) - 1);
    m->chunk = chunk;
    m->stage = stage;
    pthread_mutex_unlock(&m->lock);
}

void cm_monitor_snapshot(cm_monitor *m, cm_snapshot *out)
{
    pthread_mutex_lock(&m->lock);
    uint64_t now = cm_now_ns(), changed = atomic_load(&m->changed_ns);
    out->phase = m->phase;
    out->done_nbytes = atomic_load(&m->done_nbytes);
    out->total_nbytes = m->total_nbytes;
    out->phase_ns = now - m->phase_start_ns;
    out->since_change_ns = now > changed ? now - changed : 0;
    out->nparts = m->nparts;
    out->parts_done = m->parts_done;
    out->all_done_nbytes = m->all_done_nbytes;
    out->all_total_nbytes = m->all_total_nbytes;
    out->what[0] = '\0';
    if (m->name[0] != '\0' && m->chunk == CM_NO_CHUNK)
        snprintf(out->what, sizeof(out->what), "%s %s", m->name, m->stage);
    else if (m->name[0] != '\0')
        snprintf(out->what, sizeof(out->what), "%s: %s chunk %llu", m->name, m->stage,
                 (unsigned long long)m->chunk);
    pthread_mutex_unlock(&m->lock);
}

const char *cm_phase_name(cm_phase phase)
{
    switch (phase) {
    case CM_PHASE_OPENING:
        return "opening";
    case CM_PHASE_SURVEYING:
        return "surveying";
    case CM_PHASE_PLANNING:
        return "planning";
    case CM_PHASE_WORKING:
        return "converting";
    case CM_PHASE_MEASURING:
        return "measuring";
    case CM_PHASE_FINISHING:
        return "finishing";
    case CM_PHASE_VERIFYING:
        return "verifying";
    case CM_PHASE_DONE:
        return "done";
    }
    return "";
}
