/* Waiting for a lock that another part holds. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "convert/sink/part/parts.h"

enum {
    PAUSE_MS = 50,          /* between two looks at what another process does */
    REMOTE_PAUSE_MS = 1000, /* each is a few requests */
    MAX_FREE = 200          /* looks at a lock that is free and cannot be had */
};

static int pause_for(cm_job *job, bool remote, const cm_lock_holder *who, cm_error *err)
{
    const long ms = remote ? REMOTE_PAUSE_MS : PAUSE_MS;
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    cm_monitor_at(job->options->monitor, who->there ? who->who : "another process", CM_NO_CHUNK,
                  "is waited for");
    nanosleep(&pause, NULL);
    return cm_monitor_canceled(job->options->monitor)
               ? cm_fail(err, CM_ECANCELED, "stopped by request")
               : CM_OK;
}

/* Each lock that is taken may say the same of its server. */
static int warn_once(cm_job *job, const char *note, cm_error *err)
{
    for (size_t i = 0; i < job->report->nwarnings; i++)
        if (strcmp(job->report->warning[i], note) == 0)
            return CM_OK;
    return cm_job_warn(job, err, "%s", note);
}

int cm_parts_wait(cm_job *job, cm_output *out, const char *name, cm_lock **lock,
                  bool (*enough)(cm_job *job, cm_output *out), cm_error *err)
{
    const cm_lock_request request = {
        .name = name, .of_part = true, .breaks = job->options->break_lock};
    *lock = NULL;
    for (unsigned nfree = 0;;) {
        cm_lock_holder who;
        cm_error why = {0};
        char *note = NULL;
        if (enough != NULL && enough(job, out))
            return CM_OK;
        int rc = cm_lock_take_as(&out->beside, &request, lock, &note, &why);
        if (rc == CM_OK && note != NULL)
            rc = warn_once(job, note, err);
        free(note);
        if (*lock != NULL)
            return rc;
        /* Its own, which this process could not remove, it would wait for until it ends. */
        if (rc == CM_EEXIST && out->beside.stays != NULL)
            return cm_fail(err, CM_EEXIST, "%s", out->beside.stays);
        cm_error looking = {0};
        if (rc == CM_EEXIST && cm_lock_look(&out->beside, name, &who, &looking) != CM_OK)
            who.state = CM_LOCK_OF_RUN;
        nfree = rc == CM_EEXIST && who.state == CM_LOCK_FREE ? nfree + 1 : 0;
        if (rc != CM_EEXIST || who.state == CM_LOCK_OF_RUN || nfree > MAX_FREE) {
            (void)cm_fail(err, (cm_status)rc, "%s", why.text);
            cm_error_place(err, out->path); /* no fault of the source */
            return rc;
        }
        if ((rc = pause_for(job, out->beside.remote, &who, err)) != CM_OK)
            return rc;
    }
}
